//! Applies `--set key=value` arguments to the tree of the plan file.

use toml::de::{DeTable, DeValue};

use crate::reading::context::Context;
use crate::reading::document;
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::tree::{Entry, Node, Table, Value};
use crate::text::wording::code;

/// The names in a dotted key, each with its place.
type Path = Vec<(String, Place)>;

/// Applies the arguments to `root`, in their order. Reports a key that is set twice.
pub(crate) fn apply(cx: &mut Context<'_>, root: &mut Table, sets: &[String]) {
    let mut set_keys: Vec<(String, Place)> = Vec::new();
    for (index, argument) in sets.iter().enumerate() {
        let all = Place::Set { index, span: (0..argument.len()).into() };
        let Some((path, node)) = read(cx, argument, all) else {
            continue;
        };

        let (key, place) = (names(&path).join("."), path[0].1);
        if let Some((_, first)) = set_keys.iter().find(|(known, _)| *known == key) {
            cx.error("plan::set", place, format!("{} is set twice", code(&key)))
                .label("set again")
                .also(*first, "set first")
                .help("remove one of them");
            continue;
        }

        set_keys.push((key, place));
        put(cx, root, &path, node);
    }
}

/// Reports an argument that is not of the form `KEY=VALUE`.
fn report_form<'d>(
    cx: &'d mut Context<'_>,
    place: Place,
    message: impl Into<String>,
) -> &'d mut Diagnostic {
    cx.error("plan::set", place, message)
        .help("write `--set KEY=VALUE`, for example `--set clients=[1,4]`")
}

/// Splits an argument into key and value; `all` is the place of the whole argument.
fn read(cx: &mut Context<'_>, argument: &str, all: Place) -> Option<(Path, Node)> {
    let Some((key, after)) = argument.split_once('=') else {
        let message = format!("the argument {} has no `=`", code(argument));
        report_form(cx, all, message);
        return None;
    };
    let path = path_of(cx, key, all)?;

    let start = argument.len() - after.trim_start().len();
    let raw = after.trim();
    let place = all.part(start, start + raw.len());
    // `{capacity=1G;num_shard_bits=6}` is RocksDB's notation of an option's value.
    let is_option = matches!(names(&path)[..], ["config", _, _, "set" | "load", _, ..]);
    let is_toml = raw.starts_with(['[', '"', '\'']) || raw.starts_with('{') && !is_option;
    let node = if is_toml {
        toml_value(cx, raw, place)?
    } else {
        Node { value: Value::Bare(raw.to_owned()), place }
    };

    let is_table = matches!(node.value, Value::Table(_));
    Some((join_names(path, is_table), node))
}

/// Parses a value that is written as in a plan; `whole` is its place.
fn toml_value(cx: &mut Context<'_>, raw: &str, whole: Place) -> Option<Node> {
    let error = match DeValue::parse(raw) {
        Ok(value) => {
            return Some(Node::new(&value, &|range| whole.part(range.start, range.end)));
        }
        Err(error) => error,
    };

    let range = error.span().unwrap_or(0..raw.len());
    let (what, expected) = document::message_of(&error);
    let message = format!("the value {} is not valid TOML: {what}", code(raw));
    let help = if raw.starts_with('[') {
        "strings in a list need quotes: `--set 'workload.insert.steps=[\"l.i0\",\"l.x\"]'`"
    } else {
        "put the whole argument in single quotes, so that the shell leaves it as it is"
    };
    cx.error("plan::set", whole.part(range.start, range.end), message)
        .label(format!("expected {expected}"))
        .help(help);
    None
}

/// Returns the names of a key, without their places.
fn names(path: &Path) -> Vec<&str> {
    path.iter().map(|(name, _)| name.as_str()).collect()
}

/// Parses a dotted key. A name that contains a dot is in quotes.
fn path_of(cx: &mut Context<'_>, key: &str, all: Place) -> Option<Path> {
    /// More names than any key of a plan has. Without a bound the tree could become too deep for
    /// recursion.
    const NAMES_MAX: usize = 16;

    // TOML has no keys without values.
    let end = key.len();
    let line = format!("{key}=0");
    let parsed = match DeTable::parse(&line) {
        Ok(parsed) if key.matches('.').count() < NAMES_MAX => parsed,
        Ok(_) => {
            let message = format!("the key {} has more than {NAMES_MAX} names", code(key));
            report_form(cx, all.part(0, end), message);
            return None;
        }
        Err(error) => {
            let range = error.span().unwrap_or(0..end);
            let place = all.part(range.start.min(end), range.end.min(end));
            let message = format!("{} is not a valid key", code(key));
            report_form(cx, place, message)
                .label("expected letters, digits, `-`, `_`, or a name in quotes");
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

    report_form(cx, all, format!("the argument {} has no key", code(key)));
    None
}

/// The keys of a step whose values may be tables.
const KEYS_OF_TABLES: [&str; 4] = ["think", "keying", "max", "measured-max"];

/// Joins the parts of a step's or an option's name that contains dots: the shell removes the quotes
/// around it. With a table as the value the key ends with the step's name, unless it is a key of the
/// step that takes tables; otherwise it ends with a key of the step.
fn join_names(mut path: Path, is_table: bool) -> Path {
    let ends_with_key =
        path.last().is_some_and(|(name, _)| KEYS_OF_TABLES.contains(&name.as_str()));
    let is_table = is_table && !ends_with_key;
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

/// Sets the value of a key, and adds the tables that it needs; reports a parent that is not a
/// table.
fn put(cx: &mut Context<'_>, root: &mut Table, path: &Path, node: Node) {
    let Some(((name, place), parents)) = path.split_last() else {
        return;
    };

    let mut table = root;
    for (depth, (parent_name, key_place)) in parents.iter().enumerate() {
        let parent = table.get_or_put(parent_name, || Entry {
            key: parent_name.clone(),
            key_place: *key_place,
            node: Node { value: Value::Table(Table::default()), place: *key_place },
        });

        let (type_name, parent_place) = (parent.node.type_name(), parent.node.place);
        let Value::Table(inner) = &mut parent.node.value else {
            let before = names(path)[..=depth].join(".");
            let message = format!(
                "cannot set {}: {} is {type_name}, not a table",
                code(&names(path).join(".")),
                code(&before),
            );
            let whole = code(&format!("--set {before}=VALUE"));
            cx.error("plan::set", *key_place, message)
                .label("not a table")
                .also(parent_place, "given here")
                .help(format!("set the whole key: {whole}"));
            return;
        };
        table = inner;
    }
    table.put(Entry { key: name.clone(), key_place: *place, node });
}
