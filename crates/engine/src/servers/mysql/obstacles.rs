//! Finds problems with a server that assay did not start: its limits, privileges and modes.

use super::MysqlSession;
use crate::contract::{Needs, Obstacle, Session};
use crate::error::Error;
use crate::servers::sql_server::too_few_connections;

/// The privileges needed to create, fill and drop tables.
const PRIVILEGES: [&str; 6] = ["SELECT", "INSERT", "DELETE", "CREATE", "DROP", "INDEX"];

/// The privileges that allow writes despite `read_only`.
const WRITE_ANYWAY: [&str; 3] = ["SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN"];

/// Finds all problems that would make a run fail.
pub(super) fn find(
    session: &mut MysqlSession,
    database: &str,
    needs: Needs,
) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::new();
    if needs.makes_tables {
        obstacles.extend(to_writes(session, database)?);
    }
    obstacles.extend(to_long_statements(session)?);
    obstacles.extend(to_connections(session, needs)?);
    Ok(obstacles)
}

/// The codes of errors for a lack of privileges.
const DENIED: [&str; 3] = ["1044", "1142", "1227"];

/// What metrics read, and the privilege that allows it: a query, what it has, and the privilege with
/// its object.
const READABLE: [(&str, &str, &str); 2] = [
    (
        "select 1 from information_schema.innodb_metrics limit 1",
        "counters and the status of InnoDB (`history_list_length`, redo, purge)",
        "process on *.*",
    ),
    (
        "select 1 from performance_schema.threads limit 1",
        "`performance_schema` (waits of sessions, bytes of the binary log)",
        "select on performance_schema.*",
    ),
];

/// Finds what the user may not read, with the statement that allows it.
pub(super) fn unreadable(session: &mut MysqlSession) -> Result<Vec<Obstacle>, Error> {
    let account = session.query_column("select current_user()")?.into_iter().next();
    let account = account.unwrap_or_default();
    let quoted = match account.rsplit_once('@') {
        Some((user, host)) => format!("'{user}'@'{host}'"),
        None => format!("'{account}'"),
    };

    let mut hidden = Vec::new();
    for (sql, what, privilege) in READABLE {
        let code = session.query(sql).err().and_then(|error| error.code);
        if code.is_some_and(|code| DENIED.contains(&code.as_str())) {
            hidden.push(Obstacle {
                what: format!("{account} may not read {what}, so their metrics are not applicable"),
                help: format!("run `grant {privilege} to {quoted}`"),
            });
        }
    }
    Ok(hidden)
}

/// Finds what keeps the user from creating and filling tables in `database`.
fn to_writes(session: &mut MysqlSession, database: &str) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::new();

    let rows = session.query("show grants")?;
    let grants = Grants::parse(rows.into_iter().flatten().flatten());

    let ignores_read_only = grants.has_globally(&WRITE_ANYWAY);
    for (name, applies) in [("super_read_only", true), ("read_only", !ignores_read_only)] {
        let is_on = session.variable(name)?.is_some_and(|value| value != "OFF" && value != "0");
        if is_on && applies {
            obstacles.push(Obstacle {
                what: format!("the server is read-only: `{name}` is on"),
                help: format!(
                    "run `set global {name} = off`, or write the primary's host in the URL"
                ),
            });
            break;
        }
    }

    let missing = grants.missing(database).join(", ");
    if !missing.is_empty() {
        obstacles.push(Obstacle {
            what: format!("the user lacks privileges in database `{database}`: {missing}"),
            help: format!("run `grant {} on {database}.* to ...`", missing.to_lowercase()),
        });
    }
    Ok(obstacles)
}

/// Finds limits of the time of a statement.
fn to_long_statements(session: &mut MysqlSession) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::new();
    for name in ["max_statement_time", "max_execution_time"] {
        // The user's value may differ from the global one.
        let value = session.shown("session variables", name)?.unwrap_or_default();
        if value.parse().is_ok_and(|limit: f64| limit > 0.0) {
            obstacles.push(Obstacle {
                what: format!("the server cancels long statements: `{name} = {value}`"),
                help: format!(
                    "run `set global {name} = 0`, or in MariaDB, remove the user's own limit"
                ),
            });
        }
    }
    Ok(obstacles)
}

