//! The parts of a plan that a stranger may have written.
//!
//! An engine can be told to run a command, to load a library, or to write where it should not, and
//! a statement of SQL can do so, too. So this allows only what is known to be harmless: builds that
//! everybody can fetch, the built-in workloads, and options that name neither a place, a program
//! nor a network address.

use std::path::Path;

use builds::Spec;
use plan::{BUNDLED, Engine, Place, Resolved};
use words::EngineHome;

/// Keys, and beginnings of keys that end with a dot, whose values are numbers, times, words of
/// Assay, or names.
const HARMLESS: [&str; 18] = [
    "name",
    "clients",
    "repeats",
    "time",
    "effect",
    "order",
    "turns",
    "idle",
    "placement",
    "base",
    "against-itself",
    "seed",
    "server-timeout",
    "target",
    "target.",
    "profile.",
    "exact.",
    "workload.",
];

/// The tests in a plan have statements of their own.
const TESTS: &str = ".test.";

/// Keys of a config whose values Assay itself interprets, apart from its tables.
const CONFIG_KEYS: [&str; 13] = [
    "extends",
    "memory",
    "cpus",
    "cpu-quota",
    "replicas",
    "replication",
    "reads",
    "tls",
    "unknown-options",
    "statistics",
    "durability",
    "transactions",
    // Only a name.
    "table-format",
];

/// The tables of options in a config.
const OPTION_TABLES: [&str; 4] = ["set.", "load.", "replica.set.", "factors."];

/// Words in the names of options that name a program, a place, a host, or statements.
const REFUSED_WORDS: [&str; 39] = [
    "address",
    "addresses",
    "basedir",
    "chroot",
    "cmd",
    "command",
    "conninfo",
    "datadir",
    "dir",
    "directories",
    "directory",
    "env",
    // MariaDB's plugin that reports to its maker.
    "feedback",
    "filename",
    "hba",
    "host",
    "include",
    "includedir",
    "init",
    // Names of keys, and of the keyring's programs.
    "keyfile",
    "keyring",
    "libraries",
    "library",
    "passphrase",
    "password",
    "path",
    "paths",
    "plugin",
    "plugins",
    "port",
    "preload",
    "provider",
    "socket",
    // The log of the whole machine.
    "syslog",
    "tmpdir",
    "uri",
    "url",
    "user",
    "wsrep",
];

/// The last words of such names. `innodb_log_file_size` is harmless.
const REFUSED_LAST_WORDS: [&str; 3] = ["file", "tablespace", "tablespaces"];

/// Signs in values of options, apart from letters and digits. A path, a quoted text, and a
/// statement need others.
const VALUE_SIGNS: &str = "_.,:=+-()*% ";
/// Signs in the values of options that hold others.
const NESTED_VALUE_SIGNS: &str = "{};";

/// The most characters of a value, more than any harmless option has.
const VALUE_LENGTH_MAX: usize = 500;

/// A value that a bundle may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The dotted key.
    pub key: String,
    /// The reason, such as `may name a program or a place`.
    pub why: &'static str,
    /// The place in the plan.
    pub place: Place,
    /// The key names the build of an engine.
    pub is_build: bool,
}

/// Returns the values of a plan that a bundle may not have. What the user gave by `--set` is the
/// user's own.
pub fn refused_values(values: &[Resolved]) -> Vec<Refused> {
    let mut refused = Vec::new();
    for value in values {
        if !matches!(value.place, Place::File(_)) {
            continue;
        }

        if let Some(why) = refusal_of(&value.key, value.value.trim_matches('"')) {
            let (key, place) = (value.key.clone(), value.place);
            let is_build = is_of_engine(&key);
            refused.push(Refused { key, why, place, is_build });
        }
    }

    refused
}

/// Returns whether a key names the build of an engine.
fn is_of_engine(key: &str) -> bool {
    let engine = key.strip_prefix("build.").and_then(|build| build.split_once('.'));
    engine.is_some_and(|(_, key)| Engine::NAMES.iter().any(|(name, _)| *name == key))
}

