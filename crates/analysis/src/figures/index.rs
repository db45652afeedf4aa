//! Finds rows by the step and the target that they are of, and by their cell.

use std::collections::BTreeMap;

use record::CellKey;
use words::CellKind;

use super::row::{Figures, Row};

/// The workload, load and step of a row: all that two rows share whose targets are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepPlace<'a> {
    pub workload: &'a str,
    /// See [`CellKey::load`].
    pub load: (Option<&'a str>, u32),
    pub step: &'a str,
}

impl<'a> StepPlace<'a> {
    /// Returns the place of a row.
    pub fn of(row: &'a Row) -> Self {
        Self { workload: &row.workload, load: row.cell.load(), step: &row.step }
    }

    /// Returns the place without its step.
    pub fn without_step(self) -> Self {
        Self { step: "", ..self }
    }
}

/// A step of a target, in all repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TargetPlace<'a> {
    pub place: StepPlace<'a>,
    pub target: &'a str,
}

impl<'a> TargetPlace<'a> {
    /// Returns the place and the target of a row.
    pub fn of(row: &'a Row) -> Self {
        Self { place: StepPlace::of(row), target: &row.cell.target }
    }

    /// Returns the key of the target's cells of a kind, in all repeats.
    pub fn cell(self, kind: CellKind) -> CellKey {
        let (variant, clients) = self.place.load;
        CellKey { kind, ..CellKey::new(self.target, variant, clients, 0) }
    }
}

/// A row with its position among all rows of the figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedRow<'a> {
    pub number: usize,
    pub row: &'a Row,
}

/// The rows of figures, without those of profiled cells. A comparison looks up rows for each step,
/// target and metric, so it makes the index once.
#[derive(Debug)]
pub(crate) struct RowIndex<'a> {
    by_place: BTreeMap<(StepPlace<'a>, &'a str), Vec<NumberedRow<'a>>>,
    by_cell: BTreeMap<CellId<'a>, Vec<&'a Row>>,
}

/// A cell of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellId<'a> {
    run: usize,
    cell: &'a CellKey,
    workload: &'a str,
}

impl<'a> CellId<'a> {
    fn of(row: &'a Row) -> Self {
        Self { run: row.run, cell: &row.cell, workload: &row.workload }
    }
}

impl<'a> RowIndex<'a> {
    pub fn new(figures: &'a Figures) -> Self {
        let mut index = Self { by_place: BTreeMap::new(), by_cell: BTreeMap::new() };
        for (number, row) in figures.rows.iter().enumerate() {
            let key = (StepPlace::of(row), row.cell.target.as_str());
            index.by_place.entry(key).or_default().push(NumberedRow { number, row });
            index.by_cell.entry(CellId::of(row)).or_default().push(row);
        }
        index
    }

    /// Returns the repeats of a target's step, in the order of the figures.
    pub fn numbered_rows<'s>(
        &'s self,
        place: StepPlace<'s>,
        target: &'s str,
    ) -> &'s [NumberedRow<'a>] {
        self.by_place.get(&(place, target)).map_or(&[], Vec::as_slice)
    }

    /// Returns the repeats of a target's step, in the order of the figures.
    pub fn rows<'s>(
        &'s self,
        place: StepPlace<'s>,
        target: &'s str,
    ) -> impl Iterator<Item = &'a Row> + use<'s, 'a> {
        self.numbered_rows(place, target).iter().map(|numbered| numbered.row)
    }

    /// Returns whether a target has any step of this workload and load.
    pub fn has_target(&self, place: StepPlace<'_>, target: &str) -> bool {
        self.by_place
            .keys()
            .any(|(other, name)| *name == target && other.without_step() == place.without_step())
    }

    fn steps_of<'s>(&'s self, cell: CellId<'s>) -> &'s [&'a Row] {
        self.by_cell.get(&cell).map_or(&[], Vec::as_slice)
    }

    /// Returns the step that ran before in the same cell.
    pub fn step_before(&self, row: &Row) -> Option<&'a Row> {
        let steps = self.steps_of(CellId::of(row));
        let position = steps.iter().position(|other| other.step == row.step)?;
        steps.get(position.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: &str, repeat: u32, step: &str) -> Row {
        Row {
            cell: CellKey::new(target, None, 1, repeat),
            workload: "insert".to_owned(),
            step: step.to_owned(),
            ..Row::default()
        }
    }

    #[test]
    fn a_step_of_a_target_has_its_repeats_and_no_others() {
        let rows = vec![
            row("a", 1, "load"),
            row("a", 1, "scan"),
            row("b", 1, "load"),
            row("a", 2, "load"),
            Row { workload: "kv".to_owned(), ..row("a", 3, "load") },
        ];
        let figures = Figures { rows, ..Figures::default() };
        let index = RowIndex::new(&figures);

        let place = StepPlace::of(&figures.rows[0]);
        let numbers = index.numbered_rows(place, "a").iter().map(|numbered| numbered.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 3]);
        assert_eq!(index.rows(place, "c").count(), 0);
        assert!(index.has_target(StepPlace { step: "other", ..place }, "b"));
        assert!(!index.has_target(StepPlace { load: (None, 8), ..place }, "b"));
    }

    #[test]
    fn the_step_before_is_of_the_same_cell() {
        let rows = vec![
            row("a", 1, "load"),
            row("a", 2, "load"),
            row("b", 1, "load"),
            row("a", 1, "scan"),
        ];
        let figures = Figures { rows, ..Figures::default() };
        let index = RowIndex::new(&figures);

        let before = index.step_before(&figures.rows[3]).unwrap();
        assert_eq!((before.cell.repeat, before.step.as_str()), (1, "load"));
        assert!(index.step_before(&figures.rows[0]).is_none());
    }
}
