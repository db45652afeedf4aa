//! Locks directories against other runs of assay, for as long as any process of this run lives.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use engine::guard::is_alive;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::{Errno, FdFlags};

use crate::ground::events::Events;
use crate::ground::failure::UsageError;
use crate::ground::host;

/// The file that is locked. It contains the id of the process that took the lock, and that of its
/// machine's boot: other machines may share the directory.
const FILE: &str = record::LOCK_FILE;

/// The number of bytes to read, which is more than the file has.
const OWNER_BYTES_MAX: u64 = 1024;

/// The time to wait for the servers of a killed run: longer than their guards give them.
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A lock, held until it is dropped.
pub struct Lock {
    _file: fs_err::File,
}

/// Locks the directory in which databases are made. The guards and servers that assay starts
/// inherit this lock: a run that was killed keeps the next one waiting until they are gone.
pub fn data_root(path: &Path, stop: &AtomicBool, events: &dyn Events) -> anyhow::Result<Lock> {
    let goes_on = |waited| {
        let is_stopped = stop.load(Ordering::Relaxed);
        // Said once, and not for what ends in a moment.
        if !is_stopped && waited == RETRY_INTERVAL * 10 {
            events.say("waiting for the processes of an earlier run to end");
        }
        !is_stopped
    };

    let taken = take_with_timeout(path, goes_on).context("cannot lock the data directory")?;

    let Some(file) = taken else {
        let what = format!("another run of assay uses the data directory `{}`", path.display());
        let help = "wait for it, or give another directory with `--data`";
        return Err(UsageError::new(what, Some(help.into())).into());
    };

    // Inherited by the processes that are started from here on.
    rustix::io::fcntl_setfd(&file, FdFlags::empty())
        .context("cannot pass the data directory's lock to servers")?;

    Ok(Lock { _file: file })
}

/// Locks a run's directory. A process that was being started when the run was killed may hold the
/// lock a moment longer.
pub fn run_directory(path: &Path) -> anyhow::Result<Lock> {
    let taken = take_with_timeout(path, |_| true).context("cannot lock the run's directory")?;
    let Some(file) = taken else {
        let who = match owner(path) {
            Some(Owner { pid, is_here: true }) => format!(" (process {pid})"),
            Some(Owner { pid, .. }) => format!(" (process {pid} of another machine)"),
            None => String::new(),
        };
        let message = format!("`{}` is in use by another assay{who}", path.display());
        let help = "wait for it to end, or interrupt it";
        return Err(UsageError::new(message, Some(help.into())).into());
    };

    Ok(Lock { _file: file })
}

/// Takes the lock, and waits for the processes of a dead owner. `None` if the owner lives, if that
/// takes too long, or if `goes_on` returns false, which gets the time waited so far.
fn take_with_timeout(
    path: &Path,
    goes_on: impl Fn(Duration) -> bool,
) -> anyhow::Result<Option<fs_err::File>> {
    let mut waited = Duration::ZERO;
    loop {
        let taken = take(path)?;
        if taken.is_some() || waited >= TIMEOUT {
            return Ok(taken);
        }

        let is_owned = owner(path).is_some_and(|owner| owner.is_here && is_alive(owner.pid));
        if is_owned || !goes_on(waited) {
            return Ok(None);
        }

        std::thread::sleep(RETRY_INTERVAL);
        waited += RETRY_INTERVAL;
    }
}

/// Tries to take the lock; `None` if another process has it.
fn take(directory: &Path) -> anyhow::Result<Option<fs_err::File>> {
    let file = open_lock(&directory.join(FILE))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.path().display())),
    }

    // Process ids are used again after a reboot, so the owner's boot is noted, too.
    let boot = host::boot_id().unwrap_or_default();
    let owner = format!("{} {boot}\n", std::process::id());

    file.set_len(0)?;
    std::os::unix::fs::FileExt::write_all_at(file.file(), owner.as_bytes(), 0)?;

    Ok(Some(file))
}

/// Opens or creates the file of a lock. Others may be able to write to the directory, so this
/// follows no link, and leaves everything but a file with a single name as it is.
fn open_lock(path: &Path) -> anyhow::Result<fs_err::File> {
    // Not truncated: the lock may belong to another process.
    let file = fs_err::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        // Who can open it can take the lock.
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path);

    let is_usable = match &file {
        Ok(file) => {
            let metadata = file.metadata()?;
            metadata.is_file() && metadata.nlink() == 1
        }
        // A link or a pipe.
        Err(_) => fs_err::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()),
    };

    if !is_usable && path.symlink_metadata().is_ok() {
        let what = format!("`{}` is not an assay lock file", path.display());
        let help = "another program or user created it: remove it, or choose another directory";
        return Err(UsageError::new(what, Some(help.into())).into());
    }

    Ok(file?)
}

