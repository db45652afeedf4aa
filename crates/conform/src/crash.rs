//! Kills a process that writes, and looks at what is left.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context as _;
use engine::custom::CustomSession;
use engine::{Direction, Engine as _, KeyValueEngine as _, KeyValueLibrary as _};
use words::{Durability, Random};

use crate::child::{self, print_line};
use crate::data;
use crate::model::{Change, History};
use crate::place::{DatabasePlace, connect, difference, scanned, shown};
use crate::{Part, TIME_MAX, Task, Verdict, claims, print_verdict};

/// The most operations that are acknowledged before a process is killed.
const OPERATIONS_MAX: u64 = 400;
/// The operations that a process computes at a time before it writes them: enough for most kills.
const OPERATIONS_AHEAD: u64 = OPERATIONS_MAX + 100;
/// The most bytes of a line of a process.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// The longest pause between the last of them and the signal.
const PAUSE_US_MAX: u64 = 2_000;

/// Kills writing processes, one after the other, and reads the database after each.
pub(crate) fn check(
    program: &Path,
    name: &str,
    task: &Task,
    durability: Durability,
    kills: u32,
) -> anyhow::Result<Verdict> {
    let mut random = Random::stream(task.seed, &[durability as u64]);
    let mut from = 0;
    for kill in 1..=kills {
        let task = Task { part: Part::Write { durability, from }, ..task.clone() };
        let child = child::spawn(program, name, &task)?;
        let wanted = 1 + random.below(OPERATIONS_MAX);
        let pause = Duration::from_micros(random.below(PAUSE_US_MAX));
        let acknowledged = match kill_after(child, from, wanted, pause)? {
            Written::Killed { acknowledged } => acknowledged,
            Written::Ended(verdict) => return Ok(verdict),
        };

        let task = Task { part: Part::Read { durability, acknowledged }, ..task };
        let ended = child::run(program, name, &task, TIME_MAX)?;
        from = next_operation(&ended.output).unwrap_or(acknowledged);
        let verdict = child::verdict(ended);
        if let Verdict::Failed(why) = verdict {
            let why = format!("{why} (kill {kill}, after {acknowledged} operations)");
            return Ok(Verdict::Failed(why));
        }
    }
    Ok(Verdict::Passed)
}

/// The end of a process that writes.
enum Written {
    /// The process was killed after it had acknowledged all operations below this number.
    Killed { acknowledged: u64 },
    /// The process ended by itself.
    Ended(Verdict),
}

/// Waits until a process has acknowledged some operations, and kills it a moment later.
fn kill_after(
    mut child: Child,
    from: u64,
    wanted: u64,
    pause: Duration,
) -> anyhow::Result<Written> {
    let lines = lines_of(&mut child)?;
    let messages = child::reader(child.stderr.take());
    let mut acknowledged = from;

    while acknowledged < from + wanted {
        match lines.recv_timeout(TIME_MAX) {
            Ok(Line::Acknowledged(operation)) => acknowledged = operation + 1,
            Ok(Line::Verdict(verdict)) => {
                child::kill(&mut child)?;
                return Ok(Written::Ended(verdict));
            }
            Err(RecvTimeoutError::Timeout) => {
                child::kill(&mut child)?;
                let why = "a write did not end in time";
                return Ok(Written::Ended(Verdict::failed(why)));
            }
            // A process that closes its output is about to end. A signal would hide how.
            Err(RecvTimeoutError::Disconnected) => {
                let status = child::end_of(&mut child, TIME_MAX)?;
                let ended = child::Ended::without_output(status, messages);
                return Ok(Written::Ended(Verdict::Failed(ended.text())));
            }
        }
    }

    std::thread::sleep(pause);
    child::kill(&mut child)?;

    // More may have been acknowledged before the signal, or a write may have failed.
    while let Ok(line) = lines.recv_timeout(child::REST_TIMEOUT) {
        match line {
            Line::Acknowledged(operation) => acknowledged = operation + 1,
            Line::Verdict(verdict) => return Ok(Written::Ended(verdict)),
        }
    }
    Ok(Written::Killed { acknowledged })
}

/// A line that a process that writes prints.
enum Line {
    /// The number of an operation that is acknowledged.
    Acknowledged(u64),
    /// Why the process does not write any more.
    Verdict(Verdict),
}

