//! Replication of the binary log by GTIDs.
//!
//! A replica begins as its primary did, with the same empty database, and replays the primary's
//! binary log from its beginning. That needs no copy of files, for which the versions have
//! different programs.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use words::{Counter, Secret};

use super::config::FORMAT;
use super::installation::{Installation, MysqlVersion};
use super::notation::{MysqlNotation, plain};
use super::observer::if_present;
use super::server::{LOG_NOTHING, MysqlKind, create_account};
use super::{Mysql, MysqlSession, StorageEngine};
use crate::contract::notation::{Notation, as_boolean};
use crate::contract::{Engine, Needs, Obstacle, Replicated, ServerEngine, Session, SqlEngine};
use crate::error::{Error, ErrorClass, SetupError};
use crate::local::server::ServerPlace;
use crate::local::start_options::StartOptions;
use crate::safety::guard::Deadline;
use crate::servers::config::{ConfigText, OptionValue};
use crate::servers::sql_kind::SqlKind;
use crate::servers::sql_server::connect_alone;

/// Options without which a server cannot have replicas, or be one.
const NEEDED_BY_PRIMARY: [&str; 2] = ["log_bin", "gtid_mode"];
const NEEDED_BY_REPLICA: [&str; 2] = ["gtid_mode", "replica_preserve_commit_order"];

/// The code of the error for a missing privilege.
const DENIED: &str = "1227";

/// Options with paths of files that a server writes.
const PATHS_WRITTEN: [&str; 11] = [
    "aria_log_dir_path",
    "innodb_data_home_dir",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_temp_tablespaces_dir",
    "innodb_undo_directory",
    "log_bin",
    "log_bin_index",
    "relay_log",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
];

/// The options of semi-synchronous replication, and the words for the two servers in their names,
/// new and old.
const SEMI_SYNC: &str = "rpl_semi_sync_";
const SEMI_SYNC_PAIRS: [(&str, &str); 2] = [("source", "replica"), ("master", "slave")];

/// The words of one version in statements and options about replication.
struct ReplicaSyntax {
    change: &'static str,
    source: &'static str,
    replica: &'static str,
    /// The way to choose the position in the primary's log.
    position: &'static str,
}

impl ReplicaSyntax {
    fn of(version: &MysqlVersion) -> Self {
        if version.is_mysql_from(8, 0, 26) {
            return Self {
                change: "replication source",
                source: "source",
                replica: "replica",
                position: "source_auto_position = 1, get_source_public_key = 1",
            };
        }

        let position = if version.is_mariadb() {
            "master_use_gtid = slave_pos, master_ssl_verify_server_cert = 0"
        } else if version.is_mysql_from(8, 0, 4) {
            // Accounts need the key since this version.
            "master_auto_position = 1, get_master_public_key = 1"
        } else {
            "master_auto_position = 1"
        };
        Self { change: "master", source: "master", replica: "slave", position }
    }
}

/// Returns the lines of options with which a server can have replicas or be one, which the config's
/// options override.
///
/// # Errors
/// [`SetupError::Config`] if the version is too old, or an option that is `needed` is off.
fn default_options(
    version: &MysqlVersion,
    plan_options: &[OptionValue],
    needed: &[&str],
) -> Result<String, SetupError> {
    if !version.is_mariadb() && !version.is_mysql_from(5, 7, 0) {
        return Err(SetupError::config(
            format!("assay cannot replicate {version}"),
            "use MariaDB, or MySQL 5.7 or newer; or remove `replicas`",
        ));
    }

    for name in needed {
        let value = value_of(plan_options, name);
        if value.is_some_and(|value| as_boolean(&value) != Some("1")) {
            return Err(SetupError::option(
                name,
                format!("replicas need `{name}`, which the config turns off"),
                format!("remove `{name}` from the config, or remove `replicas`"),
            ));
        }
    }

    let own = if version.is_mariadb() {
        "binlog_format=ROW\ngtid_strict_mode=ON"
    } else {
        "gtid_mode=ON\nenforce_gtid_consistency=ON"
    };
    let engine = value_of(plan_options, "default_storage_engine");
    let is_rocksdb =
        engine.is_some_and(|name| StorageEngine::by_name(&name) == StorageEngine::RocksDb);
    let of_engine = if version.is_mariadb() && is_rocksdb {
        "slave_parallel_mode=conservative\ngtid_pos_auto_engines=rocksdb\n"
    } else {
        ""
    };

    let replica = ReplicaSyntax::of(version).replica;
    // The defaults since 8.0.27. A heartbeat that is shown before earlier transactions would hide
    // lag.
    let in_order = if version.is_mariadb() || version.is_mysql_from(8, 0, 27) {
        String::new()
    } else {
        format!("{replica}_parallel_type=LOGICAL_CLOCK\n{replica}_preserve_commit_order=ON\n")
    };

    Ok(format!(
        "server_id=1\nlog_bin=binlog\nlog_{replica}_updates=ON\n{own}\n{of_engine}{in_order}"
    ))
}

