//! The parts of an engine and of its client in the work of one thread.
//!
//! Callgrind knows what a function costs for each of its callers, but not for its callers'
//! callers. So a function that both parts call, such as `memcpy`, is divided by this rule:
//!
//! * The part of the engine in a function is the part of the engine in the cost of its calls.
//! * A call for which `enters` is true belongs to the engine, with all that it calls.
//! * Any other call belongs to the engine by the engine's part in the caller.
//! * Functions that no other function calls belong to the client: the outermost function.
//!
//! Recursive calls have no cost of their own, so they don't count. For cycles of functions, this is
//! a system of linear equations. It is solved by iteration.

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
    /// The work below calls of the engine. The calls that enter the engine are not in the graph, so
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
    for (calls, is_entry) in graph.calls.iter().zip(is_entry) {
        equations[calls.callee].add(calls.inclusive, (!is_entry).then_some(calls.caller), 1.0);
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

/// A part as a weighted mean of known parts and of those of other functions; 0 without weights.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, own: u64) -> WorkFunction {
        let object = if name.starts_with("db_") { "engine" } else { "client" };
        WorkFunction { name: name.into(), object: object.into(), own }
    }

    fn calls(caller: usize, callee: usize, count: u64, inclusive: u64) -> WorkCalls {
        WorkCalls { caller, callee, count, inclusive }
    }

    /// Splits where the client calls a function of the engine's library.
    fn split_at_library(graph: &WorkGraph) -> Split {
        split(graph, |caller, callee| caller.object == "client" && callee.object == "engine")
    }

    /// Returns the instructions of a function in a part.
    fn own(graph: &WorkGraph, name: &str) -> u64 {
        let found = graph.functions.iter().find(|function| function.name == name);
        found.map_or(0, |function| function.own)
    }

    /// Returns the count and the cost of the calls of one function by another.
    fn cost(graph: &WorkGraph, caller: &str, callee: &str) -> (u64, u64) {
        let name = |index: usize| graph.functions[index].name.as_str();
        let mut all = graph.calls.iter();
        let found = all.find(|all| (name(all.caller), name(all.callee)) == (caller, callee));
        found.map_or((0, 0), |found| (found.count, found.inclusive))
    }

    fn assert_sum(graph: &WorkGraph, split: &Split) {
        for function in &graph.functions {
            let sum = own(&split.engine, &function.name) + own(&split.client, &function.name);
            assert_eq!(sum, function.own, "{}", function.name);
        }
    }

    #[test]
    fn a_function_of_both_parts_is_divided_by_the_costs_of_its_calls() {
        // `main` copies for 100, and calls the engine, which copies for 300.
        let graph = WorkGraph {
            functions: vec![
                function("main", 50),
                function("db_get", 200),
                function("memcpy", 360),
                function("copy_words", 40),
            ],
            calls: vec![
                calls(0, 1, 10, 500),
                calls(0, 2, 4, 100),
                calls(1, 2, 20, 300),
                calls(2, 3, 8, 40),
            ],
        };
        let split = split_at_library(&graph);
        assert_sum(&graph, &split);

        assert_eq!(own(&split.engine, "main"), 0);
        assert_eq!(own(&split.engine, "db_get"), 200);
        assert_eq!(own(&split.engine, "memcpy"), 270);
        // Below a divided function, too.
        assert_eq!(own(&split.engine, "copy_words"), 30);

        assert_eq!(cost(&split.engine, "db_get", "memcpy"), (20, 300));
        assert_eq!(cost(&split.engine, "memcpy", "copy_words"), (6, 30));
        assert_eq!(cost(&split.client, "main", "memcpy"), (4, 100));
        assert_eq!(cost(&split.client, "memcpy", "copy_words"), (2, 10));
        // Neither part has the call that enters the engine.
        assert_eq!(cost(&split.client, "main", "db_get"), (0, 0));
        assert_eq!(own(&split.client, "db_get"), 0);
        assert_eq!(split.engine.total() + split.client.total(), graph.total());
    }

    #[test]
    fn functions_of_the_client_that_the_engine_calls_are_the_engines() {
        let graph = WorkGraph {
            functions: vec![function("main", 10), function("db_get", 20), function("compare", 70)],
            calls: vec![calls(0, 1, 1, 90), calls(1, 2, 7, 70)],
        };
        let split = split_at_library(&graph);
        assert_sum(&graph, &split);
        assert_eq!(own(&split.engine, "compare"), 70);
        assert_eq!(split.client.total(), 10);
    }

    #[test]
    fn costs_of_a_clients_calls_are_without_the_engine() {
        let graph = WorkGraph {
            functions: vec![
                function("main", 10),
                function("operation", 20),
                function("db_get", 70),
            ],
            calls: vec![calls(0, 1, 1, 90), calls(1, 2, 1, 70)],
        };
        let split = split_at_library(&graph);
        assert_eq!(cost(&split.client, "main", "operation"), (1, 20));
    }

    #[test]
    fn cycles_of_functions_are_divided() {
        // `visit` and `expand` call each other, from the client for 300, from the engine for 100.
        let graph = WorkGraph {
            functions: vec![
                function("main", 10),
                function("db_get", 20),
                function("visit", 210),
                function("expand", 190),
            ],
            calls: vec![
                calls(0, 1, 1, 120),
                calls(0, 2, 1, 300),
                calls(1, 3, 1, 100),
                calls(2, 3, 5, 150),
                calls(3, 2, 5, 60),
            ],
        };
        let split = split_at_library(&graph);
        assert_sum(&graph, &split);

        // visit = 60 / 360 * expand, and expand = (100 + 150 * visit) / 250.
        let expand = 0.4 / (1.0 - 0.6 / 6.0);
        assert_eq!(own(&split.engine, "expand"), (190.0_f64 * expand).round() as u64);
        assert_eq!(own(&split.engine, "visit"), (210.0_f64 * expand / 6.0).round() as u64);
    }

    #[test]
    fn functions_without_callers_are_the_clients() {
        // The thread was in `db_wait` when counting began.
        let graph = WorkGraph {
            functions: vec![function("db_wait", 30), function("db_get", 10), function("main", 5)],
            calls: vec![calls(2, 1, 1, 10)],
        };
        let split = split_at_library(&graph);
        assert_eq!(own(&split.client, "db_wait"), 30);
        assert_eq!(own(&split.engine, "db_get"), 10);
    }

    #[test]
    fn recursion_does_not_move_work_to_the_client() {
        // The recursive calls of `db_walk` have no cost of their own.
        let graph = WorkGraph {
            functions: vec![
                function("main", 10),
                function("db_walk", 60),
                function("db_step", 30),
                function("memcpy", 5),
            ],
            calls: vec![
                calls(0, 1, 1, 95),
                calls(1, 2, 3, 80),
                calls(2, 1, 2, 0),
                calls(1, 3, 1, 5),
            ],
        };
        let split = split_at_library(&graph);
        assert_sum(&graph, &split);
        assert_eq!(split.client.total(), 10);
    }

    #[test]
    fn a_graph_without_calls_of_the_engine_is_the_clients() {
        let graph = WorkGraph {
            functions: vec![function("main", 10), function("read", 20)],
            calls: vec![calls(0, 1, 1, 20)],
        };
        let split = split_at_library(&graph);
        assert_eq!(split, Split { engine: WorkGraph::default(), client: graph });
        assert_eq!(split_at_library(&WorkGraph::default()), Split::default());
    }
}
