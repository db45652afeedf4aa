//! `--by-run`: each target against the one of its name in the first run. What is compared are then the runs; the target is
//! what they have in common.

use analysis::{Compared, Figures, RunSettings};
use record::{Cell, Run, RunDir, Target};

use crate::outcome::UsageError;
use crate::run::build_change;

/// What a run is called where runs are compared.
pub fn label(run: usize) -> String {
    format!("run {}", run + 1)
}

/// What a target with a variant is called there.
pub fn variant(target: &str, variant: Option<&str>) -> String {
    match variant {
        Some(variant) => format!("{target} {variant}"),
        None => target.to_owned(),
    }
}

/// Makes runs of targets, and variants of what were targets. What the first run has not is left out.
pub fn tell_apart(
    runs: &[Run],
    directories: &[RunDir],
    figures: &mut Figures,
) -> anyhow::Result<Run> {
    let is_in = |run: &Run, name: &str| run.targets.iter().any(|target| target.name == name);
    let others = &runs[1..];
    let shared: Vec<&Target> = runs[0]
        .targets
        .iter()
        .filter(|target| others.iter().any(|run| is_in(run, &target.name)))
        .collect();
    let is_shared = |name: &str| shared.iter().any(|target| target.name == name);
    if shared.is_empty() {
        let message =
            "no target of the first run is in another, and `--by-run` compares those of one name";
        let help = "leave `--by-run` out to compare targets of different names";
        return Err(UsageError::new(message, Some(help.into())).into());
    }
    figures.rows.retain(|row| is_shared(&row.target));
    for row in &mut figures.rows {
        row.variant = Some(variant(&row.target, row.variant.as_deref()));
        row.target = label(row.run);
    }
    figures.unfinished.retain(|cell| is_shared(&cell.target));
    for cell in &mut figures.unfinished {
        cell.variant = Some(variant(&cell.target, cell.variant.as_deref()));
        cell.target = label(cell.run);
    }
    let shown = named_by_run(runs, &shared[0].name);
    figures.begun.retain(|cell| is_shared(&cell.target));
    for cell in &mut figures.begun {
        cell.variant = Some(variant(&cell.target, cell.variant.as_deref()));
        cell.target = label(cell.run);
    }
    figures.settings = match shared[..] {
        // Of several targets it would not be known which of them a setting is of.
        [one] => RunSettings::new(shown.clone(), cells(directories, &one.name, &shown)?).all(0),
        _ => Default::default(),
    };
    Ok(shown)
}

/// Where a reason names its target and its run, these are one.
pub fn say_once(compared: &mut Compared) {
    for row in &mut compared.rows {
        for target in [&compared.base, &row.target] {
            let twice = format!("{target}, {target},");
            for reason in &mut row.reasons {
                *reason = reason.replace(&twice, &format!("{target},"));
            }
        }
    }
}

/// The runs as targets, each with the build of the target `name`.
fn named_by_run(runs: &[Run], name: &str) -> Run {
    let mut shown = runs[0].clone();
    (shown.targets, shown.builds) = (Vec::new(), Vec::new());
    for (index, run) in runs.iter().enumerate() {
        let Some(target) = run.targets.iter().find(|target| target.name == name) else {
            continue;
        };
        let mut target = target.clone();
        target.name = label(index);
        if let Some(build) = run.builds.iter().find(|build| build.name == target.build) {
            let mut build = build.clone();
            let is_changed = |first: &record::Build| build_change(first, &build).is_some();
            if shown.builds.first().is_some_and(is_changed) {
                build.name = format!("{} of {}", build.name, target.name);
                target.build.clone_from(&build.name);
            }
            shown.builds.push(build);
        }
        shown.targets.push(target);
    }
    shown.base = label(0);
    shown
}

/// The cells of the target `name`, as those of the runs.
fn cells(directories: &[RunDir], name: &str, shown: &Run) -> anyhow::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (index, directory) in directories.iter().enumerate() {
        let run = directory.read_run()?;
        for reference in run.cells.iter().filter(|cell| cell.target == name) {
            let directory = directory.cell(reference)?;
            if !directory.exists() {
                continue;
            }
            let mut cell = directory.read()?;
            cell.target = label(index);
            let target = shown.targets.iter().find(|it| it.name == cell.target);
            if let Some(target) = target {
                cell.build.clone_from(&target.build);
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}