/// Returns why a bundle may not have a value; `None` if it may.
fn refusal_of(key: &str, value: &str) -> Option<&'static str> {
    const PLACE: &str = "names a place on the machine";

    if let Some(build) = key.strip_prefix("build.") {
        let (_, key) = build.split_once('.').unwrap_or_default();
        return refusal_of_build(key, value);
    }

    if let Some(config) = key.strip_prefix("config.") {
        // An empty config has no key.
        let (engine, named) = config.split_once('.')?;
        let (_, key) = named.split_once('.')?;
        return refusal_of_option(engine, key, value);
    }

    match key {
        "reuse" if matches!(value, "run" | "false") => None,
        "keep-data" if value == "false" => None,
        "listen" if value == "127.0.0.1" => None,
        _ if key.starts_with("workload.") && key.contains(TESTS) => {
            Some("has statements of its own")
        }
        _ if HARMLESS.iter().any(|known| is_key_of(key, known)) => None,
        _ => Some(PLACE),
    }
}

/// Returns whether a key is the known one, or begins with it if that ends with a dot.
fn is_key_of(key: &str, known: &str) -> bool {
    key == known || known.ends_with('.') && key.starts_with(known)
}

/// Returns why a bundle may not have a key of a build.
fn refusal_of_build(key: &str, value: &str) -> Option<&'static str> {
    const BUILD: &str = "does not name a build that everybody can fetch by its spec or version";

    if key.starts_with("factors.") {
        return None;
    }

    let Some((_, engine)) = Engine::NAMES.iter().find(|(name, _)| *name == key) else {
        return Some(BUILD);
    };

    let is_bundled = engine.facts().home == EngineHome::Bundled && value == BUNDLED;
    let is_public = is_bundled || is_public_build(value);
    if is_public { None } else { Some(BUILD) }
}

/// Returns whether a build is the same on all machines: one that can be fetched, or the
/// distribution's. A file of this name in the working directory may be what the author meant.
fn is_public_build(source: &str) -> bool {
    let is_version = source.starts_with(|first: char| first.is_ascii_digit())
        && source.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_spec = matches!(Spec::parse(source), Ok(Spec::Release { .. } | Spec::Debian { .. }));
    (is_spec || is_version || source == "distribution") && !Path::new(source).exists()
}

/// Returns why a bundle may not have a key of a config.
fn refusal_of_option(engine: &str, key: &str, value: &str) -> Option<&'static str> {
    const NAME: &str = "may name a program, a place, or an address";
    const VALUE: &str = "has a value that is not a number or a word";
    const SYSTEM_LOG: &str = "would write to the log of the whole machine";

    let Some(name) = OPTION_TABLES.iter().find_map(|table| key.strip_prefix(table)) else {
        let own = key.strip_prefix("replica.").unwrap_or(key);
        return if CONFIG_KEYS.contains(&own) { None } else { Some(NAME) };
    };

    let engine_facts = Engine::named(engine).map(Engine::facts);
    let has_parts = engine_facts.is_some_and(|facts| facts.has_nested_options);
    let is_of_value = |sign: char| {
        sign.is_ascii_alphanumeric()
            || VALUE_SIGNS.contains(sign)
            || has_parts && NESTED_VALUE_SIGNS.contains(sign)
    };

    if value.chars().count() > VALUE_LENGTH_MAX || !value.chars().all(is_of_value) {
        return Some(VALUE);
    }

    if !key.starts_with("factors.") && is_refused_name(engine, name) {
        return Some(NAME);
    }
    if is_system_log(value) { Some(SYSTEM_LOG) } else { None }
}

/// Returns whether the name of an option has a word that is refused. MySQL and MariaDB accept the
/// beginning of a name, so a beginning of a word counts like the word, if it is the last one.
fn is_refused_name(engine: &str, name: &str) -> bool {
    let name = name.trim_matches('"').to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(['_', '-', '.', ' ']).filter(|word| !word.is_empty()).collect();

    let Some((last, before)) = words.split_last() else {
        return true;
    };

    let is_refused = |word: &&str| REFUSED_WORDS.contains(word);
    let engine_facts = Engine::named(engine).map(Engine::facts);
    let is_beginning = engine_facts.is_some_and(|facts| facts.accepts_short_names)
        && last.len() >= BEGINNING_LENGTH_MIN;

    before.iter().any(is_refused)
        || is_refused(last)
        || REFUSED_LAST_WORDS.contains(last)
        || is_beginning && REFUSED_WORDS.iter().any(|word| word.starts_with(*last))
}

