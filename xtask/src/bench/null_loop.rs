//! The null engine: every statement succeeds at once, so that what is measured is assay's own loop, with clock, schedule,
//! histograms and record; and the generation of rows.

use anyhow::Result;

use super::Setup;
use super::limit::{Limit, Pick};
use super::steps::Steps;

/// Rows are loaded by the hundred; queries go on for a time, beside two inserts and two deletes a second.
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

/// Runs the plan a number of times and judges what an operation and a row cost.
pub fn run(setup: &Setup) -> Result<bool> {
    let assay = &setup.programs()?.assay;
    let mut rounds = Vec::new();
    for _ in 0..setup.round_count {
        let folder = tempfile::tempdir()?;
        let steps = Steps::of_run(assay, PLAN, folder.path())?;
        rounds.push([
            1e3 * steps.metric("qr100", "client_cpu_us_per_query")?,
            1e9 / steps.metric("qr100", "qps")?,
            1e3 * steps.metric("l.i0", "client_cpu_us_per_row_inserted")?,
            1e9 / steps.metric("l.i0", "ips")?,
        ]);
    }
    let limits = [
        ("loop_cpu_ns_per_op", Some(40.0)),
        ("loop_wall_ns_per_op", None),
        ("generate_cpu_ns_per_row", Some(100.0)),
        ("generate_wall_ns_per_row", None),
    ];
    let mut kept = true;
    for (index, (name, at_most)) in limits.into_iter().enumerate() {
        let limit = Limit {
            name,
            at_most,
            pick: Pick::Least,
        };
        let values: Vec<f64> = rounds.iter().map(|round| round[index]).collect();
        let (line, holds) = limit.judge(&values);
        println!("{line}");
        kept &= holds;
    }
    Ok(kept)
}
