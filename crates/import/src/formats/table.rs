//! Tables without raw files: a value stands there for a step of a target, and nothing is known of
//! how it came about.

mod by_column;
mod names;

use record::{Counter, OpRole, StepKind};
use words::METRICS;

use super::db_bench::kind_of;
use super::reading::{Facts, FileContents, FormatReader, StepResult};
use crate::text::{Doubt, Line, Refusal, measure, with_unit};

pub(crate) use by_column::{PairReader, QpsTableReader};
pub(crate) use names::{step_of, target_of};

/// The most columns of a table.
const COLUMNS_MAX: usize = 500;

/// Columns that are metrics by another name, with a factor.
const ALIASES: [(&str, &str, f64); 4] =
    [("cs/s", "csps", 1.0), ("cpu/s", "cpups", 1.0), ("r/s", "rps", 1.0), ("w/s", "wps", 1.0)];

/// Columns that are times of operations in microseconds.
const TIMES: [(&str, &str); 5] =
    [("p50", "p50"), ("p99", "p99"), ("p99.9", "p99.9"), ("p99.99", "p99.99"), ("pmax", "max")];

/// Columns that name what the row is about.
const TARGET_COLUMNS: [&str; 3] = ["tag", "dbms", VERSION];
const VERSION: &str = "version";
const STEP_COLUMNS: [&str; 1] = ["test"];

/// Columns that neither are metrics nor name anything.
const OTHER_COLUMNS: [&str; 3] = ["date", "job_id", "githash"];

/// Reads tables with a header of metrics and a row for each target or step, in blocks that a line
/// with the name of a step may precede: `mrg.*`, `o.met.*`, `sum.*` and `report.tsv`.
#[derive(Default)]
pub(crate) struct TableReader {
    header: Vec<String>,
    is_of_tabs: bool,
    step: Option<String>,
    clients: Option<u32>,
    /// Relative values follow, which the record computes itself.
    is_relative: bool,
    results: Vec<StepResult>,
    doubts: Vec<Doubt>,
    tool: Option<String>,
}

impl TableReader {
    fn cells<'a>(&self, text: &'a str) -> Vec<&'a str> {
        // The author's headers have empty columns where the rows have none.
        let cells: Vec<&str> = if self.is_of_tabs {
            text.split('\t').map(str::trim).collect()
        } else {
            text.split_whitespace().collect()
        };
        cells
    }

    fn header(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        self.is_of_tabs = line.text.contains('\t');
        let names = self.cells(line.text);
        if names.len() > COLUMNS_MAX {
            return Err(Refusal::at(line.number, format!("more than {COLUMNS_MAX} columns")));
        }
        // `cpu/o\t\tcs/o` has an empty name, and its rows have no such column.
        let names = names.into_iter().filter(|name| !name.is_empty());
        self.header = names.map(str::to_owned).collect();
        Ok(())
    }

    fn row(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let cells = self.cells(line.text);
        let number = line.number;
        if cells.len() != self.header.len() {
            let text = format!("a row has {} of {} columns", cells.len(), self.header.len());
            return Err(Refusal::at(number, text));
        }

        let labels = Labels::of(&self.header, &cells);
        let is_db_bench = labels.test.is_some();
        let mut outcome = self.empty_result(labels, number);
        if is_db_bench {
            self.tool = Some("db_bench".to_owned());
        }

        for (name, cell) in self.header.iter().zip(&cells) {
            if is_label(name) || cell.is_empty() || *cell == "NA" {
                continue;
            }
            if name == "ops_sec" && *cell == "failed" {
                outcome.failure = Some("the table says `failed`".to_owned());
                continue;
            }
            add_value(&mut outcome, name, cell, is_db_bench, number)?;
        }

        // Steps of the Insert Benchmark have no name here; those that query nothing only insert.
        let queries_nothing = outcome.metrics.get("qps").is_some_and(|qps| *qps == 0.0);
        if !is_db_bench && queries_nothing && outcome.metrics.contains_key("ips") {
            outcome.kind = StepKind::Load;
            (outcome.main, outcome.role) = ("insert".to_owned(), OpRole::Insert);
        }

        self.results.push(outcome);
        Ok(())
    }

    /// Returns the result of a row with these labels, without its values.
    fn empty_result(&self, labels: Labels, line: u64) -> StepResult {
        let (kind, main, role) = match &labels.test {
            Some(test) => kind_of(test),
            None => (StepKind::Query, "query", OpRole::Query),
        };

        let mut outcome = StepResult::of(kind, main, role);
        outcome.line = line;
        outcome.is_of_table = true;
        outcome.target = labels.target;
        outcome.engine_version = labels.version;
        outcome.clients = labels.test.as_deref().and_then(threads_in).or(self.clients);
        outcome.step = labels.test.or_else(|| self.step.clone());
        outcome
    }
}

