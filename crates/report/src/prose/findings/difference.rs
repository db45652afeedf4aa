//! The differences between two targets.

use super::setting::setting_text;
use crate::prose::numbers::NAMED;
use crate::prose::numbers::{list, list_any};
use analysis::counted;
use analysis::explain::statement::{OtherBuild, SharedDifference, TargetDifference};
use analysis::settings::Difference;
use words::without_section;

/// Returns the differences as they follow the words `the two`, or `None` if none are known. Targets
/// that two runs share are named where their differences are not the same. `is_sure`: if only one
/// setting differs, it causes the change.
pub(super) fn clauses(differences: &[SharedDifference], is_sure: bool) -> Option<String> {
    let first = &differences.first()?.difference;
    if differences.iter().all(|of_target| of_target.difference == *first) {
        return clause(first, is_sure);
    }

    let mut clauses = Vec::new();
    for SharedDifference { shared, difference } in differences.iter().take(NAMED) {
        let Some(clause) = clause(difference, is_sure) else {
            continue;
        };
        clauses.push(match shared {
            Some(target) => format!("runs of {target} {clause}"),
            None => clause,
        });
    }

    if clauses.is_empty() {
        return None;
    }

    let others = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        1 => "; 1 more target differs in other ways".to_owned(),
        more => format!("; {more} more targets differ in other ways"),
    };
    Some(clauses.join("; the two ") + &others)
}

/// Returns the name of the setting in which all these targets differ from the base, if there is no
/// other difference.
pub(super) fn name_of_only(differences: &[SharedDifference]) -> Option<&str> {
    let first = only_name(&differences.first()?.difference)?;
    let is_of_all =
        differences.iter().all(|of_target| only_name(&of_target.difference) == Some(first));
    is_of_all.then_some(first)
}

/// Returns the name of the setting that alone differs.
fn only_name(difference: &TargetDifference) -> Option<&str> {
    let TargetDifference::Known { build: None, declared, implicit, undeclared: 0, .. } = difference
    else {
        return None;
    };
    match declared.as_slice() {
        [setting] if implicit.is_empty() => Some(without_section(&setting.name)),
        _ => None,
    }
}

fn clause(difference: &TargetDifference, is_sure: bool) -> Option<String> {
    match difference {
        TargetDifference::Unknown(None) => None,
        TargetDifference::Unknown(Some((base, target))) => Some(format!(
            "differ in version ({base} -> {target}), and their settings were not compared"
        )),

        TargetDifference::Engines { base, target } => {
            Some(format!("are different engines, {base} and {target}"))
        }

        TargetDifference::Known { build, declared, implicit, undeclared, undeclared_name } => {
            let undeclared = *undeclared;
            Some(match (build, declared.as_slice(), implicit.len() + undeclared) {
                (None, [], 0) => {
                    "have the same build and settings: the difference comes from the machine, or from chance"
                        .to_owned()
                }
                (None, [setting], _) => only_setting(setting, implicit, undeclared, is_sure),
                (Some(build), [], 0) => format!(
                    "differ only in {}, {} -> {}{}",
                    build_or_version(build.has_other_version),
                    build.base,
                    build.target,
                    own_settings(build, "; the settings that both have are equal")
                ),
                _ => {
                    let others =
                        undeclared_settings(declared, implicit, undeclared, undeclared_name.as_deref());
                    several(build.as_ref(), declared, implicit, others)
                }
            })
        }
    }
}

/// Names the only declared setting that differs, and those that the server derived from it.
fn only_setting(
    setting: &Difference,
    implicit: &[Difference],
    undeclared: usize,
    is_sure: bool,
) -> String {
    let derived_count = implicit.len() + undeclared;
    let derived = match derived_count {
        0 => String::new(),
        1 => " and in one setting that the server derived".to_owned(),
        more => format!(" and in {more} settings that the server derived"),
    };

    let such_as = if derived_count == 1 { ", " } else { ", such as " };
    let named = match list_any(implicit.iter().map(setting_text)) {
        Some(named) => format!("{such_as}{named}"),
        None => String::new(),
    };

    let cause = if is_sure {
        format!(", so {} causes the difference", without_section(&setting.name))
    } else {
        String::new()
    };
    format!("differ only in {}{derived}{named}{cause}", setting_text(setting))
}

