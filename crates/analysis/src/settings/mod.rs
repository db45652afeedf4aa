//! What differs between targets: the settings that their engines report, against each other and against what the plan
//! declares. What differs between any two servers, such as where they have their files, is left out.

use std::collections::{BTreeMap, BTreeSet};

use record::{Cell, Declared, OptionStatus, RecordError, Run, RunDir, Setting, SettingRole};
use serde::Serialize;

/// What is to be said of the settings of a run's targets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Settings {
    /// Each target against the base of its engine: that of the run, or of an engine that is another the first
    /// target that came up.
    pub differences: Vec<Comparison>,
    /// Each target against its own config, and its cells against each other; only those of which there is something
    /// to say.
    pub targets: Vec<TargetSettings>,
}

impl Settings {
    /// Adds what is to be said of another run.
    pub(crate) fn extend(&mut self, other: Self) {
        self.differences.extend(other.differences);
        self.targets.extend(other.targets);
    }
}

/// Two targets against each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Which of the runs that were given, from 0.
    pub run: usize,
    /// The target that both are, where runs are compared: `a` and `b` are then runs.
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
    /// The version of `a`, as it reports it; where it never came up, that of its build.
    pub a_version: String,
    /// The version of `b`.
    pub b_version: String,
    /// What the engines have of one of them is not known: what is listed is what the plan declares.
    pub declared_only: bool,
    /// Those of the two of which no engine ever came up; empty where a plan's declarations alone are compared.
    pub unmeasured: Vec<String>,
    /// They are of one build, and nothing is known in which they differ.
    pub identical: bool,
    /// What differs, by name.
    pub settings: Vec<Difference>,
    /// Settings that only `a` has.
    pub only_a: Vec<OneSided>,
    /// Settings that only `b` has.
    pub only_b: Vec<OneSided>,
    /// What the two declare and don't have.
    pub ignored: Vec<Ignored>,
}

/// Why a setting differs, as far as the plan tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The plan declares it differently.
    Declared,
    /// It does not: another version's default, or what the server derived.
    Undeclared,
    /// The plan declares it differently, and the engine does not report it: these are the declared values.
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
    /// Why.
    pub mark: Mark,
    /// What it does, where that is of use.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

/// A setting that one of two targets has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OneSided {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// [`Mark::Declared`], or [`Mark::Undeclared`].
    pub mark: Mark,
    /// What it does, where that is of use.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

/// An option that a target declares and does not have, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// The target.
    pub target: String,
    /// The option as it was written.
    pub name: String,
    /// What is declared.
    pub declared: String,
    /// What the engine reports.
    pub effective: Option<String>,
    /// What became of it.
    #[serde(rename = "mark")]
    pub status: OptionStatus,
}

/// What is to be said of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetSettings {
    /// Which of the runs that were given, from 0.
    pub run: usize,
    /// The target.
    pub target: String,
    /// What it declares and does not have.
    pub ignored: Vec<Ignored>,
    /// What its cells don't have in common.
    pub varying: Vec<Varying>,
}

/// A setting that is not the same in all cells of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Varying {
    /// Its name.
    pub name: String,
    /// Its value in each cell that reports settings: `c8 r1`, with the variant before it where there are several.
    pub values: Vec<(String, Option<String>)>,
}

/// The cells of a run with what the plan declares for them.
#[derive(Clone, Debug)]
pub struct RunSettings {
    run: Run,
    /// In the order of the plan.
    cells: Vec<Cell>,
}

impl RunSettings {
    /// Reads the cells of a run.
    ///
    /// # Errors
    /// A record that can't be read.
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

    /// Those of a run that was read.
    pub fn new(run: Run, cells: Vec<Cell>) -> Self {
        Self { run, cells }
    }

