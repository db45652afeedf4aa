//! The differences between the settings of targets as text: one line per setting.

use analysis::{
    Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting, Settings,
    TargetSettings,
};
use record::OptionStatus;

use crate::number::listed;

/// The maximum number of undeclared settings that are listed; the others are counted.
const UNDECLARED_MAX: usize = 20;

/// The maximum length of a value in characters; longer values are cut.
const VALUE_MAX: usize = 60;

/// The number of items from which a list is shown without the items that both lists have.
const ITEMS_MIN: usize = 4;

/// The maximum number of target names in a list; the others are counted.
const TARGETS_MAX: usize = 4;

/// The legends of the marks.
const UNDECLARED: &str = "[undeclared]: the plan does not declare this difference; it is a default of another version, or the server derived it";
const UNVERIFIED: &str =
    "[unverified]: the plan declares this difference, but the server does not report the setting";

/// A heading and the lines below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub heading: String,
    pub lines: Vec<String>,
}

/// Returns everything about the settings of targets. `all` lists the settings that are otherwise
/// only counted.
pub(crate) fn blocks(settings: &Settings, all: bool) -> Vec<Block> {
    let mut blocks = compared(&settings.differences, all);
    blocks.extend(of_targets(&settings.targets));
    blocks
}

/// Returns the differences between pairs of targets, and the legends of their marks.
pub(crate) fn compared(differences: &[Comparison], all: bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = differences
        .iter()
        .map(|comparison| Block { heading: heading(comparison), lines: lines(comparison, all) })
        .collect();
    let has = |text: &str| {
        let mut lines = blocks.iter().flat_map(|block| &block.lines);
        lines.any(|line| line.ends_with(text))
    };
    let legend: Vec<String> = [("[undeclared]", UNDECLARED), ("[unverified]", UNVERIFIED)]
        .iter()
        .filter(|(mark, _)| has(mark))
        .map(|(_, meaning)| (*meaning).to_owned())
        .collect();
    if !legend.is_empty() {
        blocks.push(Block { heading: String::new(), lines: legend });
    }
    blocks
}

/// Returns the heading of a comparison: `pg18.base against pg17.base (17.2 -> 18.1)`.
pub(crate) fn heading(comparison: &Comparison) -> String {
    let Comparison { a, b, a_version, b_version, .. } = comparison;
    // A MySQL server with a binary log appends `-log` to its version.
    let release = |version: &str| version.trim_end_matches("-log").to_owned();
    // The version of a target that never started may be unknown.
    let is_known = !a_version.is_empty() && !b_version.is_empty();
    let versions = if !is_known || release(a_version) == release(b_version) {
        String::new()
    } else {
        format!(" ({a_version} -> {b_version})")
    };
    let differs = !comparison.settings.is_empty()
        || !comparison.only_a.is_empty()
        || !comparison.only_b.is_empty();
    let has_unverified =
        comparison.settings.iter().any(|setting| setting.mark == DifferenceKind::Unverified);
    if !differs && !comparison.unmeasured.is_empty() {
        let who = match comparison.unmeasured.as_slice() {
            [one] => format!("{one} was "),
            _ => String::new(),
        };
        return format!(
            "{b} against {a}{versions}: {who}not measured; the plan declares the same settings for both"
        );
    }
    let remark = match (comparison.identical, differs, comparison.declared_only) {
        (true, ..) => ": no difference, the two are identical",
        (_, false, true) => ": the same options",
        (_, false, false) => ": the same settings",
        (_, true, true) if has_unverified && !comparison.unmeasured.is_empty() => {
            match comparison.unmeasured.as_slice() {
                [one] => &format!(": what the plan declares; {one} was not measured"),
                _ => ": what the plan declares; not measured",
            }
        }
        (_, true, true) if has_unverified => {
            ": what the plan declares; one of them never reported its settings"
        }
        (_, true, _) => "",
    };
    format!("{b} against {a}{versions}{remark}")
}

