//! Requests to this crate, whatever the command line looked like.

use std::path::PathBuf;
use std::time::Duration;

use plan::Simulate;
use record::{Assay, RateSearch};

/// The default directory for run directories.
pub const RESULTS: &str = "results";
/// The default directory for databases, within the results directory.
pub const DATA: &str = "data";

/// The plan's key for what exact cells simulate.
pub(crate) const SIMULATE: &str = "exact.simulate";

/// A plan and changes to it.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The plan file; `None` for the built-in plan.
    pub plan: Option<PathBuf>,
    /// Changes of the plan: `KEY=VALUE`.
    pub sets: Vec<String>,
}

/// The repeats that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatsRequest {
    /// This many in total.
    Count(u32),
    /// As many as decide all comparisons, or fit into the time.
    UntilDecided,
}

impl RepeatsRequest {
    /// Returns the value of the plan's key `repeats`.
    pub(crate) fn plan_value(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::UntilDecided => plan::UNTIL_DECIDED.to_owned(),
        }
    }
}

/// Cells in which instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactRequest {
    /// The simulation beside the counting; `None`: the plan decides.
    pub simulate: Option<Simulate>,
}

impl ExactRequest {
    /// Returns the value of the plan's key for what is simulated, if it is given.
    pub(crate) fn simulate_value(self) -> Option<String> {
        self.simulate.map(|simulate| format!("\"{}\"", simulate.name()))
    }
}

/// A run to begin or to resume.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The plan. A resumed run has its own, and gets one only for the passwords in it.
    pub plan: PlanRequest,
    /// Filters of the cells to measure; empty for all cells.
    pub only: Vec<String>,
    /// The directory of the run to resume.
    pub resume: Option<PathBuf>,
    /// The programs that the record of another user names may run.
    pub is_trusted: bool,
    /// The repeats of each cell, instead of the plan's.
    pub repeats: Option<RepeatsRequest>,
    /// The most time for this invocation of a run until all is decided, instead of the plan's.
    pub time: Option<Duration>,
    /// One target is compared with itself.
    pub is_against_itself: bool,
    /// Each cell is measured once more with a profiler.
    pub is_profiled: bool,
    /// The engine's instructions are counted in cells of their own; `None`: the plan decides.
    pub exact: Option<ExactRequest>,
    /// The opposite targets are added to those of a resumed run's design.
    pub folds_over: bool,
    /// Cells are measured even if another cell of their target failed before its first step was
    /// complete.
    pub keeps_going: bool,
    /// A run begins whatever space its databases seem to need.
    pub ignores_space: bool,
    /// The directory for run directories.
    pub results: PathBuf,
    /// The directory for databases; `None` means the directory that the plan or the resumed run
    /// names.
    pub data: Option<PathBuf>,
    /// The folder of databases that cells share with those of other runs; `None` means what the
    /// plan says.
    pub reuse: Option<PathBuf>,
    /// The search that chooses the rates of a step.
    pub search: Option<RateSearch>,
    /// The program that runs, as the record names it.
    pub assay: Assay,
    /// The command line that is recorded, without secrets.
    pub command: Vec<String>,
}
