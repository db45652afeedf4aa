//! The parts of an engine and of its client in the work of one thread.
//!
//! Callgrind knows what a function costs for each of its callers, but not for its callers'
//! callers. So a function that both parts call, such as `memcpy`, is divided by this rule:
//!
//! * The part of the engine in a function is the part of the engine in the cost of its calls.
//! * A call for which `enters` is true belongs to the engine, with all that it calls.
//! * Any other call belongs to the engine by the engine's part in the caller.
//! * Costs that no call explains belong to the client: of the outermost function, and of
//!   functions that were already running when counting began.
//!
//! For cycles of functions, this is a system of linear equations. It is solved by iteration.

use words::{WorkCalls, WorkFunction, WorkGraph};

/// The iteration ends when no part changes by more than this, which is far below one instruction
/// of a million.
const PRECISION: f64 = 1e-12;
/// The most rounds of the iteration. Without cycles it needs as many as the calls are deep.
const ROUNDS_MAX: usize = 10_000;

/// The work of a thread of a client that has an engine as a library. Together, both parts have
/// exactly the instructions of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// What ran below calls of the engine. The calls that enter the engine are not in the graph, so
    /// that the functions that they call are the outermost.
    pub engine: WorkGraph,
    /// The rest. Costs of calls are without what the engine did in them.
    pub client: WorkGraph,
}

/// Splits the work of a thread between an engine and its client: the engine's is what runs below
/// calls for which `enters`, which gets the caller and the called function, is true. A function of
/// both parts is divided in proportion to the costs of its calls from either.
pub fn split(graph: &WorkGraph, enters: impl Fn(&WorkFunction, &WorkFunction) -> bool) -> Split {
    let functions = &graph.functions;
    let is_entry: Vec<bool> = graph
        .calls
        .iter()
        .map(|calls| enters(&functions[calls.caller], &functions[calls.callee]))
        .collect();
    let engine_parts = engine_parts(graph, &is_entry);
    let client_inside = client_parts_of_inclusive(graph, &is_entry);

    let mut engine = Part::default();
    let mut client = Part::default();
    for (function, part) in functions.iter().zip(&engine_parts) {
        let own = part_of(function.own, *part);
        engine.owns.push(own);
        client.owns.push(function.own - own);
    }
    for (calls, is_entry) in graph.calls.iter().zip(&is_entry) {
        if *is_entry {
            continue;
        }
        let part = engine_parts[calls.caller];
        let count = part_of(calls.count, part);
        let inclusive = part_of(calls.inclusive, part);
        engine.calls.push(WorkCalls { count, inclusive, ..*calls });

        let rest = calls.inclusive - inclusive;
        let inclusive = part_of(rest, client_inside[calls.callee]);
        client.calls.push(WorkCalls { count: calls.count - count, inclusive, ..*calls });
    }
    Split { engine: engine.graph(functions), client: client.graph(functions) }
}

/// One part while it is filled: it still has all functions.
#[derive(Default)]
struct Part {
    owns: Vec<u64>,
    calls: Vec<WorkCalls>,
}

impl Part {
    /// Returns the graph without the functions and calls that the part does not have.
    fn graph(self, functions: &[WorkFunction]) -> WorkGraph {
        let mut calls = self.calls;
        calls.retain(|calls| calls.count > 0 || calls.inclusive > 0);
        let mut is_used: Vec<bool> = self.owns.iter().map(|own| *own > 0).collect();
        for calls in &calls {
            is_used[calls.caller] = true;
            is_used[calls.callee] = true;
        }

        let mut graph = WorkGraph::default();
        let mut new_indexes = vec![0; functions.len()];
        for (index, function) in functions.iter().enumerate() {
            if is_used[index] {
                new_indexes[index] = graph.functions.len();
                graph.functions.push(WorkFunction { own: self.owns[index], ..function.clone() });
            }
        }
        for calls in calls {
            let (caller, callee) = (new_indexes[calls.caller], new_indexes[calls.callee]);
            graph.calls.push(WorkCalls { caller, callee, ..calls });
        }
        graph
    }
}

/// Returns the engine's part in each function, from 0 to 1.
fn engine_parts(graph: &WorkGraph, is_entry: &[bool]) -> Vec<f64> {
    let mut equations = vec![Equation::default(); graph.functions.len()];
    let mut explained = vec![0_u64; graph.functions.len()];
    let mut inclusive: Vec<u64> = graph.functions.iter().map(|function| function.own).collect();
    for (calls, is_entry) in graph.calls.iter().zip(is_entry) {
        explained[calls.callee] = explained[calls.callee].saturating_add(calls.inclusive);
        inclusive[calls.caller] = inclusive[calls.caller].saturating_add(calls.inclusive);
        equations[calls.callee].add(calls.inclusive, (!is_entry).then_some(calls.caller), 1.0);
    }

    // What no call explains is the client's, whose part is 0.
    for (index, equation) in equations.iter_mut().enumerate() {
        equation.weight += inclusive[index].saturating_sub(explained[index]) as f64;
    }
    solve(&equations)
}

/// Returns which part of a function's cost, with all that it calls, is outside of the engine if a
/// client calls the function, from 0 to 1.
fn client_parts_of_inclusive(graph: &WorkGraph, is_entry: &[bool]) -> Vec<f64> {
    let mut equations = vec![Equation::default(); graph.functions.len()];
    for (equation, function) in equations.iter_mut().zip(&graph.functions) {
        equation.add(function.own, None, 1.0);
    }
    for (calls, is_entry) in graph.calls.iter().zip(is_entry) {
        equations[calls.caller].add(calls.inclusive, (!is_entry).then_some(calls.callee), 0.0);
    }
    solve(&equations)
}

/// A part as a weighted mean of known parts and of those of other functions.
#[derive(Clone, Default)]
struct Equation {
    /// The sum of all weights.
    weight: f64,
    /// The sum of the known parts, by weight.
    known: f64,
    /// Other functions with their weights.
    others: Vec<(usize, f64)>,
}

impl Equation {
    /// Adds the part of another function, or a known one if there is none.
    fn add(&mut self, weight: u64, other: Option<usize>, known: f64) {
        self.weight += weight as f64;
        match other {
            Some(other) if weight > 0 => self.others.push((other, weight as f64)),
            Some(_) => {}
            None => self.known += weight as f64 * known,
        }
    }
}

/// Solves the equations by iteration (Gauss-Seidel).
fn solve(equations: &[Equation]) -> Vec<f64> {
    let mut parts = vec![0.0_f64; equations.len()];
    for _ in 0..ROUNDS_MAX {
        let mut change = 0.0_f64;
        for (index, equation) in equations.iter().enumerate() {
            if equation.weight == 0.0 {
                continue;
            }
            let mut sum = equation.known;
            for (other, weight) in &equation.others {
                sum += weight * parts[*other];
            }
            let part = (sum / equation.weight).clamp(0.0, 1.0);
            change = change.max((part - parts[index]).abs());
            parts[index] = part;
        }
        if change <= PRECISION {
            break;
        }
    }
    parts
}

/// Returns a part of a whole, rounded to whole instructions.
fn part_of(whole: u64, part: f64) -> u64 {
    ((whole as f64 * part).round() as u64).min(whole)
}
