//! The text of the server's configuration file, and what the server says when it does not like it.

use std::path::Path;

use super::notation::{PostgresNotation, is_name_char};
use crate::SetupError;
use crate::notation::Notation as _;

/// What assay decides, whatever the plan says: where the server listens and logs, and where its files are. A
/// distribution's file names those of the system's own cluster, which must not be touched.
const OURS: [&str; 11] = [
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "stats_temp_directory",
    "unix_socket_directories",
    "unix_socket_group",
];

/// What stands before a file of the plan, and before its options.
const FILE_HEADER: &str = "# File ";
const SET_HEADER: &str = "# Options of the config.";

/// What `initdb` allows, and what assay's own connections and the server's reserve need of it.
const CONNECTIONS_DEFAULT: u32 = 100;
const CONNECTIONS_SPARE: u32 = 16;

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigText {
    /// Its text.
    pub(super) text: String,
    /// Options of the plan that it overrides, for people.
    pub(super) notes: Vec<String>,
}

/// The parts of the configuration file, in the order in which they hold: a later one wins.
pub(super) struct Parts<'a> {
    /// What `initdb` made. Its configuration file has the values of a fresh installation of this build.
    pub(super) cluster: &'a Path,
    /// The build's major version.
    pub(super) major: u32,
    /// Connections that the run needs.
    pub(super) connections: u32,
    /// The plan's files, verbatim.
    pub(super) files: &'a [String],
    /// The plan's options.
    pub(super) set: &'a [(String, String)],
    /// Where the server listens.
    pub(super) socket_directory: &'a Path,
    /// The number in the socket's name.
    pub(super) port: u16,
}

