//! What is compared: a row's throughput and its metrics, and which way is better.

use record::StepKind;

use crate::Row;

/// The name of the figure that says how fast a step was.
pub const THROUGHPUT: &str = "throughput";

/// Rows inserted or indexed, or queries, per second; `None` in steps that only settle.
pub fn throughput(row: &Row) -> Option<f64> {
    let name = match row.kind {
        StepKind::Load | StepKind::Index => "ips",
        StepKind::Query => "qps",
        StepKind::Settle => return None,
    };
    row.metrics.get(name).copied().flatten()
}

/// Whether a larger value of [`THROUGHPUT`] or of one of [`crate::METRICS`] is the better one: so for rates of what
/// clients asked for, and hits of a cache. All others are costs: work that the host or the engine did, space, debt, time.
pub fn more_is_better(metric: &str) -> bool {
    matches!(
        metric,
        THROUGHPUT | "ips" | "dps" | "qps" | "o/s" | "mb_sec" | "p50" | "p99" | "cache_hit%"
    )
}

/// The value of [`THROUGHPUT`] or of one of [`crate::METRICS`]; `None`: not applicable.
pub(super) fn value(row: &Row, metric: &str) -> Option<f64> {
    match metric {
        THROUGHPUT => throughput(row),
        name => row.metrics.get(name).copied().flatten(),
    }
    .filter(|value| value.is_finite())
}
