//! Settings that differ and show no effect.

use super::case::Case;
use super::words::{counted, figure, list, times};
use super::{Context, Evidence, Finding, FindingKind, place};
use crate::order::grouped;
use crate::{Compared, ComparedStep, Difference, Verdict};

/// A finding that nothing changed comes last, but it is an answer.
const WEIGHT: f64 = 0.03;

/// A target that differs from the base in one setting, with its steps, in none of which a change is shown.
struct SettingWithoutEffect<'a> {
    /// Its name: `pg17.base`, or of two runs `run 2 of pg17.base`.
    who: String,
    setting: &'a Difference,
    steps: Vec<&'a ComparedStep>,
}

/// One finding for each setting, over all targets that differ in it alone.
pub(super) fn findings(context: Context<'_>, cases: &[Case<'_>]) -> Vec<Finding> {
    let of_targets = grouped(cases.iter().map(|case| (case.who(), case))).into_iter();
    let of_targets = of_targets.filter_map(|(who, cases)| {
        let is_without = |case: &&Case<'_>| case.compared.verdict == Verdict::NoChangeShown;
        let setting = cases[0].difference.only_setting()?;
        let without = SettingWithoutEffect {
            who,
            steps: cases.iter().map(|case| case.compared).collect(),
            setting,
        };
        cases
            .iter()
            .all(is_without)
            .then_some((&setting.name, without))
    });
    let by_setting = grouped(of_targets);
    by_setting
        .iter()
        .filter_map(|(_, group)| finding(context.compared, group))
        .collect()
}

fn finding(compared: &Compared, group: &[SettingWithoutEffect<'_>]) -> Option<Finding> {
    let first = group.first()?;
    let name = &first.setting.name;
    let rows: Vec<&ComparedStep> = group
        .iter()
        .flat_map(|one| one.steps.iter().copied())
        .collect();
    let ratios = || rows.iter().filter_map(|row| row.ratio);
    let (low, high) = (
        ratios().fold(f64::INFINITY, f64::min),
        ratios().fold(0.0, f64::max),
    );
    let places = rows.iter().map(|row| place(row));
    let about = Finding::about(FindingKind::NoEffect, &compared.base, places)?;
    let what: Vec<String> = group
        .iter()
        .map(|one| format!("{} in {}", one.who, one.setting.text()))
        .collect();
    let text = format!(
        "From {} only one setting is known to differ: {}. No change of throughput is shown in any of {}: the ratios are \
         {} to {}, within {}%. That holds for this load on this machine.",
        compared.base,
        list(&what),
        counted(rows.len(), "comparison"),
        times(low),
        times(high),
        figure(100.0 * compared.effect),
    );
    let evidence = rows.iter().map(|row| Evidence {
        name: format!("throughput of {} in {}", row.cell.target, row.step),
        unit: "/s".to_owned(),
        base: row.base_values.first().map(|sample| sample.value),
        value: row.values.first().map(|sample| sample.value),
        ratio: row.ratio,
    });
    Some(Finding {
        title: format!("{name} shows no effect in {}", about.place()),
        text,
        evidence: evidence.collect(),
        weight: WEIGHT,
        ..about
    })
}
