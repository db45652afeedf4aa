//! CPU of the engine and its clients that changed where throughput shows no change: something else
//! limits, or noise hides it. Where fsyncs per commit changed with it, or operations are retried more or
//! less often, that is what changed. Device reads of another size are named beside it.

use super::case::{Case, Context, Pair};
use super::caveats::{cost_frequency, debt};
use super::conflicts::{Conflict, ConflictCount, changed_conflicts};
use super::evidence::MEAN_READ_SIZE;
use super::explanation::Explanation;
use super::finding::{Evidence, place};
use super::fsync_counts::changed_fsyncs;
use super::statement::{ChangedCost, CountedCaveat, HiddenCost, Statement};
use super::thresholds::{EXPLAINS, READ_KB_PER_OP_MIN, READ_SIZE_FACTOR, shown_change};
use crate::compare::{ComparedStep, OWN_CPU, Verdict};
use crate::order::{grouped, sort_largest_first};

/// The weight of a hidden cost, relative to the same change of throughput.
const WEIGHT: f64 = 0.4;

/// A step in which own CPU differs, and throughput does not.
struct HiddenStep<'a> {
    case: &'a Case<'a>,
    /// The comparison of own CPU.
    cost: &'a ComparedStep,
    /// Target / base of own CPU, by that comparison.
    ratio: f64,
}

impl HiddenStep<'_> {
    /// Returns the size of the change, the same for twice as much CPU and for half of it.
    fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }

    /// Returns the change for the statement. Its ratio is the comparison's, not that of the means.
    fn changed_cost(&self) -> ChangedCost {
        ChangedCost {
            ratio: self.ratio,
            interval: self.cost.interval,
            repeat_count: self.cost.values.len(),
            case: self.case.facts(),
        }
    }
}

/// Returns one explanation for each target and direction of own CPU that is shown to differ where
/// throughput is not.
pub(super) fn explain<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let mut hidden = Vec::new();
    for cost in context.compared.rows.iter().filter(|row| row.metric == OWN_CPU) {
        let Some(case) = cases.iter().find(|case| place(case.compared) == place(cost)) else {
            continue;
        };
        let throughput = case.compared.verdict;
        if !matches!(throughput, Verdict::Equal | Verdict::TooNoisy) {
            continue;
        }

        // The least change that matters is that of the plan, as it is for throughput.
        if let Some(ratio) = shown_change(cost, context.compared.effect) {
            let key = (&cost.cell.target, cost.verdict);
            hidden.push((key, HiddenStep { case, cost, ratio }));
        }
    }

    let groups = grouped(hidden).into_iter();
    groups.filter_map(|(_, steps)| explanation(steps)).collect()
}

/// Explains the steps of one target and direction; `None` if there are none. The step that changed most
/// stands for all where only one can: in doubts, in evidence, and in what else changed.
fn explanation(mut steps: Vec<HiddenStep<'_>>) -> Option<Explanation<'_>> {
    sort_largest_first(&mut steps, HiddenStep::size);
    let most = steps.first()?;
    let case = most.case;

    // What changed with the CPU. Where fsyncs per commit did, retries are not needed to explain it.
    let costs_more = most.ratio > 1.0;
    let fsyncs = changed_fsyncs(case, costs_more);
    let conflicts = changed_conflicts(case, costs_more);
    let retries = if fsyncs.is_none() { retries_of_cpu(&conflicts, most.ratio) } else { None };
    let read_kb = changed_read_kb(case);

    let mut evidence = case.evidence();
    if let Some(fsyncs) = fsyncs {
        Evidence::mark_cause(&mut evidence, fsyncs.metric);
    } else if retries.is_some() {
        Evidence::mark_cause(&mut evidence, Conflict::Retries.metric());
    } else {
        Evidence::mark_own_cpu(&mut evidence, case);
    }
    if read_kb.is_some() {
        Evidence::mark_named(&mut evidence, MEAN_READ_SIZE);
    }

    let doubts = [debt(case), cost_frequency(case, most.ratio.ln())];
    let caveats = doubts.into_iter().flatten().map(|caveat| CountedCaveat::of_one(case, caveat));

    Some(Explanation {
        places: steps.iter().map(|step| place(step.cost)).collect(),
        evidence,
        caveats: caveats.collect(),
        weight: WEIGHT * most.size(),
        statement: Statement::HiddenCost(HiddenCost {
            is_noisy: case.compared.verdict == Verdict::TooNoisy,
            fsyncs,
            conflicts,
            retries,
            read_kb,
            costs: steps.iter().map(HiddenStep::changed_cost).collect(),
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

    case.read_kb_differs().then_some(kb)
}
