//! Checks of the table, and of opening, closing and watching databases.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use engine::custom::CustomEngine;
use engine::{
    Counter, Direction, Engine as _, KeyValueEngine as _, KeyValueLibrary as _,
    KeyValueSession as _, LibraryConfig, Role, SettleLimits, SetupError,
};
use words::Durability;

use crate::Verdict;
use crate::data::{fill, write};
use crate::model::{Entries, History, KEY_COUNT, key};
use crate::place::{DatabasePlace, connect, difference, scanned, value_of};

/// An option that no engine has.
const NO_OPTION: &str = "assay_no_such_option";

/// The reads of a round of the check for leaks, and the databases that it opens.
const READS: u64 = 20_000;
const OPENINGS: u32 = 8;
/// The memory by which a round may grow: less than 64 bytes for each read.
const GROWTH_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn table(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let text = place.library.version_text();
    let is_readable = !text.trim().is_empty() && !text.contains(char::is_control);
    if !is_readable {
        let text = text.escape_debug();
        return Ok(Verdict::failed(format!("its name and version are `{text}`")));
    }
    place.create()?.stop()?;
    Ok(Verdict::Passed)
}

pub(crate) fn options(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let offered = place.library.durabilities();
    let config = LibraryConfig {
        set: vec![(NO_OPTION.to_owned(), "1".to_owned())],
        durability: offered.last().copied().unwrap_or(Durability::None),
        ..LibraryConfig::default()
    };
    match place.library.create_database(&place.directory, &config) {
        Ok(_) => Ok(Verdict::failed(format!("the option `{NO_OPTION}` was accepted"))),
        Err(SetupError::Config { what, .. }) if what.contains(NO_OPTION) => Ok(Verdict::Passed),
        Err(SetupError::Config { what, .. }) => {
            Ok(Verdict::failed(format!("the error does not name the option: {what}")))
        }
        Err(error) => Ok(Verdict::failed(format!(
            "the option was refused, but not by ASSAY_BAD_OPTION: {:#}",
            anyhow::Error::new(error)
        ))),
    }
}

pub(crate) fn reopens(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let has_batches = !database.lacks().batches;
    let history = History::new(place.seed, has_batches);
    let mut entries = fill(place, &database)?;
    database.stop().context("the database cannot be closed")?;

    for round in 0..3_u64 {
        let database = place.open()?;
        let mut session = connect(&database)?;
        if let Some(why) = difference(&mut session, &entries)? {
            return Ok(Verdict::Failed(format!("after it was closed and opened: {why}")));
        }
        let operation = crate::data::OPERATIONS + round;
        write(&mut session, &history.changes(operation), has_batches)?;
        history.apply(operation, &mut entries);
        drop(session);
        database.stop().context("the database cannot be closed")?;
    }
    Ok(Verdict::Passed)
}

pub(crate) fn creates(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    // The folder of a database whose files are gone.
    place.create()?.stop()?;
    let folder = database_folder(place)?;
    fs_err::remove_dir_all(&folder)?;
    fs_err::create_dir(&folder)?;
    match place.open() {
        Ok(_) => Ok(Verdict::failed("an empty directory was opened as a database")),
        Err(_) => Ok(Verdict::Passed),
    }
}

fn database_folder(place: &DatabasePlace) -> anyhow::Result<std::path::PathBuf> {
    let mut entries = fs_err::read_dir(&place.directory)?;
    let folder = entries.next().context("the database has no directory")??;
    Ok(folder.path())
}

/// The resources that a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    resident_bytes: u64,
    files: usize,
    threads: usize,
}

impl Use {
    fn now() -> anyhow::Result<Self> {
        let count = |folder| anyhow::Ok(fs_err::read_dir(folder)?.count());
        let text = fs_err::read_to_string("/proc/self/status")?;
        let resident = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        let kilobytes: u64 = kilobytes.context("the kernel does not report the resident memory")?;
        Ok(Self {
            resident_bytes: kilobytes << 10,
            files: count("/proc/self/fd")?,
            threads: count("/proc/self/task")?,
        })
    }
}

pub(crate) fn leaks(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    fill(place, &database)?;
    let leak = leak_of_reads(&database)?;
    database.stop()?;

    let leak = match leak {
        Some(leak) => Some(leak),
        None => leak_of_databases(place)?,
    };
    Ok(leak.map_or(Verdict::Passed, Verdict::Failed))
}