/// Returns whether a value names a log of the system among others: `stderr,syslog`.
fn is_system_log(value: &str) -> bool {
    let mut destinations = value.split([',', ' ']);
    destinations.any(|destination| {
        ["syslog", "eventlog"].iter().any(|log| destination.eq_ignore_ascii_case(log))
    })
}

/// Shorter beginnings of a word are too common.
const BEGINNING_LENGTH_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOAD: &str = "[workload.sysbench]\nrows = 1000\nsteps = ['load', 'point-query']\n";
    const BUILD: &str = "[build.a]\npostgres = 'postgres@17.2'\n";

    /// Returns the keys that are refused in a plan, and the reasons.
    fn refused(text: &str, sets: &[&str]) -> Vec<(String, &'static str)> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let (plan, _) = plan::parse("p.toml", text, &sets).unwrap_or_else(|errors| {
            panic!("{}", plan::render(&errors, "p.toml", text, &sets, false))
        });
        refused_values(&plan.resolved).into_iter().map(|value| (value.key, value.why)).collect()
    }

    fn refused_keys(text: &str) -> Vec<String> {
        refused(text, &[]).into_iter().map(|(key, _)| key).collect()
    }

    fn with_option(engine: &str, option: &str) -> String {
        let (workload, build) = match engine {
            "rocksdb" => ("[workload.kv]\n", "[build.a]\nrocksdb = 'rocksdb@9.9.3'\n"),
            "mysql" => (WORKLOAD, "[build.a]\nmysql = 'mysql@8.0'\n"),
            "sqlite" => (WORKLOAD, "[build.a]\nsqlite = 'bundled'\n"),
            _ => (WORKLOAD, BUILD),
        };
        format!("{workload}{build}[config.{engine}.x]\nset.{option}\n")
    }

    #[test]
    fn a_plan_of_public_builds_and_numbers_is_accepted() {
        for text in [
            format!(
                "repeats = 5\nturns = 'auto'\nreuse = 'run'\n[exact]\n{WORKLOAD}{BUILD}factors.jit = 'on'"
            ),
            format!("{WORKLOAD}[build.a]\npostgres = 'distribution'\n[build.b]\npostgres = '15'"),
            format!("{WORKLOAD}[build.a]\nmysql = 'debian:sid/mysql-server-core'"),
            format!("{WORKLOAD}{BUILD}[config.postgres.x]\ntls = true\nmemory = '1GiB'"),
            format!("{WORKLOAD}{BUILD}[config.postgres.x]\ntable-format = 'heap2'"),
            with_option("postgres", "shared_buffers = '4GB'"),
            with_option("postgres", "synchronous_standby_names = 'FIRST 1 (*)'"),
            with_option("postgres", "max_connections = 100"),
            with_option("mysql", "innodb_log_file_size = '1G'"),
            with_option("mysql", "innodb_buffer_pool_load_at_startup = false"),
            with_option("mysql", "optimizer_switch = 'index_merge=off,mrr=on'"),
            with_option("sqlite", "journal_mode = 'wal'"),
            with_option("rocksdb", "block_cache = '{capacity=1G;num_shard_bits=6}'"),
            with_option("rocksdb", "target_file_size_base = '64M'"),
        ] {
            assert_eq!(refused(&text, &[]), [], "{text}");
        }
    }

    #[test]
    fn options_that_reach_beyond_the_server_are_refused() {
        for (engine, option) in [
            ("postgres", "archive_command = 'reboot'"),
            ("postgres", "shared_preload_libraries = 'x'"),
            ("postgres", "jit_provider = 'x'"),
            ("postgres", "hba_file = 'x'"),
            ("postgres", "listen_addresses = '*'"),
            ("postgres", "default_tablespace = 'x'"),
            ("postgres", "log_line_prefix = '$(reboot)'"),
            ("postgres", "application_name = '../x'"),
            ("postgres", "log_destination = 'stderr, syslog'"),
            ("postgres", "syslog_ident = 'x'"),
            ("postgres", "krb_server_keyfile = 'x'"),
            ("mysql", "feedback = 'ON'"),
            ("mysql", "feedback_user_info = 'x'"),
            ("mysql", "log_syslog = 'ON'"),
            ("mysql", "plugin-load = 'x'"),
            ("mysql", "plugin-l = 'x'"),
            ("mysql", "init_connect = 'x'"),
            ("mysql", "tmpd = 'x'"),
            ("mysql", "wsrep_notify_cm = 'reboot'"),
            ("mysql", "general_log_file = 'x'"),
            ("sqlite", "temp_store_directory = 'x'"),
            ("sqlite", "synchronous = 'full; attach x as y'"),
            ("rocksdb", "wal_dir = 'x'"),
            ("rocksdb", "db_paths = 'x'"),
            ("rocksdb", "block_cache = '{id=x;path=/etc}'"),
        ] {
            let text = with_option(engine, option);
            assert_eq!(refused_keys(&text).len(), 1, "{option}");
        }
    }

    #[test]
    fn places_servers_and_statements_are_refused() {
        let test = "[workload.sysbench.test.mine]\ngroup = 'point'\n[[workload.sysbench.test.mine.statement]]\nsql = 'select 1'\n";
        for (text, keys) in [
            (format!("{WORKLOAD}[build.a]\npostgres = '/opt/pg'"), vec!["build.a.postgres"]),
            (format!("{WORKLOAD}[build.a]\npostgres = 'mine'"), vec!["build.a.postgres"]),
            (format!("{WORKLOAD}[build.a]\npostgres = 'dir:/opt=x'"), vec!["build.a.postgres"]),
            // The tests run in the crate's folder: what has a version's name there would be run.
            (format!("{WORKLOAD}[build.a]\npostgres = '../runner'"), vec!["build.a.postgres"]),
            (
                format!(
                    "{WORKLOAD}[build.a]\nurl = 'postgresql://h/d'\nreplica-url = 'postgresql://g/d'\n\
                     host-metrics = 'http://h:9100/metrics'\nhost-disks = ['sda']"
                ),
                vec![
                    "build.a.url",
                    "build.a.replica-url",
                    "build.a.host-metrics",
                    "build.a.host-disks",
                ],
            ),
            (format!("data-dir = '/d'\n{WORKLOAD}{BUILD}"), vec!["data-dir"]),
            (format!("server-user = 'root'\n{WORKLOAD}{BUILD}"), vec!["server-user"]),
            (format!("listen = '192.0.2.1'\n{WORKLOAD}{BUILD}"), vec!["listen"]),
            (
                format!("keep-data = true\nreuse = true\n{WORKLOAD}{BUILD}"),
                vec!["keep-data", "reuse"],
            ),
            (
                format!("{WORKLOAD}{BUILD}[config.postgres.x]\nfile = 'x'"),
                vec!["config.postgres.x.file"],
            ),
        ] {
            assert_eq!(refused_keys(&text), keys, "{text}");
        }
        for key in [
            "table-options = 'tablespace x'",
            "extensions = ['plpython3u']",
            "setup-sql = ['copy a to program \"reboot\"']",
            "init-arguments = ['--wal-segsize=64']",
            "env.LD_PRELOAD = 'x'",
        ] {
            let text = format!("{WORKLOAD}{BUILD}[config.postgres.x]\n{key}");
            assert_eq!(refused_keys(&text).len(), 1, "{key}");
        }
        for key in ["before-step", "after-step"] {
            assert_eq!(refused_keys(&format!("{key} = 'x'\n{WORKLOAD}{BUILD}")), [key]);
        }
        let text = format!("{}{test}{BUILD}", WORKLOAD.replace("'point-query'", "'mine'"));
        let refused = refused(&text, &[]);
        assert!(!refused.is_empty());
        assert!(refused.iter().all(|(_, why)| *why == "has statements of its own"), "{refused:?}");
    }

    #[test]
    fn what_the_user_sets_is_the_users_own() {
        let text = format!("{WORKLOAD}[build.a]\npostgres = '/path/to/build'");
        assert_eq!(refused(&text, &["build.a.postgres=/opt/pg"]), []);
        assert_eq!(refused(&text, &["data-dir=/tmp/x"]).len(), 1);
    }
}
