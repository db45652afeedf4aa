//! Settings that differ and show no effect.

use super::case::Case;
use super::difference::{Setting, TargetDifference, shared};
use super::words::{counted, distinct, figure, list, times};
use super::{Evidence, Finding, FindingKind};
use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};

/// A finding that nothing changed comes last, but it is an answer.
const WEIGHT: f64 = 0.03;

/// A target that differs from the base in one setting, with its steps, in none of which a change is shown.
struct SettingWithoutEffect<'a> {
    /// Its name: `pg17.base`, or of two runs `run 2 of pg17.base`.
    who: String,
    setting: Setting,
    steps: Vec<&'a ComparedStep>,
}

/// One finding for each setting, over all targets that differ in it alone.
pub(super) fn findings(figures: &Figures, compared: &Compared) -> Vec<Finding> {
    let mut targets: Vec<(String, TargetDifference, Vec<&ComparedStep>)> = Vec::new();
    for step in compared.rows.iter().filter(|row| row.metric == THROUGHPUT) {
        // Of what is invalid or was not measured nothing is said.
        let Some(case) = Case::new(figures, &compared.base, step) else {
            continue;
        };
        let who = match shared(figures, case.side.rows[0]) {
            Some(target) => format!("{} of {target}", step.cell.target),
            None => step.cell.target.clone(),
        };
        match targets.iter_mut().find(|(known, ..)| *known == who) {
            Some((.., steps)) => steps.push(step),
            None => targets.push((who, case.target_difference(figures), vec![step])),
        }
    }
    let mut by_setting: Vec<Vec<SettingWithoutEffect<'_>>> = Vec::new();
    for (who, difference, steps) in targets {
        let TargetDifference::One(setting) = difference else {
            continue;
        };
        if !steps
            .iter()
            .all(|row| row.verdict == Verdict::NoChangeShown)
        {
            continue;
        }
        let without = SettingWithoutEffect {
            who,
            setting,
            steps,
        };
        let same = by_setting
            .iter_mut()
            .find(|group| group[0].setting.name == without.setting.name);
        match same {
            Some(group) => group.push(without),
            None => by_setting.push(vec![without]),
        }
    }
    by_setting
        .iter()
        .filter_map(|group| finding(compared, group))
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
    let targets = distinct(rows.iter().map(|row| row.cell.target.as_str()));
    let steps = distinct(rows.iter().map(|row| row.step.as_str()));
    let what: Vec<String> = group
        .iter()
        .map(|one| format!("{} in {}", one.who, one.setting.text()))
        .collect();
    let text = format!(
        "{} from {}, and in nothing else that is known. No change of throughput is shown in any of {}: the ratios are \
         {} to {}, within {}%. That holds for this load on this machine.",
        list(&what).replacen(" in ", " differs in ", 1),
        compared.base,
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
        kind: FindingKind::NoEffect,
        target: first.steps[0].cell.target.clone(),
        base: Some(compared.base.clone()),
        workload: first.steps[0].workload.clone(),
        variant: None,
        clients: None,
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title: format!(
            "{name} shows no effect in {}",
            match steps.as_slice() {
                [one] => one.clone(),
                many => counted(many.len(), "step"),
            }
        ),
        text,
        evidence: evidence.collect(),
        caveats: Vec::new(),
        weight: WEIGHT,
        targets,
        steps,
    })
}
