//! Looks up comparisons by target, step and metric, for tables.

use std::collections::BTreeMap;

use analysis::compare::{ComparedStep, Overall, THROUGHPUT, mean_of_samples};
use record::CellKey;

use crate::model::comparison::Comparison;
use crate::model::grid::{ACROSS_MAX, Grid, NamedLine, TestLines};
use crate::model::matrix::{CellLine, Keys, Matrix, MeasuredSteps, StepHead};
use crate::model::names::Names;
use crate::model::table::{Cell, Tone};
use crate::model::worth::{comparable, ended_early, missing_step};

/// The maximum number of targets besides the base that are columns.
const TARGETS_ACROSS_MAX: usize = 4;

/// All repeats of a target with one number of clients and one variant.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedLine {
    /// The key of all repeats.
    pub cell: CellKey,
    /// The cells of the repeats, as indexes of the matrix's lines.
    cells: Vec<usize>,
}

/// The key of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey<'a> {
    cell: &'a CellKey,
    step: &'a str,
    metric: &'a str,
}

impl<'a> RowKey<'a> {
    fn of(row: &'a ComparedStep) -> Self {
        Self { cell: &row.cell, step: &row.step, metric: &row.metric }
    }
}

/// The contents of the tables of a comparison.
pub(crate) struct Board<'a> {
    pub base: &'a str,
    pub matrix: Matrix<'a>,
    /// Lines that are compared with each other are adjacent, the base first.
    pub lines: Vec<RepeatedLine>,
    pub comparison: &'a Comparison<'a>,
    rows: BTreeMap<RowKey<'a>, &'a ComparedStep>,
    pub keys: Keys,
    pub names: Names<'a>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(comparison: &'a Comparison<'a>) -> Self {
        let base = comparison.compared.base.as_str();
        let matrix = Matrix::new(comparison.run, comparison.figures);
        let lines = repeated_lines(&matrix, base);
        let rows = comparison.compared.rows.iter();

        Self {
            base,
            rows: rows.map(|row| (RowKey::of(row), row)).collect(),
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
        self.rows.get(&RowKey { cell: &line.cell, step, metric }).copied()
    }

    /// Returns the comparisons of a line's throughput, step by step.
    pub(super) fn throughput_of(
        &self,
        line: &RepeatedLine,
    ) -> impl Iterator<Item = &'a ComparedStep> {
        let rows = self.comparison.compared.rows.iter();
        rows.filter(move |row| row.cell == line.cell && row.metric == THROUGHPUT)
    }

    /// Returns the mean of all steps of a target; `None` if it has none, or no ratio.
    pub(crate) fn overall(&self, target: &str) -> Option<&'a Overall> {
        let mut means = self.comparison.compared.overall.iter();
        means.find(|mean| mean.compared.cell.target == target && mean.compared.ratio.is_some())
    }

    /// Returns groups of lines that are compared with each other, the base first in each.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[RepeatedLine]> {
        self.lines.chunk_by(|a, b| a.cell.load() == b.cell.load())
    }

    /// Returns the groups in which any line is compared with the base.
    pub(crate) fn compared_groups(&self) -> impl Iterator<Item = &[RepeatedLine]> {
        self.groups().filter(|lines| {
            let others = lines.iter().filter(|line| line.cell.target != self.base).count();
            others > 0 && others < lines.len()
        })
    }

    /// Returns the largest number of targets that are compared with the base.
    fn target_count(&self) -> usize {
        self.compared_groups().map(|lines| lines.len() - 1).max().unwrap_or(0)
    }

    /// Returns whether all comparisons are those of one target, with each number of clients and
    /// variant. [`super::verdicts`] are then of all metrics.
    pub(crate) fn has_one_target(&self) -> bool {
        self.target_count() == 1
    }

    /// Returns the name of the run that is compared; `None` if there are several.
    pub(super) fn only_run(&self) -> Option<&'a str> {
        match self.comparison.runs {
            [run] => Some(&run.name),
            _ => None,
        }
    }

    /// Returns the grids of all steps. If there are few targets, all steps are rows: there is one
    /// grid for each group of lines, without the base. With more targets only tests are rows, and
    /// with more targets than tests nothing is: there is one grid for each group of steps.
    pub(super) fn grids(&self) -> Vec<Grid<'a, &RepeatedLine>> {
        let MeasuredSteps { others, tests } = self.matrix.measured_by_kind();
        let targets = self.target_count();

        if targets <= TARGETS_ACROSS_MAX {
            return self.of_tests(&[others, tests].concat());
        }

        if targets <= ACROSS_MAX.max(tests.len()) {
            let mut grids = vec![self.of_lines(None, others)];
            grids.extend(self.of_tests(&tests));
            return grids;
        }

        let by_group = self.matrix.measured_by_group().into_iter();
        by_group.map(|(group, steps)| self.of_lines(group, steps)).collect()
    }

    /// Returns a grid whose rows are all compared lines.
    fn of_lines(&self, group: Option<&str>, steps: Vec<StepHead<'a>>) -> Grid<'a, &RepeatedLine> {
        let lines = self.compared_groups().flatten();
        let named = lines.map(|line| NamedLine { line, names: self.lead_of(line) });
        Grid::of_lines(self.lead(), named.collect(), group, steps)
    }

    /// Returns a grid for each group of lines. Its rows are steps, its columns the lines but the
    /// base.
    fn of_tests(&self, steps: &[StepHead<'a>]) -> Vec<Grid<'a, &RepeatedLine>> {
        let grids = self.compared_groups().enumerate().map(|(number, lines)| {
            let others = lines.iter().filter(|line| line.cell.target != self.base);
            let named =
                others.map(|line| NamedLine { line, names: vec![line.cell.target.clone()] });

            let lines = TestLines {
                number,
                label: self.keys.group_label(&lines[0].cell),
                lines: named.collect(),
            };
            Grid::of_tests(lines, steps.to_vec())
        });
        grids.collect()
    }

    /// Returns the column headers that identify a line.
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
    /// the base did. A line without a valid result missed nothing.
    pub(crate) fn missed_sla(&self, line: &RepeatedLine, step: &str, or_base: bool) -> bool {
        if self.has_missed(line, step) {
            return true;
        }

        let has_result = self.cells_of(line).filter_map(|cell| cell.row(step)).any(comparable);
        if !or_base || !has_result {
            return false;
        }
        let base_cell = line.cell.of_target(self.base);
        let base = self.lines.iter().find(|line| line.cell == base_cell);
        base.is_some_and(|base| self.has_missed(base, step))
    }

    fn has_missed(&self, line: &RepeatedLine, step: &str) -> bool {
        self.cells_of(line)
            .filter_map(|cell| cell.row(step))
            .filter(|row| comparable(row))
            .filter_map(|row| row.sla.as_ref())
            .any(|sla| !sla.met)
    }

    /// Returns the cell for a missing comparison: how the step ended, that it was not run, that the
    /// figure does not exist, or that the base lacks it.
    pub(crate) fn missing_cell(
        &self,
        line: &RepeatedLine,
        step: StepHead<'_>,
        metric: &str,
    ) -> Cell {
        let rows: Vec<_> = self.cells_of(line).filter_map(|cell| cell.row(step.name)).collect();
        if let Some(cell) = rows.iter().find_map(|row| ended_early(row.status)) {
            return cell;
        }
        if rows.is_empty() {
            let first = self.cells_of(line).next();
            return first.map_or_else(Cell::not_run, |cell| missing_step(&self.matrix, cell, step));
        }

        let has_figure = match self.row(line, step.name, metric) {
            Some(row) => !row.values.is_empty(),
            // Another metric than throughput lacks a comparison only if neither side has it.
            None => metric == THROUGHPUT,
        };
        if has_figure { Cell::toned("no base", Tone::Absent) } else { Cell::not_applicable() }
    }

    /// Returns the mean of a line's metric in a step; `None` without valid values.
    pub(crate) fn mean(
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
        mean_of_samples(samples)
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

    /// Returns whether a comparison of this metric shows a change, or somebody asked for it.
    pub(super) fn shows_change_of(&self, metric: &str) -> bool {
        let mut rows = self.comparison.compared.rows.iter().filter(|row| row.metric == metric);
        self.is_asked_for(metric) || rows.any(|row| row.verdict.is_change())
    }

    /// Returns whether somebody asked for this metric.
    pub(super) fn is_asked_for(&self, metric: &str) -> bool {
        self.comparison.compared.shown_metrics.iter().any(|shown| shown == metric)
    }

    /// Returns whether any figure is that of several repeats.
    pub(super) fn has_repeats(&self) -> bool {
        let mut rows = self.comparison.compared.rows.iter();
        rows.any(|row| row.values.len() > 1 || row.base_values.len() > 1)
    }

    fn cells_of(&self, line: &RepeatedLine) -> impl Iterator<Item = &CellLine<'a>> {
        let cells = line.cells.clone();
        cells.into_iter().map(|index| &self.matrix.lines[index])
    }
}

/// Returns the lines of a matrix with their repeats folded. Lines that are compared with each other
/// are adjacent, the base first.
fn repeated_lines(matrix: &Matrix<'_>, base: &str) -> Vec<RepeatedLine> {
    let mut lines: Vec<RepeatedLine> = Vec::new();
    for (index, line) in matrix.lines.iter().enumerate() {
        match lines.iter_mut().find(|folded| folded.cell.is_repeat_of(line.cell)) {
            Some(folded) => folded.cells.push(index),
            None => {
                lines.push(RepeatedLine { cell: line.cell.all_repeats(), cells: vec![index] });
            }
        }
    }

    // A stable sort: otherwise lines keep the order of the matrix.
    lines.sort_by(|a, b| {
        let by_load = a.cell.load().cmp(&b.cell.load());
        by_load.then_with(|| (a.cell.target != base).cmp(&(b.cell.target != base)))
    });
    lines
}
