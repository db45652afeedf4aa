//! `assay ls`, and the short names of runs that other commands take.

use serde_json::Value;

use crate::place::{NULL, Place, QUICK, workload};

const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";

#[test]
fn runs_are_listed_the_newest_first_and_go_by_the_beginning_of_their_names() {
    let place = Place::new();
    let empty = place.assay(&["ls"]).expect_code(2);
    empty.expect_in_stderr(&["`results` has no runs"]);

    let plan = workload(2_000, 1_000, QUICK, STEPS) + NULL;
    let first = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let second = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let older = place.join("results/20200101T000000Z-older");
    fs_err::rename(&first, &older).unwrap();
    fs_err::write(place.join("results/20210101T000000Z-note.txt"), "no run").unwrap();

    let listed = place.assay(&["ls"]).expect_code(0);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    let newest = second.file_name().unwrap().to_str().unwrap();
    assert!(lines[1].starts_with(newest) && lines[2].starts_with("20200101"), "{listed}");
    assert!(lines[1].contains(" complete ") && lines[1].ends_with("one target"), "{listed}");
    let last = place.assay(&["ls", "results", "--last", "1"]).expect_code(0);
    last.expect_in_stderr(&["1 older entry not listed"]);

    let json = place.assay(&["ls", "--format", "json"]).expect_code(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["run"]["state"], "complete");
    assert_eq!(json[0]["run"]["steps"], serde_json::json!(["l.i0", "l.x", "qr100"]));

    for name in ["2020", "results/2020", "20200101T000000Z-older"] {
        place.assay(&["show", "--summary", name]).expect_code(0);
    }

    let several = place.assay(&["show", "results/20"]).expect_code(2);
    several.expect_in_stderr(&["may be any of 2 runs", "20200101T000000Z-older"]);
    let none = place.assay(&["compare", "1999"]).expect_code(2);
    none.expect_in_stderr(&["there is no run `1999`", "these are in `results`", newest]);
    place.assay(&["ls", "results/2020"]).expect_code(2);
}

#[test]
fn a_run_that_can_not_be_read_is_listed_with_the_reason() {
    let place = Place::new();
    let plan = workload(2_000, 1_000, QUICK, STEPS) + NULL;
    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    fs_err::write(run.join("run.json"), "{}\u{1b}[31m").unwrap();
    let listed = place.assay(&["ls"]).expect_code(1);
    assert!(listed.stdout.contains(" unreadable "), "{listed}");
    assert!(!listed.stdout.contains('\u{1b}'), "{listed}");
}
