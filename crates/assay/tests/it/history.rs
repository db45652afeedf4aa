//! `assay history`: runs that are recorded here, and summaries of runs with known values.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::forged::{change_json, write_json};
use crate::place::{Place, QUICK, SQLITE, workload};

/// A second target, which stays as it is.
const REFERENCE: &str = "[config.sqlite.steady]\nextends = \"base\"\n";

/// A day in nanoseconds.
const DAY_NS: u64 = 86_400_000_000_000;

/// Records a run of two targets, and returns its directory.
fn recorded(place: &Place) -> PathBuf {
    let steps = "steps = [\"l.i0\"]";
    let plan = format!("repeats = 2\n{}{SQLITE}{REFERENCE}", workload(200, 1, QUICK, steps));
    place.run(&plan, &["--quiet"]).expect_code(0).run_directory()
}

/// A night of a history.
#[derive(Clone, Copy, Default)]
struct Night {
    /// The throughput of the first target, and that of the reference.
    speeds: [f64; 2],
    /// The number of the build's version.
    version: u32,
    /// The number of the machine.
    machine: u32,
}

/// Writes the summaries of nights, made of the one of a recorded run, and returns their folder.
fn nights(place: &Place, folder: &str, nights: &[Night]) -> String {
    let run = recorded(place);
    place.assay(&["history", "results"]).expect_code(0);
    let summary = fs_err::read(run.join("history.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    for (number, night) in nights.iter().enumerate() {
        let mut summary = summary.clone();
        summary["id"] = format!("night {number}").into();
        summary["started_unix_ns"] = (1_767_225_600_000_000_000 + number as u64 * DAY_NS).into();
        summary["machine"]["host_id"] = format!("machine {}", night.machine).into();
        // The reference keeps its build, as a release would.
        let version = format!("3.{}", night.version);
        summary["targets"][0]["version"] = version.clone().into();
        summary["targets"][0]["build"]["version"] = version.into();
        // The noise of a night and of a repeat, the same each time the test runs.
        let noise = |salt: u64| {
            let mut mixed = (number as u64 * 100 + salt + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            1.0 + 0.01 * ((mixed >> 40) as f64 / f64::from(1 << 23) - 1.0)
        };
        for step in summary["steps"].as_array_mut().unwrap() {
            let target = usize::from(step["target"] == "lite.steady");
            let speed = night.speeds[target];
            let values: Vec<f64> =
                (0..2).map(|repeat| speed * noise(target as u64 * 10 + repeat)).collect();
            step["values"] = json!({ "throughput": values });
        }
        let name = format!("{folder}/2026{number:04}T000000Z-nightly");
        let path = place.join(&name);
        fs_err::create_dir_all(&path).unwrap();
        write_json(&path.join("history.json"), summary);
    }

    folder.to_owned()
}

/// Returns nights with a new build each, of which the last ones are different.
fn changed_after(count: usize, changed: usize, change: impl Fn(Night) -> Night) -> Vec<Night> {
    (0..count)
        .map(|number| {
            let night = Night { speeds: [1000.0, 1000.0], version: number as u32, machine: 1 };
            if number + changed >= count { change(night) } else { night }
        })
        .collect()
}

fn history(place: &Place, folder: &str) -> Value {
    let ended = place.assay(&["history", folder, "--format", "json"]).expect_code(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Returns the changes of a target.
fn changes(history: &Value, target: &str) -> Vec<Value> {
    let series = history["series"].as_array().unwrap().iter();
    let of_target = series.filter(|series| series["target"] == target);
    of_target.flat_map(|series| series["changes"].as_array().unwrap().clone()).collect()
}

fn slower(night: Night) -> Night {
    Night { speeds: [900.0, 1000.0], ..night }
}

#[test]
fn a_slower_build_is_found_with_its_run_its_size_and_its_version_and_fails_the_gate() {
    let place = Place::new();
    let folder = nights(&place, "nights", &changed_after(40, 5, slower));
    let found = history(&place, &folder);
    let [change] = &changes(&found, "lite.base")[..] else { panic!("{found:#}") };
    assert_eq!(change["run"], "20260035T000000Z-nightly");
    assert_eq!((&change["cause"], &change["is_worse"]), (&json!("target"), &json!(true)));
    let ratio = change["ratio"].as_f64().unwrap();
    assert!((0.89..0.91).contains(&ratio), "{change:#}");
    let version = change["build"].as_array().unwrap().iter().find(|fact| fact["name"] == "version");
    assert_eq!(version.unwrap()["now"], "3.35");
    assert_eq!(change["references"][0]["target"], "lite.steady");
    assert!(changes(&found, "lite.steady").is_empty());

    let gate =
        place.assay(&["history", &folder, "--gate", "--html", "history.html"]).expect_code(3);
    gate.expect_in_stdout(&[
        "1 change, 1 of them new and for the worse",
        "0.90",
        "version 3.34 -> 3.35",
    ]);

    let page = fs_err::read_to_string(place.join("history.html")).unwrap();
    assert!(
        page.contains("<details class=\"series\"") && page.contains("20260035T000000Z-nightly")
    );
    let markdown = place.assay(&["history", &folder, "--format", "markdown"]).expect_code(0);
    markdown.expect_in_stdout(&["| target | load | step | metric | change |"]);
    let csv = place.assay(&["history", &folder, "--format", "csv"]).expect_code(0).stdout;
    assert!(csv.starts_with("plan,work,target,") && csv.lines().count() == 2, "{csv}");
}

#[test]
fn one_slow_night_is_not_confirmed_and_an_old_change_does_not_fail_the_gate_again() {
    let place = Place::new();
    let once = nights(&place, "once", &changed_after(40, 1, slower));
    assert!(changes(&history(&place, &once), "lite.base").is_empty());
    let gate = place.assay(&["history", &once, "--gate"]).expect_code(0);
    gate.expect_in_stdout(&["Not confirmed", "0.90x"]);

    let old = nights(&place, "old", &changed_after(40, 8, slower));
    assert_eq!(changes(&history(&place, &old), "lite.base").len(), 1);
    place.assay(&["history", &old, "--gate"]).expect_code(0);
    place.assay(&["history", &old, "--gate", "--recent", "8"]).expect_code(3);
}

#[test]
fn a_change_of_the_machine_is_never_put_down_to_the_target() {
    let place = Place::new();
    let other = nights(
        &place,
        "other",
        &changed_after(40, 6, |night| Night { machine: 2, ..slower(night) }),
    );

    let found = changes(&history(&place, &other), "lite.base");
    assert_eq!(found[0]["cause"], "machine", "{found:#?}");
    place.assay(&["history", &other, "--gate"]).expect_code(0);

    // Nothing tells of it but the target that stayed the same.
    let both = nights(
        &place,
        "both",
        &changed_after(40, 6, |night| Night { speeds: [900.0, 930.0], ..night }),
    );

    let found = history(&place, &both);
    assert_eq!(changes(&found, "lite.base")[0]["cause"], "reference");
    assert_eq!(changes(&found, "lite.steady")[0]["cause"], "same_target");
    place.assay(&["history", &both, "--gate"]).expect_code(0);
}

#[test]
fn a_run_is_read_once_and_again_when_its_record_changes() {
    let place = Place::new();
    let run = recorded(&place);
    history(&place, "results");
    let first = history(&place, "results");
    let kept = run.join("history.json");
    let summary = fs_err::read_to_string(&kept).unwrap();

    // What is kept is used as long as it is of this record.
    let mut other: Value = serde_json::from_str(&summary).unwrap();
    other["plan"] = "kept".into();
    write_json(&kept, other);
    assert_eq!(history(&place, "results")["runs"][0]["plan"], "kept");
    change_json(&run.join("run.json"), |run| run["name"] = "changed".into());
    assert_eq!(history(&place, "results")["runs"][0]["plan"], "changed");
    fs_err::write(&kept, "no summary").unwrap();
    assert_eq!(history(&place, "results")["runs"][0]["plan"], "changed");

    // The summary alone stays in the history, and a copy of the run counts once.
    let alone = place.join("kept/run");
    fs_err::create_dir_all(&alone).unwrap();
    fs_err::copy(&kept, alone.join("history.json")).unwrap();
    assert_eq!(history(&place, "kept")["series"], history(&place, "results")["series"]);
    assert_eq!(first["series"], history(&place, "results")["series"].with_plan("test"));
    let both = place.assay(&["history", ".", "--format", "json"]).expect_code(0);
    both.expect_in_stderr(&["1 duplicate left out"]);
}

#[test]
fn a_summary_that_was_edited_or_has_lost_its_record_is_not_believed() {
    let place = Place::new();
    let run = recorded(&place);
    let first = history(&place, "results");
    let kept = run.join("history.json");

    // Another number, in a file that is otherwise as it was written.
    let text = fs_err::read_to_string(&kept).unwrap();
    let mut edited: Value = serde_json::from_str(&text).unwrap();
    edited["steps"][0]["values"]["throughput"] = json!([1.0, 1.0]);
    fs_err::write(&kept, serde_json::to_string_pretty(&edited).unwrap() + "\n").unwrap();
    assert_eq!(history(&place, "results")["series"], first["series"]);
    let text_now = fs_err::read_to_string(&kept).unwrap();
    assert_eq!(text_now, text, "the summary is made anew");

    // A file that the record needs. The other run is whole.
    let steps = "steps = [\"l.i0\"]";
    let other = format!("{}{SQLITE}", workload(300, 1, QUICK, steps));
    place.run(&other, &["--quiet"]).expect_code(0);
    let both = history(&place, "results");
    let step = run.join("cells/lite.base/c1/r1/steps/01-l.i0/step.json");
    let whole = fs_err::read(&step).unwrap();
    fs_err::remove_file(&step).unwrap();
    let damaged = place.assay(&["history", "results"]).expect_code(1);
    damaged.expect_in_stderr(&["damaged", "step.json"]);

    // One that has another size.
    fs_err::write(&step, &whole[..whole.len() / 2]).unwrap();
    let damaged = place.assay(&["history", "results"]).expect_code(1);
    damaged.expect_in_stderr(&["damaged", "step.json"]);
    fs_err::write(&step, &whole).unwrap();
    assert_eq!(history(&place, "results")["series"], both["series"]);
}

/// Changes the plan of series, to compare them.
trait WithPlan {
    fn with_plan(&self, plan: &str) -> Value;
}

impl WithPlan for Value {
    fn with_plan(&self, plan: &str) -> Value {
        let mut series = self.clone();
        for one in series.as_array_mut().unwrap() {
            one["plan"] = plan.into();
        }
        series
    }
}

#[test]
fn a_link_in_the_place_of_a_summary_is_not_followed() {
    let place = Place::new();
    let run = recorded(&place);
    let outside = place.join("outside");
    fs_err::write(&outside, "precious").unwrap();
    std::os::unix::fs::symlink(&outside, run.join("history.json")).unwrap();
    history(&place, "results");
    assert_eq!(fs_err::read_to_string(&outside).unwrap(), "precious");
    assert!(!is_link(&run.join("history.json")), "it was replaced");
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().unwrap().is_symlink()
}

#[test]
fn other_work_is_another_series_and_a_damaged_run_is_said() {
    let place = Place::new();
    recorded(&place);
    let plan = format!("{}{SQLITE}", workload(300, 1, QUICK, "steps = [\"l.i0\"]"));
    let second = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let found = history(&place, "results");
    let works: Vec<&Value> =
        found["series"].as_array().unwrap().iter().map(|series| &series["work"]).collect();
    assert!(works.contains(&&json!(1)) && works.contains(&&json!(2)), "{works:?}");

    fs_err::write(second.join("run.json"), "{}").unwrap();
    let damaged = place.assay(&["history", "results"]).expect_code(1);
    damaged.expect_in_stderr(&["error: ", "run.json"]);
    place.assay(&["history", "nowhere"]).expect_code(2);
    place.assay(&["history", "results", "--metric", "speed"]).expect_code(2);
}

/// Values that no run has.
fn strange_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!("\u{1b}[2J\u{202e}<script>alert(1)</script>"),
        json!("x".repeat(100_000)),
        json!([]),
        json!({}),
        json!(vec![0.0; 2_000]),
    ]
}

/// Returns the paths of all values in a JSON text, as `serde_json` writes them.
fn pointers(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| pointers(value, &format!("{path}/{key}"), found));
        }
        // The others are of the same form.
        Value::Array(array) => {
            array.iter().take(1).for_each(|value| pointers(value, &format!("{path}/0"), found));
        }
        _ => {}
    }
}

