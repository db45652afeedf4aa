//! `assay compare`, its gate, more repeats, and a target against itself: on runs that were
//! measured.

use std::path::Path;

use serde_json::Value;

use crate::forged::change_json;
use crate::place::{Ended, Place, QUICK, SQLITE, entries, workload};

/// A load that waits for the disk at every commit, and one that does not.
pub(crate) const FULL_AND_OFF: &str = r#"
[config.sqlite.full]
set = { journal_mode = "delete", synchronous = "extra" }
"#;

/// Returns the plan of a small load with this number of repeats.
pub(crate) fn load(repeats: u32, rows: u32, configs: &str) -> String {
    let steps = "steps = [\"l.i0\"]\ntransactions = \"small\"";
    format!("repeats = {repeats}\n{}{SQLITE}{configs}", workload(rows, 1, QUICK, steps))
}

/// The same config twice.
pub(crate) const TWICE: &str = "[config.sqlite.next]\nextends = \"base\"\n";

pub(crate) fn measured(place: &Place, plan: &str) -> String {
    let ended = place.run(plan, &["--quiet"]).expect_code(0);
    ended.run_directory().to_str().unwrap().to_owned()
}

/// Makes the loads of a run last as long as they would on a machine that does nothing else: a load
/// that waits for a disk ten times as long, and each repeat a little longer. Their real durations
/// depend on the disk and the other tests.
pub(crate) fn with_known_times(run: &str) {
    let json = |path: &Path| -> Value {
        serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap()
    };
    let is_waiting = |setting: &Value| {
        setting["name"] == "journal_mode"
            && setting["value"] == "delete"
            && setting["source"] == "config"
    };

    for target in entries(&Path::new(run).join("cells")) {
        for (repeat, cell) in (1_u64..).zip(entries(&target.join("c1"))) {
            let settings = &json(&cell.join("cell.json"))["settings"];
            let waits = settings.as_array().unwrap().iter().any(is_waiting);

            let path = cell.join("steps/01-l.i0/step.json");
            let ms = (100 + repeat) * if waits { 10 } else { 1 };
            change_json(&path, |step| {
                step["elapsed_ns"] = Value::from(ms * 1_000_000);
                // The same CPU on both: what one of them waits for is the disk.
                for connection in step["connections"].as_array_mut().unwrap() {
                    connection["cpu_user_ns"] = Value::from((50 + repeat) * 1_000_000);
                    connection["cpu_system_ns"] = Value::from(0);
                }
            });
        }
    }
}

pub(crate) fn compared(place: &Place, args: &[&str]) -> Ended {
    let mut all = vec!["compare"];
    all.extend(args);
    place.assay(&all)
}

