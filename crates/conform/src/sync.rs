//! Checks whether writes wait for the device.
//!
//! A process that is killed leaves its data in the kernel's memory, so that a missing fsync cannot be
//! seen afterward. Instead, the kernel is told to refuse all calls that wait for the device: a write
//! that must survive the machine then has to fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context as _;
use engine::custom::CustomEngine;
use engine::{Error, KeyValueLibrary as _, KeyValueSession as _};
use rustix::fs::OFlags;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};
use words::Durability;

use crate::place::{DatabasePlace, connect};
use crate::{Verdict, claims, print_verdict};

/// The time after which a library that has not returned claims nothing.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(30);

/// The calls that wait for the device.
const SYNCS: [i64; 7] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
    // A ring may contain any of them.
    libc::SYS_io_uring_enter,
];

/// The calls that write to a file, whose number is their first argument.
const WRITES: [i64; 5] =
    [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2];

pub(crate) fn write(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let Some(database) = created(place)? else {
        return Ok(not_claimed());
    };
    let mut session = connect(&database)?;
    session.put(b"before", b"1").context("an entry cannot be written")?;
    if let Err(error) = refuse_syncs(&place.directory) {
        return Ok(untested(&error));
    }
    let result = unless_it_never_returns(|| session.put(b"after", b"2"));
    leave_open((session, database));
    Ok(judged("a write that must survive the machine", result))
}

pub(crate) fn database(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut session = connect(&database)?;
    // The second one shows that only what the kernel refuses can stop a third.
    for value in [b"1", b"2"] {
        session.put(b"before", value).context("an entry cannot be written")?;
        match database.sync() {
            Some(synced) => synced.context("the database cannot be synchronized")?,
            None => return Ok(Verdict::NotApplicable("the adapter has no `sync`".into())),
        }
    }
    session.put(b"between", b"2").context("an entry cannot be written")?;
    session.release();
    if let Err(error) = refuse_syncs(&place.directory) {
        return Ok(untested(&error));
    }
    // There is something to synchronize.
    let result = unless_it_never_returns(|| database.sync().unwrap_or(Ok(())));
    leave_open(database);
    Ok(judged("`sync`", result))
}

/// Creates a database whose writes survive the machine; `None` if the adapter does not claim that.
fn created(place: &DatabasePlace) -> anyhow::Result<Option<CustomEngine>> {
    if !claims(&place.library, Durability::Machine) {
        return Ok(None);
    }
    let config = place.config(Durability::Machine);
    Ok(Some(place.library.create_database(&place.directory, &config)?))
}

fn not_claimed() -> Verdict {
    let name = Durability::Machine.name();
    Verdict::NotApplicable(format!("the adapter does not claim the durability `{name}`"))
}

/// Returns the verdict where the machine does not let a process refuse its own calls.
fn untested(error: &anyhow::Error) -> Verdict {
    Verdict::NotApplicable(format!("this machine cannot refuse calls: {error:#}"))
}

/// Makes a call that the kernel does not let wait for the device. A library that stays in the call does not
/// claim that it succeeded: the process then ends with that verdict.
#[expect(clippy::exit, reason = "the process runs this check alone, and cannot leave the call")]
fn unless_it_never_returns<T>(call: impl FnOnce() -> T) -> T {
    let (returned, watched) = channel::<()>();
    std::thread::spawn(move || {
        if watched.recv_timeout(CLAIM_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let is_printed = print_verdict(&Verdict::Passed).is_ok();
            std::process::exit(i32::from(!is_printed));
        }
    });

    let result = call();
    drop(returned);
    result
}

/// Leaves a database open until the process ends: the library cannot close it any more, and may wait for
/// threads that its own error has ended.
fn leave_open<T>(database: T) {
    std::mem::forget(database);
}

fn judged(what: &str, result: Result<(), Error>) -> Verdict {
    match result {
        Err(_) => Verdict::Passed,
        Ok(()) => Verdict::Failed(format!(
            "{what} succeeded, although the kernel refused each call that waits for the device"
        )),
    }
}

/// Lets the kernel refuse, with an I/O error, each call of this process that waits for the device:
/// fsync and the like, and writes to files that were opened to wait.
fn refuse_syncs(directory: &Path) -> anyhow::Result<()> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in SYNCS {
        rules.insert(call, Vec::new());
    }
    let waiting = waiting_files(directory)?;
    if !waiting.is_empty() {
        for call in WRITES {
            let to = |file: &u64| {
                let argument =
                    SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *file)?;
                SeccompRule::new(vec![argument])
            };
            rules.insert(call, waiting.iter().map(to).collect::<Result<_, _>>()?);
        }
    }
    // The flag of a single write.
    let flag = libc::RWF_DSYNC as u64;
    let flagged =
        SeccompCondition::new(5, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
    rules.entry(libc::SYS_pwritev2).or_default().push(SeccompRule::new(vec![flagged])?);

    let arch = std::env::consts::ARCH.try_into().context("this processor is not supported")?;
    let refuse = SeccompAction::Errno(libc::EIO as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter_all_threads(&program).context("the kernel accepts no filter of calls")
}

/// Returns the open files below a directory whose writes wait for the device.
fn waiting_files(directory: &Path) -> anyhow::Result<Vec<u64>> {
    let directory = fs_err::canonicalize(directory)?;
    let mut files = Vec::new();
    for entry in fs_err::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        // The one that lists the others is closed by now.
        let Ok(target) = fs_err::read_link(&path) else { continue };
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        let Some(number) = number.filter(|_| target.starts_with(&directory)) else { continue };
        if waits(number)? {
            files.push(number);
        }
    }
    Ok(files)
}

/// Returns whether a file was opened so that writes wait for the device.
fn waits(number: u64) -> anyhow::Result<bool> {
    let text = fs_err::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    let flags = OFlags::from_bits_retain(flags.unwrap_or(0));
    Ok(flags.intersects(OFlags::DSYNC | OFlags::SYNC))
}
