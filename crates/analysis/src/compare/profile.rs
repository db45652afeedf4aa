//! CPU profiles: the cost of each function per operation, and the functions whose cost changed.
//!
//! A profile says which share of the samples was in a function. The share times the step's CPU per
//! operation, as the repeats without a profiler measured it, is the function's cost.
//! `docs/profiles.md` explains the intervals.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use record::{CellKey, StepProfile};
use serde::Serialize;
use words::Stacks;

use crate::compare::quantile;
use crate::figures::calls::Calls;
use crate::figures::{Figures, ProfiledStep, Row};
use crate::order::distinct;
use crate::parallel::map_parallel;

/// Functions with fewer samples than this in both targets together are not compared: nothing could
/// be said about them.
const SAMPLES_MIN: u64 = 10;
/// Profiles with fewer samples than this show no change: a short step has phases, of which few
/// samples see one or another.
const SAMPLES_MIN_TOTAL: u64 = 100;
/// The variance between runs over that of counting, where a target was profiled only once. In pairs
/// of equal runs on RocksDB it was 0.9 to 2.3 (`docs/profiles.md`).
const DISPERSION: f64 = 2.0;
/// Degrees of freedom from which on Student's t is the normal distribution.
const FREEDOM_MAX: f64 = 1e6;
/// The number of functions that a comparison lists.
const LISTED: usize = 20;
/// The least share of the whole change that a function must have to be named as its cause.
const NAMED_SHARE: f64 = 0.4;
/// The largest such share: more than that is offset elsewhere, as where callers of the same samples
/// are found in one target only.
const NAMED_SHARE_MAX: f64 = 2.0;
/// A function with this share of both targets' CPU is most of the program. It says something only
/// if its own cost changed.
const WHOLE_SHARE: f64 = 0.6;
/// The least share of its caller's change that a function must have to be named instead of it.
const DOMINANT_SHARE: f64 = 0.7;

/// The costs of functions in one step of a target and of its base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedProfile {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The base's profile.
    pub base: ProfileTotals,
    /// The target's profile.
    pub target: ProfileTotals,
    /// The functions that were compared, which the error rate covers.
    pub function_count: usize,
    /// The number of those whose change is shown.
    pub shown_count: usize,
    /// The functions with the largest changes: first those whose change is shown.
    pub functions: Vec<FunctionDifference>,
    /// The function in which most of the step's change is; `None` if no function has much of it.
    pub named: Option<NamedFunction>,
}

/// The function in which most of a step's change is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedFunction {
    /// Its name.
    pub name: String,
    /// The nearest function around it that both targets have.
    pub caller: Option<String>,
    /// The change of its cost, with all functions that it calls, in microseconds per operation.
    pub difference_us: f64,
}

/// The profile of a step of one target, in all profiled repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProfileTotals {
    /// CPU of the profiled processes per operation, in microseconds, in the repeats without a
    /// profiler.
    pub cpu_us_per_op: f64,
    /// The standard error of `cpu_us_per_op`; 0 with one repeat.
    pub cpu_us_per_op_error: f64,
    /// The event that was sampled.
    pub event: String,
    /// The way in which callers were found: `fp`, `dwarf` or `lbr`.
    pub call_graph: String,
    /// The number of samples.
    pub samples: u64,
    /// The variance of a share of the samples over that of counting.
    pub dispersion: f64,
    /// The share of samples in functions without a symbol.
    pub unknown_share: f64,
    /// The share of samples that were dropped.
    pub lost_share: f64,
    /// Operations per second with the profiler, relative to those without it.
    pub relative_throughput: Option<f64>,
}

impl ProfileTotals {
    /// Returns true if the samples can show a change. One measured repeat says nothing about the
    /// noise of CPU.
    pub fn is_enough(&self) -> bool {
        self.samples >= SAMPLES_MIN_TOTAL && self.cpu_us_per_op_error > 0.0
    }
}