/// Names the build and the settings that differ. `others` are those that the plan does not declare.
fn several(
    build: Option<&OtherBuild>,
    declared: &[Difference],
    implicit: &[Difference],
    others: Option<String>,
) -> String {
    let mut places = Vec::new();
    if let Some(OtherBuild { base, target, has_other_version, .. }) = build {
        let what = build_or_version(*has_other_version);
        places.push(format!("in {what} ({base} -> {target})"));
    }
    if !declared.is_empty() {
        let names: Vec<String> = declared.iter().map(setting_text).collect();
        let what = counted(declared.len(), "setting");
        places.push(format!("in {what} that the plan declares, {}", list(&names)));
    }
    if let Some(others) = others {
        // Settings that count are named before those that the plan declares.
        let position =
            if implicit.is_empty() { places.len() } else { usize::from(build.is_some()) };
        places.insert(position, others);
    }

    let own = match build {
        Some(build) => own_settings(build, ""),
        None => String::new(),
    };
    format!("differ {}{own}", list(&places))
}

/// Names the settings that differ and count by their effective values, and counts the others that
/// the plan does not declare.
fn undeclared_settings(
    declared: &[Difference],
    implicit: &[Difference],
    undeclared: usize,
    undeclared_name: Option<&str>,
) -> Option<String> {
    if implicit.is_empty() {
        if let Some(name) = undeclared_name {
            let bare = without_section(name);
            return Some(format!("in {bare}, which the plan does not declare"));
        }

        let others = match undeclared {
            0 => return None,
            count if declared.is_empty() => counted(count, "setting"),
            count => format!("{count} more"),
        };
        return Some(format!("in {others} that the plan does not declare, such as defaults"));
    }

    let mut names: Vec<String> = implicit.iter().take(NAMED).map(setting_text).collect();
    let more = implicit.len() - names.len() + undeclared;
    if more == 0 {
        return Some(format!("in {}, which the plan does not declare", list(&names)));
    }
    names.push(counted(more, "more setting"));
    Some(format!("in {} that the plan does not declare", list(&names)))
}

/// Returns the properties in which two builds differ.
pub(super) fn build_or_version(has_other_version: bool) -> &'static str {
    if has_other_version { "version" } else { "build" }
}

/// Counts the settings that only one build has: ` (7 settings exist only in 15.3 and 33 only in
/// 17.2)`. `more` follows them.
fn own_settings(build: &OtherBuild, more: &str) -> String {
    let mut places = Vec::new();
    for (count, who) in [(build.only_base, &build.base), (build.only_target, &build.target)] {
        match count {
            0 => {}
            // The noun stands only in the first place.
            count if !places.is_empty() => places.push(format!("{count} only in {who}")),
            1 => places.push(format!("1 setting exists only in {who}")),
            count => places.push(format!("{count} settings exist only in {who}")),
        }
    }

    if places.is_empty() { String::new() } else { format!(" ({}{more})", places.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::settings::DifferenceKind;

    fn known(names: &[&str], undeclared: usize) -> TargetDifference {
        let setting = |name: &&str| Difference {
            name: (*name).to_owned(),
            a: Some("2".to_owned()),
            b: Some("1".to_owned()),
            mark: DifferenceKind::Declared,
            role: None,
        };
        TargetDifference::Known {
            build: None,
            declared: names.iter().map(setting).collect(),
            implicit: Vec::new(),
            undeclared,
            undeclared_name: None,
        }
    }

    #[test]
    fn one_setting_that_the_plan_does_not_declare_is_named() {
        let difference = TargetDifference::Known {
            build: None,
            declared: Vec::new(),
            implicit: Vec::new(),
            undeclared: 1,
            undeclared_name: Some("jit".to_owned()),
        };
        let expected = "differ in jit, which the plan does not declare";
        assert_eq!(clause(&difference, false).unwrap(), expected);
    }

    #[test]
    fn a_setting_is_the_only_difference_if_nothing_else_differs_in_any_target() {
        let only = known(&["synchronous"], 0);
        let name = |differences: &[&TargetDifference]| {
            let of_one = |each: &&TargetDifference| SharedDifference {
                shared: None,
                difference: (*each).clone(),
            };
            let differences: Vec<SharedDifference> = differences.iter().map(of_one).collect();
            name_of_only(&differences).map(str::to_owned)
        };
        assert_eq!(name(&[&only, &only]).as_deref(), Some("synchronous"));
        assert_eq!(name(&[&only, &known(&["page_size"], 0)]), None);
        assert_eq!(name(&[&known(&["synchronous", "page_size"], 0)]), None);
        assert_eq!(name(&[&known(&["synchronous"], 1)]), None);
        assert_eq!(name(&[]), None);
    }
}
