//! The notation of SQLite's pragmas.

use words::SettingRole;

use crate::contract::notation::{Notation, as_boolean, bare, lower_words, split_number, synonym};

/// The notation of SQLite.
pub struct SqliteNotation;

/// Words that a pragma accepts, and the words that it reports for them.
const SYNONYMS: [(&str, &str, &str); 15] = [
    ("synchronous", "off", "0"),
    ("synchronous", "normal", "1"),
    ("synchronous", "full", "2"),
    ("synchronous", "extra", "3"),
    ("auto_vacuum", "none", "0"),
    ("auto_vacuum", "full", "1"),
    ("auto_vacuum", "incremental", "2"),
    ("temp_store", "default", "0"),
    ("temp_store", "file", "1"),
    ("temp_store", "memory", "2"),
    ("secure_delete", "fast", "2"),
    ("encoding", "utf8", "utf-8"),
    ("encoding", "utf16", "utf-16le"),
    ("encoding", "utf-16", "utf-16le"),
    ("encoding", "utf16le", "utf-16le"),
];

impl Notation for SqliteNotation {
    fn canonical(&self, key: &str, value: &str) -> String {
        let value = bare(value);
        let word = synonym(&SYNONYMS, key, value).or_else(|| as_boolean(value));
        match (word, split_number(value)) {
            (Some(word), _) => word.to_owned(),
            (None, Some((number, ""))) => number.to_string(),
            (None, _) => lower_words(value),
        }
    }

    fn satisfies(&self, key: &str, declared: &str, effective: &str) -> bool {
        // SQLite reports the number of pages before it spills.
        let spills = || {
            let is_on = as_boolean(bare(declared)) == Some("1");
            is_on && effective.parse::<u64>().is_ok_and(|pages| pages > 0)
        };
        self.canonical(key, declared) == self.canonical(key, effective)
            || key == "cache_spill" && spills()
    }

    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[
            (SettingRole::Durability, &["journal_mode", "synchronous"]),
            (SettingRole::CacheSize, &["cache_size", "mmap_size"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_reported_as_numbers() {
        let holds = |key, declared, effective| SqliteNotation.satisfies(key, declared, effective);
        assert!(holds("synchronous", "NORMAL", "1") && !holds("synchronous", "normal", "2"));
        assert!(holds("temp_store", "memory", "2") && holds("secure_delete", "fast", "2"));
        assert!(holds("x", "on", "1") && !holds("cache_size", "-1", "-2000"));
        assert!(holds("cache_spill", "on", "483") && !holds("cache_spill", "off", "483"));
    }
}
