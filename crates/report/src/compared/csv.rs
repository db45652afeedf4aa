//! A comparison as CSV: one line for each metric of each step of each target.

use analysis::{Compared, ComparedStep, Pairing, THROUGHPUT};

use super::board::mean;
use crate::export::{number, written};
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
    let mut lines = vec![head.map(str::to_string).to_vec()];
    lines.extend(compared.rows.iter().map(|row| line(compared, row)));
    written(&lines)
}

fn line(compared: &Compared, row: &ComparedStep) -> Vec<String> {
    let interval = row.interval;
    let values = |samples: &[analysis::Sample]| {
        let values = samples.iter().map(|sample| sample.value.to_string());
        values.collect::<Vec<_>>().join(" ")
    };
    let of = |samples: &[analysis::Sample]| number(mean(samples.iter().map(|it| it.value)));
    vec![
        compared.base.clone(),
        row.target.clone(),
        row.workload.clone(),
        row.variant.clone().unwrap_or_default(),
        row.clients.to_string(),
        row.group.clone().unwrap_or_default(),
        row.step.clone(),
        row.metric.clone(),
        unit_of(&row.metric).to_string(),
        row.more_is_better.to_string(),
        of(&row.base_values),
        of(&row.values),
        number(row.ratio),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
        number(interval.map(|interval| interval.confidence * 100.0)),
        row.verdict.to_string(),
        number(row.p_value),
        number(row.spread.map(|spread| spread * 100.0)),
        pairing(row.pairing).to_string(),
        row.base_values.len().to_string(),
        row.values.len().to_string(),
        row.repeats_needed
            .map(|needed| needed.to_string())
            .unwrap_or_default(),
        values(&row.base_values),
        values(&row.values),
        row.reasons.join("; "),
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
