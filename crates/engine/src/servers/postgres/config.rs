//! The text of the server's configuration file, and the server's messages about it.

use std::path::Path;

use super::logical;
use super::notation::PostgresNotation;
use crate::error::SetupError;
use crate::local::start_options::StartOptions;
use crate::net::network::{CERTIFICATE, KEY};
use crate::servers::config::{ConfigText, FILE_HEADER, Format, SET_HEADER};

pub(super) static FORMAT: Format = Format {
    server: "PostgreSQL",
    notation: &PostgresNotation,
    group: "",
    name_chars: &['_', '.'],
    connections: 100,
    // A distribution's file contains paths of the system's own cluster, which must not be changed.
    quiet: &[
        ("autovacuum", "off"),
        ("bgwriter_lru_maxpages", "0"),
        ("checkpoint_timeout", "1d"),
        ("wal_writer_delay", "10s"),
    ],
    reserved: &[
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_destination",
        "log_error_verbosity",
        "log_line_prefix",
        "log_timezone",
        "logging_collector",
        "port",
        "ssl",
        "ssl_cert_file",
        "ssl_key_file",
        "stats_temp_directory",
        "unix_socket_directories",
        "unix_socket_group",
    ],
};

/// Composes the configuration file. It includes the file that `initdb` created in `cluster`, with
/// the build's defaults.
///
/// # Errors
/// [`SetupError::Config`] for an option with an invalid name.
pub(super) fn compose(
    options: &StartOptions<'_>,
    major: u32,
    cluster: &Path,
    socket: &Path,
) -> Result<ConfigText, SetupError> {
    let mut initial = format!(
        "# The defaults that initdb wrote.\ninclude {}\n\
         # Events of the log; the config may turn them off.\n\
         log_checkpoints = on\nlog_autovacuum_min_duration = 0\n",
        quoted_path(&cluster.join("postgresql.conf"))
    );

    let plan_options = FORMAT.plan_options(options)?;
    if options.replicas.is_some_and(|replicas| replicas.logical) {
        initial += &logical::primary_options(&plan_options)?;
    }

    let line = |name: &str, value: &str| format!("{name} = {}", quoted(value));
    let own = own_options(options, major, cluster, socket);
    Ok(FORMAT.compose(options, &initial, line, &own))
}

