//! Compares each target with the target of the same name in the first run: runs become the targets.

use record::{CellKey, Run, Target};

use super::{Incomparable, Recorded, build_differences, retain_cells};
use crate::figures::{ComparedSides, Figures, run_label};
use crate::settings::{Comparison, Settings, Side, has_cells, with_base};

/// Returns the key of a cell where runs are compared: the run is its target, and its target is a
/// variant.
pub fn key_by_run(run: usize, cell: &CellKey) -> CellKey {
    key_of(run_label(run), cell)
}

/// Returns the key of a cell with another target; its own target becomes a variant.
pub(super) fn key_of(target: String, cell: &CellKey) -> CellKey {
    let variant = match &cell.variant {
        Some(variant) => format!("{} {variant}", cell.target),
        None => cell.target.clone(),
    };
    CellKey { target, variant: Some(variant), ..*cell }
}

/// Turns runs into targets, and targets into variants. Drops cells that the first run lacks.
///
/// # Errors
/// Fails if the first run shares no target with another run.
pub fn by_run(runs: &[Recorded], figures: &mut Figures) -> Result<Run, Incomparable> {
    let shared: Vec<&str> = runs[0]
        .run
        .targets
        .iter()
        .map(|target| target.name.as_str())
        .filter(|name| runs[1..].iter().any(|other| has_target(&other.run, name)))
        .collect();

    if shared.is_empty() {
        return Err(Incomparable {
            message:
                "no target of the first run is in another run; `--by-run` compares targets with the same name"
                    .to_owned(),
            help: "remove `--by-run` to compare targets with different names",
        });
    }

    let keep = |run: usize, cell: &mut CellKey| {
        let is_shared = shared.contains(&cell.target.as_str());
        *cell = key_by_run(run, cell);
        is_shared
    };

    retain_cells(figures, keep);

    // Targets are now runs, so the differences between the targets of one run say nothing.
    let differences = shared.iter().flat_map(|name| compare_by_run(runs, name));
    figures.sides = ComparedSides::Runs;
    figures.settings = Settings { differences: differences.collect(), ..Settings::default() };
    Ok(as_targets(runs, |name| shared.contains(&name)))
}

fn has_target(run: &Run, name: &str) -> bool {
    run.targets.iter().any(|target| target.name == name)
}

/// Returns a run whose targets are the runs, in their order; the first is the base.
fn as_targets(runs: &[Recorded], is_shared: impl Fn(&str) -> bool) -> Run {
    let targets = runs.iter().enumerate().filter_map(|(index, recorded)| {
        let mut targets = recorded.run.targets.iter();
        let target = targets.find(|target| is_shared(&target.name))?;
        Some(Target { name: run_label(index), ..target.clone() })
    });

    Run {
        targets: targets.collect(),
        builds: Vec::new(),
        base: run_label(0),
        bases: Vec::new(),
        ..runs[0].run.clone()
    }
}

/// Compares the target `name` of each run with that of the first run. The compared targets have the
/// names of the runs.
fn compare_by_run(runs: &[Recorded], name: &str) -> Vec<Comparison> {
    let mut first_build = None;
    let mut sides = Vec::new();

    for (index, Recorded { run, cells }) in runs.iter().enumerate() {
        let mut targets = run.targets.iter();
        let target = targets.find(|target| target.name == name && has_cells(run, name));
        let Some(target) = target else { continue };
        let mut side = Side::new(run, target, cells.iter().map(|(_, cell)| cell));
        side.plan.name = run_label(index);

        if let Some(build) = run.builds.iter().find(|build| build.name == target.build) {
            let first = *first_build.get_or_insert(build);
            if !build_differences(first, build).is_empty() {
                side.plan.build = format!("{} of {}", build.name, side.plan.name);
            }
        }
        sides.push(side);
    }

    let of_target = |comparison| Comparison { target: Some(name.to_owned()), ..comparison };
    let comparisons = with_base(0, &sides, &run_label(0)).into_iter();
    comparisons.map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use record::{Build, CellRef};

    use super::*;

    fn run(names: &[&str], version: &str, jit: &str) -> Run {
        let target = |name: &&str| Target {
            name: (*name).into(),
            build: "pg".into(),
            config: "base".into(),
            engine: "postgres".into(),
            set: Vec::new(),
            declared: vec![words::DeclaredOption {
                name: "jit".into(),
                value: jit.into(),
                key: "jit".into(),
                canonical: jit.into(),
                ..words::DeclaredOption::default()
            }],
            factors: Vec::new(),
            files: Vec::new(),
        };
        Run {
            builds: vec![Build {
                name: "pg".into(),
                engine: "postgres".into(),
                version: version.into(),
                source: "/opt".into(),
                files: Vec::new(),
                commit: None,
            }],
            targets: names.iter().map(target).collect(),
            cells: names.iter().map(|name| CellRef::new(name, "insert", None, 1, 1)).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn each_run_keeps_its_build_and_options() {
        let runs = [
            run(&["pg.a", "pg.b"], "17.2", "on"),
            run(&["pg.b"], "17.2", "off"),
            run(&["pg.a"], "17.3", "on"),
        ];
        let runs = runs.map(|run| Recorded { run, cells: Vec::new() });
        let compared = |name: &str| compare_by_run(&runs, name).remove(0);
        let comparison = compared("pg.b");
        assert_eq!((&*comparison.b, &*comparison.b_build), ("run 2", "pg"));
        let jit = &comparison.settings[0];
        assert_eq!(jit.name.as_str(), "jit");
        assert_eq!(jit.a.as_deref(), Some("on"));
        assert_eq!(jit.b.as_deref(), Some("off"));
        let comparison = compared("pg.a");
        assert_eq!(&*comparison.b, "run 3");
        assert_eq!(&*comparison.b_build, "pg of run 3");

        let shown = as_targets(&runs, |_| true);
        let names: Vec<&str> = shown.targets.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["run 1", "run 2", "run 3"]);
    }
}
