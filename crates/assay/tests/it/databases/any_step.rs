//! Databases that are kept after measured steps, and runs that begin with them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{cell, entries, json, kept, recorded_steps};
use crate::place::{Ended, POSTGRES, Place, QUICK, SQLITE, workload};
use crate::show_json::Shown;
use crate::{postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped};

/// The steps of the Insert Benchmark: `l.i1` and the queries after it insert and delete.
const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\", \"qp100\"]";

/// The steps with a number that a cell records if it begins after `l.i1`.
const LATER: [&str; 2] = ["04-qr100", "05-qp100"];

/// Returns a plan of the Insert Benchmark with two repeats.
fn insert(targets: &str) -> String {
    format!("repeats = 2\n{}{targets}", workload(5_000, 1_000, QUICK, STEPS))
}

/// Runs a plan with these options, and asserts that all checks of all steps hold.
fn run(place: &Place, plan: &str, options: &[&str]) -> PathBuf {
    let ended = place.run(plan, options).expect_code(0);
    let run = ended.run_directory();
    Shown::read(place, &run).assert_all_valid();
    run
}

/// Returns the database with which the last steps of a cell began.
fn database(run: &Path, target: &str, repeat: u32) -> Value {
    cell(run, target, repeat)["database"].clone()
}

/// Keeps the database of a plan after `step`, and begins another run from there, whose cells have only
/// the steps `later`. Returns both runs.
fn keep_and_begin(
    place: &Place,
    plan: &str,
    step: &str,
    target: &str,
    later: &[&str],
) -> [PathBuf; 2] {
    let first = run(place, plan, &["--keep-after", step]);
    assert_eq!(kept(place).len(), 1);
    let second = run(place, plan, &["--from", step]);

    let made_by = json(&first.join("run.json"))["id"].clone();
    let fingerprint = database(&first, target, 1)["fingerprint"].clone();
    for repeat in [1, 2] {
        assert_eq!(recorded_steps(&second, target, repeat), later);

        let began = database(&second, target, repeat);
        assert_eq!((&began["made_by"], &began["after_step"]), (&made_by, &step.into()));
        assert_eq!(began["fingerprint"], fingerprint);
        assert!(!began["checks"].as_array().unwrap().is_empty());
    }
    [first, second]
}

/// Each cell of the first run measures all steps, and continues with the same database.
fn begins_after_inserts(target: &str, targets: &str) {
    let place = Place::new();
    let plan = insert(targets);
    let [first, second] = keep_and_begin(&place, &plan, "l.i1", target, &LATER);

    let mut rows = Vec::new();
    for repeat in [1, 2] {
        assert_eq!(recorded_steps(&first, target, repeat).len(), 5);
        let began = database(&first, target, repeat);
        assert_eq!(began["made_here"], Value::Bool(repeat == 1));
        assert_eq!(began["steps_left_out"], 0);
        assert_eq!(database(&second, target, repeat)["steps_left_out"], 3);

        for run in [&first, &second] {
            let step = run.join(format!("cells/{target}/c1/r{repeat}/steps/04-qr100/step.json"));
            rows.push(json(&step)["rows_before"].clone());
        }
    }
    // `l.i1` deletes as many rows as it inserts.
    assert!(rows.iter().all(|before| *before == 5_100), "{rows:?}");
}

#[test]
fn sqlite_begins_after_inserts() {
    begins_after_inserts("lite.base", SQLITE);
}

#[test]
fn postgres_begins_after_inserts() {
    if postgres_is_here_or_test_is_skipped() {
        begins_after_inserts("pg.base", POSTGRES);
    }
}

/// Returns a plan of the key-value sequence with these steps.
fn key_values(library: &Path, steps: &[&str]) -> String {
    format!(
        "repeats = 2\n[workload.kv]\nkeys = 5000\nread-time = \"{QUICK}\"\n\
         read-write-time = \"{QUICK}\"\nwrite-rate = \"1MiB/s\"\nverify-share = 1.0\n\
         steps = {steps:?}\n[build.rocks]\nrocksdb = '{}'\n{}",
        library.display(),
        super::ROCKSDB
    )
}

#[test]
fn rocksdb_knows_which_keys_were_overwritten_before() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let place = Place::new();
    let plan =
        key_values(&libraries[0], &["fillseq", "readwhilewriting", "overwrite", "readrandom"]);
    keep_and_begin(&place, &plan, "overwrite", "rocks.base", &["04-readrandom"]);
}

