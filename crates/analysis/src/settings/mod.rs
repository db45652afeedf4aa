//! Compares the settings that engines report, target by target, and with those that the plan
//! declares. Settings that differ between any two servers, such as the paths of their files, are
//! left out.

mod factors;

use std::collections::{BTreeMap, BTreeSet};

use record::{
    Cell, DeclaredOption, OptionStatus, RecordError, Run, RunDir, Setting, SettingRole, Target,
};
use serde::Serialize;

pub use factors::{Combination, Factor, Factors};

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
            if self.profiles.iter().all(|it| it.target != profile.target) {
                self.profiles.push(profile);
            }
        }
    }
}

/// The settings of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The target.
    pub target: String,
    /// Its engine.
    pub engine: String,
    /// Its build.
    pub build: String,
    /// Its engine reported settings.
    pub is_reported: bool,
    /// Settings by the name under which they are compared, without those that always differ.
    pub settings: BTreeMap<String, ProfileSetting>,
    /// The compared names of the settings that its config declares.
    pub declared: Vec<String>,
    /// The factors that the plan names, with the target's values.
    pub factors: Vec<(String, String)>,
}

/// One setting of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSetting {
    /// Its name.
    pub name: String,
    /// Its value: the effective one, or the declared one if the engine does not report it.
    pub value: String,
    /// The canonical value, which is the same for all spellings.
    pub canonical: String,
}

/// A comparison of the settings of two targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The index of the run, from 0.
    pub run: usize,
    /// The target of both, where runs are compared; `a` and `b` are then runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The one that the other is compared with.
    pub a: String,
    /// The other.
    pub b: String,
    /// The build of `a`.
    pub a_build: String,
    /// The build of `b`.
    pub b_build: String,
    /// The version of `a`, as it reports it; if it never started, that of its build.
    pub a_version: String,
    /// The version of `b`.
    pub b_version: String,
    /// One of them reported no settings: only declared settings are compared.
    pub declared_only: bool,
    /// Those of the two whose engine never started; empty if only a plan's declarations are
    /// compared.
    pub unmeasured: Vec<String>,
    /// They have one build, and no known difference.
    pub identical: bool,
    /// The settings that differ, by name.
    pub settings: Vec<Difference>,
    /// Settings that only `a` has.
    pub only_a: Vec<OneSidedSetting>,
    /// Settings that only `b` has.
    pub only_b: Vec<OneSidedSetting>,
    /// Declared options that the two don't have.
    pub ignored: Vec<IgnoredOption>,
}

impl Comparison {
    /// Returns the same comparison with `a` and `b` exchanged.
    pub(crate) fn swapped(&self) -> Self {
        let comparison = self.clone();
        Self {
            a: comparison.b,
            b: comparison.a,
            a_build: comparison.b_build,
            b_build: comparison.a_build,
            a_version: comparison.b_version,
            b_version: comparison.a_version,
            only_a: comparison.only_b,
            only_b: comparison.only_a,
            settings: comparison.settings.into_iter().map(Difference::swapped).collect(),
            ..comparison
        }
    }
}

/// The relation of a difference to the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The plan declares it differently.
    Declared,
    /// The plan does not declare it: another version's default, or derived by the server.
    Undeclared,
    /// The plan declares it differently, and the engine does not report it: these are the declared
    /// values.
    Unverified,
}

/// One setting of two targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Its value in `a`; `None`: not declared there, where only that is known.
    pub a: Option<String>,
    /// Its value in `b`.
    pub b: Option<String>,
    /// Its relation to the plan.
    pub mark: DifferenceKind,
    /// Its role, if known.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

impl Difference {
    /// Returns the same with `a` and `b` exchanged.
    pub(crate) fn swapped(self) -> Self {
        Self { a: self.b, b: self.a, ..self }
    }
}

/// A setting that one of two targets has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OneSidedSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// [`DifferenceKind::Declared`], or [`DifferenceKind::Undeclared`].
    pub mark: DifferenceKind,
    /// Its role, if known.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

impl OneSidedSetting {
    /// Returns the difference between `a`, which has it, and `b`.
    pub(crate) fn of_a(&self) -> Difference {
        Difference {
            name: self.name.clone(),
            a: Some(self.value.clone()),
            b: None,
            mark: self.mark,
            role: self.role,
        }
    }
}

/// An option that a target declares and does not have, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IgnoredOption {
    /// The target.
    pub target: String,
    /// The option as it was written.
    pub name: String,
    /// The declared value.
    pub declared: String,
    /// The value that the engine reports.
    pub effective: Option<String>,
    /// Its status.
    #[serde(rename = "mark")]
    pub status: OptionStatus,
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

