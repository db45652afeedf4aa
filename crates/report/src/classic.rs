//! The tables of the field over all steps: throughput, relative to a base, the rate of writes that was asked for and had,
//! and how far apart clients ended. Those of one step are in `metrics`, `times` and `lsm`.

use std::collections::BTreeSet;

pub(crate) use analysis::throughput;
use analysis::{Fairness, Row, relative as ratio_to, shade_summary};
use record::Status;
use words::Decimals;

use crate::grouped;
use crate::matrix::{Line, Matrix, StepHead};
use crate::number::fixed;
use crate::operations::{counted, step_head, throughput_head, throughput_title};
use crate::table::{Cell, FAILURES, Table, TableRow, Tone};

/// The share of operations from which failures are marked.
const FAILED_SHARE: f64 = 0.01;

/// Why figures are invalid, each reason under a letter.
#[derive(Default)]
pub(crate) struct Footnotes {
    /// The reasons, and where they hold.
    notes: Vec<(String, Vec<String>)>,
}

impl Footnotes {
    /// The letter for the reasons of `row`: the same reasons share one.
    pub(crate) fn letter(&mut self, matrix: &Matrix<'_>, line: &Line<'_>, row: &Row) -> String {
        let place = format!("{} {}", matrix.label(line), row.step);
        self.letter_of(&row.reasons, place)
    }

    /// The same for reasons that hold at `place`.
    pub(crate) fn letter_of(&mut self, reasons: &[String], place: String) -> String {
        let reasons = if reasons.is_empty() {
            "no reason recorded".to_string()
        } else {
            reasons.join("; ")
        };
        let index = match self.notes.iter().position(|(text, _)| *text == reasons) {
            Some(index) => {
                if !self.notes[index].1.contains(&place) {
                    self.notes[index].1.push(place);
                }
                index
            }
            None => {
                self.notes.push((reasons, vec![place]));
                self.notes.len() - 1
            }
        };
        letters(index)
    }

    pub(crate) fn into_notes(self) -> impl Iterator<Item = String> {
        self.notes_in(Tone::Invalid.mark(), "")
    }

    /// The notes, where letters have these before and after them.
    pub(crate) fn notes_in(self, before: &str, after: &str) -> impl Iterator<Item = String> {
        self.notes
            .into_iter()
            .enumerate()
            .map(move |(index, (reasons, places))| {
                let (shown, more) = places.split_at(places.len().min(4));
                let more = if more.is_empty() {
                    String::new()
                } else {
                    format!(" and {} more", more.len())
                };
                format!(
                    "`{before}{}{after}` {reasons} ({}{more})",
                    letters(index),
                    shown.join(", ")
                )
            })
    }
}

/// a b ... z aa ab ...
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 {
        last.to_string()
    } else {
        format!("{}{last}", letters(index / 26 - 1))
    }
}

/// Whether a row's figures may be compared with others.
pub(crate) fn comparable(row: &Row) -> bool {
    row.valid && row.status == Status::Complete
}

/// What stands in the place of the figure of a step that did not end as planned.
pub(crate) fn ended_early(status: Status) -> Option<Cell> {
    match status {
        Status::Complete => None,
        Status::Failed => Some(Cell::toned("failed", Tone::Failed)),
        Status::Interrupted => Some(Cell::toned("interrupted", Tone::Failed)),
        Status::Incomplete => Some(Cell::toned("incomplete", Tone::Failed)),
    }
}

/// A cell that failed between two steps shows it at the first step that it has not done.
pub(crate) fn missing_step(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>) -> Cell {
    let first = matrix
        .measured()
        .find(|candidate| line.row(candidate.name).is_none());
    let told = line
        .rows
        .iter()
        .any(|row| row.status != Status::Complete && matrix.shows(&row.step));
    match line.unfinished.flatten().and_then(ended_early) {
        Some(cell) if !told && first.is_some_and(|first| first.name == step.name) => cell,
        _ if line.missing.contains(&step.name) => Cell::toned("missing", Tone::Absent),
        _ => Cell::not_run(),
    }
}

/// The row of a step that ended as planned, or what stands in the place of its figure.
pub(crate) fn ended<'a>(
    matrix: &Matrix<'a>,
    line: &Line<'a>,
    step: StepHead<'_>,
) -> Result<&'a Row, Cell> {
    let Some(row) = line.row(step.name) else {
        return Err(missing_step(matrix, line, step));
    };
    ended_early(row.status).map_or(Ok(row), Err)
}

