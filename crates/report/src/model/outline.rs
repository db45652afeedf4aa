//! The outline of a run in a list: from `run.json` alone, without the figures.

use std::path::PathBuf;

use analysis::compat::Work;
use analysis::distinct;
use record::{Run, Status, moment_of_name};

use super::number::moment;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// All cells were measured.
    Complete,
    /// A process measures its cells now.
    InProgress,
    /// A cell failed.
    Failed,
    /// The operator interrupted it.
    Interrupted,
    /// Only a part was measured, or its process was killed.
    Incomplete,
}

impl RunState {
    fn of(run: &Run) -> Self {
        match run.status {
            Status::Complete => Self::Complete,
            Status::Failed => Self::Failed,
            Status::Interrupted => Self::Interrupted,
            Status::Incomplete if run.is_running => Self::InProgress,
            Status::Incomplete => Self::Incomplete,
        }
    }

    /// Returns the state in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::InProgress => "in progress",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Incomplete => "incomplete",
        }
    }
}

/// The outline of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The plan's name.
    pub plan: String,
    /// The time at which the run started.
    pub started_unix_ns: u64,
    /// The state.
    pub state: RunState,
    /// The engines of the targets.
    pub engines: Vec<String>,
    /// The targets that have cells, in the plan's order.
    pub targets: Vec<String>,
    /// The target that the others are compared with.
    pub base: String,
    /// The steps of all workloads and variants.
    pub steps: Vec<String>,
    /// The largest number of repeats.
    pub repeats: u32,
    /// The work that its plan asks of the engine: runs of other work, such as other numbers of
    /// rows, are not compared.
    pub work: Work,
}

impl Outline {
    /// Returns the outline of a run.
    pub fn new(run: &Run) -> Self {
        let with_cells = distinct(run.cells.iter().map(|cell| cell.key.target.as_str()));

        let measured: Vec<_> = run
            .targets
            .iter()
            .filter(|target| with_cells.contains(&target.name.as_str()))
            .collect();

        let base = run.measured_base(|target| with_cells.contains(&target));
        let steps = run.workloads.iter().flat_map(|workload| &workload.steps);

        Self {
            plan: run.name.clone(),
            started_unix_ns: run.started_unix_ns,
            state: RunState::of(run),
            engines: distinct(measured.iter().map(|target| target.engine.clone())),
            targets: measured.iter().map(|target| target.name.clone()).collect(),
            base: base.unwrap_or_default().to_owned(),
            steps: distinct(steps.cloned()),
            repeats: run.cells.iter().map(|cell| cell.key.repeat).max().unwrap_or(0),
            work: Work::of(run),
        }
    }

    /// Returns the time of the start to the minute: `2026-11-21 19:02`.
    pub fn started(&self) -> String {
        to_the_minute(self.started_unix_ns)
    }
}

fn to_the_minute(unix_ns: u64) -> String {
    let to_the_second = moment(unix_ns);
    to_the_second.get(..16).unwrap_or(&to_the_second).to_owned()
}

/// A run in a list.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The name of its directory.
    pub name: String,
    /// The path of its directory.
    pub path: PathBuf,
    /// The outline of `run.json`, or why it cannot be read.
    pub outline: Result<Outline, String>,
    /// The result in a few words, or why the figures cannot be read.
    pub result: Result<String, String>,
}

impl ListedRun {
    /// Returns true if all of the run could be read.
    pub fn is_readable(&self) -> bool {
        self.outline.is_ok() && self.result.is_ok()
    }
}

/// The outline of a tuning or a bisection, from its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOutline {
    /// The step that it is about.
    pub step: String,
    /// The number of targets or candidates among which it searches.
    pub target_count: usize,
    /// The state.
    pub state: RunState,
    /// The first line of its answer, or what it measures next.
    pub result: String,
}

/// A tuning or a bisection in a list. Its runs are in its directory.
#[derive(Clone, Debug)]
pub struct ListedSearch {
    /// The name of its directory.
    pub name: String,
    /// The path of its directory.
    pub path: PathBuf,
    /// The kind of search: `tuning` or `bisection`.
    pub kind: &'static str,
    /// The outline of its log, or why it cannot be read.
    pub outline: Result<SearchOutline, String>,
}

impl ListedSearch {
    /// Returns the time of the start to the minute, by the name of the directory.
    pub fn started(&self) -> Option<String> {
        moment_of_name(&self.name).map(to_the_minute)
    }
}

/// An entry of a list.
#[derive(Clone, Debug)]
pub enum ListedEntry {
    /// A run.
    Run(ListedRun),
    /// A tuning or a bisection.
    Search(ListedSearch),
}

impl ListedEntry {
    /// Returns true if all of the entry could be read.
    pub fn is_readable(&self) -> bool {
        match self {
            Self::Run(run) => run.is_readable(),
            Self::Search(search) => search.outline.is_ok(),
        }
    }
}