/// Reads again and again. Returns what is not given back.
fn leak_of_reads(database: &CustomEngine) -> anyhow::Result<Option<String>> {
    let mut rounds = Vec::new();
    for _ in 0..5 {
        read_round(database)?;
        rounds.push(Use::now()?);
    }

    // Caches fill in the first round, and may grow once more later.
    let grew = |pair: &[Use]| {
        pair[1].resident_bytes.saturating_sub(pair[0].resident_bytes) > GROWTH_BYTES_MAX
    };
    let (first, last) = (rounds[1], rounds[4]);
    if rounds[1..].windows(2).all(grew) {
        let each = (last.resident_bytes - first.resident_bytes) / (3 * READS);
        return Ok(Some(format!("each read keeps about {each} bytes")));
    }
    let files = last.files.saturating_sub(first.files);
    Ok((files > 0).then(|| format!("sessions left {files} files open")))
}

/// Opens and closes a database again and again. Returns what is not given back.
fn leak_of_databases(place: &DatabasePlace) -> anyhow::Result<Option<String>> {
    place.open()?.stop()?;
    let before = Use::now()?;
    for _ in 0..OPENINGS {
        let database = place.open()?;
        value_of(&mut connect(&database)?, &key(0))?;
        database.stop()?;
    }
    let after = Use::now()?;

    let files = after.files.saturating_sub(before.files);
    if files > 0 {
        return Ok(Some(format!("{OPENINGS} closed databases left {files} files open")));
    }
    // A thread may be about to end.
    let threads = after.threads.saturating_sub(before.threads);
    let leaks = threads >= OPENINGS as usize;
    Ok(leaks.then(|| format!("{OPENINGS} closed databases left {threads} threads")))
}

/// Reads keys, scans, and opens sessions.
fn read_round(database: &CustomEngine) -> anyhow::Result<()> {
    let mut session = connect(database)?;
    for number in 0..READS {
        let key = key(number % KEY_COUNT);
        value_of(&mut session, &key)?;
        if number % 10 == 0 {
            scanned(&mut session, &key, Direction::Forward, 3)?;
        }
        if number % 100 == 0 {
            value_of(&mut connect(database)?, &key)?;
        }
    }
    session.release();
    Ok(())
}

pub(crate) fn counters(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let mut observer = database.observer();
    let mut before: Vec<Counter> = observer.counters()?;
    if before.is_empty() {
        return Ok(Verdict::NotApplicable("the adapter has no counters".into()));
    }

    let has_batches = !database.lacks().batches;
    let history = History::new(place.seed, has_batches);
    let mut session = connect(&database)?;
    for operation in 0..crate::data::OPERATIONS {
        write(&mut session, &history.changes(operation), has_batches)?;
        if operation % 100 != 0 {
            continue;
        }
        let now = observer.counters()?;
        if let Some(why) = now.iter().find_map(|counter| fault_of(counter, &before)) {
            return Ok(Verdict::Failed(why));
        }
        before = now;
    }
    Ok(Verdict::Passed)
}

/// Returns what is wrong with a counter.
fn fault_of(counter: &Counter, before: &[Counter]) -> Option<String> {
    let name = &counter.name;
    let is_readable = !name.is_empty()
        && name
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_.".contains(char));
    if !is_readable {
        let name = name.escape_debug();
        return Some(format!(
            "the counter `{name}` has other signs than `a-z`, `0-9`, `_` and `.`"
        ));
    }
    if !counter.value.is_finite() {
        return Some(format!("the counter `{name}` is {}", counter.value));
    }
    if counter.role == Some(Role::Unknown) {
        return Some(format!("the counter `{name}` has an unknown role"));
    }
    let earlier = before.iter().find(|earlier| earlier.name == *name)?;
    let shrank = counter.cumulative && counter.value < earlier.value;
    shrank
        .then(|| format!("the counter `{name}` shrank from {} to {}", earlier.value, counter.value))
}

pub(crate) fn idle(place: &DatabasePlace) -> anyhow::Result<Verdict> {
    let database = place.create()?;
    let entries: Entries = fill(place, &database)?;
    let limits = SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(60) };
    let settled = database.settle(false, limits, &AtomicBool::new(false))?;
    if let Some(left) = settled.unfinished.first() {
        return Ok(Verdict::failed(format!("after a minute without work: {left}")));
    }
    let mut session = connect(&database)?;
    if let Some(why) = difference(&mut session, &entries)? {
        return Ok(Verdict::Failed(format!("after a flush: {why}")));
    }
    let is_wait = |what: &str| what.starts_with("wait") && what.ends_with("not applicable");
    if settled.actions.iter().any(|action| is_wait(&action.what)) {
        return Ok(Verdict::NotApplicable("the adapter has no `wait_until_idle`".into()));
    }
    Ok(Verdict::Passed)
}
