//! The text of the server's option file, and what the server says when it does not like it.

use std::path::Path;

use super::dialect::StorageEngine;
use super::installation::{Installation, ROCKSDB_PLUGIN};
use super::notation::{MysqlNotation, plain};
use crate::SetupError;
use crate::local::config::{ConfigText, Format, Given};
use crate::local::server::StartOptions;
use crate::notation::Notation;

pub(super) static FORMAT: Format = Format {
    server: "MySQL",
    notation: &MysqlNotation,
    group: "[mysqld]\n",
    name_chars: &['_', '-', '.'],
    connections: 151,
    ours: &[
        "admin_address",
        "bind_address",
        "daemonize",
        "datadir",
        "log_error",
        "mysqlx",
        "pid_file",
        "port",
        "skip_networking",
        "socket",
        "user",
    ],
};

/// From here on MariaDB makes a key for TLS at every start where it is given none.
const MARIADB_MAKES_KEYS: (u32, u32, u32) = (11, 4, 0);

/// Options that hold from the moment at which files are made, and later can't be changed: making the system tables
/// needs them too. Others are left to the server proper, because they may belong to a part that is not loaded then.
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

/// The option that says where tables are made, by the key of its name.
const STORAGE_ENGINE: &str = "default_storage_engine";

/// Puts the option files together. The server has its files in `directory`: `data` and `tmp` in it.
///
/// # Errors
/// [`SetupError::Config`] for an option whose name can't be one, or a storage engine that the build does not have.
pub(super) fn compose(
    options: &StartOptions<'_>,
    build: &Installation,
    directory: &Path,
    socket: &Path,
) -> Result<ConfigText, SetupError> {
    let given = FORMAT.given(options)?;
    let places = places(build, directory);
    let mut built = format!("# Where this build and its files are.\n[mysqld]\n{places}");
    if let Some(plugin) = rocksdb_plugin(build, &given)? {
        built += &format!("\n# The storage engine of the config.\nplugin_load_add={plugin}\n");
    }
    let datadir = assigned("datadir", &directory.join("data").display().to_string());
    let mut own = format!(
        "{datadir}\n{}\n{}\nskip_networking\nloose_mysqlx=OFF\n",
        assigned("socket", &socket.display().to_string()),
        assigned(
            "pid_file",
            &directory.join("server.pid").display().to_string()
        ),
    );
    if given.iter().any(|(key, _)| key == "log_error") {
        own.push_str(match build.version.is_mysql_from(5, 7, 0) {
            true => "log_error=stderr\n",
            false => "skip_log_error\n",
        });
    }
    let is_initial = |(key, _): &&Given| INITIAL.contains(&key.as_str());
    let initial = given
        .iter()
        .filter(is_initial)
        .map(|(key, value)| match value {
            Some(value) => assigned(key, value) + "\n",
            None => format!("{key}\n"),
        });
    Ok(ConfigText {
        initial: format!(
            "[mysqld]\n{places}{}{datadir}\n",
            initial.collect::<String>()
        ),
        ..FORMAT.compose(options, &given, &built, line, &own)
    })
}

/// Where the build has its parts, and the server its temporary files; and what a server without TCP need not do.
fn places(it: &Installation, directory: &Path) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, path: &Path| {
        lines += &(assigned(name, &path.display().to_string()) + "\n");
    };
    line("basedir", &it.base_dir);
    if let Some(share) = &it.share_dir {
        line("lc_messages_dir", share);
        if share.join("charsets").is_dir() {
            line("character_sets_dir", &share.join("charsets"));
        }
    }
    if let Some(plugins) = &it.plugin_dir {
        line("plugin_dir", plugins);
    }
    line("tmpdir", &directory.join("tmp"));
    if it.version.is_mysql_from(5, 7, 0) {
        // The directory that packages put here need not exist.
        lines.push_str("secure_file_priv=NULL\n");
    }
    if it.version.is_mariadb() && it.version.number >= MARIADB_MAKES_KEYS {
        // For connections by TCP, of which there are none. Some builds take minutes to make it.
        lines.push_str("ssl=OFF\n");
    }
    lines
}

