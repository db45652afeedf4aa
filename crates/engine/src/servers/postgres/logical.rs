//! Logical replication: a replica has a subscription to all tables of its primary.
//!
//! It gets rows, but no definitions. So assay creates tables on the replica as soon as they exist
//! on the primary, before they have rows, and indexes after the step that created them.

use super::server::{DROP_TIMEOUT, PostgresKind};
use super::{Postgres, PostgresDialect, PostgresSession, obstacles};
use crate::contract::{Dialect, Needs, Obstacle, Session, SqlEngine, Table};
use crate::error::{Error, SetupError};
use crate::local::server::ServerPlace;
use crate::local::start_options::StartOptions;
use crate::servers::config::{ConfigText, OptionValue};
use crate::servers::sql_kind::SqlKind;
use crate::servers::sql_server::connect_alone;

/// The publication of all tables.
const PUBLICATION: &str = "assay";
/// The code of the error for a publication that already exists.
const EXISTS: &str = "42710";
/// The option without which a server cannot have logical replicas.
const WAL_LEVEL: &str = "wal_level";
/// The subscriptions of the session's database.
const SUBSCRIPTIONS: &str = "pg_subscription where subdbid = (select oid from pg_database where datname = current_database())";

/// Returns the lines of options with which a server can have logical replicas.
///
/// # Errors
/// [`SetupError::Config`] if the config has other values.
pub(super) fn primary_options(plan_options: &[OptionValue]) -> Result<String, SetupError> {
    // The last one takes effect.
    let option = plan_options.iter().rev().find(|(name, _)| name == WAL_LEVEL);
    match option.map(|(_, value)| value.as_deref().unwrap_or_default()) {
        Some(value) if !value.eq_ignore_ascii_case("logical") => Err(SetupError::option(
            WAL_LEVEL,
            format!(
                "logical replication needs `{WAL_LEVEL} = logical`, but the config sets `{value}`"
            ),
            format!("remove `{WAL_LEVEL}` from the config, or `replication = \"logical\"`"),
        )),
        _ => Ok(format!("# Logical replication.\n{WAL_LEVEL} = logical\n")),
    }
}

/// Starts the replica `name` with the same empty database as `primary`, to which it connects with
/// `conninfo`.
pub(super) fn start_replica(
    primary: &Postgres,
    name: &str,
    conninfo: &str,
    options: &StartOptions<'_>,
) -> Result<Postgres, SetupError> {
    let options = &StartOptions { replicas: None, ..*options };
    let create = |build: &super::Installation, place: &ServerPlace, config: &mut ConfigText| {
        // It would wait for replicas of its own.
        config.text += "synchronous_standby_names = ''\n";
        PostgresKind::create_data(options, build, place, config)
    };
    let replica = Postgres::launch_with_database(options, create)?;

    subscribe(primary, &replica, name, conninfo).map_err(|source| SetupError::Server {
        server: name.to_owned(),
        help: None,
        source,
    })?;
    Ok(replica)
}

/// Makes a replica follow its primary.
fn subscribe(
    primary: &Postgres,
    replica: &Postgres,
    name: &str,
    conninfo: &str,
) -> Result<(), Error> {
    let mut session = connect_alone::<PostgresKind>(primary.address())?;
    match session.query(&format!("create publication {PUBLICATION} for all tables")) {
        Err(error) if error.code.as_deref() != Some(EXISTS) => return Err(error),
        // Another replica has it already.
        _ => {}
    }

    // Only a primary that waits for replicas needs to know soon what they have flushed.
    let waits_for_replicas = !session.setting("synchronous_standby_names")?.is_empty();
    let synchronous_commit = if waits_for_replicas { "on" } else { "off" };
    let sql = format!(
        "create subscription {name} connection '{}' publication {PUBLICATION} with (synchronous_commit = {synchronous_commit})",
        conninfo.replace('\'', "''")
    );
    replica.connect()?.query(&sql).map(drop)
}

/// Creates new tables of the primary, which are empty, on a replica. Returns false for a physical
/// replica, which receives DDL.
pub(super) fn create_tables(
    dialect: &PostgresDialect,
    primary: &mut PostgresSession,
    replica: &mut PostgresSession,
    tables: &[Table],
) -> Result<bool, Error> {
    if is_physical(replica)? {
        return Ok(false);
    }

    // All or none of them.
    let statements = tables.iter().flat_map(|table| dialect.create_table(table));
    for sql in ["begin".to_owned()].into_iter().chain(statements) {
        if let Err(error) = replica.query(&sql) {
            replica.query("rollback")?;
            return Err(error);
        }
    }
    replica.query("commit")?;

    if let Err(error) = subscribe_to_new(primary, replica, tables) {
        drop_tables(replica, tables)?;
        return Err(error);
    }
    Ok(true)
}