/// Returns the lines of options with which a server can have replicas, which the config's options
/// override.
///
/// # Errors
/// [`SetupError::Config`] if the version is too old, or the config turns a needed option off.
pub(super) fn primary_options(
    version: &MysqlVersion,
    plan_options: &[OptionValue],
) -> Result<String, SetupError> {
    default_options(version, plan_options, &NEEDED_BY_PRIMARY)
}

/// Returns the plugins for MySQL's semi-synchronous replication that options of the config belong
/// to and no other option loads.
///
/// # Errors
/// [`SetupError::Config`] if the build does not have one of them.
pub(super) fn semi_sync_plugins(
    options: &StartOptions<'_>,
    build: &Installation,
    is_loaded: impl Fn(&str) -> bool,
) -> Result<Vec<String>, SetupError> {
    let mut plugins = Vec::new();
    for word in SEMI_SYNC_PAIRS.iter().flat_map(|(a, b)| [a, b]) {
        let name = format!("semisync_{word}");
        let file = format!("{name}.so");
        if build.version.is_mariadb() || !has_semi_sync(options, word) || is_loaded(&name) {
            continue;
        }

        if build.plugin(&file).is_none() {
            return Err(SetupError::config(
                format!(
                    "the config has options `{SEMI_SYNC}{word}_...`, and {} has no plugin `{file}`",
                    build.version
                ),
                "use a build that has it, or remove the options",
            ));
        }
        plugins.push(file);
    }
    Ok(plugins)
}

/// Returns true if the config has an option of semi-synchronous replication with this word.
fn has_semi_sync(options: &StartOptions<'_>, word: &str) -> bool {
    let prefix = format!("{SEMI_SYNC}{word}_");
    let mut file_options = options.config_files.iter().flat_map(|file| MysqlNotation.options(file));
    file_options.any(|(name, _)| plain(&name).starts_with(&prefix))
        || options.set.iter().any(|(name, _)| plain(name).starts_with(&prefix))
}

/// Returns the value that the config gives to the option with this key; `None` if it has no such
/// option.
fn value_of(plan_options: &[OptionValue], key: &str) -> Option<String> {
    // The last one takes effect.
    plan_options.iter().rev().find_map(|(option, value)| {
        let (name, value) = MysqlNotation.target_setting(option.clone(), value.clone());
        (name == key).then_some(value)
    })
}

/// Returns the options of a replica: those of the config, and assay's own for the `number`th
/// server.
///
/// # Errors
/// [`SetupError::Config`] for files that another server may write.
fn replica_set(
    options: &StartOptions<'_>,
    plan_options: &[OptionValue],
    version: &MysqlVersion,
    server_id: i64,
) -> Result<Vec<(String, String)>, SetupError> {
    for key in PATHS_WRITTEN {
        let option = plan_options.iter().rev().find(|(name, _)| name == key);
        let value = option.and_then(|(_, value)| value.as_ref());
        if let Some(path) = value.filter(|path| path.starts_with('/')) {
            let example = if key.starts_with("log_bin") { "binlog" } else { "." };
            return Err(SetupError::option(
                key,
                format!("a replica cannot write to `{key} = {path}`, which its primary uses"),
                format!(
                    "give replicas a path in their own directories, such as `replica.set.{key} = \"{example}\"`"
                ),
            ));
        }
    }

    let mut set = options.set.to_vec();
    let mut add = |name: String, value: &str| set.push((name, value.to_owned()));
    add("server_id".into(), &server_id.to_string());

    let is_semi_sync = value_of(plan_options, "rpl_semi_sync_source_enabled");
    if is_semi_sync.is_some_and(|value| as_boolean(&value) == Some("1")) {
        let is_chosen = value_of(plan_options, "rpl_semi_sync_replica_enabled").is_some();
        for (source, replica) in SEMI_SYNC_PAIRS {
            if has_semi_sync(options, source) {
                if !is_chosen {
                    add(format!("{SEMI_SYNC}{replica}_enabled"), "ON");
                }
                // It would wait for replicas of its own.
                add(format!("{SEMI_SYNC}{source}_enabled"), "OFF");
            }
        }
    }

    if !version.is_mariadb() {
        // Until it has its database.
        add("super_read_only".into(), "OFF");
    }
    Ok(set)
}

