//! Findings of steps whose throughput changed: one for each cause, target and direction; where many targets have the same, one
//! for all of them.

use std::collections::BTreeMap;

use super::against::{Doubt, doubts, frequency};
use super::apart::{Apart, shared};
use super::case::Case;
use super::cause::{Diagnosis, diagnose, split};
use super::thresholds::{NAMED, TARGETS_EACH};
use super::words::{counted, distinct, figure, list, pace, times};
use super::{Finding, FindingKind, Naming, counters};
use crate::{Compared, Figures, Pairing, THROUGHPUT};

/// A case with what explains it.
struct Told<'a> {
    case: Case<'a>,
    diagnosis: Diagnosis,
}

/// One finding for each group of cases of the same cause.
pub(super) fn findings(
    figures: &Figures,
    compared: &Compared,
    cases: Vec<Case<'_>>,
    naming: Naming,
) -> Vec<Finding> {
    // How many comparisons there are of some targets.
    let total = |targets: &[String]| {
        let rows = compared.rows.iter();
        rows.filter(|row| row.metric == THROUGHPUT && targets.contains(&row.target))
            .count()
    };
    let mut groups: BTreeMap<(FindingKind, bool), Vec<Told<'_>>> = BTreeMap::new();
    for case in cases {
        let diagnosis = diagnose(&case);
        let key = (diagnosis.cause.kind, case.is_slower());
        groups
            .entry(key)
            .or_default()
            .push(Told { case, diagnosis });
    }
    let mut findings = Vec::new();
    for (_, group) in groups {
        let targets = distinct(group.iter().map(|told| told.case.compared.target.as_str()));
        if targets.len() > TARGETS_EACH {
            findings.extend(finding(figures, group, naming, total));
            continue;
        }
        let mut by_target: Vec<(String, Vec<Told<'_>>)> = targets
            .into_iter()
            .map(|target| (target, Vec::new()))
            .collect();
        for told in group {
            let of_target = by_target
                .iter_mut()
                .find(|(target, _)| *target == told.case.compared.target);
            if let Some((_, group)) = of_target {
                group.push(told);
            }
        }
        for (_, group) in by_target {
            findings.extend(finding(figures, group, naming, total));
        }
    }
    findings
}

/// How much a case weighs: the size of the change, less where chance can't be ruled out.
fn weight(case: &Case<'_>) -> f64 {
    let sure = if case.is_shown() { 1.0 } else { 0.5 };
    // A loss is read before a gain.
    let loss = if case.is_slower() { 1.25 } else { 1.0 };
    case.ratio.ln().abs() * sure * loss
}

fn finding(
    figures: &Figures,
    mut group: Vec<Told<'_>>,
    naming: Naming,
    total: impl Fn(&[String]) -> usize,
) -> Option<Finding> {
    group.sort_by(|a, b| weight(&b.case).total_cmp(&weight(&a.case)));
    let (leading, rest) = group.split_first()?;
    let Told { case, diagnosis } = leading;
    let Diagnosis { cause, beside } = diagnosis;
    let targets = distinct(group.iter().map(|told| told.case.compared.target.as_str()));
    let steps = distinct(group.iter().map(|told| told.case.compared.step.as_str()));

    let mut sentences = vec![opening(case, naming), cause.sentence.clone()];
    // A wait says the same already.
    if cause.kind != FindingKind::Waiting {
        sentences.extend(split(case));
    }
    let moved = |along: bool| -> Vec<String> {
        let others = beside.iter().filter(|other| (other.score > 0.0) == along);
        others.map(|other| other.brief.clone()).collect()
    };
    for (what, others) in [
        ("Beside it", moved(true)),
        ("The other way went", moved(false)),
    ] {
        if !others.is_empty() {
            sentences.push(format!("{what}: {}.", others.join("; ")));
        }
    }
    let told = (cause.kind == FindingKind::Fsyncs).then_some("sync");
    let mut evidence = case.evidence();
    if let Some((sentence, moved)) = counters::moved(case, told) {
        sentences.push(sentence);
        evidence.push(moved);
    }
    if !rest.is_empty() {
        sentences.push(likewise(case, rest, naming, targets.len() > 1));
    }
    if targets.len() == 1 {
        sentences.extend(apart(figures, &group));
    }

    let against = against(figures, &group);
    let certainty = if group.iter().any(|told| told.case.is_shown()) {
        ""
    } else {
        " (single runs)"
    };
    let count = group.len() as f64;
    Some(Finding {
        kind: cause.kind,
        target: case.compared.target.clone(),
        base: Some(case.base_name.to_owned()),
        workload: case.compared.workload.clone(),
        variant: one(group.iter().map(|told| &told.case.compared.variant)).flatten(),
        clients: one(group.iter().map(|told| &told.case.compared.clients)),
        step: one(group.iter().map(|told| &told.case.compared.step)),
        title: format!(
            "{}{certainty}",
            title(&group, &targets, &steps, naming, total(&targets))
        ),
        text: sentences.join(" "),
        evidence,
        against,
        weight: weight(case) * (1.0 + count.ln() / 2.0),
        targets,
        steps,
    })
}

/// What all have, if all have the same.
fn one<'a, T: Clone + PartialEq + 'a>(mut items: impl Iterator<Item = &'a T>) -> Option<T> {
    let first = items.next()?;
    items.all(|item| item == first).then(|| first.clone())
}

/// `pg17.base: 17% slower in scan: 20% more CPU per query`
fn title(
    group: &[Told<'_>],
    targets: &[String],
    steps: &[String],
    naming: Naming,
    total: usize,
) -> String {
    let leading = &group[0];
    let pace = pace(leading.case.ratio);
    let upto = match group {
        [_] => "",
        [told, ..] if told.case.ratio <= 0.5 => "down to ",
        _ => "up to ",
    };
    let who = match targets {
        [one] => one.clone(),
        many => counted(many.len(), "target"),
    };
    let place = match (group, steps) {
        ([one], _) => format!("in {}", naming.place(one.case.compared)),
        (_, steps) if steps.len() == group.len() && steps.len() <= 3 => {
            let variant = one(group.iter().map(|told| &told.case.compared.variant)).flatten();
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
        [_] => leading.diagnosis.cause.headline.clone(),
        _ => {
            let is_slower = leading.case.is_slower();
            leading.diagnosis.cause.kind.headline(is_slower).to_owned()
        }
    };
    format!("{who}: {upto}{pace} {place}: {headline}")
}

/// `scan at 40 clients runs at 0.83x of my8028: 872 -> 725 queries/s (0.80x to 0.86x over 5 repeats).`
fn opening(case: &Case<'_>, naming: Naming) -> String {
    let sure = match (&case.compared.interval, case.is_shown()) {
        (Some(interval), true) => format!(
            "{} to {} over {}",
            times(interval.low),
            times(interval.high),
            counted(case.compared.values.len(), "repeat")
        ),
        _ => "single runs".to_owned(),
    };
    format!(
        "{} runs {} at {} of {}: {} -> {} {} ({sure}).",
        case.compared.target,
        naming.place(case.compared),
        times(case.ratio),
        case.base_name,
        figure(case.base.throughput),
        figure(case.side.throughput),
        case.rate()
    )
}

/// The other cases of a group, each with the figure that it rests on; of several targets each first.
fn likewise(leading: &Case<'_>, rest: &[Told<'_>], naming: Naming, names_targets: bool) -> String {
    let mut seen = vec![leading.compared.target.as_str()];
    let (firsts, others): (Vec<_>, Vec<_>) = rest.iter().partition(|told| {
        let target = told.case.compared.target.as_str();
        let is_new = !seen.contains(&target);
        seen.push(target);
        is_new
    });
    let rest: Vec<&Told<'_>> = firsts.into_iter().chain(others).collect();
    let (shown, more) = rest.split_at(rest.len().min(NAMED));
    let mut cases: Vec<String> = shown
        .iter()
        .map(|told| {
            let who = match names_targets {
                true => format!("{} ", told.case.compared.target),
                false => String::new(),
            };
            format!(
                "{who}{} ({}; {})",
                naming.place(told.case.compared),
                times(told.case.ratio),
                told.diagnosis.cause.brief
            )
        })
        .collect();
    if !more.is_empty() {
        cases.push(format!("{} more", more.len()));
    }
    format!("The same: {}.", cases.join(", "))
}

/// In what the two differ; of several targets that two runs share each with its name, as far as they don't differ alike.
fn apart(figures: &Figures, group: &[Told<'_>]) -> Vec<String> {
    // What the host did, or chance, is no setting's doing.
    let is_sure = group.iter().all(|told| {
        let is_host =
            told.diagnosis.cause.kind == FindingKind::HostBusy || frequency(&told.case).is_some();
        told.case.is_shown() && told.case.compared.pairing == Pairing::Paired && !is_host
    });
    let mut found: Vec<(Option<&str>, Apart)> = Vec::new();
    for case in group.iter().map(|told| &told.case) {
        let of = (shared(figures, case.side.rows[0]), case.apart(figures));
        if !found.contains(&of) {
            found.push(of);
        }
    }
    let (_, first) = &found[0];
    if found.iter().all(|(_, apart)| apart == first) {
        return first.sentence("The two", is_sure).into_iter().collect();
    }
    let sentence = |(target, apart): &(Option<&str>, Apart)| {
        let who = target.map_or("The two".to_owned(), |target| {
            format!("Of {target} the two")
        });
        apart.sentence(&who, is_sure)
    };
    let mut sentences: Vec<String> = found.iter().take(NAMED).filter_map(sentence).collect();
    if found.len() > NAMED {
        let more = counted(found.len() - NAMED, "more target");
        sentences.push(format!("{more} differ otherwise."));
    }
    sentences
}

/// All that speaks against the group, each once, with how many cases it is of.
fn against(figures: &Figures, group: &[Told<'_>]) -> Vec<String> {
    let mut found: Vec<(Doubt, usize)> = Vec::new();
    for told in group {
        let apart = told.case.apart(figures);
        for doubt in doubts(figures, &told.case, &told.diagnosis, &apart) {
            match found
                .iter_mut()
                .find(|(first, _)| first.about == doubt.about)
            {
                Some((_, count)) => *count += 1,
                None => found.push((doubt, 1)),
            }
        }
    }
    found
        .into_iter()
        .map(|(doubt, count)| match count == group.len() {
            true => doubt.text,
            false => format!("{} (in {count} of {})", doubt.text, group.len()),
        })
        .collect()
}
