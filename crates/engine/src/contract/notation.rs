//! The notation of options and settings in each engine, and their meaning, which is recorded with
//! them, so that the reading half can compare them without knowing the engines.

use words::{DeclaredOption, OptionStatus, Setting, SettingRole, UnmetOption};

/// An engine's notation of the options in its config.
pub trait Notation: Sync {
    /// Returns the options in a configuration file. The value `None` means a name without a value.
    /// Does not read files that it includes.
    fn options(&self, _file: &str) -> Vec<(String, Option<String>)> {
        Vec::new()
    }

    /// Returns the common name of all spellings of an option, and of a setting's names in all
    /// versions.
    fn key(&self, name: &str) -> String {
        name.trim().to_ascii_lowercase()
    }

    /// Returns the setting that an option sets, and its value. `key` is [`Self::key`] of the
    /// option's name.
    fn target_setting(&self, key: String, value: Option<String>) -> (String, String) {
        (key, value.unwrap_or_default())
    }

    /// Returns true if servers that do not know the option ignore it.
    fn is_optional(&self, _name: &str) -> bool {
        false
    }

    /// Returns the options within a structured value; `None` for any other value.
    fn nested_options(&self, _value: &str) -> Option<Vec<(String, String)>> {
        None
    }

    /// Returns the canonical form of a value: equivalent values have the same one.
    fn canonical(&self, key: &str, value: &str) -> String;

    /// Returns true when a target that reports `effective` has the declared value. The two may
    /// differ: the declared value may leave the choice to the engine, or be an element of a
    /// list.
    fn satisfies(&self, key: &str, declared: &str, effective: &str) -> bool {
        self.canonical(key, declared) == self.canonical(key, effective)
    }

    /// Returns true if Assay sets an option of its servers itself, so that a config's value has no
    /// effect.
    fn is_reserved(&self, _key: &str) -> bool {
        false
    }

    /// Returns true when a setting always differs between targets.
    fn is_volatile(&self, _key: &str) -> bool {
        false
    }

    /// Returns the settings that have no effect unless another one has a certain value.
    fn conditions(&self) -> &'static [Condition] {
        &[]
    }

    /// Returns the keys of the settings of each role.
    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[]
    }
}

/// Settings that have an effect only while another setting has a certain value.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// The beginning of their keys.
    pub keys: &'static str,
    /// The key of the other setting.
    pub needs: &'static str,
    /// The canonical value of the other setting.
    pub value: &'static str,
}

impl Condition {
    /// Returns whether the settings are known to have no effect.
    fn fails(&self, settings: &[Setting]) -> bool {
        let needed = settings.iter().find(|setting| setting.key() == self.needs);
        needed.is_some_and(|setting| setting.canonical() != self.value)
    }
}

/// Returns the options that a config declares: those of its files in order, overridden by those of
/// `set`. If an option occurs more than once, the last value counts, at the position of the first.
/// Excludes volatile options, which assay sets.
pub fn declared<'a>(
    notation: &dyn Notation,
    files: impl IntoIterator<Item = &'a str>,
    set: &[(String, String)],
) -> Vec<DeclaredOption> {
    let file_options = files.into_iter().flat_map(|file| notation.options(file));
    // In a plan, an empty value means a name without a value.
    let set_options = set.iter().map(|(name, value)| {
        let value = if value.is_empty() { None } else { Some(value.clone()) };
        (name.clone(), value)
    });

    let mut options: Vec<DeclaredOption> = Vec::new();
    for (name, value) in file_options.chain(set_options) {
        for option in declared_leaves(notation, name.trim(), value) {
            match options.iter_mut().find(|known| known.key == option.key) {
                Some(known) => *known = option,
                None => options.push(option),
            }
        }
    }
    options
}