/// Finds limits of connections that are too low for a run.
fn to_connections(session: &mut MysqlSession, needs: Needs) -> Result<Vec<Obstacle>, Error> {
    let limit = number(session.shown("global variables", "max_connections")?);
    let used = number(session.shown("global status", "Threads_connected")?);
    let of_server = too_few_connections(
        needs,
        "the server accepts only",
        free(limit, used),
        "run `set global max_connections = N`",
    );

    let limit = first(session, "select nullif(@@session.max_user_connections, 0)")?;
    let used = first(
        session,
        "select count(*) from information_schema.processlist where user = substring_index(user(), '@', 1)",
    )?;
    let of_user = too_few_connections(
        needs,
        "the user may open only",
        free(number(limit), number(used)),
        "raise the user's `max_user_connections`",
    );

    Ok(of_server.into_iter().chain(of_user).collect())
}

/// Returns the connections that are left. This session ends before the run begins, so it does not
/// count.
fn free(limit: Option<i64>, used: Option<i64>) -> Option<i64> {
    Some(limit? - used.unwrap_or(1) + 1)
}

fn number(value: Option<String>) -> Option<i64> {
    value?.parse().ok()
}

fn first(session: &mut MysqlSession, sql: &str) -> Result<Option<String>, Error> {
    Ok(session.query_column(sql)?.into_iter().next())
}

/// The result of `show grants`.
struct Grants {
    /// Lists of privileges, and the objects that they are on.
    grants: Vec<(String, String)>,
    /// Roles grant more privileges, which are not checked.
    has_roles: bool,
}

impl Grants {
    fn parse(lines: impl Iterator<Item = String>) -> Self {
        let mut grants = Self { grants: Vec::new(), has_roles: false };
        for line in lines {
            let Some(grant) = line.strip_prefix("GRANT ") else {
                continue;
            };

            match grant.split_once(" ON ") {
                Some((privileges, target)) => {
                    let object = target.split_once(" TO ").map_or(target, |(object, _)| object);
                    grants.grants.push((privileges.to_uppercase(), object.replace(['`', '"'], "")));
                }
                None => grants.has_roles = true,
            }
        }
        grants
    }

    fn has(&self, privilege: &str, is_object: impl Fn(&str) -> bool) -> bool {
        self.grants.iter().any(|(privileges, object)| {
            let mut granted = privileges.split(',').map(str::trim);
            is_object(object)
                && granted.any(|name| name == privilege || name.starts_with("ALL PRIVILEGES"))
        })
    }

    fn has_globally(&self, privileges: &[&str]) -> bool {
        let is_global = |object: &str| object == "*.*";
        self.has_roles || privileges.iter().any(|privilege| self.has(privilege, is_global))
    }

    /// Returns the missing privileges in a database. Assumes that patterns match it.
    fn missing(&self, database: &str) -> Vec<&'static str> {
        if self.has_roles {
            return Vec::new();
        }
        let is_missing = |privilege: &&str| !self.has(privilege, |object| covers(object, database));
        PRIVILEGES.into_iter().filter(is_missing).collect()
    }
}

/// Returns whether an object of grants, such as `my\_db.*`, covers all tables of a database.
fn covers(object: &str, database: &str) -> bool {
    let name = object.strip_suffix(".*").unwrap_or_default();
    if name == "*" || name.contains('%') {
        return true;
    }

    // An unescaped `_` matches any character.
    let pattern = name.replace("\\_", "_");
    pattern.chars().count() == database.chars().count()
        && pattern
            .chars()
            .zip(database.chars())
            .all(|(one, other)| one == '_' || one.eq_ignore_ascii_case(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(lines: &[&str]) -> Grants {
        Grants::parse(lines.iter().map(|line| line.to_string()))
    }

    #[test]
    fn privileges_are_found_in_grants() {
        let all = grants(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]);
        assert!(all.missing("ib").is_empty() && all.has_globally(&["SUPER"]));
        let of_one =
            ["GRANT USAGE ON *.* TO `a`@`%`", "GRANT ALL PRIVILEGES ON `my\\_ib`.* TO `a`@`%`"];
        assert!(grants(&of_one).missing("my_ib").is_empty());
        assert_eq!(grants(&of_one).missing("other"), PRIVILEGES);
        assert!(!grants(&of_one).has_globally(&["SUPER"]));
        let some = ["GRANT SELECT, INSERT, DELETE, DROP, INDEX ON `ib`.* TO `a`@`%`"];
        assert_eq!(grants(&some).missing("ib"), ["CREATE"]);
        // A privilege on a table does not allow new tables.
        assert_eq!(grants(&["GRANT CREATE ON `ib`.`t` TO `a`@`%`"]).missing("ib"), PRIVILEGES);
        // The privileges of a role are unknown.
        assert!(
            grants(&["GRANT USAGE ON *.* TO `a`@`%`", "GRANT `r`@`%` TO `a`@`%`"])
                .missing("ib")
                .is_empty()
        );
    }
}
