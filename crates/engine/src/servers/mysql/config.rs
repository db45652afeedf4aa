//! The text of the server's option file, and the server's messages about it.

use std::path::Path;

use super::dialect::StorageEngine;
use super::installation::{Installation, ROCKSDB_PLUGIN};
use super::notation::{MysqlNotation, plain};
use super::replica;
use crate::contract::notation::Notation;
use crate::error::SetupError;
use crate::local::start_options::StartOptions;
use crate::net::network::{CERTIFICATE, KEY};
use crate::servers::config::{ConfigText, Format, OptionValue};

pub(super) static FORMAT: Format = Format {
    server: "MySQL",
    notation: &MysqlNotation,
    group: "[mysqld]\n",
    name_chars: &['_', '-', '.'],
    connections: 151,
    quiet: &[
        ("loose_event_scheduler", "OFF"),
        ("loose_innodb_buffer_pool_dump_at_shutdown", "OFF"),
        // MariaDB reserves terabytes of addresses by default, which valgrind has not. The server
        // raises this to the size of its pool.
        ("loose_innodb_buffer_pool_size_max", "8M"),
        ("loose_innodb_stats_auto_recalc", "OFF"),
        // A thread that waits for `io_uring` keeps valgrind's only processor.
        ("loose_innodb_use_native_aio", "OFF"),
    ],
    reserved: &[
        "bind_address",
        "daemonize",
        "datadir",
        "log_error",
        "mysqlx",
        "pid_file",
        "port",
        "proxy_protocol_networks",
        "require_secure_transport",
        "skip_grant_tables",
        "skip_name_resolve",
        "skip_networking",
        "socket",
        "ssl",
        "ssl_cert",
        "ssl_key",
        "user",
    ],
};

/// The first version of MariaDB that creates a TLS key at every start if it has none.
const MARIADB_CREATES_KEYS: (u32, u32, u32) = (11, 4, 0);

/// Options that are fixed when files are created, so the program that creates the system tables
/// needs them too. Other options may belong to a plugin that is not loaded then.
const INITIAL: [&str; 17] = [
    "character_set_server",
    "collation_server",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_file_per_table",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_log_group_home_dir",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_temp_data_file_path",
    "innodb_undo_directory",
    "innodb_undo_logs",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];

/// The key of the option that selects the storage engine of tables.
pub(super) const STORAGE_ENGINE: &str = "default_storage_engine";

/// Composes the option files of a server with files in `directory`, in its subdirectories `data`
/// and `tmp`.
///
/// # Errors
/// [`SetupError::Config`] for an option with an invalid name, or a storage engine that the build
/// does not have.
pub(super) fn compose(
    options: &StartOptions<'_>,
    build: &Installation,
    directory: &Path,
    socket: &Path,
) -> Result<ConfigText, SetupError> {
    let plan_options = FORMAT.plan_options(options)?;
    refuse_other_ports(&plan_options)?;
    let paths = path_options(build, directory);
    let plugins = plugin_options(options, build, &plan_options)?;

    let mut build_settings =
        format!("# Paths of this build and its files.\n[mysqld]\n{paths}{plugins}");

    if options.replicas.is_some() {
        let lines = replica::primary_options(&build.version, &plan_options)?;
        build_settings += &format!("\n# Replication.\n{lines}");
    }

    let datadir = assigned("datadir", &directory.join("data").display().to_string());
    let own = own_options(options, build, &plan_options, directory, socket);

    // The program that creates the data gets only the options that decide on its form.
    let mut initial = format!("[mysqld]\n{paths}");
    for (key, value) in plan_options.iter().filter(|(key, _)| INITIAL.contains(&key.as_str())) {
        initial += &match value {
            Some(value) => assigned(key, value) + "\n",
            None => format!("{key}\n"),
        };
    }
    initial += &format!("{datadir}\n");

    let own = format!("{datadir}\n{own}");
    Ok(ConfigText { initial, ..FORMAT.compose(options, &build_settings, line, &own) })
}

/// Options that open a port of their own, beside the one for the run. No value of theirs that a later
/// line could set turns them off in all versions.
const OTHER_PORTS: [&str; 2] = ["admin_address", "extra_port"];