/// The cost of a function in two targets, in microseconds of CPU per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// Its name.
    pub name: String,
    /// The function alone.
    pub own: CostDifference,
    /// The function with all functions that it calls.
    pub inclusive: CostDifference,
}

impl FunctionDifference {
    /// Returns true if either of its costs changed.
    fn is_shown(&self) -> bool {
        self.own.is_shown || self.inclusive.is_shown
    }
}

/// A cost in two targets, in microseconds per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostDifference {
    /// In the base.
    pub base_us: f64,
    /// In the target.
    pub target_us: f64,
    /// The target's minus the base's.
    pub difference_us: f64,
    /// The half-width of the interval around the difference, which holds for all functions
    /// together.
    pub margin_us: f64,
    /// The interval excludes 0, and there are enough samples and repeats to say so.
    pub is_shown: bool,
}

/// Compares the profiles of all targets with those of `base`, step by step. At most `error_rate` of
/// equal steps show a function that changed.
pub fn compare_profiles(figures: &Figures, base: &str, error_rate: f64) -> Vec<ComparedProfile> {
    let keys = measured_keys(figures.profiled.iter().filter(|it| it.row.reported));
    let compared = keys.into_iter().filter(|(cell, _)| cell.target != base);
    let compared: Vec<(CellKey, &str)> = compared.collect();
    let compare = |(cell, step): &(CellKey, &str)| {
        let read = |cell: &CellKey| TargetProfile::read(figures, cell, step);
        let both = read(&cell.of_target(base)).zip(read(cell));
        let compared =
            both.map(|(base, target)| difference((cell.clone(), step), &base, &target, error_rate));
        Ok::<_, Infallible>(compared)
    };
    let results = map_parallel(&compared, compare).into_iter();
    results.filter_map(|Ok(compared)| compared).collect()
}

/// Returns the cost of the CPU time of the profiled processes per operation: of the server, or of
/// the whole process with an embedded engine.
pub fn profiled_cpu_us(row: &Row) -> Option<f64> {
    let embedded = || {
        let background = row.metric("background_cpu_us_per_op").unwrap_or(0.0);
        Some(row.metric("own_cpu_us_per_op")? + background)
    };
    row.metric("server_cpu_us_per_op").or_else(embedded)
}

/// The profile of a step of a target, all its profiled repeats together.
#[derive(Clone, Debug)]
pub struct MergedProfile<'a> {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The figures of the profile; `None` if no repeat without a profiler is valid.
    pub totals: Option<ProfileTotals>,
    /// The samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The samples.
    pub stacks: Cow<'a, Stacks>,
}

/// Returns the profiles of all steps that are valid and have samples, in the order of the plan.
pub fn merged_profiles(figures: &Figures) -> Vec<MergedProfile<'_>> {
    let merged = |(cell, step): (CellKey, &str)| {
        let repeats = profiled_steps(figures, &cell, step);
        let (first, others) = repeats.split_first()?;
        let mut stacks = Cow::Borrowed(&first.stacks);
        for it in others {
            stacks.to_mut().merge(&it.stacks);
        }
        Some(MergedProfile {
            totals: totals(&repeats, &measured_rows(figures, &cell, step)).map(|(_, it)| it),
            frequency_hz: first.profile.frequency_hz,
            step: step.to_owned(),
            cell,
            stacks,
        })
    };
    let keys = measured_keys(figures.profiled.iter());
    keys.into_iter().filter_map(merged).collect()
}

/// Returns the steps of targets that were profiled, each once, with the key of all measured
/// repeats.
fn measured_keys<'a>(steps: impl Iterator<Item = &'a ProfiledStep>) -> Vec<(CellKey, &'a str)> {
    let measured = |cell: &CellKey| CellKey { profiled: false, ..cell.all_repeats() };
    distinct(steps.map(|it| (measured(&it.row.cell), it.row.step.as_str())))
}

