//! The differences between the settings of targets as text: one line per setting.

use analysis::settings::{
    Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting, Settings,
    TargetSettings,
};
use record::OptionStatus;
use words::excerpt;

use crate::model::number::listed;

/// The maximum number of undeclared settings that are listed; the others are counted.
const UNDECLARED_MAX: usize = 20;

/// The maximum length of a value in characters; longer values are cut.
const VALUE_MAX: usize = 60;

/// The number of characters that two long values show before they begin to differ.
const SHARED_CHARS: usize = 15;

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

    let mut legend = Vec::new();
    for (mark, meaning) in [("[undeclared]", UNDECLARED), ("[unverified]", UNVERIFIED)] {
        if blocks.iter().flat_map(|block| &block.lines).any(|line| line.ends_with(mark)) {
            legend.push(meaning.to_owned());
        }
    }
    if !legend.is_empty() {
        blocks.push(Block { heading: String::new(), lines: legend });
    }
    blocks
}

/// Returns the heading of a comparison: `pg18.base against pg17.base (17.2 -> 18.1)`.
pub(crate) fn heading(comparison: &Comparison) -> String {
    let Comparison { a, b, identical, declared_only, .. } = comparison;
    let differs = !comparison.settings.is_empty()
        || !comparison.only_a.is_empty()
        || !comparison.only_b.is_empty();

    let has_unverified =
        comparison.settings.iter().any(|setting| setting.mark == DifferenceKind::Unverified);

    let unmeasured = match comparison.unmeasured.as_slice() {
        [] => None,
        [one] => Some(format!("{one} was not measured")),
        _ => Some("not measured".to_owned()),
    };

    let remark = match unmeasured {
        Some(unmeasured) if !differs => {
            format!(": {unmeasured}; the plan declares the same settings for both")
        }
        _ if *identical => ": no difference, the two are identical".to_owned(),
        _ if !differs && *declared_only => ": the same options".to_owned(),
        _ if !differs => ": the same settings".to_owned(),
        Some(unmeasured) if *declared_only && has_unverified => {
            format!(": what the plan declares; {unmeasured}")
        }
        None if *declared_only && has_unverified => {
            ": what the plan declares; one of them never reported its settings".to_owned()
        }
        _ => String::new(),
    };
    format!("{b} against {a}{}{remark}", versions(comparison))
}

/// Returns the versions if they differ: ` (17.2 -> 18.1)`.
fn versions(Comparison { a_version, b_version, .. }: &Comparison) -> String {
    // The version of a target that never started may be unknown.
    let is_known = !a_version.is_empty() && !b_version.is_empty();
    if !is_known || release(a_version) == release(b_version) {
        return String::new();
    }
    format!(" ({a_version} -> {b_version})")
}

/// Returns a version without the `-log` that a MySQL server with a binary log appends.
fn release(version: &str) -> &str {
    version.trim_end_matches("-log")
}

fn lines(comparison: &Comparison, all: bool) -> Vec<String> {
    let mut lines = lines_of(comparison, DifferenceKind::Declared, all);
    lines.extend(lines_of(comparison, DifferenceKind::Unverified, all));

    // A line that counts a single setting would be no shorter.
    let undeclared = lines_of(comparison, DifferenceKind::Undeclared, all);
    let count = undeclared.len();
    let shown = if all || count <= UNDECLARED_MAX + 1 { count } else { UNDECLARED_MAX };
    lines.extend(undeclared.into_iter().take(shown));
    if shown < count {
        lines.push(format!("and {} more [undeclared]; `--settings` lists them", count - shown));
    }

    lines.extend(one_sided(&comparison.b, &comparison.only_b, all));
    lines.extend(one_sided(&comparison.a, &comparison.only_a, all));
    lines
}

/// Returns a line for each difference of a kind.
fn lines_of(comparison: &Comparison, kind: DifferenceKind, all: bool) -> Vec<String> {
    let of_kind = comparison.settings.iter().filter(|setting| setting.mark == kind);
    of_kind.map(|setting| line(setting, all)).collect()
}

/// Formats a setting: `wal_compression: off -> lz4`.
fn line(setting: &Difference, all: bool) -> String {
    let SettingValues { a, b } = values(setting, all);
    format!("{}: {a} -> {b}{}", setting.name, mark(setting.mark))
}

/// The values of a setting of two targets, as they are shown.
struct SettingValues {
    a: String,
    b: String,
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
fn values(setting: &Difference, all: bool) -> SettingValues {
    let a = setting.a.as_ref().map(|value| readable(&setting.name, value));
    let b = setting.b.as_ref().map(|value| readable(&setting.name, value));

    let whole = SettingValues {
        a: shown_or_absent(a.as_deref(), all),
        b: shown_or_absent(b.as_deref(), all),
    };

    let (Some(a), Some(b)) = (&a, &b) else {
        return whole;
    };

    if all {
        return whole;
    }

    let (items_a, items_b) = (items(a), items(b));
    if items_a.len().max(items_b.len()) >= ITEMS_MIN {
        let own = SettingValues {
            a: shown(&without(&items_a, &items_b), all),
            b: shown(&without(&items_b, &items_a), all),
        };
        // Lists may differ only in the order of their items, or at the end of a long one.
        if own.a != own.b {
            return own;
        }
    }

    if a != b && whole.a == whole.b { around_difference(a, b) } else { whole }
}

/// Returns two long values without most of what they begin with alike.
fn around_difference(a: &str, b: &str) -> SettingValues {
    let alike = a.chars().zip(b.chars()).take_while(|(of_a, of_b)| of_a == of_b).count();
    let cut = |value: &str| {
        let rest: String = value.chars().skip(alike.saturating_sub(SHARED_CHARS)).collect();
        format!("...{}", excerpt(&rest, VALUE_MAX))
    };
    SettingValues { a: cut(a), b: cut(b) }
}

fn shown_or_absent(value: Option<&str>, all: bool) -> String {
    value.map_or_else(|| "(not declared)".to_owned(), |value| shown(value, all))
}

/// Returns the items that the other list lacks.
fn without(items: &[&str], others: &[&str]) -> String {
    let own: Vec<&str> = items.iter().copied().filter(|item| !others.contains(item)).collect();
    own.join(",")
}

fn items(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).collect()
}