impl Replicated for Mysql {
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let server = self.server().ok_or_else(crate::contract::no_own_primary)?;
        let version = &self.kind.version;
        let failed =
            |source: Error| SetupError::Server { server: name.to_owned(), help: None, source };

        // A password for replication has at most 32 characters.
        let uuid = fs_err::read_to_string("/proc/sys/kernel/random/uuid")?;
        let password = Secret::new(uuid.trim().replace('-', ""));
        // By the socket, no password is needed, and the account may grant privileges.
        let socket = MysqlKind::address(&server.place, options);
        let source = Source::prepare(&socket, name, &password).map_err(failed)?;

        // Names are `replica_NUMBER`.
        let number = name.rsplit('_').next().and_then(|number| number.parse().ok());
        let server_id = source.server_id + number.unwrap_or(1);
        let replica = launch(version, server_id, options)?;

        let syntax = ReplicaSyntax::of(version);
        let mut session = replica.connect().map_err(failed)?;
        session.query(LOG_NOTHING).map_err(failed)?;
        let read_only = if version.is_mariadb() { "read_only" } else { "super_read_only" };
        for sql in [
            format!("set global {read_only} = on"),
            source.change(&syntax, name, &password, self.address.ssl_root.is_some()),
            format!("start {}", syntax.replica),
        ] {
            session.query(&sql).map_err(failed)?;
        }

