//! Measures the trials of a search, each as a run of the plan with other targets, to which repeats
//! are added until it is decided.
//!
//! ```text
//! bisect, tune ──► Trial ──► OpenSearch ──► runner::run    until decided, or no more repeats
//!      ▲                          │
//!      └──── SearchLog ◄──────────┘   the name of the run, then the result
//! ```

mod log;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use record::{Run, Status};
use runner::{Events, RepeatsRequest, RunOutcome, RunRequest};

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
    /// The receiver of each run's events.
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

/// The result of the repeats so far.
pub(crate) enum Judged<R> {
    /// More repeats would change nothing.
    Decided(R),
    /// More repeats may decide it.
    Open(R),
    /// Nothing can be compared, for this reason.
    Unusable(String),
}

/// The end of a trial.
pub(crate) enum TrialEnd<R> {
    Judged(R),
    /// Nothing could be compared, for this reason.
    Unusable(String),
    /// The time is up before it was decided. This is the result so far.
    TimeUp(R),
    /// The operator interrupted it.
    Interrupted,
}

/// The limits of a trial.
#[derive(Clone, Copy)]
pub(crate) struct TrialLimits<'a> {
    /// The repeats after which it ends, whether it is decided or not.
    pub repeats_max: u32,
    /// The operator interrupts the search.
    pub stop: &'a AtomicBool,
    pub deadline: Deadline,
}

/// A search with its log in its directory.
pub(crate) struct OpenSearch<'a, L> {
    pub directory: PathBuf,
    pub log: L,
    pub place: SearchPlace<'a>,
}

impl<'a, L: SearchLog> OpenSearch<'a, L> {
    /// Begins a search: creates its directory, whose name begins with `name`, and its log.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begin(log: L, name: &str, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let directory = log.create(&place.base.results, name)?;
        Self::open(directory, log, place)
    }

    /// Continues a search.
    ///
    /// # Errors
    /// The log cannot be read or is not trusted, or its plan has changed.
    pub fn resume(directory: &Path, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        let log = L::read(directory, place.is_trusted)?;
        Self::open(directory.to_owned(), log, place)
    }

    /// Returns a search whose plan has not changed since it began.
    fn open(directory: PathBuf, log: L, place: SearchPlace<'a>) -> anyhow::Result<Self> {
        log.refuse_changed_plan()?;
        Ok(Self { directory, log, place })
    }

    /// Measures a trial, or continues its run. The log names the run's folder as soon as there is
    /// one, so that a killed search continues with it.
    ///
    /// # Errors
    /// The run cannot begin, or cannot be judged; or the log cannot be written.
    pub fn measure<M: Measurement<Result = L::Result>>(
        &mut self,
        trial: &L::Trial,
        measurement: &M,
        limits: TrialLimits<'_>,
    ) -> anyhow::Result<TrialEnd<L::Result>> {
        let logged = self.log.begin(trial);
        let only = measurement.only();
        let mut request = match &self.log.trials()[logged].run {
            Some(name) => {
                let path = self.directory.join(RUNS).join(name);
                let is_trusted = self.place.is_trusted;
                RunRequest { is_trusted, ..self.resumed(path, &only, None) }
            }
            None => self.placed(measurement.first()?),
        };

        loop {
            let outcome = runner::run(&request, self.place.events)?
                .context("a search runs without load ranks")?;
            let path = outcome.directory.path().to_path_buf();

            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.log.trials_mut()[logged].run = Some(name.into_owned());
            self.log.write(&self.directory)?;
            if limits.stop.load(SeqCst) || outcome.run.status == Status::Interrupted {
                return Ok(TrialEnd::Interrupted);
            }

            let repeats = repeat_count(&outcome.run);
            match measurement.judge(&outcome)? {
                Judged::Unusable(why) => return Ok(TrialEnd::Unusable(why)),
                Judged::Decided(result) => return Ok(TrialEnd::Judged(result)),
                Judged::Open(result) if repeats >= limits.repeats_max => {
                    return Ok(TrialEnd::Judged(result));
                }
                Judged::Open(result) if limits.deadline.has_passed() => {
                    return Ok(TrialEnd::TimeUp(result));
                }
                Judged::Open(_) => {}
            }

            // The run is locked until its outcome is dropped.
            drop(outcome);
            // This invocation has written the record.
            let more = self.resumed(path, &only, Some(RepeatsRequest::Count(repeats + 1)));
            request = RunRequest { is_trusted: true, ..more };
        }
    }

    /// Logs the result of a trial.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn end(&mut self, trial: &L::Trial, result: L::Result) -> anyhow::Result<()> {
        let index = self.log.begin(trial);
        self.log.trials_mut()[index].result = Some(result);
        self.log.write(&self.directory)
    }

    fn resumed(
        &self,
        run: PathBuf,
        only: &[String],
        repeats: Option<RepeatsRequest>,
    ) -> RunRequest {
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

/// Returns the first line of an answer, for a list.
pub(crate) fn first_line(answer: &str) -> String {
    answer.trim_start().lines().next().unwrap_or_default().to_owned()
}

/// Returns the most repeats of a target.
pub(crate) fn repeat_count(run: &Run) -> u32 {
    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    measured.map(|cell| cell.key.repeat).max().unwrap_or(0)
}
