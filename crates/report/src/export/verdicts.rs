//! The table of verdicts: one line for each metric of each step of each target, and one for each
//! target that reached no step.

use std::collections::HashMap;
use std::io::{self, Write};

use analysis::{
    compare::{ComparedStep, Sample, THROUGHPUT, Verdict, mean_of_samples},
    figures::{Row, UnfinishedCell},
};
use record::{CellKey, Run, Status};
use words::Metric;

use super::sheet::{Form, Sheet, SheetLine, SheetValue, csv_text, fixed};
use super::steps::of_runs;
use crate::model::comparison::{Comparison, pairing_name};
use crate::model::matrix::StepHead;
use crate::model::metric::unit_of;
use crate::model::operations;

/// A target and the base that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct TargetPair<'a> {
    pub base: &'a str,
    pub target: &'a str,
}

/// The context that a line shows besides its comparison.
#[derive(Clone, Copy, Default)]
pub(super) struct LineContext<'a> {
    pub runs: &'a [&'a Run],
    /// `None` if several targets are compared together.
    pub targets: Option<TargetPair<'a>>,
    pub engine: Option<&'a str>,
    /// Any repeat of the step.
    pub measured: Option<&'a Row>,
    /// The smallest change that matters.
    pub effect: f64,
}

/// Returns the columns of a comparison with their values.
pub(super) fn line(context: LineContext<'_>, row: &ComparedStep) -> SheetLine {
    let base = context.targets.map(|targets| targets.base.to_owned());
    let target = context.targets.map(|targets| targets.target.to_owned());

    // The unit of throughput depends on what the step counts.
    let unit = match context.measured {
        Some(step) if row.metric == THROUGHPUT => operations::unit(StepHead::of(step)),
        _ => unit_of(&row.metric).to_owned(),
    };

    let interval = row.interval;
    let between_machines = row.machines.variance_share.map(|variance| variance.share);

    let mut line = of_runs("run_ids", context.runs);
    line.extend(fixed([
        ("base", SheetValue::Text(base)),
        ("target", SheetValue::Text(target)),
        ("engine", SheetValue::text(context.engine.unwrap_or_default())),
        ("workload", SheetValue::text(&row.workload)),
        ("variant", SheetValue::Text(row.cell.variant.clone())),
        ("clients", SheetValue::count(row.cell.clients)),
        ("step", SheetValue::text(&row.step)),
        ("step_group", SheetValue::Text(row.group.clone())),
        ("metric", SheetValue::text(Metric::exported_name(&row.metric))),
        ("unit", SheetValue::text(unit)),
        ("more_is_better", SheetValue::Boolean(Some(row.more_is_better))),
    ]));

    // The figures and the verdict on them.
    line.extend(fixed([
        ("base_mean", SheetValue::number(mean_of_samples(&row.base_values))),
        ("target_mean", SheetValue::number(mean_of_samples(&row.values))),
        ("ratio", SheetValue::number(row.ratio)),
        ("ratio_low", SheetValue::number(interval.map(|bounds| bounds.low))),
        ("ratio_high", SheetValue::number(interval.map(|bounds| bounds.high))),
        ("confidence_pct", percent(interval.map(|bounds| bounds.confidence))),
        ("effect_pct", percent(Some(context.effect))),
        ("verdict", SheetValue::text(row.verdict.to_string())),
        ("p_value", SheetValue::number(row.p_value)),
        ("spread_pct", percent(row.spread)),
        ("detectable_pct", percent(row.detectable())),
    ]));

    // What the verdict rests on.
    line.extend(fixed([
        ("pairing", SheetValue::text(pairing_name(row.pairing))),
        ("machine_count", SheetValue::count(row.machines.count as u64)),
        ("between_machines_pct", percent(between_machines)),
        ("base_repeat_count", SheetValue::count(row.base_values.len() as u64)),
        ("target_repeat_count", SheetValue::count(row.values.len() as u64)),
        ("needed_repeat_count", SheetValue::Integer(row.repeats_needed.map(u64::from))),
        ("base_values", each(&row.base_values)),
        ("target_values", each(&row.values)),
        ("reasons", SheetValue::text(row.reasons.join("; "))),
    ]));
    line
}

fn percent(share: Option<f64>) -> SheetValue {
    SheetValue::number(share.map(|share| share * 100.0))
}

fn each(samples: &[Sample]) -> SheetValue {
    let values = samples.iter().map(|sample| sample.value.to_string());
    SheetValue::text(values.collect::<Vec<_>>().join(" "))
}

/// Formats all verdicts as CSV.
pub fn compared_csv(comparison: &Comparison<'_>) -> String {
    csv_text(verdict_table(std::slice::from_ref(comparison), None, Form::Csv, Vec::new()))
}

