//! `--set key=value` arguments, put over the tree of the plan file.

use toml::de::{DeTable, DeValue, Error};

use crate::diagnostic::{Diagnostic, Place};
use crate::reader::Fault;
use crate::tree::{Entry, Node, Table, Value};
use crate::wording::code;

/// Names of a key, each with its place.
type Path = Vec<(String, Place)>;

/// Puts the arguments over `root`, in their order. One key is not set twice.
pub(crate) fn apply(root: &mut Table, sets: &[String], diagnostics: &mut Vec<Diagnostic>) {
    let mut given: Vec<(String, Place)> = Vec::new();
    for (index, argument) in sets.iter().enumerate() {
        let all = Place::Set {
            index,
            span: (0..argument.len()).into(),
        };
        let done = read(argument, all).and_then(|(path, node)| {
            let names: Vec<&str> = path.iter().map(|(name, _)| name.as_str()).collect();
            let key = names.join(".");
            if let Some((_, first)) = given.iter().find(|(known, _)| *known == key) {
                let message = format!("{} is set twice", code(&key));
                return Err(Diagnostic::error("plan::set", path[0].1, message)
                    .label("set again")
                    .also(*first, "set first")
                    .help("leave one of them out")
                    .into());
            }
            given.push((key, path[0].1));
            put(root, &path, node)
        });
        diagnostics.extend(done.err().into_iter().flat_map(|Fault(wrong)| wrong));
    }
}

fn wrong(place: Place, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("plan::set", place, message)
        .help("write `--set KEY=VALUE`: `--set clients=[1,4]`")
}

/// Parts an argument; `all` is the place of all of it.
fn read(argument: &str, all: Place) -> Result<(Path, Node), Fault> {
    let Some((key, after)) = argument.split_once('=') else {
        let message = format!("the argument {} has no `=`", code(argument));
        return Err(wrong(all, message).into());
    };
    let path = path_of(key, all)?;
    let start = argument.len() - after.trim_start().len();
    let raw = after.trim();
    // `{capacity=1G;num_shard_bits=6}` is RocksDB's notation of an option's value.
    let is_option = matches!(names(&path)[..], ["config", _, _, "set" | "load", _, ..]);
    let node = if raw.starts_with(['[', '"', '\'']) || raw.starts_with('{') && !is_option {
        let value = DeValue::parse(raw).map_err(|error| not_toml(raw, all, start, &error))?;
        Node::new(&value, &|range| {
            all.part(start + range.start, start + range.end)
        })
    } else {
        Node {
            value: Value::Bare(raw.to_owned()),
            place: all.part(start, start + raw.len()),
        }
    };
    let is_table = matches!(node.value, Value::Table(_));
    Ok((join_names(path, is_table), node))
}

fn not_toml(raw: &str, all: Place, start: usize, error: &Error) -> Diagnostic {
    let range = error.span().unwrap_or(0..raw.len());
    let place = all.part(start + range.start, start + range.end);
    let message = format!("the value {} is not TOML: {}", code(raw), error.message());
    let diagnostic = wrong(place, message);
    if raw.starts_with('[') {
        diagnostic.help(
            "strings in a list need quotes: `--set 'workload.insert.steps=[\"l.i0\",\"l.x\"]'`",
        )
    } else {
        diagnostic
    }
}

fn names(path: &Path) -> Vec<&str> {
    path.iter().map(|(name, _)| name.as_str()).collect()
}

/// Parses a dotted key; a name with a dot stands in quotes.
fn path_of(key: &str, all: Place) -> Result<Path, Fault> {
    /// No key of a plan has as many names; without a bound the tree could become too deep to be walked.
    const NAMES_MOST: usize = 16;
    let line = format!("{key}=0");
    let parsed = match DeTable::parse(&line) {
        Ok(parsed) if key.matches('.').count() < NAMES_MOST => parsed,
        Ok(_) => {
            let message = format!("the key {} has more than {NAMES_MOST} names", code(key));
            return Err(wrong(all.part(0, key.len()), message).into());
        }
        Err(error) => {
            let end = key.len();
            let range = error
                .span()
                .map_or(0..end, |it| it.start.min(end)..it.end.min(end));
            let message = format!("{} is not a key of TOML: {}", code(key), error.message());
            return Err(wrong(all.part(range.start, range.end), message).into());
        }
    };
    let mut path = Vec::new();
    let mut table = parsed.get_ref();
    while let Some((name, value)) = table.iter().next() {
        let span = name.span();
        path.push((name.get_ref().to_string(), all.part(span.start, span.end)));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Ok(path),
        }
    }
    Err(wrong(all, format!("the argument {} has no key", code(key))).into())
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

fn put(root: &mut Table, path: &Path, node: Node) -> Result<(), Fault> {
    let Some(((name, place), parents)) = path.split_last() else {
        return Ok(());
    };
    let last = Entry {
        key: name.clone(),
        key_place: *place,
        node,
    };
    let mut table = root;
    for (depth, (name, place)) in parents.iter().enumerate() {
        if table.get_mut(name).is_none() {
            table.entries.push(Entry {
                key: name.clone(),
                key_place: *place,
                node: Node {
                    value: Value::Table(Table::default()),
                    place: *place,
                },
            });
        }
        let Some(Entry { node, .. }) = table.get_mut(name) else {
            return Ok(());
        };
        let (sort, given) = (node.sort(), node.place);
        let Value::Table(inner) = &mut node.value else {
            let before = names(path)[..=depth].join(".");
            let message = format!(
                "{} is {sort}: {} cannot be set in it",
                code(&before),
                code(&names(path).join("."))
            );
            let all = code(&format!("--set {before}=VALUE"));
            return Err(Diagnostic::error("plan::set", *place, message)
                .label(format!("{sort}, not a table"))
                .also(given, "given here")
                .help(format!("set all of it: {all}"))
                .into());
        };
        table = inner;
    }
    table.put(last);
    Ok(())
}
