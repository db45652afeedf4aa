//! The notation of MySQL's and MariaDB's options: names with `-` or `_`, prefixes that turn an
//! option off, and sizes with a unit letter.

use std::collections::{BTreeMap, BTreeSet};

use words::SettingRole;

use super::config::FORMAT;
use super::option_file;
use crate::contract::notation::{
    Condition, Notation, as_boolean, bare, lower_words, synonym, without_unit,
};

/// The notation of MySQL and MariaDB.
pub struct MysqlNotation;

/// Variables with two names, which are compared by the second.
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

/// Variables whose names begin with `skip_`. For other options, this prefix turns the option off.
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

/// Words that a setting accepts, and the words that it reports for them.
const SYNONYMS: [(&str, &str, &str); 3] = [
    ("default_storage_engine", "myrocks", "rocksdb"),
    ("character_set_server", "utf8", "utf8mb3"),
    // MySQL before 8.0 reports no value for its default.
    ("innodb_flush_method", "", "fsync"),
];

/// Settings of the binary log that have no effect without one, and those of storage engines that
/// do not have the tables.
const CONDITIONS: [Condition; 4] = [
    Condition { keys: "sync_binlog", needs: "log_bin", value: "1" },
    Condition { keys: "innodb_", needs: "default_storage_engine", value: "innodb" },
    Condition { keys: "rocksdb_", needs: "default_storage_engine", value: "rocksdb" },
    Condition { keys: "key_buffer_size", needs: "default_storage_engine", value: "myisam" },
];

/// SQL modes that combine several others.
const COMBINED_MODES: [&str; 8] =
    ["ansi", "db2", "maxdb", "mssql", "mysql323", "oracle", "postgresql", "traditional"];

/// Settings that always differ between servers, besides those that assay sets; and versions, which
/// are compared elsewhere.
const VOLATILE: [&str; 48] = [
    "admin_port",
    "aria_log_dir_path",
    "basedir",
    "character_sets_dir",
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
    "have_openssl",
    "have_ssl",
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
    "mysqlx_port",
    "mysqlx_socket",
    "plugin_dir",
    "protocol_version",
    "proxy_user",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "relay_log_basename",
    "relay_log_index",
    "replica_load_tmpdir",
    "report_port",
    "secure_file_priv",
    "server_uid",
    "server_uuid",
    "slow_query_log_file",
    "ssl_ca",
    "system_time_zone",
    "timestamp",
    "tmpdir",
];
/// Prefixes of variables that describe the build or the node.
const VOLATILE_PREFIXES: [&str; 3] = ["version", "wsrep_data_home", "wsrep_node"];

/// Variables with these prefixes that say how the build was compiled.
const COMPILED: [&str; 4] = [
    "version_compile_machine",
    "version_compile_os",
    "version_malloc_library",
    "version_ssl_library",
];

impl Notation for MysqlNotation {
    fn options(&self, file: &str) -> Vec<(String, Option<String>)> {
        let options = option_file::server_options(file).into_iter();
        options.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn key(&self, name: &str) -> String {
        let plain = plain(name);
        let alias = ALIASES.iter().find(|(other, _)| *other == plain);
        let known = alias.map_or(plain.as_str(), |(_, known)| known);
        known.replace("slave", "replica").replace("master", "source")
    }

    fn target_setting(&self, key: String, value: Option<String>) -> (String, String) {
        let is_off = |value: &str| as_boolean(value) == Some("0");
        if let Some((as_boolean, is_on)) = switch(&key) {
            let is_denied = value.as_deref().is_some_and(is_off);
            let word = if is_on == is_denied { "OFF" } else { "ON" };
            return (as_boolean.to_owned(), word.to_owned());
        }

        // A name without a value turns the option on; the name of its files turns the binary log
        // on.
        let value = match value {
            Some(value) if key != "log_bin" || is_off(&value) => value,
            _ => "ON".to_owned(),
        };
        (key, value)
    }

    fn is_optional(&self, name: &str) -> bool {
        name.to_ascii_lowercase().replace('-', "_").starts_with("loose_")
    }

    fn canonical(&self, key: &str, value: &str) -> String {
        let value = bare(value);

        if let Some(reported) = synonym(&SYNONYMS, key, value) {
            return reported.to_owned();
        }

        if let Some(word) = as_boolean(value) {
            return word.to_owned();
        }

        if let Some(number) = without_unit(value) {
            return number;
        }

        let lower = lower_words(value);
        if key.starts_with("collation_") {
            return lower.replacen("utf8_", "utf8mb3_", 1);
        }

        if !value.contains(',') {
            return lower;
        }

        // The order of lists has no meaning.
        let items: BTreeSet<String> = items(value).collect();
        items.into_iter().collect::<Vec<_>>().join(",")
    }

    fn satisfies(&self, key: &str, declared: &str, effective: &str) -> bool {
        let declared = bare(declared);
        let is_automatic = declared == "-1" || key == "innodb_open_files" && declared == "0";
        is_automatic
            || self.canonical(key, declared) == self.canonical(key, effective)
            || is_included(key, declared, bare(effective))
    }

    fn is_reserved(&self, key: &str) -> bool {
        FORMAT.reserved.contains(&key)
    }

    fn is_volatile(&self, key: &str) -> bool {
        let mut prefixes = VOLATILE_PREFIXES.iter();
        self.is_reserved(key)
            || VOLATILE.contains(&key)
            || prefixes.any(|prefix| key.starts_with(prefix)) && !COMPILED.contains(&key)
    }

    fn conditions(&self) -> &'static [Condition] {
        &CONDITIONS
    }

    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[
            (
                SettingRole::Durability,
                &[
                    "innodb_data_file_write_through",
                    "innodb_doublewrite",
                    "innodb_flush_log_at_trx_commit",
                    "innodb_flush_method",
                    "innodb_log_file_write_through",
                    "log_bin",
                    "rocksdb_flush_log_at_trx_commit",
                    "rocksdb_manual_wal_flush",
                    "rocksdb_use_fsync",
                    "rocksdb_write_disable_wal",
                    "sync_binlog",
                ],
            ),
            (
                SettingRole::CacheSize,
                &["innodb_buffer_pool_size", "key_buffer_size", "rocksdb_block_cache_size"],
            ),
        ]
    }
}

