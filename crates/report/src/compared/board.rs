//! Looks up comparisons by target, step and metric, for tables.

use std::collections::BTreeMap;

use analysis::{ComparedStep, REPEATS_CAP, Sample, THROUGHPUT};
use record::CellKey;

use super::Comparison;
use crate::grid::{ACROSS_MAX, Grid, NamedLine};
use crate::matrix::{Keys, Line, Matrix, StepHead};
use crate::names::Names;
use crate::table::{Cell, STEP, Tone};
use crate::worth::{comparable, ended_early, missing_step};

/// The maximum number of targets besides the base that are columns.
const TARGETS_ACROSS_MAX: usize = 4;

/// All repeats of a target with one number of clients and one variant.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedLine {
    /// Its key for all repeats.
    pub cell: CellKey,
    /// Its cells, as indexes of the matrix's lines.
    cells: Vec<usize>,
}

/// Cell, step and metric.
type Key<'a> = (&'a CellKey, &'a str, &'a str);

/// The contents of the tables of a comparison.
pub(crate) struct Board<'a> {
    pub base: &'a str,
    pub matrix: Matrix<'a>,
    /// Lines that are compared with each other are adjacent, the base first.
    pub lines: Vec<RepeatedLine>,
    pub comparison: &'a Comparison<'a>,
    rows: BTreeMap<Key<'a>, &'a ComparedStep>,
    pub keys: Keys,
    pub names: Names<'a>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(comparison: &'a Comparison<'a>) -> Self {
        let base = comparison.compared.base.as_str();
        let matrix = Matrix::new(comparison.run, comparison.figures);
        let mut lines: Vec<RepeatedLine> = Vec::new();
        for (index, line) in matrix.lines.iter().enumerate() {
            let is_same = |folded: &&mut RepeatedLine| folded.cell.is_repeat_of(line.cell);
            match lines.iter_mut().find(is_same) {
                Some(folded) => folded.cells.push(index),
                None => {
                    lines.push(RepeatedLine { cell: line.cell.all_repeats(), cells: vec![index] })
                }
            }
        }
        // The order of the matrix: variant, clients, target.
        lines.sort_by(|a, b| {
            let key = |line: &RepeatedLine| line.cell.target != base;
            (a.cell.load(), key(a)).cmp(&(b.cell.load(), key(b)))
        });
        let rows = comparison.compared.rows.iter();
        let rows = rows.map(|row| ((&row.cell, row.step.as_str(), row.metric.as_str()), row));
        Self {
            base,
            rows: rows.collect(),
            keys: Keys::among(lines.iter().map(|line| &line.cell)),
            lines,
            names: Names::new(&matrix, comparison.figures),
            matrix,
            comparison,
        }
    }

    /// Returns the comparison of a line's metric in a step, if there is one.
    pub(crate) fn row(
        &self,
        line: &RepeatedLine,
        step: &str,
        metric: &str,
    ) -> Option<&'a ComparedStep> {
        self.rows.get(&(&line.cell, step, metric)).copied()
    }

    /// Returns groups of lines that are compared with each other, the base first in each.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[RepeatedLine]> {
        self.lines.chunk_by(|a, b| a.cell.load() == b.cell.load())
    }

    /// Returns the groups in which any line is compared with the base.
    pub(crate) fn compared_groups(&self) -> impl Iterator<Item = &[RepeatedLine]> {
        let is_base = |line: &RepeatedLine| line.cell.target == self.base;
        self.groups().filter(move |lines| {
            let others = lines.iter().filter(|line| !is_base(line)).count();
            others > 0 && others < lines.len()
        })
    }

    /// Returns a grid of the steps without a group, and one for each group of steps. If steps are
    /// rows, there is one for each group of lines, without the base. Tests are rows unless
    /// there are more targets than tests; steps are rows if there are few targets.
    pub(super) fn grids(&self) -> Vec<Grid<'a, &RepeatedLine>> {
        let by_group = self.matrix.measured_by_group();
        let tests = by_group.iter().filter(|(group, _)| group.is_some());
        let tests: usize = tests.map(|(_, steps)| steps.len()).sum();
        let others = self.groups().map(<[_]>::len).max().unwrap_or(1) - 1;
        let grids = by_group.into_iter().flat_map(|(group, steps)| {
            let across_max = match group {
                Some(_) => ACROSS_MAX.max(tests),
                None => TARGETS_ACROSS_MAX,
            };
            if others <= across_max {
                return self.of_tests(group, &steps);
            }
            let lines = self
                .compared_groups()
                .flatten()
                .map(|line| NamedLine { line, names: self.lead_of(line) });
            vec![Grid::of_lines(self.lead(), lines.collect(), group, steps)]
        });
        grids.collect()
    }

    fn of_tests(
        &self,
        group: Option<&str>,
        steps: &[StepHead<'a>],
    ) -> Vec<Grid<'a, &RepeatedLine>> {
        let grids = self.compared_groups().enumerate().map(|(number, lines)| {
            let label = self.keys.group_label(&lines[0].cell);
            let others = lines.iter().filter(|line| line.cell.target != self.base);
            let others =
                others.map(|line| NamedLine { line, names: vec![line.cell.target.clone()] });
            let mut grid = Grid::of_tests((number, label), others.collect(), group, steps.to_vec());
            if group.is_none() {
                grid.lead = vec![STEP.to_string()];
            }
            grid
        });
        grids.collect()
    }

    /// Returns the heads of the columns that identify a line.
    pub(super) fn lead(&self) -> Vec<String> {
        self.keys.lead("target")
    }

    /// Returns the texts of these columns.
    pub(super) fn lead_of(&self, line: &RepeatedLine) -> Vec<String> {
        self.keys.lead_of(&line.cell.target, &line.cell, 0)
    }

    /// Returns the label of a line: `pg17.base cached c8`.
    pub(crate) fn label(&self, line: &RepeatedLine) -> String {
        self.keys.label(&line.cell, 0)
    }

    /// Returns the label without what all targets share, for drawings.
    pub(crate) fn short_label(&self, line: &RepeatedLine) -> String {
        self.names.short(&self.label(line))
    }

    /// Returns the base without what all targets share.
    pub(crate) fn short_base(&self) -> String {
        self.names.short(self.base)
    }

    /// Returns true if any of a line's repeats missed the requested rate; with `or_base`, also if
    /// the base did.
    pub(crate) fn missed_sla(&self, line: &RepeatedLine, step: &str, or_base: bool) -> bool {
        let is_base = |it: &&RepeatedLine| it.cell == line.cell.of_target(self.base);
        let base = self.lines.iter().find(is_base).filter(|_| or_base);
        let mut cells =
            self.cells_of(line).chain(base.into_iter().flat_map(|it| self.cells_of(it)));
        cells.any(|cell| {
            cell.row(step)
                .filter(|row| comparable(row))
                .and_then(|row| row.sla.as_ref())
                .is_some_and(|sla| !sla.met)
        })
    }

    /// Returns the cell for a missing comparison: how the step ended, that it was not run, that the
    /// figure does not exist, or that the base lacks it.
    pub(crate) fn missing_cell(
        &self,
        line: &RepeatedLine,
        step: StepHead<'_>,
        metric: &str,
    ) -> Cell {
        let rows = self.cells_of(line);
        let rows: Vec<_> = rows.filter_map(|cell| cell.row(step.name)).collect();
        if let Some(cell) = rows.iter().find_map(|row| ended_early(row.status)) {
            return cell;
        }
        if !rows.is_empty() {
            // Steps without a throughput have no comparison; a missing metric is not applicable to
            // both sides.
            let is_absent = |row: Option<&ComparedStep>| match row {
                Some(row) => row.values.is_empty(),
                None => metric != THROUGHPUT,
            };
            return if is_absent(self.row(line, step.name, metric)) {
                Cell::not_applicable()
            } else {
                Cell::toned("no base", Tone::Absent)
            };
        }
        let first = self.cells_of(line).next();
        first.map_or_else(Cell::not_run, |cell| missing_step(&self.matrix, cell, step))
    }

    /// Returns the mean of a line's metric in a step; `None` without valid values.
    pub(super) fn mean(
        &self,
        line: &RepeatedLine,
        group: &[RepeatedLine],
        step: &str,
        metric: &str,
    ) -> Option<f64> {
        let samples = if line.cell.target == self.base {
            // Every other target of the group has the base's values.
            let mut rows = group.iter().filter_map(|other| self.row(other, step, metric));
            &rows.find(|row| !row.base_values.is_empty())?.base_values
        } else {
            &self.row(line, step, metric)?.values
        };
        mean_of(samples)
    }

    /// Returns the compared metrics except throughput, in the requested order.
    pub(super) fn metrics(&self) -> Vec<&'a str> {
        let mut metrics: Vec<&str> = Vec::new();
        for row in &self.comparison.compared.rows {
            let has_values = !row.values.is_empty() || !row.base_values.is_empty();
            if row.metric != THROUGHPUT && has_values && !metrics.contains(&row.metric.as_str()) {
                metrics.push(&row.metric);
            }
        }
        metrics
    }

    fn cells_of(&self, line: &RepeatedLine) -> impl Iterator<Item = &Line<'a>> {
        let cells = line.cells.clone();
        cells.into_iter().map(|index| &self.matrix.lines[index])
    }
}

/// Returns the remarks on a comparison besides its verdict. The number of repeats it needs is part
/// of a common note.
pub(super) fn remarks(row: &ComparedStep) -> Vec<String> {
    let mut remarks = row.reasons.clone();
    if row.repeats_needed == Some(REPEATS_CAP) {
        remarks.retain(|reason| !reason.starts_with("to see a change of "));
    }
    remarks
}

/// Returns the geometric mean, whose ratios are the shown ratios, or the arithmetic mean if a value
/// is zero.
pub(crate) fn mean_of(samples: &[Sample]) -> Option<f64> {
    let values = || samples.iter().map(|sample| sample.value);
    let count = samples.len() as f64;
    if samples.is_empty() {
        return None;
    }
    Some(if values().all(|value| value > 0.0) {
        (values().map(f64::ln).sum::<f64>() / count).exp()
    } else {
        values().sum::<f64>() / count
    })
}
