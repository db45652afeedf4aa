//! The tables of steps: one with a line for each step, and one with a line for each metric of each
//! step. Their columns don't depend on the runs.

use std::borrow::Cow;
use std::io::{self, Write};

use analysis::{
    distinct,
    figures::{Fairness, Figures, OpFigures, Percentiles, Row, Sla},
};
use record::{Run, Status, StepKind};
use words::METRICS;

use super::sheet::{Form, Sheet, SheetLine, SheetValue, csv_text, fixed};
use crate::model::matrix::StepHead;
use crate::model::operations::{self, time_of};

/// Formats the table of steps as CSV, as `assay show` prints it.
pub fn csv(run: &Run, figures: &Figures) -> String {
    let rows = figures.rows.iter().chain(&figures.missing);
    csv_text(step_table(rows, &[run], Form::Csv, Vec::new()))
}

/// Writes one line per step of each cell, including settle steps. A row's `run` is an index of
/// `runs`. Returns the sink.
///
/// # Errors
/// Fails if the sink cannot be written.
pub fn step_table<'a, W: Write + Send>(
    rows: impl IntoIterator<Item = &'a Row>,
    runs: &[&Run],
    form: Form,
    sink: W,
) -> io::Result<W> {
    let like = step_line(&Row::default(), runs);
    let mut sheet = Sheet::new(form, "steps", &like, runs, sink)?;
    for row in rows {
        sheet.push(&step_line(row, runs))?;
    }
    sheet.finish()
}

/// Returns the line of a step, with the figures of its main kind of operation.
fn step_line(row: &Row, runs: &[&Run]) -> SheetLine {
    let mut line = of_step(row, runs);
    line.extend(fixed([
        ("main_op", SheetValue::Text(row.main_op.clone())),
        ("queries_per_event", SheetValue::number(row.queries_per_event)),
        ("sla_met", SheetValue::Boolean(row.sla.as_ref().map(|sla| sla.met))),
    ]));

    let main = row.main_op.as_ref().and_then(|kind| row.ops.get(kind));
    let all = figures(row).into_iter().chain(figures_of_kind("main", main));
    line.extend(all.map(|figure| (figure.name, figure.value)));
    line
}

/// Writes one line per applicable metric of each step. Metrics have the same names as in the table
/// of steps; only this table has the metrics of each kind of operation and the reasons of write
/// stalls. Returns the sink.
///
/// # Errors
/// Fails if the sink cannot be written.
pub fn metric_table<'a, W: Write + Send>(
    rows: impl IntoIterator<Item = &'a Row>,
    runs: &[&Run],
    form: Form,
    sink: W,
) -> io::Result<W> {
    let mut like = of_step(&Row::default(), runs);
    like.extend(figure_columns("", "", None));

    let mut sheet = Sheet::new(form, "metrics", &like, runs, sink)?;

    for row in rows {
        // All lines of a step begin with the same columns.
        let mut line = of_step(row, runs);
        let step_column_count = line.len();

        for StepFigure { name, unit, value } in all_figures(row) {
            if let Some(value) = value.as_number() {
                line.truncate(step_column_count);
                line.extend(figure_columns(&name, &unit, Some(value)));
                sheet.push(&line)?;
            }
        }
    }

    sheet.finish()
}

fn figure_columns(metric: &str, unit: &str, value: Option<f64>) -> SheetLine {
    fixed([
        ("metric", SheetValue::text(metric)),
        ("unit", SheetValue::text(unit)),
        ("value", SheetValue::number(value)),
    ])
}

/// Returns all figures of a step: its throughput, its metrics, the reasons of write stalls, and the
/// figures of each kind of operation.
fn all_figures(row: &Row) -> Vec<StepFigure> {
    let throughput = StepFigure {
        name: "throughput".into(),
        unit: operations::unit(StepHead::of(row)).into(),
        value: SheetValue::number(analysis::figures::throughput(row)),
    };

    let mut all = vec![throughput];
    all.extend(figures(row));

    for (reason, count) in row.lsm.iter().flat_map(|lsm| &lsm.stalls) {
        all.push(StepFigure {
            name: format!("write_stall_{}_count", reason.replace('-', "_")).into(),
            unit: "".into(),
            value: SheetValue::number(Some(*count)),
        });
    }

    for (kind, op) in &row.ops {
        all.extend(figures_of_kind(kind, Some(op)));
    }
    all
}

