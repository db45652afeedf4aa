//! Time, exact work and functions as witnesses of one change.

use record::{CellKey, StepWork};
use words::{CellKind, WorkCalls, WorkFunction, WorkGraph, WorkPart, WorkRole};

use super::*;
use crate::explain::statement::{Agreement, OtherTime, StepWitnesses};
use crate::figures::ExactStep;

const OPERATIONS: u64 = 1000;
const CPU: &[(&str, f64)] = &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 75.0)];

/// Returns a graph of a query that executes this many instructions in `find`.
fn graph(find: f64) -> WorkGraph {
    let function = |name: &str, own: f64| WorkFunction {
        name: name.into(),
        object: "mysqld".into(),
        own: (own * OPERATIONS as f64) as u64,
    };
    let inclusive = (find * OPERATIONS as f64) as u64;
    WorkGraph {
        functions: vec![function("serve", 10_000.0), function("find", find)],
        calls: vec![WorkCalls { caller: 0, callee: 1, count: OPERATIONS, inclusive }],
    }
}

/// Adds two exact cells of each target in `q100`, which execute this many instructions in `find`.
fn with_work(mut figures: Figures, of_base: [f64; 2], of_target: [f64; 2]) -> Figures {
    for (target, cells) in [("a.c", of_base), ("b.c", of_target)] {
        let row = figures.rows.iter().find(|row| row.cell.target == target).unwrap().clone();
        for (repeat, find) in (1..).zip(cells) {
            let graph = graph(find);
            let cell = CellKey { kind: CellKind::Exact, ..CellKey::new(target, None, 1, repeat) };
            figures.exact.push(ExactStep {
                row: Row { cell, ..row.clone() },
                work: StepWork {
                    missing: None,
                    tool: "valgrind-3.19.0".into(),
                    warmup_operations: 200,
                    operations: [("query".to_owned(), OPERATIONS)].into(),
                    parts: vec![WorkPart {
                        role: WorkRole::Serving,
                        name: "query".into(),
                        operations: vec!["query".into()],
                        instructions: graph.total(),
                        events: BTreeMap::new(),
                    }],
                },
                graphs: [(WorkRole::Serving, graph)].into(),
            });
        }
    }
    figures
}

/// Returns figures of two targets with these rates, in operations per second.
fn times(base: f64, target: f64) -> Figures {
    repeated(&[cost("a.c", "q100", base, CPU), cost("b.c", "q100", target, CPU)])
}

/// The work of a base, with what two of its cells differ by.
const BASE: [f64; 2] = [50_000.0, 50_010.0];

/// Returns the base's work times this.
fn scaled(factor: f64) -> [f64; 2] {
    BASE.map(|find| find * factor)
}

/// Returns the only finding about work.
fn of_work(figures: &Figures) -> Finding {
    let mut findings = found(figures);
    findings.retain(|finding| finding.kind == FindingKind::Work);
    assert_eq!(findings.len(), 1);
    findings.remove(0)
}

/// Returns what is said of the first step of a finding about work.
fn first_step(finding: &Finding) -> &StepWitnesses {
    match &finding.statement {
        Statement::Work(steps) => &steps[0],
        statement => panic!("{statement:?}"),
    }
}

fn agreements(figures: &Figures) -> Vec<Agreement> {
    explained(figures, |explanation| match &explanation.statement {
        Statement::Work(all) => Some(all[0].agreement),
        _ => None,
    })
}

#[test]
fn time_and_work_that_changed_alike_are_certain() {
    let figures = with_work(times(30_000.0, 25_000.0), BASE, scaled(1.2));
    assert_eq!(agreements(&figures), [Agreement::Certain]);
    let finding = of_work(&figures);
    let step = first_step(&finding);
    assert!(is_about(step.ratio.unwrap(), 1.0 / 1.2), "{step:?}");
    assert!((step.change - 0.1667).abs() < 0.0001, "{step:?}");
    assert_eq!((step.base_instructions, step.target_instructions), (60_005.0, 70_006.0));
    assert!((step.floor - 0.000_171).abs() < 1e-6, "{step:?}");
    let function = step.function.as_ref().unwrap();
    assert_eq!((function.name.as_str(), function.difference), ("find", 10_001.0));
    assert_eq!(function.path.last().unwrap(), "serve");
    let [caveat] = &finding.caveats[..] else {
        panic!("{:?}", finding.caveats);
    };
    assert_eq!((&caveat.caveat, caveat.case.clients), (&Caveat::OneConnection, 4));

    let figures = with_work(times(25_000.0, 30_000.0), scaled(1.2), BASE);
    assert_eq!(agreements(&figures), [Agreement::Certain]);
}

/// Adds a function that another calls, with its instructions in the base and in the target.
fn add_function(figures: &mut Figures, caller: &str, name: &str, of_base: f64, of_target: f64) {
    for exact in &mut figures.exact {
        let own = if exact.row.cell.target == "a.c" { of_base } else { of_target };
        let instructions = (own * OPERATIONS as f64) as u64;

        let graph = exact.graphs.get_mut(&WorkRole::Serving).unwrap();
        let caller = graph.functions.iter().position(|known| known.name == caller).unwrap();
        graph.calls.push(WorkCalls {
            caller,
            callee: graph.functions.len(),
            count: OPERATIONS,
            inclusive: instructions,
        });
        graph.functions.push(WorkFunction {
            name: name.into(),
            object: "mysqld".into(),
            own: instructions,
        });
        exact.work.parts[0].instructions = graph.total();
    }
}

