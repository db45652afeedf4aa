//! Measures what watching a replica costs its primary.

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, figures};
use super::run::{Run, number};

/// Measures the CPU of a primary that has nearly nothing else to do, with and without a replica.
/// The difference includes the heartbeats, the readings of positions and the sender of the log.
pub fn run(setup: &Setup) -> Result<bool> {
    let bounds = [
        ("with_a_replica_cpu_percent", Bound::None),
        ("without_cpu_percent", Bound::None),
        ("difference_cpu_percent", Bound::AtMost(1.0)),
    ];
    figures(setup.round_count, bounds, || {
        let [with, without] = [primary_cpu_percent(setup, 1)?, primary_cpu_percent(setup, 0)?];
        Ok([with, without, with - without])
    })
}

/// Returns the CPU time of a primary with this number of replicas, in percent of one processor.
fn primary_cpu_percent(setup: &Setup, replicas: u32) -> Result<f64> {
    let seconds = 2 * setup.seconds;
    let plan = format!(
        r#"
name = "heartbeat"
clients = [1]
[workload.sysbench]
rows = 1_000
warmup = "1s"
read-time = "{seconds}s"
rate = 1
checks = "off"
steps = ["load", "oltp_point_select"]
[build.pg]
postgres = "distribution"
[config.postgres.base]
set = {{ fsync = false }}
replicas = {replicas}
"#
    );
    let step = Run::of(setup, &plan)?.step("oltp_point_select")?;
    let cpu_ns = number(&step, "/cpu/server_ns")? as f64;
    Ok(100.0 * cpu_ns / number(&step, "/elapsed_ns")? as f64)
}
