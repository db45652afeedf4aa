//! System calls by kind, of real engines.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::place::{ASSAY, Place, QUICK, SQLITE, workload};
use crate::postgres_is_here_or_test_is_skipped;
use crate::say_skipped;
use crate::show_json::Shown;

/// A user who has no rights.
const SOMEBODY: u32 = 7002;

const SYNC_AND_NOT: &str = "
[build.lite]
sqlite = \"bundled\"
[config.sqlite.full]
set = { journal_mode = \"wal\", synchronous = \"full\" }
[config.sqlite.normal]
set = { journal_mode = \"wal\", synchronous = \"normal\" }
";

/// Returns whether the kernel counts system calls for this user; if not, the test is skipped.
fn calls_are_counted_or_test_is_skipped() -> bool {
    match probe::SystemCallEvents::open(&["fdatasync"]) {
        Ok(_) => true,
        Err(error) => {
            say_skipped(&format!("system calls cannot be counted here: {error}"));
            false
        }
    }
}

/// Returns the comparison of a run's targets in JSON.
fn compared(place: &Place, run: &Path, more: &[&str]) -> Value {
    let run = run.to_str().unwrap();
    let args = [&["compare", run, "--format", "json"], more].concat();
    serde_json::from_str(&place.assay(&args).expect_code(0).stdout).unwrap()
}

#[test]
fn sqlite_syncs_each_commit_only_with_full_synchronous() {
    if !calls_are_counted_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = workload(500, 200, QUICK, "steps = [\"l.i0\", \"l.i1\"]\n") + SYNC_AND_NOT;
    let run = place.run(&plan, &["--system-calls=syncs"]).expect_code(0).run_directory();

    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let per_commit = |target: &str| {
        let row = shown.row(target, "l.i1");
        row["metrics"]["fsyncs_per_commit"].as_f64().unwrap()
    };
    let full = per_commit("lite.full");
    assert!((1.0..=2.0).contains(&full), "{full}");
    let normal = per_commit("lite.normal");
    assert!(normal < 0.5, "{normal}");
    // Only what was counted has a number.
    let calls = &shown.row("lite.full", "l.i1")["system_calls"];
    assert!(calls["msync"].is_number() && calls["pread64"].is_null(), "{calls}");

    let run = run.to_str().unwrap();
    let table = place.assay(&["show", run, "--table", "system-calls"]).expect_code(0).stdout;
    assert!(table.contains("System calls of the engine per operation"), "{table}");
    assert!(table.contains("4 kinds were counted"), "{table}");
}

#[test]
fn a_change_of_postgres_s_system_calls_is_listed_and_has_a_verdict_if_asked() {
    if !calls_are_counted_or_test_is_skipped() || !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = "repeats = 5\n".to_owned()
        + &workload(1000, 600, QUICK, "steps = [\"l.i0\", \"l.i2\"]\n")
        + "[build.pg]\npostgres = \"distribution\"\n\
           [config.postgres.on]\nset = { shared_buffers = \"32MB\" }\n\
           [config.postgres.off]\nextends = \"on\"\nset = { synchronous_commit = false }\n";
    let run = place.run(&plan, &["--system-calls"]).expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    for row in shown.rows().iter().filter(|row| row["step"] == "l.i2") {
        let calls = &row["system_calls"];
        // Each statement is received and answered.
        assert!(calls["recvfrom"].as_f64().unwrap() > 0.0, "{row}");
        assert!(calls["sendto"].as_f64().unwrap() > 0.0, "{row}");
    }

    let metric = "system_calls_per_op:fdatasync";
    let comparison = compared(&place, &run, &["--metric", metric]);
    let steps = comparison["system_calls"].as_array().unwrap();
    let step = steps.iter().find(|step| step["step"] == "l.i2").unwrap();
    let kinds = step["kinds"].as_array().unwrap();
    let syncs = kinds.iter().find(|kind| kind["name"] == "fdatasync").unwrap();
    assert_eq!(syncs["is_shown"], true, "{step}");
    assert!(syncs["difference"].as_f64().unwrap() < 0.0, "{syncs}");

    let run = run.to_str().unwrap();
    let text = place.assay(&["compare", run, "--metric", metric]).expect_code(0).stdout;
    let (_, table) = text.split_once("System calls of the engine per operation").unwrap();
    assert!(table.contains("fdatasync"), "{table}");
    assert!(text.contains(metric), "{text}");
}

#[test]
fn a_user_without_rights_measures_anyway_and_is_told_once_what_to_do() {
    if !rustix::process::geteuid().is_root() {
        say_skipped("only root can be another user");
        return;
    }
    let place = Place::new();
    for folder in ["tmp", "results", "data"] {
        chown(place.join(folder), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    // The directories above this binary may be closed to others.
    let program = place.join("assay");
    assert!(Command::new("cp").args([Path::new(ASSAY), &program]).status().unwrap().success());
    place.write(
        "plan.toml",
        &(workload(500, 200, QUICK, "steps = [\"l.i0\", \"l.i2\"]\n") + SQLITE),
    );
    let mut command = Command::new(&program);
    command.uid(SOMEBODY).gid(SOMEBODY);
    let args = ["run", "plan.toml", "--system-calls", "--results", "results", "--data", "data"];
    let ended = place.spawn_as(command, &args).wait().expect_code(0);
    let told = ended.stderr.matches("system calls cannot be counted").count();
    assert_eq!(told, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("run as root"), "{}", ended.stderr);

    let run = place.only_run();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    for row in shown.rows() {
        assert!(row["system_calls"].is_null(), "not applicable is not zero: {row}");
        assert!(row["metrics"]["fsyncs_per_commit"].is_null(), "{row}");
    }
}

#[test]
fn unknown_kinds_and_sets_are_refused() {
    let place = Place::new();
    let plan = workload(500, 200, QUICK, "steps = [\"l.i0\"]\n") + SQLITE;
    place.spawn_run(&plan, &["--set", "system-calls=fsyncs"]).wait().expect_code(2);
    let args = ["compare", "results", "--metric", "system_calls_per_op:fsnyc"];
    place
        .assay(&args)
        .expect_code(2)
        .expect_in_stderr(&["unknown metric `system_calls_per_op:fsnyc`"]);
}
