//! Tests whether an adapter of a storage engine keeps the promises of `assay_engine.h`.
//!
//! ```text
//!  run ─► for each of CHECKS: a process ─► run_check ─► one line: a Verdict
//!                │
//!                └─ crash checks: a process that writes, killed; then one that reads
//! ```
//!
//! Each check runs in a process of its own, in an empty directory: an adapter that crashes or hangs
//! fails the check, and no other. What should be in the database is known from a model
//! (`model.rs`), which both the writing and the reading process can compute.

mod child;
mod crash;
mod data;
mod life;
mod model;
mod place;
mod sessions;
mod sync;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::custom::CustomLibrary;
use serde::{Deserialize, Serialize};
use words::Durability;

use place::DatabasePlace;

/// The hidden command by which the program runs one check: `conform-check CHECK` with its task as
/// JSON on standard input.
pub const CHECK_COMMAND: &str = "conform-check";

/// The time after which a check has failed.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The adapter to test, with the checks and their options.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program that runs checks in processes of their own: this one.
    pub program: PathBuf,
    /// The adapter.
    pub library: PathBuf,
    /// Options of the database.
    pub options: Vec<(String, String)>,
    /// The seed of all keys, values and moments.
    pub seed: u64,
    /// The number of times that the writing process is killed, for each durability.
    pub kills: u32,
    /// The names of the checks to run; empty for all.
    pub only: Vec<String>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The adapter keeps the promise.
    Passed,
    /// The adapter breaks the promise, for this reason.
    Failed(String),
    /// The adapter does not offer what is tested.
    NotApplicable(String),
}

/// A check that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct EndedCheck {
    /// The name of the check.
    pub check: &'static str,
    /// The promise, as a sentence.
    pub promise: &'static str,
    /// The result of the check.
    pub verdict: Verdict,
    /// The time that it took.
    pub seconds: f64,
}

/// A check: what it is called, what the adapter promises, and how that is tried.
struct Check {
    name: &'static str,
    promise: &'static str,
    kind: Kind,
}

enum Kind {
    /// Runs in one process with the library.
    Inside(fn(&DatabasePlace) -> anyhow::Result<Verdict>),
    /// Runs a process that writes with a durability, and kills it.
    Crash(Durability),
}

const fn inside(
    name: &'static str,
    promise: &'static str,
    check: fn(&DatabasePlace) -> anyhow::Result<Verdict>,
) -> Check {
    Check { name, promise, kind: Kind::Inside(check) }
}

/// All checks, in the order in which they run: what others rely on comes first.
const CHECKS: &[Check] = &[
    inside("table", "the table is complete, and its texts are readable", life::table),
    inside("options", "an unknown option is refused, with its name", life::options),
    inside("reads", "a key has the value that was written last", data::reads),
    inside("deletes", "a removed key is gone, and removing it again is no error", data::deletes),
    inside("sizes", "keys and values of any size and any bytes are kept", data::sizes),
    inside("scans", "scans return all entries from their start on, in order", data::scans),
    inside("batches", "a batch applies its changes in order", data::batches),
    inside("several", "a read of several keys agrees with reads of one", data::several),
    inside("sessions", "sessions do not disturb each other", sessions::independent),
    inside("fresh", "a session sees at once what another one has written", sessions::fresh),
    inside("threads", "threads may work side by side", sessions::threads),
    inside(
        "moves",
        "a session may be used by another thread than that which opened it",
        sessions::moves,
    ),
    inside("reopens", "a closed database has all that was written", life::reopens),
    inside("creates", "no database is opened where there is none", life::creates),
    inside("leaks", "memory, files and threads are given back", life::leaks),
    inside(
        "counters",
        "counters have readable names, known roles, and do not shrink",
        life::counters,
    ),
    inside("idle", "without work, the engine becomes idle", life::idle),
    Check {
        name: "crash-none",
        promise: "after SIGKILL, the database opens, and its values are ones that were written",
        kind: Kind::Crash(Durability::None),
    },
    Check {
        name: "crash-process",
        promise: "after SIGKILL, all changes that survive the process are there, batches as a whole",
        kind: Kind::Crash(Durability::Process),
    },
    Check {
        name: "crash-machine",
        promise: "after SIGKILL, all changes that survive the machine are there, batches as a whole",
        kind: Kind::Crash(Durability::Machine),
    },
    inside("sync-write", "a write that survives the machine waits for the device", sync::write),
    inside("sync", "`sync` waits for the device", sync::database),
];

