//! The notation of RocksDB's options: sections, sizes with a unit letter, and nested options.

use words::{SettingRole, without_section};

use super::options::{OptionsFile, TABLE, nested};
use crate::contract::notation::{Notation, as_boolean, bare, lower_words, without_unit};

/// The notation of RocksDB.
pub struct RocksdbNotation;

impl Notation for RocksdbNotation {
    /// Returns the options of all sections except the first, which has the version that wrote the
    /// file.
    fn options(&self, file: &str) -> Vec<(String, Option<String>)> {
        OptionsFile::parse(file)
            .sections
            .into_iter()
            .filter(|section| section.name != "Version")
            .flat_map(|section| section.entries)
            .map(|(name, value)| (name, Some(value)))
            .collect()
    }

    /// Removes the section that reported options have (`[CFOptions] compression`), and the table of
    /// a declared option.
    fn key(&self, name: &str) -> String {
        let plain = name.trim().to_ascii_lowercase();
        let bare = without_section(&plain);
        let of_table = bare.strip_prefix(TABLE).and_then(|rest| rest.strip_prefix('.'));
        of_table.unwrap_or(bare).to_owned()
    }

    fn nested_options(&self, value: &str) -> Option<Vec<(String, String)>> {
        nested(value.trim()).ok()
    }

    fn canonical(&self, _: &str, value: &str) -> String {
        let value = bare(value);
        let word = as_boolean(value).map(str::to_owned);
        word.or_else(|| without_unit(value)).unwrap_or_else(|| lower_words(value))
    }

    fn satisfies(&self, key: &str, declared: &str, effective: &str) -> bool {
        // Some versions report the class name of a filter.
        let is_class = key == "filter_policy" && bare(effective).starts_with("rocksdb.");
        is_class || self.canonical(key, declared) == self.canonical(key, effective)
    }

    fn is_volatile(&self, key: &str) -> bool {
        // The path of the log, which assay sets.
        key == "wal_dir"
    }

    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[
            (
                SettingRole::Durability,
                &["disable_wal", "manual_wal_flush", "sync", "use_fsync", "wal_sync"],
            ),
            (SettingRole::CacheSize, &["block_cache", "no_block_cache", "row_cache"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use words::{OptionStatus, Setting};

    use super::*;
    use crate::contract::notation::{declared, describe};

    #[test]
    fn an_option_has_the_same_key_with_and_without_its_section() {
        let key = |name| RocksdbNotation.key(name);
        assert_eq!(key("[CFOptions] compression"), "compression");
        assert_eq!(key("[TableOptions/BlockBasedTable] block_size"), "block_size");
        assert_eq!(key("block_based_table_factory.block_size"), "block_size");
        assert!(RocksdbNotation.satisfies(
            "filter_policy",
            "bloomfilter:10:false",
            "rocksdb.Bloom"
        ));
        assert!(RocksdbNotation.satisfies("x", "64K", "65536"));
        assert!(!RocksdbNotation.satisfies("x", "kNoCompression", "kSnappyCompression"));
    }

    #[test]
    fn nested_options_are_options() {
        let file = "[Version]\n  rocksdb_version=9.9.3\n\n[DBOptions]\n  max_background_jobs=4\n  # none\n\
            [CFOptions \"default\"]\n  compaction={size_ratio=10;in={y=2};ages=;}\n";
        let set = [("block_size".to_owned(), "8K".to_owned())];
        let declared = declared(&RocksdbNotation, [file], &set);
        let found: Vec<_> =
            declared.iter().map(|option| (&*option.name, &*option.canonical)).collect();
        let expected = [
            ("max_background_jobs", "4"),
            ("compaction.size_ratio", "10"),
            ("compaction.in.y", "2"),
            ("compaction.ages", ""),
            ("block_size", "8192"),
        ];
        assert_eq!(found, expected);
        let mut settings = vec![
            Setting::new("[CFOptions] compaction", "{in={y=3;}; size_ratio=10; new=1}"),
            Setting::new("[DBOptions] max_background_jobs", "4"),
        ];
        let unmet = describe(&RocksdbNotation, &mut settings, &declared);
        let names: Vec<_> = settings.iter().map(|setting| setting.name.as_str()).collect();
        let parts =
            ["in.y", "size_ratio", "new"].map(|part| format!("[CFOptions] compaction.{part}"));
        assert_eq!(names[..3], parts);
        let told: Vec<_> = unmet.iter().map(|option| (&*option.name, option.status)).collect();
        let expected = [
            ("compaction.in.y", OptionStatus::Changed),
            ("compaction.ages", OptionStatus::Unreported),
            ("block_size", OptionStatus::Unreported),
        ];
        assert_eq!(told, expected);
    }
}
