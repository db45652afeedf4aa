//! The origin of results that another tool measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The campaign that a run was imported from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// The tools that measured, with their versions where the files have them.
    pub tools: Vec<String>,
    /// The folder or archive that was read.
    pub source: String,
    /// The number of files that were read.
    pub files: u64,
    /// The size of these files, uncompressed.
    pub bytes: u64,
}

/// The origin of a step that another tool measured. Seconds and distributions that its files lack
/// are not applicable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedStep {
    /// The tool, with its version if the files have it.
    pub tool: String,
    /// The files of the step.
    pub files: Vec<ImportedFile>,
    /// Metrics of [`words::METRICS`] that the files have as they are, by name.
    pub metrics: BTreeMap<String, f64>,
    /// Times of operations that the files have as they are, in microseconds: by kind, and by the
    /// name of the statistic, such as `p95`, `max` and `mean`.
    pub times_us: BTreeMap<String, BTreeMap<String, f64>>,
    /// Operations by kind in the buckets 256us, 1ms, 4ms and so on to 16s, and above.
    pub buckets: BTreeMap<String, [u64; 10]>,
}

/// A file of an imported step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// The path below the folder of the campaign.
    pub path: String,
    /// The name of the format.
    pub format: String,
    /// The number of its lines.
    pub lines: u64,
    /// The size, uncompressed.
    pub bytes: u64,
    /// The CRC-32 of the uncompressed contents in hexadecimal.
    pub crc32: String,
}