/// Drops tables on a replica that gets no definitions.
pub(super) fn drop_tables(replica: &mut PostgresSession, tables: &[Table]) -> Result<(), Error> {
    if is_physical(replica)? {
        return Ok(());
    }
    replica.query(DROP_TIMEOUT)?;
    for sql in tables.iter().flat_map(|table| PostgresDialect::default().drop_table(table)) {
        replica.query(&sql)?;
    }
    Ok(())
}

/// Makes changes of new and empty tables reach a replica that has these tables.
fn subscribe_to_new(
    primary: &mut PostgresSession,
    replica: &mut PostgresSession,
    tables: &[Table],
) -> Result<(), Error> {
    for table in tables.iter().filter(|table| !table.is_key_primary()) {
        // The primary refuses to change rows that replicas cannot find.
        primary.query(&format!("alter table {} replica identity full", table.name))?;
    }

    let names = format!("select quote_ident(subname) from {SUBSCRIPTIONS}");
    for subscription in replica.query_column(&names)? {
        replica.query(&format!(
            "alter subscription {subscription} refresh publication with (copy_data = false)"
        ))?;
    }

    Ok(())
}

/// Creates the indexes of the primary's tables on a replica that has these tables, but not all of
/// the indexes.
pub(super) fn create_indexes(
    primary: &mut PostgresSession,
    replica: &mut PostgresSession,
    tables: &[Table],
) -> Result<(), Error> {
    replica.query("set statement_timeout = 0")?;

    for table in tables {
        let definitions = format!(
            "select pg_get_indexdef(indexrelid) from pg_index where indrelid = to_regclass('{}') and indisvalid",
            table.name
        );

        for definition in primary.query_column(&definitions)? {
            // `only` would leave out the partitions.
            let if_missing = definition.replacen(" INDEX ", " INDEX IF NOT EXISTS ", 1);
            replica.query(&if_missing.replacen(" ON ONLY ", " ON ", 1))?;
        }
    }
    Ok(())
}

/// Returns true for a replica of the primary's log.
pub(super) fn is_physical(replica: &mut PostgresSession) -> Result<bool, Error> {
    Ok(value(replica, "select pg_is_in_recovery()")?.as_deref() == Some("t"))
}

/// Returns the slot on the primary from which a replica gets its changes, if it has one and this
/// role may know it.
pub(super) fn slot(replica: &mut PostgresSession) -> Result<Option<String>, Error> {
    if is_physical(replica)? {
        value(replica, "select slot_name from pg_stat_wal_receiver")
    } else {
        value(replica, &format!("select subslotname from {SUBSCRIPTIONS}"))
    }
}

fn value(session: &mut PostgresSession, sql: &str) -> Result<Option<String>, Error> {
    Ok(session.query_column(sql)?.into_iter().next())
}

/// Returns the reason why a replica does not follow its primary now; `None` if it follows.
pub(super) fn replication_error(replica: &mut PostgresSession) -> Result<Option<String>, Error> {
    let (sql, reason) = if is_physical(replica)? {
        (
        "select count(*) from pg_stat_wal_receiver where coalesce(status, 'streaming') = 'streaming'".to_owned(),
        "it does not receive the log of its primary",
    )
    } else {
        (
            format!(
                "select count(*) from pg_stat_subscription where pid is not null and relid is null \
             and subid in (select oid from {SUBSCRIPTIONS} and subenabled)"
            ),
            "its subscription does not apply changes",
        )
    };
    let follows = replica.query_i64(&sql)? > Some(0);
    Ok(if follows { None } else { Some(reason.to_owned()) })
}

/// The remedy for a replica of another server.
const NOT_ITS_REPLICA_HELP: &str = "give the URL of a replica of the server of `url`";

