//! The record of a kept database, of which a cell used a copy.

use serde::{Deserialize, Serialize};
use words::Check;

/// A database that the first steps of a cell made, and that was kept for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptDatabase {
    /// The name in the folder of databases.
    pub name: String,
    /// The SHA-256 of all that made it, in hexadecimal.
    pub fingerprint: String,
    /// The time at which it was made.
    pub made_unix_ns: u64,
    /// The run whose cell made it; empty in earlier records.
    #[serde(default)]
    pub made_by: String,
    /// The last step that made it; empty in earlier records.
    #[serde(default)]
    pub after_step: String,
    /// Measured steps made it as well, not only those that load.
    #[serde(default)]
    pub has_measured_steps: bool,
    /// The target that loads it for this one, if that is another.
    pub loaded_by: Option<String>,
    /// This cell made it.
    pub made_here: bool,
    /// The number of first steps that the cell left out, since the database has their results.
    pub steps_left_out: u32,
    /// The number of files.
    pub files: u64,
    /// The number of files whose blocks the copy shares with the original.
    pub cloned: u64,
    /// The size of all files in bytes.
    pub bytes: u64,
    /// The time that copying took.
    pub copy_ns: u64,
    /// The time that a program took to upgrade the copy (`pg_upgrade`); `None` if none did.
    pub upgrade_ns: Option<u64>,
    /// The time that the engine took to start on the copy, with any upgrade of its own.
    pub open_ns: u64,
    /// The database's files in the page cache when the steps began.
    pub page_cache: PageCache,
    /// The comparison of the copy with what the load wrote.
    pub checks: Vec<Check>,
}

/// The files of a database in the kernel's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// The kernel decided.
    #[default]
    Unknown,
    /// They were read into the page cache.
    Warmed,
    /// They were removed from the page cache.
    Dropped,
}
