//! Damaged or incomplete records: the rest is shown, what is missing is reported, and `--resume`
//! measures it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::place::{Ended, Place, QUICK, SQLITE, workload};

const STEPS: &str = r#"steps = ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]"#;

/// Returns a complete run of two cells.
fn two_repeats(place: &Place) -> PathBuf {
    let plan = format!("repeats = 2\n{}{SQLITE}", workload(500, 500, QUICK, STEPS));
    place.run(&plan, &[]).expect_code(0).run_directory()
}

fn first_cell(run: &Path) -> PathBuf {
    run.join("cells/lite.base/c1/r1")
}

/// Returns the directory of a step of the first cell.
fn step(run: &Path, name: &str) -> PathBuf {
    let steps = crate::place::entries(&first_cell(run).join("steps"));
    let is_it = |path: &PathBuf| path.to_str().unwrap().ends_with(&format!("-{name}"));
    steps.into_iter().find(is_it).unwrap()
}

fn shown(place: &Place, run: &Path, format: &str) -> Ended {
    place.assay(&["show", run.to_str().unwrap(), "--format", format])
}

/// Returns the steps of both cells.
fn step_count(place: &Place, run: &Path) -> usize {
    let all = shown(place, run, "json").expect_code(0);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    all["rows"].as_array().unwrap().len()
}

fn measure_what_is_lacking(place: &Place, run: &Path, all: usize) {
    let path = run.to_str().unwrap();
    let resumed = place.assay(&["run", "--resume", path]).expect_code(0);
    let begun = "1 complete; 1 to be measured";
    assert!(resumed.stderr.contains(begun), "{resumed}");
    let whole = shown(place, run, "table").expect_code(0);
    let says = format!("all {all} step results are valid");
    assert!(whole.stdout.contains(&says), "{whole}");
    assert!(first_cell(run).with_file_name("r1.attempt-1").exists());
}

#[test]
fn a_damaged_step_is_reported_with_the_others_and_measured_again() {
    let place = Place::new();
    let run = two_repeats(&place);
    let path = run.to_str().unwrap();
    let all = step_count(&place, &run);
    let damaged = step(&run, "l.i1").join("intervals.parquet");
    let whole = fs_err::read(&damaged).unwrap();
    fs_err::write(&damaged, &whole[..whole.len() / 2]).unwrap();

    let table = shown(&place, &run, "table").expect_code(1);
    let says = format!("{} of {all} step results valid, 1 damaged", all - 1);
    assert!(table.stdout.contains(&says), "{table}");
    // The others are there, the same step of the other cell too.
    for text in ["l.i2", "qr100", "damaged: ", "r1 l.i1", "intervals.parquet"] {
        assert!(table.stdout.contains(text), "{text}: {table}");
    }

    let help = "copy the run directory again";
    let told = [&table.stdout, &table.stderr].map(|text| text.matches(help).count());
    assert_eq!(told, [0, 1], "{table}");
    let table = table.expect_in_stderr(&["error: ", damaged.to_str().unwrap(), "--resume"]);
    assert_eq!(table.stderr.matches("error: ").count(), 1, "{table}");

    let html = place.join("damaged.html");
    let args = ["report", path, "-o", html.to_str().unwrap()];
    place.assay(&args).expect_code(1).expect_in_stderr(&["intervals.parquet"]);
    assert!(fs_err::read_to_string(&html).unwrap().contains(&says));

    let args = ["export", path, "--format", "csv"];
    let table = place.assay(&args).expect_code(1);
    assert_eq!(table.stdout.lines().count(), 1 + all, "{table}");

    measure_what_is_lacking(&place, &run, all);
}

#[test]
fn a_step_that_is_gone_is_missing_everywhere_and_measured_again() {
    let place = Place::new();
    let run = two_repeats(&place);
    let path = run.to_str().unwrap();
    let all = step_count(&place, &run);
    fs_err::rename(step(&run, "l.i1"), place.join("elsewhere")).unwrap();

    let table = shown(&place, &run, "table").expect_code(1);
    let says = format!("{} of {all} step results valid, 1 missing, 1 cell not finished", all - 1);
    assert!(table.stdout.contains(&says), "{table}");
    assert!(table.stdout.contains("(lite.base r1: l.i1)"), "{table}");
    let table = table.expect_in_stderr(&["missing: it was recorded, but ", "l.i1` is gone"]);
    assert_eq!(table.stderr.matches("copy the run directory").count(), 1, "{table}");

    let json = shown(&place, &run, "json").expect_code(1);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let missing = &json["missing"];
    assert_eq!(missing.as_array().map(Vec::len), Some(1), "{missing}");
    assert_eq!((&missing[0]["step"], &missing[0]["repeat"]), (&"l.i1".into(), &1.into()));
    assert_eq!(json["unfinished"][0]["status"], "complete");

    let html = place.join("missing.html");
    place.assay(&["report", path, "-o", html.to_str().unwrap()]).expect_code(1);
    assert!(fs_err::read_to_string(&html).unwrap().contains(&says));

    for table in [
        place.assay(&["export", path, "--format", "csv"]).expect_code(1),
        shown(&place, &run, "csv").expect_code(1),
    ] {
        assert_eq!(table.stdout.lines().count(), 1 + all, "{table}");
        let lines = table.stdout.lines().filter(|line| line.contains("missing: "));
        assert_eq!(lines.count(), 1, "{table}");
    }

    measure_what_is_lacking(&place, &run, all);
}

#[test]
fn steps_of_cells_that_are_gone_count_as_well() {
    let place = Place::new();
    let run = two_repeats(&place);
    let all = step_count(&place, &run);
    fs_err::remove_dir_all(first_cell(&run)).unwrap();
    let one = shown(&place, &run, "table").expect_code(1);
    let half = all / 2;
    let says = format!("{half} of {all} step results valid, {half} missing, 1 cell not finished");
    assert!(one.stdout.contains(&says), "{one}");

    let other = first_cell(&run).with_file_name("r2").join("cell.json");
    fs_err::write(&other, "{").unwrap();
    let none = shown(&place, &run, "table").expect_code(1).expect_in_stderr(&["cell.json"]);
    let says = format!("0 of {all} step results valid, {all} missing, 2 cells not finished");
    assert!(none.stdout.contains(&says), "{none}");

    let path = run.to_str().unwrap();
    place
        .assay(&["export", path, "--format", "csv"])
        .expect_code(1)
        .expect_in_stderr(&["cell.json"]);

    place.assay(&["run", "--resume", path]).expect_code(0);
    let whole = shown(&place, &run, "table").expect_code(0);
    let says = format!("all {all} step results are valid");
    assert!(whole.stdout.contains(&says), "{whole}");
}

#[test]
fn damage_is_told_by_every_reader_even_of_files_without_figures() {
    let place = Place::new();
    let run = two_repeats(&place);
    let path = run.to_str().unwrap();
    let all = step_count(&place, &run);
    let html = place.join("damaged.html");
    let commands = [
        vec!["show", path],
        vec!["report", path, "-o", html.to_str().unwrap()],
        vec!["export", path, "--format", "csv"],
    ];

    // Only one export reads the latencies of each second.
    let file = step(&run, "l.i1").join("latency.hlog");
    let whole = fs_err::read(&file).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for damaged in [Some(changed), None] {
        match damaged {
            Some(bytes) => fs_err::write(&file, bytes).unwrap(),
            None => fs_err::remove_file(&file).unwrap(),
        }
        for command in &commands {
            place.assay(command).expect_code(1).expect_in_stderr(&["latency.hlog"]);
        }
    }

    measure_what_is_lacking(&place, &run, all);
}
