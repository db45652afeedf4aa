//! The contents of the JSON files of a run directory: `run.json` ([`Run`]), `cell.json` ([`Cell`])
//! and `step.json` ([`Step`]). Every number's name has its unit; times of the step's clock are
//! nanoseconds since the step began, wall-clock times are nanoseconds since 1970 UTC.

mod cell;
mod cell_key;
mod database;
mod imported;
mod max_rate;
mod run;
mod step;

use serde::{Deserialize, Serialize};

pub use cell::{Cell, ServerHost, StepNotApplicable};
pub use cell_key::CellKey;
pub use database::{KeptDatabase, PageCache};
pub use imported::{ImportedFile, ImportedRun, ImportedStep};
pub use max_rate::{AchievedRate, MaxRate};
pub use run::{
    AloneStep, Assay, Build, BuiltCommit, BuiltPatch, CellRef, ClientHost, Design, DesignFactor,
    DesignedTarget, FactDifference, FileHash, GroupBase, Host, Invocation, Plan, PlanFile,
    RateSearch, ResolvedValue, Run, Target, WorkloadSteps,
};
pub use step::{
    Cpu, HomeRows, LoadPause, OpPause, RankLoad, Settle, Step, StepCommand, StepKind, StepProfile,
    StepWork, StorageSize,
};

/// The outcome of a run, cell or step. Files first have the status `Incomplete`, so that it is
/// right after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The run, cell or step was started, and its end was not recorded.
    #[default]
    Incomplete,
    /// The run, cell or step ended as planned.
    Complete,
    /// The run, cell or step failed; `failure` says why.
    Failed,
    /// The operator stopped it.
    Interrupted,
}

/// The causes of a failure, and its remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error and its causes, outermost first.
    pub causes: Vec<String>,
    /// The remedy, if one is known.
    pub help: Option<String>,
    /// The last lines of the server's log, oldest first.
    pub log_tail: Vec<String>,
}

/// A file of the record, as it was when it was finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// The name of the file, relative to the file that lists it: `intervals.parquet`.
    pub name: String,
    /// The size of the file.
    pub size_bytes: u64,
    /// The CRC-32 of the file (as in zip and PNG) in hexadecimal.
    pub crc32: String,
}
