//! Which index of a table is on which columns, by the engine's own catalogue: those of tables that others made have names
//! of their own.

use crate::{Dialect, Error, Rows, Session, Table};

/// The name of an index of `table` that finds rows by `columns`, in that order; `None` where there is none, or no
/// catalogue. One on those columns alone goes before one on more.
///
/// # Errors
/// The engine's own.
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
    Ok(best(session.query(&sql)?, columns))
}

/// The index in a listing that is on `columns`. Each row is a column of an index: its name, the column's place, the column.
fn best(listing: Rows, columns: &[&str]) -> Option<String> {
    let mut indexes: Vec<(String, Vec<(usize, String)>)> = Vec::new();
    for row in listing {
        let mut values = row.into_iter().flatten();
        // An expression has no column.
        let (Some(name), Some(place), Some(column)) = (values.next(), values.next(), values.next())
        else {
            continue;
        };
        let column = (place.parse().unwrap_or(0), column);
        match indexes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, columns)) => columns.push(column),
            None => indexes.push((name, vec![column])),
        }
    }
    let begins_so = |of_index: &[(usize, String)]| {
        (1..).zip(columns).all(|(place, column)| {
            let is_there =
                |(at, name): &(usize, String)| *at == place && name.eq_ignore_ascii_case(column);
            of_index.iter().any(is_there)
        })
    };
    indexes
        .into_iter()
        .filter(|(_, of_index)| begins_so(of_index))
        .min_by_key(|(_, of_index)| of_index.len())
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_known_by_its_columns() {
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
        .map(|(name, place, column)| {
            vec![
                Some(name.to_owned()),
                Some(place.to_owned()),
                column.map(str::to_owned),
            ]
        })
        .collect();
        let on = |columns: &[&str]| best(listing.clone(), columns);
        assert_eq!(on(&["id"]).as_deref(), Some("pk"));
        assert_eq!(on(&["k"]).as_deref(), Some("k_1"));
        assert_eq!(on(&["k", "c"]).as_deref(), Some("wide"));
        assert_eq!(on(&["k", "pad"]), None);
        assert_eq!(on(&["pad"]), None);
    }
}