/// Returns a declared option, or its nested options if its value is structured. Leaves out volatile
/// ones.
fn declared_leaves(
    notation: &dyn Notation,
    name: &str,
    value: Option<String>,
) -> Vec<DeclaredOption> {
    let own_key = notation.key(name);
    let (target_key, value) = notation.target_setting(own_key.clone(), value);

    // An option that sets another one is reported under that one's name.
    let shown = if target_key == own_key { name } else { target_key.as_str() };

    let mut options = Vec::new();
    for (path, value) in leaves(notation, &value) {
        let key = notation.key(&format!("{target_key}{path}"));
        if notation.is_volatile(&key) {
            continue;
        }
        options.push(DeclaredOption {
            name: format!("{shown}{path}"),
            canonical: notation.canonical(&key, &value),
            optional: notation.is_optional(name),
            role: role(notation, &key),
            value,
            key,
        });
    }
    options
}

/// Adds to settings what the reading half needs to compare them, and splits structured values.
/// Returns the declared options that are not in effect.
pub fn describe(
    notation: &dyn Notation,
    settings: &mut Vec<Setting>,
    declared: &[DeclaredOption],
) -> Vec<UnmetOption> {
    let mut described = Vec::new();
    for setting in std::mem::take(settings) {
        for (path, value) in leaves(notation, &setting.value) {
            described.push(describe_leaf(notation, &setting, &path, value, declared));
        }
    }
    *settings = described;
    remove_roles_without_effect(notation, settings);

    declared.iter().filter_map(|option| unmet(notation, option, settings)).collect()
}

/// Returns a setting, or a part of one whose value is structured.
fn describe_leaf(
    notation: &dyn Notation,
    setting: &Setting,
    path: &str,
    value: String,
    declared: &[DeclaredOption],
) -> Setting {
    let name = format!("{}{path}", setting.name);
    let key = notation.key(&name);

    let canonical = notation.canonical(&key, &value);
    let is_declared = declared.iter().any(|option| option.key == key);
    let is_path = canonical.starts_with('/');

    Setting {
        volatile: notation.is_volatile(&key) || is_path && !is_declared,
        role: setting.role.or_else(|| role(notation, &key)),
        key: if key == name { None } else { Some(key) },
        canonical: if canonical == value { None } else { Some(canonical) },
        name,
        value,
        source: setting.source.clone(),
    }
}

/// Returns a declared option if it is not in effect.
fn unmet(
    notation: &dyn Notation,
    option: &DeclaredOption,
    settings: &[Setting],
) -> Option<UnmetOption> {
    let setting = settings.iter().find(|setting| setting.key() == option.key);
    let effective = setting.map(|setting| setting.value.as_str());

    let status = match effective {
        Some(effective) if notation.satisfies(&option.key, &option.value, effective) => {
            return None;
        }
        Some(_) => OptionStatus::Changed,
        None if option.optional => OptionStatus::Unknown,
        None => OptionStatus::Unreported,
    };

    Some(UnmetOption {
        name: option.name.clone(),
        declared: option.value.clone(),
        effective: effective.map(str::to_owned),
        status,
    })
}

/// Removes the roles of settings that have no effect: a difference in one of them explains nothing.
fn remove_roles_without_effect(notation: &dyn Notation, settings: &mut [Setting]) {
    for condition in notation.conditions() {
        if !condition.fails(settings) {
            continue;
        }

        for setting in settings.iter_mut() {
            if setting.key().starts_with(condition.keys) {
                setting.role = None;
            }
        }
    }
}

/// Returns a limit of a config as an option: `memory` in bytes, or `cpus` as a list of numbers.
pub fn declared_limit(what: &str, value: &str) -> DeclaredOption {
    let name = format!("limit.{what}");

    DeclaredOption {
        role: limit_role(what),
        key: name.clone(),
        name,
        value: value.to_owned(),
        canonical: value.to_owned(),
        optional: false,
    }
}

