//! The notation of PostgreSQL's options: `name = value`, quantities with units, and lists.

use words::SettingRole;

use super::build_facts::{FLAGS, without_warnings};
use super::config::FORMAT;
use crate::contract::notation::{
    Condition, Notation, as_boolean, bare, lower_words, split_number, synonym,
};
use crate::servers::config::unquoted;

/// The notation of PostgreSQL.
pub struct PostgresNotation;

const KIB: f64 = 1024.0;
/// The units, their factors, and the base units bytes and microseconds.
const UNITS: [(&str, f64, &str); 11] = [
    ("B", 1.0, "B"),
    ("kB", KIB, "B"),
    ("MB", KIB * KIB, "B"),
    ("GB", KIB * KIB * KIB, "B"),
    ("TB", KIB * KIB * KIB * KIB, "B"),
    ("us", 1.0, "us"),
    ("ms", 1e3, "us"),
    ("s", 1e6, "us"),
    ("min", 60e6, "us"),
    ("h", 3600e6, "us"),
    ("d", 86_400e6, "us"),
];
/// The possible units of a number without a unit: bytes, kB, blocks, MB; microseconds, ms, s, min.
const IMPLICIT_UNITS: [(f64, &str); 8] = [
    (1.0, "B"),
    (KIB, "B"),
    (8.0 * KIB, "B"),
    (KIB * KIB, "B"),
    (1.0, "us"),
    (1e3, "us"),
    (1e6, "us"),
    (60e6, "us"),
];

/// Words that a setting accepts, and the words that it reports for them.
const SYNONYMS: [(&str, &str, &str); 6] = [
    ("wal_compression", "on", "pglz"),
    ("wal_compression", "true", "pglz"),
    ("wal_compression", "yes", "pglz"),
    ("wal_compression", "1", "pglz"),
    ("wal_level", "archive", "replica"),
    ("wal_level", "hot_standby", "replica"),
];

/// Settings whose value 0 leaves the choice to the server.
const AUTOMATIC_IF_ZERO: [&str; 3] =
    ["commit_timestamp_buffers", "subtransaction_buffers", "transaction_buffers"];

/// Settings that always differ between servers, besides those that assay sets; and versions, which
/// are compared elsewhere.
const VOLATILE: [&str; 13] = [
    "application_name",
    "config_file",
    "krb_server_keyfile",
    "log_directory",
    "log_filename",
    "promote_trigger_file",
    "server_version",
    "server_version_num",
    // Of the connection, and 0 on a unix socket.
    "tcp_keepalives_count",
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "transaction_read_only",
    "trigger_file",
];

impl Notation for PostgresNotation {
    /// Parses lines such as `name = value`, `name value` and `name = 'it''s'`. A comment begins
    /// with `#`.
    fn options(&self, file: &str) -> Vec<(String, Option<String>)> {
        let mut options = Vec::new();
        for line in file.lines() {
            let text = line.trim_start();
            let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
            let (name, rest) = text.split_at(end);

            if name.is_empty() || name.to_ascii_lowercase().starts_with("include") {
                continue;
            }

            options.push((name.to_owned(), Some(value_in(rest))));
        }
        options
    }

    fn canonical(&self, key: &str, value: &str) -> String {
        if key == FLAGS {
            return without_warnings(value);
        }

        let value = bare(value);
        if let Some(reported) = synonym(&SYNONYMS, key, value) {
            return reported.to_owned();
        }

        // The server accepts unique beginnings of words.
        let word = match value.to_ascii_lowercase().as_str() {
            "t" | "tr" | "tru" | "y" | "ye" => Some("1"),
            "f" | "fa" | "fal" | "fals" | "n" | "of" => Some("0"),
            word => as_boolean(word),
        };
        if let Some(word) = word {
            return word.to_owned();
        }

        if let Some((number, unit)) = split_number(value) {
            if unit.is_empty() {
                return number.to_string();
            }
            match UNITS.iter().find(|(name, ..)| *name == unit) {
                Some(_) if number == 0.0 => return "0".to_owned(),
                Some((_, factor, base)) => {
                    // Rounding makes `1.005s` and `1005ms` equal.
                    let product = (number * factor * 1e6).round() / 1e6;
                    return format!("{product}{base}");
                }
                None => {}
            }
        }

        let words = lower_words(value);
        let items: Vec<&str> = words.split(',').map(bare).collect();
        items.join(",")
    }

