//! `--base GROUP=TARGET`: compares the targets of each engine or build with their own base.

use analysis::figures::Figures;
use record::{CellKey, Run, Target};
use runner::failure::UsageError;
use runner::similar::did_you_mean;

use crate::cli::Base;
use crate::output::eprint_line;

/// Targets that are compared with one base.
pub struct Group {
    /// The targets and their base.
    pub run: Run,
    /// The figures of the targets.
    pub figures: Figures,
}

/// Groups the targets by their base. All targets are one group if at most one base is given,
/// without a group's name.
pub fn by_base(bases: &[Base], run: Run, mut figures: Figures) -> Result<Vec<Group>, UsageError> {
    let groups: Option<Vec<(&str, &str)>> =
        bases.iter().map(|base| Some((base.group.as_deref()?, base.target.as_str()))).collect();
    let Some(groups) = groups.filter(|groups| !groups.is_empty()) else {
        return match bases.len() {
            0 | 1 => Ok(vec![Group { run, figures }]),
            _ => Err(UsageError::new(
                "with several bases, each `--base` must name its group",
                Some(
                    "write `--base GROUP=TARGET`, where GROUP is an engine or a build, such as `--base postgres=pg16.base`"
                        .into(),
                ),
            )),
        };
    };
    for (index, (group, base)) in groups.iter().enumerate() {
        check(&run, group, base)?;
        if groups[..index].iter().any(|(other, _)| other == group) {
            return Err(UsageError::new(
                format!("`--base` is given twice for the group `{group}`"),
                Some("keep one of them".into()),
            ));
        }
    }
    // A build is more specific than its engine.
    let group_of = |target: &Target| {
        let names = [&target.build, &target.engine];
        let mut matching = names.into_iter().filter_map(|name| {
            let has_name = |(group, _): &&(&str, &str)| *group == name.as_str();
            groups.iter().find(has_name)
        });
        matching.next()
    };
    let mut by_base = Vec::new();
    for group in &groups {
        let mut own = run.clone();
        own.targets.retain(|target| group_of(target) == Some(group));
        own.base = group.1.to_owned();
        let figures = take_figures(&mut figures, &own);
        by_base.push(Group { run: own, figures });
    }
    if let Some(first) = by_base.first_mut() {
        first.figures.damages = figures.damages;
    }
    let ungrouped = run.targets.iter().filter(|target| group_of(target).is_none());
    let ungrouped: Vec<&str> = ungrouped.map(|target| target.name.as_str()).collect();
    if !ungrouped.is_empty() {
        eprint_line!(
            "note: these targets are not compared, since no `--base` is given for them: {}",
            ungrouped.join(", ")
        );
    }
    Ok(by_base)
}

/// Refuses a group without targets, and a base outside of its group.
fn check(run: &Run, group: &str, base: &str) -> Result<(), UsageError> {
    let is_of = |target: &&Target| target.engine == group || target.build == group;
    let mut names: Vec<&str> =
        (run.targets.iter().filter(is_of)).map(|target| target.name.as_str()).collect();
    if names.is_empty() {
        let groups = run.targets.iter().flat_map(|target| [&target.engine, &target.build]);
        let mut groups: Vec<&str> = analysis::distinct(groups.map(String::as_str));
        return Err(UsageError::new(
            format!("these runs have no engine or build `{group}`"),
            did_you_mean(&mut groups, group, "engines and builds"),
        ));
    }
    if !names.contains(&base) {
        return Err(UsageError::new(
            format!("`{group}` has no target `{base}`"),
            did_you_mean(&mut names, base, "targets"),
        ));
    }
    Ok(())
}

/// Moves the figures of a run's targets out of `figures`.
fn take_figures(figures: &mut Figures, run: &Run) -> Figures {
    let is_own = |cell: &CellKey| run.targets.iter().any(|target| target.name == cell.target);
    let mut own = Figures { settings: figures.settings.clone(), ..Figures::default() };
    let settings = &mut own.settings;
    let has = |name: &str| run.targets.iter().any(|target| target.name == name);
    settings.differences.retain(|pair| has(&pair.a) && has(&pair.b));
    own.rows = figures.rows.extract_if(.., |row| is_own(&row.cell)).collect();
    own.missing = figures.missing.extract_if(.., |row| is_own(&row.cell)).collect();
    own.unfinished = figures.unfinished.extract_if(.., |row| is_own(&row.cell)).collect();
    own.begun = figures.begun.extract_if(.., |row| is_own(&row.cell)).collect();
    own.profiled = figures.profiled.extract_if(.., |step| is_own(&step.row.cell)).collect();
    own
}
