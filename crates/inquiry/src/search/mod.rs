//! Measures the trials of a search, each as a run of the plan with other targets, to which repeats
//! are added until it is decided.
//!
//! ```text
//! bisect, tune ──► Trial ──► SearchRuns ──► runner::run    until decided, or no more repeats
//!      ▲                          │
//!      └──── SearchLog ◄──────────┘   the name of the run, then the result
//! ```

mod log;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use record::{Run, Status};
use runner::{Events, Repeats, RunOutcome, RunRequest};

pub use log::trust_option;
pub(crate) use log::{FORMAT, Logged, SearchLog, SearchedPlan};

/// The folder of the trials' runs in the directory of a search.
pub const RUNS: &str = "runs";

/// The repeats after which a trial is judged for the first time: fewer have no intervals that hold
/// at any time.
pub(crate) const REPEATS_FIRST: u32 = 3;

/// The place of a search, and what its caller sees of its runs.
#[derive(Clone, Copy)]
pub struct SearchPlace<'a> {
    /// A request with the places, the program and the command line of all runs. Its directory of
    /// results is that of the search itself.
    pub base: &'a RunRequest,
    /// What the caller sees of each run.
    pub events: &'a dyn Events,
    /// Gets a line for each trial that begins, for what it shows, and for downloads.
    pub say: &'a dyn Fn(&str),
    /// The operator trusts the records of an earlier invocation.
    pub is_trusted: bool,
}

/// The time at which no further repeat begins; never if there is none.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

#[expect(
    clippy::disallowed_methods,
    reason = "it limits the time of a search, and is not measured"
)]
impl Deadline {
    /// Returns the deadline after this time from now.
    pub fn after(time: Option<Duration>) -> Self {
        Self(time.map(|time| Instant::now() + time))
    }

    fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// A trial of a search.
pub(crate) trait Measurement {
    /// The result of the trial.
    type Result;

    /// Returns the request for the run of the trial, without its places.
    fn first(&self) -> anyhow::Result<RunRequest>;

    /// Returns the filters of its cells.
    fn only(&self) -> Vec<String>;

    /// Judges what was measured so far.
    fn judge(&self, outcome: &RunOutcome) -> anyhow::Result<Judged<Self::Result>>;
}

/// What the repeats so far show.
pub(crate) enum Judged<R> {
    /// More repeats would change nothing.
    Decided(R),
    /// More repeats may decide it.
    Open(R),
    /// Nothing can be compared, for this reason.
    Unusable(String),
}

/// What a trial came to.
pub(crate) enum Measured<R> {
    Judged(R),
    /// Nothing could be compared, for this reason.
    Unusable(String),
    /// The operator interrupted it, or the time is up before it was decided.
    Interrupted,
}

/// The runs of a search.
pub(crate) struct SearchRuns<'a> {
    pub place: SearchPlace<'a>,
    /// The directory of the search.
    pub directory: &'a Path,
    /// The repeats after which a trial ends, whether it is decided or not.
    pub repeats_max: u32,
    /// The operator interrupts the search.
    pub stop: &'a AtomicBool,
    pub deadline: Deadline,
}

impl SearchRuns<'_> {
    /// Measures a trial, or goes on with its run. Calls `begun` with the name of the run's folder as
    /// soon as there is one, so that a killed search goes on with it.
    ///
    /// # Errors
    /// The run can't begin, or can't be judged.
    pub fn measure<M: Measurement>(
        &self,
        trial: &M,
        run: Option<&str>,
        mut begun: impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measured<M::Result>> {
        let only = trial.only();
        let mut request = match run {
            Some(name) => {
                let path = self.directory.join(RUNS).join(name);
                let is_trusted = self.place.is_trusted;
                RunRequest { is_trusted, ..self.resumed(path, &only, None) }
            }
            None => self.placed(trial.first()?),
        };

        loop {
            let outcome = runner::run(&request, self.place.events)?
                .context("a search runs without load ranks")?;
            let path = outcome.directory.path().to_path_buf();
            begun(&path.file_name().unwrap_or_default().to_string_lossy())?;
            if self.stop.load(SeqCst) || outcome.run.status == Status::Interrupted {
                return Ok(Measured::Interrupted);
            }

            let repeats = repeat_count(&outcome.run);
            match trial.judge(&outcome)? {
                Judged::Unusable(why) => return Ok(Measured::Unusable(why)),
                Judged::Decided(result) => return Ok(Measured::Judged(result)),
                Judged::Open(result) if repeats >= self.repeats_max => {
                    return Ok(Measured::Judged(result));
                }
                Judged::Open(_) => {}
            }
            if self.deadline.has_passed() {
                return Ok(Measured::Interrupted);
            }

            // The run is locked until its outcome is dropped.
            drop(outcome);
            // This invocation has written the record.
            let more = self.resumed(path, &only, Some(Repeats::Count(repeats + 1)));
            request = RunRequest { is_trusted: true, ..more };
        }
    }

    fn resumed(&self, run: PathBuf, only: &[String], repeats: Option<Repeats>) -> RunRequest {
        let only = only.to_vec();
        self.placed(RunRequest { resume: Some(run), repeats, only, ..RunRequest::default() })
    }

    /// Returns a request with the places, the program and the command line of all runs.
    fn placed(&self, request: RunRequest) -> RunRequest {
        let base = self.place.base;
        RunRequest {
            results: self.directory.join(RUNS),
            data: base.data.clone(),
            assay: base.assay.clone(),
            command: base.command.clone(),
            ..request
        }
    }
}

/// Returns the most repeats of a target.
fn repeat_count(run: &Run) -> u32 {
    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    measured.map(|cell| cell.key.repeat).max().unwrap_or(0)
}