/// A setting that is not the same in all cells of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VaryingSetting {
    /// Its name.
    pub name: String,
    /// Its value in each cell that reports settings: `c8 r1`, with the variant before it where
    /// there are several.
    pub values: Vec<(String, Option<String>)>,
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
    /// A record can't be read.
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
        let targets = self.run.targets.iter();
        let targets = targets.filter(|target| has_cells(&self.run, &target.name));
        let sides: Vec<Side<'_>> = targets.map(|target| self.side(target)).collect();
        Settings {
            differences: with_base(run, &sides, &self.run.base),
            targets: of_targets(run, &sides),
            profiles: sides.iter().map(Side::profile).collect(),
        }
    }

    /// Compares target `b` with `a`, and returns the unexpected settings of each; empty if a name
    /// is unknown.
    pub fn between(&self, a: &str, b: &str) -> Settings {
        let side = |name: &str| {
            let mut targets = self.run.targets.iter();
            let target = targets.find(|target| target.name == name);
            target.map(|target| self.side(target))
        };
        let sides = side(a).zip(side(b));
        sides.map_or_else(Settings::default, |(a, b)| Settings {
            differences: vec![compare(0, &a, &b)],
            targets: of_targets(0, &[a, b]),
            profiles: Vec::new(),
        })
    }

    fn side(&self, target: &Target) -> Side<'_> {
        Side::new(&self.run, target, self.cells.iter())
    }
}

/// Returns whether the plan measures a target. Old records name no cells, and count as if it did.
pub(crate) fn has_cells(run: &Run, target: &str) -> bool {
    run.cells.is_empty() || run.cells.iter().any(|cell| cell.key.target == target)
}

/// The settings of an engine by their compared keys. Two names of one setting are equivalent; the
/// first is kept.
type Effective<'a> = BTreeMap<&'a str, &'a Setting>;

fn effective(cell: &Cell) -> Effective<'_> {
    let settings = cell.settings.iter().rev();
    settings.map(|setting| (setting.key(), setting)).collect()
}

/// One target.
pub(crate) struct Side<'a> {
    pub plan: PlanTarget,
    /// The engine of one of its cells reported at least its version.
    came_up: bool,
    /// The cells that report settings, in the order of the plan.
    cells: Vec<(&'a Cell, Effective<'a>)>,
}

impl<'a> Side<'a> {
    /// Returns a target of a run, with those of `cells` that are its own.
    pub fn new(run: &Run, target: &Target, cells: impl Iterator<Item = &'a Cell>) -> Self {
        let own = cells.filter(|cell| cell.key.target == target.name);
        let (mut reporting, mut version) = (Vec::new(), "");
        for cell in own {
            if version.is_empty() {
                version = &cell.engine_version;
            }
            if !cell.settings.is_empty() {
                reporting.push((cell, effective(cell)));
            }
        }
        let came_up = !version.is_empty() || !reporting.is_empty();
        let build = run.builds.iter().find(|build| build.name == target.build);
        if let Some(build) = build.filter(|_| version.is_empty()) {
            version = &build.version;
        }
        Self {
            plan: PlanTarget {
                name: target.name.clone(),
                build: target.build.clone(),
                engine: target.engine.clone(),
                version: version.to_owned(),
                declared: target.declared.clone(),
                factors: target.factors.clone(),
            },
            came_up,
            cells: reporting,
        }
    }

