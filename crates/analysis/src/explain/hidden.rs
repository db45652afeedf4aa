//! Costs that changed where throughput did not: something else limits, and hides them.

use super::against::clock;
use super::case::Case;
use super::thresholds::{NAMED, SINGLE_CHANGE};
use super::words::{change, distinct, more};
use super::{Finding, FindingKind, Naming};
use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};

/// What a hidden cost weighs against the same change of throughput.
const WEIGHT: f64 = 0.4;

/// CPU per operation that is shown to differ where throughput is shown not to: one finding for each target and direction.
pub(super) fn findings(figures: &Figures, compared: &Compared, naming: Naming) -> Vec<Finding> {
    let throughput_of = |cost: &ComparedStep| {
        compared.rows.iter().find(|row| {
            row.metric == THROUGHPUT
                && row.target == cost.target
                && row.workload == cost.workload
                && row.variant == cost.variant
                && row.clients == cost.clients
                && row.step == cost.step
        })
    };
    let hidden = compared.rows.iter().filter_map(|cost| {
        let is_shown = matches!(cost.verdict, Verdict::Faster | Verdict::Slower);
        let ratio = cost.ratio?;
        let is_large = ratio.max(1.0 / ratio) >= 1.0 + SINGLE_CHANGE;
        let throughput = throughput_of(cost)?;
        let counts = cost.metric == "cpupq" && is_shown && is_large;
        (counts && throughput.verdict == Verdict::NoChangeShown).then_some((cost, throughput))
    });
    let mut groups: Vec<Vec<(&ComparedStep, Case<'_>)>> = Vec::new();
    for (cost, throughput) in hidden {
        let Some(case) = Case::new(figures, &compared.base, throughput) else {
            continue;
        };
        let same = groups.iter_mut().find(|group| {
            let (first, _) = &group[0];
            first.target == cost.target && first.verdict == cost.verdict
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
    let (target, ratio) = (cost.target.clone(), cost.ratio?);
    let places: Vec<String> = group
        .iter()
        .take(NAMED)
        .filter_map(|(_, case)| {
            let cpu = case.cpu()?;
            Some(format!(
                "{} ({})",
                naming.place(case.compared),
                change(cpu.base, cpu.value, "us")
            ))
        })
        .collect();
    let more_places = match group.len().saturating_sub(NAMED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let steps = distinct(group.iter().map(|(cost, _)| cost.step.as_str()));
    let title = format!(
        "{target}: {} per {} at the same throughput in {}",
        more(ratio, "CPU"),
        case.noun(),
        match steps.as_slice() {
            [one] => one.clone(),
            many => super::words::counted(many.len(), "step"),
        }
    );
    let text = format!(
        "CPU per operation against {}: {}{more_places}; no change of throughput is shown there. Something else limits: the \
         rate of writes, the device, or the client; where CPU is what limits, this would be seen.",
        compared.base,
        places.join(", "),
    );
    Some(Finding {
        kind: FindingKind::HiddenCost,
        base: Some(compared.base.clone()),
        workload: cost.workload.clone(),
        variant: cost.variant.clone().filter(|_| group.len() == 1),
        clients: (group.len() == 1).then_some(cost.clients),
        step: (steps.len() == 1).then(|| steps[0].clone()),
        title,
        text,
        evidence: case.evidence(),
        against: clock(case, ratio.ln()).into_iter().collect(),
        weight: WEIGHT * ratio.ln().abs(),
        targets: vec![target.clone()],
        target,
        steps,
    })
}
