//! Findings of steps whose throughput changed: one for each cause, target and direction; where many targets have the same, one
//! for all of them.

use std::collections::BTreeMap;

use super::case::Case;
use super::cause::{Cause, diagnose};
use super::caveats::{Caveat, caveats, frequency};
use super::difference::{TargetDifference, shared};
use super::thresholds::{NAMED, TARGETS_EACH};
use super::words::{capitalized, counted, distinct, figure, list, pace, range};
use super::{Finding, FindingKind, Naming, counters};
use crate::{Compared, Figures, Pairing, THROUGHPUT};

/// A case with its explanation.
struct ExplainedCase<'a> {
    case: Case<'a>,
    difference: TargetDifference,
    cause: Cause,
}

/// Returns one finding for each group of cases of the same cause. Each case has a verdict.
pub(super) fn findings(
    figures: &Figures,
    compared: &Compared,
    cases: Vec<Case<'_>>,
    naming: Naming,
) -> Vec<Finding> {
    // How many comparisons there are of some targets.
    let total = |targets: &[String]| {
        let rows = compared.rows.iter();
        rows.filter(|row| row.metric == THROUGHPUT && targets.contains(&row.cell.target))
            .count()
    };
    let mut groups: BTreeMap<(FindingKind, bool), Vec<ExplainedCase<'_>>> = BTreeMap::new();
    for case in cases {
        let difference = case.target_difference(figures);
        let cause = diagnose(&case, &difference);
        let key = (cause.kind, case.is_slower());
        groups.entry(key).or_default().push(ExplainedCase {
            case,
            difference,
            cause,
        });
    }
    let mut findings = Vec::new();
    for (_, group) in groups {
        let targets = distinct(group.iter().map(|it| it.case.compared.cell.target.as_str()));
        if targets.len() > TARGETS_EACH {
            findings.extend(finding(figures, group, naming, total));
            continue;
        }
        let mut by_target: BTreeMap<&str, Vec<ExplainedCase<'_>>> = BTreeMap::new();
        for it in group {
            by_target
                .entry(&it.case.compared.cell.target)
                .or_default()
                .push(it);
        }
        for (_, group) in by_target {
            findings.extend(finding(figures, group, naming, total));
        }
    }
    findings
}

/// Returns how much a case matters: the size of the change, more for a loss, which is read before a gain.
fn weight(case: &Case<'_>) -> f64 {
    let loss = if case.is_slower() { 1.25 } else { 1.0 };
    case.ratio.ln().abs() * loss
}

fn finding(
    figures: &Figures,
    mut group: Vec<ExplainedCase<'_>>,
    naming: Naming,
    total: impl Fn(&[String]) -> usize,
) -> Option<Finding> {
    group.sort_by(|a, b| weight(&b.case).total_cmp(&weight(&a.case)));
    let (leading, rest) = group.split_first()?;
    let ExplainedCase { case, cause, .. } = leading;
    let targets = distinct(group.iter().map(|it| it.case.compared.cell.target.as_str()));
    let steps = distinct(group.iter().map(|it| it.case.compared.step.as_str()));

    let mut last = Vec::new();
    last.extend((!rest.is_empty()).then(|| also_in(case, rest, naming, targets.len() > 1)));
    if targets.len() == 1 {
        last.extend(differences(figures, &group));
    }
    let mut text = format!("{} {}", opening(case, naming), cause.sentence);
    if !last.is_empty() {
        text += &format!(" {}.", capitalized(&last.join("; ")));
    }
    let mut evidence = case.evidence();
    evidence.extend(counters::moved(case));
    let count = group.len() as f64;
    Some(Finding {
        kind: cause.kind,
        target: case.compared.cell.target.clone(),
        base: Some(case.base_name.to_owned()),
        workload: case.compared.workload.clone(),
        variant: one(group.iter().map(|it| &it.case.compared.cell.variant)).flatten(),
        clients: one(group.iter().map(|it| &it.case.compared.cell.clients)),
        step: one(group.iter().map(|it| &it.case.compared.step)),
        title: title(&group, &targets, &steps, naming, total(&targets)),
        text,
        evidence,
        caveats: group_caveats(figures, &group),
        weight: weight(case) * (1.0 + count.ln() / 2.0),
        targets,
        steps,
    })
}

/// Returns the item that all have, if all have the same.
fn one<'a, T: Clone + PartialEq + 'a>(mut items: impl Iterator<Item = &'a T>) -> Option<T> {
    let first = items.next()?;
    items.all(|item| item == first).then(|| first.clone())
}