    /// Returns the settings of the cell that represents the target.
    fn effective(&self) -> Option<&Effective<'a>> {
        self.cells.first().map(|(_, effective)| effective)
    }

    fn declares(&self, key: &str) -> Option<&DeclaredOption> {
        self.plan.declared.iter().find(|option| option.key == key)
    }

    fn profile(&self) -> Profile {
        let declared = self.plan.declared.iter().map(|option| {
            let setting = ProfileSetting {
                name: option.name.clone(),
                value: option.value.clone(),
                canonical: option.canonical.clone(),
            };
            (option.key.clone(), setting)
        });
        let reported = self.effective().into_iter().flatten();
        let reported = reported.filter(|(_, setting)| !setting.volatile);
        let reported = reported.map(|(key, setting)| {
            let setting = ProfileSetting {
                name: setting.name.clone(),
                value: setting.value.clone(),
                canonical: setting.canonical().to_owned(),
            };
            ((*key).to_owned(), setting)
        });
        Profile {
            target: self.plan.name.clone(),
            engine: self.plan.engine.clone(),
            build: self.plan.build.clone(),
            is_reported: self.effective().is_some(),
            settings: declared.chain(reported).collect(),
            declared: self.plan.declared.iter().map(|it| it.key.clone()).collect(),
            factors: self.plan.factors.clone(),
        }
    }

    fn ignored(&self) -> Vec<IgnoredOption> {
        let not_had = self.cells.first().map(|(cell, _)| cell.unmet_options.iter());
        let ignored = not_had.into_iter().flatten().map(|option| IgnoredOption {
            target: self.plan.name.clone(),
            name: option.name.clone(),
            declared: option.declared.clone(),
            effective: option.effective.clone(),
            status: option.status,
        });
        ignored.collect()
    }

    fn varying(&self) -> Vec<VaryingSetting> {
        let of_cells = self.cells.iter();
        let keys: BTreeSet<&str> = of_cells.flat_map(|(_, all)| all.keys().copied()).collect();
        let mut varying = Vec::new();
        for key in keys {
            let of_cells = self.cells.iter();
            let values: Vec<Option<&Setting>> =
                of_cells.map(|(_, all)| all.get(key).copied()).collect();
            let Some(first) = values.iter().flatten().next() else {
                continue;
            };
            let is_first = |value: &Option<&Setting>| match (values[0], value) {
                (Some(a), Some(b)) => !differ(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            if values.iter().all(is_first) {
                continue;
            }
            let of_cell = |((cell, _), value): (&(&Cell, Effective<'_>), &Option<&Setting>)| {
                let variant = cell.key.variant.iter().map(|variant| format!("{variant} "));
                let label = variant.collect::<String>();
                (
                    format!("{label}c{} r{}", cell.key.clients, cell.key.repeat),
                    value.map(|setting| setting.value.clone()),
                )
            };
            varying.push(VaryingSetting {
                name: first.name.clone(),
                values: self.cells.iter().zip(&values).map(of_cell).collect(),
            });
        }
        varying
    }
}

/// Returns whether two targets differ in a setting, other than in one that always differs.
fn differ(a: &Setting, b: &Setting) -> bool {
    a.canonical() != b.canonical() && !(a.volatile && b.volatile)
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

/// Returns the settings of two targets in cells of one variant and number of clients, or in the
/// first cell of each if they share none.
fn effective_of_both<'s, 'a>(
    a: &'s Side<'a>,
    b: &'s Side<'a>,
) -> Option<(&'s Effective<'a>, &'s Effective<'a>)> {
    let is_alike = |of_a: &Cell, of_b: &Cell| {
        (&of_a.key.variant, of_a.key.clients) == (&of_b.key.variant, of_b.key.clients)
    };
    let pairs = a.cells.iter().find_map(|(of_a, effective_a)| {
        let mut cells = b.cells.iter();
        let (_, effective_b) = cells.find(|(of_b, _)| is_alike(of_a, of_b))?;
        Some((effective_a, effective_b))
    });
    pairs.or_else(|| a.effective().zip(b.effective()))
}

/// Compares the settings of two targets.
fn compare(run: usize, a: &Side<'_>, b: &Side<'_>) -> Comparison {
    let mut comparison = Comparison {
        run,
        a: a.plan.name.clone(),
        b: b.plan.name.clone(),
        a_build: a.plan.build.clone(),
        b_build: b.plan.build.clone(),
        a_version: a.plan.version.clone(),
        b_version: b.plan.version.clone(),
        unmeasured: [a, b]
            .into_iter()
            .filter(|side| !side.came_up)
            .map(|side| side.plan.name.clone())
            .collect(),
        ignored: a.ignored().into_iter().chain(b.ignored()).collect(),
        ..Comparison::default()
    };
    if a.plan.engine != b.plan.engine {
        // Settings of two engines have different meanings, so that only those that the plan
        // declares are listed.
        let all = |side: &Side<'_>| side.plan.declared.iter().map(one_sided).collect();
        (comparison.only_a, comparison.only_b) = (all(a), all(b));
        return comparison;
    }
    let nothing = Effective::new();
    let (of_a, of_b) = match effective_of_both(a, b) {
        Some(both) => both,
        None => {
            comparison.declared_only = !(a.plan.declared.is_empty() && b.plan.declared.is_empty());
            (&nothing, &nothing)
        }
    };
    let declared = a.plan.declared.iter().chain(&b.plan.declared);
    let declared = declared.map(|option| option.key.as_str());
    let reported = of_a.keys().chain(of_b.keys()).copied();
    let keys: BTreeSet<&str> = reported.chain(declared).collect();
    for key in keys {
        let (in_a, in_b) = (a.declares(key), b.declares(key));
        let canonical = |option: Option<&'_ DeclaredOption>| option.map(|it| it.canonical.clone());
        let is_declared = canonical(in_a) != canonical(in_b);
        let mark = if is_declared { DifferenceKind::Declared } else { DifferenceKind::Undeclared };
        let alone = |setting: &Setting| OneSidedSetting {
            name: setting.name.clone(),
            value: setting.value.clone(),
            mark,
            role: setting.role,
        };
        match (of_a.get(key), of_b.get(key)) {
            (Some(of_a), Some(of_b)) if differ(of_a, of_b) => {
                comparison.settings.push(Difference {
                    name: of_a.name.clone(),
                    a: Some(of_a.value.clone()),
                    b: Some(of_b.value.clone()),
                    mark,
                    // A setting has no role where another one takes away its effect.
                    role: of_a.role.or(of_b.role),
                })
            }
            (Some(of_a), None) if !of_a.volatile => comparison.only_a.push(alone(of_a)),
            (None, Some(of_b)) if !of_b.volatile => comparison.only_b.push(alone(of_b)),
            // Declared differently, and not reported.
            (None, None) if is_declared => comparison.settings.extend(unverified(in_a, in_b)),
            _ => {}
        }
    }
    comparison.settings.sort_by(|a, b| a.name.cmp(&b.name));
    comparison.identical = a.plan.build == b.plan.build
        && comparison.settings.is_empty()
        && comparison.only_a.is_empty()
        && comparison.only_b.is_empty();
    comparison
}

fn one_sided(option: &DeclaredOption) -> OneSidedSetting {
    OneSidedSetting {
        name: option.name.clone(),
        value: option.value.clone(),
        mark: DifferenceKind::Declared,
        role: option.role,
    }
}

/// Returns an option that two configs declare differently, by its name in the first that has it.
fn unverified(a: Option<&DeclaredOption>, b: Option<&DeclaredOption>) -> Option<Difference> {
    let option = a.or(b)?;
    // Two spellings of one name are shown as the compared name.
    let is_plain = a.zip(b).is_none_or(|(a, b)| a.name == b.name);
    let value = |of: Option<&DeclaredOption>| of.map(|option| option.value.clone());
    Some(Difference {
        name: if is_plain { &option.name } else { &option.key }.clone(),
        a: value(a),
        b: value(b),
        mark: DifferenceKind::Unverified,
        role: option.role,
    })
}

/// A target of a plan, before anything has run.
#[derive(Clone, Debug, Default)]
pub struct PlanTarget {
    /// `build.config`
    pub name: String,
    /// The build's name.
    pub build: String,
    /// The engine's name.
    pub engine: String,
    /// The build's version; empty where it is not known.
    pub version: String,
    /// The options that its config declares.
    pub declared: Vec<DeclaredOption>,
    /// The factors that the plan names.
    pub factors: Vec<(String, String)>,
}

impl PlanTarget {
    fn side(&self) -> Side<'_> {
        Side { plan: self.clone(), came_up: false, cells: Vec::new() }
    }

    /// Returns the options in which it differs from `base`.
    pub fn against(&self, base: &Self) -> Comparison {
        as_declared(compare(0, &base.side(), &self.side()))
    }
}

/// Returns the options in which the targets of a plan differ: each against the base of its engine,
/// as in [`Settings`].
pub fn declared_differences(targets: &[PlanTarget], base: &str) -> Vec<Comparison> {
    let sides: Vec<Side<'_>> = targets.iter().map(PlanTarget::side).collect();
    let comparisons = with_base(0, &sides, base).into_iter();
    comparisons.map(as_declared).collect()
}

/// Turns a comparison into one of plans, which expects no measurements.
fn as_declared(mut comparison: Comparison) -> Comparison {
    comparison.declared_only = true;
    comparison.unmeasured.clear();
    for setting in &mut comparison.settings {
        setting.mark = DifferenceKind::Declared;
    }
    comparison
}

/// Compares each target with the base. Targets of another engine are compared with its first target
/// that started, or else with its first.
pub(crate) fn with_base(run: usize, sides: &[Side<'_>], base: &str) -> Vec<Comparison> {
    let base = sides.iter().position(|side| side.plan.name == base);
    let mut comparisons = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        let is_alike = |other: &Side<'_>| other.plan.engine == side.plan.engine;
        let is_up = |other: &Side<'_>| is_alike(other) && other.effective().is_some();
        let base = base
            .filter(|&base| is_alike(&sides[base]))
            .or_else(|| sides.iter().position(is_up))
            .or_else(|| sides.iter().position(is_alike));
        let base = base.filter(|&base| base != index);
        comparisons.extend(base.map(|base| compare(run, &sides[base], side)));
    }
    comparisons
}

#[cfg(test)]
mod tests;
