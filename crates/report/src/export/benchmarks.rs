//! Results in Go's benchmark format for benchstat: one line per step of each cell, so that repeats
//! are samples of one benchmark.
//!
//! benchstat makes a table for each combination of configuration lines. To show targets side by
//! side, only the line `target` differs within a file. Other differences between targets are
//! comments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use analysis::{distinct, figures::Row};
use record::{Run, Status, StepKind};
use words::capitalized;
use words::metric::GO_BENCHMARKS;

use crate::model::matrix::StepHead;
use crate::model::operations;
use crate::model::text::printable;

/// The text, and the results that are not in it.
#[derive(Clone, Debug, Default)]
pub struct Benchmarks {
    /// The text in the format of Go's benchmarks.
    pub text: String,
    /// The number of lines with a result.
    pub result_count: usize,
    /// Steps that were left out because the format cannot mark a result as invalid, each with the
    /// reason.
    pub left_out: Vec<String>,
}

/// A configuration line that is written if its value is the same for all results.
struct HeadLine {
    key: &'static str,
    value: fn(&Run, &Row) -> String,
}

const HEAD: [HeadLine; 4] = [
    HeadLine { key: "run", value: |run, _| run.name.clone() },
    HeadLine { key: "assay-version", value: |run, _| run.assay.to_string() },
    HeadLine {
        key: "cpu",
        value: |run, _| run.host.fact("cpu_model").unwrap_or_default().to_owned(),
    },
    HeadLine { key: "engine", value: |_, row| row.engine.clone() },
];

/// A step with its line.
struct BenchmarkResult<'a> {
    row: &'a Row,
    line: String,
}

/// A unit of a result. benchstat must know for each whether more is better.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    name: String,
    more_is_better: bool,
}

/// Returns the valid results of all reported steps except settle steps. A row's `run` is an index
/// of `runs`.
pub fn benchmarks(runs: &[&Run], rows: &[Row]) -> Benchmarks {
    let mut out = Benchmarks::default();
    let mut results: Vec<BenchmarkResult<'_>> = Vec::new();
    let mut units: BTreeSet<Unit> = BTreeSet::new();

    for row in rows {
        if row.kind == StepKind::Settle || !row.reported {
            continue;
        }

        match figures(row) {
            Ok(figures) => {
                let processors = runs.get(row.run).map_or(0, |run| run.host.cpu_count);
                results.push(BenchmarkResult { row, line: line(row, processors, &figures) });
                units.extend(figures.into_iter().map(|figure| figure.unit));
            }
            Err(why) => out.left_out.push(format!("{}: {why}", place(row))),
        }
    }

    out.result_count = results.len();
    write_head(&mut out.text, runs, &results);

    for Unit { name, more_is_better } in units {
        let better = if more_is_better { "higher" } else { "lower" };
        let _ = writeln!(out.text, "Unit {name} better={better}");
    }

    for target in targets(runs, &results) {
        write_target(&mut out.text, target, &results);
    }

    out
}

/// Writes the configuration lines whose value all results share.
fn write_head(text: &mut String, runs: &[&Run], results: &[BenchmarkResult<'_>]) {
    for HeadLine { key, value } in HEAD {
        let values: BTreeSet<String> = results
            .iter()
            .filter_map(|result| Some(value(runs.get(result.row.run)?, result.row)))
            .collect();
        let Some(only) = values.first().filter(|_| values.len() == 1) else {
            continue;
        };

        let shown = one_line(only);
        if !shown.is_empty() {
            let _ = writeln!(text, "{key}: {shown}");
        }
    }
}

/// Returns the targets in the order of their results. benchstat compares with the first one, so the
/// base comes first.
fn targets<'a>(runs: &[&Run], results: &[BenchmarkResult<'a>]) -> Vec<&'a str> {
    let mut targets = distinct(results.iter().map(|result| result.row.cell.target.as_str()));
    if let Some(first) = runs.first() {
        targets.sort_by_key(|target| *target != first.base);
    }
    targets
}

