//! Facts about targets that were measured once: without an interval there is no verdict, and so no cause.

use super::case::Case;
use super::cause::FSYNCS;
use super::thresholds::{BEGINS_FACTOR, FSYNCS_PER_COMMIT_MIN, NAMED};
use super::words::{counted, list};
use super::{Context, Finding, FindingKind, place};
use crate::Verdict;
use crate::order::grouped;

/// Facts come after all findings.
const WEIGHT: f64 = 0.01;

/// Lists in one finding what engines themselves say differs, target by target: fsyncs per commit, and declared settings.
pub(super) fn facts(context: Context<'_>, cases: &[Case<'_>]) -> Option<Finding> {
    let cases = cases.iter();
    let single = cases.filter(|case| case.compared.verdict == Verdict::Single);
    let mut about = Vec::new();
    let mut lines = Vec::new();
    for (who, cases) in grouped(single.map(|case| (case.who(), case))) {
        let fsyncs: Vec<String> = cases.iter().filter_map(|case| fsyncs(case)).collect();
        let settings = cases[0].difference.brief();
        let fsyncs = (!fsyncs.is_empty()).then(|| list(&fsyncs));
        let settings = settings.map(|settings| format!("settings that differ: {settings}"));
        let parts: Vec<String> = fsyncs.into_iter().chain(settings).collect();
        if !parts.is_empty() {
            about.extend(cases.iter().map(|case| place(case.compared)));
            lines.push(format!("{who}: {}.", parts.join("; ")));
        }
    }
    if lines.len() > NAMED {
        let more = counted(lines.len() - NAMED, "more target");
        lines.truncate(NAMED);
        lines.push(format!("And {more}."));
    }
    Some(Finding {
        title: "Measured once, so no causes are named; known differences".to_owned(),
        text: lines.join(" "),
        weight: WEIGHT,
        ..Finding::about(FindingKind::Facts, &context.compared.base, about)?
    })
}

/// `fsyncs per commit 1.01 -> 0.01 in l.i1`, where the engine counts ten times as many or few.
fn fsyncs(case: &Case<'_>) -> Option<String> {
    FSYNCS.iter().find_map(|(name, _, many)| {
        let pair = case.metric(name)?;
        let is_other = pair.factor() >= BEGINS_FACTOR && pair.max() >= FSYNCS_PER_COMMIT_MIN;
        let place = case.place();
        is_other.then(|| format!("{many} per commit {} in {place}", pair.text("")))
    })
}
