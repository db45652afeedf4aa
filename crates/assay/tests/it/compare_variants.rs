//! `assay compare --by variant`, and reports of runs whose only targets have variants.

use serde_json::Value;

use crate::compare::{TWICE, compared, measured, rows};
use crate::place::{POSTGRES, Place, QUICK, SQLITE, workload};
use crate::postgres_is_here_or_test_is_skipped;

/// A load with many rows in each commit, and one with a commit for each row. Each commit makes and
/// removes a journal, so that it is many times slower, however busy the machine is.
const BATCHES: &str = "steps = [\"l.i0\"]\n[workload.insert.variant.many]\nstep.\"l.i0\".rows-per-commit = 100\n\
                       [workload.insert.variant.single]\nstep.\"l.i0\".rows-per-commit = 1\n";

fn batches(repeats: u32, configs: &str) -> String {
    let lite = SQLITE.replace("\"wal\"", "\"delete\"");
    format!("repeats = {repeats}\n{}{lite}{configs}", workload(6_000, 1, QUICK, BATCHES))
}

#[test]
fn variants_of_the_only_target_are_compared_unasked() {
    let place = Place::new();
    let ended = place.run(&batches(4, ""), &[]).expect_code(0);
    let ended = ended.expect_in_stdout(&[
        "single relative to many",
        "single is slower than many in the only step",
        "The only target is lite.base, so the variants of its workload are compared.",
    ]);
    let run = ended.run_directory().to_str().unwrap().to_owned();
    let report = fs_err::read_to_string(ended.run_directory().join("report.html")).unwrap();
    assert!(report.contains("single is slower than many in the only step"), "{report}");

    let [row] = &rows(&place, &[&run])[..] else { panic!("one comparison") };
    assert_eq!((&row["target"], &row["variant"]), (&"single".into(), &Value::Null));
    assert_eq!((&row["pairing"], &row["verdict"]), (&"paired".into(), &"slower".into()));
    assert_eq!(row["values"].as_array().unwrap().len(), 4);

    let asked = compared(&place, &[&run, "--by", "variant", "--base", "single"]).expect_code(0);
    asked.expect_in_stdout(&[
        "many is faster than single in the only step",
        "rows-per-commit (1 -> 100)",
    ]);
    place.assay(&["report", &run, "--base", "single"]).expect_code(0);
    let report = fs_err::read_to_string(ended.run_directory().join("report.html")).unwrap();
    assert!(report.contains("many is faster than single in the only step"), "{report}");
    compared(&place, &[&run, "--base", "lite.base"])
        .expect_code(2)
        .expect_in_stderr(&["unknown variant `lite.base`", "available variants: `"]);

    compared(&place, &[&run, "--gate", "--threshold", "5"])
        .expect_code(3)
        .expect_in_stderr(&["regression: throughput in the only comparison"]);
    compared(&place, &[&run, "--by", "variant", "--why", "l.i0"])
        .expect_code(0)
        .expect_in_stdout(&["of many"]);
}

#[test]
fn a_run_until_decided_compares_the_variants_of_its_only_target() {
    let place = Place::new();
    // So large an effect is shown or ruled out after some repeats, whatever the machine does.
    let text = batches(1, "")
        .replace("repeats = 1\n", "repeats = \"until decided\"\ntime = \"1h\"\neffect = 0.5\n");
    let ended = place.run(&text, &[]).expect_code(0);
    let ended =
        ended.expect_in_stderr(&["single, 1 client: slower in l.i0", "no comparison is open"]);
    let [row] = &rows(&place, &[ended.run_directory().to_str().unwrap()])[..] else {
        panic!("one comparison")
    };
    assert!(row["values"].as_array().unwrap().len() >= 3, "{row}");
}

#[test]
fn variants_are_compared_on_each_target_and_are_a_factor_beside_others() {
    let place = Place::new();
    let run = measured(&place, &batches(2, TWICE));

    let found = rows(&place, &[&run, "--by", "variant"]);
    let places: Vec<(&str, &str)> = found
        .iter()
        .map(|row| (row["target"].as_str().unwrap(), row["variant"].as_str().unwrap()))
        .collect();
    assert_eq!(places, [("single", "lite.base"), ("single", "lite.next")]);
    assert!(found.iter().all(|row| row["pairing"] == "paired"), "{found:?}");

    // Without the option, targets are compared within each variant.
    let within = rows(&place, &[&run]);
    assert!(within.iter().all(|row| row["target"] == "lite.next"), "{within:?}");

    // A run of one variant alone.
    let only = ["--quiet", "--only", "*/many/*/*"];
    let one = place.run(&batches(1, TWICE), &only).expect_code(0).run_directory();
    compared(&place, &[one.to_str().unwrap(), "--by", "variant"])
        .expect_code(2)
        .expect_in_stderr(&["the workload of these runs has no variants to compare"]);

    let full = "[config.sqlite.full]\nextends = \"base\"\nset = { synchronous = \"full\" }\n";
    let run = measured(&place, &batches(2, full));
    compared(&place, &[&run, "--by", "?"])
        .expect_code(0)
        .expect_in_stdout(&["variant of sqlite: many, single; in 2 combinations"]);
    compared(&place, &[&run, "--by", "variant", "--by", "synchronous"])
        .expect_code(0)
        .expect_in_stdout(&["variant: many -> single", "synchronous: 0 -> 2"]);
    compared(&place, &[&run, "--by", "synchronous", "--gate"])
        .expect_code(2)
        .expect_in_stderr(&["which `--gate` does not know"]);
}

#[test]
fn forms_of_transactions_are_compared_on_postgres() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    // A second has many transactions, even if each round trip waits for a processor.
    let forms = format!(
        "name = \"test\"\nrepeats = 2\n[workload.transactions]\nuse = \"tpcb\"\nwarmup = \"0s\"\ntime = \"1s\"\n\
         steps = [\"load\", \"tpcb\"]\n[workload.transactions.variant.statements]\n\
         [workload.transactions.variant.procedure]\nform = \"procedure\"\n{POSTGRES}\n"
    );
    let run = measured(&place, &forms);

    let json = compared(&place, &[&run, "--metric", "server_switches_per_op", "--format", "json"])
        .expect_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["compared"]["base"], "statements");
    let mut rows = json["compared"]["rows"].as_array().unwrap().iter();
    let tpcb = rows.find(|row| row["step"] == "tpcb" && row["metric"] == "throughput").unwrap();
    assert_eq!(tpcb["target"], "procedure");

    // Seven round trips become one, so that the server switches less often. The switches of the whole
    // host would count other programs.
    let mut rows = json["compared"]["rows"].as_array().unwrap().iter();
    let switches = rows
        .find(|row| row["step"] == "tpcb" && row["metric"] == "server_switches_per_op")
        .unwrap();
    assert!(switches["ratio"].as_f64().unwrap() < 0.8, "{switches}");
    compared(&place, &[&run]).expect_code(0).expect_in_stdout(&["with the ratio to statements"]);
}
