//! SQLite's library of the system, in a process of its own, beside the bundled one.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{LONG_AND_SHORT, Place, QUICK, SQLITE, send, workload};
use crate::rocksdb::process_of_cell;
use crate::show_json::Shown;
use crate::sqlite_library_or_test_is_skipped;

/// Returns the bundled build `lite`, the build `own` of a library, and the config `base` of both.
fn builds(library: &Path) -> String {
    format!("{SQLITE}[build.own]\nsqlite = '{}'\n", library.display())
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

#[test]
fn a_library_takes_turns_with_the_bundled_one_and_is_checked() {
    let Some(library) = sqlite_library_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\", \"settle\"]";
    let plan =
        "turns = \"10ms\"\n".to_owned() + &workload(2_000, 200, "300ms", steps) + &builds(&library);
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    let record = |target: &str| json(&run.join("cells").join(target).join("c1/r1/cell.json"));
    let (bundled, own) = (record("lite.base"), record("own.base"));
    assert_ne!(bundled["engine_version"], own["engine_version"]);
    assert!(own["frozen_by"].is_string() && bundled["frozen_by"].is_null(), "{own}");

    let builds = json(&run.join("run.json"))["builds"].clone();
    let recorded = builds.as_array().unwrap().iter().find(|build| build["name"] == "own").unwrap();
    assert_eq!(recorded["version"], own["engine_version"]);
    assert_eq!(recorded["files"][0]["sha256"].as_str().unwrap().len(), 64);

    // The two were compiled with different options, each of which is named.
    let between = ["show", run.to_str().unwrap(), "--between", "lite.base", "own.base"];
    let differences = place.assay(&between).expect_code(0).stdout;
    assert!(differences.contains("compile_option."), "{differences}");
    place.assert_nothing_is_left();
}

#[test]
fn sysbench_runs_on_a_library() {
    let Some(library) = sqlite_library_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let plan = format!(
        "name = \"test\"\nclients = [2]\n[workload.sysbench]\nrows = 1000\nwarmup = \"0s\"\n\
         read-time = \"{QUICK}\"\nwrite-time = \"{QUICK}\"\n{}",
        builds(&library)
    );

    let run = place.run(&plan, &["--only", "own.*"]).expect_code(0).run_directory();
    Shown::read(&place, &run).assert_all_valid();
}

#[test]
fn a_library_of_sqlite_that_crashes_is_a_failed_cell_and_the_next_is_run() {
    let Some(library) = sqlite_library_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let steps = format!("steps = [\"l.i0\", \"l.x\", \"qr100\"]\n{LONG_AND_SHORT}");
    let plan = workload(1_000, 200, "300ms", &steps) + &builds(&library);
    let only = ["--only", "own.base/long/*/*", "--only", "lite.base/short/*/*"];
    let mut running = place.spawn_run(&plan, &only);
    place.wait_for_step(&mut running, "03-qr100");
    send(process_of_cell(&place), Signal::ABORT);
    running.wait().expect_code(1).expect_in_stderr(&["ended unexpectedly", "SIGABRT"]);
    place.assert_nothing_is_left();

    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(shown.steps("lite.base").len(), 3);
}

#[test]
fn a_build_of_sqlite_that_is_none_is_refused_before_anything_runs() {
    let place = Place::new();
    let text = place.write("libsqlite3.so.0", "not a library");
    let plan = |build: &str| {
        workload(1_000, 200, QUICK, "") + &format!("[build.own]\nsqlite = '{build}'\n")
    };
    for (build, why) in [
        (text.to_str().unwrap(), "not a shared library"),
        (place.join("data").to_str().unwrap(), "has no shared library of SQLite"),
        ("/nowhere/libsqlite3.so.0", "No such file"),
        // A version that does not exist, so no store has it.
        ("sqlite@3.40.99", "the build `sqlite@3.40.99` is not downloaded"),
        ("3.40.98", "`assay fetch sqlite@3.40.98` downloads it"),
    ] {
        place.run(&plan(build), &[]).expect_code(2).expect_in_stderr(&[why]);
    }
}

#[test]
fn a_pragma_that_a_library_lacks_is_refused_for_that_library_alone() {
    let Some(library) = sqlite_library_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let plan = workload(1_000, 200, QUICK, "")
        + &builds(&library)
        + "[config.sqlite.wrong]\nset.cache_sise = 1\n[[target]]\nbuilds = [\"own\"]\nconfigs = [\"wrong\"]\n";
    place
        .run(&plan, &[])
        .expect_code(2)
        .expect_in_stderr(&["`cache_sise` is not a pragma of SQLite"]);
}
