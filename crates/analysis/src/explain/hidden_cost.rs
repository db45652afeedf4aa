//! CPU of the engine and its clients that changed where throughput shows no change: something else limits, or noise hides it.

use super::case::Case;
use super::caveats::clock;
use super::thresholds::{HIDDEN_CHANGE, NAMED};
use super::words::{counted, factor_within, figure, list, range};
use super::{Context, Finding, FindingKind, place};
use crate::order::grouped;
use crate::{Compared, ComparedStep, Verdict};

/// The weight of a hidden cost against the same change of throughput.
const WEIGHT: f64 = 0.4;

/// CPU of the connections that do the operation, client and server: that of nobody else.
const METRIC: &str = "own_cpu_us_per_op";

/// Returns one finding for each target and direction of own CPU that is shown to differ where throughput is not.
pub(super) fn findings(context: Context<'_>, cases: &[Case<'_>]) -> Vec<Finding> {
    let rows = context.compared.rows.iter();
    let cases = rows
        .filter(|cost| cost.metric == METRIC)
        .filter_map(|cost| {
            let case = cases
                .iter()
                .find(|case| place(case.compared) == place(cost))?;
            let is_shown = matches!(cost.verdict, Verdict::Faster | Verdict::Slower);
            let ratio = cost.ratio?;
            let is_large = ratio.max(1.0 / ratio) >= 1.0 + HIDDEN_CHANGE;
            let throughput = case.compared.verdict;
            let is_hidden = matches!(throughput, Verdict::NoChangeShown | Verdict::TooNoisy);
            let key = (&cost.cell.target, cost.verdict);
            (is_shown && is_large && is_hidden).then_some((key, (cost, case)))
        });
    let groups = grouped(cases).into_iter();
    groups
        .filter_map(|(_, group)| finding(context.compared, group))
        .collect()
}

fn finding(compared: &Compared, mut group: Vec<(&ComparedStep, &Case<'_>)>) -> Option<Finding> {
    let size = |cost: &ComparedStep| cost.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    group.sort_by(|(a, _), (b, _)| size(b).total_cmp(&size(a)));
    let (cost, case) = group.first()?;
    let ratio = cost.ratio?;
    let places_of = group.iter().map(|(cost, _)| place(cost));
    let about = Finding::about(FindingKind::HiddenCost, &compared.base, places_of)?;
    let places: Vec<String> = group
        .iter()
        .filter_map(|(cost, case)| {
            let (place, cpu) = (case.place(), case.metric(METRIC)?);
            let (ratio, interval) = (cost.ratio?, cost.interval?);
            let less = if ratio < 1.0 { " less" } else { "" };
            Some(format!(
                "{place} {} -> {} us, {}{less} ({})",
                figure(cpu.base),
                figure(cpu.value),
                factor_within(ratio, cost.interval),
                range(interval)
            ))
        })
        .collect();
    let is_noisy = group
        .iter()
        .any(|(_, case)| case.compared.verdict == Verdict::TooNoisy);
    let (throughput, why) = match is_noisy {
        true => (
            "throughput too noisy to say",
            "Throughput varies too much between repeats to show what that does to it.",
        ),
        false => (
            "no change of throughput shown",
            "Throughput shows no change.",
        ),
    };
    let per = case.noun();
    let more = if ratio < 1.0 { "less" } else { "more" };
    let named = &places[..places.len().min(NAMED)];
    let rest = match places.len() - named.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let text = format!(
        "CPU of the engine and its clients per {per}, against {}, over {}: {}{rest}. {why}",
        compared.base,
        counted(cost.values.len(), "repeat"),
        list(named),
    );
    Some(Finding {
        title: format!(
            "{}: {} {more} own CPU per {per} in {}, {throughput}",
            about.target,
            // As the comparison has it, which is not the ratio of the means.
            factor_within(ratio, cost.interval),
            about.place()
        ),
        text,
        evidence: case.evidence(),
        caveats: clock(case, ratio.ln()).into_iter().collect(),
        weight: WEIGHT * ratio.ln().abs(),
        ..about
    })
}