#[test]
fn rocksdb_knows_which_keys_were_deleted_merged_and_in_transactions_before() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let place = Place::new();
    let steps = [
        "fillsst",
        "mergerandom",
        "deleterandom",
        "randomtransaction",
        "mixgraph",
        "deleterange",
        "fwdrange",
        "mixgraph.2",
        "randomtransaction.2",
    ];
    let plan = key_values(&libraries[0], &steps);
    // Of pessimistic databases, some versions delete no ranges.
    let config = "[config.rocksdb.base]\n";
    assert!(plan.contains(config));
    let plan = plan.replace(config, &format!("{config}transactions = \"optimistic\"\n"));
    let later = ["07-fwdrange", "08-mixgraph.2", "09-randomtransaction.2"];
    keep_and_begin(&place, &plan, "deleterange", "rocks.base", &later);
}

#[test]
fn transactions_count_the_commits_before_and_after() {
    let place = Place::new();
    let plan = format!(
        "repeats = 2\n[workload.transactions]\nuse = \"tpcb\"\ntime = \"{QUICK}\"\n\
         warmup = \"0s\"\nsteps = [\"load\", \"tpcb\", \"tpcb.again\"]\n{SQLITE}"
    );
    let [_, second] = keep_and_begin(&place, &plan, "tpcb", "lite.base", &["03-tpcb.again"]);

    // The history has a row for each commit, also of those before.
    let step = second.join("cells/lite.base/c1/r1/steps/03-tpcb.again/step.json");
    let step = json(&step);
    let checks = step["checks"].as_array().unwrap();
    let own = step["ops"]["tpcb"]["ok"].as_u64().unwrap();
    let expected = |check: &Value| check["expected"].as_str().unwrap().parse::<u64>().ok();
    assert!(checks.iter().filter_map(expected).any(|count| count > own), "{checks:?}, {own}");
}

#[test]
fn sysbench_knows_which_rows_were_deleted_before() {
    let place = Place::new();
    let plan = format!(
        "repeats = 2\n[workload.sysbench]\nrows = 500\ntables = 2\nread-time = \"{QUICK}\"\n\
         write-time = \"{QUICK}\"\nwarmup = \"0s\"\n\
         steps = [\"load\", \"index\", \"delete\", \"insert\", \"point-query\"]\n{SQLITE}"
    );
    let later = ["04-insert", "05-point-query"];
    keep_and_begin(&place, &plan, "delete", "lite.base", &later);
}

#[test]
fn one_step_of_a_run_that_begins_later_is_compared_with_that_of_the_first_run() {
    let place = Place::new();
    let plan = insert(SQLITE);
    let first = run(&place, &plan, &["--keep-after", "l.i1"]);
    let options = ["--from", "l.i1", "--only-step", "qp100", "--set", "repeats=3"];
    let second = run(&place, &plan, &options);
    assert_eq!(recorded_steps(&second, "lite.base", 3), ["04-qp100"]);

    let runs = [first.to_str().unwrap(), second.to_str().unwrap()];
    let compared = place.assay(&["compare", runs[0], runs[1], "--by-run"]).expect_code(0);
    compared.expect_in_stdout(&[
        "For the steps after l.i1, 5 of 5 cells have copies of databases",
        "the throughput of run 1 in 1 step",
    ]);
}

#[test]
fn databases_may_be_kept_after_several_steps_beside_the_load_that_cells_share() {
    let place = Place::new();
    let keys = "keep-after = [\"l.i1\", \"qr100\"]\nreuse = true\n";
    let plan = keys.to_owned() + &insert(SQLITE);
    let first = run(&place, &plan, &[]);
    assert_eq!(kept(&place).len(), 3);
    // The load is shared as without the key, and each cell measures the other steps.
    assert_eq!(recorded_steps(&first, "lite.base", 2), ["03-l.i1", "04-qr100", "05-qp100"]);
    assert_eq!(database(&first, "lite.base", 2)["steps_left_out"], 2);
    assert_eq!(database(&first, "lite.base", 2)["after_step"], "qr100");

    let listed = place.assay(&["databases"]).expect_code(0);
    listed.expect_in_stdout(&["seed 1, after l.x", "seed 1, after l.i1", "seed 1, after qr100"]);

    let second = run(&place, &plan, &["--from", "qr100"]);
    assert_eq!(recorded_steps(&second, "lite.base", 1), ["05-qp100"]);

    let checked = place.assay(&["check", "plan.toml"]).expect_code(0);
    checked.expect_in_stdout(&["keeps        ", "after `l.i1` and `qr100`"]);
}

