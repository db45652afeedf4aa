//! The charts of the load and of the host.

use analysis::{OpSeries, Row};

use crate::html::series::{Chart, Curve};
use crate::matrix::{Line, Matrix, StepHead};
use crate::operations::{counts_rows, kinds_apart, rate_title};
use crate::times;

/// Bytes in a megabyte, as the metrics count them.
pub(super) const MIB: f64 = 1_048_576.0;

/// What the load did, second by second: throughput and the worst times of each kind of operation.
pub(crate) fn of_load(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for kind in kinds_apart(matrix, step).0 {
        let rows = counts_rows(kind);
        let done = |op: &OpSeries| {
            if rows {
                counts(&op.rows)
            } else {
                counts(&op.ok)
            }
        };
        charts.push(Chart {
            title: rate_title(kind),
            curves: op_curves(matrix, step, kind, |row, op| rates(row, done(op))),
            parts: by_client(matrix, step, kind, rows),
            parts_are: "each client",
        });
        charts.push(Chart::whole(
            format!("{kind}: longest response time in each second, ms"),
            op_curves(matrix, step, kind, |_, op| longest(op, &op.response_us_max)),
        ));
        if times::has_schedule(matrix, step, kind) {
            charts.push(Chart::whole(
                format!("{kind}: longest service time in each second, ms"),
                op_curves(matrix, step, kind, |_, op| longest(op, &op.service_us_max)),
            ));
        }
        let failed = op_curves(matrix, step, kind, |_, op| counts(&op.failed));
        if failed
            .iter()
            .any(|curve| curve.values.iter().flatten().any(|value| *value > 0.0))
        {
            let title = format!("{kind}: operations that failed in each second");
            charts.push(Chart::whole(title, failed));
        }
    }
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// What the host did, second by second.
pub(crate) fn of_host(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Chart> {
    let mut charts = vec![
        host_chart(
            matrix,
            step,
            "host: CPU busy, percent of all CPUs",
            host_busy_pct,
        ),
        host_chart(matrix, step, "server: CPU, percent of one CPU", |row| {
            sum(row, &["server_cpu_user_ns", "server_cpu_system_ns"], 1e7)
        }),
        host_chart(matrix, step, "assay: CPU, percent of one CPU", |row| {
            sum(row, &["assay_cpu_ns"], 1e7)
        }),
        host_chart(matrix, step, "read, MB per second", |row| {
            sum(row, &["disk_read_bytes"], MIB)
        }),
        host_chart(matrix, step, "written, MB per second", |row| {
            sum(row, &["disk_write_bytes"], MIB)
        }),
        host_chart(matrix, step, "reads per second", |row| {
            sum(row, &["disk_read_count"], 1.0)
        }),
        host_chart(matrix, step, "writes per second", |row| {
            sum(row, &["disk_write_count"], 1.0)
        }),
        host_chart(matrix, step, "context switches per second", |row| {
            sum(row, &["context_switch_count"], 1.0)
        }),
        host_chart(matrix, step, "cache flushes per second", |row| {
            sum(row, &["disk_flush_count"], 1.0)
        }),
        host_chart(
            matrix,
            step,
            "host: some thread waited for I/O, percent of time",
            |row| sum(row, &["pressure_io_some_ns"], 1e7),
        ),
        host_chart(
            matrix,
            step,
            "host: page cache to be written back, MB",
            |row| sum(row, &["memory_dirty_bytes", "memory_writeback_bytes"], MIB),
        ),
        host_chart(matrix, step, "server: memory, MB", |row| {
            sum(row, &["server_rss_bytes"], MIB)
        }),
        host_chart(matrix, step, "data and logs on disk, MB", |row| {
            sum(row, &["data_bytes", "log_bytes"], MIB)
        }),
    ];
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// The longest time of each second in milliseconds. A second in which nothing was completed has none: zero would look
/// like the best.
fn longest(op: &OpSeries, us_max: &[f64]) -> Vec<Option<f64>> {
    op.ok
        .iter()
        .zip(us_max)
        .map(|(ok, us)| (*ok > 0).then_some(us / 1e3))
        .collect()
}

/// The shortest last second that is drawn: of a shorter one a rate says nothing.
const LAST_SECOND_MIN: f64 = 0.1;

/// How much of its last second a step lasted, if that was not the whole.
fn last_second(row: &Row, seconds: usize) -> Option<f64> {
    let part = row.seconds - (seconds.checked_sub(1)? as f64);
    (part > 0.0 && part < 1.0).then_some(part)
}

/// What was done in each second, as rates: a last second that is not whole is scaled to one, so that the end of a step
/// doesn't look like a drop.
fn rates(row: &Row, mut done: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let part = last_second(row, done.len());
    if let (Some(part), Some(last)) = (part, done.last_mut()) {
        let long_enough = part >= LAST_SECOND_MIN;
        *last = last.filter(|_| long_enough).map(|count| count / part);
    }
    done
}

/// What was sampled in each second, without a last second that is too short.
pub(super) fn sampled(row: &Row, mut values: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let short = last_second(row, values.len()).is_some_and(|part| part < LAST_SECOND_MIN);
    if let (true, Some(last)) = (short, values.last_mut()) {
        *last = None;
    }
    values
}

fn counts(values: &[u64]) -> Vec<Option<f64>> {
    values.iter().map(|value| Some(*value as f64)).collect()
}

/// The lines that did the step, each with the colour that it has in the whole report.
pub(super) fn rows<'m, 'a>(
    matrix: &'m Matrix<'a>,
    step: StepHead<'a>,
) -> impl Iterator<Item = (usize, &'m Line<'a>, &'a Row)> {
    matrix
        .lines
        .iter()
        .enumerate()
        .filter_map(move |(colour, line)| Some((colour, line, line.row(step.name)?)))
}

fn op_curves<'a>(
    matrix: &Matrix<'a>,
    step: StepHead<'a>,
    kind: &str,
    values: impl Fn(&Row, &OpSeries) -> Vec<Option<f64>>,
) -> Vec<Curve> {
    rows(matrix, step)
        .filter_map(|(colour, line, row)| {
            let values = values(row, row.series.ops.get(kind)?);
            Some(Curve {
                label: matrix.label(line),
                colour,
                values,
            })
        })
        .collect()
}

/// Rows or operations of each client of each line, where there are several clients.
fn by_client<'a>(matrix: &Matrix<'a>, step: StepHead<'a>, kind: &str, of_rows: bool) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (colour, line, row) in rows(matrix, step) {
        let Some(op) = row.series.ops.get(kind) else {
            continue;
        };
        let clients = if of_rows {
            &op.rows_by_client
        } else {
            &op.ok_by_client
        };
        // One connection alone may do what is not divided among clients, such as write beside their reads.
        let busy = clients
            .iter()
            .filter(|done| done.iter().any(|&done| done > 0));
        if busy.count() < 2 {
            continue;
        }
        let label = matrix.label(line);
        curves.extend(clients.iter().enumerate().map(|(client, done)| Curve {
            label: format!("{label} client {}", client + 1),
            colour,
            values: rates(row, counts(done)),
        }));
    }
    curves
}