/// One of the plan's options as a line.
fn line(name: &str, value: &str) -> String {
    match MysqlNotation.key(name) {
        key if key == STORAGE_ENGINE => assigned(&key, StorageEngine::named(value).name()),
        // A word that stands alone.
        key if value.is_empty() || (key.starts_with("skip_") && value == "true") => name.to_owned(),
        _ => assigned(name, value),
    }
}

fn assigned(name: &str, value: &str) -> String {
    format!("{name}={}", quoted(value))
}

/// The file of MyRocks, where the config asks for that and does not load it itself.
fn rocksdb_plugin(
    build: &Installation,
    given: &[Given],
) -> Result<Option<&'static str>, SetupError> {
    let mut engines = given.iter().filter(|(key, _)| key == STORAGE_ENGINE);
    let asked = engines
        .next_back()
        .and_then(|(_, engine)| engine.as_deref());
    let is_loaded = given.iter().any(|(key, value)| {
        let plugins = value.as_deref().unwrap_or("").to_ascii_lowercase();
        key.starts_with("plugin_load") && plugins.contains("rocksdb")
    });
    if asked.map(StorageEngine::named) != Some(StorageEngine::RocksDb) || is_loaded {
        return Ok(None);
    }
    if build.plugin(ROCKSDB_PLUGIN).is_some() {
        return Ok(Some(ROCKSDB_PLUGIN));
    }
    // Builds for which MyRocks is the reason to be have it built in. MySQL's own and MariaDB's never do.
    let place = match &build.plugin_dir {
        Some(directory) => format!(" in `{}`", directory.display()),
        None if build.version.is_mariadb() => String::new(),
        None => return Ok(None),
    };
    Err(SetupError::Config {
        what: format!(
            "the storage engine is MyRocks, and {} has no `{ROCKSDB_PLUGIN}`{place}",
            build.version
        ),
        help: "use a build that has it (Debian: `apt-get install mariadb-plugin-rocksdb`), or set `plugin_load_add` and `plugin_dir`"
            .into(),
    })
}

/// A value as option files have it: `#` begins a comment, and `\` an escape.
fn quoted(value: &str) -> String {
    let is_plain =
        !value.contains(['#', '"', '\'', '\\', ';']) && value.trim() == value && !value.is_empty();
    if is_plain {
        value.to_string()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// Returns the first option of `set` that the `help` of a server does not list. Beginnings of names are good, and so is
/// what may stand before them.
pub(super) fn unknown<'a>(set: &'a [(String, String)], help: &[String]) -> Option<&'a str> {
    let listed = |line: &String| {
        let name = line.trim_start().split_once("--")?.1;
        let end = name.find(['=', ' ', '[']).unwrap_or(name.len());
        Some(plain(&name[..end]))
    };
    let known: Vec<String> = help.iter().filter_map(listed).collect();
    let is_known = |name: &str| {
        let wanted = plain(name);
        let prefixes = ["skip_", "disable_", "enable_", "maximum_"];
        let bare = prefixes.iter().find_map(|it| wanted.strip_prefix(it));
        known
            .iter()
            .any(|it| it.starts_with(&wanted) || bare.is_some_and(|bare| it.starts_with(bare)))
    };
    let is_lenient = |name: &str| name.starts_with("loose") || name.contains('.');
    let mut names = set.iter().map(|(name, _)| name.as_str());
    names.find(|name| !is_lenient(name) && !is_known(name))
}