pub(crate) fn rows(place: &Place, args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.extend(["--format", "json"]);
    let ended = compared(place, &all).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = json["compared"]["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["metric"] == "throughput").cloned().collect()
}

#[test]
fn a_run_ends_with_its_verdicts_where_its_report_is_and_the_next_command() {
    let place = Place::on_disk();
    let repeated = place.run(&load(2, 50, TWICE), &[]).expect_code(0);
    let repeated = repeated.expect_in_stdout(&[
        "lite.next relative to lite.base",
        "2 repeats of each target and of the base, in pairs",
        "With 2 repeats, a few bursts of noise can look like a change",
    ]);

    let run = repeated.run_directory();
    assert!(run.join("report.html").is_file());
    let repeated = repeated.expect_in_stderr(&[
        "report: file:///",
        "/report.html",
        "next: `assay compare results/",
    ]);

    let summary = place.assay(&["show", "--summary", run.to_str().unwrap()]);
    let summary = summary.expect_code(0).stdout;
    assert!(repeated.stdout.contains(summary.trim()), "{summary}");
    assert!(summary.starts_with("lite.next relative to lite.base"), "{summary}");
    assert!(summary.contains(" step"), "{summary}");

    let once = place.run(&load(1, 50, TWICE), &[]).expect_code(0);
    assert!(!once.stdout.contains("in pairs"), "{once}");
    once.expect_in_stderr(&[
        "next: `assay run --resume results/",
        " --repeats 5` adds the repeats",
    ]);

    let alone = place.run(&load(1, 50, ""), &[]).expect_code(0);
    alone.expect_in_stderr(&["next: `assay show results/"]);
}

#[test]
fn a_slower_config_is_shown_and_fails_the_gate() {
    let place = Place::on_disk();
    let run = measured(&place, &load(5, 500, FULL_AND_OFF));
    with_known_times(&run);
    let row = &rows(&place, &[&run])[0];
    assert_eq!(row["verdict"], "slower", "{row}");
    assert_eq!(row["pairing"], "paired", "{row}");

    assert!(row["interval"]["high"].as_f64().unwrap() < 1.0, "{row}");
    assert_eq!(row["values"].as_array().unwrap().len(), 5);

    let table = compared(&place, &[&run]).expect_code(0);
    assert!(table.stderr.is_empty(), "{table}");
    table.expect_in_stdout(&[
        "lite.full compared with lite.base",
        "5 repeats of each target and of the base, in pairs",
        "▼",
    ]);

    let gate = compared(&place, &[&run, "--gate"]).expect_code(3);
    gate.expect_in_stderr(&[
        "regression: throughput in the only comparison",
        "lite.full c1 l.i0: slower, 0.",
    ]);

    // The other way round it is faster, and what is faster passes.
    let gate = compared(&place, &[&run, "--gate", "--base", "lite.full"]).expect_code(0);
    gate.expect_in_stderr(&["no regression is shown: throughput in 1 comparison"]);
    // So does what is slower by no more than is allowed.
    compared(&place, &[&run, "--gate", "--threshold", "99.99"]).expect_code(0);

    let markdown = compared(&place, &[&run, "--format", "markdown"]).expect_code(0);
    assert!(markdown.stdout.contains("| step | throughput |"), "{markdown}");
    let csv = compared(&place, &[&run, "--format", "csv"]).expect_code(0);
    assert!(csv.stdout.starts_with("run_ids,run_name,"), "{csv}");
    csv.expect_in_stdout(&[",lite.base,lite.full,sqlite,insert,"]);

    let shown = place.assay(&["show", &run, "--format", "markdown"]).expect_code(0);
    assert!(shown.stdout.starts_with("## test: complete"), "{shown}");
    assert!(shown.stdout.contains("### Throughput"), "{shown}");
}

#[test]
fn equal_configs_are_not_called_different() {
    let place = Place::on_disk();
    let run = measured(&place, &load(5, 2_000, TWICE));
    // So wide that no noise of the machine reaches it: what is tested is not the machine.
    let gate = compared(&place, &[&run, "--gate", "--effect", "95", "--error-rate", "0.01"]);
    assert!(gate.code == Some(0) || gate.code == Some(4), "{gate}");
    assert!(!gate.stderr.contains("regression:"), "{gate}");
}

#[test]
fn single_runs_are_in_doubt_until_there_are_repeats() {
    let place = Place::on_disk();
    let run = measured(&place, &load(1, 500, FULL_AND_OFF));
    let table = compared(&place, &[&run]).expect_code(0);

    assert!(table.stdout.contains("The comparison uses single runs"), "{table}");
    let gate = compared(&place, &[&run, "--gate"]).expect_code(4);
    let command = gate
        .stderr
        .lines()
        .find_map(|line| line.split_once("measure only these comparisons again: assay "));
    let (_, command) = command.unwrap_or_else(|| panic!("no command in {gate}"));

    assert_eq!(
        command,
        format!("run --resume {run} --repeats 5 --only 'lite.base/c1/*' --only 'lite.full/c1/*'")
    );
    assert!(gate.stderr.contains("help: then judge again"), "{gate}");

    // The command as a shell would read it.
    let args: Vec<&str> = command.split(' ').map(|arg| arg.trim_matches('\'')).collect();
    let more = place.assay(&args).expect_code(0);
    more.expect_in_stderr(&["10 cells; 2 complete; 8 to be measured"]);

    with_known_times(&run);
    let row = &rows(&place, &[&run])[0];
    assert_eq!(row["values"].as_array().unwrap().len(), 5, "{row}");
    compared(&place, &[&run, "--gate"]).expect_code(3);

    // What is there is enough; what is recorded is untouched and known without the option.
    let again = place.assay(&args).expect_code(0);
    again.expect_in_stderr(&["are complete: nothing to measure"]);
    let again = place.assay(&["run", "--resume", &run]).expect_code(0);
    again.expect_in_stderr(&["all 10 cells"]);
}

#[test]
fn the_same_plan_run_again_is_more_repeats_and_by_run_it_is_compared() {
    let place = Place::on_disk();
    let plan = load(2, 2_000, FULL_AND_OFF);

    let (first, second) = (measured(&place, &plan), measured(&place, &plan));
    let together = rows(&place, &[&first, &second]);
    assert_eq!(together.len(), 1);
    let values = together[0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 4, "{}", together[0]);
    assert!(values.iter().any(|value| value["run"] == 1));

    let apart = rows(&place, &[&first, &second, "--by-run"]);
    assert_eq!(apart.len(), 2);
    for (row, target) in apart.iter().zip(["lite.base", "lite.full"]) {
        assert_eq!((&row["target"], &row["variant"]), (&"run 2".into(), &target.into()));
        // How much runs differ by themselves is not known.
        assert_eq!((&row["pairing"], &row["verdict"]), (&"single".into(), &"single run".into()));
        assert!(row["reasons"].to_string().contains("measured by different runs, 1 of each"));
    }

    let only_full = "[[target]]\nbuilds = [\"lite\"]\nconfigs = [\"full\"]\n";
    let third = measured(&place, &(plan.clone() + only_full));
    let only_base = only_full.replace("full", "base");
    let fourth = measured(&place, &(plan + &only_base));

    let across = rows(&place, &[&third, &fourth, "--base", "lite.base"]);
    assert_eq!(across.len(), 1);
    assert_eq!(across[0]["target"], "lite.full");
    assert_eq!(across[0]["pairing"], "single");

    let refused = compared(&place, &[&third]).expect_code(2);
    refused.expect_in_stderr(&["`lite.full` is the only target", "--by-run"]);
    let refused = compared(&place, &[&third, &fourth, "--by-run"]).expect_code(2);
    refused.expect_in_stderr(&["no target of the first run is in another"]);

    // More repeats of either run would not tell.
    let gate = compared(&place, &[&first, &second, "--by-run", "--gate"]).expect_code(4);
    let gate = gate.expect_in_stderr(&["measure base and target in one run"]);
    assert!(!gate.stderr.contains("--repeats"), "{gate}");
}

#[test]
fn what_can_not_be_compared_is_refused_with_the_way_out() {
    let place = Place::on_disk();
    let run = measured(&place, &load(1, 500, TWICE));
    let other_work = measured(&place, &load(1, 600, TWICE));
    let other_config = load(1, 500, TWICE).replace("\"wal\"", "\"memory\"");
    let other_config = measured(&place, &other_config);
    let copy = place.path().join("copy").display().to_string();
    copy_directory(run.as_ref(), copy.as_ref());

    for (args, texts) in [
        (
            &[run.as_str(), &other_work][..],
            &["did not do the same work", "initial-rows` 500 -> 600"][..],
        ),
        (
            &[&run, &other_config],
            &["target `lite.base` is not the same in runs 1 and 2", "--by-run"],
        ),
        (
            &[&run, &run],
            &["runs 1 and 2 are copies of one run: cell `lite.base/c1/r1`", "give each run once"],
        ),
        (&[&run, &copy], &["runs 1 and 2 are copies of one run"]),
        (&[&run, &copy, "--by-run"], &["runs 1 and 2 are copies of one run"]),
        (&[&run, "--by-run"], &["needs at least two runs"]),
        (&[&run, "--base", "lite.nxt"], &["unknown target", "lite.next"]),
        (&[&run, "--step", "l.i9"], &["no step `l.i9`"]),
        (&[&run, "--threshold", "cpuqp=5"], &["unknown metric `cpuqp`", "`cpupq`"]),
        (&[&run, "--threshold", "x%"], &["invalid percentage"]),
        (&[&run, "--threshold", "5"], &["`--threshold` needs `--gate`", "help: add `--gate`"]),
        (&[&run, "--effect", "0"], &["above 0"]),
        (&["nowhere"], &["there is no run `nowhere`", "these are in `results`"]),
    ] {
        let ended = compared(&place, args);
        assert_ne!(ended.code, Some(0), "{ended}");
        ended.expect_in_stderr(texts);
    }

    let apart = rows(&place, &[&run, &other_config, "--by-run"]);
    assert_eq!(apart.len(), 2);

    // A report takes runs of one target for repeats as well.
    for (other, text) in [
        (&other_work, "did not do the same work"),
        (&other_config, "`assay compare --by-run` compares the runs"),
        (&run, "runs 1 and 2 are copies of one run"),
        (&copy, "runs 1 and 2 are copies of one run"),
    ] {
        let output = place.path().join("both.html");
        let report = place.assay(&["report", &run, other, "-o", output.to_str().unwrap()]);
        report.expect_code(2).expect_in_stderr(&[text]);
        assert!(!output.exists());
    }
}

#[test]
fn the_first_measured_target_takes_the_place_of_a_base_that_was_left_out() {
    let place = Place::on_disk();
    let plan = load(1, 500, TWICE) + "[config.sqlite.third]\nextends = \"base\"\n";
    let only = ["--only", "lite.next", "--only", "lite.third"];
    let ended = place.run(&plan, &[&["--quiet"][..], &only].concat()).expect_code(0);
    let run = ended.run_directory();

    let note = "the plan's base, `lite.base`, was not measured: `lite.next` takes its place";
    let run = run.to_str().unwrap();
    compared(&place, &[run]).expect_code(0).expect_in_stderr(&[note]);
    let rows = rows(&place, &[run]);
    assert!(rows.iter().all(|row| row["target"] == "lite.third"), "{rows:?}");
    place.assay(&["ls"]).expect_code(0).expect_in_stdout(&["measured once"]);
}

fn copy_directory(from: &Path, to: &Path) {
    fs_err::create_dir(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &copy);
        } else {
            fs_err::copy(entry.path(), copy).unwrap();
        }
    }
}

