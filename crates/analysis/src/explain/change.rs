//! Explains changes of throughput: one explanation for each cause, target and direction, or one for
//! all targets if many have the same.

use std::mem::discriminant;

use super::FindingKind;
use super::case::{Case, Context};
use super::cause::{Cause, diagnose};
use super::caveats::{caveats, frequency};
use super::counters;
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::fsync_counts::{FsyncCount, fsyncs_of_setting};
use super::statement::{CountedCaveat, SharedDifference, Statement, ThroughputChange};
use super::thresholds::TARGETS_EACH;
use crate::compare::{Pairing, THROUGHPUT};
use crate::order::{distinct, grouped};

/// A case with its cause.
pub(super) struct ExplainedCase<'a> {
    pub case: &'a Case<'a>,
    pub cause: Cause,
}

/// Returns one explanation for each group of cases of the same cause.
pub(super) fn explain<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let changed = cases.iter().filter(|case| case.compared.verdict.is_change());
    let explained = changed.map(|case| {
        let cause = diagnose(case);
        // Where own CPU is shown to have changed, a change is not as unexplained as elsewhere.
        let has_cpu = cause.is_unexplained() && case.shown_own_cpu_ratio().is_some();
        let words = (cause.kind(), cause.is_too_short(), cause.is_fsync_count(), has_cpu);
        let key = (words, case.is_slower());
        (key, ExplainedCase { case, cause })
    });

    let mut explanations = Vec::new();
    for (_, group) in grouped(explained) {
        let by_target =
            grouped(group.into_iter().map(|explained| (explained.case.target(), explained)));
        let groups = by_target.into_iter().map(|(_, group)| group);

        if groups.len() > TARGETS_EACH {
            explanations.extend(explanation(context, groups.flatten().collect()));
        } else {
            explanations.extend(groups.filter_map(|group| explanation(context, group)));
        }
    }
    explanations
}

/// The weight of a change that a longer step would explain, relative to others: it comes last.
const TOO_SHORT: f64 = 0.001;

/// Returns the importance of a case: the size of the change, more for a loss, so that losses come
/// before gains.
fn weight(case: &Case<'_>) -> f64 {
    let loss = if case.is_slower() { 1.25 } else { 1.0 };
    case.ratio.ln().abs() * loss
}

/// Explains the cases of one cause.
fn explanation<'a>(
    context: Context<'a>,
    mut group: Vec<ExplainedCase<'a>>,
) -> Option<Explanation<'a>> {
    group.sort_by(|a, b| weight(b.case).total_cmp(&weight(a.case)));
    let ExplainedCase { case, cause } = group.first()?;

    let targets = distinct(group.iter().map(|explained| explained.case.target()));
    let comparison_count = context
        .compared
        .rows
        .iter()
        .filter(|row| row.metric == THROUGHPUT)
        .filter(|row| targets.contains(&row.cell.target.as_str()))
        .count();

    let mut evidence = case.evidence();
    evidence.extend(counters::largest_change(case));
    mark_named(&mut evidence, case, cause);

    let is_sure = group.iter().all(ExplainedCase::is_sure);

    // Of several targets, nobody would know whose they are.
    let fsyncs = if targets.len() == 1 { fsyncs_beside_cpu(case, cause) } else { None };

    let mut differences = Vec::new();
    if targets.len() == 1 {
        differences = distinct(group.iter().map(|explained| shared_difference(explained.case)));
    }

    // A change in many steps matters more, but not in proportion.
    let of_count = 1.0 + (group.len() as f64).ln() / 2.0;
    let of_cause = if cause.is_too_short() { TOO_SHORT } else { 1.0 };

    Some(Explanation {
        places: group.iter().map(|explained| place(explained.case.compared)).collect(),
        evidence,
        caveats: counted_caveats(&group),
        weight: weight(case) * of_count * of_cause,
        statement: Statement::Change(ThroughputChange {
            cases: group.iter().map(|explained| explained.case.facts()).collect(),
            cause: cause.clone(),
            fsyncs,
            comparison_count,
            differences,
            is_sure,
        }),
    })
}

/// Returns whether a title with this cause names own CPU.
fn names_own_cpu(case: &Case<'_>, cause: &Cause) -> bool {
    let is_shown = || case.shown_own_cpu_ratio().is_some();
    cause.kind() == FindingKind::Cpu || cause.is_unexplained() && is_shown()
}

/// Returns the fsyncs per commit that a title names beside own CPU, because a setting about durability
/// adds or saves them. On a busy host, waiting for them is often not shown to have changed.
pub(super) fn fsyncs_beside_cpu(case: &Case<'_>, cause: &Cause) -> Option<FsyncCount> {
    if names_own_cpu(case, cause) { fsyncs_of_setting(case, case.is_slower()) } else { None }
}

/// Marks the figures that a title with this cause names.
pub(super) fn mark_named(evidence: &mut [Evidence], case: &Case<'_>, cause: &Cause) {
    if names_own_cpu(case, cause) {
        Evidence::mark_own_cpu(evidence, case);
        if let Some(fsyncs) = fsyncs_beside_cpu(case, cause) {
            Evidence::mark_cause(evidence, fsyncs.metric);
        }
    } else if let Some(metric) = cause.named_metric() {
        Evidence::mark_cause(evidence, metric);
    }
}

impl ExplainedCase<'_> {
    /// Returns whether a setting may be what changed the case: a busy host, another frequency, or
    /// chance is not the effect of one.
    pub(super) fn is_sure(&self) -> bool {
        let is_paired = self.case.compared.pairing == Pairing::Paired;
        self.cause.kind().is_cause() && is_paired && frequency(self.case).is_none()
    }
}

/// Returns the difference between the targets of a case.
pub(super) fn shared_difference(case: &Case<'_>) -> SharedDifference {
    SharedDifference {
        shared: case.shared().map(str::to_owned),
        difference: case.difference.clone(),
    }
}

/// Returns the caveats of a group, each once, with the number of its cases.
pub(super) fn counted_caveats(group: &[ExplainedCase<'_>]) -> Vec<CountedCaveat> {
    let mut counted: Vec<CountedCaveat> = Vec::new();
    for ExplainedCase { case, cause } in group {
        for caveat in caveats(case, cause.kind()) {
            let kind = discriminant(&caveat);
            match counted.iter_mut().find(|known| discriminant(&known.caveat) == kind) {
                Some(known) => known.count += 1,
                None => counted.push(CountedCaveat {
                    caveat,
                    case: case.facts(),
                    count: 1,
                    case_count: group.len(),
                }),
            }
        }
    }
    counted
}
