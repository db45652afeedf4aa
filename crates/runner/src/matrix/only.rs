//! `--only`: selects the cells of a matrix.

use std::collections::BTreeSet;

use glob::{MatchOptions, Pattern};
use record::CellRef;
use words::CellKind;

use crate::ground::failure::UsageError;
use crate::ground::similar::most_similar_first;

/// A `*` matches within one name only, except at the end: `a.*/c8/*` has no variant.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};
/// The number of similar names that an error lists.
const NEAREST: usize = 5;

/// The filters of a run. Without filters, every cell matches.
#[derive(Default)]
pub struct CellFilters {
    filters: Vec<Filter>,
    /// The paths of cells that measure the highest rates of those that match.
    needed: BTreeSet<String>,
}

struct Filter {
    pattern: Pattern,
    /// The pattern is compared with the target's name only.
    matches_target_only: bool,
}

impl CellFilters {
    /// Parses filters, each of which must match at least one of `cells`.
    pub fn new(filters: &[String], cells: &[CellRef]) -> Result<Self, UsageError> {
        let mut parsed = Vec::new();
        for text in filters {
            let filter = Filter::new(text)?;
            // A filter without a cell is a mistake in writing, and would measure too little.
            if !cells.iter().any(|cell| filter.matches(cell)) {
                return Err(no_match(text, &filter, cells));
            }
            parsed.push(filter);
        }

        let mut selected = Self { filters: parsed, needed: BTreeSet::new() };
        selected.needed = selected.needed_among(cells);
        Ok(selected)
    }

    /// Returns the paths of the cells on whose highest rates others depend that match.
    fn needed_among(&self, cells: &[CellRef]) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        for cell in cells.iter().filter(|cell| cell.key.kind == CellKind::Unlimited) {
            // The rates of variants depend on each other.
            let is_of_same_load = |other: &&CellRef| {
                other.key.target == cell.key.target && other.key.clients == cell.key.clients
            };
            if cells.iter().filter(is_of_same_load).any(|other| self.matches(other)) {
                needed.insert(cell.path.clone());
            }
        }
        needed
    }

    /// Returns whether any filter matches the cell, or another cell that depends on its highest rate.
    pub fn matches(&self, cell: &CellRef) -> bool {
        self.filters.is_empty()
            || self.needed.contains(&cell.path)
            || self.filters.iter().any(|filter| filter.matches(cell))
    }
}

impl Filter {
    fn new(text: &str) -> Result<Self, UsageError> {
        // What is in a folder is in its subfolders, too.
        let whole = if text.ends_with("/*") { format!("{text}*") } else { text.to_owned() };

        let pattern = Pattern::new(&whole).map_err(|error| {
            UsageError::new(
                format!("`--only {text}`: {} (at character {})", error.msg, error.pos + 1),
                Some("`*` matches any part of a name, `?` one character, `[ab]` one of several, `**` any directories".into()),
            )
        })?;

        Ok(Self { pattern, matches_target_only: !text.contains('/') })
    }

    fn matches(&self, cell: &CellRef) -> bool {
        self.pattern.matches_with(self.name(cell), OPTIONS)
    }

    /// Returns the name that the filter is compared with: the target's or the cell's.
    fn name<'c>(&self, cell: &'c CellRef) -> &'c str {
        if self.matches_target_only { &cell.key.target } else { cell.name() }
    }
}

