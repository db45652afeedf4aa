//! Settings that differ and change nothing that can be seen.

use super::apart::{Apart, Setting, shared};
use super::case::Case;
use super::thresholds::SINGLE_CHANGE;
use super::words::{counted, distinct, list, times};
use super::{Evidence, Finding, FindingKind};
use crate::{Compared, ComparedStep, Figures, Pairing, THROUGHPUT, Verdict};

/// What a finding weighs that says that nothing is to be seen: it comes last, but it is an answer.
const WEIGHT: f64 = 0.03;

/// A target that differs from the base in one setting, with its steps, in none of which a change is shown.
struct Without<'a> {
    /// What it is called: `pg17.base`, or of two runs `run 2 of pg17.base`.
    who: String,
    setting: Setting,
    steps: Vec<&'a ComparedStep>,
}

/// One finding for each setting, over all targets that differ in it alone.
pub(super) fn findings(figures: &Figures, compared: &Compared) -> Vec<Finding> {
    let mut targets: Vec<(String, Apart, Vec<&ComparedStep>)> = Vec::new();
    for step in compared.rows.iter().filter(|row| row.metric == THROUGHPUT) {
        // Of what is invalid or was not measured nothing is said.
        let Some(case) = Case::new(figures, &compared.base, step) else {
            continue;
        };
        let who = match shared(figures, case.side.rows[0]) {
            Some(target) => format!("{} of {target}", step.target),
            None => step.target.clone(),
        };
        match targets.iter_mut().find(|(known, ..)| *known == who) {
            Some((.., steps)) => steps.push(step),
            None => targets.push((who, case.apart(figures), vec![step])),
        }
    }
    let mut by_setting: Vec<Vec<Without<'_>>> = Vec::new();
    for (who, apart, steps) in targets {
        let Apart::One(setting) = apart else {
            continue;
        };
        if !steps.iter().all(|row| is_same(row)) {
            continue;
        }
        let without = Without {
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

/// No change is shown, and one that matters is ruled out; of single runs: they differ by little.
fn is_same(row: &ComparedStep) -> bool {
    match row.verdict {
        Verdict::NoChangeShown => true,
        Verdict::Single => row
            .ratio
            .is_some_and(|ratio| ratio.max(1.0 / ratio) < 1.0 + SINGLE_CHANGE),
        _ => false,
    }
}

fn finding(compared: &Compared, group: &[Without<'_>]) -> Option<Finding> {
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
    let targets = distinct(rows.iter().map(|row| row.target.as_str()));
    let steps = distinct(rows.iter().map(|row| row.step.as_str()));
    let is_single = rows.iter().any(|row| row.pairing == Pairing::Single);
    let what: Vec<String> = group
        .iter()
        .map(|one| format!("{} in {}", one.who, one.setting.text()))
        .collect();
    let within = match is_single {
        true => format!(
            "{:.0}%, as single runs may by chance",
            100.0 * SINGLE_CHANGE
        ),
        false => format!("{:.0}%", 100.0 * compared.effect),
    };
    let text = format!(
        "{} from {}, and in nothing else that is known. No change of throughput is shown in any of {}: the ratios are \
         {} to {}, within {within}. That holds for this load on this machine.",
        list(&what).replacen(" in ", " differs in ", 1),
        compared.base,
        counted(rows.len(), "comparison"),
        times(low),
        times(high),
    );
    let against = is_single.then(|| {
        "a single run has no interval: a small change may be there and not be seen".to_owned()
    });
    let evidence = rows.iter().map(|row| Evidence {
        name: format!("throughput of {} in {}", row.target, row.step),
        unit: "/s".to_owned(),
        base: row.base_values.first().map(|sample| sample.value),
        value: row.values.first().map(|sample| sample.value),
        ratio: row.ratio,
    });
    Some(Finding {
        kind: FindingKind::NoEffect,
        target: first.steps[0].target.clone(),
        base: Some(compared.base.clone()),
        workload: first.steps[0].workload.clone(),
        variant: None,
        clients: None,
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title: format!(
            "{name} changes nothing that can be seen in {}",
            match steps.as_slice() {
                [one] => one.clone(),
                many => counted(many.len(), "step"),
            }
        ),
        text,
        evidence: evidence.collect(),
        against: against.into_iter().collect(),
        weight: WEIGHT,
        targets,
        steps,
    })
}
