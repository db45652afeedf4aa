//! Latency, SLA and fairness in `assay compare`: as metrics, in the gate, and as requirements.

use serde_json::Value;

use crate::export::recorded;
use crate::place::{Ended, NULL, Place, QUICK, workload};

/// Returns a place with a run of two targets and this number of repeats, and the run's directory.
/// Of 4000 queries, one takes 250 ms and the others 1 ms.
fn recorded_run(repeats: u32) -> (Place, String) {
    let place = Place::new();
    let run = recorded::write(&place.join("results"), repeats, 0);
    let run = run.to_str().unwrap().to_owned();
    (place, run)
}

fn compared(place: &Place, run: &str, args: &[&str]) -> Ended {
    place.assay(&[&["compare", run][..], args].concat())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn times_of_operations_have_verdicts_from_the_percentiles_of_each_repeat() {
    let (place, run) = recorded_run(5);
    let args =
        ["--metric", "response_p99:query", "--metric", "service_max:query", "--metric", "sla"];
    let ended = compared(&place, &run, &[&args[..], &["--format", "json"]].concat()).expect_code(0);
    let json = json(&ended);

    let rows = json["compared"]["rows"].as_array().unwrap();
    let row = |metric: &str| {
        let is_it = |row: &&Value| row["metric"] == metric && row["step"] == "qr100";
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{metric} in {ended}"))
    };

    for (metric, us) in [("response_p99:query", 1000.0), ("service_max:query", 250_000.0)] {
        let row = row(metric);
        assert_eq!((&row["unit"], &row["more_is_better"]), (&"us".into(), &false.into()), "{row}");
        assert_eq!((&row["pairing"], &row["verdict"]), (&"paired".into(), &"equal".into()));
        // The last repeat of the target is invalid.
        let values = row["values"].as_array().unwrap();
        assert_eq!(values.len(), 4, "{row}");
        for value in values {
            let value = value["value"].as_f64().unwrap();
            assert!((value / us - 1.0).abs() < 0.001, "{row}");
        }
    }

    assert_eq!(row("sla")["more_is_better"], true);
    compared(&place, &run, &args)
        .expect_code(0)
        .expect_in_stdout(&[" relative to old", "sla: share of the requested rate"]);

    let csv = [&args[..], &["--format", "csv"]].concat();
    compared(&place, &run, &csv)
        .expect_code(0)
        .expect_in_stdout(&[",query_response_us_p99,us,false,"]);
}

#[test]
fn the_gate_judges_times_of_operations() {
    let (place, run) = recorded_run(6);
    let allowed = ["--gate", "--threshold", "90", "--threshold", "response_p99:query=5"];
    compared(&place, &run, &allowed)
        .expect_code(0)
        .expect_in_stderr(&["no regression is shown", "response_p99:query in 1 comparison"]);
    // With 4000 operations, nobody knows the time that one of 10,000 exceeds.
    let unknown = ["--gate", "--threshold", "90", "--threshold", "response_p99.99:query=5"];
    compared(&place, &run, &unknown).expect_code(4).expect_in_stderr(&["response_p99.99:query"]);
}

#[test]
fn a_metric_that_no_step_has_leads_to_the_one_that_was_meant() {
    let (place, run) = recorded_run(2);
    for (metric, help) in [
        ("p99", "the time of operations is `response_p99`"),
        ("response_p99:qery", "did you mean `query`?"),
        ("response_p99.99:query", "needs at least 10000 operations"),
        ("query_response_us_p99", "did you mean `response_p99:query`?"),
    ] {
        let ended = compared(&place, &run, &["--metric", metric]).expect_code(2);
        ended.expect_in_stderr(&[metric, help]);
    }

    let listed = place.assay(&["compare", "--metric", "?"]).expect_code(0);
    listed.expect_in_stdout(&["response_p99.9 ", "fairness ", "fsyncs_per_commit ", "throughput "]);
}

#[test]
fn a_requirement_is_met_missed_or_in_doubt_and_sets_the_exit_code() {
    let (place, run) = recorded_run(5);
    let met = ["--require", "qr100 response_p99:query < 5ms"];
    let missed = ["--require", "qr100 response_max:query<=100ms"];

    let ended = compared(&place, &run, &met).expect_code(0);
    assert!(ended.stderr.is_empty(), "{ended}");
    ended.expect_in_stdout(&["Requirements", "qr100 response_p99:query < 5ms", " met"]);

    let both = [met, missed].concat();
    compared(&place, &run, &both).expect_code(3).expect_in_stderr(&[
        "missed: qr100 response_max:query <= 100ms for old.tuned c2",
        "missed: qr100 response_max:query <= 100ms for new.tuned c2",
    ]);

    let ended = compared(&place, &run, &[&both[..], &["--format", "json"]].concat()).expect_code(3);
    let json = json(&ended);
    let results = json["requirements"].as_array().unwrap();
    let verdicts: Vec<&str> = results.iter().map(|it| it["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["met", "met", "missed", "missed"], "{ended}");
    assert_eq!((&results[0]["bound"], &results[0]["unit"]), (&5000.0.into(), &"us".into()));

    let markdown = [&both[..], &["--format", "markdown"]].concat();
    compared(&place, &run, &markdown)
        .expect_code(3)
        .expect_in_stdout(&["### Requirements", "missed"]);

    let (place, run) = recorded_run(1);
    let ended = compared(&place, &run, &met).expect_code(4);
    ended.expect_in_stderr(&["single run: qr100", "invalid: qr100"]);
}

#[test]
fn a_requirement_needs_no_second_target() {
    let place = Place::new();
    let plan = workload(1_000, 500, QUICK, "steps = [\"l.i0\"]") + NULL;
    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let run = run.to_str().unwrap();
    compared(&place, run, &[]).expect_code(2).expect_in_stderr(&["nothing to compare"]);
    let ended = compared(&place, run, &["--require", "l.i0 throughput > 1"]).expect_code(4);
    ended.expect_in_stdout(&["l.i0 throughput > 1", "single run"]);
}

#[test]
fn a_requirement_that_can_not_be_judged_anywhere_is_refused() {
    let (place, run) = recorded_run(2);
    for (requirement, expected) in [
        ("qr200 response_p99 < 5ms", "did you mean `qr100`?"),
        ("l.i0 response_p99:query < 5ms", "the step `l.i0` does not have the metric"),
        ("qr100 response_p99 < 5", "the bound has no unit"),
        ("qr100 p99 < 5ms", "`response_p99`"),
    ] {
        let ended = compared(&place, &run, &["--require", requirement]).expect_code(2);
        ended.expect_in_stderr(&[expected]);
    }
}
