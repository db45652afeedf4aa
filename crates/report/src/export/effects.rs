//! The effects of factors as CSV.

use std::collections::BTreeMap;

use analysis::{
    compare::{CombinationEffect, Effect},
    figures::Row,
    settings::Factor,
};
use record::Run;

use super::sheet::{SheetLine, SheetValue, fixed};
use super::verdicts::{self, LineContext, TargetPair, written};
use crate::model::comparison::FactorEffects;

/// Formats effects as CSV with all digits: one line for each effect, and one for each of its
/// combinations.
pub fn effects_csv(shown: &FactorEffects<'_>) -> String {
    let effects = shown.effects;
    let runs: Vec<&Run> = shown.runs.iter().map(|compared| compared.run).collect();
    let measured: BTreeMap<&str, &Row> =
        shown.figures.rows.iter().map(|row| (row.step.as_str(), row)).collect();

    let mut lines = Vec::new();
    for effect in &effects.rows {
        let factor = &effects.factors[effect.factor];

        let context = LineContext {
            runs: &runs,
            engine: Some(&factor.engine),
            measured: measured.get(effect.compared.step.as_str()).copied(),
            effect: effects.effect,
            ..LineContext::default()
        };
        lines.push(csv_line(context, factor, effect, None));

        for combination in &effect.combinations {
            lines.push(csv_line(context, factor, effect, Some(combination)));
        }
    }

    // The column headers, even if there are no lines.
    let factor = Factor { levels: vec![String::new()], ..Factor::default() };
    let like = csv_line(LineContext::default(), &factor, &Effect::default(), None);
    written(&like, &lines)
}

fn csv_line(
    context: LineContext<'_>,
    factor: &Factor,
    effect: &Effect,
    combination: Option<&CombinationEffect>,
) -> SheetLine {
    let detail = combination.map(|combination| &factor.combinations[combination.index]);
    let context = LineContext {
        targets: detail.and_then(|detail| target_pair(&detail.targets, effect.level)),
        ..context
    };

    let row = combination.map_or(&effect.compared, |combination| &combination.compared);
    let deviation = combination.and_then(|combination| combination.deviation);
    let interval = deviation.map(|deviation| deviation.interval);

    let differs = match combination {
        Some(_) => deviation.is_some_and(|deviation| deviation.is_shown),
        None => effect.differs(),
    };

    let mut line = verdicts::line(context, row);
    line.extend(fixed([
        ("factor", SheetValue::text(&factor.name)),
        ("base_level", SheetValue::text(&factor.levels[0])),
        ("level", SheetValue::text(&factor.levels[effect.level])),
        ("combination", SheetValue::Text(detail.map(|detail| detail.others.clone()))),
        ("deviation", SheetValue::number(deviation.map(|deviation| deviation.ratio))),
        ("deviation_low", SheetValue::number(interval.map(|interval| interval.low))),
        ("deviation_high", SheetValue::number(interval.map(|interval| interval.high))),
        ("differs", SheetValue::Boolean(Some(differs))),
    ]));
    line
}

/// Returns the targets with the base's level and with `level`, if there are both.
fn target_pair(targets: &[Option<String>], level: usize) -> Option<TargetPair<'_>> {
    Some(TargetPair { base: targets.first()?.as_deref()?, target: targets.get(level)?.as_deref()? })
}
