//! Finds problems with a server that assay did not start: its limits, privileges and modes.

use super::PostgresSession;
use crate::contract::{Needs, Obstacle, Session};
use crate::error::Error;
use crate::servers::sql_server::too_few_connections;
use crate::servers::unreadable::{Unreadable, hidden_directory};

/// A limit of connections: a query for the number that the server has left, and the remedy, in
/// which `ROLE` stands for the role's name. The session that asks ends before the run begins, so
/// the queries don't count it.
struct ConnectionLimit {
    whose: &'static str,
    room_sql: &'static str,
    help: &'static str,
}

const CONNECTION_LIMITS: [ConnectionLimit; 3] = [
    ConnectionLimit {
        whose: "the server accepts only",
        room_sql: "select current_setting('max_connections')::int - case when rolsuper then 0 else \
             current_setting('superuser_reserved_connections')::int + \
             coalesce(current_setting('reserved_connections', true), '0')::int end - \
             (select sum(numbackends) from pg_stat_database) + 1 from pg_roles where rolname = current_user",
        help: "raise `max_connections`",
    },
    ConnectionLimit {
        whose: "the role may open only",
        room_sql: "select rolconnlimit - (select count(*) from pg_stat_activity where usename = current_user) + 1 \
             from pg_roles where rolname = current_user and rolconnlimit >= 0 and not rolsuper",
        help: "run `alter role ROLE connection limit -1`",
    },
    ConnectionLimit {
        whose: "the database accepts only",
        room_sql: "select datconnlimit - (select numbackends from pg_stat_database s where s.datid = d.oid) + 1 \
             from pg_database d, pg_roles where datname = current_database() and datconnlimit >= 0 \
             and rolname = current_user and not rolsuper",
        help: "run `alter database DATABASE connection limit -1`",
    },
];

/// Finds all problems that would make a run fail.
pub(super) fn find(session: &mut PostgresSession, needs: Needs) -> Result<Vec<Obstacle>, Error> {
    let role = value(session, "select quote_ident(current_user)")?.unwrap_or_default();
    let mut obstacles = Vec::new();

    if needs.makes_tables {
        obstacles.extend(read_only(session, &role)?);
        obstacles.extend(no_schema(session, &role)?);
    }

    // Creating an index may take longer, and the server would set a timer for every statement.
    let timeout = value(session, "show statement_timeout")?.unwrap_or_default();
    if timeout != "0" {
        obstacles.push(Obstacle {
            what: format!(
                "the server cancels statements after {timeout}: `statement_timeout` is set"
            ),
            help: format!("run `alter role {role} set statement_timeout = 0`"),
        });
    }

    for limit in CONNECTION_LIMITS {
        let room = value(session, limit.room_sql)?.and_then(|text| text.parse().ok());
        let help = limit.help.replace("ROLE", &role);
        obstacles.extend(too_few_connections(needs, limit.whose, room, &help));
    }
    Ok(obstacles)
}

/// Finds what the role may not read of the server.
pub(super) fn unreadable(session: &mut PostgresSession) -> Result<Unreadable, Error> {
    let role = value(session, "select quote_ident(current_user)")?.unwrap_or_default();
    let sql = "select setting from pg_settings where name = 'data_directory'";
    let directory = value(session, sql)?.filter(|directory| !directory.is_empty());

    let mut hidden = Vec::new();
    if directory.is_none() {
        let grant = format!("grant pg_monitor to {role}");
        hidden.push(hidden_directory(&role, "data_directory", &grant));
    }
    Ok(Unreadable { hidden, directory })
}

fn read_only(session: &mut PostgresSession, role: &str) -> Result<Option<Obstacle>, Error> {
    if is_true(session, "select pg_is_in_recovery()")? {
        return Ok(Some(Obstacle {
            what: "the server is a read-only standby".into(),
            help: "write the primary's host in the URL".into(),
        }));
    }

    if value(session, "show default_transaction_read_only")?.as_deref() == Some("on") {
        return Ok(Some(Obstacle {
            what: "transactions are read-only by default: `default_transaction_read_only` is on"
                .into(),
            help: format!("run `alter role {role} set default_transaction_read_only = off`"),
        }));
    }
    Ok(None)
}

fn no_schema(session: &mut PostgresSession, role: &str) -> Result<Option<Obstacle>, Error> {
    let Some(schema) = value(session, "select quote_ident(current_schema())")? else {
        let search_path = value(session, "show search_path")?.unwrap_or_default();
        return Ok(Some(Obstacle {
            what: format!(
                "no schema for tables: `search_path` is `{search_path}`, and the role cannot use any schema in it"
            ),
            help: format!("run `alter role {role} set search_path = SCHEMA`, or create the schema"),
        }));
    };

    if is_true(session, "select has_schema_privilege(current_schema(), 'create')")? {
        return Ok(None);
    }

    Ok(Some(Obstacle {
        what: format!("role `{role}` lacks the privilege to create tables in schema `{schema}`"),
        help: format!("run `grant create on schema {schema} to {role}`"),
    }))
}

/// Returns the first column of a query's first row; `None` if it is null or missing.
fn value(session: &mut PostgresSession, sql: &str) -> Result<Option<String>, Error> {
    Ok(session.query_column(sql)?.into_iter().next())
}

fn is_true(session: &mut PostgresSession, sql: &str) -> Result<bool, Error> {
    Ok(value(session, sql)?.as_deref() == Some("t"))
}
