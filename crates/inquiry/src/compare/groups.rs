//! `--base GROUP=TARGET`: compares the targets of each engine or build with their own base.

use record::{GroupBase, Run, Target};
use runner::failure::UsageError;
use runner::similar::{ListedNames, did_you_mean};

use super::arguments::Base;

/// Notes the bases of a request in a run, each for its engine or build. A run keeps its own bases if
/// none is given. `note` gets the targets without a base.
///
/// # Errors
/// A group or its base is none of the run's, or is given twice.
pub(super) fn set_bases(
    bases: &[Base],
    run: &mut Run,
    note: &dyn Fn(&str),
) -> Result<(), UsageError> {
    let given = group_bases(bases);
    if given.is_empty() && bases.len() > 1 {
        let help = "write `--base GROUP=TARGET`, where GROUP is an engine or a build, such as `--base postgres=pg16.base`";
        let message = "with several bases, each `--base` must name its group";
        return Err(UsageError::new(message, Some(help.into())));
    }

    for (index, GroupBase { group, target }) in given.iter().enumerate() {
        check(run, group, target)?;
        if given[..index].iter().any(|other| other.group == *group) {
            return Err(UsageError::new(
                format!("`--base` is given twice for the group `{group}`"),
                Some("keep one of them".into()),
            ));
        }
    }

    if !bases.is_empty() {
        run.bases = given;
    }
    if let Some(first) = run.bases.first() {
        run.base.clone_from(&first.target);
    }

    let without = run.targets.iter().filter(|target| run.base_of(target).is_none());
    let without: Vec<&str> = without.map(|target| target.name.as_str()).collect();
    if !without.is_empty() {
        note(&format!(
            "these targets are not compared, since no `--base` is given for them: {}",
            without.join(", ")
        ));
    }
    Ok(())
}

/// Returns the bases with their groups; empty if one lacks its group.
fn group_bases(bases: &[Base]) -> Vec<GroupBase> {
    let mut groups = Vec::new();
    for base in bases {
        let Some(group) = base.group.clone() else {
            return Vec::new();
        };
        groups.push(GroupBase { group, target: base.target.clone() });
    }
    groups
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
            did_you_mean(&mut groups, group, "engines and builds", ListedNames::MostSimilar),
        ));
    }

    if !names.contains(&base) {
        return Err(UsageError::new(
            format!("`{group}` has no target `{base}`"),
            did_you_mean(&mut names, base, "targets", ListedNames::MostSimilar),
        ));
    }

    Ok(())
}
