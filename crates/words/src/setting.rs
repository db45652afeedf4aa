//! The settings of an engine, and the options of a config that ask for them.

use serde::{Deserialize, Serialize};

/// What a setting does, where the reading half makes something of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingRole {
    /// It decides how durable a commit is.
    Durability,
    /// It decides how much of the data is kept in memory.
    CacheSize,
    /// It decides how many processors or threads are used.
    Processors,
    /// It decides how many bytes compaction asks the kernel to read ahead at a time.
    CompactionReadahead,
    /// A role that a newer version of the format added.
    #[serde(other)]
    Unknown,
}

/// One effective setting, as the engine itself reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value in the engine's own notation, with its unit where the engine gives one apart.
    pub value: String,
    /// Where the engine says it came from: `default`, `configuration file`, ...
    pub source: Option<String>,
    /// The name that it has in all versions of the engine, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value in a form in which equal ones are equal, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// It differs by nature between targets and runs: a path that nobody asked for, a port, an identity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// What it does, where the reading half makes something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SettingRole>,
}

impl Setting {
    /// Returns a setting of which nothing more is known.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            ..Self::default()
        }
    }

    /// Returns the name by which it is compared.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.name)
    }

    /// Returns the value by which it is compared.
    pub fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.value)
    }
}

/// An option that a config declares, in its files or by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredOption {
    /// Its name as it was written.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
    /// The setting that it asks for: see [`Setting::key`].
    pub key: String,
    /// The value in a form in which equal ones are equal.
    pub canonical: String,
    /// A server that does not know it starts without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// What the setting does, where the reading half makes something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SettingRole>,
}

/// What became of an option that an engine does not have as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionStatus {
    /// The engine reports another value.
    Changed,
    /// The engine does not know it, and was told to start without it then.
    Unknown,
    /// The engine does not report it, so that nobody can tell.
    #[serde(other)]
    Unreported,
}

/// An option that a config declares and that its engine does not have, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetOption {
    /// The option as it was written.
    pub name: String,
    /// What is declared.
    pub declared: String,
    /// What the engine reports.
    pub effective: Option<String>,
    /// What became of it.
    pub status: OptionStatus,
}
