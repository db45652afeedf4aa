//! Finds problems with a server that assay did not start: its limits, privileges and modes.

use super::MysqlSession;
use crate::net::server::too_few_connections;
use crate::{Error, Needs, Obstacle, Session};

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
    let mut add = |what: String, help: String| obstacles.push(Obstacle { what, help });
    let is_on = |value: Option<String>| value.is_some_and(|value| value != "OFF" && value != "0");

    if needs.makes_tables {
        let rows = session.query("show grants")?;
        let grants = Grants::parse(rows.into_iter().flatten().flatten());
        let ignores_read_only = grants.has_globally(&WRITE_ANYWAY);
        for (name, applies) in [("super_read_only", true), ("read_only", !ignores_read_only)] {
            if is_on(session.variable(name)?) && applies {
                add(
                    format!("the server is read-only: `{name}` is on"),
                    format!(
                        "run `set global {name} = off`, or write the primary's host in the URL"
                    ),
                );
                break;
            }
        }
        let missing = grants.missing(database);
        if !missing.is_empty() {
            add(
                format!(
                    "the user lacks privileges in database `{database}`: {}",
                    missing.join(", ")
                ),
                format!("run `grant {} on {database}.* to ...`", missing.join(", ").to_lowercase()),
            );
        }
    }
    for name in ["max_statement_time", "max_execution_time"] {
        // The user's value may differ from the global one.
        let value = session.shown("session variables", name)?;
        let is_limit = |value: &String| value.parse().is_ok_and(|limit: f64| limit > 0.0);
        if let Some(value) = value.filter(is_limit) {
            add(
                format!("the server cancels long statements: `{name} = {value}`"),
                format!("run `set global {name} = 0`, or in MariaDB, remove the user's own limit"),
            );
        }
    }

    // This session ends before the run begins, so it does not count.
    let limits = [
        (
            "the server accepts only",
            session.shown("global variables", "max_connections")?,
            session.shown("global status", "Threads_connected")?,
            "run `set global max_connections = N`",
        ),
        (
            "the user may open only",
            first(session, "select nullif(@@session.max_user_connections, 0)")?,
            first(
                session,
                "select count(*) from information_schema.processlist where user = substring_index(user(), '@', 1)",
            )?,
            "raise the user's `max_user_connections`",
        ),
    ];
    for (whose, limit, used, help) in limits {
        let number = |value: Option<String>| value?.parse::<i64>().ok();
        let free = number(limit).map(|limit| limit - number(used).unwrap_or(1) + 1);
        obstacles.extend(too_few_connections(needs, whose, free, help));
    }
    Ok(obstacles)
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
        let is_object = |object: &str| {
            let name = object.strip_suffix(".*").unwrap_or_default();
            name == "*" || name.contains('%') || {
                let name = name.replace("\\_", "_");
                // An unescaped `_` matches any character.
                name.chars().count() == database.chars().count()
                    && name
                        .chars()
                        .zip(database.chars())
                        .all(|(one, other)| one == '_' || one.eq_ignore_ascii_case(&other))
            }
        };
        let is_missing = |privilege: &&str| !self.has_roles && !self.has(privilege, is_object);
        PRIVILEGES.into_iter().filter(|privilege| is_missing(privilege)).collect()
    }
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
