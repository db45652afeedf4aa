//! The tables of steps: one with a line for each step, and one with a line for each metric of each
//! step. Their columns don't depend on the runs.

use std::borrow::Cow;
use std::io::{self, Write};

use analysis::distinct;
use analysis::figures::{Fairness, Figures, OpFigures, Row, Sla};
use record::{Run, Status, StepKind};
use words::METRICS;

use super::sheet::{Form, Line, Sheet, Value, csv_text, fixed};
use crate::matrix::StepHead;
use crate::operations::{self, PERCENTILES, time_of};

/// Formats the table of steps as CSV, as `assay show` prints it.
pub fn csv(run: &Run, figures: &Figures) -> String {
    let rows = figures.rows.iter().chain(&figures.missing);
    csv_text(step_table(rows, &[run], Form::Csv, Vec::new()))
}

/// Writes one line per step of each cell, including settle steps. A row's `run` is an index of
/// `runs`. Returns the sink.
///
/// # Errors
/// Fails if the sink can't be written.
pub fn step_table<'a, W: Write + Send>(
    rows: impl IntoIterator<Item = &'a Row>,
    runs: &[&Run],
    form: Form,
    sink: W,
) -> io::Result<W> {
    let line = |row: &Row| {
        let mut line = of_step(row, runs);
        line.extend(fixed([
            ("main_op", Value::Text(row.main_op.clone())),
            ("queries_per_event", Value::number(row.queries_per_event)),
            ("sla_met", Value::Boolean(row.sla.as_ref().map(|sla| sla.met))),
        ]));
        let main = row.main_op.as_ref().and_then(|kind| row.ops.get(kind));
        let figures = figures(row).chain(of_kind("main", main));
        line.extend(figures.map(|(name, _, value)| (name, value)));
        line
    };
    let mut sheet = Sheet::new(form, "steps", &line(&Row::default()), runs, sink)?;
    for row in rows {
        sheet.push(&line(row))?;
    }
    sheet.finish()
}

/// Writes one line per applicable metric of each step. Metrics have the same names as in the table
/// of steps; only this table has the metrics of each kind of operation and the reasons of write
/// stalls. Returns the sink.
///
/// # Errors
/// Fails if the sink can't be written.
pub fn metric_table<'a, W: Write + Send>(
    rows: impl IntoIterator<Item = &'a Row>,
    runs: &[&Run],
    form: Form,
    sink: W,
) -> io::Result<W> {
    let figure = |metric: &str, unit: &str, value: Option<f64>| {
        fixed([
            ("metric", Value::text(metric)),
            ("unit", Value::text(unit)),
            ("value", Value::number(value)),
        ])
    };
    let mut like = of_step(&Row::default(), runs);
    like.extend(figure("", "", None));
    let mut sheet = Sheet::new(form, "metrics", &like, runs, sink)?;
    for row in rows {
        let mut line = of_step(row, runs);
        let of_step = line.len();
        let throughput = Value::number(analysis::figures::throughput(row));
        let unit = operations::unit(StepHead::of(row)).into();
        let throughput = ("throughput".into(), unit, throughput);
        let stalls = row.lsm.iter().flat_map(|lsm| &lsm.stalls);
        let stalls = stalls.map(|(reason, count)| {
            let name = format!("write_stall_{}_count", reason.replace('-', "_"));
            (name.into(), "".into(), Value::number(Some(*count)))
        });
        let kinds = row.ops.iter();
        let kinds = kinds.flat_map(|(kind, op)| of_kind(kind, Some(op)));
        let all = std::iter::once(throughput).chain(figures(row));
        for (name, unit, value) in all.chain(stalls).chain(kinds) {
            if let Some(value) = value.as_number() {
                line.truncate(of_step);
                line.extend(figure(&name, &unit, Some(value)));
                sheet.push(&line)?;
            }
        }
    }
    sheet.finish()
}

/// Returns the first columns of every table, which identify a run, or several runs together.
pub(crate) fn of_runs(id: &'static str, runs: &[&Run]) -> Line {
    let each = |of: fn(&Run) -> Option<String>| {
        let values = distinct(runs.iter().filter_map(|run| of(run)));
        Value::text(values.join("; "))
    };
    let began = runs.iter().map(|run| run.started_unix_ns).max();
    fixed([
        (id, each(|run| Some(run.id.clone()))),
        ("run_name", each(|run| Some(run.name.clone()))),
        ("started_at", Value::Time(began)),
        ("host", each(|run| fact(run, "host_id"))),
        ("cpu_model", each(|run| fact(run, "cpu_model"))),
        ("assay_version", each(|run| Some(run.assay.to_string()))),
    ])
}

