//! The kinds of value that a plan has.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place, Span};
use crate::quantity::{self, Wrong};
use crate::reader::{Fault, Kind, text_of, wrong_type};
use crate::tree::{Node, Value};
use crate::wording::{code, did_you_mean, list, quoted};

fn out_of_range(name: &str, node: &Node, got: &str, allowed: &str) -> Fault {
    Diagnostic::error(
        "plan::out-of-range",
        node.place,
        format!("{} is out of range: {}", code(name), code(got)),
    )
    .label(format!("allowed: {allowed}"))
    .into()
}

/// A number of things, `20M`.
pub(crate) struct Count(pub(crate) RangeInclusive<u64>);

impl Kind for Count {
    type Value = u64;

    fn read(&self, name: &str, node: &Node) -> Result<u64, Fault> {
        let (got, count) = match &node.value {
            Value::Broken => return Err(Fault::SAID),
            Value::Integer(text, number) => match number.map(u64::try_from) {
                Some(Ok(count)) => (text.clone(), Ok(count)),
                _ => return Err(out_of_range(name, node, text, &show_range(&self.0))),
            },
            Value::String(text) => (text.clone(), quantity::count(text)),
            _ => return Err(wrong_type(name, node, "a count").help(COUNT_HELP).into()),
        };
        match count {
            Ok(count) if self.0.contains(&count) => Ok(count),
            Ok(_) => Err(out_of_range(name, node, &got, &show_range(&self.0))),
            Err(wrong) => Err(no_quantity(name, node, &got, "count", &wrong, COUNT_HELP)),
        }
    }

    fn show(&self, value: &u64) -> String {
        let text = quantity::show_count(*value);
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text
        } else {
            quoted(&text)
        }
    }
}

const COUNT_HELP: &str = "a count is a whole number, alone or in a string with `k`, `M` or `G` for powers of ten: `1500`, `\"20M\"`";

fn show_range(range: &RangeInclusive<u64>) -> String {
    match (*range.start(), *range.end()) {
        (least, u64::MAX) => format!("{} or more", quantity::show_count(least)),
        (least, most) => format!(
            "{} to {}",
            quantity::show_count(least),
            quantity::show_count(most)
        ),
    }
}

/// A number of things that 32 bits hold.
pub(crate) struct SmallCount(pub(crate) RangeInclusive<u32>);

impl Kind for SmallCount {
    type Value = u32;

    fn read(&self, name: &str, node: &Node) -> Result<u32, Fault> {
        let range = u64::from(*self.0.start())..=u64::from(*self.0.end());
        let count = Count(range.clone()).read(name, node)?;
        u32::try_from(count)
            .map_err(|_| out_of_range(name, node, &count.to_string(), &show_range(&range)))
    }

    fn show(&self, value: &u32) -> String {
        Count(0..=u64::MAX).show(&u64::from(*value))
    }
}

/// A duration, `"10m"`.
pub(crate) struct Time(pub(crate) RangeInclusive<Duration>);

const TIME_HELP: &str =
    "a duration is a string with a number and one of `ms`, `s`, `m`, `h`: `\"500ms\"`, `\"10m\"`";

impl Kind for Time {
    type Value = Duration;

    fn read(&self, name: &str, node: &Node) -> Result<Duration, Fault> {
        let text = match &node.value {
            Value::Broken => return Err(Fault::SAID),
            Value::String(text) => text,
            Value::Integer(text, _) | Value::Float(text, _) => {
                return Err(no_quantity(
                    name,
                    node,
                    text,
                    "duration",
                    &Wrong::NoUnit,
                    TIME_HELP,
                ));
            }
            _ => return Err(wrong_type(name, node, "a duration").help(TIME_HELP).into()),
        };
        match quantity::duration(text) {
            Ok(duration) if self.0.contains(&duration) => Ok(duration),
            Ok(_) => {
                let (least, most) = (
                    quantity::show_duration(*self.0.start()),
                    quantity::show_duration(*self.0.end()),
                );
                Err(out_of_range(
                    name,
                    node,
                    text,
                    &format!("{least} to {most}"),
                ))
            }
            Err(wrong) => Err(no_quantity(name, node, text, "duration", &wrong, TIME_HELP)),
        }
    }

