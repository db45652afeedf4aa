//! A comparison as CSV: one line for each metric of each step of each target.

use analysis::{Compared, ComparedStep, Pairing, THROUGHPUT};

use super::board::mean;
use crate::export::{Column, Form, Holds, Sheet, Value};
use crate::metrics::unit;

/// One line per comparison. Units of base and target are in the column `unit`; ratios have none; what is not applicable is
/// empty. Every digit is there.
pub fn compared_csv(compared: &Compared) -> String {
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
        "pairing",
        "base_repeat_count",
        "target_repeat_count",
        "needed_repeat_count",
        "base_values",
        "target_values",
        "reasons",
    ];
    let columns = head.map(|name| Column::new(name, Holds::Text));
    let written = || {
        let mut sheet = Sheet::new(Form::Csv, &columns, &[], Vec::new())?;
        for row in &compared.rows {
            sheet.push(&line(compared, row))?;
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
        text(&row.target),
        text(&row.workload),
        text(row.variant.as_deref().unwrap_or_default()),
        Value::Integer(row.clients.into()),
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
