//! Writes a first description of a folder, by the contents and the names of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::BufRead;
use std::path::Path;

use crate::files::{FILE_BYTES_MAX, WalkError, walk};
use crate::formats::{Format, recognize};
use crate::text::Lines;

/// The number of lines by which a format is recognized.
const HEAD_LINES: usize = 400;

/// The characters between parts of names.
const SEPARATORS: [char; 3] = ['.', '_', '-'];

/// The beginnings of parts of names that have the number of clients behind them.
const CLIENTS: [&str; 6] = ["dop", "threads", "clients", "vu", "t", "c"];

/// The beginnings of parts of names that have the number of a repeat behind them.
const REPEATS: [&str; 4] = ["repeat", "rep", "run", "r"];

/// The files of one format at one depth.
#[derive(Default)]
struct Group {
    /// The names of the folder that files are in.
    folders: BTreeSet<String>,
    /// The names of files, with placeholders for numbers.
    names: BTreeSet<String>,
}

/// Returns a campaign in TOML for the files of a folder or an archive.
///
/// # Errors
/// The folder or archive cannot be read.
pub fn guess(source: &Path) -> Result<String, WalkError> {
    let mut groups: BTreeMap<(Format, usize), Group> = BTreeMap::new();
    let mut unknown: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    walk(source, &mut |path, content| {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        match format_of(content) {
            Some(format) => {
                let depth = path.matches('/').count();
                let group = groups.entry((format, depth)).or_default();
                let folder = folders.rsplit('/').next().unwrap_or_default();
                group.folders.insert(folder.to_owned());
                group.names.insert(with_numbers(name));
                known.insert(kind_of_name(name));
            }
            None => drop(unknown.insert(name.to_owned())),
        }
        Ok(())
    })?;

    // A pattern of unknown files must not match others.
    let ignored = unknown.iter().map(|name| {
        let kind = kind_of_name(name);
        if known.contains(&kind) { name.replace(['{', '}'], "*") } else { kind }
    });
    let ignored: BTreeSet<String> = ignored.collect();

    let stem = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(campaign(stem.split(".tar").next().unwrap_or("campaign"), &groups, &ignored))
}

fn format_of(content: &mut dyn BufRead) -> Option<Format> {
    let mut lines = Lines::new(content, FILE_BYTES_MAX);
    let mut head = Vec::new();
    while head.len() < HEAD_LINES {
        // What cannot be read has no format.
        match lines.next().ok()? {
            Some(line) => head.push(line.text.to_owned()),
            None => break,
        }
    }
    recognize(&head)
}

fn campaign(
    name: &str,
    groups: &BTreeMap<(Format, usize), Group>,
    unknown: &BTreeSet<String>,
) -> String {
    let mut text = format!(
        "# A guess: look at each pattern before you use it.\n\nname = {name:?}\n# engine = \"postgres\"\n# date = \"2025-03-18\"\n"
    );
    if groups.keys().any(|(format, _)| *format == Format::Vmstat) {
        text.push_str("# cpus = 8\n");
    }
    if groups.keys().any(|(format, _)| *format == Format::Iostat) {
        text.push_str("# device = \"nvme0n1\"\n");
    }

    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(text, "ignore = [{}]", names.join(", "));
    }
    let steps = steps(groups);
    for ((format, depth), group) in groups {
        let _ = write!(text, "\n[[files]]\n{}", files(*format, *depth, group, &steps));
    }
    text
}

/// Returns the names of steps, by the names of files with results.
fn steps(groups: &BTreeMap<(Format, usize), Group>) -> BTreeSet<String> {
    let mut steps = BTreeSet::new();
    for ((format, _), group) in groups {
        let Varying::Between { before, after } = Varying::of(&group.names) else {
            continue;
        };
        for name in group.names.iter().filter(|_| !format.is_beside()) {
            let end = name.len().saturating_sub(after.len());
            steps.extend(name.get(before.len()..end).map(str::to_owned));
        }
    }
    steps.remove("");
    steps
}

/// Returns the keys of the files of a group.
fn files(format: Format, depth: usize, group: &Group, steps: &BTreeSet<String>) -> String {
    let mut path = String::new();
    let mut keys = String::new();
    if depth > 0 {
        let folder = target_pattern(&group.folders);
        let _ = write!(path, "{folder}/");
    } else {
        keys.push_str("# target = \"BUILD.CONFIG\"\n");
    }

    match Varying::of(&group.names) {
        Varying::Between { before, after } => {
            let _ = write!(path, "{before}{{step}}{after}");
        }
        Varying::Same(name) => {
            // Samples of one step alone still have its name.
            let known = steps.iter().filter(|step| name.contains(step.as_str()));
            if let Some(step) = known.max_by_key(|step| step.len()) {
                path.push_str(&name.replacen(step, "{step}", 1));
            } else {
                let step = name.split('{').next().unwrap_or_default();
                let _ = writeln!(keys, "step = {:?}", step.trim_end_matches(SEPARATORS));
                path.push_str(&name);
            }
        }
    }
    if matches!(format, Format::Vmstat | Format::Iostat) {
        keys.push_str("interval = 1\n");
    }
    format!("path = {path:?}\nformat = {:?}\n{keys}", format.name())
}