/// Returns the first columns of every table, which identify a run, or several runs together.
pub(crate) fn of_runs(id: &'static str, runs: &[&Run]) -> SheetLine {
    let each = |of: fn(&Run) -> Option<String>| {
        let values = distinct(runs.iter().filter_map(|run| of(run)));
        SheetValue::text(values.join("; "))
    };

    let began = runs.iter().map(|run| run.started_unix_ns).max();

    fixed([
        (id, each(|run| Some(run.id.clone()))),
        ("run_name", each(|run| Some(run.name.clone()))),
        ("started_at", SheetValue::Time(began)),
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
pub(super) fn of_step(row: &Row, runs: &[&Run]) -> SheetLine {
    let run = runs.get(row.run..=row.run).unwrap_or_default();
    let is_measured = row.kind != StepKind::Settle;
    let unit = is_measured.then(|| operations::unit(StepHead::of(row)));

    let mut line = of_runs("run_id", run);

    line.extend(fixed([
        ("target", SheetValue::text(&row.cell.target)),
        ("build", SheetValue::text(&row.build)),
        ("config", SheetValue::text(&row.config)),
        ("engine", SheetValue::text(&row.engine)),
        ("engine_version", SheetValue::text(&row.engine_version)),
        ("workload", SheetValue::text(&row.workload)),
        ("variant", SheetValue::Text(row.cell.variant.clone())),
        ("clients", SheetValue::count(row.cell.clients)),
        ("repeat", SheetValue::count(row.cell.repeat)),
        ("step", SheetValue::text(&row.step)),
        ("step_group", SheetValue::Text(row.group.clone())),
        ("kind", SheetValue::text(kind_name(row.kind))),
        ("reported", SheetValue::Boolean(Some(row.reported))),
        ("status", SheetValue::text(status_name(row.status))),
        ("valid", SheetValue::Boolean(Some(row.valid))),
        ("reasons", SheetValue::text(row.reasons.join("; "))),
        ("throughput", SheetValue::number(analysis::figures::throughput(row))),
        ("throughput_unit", SheetValue::Text(unit)),
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

/// A figure of a step.
struct StepFigure {
    name: Cow<'static, str>,
    unit: Cow<'static, str>,
    value: SheetValue,
}

/// Returns the figures that every step may have.
fn figures(row: &Row) -> Vec<StepFigure> {
    let sla = |value: fn(&Sla) -> f64| SheetValue::number(row.sla.as_ref().map(value));
    let ends = |value: fn(&Fairness) -> f64| SheetValue::number(row.fairness.as_ref().map(value));

    let own = [
        ("elapsed_s", "s", SheetValue::number(Some(row.seconds))),
        ("sla_target_rows_per_s", "/s", sla(|sla| sla.target)),
        ("sla_achieved_rows_per_s", "/s", sla(|sla| sla.achieved)),
        ("fairness_fastest_s", "s", ends(|fairness| fairness.fastest_seconds)),
        ("fairness_slowest_s", "s", ends(|fairness| fairness.slowest_seconds)),
        ("fairness_apart_s", "s", ends(|fairness| fairness.abs_seconds)),
        ("fairness_apart_pct", "%", ends(|fairness| fairness.pct)),
    ];

    let metrics = METRICS
        .iter()
        .map(|metric| (metric.column, metric.unit, SheetValue::number(row.metric(metric.name))));

    own.into_iter()
        .chain(metrics)
        .map(|(name, unit, value)| StepFigure { name: name.into(), unit: unit.into(), value })
        .collect()
}

/// Returns the figures of a kind of operation; their names begin with `kind`.
fn figures_of_kind(kind: &str, op: Option<&OpFigures>) -> Vec<StepFigure> {
    let count = |value: fn(&OpFigures) -> u64| SheetValue::Integer(op.map(value));
    let rate = |value: fn(&OpFigures) -> f64| SheetValue::number(op.map(value));
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

    let mut figures = Vec::new();
    for (name, unit, value) in own {
        let name = format!("{kind}_{name}").into();
        figures.push(StepFigure { name, unit: unit.into(), value });
    }

    for time in ["service", "response"] {
        for percentile in Percentiles::NAMES {
            let latency = format!("{time}_us_{}", percentile.replace('.', "_"));
            figures.push(StepFigure {
                name: format!("{kind}_{latency}").into(),
                unit: "us".into(),
                value: SheetValue::number(op.and_then(|op| time_of(op, &latency))),
            });
        }
    }
    figures
}