/// Returns the profiled repeats of a step that have samples.
fn profiled_steps<'a>(figures: &'a Figures, cell: &CellKey, step: &str) -> Vec<&'a ProfiledStep> {
    let profiled = figures.profiled.iter().filter(|it| {
        it.row.cell.is_same_work_as(cell)
            && it.row.step == step
            && it.row.valid
            && it.stacks.total() > 0
    });
    profiled.collect()
}

/// Returns the repeats of a step without a profiler.
fn measured_rows<'a>(figures: &'a Figures, cell: &CellKey, step: &str) -> Vec<&'a Row> {
    let rows = figures.rows.iter();
    rows.filter(|row| row.cell.is_repeat_of(cell) && row.step == step && row.valid).collect()
}

/// Returns the CPU time per operation of measured repeats, and the figures of the profile; `None`
/// if either is missing.
fn totals(profiled: &[&ProfiledStep], measured: &[&Row]) -> Option<(Mean, ProfileTotals)> {
    let costs = measured.iter().filter_map(|row| profiled_cpu_us(row));
    let cpu = Mean::of(&costs.collect::<Vec<_>>())?;
    let first = &profiled.first()?.profile;
    let sum = |of: fn(&StepProfile) -> u64| profiled.iter().map(|it| of(&it.profile)).sum::<u64>();
    let (samples, lost) = (sum(|it| it.samples), sum(|it| it.lost));
    let rate = |rows: &mut dyn Iterator<Item = &Row>| {
        let rates: Vec<f64> = rows.filter_map(crate::figures::throughput).collect();
        Some(Mean::of(&rates)?.value)
    };
    let with = rate(&mut profiled.iter().map(|it| &it.row));
    let without = rate(&mut measured.iter().copied());
    let totals = ProfileTotals {
        cpu_us_per_op: cpu.value,
        cpu_us_per_op_error: cpu.variance.sqrt(),
        event: first.event.clone(),
        call_graph: first.call_graph.clone(),
        samples,
        dispersion: match profiled.len() {
            1 => DISPERSION,
            _ => 1.0,
        },
        unknown_share: sum(|it| it.unknown) as f64 / samples.max(1) as f64,
        lost_share: lost as f64 / (samples + lost).max(1) as f64,
        relative_throughput: with.zip(without).map(|(with, without)| with / without),
    };
    Some((cpu, totals))
}

/// The profile of a target in a step.
struct TargetProfile<'a> {
    cpu: Mean,
    /// The samples of each profiled repeat, and their number.
    repeats: Vec<(&'a Stacks, u64)>,
    totals: ProfileTotals,
}

/// A mean with its variance and the degrees of freedom of that.
#[derive(Clone, Copy, Default)]
struct Mean {
    value: f64,
    variance: f64,
    freedom: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|it| (it - value).powi(2)).sum();
        (!values.is_empty()).then(|| Self {
            value,
            variance: match values.len() {
                1 => 0.0,
                _ => squares / (count - 1.0) / count,
            },
            freedom: (count - 1.0).max(1.0),
        })
    }
}

/// The samples of a function in each profile.
#[derive(Clone)]
struct FunctionSamples {
    own: Vec<u64>,
    inclusive: Vec<u64>,
}

impl FunctionSamples {
    /// Returns the samples of all functions, by the numbers of their names.
    fn of(calls: &Calls) -> Vec<Self> {
        let none = vec![0; calls.own.len()];
        let none = Self { own: none.clone(), inclusive: none };
        let mut functions = vec![none; calls.tree.names().len()];
        let inclusive = calls.inclusive();
        for node in 1..calls.tree.node_count() {
            let name = calls.tree.name(node);
            let function = &mut functions[name];
            count(&mut function.own, &calls.own, node);
            // A recursive function counts once.
            let mut callers = calls.tree.callers(node);
            if callers.all(|it| calls.tree.name(it) != name) {
                count(&mut function.inclusive, &inclusive, node);
            }
        }
        functions
    }
}

