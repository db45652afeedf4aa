//! Finds the functions whose cost changed, and the one in which most of a step's change is.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use record::CellKey;
use words::Stacks;

use super::cost::{FREEDOM_MAX, TargetProfile};
use super::{ComparedProfile, CostDifference, FunctionDifference, NamedFunction};
use crate::compare::student::quantile;
use crate::figures::Calls;

/// Functions with fewer samples than this in both targets together are not compared: nothing could
/// be said about them.
const SAMPLES_MIN: u64 = 10;
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
            if !calls.tree.is_recursive(node) {
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

/// Functions by the numbers of their names.
type Functions = BTreeMap<usize, FunctionDifference>;

/// Returns true for a node that is not the outermost frame, which is the name of a thread.
fn is_function(stacks: &Stacks, node: usize) -> bool {
    stacks.caller(node) != 0
}

/// The profiles of a base and a target.
#[derive(Clone, Copy)]
struct Profiles<'a> {
    base: &'a TargetProfile<'a>,
    target: &'a TargetProfile<'a>,
}

impl Profiles<'_> {
    /// Returns the calls of all repeats: those of the base first.
    fn calls(self) -> Calls {
        let repeats = self.base.repeats.iter().chain(&self.target.repeats);
        Calls::of(repeats.map(|repeat| repeat.stacks), is_function)
    }

    /// Divides what there is of each repeat between base and target.
    fn divide<T>(self, of_repeats: &[T]) -> (&[T], &[T]) {
        of_repeats.split_at(self.base.repeats.len())
    }

    fn have_enough_samples(self) -> bool {
        self.base.totals.is_enough() && self.target.totals.is_enough()
    }

    /// Returns true if a function has less than most of the CPU of one of the targets.
    fn is_part(self, function: &FunctionDifference) -> bool {
        let CostDifference { base_us, target_us, .. } = function.inclusive;
        base_us < WHOLE_SHARE * self.base.cpu.value
            || target_us < WHOLE_SHARE * self.target.cpu.value
    }
}

/// Compares the costs of functions in one step.
pub(super) fn difference(
    cell: CellKey,
    step: &str,
    base: &TargetProfile<'_>,
    target: &TargetProfile<'_>,
    error_rate: f64,
) -> ComparedProfile {
    let profiles = Profiles { base, target };
    let calls = profiles.calls();
    let samples = FunctionSamples::of(&calls);
    let functions = compare_functions(profiles, &calls, &samples, error_rate);

    // A function that only one target has may have been renamed or inlined, or the other build may
    // lack its symbol. So it counts as part of its caller.
    let common = calls.of_nodes(|node| {
        let name = calls.tree.name(node);
        let (of_base, of_target) = profiles.divide(&samples[name].inclusive);
        has_samples(of_base) && has_samples(of_target) && !calls.tree.names()[name].starts_with('[')
    });

    let changes = Changes::of(&common, profiles);
    let passed_on = changes.passed_on(&common, &functions);

    ComparedProfile {
        cell,
        step: step.to_owned(),
        base: base.totals.clone(),
        target: target.totals.clone(),
        function_count: functions.len(),
        shown_count: functions.values().filter(|function| function.is_shown()).count(),
        named: named(&functions, &common, &changes, profiles),
        functions: listed(functions, &passed_on, profiles),
    }
}

fn has_samples(of_repeats: &[u64]) -> bool {
    of_repeats.iter().any(|samples| *samples > 0)
}

/// Compares the functions with enough samples.
fn compare_functions(
    profiles: Profiles<'_>,
    calls: &Calls,
    samples: &[FunctionSamples],
    error_rate: f64,
) -> Functions {
    let mut sampled: Vec<(usize, &FunctionSamples)> = samples.iter().enumerate().collect();
    sampled.retain(|(_, function)| function.inclusive.iter().sum::<u64>() >= SAMPLES_MIN);

    // Bonferroni's correction, over both costs of each function.
    let each = Confidence::new(error_rate / (2 * sampled.len()).max(1) as f64);

    let mut functions = Functions::new();
    for (name, function) in sampled {
        let difference = FunctionDifference {
            name: calls.tree.names()[name].clone(),
            own: compare_cost(profiles, &function.own, each),
            inclusive: compare_cost(profiles, &function.inclusive, each),
        };
        functions.insert(name, difference);
    }
    functions
}

