//! Finds an index by its columns in the engine's catalog, because tables that assay did not create
//! have other index names.

use crate::contract::{Dialect, Rows, Session, Table};
use crate::error::Error;

/// Returns the name of an index of `table` that begins with `columns`, in that order. Prefers the
/// index with the fewest columns. Returns `None` if there is no such index or no catalog.
///
/// # Errors
/// An error of the engine.
pub fn index_on(
    session: &mut impl Session,
    dialect: &dyn Dialect,
    table: &Table,
    columns: &[&str],
) -> Result<Option<String>, Error> {
    let sql = dialect.list_indexes(table);
    if sql.is_empty() {
        return Ok(None);
    }
    Ok(smallest_match(session.query(&sql)?, columns))
}

/// Returns the index in a listing with the fewest columns that begins with `columns`. Each row of
/// the listing is a column of an index: the index's name, the column's position, and the column's
/// name.
fn smallest_match(listing: Rows, columns: &[&str]) -> Option<String> {
    let mut indexes: Vec<(String, Vec<(usize, String)>)> = Vec::new();

    for row in listing {
        let mut values = row.into_iter().flatten();
        // An expression has no column.
        let (Some(name), Some(position), Some(column)) =
            (values.next(), values.next(), values.next())
        else {
            continue;
        };

        let column = (position.parse().unwrap_or(0), column);
        match indexes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, columns)) => columns.push(column),
            None => indexes.push((name, vec![column])),
        }
    }

    let begins_with_columns = |index_columns: &[(usize, String)]| {
        (1usize..).zip(columns).all(|(position, column)| {
            index_columns.iter().any(|(index_position, name)| {
                *index_position == position && name.eq_ignore_ascii_case(column)
            })
        })
    };

    indexes
        .into_iter()
        .filter(|(_, index_columns)| begins_with_columns(index_columns))
        .min_by_key(|(_, index_columns)| index_columns.len())
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_found_by_its_columns() {
        let listing: Rows = [
            ("pk", "1", Some("id")),
            ("wide", "1", Some("K")),
            ("wide", "2", Some("c")),
            ("k_1", "1", Some("k")),
            ("other", "1", Some("c")),
            ("other", "2", Some("k")),
            ("computed", "1", None),
            ("computed", "2", Some("pad")),
        ]
        .into_iter()
        .map(|(name, position, column)| {
            vec![Some(name.to_owned()), Some(position.to_owned()), column.map(str::to_owned)]
        })
        .collect();
        let on = |columns: &[&str]| smallest_match(listing.clone(), columns);
        assert_eq!(on(&["id"]).as_deref(), Some("pk"));
        assert_eq!(on(&["k"]).as_deref(), Some("k_1"));
        assert_eq!(on(&["k", "c"]).as_deref(), Some("wide"));
        assert_eq!(on(&["k", "pad"]), None);
        assert_eq!(on(&["pad"]), None);
    }
}