/// Writes the results of a target, with what distinguishes the target as comments.
fn write_target(text: &mut String, target: &str, results: &[BenchmarkResult<'_>]) {
    let of_target: Vec<&BenchmarkResult<'_>> =
        results.iter().filter(|result| result.row.cell.target == target).collect();
    let descriptions: BTreeSet<String> = of_target
        .iter()
        .map(|result| {
            let Row { build, config, engine, engine_version, .. } = result.row;
            format!("build {build}, config {config}, {engine} {engine_version}")
        })
        .collect();

    let _ = writeln!(text, "\ntarget: {}", one_line(target));
    for description in descriptions {
        let _ = writeln!(text, "# {}", one_line(&description));
    }
    for result in of_target {
        text.push_str(&result.line);
    }
}

/// A figure of a result.
struct BenchmarkFigure {
    value: f64,
    unit: Unit,
}

impl BenchmarkFigure {
    fn less_is_better(value: f64, unit: impl Into<String>) -> Self {
        Self { value, unit: Unit { name: unit.into(), more_is_better: false } }
    }
}

/// Returns the figures of a step, or why it has none.
fn figures(row: &Row) -> Result<Vec<BenchmarkFigure>, String> {
    if !row.valid || row.status != Status::Complete {
        return Err(if row.reasons.is_empty() {
            "it is not valid".to_owned()
        } else {
            row.reasons.join("; ")
        });
    }
    let Some(rate) = rate(row) else {
        return Err("nothing was done in it".to_owned());
    };

    let throughput = Unit { name: operations::unit(StepHead::of(row)), more_is_better: true };
    let mut figures = vec![
        BenchmarkFigure::less_is_better(1e9 / rate, "ns/op"),
        BenchmarkFigure { value: rate, unit: throughput },
    ];

    for &(name, unit, each) in &GO_BENCHMARKS {
        if let Some(value) = row.metric(name) {
            figures.push(BenchmarkFigure::less_is_better(value * each, unit));
        }
    }

    let main = row.main_op.as_ref().and_then(|kind| row.ops.get(kind));
    for percentile in ["p50", "p99", "p99.9", "max"] {
        let name = format!("response_us_{percentile}");
        if let Some(us) = main.and_then(|op| operations::time_of(op, &name)) {
            let unit = format!("{percentile}-response-ns");
            figures.push(BenchmarkFigure::less_is_better(us * 1e3, unit));
        }
    }

    Ok(figures)
}

/// Returns the operations per second, if there were any.
fn rate(row: &Row) -> Option<f64> {
    row.metric("o/s").filter(|&rate| rate > 0.0)
}

/// Returns the line of a step: its name, the number of operations, and its figures.
fn line(row: &Row, processors: u32, figures: &[BenchmarkFigure]) -> String {
    let done = (rate(row).unwrap_or(0.0) * row.seconds).round().max(1.0) as u64;
    let mut line = format!("{} {done}", name(row, processors));
    for BenchmarkFigure { value, unit } in figures {
        let _ = write!(line, " {value} {}", unit.name);
    }
    line.push('\n');
    line
}

/// Returns the name of a benchmark: `BenchmarkInsert/step=l.i0/clients=8-2`. The last number is the
/// number of processors, as in Go.
fn name(row: &Row, processors: u32) -> String {
    let workload = capitalized(&row.workload);
    let mut name = format!("Benchmark{}/step={}", part(&workload), part(&row.step));

    if let Some(variant) = &row.cell.variant {
        let _ = write!(name, "/variant={}", part(variant));
    }

    let _ = write!(name, "/clients={}", row.cell.clients);
    if processors > 1 {
        let _ = write!(name, "-{processors}");
    }

    name
}

/// Replaces spaces and slashes in a part of a name.
fn part(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '/' => '_',
            letter if letter.is_whitespace() || printable(letter).is_none() => '_',
            letter => letter,
        })
        .collect()
}

/// Replaces unprintable characters by spaces.
fn one_line(text: &str) -> String {
    text.replace(|letter| printable(letter).is_none(), " ").trim().to_owned()
}

/// Describes a step of a cell.
fn place(row: &Row) -> String {
    let variant = match &row.cell.variant {
        Some(variant) => format!("{variant}, "),
        None => String::new(),
    };
    format!(
        "{} of {} ({variant}c{}, r{})",
        row.step, row.cell.target, row.cell.clients, row.cell.repeat
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_has_no_blank_and_no_slash() {
        assert_eq!(part("a b/c\td\u{202e}\u{1b}"), "a_b_c_d__");
        assert_eq!(one_line("Some\nCPU @ 3\u{202e}GHz \n"), "Some CPU @ 3 GHz");
    }
}
