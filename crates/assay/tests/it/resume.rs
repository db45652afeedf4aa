//! Runs that are killed, interrupted or fail in part, and are then resumed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use crate::forged::change_json;
use crate::place::{
    ASSAY, Ended, LONG_AND_SHORT, POSTGRES, Place, QUICK, SQLITE, any_below, entries, eventually,
    mysql, workload,
};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// Steps that are over at once, and one that lasts long enough to be killed in.
const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\"]";

/// Returns a matrix of small cells that last at least `settle_ms` each, on any machine.
fn matrix(clients: &str, settle_ms: u64, engines: &str) -> String {
    let more = format!("{STEPS}\nsettle-at-least = \"{settle_ms}ms\"");
    format!("clients = {clients}\n{}", workload(600, 200, QUICK, &more)) + engines
}

const QUERIED: &str = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
const NEXT: &str = "[config.sqlite.next]\nextends = \"base\"\n";

/// Returns a SQLite in two configs, with a query step of that length each.
fn two_configs(time: &str) -> String {
    workload(500, 500, time, QUERIED) + SQLITE + NEXT
}

/// Numbers that look random and are those of their seed.
pub(crate) struct Chance {
    random: words::Random,
}

impl Chance {
    /// Another seed each time, unless `ASSAY_TEST_SEED` gives one. It is printed when the test
    /// fails.
    pub(crate) fn new() -> Self {
        let given = std::env::var("ASSAY_TEST_SEED").ok();
        let seed = given.map_or_else(
            || {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                u64::from(now.subsec_nanos())
            },
            |text| text.parse().unwrap(),
        );
        eprintln!("ASSAY_TEST_SEED={seed} repeats this");
        let random = words::Random::new(seed);
        Self { random }
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

/// Rewrites `run.json`.
fn change_run(run: &Path, change: impl FnOnce(&mut Value)) {
    change_json(&run.join("run.json"), change);
}

fn invocations(run: &Path) -> Vec<Value> {
    json(&run.join("run.json"))["invocations"].as_array().unwrap().clone()
}

/// Returns the paths of a run's cells, in their order.
fn cells(run: &Path) -> Vec<String> {
    let run = json(&run.join("run.json"));
    let cells = run["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["path"].as_str().unwrap().to_owned()).collect()
}

/// Returns the record of a cell; `None` where it was not begun, or killed at once.
fn cell(directory: &Path) -> Option<Value> {
    let path = directory.join("cell.json");
    path.exists().then(|| json(&path))
}

/// Returns every directory of an attempt at a cell, and what its `cell.json` holds:
/// `cells/TARGET/cN/rN[.attempt-N]`.
fn attempts(run: &Path) -> BTreeMap<PathBuf, Option<Value>> {
    let below = |paths: Vec<PathBuf>| paths.iter().flat_map(|path| entries(path)).collect();
    let clients: Vec<PathBuf> = below(entries(&run.join("cells")));
    let repeats: Vec<PathBuf> = below(clients);
    repeats
        .into_iter()
        .map(|path| {
            let cell = cell(&path);
            (path, cell)
        })
        .collect()
}

/// The identity of a directory, wherever it is moved to.
type Identity = (u64, Option<u64>);

fn identity(path: &Path, cell: Option<&Value>) -> Identity {
    let began = cell.map(|cell| cell["started_unix_ns"].as_u64().unwrap());
    (fs_err::metadata(path).unwrap().ino(), began)
}

/// The cells of a run as they were seen whenever it was killed.
#[derive(Default)]
pub(crate) struct Seen {
    begun: BTreeMap<Identity, PathBuf>,
    complete: BTreeMap<PathBuf, Value>,
}

impl Seen {
    pub(crate) fn look(&mut self, run: &Path) {
        for (path, cell) in attempts(run) {
            if let Some(cell) = cell.as_ref().filter(|cell| cell["status"] == "complete") {
                self.complete.insert(path.clone(), cell.clone());
            }
            let identity = identity(&path, cell.as_ref());
            self.begun.insert(identity, path);
        }
    }

    /// Nothing that was recorded is lost, each cell is complete once, and what was complete is
    /// untouched.
    pub(crate) fn assert_kept(&self, run: &Path) {
        let now = attempts(run);
        let there: Vec<Identity> =
            now.iter().map(|(path, cell)| identity(path, cell.as_ref())).collect();
        for (identity, path) in &self.begun {
            // A directory without `cell.json` then has none now either.
            assert!(there.contains(identity), "`{}` is lost", path.display());
        }
        for (path, cell) in &self.complete {
            assert_eq!(now[path].as_ref(), Some(cell), "{}", path.display());
        }
        let cells: Vec<PathBuf> = cells(run).iter().map(|cell| run.join(cell)).collect();
        for (path, cell) in &now {
            let is_complete = cell.as_ref().is_some_and(|cell| cell["status"] == "complete");
            assert_eq!(is_complete, cells.contains(path), "{}", path.display());
            if is_complete {
                let steps = entries(&path.join("steps"));
                let partial = |step: &PathBuf| step.to_string_lossy().ends_with(".partial");
                assert!(!steps.iter().any(partial), "{steps:?}");
            }
        }
        assert!(cells.iter().all(|cell| now.contains_key(cell)));
    }
}

/// Starts a run of `plan`, kills and resumes it `kills` times, and then resumes it to its end.
/// Calls `between` after each kill. The run lasts at least `least_ms`: all kills happen at random
/// times before that.
fn kill_and_go_on(
    place: &Place,
    plan: &str,
    kills: u64,
    least_ms: u64,
    mut between: impl FnMut(),
) -> (PathBuf, Ended) {
    let mut chance = Chance::new();
    // A sleep may be longer than requested.
    let longest = least_ms * 3 / 4 / kills;
    let mut seen = Seen::default();
    let results = place.join("results");
    let mut running = place.spawn_run(plan, &[]);
    // Before its record is there, there is nothing to continue.
    eventually("the run is recorded", || {
        running.must_run("it was recorded");
        any_below(&results, "run.json")
    });
    let run = place.only_run();
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(chance.below(longest)));
        running.must_run("it was killed");
        running.signal(Signal::KILL);
        assert_eq!(running.wait().signal, Some(9));
        seen.look(&run);
        between();
        running = place.spawn(&["run", "--resume", run.to_str().unwrap()]);
    }
    let ended = running.wait();
    place.assert_nothing_is_left();
    let left = entries(&place.join("data"));
    assert!(left.iter().all(|path| path.is_file()), "{left:?}");
    seen.look(&run);
    seen.assert_kept(&run);
    (run, ended)
}

#[test]
fn a_matrix_that_is_killed_five_times_ends_with_every_cell_measured_once() {
    let place = Place::new();
    let configs: String =
        (2..=6).map(|number| format!("[config.sqlite.c{number}]\nextends = \"base\"\n")).collect();
    let plan = matrix("[1, 2]", 500, &(SQLITE.to_owned() + &configs));
    let (run, ended) = kill_and_go_on(&place, &plan, 5, 12 * 500, || {});
    let ended = ended.expect_code(0);
    let ended = ended.expect_in_stderr(&["6 targets x 2 client counts = 12 cells; "]);
    let last = ended.stdout.lines().last();
    assert_eq!(last, Some(run.to_str().unwrap()), "{ended}");
    assert_eq!(cells(&run).len(), 12);
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "complete");
    assert_eq!(shown.rows().len(), 12 * 4);
    shown.assert_all_valid();
    assert!(shown.json["unfinished"].as_array().unwrap().is_empty());
    // An invocation that was killed has no end; a kill may have come before it was noted at all.
    let invocations = invocations(&run);
    let (last, killed) = invocations.split_last().unwrap();
    assert_eq!(last["status"], "complete");
    assert!((1..=5).contains(&killed.len()), "{invocations:?}");
    for invocation in killed {
        assert!(invocation["status"] == "incomplete" && invocation["ended_unix_ns"].is_null());
    }
    for path in cells(&run) {
        let number = cell(&run.join(path)).unwrap()["invocation"].as_u64().unwrap();
        assert!((1..=invocations.len() as u64).contains(&number));
    }
}