/// Returns a limit as a setting; `None` means no limit.
pub fn limit_setting(what: &str, value: Option<&str>) -> Setting {
    Setting {
        role: limit_role(what),
        ..Setting::new(format!("limit.{what}"), value.unwrap_or("none"))
    }
}

fn limit_role(what: &str) -> Option<SettingRole> {
    Some(match what {
        "memory" => SettingRole::CacheSize,
        _ => SettingRole::Processors,
    })
}

/// Returns the value with an empty path, or the nested options of a structured value with their
/// paths: `.size_ratio`.
fn leaves(notation: &dyn Notation, value: &str) -> Vec<(String, String)> {
    let options = notation.nested_options(value).unwrap_or_default();
    if options.is_empty() {
        return vec![(String::new(), value.to_owned())];
    }

    let mut all = Vec::new();
    for (name, value) in options {
        for (path, leaf) in leaves(notation, &value) {
            all.push((format!(".{name}{path}"), leaf));
        }
    }
    all
}

fn role(notation: &dyn Notation, key: &str) -> Option<SettingRole> {
    const PROCESSORS: [&str; 6] = ["cpu", "thread", "worker", "parallel", "jobs", "concurrency"];
    // A nested option has the role of its option.
    let is_part_of = |known: &&str| {
        key.strip_prefix(*known).is_some_and(|path| path.is_empty() || path.starts_with('.'))
    };

    let known = notation.roles().iter().find(|(_, keys)| keys.iter().any(is_part_of));
    if let Some((role, _)) = known {
        return Some(*role);
    }

    // Features of a build, a planner's costs and the size of a thread cache limit no processors.
    let has_word = PROCESSORS.iter().any(|word| key.contains(word));
    let is_unrelated =
        key.starts_with("build.") || key.ends_with("_cost") || key.ends_with("_cache_size");
    if has_word && !is_unrelated { Some(SettingRole::Processors) } else { None }
}

/// Returns a value without surrounding quotes and spaces, and a directory without its trailing
/// slash.
pub(crate) fn bare(value: &str) -> &str {
    let trimmed = value.trim();
    let inner = ['\'', '"'].iter().find_map(|&quote| {
        trimmed.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
    });
    let bare = inner.unwrap_or(trimmed).trim();

    if bare.len() > 1 && (bare.starts_with('/') || bare.starts_with("./")) {
        bare.strip_suffix('/').unwrap_or(bare)
    } else {
        bare
    }
}

/// Returns `1` or `0` for a word that means on or off.
pub(crate) fn as_boolean(value: &str) -> Option<&'static str> {
    let is_in = |words: [&str; 4]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is_in(["on", "true", "yes", "1"]) {
        Some("1")
    } else if is_in(["off", "false", "no", "0"]) {
        Some("0")
    } else {
        None
    }
}

/// Returns the number that a text begins with, and the text after it.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// Converts a number with an optional unit, a letter for a power of 1024, to a plain number.
pub(crate) fn without_unit(text: &str) -> Option<String> {
    let (number, unit) = split_number(text)?;
    let power = ["", "k", "m", "g", "t", "p", "e"]
        .iter()
        .position(|letter| unit.eq_ignore_ascii_case(letter))?;
    Some((number * 1024_f64.powi(power as i32)).to_string())
}

/// Returns words in lower case. Leaves patterns such as `%m` and paths unchanged, where case
/// matters.
pub(crate) fn lower_words(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | ' ' | '=');
    if text.chars().all(is_word) { text.to_ascii_lowercase() } else { text.to_owned() }
}

/// Looks a setting's word up in a table of synonyms, and returns the word that the server reports
/// for it.
pub(crate) fn synonym<'a>(
    table: &[(&str, &str, &'a str)],
    key: &str,
    value: &str,
) -> Option<&'a str> {
    let row =
        table.iter().find(|(setting, word, _)| *setting == key && value.eq_ignore_ascii_case(word));
    row.map(|(.., reported)| *reported)
}

#[cfg(test)]
mod tests;
