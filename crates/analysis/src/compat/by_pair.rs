//! Compares any target of one run with any target of another, or of the same run.

use record::{Build, CellKey, Run, Target};

use super::{
    Incomparable, Recorded, build_differences, notes, refuse_copies, refuse_other_work,
    retain_cells,
};
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

/// A side of the comparison: a target that its run measured.
struct PairSide<'a> {
    /// The index of the run, from 0.
    run: usize,
    recorded: &'a Recorded,
    target: &'a Target,
    /// The name under which the target is compared.
    name: String,
}

impl<'a> PairSide<'a> {
    /// Finds a target, which must have a cell in its run.
    fn find(runs: &'a [Recorded], wanted: RunTarget<'_>) -> Result<Self, Incomparable> {
        let RunTarget { run, target: name } = wanted;
        let recorded = &runs[run];

        let has_cell = recorded.run.cells.iter().any(|cell| cell.key.target == name);
        let target = recorded.run.targets.iter().find(|target| target.name == name);
        match target {
            Some(target) if has_cell => Ok(Self { run, recorded, target, name: name.to_owned() }),
            _ => Err(Incomparable {
                message: format!("{} did not measure the target `{name}`", run_label(run)),
                help: "choose a target that the run measured",
            }),
        }
    }

    /// Adds the run to the name, so that targets of two runs differ even if they have one name.
    fn name_with_run(&mut self) {
        self.name = format!("{} of {}", self.target.name, run_label(self.run));
    }

    /// Returns whether a cell of a run is one of this target.
    fn has(&self, run: usize, cell: &CellKey) -> bool {
        self.run == run && self.target.name == cell.target
    }

    fn build(&self) -> Option<&'a Build> {
        let mut builds = self.recorded.run.builds.iter();
        builds.find(|build| build.name == self.target.build)
    }

    fn settings(&self) -> Side<'a> {
        let Recorded { run, cells } = self.recorded;
        let mut side = Side::new(run, self.target, cells.iter().map(|(_, cell)| cell));
        side.plan.name.clone_from(&self.name);
        side
    }

    /// Returns the target under its name in the comparison.
    fn renamed_target(&self) -> Target {
        Target { name: self.name.clone(), ..self.target.clone() }
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
    targets: [RunTarget<'_>; 2],
) -> Result<(Run, Vec<String>), Incomparable> {
    let [first, second] = targets;
    let mut pair = [PairSide::find(runs, first)?, PairSide::find(runs, second)?];
    if first == second {
        return Err(Incomparable {
            message: format!("both sides are the target `{}` of one run", first.target),
            help: "choose another target, or another run",
        });
    }

    let mut remarks = Vec::new();
    if first.run == second.run {
        // Targets of one run had the same host and did the same work.
        keep_settings(&mut figures.settings, &pair);
    } else {
        refuse_copies(runs)?;
        refuse_other_work(runs)?;
        remarks = notes(runs, |_| true);

        for side in &mut pair {
            side.name_with_run();
        }
        figures.settings = settings_of_two_runs(&pair);
    }
    keep_figures(figures, &pair);

    Ok((run_of_pair(&pair), remarks))
}

/// Keeps the settings of the two targets only.
fn keep_settings(settings: &mut Settings, pair: &[PairSide<'_>; 2]) {
    let is_of_pair = |target: &str| pair.iter().any(|side| side.name == target);
    settings.differences.retain(|both| is_of_pair(&both.a) && is_of_pair(&both.b));
    settings.profiles.retain(|profile| is_of_pair(&profile.target));
}

/// Returns how the settings of targets of two runs differ.
fn settings_of_two_runs(pair: &[PairSide<'_>; 2]) -> Settings {
    let [first, second] = pair;
    let mut sides = [first.settings(), second.settings()];

    // Two builds of one name are told apart by their runs.
    if let (Some(build), Some(other)) = (first.build(), second.build())
        && build.name == other.name
        && !build_differences(build, other).is_empty()
    {
        sides[1].plan.build = format!("{} of {}", other.name, run_label(second.run));
    }

    Settings { differences: with_base(0, &sides, &first.name), ..Settings::default() }
}

/// Keeps the figures of the two targets only, under the names of the comparison.
fn keep_figures(figures: &mut Figures, pair: &[PairSide<'_>; 2]) {
    let keep = |run: usize, cell: &mut CellKey| {
        let side = pair.iter().find(|side| side.has(run, cell));
        if let Some(side) = side {
            cell.target.clone_from(&side.name);
        }
        side.is_some()
    };

    retain_cells(figures, keep);
}

/// Returns the run that printers get: that of the first side, with both targets.
fn run_of_pair(pair: &[PairSide<'_>; 2]) -> Run {
    let [base, other] = pair;
    Run {
        targets: vec![base.renamed_target(), other.renamed_target()],
        builds: Vec::new(),
        base: base.name.clone(),
        bases: Vec::new(),
        ..base.recorded.run.clone()
    }
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
