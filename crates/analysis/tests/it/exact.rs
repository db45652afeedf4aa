//! From exact cells of a run directory to their figures.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::figures::{Figures, figures};
use analysis::json;
use record::{
    Cell, CellKey, CellRef, Failure, Run, RunDir, Status, Step, StepKind, StepWork,
    latency_histogram,
};
use words::{CellKind, WorkCalls, WorkFunction, WorkGraph, WorkPart, WorkRole};

fn exact(repeat: u32) -> CellRef {
    let key = CellKey { kind: CellKind::Exact, ..CellKey::new("db.base", None, 1, repeat) };
    CellRef::of(key, "insert")
}

fn work() -> StepWork {
    StepWork {
        missing: None,
        tool: "valgrind-3.19.0".into(),
        warmup_operations: 200,
        operations: BTreeMap::from([("insert".into(), 1000)]),
        parts: vec![WorkPart {
            role: WorkRole::Serving,
            name: "insert".into(),
            operations: vec!["insert".into()],
            instructions: 47,
            events: BTreeMap::new(),
        }],
    }
}

fn graphs() -> BTreeMap<WorkRole, WorkGraph> {
    let function = |name: &str, own| WorkFunction { name: name.into(), object: "db".into(), own };
    let serving = WorkGraph {
        functions: vec![function("main", 7), function("insert", 40)],
        calls: vec![WorkCalls { caller: 0, callee: 1, count: 3, inclusive: 40 }],
    };
    [(WorkRole::Serving, serving)].into()
}

fn write(run: &RunDir, cell: &CellRef, status: Status, work: StepWork) {
    let directory = run.begin_cell(cell).unwrap();
    let failure = (status == Status::Failed)
        .then(|| Failure { causes: vec!["the server ended".into()], ..Failure::default() });
    directory
        .write(&Cell {
            key: cell.key.clone(),
            workload: "insert".into(),
            status,
            failure,
            ..Cell::default()
        })
        .unwrap();
    let mut writer = directory.begin_step(1, "l.i0", &[]).unwrap();
    writer.latency(0, "insert.service", &latency_histogram()).unwrap();
    writer.work(&graphs()).unwrap();
    writer
        .finish(&Step {
            name: "l.i0".into(),
            kind: StepKind::Load,
            status: Status::Complete,
            valid: true,
            work: Some(work),
            ..Step::default()
        })
        .unwrap();
}

/// Returns a run of two exact cells with its directory.
fn written(results: &Path, second: Status) -> RunDir {
    let cells = vec![exact(1), exact(2)];
    let run = Run { name: "exact".into(), cells, ..Run::default() };
    let directory = RunDir::create(results, &run).unwrap();
    write(&directory, &exact(1), Status::Complete, work());
    write(&directory, &exact(2), second, work());
    directory
}

fn read(run: &RunDir) -> Figures {
    figures(&[RunDir::open(run.path()).unwrap()]).unwrap()
}

#[test]
fn steps_of_exact_cells_have_their_work_and_are_no_rows() {
    let results = tempfile::tempdir().unwrap();
    let run = written(results.path(), Status::Complete);
    let figures = read(&run);
    assert!(figures.rows.is_empty() && figures.unfinished.is_empty());
    assert_eq!(figures.exact.len(), 2);
    assert_eq!(figures.exact[0].work, work());
    assert_eq!(figures.exact[0].graphs, graphs());
    assert_eq!(figures.exact[0].missing(), None);

    let json = json(&run.read_run().unwrap(), &figures);
    let row = &json["rows"][1];
    assert_eq!(row["cell_kind"], "exact");
    assert_eq!(row["exact"], true);
    assert_eq!(row["repeat"], 2);
    assert_eq!(row["work"]["parts"][0]["instructions"], 47);
}

#[test]
fn an_exact_cell_that_failed_is_unfinished_with_its_causes() {
    let results = tempfile::tempdir().unwrap();
    let figures = read(&written(results.path(), Status::Failed));
    let [unfinished] = &figures.unfinished[..] else {
        panic!("{:?}", figures.unfinished);
    };
    assert_eq!(unfinished.cell, exact(2).key);
    assert_eq!(unfinished.causes, ["the server ended"]);
}

#[test]
fn a_damaged_call_graph_is_told_and_leaves_a_step_without_work() {
    let results = tempfile::tempdir().unwrap();
    let run = written(results.path(), Status::Complete);
    let step = run.path().join("cells/db.base/c1/x1/steps/01-l.i0");
    fs_err::write(step.join("work_calls.parquet"), b"no such file").unwrap();

    let figures = read(&run);
    assert_eq!(figures.damages.len(), 1, "{:?}", figures.damages);
    assert!(figures.damages[0].contains("work_calls.parquet"), "{:?}", figures.damages);
    assert!(figures.exact[0].missing().is_some());
    assert_eq!(figures.exact[0].work, StepWork::default());
    assert_eq!(figures.exact[1].missing(), None);
}

#[test]
fn a_step_that_was_not_counted_says_why() {
    let results = tempfile::tempdir().unwrap();
    let run = Run { cells: vec![exact(1)], ..Run::default() };
    let directory = RunDir::create(results.path(), &run).unwrap();
    let why = "the engine does not run under valgrind";
    let missing = StepWork { missing: Some(why.into()), parts: Vec::new(), ..work() };
    write(&directory, &exact(1), Status::Complete, missing);
    assert_eq!(read(&directory).exact[0].missing(), Some(why));
}
