//! Each target against the one of its name in the first run. What is compared are then the runs; the target is what they
//! have in common.

use record::{Cell, CellKey, CellRef, PlanFile, Run, Target};

use super::{Incomparable, Recorded, build_differences};
use crate::{Figures, RunSettings, Settings};

/// What a run is called where runs are compared.
pub fn label(run: usize) -> String {
    format!("run {}", run + 1)
}

/// Returns the key of a cell there: the run is its target, and what was its target is a variant.
pub fn key_by_run(run: usize, cell: &CellKey) -> CellKey {
    let variant = match &cell.variant {
        Some(variant) => format!("{} {variant}", cell.target),
        None => cell.target.clone(),
    };
    CellKey {
        target: label(run),
        variant: Some(variant),
        ..*cell
    }
}

/// Makes runs of targets, and variants of what were targets. What the first run has not is left out.
///
/// # Errors
/// The first run shares no target with another.
pub fn by_run(runs: &[Recorded], figures: &mut Figures) -> Result<Run, Incomparable> {
    let is_in = |run: &Run, name: &str| run.targets.iter().any(|target| target.name == name);
    let shared: Vec<&str> = runs[0]
        .run
        .targets
        .iter()
        .map(|target| target.name.as_str())
        .filter(|name| runs[1..].iter().any(|other| is_in(&other.run, name)))
        .collect();
    if shared.is_empty() {
        return Err(Incomparable {
            message:
                "no target of the first run is in another, and `--by-run` compares those of one name"
                    .to_owned(),
            help: "leave `--by-run` out to compare targets of different names",
        });
    }
    let keep = |run: usize, cell: &mut CellKey| {
        let is_shared = shared.contains(&cell.target.as_str());
        *cell = key_by_run(run, cell);
        is_shared
    };
    figures.rows.retain_mut(|row| keep(row.run, &mut row.cell));
    figures
        .missing
        .retain_mut(|row| keep(row.run, &mut row.cell));
    figures
        .unfinished
        .retain_mut(|it| keep(it.run, &mut it.cell));
    figures.begun.retain_mut(|it| keep(it.run, &mut it.cell));
    figures.settings = settings(runs, &shared);
    Ok(as_targets(runs, |name| shared.contains(&name)))
}

/// A run whose targets are the runs, of which the first is the base: for the order in which they are shown.
fn as_targets(runs: &[Recorded], is_shared: impl Fn(&str) -> bool) -> Run {
    let mut shown = runs[0].run.clone();
    (shown.targets, shown.builds) = (Vec::new(), Vec::new());
    for (index, Recorded { run, .. }) in runs.iter().enumerate() {
        let mut targets = run.targets.iter();
        if let Some(target) = targets.find(|target| is_shared(&target.name)) {
            shown.targets.push(Target {
                name: label(index),
                ..target.clone()
            });
        }
    }
    shown.base = label(0);
    shown
}

/// In what each of the shared targets differs between the runs.
fn settings(runs: &[Recorded], shared: &[&str]) -> Settings {
    let mut settings = Settings::default();
    for name in shared {
        let named = named_by_run(runs, name);
        let cells = cells(runs, name, &named);
        for mut comparison in RunSettings::new(named, cells).all(0).differences {
            comparison.target = Some((*name).to_owned());
            settings.differences.push(comparison);
        }
    }
    settings
}

/// The target `name` of each run as a target that is called as the run is, with its build and the files of its config.
fn named_by_run(runs: &[Recorded], name: &str) -> Run {
    let mut named = runs[0].run.clone();
    (named.targets, named.builds) = (Vec::new(), Vec::new());
    (named.cells, named.plan.files) = (Vec::new(), Vec::new());
    for (index, Recorded { run, .. }) in runs.iter().enumerate() {
        let Some(target) = run.targets.iter().find(|target| target.name == name) else {
            continue;
        };
        let mut target = target.clone();
        target.name = label(index);
        if let Some(build) = run.builds.iter().find(|build| build.name == target.build) {
            let mut build = build.clone();
            let mut first = named.builds.iter().take(1);
            if first.any(|first| !build_differences(first, &build).is_empty()) {
                build.name = format!("{} of {}", build.name, target.name);
                target.build.clone_from(&build.name);
            }
            named.builds.push(build);
        }
        // A file of one name may be another in each run.
        for name in &mut target.files {
            let mut files = run.plan.files.iter();
            let text = files.find(|file| file.name == *name);
            *name = format!("{name} of {}", target.name);
            named.plan.files.extend(text.map(|file| PlanFile {
                name: name.clone(),
                text: file.text.clone(),
            }));
        }
        let cells = run.cells.iter().filter(|cell| cell.key.target == name);
        named.cells.extend(cells.map(|cell| CellRef {
            key: cell.key.of_target(&target.name),
            ..cell.clone()
        }));
        named.targets.push(target);
    }
    named.base = label(0);
    named
}

/// The cells of the target `name`, as those of the runs.
fn cells(runs: &[Recorded], name: &str, named: &Run) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for (_, cell) in run.cells.iter().filter(|(at, _)| at.key.target == name) {
            let mut cell = cell.clone();
            cell.key.target = label(index);
            let target = named.targets.iter().find(|it| it.name == cell.key.target);
            if let Some(target) = target {
                cell.build.clone_from(&target.build);
            }
            cells.push(cell);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use record::Build;

    use super::*;

    fn run(names: &[&str], version: &str, jit: &str) -> Run {
        let target = |name: &&str| Target {
            name: (*name).into(),
            build: "pg".into(),
            config: "base".into(),
            engine: "postgres".into(),
            set: Vec::new(),
            declared: vec![words::Declared {
                name: "jit".into(),
                value: jit.into(),
                key: "jit".into(),
                canonical: jit.into(),
                ..words::Declared::default()
            }],
            files: vec!["my.conf".into()],
        };
        Run {
            plan: record::Plan {
                files: vec![PlanFile {
                    name: "my.conf".into(),
                    text: format!("jit = {jit}"),
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
            targets: names.iter().map(target).collect(),
            cells: names
                .iter()
                .map(|name| CellRef::new(name, "insert", None, 1, 1))
                .collect(),
            ..Run::default()
        }
    }

    #[test]
    fn each_run_has_its_own_build_and_its_own_files() {
        let runs = [
            run(&["pg.a", "pg.b"], "17.2", "on"),
            run(&["pg.b"], "17.2", "off"),
            run(&["pg.a"], "17.3", "on"),
        ];
        let runs = runs.map(|run| Recorded {
            run,
            cells: Vec::new(),
        });
        let named = named_by_run(&runs, "pg.b");
        let names: Vec<&str> = named.targets.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["run 1", "run 2"]);
        assert_eq!(named.targets[1].build, "pg");
        let settings = RunSettings::new(named, Vec::new()).all(0);
        let [comparison] = settings.differences.as_slice() else {
            panic!("{settings:?}");
        };
        let jit = &comparison.settings[0];
        assert_eq!(
            (jit.name.as_str(), jit.a.as_deref(), jit.b.as_deref()),
            ("jit", Some("on"), Some("off"))
        );

        let named = named_by_run(&runs, "pg.a");
        let builds: Vec<&str> = named.targets.iter().map(|it| it.build.as_str()).collect();
        assert_eq!(builds, ["pg", "pg of run 3"]);

        let shown = as_targets(&runs, |_| true);
        let names: Vec<&str> = shown.targets.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["run 1", "run 2", "run 3"]);
    }
}
