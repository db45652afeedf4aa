//! Writes texts as literals of SQL that mean the same whatever the options of the server.

use std::fmt::Write as _;

use words::Engine;

/// Returns a text as a literal; see [`write_literal`].
pub(super) fn literal(engine: Engine, text: &str) -> String {
    let mut sql = String::new();
    write_literal(Some(engine), text, &mut sql);
    sql
}

/// Appends a text as a literal of an engine; `None` is an engine that stores nothing.
///
/// The meaning of a backslash between quotes depends on `sql_mode` in MySQL, and on
/// `standard_conforming_strings` in PostgreSQL, where a `$` could also end the block that the literal
/// is in. So a text with any of them has another form.
pub(super) fn write_literal(engine: Option<Engine>, text: &str, sql: &mut String) {
    match engine {
        Some(Engine::Postgres) if text.contains(['\\', '$']) => write_escaped(text, sql),
        Some(Engine::Mysql) if text.contains('\\') => write_hexadecimal(text, sql),
        _ => write_quoted(text, sql),
    }
}

fn write_quoted(text: &str, sql: &mut String) {
    sql.push('\'');
    for letter in text.chars() {
        if letter == '\'' {
            sql.push(letter);
        }
        sql.push(letter);
    }
    sql.push('\'');
}

fn write_escaped(text: &str, sql: &mut String) {
    sql.push_str("e'");
    for letter in text.chars() {
        match letter {
            '\'' => sql.push_str("''"),
            '\\' => sql.push_str("\\\\"),
            '$' => sql.push_str("\\x24"),
            _ => sql.push(letter),
        }
    }
    sql.push('\'');
}

fn write_hexadecimal(text: &str, sql: &mut String) {
    sql.push_str("_utf8mb4 x'");
    for byte in text.bytes() {
        // Writing to a string never fails.
        let _ = write!(sql, "{byte:02x}");
    }
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_doubled_on_all_engines() {
        for engine in [Engine::Postgres, Engine::Mysql, Engine::Sqlite] {
            assert_eq!(literal(engine, "it's"), "'it''s'");
        }
    }

    #[test]
    fn a_backslash_has_a_form_that_no_option_changes() {
        assert_eq!(literal(Engine::Postgres, r"it's \"), r"e'it''s \\'");
        assert_eq!(literal(Engine::Mysql, r"a\"), "_utf8mb4 x'615c'");
        assert_eq!(literal(Engine::Sqlite, r"a\"), r"'a\'");
    }

    #[test]
    fn a_dollar_can_not_end_a_block_of_postgres() {
        assert_eq!(literal(Engine::Postgres, "a$assay$"), r"e'a\x24assay\x24'");
        assert_eq!(literal(Engine::Mysql, "a$"), "'a$'");
    }
}