/// The cells of a row that say what it is about.
struct Labels {
    version: Option<String>,
    target: Option<String>,
    /// The test of db_bench; `None` in tables of the Insert Benchmark.
    test: Option<String>,
}

impl Labels {
    fn of(header: &[String], cells: &[&str]) -> Self {
        let column = |names: &[&str]| {
            let at = header.iter().position(|name| names.contains(&name.as_str()))?;
            Some(cells[at].to_owned()).filter(|cell| !cell.is_empty())
        };

        let version = column(&[VERSION]);
        let target = match &version {
            // A version has dots, which separate build and config in names of targets.
            Some(version) => Some(format!("v{}", version.replace('.', "_"))),
            None => column(&TARGET_COLUMNS).map(|name| target_of(&name)),
        };
        Self { version, target, test: column(&STEP_COLUMNS) }
    }
}

/// Returns whether a column has no values.
fn is_label(column: &str) -> bool {
    let labels = [&TARGET_COLUMNS[..], &STEP_COLUMNS, &OTHER_COLUMNS];
    labels.iter().any(|columns| columns.contains(&column))
}

/// Returns the value of a cell; that of a size is in GB.
fn in_gb(cell: &str, column: &str, line: u64) -> Result<f64, Refusal> {
    let unit = with_unit(cell).map_or("", |(_, unit)| unit);
    let unit_factor = match unit {
        "TB" => 1024.0,
        "MB" => 1.0 / 1024.0,
        "KB" => 1.0 / 1024.0 / 1024.0,
        _ => 1.0,
    };

    let number = cell.strip_suffix(unit).unwrap_or(cell);
    Ok(measure(number, column, line)? * unit_factor)
}

/// Adds the value of a column.
fn add_value(
    outcome: &mut StepResult,
    name: &str,
    cell: &str,
    is_db_bench: bool,
    line: u64,
) -> Result<(), Refusal> {
    let value = in_gb(cell, name, line)?;

    if is_db_bench {
        if name == "ops_sec" {
            let rate = if outcome.kind == StepKind::Load { "ips" } else { "qps" };
            outcome.metrics.insert(rate.to_owned(), value);
            outcome.metrics.insert("o/s".to_owned(), value);
            return Ok(());
        }
        if let Some((_, statistic)) = TIMES.iter().find(|(column, _)| *column == name) {
            let main = outcome.main.clone();
            outcome.set_time_us(&main, statistic, value);
            return Ok(());
        }
        if name == "uptime" && value < 1e7 {
            outcome.elapsed_ns = (value * 1e9) as u64;
        }
    }

    if name == "o/s" {
        outcome.metrics.insert("qps".to_owned(), value);
    }
    let alias = ALIASES.iter().find(|(column, ..)| *column == name);
    let (metric, alias_factor) =
        alias.map_or((name, 1.0), |(_, metric, factor)| (*metric, *factor));
    if METRICS.iter().any(|known| known.name == metric) {
        outcome.metrics.insert(metric.to_owned(), value * alias_factor);
    } else {
        outcome.counters.push(Counter::gauge(name, value));
    }
    Ok(())
}

/// Returns the number of threads in the name of a test: `readwhilewriting.t24`.
fn threads_in(test: &str) -> Option<u32> {
    test.split('.').find_map(|part| part.strip_prefix('t')?.parse().ok())
}

impl FormatReader for TableReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim();
        let words = line.words();
        let known = |word: &&str| {
            TARGET_COLUMNS.contains(word) || STEP_COLUMNS.contains(word) || *word == "ops_sec"
        };

        if text.is_empty() {
            self.is_relative = false;
        } else if text.starts_with("--- ") {
            self.is_relative = text.contains("relative");
        } else if words.iter().any(known) && words.len() > 1 {
            self.header(line)?;
        } else if self.is_relative || words.iter().all(|word| *word == "-") {
            // Other rows of dashes separate groups of targets.
        } else if words.len() == 1 && with_unit(text).is_none() {
            let place = step_of(text);
            (self.step, self.clients) = (Some(place.step), place.clients);
            self.header.clear();
        } else if self.header.is_empty() {
            return Err(Refusal::at(line.number, "a row of a table comes before its header"));
        } else {
            self.row(line)?;
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.results.is_empty() {
            return Err(Refusal::of_file("it has no table of values"));
        }
        let facts = Facts { tool: self.tool.or(Some("a table".to_owned())), ..Facts::default() };
        Ok(FileContents {
            facts,
            results: self.results,
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}
