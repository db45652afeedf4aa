//! The table of steps: one line per step of each cell.

use std::collections::BTreeSet;
use std::io::{self, Write};

use analysis::{Figures, OpFigures, Percentiles, Row};
use record::{ColumnSpec, ColumnType, Status, StepKind};
use words::{METRICS, Metric};

use super::sheet::{About, Form, Sheet, Value, column};

/// The table as CSV, as `assay show` prints it: without the runs' names.
pub fn csv(figures: &Figures) -> String {
    let about = About {
        runs: &[],
        assay_version: "",
    };
    let bytes = step_table(
        figures.rows.iter().chain(&figures.missing),
        &about,
        Form::Csv,
        Vec::new(),
    )
    .expect("memory takes what is written");
    String::from_utf8(bytes).expect("only text was written")
}

/// Writes one line per step of each cell, settle steps included; what it was written into. Units are in the names of the
/// columns. Which columns there are depends on the kinds of operation and metrics that occur.
///
/// # Errors
/// The sink can't be written.
pub fn step_table<'a, W: Write + Send>(
    rows: impl IntoIterator<Item = &'a Row>,
    about: &About<'_>,
    form: Form,
    sink: W,
) -> io::Result<W> {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let parts = Parts::of(&rows);
    let has_names = !about.runs.is_empty();
    let columns = parts.columns(has_names);
    let mut sheet = Sheet::new(form, &columns, &about.notes("steps"), sink)?;
    for row in rows {
        let name = has_names.then(|| about.run_name(row.run));
        sheet.push(&parts.line(row, name))?;
    }
    sheet.finish()
}

/// The columns that say which step of which cell a line is about.
pub(super) const WHICH: [(&str, ColumnType); 11] = [
    ("target", ColumnType::Text),
    ("build", ColumnType::Text),
    ("config", ColumnType::Text),
    ("engine", ColumnType::Text),
    ("engine_version", ColumnType::Text),
    ("workload", ColumnType::Text),
    ("variant", ColumnType::Text),
    ("clients", ColumnType::Integer),
    ("repeat", ColumnType::Integer),
    ("step", ColumnType::Text),
    ("kind", ColumnType::Text),
];

/// What stands in them.
pub(super) fn which(row: &Row) -> [Value; 11] {
    [
        Value::text(&row.cell.target),
        Value::text(&row.build),
        Value::text(&row.config),
        Value::text(&row.engine),
        Value::text(&row.engine_version),
        Value::text(&row.workload),
        Value::text(row.cell.variant.as_deref().unwrap_or_default()),
        Value::Integer(row.cell.clients.into()),
        Value::Integer(row.cell.repeat.into()),
        Value::text(&row.step),
        Value::text(kind_name(row.kind)),
    ]
}

/// The columns that say what a step's figures are worth.
pub(super) const WORTH: [(&str, ColumnType); 4] = [
    ("reported", ColumnType::Boolean),
    ("status", ColumnType::Text),
    ("valid", ColumnType::Boolean),
    ("reasons", ColumnType::Text),
];

/// What stands in them.
pub(super) fn worth(row: &Row) -> [Value; 4] {
    [
        Value::Boolean(row.reported),
        Value::text(status_name(row.status)),
        Value::Boolean(row.valid),
        Value::text(&row.reasons.join("; ")),
    ]
}

/// The kind of a step as the record has it.
fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Load => "load",
        StepKind::Index => "index",
        StepKind::Query => "query",
        StepKind::Settle => "settle",
    }
}

/// How far a step got as the record has it.
fn status_name(status: Status) -> &'static str {
    match status {
        Status::Incomplete => "incomplete",
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
    }
}