#[test]
fn by_run_the_changes_of_targets_are_shown() {
    let place = Place::on_disk();
    let before = load(1, 500, FULL_AND_OFF);

    let after =
        before.replace("\"delete\", synchronous = \"extra\"", "\"wal\", synchronous = \"off\"");
    assert_ne!(before, after);
    let (before, after) = (measured(&place, &before), measured(&place, &after));
    with_known_times(&before);
    with_known_times(&after);

    let ended = compared(&place, &[&before, &after, "--by-run", "--format", "json"]);
    let json: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();

    let notes = json["compared"]["notes"].as_array().unwrap();
    let changed: Vec<&Value> =
        notes.iter().filter(|note| note.to_string().contains("the same in run 2")).collect();
    let expected = "Target `lite.full` is not the same in run 2 as in run 1: `journal_mode` delete -> wal, \
                    `synchronous` extra -> off.";
    assert_eq!(changed, [expected]);
}

#[test]
fn another_way_of_measuring_is_reported() {
    let place = Place::on_disk();
    let plan = load(1, 500, TWICE);
    let (before, after) = (measured(&place, &plan), measured(&place, &plan));

    let notes = |args: &[&str]| {
        let ended = compared(&place, &[args, &["--format", "json"]].concat());
        let json: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
        json["compared"]["notes"].to_string()
    };
    const NOTE: &str =
        "Run 2 was measured in another way than run 1: `perf_level` not set -> disable.";

    assert!(!notes(&[&before, &after]).contains("measured in another way"));
    // As a version writes it that knows of such a setting.
    for cell in ["lite.base", "lite.next"] {
        let path = Path::new(&after).join("cells").join(cell).join("c1/r1/cell.json");
        let own = serde_json::json!({"name": "perf_level", "value": "disable", "source": "assay"});
        change_json(&path, |cell| cell["settings"].as_array_mut().unwrap().push(own));
    }

    for args in [&[before.as_str(), &after][..], &[&before, &after, "--by-run"]] {
        let told = notes(args);
        assert!(told.contains(NOTE), "{told}");
    }
}