/// Refuses options that open another port.
fn refuse_other_ports(plan_options: &[OptionValue]) -> Result<(), SetupError> {
    let mut keys = plan_options.iter().map(|(key, _)| key.as_str());
    let Some(option) = keys.find(|key| OTHER_PORTS.contains(key)) else {
        return Ok(());
    };

    Err(SetupError::option(
        option,
        format!("option `{option}` opens another port, and a run's server has one for its clients"),
        "remove it from the config; `listen` in the plan sets the address for clients",
    ))
}

/// Returns the lines that load the plugins of the config's options.
fn plugin_options(
    options: &StartOptions<'_>,
    build: &Installation,
    plan_options: &[OptionValue],
) -> Result<String, SetupError> {
    let mut lines = String::new();
    if let Some(plugin) = rocksdb_plugin(build, plan_options)? {
        lines += &format!("\n# The storage engine of the config.\nplugin_load_add={plugin}\n");
    }

    let is_loaded = |plugin: &str| is_loaded(plan_options, plugin);
    for plugin in replica::semi_sync_plugins(options, build, is_loaded)? {
        lines += &format!("\n# Options of the config.\nplugin_load_add={plugin}\n");
    }
    Ok(lines)
}

/// Returns assay's own options, which override those of the config.
fn own_options(
    options: &StartOptions<'_>,
    build: &Installation,
    plan_options: &[OptionValue],
    directory: &Path,
    socket: &Path,
) -> String {
    let mut lines = format!(
        "{}\n{}\n{}\nskip_name_resolve\nskip_grant_tables=0\nloose_mysqlx=OFF\n",
        assigned("socket", &socket.display().to_string()),
        assigned("pid_file", &directory.join("server.pid").display().to_string()),
        network_options(options, build, socket),
    );

    let sets = |option: &str| plan_options.iter().any(|(key, _)| key == option);
    if build.version.is_mariadb() || sets("proxy_protocol_networks") {
        // With it, a client by TCP can pass for one of the private socket.
        lines.push_str("loose_proxy_protocol_networks=\n");
    }
    if sets("log_error") {
        let to_stderr = if build.version.is_mysql_from(5, 7, 0) {
            "log_error=stderr\n"
        } else {
            "skip_log_error\n"
        };
        lines.push_str(to_stderr);
    }
    lines
}

/// Returns the options for clients by TCP.
fn network_options(options: &StartOptions<'_>, build: &Installation, socket: &Path) -> String {
    let own_port = options.network.map(|network| &network.port);
    let Some(port) = own_port.or(options.replicas.map(|replicas| replicas.port)) else {
        return "skip_networking".to_owned();
    };

    let mut lines = format!("bind_address={}\nport={}", port.ip(), port.number());
    if options.network.is_some_and(|network| network.certificate.is_some()) {
        for (name, file) in [("ssl_cert", CERTIFICATE), ("ssl_key", KEY)] {
            let path = socket.with_file_name(file).display().to_string();
            lines += &format!("\n{}", assigned(name, &path));
        }

        // Old versions have no such option.
        lines += "\nloose_require_secure_transport=ON";

        // MySQL 8.4 has no such option.
        if build.version.is_mariadb() {
            lines += "\nssl=ON";
        }
    }
    lines
}

/// Returns the options for the build's paths and the temporary directory, and those that turn off
/// features of TCP.
fn path_options(build: &Installation, directory: &Path) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, path: &Path| {
        lines += &(assigned(name, &path.display().to_string()) + "\n");
    };

    line("basedir", &build.base_dir);
    if let Some(share) = &build.share_dir {
        line("lc_messages_dir", share);
        if share.join("charsets").is_dir() {
            line("character_sets_dir", &share.join("charsets"));
        }
    }
    if let Some(plugins) = &build.plugin_dir {
        line("plugin_dir", plugins);
    }
    line("tmpdir", &directory.join("tmp"));

    if build.version.is_mysql_from(5, 7, 0) {
        // The default directory of packages may not exist.
        lines.push_str("secure_file_priv=NULL\n");
    }

    if build.version.is_mariadb() && build.version.number >= MARIADB_CREATES_KEYS {
        // Assay makes the certificate if TLS is wanted, and some builds take minutes to create a
        // key.
        lines.push_str("ssl=OFF\n");
    }
    lines
}