    fn show(&self, value: &Duration) -> String {
        quoted(&quantity::show_duration(*value))
    }
}

/// Bytes of memory, `"2GiB"`.
pub(crate) struct Size(pub(crate) RangeInclusive<u64>);

const SIZE_HELP: &str =
    "a size is a string with a number and one of `MiB`, `GiB`: `\"512MiB\"`, `\"1.5GiB\"`";

impl Kind for Size {
    type Value = u64;

    fn read(&self, name: &str, node: &Node) -> Result<u64, Fault> {
        let text = match (&node.value, node.text()) {
            (Value::Broken, _) => return Err(Fault::SAID),
            (Value::Integer(text, _) | Value::Float(text, _), _) => text,
            (_, Some(text)) => text,
            _ => return Err(wrong_type(name, node, "a size").help(SIZE_HELP).into()),
        };
        match quantity::size(text) {
            Ok(size) if self.0.contains(&size) => Ok(size),
            Ok(_) => {
                let least = quantity::show_size(*self.0.start());
                Err(out_of_range(name, node, text, &format!("{least} or more")))
            }
            Err(wrong) => Err(no_quantity(name, node, text, "size", &wrong, SIZE_HELP)),
        }
    }

    fn show(&self, value: &u64) -> String {
        quoted(&quantity::show_size(*value))
    }
}

/// Numbers of CPUs, `"0-3,8"`.
pub(crate) struct CpuList;

impl CpuList {
    /// More than any machine has.
    const MOST: u32 = 8192;

    fn parse(text: &str) -> Option<Vec<u32>> {
        let number = |text: &str| {
            let number: u32 = text.trim().parse().ok()?;
            (number < Self::MOST).then_some(number)
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return None;
                    }
                    cpus.extend(first..=last);
                }
            }
        }
        cpus.sort_unstable();
        cpus.dedup();
        Some(cpus)
    }
}

impl Kind for CpuList {
    type Value = Vec<u32>;

    fn read(&self, name: &str, node: &Node) -> Result<Vec<u32>, Fault> {
        const HELP: &str =
            "CPUs are given by number, as the kernel lists them: `\"0\"`, `\"0-3,8\"`";
        let Some(text) = node.text() else {
            if matches!(node.value, Value::Broken) {
                return Err(Fault::SAID);
            }
            return Err(wrong_type(name, node, "a list of CPUs").help(HELP).into());
        };
        Self::parse(text).ok_or_else(|| {
            Diagnostic::error(
                "plan::bad-number",
                node.place,
                format!("{} is no list of CPUs: {}", code(name), code(text)),
            )
            .label("expected numbers and ranges")
            .help(HELP)
            .into()
        })
    }

    fn show(&self, value: &Vec<u32>) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &cpu in value {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let shown: Vec<String> = ranges
            .iter()
            .map(|(first, last)| {
                if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                }
            })
            .collect();
        quoted(&shown.join(","))
    }
}

fn no_quantity(name: &str, node: &Node, got: &str, what: &str, wrong: &Wrong, help: &str) -> Fault {
    let (name, shown) = (code(name), code(got));
    let diagnostic = match wrong {
        Wrong::NoNumber => Diagnostic::error(
            "plan::bad-number",
            node.place,
            format!("{name} is no {what}: {shown}"),
        )
        .label("does not begin with a number"),
        Wrong::Fraction => Diagnostic::error(
            "plan::bad-number",
            node.place,
            format!("{name} is no {what}: {shown}"),
        )
        .label("not a whole number"),
        Wrong::TooLarge => Diagnostic::error(
            "plan::out-of-range",
            node.place,
            format!("{name} is out of range: {shown}"),
        )
        .label("too large"),
        Wrong::NoUnit => Diagnostic::error(
            "plan::bad-unit",
            node.place,
            format!("{name} has no unit: {shown}"),
        )
        .label(if what == "size" {
            "bytes, GiB?"
        } else {
            "seconds, minutes?"
        })
        .help(if what == "size" {
            format!("for bytes write {}", code(&format!("\"{got}B\"")))
        } else {
            format!("for seconds write {}", code(&format!("\"{got}s\"")))
        }),
        Wrong::Unit { unit, meant } => {
            let diagnostic = Diagnostic::error(
                "plan::bad-unit",
                node.place,
                format!("{name} has an unknown unit: {} in {shown}", code(unit)),
            )
            .label(format!("not a unit of a {what}"));
            match meant {
                Some(meant) => {
                    let number = got.strip_suffix(unit.as_str()).unwrap_or_default();
                    diagnostic.help(format!(
                        "did you mean {}?",
                        code(&format!("{number}{meant}"))
                    ))
                }
                None => diagnostic,
            }
        }
    };
    diagnostic.help(help).into()
}

