//! Compares any target of one run with any target of another, or of the same run.

use record::{CellKey, Run, Target};

use super::{Incomparable, Recorded, build_differences, notes, refuse_copies, refuse_other_work};
use crate::figures::{Figures, run_label};
use crate::settings::{Settings, Side, with_base};

/// A target of one of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTarget<'a> {
    /// The index of the run, from 0.
    pub run: usize,
    /// The name of the target in that run.
    pub target: &'a str,
}

/// The two sides of a comparison, with the names under which they are compared.
struct Pair<'a> {
    sides: [RunTarget<'a>; 2],
    names: [String; 2],
}

impl Pair<'_> {
    /// Renames the target of a cell. Returns false if the cell is of neither side.
    fn rename(&self, run: usize, cell: &mut CellKey) -> bool {
        let is_of = |side: &RunTarget<'_>| side.run == run && side.target == cell.target;
        let Some(place) = self.sides.iter().position(is_of) else {
            return false;
        };
        cell.target.clone_from(&self.names[place]);
        true
    }

    /// Keeps the figures of the two targets only, and renames them.
    fn keep_only(&self, figures: &mut Figures) {
        for rows in [&mut figures.rows, &mut figures.missing] {
            rows.retain_mut(|row| self.rename(row.run, &mut row.cell));
        }
        figures.profiled.retain_mut(|step| self.rename(step.row.run, &mut step.row.cell));
        figures.exact.retain_mut(|step| self.rename(step.row.run, &mut step.row.cell));
        figures.unfinished.retain_mut(|cell| self.rename(cell.run, &mut cell.cell));
        figures.begun.retain_mut(|cell| self.rename(cell.run, &mut cell.cell));
    }
}

/// Keeps the figures of two targets only, and renames them if they are of two runs. Returns a run
/// of both targets, whose base is the first, and notes on how the runs differ.
///
/// # Errors
/// The runs did different work, are copies of each other, or lack a target.
pub fn by_pair(
    runs: &[Recorded],
    figures: &mut Figures,
    sides: [RunTarget<'_>; 2],
) -> Result<(Run, Vec<String>), Incomparable> {
    let targets = [target_of(runs, sides[0])?, target_of(runs, sides[1])?];
    let is_of_two_runs = sides[0].run != sides[1].run;
    if !is_of_two_runs && sides[0].target == sides[1].target {
        return Err(Incomparable {
            message: format!("both sides are the target `{}` of one run", sides[0].target),
            help: "choose another target, or another run",
        });
    }

    // Targets of one run had the same host and did the same work.
    let mut remarks = Vec::new();
    if is_of_two_runs {
        refuse_copies(runs)?;
        refuse_other_work(runs)?;
        remarks = notes(runs, |_| true);
    }

    let name = |side: RunTarget<'_>| {
        if is_of_two_runs {
            format!("{} of {}", side.target, run_label(side.run))
        } else {
            side.target.to_owned()
        }
    };
    let pair = Pair { sides, names: sides.map(name) };
    pair.keep_only(figures);

    if is_of_two_runs {
        figures.settings = settings(runs, &pair, targets);
    } else {
        let is_of_pair = |name: &String| pair.names.contains(name);
        figures.settings.differences.retain(|both| is_of_pair(&both.a) && is_of_pair(&both.b));
        figures.settings.profiles.retain(|profile| is_of_pair(&profile.target));
    }

    // The run that the printers get: the first side's, with both targets.
    let [base, other] = targets;
    let [base_name, other_name] = pair.names;
    let shown = Run {
        targets: vec![
            Target { name: base_name.clone(), ..base.clone() },
            Target { name: other_name, ..other.clone() },
        ],
        builds: Vec::new(),
        base: base_name,
        bases: Vec::new(),
        ..runs[sides[0].run].run.clone()
    };
    Ok((shown, remarks))
}