/// Returns the line of an option of the plan.
fn line(name: &str, value: &str) -> String {
    match MysqlNotation.key(name) {
        key if key == STORAGE_ENGINE => assigned(&key, StorageEngine::by_name(value).name()),
        // A name without a value.
        key if value.is_empty() || (key.starts_with("skip_") && value == "true") => name.to_owned(),
        _ => assigned(name, value),
    }
}

fn assigned(name: &str, value: &str) -> String {
    format!("{name}={}", quoted(value))
}

/// Returns true if the config itself loads this plugin.
fn is_loaded(plan_options: &[OptionValue], plugin: &str) -> bool {
    plan_options.iter().any(|(key, value)| {
        let plugins = value.as_deref().unwrap_or("").to_ascii_lowercase();
        key.starts_with("plugin_load") && plugins.contains(plugin)
    })
}

/// Returns the plugin of MyRocks if the config selects MyRocks and does not load it.
fn rocksdb_plugin(
    build: &Installation,
    plan_options: &[OptionValue],
) -> Result<Option<&'static str>, SetupError> {
    let mut engines = plan_options.iter().filter(|(key, _)| key == STORAGE_ENGINE);
    let requested = engines.next_back().and_then(|(_, engine)| engine.as_deref());
    if requested.map(StorageEngine::by_name) != Some(StorageEngine::RocksDb)
        || is_loaded(plan_options, "rocksdb")
    {
        return Ok(None);
    }

    if build.plugin(ROCKSDB_PLUGIN).is_some() {
        return Ok(Some(ROCKSDB_PLUGIN));
    }

    // Builds made for MyRocks have it built in, unlike MariaDB's.
    let searched = match &build.plugin_dir {
        Some(directory) => format!(" in `{}`", directory.display()),
        None if build.version.is_mariadb() => String::new(),
        None => return Ok(None),
    };

    Err(SetupError::config(
        format!(
            "the storage engine is MyRocks, and {} has no `{ROCKSDB_PLUGIN}`{searched}",
            build.version
        ),
        "use a build that has it (Debian: `apt-get install mariadb-plugin-rocksdb`), or set `plugin_load_add` and `plugin_dir`",
    ))
}

/// Quotes a value if necessary: in option files, `#` begins a comment, and `\` an escape sequence.
fn quoted(value: &str) -> String {
    let is_plain =
        !value.contains(['#', '"', '\'', '\\', ';']) && value.trim() == value && !value.is_empty();
    if is_plain {
        value.to_string()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// The beginnings of names of options after which the name in a server's help follows.
const PREFIXES: [&str; 4] = ["skip_", "disable_", "enable_", "maximum_"];

/// Returns the first option of `set` that a server's `help` does not list. Servers also accept
/// beginnings of names, and some prefixes.
pub(super) fn unknown<'a>(set: &'a [(String, String)], help: &[String]) -> Option<&'a str> {
    let known_names: Vec<String> = help.iter().filter_map(|line| listed_name(line)).collect();
    let mut names = set.iter().map(|(name, _)| name.as_str());
    names.find(|name| {
        let is_lenient = name.starts_with("loose") || name.contains('.');
        !is_lenient && !is_known(name, &known_names)
    })
}

/// Returns the first option of `set` that a server's `help` does not list in full. Servers also
/// accept beginnings of names, by which an option could be named without the words that tell what
/// it does.
pub(super) fn not_in_full<'a>(set: &'a [(String, String)], help: &[String]) -> Option<&'a str> {
    let listed: Vec<String> = help.iter().filter_map(|line| listed_name(line)).collect();
    let is_listed = |name: &str| listed.iter().any(|known| known == name);

    let mut names = set.iter().map(|(name, _)| name.as_str());
    names.find(|name| {
        let plain_name = plain(name);
        let without_prefix = PREFIXES.iter().find_map(|prefix| plain_name.strip_prefix(prefix));
        MysqlNotation.key(name) != STORAGE_ENGINE
            && !is_listed(&plain_name)
            && !without_prefix.is_some_and(is_listed)
    })
}

/// Returns the option in a line of a server's help.
fn listed_name(line: &str) -> Option<String> {
    let name = line.trim_start().split_once("--")?.1;
    let end = name.find(['=', ' ', '[']).unwrap_or(name.len());
    Some(plain(&name[..end]))
}

fn is_known(name: &str, known_names: &[String]) -> bool {
    let name = plain(name);
    let suffix = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    known_names.iter().any(|known| {
        known.starts_with(&name) || suffix.is_some_and(|suffix| known.starts_with(suffix))
    })
}