fn no_match(text: &str, filter: &Filter, cells: &[CellRef]) -> UsageError {
    let mut names: Vec<&str> = cells.iter().map(|cell| filter.name(cell)).collect();
    names.sort_unstable();
    names.dedup();

    // The most similar first, then by name.
    most_similar_first(&mut names, text, |name| name);
    let count = names.len();
    names.truncate(NEAREST);

    let what = if filter.matches_target_only { "targets" } else { "cells" };
    let shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let more = match count - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };

    UsageError::new(
        format!("`--only {text}` matches no cell"),
        Some(format!("similar {what}: {}{more}", shown.join(", "))),
    )
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;

    fn cells() -> Vec<CellRef> {
        let mut cells = Vec::new();
        for target in ["pg16.base", "pg17.base", "pg17.big"] {
            for clients in [1, 8] {
                cells.push(CellRef::new(target, "insert", None, clients, 1));
                cells.push(CellRef::new(target, "insert", Some("cached"), clients, 1));
            }
        }
        cells
    }

    fn selected(filters: &[&str]) -> Vec<String> {
        let cells = cells();
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        let only = CellFilters::new(&filters, &cells).map_err(|error| error.to_string()).unwrap();
        let matching = cells.iter().filter(|cell| only.matches(cell));
        matching.map(|cell| cell.name().to_owned()).collect()
    }

    #[test]
    fn a_filter_without_a_slash_matches_targets() {
        assert_eq!(selected(&[]).len(), 12);
        assert_eq!(selected(&["pg17.*"]).len(), 8);
        assert_eq!(selected(&["*.big"]).len(), 4);
        assert_eq!(selected(&["pg16.base"]).len(), 4);
        assert_eq!(selected(&["pg16.*", "*.big"]).len(), 8);
    }

    #[test]
    fn the_cells_that_measure_highest_rates_are_selected_with_those_that_need_them() {
        let mut cells = cells();
        for target in ["pg16.base", "pg17.base"] {
            for clients in [1, 8] {
                let mut key = CellKey::new(target, Some("cached"), clients, 1);
                key.kind = CellKind::Unlimited;
                cells.push(CellRef::of(key, "transactions"));
            }
        }
        let only = CellFilters::new(&["pg17.*/c8/*".to_owned()], &cells).unwrap();
        let matching = cells.iter().filter(|cell| only.matches(cell));
        let names: Vec<&str> = matching.map(CellRef::name).collect();
        assert_eq!(names, ["pg17.base/c8/r1", "pg17.big/c8/r1", "pg17.base/cached/c8/u1"]);
    }

    #[test]
    fn a_filter_with_a_slash_matches_cells() {
        assert_eq!(selected(&["pg17.big/c8/*"]), ["pg17.big/c8/r1"]);
        assert_eq!(selected(&["*/cached/c1/r1"]).len(), 3);
        assert_eq!(selected(&["pg16.base/**"]).len(), 4);
        assert_eq!(selected(&["**/c8/r1"]).len(), 6);
        assert_eq!(selected(&["pg1[67].base/c?/r1"]).len(), 4);
    }

    #[test]
    fn a_star_at_the_end_matches_all_the_rest() {
        assert_eq!(selected(&["*/cached/*"]).len(), 6);
        assert_eq!(selected(&["pg16.*/cached/*"]).len(), 2);
        assert_eq!(selected(&["pg16.base/*"]).len(), 4);
        assert_eq!(selected(&["*/c8/*"]).len(), 3);
    }

    #[test]
    fn one_filter_matches_a_repeat_with_and_without_variants() {
        let mut cells = cells();
        for variant in [None, Some("cached")] {
            cells.push(CellRef::new("pg17.big", "insert", variant, 8, 2));
            cells.push(CellRef::new("pg17.big", "insert", variant, 8, 12));
        }
        let only = CellFilters::new(&["**/r2".to_owned()], &cells).ok().unwrap();
        let matching = cells.iter().filter(|cell| only.matches(cell));
        let names: Vec<&str> = matching.map(CellRef::name).collect();
        assert_eq!(names, ["pg17.big/c8/r2", "pg17.big/cached/c8/r2"]);
    }

    #[test]
    fn each_filter_must_match_something() {
        let refuse = |filter: &str| {
            let filters = ["pg17.*".to_owned(), filter.to_owned()];
            let error = anyhow::Error::from(CellFilters::new(&filters, &cells()).err().unwrap());
            (error.to_string(), crate::ground::failure::help_of(&error).unwrap())
        };
        let (message, help) = refuse("pg17.bse");
        assert_eq!(message, "`--only pg17.bse` matches no cell");
        assert!(help.starts_with("similar targets: `pg17.base`"), "{help}");
        let (_, help) = refuse("pg17.big/c9/r1");
        assert!(help.contains("`pg17.big/c8/r1`") && help.ends_with(" and 7 more"), "{help}");
        let (message, _) = refuse("pg[17");
        assert!(message.contains("`--only pg[17`") && message.contains("character"), "{message}");
    }
}
