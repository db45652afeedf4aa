//! Findings of steps whose throughput changed: one for each cause, target and direction; where many targets have the same, one
//! for all of them.

use super::case::Case;
use super::cause::{Cause, diagnose};
use super::caveats::{caveats, frequency};
use super::difference::TargetDifference;
use super::thresholds::{NAMED, TARGETS_EACH};
use super::words::{capitalized, counted, figure, list, pace, range};
use super::{Context, Finding, counters, place};
use crate::order::{distinct, grouped};
use crate::{Pairing, THROUGHPUT, Verdict};

/// A case with its explanation.
struct ExplainedCase<'a> {
    case: &'a Case<'a>,
    cause: Cause,
}

/// Returns one finding for each group of cases of the same cause.
pub(super) fn findings(context: Context<'_>, cases: &[Case<'_>]) -> Vec<Finding> {
    let has_changed =
        |case: &&Case<'_>| matches!(case.compared.verdict, Verdict::Faster | Verdict::Slower);
    let explained = cases.iter().filter(has_changed).map(|case| {
        let cause = diagnose(case);
        (
            (cause.kind, case.is_slower()),
            ExplainedCase { case, cause },
        )
    });
    let mut findings = Vec::new();
    for (_, group) in grouped(explained) {
        let by_target = grouped(group.into_iter().map(|it| (it.case.target(), it)));
        let groups = by_target.into_iter().map(|(_, group)| group);
        if groups.len() > TARGETS_EACH {
            findings.extend(finding(context, groups.flatten().collect()));
        } else {
            findings.extend(groups.filter_map(|group| finding(context, group)));
        }
    }
    findings
}

/// Returns how much a case matters: the size of the change, more for a loss, which is read before a gain.
fn weight(case: &Case<'_>) -> f64 {
    let loss = if case.is_slower() { 1.25 } else { 1.0 };
    case.ratio.ln().abs() * loss
}

fn finding(context: Context<'_>, mut group: Vec<ExplainedCase<'_>>) -> Option<Finding> {
    group.sort_by(|a, b| weight(b.case).total_cmp(&weight(a.case)));
    let (ExplainedCase { case, cause }, rest) = group.split_first()?;
    let places = group.iter().map(|it| place(it.case.compared));
    let about = Finding::about(cause.kind, case.base_name(), places)?;
    let mut last = Vec::new();
    last.extend((!rest.is_empty()).then(|| also_in(case, rest, about.targets.len() > 1)));
    if about.targets.len() == 1 {
        last.extend(differences(&group));
    }
    let mut text = format!("{} {}", opening(case), cause.sentence);
    if !last.is_empty() {
        text += &format!(" {}.", capitalized(&last.join("; ")));
    }
    let mut evidence = case.evidence();
    evidence.extend(counters::moved(case));
    let count = group.len() as f64;
    let of_all = cause.kind.headline(case.is_slower());
    let headline = if rest.is_empty() {
        &cause.headline
    } else {
        &of_all
    };
    Some(Finding {
        title: format!("{}: {headline}", title(context, &group, &about)),
        cause: Some(of_all),
        text,
        evidence,
        caveats: group_caveats(&group),
        weight: weight(case) * (1.0 + count.ln() / 2.0),
        ..about
    })
}

/// `pg17.base: 1.20x slower in scan`
fn title(context: Context<'_>, group: &[ExplainedCase<'_>], about: &Finding) -> String {
    // How many comparisons there are of these targets.
    let of_targets = context.compared.rows.iter();
    let of_targets = of_targets.filter(|row| about.targets.contains(&row.cell.target));
    let total = of_targets.filter(|row| row.metric == THROUGHPUT).count();
    let (leading, steps) = (&group[0], &about.steps);
    let up_to = if group.len() > 1 { "up to " } else { "" };
    let who = match about.targets.as_slice() {
        [one] => one.clone(),
        many => counted(many.len(), "target"),
    };
    let place = match (group, steps.len()) {
        ([one], _) => format!("in {}", one.case.place()),
        (_, count) if count == group.len() && count <= 3 => {
            let variant = about.variant.as_ref().filter(|_| context.names_variants);
            let of = variant.map(|variant| format!(" of {variant}"));
            format!("in {}{}", list(steps), of.unwrap_or_default())
        }
        (_, ..=3) => {
            format!(
                "in {} of {total} comparisons ({})",
                group.len(),
                list(steps)
            )
        }
        _ if about.targets.len() == 1 => format!("in {} of {total} steps", group.len()),
        _ => format!("in {} of {total} comparisons", group.len()),
    };
    format!(
        "{who}: {up_to}{} {place}",
        pace(leading.case.ratio, leading.case.compared.interval)
    )
}

