//! Reads of trees that differed when the step began.

use std::collections::BTreeMap;

use analysis::compare::{CompareOptions, ComparedStep, compare};
use analysis::figures::{Figures, Row};
use record::{Status, StepKind};

fn row(target: &str, repeat: u32, files: f64) -> Row {
    Row {
        cell: record::CellKey::new(target, None, 1, repeat),
        workload: "kv".to_owned(),

        step: "readrandom".to_owned(),
        kind: StepKind::Query,
        main_op: Some("get".to_owned()),
        reported: true,
        status: Status::Complete,
        seconds: 10.0,
        valid: true,
        metrics: BTreeMap::from([
            ("qps", Some(1000.0 + f64::from(repeat))),
            ("cpupq", Some(10.0)),
            ("l0_files_begin", Some(files)),
            ("levels_begin", Some(4.0)),
        ]),
        ..Row::default()
    }
}

/// Returns the reasons in the comparison of each metric.
fn reasons(figures: &Figures) -> BTreeMap<String, Vec<String>> {
    let options = CompareOptions { base: "old.c".to_owned(), ..CompareOptions::default() };
    let told = |row: ComparedStep| (row.metric, row.reasons);
    compare(figures, &options).rows.into_iter().map(told).collect()
}

#[test]
fn throughput_has_a_note_if_the_trees_differed() {
    let mut rows = Vec::new();
    for repeat in 1..=3 {
        rows.push(row("old.c", repeat, 0.0));
        rows.push(row("new.c", repeat, 3.0));
    }
    let mut figures = Figures { rows, ..Figures::default() };
    let told = reasons(&figures);
    assert_eq!(
        told["throughput"],
        [
            "the trees differed when the step began: 4 levels with 0 L0 files -> 4 levels with 3 L0 files, and a read searches each level and L0 file"
        ]
    );
    // Once for each step, not again for the costs of an operation.
    let says = |reasons: &[String]| reasons.iter().any(|reason| reason.contains("trees"));
    assert!(!says(&told["cpupq"]));
    // A repeat that does not count says nothing of those that do.
    for row in &mut figures.rows {
        let is_new = row.cell.target == "new.c";
        let files = if is_new && row.cell.repeat == 1 { 90.0 } else { 0.0 };
        row.metrics.insert("l0_files_begin", Some(files));
        row.valid = row.cell.repeat > 1;
    }
    assert!(!says(&reasons(&figures)["throughput"]));
}
