//! Compares the settings that engines report, target by target, and with those that the plan
//! declares.
//!
//! Two targets differ in more than their names say: another version has other defaults, and a
//! server derives settings from others. So a comparison starts from what engines report, and says
//! of each difference whether the plan declares it ([`DifferenceKind`]). Settings that differ
//! between any two servers, such as the paths of their files, are left out.
//!
//! * [`RunSettings`] are the cells of a run; [`Settings`] what differs between its targets.
//! * [`Comparison`] is of two targets, with one [`Difference`] for each setting.
//! * [`Profile`]s are the settings of each target, from which [`Factors`] finds those whose effects
//!   can be separated.

mod comparing;
mod difference;
mod factors;
mod side;

use record::{Cell, RecordError, Run, RunDir, Target};
use serde::Serialize;

pub use comparing::declared_differences;
pub(crate) use comparing::with_base;
pub use difference::{Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting};
pub use factors::{Combination, Factor, Factors, SameSetting};
pub(crate) use side::Side;
pub use side::{PlanTarget, Profile, ProfileSetting, VaryingSetting};

/// The settings of a run's targets: their differences, and those that are not as declared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Settings {
    /// Each target compared with the base of its engine: the run's base, or for another engine its
    /// first target that started.
    pub differences: Vec<Comparison>,
    /// Targets whose settings differ from their config, or between their cells.
    pub targets: Vec<TargetSettings>,
    /// The settings of each target in the order of the plan, for finding factors.
    #[serde(skip)]
    pub profiles: Vec<Profile>,
}

impl Settings {
    /// Adds the settings of another run.
    pub(crate) fn extend(&mut self, other: Self) {
        self.differences.extend(other.differences);
        self.targets.extend(other.targets);
        // Targets of one name are one target.
        for profile in other.profiles {
            if self.profiles.iter().all(|known| known.target != profile.target) {
                self.profiles.push(profile);
            }
        }
    }
}

/// The unexpected settings of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetSettings {
    /// The index of the run, from 0.
    pub run: usize,
    /// The target.
    pub target: String,
    /// Declared options that it does not have.
    pub ignored: Vec<IgnoredOption>,
    /// Settings that differ between its cells.
    pub varying: Vec<VaryingSetting>,
}

/// The cells of a run with what the plan declares for them.
#[derive(Clone, Debug)]
pub struct RunSettings {
    run: Run,
    /// The cells, in the order of the plan.
    cells: Vec<Cell>,
}

impl RunSettings {
    /// Reads the cells of a run.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn read(directory: &RunDir) -> Result<Self, RecordError> {
        let run = directory.read_run()?;
        let mut cells = Vec::new();
        for reference in &run.cells {
            let cell = directory.cell(reference)?;
            if cell.exists() {
                cells.push(cell.read()?);
            }
        }
        Ok(Self::new(run, cells))
    }

    /// Returns the settings of a run that was read.
    pub fn new(run: Run, cells: Vec<Cell>) -> Self {
        Self { run, cells }
    }

    /// Returns the names of the targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.run.targets.iter().map(|target| target.name.as_str())
    }

    /// Returns the settings of the run with the number `run`. Targets without a cell are left out.
    pub fn all(&self, run: usize) -> Settings {
        let measured = self.run.targets.iter().filter(|target| has_cells(&self.run, &target.name));
        let sides: Vec<Side<'_>> = measured.map(|target| self.side(target)).collect();
        Settings {
            differences: self.differences_of(run, &sides),
            targets: of_targets(run, &sides),
            profiles: sides.iter().map(Side::profile).collect(),
        }
    }

    /// Compares each target with its base, as [`Self::all`] does, where the bases are those of
    /// `shown` and not the recorded ones.
    pub fn differences_from(mut self, run: usize, shown: &Run) -> Vec<Comparison> {
        self.run.base.clone_from(&shown.base);
        self.run.bases.clone_from(&shown.bases);
        self.all(run).differences
    }

    fn differences_of(&self, run: usize, sides: &[Side<'_>]) -> Vec<Comparison> {
        comparing::with_bases(run, sides, |name| {
            let target = self.run.targets.iter().find(|target| target.name == name)?;
            self.run.base_of(target)
        })
    }

    /// Compares target `b` with `a`, and returns the unexpected settings of each; empty if a name
    /// is unknown.
    pub fn between(&self, a: &str, b: &str) -> Settings {
        let targets = &self.run.targets;
        let of_a = targets.iter().find(|target| target.name == a);
        let of_b = targets.iter().find(|target| target.name == b);
        let (Some(of_a), Some(of_b)) = (of_a, of_b) else {
            return Settings::default();
        };

        let (a, b) = (self.side(of_a), self.side(of_b));
        Settings {
            differences: vec![comparing::compare(0, &a, &b)],
            targets: of_targets(0, &[a, b]),
            profiles: Vec::new(),
        }
    }

    fn side(&self, target: &Target) -> Side<'_> {
        Side::new(&self.run, target, self.cells.iter())
    }
}

/// Returns whether the plan measures a target. Old records name no cells, and count as if it did.
pub(crate) fn has_cells(run: &Run, target: &str) -> bool {
    run.cells.is_empty() || run.cells.iter().any(|cell| cell.key.target == target)
}

/// Returns the targets with unexpected settings.
fn of_targets(run: usize, sides: &[Side<'_>]) -> Vec<TargetSettings> {
    sides
        .iter()
        .map(|side| TargetSettings {
            run,
            target: side.plan.name.clone(),
            ignored: side.ignored(),
            varying: side.varying(),
        })
        .filter(|target| !target.ignored.is_empty() || !target.varying.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
