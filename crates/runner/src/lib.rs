//! Runs a plan: `assay run` without a command line and without a terminal.
//!
//! The rooms stand on each other, and each uses only those below it:
//!
//! ```text
//! run/        begins a run or resumes one, measures the cells in order, and ends the record
//! cells/      one cell, or several that take turns, from the start of a target until nothing is left
//! steps/      loads, samples and writes one step, or counts its work
//! targets/    starts an engine for a cell, runs workloads on it, watches its replicas, stops it
//! session/    what all cells of an invocation share
//! matrix/     the cells of a run: which there are, in which order, and which come next
//! prepare/    reads the plan and its files, refuses what cannot run, finds and tries the builds
//! turns/      lets the targets of a repeat take turns within each step
//! remote/     lets other hosts make the load
//! databases/  keeps what one cell loads for others
//! bundle/     reads and writes a plan with the finding that it should show again
//! ground/     the request, events, failures, locks, and what the system is asked for
//! ```
//!
//! * [`RunRequest`] says what to run, and [`Events`] are what the caller sees of it.
//! * `RunSession` is what all cells share: the plan, the clock, the data directory, the ranks.
//! * [`UsageError`] and [`failure`] say what went wrong and what to do.
//!
//! ```no_run
//! use runner::{PlanRequest, RunRequest, Silent};
//!
//! let plan = PlanRequest { plan: Some("plan.toml".into()), sets: Vec::new() };
//! let request = RunRequest { plan, results: "results".into(), ..RunRequest::default() };
//! if let Some(outcome) = runner::run(&request, &Silent)? {
//!     println!("{}", outcome.directory.path().display());
//! }
//! # anyhow::Ok(())
//! ```
//!
//! Results are in the run directory only: whoever wants figures reads them from there. This crate
//! prints nothing and never exits.
//!
//! The program that uses this crate must have two hidden commands, with which it is started again:
//! [`CELL_COMMAND`] calls [`run_cell`], and [`LIBRARY_COMMAND`] calls [`describe_library`]. It must
//! also call [`engine::guard::main`].

#![forbid(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod bundle;
mod cells;
pub mod databases;
mod ground;
pub mod matrix;
pub mod prepare;
mod remote;
mod run;
mod session;
mod steps;
mod targets;
mod turns;

use load::SystemClock;

use crate::ground::failure::UsageError;
use crate::remote::LoadRanks;
use crate::run::{begin, load_rank, resume};

pub use cells::isolated::{CELL_COMMAND, CellRequest, run_cell};
pub use ground::events::{Events, Relay, Silent};
pub use ground::request::{DATA, ExactRequest, PlanRequest, RESULTS, RepeatsRequest, RunRequest};
pub use ground::{events, failure, host, similar, stop};
pub use prepare::library::{LIBRARY_COMMAND, describe_library};
pub use ranks::is_further_rank;
pub use run::conduct::{MeasuredCells, RunEnd, RunOutcome};
pub use turns::LinkPipes;

/// Runs a plan, or resumes a run. Returns `None` in a process that only made load for another one.
///
/// # Errors
/// The request, the plan or the machine does not allow the run, or the record cannot be written. A
/// cell that fails is no error.
pub fn run(request: &RunRequest, events: &dyn Events) -> anyhow::Result<Option<RunOutcome>> {
    let job = ::ranks::Ranks::join()
        .map_err(|error| UsageError::new(error.to_string(), Some(error.help().into())))?;
    let Some(job) = job else {
        return conduct_run(request, events, None).map(Some);
    };

    let (clock, stop) = (SystemClock::begin(), stop::watch_under_mpirun()?);
    if job.rank() > 0 {
        load_rank::serve(job, &request.assay, clock, &stop)?;
        return Ok(None);
    }

    let ranks = LoadRanks::join(job, &request.assay, clock, stop)?;

    conduct_run(request, events, Some(ranks)).map(Some)
}

/// Runs a plan, or resumes a run, with the load made by `ranks`.
fn conduct_run(
    request: &RunRequest,
    events: &dyn Events,
    ranks: Option<LoadRanks>,
) -> anyhow::Result<RunOutcome> {
    events.open()?;
    match &request.resume {
        None => begin::begin(request, events, ranks),
        Some(directory) => resume::resume(request, directory, events, ranks),
    }
}

#[cfg(test)]
mod starting {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    static STARTING: Mutex<()> = Mutex::new(());

    /// Lets tests that start processes take turns with tests of locks and of programs that were
    /// just written. A process that is being started briefly holds every file that this process
    /// has open.
    pub fn starting() -> MutexGuard<'static, ()> {
        STARTING.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