#[test]
fn servers_of_a_killed_run_are_gone_before_it_goes_on_with_the_config_it_began_with() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let config = place.write("conf/next.conf", "work_mem = 5MB\n");
    let next = "[config.postgres.next]\nextends = \"base\"\nfile = \"conf/next.conf\"\n";
    let plan = matrix("[1]", 2_500, &(POSTGRES.to_owned() + next));
    let edit = || fs_err::write(&config, "this is no config\n").unwrap();
    let (run, ended) = kill_and_go_on(&place, &plan, 2, 2 * 2_500, edit);
    let ended = ended.expect_code(0);
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "complete", "{ended}");
    assert_eq!(shown.rows().len(), 2 * 4);
    shown.assert_all_valid();
    for path in cells(&run) {
        let text = fs_err::read_to_string(run.join(&path).join("server.conf")).unwrap();
        assert_eq!(text.contains("work_mem = 5MB"), path.contains("pg.next"));
    }
}

#[test]
#[ignore = "the fault is that of PostgreSQL"]
fn a_killed_run_of_mysql_goes_on_too() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };
    let place = Place::new();
    let next = "[config.mysql.next]\nextends = \"base\"\n";
    let plan = matrix("[1]", 5_000, &(mysql(&build, "innodb") + next));
    let (run, ended) = kill_and_go_on(&place, &plan, 2, 2 * 5_000, || {});
    let ended = ended.expect_code(0);
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "complete", "{ended}");
    assert_eq!(shown.rows().len(), 2 * 4);
    shown.assert_all_valid();
}

