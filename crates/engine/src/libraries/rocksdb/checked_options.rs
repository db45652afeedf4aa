//! The options of a config, each of which the library has accepted, or is known to lack.

use words::MergeOperator;

use super::ffi::{ClockCache, Options};
use super::hints::hint;
use super::library::Library;
use super::options::{self, OptionEntry, OptionsFile};
use crate::contract::{LibraryConfig, UnknownOption};
use crate::error::SetupError;

/// The option with the operator that combines merged values.
const MERGE_OPERATOR: &str = "merge_operator";

/// Returns the options of the config, which the library has not checked yet.
pub(super) fn entries_of(
    library: &Library,
    config: &LibraryConfig,
) -> Result<Vec<OptionEntry>, SetupError> {
    let file = config.file.as_deref().map(OptionsFile::parse);
    options::entries(file.as_ref(), &config.set, &library.defaults).map_err(|what| {
        SetupError::config(what, "write options as in the OPTIONS file of a RocksDB database")
    })
}

/// Adds the operator that combines merged values. Returns false if the version has no name for it, so
/// that it cannot be set.
pub(super) fn add_merge_operator(
    library: &Library,
    entries: &mut Vec<OptionEntry>,
    operator: MergeOperator,
) -> Result<bool, SetupError> {
    let mut others = entries.iter().filter(|entry| !entry.is_table);
    match others.find(|entry| entry.name == MERGE_OPERATOR) {
        None => {
            let entry = OptionEntry::new(false, MERGE_OPERATOR, operator.name());
            let is_known = Options::new(library.api).with(&entry.text()).is_ok();
            if is_known {
                entries.push(entry);
            }
            Ok(is_known)
        }
        Some(entry) if [operator.name(), class_of(operator)].contains(&entry.value.as_str()) => {
            Ok(true)
        }
        Some(entry) => Err(SetupError::config(
            format!(
                "{}: the steps that merge need the operator `{}`",
                entry.shown(),
                operator.name()
            ),
            "remove the option, or the steps that merge; the key `merge-operator` of the workload chooses \
             the operator",
        )),
    }
}

/// Returns the other name of an operator.
fn class_of(operator: MergeOperator) -> &'static str {
    match operator {
        MergeOperator::Put => "PutOperator",
        MergeOperator::Uint64Add => "UInt64AddOperator",
    }
}

/// Returns the library's options for the config, and the options that it does not know, which are
/// removed from `entries`.
pub(super) fn prepare(
    library: &Library,
    entries: &mut Vec<OptionEntry>,
    config: &LibraryConfig,
) -> Result<(Options, Vec<String>), SetupError> {
    let version = library.version_text();
    let mut base = Options::new(library.api);
    if config.statistics {
        base.enable_statistics();
    }

    let mut sorted = SortedEntries::default();
    for entry in entries.drain(..) {
        match clock_cache(&entry).map_err(|what| refused(library, what))? {
            Some(cache) => sorted.add_cache(library, &mut base, config.unknown, entry, cache),
            None => sorted.add_text(library, &base, entry),
        }
    }
    let SortedEntries { given, mut text, mut not_applicable, mut wrong } = sorted;
    *entries = given;

    let mut answer = base.with(&options::join(&text));
    if answer.is_err() {
        let unknown = try_each(library, &base, &text, config.unknown, &mut wrong);
        if wrong.texts.is_empty() && !unknown.is_empty() {
            not_applicable.extend(unknown.iter().map(OptionEntry::full_name));
            text.retain(|entry| !unknown.contains(entry));
            entries.retain(|entry| !unknown.contains(entry));
            answer = base.with(&options::join(&text));
        }
    }

    if !wrong.texts.is_empty() {
        return Err(wrong.into_error(library));
    }
    let options =
        answer.map_err(|error| refused(library, format!("{version}: {}", error.message)))?;
    Ok((options, not_applicable))
}

/// The entries of a config, sorted by what becomes of them.
#[derive(Default)]
struct SortedEntries {
    /// Those that the database gets.
    given: Vec<OptionEntry>,
    /// Those of them that the library reads as text.
    text: Vec<OptionEntry>,
    /// Those that the library's version lacks.
    not_applicable: Vec<String>,
    /// The faults of the others. All are reported at once.
    wrong: Faults,
}

impl SortedEntries {
    /// Adds the entry of a lock-free cache, which the text form of options cannot make in every
    /// version that has it.
    fn add_cache(
        &mut self,
        library: &Library,
        base: &mut Options,
        unknown: UnknownOption,
        entry: OptionEntry,
        cache: ClockCache,
    ) {
        let adapts = cache.entry_charge == 0;
        if library.has_clock_cache(adapts) && base.set_clock_cache(cache) {
            self.given.push(entry);
        } else if unknown == UnknownOption::Skip {
            self.not_applicable.push(format!("{}={}", entry.full_name(), entry.value));
        } else {
            let version = library.version_text();
            let what = format!("{version} does not support the cache {}", entry.shown());
            self.wrong.texts.push(what);
        }
    }

    /// Adds an entry that the library reads as text, unless it would misread a number.
    fn add_text(&mut self, library: &Library, base: &Options, entry: OptionEntry) {
        let is_taken = |other: &OptionEntry| base.with(&other.text()).is_ok();
        if let Some(what) = options::wrong_number(&entry, &library.defaults, is_taken) {
            self.wrong.texts.push(what);
            self.wrong.hints.extend(hint(&entry, &library.defaults));
            return;
        }

        self.text.push(entry.clone());
        self.given.push(entry);
    }
}

