//! Finds factors: differences between the targets of an engine whose effects can be separated. A
//! factor is named by the plan, or is the build, or a setting that a config declares, with the
//! values that the engines report. A difference that others determine, such as a setting that
//! always changes with another, is not a factor.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use words::{Engine, without_section};

use super::Profile;
use crate::order::distinct;

/// The name of the factor of builds.
const BUILD: &str = "build";

/// The value of a setting that a target does not have.
const NOT_SET: &str = "not set";

/// All factors of some targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factors {
    /// The factors of each engine in turn: first those that the plan names, then the build, then
    /// settings in the order in which configs declare them.
    pub factors: Vec<Factor>,
    /// Differences that the factors determine, each with the names of these.
    pub determined: Vec<(String, Vec<String>)>,
    /// Pairs of targets that no factor separates.
    pub alike: Vec<[String; 2]>,
}

/// One factor of the targets of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Factor {
    /// The engine.
    pub engine: String,
    /// The plan's name, `build`, or the name of a setting.
    pub name: String,
    /// Settings that change with it, always or in some combinations: its effect includes theirs.
    pub with: Vec<String>,
    /// The values, that of the base first.
    pub levels: Vec<String>,
    /// Every combination of the other factors that any target has.
    pub combinations: Vec<Combination>,
    /// Other settings that have one value wherever it has one.
    #[serde(skip)]
    pub same: Vec<SameSetting>,
    /// The plan names it.
    #[serde(skip)]
    pub is_of_plan: bool,
}

/// A setting that always changes with a factor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SameSetting {
    /// The name.
    pub name: String,
    /// The value of the setting at each level of the factor.
    pub levels: Vec<String>,
}

/// Targets that differ in one factor alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Combination {
    /// The values of the other factors: `full_page_writes=on, build=pg17`; empty where there are
    /// no others.
    pub others: String,
    /// The target of each level; `None`: there is none.
    pub targets: Vec<Option<String>>,
}

impl Factor {
    /// Returns whether each combination has a target for each level.
    pub fn is_full(&self) -> bool {
        let mut targets = self.combinations.iter().flat_map(|combination| &combination.targets);
        targets.all(Option::is_some)
    }

    /// Returns the missing targets, each by the values of all factors.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for combination in &self.combinations {
            for (level, target) in self.levels.iter().zip(&combination.targets) {
                if target.is_some() {
                    continue;
                }

                let own = format!("{}={level}", self.name);
                missing.push(if combination.others.is_empty() {
                    own
                } else {
                    format!("{own}, {}", combination.others)
                });
            }
        }
        missing
    }

    /// Returns the name for readers. The section of an option, and its path inside others, are left
    /// out, since they are long and say little: `block_size` of
    /// `block_based_table_factory.block_size`.
    pub fn label(&self) -> &str {
        label(&self.engine, &self.name)
    }

    /// Returns the settings that change with a level, those that always do with their values:
    /// `compression=kZSTD`. A name that the plan gives stands for all of them.
    pub(crate) fn settings_with(&self, level: usize) -> Vec<String> {
        let mut texts = Vec::new();
        if self.is_of_plan {
            return texts;
        }

        for name in &self.with {
            let shown = label(&self.engine, name);
            let same = self.same.iter().find(|setting| setting.name == *name);
            texts.push(match same {
                Some(setting) => format!("{shown}={}", setting.levels[level]),
                None => shown.to_owned(),
            });
        }
        texts
    }

    /// Returns the change of a level from the base's: `synchronous_commit: on -> off`.
    pub fn change(&self, level: usize) -> String {
        format!("{}: {} -> {}", self.label(), self.levels[0], self.levels[level])
    }

    /// Returns a level with the factor's name: `synchronous_commit=off`.
    pub(crate) fn named(&self, level: usize) -> String {
        format!("{}={}", self.label(), self.levels[level])
    }

    /// Returns the factor with only the base's combination of the others, if that has a target for
    /// each level and all others have none but that of the base's level: each target differs from the
    /// base in one factor. `None` otherwise.
    pub fn one_at_a_time(&self) -> Option<Self> {
        let (of_base, others) = self.combinations.split_first()?;
        let is_full = of_base.targets.iter().all(Option::is_some);
        let mut levels_of_others = others.iter().flat_map(|other| other.targets.iter().skip(1));
        if !is_full || levels_of_others.any(Option::is_some) {
            return None;
        }
        Some(Self { combinations: vec![of_base.clone()], ..self.clone() })
    }

    /// Returns whether `name` is the factor's name, or that of a setting that always changes with
    /// it.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns whether `name` is one of these names without its section, or what readers see of it.
    /// Other factors may have the same.
    pub fn has_short_name(&self, name: &str) -> bool {
        self.names()
            .any(|known| without_section(known) == name || label(&self.engine, known) == name)
    }

    /// Returns the factor's name, and those of the settings that always change with it.
    fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.same.iter().map(|setting| setting.name.as_str());
        std::iter::once(self.name.as_str()).chain(others)
    }
}