/// What in the log of a server that did not start is about its configuration; `None` if nothing is. English, because
/// the servers' messages are when nothing else is asked for.
pub(super) fn complaint(log: &[String]) -> Option<String> {
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
    let said = |line: &String| {
        // `2026-01-01T00:00:00Z 0 [ERROR] [MY-000067] [Server] unknown variable ...`, or only its end.
        let is_error = line.contains("[ERROR]") || !line.contains('[');
        let is_about_config = is_error && ABOUT_CONFIG.iter().any(|words| line.contains(words));
        let text = line
            .split_once("[ERROR]")
            .map_or(line.as_str(), |(_, text)| text);
        let text = text.rsplit_once("] ").map_or(text, |(_, text)| text).trim();
        // The program's own path says nothing about the config.
        let text = text
            .split_once("mariadbd: ")
            .or_else(|| text.split_once("mysqld: "))
            .map_or(text, |(_, text)| text);
        is_about_config.then(|| text.to_string())
    };
    let mut complaints: Vec<String> = log.iter().filter_map(said).collect();
    complaints.dedup();
    (!complaints.is_empty()).then(|| complaints.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::config::tests::with_options;
    use crate::mysql::installation::Version;

    fn installation(version: &str) -> Installation {
        Installation {
            program: "/b/bin/mysqld".into(),
            version: Version::parse(version).unwrap(),
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
    fn files_come_verbatim_then_options_then_ours() {
        let config = composed(
            "8.0.36",
            &["sync_binlog=0 # mine"],
            &[
                ("init-connect", "set @a = '#'"),
                ("skip_log_bin", ""),
                ("storage-engine", "innodb"),
            ],
            10,
        )
        .unwrap();
        let at = |text: &str| {
            let found = config.text.find(text);
            found.unwrap_or_else(|| panic!("no {text} in {}", config.text))
        };
        assert!(at("basedir=/b\n") < at("sync_binlog=0 # mine\n"));
        assert!(at("sync_binlog") < at("init-connect=\"set @a = '#'\"\n"));
        assert!(at("\nskip_log_bin\n") < at("datadir=/d/data\n"));
        at("socket=/s/sock\n");
        at("\ndefault_storage_engine=InnoDB\n");
        at("secure_file_priv=NULL\n");
        assert!(config.notes.is_empty());
        assert!(!config.text.contains("max_connections"));
        assert!(
            !composed("10.11.2-MariaDB", &[], &[], 1)
                .unwrap()
                .text
                .contains("secure_file")
        );
    }

    #[test]
    fn many_clients_get_connections_unless_the_config_says_otherwise() {
        let text = composed("8.0.36", &["max_connections=50"], &[], 256)
            .unwrap()
            .text;
        assert!(
            text.find("max_connections = 272") < text.find("max_connections=50"),
            "{text}"
        );
    }

    #[test]
    fn options_that_are_overridden_are_noted() {
        let file =
            "[mysqld]\n#port=1\nlog-error = /x\n[client]\nsocket=/y\n[mysqld_safe]\nuser=u\n";
        let config = composed("8.0.36", &[file], &[("port", "6000")], 1).unwrap();
        assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
        assert!(config.notes[0].contains("`log_error`") && config.notes[1].contains("`port`"));
        assert!(
            config.text.ends_with("log_error=stderr\n"),
            "{}",
            config.text
        );
        let config = composed("10.11.2-MariaDB", &[file], &[], 1).unwrap();
        assert!(config.text.ends_with("skip_log_error\n"), "{}", config.text);
    }

    #[test]
    fn what_files_are_made_with_holds_when_they_are_made() {
        let config = composed(
            "8.0.36",
            &["[mysqld]\ninnodb-page-size = 4k\nrocksdb_x=1\nlower_case_table_names=1"],
            &[
                ("innodb_undo_tablespaces", "4"),
                ("innodb_buffer_pool_size", "1G"),
            ],
            1,
        )
        .unwrap();
        for line in [
            "innodb_page_size=4k\n",
            "lower_case_table_names=1\n",
            "innodb_undo_tablespaces=4\n",
        ] {
            assert!(config.initial.contains(line), "{}", config.initial);
        }
        assert!(!config.initial.contains("rocksdb") && !config.initial.contains("buffer_pool"));
    }

    #[test]
    fn a_name_that_would_be_a_line_of_its_own_is_refused() {
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
        for name in [
            "innodb_buffer_pool_size",
            "basedir",
            "skip_log_bin",
            "Log-Bin",
            "loose_x",
        ] {
            assert!(!unknown(name), "{name}");
        }
        for name in ["innodb_bufer_pool_size", "skip_log_bins", "ver"] {
            assert!(unknown(name), "{name}");
        }
    }

    #[test]
    fn the_servers_complaint_is_found_in_its_log() {
        for (line, said) in [
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
            assert_eq!(complaint(&[line.to_string()]).as_deref(), Some(said));
        }
        let other = ["2026-01-01T00:00:00Z 0 [ERROR] [MY-010119] [Server] Aborting".to_string()];
        assert_eq!(complaint(&other), None);
    }
}
