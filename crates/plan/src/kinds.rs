//! The kinds of value that a plan has, besides numbers.

use words::{format_cpus, parse_cpus};

use crate::diagnostic::{Diagnostic, Place};
use crate::reader::{Fault, Kind, text_of, wrong_type};
use crate::tree::{Node, Value};
use crate::wording::{choices, code, list, quoted};

/// Numbers of CPUs, `"0-3,8"`.
pub(crate) struct CpuList;

impl Kind for CpuList {
    type Value = Vec<u32>;

    fn read(&self, name: &str, node: &Node) -> Result<Vec<u32>, Fault> {
        const HELP: &str =
            "CPUs are given by number, as the kernel lists them: `\"0\"`, `\"0-3,8\"`";
        let text = text_of(node, || wrong_type(name, node, "a list of CPUs").help(HELP))?;
        parse_cpus(text).ok_or_else(|| {
            let message = format!("{} is not a list of CPUs: {}", code(name), code(text));
            Diagnostic::error("plan::bad-number", node.place, message)
                .label("expected numbers and ranges")
                .help(HELP)
                .into()
        })
    }

    fn show(&self, value: &Vec<u32>) -> String {
        quoted(&format_cpus(value))
    }
}

/// `true` or `false`
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, name: &str, node: &Node) -> Result<bool, Fault> {
        match &node.value {
            Value::Boolean(flag) => Ok(*flag),
            Value::Bare(text) if text == "true" => Ok(true),
            Value::Bare(text) if text == "false" => Ok(false),
            _ => Err(wrong_type(name, node, "a boolean")
                .help("write `true` or `false`")
                .into()),
        }
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// One of a few words.
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Kind for Choice<T> {
    type Value = T;

    fn read(&self, name: &str, node: &Node) -> Result<T, Fault> {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        let text = text_of(node, || {
            wrong_type(name, node, "a string").help(format!("allowed: {}", list(&words)))
        })?;
        match self.0.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let message = format!("{} has an unknown value: {}", code(name), code(text));
                Err(
                    Diagnostic::error("plan::unknown-value", node.place, message)
                        .label("not one of those allowed")
                        .help(choices(text, "allowed", &words))
                        .into(),
                )
            }
        }
    }

    fn show(&self, value: &T) -> String {
        self.0
            .iter()
            .find(|(_, other)| other == value)
            .map_or(String::new(), |(word, _)| quoted(word))
    }
}

/// Text in one line, not empty.
pub(crate) struct Line;

impl Kind for Line {
    type Value = String;

    fn read(&self, name: &str, node: &Node) -> Result<String, Fault> {
        let text = text_of(node, || wrong_type(name, node, "a string"))?;
        let bad = |message: String| Diagnostic::error("plan::bad-text", node.place, message);
        if text.trim().is_empty() {
            return Err(bad(format!("{} is empty", code(name)))
                .label("nothing here")
                .help("leave the key out, or give it a value")
                .into());
        }
        if text.chars().any(char::is_control) {
            let what = format!("{} holds a control character: {}", code(name), code(text));
            return Err(bad(what).label("must be one line of text").into());
        }
        Ok(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// Text that may be absent, and the remark that stands for its absence.
pub(crate) struct Optional<K>(pub(crate) K, pub(crate) &'static str);

impl<K: Kind> Kind for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, name: &str, node: &Node) -> Result<Self::Value, Fault> {
        self.0.read(name, node).map(Some)
    }

    fn show(&self, value: &Self::Value) -> String {
        value
            .as_ref()
            .map_or_else(|| self.1.to_owned(), |value| self.0.show(value))
    }
}

/// A name that becomes a directory's.
pub(crate) struct Name;

impl Kind for Name {
    type Value = String;

    fn read(&self, name: &str, node: &Node) -> Result<String, Fault> {
        let text = text_of(node, || wrong_type(name, node, "a name").help(NAME_HELP))?;
        match bad_name(&format!("{} is not a name", code(name)), text, node.place) {
            Some(diagnostic) => Err(diagnostic.into()),
            None => Ok(text.to_owned()),
        }
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

const NAME_LONGEST: usize = 64;
const NAME_HELP: &str =
    "a name becomes part of a directory's: 1 to 64 of `A-Z`, `a-z`, `0-9`, `_`, `-`";

/// Whether text may be part of the name of a directory.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_LONGEST).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// What is wrong with a name, if anything is; `message` says whose it is.
pub(crate) fn bad_name(message: &str, text: &str, place: Place) -> Option<Diagnostic> {
    if is_name(text) {
        return None;
    }
    let offending = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && *c != '_' && *c != '-');
    let label = match offending {
        Some(c) => format!("{} is not allowed in a name", code(&c.to_string())),
        None if text.is_empty() => "empty".to_owned(),
        None => format!("{} characters", text.len()),
    };
    let message = format!("{message}: {}", code(text));
    Some(
        Diagnostic::error("plan::bad-name", place, message)
            .label(label)
            .help(NAME_HELP),
    )
}

/// A list of values, each with its place. A `--set` argument may give one value, or several with commas.
pub(crate) struct ListOf<K>(pub(crate) K, pub(crate) &'static str);

impl<K: Kind> ListOf<K> {
    /// Returns the nodes of the list.
    fn nodes(&self, name: &str, node: &Node) -> Result<Vec<Node>, Fault> {
        let text = match &node.value {
            Value::List(nodes) => return Ok(nodes.clone()),
            Value::Bare(text) => text,
            _ => {
                return Err(wrong_type(name, node, self.1)
                    .help("a list stands in brackets: `[a, b]`")
                    .into());
            }
        };
        let mut end = 0;
        let parts = text.split(',').map(|part| {
            end += part.len() + 1;
            let start = end - 1 - part.trim_start().len();
            Node {
                value: Value::Bare(part.trim().to_owned()),
                place: node.place.part(start, start + part.trim().len()),
            }
        });
        Ok(parts.collect())
    }
}

impl<K: Kind> Kind for ListOf<K>
where
    K::Value: PartialEq,
{
    type Value = Vec<(K::Value, Place)>;

    fn read(&self, name: &str, node: &Node) -> Result<Self::Value, Fault> {
        let nodes = self.nodes(name, node)?;
        if nodes.is_empty() {
            let message = format!("{} is empty", code(name));
            let expected = format!("expected {} with something in it", self.1);
            let empty = Diagnostic::error("plan::empty-list", node.place, message);
            return Err(empty.label(expected).into());
        }
        let mut values: Vec<(K::Value, Place)> = Vec::new();
        let mut faults = Vec::new();
        for node in &nodes {
            let value = match self.0.read(name, node) {
                Ok(value) => value,
                Err(Fault(more)) => {
                    faults.extend(more);
                    continue;
                }
            };
            if let Some((_, first)) = values.iter().find(|(other, _)| *other == value) {
                let message = format!("{} has {} twice", code(name), code(&self.0.show(&value)));
                let mut diagnostic =
                    Diagnostic::error("plan::duplicate-value", node.place, message)
                        .label("given again")
                        .also(*first, "first given here");
                diagnostic.help.extend(self.0.help_for_twice());
                faults.push(diagnostic);
            }
            values.push((value, node.place));
        }
        if faults.is_empty() {
            Ok(values)
        } else {
            Err(Fault(faults))
        }
    }

    fn show(&self, value: &Self::Value) -> String {
        let parts: Vec<String> = value.iter().map(|(value, _)| self.0.show(value)).collect();
        format!("[{}]", parts.join(", "))
    }
}