fn fact(run: &Run, name: &str) -> Option<String> {
    run.host.fact(name).map(str::to_owned)
}

/// Returns the next columns of all tables except that of verdicts: the step, its cell, its validity
/// and its throughput.
pub(super) fn of_step(row: &Row, runs: &[&Run]) -> Line {
    let run = runs.get(row.run..=row.run).unwrap_or_default();
    let is_measured = row.kind != StepKind::Settle;
    let unit = is_measured.then(|| operations::unit(StepHead::of(row)));
    let mut line = of_runs("run_id", run);
    line.extend(fixed([
        ("target", Value::text(&row.cell.target)),
        ("build", Value::text(&row.build)),
        ("config", Value::text(&row.config)),
        ("engine", Value::text(&row.engine)),
        ("engine_version", Value::text(&row.engine_version)),
        ("workload", Value::text(&row.workload)),
        ("variant", Value::Text(row.cell.variant.clone())),
        ("clients", Value::count(row.cell.clients)),
        ("repeat", Value::count(row.cell.repeat)),
        ("step", Value::text(&row.step)),
        ("step_group", Value::Text(row.group.clone())),
        ("kind", Value::text(kind_name(row.kind))),
        ("reported", Value::Boolean(Some(row.reported))),
        ("status", Value::text(status_name(row.status))),
        ("valid", Value::Boolean(Some(row.valid))),
        ("reasons", Value::text(row.reasons.join("; "))),
        ("throughput", Value::number(analysis::figures::throughput(row))),
        ("throughput_unit", Value::Text(unit)),
    ]));
    line
}

/// Returns the kind of a step as in the record.
fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Load => "load",
        StepKind::Index => "index",
        StepKind::Query => "query",
        StepKind::Settle => "settle",
    }
}

/// Returns the status of a step as in the record.
fn status_name(status: Status) -> &'static str {
    match status {
        Status::Incomplete => "incomplete",
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
    }
}

/// A figure of a step: its name, its unit and its value.
type Figure = (Cow<'static, str>, Cow<'static, str>, Value);

/// Returns the figures that every step may have.
fn figures(row: &Row) -> impl Iterator<Item = Figure> {
    let sla = |of: fn(&Sla) -> f64| Value::number(row.sla.as_ref().map(of));
    let ends = |of: fn(&Fairness) -> f64| Value::number(row.fairness.as_ref().map(of));
    let own = [
        ("elapsed_s", "s", Value::number(Some(row.seconds))),
        ("sla_target_rows_per_s", "/s", sla(|sla| sla.target)),
        ("sla_achieved_rows_per_s", "/s", sla(|sla| sla.achieved)),
        ("fairness_fastest_s", "s", ends(|of| of.fastest_seconds)),
        ("fairness_slowest_s", "s", ends(|of| of.slowest_seconds)),
        ("fairness_apart_s", "s", ends(|of| of.abs_seconds)),
        ("fairness_apart_pct", "%", ends(|of| of.pct)),
    ];
    let metrics = METRICS.iter();
    let metrics = metrics.map(|metric| {
        let value = Value::number(row.metric(metric.name));
        (metric.column, metric.unit, value)
    });
    let all = own.into_iter().chain(metrics);
    all.map(|(name, unit, value)| (name.into(), unit.into(), value))
}

/// Returns the figures of a kind of operation; their names begin with `kind`.
fn of_kind(kind: &str, op: Option<&OpFigures>) -> impl Iterator<Item = Figure> {
    let count = |of: fn(&OpFigures) -> u64| Value::Integer(op.map(of));
    let rate = |of: fn(&OpFigures) -> f64| Value::number(op.map(of));
    let own = [
        ("offered_count", "", count(|op| op.offered)),
        ("skipped_count", "", count(|op| op.skipped)),
        ("ok_count", "", count(|op| op.count)),
        ("failed_count", "", count(|op| op.failed)),
        ("retried_count", "", count(|op| op.retried)),
        ("row_count", "", count(|op| op.rows)),
        ("per_s", "/s", rate(|op| op.per_second)),
        ("rows_per_s", "rows/s", rate(|op| op.rows_per_second)),
    ];
    let own = own.map(|(name, unit, value)| (format!("{kind}_{name}").into(), unit.into(), value));
    let times = ["service", "response"].into_iter().flat_map(|time| {
        PERCENTILES.map(|percentile| {
            let name = format!("{time}_us_{}", percentile.replace('.', "_"));
            let value = Value::number(op.and_then(|op| time_of(op, &name)));
            (format!("{kind}_{name}").into(), "us".into(), value)
        })
    });
    own.into_iter().chain(times.collect::<Vec<_>>())
}
