//! Remarks that follow from the figures of a step: a rate that was not kept, deletes that found
//! nothing, events that failed, those of a warm-up too.

use serde_json::Value;

use crate::place::{Place, SQLITE};
use crate::show_json::{Shown, number};

/// One test inserts existing rows, and another requests an unreachable rate.
const PLAN: &str = r#"
name = "test"
clients = [1]
[workload.sysbench]
tables = 1
rows = 200
load-batch = 100
warmup = "200ms"
read-time = "200ms"
write-time = "200ms"
error-limit = 1_000_000_000
steps = ["load", "point-query", "point-query.fast", "scan", "twice", "delete"]
step."point-query.fast".rate = 9_000_000
step.delete.time = "1s"
[workload.sysbench.test.twice]
group = "write"
[[workload.sysbench.test.twice.statement]]
sql = "INSERT INTO {table} (id, k, c, pad) VALUES ({id}, {k}, {c}, {pad})"
parameters = { id = "id", k = "k", c = "c", pad = "pad" }
"#;

fn remarks<'s>(row: &'s Value, code: &str) -> Vec<&'s str> {
    let remarks = row["remarks"].as_array().unwrap().iter();
    let of_code = remarks.filter(|remark| remark["code"] == code);
    of_code.map(|remark| remark["here"].as_str().unwrap()).collect()
}

#[test]
fn missed_rates_and_missing_work_are_reported() {
    let place = Place::new();
    let ended = place.run(&format!("{PLAN}{SQLITE}"), &[]).expect_code(0);
    assert!(!ended.stderr.contains("events/s"), "{}", ended.stderr);
    let directory = ended.run_directory();
    let shown = Shown::read(&place, &directory);
    shown.assert_all_valid();
    let row = |step| shown.row("lite.base", step);

    assert_eq!(row("point-query")["sla"], Value::Null);
    let sla = &row("point-query.fast")["sla"];
    assert_eq!((&sla["kind"], &sla["met"]), (&"event".into(), &false.into()));
    assert_eq!(number(&sla["target"]), 9e6);

    let scans = number(&row("scan")["metrics"]["qps"]);
    let krows = number(&row("scan")["metrics"]["krows_sec"]);
    assert!((krows / scans - 0.2).abs() < 1e-6, "{krows} {scans}");

    let failures = remarks(row("twice"), "step::failures");
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[1].starts_with("warm-up: "), "{failures:?}");
    assert_eq!(remarks(row("point-query"), "step::failures"), [""; 0]);

    // A warm-up and a second of deletes at random leave next to nothing of so few rows.
    assert_eq!(remarks(row("delete"), "step::nothing-to-delete").len(), 1);
    assert!(number(&row("delete")["metrics"]["rows/event"]) < 0.8);

    let text = place.assay(&["show", directory.to_str().unwrap(), "--all"]).expect_code(0).stdout;
    for told in ["requested rate", "Krows/s", "[step::failures]", "[step::nothing-to-delete]", "†"]
    {
        assert!(text.contains(told), "no `{told}` in {text}");
    }
}
