//! Many clients, and long runs.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::place::{ASSAY, Ended, NULL, POSTGRES, Place, QUICK, SQLITE, workload};
use crate::postgres_is_here_or_test_is_skipped;
use crate::show_json::Shown;

/// Returns whether what was measured is valid depends on what else the machine does; that it is
/// measured, and without failures, does not.
fn all_is_measured(place: &Place, ended: Ended) -> (Shown, Ended) {
    let shown = Shown::read(place, &place.only_run());
    let mut all_valid = true;
    for row in shown.rows() {
        assert_eq!(row["status"], "complete", "{ended}");
        for (kind, ops) in row["ops"].as_object().unwrap() {
            assert_eq!(ops["failed"], 0, "{kind}: {ops}");
        }
        for reason in row["reasons"].as_array().unwrap() {
            let reason = reason.as_str().unwrap();
            assert!(reason.contains("it had too little CPU"), "{ended}");
            all_valid = false;
        }
    }

    let ended = ended.expect_code(if all_valid { 0 } else { 4 });
    (shown, ended)
}

/// Runs 64 clients at a low priority, so that they do not slow down other tests.
fn run_64_clients(target: &str, engine: &str) {
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    place.write("plan.toml", &(workload(1_000, 500, QUICK, steps) + engine));
    let mut command = Command::new("nice");
    command.arg(ASSAY);
    let run = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let ended = place.spawn_as(command, &[&run[..], &["--set", "clients=[64]"]].concat()).wait();
    place.assert_nothing_is_left();

    let (shown, ended) = all_is_measured(&place, ended);
    assert_eq!(shown.steps(target).len(), 3, "{ended}");
    let loaded = &shown.row(target, "l.i0")["ops"]["insert"];
    assert_eq!(loaded["rows"], 64_000, "{ended}");
    let queried = &shown.row(target, "qr100")["ops"]["query"];
    assert!(queried["count"].as_u64() >= Some(64), "{ended}");
}

#[test]
fn sixty_four_clients_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        run_64_clients("pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "the clients are those of every engine"]
fn sixty_four_clients_on_the_null_engine() {
    run_64_clients("null.default", NULL);
}

#[test]
#[ignore = "the clients are those of every engine"]
fn sixty_four_clients_on_sqlite() {
    run_64_clients("lite.base", SQLITE);
}

/// Each thread needs memory, and the process has room for only a few.
#[test]
fn a_step_for_which_there_are_too_few_threads_has_failed_for_that_reason() {
    let place = Place::new();
    place.write("plan.toml", &(workload(1_000, 500, QUICK, "steps = [\"l.i0\"]") + NULL));
    let limited = "ulimit -v 8388608 && exec \"$0\" run plan.toml --results results --data data --set \"clients=[64]\"";
    let mut assay = Command::new("timeout")
        .args(["-s", "KILL", "120", "sh", "-c", limited, ASSAY])
        .current_dir(place.path())
        .env("RUST_MIN_STACK", (512 << 20).to_string())
        // And what is left of it stays for what else is needed.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = String::new();
    let mut piped = assay.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut piped, &mut stderr).unwrap();
    assert_eq!(assay.wait().unwrap().code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot create the thread of connection "), "{stderr}");
}

/// Returns the maximum memory of a process so far; `None` if it has ended.
fn most_memory_kib(process: u32) -> Option<u64> {
    let status = fs_err::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs a step of several seconds, and compares the memory of its parts.
pub(crate) fn memory_does_not_grow(place: &Place) {
    let plan = workload(1_000, 500, "9s", "steps = [\"l.i0\", \"l.x\", \"qr1000\"]") + NULL;
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr1000");
    let mut seen = Vec::new();
    while crate::place::any_below(&place.join("results"), "03-qr1000.partial")
        && let Some(memory) = most_memory_kib(running.id())
    {
        seen.push(memory);
        std::thread::sleep(Duration::from_millis(500));
    }

    all_is_measured(place, running.wait());

    // Buffers grow to their size at some times, and on a slow machine some do so for seconds. What
    // grows with each operation does so in all windows of three seconds: a hundred thousand
    // operations a second, the fewest of a debug build, with eight bytes kept of each are 2.4 MB.
    let grown = seen.windows(7).map(|part| part[6] - part[0]).min();
    let grown = grown.unwrap_or_else(|| panic!("{seen:?} KiB are too few times"));
    assert!(grown <= 1024, "{seen:?} KiB, half a second apart");
}
