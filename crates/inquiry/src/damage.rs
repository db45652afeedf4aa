//! The facts about damage in the records of runs on which its remedy depends.

use std::collections::BTreeMap;

use analysis::figures::{Figures, Row};

/// The facts about the damage of some runs on which the remedy depends.
#[derive(Clone, Debug, Default)]
pub struct DamageFacts {
    /// The facts of each run that has a step, by its index.
    runs: BTreeMap<usize, RunFacts>,
    /// The index of the first run with a step that is damaged or lost; `None` if no step is.
    damaged_run: Option<usize>,
}

/// The facts about the damage of a run.
#[derive(Clone, Copy, Debug, Default)]
struct RunFacts {
    /// The targets of some step took turns.
    is_in_turns: bool,
    /// The last repeat of any cell.
    last_repeat: u32,
}

/// A run in turns with a damaged step. The cell of this step has no other to be compared with if it is
/// measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedTurns {
    /// The index of the run.
    pub run: usize,
    /// The last repeat of any cell of the run.
    pub last_repeat: u32,
}

impl DamageFacts {
    /// Returns the facts of all steps of these figures.
    pub fn of(figures: &Figures) -> Self {
        let mut facts = Self::default();
        facts.add_figures(figures, &figures.damages);
        facts
    }

    /// Adds the steps of these figures. Those with one of the `damages` as a reason are damaged or
    /// lost.
    pub fn add_figures(&mut self, figures: &Figures, damages: &[String]) {
        let is_damaged = |row: &Row| row.reasons.iter().any(|reason| damages.contains(reason));
        for row in &figures.rows {
            self.add(row, is_damaged(row));
        }

        // Other missing steps have not begun.
        for row in figures.missing.iter().filter(|row| is_damaged(row)) {
            self.add(row, true);
        }
    }

    /// Adds a step that has begun, or is lost.
    pub fn add(&mut self, row: &Row, is_damaged: bool) {
        let of_run = self.runs.entry(row.run).or_default();
        of_run.is_in_turns |= row.turns.is_some();
        of_run.last_repeat = of_run.last_repeat.max(row.cell.repeat);

        if is_damaged && self.damaged_run.is_none() {
            self.damaged_run = Some(row.run);
        }
    }

    /// Returns the run with the first damaged step if its targets took turns.
    pub fn damaged_turns(&self) -> Option<DamagedTurns> {
        let run = self.damaged_run?;
        let RunFacts { is_in_turns, last_repeat } = *self.runs.get(&run)?;
        is_in_turns.then_some(DamagedTurns { run, last_repeat })
    }
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;

    fn row(run: usize, repeat: u32, turns: Option<u32>) -> Row {
        Row { run, cell: CellKey::new("pg.a", None, 1, repeat), turns, ..Row::default() }
    }

    #[test]
    fn a_step_that_has_not_begun_is_no_repeat_to_add_to() {
        let lost = Row { reasons: vec!["it is gone".to_owned()], ..row(0, 4, None) };
        let figures = Figures {
            rows: vec![row(0, 3, Some(7))],
            missing: vec![row(0, 9, None), lost],
            damages: vec!["it is gone".to_owned()],
            ..Figures::default()
        };
        let damaged = DamageFacts::of(&figures).damaged_turns();
        assert_eq!(damaged, Some(DamagedTurns { run: 0, last_repeat: 4 }));
        assert_eq!(DamageFacts::default().damaged_turns(), None);
    }

    #[test]
    fn the_damage_of_one_group_may_be_in_a_step_of_another() {
        let damages = vec!["it is gone".to_owned()];
        let first = Figures { rows: vec![row(0, 2, Some(7))], ..Figures::default() };
        let damaged = Row { reasons: damages.clone(), ..row(0, 1, None) };
        let second = Figures { rows: vec![damaged], ..Figures::default() };

        let mut facts = DamageFacts::default();
        for figures in [&first, &second] {
            facts.add_figures(figures, &damages);
        }
        assert_eq!(facts.damaged_turns(), Some(DamagedTurns { run: 0, last_repeat: 2 }));
    }
}
