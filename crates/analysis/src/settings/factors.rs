//! Finds factors: differences between the targets of an engine whose effects can be separated. A
//! factor is named by the plan, or is the build, or a setting that a config declares, with the
//! values that the engines report. A difference that others determine, such as a setting that
//! always changes with another, is not a factor.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use words::Engine;

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
    /// Other names: of settings that have one value wherever it has one.
    #[serde(skip)]
    pub names: Vec<String>,
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

    /// Returns the name for readers. The path of an option inside others is left out, since it is
    /// long and says little: `block_size` of `block_based_table_factory.block_size`.
    pub fn label(&self) -> &str {
        let engine = Engine::named(&self.engine);
        let is_path = engine.is_some_and(|engine| engine.facts().has_nested_options);
        match self.name.rsplit_once('.') {
            Some((_, last_part)) if is_path => last_part,
            _ => &self.name,
        }
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
        self.name == name || self.names.iter().any(|other| other == name)
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
        let names: Vec<String> = own.iter().map(|column| column.names[0].clone()).collect();
        for name in determined.into_iter().flat_map(|column| column.names) {
            self.determined.push((name, names.clone()));
        }
    }
}

/// A difference between targets: settings that group them in the same way are one column.
struct Column {
    names: Vec<String>,
    levels: Vec<String>,
    /// The level of each target. Levels are numbered in the order of targets, so that settings
    /// which group targets in the same way have the same numbers.
    level_of: Vec<usize>,
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
    let levels = canonical.iter().enumerate();
    let number_of: BTreeMap<&str, usize> = levels.map(|(level, value)| (*value, level)).collect();
    let level_of: Vec<usize> = values.iter().map(|value| number_of[value.canonical]).collect();

    if let Some(column) = columns.iter_mut().find(|column| column.level_of == level_of) {
        column.names.push(name.to_owned());
        return;
    }
    // Of several spellings of a value the first is shown.
    let first_of = |level: &str| values.iter().find(|value| value.canonical == level);
    let levels = canonical.iter().filter_map(|level| Some(first_of(level)?.shown.to_owned()));
    columns.push(Column { names: vec![name.to_owned()], levels: levels.collect(), level_of });
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
                changing_with.extend(other.names.iter().cloned());
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

    let names = column.names[1..].to_vec();
    Factor {
        engine: engine.to_owned(),
        name: column.names[0].clone(),
        with: names.iter().cloned().chain(changing_with).collect(),
        levels: column.levels.clone(),
        combinations,
        names,
    }
}

/// Returns the levels of a target in some columns.
fn levels_of(columns: &[&Column], target: usize) -> Vec<usize> {
    columns.iter().map(|column| column.level_of[target]).collect()
}

