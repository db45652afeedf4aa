//! Tests of whole files and campaigns.

mod campaigns;
mod files_of_tools;
mod mutants;

use crate::formats::{Format, FormatOptions, ReadFile, read};
use crate::text::Refusal;

/// A file of each format: excerpts of published files, or files in the form of the tool's manual.
pub(super) const FIXTURES: [(Format, &str); 14] = [
    (Format::Sysbench, include_str!("../../tests/fixtures/sysbench")),
    (Format::Pgbench, include_str!("../../tests/fixtures/pgbench")),
    (Format::PgbenchLog, include_str!("../../tests/fixtures/pgbench-log")),
    (Format::PgbenchAggregate, include_str!("../../tests/fixtures/pgbench-aggregate")),
    (Format::Iibench, include_str!("../../tests/fixtures/iibench")),
    (Format::DbBench, include_str!("../../tests/fixtures/db_bench")),
    (Format::DbBenchReport, include_str!("../../tests/fixtures/db_bench-report")),
    (Format::Hammerdb, include_str!("../../tests/fixtures/hammerdb")),
    (Format::Vmstat, include_str!("../../tests/fixtures/vmstat")),
    (Format::Iostat, include_str!("../../tests/fixtures/iostat")),
    (Format::PerfStat, include_str!("../../tests/fixtures/perf-stat")),
    (Format::QpsTable, include_str!("../../tests/fixtures/qps-table")),
    (Format::MetTable, include_str!("../../tests/fixtures/met-table")),
    (Format::ValueTable, include_str!("../../tests/fixtures/value-table")),
];

pub(super) fn fixture(format: Format) -> &'static str {
    FIXTURES.iter().find(|(known, _)| *known == format).map_or("", |(_, text)| text)
}

pub(super) fn read_text(text: &str, format: Option<Format>) -> Result<ReadFile, Refusal> {
    let options = FormatOptions { device: Some("md2".to_owned()), ..FormatOptions::default() };
    read(text.as_bytes(), format, &options, 1 << 20)
}
