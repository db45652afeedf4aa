//! Options in RocksDB's notation: the entries of a config, the library's text format, and its
//! options files.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use semver::Version;

/// The option that contains the options of tables in the text format.
pub(super) const TABLE: &str = "block_based_table_factory";
/// The section of these options in a file.
const TABLE_SECTION: &str = "TableOptions/BlockBasedTable";
/// Options of tables that no version writes to its file.
const UNLISTED_TABLE_OPTIONS: [&str; 3] =
    ["block_cache", "block_cache_compressed", "persistent_cache"];
/// Options that assay sets: whether to create a database, and its paths. They are ignored in a
/// file.
const DECIDED: [&str; 6] =
    ["create_if_missing", "error_if_exists", "wal_dir", "db_log_dir", "db_paths", "cf_paths"];

/// A section of an options file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// `DBOptions`, `CFOptions`, `TableOptions/BlockBasedTable`, `Version`.
    pub(super) name: String,
    /// The column family, without quotes; empty for a section of the whole database.
    pub(super) family: String,
    pub(super) entries: Vec<(String, String)>,
}

/// An options file, which RocksDB writes to a database's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionsFile {
    /// The file's sections, in order.
    pub(super) sections: Vec<Section>,
}

impl OptionsFile {
    /// Parses the text of a file. Ignores invalid lines, which the library reports.
    pub(super) fn parse(text: &str) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines() {
            let line = without_comment(line).trim();

            if let Some(head) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                let (name, family) = head.split_once(' ').unwrap_or((head, ""));
                sections.push(Section {
                    name: name.trim().into(),
                    family: family.trim().trim_matches('"').into(),
                    entries: Vec::new(),
                });
            } else if let Some((name, value)) = line.split_once('=')
                && let Some(section) = sections.last_mut()
            {
                section.entries.push((name.trim().into(), unescape(value.trim())));
            }
        }
        Self { sections }
    }

    /// Returns the version that wrote the file.
    pub(super) fn version(&self) -> Option<Version> {
        self.get("Version", "rocksdb_version")?.parse().ok()
    }

    /// Returns a value of the whole database, or of the column family `default`.
    pub(super) fn get(&self, section: &str, name: &str) -> Option<&str> {
        self.sections
            .iter()
            .filter(|known| known.name == section && is_default_family(&known.family))
            .flat_map(|known| &known.entries)
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn has(&self, is_table: bool, name: &str) -> bool {
        self.sections
            .iter()
            .filter(|section| section.name != "Version")
            .filter(|section| (section.name == TABLE_SECTION) == is_table)
            .any(|section| section.entries.iter().any(|(key, _)| key == name))
    }

    /// Returns the names of all options of the version that wrote the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let options = self.sections.iter().filter(|section| section.name != "Version");
        let listed = options.flat_map(|section| &section.entries).map(|(name, _)| name.as_str());
        listed.chain(UNLISTED_TABLE_OPTIONS)
    }

    /// Returns true when the version that wrote the file knows the option. A version writes all
    /// options that it knows.
    pub(super) fn knows(&self, entry: &OptionEntry) -> bool {
        self.has(entry.is_table, &entry.name)
            || (entry.is_table && UNLISTED_TABLE_OPTIONS.contains(&entry.name.as_str()))
    }
}

/// Returns true for the column family of all data, or for options of the whole database.
fn is_default_family(family: &str) -> bool {
    matches!(family, "" | "default")
}