/// The task of a process in a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Task {
    library: PathBuf,
    options: Vec<(String, String)>,
    directory: PathBuf,
    seed: u64,
    part: Part,
}

/// The part of a check that a process runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Part {
    /// All of it.
    Whole,
    /// Writes until it is killed, from this operation on.
    Write { durability: Durability, from: u64 },
    /// Compares the database with what was written: all operations below `acknowledged`, and maybe
    /// the next one.
    Read { durability: Durability, acknowledged: u64 },
}

/// Returns the names and the promises of all checks.
pub fn checks() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHECKS.iter().map(|check| (check.name, check.promise))
}

/// Runs the checks of a request, and calls `ended` after each.
///
/// # Errors
/// The library cannot be tested: the file does not exist, or a process cannot be started.
pub fn run(
    request: &Request,
    ended: &mut dyn FnMut(&EndedCheck),
) -> anyhow::Result<Vec<EndedCheck>> {
    let library = fs_err::canonicalize(&request.library)?;
    let wanted = |check: &&Check| {
        request.only.is_empty() || request.only.iter().any(|name| name == check.name)
    };

    let mut outcomes = Vec::new();
    for check in CHECKS.iter().filter(wanted) {
        let began = now();
        let verdict = check.verdict(request, &library)?;
        let seconds = began.elapsed().as_secs_f64();

        let outcome = EndedCheck { check: check.name, promise: check.promise, verdict, seconds };
        ended(&outcome);
        let is_unusable = check.name == CHECKS[0].name && outcome.verdict.is_failure();
        outcomes.push(outcome);
        // No other check could say more.
        if is_unusable {
            break;
        }
    }
    Ok(outcomes)
}

impl Check {
    /// Runs the check in an empty directory.
    fn verdict(&self, request: &Request, library: &Path) -> anyhow::Result<Verdict> {
        let directory = tempfile::Builder::new().prefix("assay-conform-").tempdir()?;
        let task = Task {
            library: library.to_owned(),
            options: request.options.clone(),
            directory: directory.path().to_owned(),
            seed: request.seed,
            part: Part::Whole,
        };
        match self.kind {
            Kind::Inside(_) => {
                Ok(child::verdict(child::run(&request.program, self.name, &task, TIME_MAX)?))
            }
            Kind::Crash(durability) => {
                crash::check(&request.program, self.name, &task, durability, request.kills)
            }
        }
    }
}

/// Runs the part of a check that a task on standard input asks for, and prints its result.
///
/// # Errors
/// The input is no task, or the result cannot be printed.
pub fn run_check(name: &str, input: impl std::io::Read) -> anyhow::Result<()> {
    child::die_with_parent()?;
    let task: Task = serde_json::from_reader(input)?;
    let verdict = match task.part {
        Part::Write { durability, from } => {
            crash::write(&DatabasePlace::of(&task)?, durability, from)?;
            return Ok(());
        }
        Part::Read { durability, acknowledged } => {
            // A database that does not open is the adapter's failure, not one of this program.
            DatabasePlace::of(&task).and_then(|place| crash::read(&place, durability, acknowledged))
        }
        Part::Whole => {
            let check = CHECKS.iter().find(|check| check.name == name);
            match check.map(|check| &check.kind) {
                Some(Kind::Inside(check)) => {
                    DatabasePlace::of(&task).and_then(|place| check(&place))
                }
                _ => anyhow::bail!("there is no check `{name}`"),
            }
        }
    };
    print_verdict(&verdict.unwrap_or_else(|error| Verdict::Failed(format!("{error:#}"))))
}

/// Prints the verdict of a check for the process that started this one.
fn print_verdict(verdict: &Verdict) -> anyhow::Result<()> {
    child::print_line(&serde_json::to_string(verdict)?)
}

impl Verdict {
    /// Returns whether the adapter does not keep the promise.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

/// Returns whether an adapter claims a durability.
fn claims(library: &CustomLibrary, durability: Durability) -> bool {
    library.durabilities().contains(&durability)
}

#[expect(
    clippy::disallowed_methods,
    reason = "bounds checks, and measures nothing that is recorded"
)]
fn now() -> Instant {
    Instant::now()
}