#[test]
fn an_interrupted_run_goes_on_with_the_cell_that_was_interrupted() {
    let place = Place::new();
    // Longer than the signal may be late; a resumed run begins the cell again.
    let mut running = place.spawn_run(&two_configs("3s"), &[]);
    let second = place.join("results");
    eventually("the second cell begins", || {
        running.must_run("its second cell");
        any_below(&second, "lite.next")
    });
    running.must_run("it was interrupted");
    running.signal(Signal::INT);
    let ended = running.wait().expect_code(130);
    let run = place.only_run();
    let hint = format!(
        "1 missing of 2 cells: `assay run --resume results/{}` measures what is not complete",
        run.file_name().unwrap().display()
    );
    ended.expect_in_stderr(&[&hint, "2 targets = 2 cells; 2 to be measured"]);
    let mut seen = Seen::default();
    seen.look(&run);
    assert_eq!(seen.complete.len(), 1);
    // Where databases were made is known, also from another directory.
    let resumed = place
        .assay(&["run", "--resume", run.to_str().unwrap()])
        .expect_code(0)
        .expect_in_stderr(&[
            "2 targets = 2 cells; 1 complete; 1 to be measured, about ",
            "cell 2 of 2: lite.next",
        ]);
    assert!(!resumed.stderr.contains("cell 1 of 2"), "{resumed}");
    place.assert_nothing_is_left();
    seen.look(&run);
    seen.assert_kept(&run);
    let attempt = "cells/lite.next/c1/r1.attempt-1/cell.json";
    assert!(run.join(attempt).exists());
    let invocations = invocations(&run);
    let [first, second] = &invocations[..] else {
        panic!("{invocations:?}");
    };
    assert_eq!(first["status"], "interrupted");
    assert_eq!(second["status"], "complete");
    assert_eq!(first["data_dir"], second["data_dir"]);
    assert_eq!(second["host_differences"], serde_json::json!([]));
    let of = |path: &str| cell(&run.join(path)).unwrap()["invocation"].as_u64();
    assert_eq!(of("cells/lite.base/c1/r1"), Some(1));
    assert_eq!(of("cells/lite.next/c1/r1"), Some(2));
    Shown::read(&place, &run).assert_all_valid();
}

