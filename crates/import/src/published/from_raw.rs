//! Tables that follow from the files of tools.

use crate::assembly::{FoundStep, StepKey, Understood};
use crate::formats::{StepResult, step_of, target_of};

use super::grid::{self, Row};
use super::{Cell, Table};

/// The steps of a campaign.
pub struct Raw<'a> {
    steps: Vec<(&'a StepKey, &'a FoundStep, StepResult)>,
}

/// The cells of a table about a step.
struct Wanted<'a> {
    target: Option<&'a str>,
    step: &'a str,
    clients: Option<u32>,
    variant: Option<&'a str>,
    run: Option<&'a str>,
}

impl<'a> Raw<'a> {
    /// Returns the steps of a campaign that have results.
    pub fn new(understood: &'a Understood) -> Self {
        let steps = understood.steps.iter().filter_map(|(key, found)| {
            let (outcome, _) = found.combined()?;
            Some((key, found, outcome))
        });
        Self { steps: steps.collect() }
    }

    /// Returns the only step that a table can mean.
    fn find(&self, wanted: &Wanted<'_>) -> Result<(&'a FoundStep, &StepResult), String> {
        let mut found = self.steps.iter().filter(|(key, ..)| {
            key.is_named(wanted.target, wanted.step)
                && wanted.clients.is_none_or(|clients| clients == key.cell.clients)
                && wanted.run.is_none_or(|run| Some(run) == key.cell.run.as_deref())
                && wanted.variant.is_none_or(|variant| Some(variant) == key.cell.variant.as_deref())
        });
        let (_, step, outcome) =
            found.next().ok_or_else(|| format!("there is no file of {}", wanted.step))?;
        if found.next().is_some() {
            return Err(format!("several files are of {}", wanted.step));
        }
        Ok((step, outcome))
    }
}

/// Returns the rate that the author's tables have of a step.
fn rate(
    table: &Table<'_>,
    step: &str,
    found: &FoundStep,
    outcome: &StepResult,
) -> Result<f64, String> {
    let printed = outcome.printed_rate.ok_or_else(|| "the file has no rate".to_owned())?;
    let scan = table.rule.scan.as_deref().filter(|_| step.starts_with("scan"));
    let Some(scan) = scan else {
        return Ok(printed);
    };

    let rows =
        found.facts.table_rows.ok_or_else(|| "the size of the table is unknown".to_owned())?;
    let thousands = rows as f64 / 1000.0;
    if scan == "rows-per-second" {
        return Ok(printed * thousands);
    }
    let mean = outcome.times_us.get(&outcome.main).and_then(|times| times.get("mean"));
    let mean = mean.ok_or_else(|| "the file has no mean latency".to_owned())?;
    Ok(thousands / (mean / 1e6))
}

/// Rates of tests of sysbench as whole numbers: a column for each target, or blocks with a row for
/// each target and a column for each number of clients.
pub fn rates(table: &Table<'_>) -> Vec<Cell> {
    let targets = grid::targets(table.text);
    let mut cells = Vec::new();
    for block in grid::blocks(table.text) {
        for row in &block.rows {
            cells.extend(rates_of_row(table, &targets, &block.name, row));
        }
    }
    cells
}

/// Returns the rates of a row. `targets` are those of the columns; without them, the row is that of a
/// target in the block of a test.
fn rates_of_row(table: &Table<'_>, targets: &[String], block: &str, row: &Row) -> Vec<Cell> {
    let mut values: Vec<&String> = row.cells.iter().collect();
    values.retain(|value| value.parse::<f64>().is_ok());
    // The numbers of clients are 1, 2, 3 and so on.
    let is_by_clients = targets.is_empty() && values.len() > 1;

    let mut cells = Vec::new();
    for (column, printed) in values.into_iter().enumerate() {
        let (target, test) = match targets.get(column) {
            Some(target) => (target.as_str(), row.label.as_str()),
            None => (row.label.as_str(), block),
        };
        let place = step_of(test);
        let number = column + 1;

        let wanted = Wanted {
            target: Some(&target_of(target)),
            step: &place.step,
            clients: place.clients.or(is_by_clients.then_some(number as u32)),
            variant: table.with("variant"),
            run: table.with("run"),
        };
        let found = table.raw.find(&wanted);
        let rate = found.and_then(|(found, outcome)| rate(table, &place.step, found, outcome));

        let at = format!("{} of {target}, column {number}", place.step);
        cells.push(Cell::new(at, printed, rate.map(|rate| format!("{rate:.0}"))));
    }
    cells
}

/// The file of a test: means of iostat and vmstat, also per operation.
pub fn costs(table: &Table<'_>) -> Vec<Cell> {
    let step = table.with("step").unwrap_or_default();
    let target = table.with("target");
    let clients = table.with("clients").and_then(|clients| clients.parse().ok());
    let variant = table.with("variant");
    let wanted = Wanted { target, step, clients, variant, run: table.with("run") };
    let computed = table.raw.find(&wanted).and_then(|(found, outcome)| {
        let rate = rate(table, step, found, outcome)?;
        costs_of(found, rate)
    });

    let printed = table.text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let printed = printed.flat_map(|line| line.split('\t')).enumerate();
    let cell = |(column, printed): (usize, &str)| {
        let computed = match &computed {
            Ok(costs) => {
                costs.get(column).cloned().ok_or_else(|| "there are more cells".to_owned())
            }
            Err(reason) => Err(reason.clone()),
        };
        Cell::new(format!("cell {}", column + 1), printed, computed)
    };
    printed.map(cell).collect()
}

