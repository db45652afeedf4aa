//! Finds factors: differences between the targets of an engine whose effects can be separated. A
//! factor is named by the plan, or is the build, or a setting that a config declares, with the
//! values that the engines report. A difference that others determine, such as a setting that
//! always changes with another, is not a factor.

use std::collections::BTreeSet;

use serde::Serialize;

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
    /// Its values, that of the base first.
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
        let mut targets = self.combinations.iter().flat_map(|it| &it.targets);
        targets.all(Option::is_some)
    }

    /// Returns the missing targets, each by the values of all factors.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.combinations.iter().flat_map(|combination| {
            let levels = self.levels.iter().zip(&combination.targets);
            let levels = levels.filter(|(_, target)| target.is_none());
            levels.map(|(level, _)| {
                let own = format!("{}={level}", self.name);
                let others = Some(&combination.others).filter(|others| !others.is_empty());
                let parts = std::iter::once(own.as_str()).chain(others.map(String::as_str));
                parts.collect::<Vec<_>>().join(", ")
            })
        });
        missing.collect()
    }

    /// Returns the change of a level from the base's: `synchronous_commit: on -> off`.
    pub fn change(&self, level: usize) -> String {
        format!("{}: {} -> {}", self.name, self.levels[0], self.levels[level])
    }

    /// Returns whether this is its name, or that of a setting that always changes with it.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.names.iter().any(|it| it == name)
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
        let all = self.factors.clone();
        let is_full = |engine: &str| {
            let own = all.iter().filter(|factor| factor.engine == engine);
            own.clone().count() > 1 && own.into_iter().all(Factor::is_full)
        };
        let mut factors = self.factors;
        factors.retain(|factor| self.alike.is_empty() && is_full(&factor.engine));
        factors
    }

    /// Adds the factors of an engine's targets; the first target is the base.
    fn add(&mut self, engine: &str, targets: &[&Profile]) {
        let (own, determined) = columns(targets);
        for (index, target) in targets.iter().enumerate() {
            let is_alike =
                |other: &usize| own.iter().all(|it| it.level_of[*other] == it.level_of[index]);
            if let Some(first) = (0..index).find(is_alike) {
                let pair = [targets[first], target].map(|profile| profile.target.clone());
                self.alike.push(pair);
            }
        }
        for column in &own {
            self.factors.push(factor(engine, targets, column, &own, &determined));
        }
        let names: Vec<String> = own.iter().map(|column| column.names[0].clone()).collect();
        let determined = determined.into_iter().flat_map(|column| column.names);
        self.determined.extend(determined.map(|name| (name, names.clone())));
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

/// Returns the columns that are factors, and those that these determine.
fn columns(targets: &[&Profile]) -> (Vec<Column>, Vec<Column>) {
    let mut columns: Vec<Column> = Vec::new();
    let mut add = |name: String, values: Vec<(&str, &str)>| {
        let canonical = distinct(values.iter().map(|(canonical, _)| *canonical));
        let level_of = values.iter().map(|(value, _)| {
            let position = canonical.iter().position(|it| it == value);
            position.unwrap_or_default()
        });
        let level_of: Vec<usize> = level_of.collect();
        let levels = (0..canonical.len()).filter_map(|level| {
            let first = level_of.iter().position(|it| *it == level)?;
            Some(values[first].1.to_owned())
        });
        match columns.iter_mut().find(|column| column.level_of == level_of) {
            _ if canonical.len() < 2 => {}
            Some(column) => column.names.push(name),
            None => columns.push(Column { names: vec![name], levels: levels.collect(), level_of }),
        }
    };
    let named = distinct(targets.iter().flat_map(|it| &it.factors).map(|(name, _)| name));
    for name in &named {
        let values = targets.iter().map(|target| {
            let mut own = target.factors.iter();
            let own = own.find(|(other, _)| other == *name);
            own.map_or((NOT_SET, NOT_SET), |(_, value)| (value, value))
        });
        add((*name).clone(), values.collect());
    }
    let builds = targets.iter().map(|it| (it.build.as_str(), it.build.as_str()));
    add(BUILD.to_owned(), builds.collect());
    for key in distinct(targets.iter().flat_map(|it| &it.declared)) {
        let values = targets.iter().map(|target| value(targets, target, key));
        let mut of_key = targets.iter().filter_map(|it| it.settings.get(key));
        let name = of_key.next().map_or(key, |setting| &setting.name);
        // A factor of the plan replaces the setting of that name.
        if !named.contains(&name) {
            add(name.clone(), values.collect());
        }
    }
    let mut determined = Vec::new();
    // The setting that was declared last most likely follows from the others.
    for index in (0..columns.len()).rev() {
        let is_same = |a: usize, b: usize| {
            let others = columns.iter().enumerate().filter(|(other, _)| *other != index);
            others.into_iter().all(|(_, column)| column.level_of[a] == column.level_of[b])
        };
        let level_of = &columns[index].level_of;
        let mut pairs = (0..level_of.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        if !pairs.any(|(a, b)| level_of[a] != level_of[b] && is_same(a, b)) && columns.len() > 1 {
            determined.insert(0, columns.remove(index));
        }
    }
    (columns, determined)
}

/// Returns the canonical value of a target's setting, and the value as it is shown. A target that
/// never started takes the value of others of its build that don't declare the setting either.
fn value<'a>(targets: &[&'a Profile], target: &'a Profile, key: &String) -> (&'a str, &'a str) {
    let own = target.settings.get(key);
    let of_build = || {
        let mut others = targets
            .iter()
            .filter(|it| it.is_reported && it.build == target.build && !it.declared.contains(key));
        others.find_map(|other| other.settings.get(key))
    };
    let setting = own.or_else(|| of_build().filter(|_| !target.is_reported));
    setting.map_or((NOT_SET, NOT_SET), |it| (&it.canonical, &it.value))
}

fn factor(
    engine: &str,
    targets: &[&Profile],
    column: &Column,
    own: &[Column],
    determined: &[Column],
) -> Factor {
    let others = || own.iter().filter(|other| other.level_of != column.level_of);
    let around = |target: usize| others().map(|it| it.level_of[target]).collect::<Vec<_>>();
    let mut combinations = Vec::new();
    let mut with = BTreeSet::new();
    for place in distinct((0..targets.len()).map(around)) {
        let here = |target: &usize| around(*target) == place;
        let target_of = |level: usize| {
            let mut targets = (0..targets.len()).filter(here);
            targets.find(|target| column.level_of[*target] == level)
        };
        let of_levels: Vec<Option<usize>> = (0..column.levels.len()).map(target_of).collect();
        let there = || of_levels.iter().flatten();
        let changing = determined.iter().filter(|other| {
            let values: BTreeSet<usize> = there().map(|target| other.level_of[*target]).collect();
            values.len() > 1
        });
        with.extend(changing.flat_map(|other| other.names.iter().cloned()));
        let parts = others().zip(&place);
        let parts = parts.map(|(it, level)| format!("{}={}", it.names[0], it.levels[*level]));
        combinations.push(Combination {
            others: parts.collect::<Vec<_>>().join(", "),
            targets: of_levels
                .iter()
                .map(|target| Some(targets[(*target)?].target.clone()))
                .collect(),
        });
    }
    let names = column.names[1..].to_vec();
    Factor {
        engine: engine.to_owned(),
        name: column.names[0].clone(),
        with: names.iter().cloned().chain(with).collect(),
        levels: column.levels.clone(),
        combinations,
        names,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
}
