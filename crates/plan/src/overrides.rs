//! `--set key=value` arguments, put over the tree of the plan file.

use toml::de::{DeValue, Error};

use crate::diagnostic::{Diagnostic, Place, Span};
use crate::tree::{Builder, Entry, Node, Table, Value};
use crate::wording::code;
use crate::{insert, kv, sysbench};

/// Puts the arguments over `root`, in their order. One key is not set twice.
pub(crate) fn apply(root: &mut Table, sets: &[String], diagnostics: &mut Vec<Diagnostic>) {
    let mut given: Vec<(Vec<String>, Place)> = Vec::new();
    for (index, argument) in sets.iter().enumerate() {
        match Override::read(index, argument) {
            Ok(set) => {
                let names: Vec<String> = set.path.iter().map(|(name, _)| name.clone()).collect();
                let place = set.path.first().map_or(Place::Nowhere, |(_, place)| *place);
                if let Some((_, first)) = given.iter().find(|(known, _)| *known == names) {
                    let message = format!("{} is set twice", code(&names.join(".")));
                    diagnostics.push(
                        Diagnostic::error("plan::set", place, message)
                            .label("set again")
                            .also(*first, "set first")
                            .help("leave one of them out"),
                    );
                    continue;
                }
                given.push((names, place));
                if let Err(diagnostic) = set.put(root) {
                    diagnostics.push(*diagnostic);
                }
            }
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
}

/// No key of a plan has as many names; without a bound the tree could become too deep to be walked.
const NAMES_MOST: usize = 16;

type Read<T> = Result<T, Box<Diagnostic>>;

struct Override {
    path: Vec<(String, Place)>,
    node: Node,
}

fn wrong(place: Place, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error("plan::set", place, message)
            .help("write `--set KEY=VALUE`: `--set clients=[1,4]`"),
    )
}

impl Override {
    fn read(index: usize, argument: &str) -> Read<Self> {
        let at = |start: usize, end: usize| Place::Set {
            index,
            span: Span { start, end },
        };
        let Some(equals) = equals_of(argument) else {
            return Err(wrong(
                at(0, argument.len()),
                format!("the argument {} has no `=`", code(argument)),
            ));
        };
        let path = join_names(path_of(index, &argument[..equals])?);
        let after = &argument[equals + 1..];
        let start = equals + 1 + (after.len() - after.trim_start().len());
        let raw = after.trim();
        let place = at(start, start + raw.len());
        let is_option = is_of_option(&path);
        Ok(Self {
            path,
            node: value_of(index, raw, start, place, is_option)?,
        })
    }

    fn put(self, root: &mut Table) -> Read<()> {
        let Some(((key, key_place), parents)) = self.path.split_last() else {
            return Ok(());
        };
        let mut table = root;
        let mut before = String::new();
        for (name, place) in parents {
            if !before.is_empty() {
                before.push('.');
            }
            before.push_str(name);
            if table.get_mut(name).is_none() {
                let node = Node {
                    value: Value::Table(Table::default()),
                    place: *place,
                    bare: None,
                };
                table.entries.push(Entry {
                    key: name.clone(),
                    key_place: *place,
                    node,
                });
            }
            let Some(entry) = table.get_mut(name) else {
                return Ok(());
            };
            if matches!(entry.node.value, Value::Broken) {
                return Ok(());
            }
            let sort = entry.node.sort();
            let Value::Table(inner) = &mut entry.node.value else {
                let mut diagnostic = wrong(
                    *place,
                    format!(
                        "{} is {sort}: {} cannot be set in it",
                        code(&before),
                        code(&format!("{before}.{key}"))
                    ),
                );
                diagnostic.label = format!("{sort}, not a table");
                diagnostic.help = vec![format!(
                    "set all of it: {}",
                    code(&format!("--set {before}=VALUE"))
                )];
                return Err(Box::new(diagnostic.also(entry.node.place, "given here")));
            };
            table = inner;
        }
        match table.get_mut(key) {
            Some(entry) => {
                entry.key_place = *key_place;
                entry.node = self.node;
            }
            None => table.entries.push(Entry {
                key: key.clone(),
                key_place: *key_place,
                node: self.node,
            }),
        }
        Ok(())
    }
}

/// The first `=` that is not within a quoted name.
fn equals_of(argument: &str) -> Option<usize> {
    let mut quote = None;
    argument
        .char_indices()
        .find_map(|(at, c)| match (quote, c) {
            (None, '=') => Some(at),
            (None, '"' | '\'') => {
                quote = Some(c);
                None
            }
            (Some(open), _) if open == c => {
                quote = None;
                None
            }
            _ => None,
        })
}

/// Parts a dotted key; a name with a dot stands in quotes.
fn path_of(index: usize, key: &str) -> Read<Vec<(String, Place)>> {
    let at = |start: usize, end: usize| Place::Set {
        index,
        span: Span { start, end },
    };
    let mut path = Vec::new();
    let mut start = 0;
    loop {
        let rest = &key[start..];
        let lead = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let from = start + lead;
        let (name, length) = match rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            Some(quote) => match rest[1..].find(quote) {
                Some(end) => (&rest[1..=end], end + 2),
                None => {
                    return Err(wrong(
                        at(from, key.len()),
                        format!("the key {} has an open quote", code(key)),
                    ));
                }
            },
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim_end(), end)
            }
        };
        let to = from + length;
        if name.is_empty() {
            return Err(wrong(
                at(from, to),
                format!("the key {} has an empty name in it", code(key)),
            ));
        }
        if path.len() == NAMES_MOST {
            return Err(wrong(
                at(0, key.len()),
                format!("the key {} has more than {NAMES_MOST} names", code(key)),
            ));
        }
        path.push((name.to_owned(), at(from, to)));
        let after = key[to..].trim_start();
        if after.is_empty() {
            return Ok(path);
        }
        if !after.starts_with('.') {
            let message = format!(
                "the key {} goes on after a quoted name without a `.`",
                code(key)
            );
            return Err(wrong(at(to, key.len()), message));
        }
        start = key.len() - after.len() + 1;
    }
}

