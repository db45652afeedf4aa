//! Whether runs can be compared: each must be another one, they must have done the same work, and targets of one name must
//! be the same.

use std::collections::HashMap;

use record::{Build, Cell, FactDifference, Host, ResolvedValue, Run, RunDir, Target};

use crate::harness;
use crate::outcome::UsageError;

/// Facts that are never the same twice.
const VOLATILE: [&str; 5] = [
    "cpu_steal_since_boot_percent",
    "memory_available_bytes",
    "swap_used_bytes",
    "huge_page_free_count",
    "data_fs_free_bytes",
];

/// Facts of a machine, settings or targets that are told when they differ; more are counted.
const FACTS_MAX: usize = 4;

/// Refuses runs whose values are no repeats of each other, and says what should be known of those that are.
pub fn refuse_no_repeats(directories: &[RunDir], runs: &[Run]) -> anyhow::Result<Vec<String>> {
    let cells = refuse_copies(directories, runs)?;
    refuse_other_work(runs)?;
    refuse_other_targets(runs)?;
    Ok(notes(runs, &cells))
}

/// Refuses runs that can't be compared with each other, target by target, and says what should be known of those that can,
/// what has changed in `targets` first.
pub fn refuse_no_partners(directories: &[RunDir], runs: &[Run]) -> anyhow::Result<Vec<String>> {
    let cells = refuse_copies(directories, runs)?;
    refuse_other_work(runs)?;
    let mut notes = notes(runs, &cells);
    notes.extend(changes(runs));
    Ok(notes)
}

/// Refuses a run that has a cell of another run: the same directory, a link to it, or a copy. A measurement that counts twice
/// makes intervals narrower than they are. Of several runs it gives the cells of each that were begun.
pub fn refuse_copies<'a>(
    directories: &[RunDir],
    runs: impl IntoIterator<Item = &'a Run>,
) -> anyhow::Result<Vec<Vec<Cell>>> {
    if directories.len() < 2 {
        return Ok(Vec::new());
    }
    let mut seen = HashMap::new();
    let mut cells = Vec::new();
    for (index, (directory, run)) in directories.iter().zip(runs).enumerate() {
        let mut of_run = Vec::new();
        for reference in &run.cells {
            let directory = directory.cell(reference)?;
            if !directory.exists() {
                continue;
            }
            let cell = directory.read()?;
            // A record that does not say it of its cells says it of the run.
            let begun = match cell.started_unix_ns {
                0 => run.started_unix_ns,
                begun => begun,
            };
            of_run.push(cell);
            if begun == 0 {
                continue;
            }
            let name = reference.name();
            let first = seen.entry((begun, name)).or_insert(index);
            if *first != index {
                let message = format!(
                    "runs {} and {} are one: `{name}` was begun at the same moment in both",
                    *first + 1,
                    index + 1,
                );
                let help = "a run is no repeat of itself, and no copy of it is: give each run once";
                return Err(UsageError::new(message, Some(help.into())).into());
            }
        }
        cells.push(of_run);
    }
    Ok(cells)
}

/// Refuses runs whose workloads differ: their ratios would be of nothing.
fn refuse_other_work(runs: &[Run]) -> Result<(), UsageError> {
    for (index, run) in runs.iter().enumerate().skip(1) {
        let Some((key, was, is)) = other_value(&runs[0], run) else {
            continue;
        };
        let message = format!(
            "the runs did not do the same work: `{key}` was {was} in run 1, and is {is} in run {}",
            index + 1
        );
        let help = "give runs of one workload: run one of the plans again with the other's values";
        return Err(UsageError::new(message, Some(help.into())));
    }
    Ok(())
}

/// A value of the workload that is not the same. What one of them does not know is its version's default.
fn other_value<'a>(first: &'a Run, run: &'a Run) -> Option<(&'a str, String, String)> {
    let of_work = |run: &'a Run| {
        let values = run.plan.resolved.iter();
        values.filter(|value| value.key.starts_with("workload."))
    };
    let value_in = |run: &'a Run, key: &str| of_work(run).find(|value| value.key == key);
    let shown = |value: Option<&ResolvedValue>| {
        value.map_or("nothing".to_owned(), |value| format!("`{}`", value.value))
    };
    of_work(first).chain(of_work(run)).find_map(|value| {
        let (was, is) = (value_in(first, &value.key), value_in(run, &value.key));
        let is_same = match (was, is) {
            (Some(was), Some(is)) => was.value == is.value,
            (Some(one), None) | (None, Some(one)) => one.origin == "default",
            (None, None) => true,
        };
        (!is_same).then(|| (value.key.as_str(), shown(was), shown(is)))
    })
}