/// Adds the samples of a node to those of a function, for each profile.
fn count(counts: &mut [u64], samples: &[Vec<u64>], node: usize) {
    for (count, samples) in counts.iter_mut().zip(samples) {
        *count += samples[node];
    }
}

impl<'a> TargetProfile<'a> {
    /// Returns the profile of a target's step, in all its profiled repeats; `None` without samples
    /// or without a measured cost.
    fn read(figures: &'a Figures, cell: &CellKey, step: &str) -> Option<Self> {
        let profiled = profiled_steps(figures, cell, step);
        let measured = measured_rows(figures, cell, step);
        let (cpu, totals) = totals(&profiled, &measured)?;
        Some(Self {
            cpu,
            repeats: profiled.iter().map(|it| (&it.stacks, it.stacks.total())).collect(),
            totals,
        })
    }

    /// Returns the cost per operation of `samples`, one number for each repeat: their share times
    /// the CPU per operation. The variance of the share is that of counting, or the one between
    /// profiled repeats if it is larger. `z` is the quantile of the interval.
    fn cost(&self, samples: &[u64], z: f64) -> CostEstimate {
        let totals = || self.repeats.iter().map(|(_, total)| total);
        let total: u64 = totals().sum();
        let count: u64 = samples.iter().sum();
        let share = count as f64 / total as f64;
        // Agresti and Coull's counts, so that a function without a sample has an error, too.
        let padded_total = total as f64 + z * z;
        let padded = (count as f64 + z * z / 2.0) / padded_total;
        let counting = self.totals.dispersion * padded * (1.0 - padded) / padded_total;
        let shares = samples.iter().zip(totals());
        let shares = shares.map(|(count, total)| *count as f64 / *total as f64);
        let between = Mean::of(&shares.collect::<Vec<_>>()).unwrap_or_default();
        let (variance, freedom) = if between.variance > counting {
            (between.variance, between.freedom)
        } else {
            (counting, f64::INFINITY)
        };
        CostEstimate {
            us: share * self.cpu.value,
            parts: [
                (self.cpu.value.powi(2) * variance, freedom),
                (share.powi(2) * self.cpu.variance, self.cpu.freedom),
            ],
        }
    }
}

/// A cost with the parts of its variance, each with its degrees of freedom.
struct CostEstimate {
    us: f64,
    parts: [(f64, f64); 2],
}

impl CostEstimate {
    /// Returns the difference to a base, with an interval that is wrong with probability
    /// `error_rate`. The degrees of freedom are Welch and Satterthwaite's.
    fn minus(&self, base: &Self, error_rate: f64) -> CostDifference {
        let parts = || self.parts.iter().chain(&base.parts);
        let variance: f64 = parts().map(|(variance, _)| variance).sum();
        let spread: f64 = parts().map(|(it, freedom)| it * it / freedom).sum();
        let margin_us = if variance > 0.0 {
            let freedom = (variance * variance / spread).clamp(1.0, FREEDOM_MAX);
            quantile(error_rate, freedom) * variance.sqrt()
        } else {
            0.0
        };
        let difference_us = self.us - base.us;
        CostDifference {
            base_us: base.us,
            target_us: self.us,
            difference_us,
            margin_us,
            is_shown: variance > 0.0 && difference_us.abs() > margin_us,
        }
    }
}

/// Returns true for a node that is not the outermost frame, which is the name of a thread.
fn is_function(stacks: &Stacks, node: usize) -> bool {
    stacks.caller(node) != 0
}