#[test]
fn a_function_that_does_less_is_not_named_for_more_work() {
    let mut figures = with_work(times(30_000.0, 25_000.0), BASE, BASE.map(|find| find + 6_000.0));
    // Too far from `find` for work that only moved from one to the other.
    add_function(&mut figures, "find", "read", 100.0, 100.0);
    add_function(&mut figures, "read", "unpack", 100.0, 100.0);
    add_function(&mut figures, "unpack", "copy", 20_000.0, 11_000.0);
    add_function(&mut figures, "serve", "lock", 10_000.0, 15_000.0);

    let finding = of_work(&figures);
    let step = first_step(&finding);
    assert!((step.change - 0.0222).abs() < 0.0001, "{step:?}");
    let function = step.function.as_ref().unwrap();
    assert!(function.name == "find" && function.difference > 0.0, "{function:?}");

    // The second function is named as what goes against the change.
    let opposite = step.opposite.as_ref().unwrap();
    assert!(opposite.name == "copy" && opposite.difference < 0.0, "{opposite:?}");
}

#[test]
fn work_that_is_a_small_part_of_a_change_of_time_is_not_called_its_cause() {
    let figures = with_work(times(30_000.0, 15_000.0), BASE, scaled(1.02));
    assert_eq!(agreements(&figures), [Agreement::SmallPart]);
}

#[test]
fn the_same_work_in_another_time_is_no_matter_of_instructions() {
    let figures = with_work(times(30_000.0, 25_000.0), BASE, BASE);
    assert_eq!(agreements(&figures), [Agreement::SameWork]);
    let finding = of_work(&figures);
    assert_eq!(first_step(&finding).other_time, OtherTime::Waits);

    let more: &[(&str, f64)] = &[("op_client_cpu_us", 20.0), ("op_server_cpu_us", 110.0)];
    let more_cpu =
        repeated(&[cost("a.c", "q100", 30_000.0, CPU), cost("b.c", "q100", 25_000.0, more)]);
    let finding = of_work(&with_work(more_cpu, BASE, BASE));
    assert_eq!(first_step(&finding).other_time, OtherTime::Memory);
}

#[test]
fn opposite_directions_are_both_said() {
    let figures = with_work(times(25_000.0, 30_000.0), BASE, scaled(1.1));
    assert_eq!(agreements(&figures), [Agreement::Opposite]);
    let finding = of_work(&figures);
    let step = first_step(&finding);
    assert!(step.change > 0.08 && step.ratio.unwrap() > 1.19, "{step:?}");
}

#[test]
fn work_speaks_where_time_can_not() {
    let same = with_work(times(30_000.0, 30_000.0), BASE, scaled(1.024));
    assert_eq!(agreements(&same), [Agreement::SameTime]);
    let noisy = repeated(&[cost("a.c", "q100", 30_000.0, CPU), cost("b.c", "q100", 30_000.0, CPU)]);
    let mut noisy = with_work(noisy, BASE, scaled(1.024));
    for row in &mut noisy.rows {
        let rate = row.metrics.get_mut("qps").unwrap().as_mut().unwrap();
        *rate *= if row.cell.repeat % 2 == 0 { 1.3 } else { 0.8 };
        if row.cell.target == "b.c" && row.cell.repeat == 3 {
            *rate *= 1.4;
        }
    }
    assert_eq!(agreements(&noisy), [Agreement::NoisyTime]);
    let finding = of_work(&noisy);
    assert!((first_step(&finding).change - 0.02).abs() < 0.0001);

    let mut once = times(30_000.0, 30_000.0);
    once.rows.retain(|row| row.cell.repeat == 1);
    assert_eq!(agreements(&with_work(once, BASE, scaled(1.024))), [Agreement::UnknownTime]);
}

#[test]
fn work_that_is_not_exact_is_silent() {
    for target in [[50_000.0, 52_000.0], [50_000.0, 50_200.0]] {
        let figures = with_work(times(30_000.0, 25_000.0), BASE, target);
        assert_eq!(agreements(&figures), []);
    }
    assert_eq!(agreements(&with_work(times(30_000.0, 30_000.0), BASE, BASE)), []);
    assert_eq!(agreements(&times(30_000.0, 25_000.0)), []);
}

#[test]
fn the_fewest_clients_are_compared_with_work() {
    let at = |clients, target, rate| Cost { clients, ..cost(target, "q100", rate, CPU) };
    let figures = repeated(&[
        at(1, "a.c", 9000.0),
        at(1, "b.c", 9000.0),
        at(8, "a.c", 30_000.0),
        at(8, "b.c", 25_000.0),
    ]);
    assert_eq!(agreements(&with_work(figures, BASE, scaled(1.2))), [Agreement::SameTime]);
}
