//! The charts of the load in one row, second by second.

use analysis::figures::{OpSeries, Row};
use words::OpChart;

use crate::model::operations::rate_title;
use crate::printers::page::curve::{ChartPlace, Curve, RowCurve};
use crate::printers::page::seconds::{counts, rates, sampled};

/// Returns the throughput and the longest latencies of each kind of operation.
pub(super) fn of_row(row: &Row) -> Vec<RowCurve> {
    let mut all = Vec::new();
    for (kind, op) in &row.series.ops {
        if !row.role_of(kind).facts().is_bookkeeping {
            add_kind(&mut all, row, kind, op);
        }
    }
    all
}

/// Adds the charts of one kind of operation. Each kind has four ranks, so that its charts are
/// together.
fn add_kind(all: &mut Vec<RowCurve>, row: &Row, kind: &str, op: &OpSeries) {
    let role = row.role_of(kind);
    let order = 4 * role.facts().place;

    let counts_rows = role.facts().charted == OpChart::Rows;
    let done = if counts_rows { &op.rows } else { &op.ok };
    let rates = rates(row, counts(done));

    all.push(RowCurve {
        parts: by_client(row, op, counts_rows),
        parts_are: "each client",
        ..RowCurve::whole(ChartPlace::Load, order, rate_title(kind, role), &rates)
    });

    // Without a schedule both times are equal.
    let is_scheduled = row.ops.get(kind).is_some_and(|op| op.scheduled);
    let mut times = vec![(1, "response", &op.response_us_max)];
    if is_scheduled {
        times.push((2, "service", &op.service_us_max));
    }

    for (after, time, us_max) in times {
        let title = format!("{kind}: longest {time} time in each second, ms");
        all.push(RowCurve {
            logarithmic: true,
            ..RowCurve::whole(
                ChartPlace::Load,
                order + after,
                title,
                &sampled(row, longest(op, us_max)),
            )
        });
    }

    if op.failed.iter().any(|failed| *failed > 0) {
        let title = format!("{kind}: operations that failed in each second");
        all.push(RowCurve::whole(ChartPlace::Load, order + 3, title, &counts(&op.failed)));
    }
}

/// Returns the longest latency of each second in milliseconds. A second without completed
/// operations has none, since zero would look best.
fn longest(op: &OpSeries, us_max: &[f64]) -> Vec<Option<f64>> {
    op.ok.iter().zip(us_max).map(|(ok, us)| (*ok > 0).then_some(us / 1e3)).collect()
}

/// Returns the rows or operations of each client, if several clients executed any.
fn by_client(row: &Row, op: &OpSeries, of_rows: bool) -> Vec<(String, Curve)> {
    let clients = if of_rows { &op.rows_by_client } else { &op.ok_by_client };
    // A single connection may do work that is not divided among clients, such as writing while
    // others read.
    let busy = clients.iter().filter(|done| done.iter().any(|&done| done > 0));
    if busy.count() < 2 {
        return Vec::new();
    }

    let curve = |(client, done): (usize, &Vec<u64>)| {
        let values = rates(row, counts(done));
        (format!("client {}", client + 1), Curve::new(&values))
    };
    clients.iter().enumerate().map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;

    #[test]
    fn a_second_without_work_has_no_longest_time() {
        let op = OpSeries {
            ok: vec![2, 0, 1],
            response_us_max: vec![1500.0, 0.0, 2000.0],
            ..OpSeries::default()
        };
        assert_eq!(longest(&op, &op.response_us_max), [Some(1.5), None, Some(2.0)]);
    }

    #[test]
    fn a_last_second_that_is_too_short_has_no_longest_time() {
        let mut row = row(&[]);
        row.seconds = 1.05;
        let op = OpSeries {
            rows: vec![2, 1],
            ok: vec![2, 1],
            failed: vec![0, 0],
            response_us_max: vec![1500.0, 10.0],
            ..OpSeries::default()
        };
        row.series.ops.insert("insert".into(), op);
        let drawn = of_row(&row);
        assert_eq!(drawn[1].whole.points[0], 1.5);
        assert!(drawn[1].whole.points[1].is_nan(), "{:?}", drawn[1].whole.points);
    }

    #[test]
    fn clients_are_parts_of_their_row_unless_there_is_only_one() {
        let mut row = row(&[]);
        let mut op = OpSeries {
            ok: vec![2, 0],
            rows: vec![20, 0],
            failed: vec![0, 0],
            service_us_max: vec![1.0, 0.0],
            response_us_max: vec![1.0, 0.0],
            ok_by_client: vec![vec![1, 0], vec![1, 0]],
            rows_by_client: vec![vec![10, 0], vec![10, 0]],
        };
        row.series.ops.insert("insert".into(), op.clone());
        row.series.ops.insert("get_min".into(), op.clone());
        let drawn = of_row(&row);
        let titles: Vec<_> = drawn.iter().map(|drawn| drawn.title.as_str()).collect();
        assert_eq!(
            titles,
            ["insert: rows per second", "insert: longest response time in each second, ms"]
        );
        assert_eq!(drawn[0].whole.points, [20.0, 0.0]);
        assert_eq!(drawn[0].parts[1].0, "client 2");
        assert_eq!(drawn[0].parts[1].1.points, [10.0, 0.0]);
        op.ok_by_client[1] = vec![0, 0];
        op.rows_by_client[1] = vec![0, 0];
        row.series.ops.insert("insert".into(), op);
        assert!(of_row(&row)[0].parts.is_empty());
    }
}
