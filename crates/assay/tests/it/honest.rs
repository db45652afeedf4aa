//! Failures and missing parts in the report of a run, and the limits that its user sets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::place::{ASSAY, NULL, POSTGRES, Place, QUICK, SQLITE, entries, workload};
use crate::{postgres_is_here_or_test_is_skipped, say_skipped};

/// A config that a server reads, but cannot start with.
const UNUSABLE: &str = "[config.postgres.unusable]\nextends = \"base\"\n\
                        set.shared_preload_libraries = \"no_such_library\"\n";

fn one_step(more: &str) -> String {
    workload(500, 500, QUICK, "steps = [\"l.i0\"]") + more
}

/// Starts assay by `script`, in which `$0` is assay.
fn by_shell(place: &Place, script: &str) -> crate::place::Ended {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, ASSAY]);
    let none: [&str; 0] = [];
    place.spawn_as(shell, &none).wait()
}

#[test]
fn a_config_with_which_no_server_starts_is_tried_once_and_its_failure_is_told_once() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let plan = "repeats = 3\n".to_owned() + &one_step(POSTGRES) + UNUSABLE;
    let ended = place.run(&plan, &[]).expect_code(1).expect_in_stderr(&[
        "2 other cells of `pg.unusable` left out",
        "no_such_library",
        "--keep-going",
    ]);

    let run = ended.run_directory();
    let begun = |target: &str| entries(&run.join("cells").join(target).join("c1")).len();
    assert_eq!((begun("pg.base"), begun("pg.unusable")), (3, 1), "{ended}");
    let path = run.to_str().unwrap();
    place
        .assay(&["show", path, "--all"])
        .expect_code(0)
        .expect_in_stdout(&["it was left out, because an earlier cell of the same target failed"]);

    // Resumed, all are tried, and the equal failures are counted.
    let resumed = place.assay(&["run", "--resume", path, "--keep-going"]).expect_code(1);
    assert_eq!(begun("pg.unusable"), 4, "three, and the first attempt: {resumed}");
    assert_eq!(resumed.stderr.matches("error: this cell failed like").count(), 2, "{resumed}");
    assert!(resumed.stderr.contains("this cell failed like 2 earlier cells"), "{resumed}");
    place.assert_nothing_is_left();
}

#[test]
fn a_profile_that_was_asked_for_and_not_made_is_told_with_its_reason() {
    let place = Place::new();
    place.write("plan.toml", &(one_step(SQLITE) + "[config.sqlite.next]\nextends = \"base\"\n"));
    let mut assay = Command::new(ASSAY);
    assay.env("PATH", "/nonexistent");
    let args = ["run", "plan.toml", "--results", "results", "--data", "data", "--profile"];
    let ended = place.spawn_as(assay, &args).wait().expect_code(0);
    let why = ["no profile", "perf is not installed"];
    let ended = ended.expect_in_stdout(&why);
    let run = place.join(ended.stdout.lines().last().unwrap());
    let path = run.to_str().unwrap();
    place.assay(&["show", path, "--all"]).expect_code(0).expect_in_stdout(&why);
    place.assay(&["compare", path]).expect_in_stdout(&why);
}

#[test]
fn a_run_in_progress_is_not_called_killed() {
    let place = Place::new();
    let plan = "repeats = 2\n".to_owned()
        + &workload(500, 500, "60s", "steps = [\"l.i0\", \"l.x\", \"qr100\"]")
        + SQLITE;
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr100");
    let run = place.only_run();
    let path = run.to_str().unwrap();
    let shown = place.assay(&["show", path, "--all"]);
    let shown = shown.expect_in_stdout(&["in progress", "has not started yet"]);
    assert!(!shown.stdout.contains("killed"), "{shown}");
    running.signal(Signal::KILL);
    running.wait();
    crate::place::eventually("all processes end", || place.processes().is_empty());
    let shown = place.assay(&["show", path, "--all"]);
    shown.expect_in_stdout(&["crashed or was killed", "was never started"]);
}

