//! Finds the functions whose cost changed, and the one in which most of a step's change is.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use record::CellKey;
use words::Stacks;

use super::cost::{Confidence, CostChange, TargetProfile};
use super::{ComparedProfile, CostDifference, FunctionDifference, NamedFunction};
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

/// The samples of all functions, in each profile by the numbers of their names.
struct FunctionSamples {
    own: Vec<Vec<u64>>,
    inclusive: Vec<Vec<u64>>,
}

impl FunctionSamples {
    fn of(calls: &Calls) -> Self {
        let is_recursive = calls.tree.recursive_nodes();
        let own = calls.own.iter().map(|own| by_function(calls, own, |_| true));

        let of_nodes = calls.inclusive();
        // A recursive function counts once.
        let inclusive =
            of_nodes.iter().map(|samples| by_function(calls, samples, |node| !is_recursive[node]));

        Self { own: own.collect(), inclusive: inclusive.collect() }
    }
}

/// Adds up the samples of the nodes that count, by the numbers of their names.
fn by_function(calls: &Calls, of_nodes: &[u64], counts: impl Fn(usize) -> bool) -> Vec<u64> {
    let tree = &calls.tree;
    let mut of_functions = vec![0; tree.names().len()];
    for node in 1..tree.node_count() {
        if counts(node) {
            of_functions[tree.name(node)] += of_nodes[node];
        }
    }
    of_functions
}

/// Returns what each profile has at a place.
fn at(of_profiles: &[Vec<u64>], place: usize) -> Vec<u64> {
    of_profiles.iter().map(|of_profile| of_profile[place]).collect()
}

/// The functions that are compared.
struct Functions {
    /// The changes of their costs, by the numbers of their names.
    changes: BTreeMap<usize, FunctionChange>,
    confidence: Confidence,
}

/// The changes of a function's costs.
#[derive(Clone, Copy, Default)]
struct FunctionChange {
    own: ShownChange,
    inclusive: ShownChange,
}

/// The change of a cost, and whether it is shown.
#[derive(Clone, Copy, Default)]
struct ShownChange {
    change: CostChange,
    /// The interval excludes 0, and there are enough samples and repeats to say so.
    is_shown: bool,
}

impl ShownChange {
    /// Returns the change with its interval.
    fn with_interval(self, confidence: Confidence) -> CostDifference {
        let Self { change, is_shown } = self;
        CostDifference {
            base_us: change.base_us,
            target_us: change.target_us,
            difference_us: change.difference_us(),
            margin_us: change.margin_us(confidence),
            is_shown,
        }
    }
}

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
    fn is_part(self, function: &FunctionChange) -> bool {
        let CostChange { base_us, target_us, .. } = function.inclusive.change;
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
    let is_common = common_functions(profiles, &calls, &samples);
    let common = calls.of_nodes(|node| is_common[calls.tree.name(node)]);

    let changes = Changes::of(&common, profiles);
    let passed_on = changes.passed_on(&common, &functions);

    ComparedProfile {
        cell,
        step: step.to_owned(),
        base: base.totals.clone(),
        target: target.totals.clone(),
        function_count: functions.changes.len(),
        shown_count: functions
            .changes
            .values()
            .filter(|function| function.own.is_shown || function.inclusive.is_shown)
            .count(),
        named: named(&functions, &common, &changes, profiles),
        functions: listed(&functions, &calls, &passed_on, profiles),
    }
}

/// Returns whether both targets have samples of a function and know its name, by the numbers of
/// names.
fn common_functions(profiles: Profiles<'_>, calls: &Calls, samples: &FunctionSamples) -> Vec<bool> {
    let (of_base, of_target) = profiles.divide(&samples.inclusive);
    let have_samples =
        |of_repeats: &[Vec<u64>], name: usize| of_repeats.iter().any(|samples| samples[name] > 0);

    let mut is_common = Vec::new();
    for (name, text) in calls.tree.names().iter().enumerate() {
        let is_known = !text.starts_with('[');
        is_common.push(is_known && have_samples(of_base, name) && have_samples(of_target, name));
    }
    is_common
}

/// Compares the functions with enough samples.
fn compare_functions(
    profiles: Profiles<'_>,
    calls: &Calls,
    samples: &FunctionSamples,
    error_rate: f64,
) -> Functions {
    let names = 0..calls.tree.names().len();
    let sampled: Vec<usize> = names
        .filter(|name| at(&samples.inclusive, *name).iter().sum::<u64>() >= SAMPLES_MIN)
        .collect();

    // Bonferroni's correction, over both costs of each function.
    let confidence = Confidence::new(error_rate / (2 * sampled.len()).max(1) as f64);

    let mut changes = BTreeMap::new();
    for name in sampled {
        let change = FunctionChange {
            own: compare_cost(profiles, &at(&samples.own, name), confidence),
            inclusive: compare_cost(profiles, &at(&samples.inclusive, name), confidence),
        };
        changes.insert(name, change);
    }
    Functions { changes, confidence }
}