/// Returns an option's name in lower case with `_`, without the prefix `loose_`.
pub(super) fn plain(name: &str) -> String {
    let plain = name.trim().to_ascii_lowercase().replace('-', "_");
    plain.strip_prefix("loose_").map(str::to_owned).unwrap_or(plain)
}

/// Returns the option that a name with a prefix turns on or off, and which of the two:
/// `skip_log_bin` turns `log_bin` off.
fn switch(key: &str) -> Option<(&str, bool)> {
    if SKIP_VARIABLES.contains(&key) {
        return None;
    }
    let off = key.strip_prefix("skip_").or_else(|| key.strip_prefix("disable_"));
    off.map(|name| (name, false)).or_else(|| Some((key.strip_prefix("enable_")?, true)))
}

fn items(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split(',').map(|item| bare(item).to_ascii_lowercase()).filter(|item| !item.is_empty())
}

/// Returns true when the effective value includes a declared list of switches, such as `mrr=on`, or
/// of combined modes.
fn is_included(key: &str, declared: &str, effective: &str) -> bool {
    let declared_items: Vec<String> = items(declared).collect();
    let effective_items: BTreeSet<String> = items(effective).collect();
    if declared_items.is_empty() {
        return false;
    }

    let declared_switches: Option<Vec<(&str, &str)>> =
        declared_items.iter().map(|item| switch_value(item)).collect();
    if let Some(switches) = declared_switches {
        let effective_switches: BTreeMap<&str, &str> =
            effective_items.iter().filter_map(|item| switch_value(item)).collect();
        return switches.iter().all(|(name, value)| {
            let effective = effective_switches.get(name);
            effective.is_some_and(|effective| *value == "default" || effective == value)
        });
    }

    // A combined mode makes the server report more modes than were declared.
    let is_combined = |mode: &String| COMBINED_MODES.contains(&mode.as_str());
    key == "sql_mode"
        && declared_items.iter().any(is_combined)
        && declared_items.iter().all(|mode| effective_items.contains(mode))
}

