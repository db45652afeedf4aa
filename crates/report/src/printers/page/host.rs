//! The charts of the host, its network and the server in one row, second by second, and of the cost
//! of an operation.

use analysis::figures::Row;
use record::StepKind;

use crate::model::matrix::StepHead;
use crate::model::operations::noun;
use crate::printers::page::curve::{ChartPlace, Curve, RowCurve};
use crate::printers::page::seconds::{
    HostColumns, MIB, added, counts, rates, sampled, sum, sum_of,
};

const KIB: f64 = 1024.0;

/// CPU time of the host that counts as busy, as in the metric `cpups`: user and system, but not
/// idle, waiting for I/O, or stolen by a hypervisor.
const BUSY: [&str; 5] =
    ["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns", "cpu_irq_ns", "cpu_softirq_ns"];

/// All other CPU time.
const REST: [&str; 3] = ["cpu_idle_ns", "cpu_iowait_ns", "cpu_steal_ns"];

/// The charts: a title, the columns to add, and the divisor.
const DRAWN: [(&str, &[&str], f64); 16] = [
    ("server: CPU, percent of one CPU", &["server_cpu_user_ns", "server_cpu_system_ns"], 1e7),
    ("assay: CPU, percent of one CPU", &["assay_cpu_ns"], 1e7),
    ("read, MB per second", &["disk_read_bytes"], MIB),
    ("written, MB per second", &["disk_write_bytes"], MIB),
    ("reads per second", &["disk_read_count"], 1.0),
    ("writes per second", &["disk_write_count"], 1.0),
    ("context switches per second", &["context_switch_count"], 1.0),
    ("cache flushes per second", &["disk_flush_count"], 1.0),
    ("host: some thread waited for I/O, percent of time", &["pressure_io_some_ns"], 1e7),
    (
        "host: page cache to be written back, MB",
        &["memory_dirty_bytes", "memory_writeback_bytes"],
        MIB,
    ),
    ("server: memory, MB", &["server_rss_bytes"], MIB),
    ("data and logs on disk, MB", &["data_bytes", "log_bytes"], MIB),
    ("network: received, MB per second", &["network_received_bytes"], MIB),
    ("network: sent, MB per second", &["network_sent_bytes"], MIB),
    (
        "network: packets per second",
        &["network_received_packet_count", "network_sent_packet_count"],
        1.0,
    ),
    ("network: TCP retransmits per second", &["tcp_retransmit_count"], 1.0),
];

/// The charts of client hosts after that of their CPU.
const OF_CLIENT_HOSTS: [(&str, &[&str], f64); 4] = [
    ("client hosts: context switches per second", &["context_switch_count"], 1.0),
    ("client hosts: received, MB per second", &["network_received_bytes"], MIB),
    ("client hosts: sent, MB per second", &["network_sent_bytes"], MIB),
    ("client hosts: TCP retransmits per second", &["tcp_retransmit_count"], 1.0),
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
    let mut all = of_host(row);
    all.extend(of_client_hosts(row));
    all.extend(of_costs(row));
    all
}

fn of_host(row: &Row) -> Vec<RowCurve> {
    let busy = sampled(row, busy_pct(&row.series.host));
    let title = "host: CPU busy, percent of all CPUs";
    let mut all = vec![RowCurve::whole(ChartPlace::Host, 0, title, &busy)];
    for (at, (title, columns, divisor)) in DRAWN.into_iter().enumerate() {
        let values = sampled(row, sum(row, columns, divisor));
        all.push(RowCurve::whole(ChartPlace::Host, at + 1, title, &values));
    }
    all
}

/// Returns the charts of costs; none for steps without operations.
fn of_costs(row: &Row) -> Vec<RowCurve> {
    let Some(done) = done(row) else {
        return Vec::new();
    };

    let mut all = Vec::new();
    for (at, (title, columns, divisor)) in COSTS.into_iter().enumerate() {
        let unit = if at == 0 { ", \u{b5}s" } else { "" };
        let title = format!("{title} {}{unit}", noun(StepHead::of(row)));
        let values = for_each(&sum(row, columns, divisor), &done);
        all.push(RowCurve::whole(ChartPlace::Cost, at, title, &sampled(row, values)));
    }

    all
}

/// Returns the operations per second, as the metrics per operation count them; `None` for steps
/// without.
fn done(row: &Row) -> Option<Vec<Option<f64>>> {
    let op = row.series.ops.get(row.main_op.as_deref()?)?;
    let (counted, each) = match row.kind {
        StepKind::Load => (&op.rows, 1.0),
        StepKind::Query => (&op.ok, row.queries_per_event.unwrap_or(1.0)),
        StepKind::Index | StepKind::Settle => return None,
    };
    let rates = rates(row, counts(counted));
    Some(rates.into_iter().map(|rate| rate.map(|rate| rate * each)).collect())
}