/// How sure a comparison of one cost must be.
#[derive(Clone, Copy)]
struct Confidence {
    error_rate: f64,
    /// The quantile of an interval with this error rate, for as many samples as there may be. It is
    /// kept because thousands of functions need the same.
    z: f64,
}

impl Confidence {
    fn new(error_rate: f64) -> Self {
        Self { error_rate, z: quantile(error_rate, FREEDOM_MAX) }
    }
}

fn compare_cost(profiles: Profiles<'_>, samples: &[u64], confidence: Confidence) -> CostDifference {
    let (of_base, of_target) = profiles.divide(samples);
    let base = profiles.base.cost(of_base, confidence.z);
    let target = profiles.target.cost(of_target, confidence.z);
    let mut difference = target.minus(&base, confidence.error_rate);
    difference.is_shown &= profiles.have_enough_samples();
    difference
}

/// The change of each node's cost with all its callees, in microseconds per operation.
struct Changes {
    us: Vec<f64>,
}

/// The change of a function, over all nodes with its name.
#[derive(Default)]
struct FunctionChange {
    us: f64,
    /// The changes of its callees by the numbers of their names.
    callees: BTreeMap<usize, f64>,
}

impl Changes {
    fn of(calls: &Calls, profiles: Profiles<'_>) -> Self {
        let inclusive = calls.inclusive();
        let (of_base, of_target) = profiles.divide(&inclusive);
        let us = (0..calls.tree.node_count()).map(|node| {
            profiles.target.us_per_sample() * samples_of_node(of_target, node)
                - profiles.base.us_per_sample() * samples_of_node(of_base, node)
        });
        Self { us: us.collect() }
    }

    /// Returns the functions whose change is mostly that of one callee, by the numbers of their
    /// names. The callee is the better explanation, unless its own change is not shown.
    fn passed_on(&self, calls: &Calls, functions: &Functions) -> BTreeSet<usize> {
        let is_shown =
            |name: &usize| functions.get(name).is_some_and(|function| function.inclusive.is_shown);

        let mut passed_on = BTreeSet::new();
        for (name, change) in self.by_function(calls) {
            let mut callees = change.callees.iter();
            if callees.any(|(callee, us)| us / change.us >= DOMINANT_SHARE && is_shown(callee)) {
                passed_on.insert(name);
            }
        }
        passed_on
    }

    /// Returns the changes of functions by the numbers of their names.
    fn by_function(&self, calls: &Calls) -> BTreeMap<usize, FunctionChange> {
        let tree = &calls.tree;
        let mut changes: BTreeMap<usize, FunctionChange> = BTreeMap::new();
        for node in 1..tree.node_count() {
            // A recursive function counts once.
            if tree.is_recursive(node) {
                continue;
            }

            let name = tree.name(node);
            let change = changes.entry(name).or_default();
            change.us += self.us[node];

            for callee in tree.callees(node) {
                if tree.name(callee) != name {
                    *change.callees.entry(tree.name(callee)).or_default() += self.us[callee];
                }
            }
        }
        changes
    }

    /// Returns the names on the way from the outermost function inward, as long as one callee has
    /// most of the change.
    fn main_path(&self, calls: &Calls) -> Vec<usize> {
        let sign = self.us[0].signum();

        let mut path = Vec::new();
        let mut node = 0;
        loop {
            let callees = calls.tree.callees(node);
            let largest =
                callees.max_by(|a, b| (self.us[*a] * sign).total_cmp(&(self.us[*b] * sign)));
            let Some(callee) = largest else {
                return path;
            };

            if self.us[callee] / self.us[node] < DOMINANT_SHARE {
                return path;
            }

            path.push(calls.tree.name(callee));
            node = callee;
        }
    }
}

fn samples_of_node(of_repeats: &[Vec<u64>], node: usize) -> f64 {
    of_repeats.iter().map(|samples| samples[node]).sum::<u64>() as f64
}