fn without_comment(line: &str) -> &str {
    let mut is_escaped = false;

    for (at, c) in line.char_indices() {
        match c {
            '#' if !is_escaped => return &line[..at],
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    line
}

fn unescape(value: &str) -> String {
    let mut chars = value.chars();
    let mut text = String::with_capacity(value.len());

    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// An option of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionEntry {
    /// The entry is an option of tables.
    pub(super) is_table: bool,
    pub(super) name: String,
    /// The option's value in RocksDB's notation.
    pub(super) value: String,
}

impl OptionEntry {
    pub(super) fn new(is_table: bool, name: &str, value: &str) -> Self {
        Self { is_table, name: name.into(), value: value.into() }
    }

    /// Returns the option's text in messages.
    pub(super) fn shown(&self) -> String {
        format!("`{} = {}`", self.full_name(), self.value)
    }

    /// Returns the option in the library's text format.
    pub(super) fn text(&self) -> String {
        join(std::slice::from_ref(self))
    }

    /// Returns the option's name in a config.
    pub(super) fn full_name(&self) -> String {
        if self.is_table { format!("{TABLE}.{}", self.name) } else { self.name.clone() }
    }
}

/// Returns the entries of a config: those of its file that differ from the `defaults`, then those
/// that it sets. Of entries with the same name, the last one counts.
///
/// # Errors
/// A message about the invalid entry.
pub(super) fn entries(
    file: Option<&OptionsFile>,
    set: &[(String, String)],
    defaults: &OptionsFile,
) -> Result<Vec<OptionEntry>, String> {
    let mut entries = Vec::new();
    if let Some(file) = file {
        add_file(&mut entries, file, defaults)?;
    }
    for (name, value) in set {
        add_set(&mut entries, name.trim(), value.trim(), defaults)?;
    }
    Ok(entries)
}

/// Adds an entry in the place of an earlier one with the same name.
fn add(entries: &mut Vec<OptionEntry>, added: OptionEntry) {
    entries.retain(|entry| (entry.is_table, &entry.name) != (added.is_table, &added.name));
    entries.push(added);
}

/// Adds the entries of an options file that differ from the library's defaults.
fn add_file(
    entries: &mut Vec<OptionEntry>,
    file: &OptionsFile,
    defaults: &OptionsFile,
) -> Result<(), String> {
    for section in &file.sections {
        let is_table = match section.name.as_str() {
            "Version" => continue,
            "DBOptions" | "CFOptions" => false,
            TABLE_SECTION => true,
            other => {
                return Err(format!(
                    "the options file has the section `[{other}]`, which assay does not support"
                ));
            }
        };
        if !is_default_family(&section.family) {
            return Err(format!(
                "the options file has the column family `{}`; assay supports only `default`",
                section.family
            ));
        }

        for (name, value) in &section.entries {
            let is_default = defaults.get(&section.name, name) == Some(value);
            // A placeholder for an object that has no text form keeps the library's default.
            let says_nothing = matches!(value.as_str(), "" | "nullptr");
            if !is_default && !says_nothing && !DECIDED.contains(&name.as_str()) {
                add(entries, OptionEntry::new(is_table, name, value));
            }
        }
    }
    Ok(())
}

/// Adds an option that a config sets, or the options in its braces.
fn add_set(
    entries: &mut Vec<OptionEntry>,
    name: &str,
    value: &str,
    defaults: &OptionsFile,
) -> Result<(), String> {
    if name.is_empty() || name.contains(['=', ';', '{', '}']) {
        return Err(format!("`{name}` is not a valid name of an option"));
    }
    if split(value).is_none_or(|parts| parts.len() > 1) {
        return Err(format!("`{name} = {value}`: unbalanced braces, or a `;` outside of braces"));
    }
    if DECIDED.contains(&name) {
        return Err(format!("`{name}` is set by assay; remove it from the config"));
    }

    if name == TABLE {
        for (name, value) in nested(value)? {
            add(entries, OptionEntry::new(true, &name, &value));
        }
        return Ok(());
    }

    let short = name.strip_prefix(TABLE).and_then(|rest| rest.strip_prefix('.'));
    let is_table_option = UNLISTED_TABLE_OPTIONS.contains(&name)
        || (defaults.has(true, name) && !defaults.has(false, name));
    let is_table = short.is_some() || is_table_option;
    add(entries, OptionEntry::new(is_table, short.unwrap_or(name), value));
    Ok(())
}

/// Splits a text at each `;` outside of braces. Returns `None` if the braces are unbalanced.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0_i32;
    let mut parts = Vec::new();
    let mut from = 0;

    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }

        if depth < 0 {
            return None;
        }
    }

    parts.push(&text[from..]);
    if depth == 0 { Some(parts) } else { None }
}

/// Parses the names and values of `{name=value;name={...};}`.
///
/// # Errors
/// A message about a text that does not have this form.
pub(super) fn nested(text: &str) -> Result<Vec<(String, String)>, String> {
    let not_one = || format!("`{text}` does not have the form {{name=value;...}}");
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let parts = inner.and_then(split).ok_or_else(not_one)?;

    let mut pairs = Vec::new();
    for part in parts.into_iter().filter(|part| !part.trim().is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(not_one)?;
        pairs.push((name.trim().to_string(), value.trim().to_string()));
    }
    Ok(pairs)
}