/// Whether a key is that of one option in the engine's notation: `config.ENGINE.NAME.set.OPTION`.
fn is_of_option(path: &[(String, Place)]) -> bool {
    let name = |at: usize| path.get(at).map(|(name, _)| name.as_str());
    path.len() > 4 && name(0) == Some("config") && matches!(name(3), Some("set" | "load"))
}

/// Step names and the names of options may hold dots. A shell takes the quotes away that say so, and there is only
/// one way to read such a key without them.
fn join_names(path: Vec<(String, Place)>) -> Vec<(String, Place)> {
    let name = |at: usize| path.get(at).map_or("", |(name, _)| name.as_str());
    let step_at = match (name(0), name(1), name(2), name(4)) {
        ("workload", "insert" | "kv" | "sysbench", "step", _) => Some(3),
        ("workload", "insert" | "kv" | "sysbench", "variant", "step") => Some(5),
        _ => None,
    };
    let (from, to) = if let Some(from) = step_at {
        let keys: &[&str] = match name(1) {
            "kv" => &kv::STEP_KEYS,
            "sysbench" => &sysbench::STEP_KEYS,
            _ => &insert::STEP_KEYS,
        };
        let last_is_key = path
            .last()
            .is_some_and(|(name, _)| keys.contains(&name.as_str()));
        (
            from,
            if last_is_key {
                path.len() - 1
            } else {
                path.len()
            },
        )
    } else if is_of_option(&path) {
        (4, path.len())
    } else {
        return path;
    };
    if to <= from + 1 {
        return path;
    }
    let joined = path[from..to]
        .iter()
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>()
        .join(".");
    let place = match (path[from].1, path[to - 1].1) {
        (Place::Set { index, span: first }, Place::Set { span: last, .. }) => Place::Set {
            index,
            span: Span {
                start: first.start,
                end: last.end,
            },
        },
        (first, _) => first,
    };
    let mut short = path[..from].to_vec();
    short.push((joined, place));
    short.extend_from_slice(&path[to..]);
    short
}

/// A TOML value, or else the bare text. The value of an option is no table: `{capacity=1G;num_shard_bits=6}` is RocksDB's
/// notation.
fn value_of(index: usize, raw: &str, start: usize, place: Place, is_option: bool) -> Read<Node> {
    let text = || Node {
        value: Value::String(raw.to_owned()),
        place,
        bare: Some(raw.to_owned()),
    };
    if is_option && raw.starts_with('{') {
        return Ok(text());
    }
    let (value, errors) = DeValue::parse_recoverable(raw);
    if let Some(error) = errors.first() {
        return if raw.starts_with(['[', '{', '"', '\'']) {
            Err(not_toml(index, raw, start, error))
        } else {
            Ok(text())
        };
    }
    let shift = |range: std::ops::Range<usize>| Place::Set {
        index,
        span: Span {
            start: start + range.start.min(raw.len()),
            end: start + range.end.min(raw.len()),
        },
    };
    let mut node = Builder {
        place: &shift,
        broken: &[],
    }
    .node(&value);
    match node.value {
        Value::Datetime => return Ok(text()),
        Value::Integer(..) | Value::Float(..) | Value::Boolean(_) => {
            node.bare = Some(raw.to_owned())
        }
        _ => {}
    }
    node.place = place;
    Ok(node)
}

fn not_toml(index: usize, raw: &str, start: usize, error: &Error) -> Box<Diagnostic> {
    let range = error.span().unwrap_or(0..raw.len());
    let span = Span {
        start: start + range.start.min(raw.len()),
        end: start + range.end.min(raw.len()),
    };
    let message = format!("the value {} is not TOML: {}", code(raw), error.message());
    let mut diagnostic = wrong(Place::Set { index, span }, message);
    if raw.starts_with('[') {
        diagnostic.help = vec![
            "strings in a list need quotes: `--set 'workload.insert.steps=[\"l.i0\",\"l.x\"]'`"
                .into(),
        ];
    }
    diagnostic
}
