//! Finds problems with a server that assay did not start: its limits, privileges and modes.

use super::PostgresSession;
use crate::net::server::too_few_connections;
use crate::{Error, Needs, Obstacle, Session};

/// Finds all problems that would make a run fail.
pub(super) fn find(session: &mut PostgresSession, needs: Needs) -> Result<Vec<Obstacle>, Error> {
    let mut obstacles = Vec::new();
    let mut add = |what: String, help: String| obstacles.push(Obstacle { what, help });
    let mut value = |sql: &str| -> Result<Option<String>, Error> {
        Ok(session.query_column(sql)?.into_iter().next())
    };
    let is_true = |value: Option<String>| value.as_deref() == Some("t");
    let role = value("select quote_ident(current_user)")?.unwrap_or_default();

    if needs.makes_tables {
        if is_true(value("select pg_is_in_recovery()")?) {
            add(
                "the server is a read-only standby".into(),
                "write the primary's host in the URL".into(),
            );
        } else if value("show default_transaction_read_only")?.as_deref() == Some("on") {
            add(
                "transactions are read-only by default: `default_transaction_read_only` is on"
                    .into(),
                format!("run `alter role {role} set default_transaction_read_only = off`"),
            );
        }
        match value("select quote_ident(current_schema())")? {
            None => add(
                format!(
                    "no schema for tables: `search_path` is `{}`, and the role can use none of its schemas",
                    value("show search_path")?.unwrap_or_default()
                ),
                format!("run `alter role {role} set search_path = SCHEMA`, or create the schema"),
            ),
            Some(schema) => {
                if !is_true(value("select has_schema_privilege(current_schema(), 'create')")?) {
                    add(
                        format!(
                            "role `{role}` lacks the privilege to create tables in schema `{schema}`"
                        ),
                        format!("run `grant create on schema {schema} to {role}`"),
                    );
                }
            }
        }
    }
    // Creating an index may take longer, and the server would set a timer for every statement.
    let timeout = value("show statement_timeout")?.unwrap_or_default();
    if timeout != "0" {
        add(
            format!("the server cancels statements after {timeout}: `statement_timeout` is set"),
            format!("run `alter role {role} set statement_timeout = 0`"),
        );
    }

    // This session ends before the run begins, so it does not count.
    const LIMITS: [(&str, &str, &str); 3] = [
        (
            "the server accepts only",
            "select current_setting('max_connections')::int - case when rolsuper then 0 else \
             current_setting('superuser_reserved_connections')::int + \
             coalesce(current_setting('reserved_connections', true), '0')::int end - \
             (select sum(numbackends) from pg_stat_database) + 1 from pg_roles where rolname = current_user",
            "raise `max_connections`",
        ),
        (
            "the role may open only",
            "select rolconnlimit - (select count(*) from pg_stat_activity where usename = current_user) + 1 \
             from pg_roles where rolname = current_user and rolconnlimit >= 0 and not rolsuper",
            "run `alter role ROLE connection limit -1`",
        ),
        (
            "the database accepts only",
            "select datconnlimit - (select numbackends from pg_stat_database s where s.datid = d.oid) + 1 \
             from pg_database d, pg_roles where datname = current_database() and datconnlimit >= 0 \
             and rolname = current_user and not rolsuper",
            "run `alter database DATABASE connection limit -1`",
        ),
    ];
    for (whose, sql, help) in LIMITS {
        let room = value(sql)?.and_then(|text| text.parse().ok());
        let help = help.replace("ROLE", &role);
        obstacles.extend(too_few_connections(needs, whose, room, &help));
    }
    Ok(obstacles)
}
