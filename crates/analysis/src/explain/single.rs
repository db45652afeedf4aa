//! Facts about targets that were measured once: without an interval there is no verdict, and so no cause.

use super::case::Case;
use super::cause::{FSYNCS, plural};
use super::difference::shared;
use super::thresholds::{BEGINS_FACTOR, FSYNCS_PER_COMMIT_MIN, NAMED};
use super::words::{counted, distinct, list};
use super::{Finding, FindingKind, Naming};
use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};

/// Facts come after all findings.
const WEIGHT: f64 = 0.01;

/// Lists in one finding what engines themselves say differs, target by target: fsyncs per commit, and declared settings.
pub(super) fn facts(figures: &Figures, compared: &Compared, naming: Naming) -> Option<Finding> {
    let is_single =
        |row: &&ComparedStep| row.metric == THROUGHPUT && row.verdict == Verdict::Single;
    let rows = compared.rows.iter().filter(is_single);
    let cases: Vec<Case<'_>> = rows
        .filter_map(|row| Case::new(figures, &compared.base, row))
        .collect();
    let who = |case: &Case<'_>| {
        let target = &case.compared.cell.target;
        match shared(figures, case.side.rows[0]) {
            Some(shared) => format!("{target} of {shared}"),
            None => target.clone(),
        }
    };
    let names: Vec<String> = cases.iter().map(&who).collect();
    let mut facts: Vec<(&str, String)> = Vec::new();
    for name in distinct(names.iter().map(String::as_str)) {
        let of_target: Vec<&Case<'_>> = cases.iter().filter(|case| who(case) == name).collect();
        let mut parts: Vec<String> = Vec::new();
        let fsyncs: Vec<String> = of_target
            .iter()
            .filter_map(|case| fsyncs(case, naming))
            .collect();
        parts.extend((!fsyncs.is_empty()).then(|| list(&fsyncs)));
        let settings = of_target[0].target_difference(figures).brief();
        parts.extend(settings.map(|settings| format!("settings that differ: {settings}")));
        if !parts.is_empty() {
            let target = of_target[0].compared.cell.target.as_str();
            facts.push((target, format!("{name}: {}.", parts.join("; "))));
        }
    }
    let first = &cases.first()?.compared;
    let more = facts.len().saturating_sub(NAMED);
    let mut lines: Vec<String> = facts
        .iter()
        .take(NAMED)
        .map(|(_, line)| line.clone())
        .collect();
    lines.extend((more > 0).then(|| format!("And {}.", counted(more, "more target"))));
    let targets = distinct(facts.iter().map(|(target, _)| *target));
    Some(Finding {
        kind: FindingKind::Facts,
        target: targets.first()?.clone(),
        base: Some(compared.base.clone()),
        workload: first.workload.clone(),
        variant: None,
        clients: None,
        step: None,
        title: "Measured once, so no causes are named; known differences".to_owned(),
        text: lines.join(" "),
        evidence: Vec::new(),
        caveats: Vec::new(),
        weight: WEIGHT,
        targets,
        steps: distinct(cases.iter().map(|case| case.compared.step.as_str())),
    })
}

/// `fsyncs per commit 1.01 -> 0.01 in l.i1`, where the engine counts ten times as many or few.
fn fsyncs(case: &Case<'_>, naming: Naming) -> Option<String> {
    FSYNCS.iter().find_map(|(name, what)| {
        let pair = case.metric(name)?;
        let is_other = pair.factor() >= BEGINS_FACTOR && pair.max() >= FSYNCS_PER_COMMIT_MIN;
        let place = naming.place(case.compared);
        is_other.then(|| format!("{} per commit {} in {place}", plural(what), pair.text("")))
    })
}
