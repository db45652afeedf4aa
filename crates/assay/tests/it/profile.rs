//! CPU profiles: a function that was made slower is named, with what it costs.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::full_disk::Disk;
use crate::place::{
    ASSAY, NULL, POSTGRES, Place, QUICK, Running, SQLITE, entries, eventually, send, workload,
};
use crate::show_json::Shown;
use crate::{not_here, postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped};

/// Returns whether `perf` can sample here; if not, the test is skipped.
fn perf_is_here_or_test_is_skipped() -> bool {
    let mut perf = Command::new("perf");
    let sampled = perf.args(["record", "--event", "cpu-clock", "--output", "/dev/null", "true"]);
    let is_here = sampled.output().is_ok_and(|output| output.status.success());
    if !is_here {
        not_here("perf", "`perf record` is not installed or not permitted");
    }
    is_here
}

/// The CPU time that the slower library spends in a function of its own in each lookup.
const SLOWER_US: f64 = 40.0;

/// A library that passes everything on to another, but first works for a while in each lookup.
const WRAPPER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>
static long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
__attribute__((noinline)) void choose_block(void) {
    volatile unsigned sum = 0;
    long long until = cpu_ns() + WORK_NS;
    // Some 2 us between looks at the clock, so that the time is spent here and not in the kernel.
    while (cpu_ns() < until)
        for (int i = 0; i < 2000; i++) sum += i;
}
void *rocksdb_get_pinned(void *db, void *options, const char *key, size_t length, char **error) {
    static void *(*passed_on)(void *, void *, const char *, size_t, char **);
    if (!passed_on) passed_on = dlsym(RTLD_NEXT, "rocksdb_get_pinned");
    choose_block();
    return passed_on(db, options, key, length, error);
}
"#;

/// Compiles the wrapper of a library, which works for so long in each lookup.
fn wrapped(place: &Place, library: &Path, name: &str, work_us: f64) -> PathBuf {
    let source = place.write("wrapper.c", WRAPPER);
    let wrapper = source.with_file_name(format!("librocksdb-{name}.so"));
    let compiled = Command::new("cc")
        .args(["-O2", "-g", "-shared", "-fPIC", "-o"])
        .args([&wrapper, &source])
        .arg(format!("-DWORK_NS={}", work_us * 1e3))
        // The wrapped library must be needed, though nothing refers to it by name.
        .arg("-Wl,--no-as-needed")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{stderr}");
    wrapper
}

/// Profiles a library and one whose lookups are slower, and returns their comparison.
fn compared(place: &Place, library: &Path, base_us: f64, target_us: f64) -> Value {
    let base = wrapped(place, library, "base", base_us);
    let target = wrapped(place, library, "target", target_us);
    // A function is named only where both libraries have 100 samples, on a busy machine too.
    let plan = format!(
        "repeats = 5\n[profile]\nfrequency = 999\n[workload.kv]\nkeys = 2000\nread-time = \"1s\"\nsteps = [\"fillseq\", \"readrandom\"]\n\
         [build.base]\nrocksdb = {base:?}\n[build.target]\nrocksdb = {target:?}\n[config.rocksdb.x]\n[[target]]\nconfigs = [\"x\"]\n"
    );

    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let run = run.to_str().unwrap();
    let shown =
        place.assay(&["compare", run, "--format", "json", "--step", "readrandom"]).expect_code(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

fn a_slower_function_is_named_with_its_cost(times: usize) {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }

    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    for _ in 0..times {
        let place = Place::new();
        let compared = compared(&place, &libraries[0], 5.0, 5.0 + SLOWER_US);
        let profile = &compared["profiles"][0];
        assert_eq!(profile["step"], "readrandom", "{compared}");
        assert_eq!(profile["named"]["name"], "choose_block", "{profile}");
        assert_eq!(profile["named"]["caller"], "rocksdb_get_pinned");
        let functions = profile["functions"].as_array().unwrap();
        let slower = functions.iter().find(|it| it["name"] == "choose_block");
        let cost = &slower.unwrap()["inclusive"];
        let number = |key: &str| cost[key].as_f64().unwrap();
        assert_eq!(cost["is_shown"], true, "{profile}");
        let error = (number("difference_us") - SLOWER_US).abs();
        assert!(error <= number("margin_us"), "{profile}");
        place.assert_nothing_is_left();
    }
}

#[test]
fn the_function_that_became_slower_is_named_with_its_cost() {
    a_slower_function_is_named_with_its_cost(1);
}

#[test]
#[ignore = "twenty repetitions of the test above"]
fn the_function_that_became_slower_is_named_each_time() {
    a_slower_function_is_named_with_its_cost(20);
}

#[test]
#[ignore = "twenty comparisons of equal libraries"]
fn equal_libraries_seldom_show_a_function_that_changed() {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }

    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    let shows_a_change = |_: &u32| {
        let place = Place::new();
        let compared = compared(&place, &libraries[0], 5.0, 5.0);
        let functions = compared["profiles"][0]["functions"].as_array().unwrap();
        let is_shown =
            |it: &Value| it["own"]["is_shown"] == true || it["inclusive"]["is_shown"] == true;
        functions.iter().any(is_shown)
    };

    let shown = (0..20).filter(shows_a_change).count();

    // At an error rate of 5%, more than 4 happen in one of 400 cases.
    assert!(shown <= 4, "{shown} of 20");
}