fn difference(
    (cell, step): (CellKey, &str),
    base: &TargetProfile<'_>,
    target: &TargetProfile<'_>,
    error_rate: f64,
) -> ComparedProfile {
    let profiles = base.repeats.iter().chain(&target.repeats);
    let calls = Calls::of(profiles.map(|(stacks, _)| *stacks), is_function);
    let samples = FunctionSamples::of(&calls);
    let compared = || {
        let samples = samples.iter().enumerate();
        samples.filter(|(_, it)| it.inclusive.iter().sum::<u64>() >= SAMPLES_MIN)
    };
    // Bonferroni's correction, over both costs of each function.
    let error_rate = error_rate / (2 * compared().count()).max(1) as f64;
    let z = quantile(error_rate, FREEDOM_MAX);
    let is_enough = base.totals.is_enough() && target.totals.is_enough();
    let compare = |samples: &[u64]| {
        let (of_base, of_target) = samples.split_at(base.repeats.len());
        let [of_base, of_target] = [base.cost(of_base, z), target.cost(of_target, z)];
        let mut difference = of_target.minus(&of_base, error_rate);
        difference.is_shown &= is_enough;
        difference
    };
    let difference = |(name, samples): (usize, &FunctionSamples)| FunctionDifference {
        name: calls.tree.names()[name].clone(),
        own: compare(&samples.own),
        inclusive: compare(&samples.inclusive),
    };
    let functions: Functions = compared().map(|it| (it.0, difference(it))).collect();
    // A function that only one target has may have been renamed or inlined, or the other build may
    // lack its symbol. So it counts as part of its caller.
    let common = calls.of_nodes(|node| {
        let name = calls.tree.name(node);
        let (of_base, of_target) = samples[name].inclusive.split_at(base.repeats.len());
        let is_seen = [of_base, of_target].map(|it| it.iter().any(|samples| *samples > 0));
        is_seen == [true; 2] && !calls.tree.names()[name].starts_with('[')
    });
    let changes = Changes::of(&common, base, target);
    let named = named(&functions, &common, &changes, [base, target]);
    let passed_on = changes.passed_on(&common, &functions);
    ComparedProfile {
        cell,
        step: step.to_owned(),
        base: base.totals.clone(),
        target: target.totals.clone(),
        function_count: functions.len(),
        shown_count: functions.values().filter(|it| it.is_shown()).count(),
        functions: listed(functions, &passed_on, [base, target]),
        named,
    }
}

/// Functions by the numbers of their names.
type Functions = BTreeMap<usize, FunctionDifference>;