/// Returns the target of a side, which must have a cell.
fn target_of<'r>(runs: &'r [Recorded], side: RunTarget<'_>) -> Result<&'r Target, Incomparable> {
    let run = &runs[side.run].run;
    let has_cell = run.cells.iter().any(|cell| cell.key.target == side.target);
    let target = run.targets.iter().find(|target| target.name == side.target);
    target.filter(|_| has_cell).ok_or_else(|| Incomparable {
        message: format!("{} did not measure the target `{}`", run_label(side.run), side.target),
        help: "choose a target that the run measured",
    })
}

/// Returns how the settings of targets of two runs differ.
fn settings(runs: &[Recorded], pair: &Pair<'_>, targets: [&Target; 2]) -> Settings {
    let mut compared = Vec::new();
    for (place, target) in targets.into_iter().enumerate() {
        let Recorded { run, cells } = &runs[pair.sides[place].run];
        let mut side = Side::new(run, target, cells.iter().map(|(_, cell)| cell));
        side.plan.name.clone_from(&pair.names[place]);
        compared.push(side);
    }

    // Two builds of one name are told apart by their runs.
    let [first, second] = [0, 1].map(|place| {
        let mut builds = runs[pair.sides[place].run].run.builds.iter();
        builds.find(|build| build.name == targets[place].build)
    });
    if let (Some(first), Some(second)) = (first, second)
        && first.name == second.name
        && !build_differences(first, second).is_empty()
    {
        compared[1].plan.build = format!("{} of {}", second.name, run_label(pair.sides[1].run));
    }
    Settings { differences: with_base(0, &compared, &pair.names[0]), ..Settings::default() }
}

#[cfg(test)]
mod tests {
    use record::CellRef;

    use super::*;
    use crate::figures::Row;

    fn recorded(id: &str, targets: &[&str]) -> Recorded {
        let target =
            |name: &&str| Target { name: (*name).into(), build: "pg".into(), ..Target::default() };
        let run = Run {
            id: id.into(),
            targets: targets.iter().map(target).collect(),
            cells: targets.iter().map(|name| CellRef::new(name, "insert", None, 1, 1)).collect(),
            ..Run::default()
        };
        Recorded { run, cells: Vec::new() }
    }

    fn row(run: usize, target: &str) -> Row {
        Row { run, cell: CellKey::new(target, None, 1, 1), ..Row::default() }
    }

    fn compared(
        runs: &[Recorded],
        sides: [RunTarget<'_>; 2],
    ) -> Result<(String, Vec<String>), Incomparable> {
        let mut rows = Vec::new();
        for (index, recorded) in runs.iter().enumerate() {
            rows.extend(recorded.run.targets.iter().map(|target| row(index, &target.name)));
        }
        let mut figures = Figures { rows, ..Figures::default() };
        let (run, _) = by_pair(runs, &mut figures, sides)?;
        Ok((run.base, figures.rows.into_iter().map(|row| row.cell.target).collect()))
    }

    #[test]
    fn targets_of_two_runs_are_told_apart_even_if_their_names_are_the_same() {
        let runs = [recorded("a", &["pg.x", "pg.y"]), recorded("b", &["pg.x", "pg.z"])];
        let side = |run, target| RunTarget { run, target };
        let (base, targets) = compared(&runs, [side(0, "pg.x"), side(1, "pg.x")]).unwrap();
        assert_eq!(base, "pg.x of run 1");
        assert_eq!(targets, ["pg.x of run 1", "pg.x of run 2"]);

        let (base, targets) = compared(&runs, [side(1, "pg.z"), side(0, "pg.y")]).unwrap();
        assert_eq!(base, "pg.z of run 2");
        assert_eq!(targets, ["pg.y of run 1", "pg.z of run 2"]);

        let (base, targets) = compared(&runs[..1], [side(0, "pg.y"), side(0, "pg.x")]).unwrap();
        assert_eq!((base.as_str(), targets.len()), ("pg.y", 2));
        for sides in [[side(0, "pg.x"), side(1, "pg.y")], [side(0, "pg.x"), side(0, "pg.x")]] {
            assert!(compared(&runs, sides).is_err());
        }
    }
}
