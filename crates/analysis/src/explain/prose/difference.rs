//! The differences between two targets.

use super::numbers::{list, list_any};
use super::setting_text;
use crate::counted;
use crate::explain::difference::{OtherBuild, TargetDifference};
use crate::explain::thresholds::NAMED;
use crate::settings::Difference;

/// Returns the differences as they follow the words `the two`, or `None` if none are known. Targets
/// that two runs share are named where their differences are not the same. `is_sure`: if only one
/// setting differs, it causes the change.
pub(super) fn clauses(
    differences: &[(Option<&str>, &TargetDifference)],
    is_sure: bool,
) -> Option<String> {
    let (_, first) = differences.first()?;
    if differences.iter().all(|(_, difference)| difference == first) {
        return clause(first, is_sure);
    }
    let clauses = differences.iter().take(NAMED).filter_map(|(target, it)| {
        let clause = clause(it, is_sure)?;
        Some(match target {
            Some(target) => format!("runs of {target} {clause}"),
            None => clause,
        })
    });
    let clauses = clauses.collect::<Vec<_>>().join("; the two ");
    let others = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        1 => "; 1 more target differs in other ways".to_owned(),
        more => format!("; {more} more targets differ in other ways"),
    };
    (!clauses.is_empty()).then(|| clauses + &others)
}

fn clause(difference: &TargetDifference, is_sure: bool) -> Option<String> {
    let (build, declared, implicit, undeclared) = match difference {
        TargetDifference::Unknown(None) => return None,
        TargetDifference::Unknown(Some((base, target))) => {
            return Some(format!(
                "differ in version ({base} -> {target}), and their settings were not compared"
            ));
        }
        TargetDifference::Engines { base, target } => {
            return Some(format!("are different engines, {base} and {target}"));
        }
        TargetDifference::Known { build, declared, implicit, undeclared } => {
            (build, declared.as_slice(), implicit.as_slice(), *undeclared)
        }
    };
    Some(match (build, declared, implicit.len() + undeclared) {
        (None, [], 0) => {
            "have the same build and settings: the difference comes from the machine, or from chance"
                .to_owned()
        }
        (None, [setting], derived) => {
            let derived = match derived {
                0 => String::new(),
                1 => " and in one that the server derived".to_owned(),
                more => format!(" and in {more} that the server derived"),
            };
            let such_as = if implicit.len() + undeclared == 1 { ", " } else { ", such as " };
            let named = list_any(implicit.iter().map(setting_text));
            let named = named.map(|named| format!("{such_as}{named}")).unwrap_or_default();
            let cause = is_sure.then(|| format!(", so {} causes the difference", setting.name));
            let cause = cause.unwrap_or_default();
            format!("differ only in {}{derived}{named}{cause}", setting_text(setting))
        }
        (Some(build), [], 0) => format!(
            "differ only in {}, {} -> {}{}",
            build_or_version(build.has_other_version),
            build.base,
            build.target,
            own_settings(build, "; the settings that both have are equal")
        ),
        _ => {
            let build_text = build.as_ref().map(|build| {
                let (base, target) = (&build.base, &build.target);
                let what = build_or_version(build.has_other_version);
                format!("in {what} ({base} -> {target})")
            });
            let declared_text = (!declared.is_empty()).then(|| {
                let names: Vec<String> = declared.iter().map(setting_text).collect();
                let what = counted(declared.len(), "setting");
                format!("in {what} that the plan declares, {}", list(&names))
            });
            let undeclared_text = undeclared_settings(declared, implicit, undeclared);
            let places = if implicit.is_empty() {
                [build_text, declared_text, undeclared_text]
            } else {
                [build_text, undeclared_text, declared_text]
            };
            let places: Vec<String> = places.into_iter().flatten().collect();
            let own = build.as_ref().map(|build| own_settings(build, ""));
            format!("differ {}{}", list(&places), own.unwrap_or_default())
        }
    })
}

/// Names the settings that differ and count by their effective values, and counts the others that
/// the plan does not declare.
fn undeclared_settings(
    declared: &[Difference],
    implicit: &[Difference],
    undeclared: usize,
) -> Option<String> {
    if implicit.is_empty() {
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
    let own = [(build.only_base, &build.base), (build.only_target, &build.target)];
    let own = own.into_iter().filter(|(count, _)| *count > 0);
    let places: Vec<String> = own
        .enumerate()
        .map(|(at, (count, who))| match (at, count) {
            (0, 1) => format!("1 setting exists only in {who}"),
            (0, count) => format!("{count} settings exist only in {who}"),
            (_, count) => format!("{count} only in {who}"),
        })
        .collect();
    if places.is_empty() { String::new() } else { format!(" ({}{more})", places.join(" and ")) }
}