#[test]
fn a_summary_with_strange_values_or_bytes_ends_no_history_and_sends_no_control_characters() {
    let place = Place::new();
    let all = nights(&place, "all", &changed_after(3, 1, slower));
    let file = place.join("all/20260001T000000Z-nightly/history.json");
    let whole = fs_err::read_to_string(&file).unwrap();
    let summary: Value = serde_json::from_str(&whole).unwrap();

    let page = place.join("page.html");
    let page_name = page.to_str().unwrap();
    let reads = |what: &str| {
        for format in ["table", "markdown"] {
            let ended = place.assay(&["history", &all, "--format", format, "--html", page_name]);
            assert!(matches!(ended.code, Some(0..=2)), "{what}: {ended}");
            for text in [&ended.stdout, &ended.stderr] {
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{what}: {ended}");
                assert!(!text.contains("panicked"), "{what}: {ended}");
            }
        }

        let html = fs_err::read_to_string(&page).unwrap_or_default();
        assert!(!html.contains("<script>alert"), "{what}");
    };

    // With the right checksum: each value in turn is another, so that all kinds meet many values.
    let mut places = Vec::new();
    pointers(&summary, "", &mut places);
    let strange = strange_values();
    for (number, pointer) in places.iter().enumerate().skip(1) {
        let mut changed = summary.clone();
        *changed.pointer_mut(pointer).unwrap() = strange[number % strange.len()].clone();
        write_json(&file, changed);
        reads(pointer);
    }

    // Without it: cut, and with a byte that is another.
    for part in 0..8 {
        let at = whole.len() * part / 8;
        fs_err::write(&file, &whole[..at]).unwrap();
        reads("cut");
        let mut bytes = whole.clone().into_bytes();
        bytes[at] ^= 1;
        fs_err::write(&file, bytes).unwrap();
        reads("a changed byte");
    }
}