/// Writes one line per comparison, for the targets of one engine or of all, with all digits. Each of
/// `comparisons` has a base of its own, and all are of the same runs. The column `unit` is the unit
/// of base and target; ratios have none. A target that reached no step has a line without step and
/// metric. Returns the sink.
///
/// # Errors
/// Fails if the sink cannot be written.
pub fn verdict_table<W: Write + Send>(
    comparisons: &[Comparison<'_>],
    engine: Option<&str>,
    form: Form,
    sink: W,
) -> io::Result<W> {
    let runs = comparisons.first().map_or(&[][..], |comparison| comparison.runs);
    let runs: Vec<&Run> = runs.iter().map(|compared| compared.run).collect();

    let like = line(LineContext::default(), &ComparedStep::default());
    let mut sheet = Sheet::new(form, "verdicts", &like, &runs, sink)?;
    for comparison in comparisons {
        add_lines(&mut sheet, comparison, &runs, engine)?;
    }
    sheet.finish()
}

/// Writes one line per comparison with one base.
fn add_lines<W: Write + Send>(
    sheet: &mut Sheet<W>,
    comparison: &Comparison<'_>,
    runs: &[&Run],
    engine: Option<&str>,
) -> io::Result<()> {
    let compared = comparison.compared;
    let measured: HashMap<(CellKey, &str), &Row> = comparison
        .figures
        .rows
        .iter()
        .map(|row| ((row.cell.all_repeats(), row.step.as_str()), row))
        .collect();

    let never_measured: Vec<ComparedStep> =
        never_measured(comparison).iter().map(|cells| without_steps(comparison, cells)).collect();

    for row in compared.rows.iter().chain(&never_measured) {
        let step = measured.get(&(row.cell.clone(), row.step.as_str())).copied();
        let engine_of_row = match step {
            Some(step) => Some(step.engine.as_str()),
            None => planned_engine(comparison, &row.cell.target),
        };
        if engine.is_some() && engine != engine_of_row {
            continue;
        }

        let context = LineContext {
            runs,
            targets: Some(TargetPair { base: &compared.base, target: &row.cell.target }),
            engine: engine_of_row,
            measured: step,
            effect: compared.effect,
        };
        sheet.push(&line(context, row))?;
    }
    Ok(())
}

/// Returns the engine that a target was to run on.
fn planned_engine<'a>(comparison: &Comparison<'a>, target: &str) -> Option<&'a str> {
    let planned = comparison.run.targets.iter().find(|planned| planned.name == target)?;
    Some(planned.engine.as_str())
}

/// Formats lines as CSV, with the columns of `like`.
pub(super) fn written(like: &SheetLine, lines: &[SheetLine]) -> String {
    let written = || {
        let mut sheet = Sheet::new(Form::Csv, "", like, &[], Vec::new())?;
        for line in lines {
            sheet.push(line)?;
        }
        sheet.finish()
    };
    csv_text(written())
}

/// Returns the unfinished cells of targets without any comparison, grouped by target, variant and
/// number of clients.
fn never_measured<'a>(comparison: &Comparison<'a>) -> Vec<Vec<&'a UnfinishedCell>> {
    let compared = comparison.compared;
    let mut groups: Vec<Vec<&UnfinishedCell>> = Vec::new();
    for cell in &comparison.figures.unfinished {
        let is_compared = compared.rows.iter().any(|row| row.cell.is_repeat_of(&cell.cell));
        if is_compared || cell.cell.target == compared.base {
            continue;
        }

        let known = groups.iter_mut().find(|cells| cells[0].cell.is_repeat_of(&cell.cell));
        match known {
            Some(cells) => cells.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

fn without_steps(comparison: &Comparison<'_>, cells: &[&UnfinishedCell]) -> ComparedStep {
    let first = cells[0];

    // A plan has one workload.
    let run = comparison.runs.get(first.run);
    let reference = run.and_then(|compared| compared.run.cells.first());

    ComparedStep {
        cell: first.cell.all_repeats(),
        workload: reference.map_or(String::new(), |cell| cell.workload.clone()),
        more_is_better: true,
        verdict: Verdict::Invalid,
        reasons: cells.iter().map(|cell| reason(cell)).collect(),
        ..ComparedStep::default()
    }
}

/// Returns the reason why a repeat is missing: `repeat 1 failed: the server did not start`.
fn reason(cell: &UnfinishedCell) -> String {
    let ended = match cell.status {
        None => "was never started",
        Some(Status::Failed) => "failed",
        Some(Status::Interrupted) => "was interrupted",
        Some(Status::Incomplete | Status::Complete) => "did not finish",
    };

    let mut text = format!("repeat {} {ended}", cell.cell.repeat);
    for cause in &cell.causes {
        text += &format!(": {cause}");
    }
    text
}
