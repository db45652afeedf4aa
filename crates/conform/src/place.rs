//! The database of a check.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use engine::custom::{CustomEngine, CustomLibrary, CustomSession};
use engine::{
    Direction, KeyValueEngine as _, KeyValueLibrary as _, KeyValueSession, LibraryConfig, Scan,
};
use words::Durability;

use crate::Task;
use crate::model::Entries;

/// The library, and where its database is.
pub(crate) struct DatabasePlace {
    pub(crate) library: Arc<CustomLibrary>,
    pub(crate) directory: PathBuf,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) seed: u64,
}

impl DatabasePlace {
    /// Loads the library of a task.
    pub(crate) fn of(task: &Task) -> anyhow::Result<Self> {
        Ok(Self {
            library: CustomLibrary::load(&task.library)?,
            directory: task.directory.clone(),
            options: task.options.clone(),
            seed: task.seed,
        })
    }

    /// Returns the config with a durability.
    pub(crate) fn config(&self, durability: Durability) -> LibraryConfig {
        LibraryConfig { set: self.options.clone(), durability, ..LibraryConfig::default() }
    }

    /// Returns the config with the weakest durability of the library that survives the process, or
    /// its only one.
    fn usual_config(&self) -> LibraryConfig {
        let offered = self.library.durabilities();
        let survives = offered.iter().find(|durability| **durability >= Durability::Process);
        self.config(survives.copied().unwrap_or(Durability::None))
    }

    /// Creates the database.
    pub(crate) fn create(&self) -> anyhow::Result<CustomEngine> {
        let created = self.library.create_database(&self.directory, &self.usual_config());
        created.context("a new database cannot be created")
    }

    /// Opens the database that was created.
    pub(crate) fn open(&self) -> anyhow::Result<CustomEngine> {
        let opened = self.library.open_database(&self.directory, &self.usual_config());
        opened.context("the database cannot be opened again")
    }
}

/// Opens a session.
pub(crate) fn connect(database: &CustomEngine) -> anyhow::Result<CustomSession> {
    database.connect().context("a session cannot be opened")
}

/// Returns a copy of a key's value.
pub(crate) fn value_of(session: &mut CustomSession, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let value = session.get(key).with_context(|| format!("the key {}", shown(key)))?;
    Ok(value.map(<[u8]>::to_vec))
}

/// Returns up to `limit` entries from a key on.
pub(crate) fn scanned(
    session: &mut CustomSession,
    from: &[u8],
    direction: Direction,
    limit: u64,
) -> anyhow::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut entries = Vec::new();
    let scan = Scan { from, direction, limit, verifies_order: true };
    session
        .scan(scan, |key, value| entries.push((key.to_vec(), value.to_vec())))
        .with_context(|| format!("a scan from {}", shown(from)))?;
    Ok(entries)
}

/// Compares all of a database with what should be in it; `None` if they are equal.
pub(crate) fn difference(
    session: &mut CustomSession,
    expected: &Entries,
) -> anyhow::Result<Option<String>> {
    let found = scanned(session, &[], Direction::Forward, u64::MAX)?;
    let mut expected = expected.iter();
    for (key, value) in &found {
        match expected.next() {
            Some((next, _)) if next < key => {
                return Ok(Some(format!("the key {} is missing", shown(next))));
            }
            Some((next, wanted)) if next == key && wanted != value => {
                return Ok(Some(format!("the key {} has {}", shown(key), wrong(value, wanted))));
            }
            Some((next, _)) if next == key => {}
            _ => return Ok(Some(format!("the key {} should not be there", shown(key)))),
        }
    }
    Ok(expected.next().map(|(key, _)| format!("the key {} is missing", shown(key))))
}

/// Describes a value that is not the wanted one.
pub(crate) fn wrong(found: &[u8], wanted: &[u8]) -> String {
    if found.len() == wanted.len() {
        return "another value".to_owned();
    }
    format!("a value of {} bytes instead of {}", found.len(), wanted.len())
}

/// Returns a key for people, in hexadecimal: the beginning and the size of a long one.
pub(crate) fn shown(key: &[u8]) -> String {
    const SHOWN_MAX: usize = 6;
    let first: String = key.iter().take(SHOWN_MAX).map(|byte| format!("{byte:02x}")).collect();
    match key.len() {
        0 => "the beginning".to_owned(),
        size if size > SHOWN_MAX => format!("`{first}...` ({size} bytes)"),
        _ => format!("`{first}`"),
    }
}
