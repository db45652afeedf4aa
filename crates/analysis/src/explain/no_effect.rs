//! Settings that differ and show no effect.

use super::case::{Case, Context};
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::statement::{ChangedSetting, NoEffect, Statement};
use crate::compare::{Compared, ComparedStep, OWN_CPU, RESPONSE_TIMES, Verdict};
use crate::order::grouped;
use crate::settings::Difference;

/// A finding that nothing changed comes last, but it is an answer.
const WEIGHT: f64 = 0.03;

/// A target that differs from the base in one setting, and whose steps show no change.
struct SettingWithoutEffect<'a> {
    /// The name: `pg17.base`, or of two runs `run 2 of pg17.base`.
    who: String,
    setting: &'a Difference,
    steps: Vec<&'a ComparedStep>,
}

/// Returns one explanation for each setting, over all targets that differ only in this setting.
pub(super) fn explain<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let by_target = grouped(cases.iter().map(|case| (case.who(), case))).into_iter();
    let of_targets = by_target.filter_map(|(who, of_target)| {
        let setting = of_target[0].difference.only_setting()?;
        if !of_target.iter().all(|case| is_without(case)) {
            return None;
        }

        let steps = of_target.iter().map(|case| case.compared).collect();
        Some((&setting.name, SettingWithoutEffect { who, setting, steps }))
    });

    let by_setting = grouped(of_targets).into_iter();
    by_setting.map(|(_, group)| explanation(context.compared, group)).collect()
}

/// Returns whether a case rules out a change of throughput, and shows none of own CPU. Where a schedule
/// decides the throughput, response times have to be equal as well.
fn is_without(case: &Case<'_>) -> bool {
    if case.compared.verdict != Verdict::Equal {
        return false;
    }
    // Where something else limits throughput, an effect is in CPU alone.
    if case.of_metric(OWN_CPU).is_some_and(|row| row.verdict.is_change()) {
        return false;
    }
    if !case.is_scheduled() {
        return true;
    }

    let mut times = RESPONSE_TIMES.iter().map(|metric| case.of_metric(metric));
    times.all(|time| time.is_some_and(|row| row.verdict == Verdict::Equal))
}

fn explanation<'a>(compared: &Compared, group: Vec<SettingWithoutEffect<'a>>) -> Explanation<'a> {
    let rows = group.iter().flat_map(|one| one.steps.iter().copied());
    let rows: Vec<&ComparedStep> = rows.collect();

    let ratios = || rows.iter().filter_map(|row| row.ratio);
    let evidence = rows.iter().map(|row| Evidence {
        name: format!("throughput of {} in {}", row.cell.target, row.step),
        unit: "/s".to_owned(),
        base: row.base_values.first().map(|sample| sample.value),
        value: row.values.first().map(|sample| sample.value),
        ratio: row.ratio,
        is_noise: false,
        is_cause: false,
    });

    Explanation {
        places: rows.iter().map(|row| place(row)).collect(),
        evidence: evidence.collect(),
        caveats: Vec::new(),
        weight: WEIGHT,
        statement: Statement::NoEffect(NoEffect {
            comparison_count: rows.len(),
            ratio_min: ratios().fold(f64::INFINITY, f64::min),
            ratio_max: ratios().fold(0.0, f64::max),
            effect: compared.effect,
            settings: group
                .into_iter()
                .map(|of| ChangedSetting { who: of.who, setting: of.setting.clone() })
                .collect(),
        }),
    }
}