#[test]
fn targets_that_take_turns_begin_with_one_database() {
    let place = Place::new();
    let targets =
        format!("{SQLITE}\n[config.sqlite.small]\nextends = \"base\"\nset.cache_size = 500\n");
    let plan = insert(&targets);
    // The size of a cache leaves no trace, so one of them makes the database for both.
    run(&place, &plan, &["--keep-after", "l.i1"]);
    assert_eq!(kept(&place).len(), 1);

    let second = run(&place, &plan, &["--from", "l.i1", "--turns", "20ms"]);
    let [base, small] = ["lite.base", "lite.small"].map(|target| database(&second, target, 2));
    assert_eq!(base["fingerprint"], small["fingerprint"]);

    let refused = place.run(&plan, &["--keep-after", "l.i1", "--turns", "20ms"]);
    refused.expect_code(2).expect_in_stderr(&["`keep-after` is not possible with `turns`"]);
}

#[test]
fn a_run_that_begins_later_says_which_database_it_lacks() {
    let place = Place::new();
    let plan = insert(SQLITE);
    let refuse = |plan: &str, text: &[&str]| -> Ended {
        let results = place.join("results");
        let count = || entries(&results).len();
        let before = count();
        let ended = place.run(plan, &["--from", "l.i1"]).expect_code(2).expect_in_stderr(text);
        assert_eq!(count(), before);
        ended
    };

    run(&place, &plan, &["--keep-after", "l.x", "--repeats", "1"]);
    refuse(&plan, &["no database of this engine is kept after `l.i1`", "--keep-after l.i1"]);

    run(&place, &plan, &["--keep-after", "l.i1", "--repeats", "1"]);
    let text = ["differs in `seed` (`1`, and this plan has `7`)", "--keep-after l.i1"];
    refuse(&format!("seed = 7\n{plan}"), &text);

    let deletes = plan.replace("[workload.insert]", "[workload.insert]\ndelete-per-insert = false");
    refuse(&deletes, &["differs in `delete-per-insert`"]);
}

#[test]
fn what_contradicts_a_later_begin_is_refused() {
    let place = Place::new();
    let plan = insert(SQLITE);
    for (options, text) in [
        (["--from", "qp100"], "no step comes after `qp100`"),
        (["--from", "l.i3"], "unknown step `l.i3`"),
        (["--keep-after", "l.i3"], "unknown step `l.i3`"),
    ] {
        place.run(&plan, &options).expect_code(2).expect_in_stderr(&[text]);
    }

    let of_run = format!("reuse = \"run\"\n{plan}");
    let ended = place.run(&of_run, &["--keep-after", "l.i1"]).expect_code(2);
    ended.expect_in_stderr(&["`keep-after` needs databases that outlive a run"]);

    let earlier = ["--from", "l.i1", "--only-step", "l.x"];
    place.run(&plan, &earlier).expect_code(2).expect_in_stderr(&["`l.x` is not after `l.i1`"]);

    let exact = ["--from", "l.i1", "--exact"];
    let ended = place.run(&plan, &exact).expect_code(2);
    ended.expect_in_stderr(&["`from` is not possible with `exact`"]);
}

#[test]
fn a_resumed_run_begins_with_the_same_database() {
    let place = Place::new();
    let plan = insert(SQLITE);
    // A database may also be kept after the last step.
    let keep = ["--keep-after", "l.i1", "--keep-after", "qp100"];
    run(&place, &plan, &[&keep[..], &["--repeats", "1", "--reuse", "chosen"]].concat());
    let options = ["--from", "l.i1", "--repeats", "1", "--reuse", "chosen"];
    let second = run(&place, &plan, &options);

    let resume = ["run", "--resume", second.to_str().unwrap(), "--repeats", "2"];
    place.assay(&resume).expect_code(0);
    let [first, last] = [1, 2].map(|repeat| database(&second, "lite.base", repeat));
    assert_eq!(recorded_steps(&second, "lite.base", 2), LATER);
    assert_eq!(first["made_unix_ns"], last["made_unix_ns"]);
}

#[test]
fn another_build_begins_with_the_database_that_an_older_one_kept() {
    let place = Place::new();
    let targets = "[build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n[[target]]\n\
         builds = [\"old\"]\n";
    let later = "[[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n";
    let upgraded = "new.default-from-old.default";
    run(&place, &insert(targets), &["--keep-after", "l.i1"]);

    let both = insert(&format!("{targets}{later}"));
    let second = run(&place, &both, &["--from", "l.i1"]);
    assert_eq!(recorded_steps(&second, upgraded, 1), LATER);
    assert_eq!(database(&second, upgraded, 1)["loaded_by"], "old.default");

    let kept_by_both = format!("reuse = true\n{both}");
    let refused = place.run(&kept_by_both, &["--keep-after", "l.i1"]).expect_code(2);
    refused.expect_in_stderr(&["`keep-after` is not possible", "another build"]);
}