/// Returns true if a function has less than most of the CPU of one of the targets, the base first.
fn is_part(function: &FunctionDifference, targets: [&TargetProfile<'_>; 2]) -> bool {
    let cost = function.inclusive;
    let mut costs = [cost.base_us, cost.target_us].into_iter().zip(targets);
    costs.any(|(us, it)| us < WHOLE_SHARE * it.cpu.value)
}

/// The change of each node's cost with all its callees, in microseconds per operation.
struct Changes {
    us: Vec<f64>,
}

impl Changes {
    fn of(calls: &Calls, base: &TargetProfile<'_>, target: &TargetProfile<'_>) -> Self {
        let us_per_sample = |it: &TargetProfile<'_>| it.cpu.value / it.totals.samples.max(1) as f64;
        let inclusive = calls.inclusive();
        let (of_base, of_target) = inclusive.split_at(base.repeats.len());
        let us = (0..calls.tree.node_count()).map(|node| {
            let samples = |of: &[Vec<u64>]| of.iter().map(|it| it[node]).sum::<u64>() as f64;
            us_per_sample(target) * samples(of_target) - us_per_sample(base) * samples(of_base)
        });
        Self { us: us.collect() }
    }

    /// Returns the functions whose change is mostly that of one callee, by the numbers of their
    /// names. The callee is the better explanation, unless its own change is not shown.
    fn passed_on(&self, calls: &Calls, functions: &Functions) -> BTreeSet<usize> {
        let is_shown = |name: &usize| functions.get(name).is_some_and(|it| it.inclusive.is_shown);
        let tree = &calls.tree;
        let mut changes: BTreeMap<usize, (f64, BTreeMap<usize, f64>)> = BTreeMap::new();
        for node in 1..tree.node_count() {
            let name = tree.name(node);
            if tree.callers(node).any(|it| tree.name(it) == name) {
                continue;
            }
            let (whole, callees) = changes.entry(name).or_default();
            *whole += self.us[node];
            for callee in tree.callees(node).filter(|it| tree.name(*it) != name) {
                *callees.entry(tree.name(callee)).or_default() += self.us[callee];
            }
        }
        let passed_on = changes.into_iter().filter(|(_, (whole, callees))| {
            let mut callees = callees.iter();
            callees.any(|(callee, us)| us / whole >= DOMINANT_SHARE && is_shown(callee))
        });
        passed_on.map(|(name, _)| name).collect()
    }
}

/// Returns the functions that are listed, in their order. Those that are `passed_on` are listed
/// only for their own cost.
fn listed(
    functions: Functions,
    passed_on: &BTreeSet<usize>,
    targets: [&TargetProfile<'_>; 2],
) -> Vec<FunctionDifference> {
    // A function that only one target has, and that itself costs nothing, was mostly renamed or
    // inlined: its callees are listed. So they are where a function has most of the CPU.
    let says_much = |(name, it): &(usize, FunctionDifference)| {
        let [base_us, target_us] = [it.inclusive.base_us, it.inclusive.target_us];
        let is_common = base_us > 0.0 && target_us > 0.0;
        it.own.is_shown || (is_common && is_part(it, targets) && !passed_on.contains(name))
    };
    let mut functions: Vec<(usize, FunctionDifference)> =
        functions.into_iter().filter(says_much).collect();
    let rank = |(name, it): &(usize, FunctionDifference)| {
        let costs = [Some(it.own), Some(it.inclusive).filter(|_| !passed_on.contains(name))];
        let largest = |is_counted: fn(&CostDifference) -> bool| {
            let counted = costs.iter().flatten().filter(|it| is_counted(it));
            counted.map(|it| it.difference_us.abs()).fold(0.0, f64::max)
        };
        [largest(|it| it.is_shown), largest(|_| true)]
    };
    functions.sort_by(|a, b| {
        let order = rank(b).partial_cmp(&rank(a));
        order.unwrap_or(Ordering::Equal).then(a.1.name.cmp(&b.1.name))
    });
    functions.truncate(LISTED);
    functions.into_iter().map(|(_, it)| it).collect()
}

/// Returns the function in which most of a change is: from the outermost function inward, as long
/// as one callee has most of the change. `common` are the calls of functions that both targets
/// have, and `changes` those of their costs.
fn named(
    functions: &Functions,
    common: &Calls,
    changes: &Changes,
    targets: [&TargetProfile<'_>; 2],
) -> Option<NamedFunction> {
    let change_us = changes.us[0];
    let mut path: Vec<usize> = Vec::new();
    let mut node = 0;
    while let Some(callee) = common.tree.callees(node).max_by(|a, b| {
        let [a, b] = [a, b].map(|it| changes.us[*it] * change_us.signum());
        a.total_cmp(&b)
    }) {
        if changes.us[callee] / changes.us[node] < DOMINANT_SHARE {
            break;
        }
        path.push(common.tree.name(callee));
        node = callee;
    }
    // An outer function's change may be shown where that of an inner one is too small.
    let is_shown = |name: &usize| {
        let function = functions.get(name)?;
        let cost = function.inclusive;
        let share = cost.difference_us / change_us;
        let is_much = (NAMED_SHARE..=NAMED_SHARE_MAX).contains(&share);
        let says_much = (is_part(function, targets) || function.own.is_shown) && is_much;
        (cost.is_shown && says_much).then_some(cost)
    };
    let (at, cost) = (0..path.len()).rev().find_map(|at| Some((at, is_shown(&path[at])?)))?;
    let name = |at: usize| common.tree.names()[path[at]].clone();
    Some(NamedFunction {
        name: name(at),
        caller: at.checked_sub(1).map(name),
        difference_us: cost.difference_us,
    })
}

#[cfg(test)]
mod tests;
