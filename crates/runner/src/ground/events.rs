//! The events that a run tells its caller while it runs.
//!
//! This crate prints nothing. Whoever starts a run passes [`Events`], and shows them on a terminal,
//! to browsers, or not at all ([`Silent`]). The methods are called by the thread that conducts the
//! run, a few times a second at most, and [`Events::configs_tried`] by the threads that try
//! configs; never by the thread of a connection.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::PipeWriter;
use std::path::Path;
use std::time::{Duration, SystemTime};

use analysis::compare::Decision;
use hdrhistogram::Histogram;
use load::{LatencyKind, Progress, SystemClock};
use plan::Diagnostic;
use record::{CellKey, CellRef, Failure, IntervalRow, MaxRate, Run, RunDir, Step};
use serde::{Deserialize, Serialize};

/// Is told what happens in a run, in this order: the plan is read, builds try its configs, the run
/// begins; then for each cell its beginning, and for each of its steps `step_begins`, `load_begins`
/// with the measurements until `load_ends`, and `step_ends`.
pub trait Events: Sync {
    /// Prepares to show a run. Called first, and only in the process that conducts the run.
    ///
    /// # Errors
    /// The run cannot be shown as it was asked for, so it must not begin.
    fn open(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Says what the run does or has found.
    fn say(&self, _text: &str) {}

    /// Warns about the run, with a stable code if the record has the warning too.
    fn warn(&self, _code: Option<&str>, _text: &str) {}

    /// Shows the warnings about a plan that can run.
    fn warn_of_plan(&self, _warnings: &PlanDiagnostics) {}

    /// Tells how many of the configs were tried; `done` is `None` when trying has ended.
    fn configs_tried(&self, _done: Option<usize>, _total: usize) {}

    /// Tells the directories for databases and results.
    fn places_known(&self, _data: &Path, _results: &Path) {}

    /// A run begins, or is resumed.
    ///
    /// # Errors
    /// The run cannot be shown as it was asked for, so it must not begin.
    fn run_begins(
        &self,
        _run: &Run,
        _directory: &RunDir,
        _clock: &SystemClock,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// A cell begins.
    fn cell_begins(&self, _cell: &CellRef, _progress: &MatrixProgress) {}

    /// A cell has failed; `alike` cells failed in the same way before.
    fn cell_failed(&self, _failure: &Failure, _alike: usize) {}

    /// All cells that were to be measured have ended.
    fn cells_ended(&self, _progress: &MatrixProgress) {}

    /// A search measures this rate next.
    fn rate_chosen(&self, _next: &NextRate<'_>) {}

    /// A rate that is a share of a highest rate is known.
    fn max_rate_known(&self, _rate: &MaxRate) {}

    /// The comparisons of a run until all is decided were judged after a repeat.
    fn repeat_judged(&self, _judged: &JudgedRepeat<'_>) {}

    /// A step begins; it `measures`, or only settles.
    fn step_begins(&self, _name: &str, _measures: bool) {}

    /// The measurement of the step begins.
    fn load_begins(&self, _load: &LoadBegin<'_>) {}

    /// Seconds of the step are over.
    fn intervals(&self, _rows: &[IntervalRow<'static>]) {}

    /// Tells the latencies of one kind of operation that ended in a second of the step.
    fn latencies(
        &self,
        _second: u32,
        _kind: &str,
        _time: LatencyKind,
        _histogram: &Histogram<u64>,
    ) {
    }

    /// The step continues. `lag` is the largest of its replicas now.
    fn load_progress(&self, _progress: &Progress, _lag: Option<Duration>) {}

    /// The measurement of the step has ended.
    fn load_ends(&self) {}

    /// The step has ended, as its record says.
    fn step_ends(&self, _step: &Step) {}

    /// The run has ended.
    fn run_ends(&self) {}

    /// Leaves the terminal to another process, which runs a cell and shows it as this one would.
    ///
    /// # Errors
    /// The system refuses a pipe or a thread.
    fn hand_over(&self) -> anyhow::Result<Relay> {
        Ok(Relay { arguments: Vec::new(), pipe: None })
    }
}

/// Shows nothing.
pub struct Silent;

impl Events for Silent {}

/// The arguments and the pipe through which another process shows its cell.
pub struct Relay {
    /// The further arguments.
    pub arguments: Vec<OsString>,
    /// A pipe that must stay open while the process runs.
    pub pipe: Option<PipeWriter>,
}

/// The progress of a run through its matrix.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MatrixProgress {
    /// The number of the current cell, from 1.
    pub number: usize,
    /// The number of cells in the run.
    pub count: usize,
    /// Complete cells of the run.
    pub complete: usize,
    /// Cells that failed in this invocation.
    pub failed: usize,
    /// The estimated time of the remaining cells, including this one.
    pub time_left: Duration,
    /// The time at which `time_left` was estimated.
    pub since: SystemTime,
    /// The lengths of names in this invocation.
    pub names: NameLengths,
}

/// The characters of the longest names in a run, so that lines about its steps can be aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct NameLengths {
    /// The longest name of a step.
    pub step: usize,
    /// The longest name of a target.
    pub target: usize,
}

/// The beginning of a measurement.
pub struct LoadBegin<'a> {
    /// The step, as far as it is recorded.
    pub step: &'a Step,
    /// Rows that it inserts in total, if it has no given time; 0 if unknown.
    pub rows: u64,
    /// The role of the connections that do each kind of operation.
    pub roles: BTreeMap<String, String>,
}

/// The rate that a search measures next. Rates are per second.
pub struct NextRate<'a> {
    /// The target.
    pub target: &'a str,
    /// The number of clients.
    pub clients: u32,
    /// The highest rate of all clients that meets the bounds.
    pub sustained: Option<f64>,
    /// The lowest rate of all clients that misses a bound.
    pub missed: Option<f64>,
    /// The rate was measured before.
    pub is_again: bool,
    /// The rate of each client.
    pub rate: f64,
}

/// The state of a run until all is decided after a repeat.
pub struct JudgedRepeat<'a> {
    /// The number of the last repeat.
    pub repeat: u32,
    /// All comparisons of throughput with the base.
    pub comparisons: &'a [JudgedComparison],
    /// The estimated time until all are decided; `None` if unknown.
    pub time_needed: Option<Duration>,
    /// The time that this invocation still has.
    pub time_left: Duration,
    /// The next action.
    pub next: NextRepeat,
    /// The command that continues this run later.
    pub resume_command: String,
}

/// A comparison of throughput with the base.
#[derive(Clone, Debug)]
pub struct JudgedComparison {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The repeats that count.
    pub repeats: u32,
    /// The decision by these repeats.
    pub decision: Decision,
    /// The comparison is open, but too noisy for more repeats to decide it.
    pub is_too_noisy: bool,
}

/// The action of a run until all is decided after a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRepeat {
    /// The next repeat begins.
    Begins,
    /// No comparison is open.
    NoneNeeded,
    /// The next repeat would not end in time.
    NoTime,
}

/// Diagnostics of a plan, with the texts that they point into.
#[derive(Clone, Debug)]
pub struct PlanDiagnostics {
    diagnostics: Vec<Diagnostic>,
    /// The plan's path, or the name of the built-in plan.
    name: String,
    text: String,
    sets: Vec<String>,
}

impl PlanDiagnostics {
    /// Returns diagnostics of the plan `name` with this text and these `--set` arguments.
    pub fn new(diagnostics: &[Diagnostic], name: String, text: &str, sets: &[String]) -> Self {
        let (text, sets) = (text.to_owned(), sets.to_vec());
        Self { diagnostics: diagnostics.to_vec(), name, text, sets }
    }

    /// Returns the messages alone.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str())
    }

    /// Returns the diagnostics with the lines of the plan; empty if there are none.
    pub fn render(&self, has_color: bool) -> String {
        if self.diagnostics.is_empty() {
            return String::new();
        }
        let text = plan::render(&self.diagnostics, &self.name, &self.text, &self.sets, has_color);
        text.trim_end().to_owned()
    }
}
