//! The settings of an engine, and the config options that request them.

use serde::{Deserialize, Serialize};

/// The meaning of a setting, for findings that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingRole {
    /// The setting decides how durable commits are.
    Durability,
    /// The setting decides how much of the data is kept in memory.
    CacheSize,
    /// The setting decides how many processors or threads are used.
    Processors,
    /// The setting decides how many bytes the kernel reads ahead for compaction.
    CompactionReadahead,
    /// A role that a newer version of the format added.
    #[serde(other)]
    Unknown,
}

/// Returns the name of an option without its section, which says nothing to readers.
///
/// ```
/// use words::without_section;
///
/// assert_eq!(without_section("[CFOptions] compression"), "compression");
/// assert_eq!(without_section("shared_buffers"), "shared_buffers");
/// ```
pub fn without_section(name: &str) -> &str {
    match name.split_once("] ") {
        Some((section, bare)) if section.starts_with('[') => bare,
        _ => name,
    }
}

/// One effective setting, as the engine itself reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The name of the setting.
    pub name: String,
    /// The value in the engine's notation, with the unit if the engine reports one separately.
    pub value: String,
    /// The origin of the value, as the engine reports it: `default`, `configuration file`, ...
    pub source: Option<String>,
    /// The name of the setting in all versions of the engine, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value in a form that is the same for equal values, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// The value always differs between targets and runs, such as a default path, a port or an
    /// identity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// The meaning of the setting, for findings that use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SettingRole>,
}

impl Setting {
    /// Returns a setting with only a name and a value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), ..Self::default() }
    }

    /// Returns the name for comparisons.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.name)
    }

    /// Returns the value for comparisons.
    pub fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.value)
    }
}

/// An option that a config declares, itself or in one of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredOption {
    /// The option's name, as written.
    pub name: String,
    /// The option's value, without quotes.
    pub value: String,
    /// The setting that the option requests; see [`Setting::key`].
    pub key: String,
    /// The value in a form that is the same for equal values.
    pub canonical: String,
    /// A server that does not have the option starts without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The meaning of the setting, for findings that use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SettingRole>,
}

/// The way in which an option in the engine differs from its declaration in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionStatus {
    /// The engine reports another value.
    Changed,
    /// The engine does not have the option, and started without it as requested.
    Unknown,
    /// The engine does not report the option.
    #[serde(other)]
    Unreported,
}

/// An option that a config declares, but that the engine does not have or may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetOption {
    /// The option, as written.
    pub name: String,
    /// The declared value.
    pub declared: String,
    /// The value that the engine reports.
    pub effective: Option<String>,
    /// The way in which the two differ.
    pub status: OptionStatus,
}