/// Returns a run of two cells whose second one is missing.
fn half_a_run(place: &Place) -> PathBuf {
    let run = place.run(&two_configs(QUICK), &[]).expect_code(0).run_directory();
    fs_err::remove_dir_all(run.join("cells/lite.next")).unwrap();
    change_run(&run, |run| run["status"] = "incomplete".into());
    run
}

#[test]
fn runs_that_cannot_be_resumed_are_refused() {
    let place = Place::new();
    let run = half_a_run(&place);
    let path = run.to_str().unwrap();
    let before = fs_err::read(run.join("run.json")).unwrap();
    let refused = |args: &[&str], texts: &[&str]| {
        let mut all = vec!["run", "--resume"];
        all.extend(args);
        place.assay(&all).expect_code(2).expect_in_stderr(texts);
        assert!(!run.join("cells/lite.next").exists());
    };
    let needless = ["cannot be combined with PLAN or `--set`", "help: "];
    refused(&[path, "plan.toml"], &needless);
    refused(&[path, "--set", "repeats=2"], &needless);
    refused(&[path, "--results", "elsewhere"], &["cannot be used with"]);
    refused(&["nowhere"], &["there is no run `nowhere`", "these are in `results`"]);
    refused(&["data"], &["it has no `run.json`"]);
    refused(&[path, "--only", "lite.nxt"], &["matches no cell", "`lite.next`"]);

    type Change = fn(&mut Value);
    let changes: [(Change, &[&str]); 4] = [
        (
            |run| run["format"]["minor"] = 99.into(),
            &["its record has format 1.99, and this assay writes format"],
        ),
        (
            |run| run["format"]["major"] = 99.into(),
            &["has format 99.", "this Assay reads formats 1.x"],
        ),
        (
            |run| run["builds"][0]["version"] = "3.1".into(),
            &["build `lite` has changed since the run began: `version` 3.1 -> 3."],
        ),
        (
            |run| {
                let values = run["plan"]["resolved"].as_array_mut().unwrap();
                let repeats = values.iter_mut().find(|value| value["key"] == "repeats");
                repeats.unwrap()["value"] = "9".into();
            },
            &["this version of assay resolves the run's plan differently: `repeats` 9 -> 1"],
        ),
    ];
    for (change, texts) in changes {
        change_run(&run, change);
        refused(&[path], texts);
        fs_err::write(run.join("run.json"), &before).unwrap();
    }
    assert_eq!(fs_err::read(run.join("run.json")).unwrap(), before);
}

#[test]
fn a_run_that_somebody_works_at_is_refused() {
    let place = Place::new();
    let mut running = place.spawn_run(&two_configs("60s"), &[]);
    place.wait_for_step(&mut running, "03-qr100");
    let run = place.only_run();
    place
        .assay(&["run", "--resume", run.to_str().unwrap()])
        .expect_code(2)
        .expect_in_stderr(&["is in use by another assay", &running.id().to_string()]);
    running.must_run("it was interrupted");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
}

#[test]
fn another_assay_and_another_machine_are_warned_of_and_recorded() {
    let place = Place::new();
    let run = half_a_run(&place);
    change_run(&run, |run| {
        run["assay"]["version"] = "0.0.7".into();
        run["invocations"][0]["boot_id"] = "another".into();
        let facts = run["host"]["facts"].as_array_mut().unwrap();
        let model = facts.iter_mut().find(|fact| fact[0] == "kernel_release");
        model.unwrap()[1] = "2.0".into();
    });
    place
        .assay(&["run", "--resume", run.to_str().unwrap()])
        .expect_code(0)
        .expect_in_stderr(&[
            "warning[resume::other-machine]: the machine has changed between the start of the run and invocation 2: \
             `kernel_release` 2.0 -> ",
            "it was rebooted",
            "warning[resume::other-assay]",
            "0.0.7",
        ]);
    let record = json(&run.join("run.json"));
    assert_eq!(record["assay"]["version"], "0.0.7");
    let by = &record["invocations"][1]["assay"];
    assert_eq!(by["version"], env!("CARGO_PKG_VERSION"));
    assert!(by["profile"].is_string(), "{by}");
    let differences = &record["invocations"][1]["host_differences"];
    assert_eq!(differences[0]["name"], "kernel_release");
    assert_eq!(differences[0]["first"], "2.0");
    let warnings = record["warnings"].as_array().unwrap();
    for code in ["resume::other-machine", "resume::other-assay"] {
        let of_code = warnings.iter().filter(|warning| warning["code"] == code);
        assert_eq!(of_code.count(), 1, "{code}");
    }
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "complete");
    shown.assert_all_valid();
}

