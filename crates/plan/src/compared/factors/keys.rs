//! Reads `[design]`.

use design::{Exclusion, Kind, Levels};

use super::levels::{Factor, Level};
use crate::reading::context::{Context, Section, tables_of};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::{Choice, Flag, Optional};
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::{choices, code, key_part};

/// The keys of `[design]`.
pub(super) struct DesignKeys {
    pub(super) kind: Kind,
    pub(super) target_count: Option<usize>,
    pub(super) folds: bool,
    pub(super) exclusions: Vec<Exclusion>,
    /// The levels of each combination of a listed design.
    pub(super) combinations: Vec<Levels>,
    pub(super) place: Place,
}
/// Reads `[design]`.
pub(super) fn design_keys(
    cx: &mut Context<'_>,
    section: &mut Section,
    factors: &[Factor],
) -> DesignKeys {
    let counts = Optional(Quantity::count(4..=32), "(the fewest of 4, 8, 16 or 32)");
    let keys = DesignKeys {
        kind: cx.value(section, "kind", &Choice(Kind::NAMES), Kind::Screening),
        target_count: cx.value(section, "targets", &counts, None).map(|count: u32| count as usize),
        folds: cx.value(section, "fold-over", &Flag, false),
        exclusions: exclusions(cx, section, factors),
        combinations: combinations(cx, section, factors),
        place: section.place,
    };

    if (keys.kind == Kind::Listed) == keys.combinations.is_empty() {
        let message = "`design.combinations` is for `kind = \"listed\"`, which needs it";
        cx.error("plan::conflict", section.place, message)
            .label("in this table")
            .help("list the levels of each target: `combinations = [{ FACTOR = LEVEL }]`");
    }
    keys
}

/// Reads the levels that cannot go together.
fn exclusions(cx: &mut Context<'_>, section: &mut Section, factors: &[Factor]) -> Vec<Exclusion> {
    let tables = tables_of_levels(cx, section, "exclude", factors).into_iter();
    tables.map(|levels| Exclusion { levels }).collect()
}

/// Reads the combinations of a listed design. Factors that a combination does not name have the
/// base's level.
fn combinations(cx: &mut Context<'_>, section: &mut Section, factors: &[Factor]) -> Vec<Levels> {
    let mut combinations = Vec::new();
    for given in tables_of_levels(cx, section, "combinations", factors) {
        let mut levels = vec![0; factors.len()];

        for (factor, level) in given {
            levels[factor] = level;
        }

        combinations.push(levels);
    }
    combinations
}

/// Reads a list of tables of factors and levels, as indexes.
fn tables_of_levels(
    cx: &mut Context<'_>,
    section: &mut Section,
    key: &str,
    factors: &[Factor],
) -> Vec<Vec<(usize, usize)>> {
    let path = section.name_of(key);
    let Some(entry) = section.take(key) else {
        return Vec::new();
    };

    let mut tables = Vec::new();
    let mut shown = Vec::new();
    for node in tables_of(cx, &path, entry.node.clone(), |_, _| {}) {
        let Value::Table(table) = node.value else {
            cx.wrong_type(&path, &node, "a table of factors and levels")
                .help("write it as `{ FACTOR = LEVEL, OTHER = LEVEL }`");
            continue;
        };

        let mut levels = Vec::new();
        let mut written = Vec::new();

        for Entry { key, key_place, node } in table.entries {
            if let Some(level) = named_level(cx, &key, key_place, &node, factors) {
                written.push(format!(
                    "{} = {}",
                    key_part(&key),
                    node.literal().unwrap_or_default()
                ));
                levels.push(level);
            }
        }

        shown.push(format!("{{ {} }}", written.join(", ")));
        tables.push(levels);
    }

    cx.resolve(path, format!("[{}]", shown.join(", ")), entry.node.place);
    tables
}

/// Returns the index of a factor and of its level.
fn named_level(
    cx: &mut Context<'_>,
    name: &str,
    place: Place,
    node: &Node,
    factors: &[Factor],
) -> Option<(usize, usize)> {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let Some(factor) = names.iter().position(|other| *other == name) else {
        let message = format!("unknown factor: {}", code(name));
        cx.error("plan::unknown-key", place, message).label("not in `[factors]`").help(choices(
            name,
            "available factors",
            &names,
        ));
        return None;
    };

    // A level that could not be read was reported before.
    let is_level = |level: &Level| match &node.value {
        Value::Boolean(flag) => ["on", "true", "1"].contains(&level.name.as_str()) == *flag,
        Value::Integer(text) | Value::Float(text) | Value::String(text) | Value::Bare(text) => {
            *text == level.name
        }
        _ => false,
    };

    let level = factors[factor].levels.iter().position(is_level);
    if level.is_none() {
        let levels: Vec<&str> =
            factors[factor].levels.iter().map(|level| level.name.as_str()).collect();
        let message = format!("factor {} has no such level", code(name));
        cx.error("plan::bad-value", node.place, message)
            .label("not a level")
            .help(format!("levels: {}", levels.join(", ")));
    }
    Some((factor, level?))
}