/// The faults of the options of a config.
#[derive(Default)]
struct Faults {
    texts: Vec<String>,
    /// Questions with what was meant.
    hints: Vec<String>,
}

impl Faults {
    fn into_error(self, library: &Library) -> SetupError {
        let mut help = self.hints;
        help.push(help_of(library));
        SetupError::config(self.texts.join("; "), help.join(" "))
    }
}

fn refused(library: &Library, what: String) -> SetupError {
    SetupError::config(what, help_of(library))
}

/// Returns where the options of a version are listed.
fn help_of(library: &Library) -> String {
    let version = library.version_text();
    format!("the OPTIONS file of any database that {version} created lists its options")
}

/// Returns the entries that the library does not know, and adds those that it refuses to `wrong`.
/// Tests each entry alone, because the library reports only one of several invalid entries, and not
/// always the right one.
fn try_each(
    library: &Library,
    base: &Options,
    entries: &[OptionEntry],
    unknown_option: UnknownOption,
    wrong: &mut Faults,
) -> Vec<OptionEntry> {
    let is_refused = unknown_option == UnknownOption::Refuse;
    let mut unknown = Vec::new();
    let mut not_taken = Vec::new();
    for entry in entries {
        match base.with(&entry.text()) {
            Ok(_) => {}
            Err(error) if library.defaults.knows(entry) => {
                not_taken.push(format!("{}: {}", entry.shown(), error.message));
                wrong.hints.extend(hint(entry, &library.defaults));
            }
            Err(_) => {
                unknown.push(entry.clone());
                wrong.hints.extend(hint(entry, &library.defaults).filter(|_| is_refused));
            }
        }
    }

    let version = library.version_text();
    if !not_taken.is_empty() {
        wrong.texts.push(format!("{version} refuses {}", not_taken.join("; ")));
    }
    if !unknown.is_empty() && is_refused {
        let names: Vec<String> =
            unknown.iter().map(|entry| format!("`{}`", entry.full_name())).collect();
        wrong.texts.push(format!("{version} does not know the option {}", names.join(", ")));
    }
    unknown
}

/// Returns the lock-free cache that an entry describes; `None` for any other entry.
pub(super) fn clock_cache(entry: &OptionEntry) -> Result<Option<ClockCache>, String> {
    if entry.name != "block_cache" || !entry.is_table || !entry.value.starts_with('{') {
        return Ok(None);
    }

    let parts = options::nested(&entry.value)?;
    let Some(id) = options::part(&parts, "id") else {
        return Ok(None);
    };

    let known: &[&str] = match id {
        "HyperClockCache" => &["id", "capacity", "estimated_entry_charge"],
        "AutoHyperClockCache" => &["id", "capacity"],
        other => {
            let what = format!(
                "unknown cache `{other}`; write HyperClockCache or AutoHyperClockCache, or omit `id` for an LRU cache"
            );
            return Err(wrong_cache(entry, &what));
        }
    };

    let mut names = parts.iter().map(|(name, _)| name.as_str());
    if let Some(name) = names.find(|name| !known.contains(name)) {
        let what = format!("`{name}` cannot be set; supported are {}", known.join(", "));
        return Err(wrong_cache(entry, &what));
    }

    let capacity = cache_size(entry, &parts, "capacity")?;
    let mut entry_charge = 0;
    if known.contains(&"estimated_entry_charge") {
        entry_charge = cache_size(entry, &parts, "estimated_entry_charge")?;
    }
    Ok(Some(ClockCache { capacity, entry_charge }))
}

/// Returns the size that a part of the entry of a cache sets.
fn cache_size(
    entry: &OptionEntry,
    parts: &[(String, String)],
    name: &str,
) -> Result<usize, String> {
    let Some(text) = options::part(parts, name) else {
        return Err(wrong_cache(entry, &format!("`{name}` is missing")));
    };
    match options::bytes(text) {
        Some(size) if size > 0 => Ok(size),
        _ => Err(wrong_cache(entry, &format!("`{name}={text}` is not a size"))),
    }
}

fn wrong_cache(entry: &OptionEntry, what: &str) -> String {
    format!("`block_cache = {}`: {what}", entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(value: &str) -> Result<Option<ClockCache>, String> {
        clock_cache(&OptionEntry::new(true, "block_cache", value))
    }

    #[test]
    fn lock_free_caches_are_recognized() {
        assert_eq!(cache("8M"), Ok(None));
        assert_eq!(cache("{capacity=8M;num_shard_bits=4}"), Ok(None));
        let sizes = |value| {
            cache(value).map(|cache| cache.map(|cache| (cache.capacity, cache.entry_charge)))
        };
        let adapts = "{id=AutoHyperClockCache;capacity=2G}";
        assert_eq!(sizes(adapts), Ok(Some((2 << 30, 0))));
        let fixed = "{id=HyperClockCache;capacity=100;estimated_entry_charge=8K}";
        assert_eq!(sizes(fixed), Ok(Some((100, 8192))));
        for (bad, why) in [
            ("{id=HyperClockCache;capacity=1G}", "`estimated_entry_charge` is missing"),
            ("{id=ClockCache;capacity=1G}", "`ClockCache`"),
            ("{id=AutoHyperClockCache;capacity=much}", "`capacity=much`"),
            ("{id=AutoHyperClockCache;capacity=1G;num_shard_bits=2}", "`num_shard_bits`"),
        ] {
            let what = cache(bad).unwrap_err();
            assert!(what.contains(why), "{what}");
        }
    }
}