#[test]
fn missing_measurements_do_not_pass() {
    let place = Place::on_disk();
    let plan = load(2, 500, TWICE);
    let only_base = "[[target]]\nbuilds = [\"lite\"]\nconfigs = [\"base\"]\n";
    let (yesterday, today) =
        (measured(&place, &plan), measured(&place, &(plan.clone() + only_base)));

    // Nothing is beyond such a threshold, so that all which is compared passes.
    let gate = ["--gate", "--threshold", "100"];
    let by_run = [&[&yesterday, &today, "--by-run"][..], &gate].concat();
    let doubtful = compared(&place, &by_run).expect_code(4);
    doubtful.expect_in_stderr(&[
        "Assay cannot judge throughput in the only comparison",
        "run 2 lite.next c1: was not measured, unlike run 1",
    ]);

    // A target that is new today has nothing to have become worse than.
    let new = [&[&today, &yesterday, "--by-run"][..], &gate].concat();
    let new = compared(&place, &new).expect_code(4);
    assert!(!new.stderr.contains("was not measured"), "{new}");

    let with = |metric| [&[yesterday.as_str()][..], &gate, &["--threshold", metric]].concat();
    let doubtful = compared(&place, &with("w_amp=10")).expect_code(4);
    doubtful.expect_in_stderr(&[
        "w_amp: has a threshold, but none of the compared steps has this metric",
    ]);
}