/// Finds problems with a replica that assay did not start.
pub(super) fn obstacles(
    primary: &mut PostgresSession,
    replica: &mut PostgresSession,
    needs: Needs,
) -> Result<Vec<Obstacle>, Error> {
    let is_physical = is_physical(replica)?;

    let needs = Needs { makes_tables: !is_physical, ..needs };

    let mut found = obstacles::find(replica, needs)?;

    if is_physical {
        found.extend(of_standby(primary, replica)?);
    } else {
        let subscriptions = subscriptions(replica)?;
        if subscriptions.is_empty() {
            found.push(Obstacle {
                what: "it follows no primary: it is not a standby, and its database has no subscription"
                    .into(),
                help: NOT_ITS_REPLICA_HELP.into(),
            });
            return Ok(found);
        }
        for subscription in &subscriptions {
            found.extend(of_subscription(primary, subscription)?);
        }
    }

    found.extend(replication_error(replica)?.map(|reason| Obstacle {
        what: reason,
        help: "read its server's log, and restart replication".into(),
    }));
    Ok(found)
}

/// Finds problems with a replica of a primary's log.
fn of_standby(
    primary: &mut PostgresSession,
    replica: &mut PostgresSession,
) -> Result<Vec<Obstacle>, Error> {
    let mut found = Vec::new();

    // A role may lack the privilege.
    let id = "select system_identifier from pg_control_system()";
    let ids = [&mut *primary, &mut *replica].map(|session| value(session, id).ok().flatten());
    if let [Some(one), Some(two)] = ids
        && one != two
    {
        found.push(Obstacle {
            what: "it follows another primary".into(),
            help: NOT_ITS_REPLICA_HELP.into(),
        });
    }

    let name = "select current_database()";
    let [of_primary, of_replica] =
        [value(primary, name)?, value(replica, name)?].map(Option::unwrap_or_default);
    if of_primary != of_replica {
        found.push(Obstacle {
            what: format!(
                "its URL names database `{of_replica}`, but the primary's is `{of_primary}`"
            ),
            help: "name the same database in `replica-url` as in `url`".into(),
        });
    }
    Ok(found)
}

/// A subscription of a replica.
struct Subscription {
    name: String,
    /// An array of the names of publications, as the server shows it.
    publications: String,
    /// The role may change it.
    is_own: bool,
    owner: String,
}

fn subscriptions(replica: &mut PostgresSession) -> Result<Vec<Subscription>, Error> {
    let sql = format!(
        "select quote_ident(subname), subpublications, pg_has_role(subowner, 'usage'), quote_ident(pg_get_userbyid(subowner)) from {SUBSCRIPTIONS}"
    );

    let rows = replica.query(&sql)?.into_iter().map(|row| {
        let [name, publications, is_own, owner] =
            [0, 1, 2, 3].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
        Subscription { name, publications, is_own: is_own == "t", owner }
    });
    Ok(rows.collect())
}

/// Finds what keeps new tables of the primary from a subscription.
fn of_subscription(
    primary: &mut PostgresSession,
    subscription: &Subscription,
) -> Result<Vec<Obstacle>, Error> {
    let Subscription { name, publications, is_own, owner } = subscription;
    let mut found = Vec::new();

    let published = format!(
        "select count(*) from pg_publication where pubname = any('{}')",
        publications.replace('\'', "''")
    );

    // Since version 15, a publication may have all tables of a schema.
    let of_schemas = "select count(*) from pg_class where relname = 'pg_publication_namespace'";
    let has_all_tables = match primary.query_i64(of_schemas)? {
        Some(0) => "puballtables",
        _ => {
            "(puballtables or exists (select from pg_publication_namespace \
             where pnpubid = pg_publication.oid and pnnspid = current_schema()::regnamespace))"
        }
    };

    if primary.query_i64(&published)? == Some(0) {
        found.push(Obstacle {
            what: format!(
                "it follows another primary: the server of `url` has none of the publications {publications} that subscription `{name}` names"
            ),
            help: NOT_ITS_REPLICA_HELP.into(),
        });
    } else if primary.query_i64(&format!("{published} and {has_all_tables}"))? == Some(0) {
        found.push(Obstacle {
            what: format!(
                "subscription `{name}` does not get new tables: its publications name individual tables"
            ),
            help: "subscribe to a publication `for all tables`".into(),
        });
    }

    if !is_own {
        found.push(Obstacle {
            what: format!("only `{owner}` may add tables to subscription `{name}`"),
            help: format!("use `{owner}` as the user in `replica-url`"),
        });
    }
    Ok(found)
}
