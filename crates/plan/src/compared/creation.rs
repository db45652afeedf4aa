//! Reads how the databases of a config are made, in which format its tables are, and the
//! environment of its server.

use serde_json::{Value as Json, json};
use words::{Creation, EngineHome};

use super::options::options;
use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::value_kinds::{Line, ListOf};
use crate::spec::{Config, ENV, Engine};
use crate::text::diagnostic::Place;
use crate::text::tree::Node;
use crate::text::wording::code;

/// The key that names the format of tables.
const TABLE_FORMAT: &str = "table-format";

/// The name of a format of tables, as SQL takes it without quotes.
struct FormatName;

impl ValueKind for FormatName {
    type Value = String;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<String> {
        let text = Line.read(cx, name, node)?;
        let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');

        if !is_word {
            let message = format!("{} is not a name: {}", code(name), code(&text));
            cx.error("plan::bad-text", node.place, message)
                .label("expected letters, digits and `_`")
                .help("write only the name, such as `\"aria\"`, and all else as `table-options`");
            return None;
        }

        Some(text)
    }

    fn show(&self, value: &String) -> String {
        Line.show(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_]+$" })
    }
}

/// Reads the keys of a config about its databases and its environment. The format of tables becomes
/// one of its options.
pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section, config: &mut Config) {
    let facts = config.engine.facts();
    if let Some(option) = facts.table_format_option {
        let place = section.place_of(TABLE_FORMAT);
        if let Some(format) = cx.given(section, TABLE_FORMAT, &FormatName) {
            set_format(cx, config, option, format, place);
        }
    }

    if facts.is_server() {
        let lines = ListOf(Line, "a list of strings");
        let creation = &mut config.creation;
        creation.table_options = cx.given(section, "table-options", &Line).unwrap_or_default();
        if facts.has_extensions {
            creation.extensions = given_lines(cx, section, "extensions", &lines);
        }
        creation.setup_sql = given_lines(cx, section, "setup-sql", &lines);
        creation.init_arguments = given_lines(cx, section, "init-arguments", &lines);
    }

    if facts.is_server() || facts.home == EngineHome::Library {
        // Their values are in no engine's notation.
        config.env = options(cx, Engine::Null, section, ENV);
    }
}

fn given_lines(
    cx: &mut Context<'_>,
    section: &mut Section,
    key: &str,
    kind: &ListOf<Line>,
) -> Vec<String> {
    let lines = cx.given(section, key, kind).unwrap_or_default();
    lines.into_iter().map(|(line, _)| line).collect()
}

/// Adds the option that selects the format of tables, unless `set` has it, too.
fn set_format(
    cx: &mut Context<'_>,
    config: &mut Config,
    option: &str,
    format: String,
    place: Place,
) {
    // MySQL accepts hyphens in names.
    let is_option = |name: &str| name.replace('-', "_").eq_ignore_ascii_case(option);
    if config.set.iter().any(|(name, _)| is_option(name)) {
        let message = format!("`{TABLE_FORMAT}` and `set.{option}` cannot be combined");
        cx.error("plan::conflict", place, message)
            .label("the same option")
            .help(format!("remove one of them: `{TABLE_FORMAT}` sets `{option}`"));
        return;
    }

    config.set.push((option.to_owned(), format));
}

/// Replaces what `own` gives.
pub(crate) fn override_creation(creation: &mut Creation, own: &Creation) {
    let lists = [
        (&mut creation.init_arguments, &own.init_arguments),
        (&mut creation.extensions, &own.extensions),
        (&mut creation.setup_sql, &own.setup_sql),
    ];
    for (list, own) in lists {
        if !own.is_empty() {
            list.clone_from(own);
        }
    }

    if !own.table_options.is_empty() {
        creation.table_options.clone_from(&own.table_options);
    }
}
