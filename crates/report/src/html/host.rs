//! The charts of the host, its network and the server in one row, second by second, and of the cost of an operation.

use analysis::Row;
use record::StepKind;

use crate::html::curve::{Place, RowCurve};
use crate::html::seconds::{MIB, counts, rates, sampled, sum};
use crate::matrix::StepHead;
use crate::operations::noun;

const KIB: f64 = 1024.0;

/// CPU time of the host that counts as busy, as in the metric `cpups`: user and system, but not idle, waiting for I/O, or
/// stolen by a hypervisor.
const BUSY: [&str; 5] = [
    "cpu_user_ns",
    "cpu_nice_ns",
    "cpu_system_ns",
    "cpu_irq_ns",
    "cpu_softirq_ns",
];

/// All other CPU time.
const REST: [&str; 3] = ["cpu_idle_ns", "cpu_iowait_ns", "cpu_steal_ns"];

/// The charts: a title, the columns to add, and the divisor.
const DRAWN: [(&str, &[&str], f64); 16] = [
    (
        "server: CPU, percent of one CPU",
        &["server_cpu_user_ns", "server_cpu_system_ns"],
        1e7,
    ),
    ("assay: CPU, percent of one CPU", &["assay_cpu_ns"], 1e7),
    ("read, MB per second", &["disk_read_bytes"], MIB),
    ("written, MB per second", &["disk_write_bytes"], MIB),
    ("reads per second", &["disk_read_count"], 1.0),
    ("writes per second", &["disk_write_count"], 1.0),
    (
        "context switches per second",
        &["context_switch_count"],
        1.0,
    ),
    ("cache flushes per second", &["disk_flush_count"], 1.0),
    (
        "host: some thread waited for I/O, percent of time",
        &["pressure_io_some_ns"],
        1e7,
    ),
    (
        "host: page cache to be written back, MB",
        &["memory_dirty_bytes", "memory_writeback_bytes"],
        MIB,
    ),
    ("server: memory, MB", &["server_rss_bytes"], MIB),
    (
        "data and logs on disk, MB",
        &["data_bytes", "log_bytes"],
        MIB,
    ),
    (
        "network: received, MB per second",
        &["network_received_bytes"],
        MIB,
    ),
    ("network: sent, MB per second", &["network_sent_bytes"], MIB),
    (
        "network: packets per second",
        &["network_received_packet_count", "network_sent_packet_count"],
        1.0,
    ),
    (
        "network: TCP retransmits per second",
        &["tcp_retransmit_count"],
        1.0,
    ),
];

/// The cost of an operation: CPU time and I/O of the whole host, divided by the operations.
const COSTS: [(&str, &[&str], f64); 5] = [
    ("CPU of the host for each", &BUSY, 1e3),
    ("context switches for each", &["context_switch_count"], 1.0),
    ("reads for each", &["disk_read_count"], 1.0),
    ("KB read for each", &["disk_read_bytes"], KIB),
    ("KB written for each", &["disk_write_bytes"], KIB),
];

/// Returns the charts of the host and of costs.
pub(super) fn of_row(row: &Row) -> Vec<RowCurve> {
    let busy = sampled(row, busy_pct(row));
    let title = "host: CPU busy, percent of all CPUs";
    let mut all = vec![RowCurve::whole(Place::Host, 0, title, &busy)];
    for (at, (title, columns, divisor)) in DRAWN.into_iter().enumerate() {
        let values = sampled(row, sum(row, columns, divisor));
        all.push(RowCurve::whole(Place::Host, at + 1, title, &values));
    }
    if let Some(done) = done(row) {
        for (at, (title, columns, divisor)) in COSTS.into_iter().enumerate() {
            let unit = if at == 0 { ", \u{b5}s" } else { "" };
            let title = format!("{title} {}{unit}", noun(StepHead::of(row)));
            let values = for_each(&sum(row, columns, divisor), &done);
            all.push(RowCurve::whole(
                Place::Cost,
                at,
                title,
                &sampled(row, values),
            ));
        }
    }
    all
}

/// Returns the operations per second, as the metrics per operation count them; `None` for steps without.
fn done(row: &Row) -> Option<Vec<Option<f64>>> {
    let op = row.series.ops.get(row.main_op.as_deref()?)?;
    let (done, each) = match row.kind {
        StepKind::Load => (&op.rows, 1.0),
        StepKind::Query => (&op.ok, row.queries_per_event.unwrap_or(1.0)),
        StepKind::Index | StepKind::Settle => return None,
    };
    let rates = rates(row, counts(done));
    Some(
        rates
            .into_iter()
            .map(|rate| rate.map(|rate| rate * each))
            .collect(),
    )
}

/// Divides the cost of each second by its operations; `None` without operations.
fn for_each(cost: &[Option<f64>], done: &[Option<f64>]) -> Vec<Option<f64>> {
    cost.iter()
        .zip(done)
        .map(|(cost, done)| Some((*cost)? / (*done)?).filter(|each| each.is_finite()))
        .collect()
}

fn busy_pct(row: &Row) -> Vec<Option<f64>> {
    let busy = sum(row, &BUSY, 1.0);
    let rest = sum(row, &REST, 1.0);
    busy.iter()
        .zip(&rest)
        .map(|(busy, rest)| match ((*busy)?, (*rest)?) {
            (busy, rest) if busy + rest > 0.0 => Some(busy / (busy + rest) * 100.0),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::seconds::tests::row;

    #[test]
    fn busy_is_a_share_of_all_time_of_all_cpus() {
        let row = row(&[
            ("cpu_user_ns", &[Some(3e8), None]),
            ("cpu_system_ns", &[Some(1e8), Some(1e8)]),
            ("cpu_idle_ns", &[Some(1.2e9), Some(1.0)]),
        ]);
        assert_eq!(busy_pct(&row), [Some(25.0), None]);
    }

    #[test]
    fn a_second_without_work_has_no_cost_per_operation() {
        let switches = [Some(30.0), Some(50.0), Some(60.0)];
        let mut row = row(&[("context_switch_count", &switches)]);
        // Ten rows in half a second are twenty per second, as sixty switches are.
        row.seconds = 2.5;
        let op = analysis::OpSeries {
            rows: vec![10, 0, 10],
            ..Default::default()
        };
        row.series.ops.insert("insert".into(), op);
        let all = of_row(&row);
        let wanted = "context switches for each row inserted";
        let cost = all.iter().find(|drawn| drawn.title == wanted).unwrap();
        assert_eq!(cost.whole.points[0], 3.0);
        assert!(cost.whole.points[1].is_nan());
        assert_eq!(cost.whole.points[2], 3.0);
    }

    #[test]
    fn missing_columns_give_no_curve_of_shares() {
        assert!(busy_pct(&row(&[("cpu_user_ns", &[Some(1.0)])])).is_empty());
    }
}
