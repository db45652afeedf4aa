//! The table of verdicts: one line for each metric of each step of each target, and one for each
//! target that reached no step.

use std::collections::HashMap;
use std::io::{self, Write};

use analysis::compare::{ComparedStep, Pairing, Sample, THROUGHPUT, Verdict};
use analysis::figures::{Row, UnfinishedCell};
use record::{Run, Status};
use words::Metric;

use super::Comparison;
use super::board::mean_of;
use crate::export::{Form, Line, Sheet, Value, csv_text, fixed, of_runs};
use crate::matrix::StepHead;
use crate::metrics::unit;
use crate::operations;

/// The context that a line shows besides its comparison.
#[derive(Clone, Copy, Default)]
pub(super) struct LineContext<'a> {
    pub runs: &'a [&'a Run],
    /// The base and the target; `None` if several are compared together.
    pub targets: Option<[&'a str; 2]>,
    pub engine: Option<&'a str>,
    /// Any repeat of the step.
    pub of: Option<&'a Row>,
    /// The smallest change that matters.
    pub effect: f64,
}

/// Returns the columns of a comparison with their values.
pub(super) fn line(about: LineContext<'_>, row: &ComparedStep) -> Line {
    let interval = row.interval;
    let metric = Metric::exported_name(&row.metric);
    let unit = match about.of {
        Some(of) if row.metric == THROUGHPUT => operations::unit(StepHead::of(of)),
        _ => unit_of(&row.metric).to_owned(),
    };
    let target = |which: usize| Value::Text(about.targets.map(|names| names[which].to_owned()));
    let mut line = of_runs("run_ids", about.runs);
    line.extend(fixed([
        ("base", target(0)),
        ("target", target(1)),
        ("engine", Value::text(about.engine.unwrap_or_default())),
        ("workload", Value::text(&row.workload)),
        ("variant", Value::Text(row.cell.variant.clone())),
        ("clients", Value::count(row.cell.clients)),
        ("step", Value::text(&row.step)),
        ("step_group", Value::Text(row.group.clone())),
        ("metric", Value::text(metric)),
        ("unit", Value::text(unit)),
        ("more_is_better", Value::Boolean(Some(row.more_is_better))),
        ("base_mean", Value::number(mean_of(&row.base_values))),
        ("target_mean", Value::number(mean_of(&row.values))),
        ("ratio", Value::number(row.ratio)),
        ("ratio_low", Value::number(interval.map(|it| it.low))),
        ("ratio_high", Value::number(interval.map(|it| it.high))),
        ("confidence_pct", percent(interval.map(|it| it.confidence))),
        ("effect_pct", percent(Some(about.effect))),
        ("verdict", Value::text(row.verdict.to_string())),
        ("p_value", Value::number(row.p_value)),
        ("spread_pct", percent(row.spread)),
        ("detectable_pct", percent(row.detectable())),
        ("pairing", Value::text(pairing(row.pairing))),
        ("machine_count", Value::count(row.machines.count as u64)),
        ("between_machines_pct", percent(row.machines.variance_share.map(|it| it.share))),
        ("base_repeat_count", Value::count(row.base_values.len() as u64)),
        ("target_repeat_count", Value::count(row.values.len() as u64)),
        ("needed_repeat_count", Value::Integer(row.repeats_needed.map(u64::from))),
        ("base_values", each(&row.base_values)),
        ("target_values", each(&row.values)),
        ("reasons", Value::text(row.reasons.join("; "))),
    ]));
    line
}

fn percent(share: Option<f64>) -> Value {
    Value::number(share.map(|share| share * 100.0))
}

fn each(samples: &[Sample]) -> Value {
    let values = samples.iter().map(|sample| sample.value.to_string());
    Value::text(values.collect::<Vec<_>>().join(" "))
}

/// Formats all verdicts as CSV.
pub fn compared_csv(comparison: &Comparison<'_>) -> String {
    csv_text(verdict_table(comparison, None, Form::Csv, Vec::new()))
}

/// Writes one line per comparison, for the targets of one engine or of all, with all digits. The
/// column `unit` is the unit of base and target; ratios have none. A target that reached no step
/// has a line without step and metric. Returns the sink.
///
/// # Errors
/// Fails if the sink can't be written.
pub fn verdict_table<W: Write + Send>(
    comparison: &Comparison<'_>,
    engine: Option<&str>,
    form: Form,
    sink: W,
) -> io::Result<W> {
    let runs: Vec<&Run> = comparison.runs.iter().map(|it| it.run).collect();
    let measured = comparison.figures.rows.iter();
    let measured: HashMap<_, _> =
        measured.map(|row| ((row.cell.all_repeats(), row.step.as_str()), row)).collect();
    let never_measured: Vec<ComparedStep> =
        never_measured(comparison).iter().map(|cells| without_steps(comparison, cells)).collect();
    let like = line(LineContext::default(), &ComparedStep::default());
    let mut sheet = Sheet::new(form, "verdicts", &like, &runs, sink)?;
    for row in comparison.compared.rows.iter().chain(&never_measured) {
        let of = measured.get(&(row.cell.clone(), row.step.as_str())).copied();
        let planned = || {
            let mut targets = comparison.run.targets.iter();
            let target = targets.find(|target| target.name == row.cell.target)?;
            Some(target.engine.as_str())
        };
        let is_of = of.map(|of| of.engine.as_str()).or_else(planned);
        if engine.is_none() || engine == is_of {
            let about = LineContext {
                runs: &runs,
                targets: Some([&comparison.compared.base, &row.cell.target]),
                engine: is_of,
                of,
                effect: comparison.compared.effect,
            };
            sheet.push(&line(about, row))?;
        }
    }
    sheet.finish()
}

/// Formats lines as CSV, with the columns of `like`.
pub(super) fn written(like: &Line, lines: &[Line]) -> String {
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
        let mut rows = compared.rows.iter();
        let is_compared = rows.any(|row| row.cell.is_repeat_of(&cell.cell));
        if is_compared || cell.cell.target == compared.base {
            continue;
        }
        let mut known = groups.iter_mut();
        match known.find(|cells| cells[0].cell.is_repeat_of(&cell.cell)) {
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
    let reference = run.and_then(|it| it.run.cells.first());
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
    let causes = cell.causes.join(": ");
    let causes = if causes.is_empty() { String::new() } else { format!(": {causes}") };
    format!("repeat {} {ended}{causes}", cell.cell.repeat)
}

/// Returns the unit of a metric, or `/s` for throughput, whose unit depends on the step.
pub(super) fn unit_of(metric: &str) -> &'static str {
    if metric == THROUGHPUT { "/s" } else { unit(metric) }
}

pub(super) fn pairing(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Paired => "paired",
        Pairing::Independent => "independent",
        Pairing::Single => "single",
    }
}
