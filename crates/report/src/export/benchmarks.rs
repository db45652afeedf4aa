//! Results in Go's benchmark format for benchstat: one line per step of each cell, so that repeats
//! are samples of one benchmark.
//!
//! benchstat makes a table for each combination of configuration lines. To show targets side by
//! side, only the line `target` differs within a file. Other differences between targets are
//! comments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use analysis::figures::Row;
use record::{Run, Status, StepKind};
use words::metric::GO_BENCHMARKS;

use crate::matrix::StepHead;
use crate::operations;
use crate::terminal::printable;

/// The text, and the results that are not in it.
#[derive(Clone, Debug, Default)]
pub struct Benchmarks {
    /// The text in the format of Go's benchmarks.
    pub text: String,
    /// The number of lines with a result.
    pub result_count: usize,
    /// Steps that were left out because the format can't mark a result as invalid, each with the
    /// reason.
    pub left_out: Vec<String>,
}

/// A configuration line that is written if its value is the same for all results.
type HeadLine = (&'static str, fn(&Run, &Row) -> String);

const HEAD: [HeadLine; 4] = [
    ("run", |run, _| run.name.clone()),
    ("assay-version", |run, _| run.assay.to_string()),
    ("cpu", |run, _| {
        let model = run.host.fact("cpu_model");
        model.unwrap_or_default().to_owned()
    }),
    ("engine", |_, row| row.engine.clone()),
];

/// Returns the valid results of all reported steps except settle steps. A row's `run` is an index
/// of `runs`.
pub fn benchmarks(runs: &[&Run], rows: &[Row]) -> Benchmarks {
    let mut out = Benchmarks::default();
    let mut lines: Vec<(&Row, String)> = Vec::new();
    let mut units: BTreeSet<(String, bool)> = BTreeSet::new();
    for row in rows {
        if row.kind == StepKind::Settle || !row.reported {
            continue;
        }
        let processors = runs.get(row.run).map_or(0, |run| run.host.cpu_count);
        match result(row, processors) {
            Ok((line, used)) => {
                units.extend(used);
                lines.push((row, line));
            }
            Err(why) => out.left_out.push(format!("{}: {why}", place(row))),
        }
    }
    out.result_count = lines.len();

    for (key, value) in HEAD {
        let values = lines.iter();
        let values = values.filter_map(|(row, _)| Some(value(runs.get(row.run)?, row)));
        let values: BTreeSet<String> = values.collect();
        let only = values.first().filter(|_| values.len() == 1);
        let only = only.map(|value| one_line(value));
        if let Some(value) = only.filter(|value| !value.is_empty()) {
            let _ = writeln!(out.text, "{key}: {value}");
        }
    }
    for (unit, more_is_better) in units {
        let better = if more_is_better { "higher" } else { "lower" };
        let _ = writeln!(out.text, "Unit {unit} better={better}");
    }
    // benchstat compares with the first target, so the base comes first.
    let mut targets: Vec<&str> = Vec::new();
    for (row, _) in &lines {
        if !targets.contains(&row.cell.target.as_str()) {
            targets.push(&row.cell.target);
        }
    }
    if let Some(first) = runs.first() {
        targets.sort_by_key(|target| *target != first.base);
    }
    for target in targets {
        let of_target = || lines.iter().filter(|(row, _)| row.cell.target == target);
        let what: BTreeSet<String> = of_target()
            .map(|(row, _)| {
                let Row { build, config, engine, engine_version, .. } = row;
                format!("build {build}, config {config}, {engine} {engine_version}")
            })
            .collect();
        let _ = writeln!(out.text, "\ntarget: {}", one_line(target));
        for what in what {
            let _ = writeln!(out.text, "# {}", one_line(&what));
        }
        for (_, line) in of_target() {
            out.text.push_str(line);
        }
    }
    out
}

/// Returns the line of a step, and its units with whether more is better; or why it has none.
fn result(row: &Row, processors: u32) -> Result<(String, Vec<(String, bool)>), String> {
    if !row.valid || row.status != Status::Complete {
        return Err(if row.reasons.is_empty() {
            "it is not valid".to_owned()
        } else {
            row.reasons.join("; ")
        });
    }
    let rate = row.metric("o/s").filter(|&rate| rate > 0.0);
    let Some(rate) = rate else {
        return Err("nothing was done in it".to_owned());
    };
    let throughput = operations::unit(StepHead::of(row));
    let mut figures = vec![("ns/op".to_owned(), 1e9 / rate, false), (throughput, rate, true)];
    figures.extend(GO_BENCHMARKS.iter().filter_map(|&(name, unit, each)| {
        Some((unit.to_owned(), row.metric(name)? * each, false))
    }));
    let main = row.main_op.as_ref().and_then(|kind| row.ops.get(kind));
    figures.extend(["p50", "p99", "p99.9", "max"].into_iter().filter_map(|name| {
        let us = operations::time_of(main?, &format!("response_us_{name}"))?;
        Some((format!("{name}-response-ns"), us * 1e3, false))
    }));
    let done = (rate * row.seconds).round().max(1.0) as u64;
    let mut line = format!("{} {done}", name(row, processors));
    for (unit, value, _) in &figures {
        let _ = write!(line, " {value} {unit}");
    }
    line.push('\n');
    let units = figures.into_iter().map(|(unit, _, better)| (unit, better));
    Ok((line, units.collect()))
}

/// Returns the name of a benchmark: `BenchmarkInsert/step=l.i0/clients=8-2`. The last number is the
/// number of processors, as in Go.
fn name(row: &Row, processors: u32) -> String {
    let mut letters = row.workload.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let workload: String = first.into_iter().chain(letters).collect();
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
    let variant = row.cell.variant.as_ref();
    let variant = variant.map(|variant| format!("{variant}, ")).unwrap_or_default();
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
