//! Whether two values of a setting are the same, however they are written: `1GB`, `1073741824` and 131072 pages of
//! 8 kB; `on`, `1` and `TRUE`.

use std::collections::{BTreeMap, BTreeSet};

use super::names::Notation;
use super::nested::fields;

/// Words of one meaning.
const WORDS_ON: [&str; 4] = ["on", "true", "yes", "1"];
const WORDS_OFF: [&str; 4] = ["off", "false", "no", "0"];

/// What a number without a unit may count, in PostgreSQL: bytes, kB, blocks, MB; and in microseconds, ms, s, min.
const POSTGRES_BYTES: [f64; 4] = [1.0, KIB, 8.0 * KIB, KIB * KIB];
const POSTGRES_MICROSECONDS: [f64; 4] = [1.0, 1e3, 1e6, 60e6];
const KIB: f64 = 1024.0;

/// Words that a setting takes, and what it reports for them.
const SYNONYMS: [(Notation, &str, &str, &str); 20] = [
    (Notation::Postgres, "wal_compression", "on", "pglz"),
    (Notation::Postgres, "wal_level", "archive", "replica"),
    (Notation::Postgres, "wal_level", "hot_standby", "replica"),
    (
        Notation::Mysql,
        "default_storage_engine",
        "myrocks",
        "rocksdb",
    ),
    (Notation::Mysql, "character_set_server", "utf8", "utf8mb3"),
    (Notation::Sqlite, "synchronous", "off", "0"),
    (Notation::Sqlite, "synchronous", "normal", "1"),
    (Notation::Sqlite, "synchronous", "full", "2"),
    (Notation::Sqlite, "synchronous", "extra", "3"),
    (Notation::Sqlite, "auto_vacuum", "none", "0"),
    (Notation::Sqlite, "auto_vacuum", "full", "1"),
    (Notation::Sqlite, "auto_vacuum", "incremental", "2"),
    (Notation::Sqlite, "temp_store", "default", "0"),
    (Notation::Sqlite, "temp_store", "file", "1"),
    (Notation::Sqlite, "temp_store", "memory", "2"),
    (Notation::Sqlite, "secure_delete", "fast", "2"),
    (Notation::Sqlite, "encoding", "utf8", "utf-8"),
    (Notation::Sqlite, "encoding", "utf16", "utf-16le"),
    (Notation::Sqlite, "encoding", "utf-16", "utf-16le"),
    (Notation::Sqlite, "encoding", "utf16le", "utf-16le"),
];

/// Numbers by which a setting is left to the server.
const LEFT_TO_SERVER: [(Notation, &str, &str); 4] = [
    (Notation::Postgres, "commit_timestamp_buffers", "0"),
    (Notation::Postgres, "subtransaction_buffers", "0"),
    (Notation::Postgres, "transaction_buffers", "0"),
    (Notation::Mysql, "innodb_open_files", "0"),
];

/// Modes of SQL that stand for several.
const COMBINED_MODES: [&str; 8] = [
    "ansi",
    "db2",
    "maxdb",
    "mssql",
    "mysql323",
    "oracle",
    "postgresql",
    "traditional",
];

/// Whether two values mean the same.
pub(crate) fn same(notation: Notation, key: &str, a: &str, b: &str) -> bool {
    let (a, b) = (bare(a), bare(b));
    if a == b {
        return true;
    }
    let (a, b) = (known(notation, key, a), known(notation, key, b));
    equal_words(&a, &b)
        || equal_switches(notation, &a, &b)
        || equal_quantities(notation, &a, &b)
        || equal_lists(notation, &a, &b)
        || equal_fields(notation, &a, &b)
}

/// Whether a server that reports `effective` has what was declared. More than [`same`]: a part of a list of switches,
/// and a value that leaves the choice to the server.
pub(crate) fn holds(notation: Notation, key: &str, declared: &str, effective: &str) -> bool {
    if same(notation, key, declared, effective) {
        return true;
    }
    let declared = bare(declared);
    let is_left = matches!(notation, Notation::Postgres | Notation::Mysql) && declared == "-1"
        || LEFT_TO_SERVER.contains(&(notation, key, declared));
    // SQLite reports after how many pages it spills.
    let is_spill = notation == Notation::Sqlite
        && key == "cache_spill"
        && is_on(declared) == Some(true)
        && effective.parse::<u64>().is_ok_and(|pages| pages > 0);
    // Some versions of RocksDB report a filter by the name of its class.
    let is_class = notation == Notation::Rocksdb
        && key == "filter_policy"
        && bare(effective).starts_with("rocksdb.");
    is_left
        || is_spill
        || is_class
        || notation == Notation::Mysql && is_part(key, declared, bare(effective))
}