    /// The names of the targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.run.targets.iter().map(|target| target.name.as_str())
    }

    /// All that is to be said, of the run with the number `run`. Targets of the plan of which the run has no cell are
    /// left out.
    pub fn all(&self, run: usize) -> Settings {
        let has_cells = |target: &&record::Target| {
            let mut cells = self.run.cells.iter();
            // A record that names no cells says nothing of which there were to be.
            self.run.cells.is_empty() || cells.any(|cell| cell.key.target == target.name)
        };
        let targets: Vec<_> = self.run.targets.iter().filter(has_cells).collect();
        let sides: Vec<Side<'_>> = targets.iter().map(|target| self.side(target)).collect();
        let names = targets.iter().zip(&sides).map(|(target, side)| {
            let came_up = side.effective().is_some();
            (target.name.as_str(), target.engine.as_str(), came_up)
        });
        let differences = with_base(names, &self.run.base)
            .map(|(base, index)| compare(run, &sides[base], &sides[index]));
        Settings {
            differences: differences.collect(),
            targets: of_targets(run, &sides),
        }
    }

    /// Any two targets against each other, `b` against `a`, and what is to be said of each; nothing if there is none
    /// of one of these names.
    pub fn between(&self, a: &str, b: &str) -> Settings {
        let side = |name: &str| {
            let mut targets = self.run.targets.iter();
            targets
                .find(|target| target.name == name)
                .map(|target| self.side(target))
        };
        let sides = side(a).zip(side(b));
        sides.map_or_else(Settings::default, |(a, b)| Settings {
            differences: vec![compare(0, &a, &b)],
            targets: of_targets(0, &[a, b]),
        })
    }

    fn side<'a>(&'a self, target: &'a record::Target) -> Side<'a> {
        let cells: Vec<&Cell> = self
            .cells
            .iter()
            .filter(|cell| cell.key.target == target.name)
            .collect();
        let build = self
            .run
            .builds
            .iter()
            .find(|build| build.name == target.build);
        let version = cells
            .iter()
            .map(|cell| cell.engine_version.as_str())
            .find(|version| !version.is_empty())
            .or_else(|| build.map(|build| build.version.as_str()));
        Side {
            target: &target.name,
            build: &target.build,
            engine: &target.engine,
            version: version.unwrap_or_default(),
            declared: &target.declared,
            came_up: cells.iter().any(|cell| came_up(cell)),
            cells: cells
                .into_iter()
                .filter(|cell| !cell.settings.is_empty())
                .map(|cell| (cell, effective(cell)))
                .collect(),
        }
    }
}

/// The settings of an engine by the keys that they are compared as. Of two names of one setting the first is as good as
/// the second.
type Effective<'a> = BTreeMap<&'a str, &'a Setting>;

fn effective(cell: &Cell) -> Effective<'_> {
    let settings = cell.settings.iter().rev();
    settings.map(|setting| (setting.key(), setting)).collect()
}

/// Whether a cell's engine told of itself.
fn came_up(cell: &Cell) -> bool {
    !cell.engine_version.is_empty() || !cell.settings.is_empty()
}

/// One target.
struct Side<'a> {
    target: &'a str,
    build: &'a str,
    engine: &'a str,
    version: &'a str,
    declared: &'a [Declared],
    /// The engine of one of its cells told of itself, if only its version.
    came_up: bool,
    /// The cells that report settings, in the order of the plan.
    cells: Vec<(&'a Cell, Effective<'a>)>,
}

impl<'a> Side<'a> {
    /// The settings of the cell that speaks for all.
    fn effective(&self) -> Option<&Effective<'a>> {
        self.cells.first().map(|(_, effective)| effective)
    }

    fn declares(&self, key: &str) -> Option<&'a Declared> {
        self.declared.iter().find(|option| option.key == key)
    }

    fn ignored(&self) -> Vec<Ignored> {
        let not_had = self.cells.first().map(|(cell, _)| cell.not_had.iter());
        let ignored = not_had.into_iter().flatten().map(|option| Ignored {
            target: self.target.to_owned(),
            name: option.name.clone(),
            declared: option.declared.clone(),
            effective: option.effective.clone(),
            status: option.status,
        });
        ignored.collect()
    }

    fn varying(&self) -> Vec<Varying> {
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
            varying.push(Varying {
                name: first.name.clone(),
                values: self.cells.iter().zip(&values).map(of_cell).collect(),
            });
        }
        varying
    }
}

/// Returns whether two targets differ in a setting beyond what differs by nature.
fn differ(a: &Setting, b: &Setting) -> bool {
    a.canonical() != b.canonical() && !(a.volatile && b.volatile)
}

