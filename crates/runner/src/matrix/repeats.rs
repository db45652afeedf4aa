//! Repeats that are added to the cells of a run.

use plan::Plan;
use record::{CellKey, CellRef};
use words::CellKind;

use super::only::CellFilters;
use super::references;
use crate::ground::failure::UsageError;

/// Repeats to add to a run.
#[derive(Clone, Copy, Debug)]
pub struct MoreRepeats {
    /// The total number of repeats of each cell.
    pub repeats: u32,
    /// Each cell also gets a repeat with a profiler.
    pub is_profiled: bool,
    /// Each target also gets exact cells.
    pub is_exact: bool,
}

/// Adds repeats to the cells of a run that match `filters`, in the plan's order: until each has
/// `repeats`, and the profiled and exact ones that are asked for. Their numbers follow those of the
/// run, which may have only one of the plan's repeats. Adds no target and no load that the run did
/// not begin with.
pub fn add_repeats(
    plan: &mut Plan,
    cells: &mut Vec<CellRef>,
    more: MoreRepeats,
    filters: &[String],
) -> Result<(), UsageError> {
    // A plan with enough repeats, whose cells come in the right order.
    let planned = plan.repeats;
    raise_repeats(plan, cells);
    plan.repeats += more.repeats;
    plan.profile.repeats = plan.profile.repeats.max(u32::from(more.is_profiled));
    if more.is_exact {
        plan.exact.repeats = plan.exact.repeats.max(plan::EXACT_REPEATS);
    }

    let mut new = references(plan);
    new.retain(|cell| more.adds(cell, cells));

    // Filters may select cells that are only added now.
    let all: Vec<CellRef> = cells.iter().chain(&new).cloned().collect();
    let only = CellFilters::new(filters, &all)?;
    cells.extend(new.into_iter().filter(|new| only.matches(new)));

    plan.repeats = planned;
    raise_repeats(plan, cells);
    Ok(())
}

impl MoreRepeats {
    /// Returns true if a cell of the plan is to be added to the `known` ones of the run.
    fn adds(self, new: &CellRef, known: &[CellRef]) -> bool {
        let repeats = known.iter().filter(|cell| cell.key.is_repeat_of(&new.key));
        let numbers: Vec<u32> = repeats.map(|cell| cell.key.repeat).collect();

        match new.key.kind {
            CellKind::Measured => {
                let last = numbers.iter().max().copied();
                if last.is_none() && !is_only_counted(&new.key, known) {
                    return false;
                }
                let first = last.map_or(1, |last| last + 1);
                let missing = self.repeats.saturating_sub(numbers.len() as u32);
                (first..first + missing).contains(&new.key.repeat)
            }
            // The rate of a run stays as it is.
            CellKind::Unlimited => {
                let is_needed = self.repeats > 0 || self.is_profiled;
                let is_of_load = known.iter().any(|cell| {
                    cell.key.target == new.key.target && cell.key.clients == new.key.clients
                });
                let is_of_run = is_of_load || is_only_counted(&new.key, known);
                is_needed && numbers.is_empty() && is_of_run
            }
            // One profile shows where the time goes: cells that have one get no other.
            CellKind::Profiled => {
                let is_of_load = known.iter().any(|cell| cell.key.is_same_work_as(&new.key));
                let is_of_run = is_of_load || is_only_counted(&new.key, known);
                self.is_profiled && numbers.is_empty() && is_of_run
            }
            CellKind::Exact => {
                // Their number of clients is their own, whatever the run's.
                let is_of_run = known.iter().any(|cell| cell.key.target == new.key.target);
                self.is_exact && !numbers.contains(&new.key.repeat) && is_of_run
            }
        }
    }
}

/// Returns true if a run has only counted work, that of a cell's target included. It gets all loads of
/// the plan: exact cells have a number of clients of their own.
fn is_only_counted(new: &CellKey, known: &[CellRef]) -> bool {
    let has_target = known.iter().any(|cell| cell.key.target == new.target);
    has_target && known.iter().all(|cell| cell.key.kind == CellKind::Exact)
}

