//! Names of settings: how they are compared, and which say nothing about how a target is configured.

/// Whose notation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Postgres,
    Mysql,
    Sqlite,
    Rocksdb,
    Other,
}

impl Notation {
    /// That of an engine by its name.
    pub(crate) fn of(engine: &str) -> Self {
        match engine {
            "postgres" => Self::Postgres,
            "mysql" => Self::Mysql,
            "sqlite" => Self::Sqlite,
            "rocksdb" => Self::Rocksdb,
            _ => Self::Other,
        }
    }
}

/// Variables of MySQL that have two names. The second is what both are compared as.
const ALIASES: [(&str, &str); 8] = [
    ("storage_engine", "default_storage_engine"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
    ("log_slow_query", "slow_query_log"),
    ("log_slow_query_time", "long_query_time"),
    ("log_slow_min_examined_row_limit", "min_examined_row_limit"),
    ("log_slow_query_file", "slow_query_log_file"),
    ("skip_slave_start", "skip_replica_start"),
];

/// Variables of MySQL that are called `skip_` something. Of other options that is the way to switch something off.
const SKIP_VARIABLES: [&str; 8] = [
    "skip_external_locking",
    "skip_grant_tables",
    "skip_name_resolve",
    "skip_networking",
    "skip_parallel_replication",
    "skip_replica_start",
    "skip_replication",
    "skip_show_database",
];

/// What differs between any two servers of one machine, and versions, which are told apart. What assay decides,
/// whatever the plan says, is here too: the conductor warns of it when it is declared.
const POSTGRES_NOISE: [&str; 21] = [
    "application_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "krb_server_keyfile",
    "listen_addresses",
    "log_destination",
    "log_directory",
    "log_filename",
    "logging_collector",
    "port",
    "promote_trigger_file",
    "server_version",
    "server_version_num",
    "stats_temp_directory",
    "transaction_read_only",
    "trigger_file",
    "unix_socket_directories",
    "unix_socket_group",
];
const MYSQL_NOISE: [&str; 54] = [
    "admin_address",
    "admin_port",
    "aria_log_dir_path",
    "basedir",
    "bind_address",
    "character_sets_dir",
    "daemonize",
    "datadir",
    "error_count",
    "external_user",
    "feedback_server_uid",
    "general_log_file",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_next",
    "gtid_owned",
    "gtid_purged",
    "gtid_slave_pos",
    "hostname",
    "identity",
    "innodb_version",
    "insert_id",
    "last_gtid",
    "last_insert_id",
    "lc_messages_dir",
    "license",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "mysqlx",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "port",
    "protocol_version",
    "proxy_user",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "relay_log_basename",
    "relay_log_index",
    "replica_load_tmpdir",
    "secure_file_priv",
    "server_uuid",
    "skip_networking",
    "slow_query_log_file",
    "socket",
    "system_time_zone",
    "timestamp",
    "tmpdir",
    "user",
];
/// Every variable of MySQL that begins so tells what was built.
const MYSQL_NOISE_PREFIXES: [&str; 3] = ["version", "wsrep_data_home", "wsrep_node"];

/// What an option's name is compared as. Of MySQL's, words may be joined by `-` or `_`, and replicas and sources had
/// other names. RocksDB's are reported with their section, `[CFOptions] compression`, and those of tables may be declared
/// with the table.
pub(crate) fn key(notation: Notation, name: &str) -> String {
    let plain = name.trim().to_ascii_lowercase();
    if notation == Notation::Rocksdb {
        let bare = match plain.split_once("] ") {
            Some((section, bare)) if section.starts_with('[') => bare,
            _ => &plain,
        };
        let of_table = bare.strip_prefix("block_based_table_factory.");
        return of_table.unwrap_or(bare).to_owned();
    }
    if notation != Notation::Mysql {
        return plain;
    }
    let plain = plain.replace('-', "_");
    let plain = plain.strip_prefix("loose_").unwrap_or(&plain);
    let plain = ALIASES
        .iter()
        .find(|(other, _)| *other == plain)
        .map_or(plain, |(_, known)| known);
    plain
        .replace("slave", "replica")
        .replace("master", "source")
}

/// Whether a server that does not know the option may go on without it.
pub(crate) fn is_loose(notation: Notation, name: &str) -> bool {
    let plain = name.trim().to_ascii_lowercase().replace('-', "_");
    notation == Notation::Mysql && plain.starts_with("loose_")
}

/// What a name that switches something on or off by itself is compared as, and whether that is on: `skip_log_bin` is
/// `log_bin`, off.
pub(crate) fn switch(notation: Notation, key: &str) -> Option<(&str, bool)> {
    if notation != Notation::Mysql || SKIP_VARIABLES.contains(&key) {
        return None;
    }
    let off = key
        .strip_prefix("skip_")
        .or_else(|| key.strip_prefix("disable_"));
    off.map(|name| (name, false))
        .or_else(|| Some((key.strip_prefix("enable_")?, true)))
}

/// Whether a setting differs by construction and says nothing.
pub(crate) fn is_noise(notation: Notation, key: &str) -> bool {
    match notation {
        Notation::Postgres => POSTGRES_NOISE.contains(&key),
        Notation::Mysql => {
            MYSQL_NOISE.contains(&key)
                || MYSQL_NOISE_PREFIXES
                    .iter()
                    .any(|prefix| key.starts_with(prefix))
        }
        // Where assay put the log.
        Notation::Rocksdb => key == "wal_dir",
        Notation::Sqlite | Notation::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option_has_one_key_however_it_is_written() {
        let mysql = |name| key(Notation::Mysql, name);
        assert_eq!(mysql("innodb-flush-method"), "innodb_flush_method");
        assert_eq!(mysql("loose-InnoDB_io-capacity"), "innodb_io_capacity");
        assert_eq!(mysql("tx_isolation"), mysql("transaction-isolation"));
        assert_eq!(mysql("log_slave_updates"), mysql("log_replica_updates"));
        assert_eq!(mysql("skip-slave-start"), mysql("skip_replica_start"));
        let postgres = |name| key(Notation::Postgres, name);
        assert_eq!(postgres("Work_Mem"), "work_mem");
        assert_ne!(postgres("a-b"), postgres("a_b"));
    }

    #[test]
    fn rocksdb_s_options_are_the_same_with_and_without_their_section() {
        let rocksdb = |name| key(Notation::Rocksdb, name);
        assert_eq!(rocksdb("[CFOptions] compression"), "compression");
        assert_eq!(
            rocksdb("[TableOptions/BlockBasedTable] block_size"),
            "block_size"
        );
        assert_eq!(
            rocksdb("block_based_table_factory.block_size"),
            "block_size"
        );
        assert_eq!(rocksdb("max_background_jobs"), "max_background_jobs");
        assert!(is_noise(Notation::Rocksdb, &rocksdb("[DBOptions] wal_dir")));
    }

    #[test]
    fn some_names_are_switches() {
        let mysql = |key| switch(Notation::Mysql, key);
        assert_eq!(mysql("skip_log_bin"), Some(("log_bin", false)));
        assert_eq!(mysql("disable_log_bin"), Some(("log_bin", false)));
        assert_eq!(mysql("enable_x"), Some(("x", true)));
        assert_eq!(mysql("skip_name_resolve"), None);
        assert_eq!(switch(Notation::Postgres, "enable_sort"), None);
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(POSTGRES_NOISE.is_sorted());
        assert!(MYSQL_NOISE.is_sorted());
        assert!(SKIP_VARIABLES.is_sorted());
    }
}