/// What columns depend on.
struct Parts<'a> {
    /// Kinds of operation.
    kinds: BTreeSet<&'a str>,
    metrics: Vec<&'static Metric>,
    /// Reasons of write stalls.
    stalls: BTreeSet<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(rows: &[&'a Row]) -> Self {
        let present: BTreeSet<&str> = rows
            .iter()
            .flat_map(|row| row.metrics.keys().copied())
            .collect();
        let of_trees = rows.iter().filter_map(|row| row.lsm.as_ref());
        Self {
            kinds: rows
                .iter()
                .flat_map(|row| row.ops.keys().map(String::as_str))
                .collect(),
            metrics: METRICS
                .iter()
                .filter(|metric| present.contains(metric.name))
                .collect(),
            stalls: of_trees
                .flat_map(|lsm| lsm.stalls.keys().map(String::as_str))
                .collect(),
        }
    }

    fn columns(&self, has_names: bool) -> Vec<ColumnSpec> {
        use ColumnType::{Boolean, Integer, Number, Text};
        let mut columns = vec![column("run", Integer)];
        columns.extend(has_names.then(|| column("run_name", Text)));
        let named = |(name, holds)| column(name, holds);
        columns.extend(WHICH.map(named));
        let about = [
            ("main_op", Text),
            ("queries_per_event", Number),
            ("group", Text),
        ];
        columns.extend(about.map(named));
        columns.extend(WORTH.map(named));
        let fixed = [
            ("elapsed_s", Number),
            ("sla_target_rows_per_s", Number),
            ("sla_achieved_rows_per_s", Number),
            ("sla_met", Boolean),
            ("fairness_fastest_s", Number),
            ("fairness_slowest_s", Number),
            ("fairness_apart_s", Number),
            ("fairness_apart_pct", Number),
        ];
        columns.extend(fixed.map(named));
        let metrics = self.metrics.iter().map(|metric| metric.column.to_owned());
        let stalls = self.stalls.iter();
        let stalls = stalls.map(|reason| format!("write_stall_{reason}_count"));
        columns.extend(metrics.chain(stalls).map(|name| column(name, Number)));
        for kind in &self.kinds {
            for count in ["offered", "skipped", "ok", "failed", "retried", "row"] {
                columns.push(column(format!("{kind}_{count}_count"), Integer));
            }
            for rate in ["per_s", "rows_per_s"] {
                columns.push(column(format!("{kind}_{rate}"), Number));
            }
            for time in ["service", "response"] {
                for name in PERCENTILES {
                    columns.push(column(format!("{kind}_{time}_us_{name}"), Number));
                }
            }
        }
        columns
    }

    /// The line of a step; with the run's name, if there is such a column.
    fn line(&self, row: &Row, run_name: Option<Value>) -> Vec<Value> {
        let sla = row.sla.as_ref();
        let fairness = row.fairness.as_ref();
        let mut line = vec![Value::Integer(row.run as u64 + 1)];
        line.extend(run_name);
        line.extend(which(row));
        line.extend([
            Value::text(row.main_op.as_deref().unwrap_or_default()),
            Value::number(row.queries_per_event),
            Value::text(row.group.as_deref().unwrap_or_default()),
        ]);
        line.extend(worth(row));
        line.extend([
            Value::number(Some(row.seconds)),
            Value::number(sla.map(|sla| sla.target)),
            Value::number(sla.map(|sla| sla.achieved)),
            sla.map_or(Value::Absent, |sla| Value::Boolean(sla.met)),
            Value::number(fairness.map(|fairness| fairness.fastest_seconds)),
            Value::number(fairness.map(|fairness| fairness.slowest_seconds)),
            Value::number(fairness.map(|fairness| fairness.abs_seconds)),
            Value::number(fairness.map(|fairness| fairness.pct)),
        ]);
        let metrics = self.metrics.iter();
        line.extend(metrics.map(|metric| Value::number(row.metric(metric.name))));
        line.extend(self.stalls.iter().map(|reason| {
            let lsm = row.lsm.as_ref();
            Value::number(lsm.and_then(|lsm| lsm.stalls.get(*reason).copied()))
        }));
        for kind in &self.kinds {
            match row.ops.get(*kind) {
                Some(op) => line.extend(of_kind(op)),
                None => line.extend(vec![Value::Absent; COLUMNS_OF_KIND]),
            }
        }
        line
    }
}

/// Columns of each kind of operation.
const COLUMNS_OF_KIND: usize = 8 + 2 * PERCENTILES.len();

fn of_kind(op: &OpFigures) -> impl Iterator<Item = Value> {
    let counts = [
        op.offered, op.skipped, op.count, op.failed, op.retried, op.rows,
    ];
    let rates = [op.per_second, op.rows_per_second];
    let times = [&op.service_us, &op.response_us].map(Percentiles::values);
    let succeeded = op.count > 0;
    counts
        .map(Value::Integer)
        .into_iter()
        .chain(rates.map(|rate| Value::number(Some(rate))))
        .chain(
            times
                .into_iter()
                .flatten()
                .map(move |time| Value::number(succeeded.then_some(time))),
        )
}

const PERCENTILES: [&str; 8] = ["p50", "p90", "p95", "p99", "p99_9", "p99_99", "max", "mean"];
