//! `--base GROUP=TARGET`: compares the targets of each engine or build with their own base.

use analysis::figures::Figures;
use record::{CellKey, Run, Target};
use runner::failure::UsageError;
use runner::similar::did_you_mean;

use super::arguments::Base;

/// Targets that are compared with one base.
#[derive(Clone, Debug)]
pub struct Group {
    /// The targets and their base.
    pub run: Run,
    /// The figures of the targets.
    pub figures: Figures,
}

/// A base that is given for a group.
struct GroupBase<'a> {
    /// The engine or build.
    group: &'a str,
    target: &'a str,
}

/// Groups the targets by their base. All targets are one group if at most one base is given,
/// without a group's name. `note` gets the targets without a group.
///
/// # Errors
/// A group or its base is none of these runs, or is given twice.
pub fn by_base(
    bases: &[Base],
    run: Run,
    mut figures: Figures,
    note: &dyn Fn(&str),
) -> Result<Vec<Group>, UsageError> {
    let Some(groups) = group_bases(bases) else {
        if bases.len() <= 1 {
            return Ok(vec![Group { run, figures }]);
        }
        let help = "write `--base GROUP=TARGET`, where GROUP is an engine or a build, such as `--base postgres=pg16.base`";
        let message = "with several bases, each `--base` must name its group";
        return Err(UsageError::new(message, Some(help.into())));
    };

    for (index, GroupBase { group, target }) in groups.iter().enumerate() {
        check(&run, group, target)?;
        if groups[..index].iter().any(|other| other.group == *group) {
            return Err(UsageError::new(
                format!("`--base` is given twice for the group `{group}`"),
                Some("keep one of them".into()),
            ));
        }
    }

    let mut by_base = Vec::new();
    for GroupBase { group, target } in &groups {
        let mut own = run.clone();
        own.targets.retain(|target| group_of(target, &groups) == Some(*group));
        own.base = (*target).to_owned();
        let figures = take_figures(&mut figures, &own);
        by_base.push(Group { run: own, figures });
    }
    // Damages are of the runs, not of targets: one group tells them.
    if let Some(first) = by_base.first_mut() {
        first.figures.damages = figures.damages;
    }

    let mut ungrouped: Vec<&str> = Vec::new();
    for target in run.targets.iter().filter(|target| group_of(target, &groups).is_none()) {
        ungrouped.push(&target.name);
    }

    if !ungrouped.is_empty() {
        note(&format!(
            "these targets are not compared, since no `--base` is given for them: {}",
            ungrouped.join(", ")
        ));
    }

    Ok(by_base)
}

/// Returns the bases with their groups; `None` if there are none, or one lacks its group.
fn group_bases(bases: &[Base]) -> Option<Vec<GroupBase<'_>>> {
    let mut groups = Vec::new();
    for base in bases {
        groups.push(GroupBase { group: base.group.as_deref()?, target: &base.target });
    }
    Some(groups).filter(|groups| !groups.is_empty())
}

/// Returns the group of a target, if it has one. A build is more specific than its engine.
fn group_of<'a>(target: &Target, groups: &[GroupBase<'a>]) -> Option<&'a str> {
    let find = |name: &str| groups.iter().find(|known| known.group == name);
    let found = find(&target.build).or_else(|| find(&target.engine))?;
    Some(found.group)
}

/// Refuses a group without targets, and a base outside of its group.
fn check(run: &Run, group: &str, base: &str) -> Result<(), UsageError> {
    let is_of = |target: &&Target| target.engine == group || target.build == group;
    let of_group = run.targets.iter().filter(is_of);
    let mut names: Vec<&str> = of_group.map(|target| target.name.as_str()).collect();
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
    own.exact = figures.exact.extract_if(.., |step| is_own(&step.row.cell)).collect();

    own
}