/// `pg17.base is 1.20x slower than pg15.base in scan: 872 -> 725 queries/s, 1.16x to 1.25x over 5 repeats.`
fn opening(case: &Case<'_>) -> String {
    let interval = case.compared.interval.map(|interval| {
        format!(
            ", {} over {}",
            range(interval),
            counted(case.compared.values.len(), "repeat")
        )
    });
    format!(
        "{} is {} than {} in {}: {} -> {} {}{}.",
        case.target(),
        pace(case.ratio, case.compared.interval),
        case.base_name(),
        case.place(),
        figure(case.base.throughput),
        figure(case.side.throughput),
        case.rate(),
        interval.unwrap_or_default()
    )
}

/// Names the other cases of a group; of several targets each first.
fn also_in(leading: &Case<'_>, rest: &[ExplainedCase<'_>], names_targets: bool) -> String {
    let mut seen = vec![leading.target()];
    let (firsts, others): (Vec<_>, Vec<_>) = rest.iter().map(|it| it.case).partition(|case| {
        let is_new = !seen.contains(&case.target());
        seen.push(case.target());
        is_new
    });
    let cases = firsts.into_iter().chain(others).map(|case| {
        let who = match names_targets {
            true => format!("{} ", case.target()),
            false => String::new(),
        };
        format!(
            "{who}{} ({})",
            case.place(),
            pace(case.ratio, case.compared.interval)
        )
    });
    let what = if names_targets { "Also" } else { "Also in" };
    format!("{what} {}", list(&cases.collect::<Vec<_>>()))
}

/// Says what differs between the two; of several targets that two runs share each with its name, where they do not differ
/// alike.
fn differences(group: &[ExplainedCase<'_>]) -> Vec<String> {
    // A busy host, another clock, or chance is not what a setting does.
    let is_sure = group.iter().all(|it| {
        let is_paired = it.case.compared.pairing == Pairing::Paired;
        it.cause.kind.is_cause() && is_paired && frequency(it.case).is_none()
    });
    let of_cases = group
        .iter()
        .map(|it| (it.case.shared(), &it.case.difference));
    let found = distinct(of_cases);
    let (_, first) = found[0];
    if found.iter().all(|(_, difference)| *difference == first) {
        return first.clause("the two", is_sure).into_iter().collect();
    }
    let clause = |(target, difference): &(Option<&str>, &TargetDifference)| {
        let who = target.map_or("the two".to_owned(), |target| format!("the two {target}"));
        difference.clause(&who, is_sure)
    };
    let mut clauses: Vec<String> = found.iter().take(NAMED).filter_map(clause).collect();
    match found.len().saturating_sub(NAMED) {
        0 => {}
        1 => clauses.push("1 more target differs in other ways".to_owned()),
        more => clauses.push(format!("{more} more targets differ in other ways")),
    }
    clauses
}

/// Returns the caveats of the group, each once, with how many cases it is of.
fn group_caveats(group: &[ExplainedCase<'_>]) -> Vec<String> {
    let caveats = group.iter().flat_map(|it| caveats(it.case, &it.cause));
    let texts = grouped(caveats.map(|caveat| (caveat.about, caveat.text))).into_iter();
    texts
        .map(|(_, texts)| match texts.len() {
            count if count == group.len() => texts[0].clone(),
            count => format!("{} (in {count} of {})", texts[0], group.len()),
        })
        .collect()
}
