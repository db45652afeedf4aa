//! Compares the tables of documents with the code that they describe: metrics in
//! `docs/metrics.md`, and keys in `docs/plan.md`. With `UPDATE=1`, writes them instead, as
//! `cargo xtask docs` does.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use words::Metric;
use words::metric::{FORMULAS, OPERATION_TIMES, Section};

use crate::descriptions::{DESCRIPTIONS, Description};
use crate::schema;

/// The line after each table.
const END: &str = "<!-- end -->";

/// A document with tables that are written from code.
struct Document {
    path: PathBuf,
    text: String,
    /// The tables that it should have.
    tables: Vec<(String, String)>,
}

impl Document {
    fn open(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        let text = fs_err::read_to_string(&path).unwrap();
        Self { path, text, tables: Vec::new() }
    }

    /// Replaces the tables, and either writes the document or compares it.
    fn check(self) {
        let mut text = self.text.clone();

        for (name, table) in &self.tables {
            let begin = format!("<!-- cargo xtask docs: {name} -->\n");
            let Some((before, rest)) = text.split_once(&begin) else {
                panic!("{} has no line `{}`", self.path.display(), begin.trim());
            };

            let Some((_, after)) = rest.split_once(END) else {
                panic!("no `{END}` after `{}` in {}", begin.trim(), self.path.display());
            };
            text = format!("{before}{begin}{table}{END}{after}");
        }

        let tables = text.matches("<!-- cargo xtask docs: ").count();
        assert_eq!(tables, self.tables.len(), "unknown tables in {}", self.path.display());

        if std::env::var_os("UPDATE").is_some() {
            fs_err::write(&self.path, text).unwrap();
        } else {
            assert!(text == self.text, "{}: run `cargo xtask docs`", self.path.display());
        }
    }
}

/// Writes a Markdown table without the last column where no row has it.
fn markdown(mut heads: Vec<&str>, mut rows: Vec<Vec<String>>) -> String {
    if rows.iter().all(|row| row.last().is_none_or(String::is_empty)) {
        heads.pop();
        rows.iter_mut().for_each(|row| row.truncate(heads.len()));
    }

    let mut table = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        // An empty cell has one space.
        table.push_str(&format!("| {} |\n", row.join(" | ")).replace("|  |", "| |"));
    }
    table
}

/// Writes the table of a section's metrics, in the order of their formulas.
fn metrics_of(section: Section) -> String {
    let mut rows = Vec::new();
    let in_section = |metric: &&Metric| metric.section == section;

    for formula in FORMULAS {
        if let Some(metric) = Metric::named(formula.metric).filter(in_section) {
            let cells = [&format!("`{}`", metric.name), formula.text, metric.unit, formula.note];
            rows.push(cells.map(str::to_owned).to_vec());
        }
    }
    if section == Section::Response {
        rows.extend(["response_", "service_"].map(row_of_times));
    }

    markdown(vec!["metric", "formula", "unit", section.note_heading()], rows)
}

/// Writes one row for all statistics of a kind of time.
fn row_of_times(prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut measured = "";
    for time in OPERATION_TIMES.iter().filter(|time| time.name.starts_with(prefix)) {
        names.push(format!("`{}`", time.name));
        // The meaning of each names its statistic: the median of the times from ...
        (_, measured) = time.meaning.split_once(" of ").unwrap();
    }

    let formula = format!("percentiles, largest value and mean of {measured}");
    vec![names.join(", "), formula, "us".to_owned(), String::new()]
}

fn keys_of(table: &str) -> String {
    let mut rows = Vec::new();
    for row in DESCRIPTIONS.iter().filter(|row| row.table == table) {
        let keys: Vec<String> = row.keys.iter().map(|key| format!("`{key}`")).collect();
        rows.push(vec![keys.join(", "), default_of(row), row.meaning.to_owned()]);
    }
    markdown(vec!["key", "default", "meaning"], rows)
}

/// Returns the defaults of described keys.
fn default_of(row: &Description) -> String {
    if let Some(default) = row.default {
        return default.to_owned();
    }

    let mut defaults = Vec::new();
    for key in row.keys {
        let path =
            if row.table.is_empty() { (*key).to_owned() } else { format!("{}.{key}", row.table) };
        defaults.push(match schema::default_of(&path) {
            Some(default) => format!("`{}`", toml(default)),
            None => "none".to_owned(),
        });
    }

    defaults.join(", ")
}

/// Writes a value as in a plan.
fn toml(value: &Json) -> String {
    match value {
        Json::Array(values) => {
            let values: Vec<String> = values.iter().map(toml).collect();
            format!("[{}]", values.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_tables_of_metrics_are_those_of_the_code() {
    let mut document = Document::open("metrics.md");
    let mut sections: Vec<Section> = Vec::new();
    for metric in Metric::all() {
        if !sections.contains(&metric.section) {
            sections.push(metric.section);
            let name = format!("metrics, {}", metric.section.heading());
            document.tables.push((name, metrics_of(metric.section)));
        }
    }

    document.check();
}

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    let mut document = Document::open("plan.md");
    const TABLES: [&str; 9] = [
        "",
        "design",
        "workload.insert",
        "workload.kv",
        "workload.sysbench",
        "workload.transactions",
        "rates",
        "profile",
        "exact",
    ];
    for table in TABLES {
        let name = if table.is_empty() { "keys".to_owned() } else { format!("keys of {table}") };
        document.tables.push((name, keys_of(table)));
    }
    document.check();
}

#[test]
fn every_key_of_a_described_table_has_a_description() {
    let mut tables: Vec<&str> = DESCRIPTIONS.iter().map(|row| row.table).collect();
    tables.dedup();
    // Tables in a plan have sections of their own in the document.
    const PLAN_TABLES: [&str; 12] = [
        "build", "config", "target", "design", "factors", "workload", "rates", "profile", "exact",
        "variant", "test", "step",
    ];
    let is_table = |key: &str| PLAN_TABLES.contains(&key);
    for table in tables {
        for key in schema::keys_of(table).into_iter().filter(|key| !is_table(key)) {
            let is_described =
                DESCRIPTIONS.iter().any(|row| row.table == table && row.keys.contains(&key));
            assert!(is_described, "describe `{key}` of `{table}` in descriptions.rs");
        }
    }
}