#[test]
fn profiled_cells_are_not_compared_and_can_be_added_to_a_run() {
    if !perf_is_here_or_test_is_skipped() || !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]\n";
    // The step has some samples on a busy machine, too.
    let plan = format!("{}{POSTGRES}", workload(2_000, 200, "1s", steps));
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let resume = ["run", "--profile", "--resume", run.to_str().unwrap(), "--data", "data"];
    place.assay(&resume).expect_code(0);
    let shown = Shown::read(&place, &run);
    let (profiled, measured): (Vec<&Value>, Vec<&Value>) =
        shown.rows().iter().partition(|row| row["cell_kind"] == "profiled");
    assert_eq!((profiled.len(), measured.len()), (3, 3));
    for row in profiled {
        assert_eq!(row["repeat"], 1);
        // The other steps are over within a few samples, or before the first.
        if row["step"] == "qr100" {
            assert_eq!(row["profile"]["missing"], Value::Null, "{row}");
            assert!(row["profile"]["samples"].as_u64().unwrap() > 0, "{row}");
        }
    }

    let table = place
        .assay(&["export", run.to_str().unwrap(), "--format", "csv", "--table", "steps"])
        .expect_code(0);
    assert_eq!(table.stdout.lines().count(), 4, "{}", table.stdout);
    place.assert_nothing_is_left();
}

#[test]
fn without_perf_the_step_is_measured_and_says_what_to_install() {
    let place = Place::new();
    let mut command = Command::new(ASSAY);
    // A path on which there is no `perf`.
    command.env("PATH", place.join("empty"));
    let plan = workload(500, 100, QUICK, "steps = [\"l.i0\"]\n") + SQLITE;
    place.write("plan.toml", &plan);
    let args = ["run", "plan.toml", "--profile", "--results", "results", "--data", "data"];
    place.spawn_as(command, &args).wait().expect_code(0);
    let shown = Shown::read(&place, &place.only_run());
    shown.assert_all_valid();
    let rows = shown.rows().iter();
    let profiles: Vec<&Value> = rows.filter(|row| row["cell_kind"] == "profiled").collect();
    assert_eq!(profiles.len(), 1);
    let missing = profiles[0]["profile"]["missing"].as_str().unwrap();
    assert!(missing.contains("linux-perf"), "{missing}");
}

/// Returns the `perf record` of a place.
fn profiler(place: &Place) -> Option<u32> {
    let is_perf = |pid: &u32| {
        let name = fs_err::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "perf")
    };
    place.processes().into_iter().find(is_perf)
}

/// Starts a run, and returns it in the midst of the profiled step `qr100`, whose profiler is the
/// number.
fn in_the_midst(place: &Place, data: &str) -> (Running, u32) {
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]\n";
    let plan = workload(500, 100, "3s", steps) + NULL;
    let mut running = place.spawn_run(&plan, &["--profile", "--data", data]);
    eventually("a profiler runs", || profiler(place).is_some());
    place.wait_for_step(&mut running, "03-qr100");
    let profiler = profiler(place).expect("it runs during the step");
    (running, profiler)
}

/// Returns the row of the profiled step `qr100`.
fn profiled_row(place: &Place) -> Value {
    let shown = Shown::read(place, &place.only_run());
    let mut rows = shown.rows().iter();
    let row = rows.find(|row| row["cell_kind"] == "profiled" && row["step"] == "qr100");
    row.expect("the step is recorded").clone()
}

/// The step is valid, and has no profile for a reason that contains `why`.
fn assert_missing(place: &Place, why: &str) {
    let row = profiled_row(place);
    assert_eq!(row["valid"], true, "{row}");
    let missing = row["profile"]["missing"].as_str().unwrap_or_default();
    assert!(missing.contains(why), "{row}");
}

#[test]
fn a_profiler_ends_with_assay() {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let (running, _) = in_the_midst(&place, "data");
    running.signal(Signal::KILL);
    running.wait();
    eventually("all processes end", || place.processes().is_empty());
    place.assert_nothing_is_left();
    let is_file = |path: &PathBuf| path.is_file() && fs_err::metadata(path).unwrap().len() > 4096;
    assert!(!entries(&place.join("data")).iter().any(is_file));
}

#[test]
fn an_interrupt_ends_a_profiled_step_and_its_profiler() {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let (running, _) = in_the_midst(&place, "data");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();
    assert_eq!(profiled_row(&place)["status"], "interrupted");
}

#[test]
fn a_step_outlives_its_profiler() {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let (running, profiler) = in_the_midst(&place, "data");
    send(profiler, Signal::KILL);
    running.wait().expect_code(0);
    place.assert_nothing_is_left();
    assert_missing(&place, "`perf record` failed");
}

#[test]
fn samples_that_fill_the_disk_do_not_fail_the_step() {
    if !perf_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let Some(disk) = Disk::mount(&place, 64) else {
        return;
    };

    let (running, _) = in_the_midst(&place, "disk/data");
    let filler = disk.fill();
    running.wait().expect_code(0);
    place.assert_nothing_is_left();
    assert_missing(&place, "No space left");
    fs_err::remove_file(filler).unwrap();
}
