//! The comparisons where tables look for them: by target, step and metric.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{ComparedStep, REPEATS_CAP, THROUGHPUT, counted};
use record::{CellKey, Status};

use super::Comparison;
use crate::classic::{comparable, ended_early, missing_step};
use crate::matrix::{Line, Matrix, StepHead};
use crate::table::{Cell, Tone};

/// A target with so many clients and a variant, all its repeats in one.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    /// Of all repeats.
    pub cell: CellKey,
    /// Its cells, as indexes of the matrix's lines.
    cells: Vec<usize>,
}

/// Cell, step, metric.
type Key<'a> = (&'a CellKey, &'a str, &'a str);

/// All that tables are made of.
pub(super) struct Board<'a> {
    pub base: &'a str,
    pub matrix: Matrix<'a>,
    /// Those that are compared with each other together, the base first among them.
    pub lines: Vec<Folded>,
    pub comparison: &'a Comparison<'a>,
    rows: BTreeMap<Key<'a>, &'a ComparedStep>,
    has_variants: bool,
    has_clients: bool,
}

impl<'a> Board<'a> {
    pub(super) fn new(comparison: &'a Comparison<'a>) -> Self {
        let base = comparison.compared.base.as_str();
        let matrix = Matrix::new(comparison.run, comparison.figures);
        let mut lines: Vec<Folded> = Vec::new();
        for (index, line) in matrix.lines.iter().enumerate() {
            let is_same = |folded: &&mut Folded| folded.cell.is_repeat_of(line.cell);
            match lines.iter_mut().find(is_same) {
                Some(folded) => folded.cells.push(index),
                None => lines.push(Folded {
                    cell: line.cell.all_repeats(),
                    cells: vec![index],
                }),
            }
        }
        // The order is that of the matrix: variant, clients, target.
        lines.sort_by(|a, b| {
            let key = |line: &Folded| line.cell.target != base;
            (a.cell.load(), key(a)).cmp(&(b.cell.load(), key(b)))
        });
        let key = |row: &'a ComparedStep| -> Key<'a> { (&row.cell, &row.step, &row.metric) };
        let variants: BTreeSet<_> = lines.iter().map(|line| &line.cell.variant).collect();
        let clients: BTreeSet<_> = lines.iter().map(|line| line.cell.clients).collect();
        Self {
            base,
            rows: comparison
                .compared
                .rows
                .iter()
                .map(|row| (key(row), row))
                .collect(),
            has_variants: variants.len() > 1,
            has_clients: clients.len() > 1,
            lines,
            matrix,
            comparison,
        }
    }

