//! Tells changes from shifts: code that was moved, inlined or split costs what it did.
//!
//! A shift is a function that costs less, and one near it that costs more. "Near" means that the
//! same function calls them, or one calls the other, so that their caller with all that it calls
//! costs what it did. This is the cost-shift rule of FBDetect (SOSP 2024).

use std::collections::BTreeMap;

use super::causes::{Cause, CauseKind};
use super::union::Union;

/// The least share of a function's cost that must be for the callers that it has in common with
/// another. So what everybody calls, such as `memcpy`, is near to nothing.
const COMMON_SHARE: f64 = 0.3;
/// Causes that are two callers apart are a shift only if their amounts differ by less than this.
const ALIKE: f64 = 0.2;

/// Work that one function no longer does and another does now, in instructions per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shift {
    pub from: usize,
    pub to: usize,
    pub amount: f64,
}

/// The distance between two causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// The code of the same function would be different.
    Same,
    /// One function calls the other, or both have the same caller.
    Neighbors,
    /// They have a common caller of callers.
    Relatives,
}

/// Offsets causes against each other, the nearest first. Leaves in each what is no shift.
pub(super) fn take_shifts(union: &Union, causes: &mut [Cause]) -> Vec<Shift> {
    let domains: Vec<Domain> = causes.iter().map(|cause| Domain::of(union, *cause)).collect();
    let mut shifts = Vec::new();

    for nearness in [Nearness::Same, Nearness::Neighbors, Nearness::Relatives] {
        let pairs = pairs(&domains, nearness);
        while let Some((from, to)) = most_alike(&pairs, causes, nearness) {
            let amount = causes[to].amount.min(-causes[from].amount);

            shifts.push(Shift {
                from: changed(union, causes[from]),
                to: changed(union, causes[to]),
                amount,
            });

            causes[from].amount += amount;
            causes[to].amount -= amount;
        }
    }
    shifts
}

/// Returns the function that a cause is about: a new one, or one that is gone, rather than its
/// caller.
pub(super) fn changed(union: &Union, cause: Cause) -> usize {
    match cause.kind {
        CauseKind::Own(function) => function,
        CauseKind::Calls(_, callee) if super::causes::is_new_or_gone(union, callee) => callee,
        CauseKind::Calls(caller, _) => caller,
    }
}

/// The functions around a cause, each with the share of the cost that is for it.
struct Domain {
    home: usize,
    callers: BTreeMap<usize, f64>,
    /// The callers of callers.
    outer: BTreeMap<usize, f64>,
}

impl Domain {
    fn of(union: &Union, cause: Cause) -> Self {
        let home = cause.home();
        let callers = caller_shares(union, home);
        let mut outer: BTreeMap<usize, f64> = BTreeMap::new();

        for (&caller, share) in &callers {
            for (other, part) in caller_shares(union, caller) {
                *outer.entry(other).or_default() += share * part;
            }
        }
        Self { home, callers, outer }
    }

    fn nearness(&self, other: &Self) -> Option<Nearness> {
        if self.home == other.home {
            return Some(Nearness::Same);
        }

        if are_near(self, &self.callers, other, &other.callers) {
            return Some(Nearness::Neighbors);
        }

        let mixed = [
            (&self.outer, &other.callers),
            (&self.callers, &other.outer),
            (&self.outer, &other.outer),
        ];
        let is_relative = mixed.iter().any(|(own, others)| are_near(self, own, other, others));
        is_relative.then_some(Nearness::Relatives)
    }
}

/// Returns whether two causes have much of their cost for each other, or for the same callers.
fn are_near(
    first: &Domain,
    first_callers: &BTreeMap<usize, f64>,
    second: &Domain,
    second_callers: &BTreeMap<usize, f64>,
) -> bool {
    let for_home =
        |callers: &BTreeMap<usize, f64>, home| callers.get(&home).copied().unwrap_or(0.0);
    let for_common = |callers: &BTreeMap<usize, f64>, others: &BTreeMap<usize, f64>| -> f64 {
        callers
            .iter()
            .filter(|(caller, _)| others.contains_key(caller))
            .map(|(_, share)| share)
            .sum()
    };
    for_home(first_callers, second.home) >= COMMON_SHARE
        || for_home(second_callers, first.home) >= COMMON_SHARE
        || for_common(first_callers, second_callers) >= COMMON_SHARE
            && for_common(second_callers, first_callers) >= COMMON_SHARE
}

/// Returns the callers of a function, each with its share of what the function costs.
fn caller_shares(union: &Union, function: usize) -> BTreeMap<usize, f64> {
    let cost = |caller: usize| {
        let [base, target] = [&union.base, &union.target].map(|side| side.calls(caller, function));
        base.inclusive + target.inclusive
    };
    let all: f64 = union.callers(function).map(cost).sum();
    union.callers(function).map(|caller| (caller, cost(caller) / all.max(1e-9))).collect()
}

fn pairs(domains: &[Domain], nearness: Nearness) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (first, domain) in domains.iter().enumerate() {
        for (second, other) in domains.iter().enumerate().skip(first + 1) {
            if domain.nearness(other) == Some(nearness) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

/// Returns the pair of opposite causes whose amounts differ least: the one that costs less first.
fn most_alike(
    pairs: &[(usize, usize)],
    causes: &[Cause],
    nearness: Nearness,
) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut least = f64::INFINITY;

    for &(first, second) in pairs {
        let (a, b) = (causes[first].amount, causes[second].amount);
        if a * b >= 0.0 {
            continue;
        }

        let difference = (a + b).abs() / a.abs().max(b.abs());
        let is_near_enough = nearness < Nearness::Relatives || difference < ALIKE;
        if is_near_enough && difference < least {
            least = difference;
            best = Some(if a < 0.0 { (first, second) } else { (second, first) });
        }
    }
    best
}
