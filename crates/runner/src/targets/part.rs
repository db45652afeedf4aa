//! The part of a cell's steps that a target runs, maybe on a copy of a kept database.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use engine::{Copied, CopyOptions, DataDir, copy_database};
use record::Setting;

use super::site::CellSite;
use crate::databases::Entry;

/// The part of a cell's steps that its target runs.
pub struct Part {
    /// The numbers of the steps, from 0.
    pub steps: Range<usize>,
    /// The kept database of which the target gets a copy; `None` for a new database.
    pub database: Option<Box<Entry>>,
}

impl CellSite<'_> {
    /// Returns the numbers of the steps that the target runs, from 0.
    pub fn part_of_steps(&self) -> Range<usize> {
        self.part.steps.clone()
    }

    /// Returns the directory with the files of a kept database, of which the target gets a copy.
    pub fn database_to_copy(&self) -> Option<PathBuf> {
        self.part.database.as_ref().map(|entry| entry.data())
    }

    /// Returns the settings of the engine while it made the database that the target copies.
    pub fn settings_of_load(&self) -> Option<Vec<Setting>> {
        Some(self.part.database.as_ref()?.manifest.load_settings.clone())
    }

    /// Copies the kept database into the directory of a target, if there is one to copy. Returns
    /// whether there is.
    pub fn copy_kept_database(&mut self, data_dir: &DataDir) -> anyhow::Result<bool> {
        let Some(database) = self.database_to_copy() else {
            return Ok(false);
        };

        let options = CopyOptions {
            owner_before: rustix::process::geteuid().as_raw(),
            owner_after: None,
            stop: &self.session.stop,
        };

        match copy_database(&database, data_dir.path(), &options) {
            Ok(copied) => self.note_copy(copied),
            Err(error) => {
                // A failed cell must leave no files. The next one wipes what cannot be removed now.
                let _ = data_dir.clone().remove();
                return Err(error).context("the kept database cannot be copied");
            }
        }

        Ok(true)
    }

    /// Records how the target's copy was made.
    pub fn note_copy(&mut self, copied: Copied) {
        if let Some(database) = &mut self.record.database {
            database.files = copied.files;
            database.cloned = copied.cloned;
            database.bytes = copied.bytes;
            database.copy_ns = copied.took.as_nanos() as u64;
        }
    }

    /// Records how long a program took to upgrade the target's copy.
    pub fn note_upgrade(&mut self, took: Option<Duration>) {
        if let Some(database) = &mut self.record.database {
            database.upgrade_ns = took.map(|took| took.as_nanos() as u64);
        }
    }
}