/// The rows of a step by target, in the order of the lines: those that may be compared with others.
pub(crate) fn comparable_by_target<'a>(
    lines: &[Line<'a>],
    step: StepHead<'_>,
) -> Vec<(&'a str, Vec<&'a Row>)> {
    let rows = |lines: &[Line<'a>]| {
        let rows = lines.iter().filter_map(|line| line.row(step.name));
        rows.filter(|row| comparable(row)).collect()
    };
    lines
        .chunk_by(|a, b| a.cell.target == b.cell.target)
        .map(|lines| (lines[0].cell.target.as_str(), rows(lines)))
        .collect()
}

/// One table of which the columns are steps: `cell` says what stands where there is a figure to show.
pub(crate) fn per_step<'a>(
    matrix: &Matrix<'a>,
    steps: &[StepHead<'a>],
    mut cell: impl FnMut(&Line<'a>, StepHead<'a>) -> Cell,
) -> Table {
    let rows = matrix.lines.iter().map(|line| TableRow {
        lead: matrix.lead_of(line),
        cells: steps.iter().map(|step| cell(line, *step)).collect(),
        target: false,
    });
    Table {
        lead: matrix.lead(),
        columns: steps.iter().map(|step| step_head(step.name)).collect(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// (a) Throughput: one row per line, one column per step; of steps that belong to groups a table for each group.
pub(crate) fn summary(matrix: &Matrix<'_>) -> Vec<Table> {
    by_group(matrix, summary_of, grouped::throughput)
}

/// A table of the steps that belong to no group, and those of each group: in the same form, or with tests as rows.
fn by_group<'a>(
    matrix: &Matrix<'a>,
    of_steps: impl Fn(&Matrix<'a>, Option<&str>, &[StepHead<'a>]) -> Table,
    of_tests: impl Fn(&Matrix<'a>, &str, &[StepHead<'a>]) -> Vec<Table>,
) -> Vec<Table> {
    let are_rows = grouped::are_rows(matrix);
    let groups = matrix.measured_by_group().into_iter();
    let tables = groups.flat_map(|(group, steps)| match group {
        Some(group) if are_rows => of_tests(matrix, group, &steps),
        group => vec![of_steps(matrix, group, &steps)],
    });
    tables.collect()
}

/// The identifier of the table of a group.
fn grouped_id(id: &str, group: Option<&str>) -> String {
    group.map_or_else(|| id.to_string(), |group| format!("{id}-{}", anchor(group)))
}

/// The throughput of a line in a step, without its colour.
pub(crate) fn throughput_cell(
    matrix: &Matrix<'_>,
    line: &Line<'_>,
    step: StepHead<'_>,
    footnotes: &mut Footnotes,
) -> Cell {
    let row = match ended(matrix, line, step) {
        Ok(row) => row,
        Err(cell) => return cell,
    };
    let all = matrix
        .lines
        .iter()
        .filter_map(|line| throughput(line.row(step.name)?));
    let decimals = Decimals::Rate.of(all);
    match throughput(row) {
        None => Cell::not_applicable(),
        Some(value) if row.valid => Cell::plain(fixed(value, decimals)),
        Some(value) => Cell {
            text: fixed(value, decimals),
            mark: format!("!{}", footnotes.letter(matrix, line, row)),
            tone: Tone::Invalid,
            share: 0,
        },
    }
}

fn summary_of<'a>(matrix: &Matrix<'a>, group: Option<&str>, steps: &[StepHead<'a>]) -> Table {
    let mut footnotes = Footnotes::default();
    let mut table = per_step(matrix, steps, |line, step| {
        throughput_cell(matrix, line, step, &mut footnotes)
    });
    for (column, step) in steps.iter().enumerate() {
        let mut rows = table.rows.iter_mut();
        for lines in matrix.groups() {
            let lines: Vec<_> = lines.iter().collect();
            let cells = rows.by_ref().take(lines.len());
            let cells = cells.map(|row| &mut row.cells[column]);
            shade(cells, &lines, *step);
        }
    }
    table.id = grouped_id("summary", group);
    table.title = throughput_title(matrix, group, steps);
    table.columns = steps
        .iter()
        .map(|step| throughput_head(matrix, *step))
        .collect();
    table.notes.extend(footnotes.into_notes());
    table.with_legend()
}

/// Whether more of what the step is about failed than can be overlooked.
fn has_failures(row: &Row) -> bool {
    let main = row.main_op.as_deref().and_then(|kind| row.ops.get(kind));
    main.is_some_and(|ops| ops.failed as f64 > FAILED_SHARE * (ops.count + ops.failed) as f64)
}

