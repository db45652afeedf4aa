//! Which charts a step has, and what is on them.

use analysis::{OpSeries, Row};

use crate::classic;
use crate::html::series::{Chart, Curve};
use crate::matrix::{Line, Matrix, StepHead};

/// Bytes in a megabyte, as the metrics count them.
const MIB: f64 = 1_048_576.0;

/// What the load did, second by second: throughput and the worst times of each kind of operation.
pub(crate) fn of_load(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for kind in classic::kinds(matrix, step) {
        let rows = matches!(kind, "insert" | "delete");
        charts.push(Chart {
            title: if rows {
                format!("{kind}: rows per second")
            } else {
                format!("{kind}: operations per second")
            },
            curves: op_curves(matrix, step, kind, |op| {
                if rows {
                    counts(&op.rows)
                } else {
                    counts(&op.ok)
                }
            }),
            by_client: by_client(matrix, step, kind),
        });
        let milliseconds = |values: &[f64]| values.iter().map(|us| Some(us / 1e3)).collect();
        let scheduled = classic::has_schedule(matrix, step, kind);
        let name = if scheduled { "response time" } else { "time" };
        charts.push(Chart {
            title: format!("{kind}: longest {name} in each second, ms"),
            curves: op_curves(matrix, step, kind, |op| milliseconds(&op.response_us_max)),
            by_client: Vec::new(),
        });
        if scheduled {
            charts.push(Chart {
                title: format!("{kind}: longest service time in each second, ms"),
                curves: op_curves(matrix, step, kind, |op| milliseconds(&op.service_us_max)),
                by_client: Vec::new(),
            });
        }
        let failed = op_curves(matrix, step, kind, |op| counts(&op.failed));
        if failed
            .iter()
            .any(|curve| curve.values.iter().flatten().any(|value| *value > 0.0))
        {
            let title = format!("{kind}: operations that failed in each second");
            charts.push(Chart {
                title,
                curves: failed,
                by_client: Vec::new(),
            });
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

fn counts(values: &[u64]) -> Vec<Option<f64>> {
    values.iter().map(|value| Some(*value as f64)).collect()
}

/// The lines that did the step, each with the colour that it has in the whole report.
fn rows<'m, 'a>(
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
    values: impl Fn(&OpSeries) -> Vec<Option<f64>>,
) -> Vec<Curve> {
    rows(matrix, step)
        .filter_map(|(colour, line, row)| {
            let values = values(row.series.ops.get(kind)?);
            Some(Curve {
                label: matrix.label(line),
                colour,
                values,
            })
        })
        .collect()
}

/// Operations of each client of each line, where there are several clients.
fn by_client<'a>(matrix: &Matrix<'a>, step: StepHead<'a>, kind: &str) -> Vec<Curve> {
    rows(matrix, step)
        .filter_map(|(colour, line, row)| Some((colour, line, row.series.ops.get(kind)?)))
        .filter(|(_, _, op)| op.ok_by_client.len() > 1)
        .flat_map(|(colour, line, op)| {
            let label = matrix.label(line);
            op.ok_by_client
                .iter()
                .enumerate()
                .map(move |(client, ok)| Curve {
                    label: format!("{label} client {}", client + 1),
                    colour,
                    values: counts(ok),
                })
        })
        .collect()
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
            values: values(row),
        })
        .filter(|curve| curve.values.iter().any(Option::is_some))
        .collect();
    Chart {
        title: title.to_string(),
        curves,
        by_client: Vec::new(),
    }
}

/// The sum of columns that are there, divided; a second in which one of them is missing has no value.
fn sum(row: &Row, names: &[&str], divisor: f64) -> Vec<Option<f64>> {
    let columns: Vec<_> = names
        .iter()
        .filter_map(|name| row.series.host.get(*name))
        .collect();
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
mod tests {
    use super::*;

    fn row(columns: &[(&str, &[Option<f64>])]) -> Row {
        Row {
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
            status: record::Status::Complete,
            seconds: 2.0,
            valid: true,
            reasons: Vec::new(),
            ops: Default::default(),
            metrics: Default::default(),
            sla: None,
            fairness: None,
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
    fn a_column_that_is_not_there_is_no_curve_and_not_zero() {
        assert!(sum(&row(&[]), &["disk_read_bytes"], 1.0).is_empty());
        assert!(host_busy_pct(&row(&[("cpu_user_ns", &[Some(1.0)])])).is_empty());
    }
}