/// Returns the pattern of folders of targets: all of their names, without a letter before and a
/// mark such as `pk1` behind them that all have.
fn target_pattern(folders: &BTreeSet<String>) -> String {
    let is_mark = |part: &str| part.len() <= 3 && part.ends_with(|c: char| c.is_ascii_digit());
    let first = folders.iter().next().map_or("", String::as_str);
    let before = first.split_once('.').map_or("", |(before, _)| before);
    let after = first.rsplit_once('.').map_or("", |(_, after)| after);

    let before = format!("{before}.");
    let has_letter = before.len() == 2 && folders.iter().all(|name| name.starts_with(&before));
    let after = format!(".{after}");
    let has_mark = is_mark(&after[1..]) && folders.iter().all(|name| name.ends_with(&after));
    format!(
        "{}{{target}}{}",
        if has_letter { &before } else { "" },
        if has_mark { &after } else { "" }
    )
}

/// The common part of names.
enum Varying {
    Same(String),
    Between { before: String, after: String },
}

impl Varying {
    fn of(names: &BTreeSet<String>) -> Self {
        let mut all = names.iter();
        let first = all.next().cloned().unwrap_or_default();
        let mut before = first.as_str();
        let mut after = first.as_str();
        for name in all {
            before = &before[..shared(before.chars(), name.chars())];
            let length = shared(after.chars().rev(), name.chars().rev());
            after = &after[after.len() - length..];
        }
        if names.len() < 2 {
            return Self::Same(first);
        }

        // A part of a name belongs to it as a whole.
        let before = before.rfind(SEPARATORS).map_or("", |at| &before[..=at]);
        let after = after.find(SEPARATORS).map_or("", |at| &after[at..]);
        Self::Between { before: before.to_owned(), after: after.to_owned() }
    }
}

/// Returns the bytes of the letters that two texts share at their beginnings.
fn shared(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).map(|(letter, _)| letter.len_utf8()).sum()
}

/// Returns a name with placeholders for the numbers of clients and repeats.
fn with_numbers(name: &str) -> String {
    let mut parts = Vec::new();
    let (mut has_clients, mut has_repeat) = (false, false);
    for part in name.split_inclusive(SEPARATORS) {
        let plain = part.trim_end_matches(SEPARATORS);
        let end = &part[plain.len()..];
        if let Some(start) = numbered(plain, &CLIENTS).filter(|_| !has_clients) {
            has_clients = true;
            parts.push(format!("{start}{{clients}}{end}"));
        } else if let Some(start) = numbered(plain, &REPEATS).filter(|_| !has_repeat) {
            has_repeat = true;
            parts.push(format!("{start}{{repeat}}{end}"));
        } else {
            // Braces in a name would be a placeholder.
            parts.push(part.replace(['{', '}'], "*"));
        }
    }
    parts.concat()
}

/// Returns the beginning of a part that a number follows.
fn numbered<'a>(part: &str, starts: &[&'a str]) -> Option<&'a str> {
    starts.iter().copied().find(|start| {
        let number = part.strip_prefix(start);
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

/// Returns a pattern for files with names like this one, by its first two parts.
fn kind_of_name(name: &str) -> String {
    let name = name.replace(['{', '}'], "*");
    let mut ends = name.match_indices(SEPARATORS).map(|(at, _)| at);
    match (ends.next(), ends.next()) {
        (Some(_), Some(second)) => format!("{}*", &name[..=second]),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(names: &[&str]) -> String {
        let names = names.iter().map(|name| with_numbers(name)).collect();
        match Varying::of(&names) {
            Varying::Same(name) => name,
            Varying::Between { before, after } => format!("{before}*{after}"),
        }
    }

    #[test]
    fn what_varies_between_names_is_the_step() {
        assert_eq!(
            pattern(&["sb.o.scan.range100.pk1.dop40", "sb.o.point.range10.pk1.dop8"]),
            "sb.o.*.pk1.dop{clients}"
        );
        assert_eq!(pattern(&["out.r1.log", "out.r2.log"]), "out.r{repeat}.log");
        assert_eq!(kind_of_name("sb.ls.0.scan"), "sb.ls.*");
    }
}