/// `pg17.base: 17% slower in scan: 20% more CPU per query`
fn title(
    group: &[ExplainedCase<'_>],
    targets: &[String],
    steps: &[String],
    naming: Naming,
    total: usize,
) -> String {
    let leading = &group[0];
    let up_to = if group.len() > 1 { "up to " } else { "" };
    let who = match targets {
        [one] => one.clone(),
        many => counted(many.len(), "target"),
    };
    let place = match (group, steps) {
        ([one], _) => format!("in {}", naming.place(one.case.compared)),
        (_, steps) if steps.len() == group.len() && steps.len() <= 3 => {
            let variant = one(group.iter().map(|it| &it.case.compared.cell.variant)).flatten();
            let variant = variant.filter(|_| naming.variants);
            let of = variant.map(|variant| format!(" of {variant}"));
            format!("in {}{}", list(steps), of.unwrap_or_default())
        }
        (_, steps) if steps.len() <= 3 => {
            format!(
                "in {} of {total} comparisons ({})",
                group.len(),
                list(steps)
            )
        }
        _ if targets.len() == 1 => format!("in {} of {total} steps", group.len()),
        _ => format!("in {} of {total} comparisons", group.len()),
    };
    let headline = match group {
        [_] => leading.cause.headline.clone(),
        _ => {
            let is_slower = leading.case.is_slower();
            leading.cause.kind.headline(is_slower).to_owned()
        }
    };
    format!(
        "{who}: {up_to}{} {place}: {headline}",
        pace(leading.case.ratio)
    )
}

/// `pg17.base is 17% slower than pg15.base in scan: 872 -> 725 queries/s, 0.80x to 0.86x over 5 repeats.`
fn opening(case: &Case<'_>, naming: Naming) -> String {
    let interval = case.compared.interval.map(|interval| {
        format!(
            ", {} over {}",
            range(interval.low, interval.high),
            counted(case.compared.values.len(), "repeat")
        )
    });
    format!(
        "{} is {} than {} in {}: {} -> {} {}{}.",
        case.compared.cell.target,
        pace(case.ratio),
        case.base_name,
        naming.place(case.compared),
        figure(case.base.throughput),
        figure(case.side.throughput),
        case.rate(),
        interval.unwrap_or_default()
    )
}

/// Names the other cases of a group; of several targets each first.
fn also_in(
    leading: &Case<'_>,
    rest: &[ExplainedCase<'_>],
    naming: Naming,
    names_targets: bool,
) -> String {
    let mut seen = vec![leading.compared.cell.target.as_str()];
    let (firsts, others): (Vec<_>, Vec<_>) = rest.iter().partition(|it| {
        let target = it.case.compared.cell.target.as_str();
        let is_new = !seen.contains(&target);
        seen.push(target);
        is_new
    });
    let cases: Vec<String> = firsts
        .into_iter()
        .chain(others)
        .map(|it| {
            let who = match names_targets {
                true => format!("{} ", it.case.compared.cell.target),
                false => String::new(),
            };
            let place = naming.place(it.case.compared);
            format!("{who}{place} ({})", pace(it.case.ratio))
        })
        .collect();
    let what = if names_targets { "Also" } else { "Also in" };
    format!("{what} {}", list(&cases))
}

/// Says what differs between the two; of several targets that two runs share each with its name, where they do not differ
/// alike.
fn differences(figures: &Figures, group: &[ExplainedCase<'_>]) -> Vec<String> {
    // A busy host, another clock, or chance is not what a setting does.
    let is_sure = group.iter().all(|it| {
        let is_named = !matches!(
            it.cause.kind,
            FindingKind::HostBusy | FindingKind::Unexplained
        );
        let is_paired = it.case.compared.pairing == Pairing::Paired;
        is_named && is_paired && frequency(&it.case).is_none()
    });
    let mut found: Vec<(Option<&str>, &TargetDifference)> = Vec::new();
    for it in group {
        let of = (shared(figures, it.case.side.rows[0]), &it.difference);
        if !found.contains(&of) {
            found.push(of);
        }
    }
    let (_, first) = found[0];
    if found.iter().all(|(_, difference)| *difference == first) {
        return first.clause("the two", is_sure).into_iter().collect();
    }
    let clause = |(target, difference): &(Option<&str>, &TargetDifference)| {
        let who = target.map_or("the two".to_owned(), |target| format!("the two {target}"));
        difference.clause(&who, is_sure)
    };
    let mut clauses: Vec<String> = found.iter().take(NAMED).filter_map(clause).collect();
    if found.len() > NAMED {
        let more = counted(found.len() - NAMED, "more target");
        let differ = if found.len() - NAMED == 1 {
            "differs"
        } else {
            "differ"
        };
        clauses.push(format!("{more} {differ} in other ways"));
    }
    clauses
}

/// Returns the caveats of the group, each once, with how many cases it is of.
fn group_caveats(figures: &Figures, group: &[ExplainedCase<'_>]) -> Vec<String> {
    let mut found: Vec<(Caveat, usize)> = Vec::new();
    for it in group {
        for caveat in caveats(figures, &it.case, &it.cause, &it.difference) {
            match found
                .iter_mut()
                .find(|(first, _)| first.about == caveat.about)
            {
                Some((_, count)) => *count += 1,
                None => found.push((caveat, 1)),
            }
        }
    }
    found
        .into_iter()
        .map(|(caveat, count)| match count == group.len() {
            true => caveat.text,
            false => format!("{} (in {count} of {})", caveat.text, group.len()),
        })
        .collect()
}
