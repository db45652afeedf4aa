//! Tables of rates: a column for each target and a row for each step, a row for each target and a
//! column for each number of clients, or pairs of a target and a value.

use record::{Counter, OpRole, StepKind};

use super::super::reading::{Facts, FileContents, FormatReader, StepResult};
use super::{COLUMNS_MAX, step_of, target_of};
use crate::text::{Line, Refusal, measure};

/// The result of a table.
fn outcome(target: &str, step: Option<String>, qps: f64, line: u64) -> StepResult {
    let mut outcome = StepResult::of(StepKind::Query, "query", OpRole::Query);
    outcome.target = Some(target_of(target));
    outcome.step = step;
    outcome.is_of_table = true;
    outcome.line = line;
    outcome.metrics.insert("qps".to_owned(), qps);
    outcome.metrics.insert("o/s".to_owned(), qps);
    outcome
}

/// Reads `qps.abs.*` and `o.qps.abs.*`.
#[derive(Default)]
pub(crate) struct QpsTableReader {
    /// The targets of columns.
    targets: Vec<String>,
    /// The step of the rows below, which then are of targets.
    block: Option<(String, Option<u32>)>,
    results: Vec<StepResult>,
}

impl QpsTableReader {
    fn row(&mut self, line: &Line<'_>, cells: &[&str], name: &str) -> Result<(), Refusal> {
        if cells.len() > COLUMNS_MAX {
            return Err(Refusal::at(line.number, format!("more than {COLUMNS_MAX} columns")));
        }
        for (column, cell) in cells.iter().enumerate() {
            let value = measure(cell, "a rate", line.number)?;
            let found = match &self.block {
                // The columns are of 1, 2, 3 clients and so on, unless the block says its number.
                Some((step, clients)) => {
                    let mut found = outcome(name, Some(step.clone()), value, line.number);
                    found.clients = clients.or(u32::try_from(column + 1).ok());
                    found
                }
                None => {
                    let numbered = format!("col-{}", column + 1);
                    let target = self.targets.get(column).unwrap_or(&numbered);
                    outcome(target, Some(step_of(name).step), value, line.number)
                }
            };
            self.results.push(found);
        }
        Ok(())
    }
}

impl FormatReader for QpsTableReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if text.starts_with("Relative to") {
            let text = "it has relative values, which the record computes itself";
            return Err(Refusal::at(line.number, text));
        }
        if let Some((column, target)) = text.split_once(" : ").filter(|_| text.starts_with("col-"))
        {
            let number: usize = column[4..].trim().parse().unwrap_or(0);
            if number != self.targets.len() + 1 || number > COLUMNS_MAX {
                return Err(Refusal::at(line.number, "the columns are not numbered in order"));
            }
            self.targets.push(target.trim().to_owned());
            return Ok(());
        }

        let words = line.words();
        if words.iter().all(|word| word.starts_with("col-")) {
            if words.len() != self.targets.len() {
                return Err(Refusal::at(line.number, "the columns are not those that are named"));
            }
            return Ok(());
        }

        if text.contains(',') {
            let cells: Vec<&str> = text.split(',').filter(|cell| !cell.is_empty()).collect();
            let (name, cells) = cells.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
            return self.row(line, cells, name);
        }
        match words.split_last() {
            Some((name, [])) => {
                let place = step_of(name);
                self.block = Some((place.step, place.clients));
                Ok(())
            }
            Some((name, cells)) => self.row(line, cells, name),
            None => Ok(()),
        }
    }

    fn end(self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.results.is_empty() {
            return Err(Refusal::of_file("it has no table of rates"));
        }
        let facts = Facts { tool: Some("a table".to_owned()), ..Facts::default() };
        Ok(FileContents { facts, results: self.results, ..FileContents::default() })
    }
}

/// The units of values per minute, and their counters.
const PER_MINUTE: [&str; 2] = ["nopm", "tpm"];

/// Reads lines of a target and a value.
pub(crate) struct PairReader {
    unit: Option<String>,
    results: Vec<StepResult>,
}

impl PairReader {
    pub fn new(unit: Option<String>) -> Self {
        Self { unit, results: Vec::new() }
    }
}

impl FormatReader for PairReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let parts: Vec<&str> = text.split([',', '\t']).collect();
        let [target, value] = parts[..] else {
            let text = format!("a row has {} columns, not a target and a value", parts.len());
            return Err(Refusal::at(line.number, text));
        };
        if self.results.iter().any(|known| known.target.as_deref() == Some(target)) {
            return Err(Refusal::at(line.number, format!("`{target}` is there twice")));
        }

        let value = measure(value, "the value", line.number)?;
        let unit = self.unit.as_deref().unwrap_or("qps");
        let is_per_minute = PER_MINUTE.contains(&unit);
        let per_second = if is_per_minute { value / 60.0 } else { value };
        let mut found = outcome(target, None, per_second, line.number);
        if is_per_minute {
            found.main = "new_order".to_owned();
            found.role = OpRole::Unknown;
            found.counters.push(Counter::gauge(unit, value));
        }
        self.results.push(found);
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.results.is_empty() {
            return Err(Refusal::of_file("it has no value"));
        }
        let tool = if self.unit.as_deref() == Some("nopm") { "HammerDB" } else { "a table" };
        let facts = Facts { tool: Some(tool.to_owned()), ..Facts::default() };
        Ok(FileContents { facts, results: self.results, ..FileContents::default() })
    }
}
