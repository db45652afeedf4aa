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

mod directories;
mod error;
mod files;
mod format;
mod layout;
mod model;
mod steps;

pub use directories::{CellDir, RunDir};
pub use error::{DAMAGE_HELP, RecordError};
pub use files::{
    ColumnSpec, ColumnType, Latencies, LatencyCount, LatencyLine, TableWriter, Value,
    latency_counts, latency_histogram, open_regular, read_beside, replace_file, write_beside,
};
pub use format::{FORMAT, FormatVersion};
pub use layout::{LOCK_FILE, moment_of_name, name_with_moment};
pub use model::*;
pub use steps::{
    CounterRow, HostColumn, HostColumnSeries, HostSeries, ServerUse, StepReader, StepState,
    StepWriter, TurnRow,
};
pub use words::{
    Check, Connection, ConnectionState, Counter, DeclaredOption, DiskFloor, FsyncLatency,
    IntervalRow, IoMode, IoRate, Limit, LogEvent, OpKind, OpRole, Ops, OptionStatus,
    ProcessorEvents, ReadFloor, Role, Setting, SettingRole, StatementPlan, SyncFloor, SyncPlace,
    SystemCallCounts, ThreadUse, UnmetOption, Warning,
};
