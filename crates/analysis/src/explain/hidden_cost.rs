//! CPU of the engine and its clients that changed where throughput shows no change: something else limits, or noise hides it.

use super::case::Case;
use super::caveats::clock;
use super::thresholds::{HIDDEN_CHANGE, NAMED};
use super::words::{counted, distinct, list, more, range};
use super::{Finding, FindingKind, Naming};
use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};

/// The weight of a hidden cost against the same change of throughput.
const WEIGHT: f64 = 0.4;

/// CPU of the connections that do the operation, client and server: that of nobody else.
const METRIC: &str = "own_cpu_us_per_op";

/// Returns one finding for each target and direction of own CPU that is shown to differ where throughput is not.
pub(super) fn findings(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let throughput_of = |cost: &ComparedStep| {
        compared.rows.iter().find(|row| {
            row.metric == THROUGHPUT
                && (&row.cell, &row.workload, &row.step) == (&cost.cell, &cost.workload, &cost.step)
        })
    };
    let hidden = compared.rows.iter().filter_map(|cost| {
        let is_shown = matches!(cost.verdict, Verdict::Faster | Verdict::Slower);
        let ratio = cost.ratio?;
        let is_large = ratio.max(1.0 / ratio) >= 1.0 + HIDDEN_CHANGE;
        let throughput = throughput_of(cost)?;
        let is_hidden = matches!(
            throughput.verdict,
            Verdict::NoChangeShown | Verdict::TooNoisy
        );
        (cost.metric == METRIC && is_shown && is_large && is_hidden).then_some((cost, throughput))
    });
    let mut groups: Vec<Vec<(&ComparedStep, Case<'_>)>> = Vec::new();
    for (cost, throughput) in hidden {
        let Some(case) = Case::new(figures, &compared.base, throughput) else {
            continue;
        };
        let same = groups.iter_mut().find(|group| {
            let (first, _) = &group[0];
            first.cell.target == cost.cell.target && first.verdict == cost.verdict
        });
        match same {
            Some(group) => group.push((cost, case)),
            None => groups.push(vec![(cost, case)]),
        }
    }
    groups
        .into_iter()
        .filter_map(|group| finding(compared, group, naming))
        .collect()
}

fn finding(
    compared: &Compared,
    mut group: Vec<(&ComparedStep, Case<'_>)>,
    naming: Naming,
) -> Option<Finding> {
    let size = |cost: &ComparedStep| cost.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    group.sort_by(|(a, _), (b, _)| size(b).total_cmp(&size(a)));
    let (cost, case) = group.first()?;
    let (target, ratio) = (cost.cell.target.clone(), cost.ratio?);
    let places: Vec<String> = group
        .iter()
        .filter_map(|(cost, case)| {
            let (place, cpu) = (naming.place(case.compared), case.metric(METRIC)?);
            let interval = cost.interval?;
            let range = range(interval.low, interval.high);
            Some(format!("{place} {} ({range})", cpu.text("us")))
        })
        .collect();
    let steps = distinct(group.iter().map(|(cost, _)| cost.step.as_str()));
    let is_noisy = group
        .iter()
        .any(|(_, case)| case.compared.verdict == Verdict::TooNoisy);
    let throughput = match is_noisy {
        true => "throughput too noisy to say",
        false => "no change of throughput shown",
    };
    let per = case.noun();
    let title = format!(
        "{target}: {} per {per} in {}, {throughput}",
        more(ratio, "own CPU"),
        match steps.as_slice() {
            [one] => one.clone(),
            many => counted(many.len(), "step"),
        }
    );
    let named = &places[..places.len().min(NAMED)];
    let rest = match places.len() - named.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let text = format!(
        "CPU of the engine and its clients per {per}, against {}, over {}: {}{rest}. {}",
        compared.base,
        counted(cost.values.len(), "repeat"),
        list(named),
        match is_noisy {
            true => "Throughput varies too much between repeats to show what that does to it.",
            false => "Throughput shows no change.",
        }
    );
    Some(Finding {
        kind: FindingKind::HiddenCost,
        base: Some(compared.base.clone()),
        workload: cost.workload.clone(),
        variant: cost.cell.variant.clone().filter(|_| group.len() == 1),
        clients: (group.len() == 1).then_some(cost.cell.clients),
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title,
        text,
        evidence: case.evidence(),
        caveats: clock(case, ratio.ln()).into_iter().collect(),
        weight: WEIGHT * ratio.ln().abs(),
        targets: vec![target.clone()],
        target,
        steps,
    })
}
