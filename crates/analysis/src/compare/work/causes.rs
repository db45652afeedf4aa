//! Divides the change of work into causes: a function that does more itself, or one that calls
//! another more often.

use crate::order::sort_largest_first;
use std::collections::BTreeMap;

use super::union::{Side, Union};

/// The least change of a function's own instructions that is looked at, as a share of all.
const CHANGE_MIN: f64 = 0.000_02;
/// The most causes that are looked at: the largest.
const CAUSES_MAX: usize = 500;
/// A number of calls that changed by less than this share is the same.
const COUNT_CHANGE_MIN: f64 = 0.002;
/// Functions with fewer calls in a cell run for long, so their cost is not that of a call.
const CALLS_MIN: f64 = 10.0;
/// A share of a change that is as good as all of it, or the rest as good as nothing.
const NEARLY_ALL: f64 = 0.9;
/// The most callers that a changed number of calls is followed up through.
const DEPTH_MAX: usize = 16;

/// A reason for which work changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CauseKind {
    /// The function does more or less itself, each time that it is called.
    Own(usize),
    /// The first function calls the second more or less often, each time that it is called.
    Calls(usize, usize),
}

/// A cause with its part of the change, in instructions per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cause {
    pub kind: CauseKind,
    pub amount: f64,
}

impl Cause {
    /// Returns the function whose code would be different.
    pub fn home(self) -> usize {
        match self.kind {
            CauseKind::Own(function) | CauseKind::Calls(function, _) => function,
        }
    }
}

/// Returns the causes of all changes that are not tiny, the largest first.
pub(super) fn causes(union: &Union) -> Vec<Cause> {
    let least = CHANGE_MIN * union.base.total();
    let mut blame = Blame { union, least, amounts: BTreeMap::new() };
    for function in 0..union.names.len() {
        let change = union.own_change(function);
        let noise = union.base.range[function].max(union.target.range[function]);
        if change.abs() < least || change.abs() <= noise {
            continue;
        }

        let by_count = blame.part_by_count(function, change);
        blame.add(CauseKind::Own(function), change - by_count);
        if by_count != 0.0 {
            blame.callers_of(function, by_count, 0);
        }
    }

    let mut causes: Vec<Cause> =
        blame.amounts.into_iter().map(|(kind, amount)| Cause { kind, amount }).collect();
    causes.retain(|cause| cause.amount.abs() >= least / 2.0);
    sort_largest_first(&mut causes, |item| item.amount.abs());
    causes.truncate(CAUSES_MAX);
    causes
}

struct Blame<'a> {
    union: &'a Union,
    /// Amounts below this are not followed up.
    least: f64,
    amounts: BTreeMap<CauseKind, f64>,
}

/// A difference in how often a function is called.
enum CallsChange {
    /// None, or none that means something.
    None,
    /// The function is called in the base or in the target alone.
    InOneOnly,
    /// The function's calls per operation differ.
    Changed { before: f64, after: f64 },
}

impl Blame<'_> {
    fn add(&mut self, kind: CauseKind, amount: f64) {
        *self.amounts.entry(kind).or_default() += amount;
    }

    /// Returns the part of the change of a function's own instructions that is there because it is
    /// called more or less often.
    fn part_by_count(&self, function: usize, change: f64) -> f64 {
        let base = &self.union.base;
        match self.change_of_calls(function) {
            CallsChange::None => 0.0,
            CallsChange::InOneOnly => change,
            CallsChange::Changed { before, after } => {
                part_of(change, (after / before - 1.0) * base.own[function])
            }
        }
    }

    /// Returns how the number of calls of a function differs, as far as that means something.
    fn change_of_calls(&self, function: usize) -> CallsChange {
        let Union { base, target, .. } = self.union;
        let before = base.called[function];
        let after = target.called[function];

        // A function that nobody calls runs all the time.
        if before == 0.0 && after == 0.0 {
            return CallsChange::None;
        }
        if before == 0.0 || after == 0.0 {
            return CallsChange::InOneOnly;
        }
        if !self.is_countable(function) || (after / before - 1.0).abs() < COUNT_CHANGE_MIN {
            return CallsChange::None;
        }
        CallsChange::Changed { before, after }
    }

    /// Returns whether a function is called so often that the number of calls means something.
    fn is_countable(&self, function: usize) -> bool {
        let Union { base, target, operations, .. } = self.union;
        base.called[function].max(target.called[function]) * operations >= CALLS_MIN
    }

    /// Gives a change to those callers of a function that call it more or less often. A caller
    /// that is itself called more often hands its part on to its own callers.
    fn callers_of(&mut self, function: usize, amount: f64, depth: usize) {
        let union = self.union;
        let mut callers = Vec::new();
        for caller in union.callers(function) {
            let change = union.count_change(caller, function);
            if change != 0.0 {
                callers.push((caller, change));
            }
        }

        // Some may call it more often and others less, as where calls were moved.
        let all: f64 = callers.iter().map(|(_, change)| change).sum();
        if all == 0.0 {
            self.add(CauseKind::Own(function), amount);
            return;
        }

        for (caller, change) in callers {
            let part = amount * change / all;
            let handed_on = part * self.share_by_callers(caller, function, change);

            if handed_on.abs() >= self.least / 2.0 && depth < DEPTH_MAX {
                self.callers_of(caller, handed_on, depth + 1);
                self.add(CauseKind::Calls(caller, function), part - handed_on);
            } else {
                self.add(CauseKind::Calls(caller, function), part);
            }
        }
    }

    /// Returns the share of a change of calls that is there because the caller is itself called
    /// more or less often.
    fn share_by_callers(&self, caller: usize, callee: usize, change: f64) -> f64 {
        let (before, after) = match self.change_of_calls(caller) {
            CallsChange::None => return 0.0,
            // A caller that is only in one of both brings or takes all of its calls.
            CallsChange::InOneOnly => return 1.0,
            CallsChange::Changed { before, after } => (before, after),
        };

        let calls_each = self.union.base.calls(caller, callee).count / before;
        let share = part_of(change, (after - before) * calls_each) / change;
        if share >= NEARLY_ALL {
            1.0
        } else if share <= 1.0 - NEARLY_ALL {
            0.0
        } else {
            share
        }
    }
}

/// Returns `part`, but at most `whole`, and nothing of the opposite sign.
fn part_of(whole: f64, part: f64) -> f64 {
    if whole > 0.0 { part.clamp(0.0, whole) } else { part.clamp(whole, 0.0) }
}

/// Returns whether only one of the targets has a function.
pub(super) fn is_new_or_gone(union: &Union, function: usize) -> bool {
    let has = |side: &Side| side.own[function] > 0.0 || side.called[function] > 0.0;
    has(&union.base) != has(&union.target)
}