#[test]
fn as_root_new_data_directories_are_enterable_despite_the_umask() {
    if !rustix::process::geteuid().is_root() || !postgres_is_here_or_test_is_skipped() {
        say_skipped("only root starts servers as another user");
        return;
    }

    let place = Place::new();
    place.write("plan.toml", &one_step(POSTGRES));
    let script = "umask 077; exec \"$0\" run plan.toml --results results --data new/deep";
    let ended = by_shell(&place, script).expect_code(0);
    let mode = |name: &str| fs_err::metadata(place.join(name)).unwrap().permissions().mode();

    // Entered, not listed.
    assert_eq!((mode("new") & 0o777, mode("new/deep") & 0o777), (0o711, 0o711), "{ended}");
}

#[test]
fn nobody_else_may_write_to_databases_whatever_the_umask_is() {
    let place = Place::new();
    place.write("plan.toml", &one_step(SQLITE));
    let script = "umask 000; exec \"$0\" run plan.toml --results results --data data \
                  --set keep-data=true";
    let ended = by_shell(&place, script).expect_code(0);

    let data = place.join("data");
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data) & 0o022, 0, "{ended}");

    assert_eq!(mode(&data.join(".assay.lock")), 0o600);
    // Root's directories can be entered, since servers run as another user, but not this one.
    assert_eq!(mode(&data.join("lite.base")) & 0o066, 0);
    let databases = entries(&data.join("lite.base"));
    assert_eq!(databases.len(), 1, "{databases:?}");
    assert_eq!(mode(&databases[0]), 0o700, "{}", databases[0].display());
}

#[test]
fn a_limit_of_file_sizes_fails_the_run_with_a_message() {
    let place = Place::new();
    place.write("plan.toml", &one_step(NULL));
    let script = "ulimit -f 1; exec \"$0\" run plan.toml --results results --data data";
    let ended = by_shell(&place, script);
    assert_eq!((ended.code, ended.signal), (Some(1), None), "{ended}");
    assert!(ended.stderr.contains("File too large"), "{ended}");
}

#[test]
fn too_little_memory_for_threads_is_an_error_without_a_panic() {
    let place = Place::new();
    place.write("plan.toml", &one_step(SQLITE));
    // Some threads find room and others don't.
    for kilobytes in (200_000..=600_000).step_by(50_000) {
        let script = format!(
            "ulimit -v {kilobytes}; exec \"$0\" run plan.toml --results results --data data"
        );
        let ended = by_shell(&place, &script);

        // The standard library's own, while a thread begins: no program can prevent or catch it.
        let lines = ended.stderr.lines();
        let mut panics = lines.filter(|line| line.contains("panicked"));
        assert!(
            panics.all(|line| line.contains("/std/src/sys/pal/unix/stack_overflow.rs")),
            "{kilobytes} KB\n{ended}"
        );
    }
}

#[test]
fn a_directory_for_temporary_files_that_does_not_exist_is_named_with_its_variable() {
    let place = Place::new();
    place.write("plan.toml", &one_step(SQLITE));
    let script = "TMPDIR=/nonexistent exec \"$0\" check plan.toml";
    let ended = by_shell(&place, script).expect_code(1);
    ended.expect_in_stderr(&["`/nonexistent` (the variable TMPDIR) is not a directory"]);
}

#[test]
fn a_cache_that_exceeds_the_memory_of_the_host_is_a_warning_of_check() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();

    // Less than the largest value that the server accepts.
    let huge = "[config.postgres.huge]\nset.shared_buffers = \"8000GB\"\n";
    place.write("plan.toml", &(one_step(POSTGRES) + huge));
    let ended = place.assay(&["check", "plan.toml"]).expect_code(0);
    ended.expect_in_stderr(&[
        "warning[host::cache-exceeds-memory]: target `pg.huge`: `shared_buffers = 8000GB`",
    ]);
}