/// Returns a combination in words: `full_page_writes=on, build=pg17`.
fn described(columns: &[&Column], levels: &[usize]) -> String {
    let parts = columns.iter().zip(levels).map(|(column, level)| {
        let (name, value) = (&column.names[0], &column.levels[*level]);
        format!("{name}={value}")
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ProfileSetting;

    /// Returns a target with the settings of its config, all of them declared.
    fn profile(target: &str, build: &str, settings: &[(&str, &str)]) -> Profile {
        let setting = |(name, value): &(&str, &str)| {
            let setting = ProfileSetting {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
                canonical: value.to_lowercase(),
            };
            ((*name).to_owned(), setting)
        };
        Profile {
            target: target.to_owned(),
            engine: "mysql".to_owned(),
            build: build.to_owned(),
            is_reported: true,
            settings: settings.iter().map(setting).collect::<BTreeMap<_, _>>(),
            declared: settings.iter().map(|(name, _)| (*name).to_owned()).collect(),
            factors: Vec::new(),
        }
    }

    /// Returns the targets of a published comparison of durability: `sync` is of the binary log as
    /// well, where there is one.
    fn durability() -> Vec<Profile> {
        let mut all = Vec::new();
        for log in ["0", "1"] {
            for sync in ["0", "1"] {
                for doublewrite in ["OFF", "ON"] {
                    let both = if log == sync { sync } else { "0" };
                    let settings = [
                        ("log_bin", log),
                        ("flush", sync),
                        ("sync_binlog", both),
                        ("doublewrite", doublewrite),
                        ("cache", "1G"),
                    ];
                    let name = format!("m.bl{log}_sync{sync}_dw{doublewrite}");
                    all.push(profile(&name, "m", &settings));
                }
            }
        }
        all
    }

    fn names(found: &Factors) -> Vec<&str> {
        found.factors.iter().map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn settings_in_all_combinations_are_factors_and_derived_settings_are_not() {
        let found = Factors::find(&durability(), &["m.bl1_sync1_dwON".to_owned()]);
        assert_eq!(names(&found), ["log_bin", "flush", "doublewrite"]);
        assert_eq!(found.determined[0].0, "sync_binlog");
        assert!(found.alike.is_empty());
        let flush = &found.factors[1];
        assert_eq!(flush.levels, ["1", "0"]);
        assert_eq!(flush.with, ["sync_binlog"]);
        assert_eq!(flush.combinations.len(), 4);
        let first = &flush.combinations[0];
        assert_eq!(first.others, "log_bin=1, doublewrite=ON");
        let target = |name: &str| Some(name.to_owned());
        let expected = [target("m.bl1_sync1_dwON"), target("m.bl1_sync0_dwON")];
        assert_eq!(first.targets, expected);
        assert!(flush.missing().is_empty());
        assert_eq!(flush.change(1), "flush: 1 -> 0");
    }

    #[test]
    fn a_plan_can_name_factors_that_no_setting_shows_also_of_builds() {
        let target = |build: &str, compiler: &str, disk: &str| {
            let mut profile = profile(&format!("{build}.{disk}"), build, &[("cache", "1G")]);
            let factors = [("compiler", compiler), ("disk", disk)];
            let factors = factors.map(|(name, value)| (name.to_owned(), value.to_owned()));
            profile.factors = factors.to_vec();
            profile
        };
        let targets = ["gcc", "clang"].map(|compiler| {
            ["ssd", "ram"].map(|disk| target(&format!("pg-{compiler}"), compiler, disk))
        });
        let found = Factors::find(&targets.concat(), &[]);
        assert_eq!(names(&found), ["compiler", "disk"]);
        assert!(found.factors[0].is_named("build") && found.alike.is_empty());
        assert_eq!(found.factors[1].change(1), "disk: ssd -> ram");
        assert_eq!(found.factors[1].combinations[1].others, "compiler=clang");
        // A target without it has a value of its own.
        let mut targets = targets.concat();
        targets[3].factors.pop();
        let found = Factors::find(&targets, &[]);
        assert_eq!(found.factors[1].levels, ["ssd", "ram", NOT_SET]);
    }

    #[test]
    fn combinations_that_a_factor_lacks_are_named() {
        let mut targets = durability();
        targets.retain(|it| it.target != "m.bl0_sync1_dwON");
        let found = Factors::find(&targets, &[]);
        assert_eq!(names(&found), ["log_bin", "flush", "doublewrite"]);
        let missing = found.factors[1].missing();
        assert_eq!(missing, ["flush=1, log_bin=0, doublewrite=ON"]);
        assert_eq!(found.factors[1].one_at_a_time(), None, "others have several levels");
    }

    /// The usual form of tuning: a base, and configs that change one option each.
    #[test]
    fn targets_that_differ_from_the_base_in_one_factor_are_known_next_to_its_values() {
        let of = |name: &str, sync: &str, scale: &str| {
            profile(&format!("pg.{name}"), "pg", &[("sync", sync), ("scale", scale)])
        };
        let targets = [
            of("a1", "on", "0.1"),
            of("base", "on", "0.2"),
            of("a3", "off", "0.2"),
            of("a16", "on", "0.05"),
        ];
        let found = Factors::find(&targets, &["pg.base".to_owned()]);
        assert_eq!(names(&found), ["sync", "scale"]);

        let alone: Vec<Factor> = found.factors.iter().filter_map(Factor::one_at_a_time).collect();
        let target = |name: &str| Some(format!("pg.{name}"));
        let [sync, scale] = alone.as_slice() else { panic!("{alone:?}") };
        assert_eq!(sync.combinations[0].targets, [target("base"), target("a3")]);
        assert_eq!(scale.levels, ["0.2", "0.1", "0.05"]);
        let expected = [target("base"), target("a1"), target("a16")];
        assert_eq!(scale.combinations[0].targets, expected);
        assert!(alone.iter().all(|factor| factor.combinations.len() == 1 && factor.is_full()));
    }

    #[test]
    fn settings_that_always_change_together_are_one_factor_and_builds_are_one() {
        let both = |target: &str, build: &str, value: &str| {
            profile(target, build, &[("a", value), ("b", value)])
        };
        let targets = [
            both("x.off", "x", "off"),
            both("x.on", "x", "ON"),
            both("y.off", "y", "off"),
            both("y.on", "y", "on"),
        ];
        let found = Factors::find(&targets, &[]);
        assert_eq!(names(&found), ["build", "a"]);
        let setting = &found.factors[1];
        assert_eq!((&*setting.levels[1], &*setting.with[0]), ("ON", "b"));
        assert!(setting.is_named("b") && !setting.is_named("build"));
        assert_eq!(setting.combinations[1].others, "build=y");
    }

    #[test]
    fn a_target_that_never_came_up_has_what_others_of_its_build_have_by_default() {
        let mut on = profile("x.on", "x", &[("a", "on"), ("b", "1")]);
        on.declared = vec!["b".to_owned()];
        let mut off = profile("x.off", "x", &[("a", "off"), ("b", "2")]);
        off.declared = vec!["a".to_owned(), "b".to_owned()];
        let mut dead = profile("x.dead", "x", &[("b", "2")]);
        dead.is_reported = false;
        let mut off_too = profile("x.off-too", "x", &[("a", "off"), ("b", "1")]);
        off_too.declared = off.declared.clone();
        let found = Factors::find(&[on, off, dead, off_too], &[]);
        assert_eq!(names(&found), ["b", "a"]);
        assert!(found.factors.iter().all(|it| it.missing().is_empty()));
    }

    #[test]
    fn targets_without_a_difference_are_listed_by_engine() {
        let mut other = profile("p.a", "p", &[("a", "2")]);
        other.engine = "postgres".to_owned();
        let twins = ["x.a", "x.a-again"].map(|name| profile(name, "x", &[("a", "1")]));
        let [a, again] = twins;
        let found = Factors::find(&[a, again, other], &[]);
        assert!(found.factors.is_empty());
        let pair = ["x.a", "x.a-again"].map(str::to_owned);
        assert_eq!(found.alike, [pair]);
    }

    #[test]
    fn options_of_rocksdb_are_shown_without_their_path() {
        let named = |engine: &str, name: &str| Factor {
            engine: engine.into(),
            name: name.into(),
            ..Factor::default()
        };
        let block_size = named("rocksdb", "block_based_table_factory.block_size");
        assert_eq!(block_size.label(), "block_size");
        assert_eq!(named("rocksdb", "compression").label(), "compression");
        // The prefix of an extension of PostgreSQL says whose option it is.
        assert_eq!(named("postgres", "auto_explain.log_timing").label(), "auto_explain.log_timing");
    }
}