/// The process that took a lock.
struct Owner {
    pid: u32,
    /// The process runs on this machine.
    is_here: bool,
}

/// Returns the process that took the lock last.
fn owner(directory: &Path) -> Option<Owner> {
    let mut text = String::new();
    let file = record::open_regular(&directory.join(FILE)).ok()?;
    file.take(OWNER_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (pid, boot) = text.trim_end_matches('\n').split_once(' ')?;
    Some(Owner { pid: pid.parse().ok()?, is_here: boot == host::boot_id().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_or_a_second_name_of_a_file_is_no_lock_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let [lock, precious] = [FILE, "precious"].map(|name| directory.path().join(name));
        fs_err::write(&precious, "mine").unwrap();
        let refused = || {
            let error = run_directory(directory.path()).err().expect("it is refused");
            assert!(format!("{error:#}").contains("is not an assay lock file"), "{error:#}");
            assert_eq!(fs_err::read_to_string(&precious).unwrap(), "mine");
            fs_err::remove_file(&lock).unwrap();
        };
        std::os::unix::fs::symlink(&precious, &lock).unwrap();
        refused();
        std::os::unix::fs::symlink(directory.path().join("new"), &lock).unwrap();
        refused();
        assert!(!directory.path().join("new").exists());
        fs_err::hard_link(&precious, &lock).unwrap();
        refused();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &lock, pipe, rustix::fs::Mode::RWXU, 0).unwrap();
        refused();
        assert!(run_directory(directory.path()).is_ok());
    }

    fn data_root(path: &Path) -> anyhow::Result<Lock> {
        super::data_root(path, &AtomicBool::new(false), &crate::Silent)
    }

    #[test]
    fn a_directory_is_locked_once_and_again_when_the_lock_is_gone() {
        let _turn = crate::starting::starting();
        let directory = tempfile::tempdir().unwrap();
        let lock = run_directory(directory.path()).unwrap();
        let refused = run_directory(directory.path()).err().unwrap().to_string();
        assert!(refused.contains("in use by another assay"), "{refused}");
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
        drop(lock);
        run_directory(directory.path()).unwrap();
    }

    #[test]
    fn an_owner_of_another_machine_is_no_process_of_this_one() {
        let _turn = crate::starting::starting();
        let directory = tempfile::tempdir().unwrap();
        let lock = run_directory(directory.path()).unwrap();
        let own = owner(directory.path()).unwrap();
        assert!(own.is_here && own.pid == std::process::id());
        fs_err::write(directory.path().join(FILE), format!("{} other\n", own.pid)).unwrap();
        assert!(!owner(directory.path()).unwrap().is_here);
        drop(lock);
        run_directory(directory.path()).unwrap();
    }

    #[test]
    fn a_living_owner_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let _lock = data_root(directory.path()).unwrap();
        let refused = data_root(directory.path()).err().unwrap().to_string();
        assert!(refused.contains("another run of assay uses"), "{refused}");
    }

    /// Locks a directory after an owner that is dead, and whose child has the lock for a moment
    /// more.
    fn after_a_dead_owner(lock: impl Fn(&Path) -> anyhow::Result<Lock>) {
        let _turn = crate::starting::starting();
        let directory = tempfile::tempdir().unwrap();
        let owned = lock(directory.path()).unwrap();
        rustix::io::fcntl_setfd(&owned._file, FdFlags::empty()).unwrap();
        // It inherits the lock, as a server does, and ends with its input.
        let mut server =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let input = server.stdin.take();
        drop(owned);
        // No process has this number: it is above the kernel's largest.
        let boot = host::boot_id().unwrap();
        fs_err::write(directory.path().join(FILE), format!("4194305 {boot}\n")).unwrap();
        assert!(take(directory.path()).unwrap().is_none());
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(input);
        });
        lock(directory.path()).unwrap();
        ending.join().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn what_a_dead_owner_started_is_waited_for() {
        after_a_dead_owner(data_root);
        after_a_dead_owner(run_directory);
    }
}