/// Without the quotes and blanks around it, and a directory without its last slash.
fn bare(value: &str) -> &str {
    let value = value.trim();
    let inner = ['\'', '"'].iter().find_map(|&quote| {
        value
            .strip_prefix(quote)?
            .strip_suffix(quote)
            .filter(|inner| !inner.contains(quote))
    });
    let value = inner.unwrap_or(value).trim();
    if value.len() > 1 && (value.starts_with('/') || value.starts_with("./")) {
        value.strip_suffix('/').unwrap_or(value)
    } else {
        value
    }
}

/// A word in the way in which its setting reports it.
fn known(notation: Notation, key: &str, value: &str) -> String {
    let lower = value.to_ascii_lowercase();
    let matches = |&&(of, setting, word, _): &&(Notation, &str, &str, &str)| {
        let same_word = word == lower
            || word == "on" && WORDS_ON.contains(&lower.as_str()) && setting == "wal_compression";
        of == notation && setting == key && same_word
    };
    if let Some((.., reported)) = SYNONYMS.iter().find(matches) {
        return (*reported).to_owned();
    }
    if notation == Notation::Mysql && key.starts_with("collation_") {
        return lower.replacen("utf8_", "utf8mb3_", 1);
    }
    value.to_owned()
}

/// Words alone do not tell upper case from lower: in patterns such as `%m` and in paths it matters.
fn equal_words(a: &str, b: &str) -> bool {
    let is_word = |text: &str| {
        text.chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | ' ' | '='))
    };
    a == b || is_word(a) && is_word(b) && a.eq_ignore_ascii_case(b)
}

fn is_on(value: &str) -> Option<bool> {
    let is_in = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match (is_in(&WORDS_ON), is_in(&WORDS_OFF)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// PostgreSQL also takes the beginning of a word that is no other's.
fn equal_switches(notation: Notation, a: &str, b: &str) -> bool {
    let is_on = |value: &str| {
        let short = match value.to_ascii_lowercase().as_str() {
            "t" | "tr" | "tru" | "y" | "ye" => Some(true),
            "f" | "fa" | "fal" | "fals" | "n" | "of" => Some(false),
            _ => None,
        };
        is_on(value).or(short.filter(|_| notation == Notation::Postgres))
    };
    is_on(a).is_some() && is_on(a) == is_on(b)
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    None,
    Bytes,
    Microseconds,
}

fn equal_quantities(notation: Notation, a: &str, b: &str) -> bool {
    let (Some((a, a_unit)), Some((b, b_unit))) = (quantity(notation, a), quantity(notation, b))
    else {
        return false;
    };
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    let counted = |count: f64, unit: Unit, value: f64| {
        let units: &[f64] = match unit {
            _ if notation != Notation::Postgres => &[1.0],
            Unit::None => &[1.0],
            Unit::Bytes => &POSTGRES_BYTES,
            Unit::Microseconds => &POSTGRES_MICROSECONDS,
        };
        units.iter().any(|unit| close(count * unit, value))
    };
    match (a_unit, b_unit) {
        _ if a_unit == b_unit => close(a, b),
        (Unit::None, unit) => counted(a, unit, b),
        (unit, Unit::None) => counted(b, unit, a),
        _ => false,
    }
}

/// A number, with its unit taken into it.
fn quantity(notation: Notation, text: &str) -> Option<(f64, Unit)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, unit) = (text[..end].parse::<f64>().ok()?, text[end..].trim());
    let (factor, unit) = match (notation, unit) {
        (_, "") => (1.0, Unit::None),
        (Notation::Postgres, "B") => (1.0, Unit::Bytes),
        (Notation::Postgres, "kB") => (KIB, Unit::Bytes),
        (Notation::Postgres, "MB") => (KIB.powi(2), Unit::Bytes),
        (Notation::Postgres, "GB") => (KIB.powi(3), Unit::Bytes),
        (Notation::Postgres, "TB") => (KIB.powi(4), Unit::Bytes),
        (Notation::Postgres, "us") => (1.0, Unit::Microseconds),
        (Notation::Postgres, "ms") => (1e3, Unit::Microseconds),
        (Notation::Postgres, "s") => (1e6, Unit::Microseconds),
        (Notation::Postgres, "min") => (60e6, Unit::Microseconds),
        (Notation::Postgres, "h") => (3600e6, Unit::Microseconds),
        (Notation::Postgres, "d") => (86_400e6, Unit::Microseconds),
        (Notation::Mysql | Notation::Rocksdb, unit) => {
            let power = ["k", "m", "g", "t", "p", "e"]
                .iter()
                .position(|letter| unit.eq_ignore_ascii_case(letter))?;
            (KIB.powi(power as i32 + 1), Unit::None)
        }
        _ => return None,
    };
    Some((number * factor, unit))
}