/// Returns the cells of both lines of a test's file.
fn costs_of(found: &FoundStep, rate: f64) -> Result<Vec<String>, String> {
    let disk = &found.iostat.as_ref().ok_or_else(|| "there is no iostat".to_owned())?.published;
    let host = &found.vmstat.as_ref().ok_or_else(|| "there is no vmstat".to_owned())?.published;
    if disk.count == 0 || host.count == 0 || rate <= 0.0 {
        return Err("there are no samples".to_owned());
    }

    let mean = |sum: f64| sum / disk.count as f64;
    let (reads, read_kb) = (mean(disk.reads), mean(disk.read_kb));
    let (writes, written_kb) = (mean(disk.writes), mean(disk.written_kb));
    let switches = host.switches / host.count as f64;
    let busy = host.busy / host.count as f64;
    Ok(vec![
        disk.count.to_string(),
        format!("{reads:.1}"),
        format!("{:.1}", read_kb / 1024.0),
        format!("{writes:.1}"),
        format!("{:.1}", written_kb / 1024.0),
        format!("{:.3}", reads / rate),
        format!("{:.3}", read_kb / rate),
        format!("{:.3}", written_kb / rate),
        // The rate stands there as sysbench printed it, and that of a scan as a whole number.
        rate_text(rate),
        host.count.to_string(),
        format!("{switches:.0}"),
        format!("{busy:.1}"),
        format!("{:.3}", switches / rate),
        format!("{:.6}", busy / rate),
    ])
}

fn rate_text(rate: f64) -> String {
    if (rate - rate.round()).abs() < 1e-6 && rate.round() % 100.0 == 0.0 {
        return format!("{rate:.0}");
    }
    format!("{rate:.2}")
}

/// Seconds of index creation: a row for each number of threads, and a column for each size.
pub fn index_seconds(table: &Table<'_>) -> Vec<Cell> {
    let step = table.with("action").unwrap_or_default();
    let sizes: Vec<&str> = table.with("sizes").unwrap_or_default().split(' ').collect();
    let mut cells = Vec::new();
    for Row { label, cells: seconds } in grid::csv(table.text) {
        for (size, printed) in sizes.iter().zip(&seconds) {
            let clients = label.parse().ok();
            let variant = Some(*size);
            let wanted = Wanted { target: None, step, clients, variant, run: None };
            let found = table.raw.find(&wanted);
            let seconds =
                found.map(|(_, outcome)| (outcome.elapsed_ns / 1_000_000_000).to_string());
            cells.push(Cell::new(format!("{label} threads, {size}"), printed, seconds));
        }
    }
    cells
}

/// Every second result of some benchmarks of db_bench. A line without a result names the block;
/// `with` has the file's place and the benchmark for it: `range = "range2 seekrandom"`.
pub fn second_lines(table: &Table<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut block = "";
    let mut number = 0;
    for line in table.text.lines() {
        let Some((_, rest)) = line.split_once(" : ").filter(|_| line.contains("micros/op")) else {
            (block, number) = (line.trim(), 0);
            continue;
        };
        number += 2;
        let place = format!("{block}, line {}", number / 2);
        let printed: Vec<&str> =
            rest.split([' ', '(']).filter(|word| word.parse::<f64>().is_ok()).collect();
        let Some((variant, benchmark)) = table.with(block).and_then(|with| with.split_once(' '))
        else {
            cells.push(Cell::new(place, line, Err(format!("`with` has no `{block}`"))));
            continue;
        };

        let step = if number == 1 { benchmark.to_owned() } else { format!("{benchmark}.{number}") };
        let wanted = Wanted {
            target: table.with("target"),
            step: &step,
            clients: None,
            variant: Some(variant),
            run: table.with("run"),
        };
        let values = table.raw.find(&wanted).map(|(_, outcome)| values_of(outcome));
        for (column, printed) in printed.iter().enumerate() {
            let computed = match &values {
                Ok(values) => values.get(column).cloned().unwrap_or_else(|| Err("no value".into())),
                Err(reason) => Err(reason.clone()),
            };
            cells.push(Cell::new(format!("{place}, value {}", column + 1), printed, computed));
        }
    }
    cells
}

/// Returns the numbers of a result of db_bench in their order.
fn values_of(outcome: &StepResult) -> Vec<Result<String, String>> {
    let metric = |name: &str, decimals: usize| match outcome.metrics.get(name) {
        Some(value) => Ok(format!("{value:.decimals$}")),
        None => Err(format!("the result has no {name}")),
    };
    let found = outcome.counters.iter().find(|counter| counter.name == "found_count");
    let found =
        found.map_or(Err("nothing was found".to_owned()), |found| Ok(found.value.to_string()));
    let all = outcome.ops.get(&outcome.main).map_or(0, |ops| ops.ok).to_string();
    vec![metric("usec_op", 3), metric("o/s", 0), metric("mb_sec", 1), found, Ok(all)]
}