        // A thread that is still connecting is no error yet.
        let deadline = Deadline::after(options.timeout);
        while let Some(error) = find_error(&mut session).map_err(failed)? {
            let is_over = deadline.has_passed() || options.stop.load(Ordering::Relaxed);
            if is_over || error.is_error {
                return Err(failed(Error::new(ErrorClass::Other, error.text)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(replica)
    }

    fn attach(url: &str) -> Result<Self, SetupError> {
        Self::attach(url)
    }

    fn connect_watcher(&self) -> Result<MysqlSession, Error> {
        self.connect()
    }

    fn replication_gauges(
        primary: &mut MysqlSession,
        replica: &mut MysqlSession,
        name: &str,
    ) -> Result<Vec<Counter>, Error> {
        let status = status(replica)?;
        if status.get("replica_io_running").map(String::as_str) != Some("Yes") {
            return Ok(Vec::new());
        }

        let transactions = transactions_behind(primary, replica)?;
        let logs = primary.query("show binary logs")?;
        let lacks = |file: &str, position: &str| {
            bytes_after(&logs, status.get(file)?, status.get(position)?.parse().ok()?)
        };
        let written = lacks("source_log_file", "read_source_log_pos");
        let replayed = lacks("relay_source_log_file", "exec_source_log_pos");
        let waiting =
            written.zip(replayed).map(|(written, replayed)| (replayed - written).max(0.0));
        let seconds = status.get("seconds_behind_source").and_then(|text| text.parse().ok());

        let gauges = [
            ("written_bytes", written),
            ("replayed_bytes", replayed),
            ("relay_log_bytes", waiting),
            ("transactions_behind", transactions),
            ("seconds_behind", seconds),
        ];
        let known = gauges
            .into_iter()
            .filter_map(|(gauge, value)| Some(Counter::gauge(format!("{name}.{gauge}"), value?)));
        Ok(known.collect())
    }

    fn replication_error(session: &mut MysqlSession) -> Result<Option<String>, Error> {
        match find_error(session) {
            // Only some users may know.
            Err(error) if error.code.as_deref() == Some(DENIED) => Ok(None),
            found => Ok(found?.map(|error| error.text)),
        }
    }

    fn obstacles_of(&self, replica: &Self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        let needs = Needs { makes_tables: false, ..needs };
        let mut found = replica.obstacles(needs)?;
        let (mut session, mut primary) = (replica.connect()?, self.connect()?);
        let status = match status(&mut session) {
            Err(error) if error.code.as_deref() == Some(DENIED) => return Ok(found),
            status => status?,
        };

        // The replica names its primary.
        let (identity, own_identity) = if self.kind.version.is_mariadb() {
            ("source_server_id", "select @@server_id")
        } else {
            ("source_uuid", "select @@server_uuid")
        };
        let primary_id = primary.query_column(own_identity)?.into_iter().next();
        let what = match (status.get(identity), primary_id) {
            (None, _) => Some("it follows no primary".to_owned()),
            (Some(source), Some(id)) if *source != id => {
                Some("it follows another primary".to_owned())
            }
            _ => Self::replication_error(&mut session)?,
        };
        found.extend(what.map(|what| Obstacle {
            what,
            help: "write the URL of a running replica of the server of `url`".into(),
        }));

        let database = "select database()";
        let of_primary = primary.query_column(database)?.concat();
        let of_replica = session.query_column(database)?.concat();
        if of_primary != of_replica {
            found.push(Obstacle {
                what: format!(
                    "its URL names database `{of_replica}`, but the primary's is `{of_primary}`"
                ),
                help: "name the same database in `replica-url` as in `url`".into(),
            });
        }

        if !self.kind.version.is_mariadb() && commits_out_of_order(&mut session)? {
            found.push(Obstacle {
                what: "its parallel workers don't commit in the primary's order, so the lag cannot be measured".into(),
                help: "set `replica_preserve_commit_order` (before MySQL 8.0.26: `slave_preserve_commit_order`) on it".into(),
            });
        }
        Ok(found)
    }
}

/// Starts the server of a replica, which does not follow its primary yet.
fn launch(
    version: &MysqlVersion,
    server_id: i64,
    options: &StartOptions<'_>,
) -> Result<Mysql, SetupError> {
    let plan_options = FORMAT.plan_options(options)?;
    let defaults = default_options(version, &plan_options, &NEEDED_BY_REPLICA)?;
    let set = replica_set(options, &plan_options, version, server_id)?;
    let options = &StartOptions { set: &set, replicas: None, ..*options };

    let create = |build: &Installation, place: &ServerPlace, config: &mut ConfigText| {
        let text = &config.text;
        config.text = format!("# Replication.\n[mysqld]\n{defaults}\n{text}");
        MysqlKind::create_data(options, build, place, config)
    };
    Mysql::launch_with_database(options, create)
}

/// Returns true if a replica of MySQL may show a transaction before an earlier one.
fn commits_out_of_order(replica: &mut MysqlSession) -> Result<bool, Error> {
    let mut is = |name: &str, values: &str| {
        let sql = format!("show global variables where variable_name like '{name}' and {values}");
        Ok::<_, Error>(!replica.query(&sql)?.is_empty())
    };
    // Newer names, and older ones.
    Ok(is("%parallel_workers", "value > 1")? && is("%preserve_commit_order", "value = 'OFF'")?)
}

/// The primary's address for replicas.
struct Source {
    host: String,
    port: i64,
    server_id: i64,
}

impl Source {
    /// Creates an account for the replica `name` on the primary, without replicating it, and reads
    /// the primary's address.
    fn prepare(socket: &super::Address, name: &str, password: &Secret) -> Result<Self, Error> {
        let mut session = connect_alone::<MysqlKind>(socket)?;
        session.query(LOG_NOTHING)?;
        create_account(&mut session, name, password)?;
        session.query(&format!("grant replication slave on *.* to '{name}'@'%'"))?;
        Ok(Self {
            host: session.variable("bind_address")?.unwrap_or_default(),
            port: session.query_i64("select @@port")?.unwrap_or(0),
            server_id: session.query_i64("select @@server_id")?.unwrap_or(1),
        })
    }

    /// Returns the statement that makes a replica follow it from the beginning of its log.
    fn change(
        &self,
        syntax: &ReplicaSyntax,
        user: &str,
        password: &Secret,
        has_tls: bool,
    ) -> String {
        let options = [
            ("host", format!("'{}'", self.host)),
            ("port", self.port.to_string()),
            ("user", format!("'{user}'")),
            ("password", format!("'{}'", password.expose())),
            ("connect_retry", "1".into()),
            ("ssl", u8::from(has_tls).to_string()),
        ];
        let ReplicaSyntax { change, source, position, .. } = syntax;
        let list = options.map(|(name, value)| format!("{source}_{name} = {value}")).join(", ");
        format!("change {change} to {list}, {position}")
    }
}

/// Reads the state of a replica, with the new words in the names of columns.
fn status(session: &mut MysqlSession) -> Result<HashMap<String, String>, Error> {
    let version = MysqlVersion::parse(session.server_version());
    let replica = version.map_or("replica", |version| ReplicaSyntax::of(&version).replica);
    let row = session.first_row(&format!("show {replica} status"))?.into_iter();
    Ok(row.map(|(name, value)| (MysqlNotation.key(&name), value)).collect())
}

/// The reason why a replica does not follow.
struct ReplicationError {
    text: String,
    /// The server reports an error, so waiting does not help.
    is_error: bool,
}

/// Returns the reason why a replica does not follow; `None` if it does.
fn find_error(session: &mut MysqlSession) -> Result<Option<ReplicationError>, Error> {
    let status = status(session)?;
    let of = |name: &str| status.get(name).map_or("", String::as_str);
    for (thread, running, error) in [
        ("that applies", "replica_sql_running", "last_sql_error"),
        ("that receives", "replica_io_running", "last_io_error"),
    ] {
        if of(running) == "Yes" {
            continue;
        }

        let mut text = of(error).to_owned();
        if text.is_empty() {
            let state = of(running).to_lowercase();
            let text = format!("the state of its thread {thread} the log is `{state}`");
            return Ok(Some(ReplicationError { text, is_error: false }));
        }
        if text.contains("worker") {
            // Only the worker knows what happened.
            let sql = "select last_error_message from performance_schema.replication_applier_status_by_worker \
                       where last_error_number <> 0 limit 1";
            let message = if_present(session, sql)?.into_iter().flatten().flatten().next();
            text.extend(message.map(|message| format!(" ({message})")));
        }
        return Ok(Some(ReplicationError { text, is_error: true }));
    }
    Ok(None)
}

/// Returns the size of a binary log after `position` of `file`. `logs` are the files' names and
/// sizes, in order.
fn bytes_after(logs: &[Vec<Option<String>>], file: &str, position: f64) -> Option<f64> {
    let name_of = |row: &[Option<String>]| row.first().cloned().flatten();
    let first = logs.iter().position(|row| name_of(row).as_deref() == Some(file))?;
    let sizes = logs[first..].iter().map(|row| row.get(1)?.as_ref()?.parse::<f64>().ok());
    let bytes = sizes.sum::<Option<f64>>()?;
    Some((bytes - position).max(0.0))
}

/// Returns the number of transactions that a replica lacks.
fn transactions_behind(
    primary: &mut MysqlSession,
    replica: &mut MysqlSession,
) -> Result<Option<f64>, Error> {
    let is_mariadb =
        MysqlVersion::parse(primary.server_version()).is_some_and(|version| version.is_mariadb());
    let read = |session: &mut MysqlSession, sql: &str| {
        let rows = session.query(sql)?;
        Ok::<_, Error>(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    };

    if is_mariadb {
        let done = read(replica, "select @@global.gtid_slave_pos")?;
        let all = read(primary, "select @@global.gtid_binlog_pos")?;
        let last = |position: &str| position.split(',').filter_map(last_number).sum::<f64>();
        return Ok(Some((last(&all) - last(&done)).max(0.0)));
    }

    let done = read(replica, "select @@global.gtid_executed")?;
    let lacks = read(primary, &format!("select gtid_subtract(@@global.gtid_executed, '{done}')"))?;
    Ok(Some(count_gtids(&lacks)))
}

/// Returns the last number of a GTID of MariaDB, such as 7 in `0-1-7`.
fn last_number(gtid: &str) -> Option<f64> {
    gtid.rsplit('-').next()?.trim().parse().ok()
}

/// Returns the number of GTIDs in a set of MySQL, such as 4 in `UUID:1-3:7`.
fn count_gtids(set: &str) -> f64 {
    let intervals = set.split(',').flat_map(|part| part.split(':').skip(1));
    let count = |interval: &str| {
        let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
        let number = |text: &str| text.trim().parse::<f64>().ok();
        // A tag is no number.
        Some(number(last)? - number(first)? + 1.0)
    };
    intervals.filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gtids_are_counted() {
        for (set, count) in [
            ("", 0.0),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:23", 1.0),
            (
                "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:7,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:5-6",
                6.0,
            ),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:tag:1-2", 5.0),
        ] {
            assert_eq!(count_gtids(set), count, "{set}");
        }
        assert_eq!(last_number("0-1-7"), Some(7.0));
    }

    #[test]
    fn bytes_behind_span_files() {
        let row = |name: &str, size: &str| vec![Some(name.to_owned()), Some(size.to_owned())];
        let logs = [row("b.1", "100"), row("b.2", "1000"), row("b.3", "70")];
        assert_eq!(bytes_after(&logs, "b.2", 900.0), Some(170.0));
        assert_eq!(bytes_after(&logs, "b.3", 70.0), Some(0.0));
        assert_eq!(bytes_after(&logs, "b.0", 4.0), None);
    }
}
