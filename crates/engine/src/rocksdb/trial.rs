//! Tests before a run whether a library can open a database with a config.

use std::sync::Arc;

use super::{Config, Library, RocksDb, entries_of, prepare};
use crate::{Engine as _, SetupError, trial};

/// The options that the directory for temporary files may not support, or not have room for. Their
/// failure says nothing of the library.
const OF_THE_DIRECTORY: [(&str, &str); 3] = [
    ("use_direct_reads", "false"),
    ("use_direct_io_for_flush_and_compaction", "false"),
    ("allow_fallocate", "false"),
];

/// Opens an empty database with a config in the directory for temporary files, and removes it.
/// Returns the options that the version does not know, if the config allows that.
///
/// # Errors
/// The errors of [`RocksDb::create`].
pub fn try_config(library: &Arc<Library>, config: &Config) -> Result<Vec<String>, SetupError> {
    let place = trial::Directory::create()?;
    // As it is, to see that the library takes it; then without what is of another directory.
    prepare(library, &mut entries_of(library, config)?, config)?;
    let mut there = config.clone();
    let others = OF_THE_DIRECTORY.map(|(name, value)| (name.into(), value.into()));
    there.set.extend(others);
    let database = RocksDb::create(library, place.path(), &there)?;
    let not_applicable = database.not_applicable().to_vec();
    database.stop()?;
    Ok(not_applicable)
}
