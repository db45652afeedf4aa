//! How engines write options and settings, and what these mean: what the reading half needs to compare them is said here,
//! when they are recorded.

use words::{DeclaredOption, OptionStatus, Setting, SettingRole, UnmetOption};

/// How an engine writes the options of its config.
pub trait Notation: Sync {
    /// Returns the options of a config's file; `None` is the value of a word that stands alone. Files that it includes
    /// are not read.
    fn options(&self, _file: &str) -> Vec<(String, Option<String>)> {
        Vec::new()
    }

    /// Returns the name that all spellings of an option and all versions' names of a setting share.
    fn key(&self, name: &str) -> String {
        name.trim().to_ascii_lowercase()
    }

    /// Returns the setting that an option asks for, and its value. `key` is [`Self::key`] of its name.
    fn asks_for(&self, key: String, value: Option<String>) -> (String, String) {
        (key, value.unwrap_or_default())
    }

    /// Returns true where a server that does not know the option starts without it.
    fn is_optional(&self, _name: &str) -> bool {
        false
    }

    /// Returns the options that a value is made of; `None` where it is not.
    fn parts(&self, _value: &str) -> Option<Vec<(String, String)>> {
        None
    }

    /// Returns a value in a form in which equal ones are equal.
    fn canonical(&self, key: &str, value: &str) -> String;

    /// Returns true where a target that reports `effective` has what is declared. More than equal values: one that leaves
    /// the choice to the engine, or a part of a list.
    fn holds(&self, key: &str, declared: &str, effective: &str) -> bool {
        self.canonical(key, declared) == self.canonical(key, effective)
    }

    /// Returns true where a setting differs by nature between any two targets.
    fn is_volatile(&self, _key: &str) -> bool {
        false
    }

    /// Settings of one role, by their keys.
    fn roles(&self) -> &'static [(SettingRole, &'static [&'static str])] {
        &[]
    }
}

/// Returns what a config declares: the options of its files in their order, and over them those of `set`. Of several of
/// one name the last holds, and stands where the first did. What is volatile is left out: assay decides it.
pub fn declared<'a>(
    notation: &dyn Notation,
    files: impl IntoIterator<Item = &'a str>,
    set: &[(String, String)],
) -> Vec<DeclaredOption> {
    let of_files = files.into_iter().flat_map(|file| notation.options(file));
    // A plan writes a word that stands alone as one with an empty value.
    let of_set = set
        .iter()
        .map(|(name, value)| (name.clone(), (!value.is_empty()).then(|| value.clone())));
    let mut all: Vec<DeclaredOption> = Vec::new();
    for (name, value) in of_files.chain(of_set) {
        let name = name.trim();
        let plain = notation.key(name);
        let (key, value) = notation.asks_for(plain.clone(), value);
        // A word that switches another option is told as that one.
        let shown = if key == plain { name } else { key.as_str() };
        for (path, value) in leaves(notation, &value) {
            let key = notation.key(&format!("{key}{path}"));
            if notation.is_volatile(&key) {
                continue;
            }
            let option = DeclaredOption {
                name: format!("{shown}{path}"),
                canonical: notation.canonical(&key, &value),
                optional: notation.is_optional(name),
                role: role(notation, &key),
                value,
                key,
            };
            match all.iter_mut().find(|known| known.key == option.key) {
                Some(known) => *known = option,
                None => all.push(option),
            }
        }
    }
    all
}