#[test]
fn a_failed_cell_does_not_pass() {
    let place = Place::on_disk();
    let broken = "[build.other]\nnull = \"bundled\"\n[[target]]\nbuilds = [\"lite\"]\n[[target]]\nbuilds = [\"other\"]\n";
    let run = measured(&place, &load(2, 500, broken));
    let record = std::path::Path::new(&run).join("cells/other.default/c1/r2");
    fs_err::rename(&record, record.with_extension("gone")).unwrap();
    let gate = compared(&place, &[&run, "--gate", "--base", "lite.base"]).expect_code(4);
    gate.expect_in_stderr(&["1 cell is not complete", "run --resume"]);
}

#[test]
fn a_target_against_itself_tells_the_noise() {
    let place = Place::on_disk();
    let plan = load(1, 500, TWICE);
    let ended = place.run(&plan, &["--aa", "--only", "lite.next"]).expect_code(0);
    let ended = ended
        .expect_in_stderr(&["2 targets x 5 repeats = 10 cells"])
        .expect_in_stdout(&["Noise of this machine: throughput of lite.next compared with itself"]);

    let run = ended.run_directory().to_str().unwrap().to_owned();
    let row = &rows(&place, &[&run])[0];
    assert_eq!(row["target"], "lite.next-again");
    assert_eq!(row["pairing"], "paired");
    assert_eq!(row["values"].as_array().unwrap().len(), 5);

    let table = compared(&place, &[&run]).expect_code(0);
    assert!(table.stdout.contains("Noise of this machine"), "{table}");

    // The record is complete: the run can be resumed like any other.
    let more = place.assay(&["run", "--resume", &run, "--repeats", "6", "--quiet"]).expect_code(0);
    assert!(more.stdout.contains("results/"), "{more}");
    let value = &rows(&place, &[&run])[0]["base_values"];
    assert_eq!(value.as_array().unwrap().len(), 6, "{value}");

    // The requested number of repeats.
    let two = place.run(&plan, &["--aa", "--set", "repeats=2"]).expect_code(0);
    two.expect_in_stderr(&["2 targets x 2 repeats = 4 cells"])
        .expect_in_stdout(&["throughput of lite.base compared with itself"]);
}

#[test]
fn the_width_of_an_interval_is_explained() {
    let place = Place::on_disk();
    let run = measured(&place, &load(3, 200, FULL_AND_OFF));
    with_known_times(&run);

    let told = place.assay(&["compare", &run, "--why", "l.i0"]).expect_code(0);
    told.expect_in_stdout(&[
        "l.i0, throughput: lite.full is 0.100 (",
        "  repeats   0.100 0.100 0.100\n",
        "  borrowed  nothing: the interval rests on its own repeats, since ",
        "  level     5.00%, shared with no other comparison; looked at once\n",
    ]);
    let unknown = place.assay(&["compare", &run, "--why", "l.i9"]).expect_code(2);
    unknown.expect_in_stderr(&["`l.i9`"]);

    // Of a step that stands alone, nobody could tell with how many others it shares.
    let two = place.assay(&["compare", &run, "--why", "l.i0", "--step", "l.i0"]).expect_code(2);
    two.expect_in_stderr(&["cannot be used with '--step"]);
}