/// Returns the name and the value of a switch such as `mrr=on`.
fn switch_value(item: &str) -> Option<(&str, &str)> {
    let (name, value) = item.split_once('=')?;
    Some((name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use words::Setting;

    use super::*;
    use crate::contract::notation::{declared, describe};

    #[track_caller]
    fn check(key: &str, a: &str, b: &str, expected: bool) {
        let [a, b] = [a, b].map(|value| MysqlNotation.canonical(key, value));
        assert_eq!(a == b, expected, "{a} and {b}");
    }

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (a, b, expected) in [
            ("64M", "67108864", true),
            ("2k", "2048", true),
            ("1G", "1g", true),
            ("90", "90.000000", true),
            // Not a unit of MySQL.
            ("64MB", "67108864", false),
            ("on", "TRUE", true),
            ("1", "ON", true),
            ("0", "false", true),
            ("on", "off", false),
            ("t", "on", false),
            ("o_direct", "O_DIRECT", true),
            ("/a/b", "/a/b/", true),
            ("./", ".", true),
        ] {
            check("x", a, b, expected);
        }
        check("default_storage_engine", "myrocks", "ROCKSDB", true);
        check("collation_server", "utf8_bin", "utf8mb3_bin", true);
        check("innodb_flush_method", "", "fsync", true);
        check("innodb_flush_method", "", "O_DIRECT", false);
        let (a, b) = ("NO_ZERO_DATE,STRICT_TRANS_TABLES", "strict_trans_tables, no_zero_date");
        check("sql_mode", a, b, true);
        check("sql_mode", "NO_ZERO_DATE", a, false);
    }

    #[test]
    fn a_part_of_the_switches_is_satisfied_and_a_part_of_the_modes_is_not() {
        let switches = "index_merge=on,mrr=on,mrr_cost_based=off";
        let holds = |declared| MysqlNotation.satisfies("optimizer_switch", declared, switches);
        assert!(holds("mrr=on") && holds("'mrr=ON, index_merge=default'"));
        assert!(!holds("mrr=off") && !holds("unknown=on"));
        let modes = "STRICT_TRANS_TABLES,NO_ZERO_DATE,TRADITIONAL";
        let holds = |declared| MysqlNotation.satisfies("sql_mode", declared, modes);
        assert!(holds("traditional") && !holds("no_zero_date"));
        assert!(MysqlNotation.satisfies("thread_cache_size", "-1", "9"));
    }

    #[test]
    fn a_setting_without_effect_has_no_role() {
        let roles = |log_bin: &str, engine: &str| {
            let mut settings = vec![
                Setting::new("log_bin", log_bin),
                Setting::new("sync_binlog", "1"),
                Setting::new("default_storage_engine", engine),
                Setting::new("innodb_buffer_pool_size", "134217728"),
                Setting::new("rocksdb_flush_log_at_trx_commit", "1"),
                Setting::new("key_buffer_size", "8388608"),
            ];
            describe(&MysqlNotation, &mut settings, &[]);
            let with_role = settings.into_iter().filter(|setting| setting.role.is_some());
            with_role.map(|setting| setting.name).collect::<Vec<_>>()
        };
        assert_eq!(roles("OFF", "InnoDB"), ["log_bin", "innodb_buffer_pool_size"]);
        let synced = ["log_bin", "sync_binlog", "rocksdb_flush_log_at_trx_commit"];
        assert_eq!(roles("ON", "ROCKSDB"), synced);
        assert_eq!(roles("OFF", "MyISAM"), ["log_bin", "key_buffer_size"]);
    }

    #[test]
    fn all_spellings_of_an_option_have_the_same_key() {
        let key = |name| MysqlNotation.key(name);
        assert_eq!(key("innodb-flush-method"), "innodb_flush_method");
        assert_eq!(key("loose-InnoDB_io-capacity"), "innodb_io_capacity");
        assert_eq!(key("tx_isolation"), key("transaction-isolation"));
        assert_eq!(key("log_slave_updates"), key("log_replica_updates"));
        assert_eq!(switch("skip_log_bin"), Some(("log_bin", false)));
        assert_eq!(switch("enable_x"), Some(("x", true)));
        assert_eq!(switch("skip_name_resolve"), None);
        assert!(VOLATILE.is_sorted() && SKIP_VARIABLES.is_sorted());
    }

    #[test]
    fn a_file_is_parsed_like_in_the_server() {
        let file = "sync_binlog=0 # mine\n[client]\nport=1\n[mysqld]\n;x=1\n!include y\n\
            init-connect = \"set @a = '#'\"\nslow_query_log\nlog-bin = /logs/b\nskip-show-database\n\
            disable_performance_schema\n[mysqld_safe]\nnice=1\n[mariadb-10.11]\nsql_mode=''\n\
            innodb-io-capacity=1\n";
        let set = [("skip_log_bin", "false"), ("loose_innodb_io_capacity", "2")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let declared = declared(&MysqlNotation, [file], &set);
        let options = declared.iter().map(|option| (&*option.key, &*option.value));
        let options: Vec<_> = options.collect();
        let expected = [
            ("sync_binlog", "0"),
            ("init_connect", "set @a = '#'"),
            ("slow_query_log", "ON"),
            ("log_bin", "ON"),
            ("skip_show_database", "ON"),
            ("performance_schema", "OFF"),
            ("sql_mode", ""),
            ("innodb_io_capacity", "2"),
        ];
        assert_eq!(options, expected);
        assert!(declared[7].optional);
    }
}
