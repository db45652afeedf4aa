//! Reads the texts with which the storage engines describe their state.

use super::StorageEngine;
use super::observer::if_present;
use super::session::MysqlSession;
use crate::contract::Session;
use crate::error::Error;
use crate::support::figures::status_section;

/// The titles of the sections of InnoDB's status with statements and rows, which follow each other.
const PRIVATE: [&str; 3] = ["LATEST FOREIGN KEY ERROR", "LATEST DETECTED DEADLOCK", "TRANSACTIONS"];

/// The beginning of the section after those. No later section has statements, so that its last
/// occurrence is the true one.
const AFTER_PRIVATE: &str = "\n--------\nFILE I/O\n--------\n";

/// The beginnings of InnoDB's own lines in these sections. `#` stands for a digit.
const OWN_LINES: &[&str] = &[
    "Trx id counter ",
    "Purge done for trx's n:o < ",
    "History list length ",
    "Total number of lock structs in row lock hash table ",
    "LIST OF TRANSACTIONS FOR EACH SESSION:",
    "... truncated...",
    "TRANSACTION #",
    "---TRANSACTION #",
    "---TRANSACTION (0x",
    "------- TRX HAS BEEN WAITING #",
    "mysql tables in use #",
    "LOCK WAIT #",
    "ROLLING BACK #",
    "MySQL thread id #",
    "MariaDB thread id #",
    "Trx read view will not see trx with id ",
    "Trx #rec lock waits ",
    "RECORD LOCKS space id #",
    "TABLE LOCK table `",
    "Record lock, heap no #",
    "*** (#",
    "*** CONFLICTING WITH:",
    "*** WE ROLL BACK TRANSACTION (#",
    "####-##-## ##:##:## 0x",
    "####-##-## ##:##:## #",
];

/// Reads the text of `show engine innodb status`; empty if the user lacks the privilege.
pub(super) fn innodb_status(session: &mut MysqlSession) -> Result<String, Error> {
    let rows = if_present(session, "show engine innodb status")?;
    Ok(texts(rows).map(|(_, text)| text).collect())
}

/// Reads the status of InnoDB, and of MyRocks where it stores the tables.
pub(super) fn engine_status(
    session: &mut MysqlSession,
    storage_engine: &StorageEngine,
) -> Result<String, Error> {
    let mut all = String::new();
    for (name, text) in texts(session.query("show engine innodb status")?) {
        all += &status_section(&name, &without_statements(&text));
    }

    if *storage_engine == StorageEngine::RocksDb {
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

/// Returns InnoDB's status without the texts of statements and the values of rows. They may be
/// those of other users, with passwords or personal data.
fn without_statements(text: &str) -> String {
    let end = text.rfind(AFTER_PRIVATE).unwrap_or(text.len());
    let (before, after) = text.split_at(end);

    let mut kept = String::with_capacity(text.len());
    let mut is_private = false;
    for line in before.lines() {
        is_private |= PRIVATE.contains(&line);
        if !is_private || is_own(line) {
            kept += line;
            kept.push('\n');
        }
    }
    kept + after.trim_start_matches('\n')
}

/// Returns true for a line that InnoDB wrote itself in a private section.
fn is_own(line: &str) -> bool {
    let (count, rest) = line.split_once(' ').unwrap_or_default();
    PRIVATE.contains(&line)
        || line.bytes().all(|byte| byte == b'-')
        || OWN_LINES.iter().any(|form| begins_with(line, form))
        || count.parse::<u64>().is_ok() && rest.starts_with("lock struct(s), heap size ")
}

/// Returns whether a line begins with `form`, in which `#` stands for a digit.
fn begins_with(line: &str, form: &str) -> bool {
    let mut bytes = line.bytes();
    form.bytes().all(|of_form| match bytes.next() {
        Some(byte) => byte == of_form || of_form == b'#' && byte.is_ascii_digit(),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_values_are_left_out() {
        let text = "\
BACKGROUND THREAD
srv_master_thread loops: 1 srv_active
------------------------
LATEST DETECTED DEADLOCK
------------------------
*** (1) TRANSACTION:
TRANSACTION 1806, ACTIVE 3 sec starting index read
LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)
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
create user u
-----------
identified by 'SECRET'
--- SECRET
*** SECRET
TABLE LOCK SECRET
---TRANSACTION 1 of a comment
-- SECRET
--------
FILE I/O
--------
or 'SECRET'
0 lock struct(s), heap size 1128, 0 row lock(s)
Foreign key constraint of SECRET
--------
FILE I/O
--------
Pending normal aio reads: 0
";
        let kept = without_statements(text);
        assert!(!kept.contains("SECRET"), "{kept}");
        for line in [
            "srv_master_thread loops: 1 srv_active",
            "LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)",
            "MySQL thread id 9, OS thread handle 140, query id 52 localhost root updating",
            "*** (1) HOLDS THE LOCK(S):",
            "---TRANSACTION 1807, ACTIVE 9 sec",
            "0 lock struct(s), heap size 1128, 0 row lock(s)",
            "--------\nFILE I/O\n--------\nPending normal aio reads: 0",
        ] {
            assert!(kept.contains(line), "{kept}");
        }
    }
}
