//! Kinds of values in a plan, other than numbers.

use std::net::IpAddr;

use serde_json::{Value as Json, json};
use words::{format_cpus, parse_cpus};

use crate::reading::context::{Context, ValueKind};
use crate::spec::Reuse;
use crate::text::diagnostic::Place;
use crate::text::tree::{Node, Value};
use crate::text::wording::{choices, code, list, quoted};

/// A list of CPU numbers, `"0-3,8"`.
pub(crate) struct CpuList;

impl ValueKind for CpuList {
    type Value = Vec<u32>;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Vec<u32>> {
        const HELP: &str = "list CPUs by number, as the kernel does: `\"0\"`, `\"0-3,8\"`";
        let text = cx.text(name, node, "a string of CPU numbers", HELP)?;
        let cpus = parse_cpus(text);

        if cpus.is_none() {
            let message = format!("{} is not a list of CPUs: {}", code(name), code(text));
            cx.error("plan::bad-number", node.place, message)
                .label("expected numbers and ranges")
                .help(HELP);
        }

        cpus
    }

    fn show(&self, value: &Vec<u32>) -> String {
        quoted(&format_cpus(value))
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

/// One IP address of a host.
pub(crate) struct IpAddress;

impl ValueKind for IpAddress {
    type Value = IpAddr;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<IpAddr> {
        const HELP: &str =
            "write one address of this host, such as `\"10.0.0.5\"` or `\"fd00::5\"`";
        let text = cx.text(name, node, "a string with an IP address", HELP)?;
        let parsed: Option<IpAddr> = text.parse().ok();
        // Clients cannot connect to all addresses.
        let address = parsed.filter(|address| !address.is_unspecified());
        if address.is_none() {
            let message = format!("{} is not one IP address: {}", code(name), code(text));
            cx.error("plan::bad-address", node.place, message)
                .label("expected an IP address")
                .help(HELP);
        }
        address
    }

    fn show(&self, value: &IpAddr) -> String {
        quoted(&value.to_string())
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// `true` or `false`
pub(crate) struct Flag;

impl ValueKind for Flag {
    type Value = bool;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<bool> {
        let flag = match &node.value {
            Value::Boolean(flag) => Some(*flag),
            Value::Bare(text) => text.parse().ok(),
            _ => None,
        };
        if flag.is_none() {
            cx.wrong_type(name, node, "a boolean").help("write `true` or `false`");
        }
        flag
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }
}

/// `true`, `false`, `"run"` or `"repeat"`
pub(crate) struct ReuseValue;

impl ValueKind for ReuseValue {
    type Value = Reuse;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Reuse> {
        let reuse = match &node.value {
            Value::Boolean(true) => Some(Reuse::Always),
            Value::Boolean(false) => Some(Reuse::Off),
            _ => match node.text() {
                Some("run") => Some(Reuse::Run),
                Some("repeat") => Some(Reuse::Repeat),
                Some("true") => Some(Reuse::Always),
                Some("false") => Some(Reuse::Off),
                _ => None,
            },
        };
        if reuse.is_none() {
            cx.wrong_type(name, node, "a boolean, `\"run\"` or `\"repeat\"`").help(
                "write `true` to share databases between runs, `\"run\"` within a run, `\"repeat\"` within each repeat, or `false`",
            );
        }
        reuse
    }

    fn show(&self, value: &Reuse) -> String {
        match value {
            Reuse::Off => "false".to_owned(),
            Reuse::Repeat => quoted("repeat"),
            Reuse::Run => quoted("run"),
            Reuse::Always => "true".to_owned(),
        }
    }

    fn schema(&self) -> Json {
        json!({ "enum": [true, false, "run", "repeat"] })
    }
}

/// One of a set of words.
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> ValueKind for Choice<T> {
    type Value = T;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<T> {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        let help = format!("allowed: {}", list(&words));
        let text = cx.text(name, node, "a string", &help)?;
        let entry = self.0.iter().find(|(word, _)| *word == text);

        if entry.is_none() {
            let message = format!("{} has an unknown value: {}", code(name), code(text));
            cx.error("plan::unknown-value", node.place, message)
                .label("not an allowed value")
                .help(choices(text, "allowed", &words));
        }
        entry.map(|(_, value)| *value)
    }

    fn show(&self, value: &T) -> String {
        let entry = self.0.iter().find(|(_, other)| other == value);
        entry.map_or(String::new(), |(word, _)| quoted(word))
    }

    fn schema(&self) -> Json {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        json!({ "enum": words })
    }
}

/// One line of text, not empty.
pub(crate) struct Line;

impl ValueKind for Line {
    type Value = String;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<String> {
        let text = cx.text(name, node, "a string", "")?;

        if text.trim().is_empty() {
            let message = format!("{} is empty", code(name));
            cx.error("plan::bad-text", node.place, message)
                .label("expected text")
                .help("give the key a value, or remove it");
            return None;
        }

        if text.chars().any(char::is_control) {
            let message = format!("{} holds a control character: {}", code(name), code(text));
            cx.error("plan::bad-text", node.place, message)
                .label("expected one line of text without control characters");
            return None;
        }

        Some(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// A shell command of one or more lines.
pub(crate) struct Script;

impl ValueKind for Script {
    type Value = String;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<String> {
        let text = cx.text(name, node, "a string", "")?;
        let is_bad = |letter: char| letter.is_control() && !['\n', '\t'].contains(&letter);

        if text.trim().is_empty() || text.contains(is_bad) {
            let message = format!("{} is not a shell command: {}", code(name), code(text));
            cx.error("plan::bad-text", node.place, message)
                .label("expected one or more lines of text, without other control characters");
            return None;
        }

        Some(text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// A value that may be absent, and the remark that listings show in its absence.
pub(crate) struct Optional<K>(pub(crate) K, pub(crate) &'static str);

impl<K: ValueKind> ValueKind for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Self::Value> {
        self.0.read(cx, name, node).map(Some)
    }

    fn show(&self, value: &Self::Value) -> String {
        value.as_ref().map_or_else(|| self.1.to_owned(), |value| self.0.show(value))
    }

    fn schema(&self) -> Json {
        self.0.schema()
    }
}

/// A name that becomes part of a directory's name.
pub(crate) struct Name;

impl ValueKind for Name {
    type Value = String;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<String> {
        let text = cx.text(name, node, "a name", NAME_HELP)?;
        let message = format!("{} is not a valid name", code(name));
        check_name(cx, &message, text, node.place).then(|| text.to_owned())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" })
    }
}

const NAME_LENGTH_MAX: usize = 64;
const NAME_HELP: &str =
    "a name becomes part of a directory name: use 1 to 64 of `A-Z`, `a-z`, `0-9`, `_`, `-`";

fn may_be_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns whether text may be part of the name of a directory.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&text.len()) && text.chars().all(may_be_in_name)
}

/// Returns whether text is a valid name, and reports one that is not. `message` says what it names.
pub(crate) fn check_name(cx: &mut Context<'_>, message: &str, text: &str, place: Place) -> bool {
    if is_name(text) {
        return true;
    }

    let label = match text.chars().find(|c| !may_be_in_name(*c)) {
        Some(c) => format!("{} is not allowed in a name", code(&c.to_string())),
        None if text.is_empty() => "a name cannot be empty".to_owned(),
        None => format!("{} characters; at most {NAME_LENGTH_MAX} are allowed", text.len()),
    };

    let message = format!("{message}: {}", code(text));

    let similar = text.replace([' ', '.', '/', ':'], "-");
    let similar =
        if is_name(&similar) { format!("did you mean {}?", code(&similar)) } else { String::new() };

    cx.error("plan::bad-name", place, message).label(label).help(similar).help(NAME_HELP);
    false
}

/// A list of values, each with its place. A `--set` argument may give one value, or several
/// separated by commas.
pub(crate) struct ListOf<K>(pub(crate) K, pub(crate) &'static str);

impl<K: ValueKind> ListOf<K> {
    /// Returns the nodes of the list.
    fn nodes(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Vec<Node>> {
        let text = match &node.value {
            Value::List(nodes) => return Some(nodes.clone()),
            Value::Bare(text) => text,
            _ => {
                let example = node.literal().unwrap_or_else(|| "a, b".to_owned());
                cx.wrong_type(name, node, self.1)
                    .help(format!("write a list in brackets: `[{example}]`"));
                return None;
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
        Some(parts.collect())
    }
}

impl<K: ValueKind> ValueKind for ListOf<K>
where
    K::Value: PartialEq,
{
    type Value = Vec<(K::Value, Place)>;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Self::Value> {
        let nodes = self.nodes(cx, name, node)?;
        if nodes.is_empty() {
            let message = format!("{} is an empty list", code(name));
            cx.error("plan::empty-list", node.place, message)
                .label(format!("expected {}", self.1))
                .help("add a value, or remove the key");
            return None;
        }

        let errors = cx.errors();
        let mut values: Vec<(K::Value, Place)> = Vec::new();

        for node in &nodes {
            let Some(value) = self.0.read(cx, name, node) else {
                continue;
            };

            if let Some((_, first)) = values.iter().find(|(other, _)| *other == value) {
                let message = format!("{} has {} twice", code(name), code(&self.0.show(&value)));
                cx.error("plan::duplicate-value", node.place, message)
                    .label("listed again")
                    .also(*first, "first listed here")
                    .help(self.0.help_for_duplicate(&value));
            }

            values.push((value, node.place));
        }
        (cx.errors() == errors).then_some(values)
    }

    fn show(&self, value: &Self::Value) -> String {
        let parts: Vec<String> = value.iter().map(|(value, _)| self.0.show(value)).collect();
        format!("[{}]", parts.join(", "))
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "items": self.0.schema(), "minItems": 1 })
    }
}