/// Colours the cells of one step among lines that are compared with each other.
pub(crate) fn shade<'c>(
    cells: impl Iterator<Item = &'c mut Cell>,
    lines: &[&Line<'_>],
    step: StepHead<'_>,
) {
    let rows = || lines.iter().map(|line| line.row(step.name));
    let values: Vec<Option<f64>> = rows()
        .map(|row| row.filter(|row| comparable(row)).and_then(throughput))
        .collect();
    let sla_met: Vec<bool> = rows()
        .map(|row| {
            row.and_then(|row| row.sla.as_ref())
                .is_none_or(|sla| sla.met)
        })
        .collect();
    let has_failures: Vec<bool> = rows().map(|row| row.is_some_and(has_failures)).collect();
    let shades = shade_summary(&values, &sla_met);
    for (index, (cell, shade)) in cells.zip(shades).enumerate() {
        if values[index].is_none() {
            continue;
        }
        *cell = Cell::toned(std::mem::take(&mut cell.text), shade.into());
        if !sla_met[index] && cell.tone != Tone::SlaMissed {
            cell.mark.push_str(Tone::SlaMissed.mark());
        }
        if has_failures[index] {
            cell.mark.push_str(FAILURES);
        }
    }
}

/// (b) Throughput relative to the base, likewise; none when there is nothing to compare.
pub(crate) fn relative(matrix: &Matrix<'_>) -> Vec<Table> {
    if !has_others(matrix, &matrix.lines) {
        return Vec::new();
    }
    let mut tables = by_group(matrix, relative_of, grouped::relative);
    if let Some(table) = tables.first_mut() {
        table.notes.push(
            "`assay run --resume RUN --repeats 5` adds repeats, and `assay compare RUN` judges them"
                .to_string(),
        );
    }
    tables
}

/// Whether any of the lines can be compared with a base.
pub(crate) fn has_others(matrix: &Matrix<'_>, lines: &[Line<'_>]) -> bool {
    lines
        .iter()
        .any(|line| line.cell.target != matrix.base && matrix.base_of(line).is_some())
}

/// What stands where the figure of an invalid step would be compared.
pub(crate) fn not_compared() -> Cell {
    Cell {
        text: String::new(),
        mark: Tone::Invalid.mark().to_string(),
        tone: Tone::Invalid,
        share: 0,
    }
}

/// The row of the base that a line's is compared to, if it can be.
pub(crate) fn base_row<'a>(
    matrix: &Matrix<'a>,
    line: &Line<'_>,
    step: StepHead<'_>,
) -> Option<&'a Row> {
    let row = matrix.base_of(line)?.row(step.name)?;
    comparable(row).then_some(row)
}

/// The throughput of a line in a step relative to the base's.
pub(crate) fn relative_cell(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>) -> Cell {
    let Some(row) = line.row(step.name) else {
        return Cell::not_run();
    };
    if let Some(cell) = ended_early(row.status) {
        return cell;
    }
    if !row.valid {
        return not_compared();
    }
    let base = base_row(matrix, line, step);
    match ratio_to(throughput(row), base.and_then(throughput)) {
        Some(ratio) => {
            let tone = match line.cell.target == matrix.base {
                true => Tone::Plain,
                false => Tone::Unjudged,
            };
            let mut cell = Cell::toned(fixed(ratio, 2), tone);
            if row.sla.as_ref().is_some_and(|sla| !sla.met) {
                cell.mark.push_str(Tone::SlaMissed.mark());
            }
            cell
        }
        None if throughput(row).is_none() => Cell::not_applicable(),
        None => Cell::toned("no base", Tone::Absent),
    }
}

fn relative_of<'a>(matrix: &Matrix<'a>, group: Option<&str>, steps: &[StepHead<'a>]) -> Table {
    let mut table = per_step(matrix, steps, |line, step| {
        relative_cell(matrix, line, step)
    });
    table.id = grouped_id("relative", group);
    table.title = match group {
        Some(group) => format!("{group}: throughput relative to {}", matrix.base),
        None => format!("Throughput relative to {}", matrix.base),
    };
    table.with_legend()
}