#[test]
fn a_complete_run_says_so() {
    let place = Place::new();
    let run = place.run(&two_configs(QUICK), &[]).expect_code(0).run_directory();
    let path = run.to_str().unwrap();
    let before = json(&run.join("run.json"));
    let again = place
        .assay(&["run", "--resume", path])
        .expect_code(0)
        .expect_in_stderr(&["all 2 cells of ", "are complete: nothing to measure"]);
    assert_eq!(again.stdout, format!("{path}\n"));
    assert_eq!(json(&run.join("run.json")), before);
    // So is one that was killed before it could say that it is.
    change_run(&run, |run| {
        run["status"] = "incomplete".into();
        run["ended_unix_ns"] = Value::Null;
    });
    place.assay(&["run", "--resume", path]).expect_code(0);
    let after = json(&run.join("run.json"));
    assert!(after["status"] == "complete" && after["ended_unix_ns"].is_u64());
    place.assay(&["run", "--resume", path, "plan.toml"]).expect_code(2);
}

#[test]
fn only_the_cells_that_match_are_measured() {
    let place = Place::new();
    let plan = matrix("[1, 2]", 0, SQLITE) + NEXT;
    let run = place
        .run(&plan, &["--only", "*.next", "--only", "lite.base/c2/*"])
        .expect_code(0)
        .expect_in_stderr(&[
            "2 targets x 2 client counts = 4 cells, 3 of them in this run; 3 to be measured",
        ])
        .run_directory();
    let expected = ["lite.next/c1/r1", "lite.base/c2/r1", "lite.next/c2/r1"];
    assert_eq!(cells(&run), expected.map(|cell| format!("cells/{cell}")));
    assert_eq!(invocations(&run)[0]["only"], serde_json::json!(["*.next", "lite.base/c2/*"]));
    let shown = Shown::read(&place, &run);
    assert_eq!((shown.status(), shown.rows().len()), ("complete", 12));
    shown.assert_all_valid();

    // When a run is resumed, the filter selects what is measured now.
    let path = run.to_str().unwrap();
    for clients in ["c1", "c2"] {
        fs_err::remove_dir_all(run.join("cells/lite.next").join(clients)).unwrap();
    }
    let resume = |only: &str| {
        let ended = place.assay(&["run", "--resume", path, "--only", only]);
        let record = json(&run.join("run.json"));
        (ended.expect_code(0), record["status"].as_str().unwrap().to_owned())
    };
    let (ended, status) = resume("lite.next/c2/*");
    assert_eq!(status, "incomplete", "{ended}");
    ended.expect_in_stderr(&["1 missing of 3 cells: "]);
    let (ended, _) = resume("*/c2/*");
    ended.expect_in_stderr(&["all matching cells are complete; 1 other cell is not"]);
    assert_eq!(invocations(&run).len(), 2);
    let (_, status) = resume("lite.next");
    assert_eq!(status, "complete");
    Shown::read(&place, &run).assert_all_valid();
}

/// Returns a build of PostgreSQL in a directory of its own, which can be broken.
fn breakable_build(place: &Place) -> PathBuf {
    let installed = engine::postgres::locate("distribution").unwrap();
    let bin = place.join("breakable/bin");
    fs_err::create_dir_all(&bin).unwrap();
    for program in entries(&installed.bin_dir) {
        let link = bin.join(program.file_name().unwrap());
        std::os::unix::fs::symlink(program, link).unwrap();
    }
    bin
}

