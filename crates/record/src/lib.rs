//! Writes and reads the run directory, which alone connects the live half with the reading half.
//!
//! ```text
//! RunDir    20261121T190211Z-round-6/
//!             run.json                        Run: the plan, the machine, the builds, the cells
//! CellDir     cells/pg17.base/c1/r1/
//!               cell.json                     Cell: the settings and how it ended
//!               server.log
//!               log_events.parquet            events of that log, such as checkpoints
//! StepWriter    steps/01-l.i0.partial/        while the step runs
//! StepReader    steps/01-l.i0/                when it has ended
//!                 step.json                   Step: totals, connections, checks
//!                 intervals.parquet           each second of each connection
//!                 host.parquet                samples of the machine
//!                 host.rankN.parquet          samples of a client host
//!                 counters.parquet            the engine's counters
//!                 profile.parquet             sampled call stacks, if the cell is profiled
//!                 work_functions.parquet      executed functions, if the cell is exact
//!                 work_calls.parquet          who called whom
//!                 engine_status.txt           the engine's own text about its state
//!                 latency.hlog                histograms of each second
//!                 latency_total.hlog          histograms of the step
//! ```
//!
//! ```
//! use record::{Cell, CellRef, IntervalRow, Run, RunDir, Status, Step};
//!
//! let results = tempfile::tempdir()?;
//! let run = Run {
//!     name: "demo".to_owned(),
//!     cells: vec![CellRef::new("lite.fast", "insert", None, 1, 1)],
//!     ..Run::default()
//! };
//! let directory = RunDir::create(results.path(), &run)?;
//! let cell = directory.begin_cell(&run.cells[0])?;
//! cell.write(&Cell { key: run.cells[0].key.clone(), ..Cell::default() })?;
//! let mut step = cell.begin_step(1, "l.i0", &[])?;
//! step.intervals(&[IntervalRow { kind: "insert", ok: 7, ..IntervalRow::default() }])?;
//! step.finish(&Step { name: "l.i0".to_owned(), status: Status::Complete, ..Step::default() })?;
//!
//! let directory = RunDir::open(directory.path())?;
//! let step = &directory.cell(&run.cells[0])?.read_steps()?[0];
//! let mut ok = 0;
//! step.for_each_interval(|row| ok += row.ok)?;
//! assert_eq!((step.step().name.as_str(), ok), ("l.i0", 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell_key;
mod checksum;
mod directory;
mod error;
mod folder;
mod json;
mod latency_log;
mod log_events;
mod model;
mod names;
mod step_reader;
mod step_writer;
mod table;
mod turns;
mod work;

pub use cell_key::CellKey;
pub use directory::{CellDir, LOCK_FILE, RunDir};
pub use error::{DAMAGE_HELP, RecordError};
pub use folder::{open_regular, replace_file};
pub use json::{read_beside, write_beside};
pub use latency_log::{Latencies, LatencyLine, latency_histogram};
pub use model::*;
pub use names::name_with_moment;
pub use step_reader::{CounterRow, HostColumnSeries, HostSeries, StepReader, StepState};
pub use step_writer::{HostColumn, StepWriter};
pub use table::{ColumnSpec, ColumnType, TableWriter, Value};
pub use turns::{ServerUse, TurnRow};
pub use words::{
    Check, Connection, ConnectionState, Counter, DeclaredOption, DiskFloor, FsyncLatency,
    IntervalRow, IoMode, IoRate, Limit, LogEvent, OpKind, OpRole, Ops, OptionStatus,
    ProcessorEvents, ReadFloor, Role, Setting, SettingRole, StatementPlan, SyncFloor, SyncPlace,
    SystemCallCounts, ThreadUse, UnmetOption, Warning,
};

use serde::{Deserialize, Serialize};

/// A version of the run directory's format. A reader understands all minor versions of its own
/// major version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Changes when an older reader would misunderstand the record.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version that this Assay writes. A field that a minor version adds has a serde default, so
/// that readers understand earlier minor versions. Readers skip unknown fields.
///
/// - 1.0: the first version. Earlier records belong to no released version, whatever version they
///   name.
/// - 1.1: JSON files end with their checksum. Runs list their cells and cells their steps with
///   checksums, steps name their cell, and cells their run. Also [`RateSearch::repeats`], and
///   `not_had` became [`Cell::unmet_options`]. [`Ops::role`] and [`Step::main_role`] say what a
///   kind of operation means; without them, the kind's name does.
/// - 1.2: [`Cell::database`]: a cell may begin with a copy of a kept database, and leave out the
///   steps that load.
/// - 1.3: [`Build::commit`]: the commit that Assay made a build from.
/// - 1.4: [`Step::commands`]: what ran before and after a step.
/// - 1.5: [`Invocation::disk_floors`]: what the disk can do for a program alone.
///   [`WorkloadSteps::alone`]: a step that is measured right after the load. [`Run::design`]: the
///   levels of the targets of a designed experiment.
/// - 1.6: [`Step::system_calls`]: how many system calls of each kind the engine made.
/// - 1.7: [`Run::imported`] and [`Step::imported`]: what other tools measured.
/// - 1.8: [`Cell::has_host_metrics`]: a server's host that is not Assay's own was sampled.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 8 };

impl FormatVersion {
    /// Returns whether the JSON files have checksums.
    pub(crate) fn has_sums(self) -> bool {
        (self.major, self.minor) >= (1, 1)
    }
}
