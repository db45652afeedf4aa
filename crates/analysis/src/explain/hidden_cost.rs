//! CPU of the engine and its clients that changed where throughput shows no change: something else
//! limits, or noise hides it. Where fsyncs begin or cease with it, or operations are retried more or
//! less often, that is what changed. Device reads of another size are named beside it.

use super::case::{Case, Context, MEAN_READ_SIZE, Pair};
use super::cause::syncs_that_begin_or_cease;
use super::caveats::{cost_frequency, debt};
use super::conflicts::{Conflict, ConflictCount, changed_conflicts};
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::statement::{ChangedCost, CountedCaveat, HiddenCost, Statement};
use super::thresholds::{EXPLAINS, READ_KB_PER_OP_MIN, READ_SIZE_FACTOR, hidden_change};
use crate::compare::{ComparedStep, OWN_CPU, Verdict};
use crate::order::{grouped, sort_largest_first};

/// The weight of a hidden cost, relative to the same change of throughput.
const WEIGHT: f64 = 0.4;

/// Returns one explanation for each target and direction of own CPU that is shown to differ where
/// throughput is not.
pub(super) fn explain<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let mut hidden = Vec::new();
    for cost in context.compared.rows.iter().filter(|row| row.metric == OWN_CPU) {
        let Some(case) = cases.iter().find(|case| place(case.compared) == place(cost)) else {
            continue;
        };

        let throughput = case.compared.verdict;
        let is_hidden = matches!(throughput, Verdict::Equal | Verdict::TooNoisy);
        if hidden_change(cost).is_some() && is_hidden {
            let key = (&cost.cell.target, cost.verdict);
            hidden.push((key, (cost, case)));
        }
    }

    let groups = grouped(hidden).into_iter();
    groups.filter_map(|(_, group)| explanation(group)).collect()
}

fn explanation<'a>(mut costs: Vec<(&'a ComparedStep, &'a Case<'a>)>) -> Option<Explanation<'a>> {
    let size = |cost: &ComparedStep| cost.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    sort_largest_first(&mut costs, |(item, _)| size(item));

    let (cost, case) = *costs.first()?;

    let doubts = [debt(case), cost_frequency(case, cost.ratio?.ln())];
    let caveats = doubts.into_iter().flatten().map(|caveat| CountedCaveat::of_one(case, caveat));

    let fsyncs = syncs_that_begin_or_cease(case);
    let conflicts = changed_conflicts(case, cost.ratio? > 1.0);
    let retries = retries_of_cpu(&conflicts, cost.ratio?).filter(|_| fsyncs.is_none());
    let read_kb = changed_read_kb(case);

    // What the statement names is marked in the evidence.
    let mut evidence = case.evidence();
    if let Some(fsyncs) = fsyncs {
        Evidence::mark_cause(&mut evidence, fsyncs.metric);
    }
    if retries.is_some() {
        Evidence::mark_cause(&mut evidence, Conflict::Retries.metric());
    }
    if read_kb.is_some() {
        Evidence::mark_named(&mut evidence, MEAN_READ_SIZE);
    }

    Some(Explanation {
        places: costs.iter().map(|(cost, _)| place(cost)).collect(),
        evidence,
        caveats: caveats.collect(),
        weight: WEIGHT * size(cost),
        statement: Statement::HiddenCost(HiddenCost {
            is_noisy: costs.iter().any(|(_, case)| case.compared.verdict == Verdict::TooNoisy),
            fsyncs,
            conflicts,
            retries,
            read_kb,
            costs: costs.iter().map(|(cost, case)| changed_cost(cost, case)).collect(),
        }),
    })
}

/// Returns the number of retries per operation, if it makes up enough of the change of own CPU: each
/// attempt is taken to use as much as an operation without retries.
fn retries_of_cpu(conflicts: &[ConflictCount], cpu_ratio: f64) -> Option<Pair> {
    let retries = conflicts.iter().find(|changed| changed.conflict == Conflict::Retries)?;
    let Pair { base, value } = retries.count;

    let share = ((1.0 + value) / (1.0 + base)).ln() / cpu_ratio.ln();
    (share >= EXPLAINS).then_some(retries.count)
}

/// Returns the mean size of device reads, if it is shown to have changed enough to be named.
fn changed_read_kb(case: &Case<'_>) -> Option<Pair> {
    let kb = case.read_kb()?;
    let kb_per_op = case.metric("rkbpq")?;
    if kb.factor() < READ_SIZE_FACTOR || kb_per_op.max() < READ_KB_PER_OP_MIN {
        return None;
    }

    let of_repeats = case.difference(|row| {
        let reads = row.metric("rpq").filter(|reads| *reads > 0.0)?;
        Some((row.metric("rkbpq")? / reads).ln())
    });
    of_repeats?.is_shown().then_some(kb)
}

/// Returns the change of a cost. This is the comparison's ratio, not the ratio of the means.
fn changed_cost(cost: &ComparedStep, case: &Case<'_>) -> ChangedCost {
    ChangedCost {
        ratio: cost.ratio.unwrap_or(1.0),
        interval: cost.interval,
        repeat_count: cost.values.len(),
        case: case.facts(),
    }
}
