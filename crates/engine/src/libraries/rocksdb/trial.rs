//! Tests before a run whether a library can open a database with a config.

use std::sync::Arc;

use super::checked_options::{clock_cache, entries_of, prepare};
use super::{Library, RocksDb};
use crate::contract::{Engine as _, KeyValueEngine as _, LibraryConfig};
use crate::error::SetupError;
use crate::safety::trial;

/// The options that the directory for temporary files may not support, or not have room for. Their
/// failure says nothing of the library.
const OF_THE_DIRECTORY: [(&str, &str); 3] = [
    ("use_direct_reads", "false"),
    ("use_direct_io_for_flush_and_compaction", "false"),
    ("allow_fallocate", "false"),
];

/// The capacity of a lock-free cache in a trial.
const CACHE_BYTES: usize = 1 << 20;

/// Opens an empty database with a config in the directory for temporary files, and removes it.
/// Returns the options that the version does not know, if the config allows that.
///
/// # Errors
/// The errors of [`RocksDb::create`].
pub fn try_config(
    library: &Arc<Library>,
    config: &LibraryConfig,
) -> Result<Vec<String>, SetupError> {
    let place = trial::Directory::create()?;
    // First as the config is, to see that the library takes the options; then without those that
    // depend on the directory.
    let capped = with_small_cache(library, config)?;
    prepare(library, &mut entries_of(library, &capped)?, &capped)?;

    let mut there = capped;
    let others = OF_THE_DIRECTORY.map(|(name, value)| (name.into(), value.into()));
    there.set.extend(others);

    let database = RocksDb::create(library, place.path(), &there)?;
    let not_applicable = database.left_out_options().to_vec();

    database.stop()?;
    Ok(not_applicable)
}

/// Returns the config with a small lock-free cache, which some versions allocate as a whole when
/// they create it.
fn with_small_cache(
    library: &Library,
    config: &LibraryConfig,
) -> Result<LibraryConfig, SetupError> {
    let mut capped = config.clone();

    for entry in entries_of(library, config)? {
        // An invalid cache is reported when the library gets the options.
        let Ok(Some(cache)) = clock_cache(&entry) else {
            continue;
        };

        let capacity = cache.capacity.min(CACHE_BYTES.max(cache.entry_charge));
        let value = match cache.entry_charge {
            0 => format!("{{id=AutoHyperClockCache;capacity={capacity}}}"),
            charge => format!(
                "{{id=HyperClockCache;capacity={capacity};estimated_entry_charge={charge}}}"
            ),
        };

        capped.set.push((entry.full_name(), value));
    }
    Ok(capped)
}
