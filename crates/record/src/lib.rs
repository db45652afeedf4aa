//! The run directory: its format, its writer and its reader.
//!
//! The live half of assay writes here and the reading half reads here, and nothing else joins them.

mod cell_key;
mod checksum;
mod directory;
mod error;
mod json;
mod latency_log;
mod model;
mod step_reader;
mod step_writer;
mod table;

pub use cell_key::CellKey;
pub use directory::{CellDir, RunDir};
pub use error::RecordError;
pub use latency_log::{Latencies, LatencyLine, latency_histogram};
pub use model::*;
pub use step_reader::{CounterRow, HostColumnSeries, HostSeries, StepReader, StepState};
pub use step_writer::{HostColumn, StepWriter};
pub use table::{ColumnSpec, ColumnType, TableWriter, Value};
pub use words::{
    Check, Connection, ConnectionState, Counter, DeclaredOption, FsyncLatency, IntervalRow, Limit,
    Ops, OptionStatus, Role, Setting, SettingRole, ThreadUse, UnmetOption, Warning,
};

use serde::{Deserialize, Serialize};

/// A version of the run directory's format. A reader takes every minor version of its own major version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Changes when an older reader would misunderstand.
    pub major: u32,
    /// Changes when something was added.
    pub minor: u32,
}

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version that this assay writes. A field that a minor version adds has a serde default, so that records of
/// earlier minor versions read; fields that a reader does not know are skipped.
///
/// - 1.0: the first. Records that were made before it, whatever they call themselves, are of no released version.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 0 };