fn compare_cost(profiles: Profiles<'_>, samples: &[u64], confidence: Confidence) -> ShownChange {
    let (of_base, of_target) = profiles.divide(samples);
    let base = profiles.base.cost(of_base, confidence);
    let target = profiles.target.cost(of_target, confidence);
    let change = target.minus(&base);
    let is_shown = profiles.have_enough_samples() && change.is_shown(confidence);
    ShownChange { change, is_shown }
}

/// A function and one that it calls, by the numbers of their names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    function: usize,
    callee: usize,
}

/// The change of each node's cost with all its callees, in microseconds per operation.
struct Changes {
    us: Vec<f64>,
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
        let tree = &calls.tree;
        let mut is_shown = vec![false; tree.names().len()];
        for (name, function) in &functions.changes {
            is_shown[*name] = function.inclusive.is_shown;
        }

        // Both sums are over all nodes with a function's name.
        let mut of_functions = vec![0.0; tree.names().len()];
        let mut of_calls: BTreeMap<Call, f64> = BTreeMap::new();
        for (node, is_recursive) in tree.recursive_nodes().into_iter().enumerate().skip(1) {
            // A recursive function counts once.
            if is_recursive {
                continue;
            }

            let function = tree.name(node);
            of_functions[function] += self.us[node];

            for callee_node in tree.callees(node) {
                let callee = tree.name(callee_node);
                if is_shown[callee] && callee != function {
                    let call = Call { function, callee };
                    *of_calls.entry(call).or_default() += self.us[callee_node];
                }
            }
        }

        let mut passed_on = BTreeSet::new();
        for (Call { function, .. }, us) in of_calls {
            if us / of_functions[function] >= DOMINANT_SHARE {
                passed_on.insert(function);
            }
        }
        passed_on
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
    functions: &Functions,
    calls: &Calls,
    passed_on: &BTreeSet<usize>,
    profiles: Profiles<'_>,
) -> Vec<FunctionDifference> {
    let name = |function: usize| &calls.tree.names()[function];

    let mut ranked = Vec::new();
    for (function, change) in &functions.changes {
        let is_passed_on = passed_on.contains(function);
        let CostChange { base_us, target_us, .. } = change.inclusive.change;
        // A function that only one target has, and that itself costs nothing, was mostly renamed or
        // inlined: its callees are listed. So they are where a function has most of the CPU.
        let is_common = base_us > 0.0 && target_us > 0.0;
        let says_much = is_common && profiles.is_part(change) && !is_passed_on;

        if change.own.is_shown || says_much {
            ranked.push((Rank::of(change, is_passed_on), *function));
        }
    }

    ranked.sort_by(|(a_rank, a), (b_rank, b)| {
        let order = b_rank.partial_cmp(a_rank).unwrap_or(Ordering::Equal);
        order.then_with(|| name(*a).cmp(name(*b)))
    });

    ranked.truncate(LISTED);
    ranked
        .into_iter()
        .map(|(_, function)| FunctionDifference {
            name: name(function).clone(),
            own: functions.changes[&function].own.with_interval(functions.confidence),
            inclusive: functions.changes[&function].inclusive.with_interval(functions.confidence),
        })
        .collect()
}

/// The place of a function in a list: shown changes first, and large ones before small ones.
#[derive(PartialEq, PartialOrd)]
struct Rank {
    largest_shown_us: f64,
    largest_us: f64,
}

impl Rank {
    fn of(function: &FunctionChange, is_passed_on: bool) -> Self {
        let mut costs = vec![function.own];
        if !is_passed_on {
            costs.push(function.inclusive);
        }
        let largest_us = largest(&costs);
        costs.retain(|cost| cost.is_shown);
        Self { largest_shown_us: largest(&costs), largest_us }
    }
}

fn largest(costs: &[ShownChange]) -> f64 {
    costs.iter().map(|cost| cost.change.difference_us().abs()).fold(0.0, f64::max)
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
        let Some(function) = functions.changes.get(name) else {
            continue;
        };

        let difference_us = function.inclusive.change.difference_us();
        let share = difference_us / changes.us[0];
        let has_much = (NAMED_SHARE..=NAMED_SHARE_MAX).contains(&share);
        let says_much = profiles.is_part(function) || function.own.is_shown;

        if function.inclusive.is_shown && has_much && says_much {
            let caller = position.checked_sub(1).map(|outer| path[outer]);
            return Some(NamedFunction {
                name: common.tree.names()[*name].clone(),
                caller: caller.map(|caller| common.tree.names()[caller].clone()),
                difference_us,
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
            let inclusive = ShownChange { is_shown: true, ..ShownChange::default() };
            let change = FunctionChange { inclusive, ..FunctionChange::default() };
            Functions {
                changes: names.iter().map(|name| (*name, change)).collect(),
                confidence: Confidence::new(0.05),
            }
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
            (samples.own[0][name.unwrap()], samples.inclusive[0][name.unwrap()])
        };
        assert_eq!([of("db"), of("walk"), of("read")], [(0, 0), (0, 3), (3, 3)]);
    }
}