/// Returns the value of a nested option.
pub(super) fn part<'a>(parts: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = parts.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// Parses a size in RocksDB's notation: `8192`, `8K`, `1G`.
pub(super) fn bytes(text: &str) -> Option<usize> {
    let unit = text.chars().last()?.to_ascii_lowercase();
    let (digits, shift) = match "kmgt".find(unit) {
        Some(at) => (&text[..text.len() - 1], 10 * (at + 1)),
        None => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// Returns a message about a number that the library would misinterpret. The library ignores text
/// after a number or its unit (`4abc` is 4), and wraps negative numbers for unsigned options.
/// `takes` returns true when the library accepts an entry.
pub(super) fn wrong_number(
    entry: &OptionEntry,
    defaults: &OptionsFile,
    takes: impl Fn(&OptionEntry) -> bool,
) -> Option<String> {
    let sections: &[&str] =
        if entry.is_table { &[TABLE_SECTION] } else { &["DBOptions", "CFOptions"] };
    let default = sections.iter().find_map(|section| defaults.get(section, &entry.name));
    let takes_value = |value: &str| takes(&OptionEntry::new(entry.is_table, &entry.name, value));
    wrong_value(&entry.full_name(), &entry.value, default, &takes_value)
}

/// Returns the message of [`wrong_number`] for a value or the values in its braces. The default
/// shows the kind of the value.
fn wrong_value(
    name: &str,
    value: &str,
    default: Option<&str>,
    takes: &dyn Fn(&str) -> bool,
) -> Option<String> {
    /// A value that only an unsigned option of 64 bits accepts: for a signed one, it is out of
    /// range.
    const BELOW_SIGNED: &str = "-9223372036854775809";

    if let Ok(parts) = nested(value) {
        let default_parts = default.and_then(|text| nested(text).ok()).unwrap_or_default();
        return parts.iter().find_map(|(of, value)| {
            let takes_part = |value: &str| takes(&format!("{{{of}={value}}}"));
            let default = part(&default_parts, of);
            wrong_value(&format!("{name}.{of}"), value, default, &takes_part)
        });
    }

    if let Some(form) = missed_form(value, default) {
        return Some(format!("`{name} = {value}`: expected {form}"));
    }
    let may_be_unsigned = default.is_none_or(is_integer) && value.starts_with('-');
    if may_be_unsigned && is_integer(value) && takes(BELOW_SIGNED) {
        return Some(format!("`{name} = {value}`: expected a non-negative integer"));
    }
    None
}

/// Returns the form that a value should have, if it is not of the same kind as the default.
fn missed_form(value: &str, default: Option<&str>) -> Option<&'static str> {
    let (is_right, form) = match default {
        Some(default) if is_integer(default) => {
            (is_integer(value), "an integer below 2^64, with `K`, `M`, `G`, `T` or no unit")
        }
        Some(default) => {
            (is_decimal(value) || !is_decimal(default), "a decimal number without a unit")
        }
        // Without a default, only what begins as a number should be one.
        None => {
            let unsigned = value.trim_start_matches('-');
            let begins_as_number = unsigned.starts_with(|c: char| c.is_ascii_digit());
            (
                is_integer(value) || is_decimal(value) || !begins_as_number,
                "a number, with `K`, `M`, `G`, `T` or no unit",
            )
        }
    };
    if is_right { None } else { Some(form) }
}

fn is_integer(text: &str) -> bool {
    bytes(text.strip_prefix('-').unwrap_or(text)).is_some()
}

fn is_decimal(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Joins entries to the library's text format.
pub(super) fn join(entries: &[OptionEntry]) -> String {
    let list = |is_table: bool| -> Vec<String> {
        entries
            .iter()
            .filter(|entry| entry.is_table == is_table)
            .map(|entry| format!("{}={}", entry.name, entry.value))
            .collect()
    };
    let mut all = list(false);
    let table = list(true);
    if !table.is_empty() {
        all.push(format!("{TABLE}={{{}}}", table.join(";")));
    }

    all.join(";")
}

/// Returns the newest options file of a database; `None` if there is none.
///
/// # Errors
/// A directory or file that cannot be read.
pub(super) fn newest_file(database: &Path) -> io::Result<Option<PathBuf>> {
    let entries = fs::read_dir(database)?.collect::<io::Result<Vec<_>>>()?;
    let numbered = entries.iter().filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("OPTIONS-")?;
        Some((number.parse::<u64>().ok()?, entry.path()))
    });
    Ok(numbered.max().map(|(_, path)| path))
}

