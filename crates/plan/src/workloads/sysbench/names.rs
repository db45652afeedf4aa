//! Checks the names of parameters and arguments.

use super::parser;
use crate::reading::context::Context;
use crate::text::diagnostic::Place;
use crate::text::wording::code;

/// The placeholder for the table's name.
pub(super) const TABLE: &str = "table";
/// The placeholder for the rows of a statement that inserts several.
pub(super) const VALUES: &str = "values";

/// Returns whether a parameter or an argument can have this name, and reports one that it cannot
/// have.
pub(super) fn check_name(
    cx: &mut Context<'_>,
    name: &str,
    place: Place,
    is_argument: bool,
    is_known: bool,
) -> bool {
    let label = if !parser::is_identifier(name) {
        "expected lower-case letters, digits and `_`"
    } else if is_argument && name.ends_with(|c: char| c.is_ascii_digit()) {
        "must not end with a digit"
    } else if ["rows", "tables", "thread", TABLE, VALUES].contains(&name) {
        "a built-in name"
    } else if is_argument && super::RUN_KEYS.contains(&name) {
        "a key that every step has"
    } else if is_known {
        "already defined"
    } else {
        return true;
    };

    let what = if is_argument { "an argument" } else { "a parameter" };
    let message = format!("invalid name of {what}: {}", code(name));
    cx.error("plan::bad-name", place, message)
        .label(label)
        .help("rename it; expressions use it as `name`, and SQL as `{name}`");
    false
}

/// Reports arguments and parameters that nothing uses.
pub(super) fn report_unused<'n>(
    cx: &mut Context<'_>,
    path: &str,
    used: &[String],
    names: impl Iterator<Item = (&'n str, Place)>,
) {
    for (name, place) in names.filter(|(name, _)| !used.iter().any(|used| used == name)) {
        let message = format!("{} is not used in {}", code(name), code(path));
        cx.warning("plan::unused-parameter", place, message)
            .label("has no effect")
            .help("use it, or remove it");
    }
}
