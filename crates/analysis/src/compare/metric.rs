//! The compared figures of a row: its throughput and its metrics, and whether more or less of each
//! is better.

use words::metric::{
    COMPARISON_METRICS, CPU_VERDICT_METRICS, DEVICE_COMPARISON_METRICS, INSERT_COMPARISON_METRICS,
};
use words::{Better, Metric};

use super::typical::TurnMetric;
use crate::figures::{Figures, Row, STEADINESS, TYPICAL_CPU, step_figures, throughput};
use crate::order::distinct;

/// The name of the figure for the speed of a step, over all of its time.
pub const THROUGHPUT: &str = "throughput";

/// The metrics that show by themselves whether a target got faster or slower, with their names in
/// sentences. Each is a family of comparisons and has tables of verdicts, and the gate judges it.
pub const VERDICT_METRICS: [(&str, &str); 3] =
    [(THROUGHPUT, THROUGHPUT), CPU_VERDICT_METRICS[0], CPU_VERDICT_METRICS[1]];

/// The CPU of an operation on the threads of its connections, in client and server.
pub const OWN_CPU: &str = "own_cpu_us_per_op";

/// The CPU of all threads of the clients, per main operation.
pub(crate) const CLIENT_CPU: &str = "client_cpu_us_per_op";

/// The response times that are compared of steps whose schedule decides the throughput. Each is a family
/// by itself.
pub(crate) const RESPONSE_TIMES: [&str; 2] = ["response_mean", "response_p99"];

/// The figure that stands in for [`OWN_CPU`] where a server's threads cannot be told apart:
/// [`process_cpu`].
pub(super) const PROCESS_CPU: &str = "process_cpu_us_per_op";

/// Returns the CPU of an operation on the threads of its clients and in the whole process of the
/// server, in microseconds. `None` if either is unknown, or the engine has no process of its own.
pub(crate) fn process_cpu(row: &Row) -> Option<f64> {
    Some(row.metric("op_client_cpu_us")? + row.metric("server_cpu_us_per_op")?)
}

/// Returns whether the threads of the server cannot be told apart: only the CPU of its whole process
/// is known.
pub(crate) fn has_only_process_cpu(row: &Row) -> bool {
    row.metric(OWN_CPU).is_none() && process_cpu(row).is_some()
}

/// The family of what an operation costs besides: [`COMPARISON_METRICS`] and
/// [`INSERT_COMPARISON_METRICS`].
pub(super) const COSTS: &str = "costs";

/// The family of [`DEVICE_COMPARISON_METRICS`].
pub(super) const DEVICE: &str = "device columns";

/// Returns the name of one of [`VERDICT_METRICS`] in sentences.
fn verdict_label(metric: &str) -> Option<&'static str> {
    let mut labels = VERDICT_METRICS.iter();
    let known = labels.find(|(name, _)| *name == metric);
    known.map(|(_, label)| *label)
}

/// Returns the name of a metric in sentences.
pub fn metric_label(metric: &str) -> &str {
    match TurnMetric::named(metric) {
        Some(of_turns) => of_turns.label,
        None => verdict_label(metric).unwrap_or(metric),
    }
}

/// Returns the name of a metric in notes: its label, or the head of its column for a cost or a device
/// column, whose table explains it.
pub(super) fn note_label(metric: &str) -> &str {
    let label = metric_label(metric);
    let has_column = matches!(family_of(metric), COSTS | DEVICE);
    // Other metrics may share a head, so they keep the name by which they were asked for.
    Metric::named(metric).filter(|_| has_column).map_or(label, |known| known.head)
}

/// Returns the family that a metric's comparisons belong to. Its parts share one error rate.
///
/// A metric that somebody asks for is a family by itself, so that no verdict depends on what else is
/// asked for.
pub(super) fn family_of(metric: &str) -> &str {
    let leading = TurnMetric::named(metric).map_or(metric, |of_turns| of_turns.family_of);
    if let Some(label) = verdict_label(leading) {
        label
    } else if is_cost(metric) {
        COSTS
    } else if DEVICE_COMPARISON_METRICS.contains(&metric) {
        DEVICE
    } else {
        metric
    }
}

/// Returns the families of some metrics, each once, in their order.
pub(super) fn families<'m>(metrics: impl Iterator<Item = &'m str>) -> Vec<String> {
    distinct(metrics.map(family_of)).into_iter().map(str::to_owned).collect()
}

/// Returns the part of a family that is decided together with a metric's comparisons. Costs are one
/// part, and so are device columns. Any other metric is a part by itself: if true changes of one
/// were counted with another, they would make false claims about it more likely.
pub(super) fn part_of(metric: &str) -> &str {
    match family_of(metric) {
        COSTS => COSTS,
        DEVICE => DEVICE,
        _ => metric,
    }
}

/// Returns whether tables show a part of a family only where it changed, or where somebody asked for it.
pub(super) fn is_shown_if_changed(part: &str) -> bool {
    [STEADINESS, TYPICAL_CPU, DEVICE].contains(&part)
}

/// Returns whether a metric belongs to the family of costs.
fn is_cost(metric: &str) -> bool {
    COMPARISON_METRICS.contains(&metric) || INSERT_COMPARISON_METRICS.contains(&metric)
}

/// Returns whether a metric is a column of a disk, which tables show only if it changed.
pub fn is_device_column(metric: &str) -> bool {
    DEVICE_COMPARISON_METRICS.contains(&metric)
}