/// Refuses targets of one name that are not the same: their values would not be repeats.
fn refuse_other_targets(runs: &[Run]) -> Result<(), UsageError> {
    for (index, run) in runs.iter().enumerate() {
        for target in &run.targets {
            for (before, first) in runs[..index].iter().enumerate() {
                let mut targets = first.targets.iter();
                let Some(same) = targets.find(|it| it.name == target.name) else {
                    continue;
                };
                if let Some(what) = difference((first, same), (run, target)) {
                    let message = format!(
                        "target `{}` is not the same in runs {} and {}: {what}",
                        target.name,
                        before + 1,
                        index + 1
                    );
                    let help = "`assay compare --by-run` compares the runs instead of taking them for repeats";
                    return Err(UsageError::new(message, Some(help.into())));
                }
            }
        }
    }
    Ok(())
}

/// In what a target is not the same in two runs, in words.
fn difference((first, was): (&Run, &Target), (run, is): (&Run, &Target)) -> Option<String> {
    let mut parts = Vec::new();
    let build = |run: &Run, target: &Target| {
        let mut builds = run.builds.iter();
        builds.find(|build| build.name == target.build).cloned()
    };
    if let (Some(was), Some(is)) = (build(first, was), build(run, is)) {
        parts.extend(build_change(&was, &is));
    }
    let declared = |run: &Run, target: &Target| {
        let settings = target.set.iter().cloned();
        settings
            .chain(harness::declared(run, target))
            .collect::<Vec<_>>()
    };
    let (had, has) = (declared(first, was), declared(run, is));
    if had != has {
        let other = |one: &[(String, String)], other: &[(String, String)]| {
            let settings = one.iter().filter(|setting| !other.contains(setting));
            let texts = settings.map(|(name, value)| format!("`{name} = {value}`"));
            let texts: Vec<String> = texts.collect();
            (!texts.is_empty()).then(|| few(&texts))
        };
        parts.push(match (other(&had, &has), other(&has, &had)) {
            (Some(had), Some(has)) => format!("its config had {had}, and has {has}"),
            (Some(had), None) => format!("its config had {had}, and has not any more"),
            (None, Some(has)) => format!("its config has {has}, and had not"),
            (None, None) => "the settings of its config have another order".to_owned(),
        });
    }
    let texts = |run: &Run, target: &Target| -> Vec<String> {
        let text = |name: &String| {
            let mut files = run.plan.files.iter();
            let file = files.find(|file| file.name == *name);
            file.map_or(String::new(), |file| file.text.clone())
        };
        target.files.iter().map(text).collect()
    };
    if texts(first, was) != texts(run, is) {
        parts.push("the files of its config have changed".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The first of them, and how many more there are.
fn few(texts: &[String]) -> String {
    let shown = texts[..texts.len().min(FACTS_MAX)].join(", ");
    match texts.len().saturating_sub(FACTS_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// In what targets of the first run are not the same in the others, a note for each difference.
fn changes(runs: &[Run]) -> Vec<String> {
    let first = &runs[0];
    let mut notes = Vec::new();
    for (index, run) in runs.iter().enumerate().skip(1) {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for was in &first.targets {
            let mut targets = run.targets.iter();
            let same = targets.find(|target| target.name == was.name);
            let Some(what) = same.and_then(|is| difference((first, was), (run, is))) else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, names)) => names.push(format!("`{}`", was.name)),
                None => found.push((what, vec![format!("`{}`", was.name)])),
            }
        }
        let note = |(what, names): (String, Vec<String>)| {
            let who = match names.as_slice() {
                [one] => format!("Target {one} is not"),
                many => format!("None of {} is", few(many)),
            };
            format!("{who} the same in run {} as in run 1: {what}.", index + 1)
        };
        notes.extend(found.into_iter().map(note));
    }
    notes
}

/// What should be known of runs that are compared all the same. `cells` are those of each run.
fn notes(runs: &[Run], cells: &[Vec<Cell>]) -> Vec<String> {
    let mut notes = Vec::new();
    let first = &runs[0];
    for (index, run) in runs.iter().enumerate().skip(1) {
        let number = index + 1;
        let mut facts = host_differences(&first.host, &run.host);
        facts.retain(|fact| fact.name != harness::CLOCK);
        if !facts.is_empty() {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
            let texts: Vec<String> = facts
                .iter()
                .map(|fact| {
                    format!(
                        "`{}` {} -> {}",
                        fact.name,
                        shown(&fact.first),
                        shown(&fact.now)
                    )
                })
                .collect();
            notes.push(format!(
                "The machine of run {number} is not that of run 1: {}. What differs may be the machine.",
                few(&texts)
            ));
        }
        if run.assay != first.assay {
            notes.push(format!(
                "Assay {} measured run {number}, and assay {} measured run 1. Differences may come from assay itself.",
                run.assay, first.assay
            ));
        }
        let own = match (cells.first(), cells.get(index)) {
            (Some(of_first), Some(of_run)) => {
                harness::differences((first, of_first), (run, of_run))
            }
            _ => Vec::new(),
        };
        if !own.is_empty() {
            let text =
                |(name, was, is): &(String, String, String)| format!("`{name}` {was} -> {is}");
            let texts: Vec<String> = own.iter().map(text).collect();
            notes.push(format!(
                "Run {number} was not measured in the way of run 1: {}. What differs may be what measuring costs.",
                texts.join(", ")
            ));
        }
        if run.seed != first.seed {
            notes.push(format!(
                "Run {number} has the seed {}, and run 1 {}: other rows and choices.",
                run.seed, first.seed
            ));
        }
    }
    notes
}

/// In what a build is not what it was, in words.
pub fn build_change(was: &Build, is: &Build) -> Option<String> {
    // The null engine has the version of assay.
    if was.version != is.version && is.engine != "null" {
        return Some(format!(
            "its version was {}, and is {}",
            was.version, is.version
        ));
    }
    // A build may have moved.
    let sums = |build: &Build| -> Vec<String> {
        build.files.iter().map(|file| file.sha256.clone()).collect()
    };
    if sums(was) == sums(is) {
        return None;
    }
    let other = is
        .files
        .iter()
        .zip(&was.files)
        .find(|(is, was)| is.sha256 != was.sha256);
    Some(match other {
        Some((is, _)) => format!("`{}` has changed", is.path),
        None => format!(
            "it had {} files, and has {}",
            was.files.len(),
            is.files.len()
        ),
    })
}

/// What of the machine is not what it was, but for what is never the same.
pub fn host_differences(first: &Host, now: &Host) -> Vec<FactDifference> {
    let value = |host: &Host, name: &str| {
        let mut facts = host.facts.iter();
        facts
            .find(|(fact, _)| fact == name)
            .map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = first.facts.iter().map(|(name, _)| name).collect();
    let added = now.facts.iter().map(|(name, _)| name);
    names.extend(added.filter(|name| value(first, name).is_none()));
    names
        .into_iter()
        .filter(|name| !VOLATILE.contains(&name.as_str()))
        .map(|name| FactDifference {
            name: name.clone(),
            first: value(first, name),
            now: value(now, name),
        })
        .filter(|difference| difference.first != difference.now)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: &str, origin: &str, version: &str, cache: &str) -> Run {
        Run {
            plan: record::Plan {
                resolved: vec![ResolvedValue {
                    key: "workload.insert.initial-rows".into(),
                    value: rows.into(),
                    origin: origin.into(),
                }],
                ..record::Plan::default()
            },
            builds: vec![Build {
                name: "pg".into(),
                engine: "postgres".into(),
                version: version.into(),
                source: "/opt".into(),
                files: Vec::new(),
            }],
            targets: vec![Target {
                name: "pg.base".into(),
                build: "pg".into(),
                config: "base".into(),
                engine: "postgres".into(),
                set: vec![("cache".into(), cache.into())],
                declared: Vec::new(),
                files: Vec::new(),
            }],
            ..Run::default()
        }
    }

    #[test]
    fn runs_of_other_work_are_not_compared() {
        let first = run("20M", "plan:1:1", "17.2", "1GB");
        assert!(refuse_other_work(&[first.clone(), run("20M", "--set", "17.3", "2GB")]).is_ok());
        let other = run("40M", "plan:1:1", "17.2", "1GB");
        let message = refuse_other_work(&[first.clone(), other])
            .unwrap_err()
            .to_string();
        assert!(
            message.ends_with(
                "`workload.insert.initial-rows` was `20M` in run 1, and is `40M` in run 2"
            ),
            "{message}"
        );
        // A default that one version does not know yet is no other work; what was asked for is.
        let mut without = first.clone();
        without.plan.resolved.clear();
        let default = run("20M", "default", "17.2", "1GB");
        assert!(refuse_other_work(&[without.clone(), default]).is_ok());
        assert!(refuse_other_work(&[without, first]).is_err());
    }

    #[test]
    fn only_the_same_target_is_repeated() {
        let first = run("1", "default", "17.2", "1GB");
        let refused = |other: Run| {
            let refused = refuse_other_targets(&[first.clone(), other]);
            refused.err().map(|error| error.to_string())
        };
        assert_eq!(refused(first.clone()), None);
        let version = refused(run("1", "default", "17.3", "1GB")).unwrap();
        assert!(
            version.contains("runs 1 and 2: its version was 17.2, and is 17.3"),
            "{version}"
        );
        let config = refused(run("1", "default", "17.2", "2GB")).unwrap();
        assert!(
            config.contains("had `cache = 1GB`, and has `cache = 2GB`"),
            "{config}"
        );
        let mut other_name = run("1", "default", "17.3", "1GB");
        other_name.targets[0].name = "pg.next".into();
        assert_eq!(refused(other_name), None);
    }

    #[test]
    fn between_runs_it_is_told_which_targets_have_changed() {
        let first = run("1", "default", "17.2", "1GB");
        assert_eq!(
            changes(&[first.clone(), first.clone()]),
            Vec::<String>::new()
        );
        let mut first = first;
        let mut next = first.targets[0].clone();
        next.name = "pg.next".into();
        first.targets.push(next);
        let mut second = first.clone();
        second.builds[0].version = "17.3".into();
        let mut third = first.clone();
        third.targets[1].set.clear();
        for setting in ["a", "b", "c", "d", "e", "f"] {
            let setting = (setting.to_owned(), "1".to_owned());
            third.targets[0].set.push(setting);
        }
        // What one of them has not is not compared.
        let mut fourth = second.clone();
        fourth.targets.remove(0);
        assert_eq!(
            changes(&[first, second, third, fourth]),
            [
                "None of `pg.base`, `pg.next` is the same in run 2 as in run 1: its version was 17.2, and is 17.3.",
                "Target `pg.base` is not the same in run 3 as in run 1: its config has `a = 1`, `b = 1`, `c = 1`, `d = 1` and 2 \
                 more, and had not.",
                "Target `pg.next` is not the same in run 3 as in run 1: its config had `cache = 1GB`, and has not any more.",
                "Target `pg.next` is not the same in run 4 as in run 1: its version was 17.2, and is 17.3.",
            ]
        );
    }

    #[test]
    fn another_way_of_measuring_is_told_apart_from_the_machine() {
        let first = run("1", "default", "17.2", "1GB");
        let mut other = first.clone();
        other.host.facts = vec![(harness::CLOCK.into(), "system".into())];
        let mut known = first.clone();
        known.host.facts = vec![(harness::CLOCK.into(), "tsc".into())];
        let setting = record::Setting {
            source: Some("assay".into()),
            ..record::Setting::new("perf_level", "disable")
        };
        let of_other = Cell {
            settings: vec![setting],
            ..Cell::default()
        };
        let mut of_first = of_other.clone();
        of_first.settings[0].value = "enable_count".into();
        let cells = [vec![of_first], vec![of_other]];
        assert_eq!(
            notes(&[known, other], &cells),
            [
                "Run 2 was not measured in the way of run 1: `assay_clock` tsc -> system, `perf_level` enable_count -> disable. \
                 What differs may be what measuring costs."
            ]
        );
    }

    #[test]
    fn a_library_that_counts_is_no_repeat_of_one_that_does_not() {
        let first = run("1", "default", "17.2", "1GB");
        let mut counts = first.clone();
        counts.plan.resolved.push(ResolvedValue {
            key: "config.postgres.base.statistics".into(),
            value: "true".into(),
            origin: "plan:9:1".into(),
        });
        let refused = refuse_other_targets(&[first, counts]).unwrap_err();
        let message = refused.to_string();
        assert!(
            message.ends_with("its config has `statistics = true`, and had not"),
            "{message}"
        );
    }

    #[test]
    fn another_machine_version_and_seed_are_told() {
        let first = run("1", "default", "17.2", "1GB");
        assert_eq!(
            notes(&[first.clone(), first.clone()], &[]),
            Vec::<String>::new()
        );
        let mut other = first.clone();
        other.host.facts = vec![("cpu_model".into(), "Z".into())];
        (other.assay.version, other.seed) = ("9".into(), 7);
        let notes = notes(&[first, other], &[]);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("`cpu_model` unknown -> Z"), "{notes:?}");
    }

    #[test]
    fn only_what_lasts_is_compared() {
        let host = |facts: &[(&str, &str)]| Host {
            facts: facts
                .iter()
                .map(|&(name, value)| (name.into(), value.into()))
                .collect(),
            ..Host::default()
        };
        let first = host(&[
            ("cpu_model", "A"),
            ("memory_available_bytes", "1"),
            ("gone", "x"),
        ]);
        let now = host(&[
            ("cpu_model", "B"),
            ("memory_available_bytes", "2"),
            ("new", "y"),
        ]);
        assert_eq!(host_differences(&first, &first), []);
        let found: Vec<String> = host_differences(&first, &now)
            .iter()
            .map(|one| format!("{} {:?} {:?}", one.name, one.first, one.now))
            .collect();
        assert_eq!(
            found,
            [
                r#"cpu_model Some("A") Some("B")"#,
                r#"gone Some("x") None"#,
                r#"new None Some("y")"#,
            ]
        );
    }
}
