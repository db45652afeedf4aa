//! Measures load ranks: what they cost compared with one process, and how much rank 0 takes in.

use anyhow::{Context, Result};

use super::measure::{Bound, THROUGHPUT, figures, pair};
use super::run::{INVALID, Run, lookups, number};
use super::{Setup, need};
use crate::prepare::MPI;

/// Compares a step by two load ranks on this host with the same step by one process.
pub fn against_one_process(setup: &Setup) -> Result<bool> {
    need(MPI)?;
    pair(
        setup.round_count,
        ("2 load ranks", &|| lookups(setup, 2, "")),
        ("one process", &|| lookups(setup, 0, "")),
        &[(THROUGHPUT, Bound::AtLeast(0.9))],
    )
}

/// Load ranks of [`intake`].
const LOAD_RANKS: usize = 64;
/// Connections of all of them.
const CONNECTIONS: usize = 64 * LOAD_RANKS;

/// Measures rank 0 while many ranks report what many connections do. The null engine and a low rate
/// leave the processors to the reports, of which there are as many at any rate.
pub fn intake(setup: &Setup) -> Result<bool> {
    need(MPI)?;
    let seconds = setup.seconds;
    let plan = format!(
        r#"
name = "rank-intake"
clients = [{CONNECTIONS}]
[workload.sysbench]
rows = 10_000
warmup = "0s"
read-time = "{seconds}s"
rate = 1
checks = "off"
steps = ["load", "index", "oltp_point_select"]
[build.null]
null = "bundled"
"#
    );

    let bounds =
        [("rank_0_cpu_percent", Bound::AtMost(10.0)), ("report_delay_ms_max", Bound::None)];
    figures(setup.round_count, bounds, || {
        // Of so many processes on a few processors, one may stall at times. That changes nothing
        // for rank 0.
        let run = Run::on_ranks(setup, LOAD_RANKS, &plan, &[0, INVALID])?;
        let step = run.any_step("oltp_point_select")?;
        let ranks = step["ranks"].as_array().context("the step has no ranks")?;

        // Rank 0 has what is left of the CPU time of all ranks.
        let mut cpu_ns = number(&step, "/cpu/assay_ns")?;
        let mut delay_ns = 0;
        for rank in ranks {
            cpu_ns -= number(rank, "/cpu_ns")?;
            delay_ns = delay_ns.max(number(rank, "/report_delay_ns_max")?);
        }
        let percent = 100.0 * cpu_ns as f64 / number(&step, "/elapsed_ns")? as f64;
        Ok([percent, delay_ns as f64 / 1e6])
    })
}
