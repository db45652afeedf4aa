//! The kept database that differs least from a wanted one, for the message that none fits.

use std::fmt;

use words::excerpt;

use super::{Databases, Key, Manifest};

/// The maximum length of a value in a message, in characters.
const VALUE_CHARS: usize = 60;

/// The differences that a message lists.
const LISTED: usize = 3;

/// The kept database after a step that differs least from a wanted one.
pub(crate) struct Nearest {
    name: String,
    /// The parts of the key that differ.
    differences: Vec<Difference>,
}

/// A part of a key that differs; `None` where there is no such part.
struct Difference {
    name: String,
    kept: Option<String>,
    wanted: Option<String>,
}

impl Nearest {
    /// Returns the database kept after `step` that differs least from the wanted one; `None` if no
    /// database of the engine was kept after that step.
    pub(crate) fn find(databases: &Databases, key: &Key, step: &str) -> Option<Self> {
        let mut nearest: Option<Self> = None;

        for name in databases.names().unwrap_or_default() {
            let Ok(entry) = databases.open(&name) else {
                continue;
            };
            if entry.manifest.after_step != step
                || entry.manifest.part("engine") != key.part("engine")
            {
                continue;
            }

            let differences = differences(&entry.manifest, key);
            let is_nearer = |other: &Self| differences.len() < other.differences.len();
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some(Self { name, differences });
            }
        }
        nearest
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` differs in", self.name)?;

        let shown = self.differences.iter().take(LISTED);
        for (number, difference) in shown.enumerate() {
            let separator = if number == 0 { " " } else { ", " };
            write!(f, "{separator}{difference}")?;
        }

        match self.differences.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kept, wanted } = self;
        let [kept, wanted] = match (kept, wanted) {
            (Some(kept), Some(wanted)) => different_parts(kept, wanted),
            (kept, wanted) => [kept, wanted].map(|value| value.clone().unwrap_or_default()),
        };

        let quoted = |value: &str| match value {
            "" => "nothing".to_owned(),
            value => format!("`{}`", excerpt(value, VALUE_CHARS)),
        };
        write!(f, "`{name}` ({}, and this plan has {})", quoted(&kept), quoted(&wanted))
    }
}

/// Returns the parts of two keys that differ, in the order of the wanted one.
fn differences(manifest: &Manifest, wanted: &Key) -> Vec<Difference> {
    let mut names: Vec<&str> = wanted.parts.iter().map(|part| part.name.as_str()).collect();
    names.extend(manifest.key.iter().map(|part| part.name.as_str()));

    let mut differences: Vec<Difference> = Vec::new();
    for name in names {
        let (kept, wanted) = (manifest.part(name), wanted.part(name));
        let is_listed = differences.iter().any(|difference| difference.name == name);
        if kept == wanted || is_listed {
            continue;
        }
        differences.push(Difference {
            name: name.to_owned(),
            kept: kept.map(str::to_owned),
            wanted: wanted.map(str::to_owned),
        });
    }
    differences
}

/// Returns both values from the first word on that differs, since a list of steps may be long.
fn different_parts(kept: &str, wanted: &str) -> [String; 2] {
    let mut begin = 0;
    for ((at, left), right) in kept.char_indices().zip(wanted.chars()) {
        if left != right {
            break;
        }
        if left == ' ' {
            begin = at + 1;
        }
    }

    [kept, wanted].map(|value| match begin {
        0 => value.to_owned(),
        begin => format!("... {}", value.get(begin..).unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_word_in_which_two_values_differ() {
        let text = |kept: &str, wanted: &str| {
            let [kept, wanted] = [kept, wanted].map(|value| Some(value.to_owned()));
            Difference { name: "steps".to_owned(), kept, wanted }.to_string()
        };
        assert_eq!(text("1", "2"), "`steps` (`1`, and this plan has `2`)");
        assert_eq!(
            text("rows: 1000, time: 20s", "rows: 1000, time: 2s"),
            "`steps` (`... 20s`, and this plan has `... 2s`)"
        );
    }
}
