//! Names the functions in which work changed.

use crate::order::sort_largest_first;
use std::collections::BTreeMap;

use serde::Serialize;

use super::causes::{Cause, CauseKind, causes};
use super::shifts::{Shift, changed, take_shifts};
use super::union::{CellGraph, Side, Union};

/// The number of functions that are named.
const NAMED_MAX: usize = 5;
/// The number of shifts that are listed.
const SHIFTS_MAX: usize = 5;
/// The least share of the whole change that a function must have to be named.
const NAMED_SHARE: f64 = 0.1;
/// The least share of all instructions that a function must have to be named, or a shift to be
/// listed.
const CHANGE_MIN: f64 = 0.0005;
/// The longest path from the root that is returned.
const PATH_MAX: usize = 64;

/// The functions in which the work of a part changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkChanges {
    /// The functions, the largest change first.
    pub functions: Vec<ChangedFunction>,
    /// Work that was only moved, the largest first.
    pub shifts: Vec<WorkShift>,
}

/// A function in which work changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangedFunction {
    /// The name, without arguments and versions.
    pub name: String,
    /// The program or library, without its version.
    pub object: String,
    /// The function's part of the change in instructions per operation, with what the function
    /// calls more often, and without what was only moved.
    pub difference: f64,
    /// The function in the base.
    pub base: FunctionWork,
    /// The function in the target.
    pub target: FunctionWork,
    /// The function that it calls more or less often, if that is most of the change.
    pub calls: Option<ChangedCalls>,
    /// The callers, from the root of the thread: always the one for whom the function costs most.
    pub path: Vec<String>,
}

/// The work of a function per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FunctionWork {
    /// The instructions of the function itself.
    pub own: f64,
    /// The number of times that it is called.
    pub calls: f64,
}

/// A number of calls that changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedCalls {
    /// The called function.
    pub callee: String,
    /// Calls per operation in the base.
    pub base: f64,
    /// Calls per operation in the target.
    pub target: f64,
}

/// Work that one function no longer does and another does now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkShift {
    /// The function that costs less.
    pub from: String,
    /// The function that costs more.
    pub to: String,
    /// Instructions per operation.
    pub instructions: f64,
}

/// Returns the functions in which work changed; `None` without graphs of both targets.
pub(super) fn changes(base: &[CellGraph<'_>], target: &[CellGraph<'_>]) -> Option<WorkChanges> {
    let union = Union::of(base, target)?;
    let mut causes = causes(&union);
    let shifts = take_shifts(&union, &mut causes);
    Some(WorkChanges { functions: named(&union, &causes), shifts: listed(&union, &shifts) })
}

/// Returns the functions that have much of the change.
fn named(union: &Union, causes: &[Cause]) -> Vec<ChangedFunction> {
    let mut by_function: BTreeMap<usize, Vec<Cause>> = BTreeMap::new();
    for &cause in causes {
        by_function.entry(changed(union, cause)).or_default().push(cause);
    }

    let base = union.base.total();
    let whole = (union.target.total() - base).abs();
    let least = (CHANGE_MIN * base).max(NAMED_SHARE * whole);

    let mut functions = Vec::new();
    for (function, causes) in by_function {
        let difference: f64 = causes.iter().map(|cause| cause.amount).sum();
        if difference.abs() >= least {
            functions.push(describe(union, function, &causes, difference));
        }
    }

    sort_largest_first(&mut functions, |item| item.difference.abs());
    functions.truncate(NAMED_MAX);
    functions
}

fn describe(union: &Union, function: usize, causes: &[Cause], difference: f64) -> ChangedFunction {
    let name = &union.names[function];
    let of = |side: &Side| FunctionWork { own: side.own[function], calls: side.called[function] };
    ChangedFunction {
        name: name.name.clone(),
        object: name.object.clone(),
        difference,
        base: of(&union.base),
        target: of(&union.target),
        calls: changed_calls(union, function, causes, difference),
        path: path(union, function),
    }
}

/// Returns the function that another calls more or less often, if that is most of its change.
fn changed_calls(
    union: &Union,
    function: usize,
    causes: &[Cause],
    difference: f64,
) -> Option<ChangedCalls> {
    let largest = causes.iter().max_by(|a, b| a.amount.abs().total_cmp(&b.amount.abs()))?;
    let CauseKind::Calls(caller, callee) = largest.kind else {
        return None;
    };

    let is_most = largest.amount.abs() >= difference.abs() / 2.0;
    (caller == function && is_most).then(|| ChangedCalls {
        callee: union.names[callee].name.clone(),
        base: union.base.calls(caller, callee).count,
        target: union.target.calls(caller, callee).count,
    })
}

/// Returns the callers of a function from the root: always the one for whom it costs most.
fn path(union: &Union, function: usize) -> Vec<String> {
    let is_there = union.target.own[function] > 0.0;
    let side = if is_there { &union.target } else { &union.base };
    let mut known = vec![function];

    while let Some(last) = known.last().filter(|_| known.len() < PATH_MAX) {
        let callers = side.callers[*last].iter().filter(|(caller, _)| !known.contains(caller));
        let most = callers.max_by(|(_, a), (_, b)| a.inclusive.total_cmp(&b.inclusive));

        match most {
            Some((&caller, _)) => known.push(caller),
            None => break,
        }
    }
    known.iter().skip(1).rev().map(|&caller| union.names[caller].name.clone()).collect()
}

/// Returns the largest shifts, with those of the same two functions together.
fn listed(union: &Union, shifts: &[Shift]) -> Vec<WorkShift> {
    let mut amounts: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for shift in shifts.iter().filter(|shift| shift.from != shift.to) {
        *amounts.entry((shift.from, shift.to)).or_default() += shift.amount;
    }

    let mut listed = Vec::new();
    for ((from, to), instructions) in amounts {
        if instructions >= CHANGE_MIN * union.base.total() {
            let [from, to] = [from, to].map(|function| union.names[function].name.clone());
            listed.push(WorkShift { from, to, instructions });
        }
    }

    sort_largest_first(&mut listed, |item| item.instructions);
    listed.truncate(SHIFTS_MAX);
    listed
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
