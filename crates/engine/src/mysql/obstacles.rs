//! What keeps a run from a server that assay did not start: its limits, its rights, its modes.

use super::MysqlSession;
use crate::net::server::too_few_connections;
use crate::{Error, Needs, Obstacle, Session};

/// The rights without which tables are not made, filled and dropped again.
const RIGHTS: [&str; 6] = ["SELECT", "INSERT", "DELETE", "CREATE", "DROP", "INDEX"];

/// The rights to write in spite of `read_only`.
const IN_SPITE: [&str; 3] = ["SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN"];

/// Looks for everything that would end a run in the midst of it.
pub(super) fn find(
    session: &mut MysqlSession,
    database: &str,
    needs: Needs,
) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::new();
    let mut add = |what: String, help: String| obstacles.push(Obstacle { what, help });
    let is_on = |value: Option<String>| value.is_some_and(|it| it != "OFF" && it != "0");

    if needs.makes_tables {
        let rows = session.query("show grants")?;
        let grants = Grants::parse(rows.into_iter().flatten().flatten());
        let writes_all_the_same = grants.has_anywhere(&IN_SPITE);
        for (name, binds) in [
            ("super_read_only", true),
            ("read_only", !writes_all_the_same),
        ] {
            if is_on(session.variable(name)?) && binds {
                add(
                    format!("it takes no writes: `{name}` is on"),
                    format!("`set global {name} = off`, or name the primary in the URL"),
                );
                break;
            }
        }
        let missing = grants.missing(database);
        if !missing.is_empty() {
            add(
                format!(
                    "its user lacks rights in database `{database}`: {}",
                    missing.join(", ")
                ),
                format!(
                    "`grant {} on {database}.* to ...`",
                    missing.join(", ").to_lowercase()
                ),
            );
        }
    }
    for name in ["max_statement_time", "max_execution_time"] {
        // Of this very user: the server's own may be another.
        let value = session.shown("session variables", name)?;
        let is_limit = |value: &String| value.parse().is_ok_and(|it: f64| it > 0.0);
        if let Some(value) = value.filter(is_limit) {
            add(
                format!("it ends long statements: `{name} = {value}`"),
                format!("`set global {name} = 0`; a MariaDB user may have a limit of its own"),
            );
        }
    }

    // This session goes before the run begins.
    let limits = [
        (
            "the server has room for",
            session.shown("global variables", "max_connections")?,
            session.shown("global status", "Threads_connected")?,
            "`set global max_connections = N`",
        ),
        (
            "its user has room for",
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
        let room = number(limit).map(|limit| limit - number(used).unwrap_or(1) + 1);
        obstacles.extend(too_few_connections(needs, whose, room, help));
    }
    Ok(obstacles)
}

fn first(session: &mut MysqlSession, sql: &str) -> Result<Option<String>, Error> {
    Ok(session.query_column(sql)?.into_iter().next())
}

/// What `show grants` says.
struct Grants {
    /// Rights, and what they are on.
    given: Vec<(String, String)>,
    /// A role gives more, which is not looked into.
    has_roles: bool,
}

impl Grants {
    fn parse(lines: impl Iterator<Item = String>) -> Self {
        let mut grants = Self {
            given: Vec::new(),
            has_roles: false,
        };
        for line in lines {
            let Some(rest) = line.strip_prefix("GRANT ") else {
                continue;
            };
            match rest.split_once(" ON ") {
                Some((rights, rest)) => {
                    let place = rest.split_once(" TO ").map_or(rest, |(place, _)| place);
                    grants
                        .given
                        .push((rights.to_uppercase(), place.replace(['`', '"'], "")));
                }
                None => grants.has_roles = true,
            }
        }
        grants
    }

    fn has(&self, right: &str, is_place: impl Fn(&str) -> bool) -> bool {
        self.given.iter().any(|(rights, place)| {
            let mut given = rights.split(',').map(str::trim);
            is_place(place) && given.any(|it| it == right || it.starts_with("ALL PRIVILEGES"))
        })
    }

    fn has_anywhere(&self, rights: &[&str]) -> bool {
        let is_all = |place: &str| place == "*.*";
        self.has_roles || rights.iter().any(|right| self.has(right, is_all))
    }

    /// Returns what is missing in a database; patterns are taken to mean it.
    fn missing(&self, database: &str) -> Vec<&'static str> {
        let is_place = |place: &str| {
            let name = place.strip_suffix(".*").unwrap_or_default();
            name == "*" || name.contains('%') || {
                let name = name.replace("\\_", "_");
                // A `_` that is not escaped stands for any character.
                name.chars().count() == database.chars().count()
                    && name
                        .chars()
                        .zip(database.chars())
                        .all(|(one, other)| one == '_' || one.eq_ignore_ascii_case(&other))
            }
        };
        let is_missing = |right: &&str| !self.has_roles && !self.has(right, is_place);
        RIGHTS
            .into_iter()
            .filter(|right| is_missing(right))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(lines: &[&str]) -> Grants {
        Grants::parse(lines.iter().map(|line| line.to_string()))
    }

    #[test]
    fn rights_are_found_where_they_are_given() {
        let all = grants(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]);
        assert!(all.missing("ib").is_empty() && all.has_anywhere(&["SUPER"]));
        let of_one = [
            "GRANT USAGE ON *.* TO `a`@`%`",
            "GRANT ALL PRIVILEGES ON `my\\_ib`.* TO `a`@`%`",
        ];
        assert!(grants(&of_one).missing("my_ib").is_empty());
        assert_eq!(grants(&of_one).missing("other"), RIGHTS);
        assert!(!grants(&of_one).has_anywhere(&["SUPER"]));
        let some = ["GRANT SELECT, INSERT, DELETE, DROP, INDEX ON `ib`.* TO `a`@`%`"];
        assert_eq!(grants(&some).missing("ib"), ["CREATE"]);
        // A right on a single table makes none.
        assert_eq!(
            grants(&["GRANT CREATE ON `ib`.`t` TO `a`@`%`"]).missing("ib"),
            RIGHTS
        );
        // What a role gives is not known.
        assert!(
            grants(&["GRANT USAGE ON *.* TO `a`@`%`", "GRANT `r`@`%` TO `a`@`%`"])
                .missing("ib")
                .is_empty()
        );
    }
}