    fn satisfies(&self, key: &str, declared: &str, effective: &str) -> bool {
        let (declared, effective) = (self.canonical(key, declared), self.canonical(key, effective));
        let is_automatic = declared == "-1" || declared == "0" && AUTOMATIC_IF_ZERO.contains(&key);
        if declared == effective || is_automatic {
            return true;
        }

        // The server reports its units, which a declared number need not have.
        declared.parse::<f64>().is_ok_and(|count| {
            IMPLICIT_UNITS
                .iter()
                .any(|(factor, base)| format!("{}{base}", count * factor) == effective)
        })
    }

    fn is_reserved(&self, key: &str) -> bool {
        FORMAT.reserved.contains(&key)
    }

    fn is_volatile(&self, key: &str) -> bool {
        self.is_reserved(key) || VOLATILE.contains(&key)
    }

    fn conditions(&self) -> &'static [Condition] {
        &[Condition { keys: "wal_sync_method", needs: "fsync", value: "1" }]
    }

    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[
            (
                SettingRole::Durability,
                &[
                    "fsync",
                    "full_page_writes",
                    "synchronous_commit",
                    "synchronous_standby_names",
                    "wal_sync_method",
                ],
            ),
            (SettingRole::CacheSize, &["shared_buffers"]),
        ]
    }
}

/// Returns the value in the rest of a line after an option's name.
fn value_in(rest: &str) -> String {
    let after_name = rest.trim_start();
    let value = after_name.strip_prefix('=').unwrap_or(after_name).trim_start();
    if let Some(quoted) = value.strip_prefix('\'') {
        return unquoted(quoted, '\'', |letter| letter);
    }
    let mut words = value.split(|c: char| c.is_whitespace() || c == '#');
    words.next().unwrap_or_default().to_owned()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, a: &str, b: &str, expected: bool) {
        let [a, b] = [a, b].map(|value| PostgresNotation.canonical(key, value));
        assert_eq!(a == b, expected, "{a} and {b}");
    }

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (a, b, expected) in [
            ("1GB", "1024MB", true),
            ("'64MB'", "65536kB", true),
            ("1.5GB", "1536MB", true),
            ("1GB", "2GB", false),
            ("1800s", "30min", true),
            ("0.5ms", "500us", true),
            ("1d", "24h", true),
            ("1s", "1MB", false),
            ("0.20", "0.2", true),
            ("0", "0ms", true),
            ("-1", "1", false),
            ("on", "TRUE", true),
            ("t", "on", true),
            ("no", "OFF", true),
            ("on", "off", false),
            ("/a/B", "/a/b", false),
            ("/a/b/", "/a/b", true),
            ("\"$user\",public", "\"$user\", public", true),
            ("a, b", "b, a", false),
        ] {
            check("x", a, b, expected);
        }
        check("log_line_prefix", "%p", "%P", false);
        check("wal_compression", "true", "pglz", true);
        check("wal_compression", "off", "pglz", false);
        check("build.cflags", "-Wall -Wno-x -O2 -g", "-Wall -O2 -Wshadow -g", true);
        check("build.cflags", "-O2 -Wl,-z,now", "-O2", false);
        check("build.cflags", "-O2", "-O3", false);
    }

    #[test]
    fn a_number_without_a_unit_has_the_settings_unit() {
        let holds = |key, declared, effective| PostgresNotation.satisfies(key, declared, effective);
        for (declared, effective) in [
            ("131072", "1GB"),
            ("1073741824", "1GB"),
            ("4096", "4GB"),
            ("10", "10s"),
            ("5", "5min"),
        ] {
            assert!(holds("x", declared, effective), "{declared} {effective}");
        }
        assert!(holds("wal_buffers", "-1", "16MB") && holds("transaction_buffers", "0", "1MB"));
        assert!(!holds("wal_buffers", "64MB", "16MB") && !holds("x", "7", "1GB"));
    }

    #[test]
    fn a_file_is_parsed_like_in_the_server() {
        let file = "# shared_buffers = 1GB\n\
            Shared_Buffers = 2GB   # mine\n\
            \n  wal_compression='it''s \\'#\\''#c\nwork_mem 8MB\nport=5433#x\nautovacuum\t=\ton\n\
            include 'other.conf'\ninclude_if_exists = 'x'\nmy.option = ''\n";
        let declared = crate::contract::notation::declared(&PostgresNotation, [file], &[]);
        let options = declared.iter().map(|option| (&*option.key, &*option.value));
        let options: Vec<_> = options.collect();
        let expected = [
            ("shared_buffers", "2GB"),
            ("wal_compression", "it's '#'"),
            ("work_mem", "8MB"),
            ("autovacuum", "on"),
            ("my.option", ""),
        ];
        assert_eq!(options, expected);
    }
}
