use words::{WorkCalls, WorkFunction, WorkGraph};

use super::*;
use crate::compare::work::fold::Calls;

const OPERATIONS: u64 = 1000;

/// A function by its name, with its instructions for each operation.
type Own<'a> = (&'a str, f64);
/// A caller and what it calls, with the calls of each operation.
type Call<'a> = (&'a str, &'a str, f64);

/// Returns the graph of one cell. What calls cost follows from the functions, which must not be
/// recursive. Each instruction of a function is divided among its callers by their calls.
fn graph(functions: &[Own<'_>], calls: &[Call<'_>]) -> WorkGraph {
    let number = |name: &str| functions.iter().position(|(known, _)| *known == name).unwrap();
    let called =
        |name: &str| -> f64 { calls.iter().filter(|call| call.1 == name).map(|call| call.2).sum() };
    fn inclusive(name: &str, functions: &[Own<'_>], calls: &[Call<'_>]) -> f64 {
        let own = functions.iter().find(|(known, _)| *known == name).unwrap().1;
        let below = calls.iter().filter(|call| call.0 == name).map(|&(_, callee, count)| {
            let all: f64 = calls.iter().filter(|call| call.1 == callee).map(|call| call.2).sum();
            inclusive(callee, functions, calls) * count / all
        });
        own + below.sum::<f64>()
    }

    let per_cell = |value: f64| (value * OPERATIONS as f64).round() as u64;
    WorkGraph {
        functions: functions
            .iter()
            .map(|&(name, own)| {
                let (object, name) = name.split_once(':').unwrap_or(("db", name));
                WorkFunction { name: name.into(), object: object.into(), own: per_cell(own) }
            })
            .collect(),
        calls: calls
            .iter()
            .map(|&(caller, callee, count)| WorkCalls {
                caller: number(caller),
                callee: number(callee),
                count: per_cell(count),
                inclusive: per_cell(inclusive(callee, functions, calls) * count / called(callee)),
            })
            .collect(),
    }
}

fn changes_of(base: &WorkGraph, target: &WorkGraph) -> WorkChanges {
    let cells = |graph| [CellGraph { graph, operations: OPERATIONS }; 2];
    changes(&cells(base), &cells(target)).unwrap()
}

fn names(changes: &WorkChanges) -> Vec<(&str, f64)> {
    changes.functions.iter().map(|function| (function.name.as_str(), function.difference)).collect()
}

const FUNCTIONS: [Own<'static>; 6] = [
    ("serve", 1000.0),
    ("execute", 4000.0),
    ("plan", 3000.0),
    ("read", 20_000.0),
    ("compare", 30_000.0),
    ("copy", 5000.0),
];
const CALLS: [Call<'static>; 6] = [
    ("serve", "plan", 1.0),
    ("serve", "execute", 1.0),
    ("execute", "read", 2.0),
    ("read", "compare", 10.0),
    ("plan", "copy", 1.0),
    ("execute", "copy", 1.0),
];

fn base() -> WorkGraph {
    graph(&FUNCTIONS, &CALLS)
}

/// Returns the functions with other instructions for some of them.
fn with<'a>(others: &[Own<'a>]) -> Vec<Own<'a>> {
    let mut functions: Vec<Own<'a>> = FUNCTIONS.to_vec();
    for &(name, own) in others {
        match functions.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = own,
            None => functions.push((name, own)),
        }
    }
    functions
}

#[test]
fn a_planted_line_is_named_with_its_function_and_the_path_to_it() {
    let found = changes_of(&base(), &graph(&with(&[("read", 20_700.0)]), &CALLS));
    assert_eq!(names(&found), [("read", 700.0)]);
    assert!(found.shifts.is_empty());
    let read = &found.functions[0];
    assert_eq!((read.base.own, read.target.own, read.target.calls), (20_000.0, 20_700.0, 2.0));
    assert_eq!(read.path, ["serve", "execute"]);
    assert_eq!(read.calls, None);
}

#[test]
fn a_function_that_was_inlined_is_a_shift() {
    let mut functions = with(&[("execute", 24_000.0)]);
    functions.retain(|(name, _)| *name != "read");
    let calls = CALLS.map(|(caller, callee, count)| match (caller, callee) {
        ("read", "compare") => ("execute", "compare", 10.0),
        _ => (caller, callee, count),
    });
    let calls: Vec<Call<'_>> = calls.into_iter().filter(|call| call.1 != "read").collect();
    let found = changes_of(&base(), &graph(&functions, &calls));
    assert_eq!(names(&found), []);
    let shift = WorkShift { from: "read".into(), to: "execute".into(), instructions: 20_000.0 };
    assert_eq!(found.shifts, [shift]);
}

#[test]
fn a_function_that_was_split_is_a_shift() {
    let functions = with(&[("read", 12_000.0), ("read_page", 8000.0)]);
    let mut calls = CALLS.to_vec();
    calls.push(("read", "read_page", 4.0));
    let found = changes_of(&base(), &graph(&functions, &calls));
    assert_eq!(names(&found), []);
    assert_eq!(found.shifts[0].to, "read_page");
}