#[test]
fn a_build_that_breaks_fails_its_cells_alone_and_mended_it_is_measured() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let bin = breakable_build(&place);
    let build = bin.parent().unwrap().display().to_string();
    let plan = "order = \"grouped\"\n".to_owned()
        + &workload(500, 500, QUICK, QUERIED)
        + LONG_AND_SHORT
        + SQLITE
        + NEXT
        + &format!(
            "[build.pg]\npostgres = \"{build}\"\n[config.postgres.base]\nset = {{ fsync = false }}\n"
        )
        + "[[target]]\nbuilds = [\"lite\"]\nconfigs = [\"base\"]\n\
           [[target]]\nbuilds = [\"pg\"]\nconfigs = [\"base\"]\n\
           [[target]]\nbuilds = [\"lite\"]\nconfigs = [\"next\"]\n";
    // The first cell lasts longer than the test may be late with breaking the build.
    let plan = plan.replace("60s", "4s");
    let cells = ["lite.base/long", "pg.base/short", "lite.next/short"];
    let only = cells.map(|cell| format!("{cell}/*/*"));
    let only: Vec<&str> = only.iter().flat_map(|only| ["--only", only]).collect();
    let mut running = place.spawn_run(&plan, &only);
    place.wait_for_step(&mut running, "03-qr100");
    let (program, aside) = (bin.join("postgres"), place.join("postgres.aside"));
    fs_err::rename(&program, &aside).unwrap();
    let ended = running.wait().expect_code(1).expect_in_stderr(&[
        "cell 3 of 3: lite.next, variant short, 1 client, repeat 1 (1 failed, ",
        "error: ",
    ]);
    place.assert_nothing_is_left();
    let run = place.only_run();
    let status = |target: &str| {
        let path = run.join("cells").join(target).join("c1/r1");
        cell(&path).unwrap()["status"].as_str().unwrap().to_owned()
    };
    let statuses = cells.map(status);
    assert_eq!(statuses, ["complete", "failed", "complete"], "{ended}");
    assert_eq!(json(&run.join("run.json"))["status"], "failed");

    // As long as it is missing, or is another one, nothing is measured.
    let path = run.to_str().unwrap();
    place.assay(&["run", "--resume", path]).expect_code(2);
    assert_eq!(invocations(&run).len(), 1);
    fs_err::write(&program, "#!/bin/sh\nexec true\n").unwrap();
    fs_err::set_permissions(&program, fs_err::metadata(&aside).unwrap().permissions()).unwrap();
    let other = place.assay(&["run", "--resume", path]);
    assert_ne!(other.code, Some(0), "{other}");
    assert_eq!(invocations(&run).len(), 1);

    fs_err::rename(&aside, &program).unwrap();
    let mended = place
        .assay(&["run", "--resume", path])
        .expect_code(0)
        .expect_in_stderr(&["cell 2 of 3: pg.base"]);
    assert_eq!(mended.stderr.matches("\ncell ").count(), 1, "{mended}");
    assert_eq!(status(cells[1]), "complete");
    Shown::read(&place, &run).assert_all_valid();
    place.assert_nothing_is_left();
}

#[test]
fn a_terminal_shows_where_the_run_is_in_its_matrix() {
    let place = Place::new();
    place.write("plan.toml", &two_configs("3s"));
    let shell = format!("{ASSAY} run plan.toml --results results --data data");
    let output = std::process::Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .current_dir(place.path())
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::null())
        .output();
    let Ok(output) = output else {
        crate::say_skipped("the program `script`, which makes a terminal, is missing");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for cell in ["  cell 1 of 2, about ", "  cell 2 of 2, about "] {
        assert!(text.contains(cell), "no `{cell}` in {text}");
    }
    assert!(text.contains("B of disk space free"), "{text}");
    place.assert_nothing_is_left();
}