/// Puts the configuration file together.
///
/// # Errors
/// [`SetupError::Config`] for an option whose name can't be one.
pub(super) fn compose(parts: &Parts<'_>) -> Result<ConfigText, SetupError> {
    let mut text = format!(
        "# What initdb wrote: the values of a fresh installation.\ninclude {}\n",
        quoted_path(&parts.cluster.join("postgresql.conf"))
    );
    let wanted = parts.connections.saturating_add(CONNECTIONS_SPARE);
    if wanted > CONNECTIONS_DEFAULT {
        text.push_str(&format!(
            "\n# Enough for the run's clients.\nmax_connections = {wanted}\n"
        ));
    }
    let mut overridden = Vec::new();
    for (number, file) in parts.files.iter().enumerate() {
        text.push_str(&format!(
            "\n{FILE_HEADER}{} of the config, verbatim.\n{file}",
            number + 1
        ));
        if !file.ends_with('\n') {
            text.push('\n');
        }
        let options = PostgresNotation.options(file).into_iter();
        overridden.extend(options.map(|(name, _)| name.to_ascii_lowercase()));
    }
    if !parts.set.is_empty() {
        text.push_str(&format!("\n{SET_HEADER}\n"));
    }
    for (name, value) in parts.set {
        if !is_name(name) {
            return Err(SetupError::Config {
                what: format!("`{name}` can't be the name of an option of PostgreSQL"),
                help: "names are letters, digits, `_` and `.`".into(),
            });
        }
        if value.contains(['\n', '\0']) {
            return Err(SetupError::Config {
                what: format!("option `{name}` has a value of several lines"),
                help: "write it in one line".into(),
            });
        }
        text.push_str(&format!("{name} = {}\n", quoted(value)));
        overridden.push(name.to_ascii_lowercase());
    }
    text.push_str(&format!(
        "\n# Assay's own: its cluster, a private socket, and the log on standard error.\n\
         data_directory = {}\n\
         hba_file = {}\n\
         ident_file = {}\n\
         external_pid_file = ''\n\
         listen_addresses = ''\n\
         port = {}\n\
         unix_socket_directories = {}\n\
         unix_socket_group = ''\n\
         log_destination = 'stderr'\n\
         logging_collector = off\n",
        quoted_path(parts.cluster),
        quoted_path(&parts.cluster.join("pg_hba.conf")),
        quoted_path(&parts.cluster.join("pg_ident.conf")),
        parts.port,
        quoted(&one_of_list(parts.socket_directory)),
    ));
    if parts.major < 15 {
        text.push_str("stats_temp_directory = 'pg_stat_tmp'\n");
    }
    overridden.retain(|name| OURS.contains(&name.as_str()));
    overridden.sort_unstable();
    overridden.dedup();
    let notes = overridden
        .into_iter()
        .map(|name| format!("option `{name}` of the config is not used: assay decides where its servers listen and log, and where their files are"))
        .collect();
    Ok(ConfigText { text, notes })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.chars().all(is_name_char)
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// A directory as the single element of a list of directories.
fn one_of_list(directory: &Path) -> String {
    format!(
        "\"{}\"",
        directory.display().to_string().replace('"', "\"\"")
    )
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// What in the log of a server that did not start is about its configuration; `None` if nothing is. English, because
/// the cluster's locale is C.
pub(super) fn complaint(log: &[String]) -> Option<String> {
    const ABOUT_CONFIG: [&str; 8] = [
        "unrecognized configuration parameter",
        "invalid value for parameter",
        "is outside the valid range for parameter",
        "requires a ",
        "cannot be changed",
        "syntax error in file",
        "could not open configuration file",
        "could not open configuration directory",
    ];
    // Words that belong to a complaint about the configuration only when the server ended with them.
    const FATAL: [&str; 11] = [
        "must be",
        "requires wal_level",
        "requires \"wal_level\"",
        "cannot be enabled when",
        "could not load server certificate file",
        "private key file",
        "could not map anonymous shared memory",
        "could not access file",
        "could not load library",
        "is not supported by this build",
        "huge pages",
    ];
    let said = |line: &String| {
        // What is found wrong before there is a log has no level.
        if let Some(text) = line.strip_prefix("postgres: ")
            && text.contains("must be")
        {
            return Some(text.to_string());
        }
        let (level, text) = ["LOG:", "FATAL:", "ERROR:"]
            .iter()
            .find_map(|level| Some((*level, line.split_once(level)?.1.trim())))?;
        let is_about_config = ABOUT_CONFIG.iter().any(|words| text.contains(words))
            || (level == "FATAL:" && FATAL.iter().any(|words| text.contains(words)));
        is_about_config.then(|| text.to_string())
    };
    let complaints: Vec<String> = log.iter().filter_map(said).collect();
    if complaints.is_empty() {
        return None;
    }
    let more = log.iter().filter_map(|line| {
        let (_, text) = line.split_once("DETAIL:").or(line.split_once("HINT:"))?;
        Some(text.trim().to_string())
    });
    Some(
        complaints
            .into_iter()
            .chain(more)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// Returns a complaint without the path of `config_file`, which is gone when it is read, and with the lines of the plan's
/// files instead of those of its `text`.
pub(super) fn without_places(complaint: &str, config_file: &Path, text: &str) -> String {
    let mark = format!(" in file \"{}\" line ", config_file.display());
    let mut parts = complaint.split(&mark);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.find(|char: char| !char.is_ascii_digit());
        let (line, rest) = part.split_at(digits.unwrap_or(part.len()));
        let before = text.lines().take(line.parse().unwrap_or(0));
        let mut file = None;
        for line in before {
            match line
                .strip_prefix(FILE_HEADER)
                .and_then(|rest| rest.split_once(' '))
            {
                Some((number, _)) => file = Some((number, 0)),
                None if line == SET_HEADER => file = None,
                None => file = file.map(|(number, line)| (number, line + 1)),
            }
        }
        if let Some((number, line)) = file {
            out.push_str(&format!(" in line {line} of file {number} of the config"));
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(files: &'a [String], set: &'a [(String, String)]) -> Parts<'a> {
        Parts {
            cluster: Path::new("/c"),
            major: 15,
            connections: 10,
            files,
            set,
            socket_directory: Path::new("/s"),
            port: 5432,
        }
    }

    #[test]
    fn files_come_verbatim_then_options_then_ours() {
        let files = ["work_mem = 8MB # mine".to_string()];
        let set = [("archive_command".to_string(), "echo 'a\\b'".to_string())];
        let config = compose(&parts(&files, &set)).unwrap();
        let at = |text: &str| {
            config
                .text
                .find(text)
                .unwrap_or_else(|| panic!("no {text} in {}", config.text))
        };
        assert!(at("include '/c/postgresql.conf'\n") < at("work_mem = 8MB # mine\n"));
        assert!(at("work_mem") < at("archive_command = 'echo ''a\\\\b'''\n"));
        assert!(at("archive_command") < at("listen_addresses = ''\n"));
        assert!(config.notes.is_empty());
    }

    #[test]
    fn the_files_of_another_cluster_are_not_used() {
        let files =
            ["data_directory = '/theirs'\nstats_temp_directory = '/run/theirs'\n".to_string()];
        for (major, has_collector) in [(14, true), (15, false)] {
            let config = compose(&Parts {
                major,
                ..parts(&files, &[])
            })
            .unwrap();
            let ours = config.text.rsplit_once("Assay's own").unwrap().1;
            assert!(ours.contains("data_directory = '/c'\n"), "{ours}");
            assert_eq!(ours.contains("stats_temp_directory"), has_collector);
            assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
        }
    }

    #[test]
    fn paths_keep_their_blanks_quotes_and_commas() {
        let text = compose(&Parts {
            cluster: Path::new("/it's a \"c\\"),
            socket_directory: Path::new("/a, \"b"),
            ..parts(&[], &[])
        })
        .unwrap()
        .text;
        assert!(
            text.contains("data_directory = '/it''s a \"c\\\\'\n"),
            "{text}"
        );
        assert!(
            text.contains("unix_socket_directories = '\"/a, \"\"b\"'\n"),
            "{text}"
        );
    }

    #[test]
    fn many_clients_get_connections_unless_the_config_says_otherwise() {
        let files = ["max_connections = 50".to_string()];
        let few = compose(&parts(&[], &[])).unwrap().text;
        assert!(!few.contains("max_connections"), "{few}");
        let many = compose(&Parts {
            connections: 256,
            ..parts(&files, &[])
        })
        .unwrap()
        .text;
        assert!(
            many.find("max_connections = 272") < many.find("max_connections = 50"),
            "{many}"
        );
    }

    #[test]
    fn an_option_that_is_overridden_is_noted() {
        let files = ["#port = 1\n  Listen_Addresses='*'\n".to_string()];
        let set = [("port".to_string(), "6000".to_string())];
        let notes = compose(&parts(&files, &set)).unwrap().notes;
        assert_eq!(notes.len(), 2);
        assert!(
            notes[0].contains("`listen_addresses`") && notes[1].contains("`port`"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_name_that_would_be_a_line_of_its_own_is_refused() {
        for name in ["", "a b", "x\ny", "1x"] {
            let set = [(name.to_string(), "1".to_string())];
            assert!(
                matches!(compose(&parts(&[], &set)), Err(SetupError::Config { .. })),
                "{name}"
            );
        }
        let set = [("work_mem".to_string(), "1\nport=2".to_string())];
        assert!(compose(&parts(&[], &set)).is_err());
    }

    #[test]
    fn a_complaint_names_the_line_of_the_plans_file() {
        let files = ["a = 1\n".to_string(), "b = 2\nc d = 3\n".to_string()];
        let set = [("work_mem".to_string(), "lots".to_string())];
        let text = compose(&parts(&files, &set)).unwrap().text;
        let line = |start: &str| {
            let at = text.lines().position(|line| line.starts_with(start));
            at.unwrap_or_else(|| panic!("no {start} in {text}")) + 1
        };
        let of_line = |line: usize| {
            let complaint = format!("syntax error in file \"/x\" line {line}, near token \"d\"");
            without_places(&complaint, Path::new("/x"), &text)
        };
        assert_eq!(
            of_line(line("c d")),
            "syntax error in line 2 of file 2 of the config, near token \"d\""
        );
        assert_eq!(of_line(line("work_mem")), "syntax error, near token \"d\"");
    }

    #[test]
    fn the_servers_complaint_is_found_in_its_log() {
        let log: Vec<String> = [
            "2026-01-01 00:00:00.000 UTC [1] LOG:  unrecognized configuration parameter \"colour\" in file \"/x\" line 9",
            "2026-01-01 00:00:00.000 UTC [1] FATAL:  configuration file \"/x\" contains errors",
        ]
        .map(String::from)
        .to_vec();
        assert_eq!(
            complaint(&log).unwrap(),
            "unrecognized configuration parameter \"colour\" in file \"/x\" line 9"
        );
        for line in [
            "postgres: superuser_reserved_connections (3) must be less than max_connections (2)",
            "2026 UTC [1] FATAL:  WAL streaming (max_wal_senders > 0) requires wal_level \"replica\" or \"logical\"",
            "2026 UTC [1] FATAL:  WAL streaming (\"max_wal_senders\" > 0) requires \"wal_level\" to be \"replica\" or \"logical\"",
        ] {
            assert!(complaint(&[line.to_string()]).is_some(), "{line}");
        }
        let other = ["2026 [1] FATAL:  could not create lock file: Permission denied".to_string()];
        assert_eq!(complaint(&other), None);
    }
}
