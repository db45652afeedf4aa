//! The fields that `assay show --format json` promises to scripts, and those that tests read from
//! it.

use std::path::Path;

use serde_json::Value;

use crate::place::Place;

/// The steps of a run as scripts see them.
pub(crate) struct Shown {
    pub(crate) json: Value,
}

impl Shown {
    /// Reads a run directory by the binary, and holds it to its contract.
    pub(crate) fn read(place: &Place, run: &Path) -> Self {
        let ended =
            place.assay(&["show", run.to_str().unwrap(), "--format", "json"]).expect_code(0);
        let shown = Self { json: serde_json::from_str(&ended.stdout).unwrap() };
        shown.json["rows"].as_array().unwrap().iter().for_each(hold_to_contract);
        shown
    }

    pub(crate) fn rows(&self) -> &[Value] {
        self.json["rows"].as_array().unwrap()
    }

    /// Returns the row of a step of a target; there is one.
    pub(crate) fn row(&self, target: &str, step: &str) -> &Value {
        let mut rows =
            self.rows().iter().filter(|row| row["target"] == target && row["step"] == step);
        let row = rows.next().unwrap_or_else(|| panic!("no step {step} of {target}"));
        assert!(rows.next().is_none(), "two steps {step} of {target}");
        row
    }

    /// Returns the steps of a target in their order, with their status and whether they are valid.
    pub(crate) fn steps(&self, target: &str) -> Vec<(&str, &str, bool)> {
        self.rows()
            .iter()
            .filter(|row| row["target"] == target)
            .map(|row| {
                let text = |key: &str| row[key].as_str().unwrap();
                (text("step"), text("status"), row["valid"].as_bool().unwrap())
            })
            .collect()
    }

    pub(crate) fn assert_all_valid(&self) {
        for row in self.rows() {
            assert!(
                row["valid"] == true && row["status"] == "complete",
                "{} of {} is {}: {} {}",
                row["step"],
                row["target"],
                row["status"],
                row["reasons"],
                row["ops"],
            );
        }
    }

    pub(crate) fn status(&self) -> &str {
        self.json["run"]["status"].as_str().unwrap()
    }
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("`{value}` is not a number"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("`{value}` is not a count"))
}

/// The keys that no version may rename, and what must agree among them.
fn hold_to_contract(row: &Value) {
    for key in ["target", "build", "config", "engine", "workload", "step"] {
        assert!(row[key].is_string(), "`{key}` in {row}");
    }

    for key in ["clients", "repeat"] {
        assert!(count(&row[key]) > 0, "`{key}` in {row}");
    }

    assert!(number(&row["seconds"]) >= 0.0);
    let reasons = row["reasons"].as_array().unwrap();
    assert_eq!(row["valid"].as_bool().unwrap(), reasons.is_empty(), "{row}");
    for (kind, ops) in row["ops"].as_object().unwrap() {
        let [offered, skipped, ok, failed] =
            ["offered", "skipped", "count", "failed"].map(|key| count(&ops[key]));
        assert_eq!(offered, skipped + ok + failed, "{kind} in {row}");
        assert!(number(&ops["per_second"]) >= 0.0);
        count(&ops["rows"]);
        for time in ["service_us", "response_us"] {
            let at = |key: &str| number(&ops[time][key]);
            let ascending = ["p50", "p90", "p95", "p99", "p99_9", "max"].map(at);
            assert!(ascending.is_sorted(), "{kind} {time}: {ascending:?}");
            assert!(at("mean") <= at("max"), "{kind} {time}");
        }
    }

    for (name, value) in row["metrics"].as_object().unwrap() {
        assert!(value.is_number(), "metric `{name}` is {value}");
    }

    // Operations of terminals are scheduled, too, but not at a rate.
    let is_of_terminals = row["step"].as_str().unwrap().ends_with(".terminals");
    let is_scheduled = row["ops"].as_object().unwrap().values().any(|ops| ops["scheduled"] == true);
    let has_rate = is_scheduled && !is_of_terminals;
    if row["kind"] == "query" && row["status"] == "complete" && has_rate {
        let sla = &row["sla"];
        assert!(number(&sla["target"]) > 0.0 && number(&sla["achieved"]) >= 0.0, "{row}");
        assert!(sla["met"].is_boolean());
    }
}
