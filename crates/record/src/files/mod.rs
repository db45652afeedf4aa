//! Files of a run directory: how they are opened, since the directory may come from a stranger, how
//! damage is found, and their formats.

pub(crate) mod checksum;
mod folder;
pub(crate) mod json;
mod latency_log;
mod table;

pub(crate) use folder::{Folder, TEXT_BYTES_MAX};
pub use folder::{open_regular, replace_file};
pub use json::{read_beside, write_beside};
pub(crate) use latency_log::LatencyLogWriter;
pub use latency_log::{Latencies, LatencyCount, LatencyLine, latency_counts, latency_histogram};
pub use table::{ColumnSpec, ColumnType, TableWriter, Value};
pub(crate) use table::{Rows, TableReader, Values};
