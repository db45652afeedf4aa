//! A comparison as CSV: one line for each metric of each step of each target, and one for each target that has no step.

use analysis::{Compared, ComparedStep, Pairing, THROUGHPUT, Unfinished, Verdict};
use record::Status;

use super::Comparison;
use super::board::mean;
use crate::export::{ColumnType, Form, Sheet, Value, column};
use crate::metrics::unit;

/// One line per comparison. Units of base and target are in the column `unit`; ratios have none; what is not applicable is
/// empty. Every digit is there. A target that did not get to any step has a line as well, without step and metric.
pub fn compared_csv(comparison: &Comparison<'_>) -> String {
    let compared = comparison.compared;
    let head = [
        "base",
        "target",
        "workload",
        "variant",
        "clients",
        "group",
        "step",
        "metric",
        "unit",
        "more_is_better",
        "base_mean",
        "target_mean",
        "ratio",
        "ratio_low",
        "ratio_high",
        "confidence_pct",
        "verdict",
        "p_value",
        "spread_pct",
        "detectable_pct",
        "pairing",
        "base_repeat_count",
        "target_repeat_count",
        "needed_repeat_count",
        "base_values",
        "target_values",
        "reasons",
    ];
    let columns = head.map(|name| column(name, ColumnType::Text));
    let written = || {
        let mut sheet = Sheet::new(Form::Csv, &columns, &[], Vec::new())?;
        for row in &compared.rows {
            sheet.push(&line(compared, row))?;
        }
        for cells in never_measured(comparison) {
            sheet.push(&without_steps(comparison, &cells))?;
        }
        sheet.finish()
    };
    String::from_utf8(written().expect("memory takes what is written"))
        .expect("only text was written")
}

fn line(compared: &Compared, row: &ComparedStep) -> Vec<Value> {
    let interval = row.interval;
    let values = |samples: &[analysis::Sample]| {
        let values = samples.iter().map(|sample| sample.value.to_string());
        values.collect::<Vec<_>>().join(" ")
    };
    let of = |samples: &[analysis::Sample]| Value::number(mean(samples.iter().map(|it| it.value)));
    let percent = |share: Option<f64>| Value::number(share.map(|share| share * 100.0));
    let text = Value::text;
    vec![
        text(&compared.base),
        text(&row.cell.target),
        text(&row.workload),
        text(row.cell.variant.as_deref().unwrap_or_default()),
        Value::Integer(row.cell.clients.into()),
        text(row.group.as_deref().unwrap_or_default()),
        text(&row.step),
        text(&row.metric),
        text(unit_of(&row.metric)),
        Value::Boolean(row.more_is_better),
        of(&row.base_values),
        of(&row.values),
        Value::number(row.ratio),
        Value::number(interval.map(|interval| interval.low)),
        Value::number(interval.map(|interval| interval.high)),
        percent(interval.map(|interval| interval.confidence)),
        text(&row.verdict.to_string()),
        Value::number(row.p_value),
        percent(row.spread),
        percent(row.detectable()),
        text(pairing(row.pairing)),
        Value::Integer(row.base_values.len() as u64),
        Value::Integer(row.values.len() as u64),
        row.repeats_needed
            .map_or(Value::Absent, |needed| Value::Integer(needed.into())),
        text(&values(&row.base_values)),
        text(&values(&row.values)),
        text(&row.reasons.join("; ")),
    ]
}

/// The cells of targets that are in no comparison, those of one target, variant and number of clients together.
fn never_measured<'a>(comparison: &Comparison<'a>) -> Vec<Vec<&'a Unfinished>> {
    let compared = comparison.compared;
    let mut found: Vec<Vec<&Unfinished>> = Vec::new();
    for cell in &comparison.figures.unfinished {
        let mut rows = compared.rows.iter();
        let is_compared = rows.any(|row| row.cell.is_repeat_of(&cell.cell));
        if is_compared || cell.cell.target == compared.base {
            continue;
        }
        let same = found
            .iter_mut()
            .find(|cells| cells[0].cell.is_repeat_of(&cell.cell));
        match same {
            Some(cells) => cells.push(cell),
            None => found.push(vec![cell]),
        }
    }
    found
}

fn without_steps(comparison: &Comparison<'_>, cells: &[&Unfinished]) -> Vec<Value> {
    let first = cells[0];
    // A plan has one workload.
    let run = comparison.runs.get(first.run);
    let reference = run.and_then(|it| it.run.cells.first());
    let reasons: Vec<String> = cells.iter().map(|cell| reason(cell)).collect();
    line(
        comparison.compared,
        &ComparedStep {
            cell: first.cell.all_repeats(),
            workload: reference.map_or(String::new(), |cell| cell.workload.clone()),
            step: String::new(),
            group: None,
            metric: String::new(),
            more_is_better: true,
            base_values: Vec::new(),
            values: Vec::new(),
            ratio: None,
            interval: None,
            pairing: Pairing::Single,
            verdict: Verdict::Invalid,
            p_value: None,
            spread: None,
            repeats_needed: None,
            reasons,
        },
    )
}

/// `repeat 1 failed: the server did not start`
fn reason(cell: &Unfinished) -> String {
    let ended = match cell.status {
        None => "was never begun",
        Some(Status::Failed) => "failed",
        Some(Status::Interrupted) => "was interrupted",
        Some(Status::Incomplete | Status::Complete) => "did not end",
    };
    let causes = cell.causes.join(": ");
    let causes = match causes.is_empty() {
        true => String::new(),
        false => format!(": {causes}"),
    };
    format!("repeat {} {ended}{causes}", cell.cell.repeat)
}

/// The unit of a metric, or of throughput, which counts what its step is about.
pub(super) fn unit_of(metric: &str) -> &'static str {
    if metric == THROUGHPUT {
        "/s"
    } else {
        unit(metric)
    }
}

pub(super) fn pairing(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Paired => "paired",
        Pairing::Independent => "independent",
        Pairing::Single => "single",
    }
}