impl Factors {
    /// Finds the factors of targets, engine by engine. The first level of each is the base's, or
    /// that of the first target if the engine has none of `bases`.
    pub fn find(profiles: &[Profile], bases: &[String]) -> Self {
        let mut found = Self::default();
        for engine in distinct(profiles.iter().map(|profile| profile.engine.as_str())) {
            let mut targets: Vec<&Profile> = profiles.iter().collect();
            targets.retain(|profile| profile.engine == engine);
            targets.sort_by_key(|profile| !bases.contains(&profile.target));
            found.add(engine, &targets);
        }
        found
    }

    /// Returns the factors of engines whose targets are a full matrix of two factors or more.
    pub fn of_full_matrices(self) -> Vec<Factor> {
        if !self.alike.is_empty() {
            return Vec::new();
        }
        let engines = distinct(self.factors.iter().map(|factor| factor.engine.clone()));
        let mut factors = self.factors;

        for engine in engines {
            let own = factors.iter().filter(|factor| factor.engine == engine);
            let is_full_matrix = own.clone().count() > 1 && own.clone().all(Factor::is_full);
            if !is_full_matrix {
                factors.retain(|factor| factor.engine != engine);
            }
        }
        factors
    }

    /// Adds the factors of an engine's targets; the first target is the base.
    fn add(&mut self, engine: &str, targets: &[&Profile]) {
        let mut own = columns(targets);
        let determined = take_determined(&mut own);

        for (index, target) in targets.iter().enumerate() {
            let first = (0..index).find(|other| are_alike(&own, *other, index));
            if let Some(first) = first {
                self.alike.push([targets[first], target].map(|profile| profile.target.clone()));
            }
        }

        for column in &own {
            self.factors.push(factor(engine, targets, column, &own, &determined));
        }
        let names: Vec<String> = own.iter().map(|column| column.name.clone()).collect();
        for name in determined.iter().flat_map(Column::names) {
            self.determined.push((name.to_owned(), names.clone()));
        }
    }
}

/// A difference between targets: settings that group them in the same way are one column.
struct Column {
    /// The name of the first of these settings.
    name: String,
    /// The values of the first.
    levels: Vec<String>,
    /// The level of each target. Levels are numbered in the order of targets, so that settings
    /// which group targets in the same way have the same numbers.
    level_of: Vec<usize>,
    /// The other settings.
    same: Vec<SameSetting>,
    /// The plan names it.
    is_of_plan: bool,
}

impl Column {
    /// Returns the names of all these settings.
    fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.same.iter().map(|setting| setting.name.as_str());
        std::iter::once(self.name.as_str()).chain(others)
    }
}

/// A target's value of a factor.
#[derive(Clone, Copy)]
struct Value<'a> {
    /// The value that is the same for all spellings.
    canonical: &'a str,
    shown: &'a str,
}

impl<'a> Value<'a> {
    const NOT_SET: Self = Self { canonical: NOT_SET, shown: NOT_SET };

    fn of_plan(value: &'a str) -> Self {
        Self { canonical: value, shown: value }
    }
}

/// Returns all differences between targets: those that the plan names, then the build, then
/// settings.
fn columns(targets: &[&Profile]) -> Vec<Column> {
    let mut columns = Vec::new();
    let named = distinct(targets.iter().flat_map(|profile| &profile.factors).map(|(name, _)| name));

    for name in &named {
        let values = targets.iter().map(|profile| {
            let value = profile.factors.iter().find(|(other, _)| other == *name);
            value.map_or(Value::NOT_SET, |(_, value)| Value::of_plan(value))
        });
        add_column(&mut columns, name, &values.collect::<Vec<_>>());
    }
    for column in &mut columns {
        column.is_of_plan = true;
    }

    let builds: Vec<Value<'_>> =
        targets.iter().map(|profile| Value::of_plan(&profile.build)).collect();
    add_column(&mut columns, BUILD, &builds);

    for key in distinct(targets.iter().flat_map(|profile| &profile.declared)) {
        let setting = targets.iter().find_map(|profile| profile.settings.get(key));
        let name = setting.map_or(key, |setting| &setting.name);
        // A factor of the plan replaces the setting of that name.
        if !named.contains(&name) {
            let values: Vec<Value<'_>> =
                targets.iter().map(|target| value(targets, target, key)).collect();
            add_column(&mut columns, name, &values);
        }
    }
    columns
}