/// Raises the plan's repeats to those that were added to its run.
pub fn raise_repeats(plan: &mut Plan, cells: &[CellRef]) {
    for cell in cells.iter().map(|cell| &cell.key) {
        let repeats = match cell.kind {
            CellKind::Unlimited => continue,
            CellKind::Measured => &mut plan.repeats,
            CellKind::Profiled => &mut plan.profile.repeats,
            CellKind::Exact => &mut plan.exact.repeats,
        };
        *repeats = (*repeats).max(cell.repeat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::numbered;

    const MATRIX: &str = "clients = [1, 8]\nrepeats = 2\n[workload.insert]\n[build.a]\nsqlite = \"bundled\"\n\
                          [config.sqlite.x]\n[config.sqlite.y]\n";

    /// A plan that only counts work, of a test at a share of its highest rate.
    const COUNTED: &str = "clients = [2, 8]\nrepeats = 0\n[exact]\nrepeats = 2\n[workload.transactions]\nuse = \"tpcb\"\n\
                           rate = \"70% of max\"\n[build.a]\nsqlite = \"bundled\"\n\
                           [config.sqlite.x]\n[config.sqlite.y]\n";

    /// Returns the names of the cells of a run of [`MATRIX`] that began with those that `began`
    /// says, after repeats were added.
    fn more_repeats(
        began: impl Fn(&CellRef) -> bool,
        repeats: u32,
        filters: &[&str],
    ) -> Result<Vec<String>, String> {
        let more = MoreRepeats { repeats, is_profiled: false, is_exact: false };
        more_cells(MATRIX, began, more, filters)
    }

    /// Returns the same of a run of the plan `text`, after these were added.
    fn more_cells(
        text: &str,
        began: impl Fn(&CellRef) -> bool,
        more: MoreRepeats,
        filters: &[&str],
    ) -> Result<Vec<String>, String> {
        let mut plan = plan::parse("p.toml", text, &[]).unwrap().0;
        let mut cells = references(&plan);
        cells.retain(began);
        let before = cells.clone();
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        add_repeats(&mut plan, &mut cells, more, &filters).map_err(|error| error.to_string())?;
        assert_eq!(cells[..before.len()], before);
        // Whoever continues later knows them by the cells alone.
        let mut later = plan::parse("p.toml", text, &[]).unwrap().0;
        raise_repeats(&mut later, &cells);
        assert!(numbered(&later, &cells).is_ok());
        let new = cells[before.len()..].iter();
        Ok(new.map(|cell| cell.name().to_owned()).collect())
    }

    #[test]
    fn repeats_are_added_by_turns_to_the_cells_that_match() {
        let all = |_: &CellRef| true;
        assert_eq!(
            more_repeats(all, 4, &["*/c8/*"]).unwrap(),
            ["a.x/c8/r3", "a.y/c8/r3", "a.y/c8/r4", "a.x/c8/r4"]
        );
        assert_eq!(more_repeats(all, 3, &[]).unwrap().len(), 4);
        assert_eq!(more_repeats(all, 2, &[]).unwrap(), [""; 0]);
        assert_eq!(more_repeats(all, 1, &["a.x"]).unwrap(), [""; 0]);
        let refused = more_repeats(all, 4, &["*/c8/r5"]).unwrap_err();
        assert!(refused.contains("`--only */c8/r5` matches no cell"), "{refused}");
    }

    #[test]
    fn repeats_are_added_to_no_cell_that_the_run_began_without() {
        let began = |cell: &CellRef| {
            cell.key.target == "a.y" && cell.key.clients == 1 && cell.key.repeat == 1
        };
        assert_eq!(more_repeats(began, 3, &[]).unwrap(), ["a.y/c1/r2", "a.y/c1/r3"]);
        assert!(more_repeats(began, 3, &["a.x"]).is_err());
    }

    #[test]
    fn repeats_are_added_to_those_that_a_run_began_with() {
        let began = |cell: &CellRef| cell.key.repeat == 2 && cell.key.clients == 8;
        assert_eq!(more_repeats(began, 3, &["a.x"]).unwrap(), ["a.x/c8/r3", "a.x/c8/r4"]);
        assert_eq!(more_repeats(began, 1, &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn each_target_gets_as_many_exact_cells_as_a_plan_has_by_default() {
        let more = MoreRepeats { repeats: 0, is_profiled: false, is_exact: true };
        let added = more_cells(MATRIX, |_| true, more, &["a.x"]).unwrap();
        assert_eq!(added, ["a.x/c1/x1", "a.x/c1/x2", "a.x/c1/x3"]);
        assert_eq!(added.len(), plan::EXACT_REPEATS as usize);
        let first_ones = more_cells(MATRIX, |_| true, more, &["*/*/x1"]).unwrap();
        assert_eq!(first_ones, ["a.x/c1/x1", "a.y/c1/x1"]);
    }

    #[test]
    fn a_run_that_only_counted_work_gets_all_loads_of_its_targets() {
        let more = MoreRepeats { repeats: 2, is_profiled: false, is_exact: false };
        let began = |cell: &CellRef| cell.key.target == "a.x";
        let mut added = more_cells(COUNTED, began, more, &[]).unwrap();
        added.sort_unstable();
        let rates = ["a.x/c2/u1", "a.x/c8/u1"];
        let repeats = ["a.x/c2/r1", "a.x/c2/r2", "a.x/c8/r1", "a.x/c8/r2"];
        let mut expected = [&rates[..], &repeats].concat();
        expected.sort_unstable();
        assert_eq!(added, expected);

        let profiled = MoreRepeats { repeats: 0, is_profiled: true, is_exact: false };
        let mut added = more_cells(COUNTED, began, profiled, &["*/c8/*"]).unwrap();
        added.sort_unstable();
        assert_eq!(added, ["a.x/c8/p1", "a.x/c8/u1"]);

        let counted = MoreRepeats { repeats: 0, is_profiled: false, is_exact: true };
        assert!(more_cells(COUNTED, began, counted, &["*/*/u1"]).is_err());
    }
}
