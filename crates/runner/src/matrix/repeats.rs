//! Repeats that are added to the cells of a run.

use plan::Plan;
use record::CellRef;
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
    new.retain(|cell| more.has(cell, cells));

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
    fn has(self, new: &CellRef, known: &[CellRef]) -> bool {
        let repeats = known.iter().filter(|cell| cell.key.is_repeat_of(&new.key));
        let numbers: Vec<u32> = repeats.map(|cell| cell.key.repeat).collect();
        match new.key.kind {
            CellKind::Measured => {}
            // The rate of a run stays as it is; a run that only counted work has none.
            CellKind::Unlimited => {
                let is_of_load = |cell: &CellRef| {
                    cell.key.target == new.key.target && cell.key.clients == new.key.clients
                };
                return self.repeats > 0 && numbers.is_empty() && known.iter().any(is_of_load);
            }
            // One profile shows where the time goes: cells that have one get no other.
            CellKind::Profiled => {
                let is_of_run = known.iter().any(|cell| cell.key.is_same_work_as(&new.key));
                return self.is_profiled && numbers.is_empty() && is_of_run;
            }
            CellKind::Exact => {
                // Their number of clients is their own, whatever the run's.
                let is_of_run = known.iter().any(|cell| cell.key.target == new.key.target);
                return self.is_exact && !numbers.contains(&new.key.repeat) && is_of_run;
            }
        }

        let missing = self.repeats.saturating_sub(numbers.len() as u32);
        match numbers.iter().max() {
            Some(last) => (last + 1..=last + missing).contains(&new.key.repeat),
            None => false,
        }
    }
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

    /// Returns the names of the cells of a run of [`MATRIX`] that began with those that `began`
    /// says, after repeats were added.
    fn more_repeats(
        began: impl Fn(&CellRef) -> bool,
        repeats: u32,
        filters: &[&str],
    ) -> Result<Vec<String>, String> {
        more_cells(began, MoreRepeats { repeats, is_profiled: false, is_exact: false }, filters)
    }

    /// Returns the same after these were added.
    fn more_cells(
        began: impl Fn(&CellRef) -> bool,
        more: MoreRepeats,
        filters: &[&str],
    ) -> Result<Vec<String>, String> {
        let mut plan = plan::parse("p.toml", MATRIX, &[]).unwrap().0;
        let mut cells = references(&plan);
        cells.retain(began);
        let before = cells.clone();
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        add_repeats(&mut plan, &mut cells, more, &filters).map_err(|error| error.to_string())?;
        assert_eq!(cells[..before.len()], before);
        // Whoever goes on later knows them by the cells alone.
        let mut later = plan::parse("p.toml", MATRIX, &[]).unwrap().0;
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
        let added = more_cells(|_| true, more, &["a.x"]).unwrap();
        assert_eq!(added, ["a.x/c1/x1", "a.x/c1/x2", "a.x/c1/x3"]);
        assert_eq!(added.len(), plan::EXACT_REPEATS as usize);
        let first_ones = more_cells(|_| true, more, &["*/*/x1"]).unwrap();
        assert_eq!(first_ones, ["a.x/c1/x1", "a.y/c1/x1"]);
    }
}