fn items(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split(',')
        .map(|item| bare(item).to_ascii_lowercase())
        .filter(|item| !item.is_empty())
}

/// MySQL's lists have no order; those of others do.
fn equal_lists(notation: Notation, a: &str, b: &str) -> bool {
    if !a.contains(',') && !b.contains(',') {
        return false;
    }
    if notation == Notation::Mysql {
        items(a).collect::<BTreeSet<_>>() == items(b).collect::<BTreeSet<_>>()
    } else {
        let item = |list: &str| -> Vec<String> {
            list.split(',').map(|item| bare(item).to_owned()).collect()
        };
        item(a) == item(b)
    }
}

/// Options that a value is made of have no order.
fn equal_fields(notation: Notation, a: &str, b: &str) -> bool {
    let (Some(a), Some(b)) = (fields(notation, a), fields(notation, b)) else {
        return false;
    };
    a.len() == b.len()
        && a.iter().all(|(name, of_a)| {
            b.get(name)
                .is_some_and(|of_b| same(notation, name, of_a, of_b))
        })
}

/// Whether a declared list of switches, `mrr=on`, or of modes that stand for several, is part of what is effective.
fn is_part(key: &str, declared: &str, effective: &str) -> bool {
    let declared: Vec<String> = items(declared).collect();
    if declared.is_empty() {
        return false;
    }
    if declared.iter().all(|item| item.contains('=')) {
        let effective: BTreeMap<String, String> = items(effective)
            .filter_map(|item| {
                let (name, value) = item.split_once('=')?;
                Some((name.trim().to_owned(), value.trim().to_owned()))
            })
            .collect();
        return declared.iter().all(|item| {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let (name, value) = (name.trim(), value.trim());
            effective
                .get(name)
                .is_some_and(|effective| value == "default" || effective == value)
        });
    }
    let effective: BTreeSet<String> = items(effective).collect();
    key == "sql_mode"
        && declared
            .iter()
            .any(|mode| COMBINED_MODES.contains(&mode.as_str()))
        && declared.iter().all(|mode| effective.contains(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTGRES: Notation = Notation::Postgres;
    const MYSQL: Notation = Notation::Mysql;
    const SQLITE: Notation = Notation::Sqlite;

    #[track_caller]
    fn check(notation: Notation, key: &str, a: &str, b: &str, expected: bool) {
        for (a, b) in [(a, b), (b, a)] {
            assert_eq!(same(notation, key, a, b), expected, "{key}: `{a}` `{b}`");
        }
    }

    #[test]
    fn rocksdb_s_sizes_have_units_and_its_filters_two_names() {
        let rocksdb = |key, a, b| holds(Notation::Rocksdb, key, a, b);
        assert!(rocksdb("write_buffer_size", "64K", "65536"));
        assert!(!rocksdb("write_buffer_size", "64K", "65537"));
        assert!(rocksdb(
            "filter_policy",
            "bloomfilter:10:false",
            "rocksdb.BuiltinBloomFilter"
        ));
        assert!(!rocksdb("filter_policy", "bloomfilter:10:false", "nullptr"));
        assert!(!rocksdb(
            "compression",
            "kNoCompression",
            "kSnappyCompression"
        ));
    }

    #[test]
    fn options_that_a_value_is_made_of_have_no_order() {
        let rocksdb = |a, b| same(Notation::Rocksdb, "x", a, b);
        assert!(rocksdb("{a=1;b={c=64K; d=x};}", "{b={d=x;c=65536;};a=1}"));
        assert!(!rocksdb("{a=1;b=2}", "{a=1;b=3}"));
        assert!(!rocksdb("{a=1}", "{a=1;b=2}"));
    }

    #[test]
    fn quantities_are_compared_by_what_they_come_to() {
        for (a, b, expected) in [
            ("1GB", "1024MB", true),
            ("131072", "1GB", true),
            ("1073741824", "1GB", true),
            ("4096", "4GB", true),
            ("8192", "8MB", true),
            ("'64MB'", "65536kB", true),
            ("1.5GB", "1536MB", true),
            ("1GB", "1gb", true),
            ("1GB", "2GB", false),
            ("10", "10s", true),
            ("1800s", "30min", true),
            ("5", "5min", true),
            ("0.5ms", "500us", true),
            ("1d", "24h", true),
            ("1s", "1MB", false),
            ("0.20", "0.2", true),
            ("0", "0ms", true),
            ("-1", "1", false),
        ] {
            check(POSTGRES, "x", a, b, expected);
        }
        for (a, b, expected) in [
            ("64M", "67108864", true),
            ("2k", "2048", true),
            ("1G", "1g", true),
            ("90", "90.000000", true),
            // Not a unit of MySQL's.
            ("64MB", "67108864", false),
            // No pages are counted here.
            ("131072", "1G", false),
            ("many", "134217728", false),
        ] {
            check(MYSQL, "x", a, b, expected);
        }
    }

    #[test]
    fn switches_have_many_words() {
        for notation in [POSTGRES, MYSQL, SQLITE] {
            check(notation, "x", "on", "TRUE", true);
            check(notation, "x", "1", "ON", true);
            check(notation, "x", "no", "OFF", true);
            check(notation, "x", "0", "false", true);
            check(notation, "x", "1", "0", false);
            check(notation, "x", "on", "off", false);
        }
        check(POSTGRES, "x", "t", "on", true);
        check(MYSQL, "x", "t", "on", false);
    }

    #[test]
    fn case_matters_in_patterns_and_paths_alone() {
        check(MYSQL, "x", "o_direct", "O_DIRECT", true);
        check(POSTGRES, "log_line_prefix", "%p", "%P", false);
        check(POSTGRES, "x", "/a/B", "/a/b", false);
        check(MYSQL, "x", "/a/b", "/a/b/", true);
        check(MYSQL, "x", "./", ".", true);
    }

    #[test]
    fn some_words_are_reported_as_others() {
        check(POSTGRES, "wal_compression", "on", "pglz", true);
        check(POSTGRES, "wal_compression", "true", "pglz", true);
        check(POSTGRES, "wal_compression", "off", "pglz", false);
        check(POSTGRES, "other", "on", "pglz", false);
        check(SQLITE, "synchronous", "NORMAL", "1", true);
        check(SQLITE, "synchronous", "normal", "2", false);
        check(SQLITE, "temp_store", "memory", "2", true);
        check(SQLITE, "secure_delete", "fast", "2", true);
        check(MYSQL, "default_storage_engine", "myrocks", "ROCKSDB", true);
        check(MYSQL, "collation_server", "utf8_bin", "utf8mb3_bin", true);
    }

    #[test]
    fn lists_are_compared_item_by_item() {
        check(
            POSTGRES,
            "search_path",
            "\"$user\",public",
            "\"$user\", public",
            true,
        );
        check(POSTGRES, "search_path", "a, b", "b, a", false);
        let (a, b) = (
            "NO_ZERO_DATE,STRICT_TRANS_TABLES",
            "strict_trans_tables, no_zero_date",
        );
        check(MYSQL, "sql_mode", a, b, true);
        check(
            MYSQL,
            "sql_mode",
            "NO_ZERO_DATE",
            "NO_ZERO_DATE,STRICT_TRANS_TABLES",
            false,
        );
    }

    #[test]
    fn a_part_of_the_switches_holds_and_a_part_of_the_modes_does_not() {
        let effective = "index_merge=on,mrr=on,mrr_cost_based=off";
        let holds_in = |declared| holds(MYSQL, "optimizer_switch", declared, effective);
        assert!(holds_in("mrr=on") && holds_in("'mrr=ON, index_merge=default'"));
        assert!(!holds_in("mrr=off") && !holds_in("unknown=on"));
        let effective = "STRICT_TRANS_TABLES,NO_ZERO_DATE,TRADITIONAL";
        assert!(holds(MYSQL, "sql_mode", "traditional", effective));
        assert!(!holds(MYSQL, "sql_mode", "no_zero_date", effective));
    }

    #[test]
    fn what_is_left_to_the_server_holds() {
        assert!(holds(POSTGRES, "wal_buffers", "-1", "16MB"));
        assert!(holds(MYSQL, "thread_cache_size", "-1", "9"));
        assert!(holds(POSTGRES, "transaction_buffers", "0", "1MB"));
        assert!(!holds(POSTGRES, "wal_buffers", "64MB", "16MB"));
        assert!(!holds(SQLITE, "cache_size", "-1", "-2000"));
        assert!(holds(SQLITE, "cache_spill", "on", "483"));
        assert!(!holds(SQLITE, "cache_spill", "off", "483"));
    }
}