fn lines(comparison: &Comparison, all: bool) -> Vec<String> {
    let of = |mark: DifferenceKind| {
        let settings = comparison.settings.iter();
        let settings = settings.filter(move |setting| setting.mark == mark);
        settings.map(|setting| line(setting, all))
    };
    let count = of(DifferenceKind::Undeclared).count();
    let shown = if all || count <= UNDECLARED_MAX + 1 { count } else { UNDECLARED_MAX };
    let mut lines: Vec<String> = of(DifferenceKind::Declared)
        .chain(of(DifferenceKind::Unverified))
        .chain(of(DifferenceKind::Undeclared).take(shown))
        .collect();
    if shown < count {
        lines.push(format!("and {} more [undeclared]; `--settings` lists them", count - shown));
    }
    lines.extend(one_sided(&comparison.b, &comparison.only_b, all));
    lines.extend(one_sided(&comparison.a, &comparison.only_a, all));
    lines
}

/// Formats a setting: `wal_compression: off -> lz4`.
fn line(setting: &Difference, all: bool) -> String {
    let (a, b) = values(setting, all);
    format!("{}: {a} -> {b}{}", setting.name, mark(setting.mark))
}

/// Returns the mark after a setting; empty if the setting is as declared.
fn mark(mark: DifferenceKind) -> &'static str {
    match mark {
        DifferenceKind::Declared => "",
        DifferenceKind::Undeclared => " [undeclared]",
        DifferenceKind::Unverified => " [unverified]",
    }
}

/// Returns the two values as they are shown. Of long lists, only the items that differ.
fn values(setting: &Difference, all: bool) -> (String, String) {
    const ABSENT: &str = "(not declared)";
    let (Some(a), Some(b)) = (&setting.a, &setting.b) else {
        let shown = |value: &Option<String>| {
            value.as_deref().map_or_else(
                || ABSENT.to_owned(),
                |value| shown(&readable(&setting.name, value), all),
            )
        };
        return (shown(&setting.a), shown(&setting.b));
    };
    let (a, b) = (&readable(&setting.name, a), &readable(&setting.name, b));
    fn items(list: &str) -> Vec<&str> {
        list.split(',').map(str::trim).collect()
    }
    let (items_a, items_b) = (items(a), items(b));
    if all || items_a.len().max(items_b.len()) < ITEMS_MIN {
        return (shown(a, all), shown(b, all));
    }
    let without = |items: &[&str], others: &[&str]| -> String {
        let own: Vec<&str> = items.iter().copied().filter(|item| !others.contains(item)).collect();
        shown(&own.join(","), all)
    };
    let (own_a, own_b) = (without(&items_a, &items_b), without(&items_b, &items_a));
    if own_a == own_b { (shown(a, all), shown(b, all)) } else { (own_a, own_b) }
}

/// Returns a memory limit in the unit of plans; returns other values unchanged.
fn readable(name: &str, value: &str) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let bytes = value.parse::<u64>().ok().filter(|&bytes| bytes > 0);
    let bytes = bytes.filter(|_| name == "limit.memory");
    let whole = bytes.and_then(|bytes| {
        let (unit, shift) =
            UNITS.into_iter().find(|(_, shift)| bytes.is_multiple_of(1 << shift))?;
        Some(format!("{}{unit}", bytes >> shift))
    });
    whole.unwrap_or_else(|| value.to_owned())
}

/// Formats a value: puts invisible values in quotes, and cuts long ones.
fn shown(value: &str, all: bool) -> String {
    if value.trim() != value || value.is_empty() {
        return format!("'{value}'");
    }
    match value.char_indices().nth(VALUE_MAX) {
        Some((end, _)) if !all => format!("{}...", &value[..end]),
        _ => value.to_owned(),
    }
}