/// Returns a memory limit in the unit of plans; returns other values unchanged.
fn readable(name: &str, value: &str) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let bytes = match value.parse::<u64>() {
        Ok(bytes) if bytes > 0 && name == "limit.memory" => bytes,
        _ => return value.to_owned(),
    };

    match UNITS.into_iter().find(|(_, shift)| bytes.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => value.to_owned(),
    }
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

    let mut lines = Vec::new();
    for setting in listed {
        let (name, value) = (&setting.name, shown(&setting.value, all));
        lines.push(format!("only in {target}: {name} = {value}{}", mark(setting.mark)));
    }

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

    let mut blocks = vec![
        Block {
            heading: "Declared, but not in effect as declared".to_owned(),
            lines: ignored_lines(&ignored),
        },
        Block {
            heading: "Different between cells of a target".to_owned(),
            lines: varying(targets),
        },
    ];

    blocks.retain(|block| !block.lines.is_empty());
    blocks
}

fn varying(targets: &[TargetSettings]) -> Vec<String> {
    let mut lines = Vec::new();
    for target in targets {
        for setting in &target.varying {
            let mut cells_by_value: Vec<(&Option<String>, Vec<&str>)> = Vec::new();
            for (cell, value) in &setting.values {
                match cells_by_value.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, cells)) => cells.push(cell),
                    None => cells_by_value.push((value, vec![cell])),
                }
            }

            let mut texts = Vec::new();
            for (value, cells) in cells_by_value {
                let text = match value {
                    Some(value) => shown(&readable(&setting.name, value), false),
                    None => "(absent)".to_owned(),
                };
                texts.push(format!("{text} ({})", listed(&cells, TARGETS_MAX, ", ")));
            }
            lines.push(format!("{} {}: {}", target.target, setting.name, texts.join(", ")));
        }
    }
    lines
}

/// Returns one line for each declared option that a server lacks or changed; targets with the same
/// option share a line.
fn ignored_lines(all: &[&IgnoredOption]) -> Vec<String> {
    let mut shared: Vec<(&IgnoredOption, Vec<&str>)> = Vec::new();
    for &option in all {
        let is_same = |known: &IgnoredOption| {
            (&known.name, &known.declared, &known.effective, known.status)
                == (&option.name, &option.declared, &option.effective, option.status)
        };

        match shared.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, targets)) if targets.contains(&option.target.as_str()) => {}
            Some((_, targets)) => targets.push(&option.target),
            None => shared.push((option, vec![&option.target])),
        }
    }

    shared
        .iter()
        .map(|(option, targets)| {
            format!("{} ({})", unmet_option(option), listed(targets, TARGETS_MAX, ", "))
        })
        .collect()
}

/// Formats an option that a server lacks or changed: `work_mem = 1001kB: the server has 1000kB`.
pub(crate) fn unmet_option(option: &IgnoredOption) -> String {
    let effect = match (option.status, &option.effective) {
        (OptionStatus::Changed, Some(effective)) => {
            let effective = readable(&option.name, effective);
            format!("the server has {}", shown(&effective, false))
        }
        (OptionStatus::Unknown, _) => "the server does not know this option".to_owned(),
        _ => "the server does not report this option".to_owned(),
    };

    let declared = readable(&option.name, &option.declared);
    format!("{} = {}: {effect}", option.name, shown(&declared, false))
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

    #[test]
    fn long_values_are_cut_around_their_difference() {
        let flags =
            "-Wall -Wmissing-prototypes -Wpointer-arith -Wvla -Wendif-labels -fno-strict-aliasing";
        let [a, b] = ["-O2 -g", "-O3 -g"].map(|level| format!("{flags} {level}"));
        let setting = |a: &str, b: &str| Difference {
            name: "build.cflags".to_owned(),
            a: Some(a.to_owned()),
            b: Some(b.to_owned()),
            mark: DifferenceKind::Undeclared,
            role: None,
        };
        assert_eq!(
            line(&setting(&a, &b), false),
            "build.cflags: ...ict-aliasing -O2 -g -> ...ict-aliasing -O3 -g [undeclared]"
        );

        // So is a list whose only other item differs late.
        let [list_a, list_b] = [&a, &b].map(|last| format!("x=1,y=2,z=3,{last}"));
        assert_eq!(
            line(&setting(&list_a, &list_b), false),
            "build.cflags: ...ict-aliasing -O2 -g -> ...ict-aliasing -O3 -g [undeclared]"
        );

        // Values that differ early are cut at their ends alone.
        let early = line(&setting(&a, "-O2"), false);
        assert!(early.starts_with("build.cflags: -Wall -Wmissing-prototypes"), "{early}");
    }
}
