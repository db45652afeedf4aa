//! What an operation costs, as it is compared beside throughput.

use crate::Figures;

/// In the order in which they are shown.
const COSTS: [&str; 13] = [
    "cpupq",
    "client_cpu_us_per_op",
    "server_cpu_us_per_op",
    "cs/o",
    "rpq",
    "rkbpq",
    "wpi",
    "wkbpi",
    "r/o",
    "rKB/o",
    "wKB/o",
    "fsyncs_per_commit",
    "w_amp",
];

/// Of these, the names of reads and writes in the Insert Benchmark, and those in the other workloads.
const OF_INSERT: [&str; 4] = ["rpq", "rkbpq", "wpi", "wkbpi"];
const OF_OTHERS: [&str; 3] = ["r/o", "rKB/o", "wKB/o"];

/// Costs of an operation that any row of some figures has: what [`crate::CompareOptions::metrics`] are where nobody
/// asks for others.
pub fn costs(figures: &Figures) -> Vec<&'static str> {
    let is_there = |metric: &str| {
        let mut rows = figures.rows.iter();
        rows.any(|row| row.metrics.get(metric).copied().flatten().is_some())
    };
    let is_insert = figures.rows.iter().any(|row| row.workload == "insert");
    let others: &[&str] = if is_insert { &OF_OTHERS } else { &OF_INSERT };
    COSTS
        .into_iter()
        .filter(|metric| !others.contains(metric) && is_there(metric))
        .collect()
}