/// Things per second, `100`, `"20k"` or `"20k/s"`.
pub(crate) struct Rate;

impl Rate {
    /// The largest rate that is taken for one, per second.
    pub(crate) const MOST: f64 = 1e9;
}

impl Kind for Rate {
    type Value = f64;

    fn read(&self, name: &str, node: &Node) -> Result<f64, Fault> {
        const HELP: &str = "a rate is a number per second: `100`, `0.5`, `\"20k/s\"`";
        let (got, rate) = match &node.value {
            Value::Broken => return Err(Fault::SAID),
            // Rates are far below what a float holds exactly.
            Value::Integer(text, number) => (
                text.clone(),
                number.map_or(f64::INFINITY, |number| number as f64),
            ),
            Value::Float(text, number) => (text.clone(), *number),
            Value::String(text) => match quantity::count(text.strip_suffix("/s").unwrap_or(text)) {
                Ok(count) => (text.clone(), count as f64),
                Err(wrong) => return Err(no_quantity(name, node, text, "rate", &wrong, HELP)),
            },
            _ => return Err(wrong_type(name, node, "a rate").help(HELP).into()),
        };
        if rate > 0.0 && rate <= Self::MOST {
            Ok(rate)
        } else {
            Err(out_of_range(name, node, &got, "more than 0, at most 1G"))
        }
    }

    fn show(&self, value: &f64) -> String {
        if value.fract() == 0.0 && *value <= Self::MOST {
            Count(0..=u64::MAX).show(&(*value as u64))
        } else {
            value.to_string()
        }
    }
}

/// Bytes per second, `"2MiB/s"`.
pub(crate) struct ByteRate;

impl Kind for ByteRate {
    type Value = u64;

    fn read(&self, name: &str, node: &Node) -> Result<u64, Fault> {
        const HELP: &str = "a rate of writing is a string with a number and one of `B/s`, `KiB/s`, `MiB/s`: `\"2MiB/s\"`";
        let text = match (&node.value, node.text()) {
            (Value::Broken, _) => return Err(Fault::SAID),
            (Value::Integer(text, _) | Value::Float(text, _), _) => text,
            (_, Some(text)) => text,
            _ => {
                return Err(wrong_type(name, node, "a rate of writing")
                    .help(HELP)
                    .into());
            }
        };
        let wrong_unit = |label: String, meant: Option<String>| {
            let diagnostic = Diagnostic::error(
                "plan::bad-unit",
                node.place,
                format!("{} is no rate of writing: {}", code(name), code(text)),
            )
            .label(label);
            let diagnostic = match meant {
                Some(meant) => diagnostic.help(format!("did you mean {}?", code(&meant))),
                None => diagnostic,
            };
            Err(diagnostic.help(HELP).into())
        };
        let Some(size) = text.strip_suffix("/s") else {
            let meant = quantity::size(text).ok().map(|_| format!("{text}/s"));
            return wrong_unit("per second?".to_owned(), meant);
        };
        match quantity::size(size) {
            Ok(0) => Err(out_of_range(name, node, text, "1B/s or more")),
            Ok(size) => Ok(size),
            Err(Wrong::Unit { unit, meant }) => {
                let number = size.strip_suffix(unit.as_str()).unwrap_or_default();
                let meant = meant.map(|meant| format!("{number}{meant}/s"));
                wrong_unit(format!("{} is not a unit of a size", code(&unit)), meant)
            }
            Err(Wrong::NoUnit) => wrong_unit("bytes, MiB?".to_owned(), None),
            Err(wrong) => Err(no_quantity(name, node, text, "rate", &wrong, HELP)),
        }
    }

    fn show(&self, value: &u64) -> String {
        quoted(&format!("{}/s", quantity::show_size(*value)))
    }
}

