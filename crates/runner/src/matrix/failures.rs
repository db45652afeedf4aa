//! Failed cells: what is told about them, and which other cells are left out.

use record::{CellDir, CellKey, Failure, RecordError, Status};

use super::Matrix;
use crate::ground::events::Events;

/// The failures that were told, and the cells that were left out.
#[derive(Default)]
pub struct Failures {
    told: Vec<Told>,
    /// The cells that were left out because an earlier cell of their target failed.
    pub left_out: Vec<CellKey>,
    /// All cells are tried.
    keeps_going: bool,
}

/// A failure that was reported.
struct Told {
    /// The causes without numbers, which differ between repeats: ports, processes, paths.
    causes: Vec<String>,
    /// The number of cells that failed in this way.
    count: usize,
}

impl Failures {
    /// Returns the failures of an invocation that has begun. `keeps_going` if all cells are tried.
    pub fn new(keeps_going: bool) -> Self {
        Self { keeps_going, ..Self::default() }
    }

    /// Tells why a cell failed, and how many cells failed in the same way before.
    pub fn tell(&mut self, events: &dyn Events, cell: &CellDir) -> Result<(), RecordError> {
        if let Some(failure) = cell.read()?.failure {
            let alike = self.count(&failure) - 1;
            events.cell_failed(&failure, alike);
        }
        Ok(())
    }

    /// Counts a failure, and returns how many were like it, with itself.
    fn count(&mut self, failure: &Failure) -> usize {
        let causes: Vec<String> = failure.causes.iter().map(|text| without_numbers(text)).collect();
        if let Some(told) = self.told.iter_mut().find(|told| told.causes == causes) {
            told.count += 1;
            return told.count;
        }

        self.told.push(Told { causes, count: 1 });
        1
    }

    /// If the cell at `index` failed before it completed a step, leaves out the later cells of its
    /// target, which would probably fail in the same way.
    pub fn leave_out(
        &mut self,
        events: &dyn Events,
        cell: &CellDir,
        matrix: &mut Matrix,
        index: usize,
    ) -> Result<(), RecordError> {
        let mut steps = cell.read_steps()?.into_iter();
        if self.keeps_going || steps.any(|step| step.step().status == Status::Complete) {
            return Ok(());
        }

        // Nothing of the target works yet, so its later cells would fail, too.
        let target = matrix.tasks[index].reference.key.target.clone();
        let left_out = matrix.leave_out(&target, index + 1);

        if !left_out.is_empty() {
            let cells = match left_out.len() {
                1 => "1 other cell".to_owned(),
                count => format!("{count} other cells"),
            };
            let text = format!(
                "{cells} of `{target}` left out, since it failed before its first step was complete; \
                 `--keep-going` tries them"
            );
            events.warn(None, &text);
        }

        self.left_out.extend(left_out);
        Ok(())
    }
}

/// Returns a text with `0` for each number.
fn without_numbers(text: &str) -> String {
    let mut general = String::with_capacity(text.len());
    for letter in text.chars() {
        // Failures that differ only in numbers, such as of processes or of times, are alike.
        match letter {
            '0'..='9' if general.ends_with('0') => {}
            '0'..='9' => general.push('0'),
            letter => general.push(letter),
        }
    }

    general
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_differ_only_in_numbers_are_counted_together() {
        let mut failures = Failures::default();
        let failure = |causes: [&str; 2]| Failure {
            causes: causes.map(str::to_owned).to_vec(),
            ..Failure::default()
        };
        let counts = [
            ["cell pg.a/c1/r1 failed", "port 5432 is in use"],
            ["cell pg.a/c1/r2 failed", "port 40000 is in use"],
            ["cell pg.a/c1/r3 failed", "the disk is full"],
            ["cell pg.a/c1/r14 failed", "port 5 is in use"],
        ]
        .map(|causes| failures.count(&failure(causes)));
        assert_eq!(counts, [1, 2, 1, 3]);
    }
}