/// Returns assay's own options, which override those of the config.
fn own_options(options: &StartOptions<'_>, major: u32, cluster: &Path, socket: &Path) -> String {
    let listens = options.network.map_or(String::new(), |network| network.port.ip().to_string());

    let mut lines = format!(
        "data_directory = {}\n\
         hba_file = {}\n\
         ident_file = {}\n\
         external_pid_file = ''\n\
         listen_addresses = {}\n\
         port = {}\n\
         unix_socket_directories = {}\n\
         unix_socket_group = ''\n\
         log_destination = 'stderr'\n\
         log_timezone = 'UTC'\n\
         log_line_prefix = '%m [%p] '\n\
         log_error_verbosity = default\n\
         logging_collector = off\n",
        quoted_path(cluster),
        quoted_path(&cluster.join("pg_hba.conf")),
        quoted_path(&cluster.join("pg_ident.conf")),
        quoted(&listens),
        options.port(),
        quoted(&one_of_list(socket.parent().unwrap_or(socket))),
    );

    let has_certificate = options.network.is_some_and(|network| network.certificate.is_some());
    if has_certificate {
        lines += &format!(
            "ssl = on\nssl_cert_file = {}\nssl_key_file = {}\n",
            quoted_path(&socket.with_file_name(CERTIFICATE)),
            quoted_path(&socket.with_file_name(KEY)),
        );
    } else {
        lines += "ssl = off\n";
    }

    if major < 15 {
        lines += "stats_temp_directory = 'pg_stat_tmp'\n";
    }
    lines
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Quotes a directory as the single element of a list of directories.
fn one_of_list(directory: &Path) -> String {
    format!("\"{}\"", directory.display().to_string().replace('"', "\"\""))
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// Returns the messages about the configuration in the log of a server that did not start; `None`
/// if there are none. The phrases are English, because the cluster's locale is C.
pub(super) fn config_error(log: &[String]) -> Option<String> {
    let mut messages: Vec<&str> =
        log.iter().filter_map(|line| message_about_config(line)).collect();
    if messages.is_empty() {
        return None;
    }

    messages.extend(log.iter().filter_map(|line| {
        let (_, text) = line.split_once("DETAIL:").or(line.split_once("HINT:"))?;
        Some(text.trim())
    }));
    Some(messages.join("; "))
}

/// Phrases in messages about the configuration.
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

/// Phrases that are about the configuration only in a fatal error.
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

/// Returns the message in a line of the log, if it is about the configuration.
fn message_about_config(line: &str) -> Option<&str> {
    // Messages before the log is open have no level.
    if let Some(text) = line.strip_prefix("postgres: ")
        && text.contains("must be")
    {
        return Some(text);
    }

    let (level, text) = ["LOG:", "FATAL:", "ERROR:"]
        .into_iter()
        .find_map(|level| Some((level, line.split_once(level)?.1.trim())))?;
    let is_about_config = ABOUT_CONFIG.iter().any(|phrase| text.contains(phrase))
        || (level == "FATAL:" && FATAL.iter().any(|phrase| text.contains(phrase)));
    if is_about_config { Some(text) } else { None }
}

/// Returns a message without the path of `config_file`, which is temporary. Replaces line numbers
/// in its `text` by those in the plan's files.
pub(super) fn with_plan_lines(message: &str, config_file: &Path, text: &str) -> String {
    let mark = format!(" in file \"{}\" line ", config_file.display());
    let mut segments = message.split(&mark);
    let mut out = segments.next().unwrap_or_default().to_string();
    for segment in segments {
        let digits = segment.find(|char: char| !char.is_ascii_digit());
        let (line, after) = segment.split_at(digits.unwrap_or(segment.len()));

        // Lines outside of the plan's files are assay's own, which have no mistakes.
        if let Some(place) = place_in_files(text, line.parse().unwrap_or(0)) {
            let FileLine { file, line } = place;
            out.push_str(&format!(" in line {line} of file {file} of the config"));
        }
        out.push_str(after);
    }
    out
}

/// A line of one of the plan's files.
struct FileLine<'a> {
    /// The number of the file.
    file: &'a str,
    line: u32,
}

/// Returns the place of a line of a configuration `text` in the plan's files.
fn place_in_files(text: &str, line_number: usize) -> Option<FileLine<'_>> {
    let mut place = None;
    for line in text.lines().take(line_number) {
        match line.strip_prefix(FILE_HEADER).and_then(|header| header.split_once(' ')) {
            Some((file, _)) => place = Some(FileLine { file, line: 0 }),
            None if line == SET_HEADER => place = None,
            None => {
                if let Some(place) = &mut place {
                    place.line += 1;
                }
            }
        }
    }

    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::config::tests::with_options;

    fn composed(major: u32, files: &[&str], set: &[(&str, &str)]) -> ConfigText {
        let (cluster, socket) = (Path::new("/it's a \"c\\"), Path::new("/a, \"b/sock"));
        with_options(files, set, 10, |options| compose(options, major, cluster, socket).unwrap())
    }

    #[test]
    fn files_come_verbatim_then_options_then_assays_own() {
        let set = [("archive_command", "echo 'a\\b'")];
        let config = composed(15, &["work_mem = 8MB # mine"], &set);
        let at = |text: &str| {
            let position = config.text.find(text);
            position.unwrap_or_else(|| panic!("no {text} in {}", config.text))
        };
        // Paths keep their spaces, quotes and commas.
        let initial = at("include '/it''s a \"c\\\\/postgresql.conf'\n");
        assert!(initial < at("work_mem = 8MB # mine\n"));
        assert!(at("work_mem") < at("archive_command = 'echo ''a\\\\b'''\n"));
        assert!(at("archive_command") < at("listen_addresses = ''\n"));
        at("unix_socket_directories = '\"/a, \"\"b\"'\n");
    }

    #[test]
    fn the_files_of_another_cluster_are_not_used() {
        let files = "Data_Directory='/theirs'\n#port = 1\nstats_temp_directory = '/run/theirs'\n";
        for (major, has_collector) in [(14, true), (15, false)] {
            let config = composed(major, &[files], &[("port", "6000")]);
            let ours = config.text.rsplit_once("Assay's own").unwrap().1;
            assert!(ours.contains("data_directory = '/it''s a"), "{ours}");
            assert_eq!(ours.contains("stats_temp_directory"), has_collector);
        }
    }

    #[test]
    fn a_message_has_the_line_of_the_plans_file() {
        let files = ["a = 1\n", "b = 2\nc d = 3\n"];
        let text = composed(15, &files, &[("work_mem", "lots")]).text;
        let line = |start: &str| {
            let at = text.lines().position(|line| line.starts_with(start));
            at.unwrap_or_else(|| panic!("no {start} in {text}")) + 1
        };
        let of_line = |line: usize| {
            let message = format!("syntax error in file \"/x\" line {line}, near token \"d\"");
            with_plan_lines(&message, Path::new("/x"), &text)
        };
        assert_eq!(
            of_line(line("c d")),
            "syntax error in line 2 of file 2 of the config, near token \"d\""
        );
        assert_eq!(of_line(line("work_mem")), "syntax error, near token \"d\"");
    }

    #[test]
    fn the_servers_message_is_found_in_its_log() {
        let log: Vec<String> = [
            "2026-01-01 00:00:00.000 UTC [1] LOG:  unrecognized configuration parameter \"colour\" in file \"/x\" line 9",
            "2026-01-01 00:00:00.000 UTC [1] FATAL:  configuration file \"/x\" contains errors",
        ]
        .map(String::from)
        .to_vec();
        assert_eq!(
            config_error(&log).unwrap(),
            "unrecognized configuration parameter \"colour\" in file \"/x\" line 9"
        );
        for line in [
            "postgres: superuser_reserved_connections (3) must be less than max_connections (2)",
            "2026 UTC [1] FATAL:  WAL streaming (max_wal_senders > 0) requires wal_level \"replica\" or \"logical\"",
            "2026 UTC [1] FATAL:  WAL streaming (\"max_wal_senders\" > 0) requires \"wal_level\" to be \"replica\" or \"logical\"",
        ] {
            assert!(config_error(&[line.to_string()]).is_some(), "{line}");
        }
        let other = ["2026 [1] FATAL:  could not create lock file: Permission denied".to_string()];
        assert_eq!(config_error(&other), None);
    }
}
