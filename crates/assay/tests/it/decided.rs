//! Runs that add repeats until every comparison is decided.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, QUICK, SQLITE, entries, eventually, workload};

/// The same config twice.
const TWICE: &str = "[config.sqlite.next]\nextends = \"base\"\n";

/// A config that waits for the disk at every commit, unlike the base.
const FULL: &str =
    "[config.sqlite.next]\nset = { journal_mode = \"delete\", synchronous = \"extra\" }\n";

/// Returns the plan of a small load, with these lines before its tables and this second config.
fn load(repeats: &str, config: &str) -> String {
    let steps = "steps = [\"l.i0\"]\ntransactions = \"small\"";
    format!("{repeats}\n{}{SQLITE}{config}", workload(1000, 1, QUICK, steps))
}

/// Only twice the throughput is a change that matters: whatever the disk does, some repeats show
/// such a change, or rule it out.
const LARGE_EFFECT: &str = "repeats = \"until decided\"\ntime = \"1h\"\neffect = 1";

fn run_json(run: &Path) -> Value {
    serde_json::from_str(&fs_err::read_to_string(run.join("run.json")).unwrap()).unwrap()
}

/// Returns the number of repeats of a target.
fn repeat_count(run: &Path, target: &str) -> usize {
    let repeats = entries(&run.join("cells").join(target).join("c1"));
    let is_earlier_attempt = |path: &&PathBuf| path.to_string_lossy().contains(".attempt-");
    repeats.iter().filter(|path| !is_earlier_attempt(path)).count()
}

/// Returns the number of repeats, which is the same for both targets.
fn common_repeat_count(run: &Path) -> usize {
    let [base, next] = ["lite.base", "lite.next"].map(|target| repeat_count(run, target));
    assert_eq!(base, next, "each repeat has both targets");
    base
}

/// Returns the comparisons of throughput.
fn compared(place: &Place, run: &str) -> Value {
    let ended = place.assay(&["compare", run, "--format", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    json["compared"].clone()
}

#[test]
fn an_interrupted_run_goes_on_until_all_is_decided() {
    let place = Place::on_disk();
    let mut running = place.spawn_run(&load(LARGE_EFFECT, FULL), &[]);
    let results = place.join("results");
    eventually("the second repeat begins", || {
        running.must_run("its second repeat");
        entries(&results)
            .iter()
            .any(|run| run.join("cells").is_dir() && repeat_count(run, "lite.base") > 1)
    });
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    let run = place.only_run();
    assert!(run_json(&run)["cells"].as_array().unwrap().len() >= 4);

    let name = run.to_str().unwrap();
    let resumed = place.assay(&["run", "--resume", name]).expect_code(0);
    let resumed = resumed.expect_in_stderr(&[
        "more repeats until all is decided, about 60 min at most",
        ": no comparison is open",
    ]);
    assert!(!resumed.stderr.contains("after repeat 1:"), "{resumed}");

    let repeats = common_repeat_count(&run);
    assert!(repeats >= 3, "no verdict is possible before: {repeats}");
    assert_eq!(run_json(&run)["is_open_ended"], true);
    assert_eq!(run_json(&run)["status"], "complete");

    // What decided the run decides its comparison, which says how it was measured.
    let comparison = compared(&place, name);
    assert_eq!(comparison["looks"], "growing");

    // A run ends when its verdicts exclude 1. How far from 1 their intervals end depends on the
    // machine's noise, so the threshold is small.
    let gate = place.assay(&["compare", name, "--gate", "--threshold", "1"]).expect_code(3);
    gate.expect_in_stdout(&["intervals hold at any time"]);

    // It has ended, unless somebody wants more.
    let again = place.assay(&["run", "--resume", name]).expect_code(0);
    again.expect_in_stderr(&["nothing to measure"]);
    let more = (repeats + 1).to_string();
    place.assay(&["run", "--resume", name, "--repeats", &more]).expect_code(0);
    assert_eq!(common_repeat_count(&run), repeats + 1);
    place.assert_nothing_is_left();
}

#[test]
fn a_run_ends_when_the_next_repeat_would_not_end_in_time() {
    let place = Place::on_disk();
    // Nothing rules out a change as small as this.
    let plan = load("repeats = \"until decided\"\ntime = \"1s\"\neffect = 0.001", TWICE);
    let ended = place.run(&plan, &[]).expect_code(0);
    // Whether it offers to continue depends on the noise.
    let ended = ended.expect_in_stderr(&["the time is up"]);
    let run = ended.run_directory();
    let repeats = common_repeat_count(&run);
    assert_eq!(run_json(&run)["status"], "complete", "all that was begun was measured");
    assert_eq!(compared(&place, run.to_str().unwrap())["looks"], "time_up");

    // The time of an invocation is its own.
    let name = run.to_str().unwrap();
    let resumed = place.assay(&["run", "--resume", name, "--time", "1us"]).expect_code(0);
    resumed.expect_in_stderr(&["the time is up"]);
    assert_eq!(common_repeat_count(&run), repeats);
    assert_eq!(compared(&place, name)["looks"], "time_up_again");
}

#[test]
fn repeats_that_are_added_after_a_look_are_recorded_as_such() {
    let place = Place::on_disk();
    let ended = place.run(&load("repeats = 1", TWICE), &["--quiet"]).expect_code(0);
    let run = ended.run_directory();
    let name = run.to_str().unwrap();
    let with = |more: &[&str]| {
        let args = [&["run", "--resume", name, "--quiet"], more].concat();
        place.assay(&args).expect_code(0);
        run_json(&run)["is_open_ended"] == true
    };

    // A single repeat shows nothing from which one could choose whether to continue.
    assert!(!with(&["--repeats", "2"]));
    assert_eq!(compared(&place, name)["looks"], "once");
    // Nothing is added.
    assert!(!with(&["--repeats", "2"]));
    assert!(with(&["--repeats", "3"]));
    assert_eq!(compared(&place, name)["looks"], "growing");
}

#[test]
fn a_run_of_a_fixed_number_of_repeats_can_go_on_until_all_is_decided() {
    let place = Place::on_disk();
    let ended = place.run(&load("repeats = 2", TWICE), &["--quiet"]).expect_code(0);
    let run = ended.run_directory();
    let name = run.to_str().unwrap();
    let refused = place.assay(&["run", "--resume", name, "--time", "1s"]).expect_code(2);
    refused.expect_in_stderr(&["`--time` is only for runs", "`--repeats until-decided`"]);

    let until = ["run", "--resume", name, "--repeats", "until-decided", "--time", "1us"];
    place.assay(&until).expect_code(0).expect_in_stderr(&["verdicts need 3 repeats"]);
    assert_eq!(run_json(&run)["is_open_ended"], true);
    assert_eq!(common_repeat_count(&run), 2);

    // It stays a run until all is decided.
    let again = place.assay(&["run", "--resume", name, "--time", "1us"]).expect_code(0);
    again.expect_in_stderr(&["verdicts need 3 repeats"]);
}