/// Says of settings what the reading half needs to compare them, taking apart those that are made of options, and returns
/// which of the declared options they are not.
pub fn describe(
    notation: &dyn Notation,
    settings: &mut Vec<Setting>,
    declared: &[DeclaredOption],
) -> Vec<UnmetOption> {
    let described = std::mem::take(settings).into_iter().flat_map(|setting| {
        let of_leaf = |(path, value): (String, String)| {
            let name = format!("{}{path}", setting.name);
            let key = notation.key(&name);
            let canonical = notation.canonical(&key, &value);
            let is_declared = declared.iter().any(|option| option.key == key);
            let is_path = canonical.starts_with('/');
            Setting {
                volatile: notation.is_volatile(&key) || is_path && !is_declared,
                role: setting.role.or_else(|| role(notation, &key)),
                key: (key != name).then_some(key),
                canonical: (canonical != value).then_some(canonical),
                name,
                value,
                source: setting.source.clone(),
            }
        };
        let leaves = leaves(notation, &setting.value).into_iter();
        leaves.map(of_leaf).collect::<Vec<_>>()
    });
    *settings = described.collect();
    let not_had = declared.iter().filter_map(|option| {
        let effective = settings.iter().find(|setting| setting.key() == option.key);
        let effective = effective.map(|setting| setting.value.as_str());
        let status = match effective {
            Some(effective) if notation.holds(&option.key, &option.value, effective) => {
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
    });
    not_had.collect()
}

/// Returns what a config lets its server use of the machine, as an option: `memory` in bytes, `cpus` by number.
pub fn declared_limit(what: &str, asked: &str) -> DeclaredOption {
    let name = format!("limit.{what}");
    DeclaredOption {
        role: limit_role(what),
        key: name.clone(),
        name,
        value: asked.to_owned(),
        canonical: asked.to_owned(),
        optional: false,
    }
}

/// Returns a limit as a setting; `None` is no limit.
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

/// The value, or those of the options that it is made of, each with its path: `.size_ratio`.
fn leaves(notation: &dyn Notation, value: &str) -> Vec<(String, String)> {
    match notation.parts(value) {
        Some(parts) if !parts.is_empty() => parts
            .into_iter()
            .flat_map(|(name, value)| {
                let leaves = leaves(notation, &value).into_iter();
                leaves.map(move |(path, value)| (format!(".{name}{path}"), value))
            })
            .collect(),
        _ => vec![(String::new(), value.to_owned())],
    }
}

fn role(notation: &dyn Notation, key: &str) -> Option<SettingRole> {
    const PROCESSORS: [&str; 6] = ["cpu", "thread", "worker", "parallel", "jobs", "concurrency"];
    let known = notation.roles().iter().find(|(_, keys)| {
        // A part of an option does what the option does.
        let is_it = |known: &&str| {
            key.strip_prefix(*known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        keys.iter().any(is_it)
    });
    known.map(|(role, _)| *role).or_else(|| {
        // A planner's costs and the size of a cache of threads limit nothing.
        let limits = PROCESSORS.iter().any(|word| key.contains(word));
        let is_other = key.ends_with("_cost") || key.ends_with("_cache_size");
        (limits && !is_other).then_some(SettingRole::Processors)
    })
}

/// Returns a value without the quotes and blanks around it, and a directory without its last slash.
pub(crate) fn bare(value: &str) -> &str {
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

/// Returns `1` or `0` for a word that switches something on or off.
pub(crate) fn switched(value: &str) -> Option<&'static str> {
    let is_in = |words: [&str; 4]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match () {
        () if is_in(["on", "true", "yes", "1"]) => Some("1"),
        () if is_in(["off", "false", "no", "0"]) => Some("0"),
        () => None,
    }
}

/// Returns a number, and what follows it.
pub(crate) fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// Returns a number whose unit, a power of 1024, is a letter; without a unit where it has none.
pub(crate) fn with_letter(text: &str) -> Option<String> {
    let (number, unit) = quantity(text)?;
    let power = ["", "k", "m", "g", "t", "p", "e"]
        .iter()
        .position(|letter| unit.eq_ignore_ascii_case(letter))?;
    Some((number * 1024_f64.powi(power as i32)).to_string())
}

/// Returns words in lower case. In patterns such as `%m` and in paths case matters.
pub(crate) fn lower_words(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | ' ' | '=');
    match text.chars().all(is_word) {
        true => text.to_ascii_lowercase(),
        false => text.to_owned(),
    }
}

/// Returns the word that a setting reports for another one of a table.
pub(crate) fn synonym<'a>(
    table: &[(&str, &str, &'a str)],
    key: &str,
    value: &str,
) -> Option<&'a str> {
    let mut table = table.iter();
    let found =
        table.find(|(setting, word, _)| *setting == key && value.eq_ignore_ascii_case(word));
    found.map(|(.., reported)| *reported)
}

#[cfg(test)]
mod tests;
