//! The sizes of tables and indexes after a step.

use analysis::{
    counted,
    figures::{Row, Size, TablePart},
};
use words::masked;

use crate::model::matrix::{Matrix, StepHead};
use crate::model::table::{Cell, Table, anchor};

/// Returns the sizes of tables and indexes after one step. Tables whose names differ only in
/// numbers share their rows. `None` if no engine tells sizes.
pub(crate) fn indexes(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("indexes-{}", anchor(step.name)),
        "Sizes of tables and indexes after the step",
        [matrix.lead(), vec!["table".into(), "part".into()]].concat(),
        ["MB", "B/row", "growth\nMB", "free\nMB", "leaf\ndensity %", "leaf frag-\nmentation %"],
    );

    let mut has_old = false;
    for (line, row) in matrix.lines_in(step) {
        for group in groups(row) {
            let lead = [matrix.lead_of(line), group.lead()].concat();
            has_old |= group.is_old();
            table.push(lead, group.cells());
        }
    }

    if has_old {
        let note =
            "Sizes in parentheses are as of the server's last statistics, after which rows changed";
        table.notes.push(note.into());
    }

    (!table.is_empty()).then_some(table)
}

/// The same part of tables whose names differ only in numbers.
struct SizeGroup<'a>(Vec<&'a Size>);

fn groups(row: &Row) -> Vec<SizeGroup<'_>> {
    let key = |size: &Size| {
        let index = match &size.part {
            TablePart::Index(name) => Some(masked(name)),
            TablePart::All | TablePart::Table => None,
        };
        (masked(&size.table), size.part == TablePart::All, index)
    };

    let mut groups: Vec<SizeGroup<'_>> = Vec::new();
    for size in &row.sizes {
        match groups.iter_mut().find(|group| key(group.0[0]) == key(size)) {
            Some(group) => group.0.push(size),
            None => groups.push(SizeGroup(vec![size])),
        }
    }
    groups
}

impl SizeGroup<'_> {
    fn is_old(&self) -> bool {
        self.0.iter().any(|size| size.is_old)
    }
    fn lead(&self) -> Vec<String> {
        let first = self.0[0];
        let table = match self.0.len() {
            1 => first.table.clone(),
            many => format!("{} of {}", first.table, counted(many, "table")),
        };

        let part = match &first.part {
            TablePart::All => "table and indexes",
            TablePart::Table => "table",
            TablePart::Index(name) => name,
        };

        vec![table, part.to_owned()]
    }

    /// Returns a sum over all tables; `None` if it is unknown for one.
    fn sum(&self, value: impl Fn(&Size) -> Option<f64>) -> Option<f64> {
        self.0.iter().map(|size| value(size)).sum()
    }

    /// Returns a mean over all tables, weighted by size.
    fn mean(&self, value: impl Fn(&Size) -> Option<f64>) -> Option<f64> {
        let weighted = self.sum(|size| Some(value(size)? * size.bytes))?;
        let bytes: f64 = self.0.iter().map(|size| size.bytes).sum();
        (bytes > 0.0).then(|| weighted / bytes)
    }

    fn cells(&self) -> Vec<Cell> {
        let mb = |value: fn(&Size) -> Option<f64>| self.sum(value).map(|bytes| bytes / 1e6);
        let mut megabytes = Cell::number(mb(|size| Some(size.bytes)), 1);
        if self.is_old() {
            megabytes.text = format!("({})", megabytes.text);
        }

        // The rows of all tables, from the sizes and the bytes per row of each.
        let rows = self.sum(|size| Some(size.bytes / size.bytes_per_row?));
        let bytes = self.sum(|size| Some(size.bytes));
        let per_row = bytes.zip(rows).map(|(bytes, rows)| bytes / rows);

        vec![
            megabytes,
            Cell::number(per_row.filter(|bytes| bytes.is_finite()), 1),
            Cell::number(mb(|size| size.growth_bytes), 1),
            Cell::number(mb(|size| size.free_bytes), 1),
            Cell::number(self.mean(|size| size.leaf_density_percent), 1),
            Cell::number(self.mean(|size| size.leaf_fragmentation_percent), 1),
        ]
    }
}
