//! The formats of result files: a reader for each, and how they are recognized.

mod db_bench;
mod hammerdb;
mod iibench;
mod iostat;
mod perf_stat;
mod pgbench;
mod pgbench_log;
mod reading;
mod recognize;
mod sysbench;
mod table;
mod vmstat;

pub use reading::{
    CpuShares, DiskRates, Facts, FileContents, HostSample, HostSamples, Second, StepResult,
};

use std::io::BufRead;

use serde::Deserialize;

use crate::text::{Lines, Refusal};
use reading::FormatReader;
pub(crate) use recognize::recognize;
pub(crate) use table::{step_of, target_of};

/// The number of lines by which a format is recognized.
const HEAD_LINES: usize = 400;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// sysbench.
    Sysbench,
    /// The output of pgbench.
    Pgbench,
    /// `pgbench --log`.
    PgbenchLog,
    /// `pgbench --log --aggregate-interval`.
    PgbenchAggregate,
    /// A client of the Insert Benchmark.
    Iibench,
    /// The output of db_bench.
    #[serde(rename = "db_bench")]
    DbBench,
    /// Reports of `benchmark.sh`.
    #[serde(rename = "db_bench-report")]
    DbBenchReport,
    /// Logs of HammerDB.
    Hammerdb,
    /// `vmstat N`.
    Vmstat,
    /// `iostat -x`.
    Iostat,
    /// `perf stat`.
    PerfStat,
    /// Tables with a column of rates for each target.
    QpsTable,
    /// Tables with a column for each metric.
    MetTable,
    /// Lines of a target and a value.
    ValueTable,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 14] = [
        Self::Sysbench,
        Self::Pgbench,
        Self::PgbenchLog,
        Self::PgbenchAggregate,
        Self::Iibench,
        Self::DbBench,
        Self::DbBenchReport,
        Self::Hammerdb,
        Self::Vmstat,
        Self::Iostat,
        Self::PerfStat,
        Self::QpsTable,
        Self::MetTable,
        Self::ValueTable,
    ];

    /// Returns the name, as in campaigns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sysbench => "sysbench",
            Self::Pgbench => "pgbench",
            Self::PgbenchLog => "pgbench-log",
            Self::PgbenchAggregate => "pgbench-aggregate",
            Self::Iibench => "iibench",
            Self::DbBench => "db_bench",
            Self::DbBenchReport => "db_bench-report",
            Self::Hammerdb => "hammerdb",
            Self::Vmstat => "vmstat",
            Self::Iostat => "iostat",
            Self::PerfStat => "perf-stat",
            Self::QpsTable => "qps-table",
            Self::MetTable => "met-table",
            Self::ValueTable => "value-table",
        }
    }

    /// Returns whether its files have samples that go with the results of another file.
    pub fn is_beside(self) -> bool {
        matches!(self, Self::Vmstat | Self::Iostat | Self::PerfStat)
    }

    fn reader(self, options: &FormatOptions) -> Box<dyn FormatReader> {
        let FormatOptions { device, since_boot, interval_s, unit } = options.clone();
        match self {
            Self::Sysbench => Box::<sysbench::SysbenchReader>::default(),
            Self::Pgbench => Box::<pgbench::PgbenchReader>::default(),
            Self::PgbenchLog => Box::<pgbench_log::PgbenchLogReader>::default(),
            Self::PgbenchAggregate => Box::<pgbench_log::PgbenchAggregateReader>::default(),
            Self::Iibench => Box::<iibench::IibenchReader>::default(),
            Self::DbBench => Box::<db_bench::DbBenchReader>::default(),
            Self::Hammerdb => Box::<hammerdb::HammerdbReader>::default(),
            Self::Vmstat => Box::new(vmstat::VmstatReader::new(since_boot, interval_s)),
            Self::Iostat => Box::new(iostat::IostatReader::new(device, since_boot, interval_s)),
            Self::PerfStat => Box::<perf_stat::PerfStatReader>::default(),
            Self::QpsTable => Box::<table::QpsTableReader>::default(),
            Self::MetTable | Self::DbBenchReport => Box::<table::TableReader>::default(),
            Self::ValueTable => Box::new(table::PairReader::new(unit)),
        }
    }
}

/// The facts of a campaign about a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormatOptions {
    /// The disk of the database.
    pub device: Option<String>,
    /// The first sample of the host is the mean since boot; `None`: the file decides.
    pub since_boot: Option<bool>,
    /// The time between samples in seconds.
    pub interval_s: Option<f64>,
    /// The unit of values: `nopm`, `tpm` or `qps`.
    pub unit: Option<String>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadFile {
    /// The format.
    pub format: Format,
    /// The contents of the file.
    pub reading: FileContents,
    /// The number of lines.
    pub lines: u64,
    /// The size in bytes, uncompressed.
    pub bytes: u64,
    /// The CRC-32 in hexadecimal.
    pub crc32: String,
}

/// Reads a file of at most `bytes_max` bytes. Without a format, the content decides.
///
/// # Errors
/// The file is of no format, or of another one, or it is malformed.
pub fn read(
    content: impl BufRead,
    format: Option<Format>,
    options: &FormatOptions,
    bytes_max: u64,
) -> Result<ReadFile, Refusal> {
    let mut lines = Lines::new(content, bytes_max);
    let mut head = Vec::new();
    while head.len() < HEAD_LINES {
        match lines.next()? {
            Some(line) => head.push(line.text.to_owned()),
            None => break,
        }
    }

    let format = decide(format, &head)?;
    let mut reader = format.reader(options);
    for (index, text) in head.iter().enumerate() {
        reader.line(&crate::text::Line { number: index as u64 + 1, text })?;
    }
    drop(head);
    while let Some(line) = lines.next()? {
        reader.line(&line)?;
    }

    Ok(ReadFile {
        format,
        reading: reader.end()?,
        lines: lines.count,
        bytes: lines.bytes,
        crc32: lines.crc32(),
    })
}

/// Returns the format that a campaign names, unless the content is clearly of another one.
fn decide(format: Option<Format>, head: &[String]) -> Result<Format, Refusal> {
    if head.iter().all(|line| line.trim().is_empty()) {
        return Err(Refusal::of_file("it is empty"));
    }

    match (format, recognize(head)) {
        (Some(format), Some(found)) if found != format => {
            let text = format!("it is a file of {}, not of {}", found.name(), format.name());
            Err(Refusal::of_file(text))
        }
        (Some(format), _) | (None, Some(format)) => Ok(format),
        (None, None) => Err(Refusal::of_file("its format is not known")),
    }
}