/// Returns the settings that only one target has: declared settings by name, the others as a count.
fn one_sided(target: &str, only: &[OneSidedSetting], all: bool) -> Vec<String> {
    let (listed, counted): (Vec<&OneSidedSetting>, Vec<&OneSidedSetting>) =
        only.iter().partition(|setting| all || setting.mark == DifferenceKind::Declared);
    let listed = listed.into_iter().map(|setting| {
        let (name, value) = (&setting.name, shown(&setting.value, all));
        format!("only in {target}: {name} = {value}{}", mark(setting.mark))
    });
    let mut lines: Vec<String> = listed.collect();
    match counted.as_slice() {
        [] => {}
        [one] => lines.push(format!("only in {target}: {}", one.name)),
        _ => lines.push(format!(
            "only in {target}: {} settings that the plan does not set; `--settings` lists them",
            counted.len()
        )),
    }
    lines
}

/// Returns the declared options that targets lack, and the settings that vary between the cells of
/// a target.
pub(crate) fn of_targets(targets: &[TargetSettings]) -> Vec<Block> {
    let ignored: Vec<&IgnoredOption> = targets.iter().flat_map(|target| &target.ignored).collect();
    let not_had = Block {
        heading: "Declared, but not in effect as declared".to_owned(),
        lines: ignored_lines(&ignored),
    };
    let varying = Block {
        heading: "Different between cells of a target".to_owned(),
        lines: varying(targets),
    };
    [not_had, varying].into_iter().filter(|block| !block.lines.is_empty()).collect()
}

fn varying(targets: &[TargetSettings]) -> Vec<String> {
    let mut lines = Vec::new();
    for target in targets {
        for setting in &target.varying {
            let mut values: Vec<(&Option<String>, Vec<&str>)> = Vec::new();
            for (cell, value) in &setting.values {
                match values.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, cells)) => cells.push(cell),
                    None => values.push((value, vec![cell])),
                }
            }
            let texts: Vec<String> = values
                .iter()
                .map(|(value, cells)| {
                    let value = value.as_deref().map_or("(absent)".to_owned(), |value| {
                        shown(&readable(&setting.name, value), false)
                    });
                    format!("{value} ({})", listed(cells, TARGETS_MAX, ", "))
                })
                .collect();
            lines.push(format!("{} {}: {}", target.target, setting.name, texts.join(", ")));
        }
    }
    lines
}

/// Returns one line for each declared option that a server lacks or changed; targets with the same
/// option share a line.
fn ignored_lines(all: &[&IgnoredOption]) -> Vec<String> {
    let mut shared: Vec<(&IgnoredOption, Vec<&str>)> = Vec::new();
    for &one in all {
        let is_same = |known: &IgnoredOption| {
            (&known.name, &known.declared, &known.effective, known.status)
                == (&one.name, &one.declared, &one.effective, one.status)
        };
        match shared.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, targets)) if targets.contains(&one.target.as_str()) => {}
            Some((_, targets)) => targets.push(&one.target),
            None => shared.push((one, vec![&one.target])),
        }
    }
    shared
        .iter()
        .map(|(one, targets)| format!("{} ({})", not_had(one), listed(targets, TARGETS_MAX, ", ")))
        .collect()
}

/// Formats an option that a server lacks or changed: `work_mem = 1001kB: the server has 1000kB`.
pub(crate) fn not_had(one: &IgnoredOption) -> String {
    let became = match (one.status, &one.effective) {
        (OptionStatus::Changed, Some(effective)) => {
            let effective = readable(&one.name, effective);
            format!("the server has {}", shown(&effective, false))
        }
        (OptionStatus::Unknown, _) => "the server does not know this option".to_owned(),
        _ => "the server does not report this option".to_owned(),
    };
    let declared = readable(&one.name, &one.declared);
    format!("{} = {}: {became}", one.name, shown(&declared, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_is_shown_in_the_unit_of_plans() {
        for (value, expected) in [
            ("629145600", "600MiB"),
            ("1073741824", "1GiB"),
            ("1073737728", "1048572KiB"),
            ("1000", "1000"),
            ("none", "none"),
        ] {
            assert_eq!(readable("limit.memory", value), expected);
        }
        assert_eq!(readable("work_mem", "1073741824"), "1073741824");
    }
}