/// Returns the functions that are listed, in their order. Those that are `passed_on` are listed
/// only for their own cost.
fn listed(
    functions: Functions,
    passed_on: &BTreeSet<usize>,
    profiles: Profiles<'_>,
) -> Vec<FunctionDifference> {
    let mut ranked = Vec::new();
    for (name, function) in functions {
        let is_passed_on = passed_on.contains(&name);
        let CostDifference { base_us, target_us, .. } = function.inclusive;
        // A function that only one target has, and that itself costs nothing, was mostly renamed or
        // inlined: its callees are listed. So they are where a function has most of the CPU.
        let is_common = base_us > 0.0 && target_us > 0.0;
        let says_much = is_common && profiles.is_part(&function) && !is_passed_on;

        if function.own.is_shown || says_much {
            ranked.push((Rank::of(&function, is_passed_on), function));
        }
    }

    ranked.sort_by(|(a_rank, a), (b_rank, b)| {
        let order = b_rank.partial_cmp(a_rank).unwrap_or(Ordering::Equal);
        order.then(a.name.cmp(&b.name))
    });

    ranked.truncate(LISTED);
    ranked.into_iter().map(|(_, function)| function).collect()
}

/// The place of a function in a list: shown changes first, and large ones before small ones.
#[derive(PartialEq, PartialOrd)]
struct Rank {
    largest_shown_us: f64,
    largest_us: f64,
}

impl Rank {
    fn of(function: &FunctionDifference, is_passed_on: bool) -> Self {
        let mut costs = vec![function.own];
        if !is_passed_on {
            costs.push(function.inclusive);
        }
        let largest_us = largest(&costs);
        costs.retain(|cost| cost.is_shown);
        Self { largest_shown_us: largest(&costs), largest_us }
    }
}

fn largest(costs: &[CostDifference]) -> f64 {
    costs.iter().map(|cost| cost.difference_us.abs()).fold(0.0, f64::max)
}

/// Returns the function in which most of a change is: the innermost on the main path whose change
/// is shown. `common` are the calls of functions that both targets have, and `changes` those of
/// their costs.
fn named(
    functions: &Functions,
    common: &Calls,
    changes: &Changes,
    profiles: Profiles<'_>,
) -> Option<NamedFunction> {
    let path = changes.main_path(common);
    // An outer function's change may be shown where that of an inner one is too small.
    for (position, name) in path.iter().enumerate().rev() {
        let Some(function) = functions.get(name) else {
            continue;
        };

        let share = function.inclusive.difference_us / changes.us[0];
        let has_much = (NAMED_SHARE..=NAMED_SHARE_MAX).contains(&share);
        let says_much = profiles.is_part(function) || function.own.is_shown;

        if function.inclusive.is_shown && has_much && says_much {
            let caller = position.checked_sub(1).map(|outer| path[outer]);
            return Some(NamedFunction {
                name: common.tree.names()[*name].clone(),
                caller: caller.map(|caller| common.tree.names()[caller].clone()),
                difference_us: function.inclusive.difference_us,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_passes_its_change_on_only_to_a_callee_whose_change_is_shown() {
        let mut stacks = Stacks::default();
        stacks.add(["db", "main", "plan", "range"], 1);
        let calls = Calls::of([&stacks], is_function);
        let us = vec![10.0; calls.tree.node_count()];
        let number = |name: &str| calls.tree.names().iter().position(|it| it == name);
        let [main, plan, range] = ["main", "plan", "range"].map(|it| number(it).unwrap());
        let shown = |names: &[usize]| -> Functions {
            let function = FunctionDifference {
                name: String::new(),
                own: CostDifference::default(),
                inclusive: CostDifference { is_shown: true, ..CostDifference::default() },
            };
            names.iter().map(|it| (*it, function.clone())).collect()
        };
        let passed_on =
            |names: &[usize]| Changes { us: us.clone() }.passed_on(&calls, &shown(names));
        assert_eq!(passed_on(&[main, plan, range]), [main, plan].into());
        assert_eq!(passed_on(&[main, plan]), [main].into());
    }

    #[test]
    fn a_recursive_function_is_counted_once_in_a_sample() {
        let mut stacks = Stacks::default();
        stacks.add(["db", "walk", "walk", "walk", "read"], 3);
        let calls = Calls::of([&stacks], is_function);
        let samples = FunctionSamples::of(&calls);
        let of = |name: &str| {
            let name = calls.tree.names().iter().position(|it| it == name);
            let FunctionSamples { own, inclusive } = &samples[name.unwrap()];
            (own[0], inclusive[0])
        };
        assert_eq!([of("db"), of("walk"), of("read")], [(0, 0), (0, 3), (3, 3)]);
    }
}