/// (c) The rate in steps that ask for one, of writes or of their own operations, and under each group of lines the rate
/// that was asked for. Where tests are rows they are that here too.
pub(crate) fn rates(matrix: &Matrix<'_>) -> Vec<Table> {
    let are_rows = grouped::are_rows(matrix);
    let with_rate = |step: &StepHead<'_>| {
        let mut rows = matrix.rows_of(*step);
        rows.any(|row| row.sla.is_some())
    };
    let (tests, steps): (Vec<_>, Vec<_>) = matrix
        .measured()
        .filter(with_rate)
        .partition(|step| step.group.is_some() && are_rows);
    let of_steps = (!steps.is_empty()).then(|| rates_of(matrix, &steps));
    let of_tests = grouped::rates(matrix, &tests).into_iter();
    of_steps.into_iter().chain(of_tests).collect()
}

/// What stands where a line has a rate asked for; `decimals` are those of the step.
pub(crate) fn rate_cell(
    matrix: &Matrix<'_>,
    line: &Line<'_>,
    step: StepHead<'_>,
    decimals: usize,
    footnotes: &mut Footnotes,
) -> Cell {
    let row = match ended(matrix, line, step) {
        Ok(row) => row,
        Err(cell) => return cell,
    };
    let Some(sla) = &row.sla else {
        return Cell::not_applicable();
    };
    let text = fixed(sla.achieved, decimals);
    let missed = if sla.met { "" } else { Tone::SlaMissed.mark() };
    if !row.valid {
        let mark = format!("{missed}!{}", footnotes.letter(matrix, line, row));
        return Cell {
            text,
            mark,
            tone: Tone::Invalid,
            share: 0,
        };
    }
    let tone = match sla.met {
        true => Tone::Plain,
        false => Tone::SlaMissed,
    };
    Cell::toned(text, tone)
}

/// The rate that a step asks for of the lines of a group.
pub(crate) fn rate_asked(lines: &[&Line<'_>], step: StepHead<'_>) -> Option<f64> {
    let mut rows = lines.iter().filter_map(|line| line.row(step.name));
    rows.find_map(|row| Some(row.sla.as_ref()?.target))
}

fn rates_of(matrix: &Matrix<'_>, steps: &[StepHead<'_>]) -> Table {
    let decimals: Vec<usize> = steps
        .iter()
        .map(|step| {
            let slas = matrix
                .lines
                .iter()
                .filter_map(|line| line.row(step.name)?.sla.as_ref());
            Decimals::Rate.of(slas.flat_map(|sla| [sla.target, sla.achieved]))
        })
        .collect();
    let units: BTreeSet<&str> = steps
        .iter()
        .flat_map(|step| matrix.rows_of(*step))
        .filter_map(|row| Some(counted(&row.sla.as_ref()?.kind)))
        .collect();
    let units: Vec<&str> = units.into_iter().collect();
    let of = match units[..] {
        ["rows"] => "Insert rate",
        ["events"] => "Rate of events",
        _ => "Rate of writes",
    };
    let mut footnotes = Footnotes::default();
    let mut table = Table {
        id: "insert-rate".to_string(),
        title: format!(
            "{of} in steps that ask for one, {}/s over all clients",
            units.join(" or ")
        ),
        lead: matrix.lead(),
        columns: steps.iter().map(|step| step_head(step.name)).collect(),
        ..Table::default()
    };
    for group in matrix.groups() {
        for line in group {
            let cells = steps
                .iter()
                .zip(&decimals)
                .map(|(step, decimals)| rate_cell(matrix, line, *step, *decimals, &mut footnotes));
            table.rows.push(TableRow {
                lead: matrix.lead_of(line),
                cells: cells.collect(),
                target: false,
            });
        }
        let Some(line) = group.first() else { continue };
        let mut lead = matrix.lead_of(line);
        lead[0] = "target rate".to_string();
        for (text, head) in lead.iter_mut().zip(matrix.lead()) {
            if matches!(head.as_str(), "repeat" | "run") {
                text.clear();
            }
        }
        let cells = steps.iter().zip(&decimals).map(|(step, decimals)| {
            let lines: Vec<_> = group.iter().collect();
            rate_asked(&lines, *step).map_or_else(Cell::not_run, |target| {
                Cell::plain(fixed(target, *decimals))
            })
        });
        table.rows.push(TableRow {
            lead,
            cells: cells.collect(),
            target: true,
        });
    }
    table.notes.extend(footnotes.into_notes());
    table.with_legend()
}