/// A part of a whole, `0.5`.
pub(crate) struct Share;

impl Kind for Share {
    type Value = f64;

    fn read(&self, name: &str, node: &Node) -> Result<f64, Fault> {
        let (got, share) = match &node.value {
            Value::Broken => return Err(Fault::SAID),
            Value::Integer(text, number) => {
                (text, number.map_or(f64::INFINITY, |number| number as f64))
            }
            Value::Float(text, number) => (text, *number),
            _ => {
                return Err(wrong_type(name, node, "a number from 0 to 1")
                    .help("write it as a number: `0.5`")
                    .into());
            }
        };
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(out_of_range(name, node, got, "0 to 1"))
        }
    }

    fn show(&self, value: &f64) -> String {
        value.to_string()
    }
}

/// `true` or `false`
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, name: &str, node: &Node) -> Result<bool, Fault> {
        match &node.value {
            Value::Boolean(flag) => Ok(*flag),
            Value::Broken => Err(Fault::SAID),
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
            None => Err(Diagnostic::error(
                "plan::unknown-value",
                node.place,
                format!("{} has an unknown value: {}", code(name), code(text)),
            )
            .label("not one of those allowed")
            .help(format!(
                "{}allowed: {}",
                did_you_mean(text, &words),
                list(&words)
            ))
            .into()),
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
        if text.trim().is_empty() {
            return Err(Diagnostic::error(
                "plan::bad-text",
                node.place,
                format!("{} is empty", code(name)),
            )
            .label("nothing here")
            .help("leave the key out, or give it a value")
            .into());
        }
        if text.chars().any(char::is_control) {
            return Err(Diagnostic::error(
                "plan::bad-text",
                node.place,
                format!("{} holds a control character: {}", code(name), code(text)),
            )
            .label("must be one line of text")
            .into());
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
        match bad_name(&format!("{} is no name", code(name)), text, node.place) {
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
    Some(
        Diagnostic::error(
            "plan::bad-name",
            place,
            format!("{message}: {}", code(text)),
        )
        .label(label)
        .help(NAME_HELP),
    )
}

/// A list of values, each with its place. A `--set` argument may give one value, or several with commas.
pub(crate) struct ListOf<K>(pub(crate) K, pub(crate) &'static str);

impl<K: Kind> ListOf<K> {
    /// The nodes of the list.
    fn nodes(&self, name: &str, node: &Node) -> Result<Vec<Node>, Fault> {
        match (&node.value, node.place) {
            (Value::Broken, _) => Err(Fault::SAID),
            (Value::List(nodes), _) => Ok(nodes.clone()),
            (Value::String(text), Place::Set { index, span }) if node.bare.is_some() => {
                let mut start = span.start;
                let mut nodes = Vec::new();
                for part in text.split(',') {
                    let lead = part.len() - part.trim_start().len();
                    let at = start + lead;
                    let part_text = part.trim().to_owned();
                    let place = Place::Set {
                        index,
                        span: Span {
                            start: at,
                            end: at + part_text.len(),
                        },
                    };
                    let number = part_text.parse().ok();
                    let value = match number {
                        Some(_) => Value::Integer(part_text.clone(), number),
                        None => Value::String(part_text.clone()),
                    };
                    nodes.push(Node {
                        value,
                        place,
                        bare: Some(part_text),
                    });
                    start += part.len() + 1;
                }
                Ok(nodes)
            }
            (Value::Table(_), _) | (_, Place::File(_) | Place::Nowhere) => {
                Err(wrong_type(name, node, self.1)
                    .help("a list stands in brackets: `[a, b]`")
                    .into())
            }
            (_, Place::Set { .. }) => Ok(vec![node.clone()]),
        }
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
            return Err(Diagnostic::error(
                "plan::empty-list",
                node.place,
                format!("{} is empty", code(name)),
            )
            .label(format!("expected {} with something in it", self.1))
            .into());
        }
        let mut values: Vec<(K::Value, Place)> = Vec::new();
        let mut faults = Vec::new();
        let mut is_whole = true;
        for node in &nodes {
            let value = match self.0.read(name, node) {
                Ok(value) => value,
                Err(Fault(more)) => {
                    is_whole = false;
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
        if is_whole && faults.is_empty() {
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