/// Returns the lines that a process prints, as they come.
fn lines_of(child: &mut Child) -> anyhow::Result<Receiver<Line>> {
    let out = child.stdout.take().context("the process has no output")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut bytes = Vec::new();
        // A line without end is read in pieces, none of which is a number of ours.
        while let Ok(count) = out.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)
            && count > 0
        {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned();
            bytes.clear();
            let line = match text.parse() {
                Ok(operation) => Some(Line::Acknowledged(operation)),
                // The library may print lines of its own.
                Err(_) => serde_json::from_str(&text).ok().map(Line::Verdict),
            };
            let is_wanted = line.is_none_or(|line| sender.send(line).is_ok());
            if !is_wanted {
                return;
            }
        }
    });
    Ok(lines)
}

/// Returns the operation from which writing can continue, as the reading process printed it.
fn next_operation(output: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(output);
    text.lines().find_map(|line| line.parse().ok())
}

/// Writes operations until the process is killed, and prints the number of each one that is
/// acknowledged.
pub(crate) fn write(
    place: &DatabasePlace,
    durability: Durability,
    from: u64,
) -> anyhow::Result<()> {
    let verdict = match write_on(place, durability, from) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::Failed(format!("{error:#}")),
    };
    print_verdict(&verdict)
}

/// Writes operations until the process is killed. Returns only why the adapter cannot be tested.
fn write_on(place: &DatabasePlace, durability: Durability, from: u64) -> anyhow::Result<Verdict> {
    if !claims(&place.library, durability) {
        let what = format!("the adapter does not claim the durability `{}`", durability.name());
        return Ok(Verdict::NotApplicable(what));
    }
    let config = place.config(durability);
    let database = if from == 0 {
        place.library.create_database(&place.directory, &config)?
    } else {
        place.library.open_database(&place.directory, &config).context("after SIGKILL")?
    };
    let has_batches = !database.lacks().batches;
    let history = History::new(place.seed, has_batches);
    let mut session = connect(&database)?;
    let mut operation = from;
    loop {
        // Changes are computed ahead, so that the signal finds the process inside the adapter.
        let computed: Vec<Vec<Change>> =
            (operation..operation + OPERATIONS_AHEAD).map(|next| history.changes(next)).collect();
        for changes in computed {
            data::write(&mut session, &changes, has_batches)?;
            print_line(&operation.to_string())?;
            operation += 1;
        }
    }
}

/// Opens the database after its process was killed, and compares it with what was acknowledged.
/// Prints the operation from which writing can continue.
pub(crate) fn read(
    place: &DatabasePlace,
    durability: Durability,
    acknowledged: u64,
) -> anyhow::Result<Verdict> {
    let opened = place.library.open_database(&place.directory, &place.config(durability));
    let database = opened.context("the database does not open after SIGKILL")?;
    let history = History::new(place.seed, !database.lacks().batches);
    let mut session = connect(&database)?;
    let verdict = if durability == Durability::None {
        print_line(&(acknowledged + 1).to_string())?;
        values_were_written(&mut session, &history, acknowledged)?
    } else {
        is_complete(&mut session, &history, acknowledged)?
    };
    drop(session);
    database.stop()?;
    Ok(verdict)
}

/// Compares a database with what all acknowledged operations leave, and maybe the next one.
fn is_complete(
    session: &mut CustomSession,
    history: &History,
    acknowledged: u64,
) -> anyhow::Result<Verdict> {
    let mut entries = history.after(acknowledged);
    let Some(why) = difference(session, &entries)? else {
        print_line(&acknowledged.to_string())?;
        return Ok(Verdict::Passed);
    };
    history.apply(acknowledged, &mut entries);
    if difference(session, &entries)?.is_none() {
        print_line(&(acknowledged + 1).to_string())?;
        return Ok(Verdict::Passed);
    }
    Ok(Verdict::Failed(format!("after SIGKILL, {why}")))
}

/// Looks whether each value is one that some operation wrote for its key, acknowledged or not.
fn values_were_written(
    session: &mut CustomSession,
    history: &History,
    acknowledged: u64,
) -> anyhow::Result<Verdict> {
    let mut written: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for operation in 0..=acknowledged {
        for change in history.changes(operation) {
            written.entry(change.key).or_default().extend(change.value);
        }
    }

    for (key, value) in scanned(session, &[], Direction::Forward, u64::MAX)? {
        let is_known = written.get(&key).is_some_and(|values| values.contains(&value));
        if !is_known {
            let key = shown(&key);
            let why = format!("after SIGKILL, the key {key} has a value that was never written");
            return Ok(Verdict::Failed(why));
        }
    }
    Ok(Verdict::Passed)
}
