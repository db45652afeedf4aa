//! Exact work of a recorded run: in the table, in JSON, and in the gate.

use std::path::Path;

use record::{Cell, CellKey, CellRef, RunDir, Status, Step, StepKind, StepWork};
use serde_json::Value;
use words::{CellKind, WorkCalls, WorkFunction, WorkGraph, WorkPart, WorkRole};

use crate::export::recorded;
use crate::place::Place;

const OPERATIONS: u64 = 1000;
const CELLS: u32 = 2;

/// Writes a run with two exact cells of each target, and returns its directory. The other target
/// executes this many more instructions in `range` for each query.
fn written(place: &Place, more: u64) -> String {
    let path = recorded::write(&place.join("results"), 5, 0);
    let directory = RunDir::open(&path).unwrap();
    let mut run = directory.read_run().unwrap();
    let targets: Vec<String> = run.targets.iter().map(|target| target.name.clone()).collect();
    let mut exact = Vec::new();
    for repeat in 1..=CELLS {
        for target in &targets {
            let key = CellKey { kind: CellKind::Exact, ..CellKey::new(target, None, 1, repeat) };
            exact.push(CellRef::of(key, "insert"));
        }
    }

    run.cells.extend(exact.iter().cloned());
    directory.write_run(&run).unwrap();

    for cell in &exact {
        let is_base = cell.key.target == run.base;
        write_cell(&directory, cell, graph(if is_base { 0 } else { more }));
    }

    path.display().to_string()
}

/// Returns the functions of a cell's queries.
fn graph(more: u64) -> WorkGraph {
    let function = |name: &str, each: u64| WorkFunction {
        name: name.into(),
        object: "postgres".into(),
        own: each * OPERATIONS,
    };

    let range = 30_000 + more;
    WorkGraph {
        functions: vec![function("serve", 20_000), function("range", range)],
        calls: vec![WorkCalls {
            caller: 0,
            callee: 1,
            count: OPERATIONS,
            inclusive: range * OPERATIONS,
        }],
    }
}

fn write_cell(directory: &RunDir, cell: &CellRef, graph: WorkGraph) {
    let begun = directory.begin_cell(cell).unwrap();
    begun
        .write(&Cell {
            key: cell.key.clone(),
            build: cell.key.target.replace(".tuned", ""),
            config: "tuned".to_owned(),
            engine: "postgres".to_owned(),
            workload: cell.workload.clone(),
            status: Status::Complete,
            steps: vec!["01-qr100".to_owned()],
            ..Cell::default()
        })
        .unwrap();

    let part = WorkPart {
        role: WorkRole::Serving,
        name: "query".into(),
        operations: vec!["query".into()],
        instructions: graph.total(),
        events: [].into(),
    };

    let mut step = begun.begin_step(1, "qr100", &[]).unwrap();
    step.work(&[(WorkRole::Serving, graph)].into()).unwrap();
    step.finish(&Step {
        name: "qr100".into(),
        kind: StepKind::Query,
        status: Status::Complete,
        valid: true,
        work: Some(StepWork {
            missing: None,
            tool: "valgrind-3.19.0".into(),
            warmup_operations: 200,
            operations: [("query".to_owned(), OPERATIONS)].into(),
            parts: vec![part],
        }),
        ..Step::default()
    })
    .unwrap();
}

fn text(path: &Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

#[test]
fn work_has_a_table_by_its_name_and_rows_in_json() {
    let place = Place::new();
    let run = written(&place, 1000);
    let shown = place.assay(&["show", &run, "--table", "work"]).expect_code(0);
    let row = ["Work per operation", "50,000", "51,000", "1.0200", "more work"];
    shown.expect_in_stdout(&row).expect_in_stdout(&["range", "serve", "+1000"]);

    let shown = place.assay(&["show", &run, "--format", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let exact: Vec<&Value> = rows.iter().filter(|row| row["exact"] == true).collect();
    assert_eq!(exact.len(), 4);
    assert_eq!(exact[0]["cell_kind"], "exact");
    assert_eq!(exact[0]["work"]["parts"][0]["name"], "query");

    let compared = place.assay(&["compare", &run, "--format", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&compared.stdout).unwrap();
    let work = &json["work"][0];
    assert_eq!((&work["verdict"], &work["connection"]), (&"more".into(), &"query".into()));
    assert_eq!(work["functions"]["functions"][0]["name"], "range");
}

#[test]
fn more_work_fails_the_gate_unless_its_threshold_accepts_it() {
    let place = Place::new();
    let run = written(&place, 1000);
    // The times of the run regress by a tenth, which other thresholds accept.
    let gated = ["compare", &run, "--gate", "--threshold", "50"];
    let files = ["--junit", "gate.xml"];
    let failed = place.assay(&[&gated[..], &files].concat()).expect_code(3);
    failed.expect_in_stderr(&["regression: exact work in the only comparison", "in range"]);
    let junit = text(&place.join("gate.xml"));
    let case = "<testcase classname=\"new.tuned c1\" name=\"qr100: exact work of query\"><failure";
    assert!(junit.contains(case), "{junit}");

    let accepted = place.assay(&[&gated[..], &["--threshold", "work=3"]].concat());
    assert!(!accepted.stderr.contains("exact work"), "{accepted}");
}