/// Reads the newest options file of a database; `None` if there is none.
///
/// # Errors
/// A directory or file that cannot be read.
pub(super) fn read_newest(database: &Path) -> io::Result<Option<OptionsFile>> {
    // An open database may replace the file between the two steps here.
    for attempt in 0.. {
        let Some(path) = newest_file(database)? else {
            return Ok(None);
        };

        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some(OptionsFile::parse(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < 10 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# This is a RocksDB option file.\n#\n\n[Version]\n  rocksdb_version=9.9.3\n  \
        options_file_version=1.1\n\n[DBOptions]\n  max_background_jobs=2\n  db_host_id=a\\#b # why\n  create_if_missing=true\n\n\
        [CFOptions \"default\"]\n  compression=kNoCompression\n  prefix_extractor=nullptr\n  \
        compaction_options_universal={size_ratio=1;stop_style=x;}\n\n\
        [TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n  filter_policy=nullptr\n";

    fn set(entries: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        entries.iter().map(owned).collect()
    }

    #[test]
    fn a_file_is_parsed_with_its_version_and_sections() {
        let file = OptionsFile::parse(FILE);
        assert_eq!(file.version().unwrap().to_string(), "9.9.3");
        assert_eq!(file.get("DBOptions", "db_host_id"), Some("a#b"));
        assert_eq!(
            file.get("CFOptions", "compaction_options_universal"),
            Some("{size_ratio=1;stop_style=x;}")
        );
        assert_eq!(file.get(TABLE_SECTION, "block_size"), Some("4096"));
        assert_eq!(file.get("DBOptions", "block_size"), None);
    }

    #[test]
    fn entries_are_joined_to_the_librarys_text() {
        let defaults = OptionsFile::parse(FILE);
        let set = set(&[
            ("max_background_jobs", "4"),
            ("block_size", "8192"),
            (
                "block_based_table_factory",
                "{block_cache={capacity=8M;num_shard_bits=2};block_size=16384;}",
            ),
            ("block_based_table_factory.filter_policy", "bloomfilter:10:false"),
            ("compaction_options_universal", "{size_ratio=10}"),
            ("block_size", "32K"),
        ]);
        let entries = entries(None, &set, &defaults).unwrap();
        assert_eq!(
            join(&entries),
            "max_background_jobs=4;compaction_options_universal={size_ratio=10};\
             block_based_table_factory={block_cache={capacity=8M;num_shard_bits=2};filter_policy=bloomfilter:10:false;block_size=32K}"
        );
        assert_eq!(entries[2].full_name(), "block_based_table_factory.filter_policy");
    }

    #[test]
    fn a_file_adds_only_non_defaults_and_options_override_it() {
        let defaults = OptionsFile::parse(FILE);
        let text = FILE
            .replace("max_background_jobs=2", "max_background_jobs=8")
            .replace("block_size=4096", "block_size=16384")
            .replace("db_host_id=", "wal_dir=/of/another/machine\n  db_host_id=");
        let file = OptionsFile::parse(&text);
        let set = set(&[("block_size", "1K")]);
        assert_eq!(
            join(&entries(Some(&file), &set, &defaults).unwrap()),
            "max_background_jobs=8;block_based_table_factory={block_size=1K}"
        );
        let families = OptionsFile::parse("[CFOptions \"other\"]\na=b\n");
        assert!(entries(Some(&families), &[], &defaults).unwrap_err().contains("`other`"));
        let plain = OptionsFile::parse("[TableOptions/PlainTable \"default\"]\na=b\n");
        assert!(entries(Some(&plain), &[], &defaults).unwrap_err().contains("PlainTable"));
    }

    #[test]
    fn a_value_with_further_options_is_refused() {
        let defaults = OptionsFile::default();
        for bad in [
            ("a", "1;b=2"),
            ("a", "{b=1"),
            ("a", "b}"),
            ("a;b", "1"),
            ("", "1"),
            ("create_if_missing", "false"),
            ("wal_dir", "/elsewhere"),
            ("block_based_table_factory", "x"),
        ] {
            assert!(entries(None, &set(&[bad]), &defaults).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_newest_file_has_the_largest_number() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(newest_file(directory.path()).unwrap(), None);
        for name in ["OPTIONS-000009", "OPTIONS-000123", "OPTIONS-000200.dbtmp", "LOG"] {
            fs::write(directory.path().join(name), FILE).unwrap();
        }
        let newest = newest_file(directory.path()).unwrap().unwrap();
        assert!(newest.ends_with("OPTIONS-000123"));
        assert!(read_newest(directory.path()).unwrap().unwrap().version().is_some());
    }
}