/// Adds a difference, to the column that groups targets in the same way if there is one.
fn add_column(columns: &mut Vec<Column>, name: &str, values: &[Value<'_>]) {
    let canonical = distinct(values.iter().map(|value| value.canonical));
    if canonical.len() < 2 {
        return;
    }
    let numbered = canonical.iter().enumerate();
    let number_of: BTreeMap<&str, usize> = numbered.map(|(level, value)| (*value, level)).collect();
    let level_of: Vec<usize> = values.iter().map(|value| number_of[value.canonical]).collect();

    // Of several spellings of a value the first is shown.
    let first_of = |level: &str| values.iter().find(|value| value.canonical == level);
    let shown = canonical.iter().filter_map(|level| Some(first_of(level)?.shown.to_owned()));
    let levels: Vec<String> = shown.collect();

    let name = name.to_owned();
    if let Some(column) = columns.iter_mut().find(|column| column.level_of == level_of) {
        column.same.push(SameSetting { name, levels });
        return;
    }
    columns.push(Column { name, levels, level_of, same: Vec::new(), is_of_plan: false });
}

/// Removes the columns that the others determine, and returns them.
fn take_determined(columns: &mut Vec<Column>) -> Vec<Column> {
    let mut determined = Vec::new();
    // The setting that was declared last most likely follows from the others.
    for index in (0..columns.len()).rev() {
        if columns.len() > 1 && !varies_alone(columns, index) {
            determined.insert(0, columns.remove(index));
        }
    }
    determined
}

/// Returns whether two targets differ in one column and in no other.
fn varies_alone(columns: &[Column], index: usize) -> bool {
    let level_of = &columns[index].level_of;
    let (before, after) = (&columns[..index], &columns[index + 1..]);

    for a in 0..level_of.len() {
        for b in 0..a {
            let is_same_elsewhere = are_alike(before, a, b) && are_alike(after, a, b);
            if level_of[a] != level_of[b] && is_same_elsewhere {
                return true;
            }
        }
    }
    false
}

/// Returns whether two targets have the same level in each column.
fn are_alike(columns: &[Column], a: usize, b: usize) -> bool {
    columns.iter().all(|column| column.level_of[a] == column.level_of[b])
}

/// Returns the value of a target's setting. For a target that never started, this is
/// the value of other targets of the same build that don't declare the setting either.
fn value<'a>(targets: &[&'a Profile], target: &'a Profile, key: &String) -> Value<'a> {
    let mut setting = target.settings.get(key);
    if setting.is_none() && !target.is_reported {
        let mut of_build = targets.iter().filter(|other| {
            other.is_reported && other.build == target.build && !other.declared.contains(key)
        });
        setting = of_build.find_map(|other| other.settings.get(key));
    }

    match setting {
        Some(setting) => Value { canonical: &setting.canonical, shown: &setting.value },
        None => Value::NOT_SET,
    }
}

/// Returns the factor of a column, with the targets of each combination of the other columns. `own`
/// are the columns of all factors; `determined` are settings that follow from factors.
fn factor(
    engine: &str,
    targets: &[&Profile],
    column: &Column,
    own: &[Column],
    determined: &[Column],
) -> Factor {
    let mut others: Vec<&Column> = own.iter().collect();
    others.retain(|other| other.level_of != column.level_of);

    let mut combinations = Vec::new();
    let mut changing_with = BTreeSet::new();
    for other_levels in distinct((0..targets.len()).map(|target| levels_of(&others, target))) {
        // A target for each level of the factor, or `None` where the combination lacks one.
        let target_of_level: Vec<Option<usize>> = (0..column.levels.len())
            .map(|level| {
                (0..targets.len()).find(|&target| {
                    column.level_of[target] == level && levels_of(&others, target) == other_levels
                })
            })
            .collect();

        // A setting that changes between these targets is part of the factor's effect.
        let compared: Vec<usize> = target_of_level.iter().flatten().copied().collect();
        for other in determined {
            let levels: BTreeSet<usize> =
                compared.iter().map(|target| other.level_of[*target]).collect();
            if levels.len() > 1 {
                changing_with.extend(other.names().map(str::to_owned));
            }
        }

        combinations.push(Combination {
            others: described(&others, &other_levels),
            targets: target_of_level
                .into_iter()
                .map(|target| Some(targets[target?].target.clone()))
                .collect(),
        });
    }

    let always = column.same.iter().map(|setting| setting.name.clone());
    Factor {
        engine: engine.to_owned(),
        name: column.name.clone(),
        with: always.chain(changing_with).collect(),
        levels: column.levels.clone(),
        combinations,
        same: column.same.clone(),
        is_of_plan: column.is_of_plan,
    }
}

/// Returns the name of a factor or setting of an engine for readers.
fn label<'a>(engine: &str, name: &'a str) -> &'a str {
    let bare = without_section(name);
    let is_path = Engine::named(engine).is_some_and(|engine| engine.facts().has_nested_options);
    match bare.rsplit_once('.') {
        Some((_, last_part)) if is_path => last_part,
        _ => bare,
    }
}

/// Returns the levels of a target in some columns.
fn levels_of(columns: &[&Column], target: usize) -> Vec<usize> {
    columns.iter().map(|column| column.level_of[target]).collect()
}

/// Returns a combination in words: `full_page_writes=on, build=pg17`.
fn described(columns: &[&Column], levels: &[usize]) -> String {
    let parts = columns.iter().zip(levels).map(|(column, level)| {
        let (name, value) = (&column.name, &column.levels[*level]);
        format!("{name}={value}")
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
