//! `--set key=value` arguments, put over the tree of the plan file.

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Place};
use crate::reader::Context;
use crate::tree::{Entry, Node, Table, Value};
use crate::wording::code;

/// Names of a key, each with its place.
type Path = Vec<(String, Place)>;

/// Puts the arguments over `root`, in their order. One key is not set twice.
pub(crate) fn apply(cx: &mut Context<'_>, root: &mut Table, sets: &[String]) {
    let mut given: Vec<(String, Place)> = Vec::new();
    for (index, argument) in sets.iter().enumerate() {
        let all = Place::Set {
            index,
            span: (0..argument.len()).into(),
        };
        let Some((path, node)) = read(cx, argument, all) else {
            continue;
        };
        let (key, place) = (names(&path).join("."), path[0].1);
        if let Some((_, first)) = given.iter().find(|(known, _)| *known == key) {
            cx.error("plan::set", place, format!("{} is set twice", code(&key)))
                .label("set again")
                .also(*first, "set first")
                .help("leave one of them out");
            continue;
        }
        given.push((key, place));
        put(cx, root, &path, node);
    }
}

fn wrong<'d>(
    cx: &'d mut Context<'_>,
    place: Place,
    message: impl Into<String>,
) -> &'d mut Diagnostic {
    cx.error("plan::set", place, message)
        .help("write `--set KEY=VALUE`: `--set clients=[1,4]`")
}

/// Parts an argument; `all` is the place of all of it.
fn read(cx: &mut Context<'_>, argument: &str, all: Place) -> Option<(Path, Node)> {
    let Some((key, after)) = argument.split_once('=') else {
        let message = format!("the argument {} has no `=`", code(argument));
        wrong(cx, all, message);
        return None;
    };
    let path = path_of(cx, key, all)?;
    let start = argument.len() - after.trim_start().len();
    let raw = after.trim();
    // `{capacity=1G;num_shard_bits=6}` is RocksDB's notation of an option's value.
    let is_option = matches!(names(&path)[..], ["config", _, _, "set" | "load", _, ..]);
    let node = if raw.starts_with(['[', '"', '\'']) || raw.starts_with('{') && !is_option {
        match DeValue::parse(raw) {
            Ok(value) => Node::new(&value, &|range| {
                all.part(start + range.start, start + range.end)
            }),
            Err(error) => {
                let range = error.span().unwrap_or(0..raw.len());
                let place = all.part(start + range.start, start + range.end);
                let message = format!("the value {} is not TOML: {}", code(raw), error.message());
                let help = match raw.starts_with('[') {
                    true => {
                        "strings in a list need quotes: `--set 'workload.insert.steps=[\"l.i0\",\"l.x\"]'`"
                    }
                    false => "",
                };
                wrong(cx, place, message).help(help);
                return None;
            }
        }
    } else {
        Node {
            value: Value::Bare(raw.to_owned()),
            place: all.part(start, start + raw.len()),
        }
    };
    let is_table = matches!(node.value, Value::Table(_));
    Some((join_names(path, is_table), node))
}

fn names(path: &Path) -> Vec<&str> {
    path.iter().map(|(name, _)| name.as_str()).collect()
}

/// Parses a dotted key; a name with a dot stands in quotes.
fn path_of(cx: &mut Context<'_>, key: &str, all: Place) -> Option<Path> {
    /// No key of a plan has as many names; without a bound the tree could become too deep to be walked.
    const NAMES_MOST: usize = 16;
    let end = key.len();
    let line = format!("{key}=0");
    let parsed = match DeTable::parse(&line) {
        Ok(parsed) if key.matches('.').count() < NAMES_MOST => parsed,
        Ok(_) => {
            let message = format!("the key {} has more than {NAMES_MOST} names", code(key));
            wrong(cx, all.part(0, end), message);
            return None;
        }
        Err(error) => {
            let range = error.span().unwrap_or(0..end);
            let place = all.part(range.start.min(end), range.end.min(end));
            let message = format!("{} is not a key of TOML: {}", code(key), error.message());
            wrong(cx, place, message);
            return None;
        }
    };
    let mut path = Vec::new();
    let mut table = parsed.get_ref();
    while let Some((name, value)) = table.iter().next() {
        let span = name.span();
        path.push((name.get_ref().to_string(), all.part(span.start, span.end)));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
    wrong(cx, all, format!("the argument {} has no key", code(key)));
    None
}

/// Joins the parts of names of steps and options that hold dots: a shell takes the quotes away that say so. A step's
/// value is a table, and the values of its keys are none.
fn join_names(mut path: Path, is_table: bool) -> Path {
    let (from, to) = match names(&path)[..] {
        ["workload", _, "step", ..] => (3, path.len() - usize::from(!is_table)),
        ["workload", _, "variant", _, "step", ..] => (5, path.len() - usize::from(!is_table)),
        ["config", _, _, "set" | "load", ..] => (4, path.len()),
        _ => return path,
    };
    if to > from + 1 {
        let joined = names(&path)[from..to].join(".");
        let place = path[from].1;
        path.splice(from..to, [(joined, place)]);
    }
    path
}

fn put(cx: &mut Context<'_>, root: &mut Table, path: &Path, node: Node) {
    let Some(((name, place), parents)) = path.split_last() else {
        return;
    };
    let mut table = root;
    for (depth, (name, place)) in parents.iter().enumerate() {
        let parent = table.get_or_put(name, || Entry {
            key: name.clone(),
            key_place: *place,
            node: Node {
                value: Value::Table(Table::default()),
                place: *place,
            },
        });
        let (sort, given) = (parent.node.type_name(), parent.node.place);
        let Value::Table(inner) = &mut parent.node.value else {
            let before = names(path)[..=depth].join(".");
            let message = format!(
                "{} is {sort}: {} cannot be set in it",
                code(&before),
                code(&names(path).join("."))
            );
            let all = code(&format!("--set {before}=VALUE"));
            cx.error("plan::set", *place, message)
                .label(format!("{sort}, not a table"))
                .also(given, "given here")
                .help(format!("set all of it: {all}"));
            return;
        };
        table = inner;
    }
    table.put(Entry {
        key: name.clone(),
        key_place: *place,
        node,
    });
}