/// Returns whether a metric is one of [`VERDICT_METRICS`].
pub(crate) fn has_verdict(metric: &str) -> bool {
    verdict_label(metric).is_some()
}

/// Returns whether larger values of [`THROUGHPUT`], or of a metric, are better.
pub fn more_is_better(metric: &str) -> bool {
    let is_better = |metric: &Metric| metric.better == Better::More;
    metric == THROUGHPUT || Metric::named(metric).is_some_and(is_better)
}

/// Returns the costs of an operation and the columns of disks that any row has, and response times if
/// the main operation of any row has a schedule. A reader of figures compares all of them
/// ([`crate::compare::CompareOptions::metrics`]), since each family is decided as a whole.
pub fn costs(figures: &Figures) -> Vec<String> {
    let costs: &[&str] = if figures.rows.iter().any(|row| row.workload == "insert") {
        &INSERT_COMPARISON_METRICS
    } else {
        &COMPARISON_METRICS
    };

    let mut names = costs.to_vec();
    names.extend(DEVICE_COMPARISON_METRICS);
    names.retain(|name| figures.rows.iter().any(|row| row.metric(name).is_some()));
    if figures.rows.iter().any(|row| row.reported && row.is_scheduled()) {
        names.extend(RESPONSE_TIMES);
    }
    names.into_iter().map(str::to_owned).collect()
}

/// The kernel's tick: CPU times of processes and of the host are multiples of it. `USER_HZ` is 100.
const TICK_SECONDS: f64 = 0.01;

/// Returns the error of a metric's value from rounding: the standard deviation as a share of the
/// value. It is zero for metrics without ticks or histograms. A counter is rounded down to whole
/// ticks at the start and at the end of a step. Each rounding has the variance of a uniform
/// distribution, tick² / 12.
pub(super) fn rounding(row: &Row, metric: &str, value: f64) -> f64 {
    let operations = || Some(throughput(row)? * row.seconds);
    let of_cost = |name: &str| Some(self::value(row, name)? * operations()? / 1e6);

    let (seconds, counters) = match metric {
        // User and system. The clients' part has no ticks.
        "server_cpu_us_per_op" | PROCESS_CPU => (of_cost(metric), 2.0_f64),
        // And nice, irq, softirq.
        "cpupq" | "cpups" | "cpu/o" => (of_cost("cpupq"), 5.0),
        "u_cpu" | "s_cpu" => (Some(value), 1.0),
        _ => return step_figures::rounding(metric, value),
    };

    let seconds = seconds.filter(|&seconds| seconds > 0.0);
    seconds.map_or(0.0, |seconds| TICK_SECONDS * (counters / 6.0).sqrt() / seconds)
}

/// Returns the value of [`THROUGHPUT`] or of a metric; `None`: not applicable.
pub(super) fn value(row: &Row, metric: &str) -> Option<f64> {
    match metric {
        THROUGHPUT => throughput(row),
        PROCESS_CPU => process_cpu(row),
        name => row.metric(name),
    }
    .filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::StepKind;

    use super::*;

    /// Returns a step of 5000 rows in two seconds, with 50 ms of the server's CPU and 100 ms of the
    /// host's.
    fn row() -> Row {
        Row {
            kind: StepKind::Load,
            seconds: 2.0,
            metrics: BTreeMap::from([
                ("ips", Some(2500.0)),
                ("server_cpu_us_per_op", Some(10.0)),
                ("client_cpu_us_per_op", Some(10.0)),
                ("cpupq", Some(20.0)),
                ("cpups", Some(2.5)),
                ("u_cpu", Some(0.04)),
            ]),
            ..Row::default()
        }
    }

    #[test]
    fn the_rounding_error_is_the_share_of_a_tick_in_the_time() {
        let row = row();
        let of = |name: &str| rounding(&row, name, value(&row, name).unwrap());
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(of("server_cpu_us_per_op"), 0.2 / 3.0_f64.sqrt());
        near(of("cpupq"), 0.1 * (5.0_f64 / 6.0).sqrt());
        near(of("cpups"), of("cpupq"));
        near(of("u_cpu"), 0.25 / 6.0_f64.sqrt());
        near(of("client_cpu_us_per_op"), 0.0);
        near(of(THROUGHPUT), 0.0);
    }

    #[test]
    fn notes_name_costs_as_the_columns_of_their_table_do() {
        assert_eq!(note_label("server_cpu_us_per_op"), "server_cpu");
        assert_eq!(note_label("fsyncs_per_commit"), "fsyncs");
        assert_eq!(note_label("util%"), "util");
        assert_eq!(note_label("own_cpu_us_per_op"), "own CPU per operation");
        // Its head is that of `server_cpu_us_per_op`.
        assert_eq!(note_label("op_server_cpu_us"), "op_server_cpu_us");
        assert_eq!(note_label(THROUGHPUT), THROUGHPUT);
    }

    #[test]
    fn without_a_time_there_is_no_rounding_error() {
        let mut row = row();
        row.metrics.insert("ips", None);
        assert_eq!(rounding(&row, "server_cpu_us_per_op", 10.0), 0.0);
        row.metrics = BTreeMap::from([("ips", Some(1.0)), ("cpupq", Some(0.0))]);
        assert_eq!(rounding(&row, "cpupq", 0.0), 0.0);
    }
}