#[test]
fn code_that_was_moved_to_a_neighbor_is_a_shift_and_what_was_added_to_it_is_not() {
    let moved = [("plan", 1000.0), ("execute", 6000.0)];
    let found = changes_of(&base(), &graph(&with(&moved), &CALLS));
    assert_eq!(names(&found), []);
    let added = [("plan", 1000.0), ("execute", 6700.0)];
    let found = changes_of(&base(), &graph(&with(&added), &CALLS));
    assert_eq!(names(&found), [("execute", 700.0)]);
}

#[test]
fn a_function_with_another_name_is_a_shift() {
    let rename = |name| if name == "compare" { "compare_fast" } else { name };
    let functions = FUNCTIONS.map(|(name, own)| (rename(name), own));
    let calls = CALLS.map(|(caller, callee, count)| (caller, rename(callee), count));
    let found = changes_of(&base(), &graph(&functions, &calls));
    assert_eq!(names(&found), []);
    assert_eq!(found.shifts[0].from, "compare");
}

#[test]
fn a_caller_that_calls_twice_as_often_is_named_with_the_calls() {
    let functions = with(&[("read", 40_000.0), ("compare", 60_000.0)]);
    let calls = CALLS.map(|(caller, callee, count)| match (caller, callee) {
        ("execute", "read") | ("read", "compare") => (caller, callee, 2.0 * count),
        _ => (caller, callee, count),
    });
    let found = changes_of(&base(), &graph(&functions, &calls));
    assert_eq!(names(&found), [("execute", 50_000.0)]);
    let calls = ChangedCalls { callee: "read".into(), base: 2.0, target: 4.0 };
    assert_eq!(found.functions[0].calls, Some(calls));
}

#[test]
fn a_new_function_is_named_itself() {
    let functions = with(&[("check", 2000.0)]);
    let mut calls = CALLS.to_vec();
    calls.push(("execute", "check", 1.0));
    let found = changes_of(&base(), &graph(&functions, &calls));
    assert_eq!(names(&found), [("check", 2000.0)]);
    assert_eq!(found.functions[0].base, FunctionWork::default());
    assert_eq!(found.functions[0].path, ["serve", "execute"]);
}

#[test]
fn two_changes_are_both_named_if_no_caller_has_both() {
    let functions = [("main", 1.0), ("a", 1000.0), ("b", 1000.0), ("c", 5000.0), ("d", 5000.0)];
    let calls = [("main", "a", 1.0), ("main", "b", 1.0), ("a", "c", 1.0), ("b", "d", 1.0)];
    let mut after = functions;
    (after[3].1, after[4].1) = (5900.0, 4600.0);
    let found = changes_of(&graph(&functions, &calls), &graph(&after, &calls));
    assert_eq!(names(&found), [("c", 900.0), ("d", -400.0)]);
}

#[test]
fn versions_of_libraries_and_of_names_are_no_change() {
    let name = |library: &str, function: &str| format!("{library}:{function}");
    let before = name("libpq.so.5.14", "std::map<int>::find(int const&)");
    let after = name("libpq.so.5.15", "std::map<int>::find[abi:cxx11](int const&) [clone .isra.0]");
    let of = |function: &str| {
        graph(&[("serve", 1000.0), (function, 9000.0)], &[("serve", function, 1.0)])
    };
    assert_eq!(changes_of(&of(&before), &of(&after)), WorkChanges::default());
}

#[test]
fn functions_without_symbols_are_parts_of_their_callers() {
    let functions = |own| [("serve", 1000.0), ("read", 8000.0), ("0x77", own)];
    let calls = [("serve", "read", 1.0), ("read", "0x77", 3.0)];
    let found = changes_of(&graph(&functions(4000.0), &calls), &graph(&functions(4500.0), &calls));
    assert_eq!(names(&found), [("read", 500.0)]);
    assert_eq!(found.functions[0].target.own, 12_500.0);
}

#[test]
fn the_parts_of_a_target_that_differ_from_cell_to_cell_are_not_named() {
    let cells = [19_000.0, 21_000.0].map(|own| graph(&with(&[("read", own)]), &CALLS));
    let after =
        [20_500.0, 22_000.0].map(|own| graph(&with(&[("read", own), ("plan", 3600.0)]), &CALLS));
    let of = |graphs| -> Vec<CellGraph<'_>> {
        let graphs: &[WorkGraph; 2] = graphs;
        graphs.iter().map(|graph| CellGraph { graph, operations: OPERATIONS }).collect()
    };
    let found = changes(&of(&cells), &of(&after)).unwrap();
    assert_eq!(names(&found), [("plan", 600.0)]);
}

#[test]
fn calls_add_up() {
    let mut calls = Calls { count: 1.0, inclusive: 2.0 };
    calls.add(calls.times(2.0));
    assert_eq!(calls, Calls { count: 3.0, inclusive: 6.0 });
}