fn host_chart<'a>(
    matrix: &Matrix<'a>,
    step: StepHead<'a>,
    title: &str,
    values: impl Fn(&Row) -> Vec<Option<f64>>,
) -> Chart {
    let curves = rows(matrix, step)
        .map(|(colour, line, row)| Curve {
            label: matrix.label(line),
            colour,
            values: sampled(row, values(row)),
        })
        .filter(|curve| curve.values.iter().any(Option::is_some))
        .collect();
    Chart::whole(title, curves)
}

/// The sum of columns that are there, divided; a second in which one of them is missing has no value.
fn sum(row: &Row, names: &[&str], divisor: f64) -> Vec<Option<f64>> {
    let columns = names.iter().filter_map(|name| row.series.host.get(*name));
    added(columns.collect(), divisor)
}

pub(super) fn added(columns: Vec<&Vec<Option<f64>>>, divisor: f64) -> Vec<Option<f64>> {
    let Some(seconds) = columns.iter().map(|column| column.len()).max() else {
        return Vec::new();
    };
    (0..seconds)
        .map(|second| {
            let values = columns
                .iter()
                .map(|column| column.get(second).copied().flatten());
            values.sum::<Option<f64>>().map(|value| value / divisor)
        })
        .collect()
}

/// Busy is user and system, as in the metric `cpups`: not idle, not waiting for IO, not stolen by a hypervisor.
fn host_busy_pct(row: &Row) -> Vec<Option<f64>> {
    const BUSY: [&str; 5] = [
        "cpu_user_ns",
        "cpu_nice_ns",
        "cpu_system_ns",
        "cpu_irq_ns",
        "cpu_softirq_ns",
    ];
    const REST: [&str; 3] = ["cpu_idle_ns", "cpu_iowait_ns", "cpu_steal_ns"];
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
pub(super) mod tests {
    use super::*;

    pub(in crate::html) fn row(columns: &[(&str, &[Option<f64>])]) -> Row {
        Row {
            run: 0,
            target: "a.b".into(),
            build: "a".into(),
            config: "b".into(),
            engine: "null".into(),
            engine_version: "1".into(),
            workload: "insert".into(),
            variant: None,
            clients: 1,
            repeat: 1,
            step: "l.i0".into(),
            kind: record::StepKind::Load,
            main_op: Some("insert".into()),
            queries_per_event: None,
            group: None,
            reported: true,
            status: record::Status::Complete,
            seconds: 2.0,
            valid: true,
            reasons: Vec::new(),
            ops: Default::default(),
            metrics: Default::default(),
            lsm: None,
            sla: None,
            fairness: None,
            quality: None,
            settled: None,
            counters: Default::default(),
            series: analysis::Series {
                host: columns
                    .iter()
                    .map(|(name, values)| (name.to_string(), values.to_vec()))
                    .collect(),
                ..Default::default()
            },
            warnings: Vec::new(),
        }
    }

    #[test]
    fn busy_is_a_share_of_all_time_of_all_cpus() {
        let row = row(&[
            ("cpu_user_ns", &[Some(3e8), None]),
            ("cpu_system_ns", &[Some(1e8), Some(1e8)]),
            ("cpu_idle_ns", &[Some(1.2e9), Some(1.0)]),
        ]);
        assert_eq!(host_busy_pct(&row), [Some(25.0), None]);
    }

    #[test]
    fn a_last_second_that_is_not_whole_is_no_drop() {
        let mut row = row(&[]);
        let of = |row: &Row| rates(row, counts(&[100, 0, 25]));
        row.seconds = 3.0;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), Some(25.0)]);
        row.seconds = 2.25;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), Some(100.0)]);
        assert_eq!(sampled(&row, counts(&[1, 2, 3])), counts(&[1, 2, 3]));
        row.seconds = 2.0625;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), None]);
        assert_eq!(
            sampled(&row, counts(&[1, 2, 3])),
            [Some(1.0), Some(2.0), None]
        );
    }

    #[test]
    fn a_second_without_work_has_no_longest_time() {
        let op = OpSeries {
            ok: vec![2, 0, 1],
            response_us_max: vec![1500.0, 0.0, 2000.0],
            ..OpSeries::default()
        };
        assert_eq!(
            longest(&op, &op.response_us_max),
            [Some(1.5), None, Some(2.0)]
        );
    }

    #[test]
    fn a_column_that_is_not_there_is_no_curve_and_not_zero() {
        assert!(sum(&row(&[]), &["disk_read_bytes"], 1.0).is_empty());
        assert!(host_busy_pct(&row(&[("cpu_user_ns", &[Some(1.0)])])).is_empty());
    }
}
