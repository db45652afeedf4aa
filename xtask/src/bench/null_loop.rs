//! Measures the null engine, on which every statement succeeds at once: Assay's own loop, with
//! clock, schedule, histograms and record, and the generation of rows.

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, figures};
use super::run::Run;

/// Loads rows in batches of 100, then runs queries for a time, with two inserts and two deletes per
/// second.
const PLAN: &str = r#"
name = "null-loop"
clients = [1]
[workload.insert]
initial-rows = "10M"
read-write-time = "3s"
steps = ["l.i0", "l.x", "qr100"]
[build.null]
null = "bundled"
[config.null.base]
[[target]]
builds = ["null"]
configs = ["base"]
"#;

/// Runs the plan several times, and judges what an operation and a row cost.
pub fn run(setup: &Setup) -> Result<bool> {
    let bounds = [
        ("loop_cpu_ns_per_op", Bound::MinimumAtMost(40.0)),
        ("loop_wall_ns_per_op", Bound::None),
        ("generate_cpu_ns_per_row", Bound::MinimumAtMost(100.0)),
        ("generate_wall_ns_per_row", Bound::None),
    ];
    figures(setup.round_count, bounds, || {
        let run = Run::of(setup, PLAN)?;
        Ok([
            1e3 * run.metric("qr100", "client_cpu_us_per_query")?,
            1e9 / run.metric("qr100", "qps")?,
            1e3 * run.metric("l.i0", "client_cpu_us_per_row_inserted")?,
            1e9 / run.metric("l.i0", "ips")?,
        ])
    })
}