/// Returns the messages about the configuration in the output of a program that reads it; `None` if
/// there are none.
pub(super) fn refusal(output: &[String]) -> Option<String> {
    let errors: Vec<String> =
        output.iter().filter(|line| line.contains("[ERROR]")).cloned().collect();
    config_error(&errors)
}

/// Returns the messages about the configuration in the log of a server that did not start; `None`
/// if there are none. The phrases are English, the servers' default language.
pub(super) fn config_error(log: &[String]) -> Option<String> {
    let mut messages: Vec<&str> =
        log.iter().filter_map(|line| message_about_config(line)).collect();
    messages.dedup();
    if messages.is_empty() { None } else { Some(messages.join("; ")) }
}

/// Phrases in messages about the configuration.
const ABOUT_CONFIG: [&str; 16] = [
    "unknown variable",
    "unknown option",
    "ambiguous option",
    "Error while setting value",
    "Unknown suffix",
    "Wrong value",
    "Unrecognized value",
    "requires an argument",
    "cannot take an argument",
    "Can't open shared library",
    "Unknown/unsupported storage engine",
    "Unknown character set",
    "COLLATION",
    "Cannot allocate memory for the buffer pool",
    "isn't supported by",
    "requires innodb_buffer_pool_size",
];

/// Returns the message in a line of a log such as `2026-01-01T00:00:00Z 0 [ERROR] [MY-000067]
/// [Server] unknown variable ...`, or in a line without such a head.
fn message_about_config(line: &str) -> Option<&str> {
    let is_error = line.contains("[ERROR]") || !line.contains('[');
    if !is_error || !ABOUT_CONFIG.iter().any(|phrase| line.contains(phrase)) {
        return None;
    }

    let after_level = line.split_once("[ERROR]").map_or(line, |(_, text)| text);
    let message = after_level.rsplit_once("] ").map_or(after_level, |(_, text)| text).trim();
    // Removes the path of the program.
    let after_program = message.split_once("mariadbd: ").or(message.split_once("mysqld: "));
    Some(after_program.map_or(message, |(_, text)| text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::config::tests::with_options;
    use crate::servers::mysql::installation::MysqlVersion;

    fn installation(version: &str) -> Installation {
        Installation {
            program: "/b/bin/mysqld".into(),
            version: MysqlVersion::parse(version).unwrap(),
            files: Vec::new(),
            base_dir: "/b".into(),
            share_dir: Some("/b/share".into()),
            plugin_dir: None,
        }
    }

    fn composed(
        version: &str,
        files: &[&str],
        set: &[(&str, &str)],
        connections: u32,
    ) -> Result<ConfigText, SetupError> {
        let (directory, socket) = (Path::new("/d"), Path::new("/s/sock"));
        with_options(files, set, connections, |options| {
            compose(options, &installation(version), directory, socket)
        })
    }

    #[test]
    fn files_come_verbatim_then_options_then_assays_own() {
        let config = composed(
            "8.0.36",
            &["sync_binlog=0 # mine"],
            &[("init-connect", "set @a = '#'"), ("skip_log_bin", ""), ("storage-engine", "innodb")],
            10,
        )
        .unwrap();
        let at = |text: &str| {
            let position = config.text.find(text);
            position.unwrap_or_else(|| panic!("no {text} in {}", config.text))
        };
        assert!(at("basedir=/b\n") < at("sync_binlog=0 # mine\n"));
        assert!(at("sync_binlog") < at("init-connect=\"set @a = '#'\"\n"));
        assert!(at("\nskip_log_bin\n") < at("datadir=/d/data\n"));
        at("socket=/s/sock\n");
        at("\ndefault_storage_engine=InnoDB\n");
        at("secure_file_priv=NULL\n");
        assert!(!config.text.contains("max_connections"));
        assert!(!composed("10.11.2-MariaDB", &[], &[], 1).unwrap().text.contains("secure_file"));
    }

    #[test]
    fn many_clients_get_connections_unless_the_config_sets_them() {
        let text = composed("8.0.36", &["max_connections=50"], &[], 256).unwrap().text;
        assert!(text.find("max_connections = 272") < text.find("max_connections=50"), "{text}");
    }

    #[test]
    fn the_options_of_a_servers_place_come_last() {
        let file =
            "[mysqld]\n#port=1\nlog-error = /x\n[client]\nsocket=/y\n[mysqld_safe]\nuser=u\n";
        let config = composed("8.0.36", &[file], &[("port", "6000")], 1).unwrap();
        assert!(config.text.ends_with("log_error=stderr\n"), "{}", config.text);
        let config = composed("10.11.2-MariaDB", &[file], &[], 1).unwrap();
        assert!(config.text.ends_with("skip_log_error\n"), "{}", config.text);
    }

    #[test]
    fn options_of_files_apply_when_they_are_created() {
        let config = composed(
            "8.0.36",
            &["[mysqld]\ninnodb-page-size = 4k\nrocksdb_x=1\nlower_case_table_names=1"],
            &[("innodb_undo_tablespaces", "4"), ("innodb_buffer_pool_size", "1G")],
            1,
        )
        .unwrap();
        for line in
            ["innodb_page_size=4k\n", "lower_case_table_names=1\n", "innodb_undo_tablespaces=4\n"]
        {
            assert!(config.initial.contains(line), "{}", config.initial);
        }
        assert!(!config.initial.contains("rocksdb") && !config.initial.contains("buffer_pool"));
    }

    #[test]
    fn an_invalid_option_name_is_refused() {
        for name in ["", "a b", "x\ny", "1x", "[mysqld]"] {
            let error = composed("8.0.36", &[], &[(name, "1")], 1).unwrap_err();
            assert!(matches!(error, SetupError::Config { .. }), "{name}");
        }
        assert!(composed("8.0.36", &[], &[("sync_binlog", "1\nport=2")], 1).is_err());
    }

    #[test]
    fn an_option_that_the_help_does_not_list_is_unknown() {
        let help = [
            "mysqld  Ver 8.0.15 for Linux on x86_64",
            "  -b, --basedir=name  Path to installation directory.",
            "  --innodb-buffer-pool-size=# ",
            "  --log-bin[=name]    Configures the name prefix",
        ];
        let help = help.map(String::from);
        let unknown = |name: &str| unknown(&[(name.to_string(), String::new())], &help).is_some();
        for name in ["innodb_buffer_pool_size", "basedir", "skip_log_bin", "Log-Bin", "loose_x"] {
            assert!(!unknown(name), "{name}");
        }
        for name in ["innodb_bufer_pool_size", "skip_log_bins", "ver"] {
            assert!(unknown(name), "{name}");
        }
    }

    #[test]
    fn the_beginning_of_an_options_name_is_not_its_full_name() {
        let help = ["  --innodb-data-home-dir=name ", "  --log-bin[=name]", "  --sync-binlog=# "];
        let help = help.map(String::from);
        let is_refused =
            |name: &str| not_in_full(&[(name.to_string(), String::new())], &help).is_some();

        for name in
            ["innodb_data_home_dir", "Innodb-Data-Home-Dir", "skip_log_bin", "loose_sync_binlog"]
        {
            assert!(!is_refused(name), "{name}");
        }
        assert!(!is_refused("default_storage_engine"));
        for name in ["innodb_data_h", "loose-innodb-data-h", "skip_log_b", "c.sync_binlog", "x"] {
            assert!(is_refused(name), "{name}");
        }
    }

    #[test]
    fn the_servers_message_is_found_in_its_log() {
        for (line, message) in [
            (
                "2026-01-01T00:00:00.000000Z 0 [ERROR] [MY-000067] [Server] unknown variable 'colour=red'.",
                "unknown variable 'colour=red'.",
            ),
            (
                "2026-01-01  0:00:00 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'colour=red'",
                "unknown variable 'colour=red'",
            ),
            (
                "mysqld: Error while setting value 'many' to 'innodb_buffer_pool_size'",
                "Error while setting value 'many' to 'innodb_buffer_pool_size'",
            ),
            (
                "2026-01-01 00:00:00 9223 [ERROR] InnoDB: Unrecognized value many for innodb_flush_method",
                "InnoDB: Unrecognized value many for innodb_flush_method",
            ),
        ] {
            assert_eq!(config_error(&[line.to_string()]).as_deref(), Some(message));
        }
        let other = ["2026-01-01T00:00:00Z 0 [ERROR] [MY-010119] [Server] Aborting".to_string()];
        assert_eq!(config_error(&other), None);
    }
}
