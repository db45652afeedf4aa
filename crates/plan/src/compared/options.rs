//! Reads tables of options in an engine's notation, and of factors.

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::value_kinds::Line;
use crate::spec::Engine;
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::{code, key_part, quoted};

/// The table of the factors of a build or a config.
pub(crate) const FACTORS: &str = "factors";

/// Values of `assay compare --by` that do not name a factor of the plan.
const RESERVED_FACTORS: [&str; 3] = ["build", "all", "design"];

/// Options in the engine's notation.
pub(crate) type Options = Vec<(String, String)>;

/// Reads the factors of a build or a config, with their values.
pub(crate) fn factors(cx: &mut Context<'_>, section: &mut Section) -> Options {
    options(cx, Engine::Null, section, FACTORS)
}

/// Reads a table of options in the engine's notation.
pub(crate) fn options(
    cx: &mut Context<'_>,
    engine: Engine,
    section: &mut Section,
    key: &str,
) -> Options {
    let path = section.name_of(key);
    let is_factors = key == FACTORS;
    let mut options = Options::new();

    let mut places: Vec<Place> = Vec::new();
    for Entry { key: name, key_place: place, node } in cx.table(section, key).entries {
        if !check_option_name(cx, &path, &name, place, is_factors) {
            continue;
        }
        // Engines ignore the case of these names.
        let same = options.iter().position(|(other, _)| other.eq_ignore_ascii_case(&name));
        if let Some(index) = same {
            let message = format!("{} is given twice", code(&name));
            cx.error("plan::duplicate-key", place, message)
                .label("given again")
                .also(places[index], "first given here")
                .help("remove one of them; upper and lower case are the same here");
            continue;
        }

        let full = format!("{path}.{}", key_part(&name));
        if let Some(value) = option(cx, engine, &full, &name, &node) {
            cx.resolve(full, value.shown, node.place);
            options.push((name, value.text));
            places.push(place);
        }
    }
    options
}

/// Returns true if an option or a factor of the table `path` may have this name; reports it
/// otherwise.
pub(crate) fn check_option_name(
    cx: &mut Context<'_>,
    path: &str,
    name: &str,
    place: Place,
    is_factor: bool,
) -> bool {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let is_reserved = is_factor && RESERVED_FACTORS.contains(&name);
    if is_word && !is_reserved {
        return true;
    }

    let what = if is_factor { "a factor" } else { "an option" };
    let message = format!("invalid name of {what} in {}: {}", code(path), code(name));
    let error = cx.error("plan::bad-name", place, message);
    if is_word {
        error
            .label(format!("`assay compare --by {name}` means something else"))
            .help("rename the factor");
    } else {
        error
            .label("not a valid name")
            .help("start with a letter or `_`, followed by letters, digits, `_`, `-` or `.`");
    }
    false
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionValue {
    /// The value in the engine's notation.
    pub(crate) text: String,
    /// The value in the plan's notation.
    pub(crate) shown: String,
}

/// Reads the value of the option `name`, whose dotted name is `key`.
pub(crate) fn option(
    cx: &mut Context<'_>,
    engine: Engine,
    key: &str,
    name: &str,
    node: &Node,
) -> Option<OptionValue> {
    let flag = match &node.value {
        Value::Boolean(flag) => Some(*flag),
        Value::Bare(text) => text.parse().ok(),
        _ => None,
    };
    if let Some(flag) = flag {
        let [on, off] = engine.facts().boolean_words;
        let text = if flag { on } else { off };
        return Some(OptionValue { text: text.to_owned(), shown: flag.to_string() });
    }

    let help = match &node.value {
        Value::Integer(text) | Value::Float(text) => {
            return Some(OptionValue { text: text.clone(), shown: text.clone() });
        }
        Value::Bare(text) if text.parse::<f64>().is_ok() => {
            return Some(OptionValue { text: text.clone(), shown: text.clone() });
        }
        Value::String(text) | Value::Bare(text) if text.is_empty() => {
            return Some(OptionValue { text: String::new(), shown: quoted("") });
        }
        Value::Table(table) => {
            let inner = table.entries.first().map_or("NAME", |entry| entry.key.as_str());
            let dotted = quoted(&format!("{name}.{inner}"));
            format!("put a name that contains a dot in quotes: `{dotted} = VALUE`")
        }
        Value::Datetime | Value::List(_) => "write it as a string".to_owned(),
        _ => {
            let text = Line.read(cx, key, node)?;
            let shown = quoted(&text);
            return Some(OptionValue { text, shown });
        }
    };
    cx.wrong_type(key, node, "a single value").help(help);
    None
}

/// Replaces options of the same names, and adds the others.
pub(crate) fn override_options(options: &mut Options, overrides: &Options) {
    for option in overrides {
        let mut earlier = options.iter_mut();
        match earlier.find(|(other, _)| other.eq_ignore_ascii_case(&option.0)) {
            Some(earlier) => *earlier = option.clone(),
            None => options.push(option.clone()),
        }
    }
}