    /// The comparison of a line's metric in a step, if there is one.
    pub(super) fn row(&self, line: &Folded, step: &str, metric: &str) -> Option<&'a ComparedStep> {
        self.rows.get(&(&line.cell, step, metric)).copied()
    }

    /// Lines that are compared with each other, group by group, the base first in each.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Folded]> {
        self.lines.chunk_by(|a, b| a.cell.load() == b.cell.load())
    }

    /// Whether any of the lines is compared with the base.
    pub(super) fn has_others(&self, lines: &[Folded]) -> bool {
        let has_base = lines.iter().any(|line| line.cell.target == self.base);
        has_base && lines.iter().any(|line| line.cell.target != self.base)
    }

    /// Heads of the columns that tell lines apart.
    pub(super) fn lead(&self) -> Vec<String> {
        let mut heads = vec!["target".to_string()];
        heads.extend(self.has_variants.then(|| "variant".to_string()));
        heads.extend(self.has_clients.then(|| "clients".to_string()));
        heads
    }

    /// What stands in these columns.
    pub(super) fn lead_of(&self, line: &Folded) -> Vec<String> {
        let mut texts = vec![line.cell.target.to_string()];
        texts.extend(
            self.has_variants
                .then(|| line.cell.variant.clone().unwrap_or_default()),
        );
        texts.extend(self.has_clients.then(|| line.cell.clients.to_string()));
        texts
    }

    /// What lines of a group have in common, where there are several groups: `, cached, 8 clients`.
    pub(super) fn group_label(&self, lines: &[Folded]) -> String {
        let Some(line) = lines.first() else {
            return String::new();
        };
        let mut label = String::new();
        if let (true, Some(variant)) = (self.has_variants, &line.cell.variant) {
            label += &format!(", {variant}");
        }
        if self.has_clients {
            label += &format!(", {}", counted(line.cell.clients as usize, "client"));
        }
        label
    }

    /// The line in one piece of text: `pg17.base cached c8`.
    pub(super) fn label(&self, line: &Folded) -> String {
        let mut label = line.cell.target.to_string();
        if let (true, Some(variant)) = (self.has_variants, &line.cell.variant) {
            label += &format!(" {variant}");
        }
        if self.has_clients {
            label += &format!(" c{}", line.cell.clients);
        }
        label
    }

    /// Whether any of a line's repeats missed the rate of writes that a step asks for.
    pub(super) fn missed_sla(&self, line: &Folded, step: &str) -> bool {
        self.cells_of(line).any(|cell| {
            cell.row(step)
                .filter(|row| comparable(row))
                .and_then(|row| row.sla.as_ref())
                .is_some_and(|sla| !sla.met)
        })
    }

    /// What stands where there is no comparison: how the step ended, that it was not run, that it has no such figure, or
    /// that the base has not.
    pub(super) fn nothing(&self, line: &Folded, step: StepHead<'_>, metric: &str) -> Cell {
        let mut rows = self.cells_of(line).filter_map(|cell| cell.row(step.name));
        let ended = self
            .cells_of(line)
            .filter_map(|cell| cell.row(step.name))
            .find(|row| row.status != Status::Complete);
        if let Some(cell) = ended.and_then(|row| ended_early(row.status)) {
            return cell;
        }
        if rows.next().is_some() {
            // Steps without a throughput are in no comparison; another metric without one is not applicable to both.
            let is_absent = |row: Option<&ComparedStep>| match row {
                Some(row) => row.values.is_empty(),
                None => metric != THROUGHPUT,
            };
            return match is_absent(self.row(line, step.name, metric)) {
                true => Cell::not_applicable(),
                false => Cell::toned("no base", Tone::Absent),
            };
        }
        let first = self.cells_of(line).next();
        first.map_or_else(Cell::not_run, |cell| missing_step(&self.matrix, cell, step))
    }

    /// The mean of a line's throughput or metric in a step, as it is compared; `None`: there is none, or none is valid.
    pub(super) fn mean(
        &self,
        line: &Folded,
        group: &[Folded],
        step: &str,
        metric: &str,
    ) -> Option<f64> {
        let samples = if line.cell.target == self.base {
            // Every other target of the group has the base's values.
            let mut rows = group
                .iter()
                .filter_map(|other| self.row(other, step, metric));
            &rows.find(|row| !row.base_values.is_empty())?.base_values
        } else {
            &self.row(line, step, metric)?.values
        };
        mean(samples.iter().map(|sample| sample.value))
    }

    /// The metrics that any line is compared by, in the order in which they were asked for.
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

    fn cells_of(&self, line: &Folded) -> impl Iterator<Item = &Line<'a>> {
        let cells = line.cells.clone();
        cells.into_iter().map(|index| &self.matrix.lines[index])
    }
}

/// What is to be known of a comparison beside its verdict. How many repeats it would need is said for all together.
pub(super) fn remarks(row: &ComparedStep) -> Vec<String> {
    let mut remarks = row.reasons.clone();
    if row.repeats_needed == Some(REPEATS_CAP) {
        remarks.retain(|reason| !reason.starts_with("to see a change of "));
    }
    remarks
}

/// The geometric mean, whose ratios are the ratios that are shown; of values of which one is zero the arithmetic one.
pub(super) fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count() as f64;
    if count == 0.0 {
        return None;
    }
    if values.clone().all(|value| value > 0.0) {
        let sum: f64 = values.map(f64::ln).sum();
        Some((sum / count).exp())
    } else {
        Some(values.sum::<f64>() / count)
    }
}
