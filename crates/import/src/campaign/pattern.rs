//! Patterns of paths: text with placeholders such as `x.{target}.pk1/sb.o.{step}.dop{clients}`.

use std::collections::BTreeMap;

/// The most steps of matching a path, so that no pattern takes forever.
const STEPS_MAX: usize = 100_000;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Text without `/`, with the name under which it is known; `None`: nobody needs it.
    Name(Option<String>),
    /// A whole number.
    Number(String),
    /// Any text, with `/`.
    Any,
}

/// Placeholders of whole numbers.
const NUMBERS: [&str; 3] = ["clients", "repeat", "client"];

/// Placeholders of text.
const NAMES: [&str; 7] = ["target", "build", "config", "step", "variant", "run", "date"];

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A placeholder is unknown, twice, or not closed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut rest = text;

        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("**") {
                parts.push(Part::Any);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('*') {
                parts.push(Part::Name(None));
                rest = after;
            } else if let Some(inside) = rest.strip_prefix('{') {
                let (name, after) = inside
                    .split_once('}')
                    .ok_or_else(|| format!("`{text}` has a `{{` without `}}`"))?;
                if names.contains(&name) {
                    return Err(format!("`{text}` has `{{{name}}}` twice"));
                }
                names.push(name);
                parts.push(placeholder(name, text)?);
                rest = after;
            } else {
                let end = rest.find(['*', '{']).unwrap_or(rest.len());
                parts.push(Part::Text(rest[..end].to_owned()));
                rest = &rest[end..];
            }
        }

        Ok(Self { parts })
    }

    /// Matches a path, or its end from a `/` on. Returns the values of the placeholders.
    pub fn find(&self, path: &str) -> Option<BTreeMap<String, String>> {
        let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        std::iter::once(path).chain(ends).find_map(|end| self.whole(end))
    }

    /// Matches a whole text. Returns the values of the placeholders.
    pub fn whole(&self, text: &str) -> Option<BTreeMap<String, String>> {
        let mut values = Vec::new();
        let mut steps = STEPS_MAX;
        matches(&self.parts, text, &mut values, &mut steps).then(|| values.into_iter().collect())
    }
}

fn placeholder(name: &str, text: &str) -> Result<Part, String> {
    if NUMBERS.contains(&name) {
        return Ok(Part::Number(name.to_owned()));
    }
    if NAMES.contains(&name) {
        return Ok(Part::Name(Some(name.to_owned())));
    }
    let known = NAMES.iter().chain(&NUMBERS).copied().collect::<Vec<_>>().join(", ");
    Err(format!("`{text}` has the unknown placeholder `{{{name}}}`; known are {known}"))
}

/// Matches the rest of a text with the rest of a pattern. The shortest text for each placeholder is
/// tried first.
fn matches(
    parts: &[Part],
    text: &str,
    values: &mut Vec<(String, String)>,
    steps: &mut usize,
) -> bool {
    let Some((part, parts)) = parts.split_first() else {
        return text.is_empty();
    };
    if let Part::Text(wanted) = part {
        let Some(rest) = text.strip_prefix(wanted.as_str()) else {
            return false;
        };
        return matches(parts, rest, values, steps);
    }

    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
    for end in std::iter::once(0).chain(ends) {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;

        let (taken, rest) = text.split_at(end);
        if !part.takes(taken) {
            // Text that has one wrong letter does not become right by more.
            if end > 0 {
                return false;
            }
            continue;
        }

        let known = values.len();
        values.extend(part.name().map(|name| (name.to_owned(), taken.to_owned())));
        if matches(parts, rest, values, steps) {
            return true;
        }
        values.truncate(known);
    }
    false
}

impl Part {
    fn takes(&self, text: &str) -> bool {
        match self {
            Self::Text(wanted) => text == wanted,
            Self::Name(None) => !text.contains('/'),
            Self::Name(Some(_)) => !text.is_empty() && !text.contains('/'),
            Self::Number(_) => {
                !text.is_empty()
                    && text.len() < 10
                    && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            Self::Any => true,
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => name.as_deref(),
            Self::Number(name) => Some(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pattern: &str, path: &str) -> Option<String> {
        let values = Pattern::parse(pattern).unwrap().find(path)?;
        let values = values.iter().map(|(name, value)| format!("{name}={value}"));
        Some(values.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn placeholders_take_parts_of_a_path() {
        let pattern = "x.{target}.pk1/sb.o.{step}.pk1.dop{clients}";
        let path = "bench/x.pg174_o2nofp.x10a.pk1/sb.o.read-only.range100.pk1.dop40";
        assert_eq!(
            values(pattern, path).unwrap(),
            "clients=40 step=read-only.range100 target=pg174_o2nofp.x10a"
        );
        assert_eq!(values(pattern, "x.a.pk1/sb.o.b.pk1.dopX"), None);
        assert_eq!(values(pattern, "x.a.pk1/c/sb.o.b.pk1.dop4"), None);
        assert_eq!(values("**/o.{step}", "a/b/o.l.i0").unwrap(), "step=l.i0");
        assert_eq!(values("*.sh", "a/run.sh").unwrap(), "");
    }

    #[test]
    fn a_wrong_pattern_says_what_is_wrong() {
        for (pattern, reason) in [
            ("{target", "a `{` without `}`"),
            ("{target}{target}", "twice"),
            ("{version}", "unknown placeholder `{version}`"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn no_pattern_takes_forever() {
        let pattern = Pattern::parse("**a**a**a**a**a**a**a**a**b").unwrap();
        assert_eq!(pattern.find(&"a".repeat(1000)), None);
    }
}