/// Divides the cost of each second by its operations; `None` without operations.
fn for_each(cost: &[Option<f64>], done: &[Option<f64>]) -> Vec<Option<f64>> {
    cost.iter()
        .zip(done)
        .map(|(cost, done)| Some((*cost)? / (*done)?).filter(|each| each.is_finite()))
        .collect()
}

/// Returns the charts of client hosts, with a curve for each if there are several.
fn of_client_hosts(row: &Row) -> Vec<RowCurve> {
    let title = "client hosts: CPU busy, percent of all CPUs";
    let mut all = vec![of_client_host_figure(row, 0, title, busy_pct)];
    for (at, (title, columns, divisor)) in OF_CLIENT_HOSTS.into_iter().enumerate() {
        let values = |host: &HostColumns| sum_of(host, columns, divisor);
        all.push(of_client_host_figure(row, 1 + at, title, values));
    }
    all
}

fn of_client_host_figure(
    row: &Row,
    order: usize,
    title: &str,
    values: impl Fn(&HostColumns) -> Vec<Option<f64>>,
) -> RowCurve {
    let hosts = &row.series.client_hosts;
    let whole = sampled(row, values(&added_hosts(hosts)));

    let mut parts = Vec::new();
    // A single host is the whole.
    if hosts.len() > 1 {
        for (host, columns) in row.client_hosts.iter().zip(hosts) {
            let curve = Curve::new(&sampled(row, values(columns)));
            parts.push((host.host.clone(), curve));
        }
    }

    RowCurve {
        parts,
        parts_are: "each host",
        ..RowCurve::whole(ChartPlace::Host, 1 + DRAWN.len() + order, title, &whole)
    }
}

/// Returns the sum of each column over all hosts.
fn added_hosts(hosts: &[HostColumns]) -> HostColumns {
    let mut sums = HostColumns::default();
    for name in hosts.iter().flat_map(|host| host.keys()) {
        let columns = hosts.iter().filter_map(|host| host.get(name)).collect();
        sums.entry(name.clone()).or_insert_with(|| added(columns, 1.0));
    }
    sums
}

fn busy_pct(host: &HostColumns) -> Vec<Option<f64>> {
    let busy = sum_of(host, &BUSY, 1.0);
    let rest = sum_of(host, &REST, 1.0);
    busy.into_iter().zip(rest).map(|(busy, rest)| busy_share_pct(busy?, rest?)).collect()
}

fn busy_share_pct(busy: f64, rest: f64) -> Option<f64> {
    let all = busy + rest;
    (all > 0.0).then(|| busy / all * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;

    #[test]
    fn busy_is_a_share_of_all_time_of_all_cpus() {
        let row = row(&[
            ("cpu_user_ns", &[Some(3e8), None]),
            ("cpu_system_ns", &[Some(1e8), Some(1e8)]),
            ("cpu_idle_ns", &[Some(1.2e9), Some(1.0)]),
        ]);
        assert_eq!(busy_pct(&row.series.host), [Some(25.0), None]);
    }

    #[test]
    fn client_hosts_are_added_and_each_has_a_curve() {
        let columns = |busy, idle, sent| {
            let columns =
                [("cpu_user_ns", busy), ("cpu_idle_ns", idle), ("network_sent_bytes", sent)];
            columns.map(|(name, value)| (name.to_owned(), vec![Some(value), None]))
        };
        let host = |name: &str| analysis::figures::ClientHostFigures {
            host: name.to_owned(),
            ..Default::default()
        };
        let mut row = row(&[]);
        row.client_hosts = ["c1", "c2"].map(host).into();
        row.series.client_hosts =
            vec![columns(1e9, 0.0, MIB).into(), columns(1e9, 2e9, 3.0 * MIB).into()];
        let all = of_row(&row);
        let drawn = |title: &str| {
            let drawn = all.iter().find(|drawn| drawn.title.starts_with(title)).unwrap();
            let parts = drawn.parts.iter().map(|(name, curve)| (name.as_str(), curve.points[0]));
            (drawn.whole.points[0], parts.collect::<Vec<_>>())
        };
        let (whole, parts) = drawn("client hosts: CPU busy");
        assert_eq!((whole, parts), (50.0, vec![("c1", 100.0), ("c2", 100.0 / 3.0)]));
        let (whole, parts) = drawn("client hosts: sent");
        assert_eq!((whole, parts), (4.0, vec![("c1", 1.0), ("c2", 3.0)]));
        row.client_hosts.truncate(1);
        row.series.client_hosts.truncate(1);
        assert!(of_row(&row).iter().all(|drawn| drawn.parts.is_empty()));
    }

    #[test]
    fn a_second_without_work_has_no_cost_per_operation() {
        let switches = [Some(30.0), Some(50.0), Some(60.0)];
        let mut row = row(&[("context_switch_count", &switches)]);
        // Ten rows in half a second are twenty per second, as sixty switches are.
        row.seconds = 2.5;
        let op = analysis::figures::OpSeries { rows: vec![10, 0, 10], ..Default::default() };
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
        assert!(busy_pct(&row(&[("cpu_user_ns", &[Some(1.0)])]).series.host).is_empty());
    }
}
