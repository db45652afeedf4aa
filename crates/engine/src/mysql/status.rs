//! Reads the texts with which the storage engines describe their state.

use super::observer::if_present;
use super::session::MysqlSession;
use crate::figures::status_section;
use crate::{Error, Session};

/// The beginnings of lines of InnoDB's status after the text of a statement, which may have several lines.
const AFTER_STATEMENT: [&str; 6] = [
    "---",
    "***",
    "TABLE LOCK",
    "RECORD LOCKS",
    "Trx read view",
    "Trx #rec lock waits",
];

/// Reads the text of `show engine innodb status`; empty if the user lacks the privilege.
pub(super) fn innodb_status(session: &mut MysqlSession) -> Result<String, Error> {
    let rows = if_present(session, "show engine innodb status")?;
    Ok(texts(rows).map(|(_, text)| text).collect())
}

/// Reads the status of InnoDB, and of MyRocks where it stores the tables.
pub(super) fn engine_status(session: &mut MysqlSession, is_rocksdb: bool) -> Result<String, Error> {
    let mut all = String::new();
    for (name, text) in texts(session.query("show engine innodb status")?) {
        all += &status_section(&name, &without_statements(&text));
    }
    if is_rocksdb {
        for (name, text) in texts(session.query("show engine rocksdb status")?) {
            all += &status_section(&name, &text);
        }
    }
    Ok(all)
}

/// Returns the name and the text of each row, which has a type, a name and the text.
fn texts(rows: Vec<Vec<Option<String>>>) -> impl Iterator<Item = (String, String)> {
    rows.into_iter().filter_map(|row| {
        let [kind, name, text] = <[Option<String>; 3]>::try_from(row).ok()?;
        let name = [kind?, name.unwrap_or_default()].join(" ");
        Some((name.trim().to_owned(), text?))
    })
}

/// Returns InnoDB's status without the texts of statements and the values of rows. They may be those of other users, with
/// passwords or personal data.
fn without_statements(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_statement = false;
    for line in text.lines() {
        is_statement &= !AFTER_STATEMENT.iter().any(|it| line.starts_with(it));
        if is_statement || is_value(line) {
            continue;
        }
        kept += line;
        kept.push('\n');
        is_statement = ["MySQL thread id ", "MariaDB thread id "]
            .iter()
            .any(|it| line.starts_with(it));
    }
    kept
}

/// Returns true for a line with a field of a record: ` 0: len 4; hex 80000001; asc     ;;`.
fn is_value(line: &str) -> bool {
    let (number, rest) = line.trim_start().split_once(": ").unwrap_or_default();
    number.parse::<u32>().is_ok() && (rest.starts_with("len ") || rest.starts_with("SQL NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_values_are_left_out() {
        let text = "\
LATEST DETECTED DEADLOCK
------------------------
*** (1) TRANSACTION:
TRANSACTION 1806, ACTIVE 3 sec starting index read
MySQL thread id 9, OS thread handle 140, query id 52 localhost root updating
update t set secret = 'SECRET'
where id = 2
*** (1) HOLDS THE LOCK(S):
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `test`.`t`
Record lock, heap no 2 PHYSICAL RECORD: n_fields 4; compact format; info bits 0
 0: len 6; hex 534543524554; asc SECRET;;
 1: SQL NULL;
---TRANSACTION 1807, ACTIVE 9 sec
MariaDB thread id 10, OS thread handle 141, query id 53 localhost root
create user u identified by 'SECRET'
--------
FILE I/O
Pending normal aio reads: 0
";
        let kept = without_statements(text);
        assert!(!kept.contains("SECRET"), "{kept}");
        for line in [
            "MySQL thread id 9, OS thread handle 140, query id 52 localhost root updating",
            "*** (1) HOLDS THE LOCK(S):",
            "---TRANSACTION 1807, ACTIVE 9 sec",
            "--------\nFILE I/O\nPending normal aio reads: 0",
        ] {
            assert!(kept.contains(line), "{kept}");
        }
    }
}