/// (f) How far apart the clients of a step ended.
pub(crate) fn fairness(matrix: &Matrix<'_>) -> Option<Table> {
    fn of<'a>(line: &Line<'a>, step: &StepHead<'_>) -> Option<(&'a Row, &'a Fairness)> {
        let row = line.row(step.name)?;
        Some((row, row.fairness.as_ref()?))
    }
    let steps: Vec<StepHead<'_>> = matrix
        .measured()
        .filter(|step| matrix.lines.iter().any(|line| of(line, step).is_some()))
        .collect();
    if steps.is_empty() {
        return None;
    }
    let mut table = Table {
        id: "fairness".to_string(),
        title: "Fairness: how long after the first client the last had done its work, in seconds and in percent of the first's time"
            .to_string(),
        lead: matrix.lead(),
        columns: steps
            .iter()
            .flat_map(|step| {
                let name = step_head(step.name);
                [format!("{name}\napart"), format!("{name}\npct")]
            })
            .collect(),
        ..Table::default()
    };
    for line in &matrix.lines {
        let cells = steps.iter().flat_map(|step| {
            let Some((row, fairness)) = of(line, step) else {
                return [Cell::not_run(), Cell::not_run()];
            };
            let mut cells = [
                Cell::plain(fixed(fairness.abs_seconds, 3)),
                Cell::plain(fixed(fairness.pct, 1)),
            ];
            if !comparable(row) {
                cells.iter_mut().for_each(|cell| cell.tone = Tone::Invalid);
                cells[1].mark = Tone::Invalid.mark().to_string();
            }
            cells
        });
        let cells: Vec<Cell> = cells.collect();
        if cells.iter().any(|cell| cell.tone != Tone::Absent) {
            table.rows.push(TableRow {
                lead: matrix.lead_of(line),
                cells,
                target: false,
            });
        }
    }
    Some(table.with_legend())
}

/// What the engine's counters did in a step: one row per counter, one column per line.
pub(crate) fn counters(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let lines: Vec<_> = matrix
        .lines
        .iter()
        .filter_map(|line| Some((line, line.row(step.name)?)))
        .collect();
    let names: BTreeSet<&str> = lines
        .iter()
        .flat_map(|(_, row)| row.counters.keys().map(String::as_str))
        .collect();
    if names.is_empty() {
        return None;
    }
    let rows = names.into_iter().map(|name| TableRow {
        lead: vec![name.to_string()],
        cells: lines
            .iter()
            .map(|(_, row)| match row.counters.get(name) {
                Some(value) if value.fract() == 0.0 => Cell::plain(fixed(*value, 0)),
                Some(value) => Cell::plain(fixed(*value, 3)),
                None => Cell::not_applicable(),
            })
            .collect(),
        target: false,
    });
    Some(Table {
        id: format!("counters-{}", anchor(step.name)),
        title: "Counters of the engine: what they did in the step".to_string(),
        lead: vec!["counter".to_string()],
        columns: lines.iter().map(|(line, _)| matrix.label(line)).collect(),
        rows: rows.collect(),
        ..Table::default()
    })
}

/// How long each step was, settle steps included; tests that are rows in a table of their own.
pub(crate) fn lengths(matrix: &Matrix<'_>) -> Vec<Table> {
    let are_rows = grouped::are_rows(matrix);
    let (tests, steps): (Vec<_>, Vec<_>) = matrix
        .steps
        .iter()
        .partition(|step| are_rows && step.group.is_some());
    let mut table = per_step(matrix, &steps, |line, step| length_cell(matrix, line, step));
    table.id = "lengths".to_string();
    table.title = "Length of each step in seconds".to_string();
    let (of_tests, usual) = grouped::lengths(matrix, &tests);
    table.notes.extend(usual);
    std::iter::once(table).chain(of_tests).collect()
}

/// How long a step of a line was.
pub(crate) fn length_cell(matrix: &Matrix<'_>, line: &Line<'_>, step: StepHead<'_>) -> Cell {
    match line.row(step.name) {
        None => missing_step(matrix, line, step),
        Some(row) => ended_early(row.status).unwrap_or_else(|| Cell::plain(fixed(row.seconds, 1))),
    }
}

/// A name as part of an identifier; names that differ stay different.
pub(crate) fn anchor(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_string(),
            '.' => "-".to_string(),
            other => format!("-{:x}-", u32::from(other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footnote_letters_go_on_after_z() {
        assert_eq!(
            [0, 25, 26, 51, 52].map(letters),
            ["a", "z", "aa", "az", "ba"]
        );
    }

    #[test]
    fn anchors_hold_only_what_an_identifier_may() {
        assert_eq!(anchor("l.i0"), "l-i0");
        assert_eq!(anchor("<b>"), "-3c-b-3e-");
    }
}
