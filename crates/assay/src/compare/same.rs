//! Whether runs can be compared: they must have done the same work, and targets of one name must be the same.

use record::{ResolvedValue, Run, Target};

use crate::outcome::UsageError;
use crate::run::{build_change, host_differences};

/// Facts of a machine that are told when they differ; more are counted.
const FACTS_MAX: usize = 4;

/// Refuses runs whose workloads differ: their ratios would be of nothing.
pub fn refuse_other_work(runs: &[Run]) -> Result<(), UsageError> {
    for (index, run) in runs.iter().enumerate().skip(1) {
        let Some((key, was, is)) = other_value(&runs[0], run) else {
            continue;
        };
        let message = format!(
            "the runs did not do the same work: `{key}` was {was} in run 1, and is {is} in run {}",
            index + 1
        );
        let help =
            "compare runs of one workload: run one of the plans again with the other's values";
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
pub fn refuse_other_targets(runs: &[Run]) -> Result<(), UsageError> {
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
                    let help = "`--by-run` compares the runs instead of taking them for repeats";
                    return Err(UsageError::new(message, Some(help.into())));
                }
            }
        }
    }
    Ok(())
}

fn difference((first, was): (&Run, &Target), (run, is): (&Run, &Target)) -> Option<String> {
    let build = |run: &Run, target: &Target| {
        let mut builds = run.builds.iter();
        builds.find(|build| build.name == target.build).cloned()
    };
    if let (Some(was), Some(is)) = (build(first, was), build(run, is))
        && let Some(what) = build_change(&was, &is)
    {
        return Some(what);
    }
    if was.declared != is.declared {
        let other = |one: &Target, other: &Target| {
            let mut settings = one.declared.iter();
            let setting = settings.find(|setting| !other.declared.contains(setting))?;
            Some(format!("`{} = {}`", setting.0, setting.1))
        };
        let nothing = || "nothing in its place".to_owned();
        return Some(format!(
            "its config had {}, and has {}",
            other(was, is).unwrap_or_else(nothing),
            other(is, was).unwrap_or_else(nothing)
        ));
    }
    let texts = |run: &Run, target: &Target| -> Vec<String> {
        let text = |name: &String| {
            let mut files = run.plan.files.iter();
            let file = files.find(|file| file.name == *name);
            file.map_or(String::new(), |file| file.text.clone())
        };
        target.files.iter().map(text).collect()
    };
    (texts(first, was) != texts(run, is)).then(|| "the files of its config have changed".to_owned())
}

/// What should be known of runs that are compared all the same.
pub fn notes(runs: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    let first = &runs[0];
    for (index, run) in runs.iter().enumerate().skip(1) {
        let number = index + 1;
        let facts = host_differences(&first.host, &run.host);
        if !facts.is_empty() {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
            let texts: Vec<String> = facts
                .iter()
                .take(FACTS_MAX)
                .map(|fact| {
                    format!(
                        "`{}` {} -> {}",
                        fact.name,
                        shown(&fact.first),
                        shown(&fact.now)
                    )
                })
                .collect();
            let more = match facts.len().saturating_sub(FACTS_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notes.push(format!(
                "The machine of run {number} is not that of run 1: {}{more}. What differs may be the machine.",
                texts.join(", ")
            ));
        }
        if run.assay_version != first.assay_version {
            notes.push(format!(
                "Run {number} was measured by assay {}, and run 1 by {}.",
                run.assay_version, first.assay_version
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

#[cfg(test)]
mod tests {
    use record::Build;

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
                declared: vec![("cache".into(), cache.into())],
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
    fn another_machine_version_and_seed_are_told() {
        let first = run("1", "default", "17.2", "1GB");
        assert_eq!(notes(&[first.clone(), first.clone()]), Vec::<String>::new());
        let mut other = first.clone();
        other.host.facts = vec![("cpu_model".into(), "Z".into())];
        (other.assay_version, other.seed) = ("9".into(), 7);
        let notes = notes(&[first, other]);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("`cpu_model` unknown -> Z"), "{notes:?}");
    }
}