/// What is to be said of each target; those of which nothing is are left out.
fn of_targets(run: usize, sides: &[Side<'_>]) -> Vec<TargetSettings> {
    sides
        .iter()
        .map(|side| TargetSettings {
            run,
            target: side.target.to_owned(),
            ignored: side.ignored(),
            varying: side.varying(),
        })
        .filter(|target| !target.ignored.is_empty() || !target.varying.is_empty())
        .collect()
}

/// The settings of two targets in cells of one variant and number of clients; where they have none such in common, in
/// the first cell of each.
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

/// What of two targets differs.
fn compare(run: usize, a: &Side<'_>, b: &Side<'_>) -> Comparison {
    let mut comparison = Comparison {
        run,
        a: a.target.to_owned(),
        b: b.target.to_owned(),
        a_build: a.build.to_owned(),
        b_build: b.build.to_owned(),
        a_version: a.version.to_owned(),
        b_version: b.version.to_owned(),
        unmeasured: [a, b]
            .into_iter()
            .filter(|side| !side.came_up)
            .map(|side| side.target.to_owned())
            .collect(),
        ignored: a.ignored().into_iter().chain(b.ignored()).collect(),
        ..Comparison::default()
    };
    if a.engine != b.engine {
        // Their settings mean different things; what the plan says of each is told.
        let all = |side: &Side<'_>| side.declared.iter().map(one_sided).collect();
        (comparison.only_a, comparison.only_b) = (all(a), all(b));
        return comparison;
    }
    let nothing = Effective::new();
    let (of_a, of_b) = match effective_of_both(a, b) {
        Some(both) => both,
        None => {
            comparison.declared_only = !(a.declared.is_empty() && b.declared.is_empty());
            (&nothing, &nothing)
        }
    };
    let keys: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    for key in keys {
        let declared = [a, b].map(|side| side.declares(key).map(|option| &option.canonical));
        let mark = match declared[0] == declared[1] {
            true => Mark::Undeclared,
            false => Mark::Declared,
        };
        let alone = |setting: &Setting| OneSided {
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
                    role: of_a.role,
                })
            }
            (Some(of_a), None) if !of_a.volatile => comparison.only_a.push(alone(of_a)),
            (None, Some(of_b)) if !of_b.volatile => comparison.only_b.push(alone(of_b)),
            _ => {}
        }
    }
    // What is declared differently and can't be seen.
    for (key, difference) in differing(a.declared, b.declared) {
        if !of_a.contains_key(key) && !of_b.contains_key(key) {
            comparison.settings.push(difference);
        }
    }
    comparison.settings.sort_by(|a, b| a.name.cmp(&b.name));
    comparison.identical = a.build == b.build
        && comparison.settings.is_empty()
        && comparison.only_a.is_empty()
        && comparison.only_b.is_empty();
    comparison
}

fn one_sided(option: &Declared) -> OneSided {
    OneSided {
        name: option.name.clone(),
        value: option.value.clone(),
        mark: Mark::Declared,
        role: option.role,
    }
}

/// The options that two configs declare differently, with their keys.
fn differing<'a>(a: &'a [Declared], b: &'a [Declared]) -> Vec<(&'a str, Difference)> {
    let find = |side: &'a [Declared], key: &str| side.iter().find(|option| option.key == key);
    let only_b = b.iter().filter(|option| find(a, &option.key).is_none());
    let all = a.iter().chain(only_b);
    let difference = |option: &'a Declared| {
        let (of_a, of_b) = (find(a, &option.key), find(b, &option.key));
        let is_same = of_a
            .zip(of_b)
            .is_some_and(|(of_a, of_b)| of_a.canonical == of_b.canonical);
        // Of two spellings of one name the one that both are compared as is shown.
        let is_plain = of_a.zip(of_b).is_none_or(|(a, b)| a.name == b.name);
        let name = if is_plain { &option.name } else { &option.key };
        let value = |of: Option<&Declared>| of.map(|option| option.value.clone());
        let difference = Difference {
            name: name.clone(),
            a: value(of_a),
            b: value(of_b),
            mark: Mark::Unverified,
            role: option.role,
        };
        (!is_same).then_some((option.key.as_str(), difference))
    };
    all.filter_map(difference).collect()
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
    /// What its config declares.
    pub declared: Vec<Declared>,
}

impl PlanTarget {
    fn side(&self) -> Side<'_> {
        Side {
            target: &self.name,
            build: &self.build,
            engine: &self.engine,
            version: &self.version,
            declared: &self.declared,
            came_up: false,
            cells: Vec::new(),
        }
    }

    /// In which options it differs from `base`.
    pub fn against(&self, base: &Self) -> Comparison {
        let mut comparison = compare(0, &base.side(), &self.side());
        comparison.declared_only = true;
        comparison.unmeasured.clear();
        for setting in &mut comparison.settings {
            setting.mark = Mark::Declared;
        }
        comparison
    }
}

/// In which options the targets of a plan differ: each against the base of its engine, as in [`Settings`].
pub fn declared_differences(targets: &[PlanTarget], base: &str) -> Vec<Comparison> {
    let names = targets
        .iter()
        .map(|target| (target.name.as_str(), target.engine.as_str(), false));
    with_base(names, base)
        .map(|(base, index)| targets[index].against(&targets[base]))
        .collect()
}

/// The targets that are compared, by their places, each after what it is compared with: the base, or of an engine that
/// is another the first target, one that came up if there is any. `targets` are names, engines, and whether they did.
fn with_base<'a>(
    targets: impl Iterator<Item = (&'a str, &'a str, bool)>,
    base: &str,
) -> impl Iterator<Item = (usize, usize)> {
    let targets: Vec<(&str, &str, bool)> = targets.collect();
    let base = targets.iter().position(|(name, ..)| *name == base);
    (0..targets.len()).filter_map(move |index| {
        let engine = targets[index].1;
        let first = |must_be_up: bool| {
            let mut all = targets.iter();
            all.position(|&(_, other, came_up)| other == engine && (came_up || !must_be_up))
        };
        let base = base
            .filter(|&base| targets[base].1 == engine)
            .or_else(|| first(true))
            .or_else(|| first(false))?;
        (base != index).then_some((base, index))
    })
}

#[cfg(test)]
mod tests;
