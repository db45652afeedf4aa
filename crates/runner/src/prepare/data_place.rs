//! The directory for databases: whether this user can make them there, and whether its disk has the
//! space.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use words::size_text;

use crate::ground::failure::UsageError;
use crate::ground::host::free_bytes;
use crate::ground::request::RunRequest;

/// The remedy for an unusable directory for databases.
pub const WRITABLE_DATA_HELP: &str = "use `--data` to choose a writable directory";

/// The remedy if databases are made in the results.
const WRITABLE_RESULTS_HELP: &str = "use `--results` to choose a writable directory; databases are made in it unless `--data` names another";

/// The space that loads need, in multiples of the free space, above which a run is refused: an engine
/// may compress rows or keys, but not by so much.
const HOPELESS_FACTOR: u64 = 4;

/// Returns the remedy for an unusable directory for the databases of a run.
pub(crate) fn help_of_place(request: &RunRequest, data_root: &Path) -> &'static str {
    let is_of_results = request.data.is_none() && data_root.starts_with(&request.results);
    if is_of_results { WRITABLE_RESULTS_HELP } else { WRITABLE_DATA_HELP }
}

/// Refuses a directory for databases that this user cannot write to, or cannot create.
///
/// # Errors
/// The directory or one on the way to it is a file, is closed to this user, or is not on a disk.
pub fn refuse_unusable(data_root: &Path, help: &str) -> Result<(), UsageError> {
    let Some(existing) = existing_part(data_root) else {
        return Ok(());
    };
    let Some(problem) = problem_of(&existing) else {
        return Ok(());
    };

    let (path, place) = (data_root.display(), existing.display());
    let message = if existing == data_root {
        format!("cannot use the data directory: `{place}` {problem}")
    } else {
        format!("cannot create the data directory `{path}`: `{place}` {problem}")
    };
    Err(UsageError::new(message, Some(help.into())))
}

/// Refuses a run whose loads need far more than the free space. What servers need for themselves and
/// what measured steps add are guesses, and count for nothing here. What earlier runs left in the
/// directory counts as free.
///
/// # Errors
/// The disk has less than a quarter of that space.
pub(crate) fn refuse_little_space(data_root: &Path, loaded_bytes: u64) -> Result<(), UsageError> {
    let Some(free) = free_bytes_at(data_root) else {
        return Ok(());
    };
    if loaded_bytes <= free.saturating_mul(HOPELESS_FACTOR) {
        return Ok(());
    }

    // The next run removes the database of a killed one.
    let left = probe::storage_size(&[data_root.to_owned()], &[]).map_or(0, |(data, _)| data);
    if loaded_bytes <= free.saturating_add(left).saturating_mul(HOPELESS_FACTOR) {
        return Ok(());
    }

    let message = format!(
        "what the plan loads needs about {} at a time, but the disk of `{}` has only {} free",
        size_text(loaded_bytes),
        data_root.display(),
        size_text(free)
    );
    let help = "choose a directory on a larger disk with `--data DIR`, or load fewer rows; `assay check` \
                shows the estimate, and `assay run --ignore-space` runs the plan anyway";
    Err(UsageError::new(message, Some(help.into())))
}

/// Returns the free space of the disk on which a directory is or would be, in bytes; `None` if it is
/// unknown.
pub fn free_bytes_at(directory: &Path) -> Option<u64> {
    free_bytes(&existing_part(directory)?)
}

/// Returns the part of a path that exists.
fn existing_part(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        let named = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        if fs_err::metadata(named).is_ok() {
            return Some(named.to_owned());
        }
    }
    None
}

/// Returns why this user cannot make anything in a directory that exists, as a sentence continues
/// after its name.
fn problem_of(directory: &Path) -> Option<String> {
    if !directory.is_dir() {
        return Some("is not a directory".to_owned());
    }
    if has_no_disk(directory) {
        return Some("is not on a disk".to_owned());
    }
    let error = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("cannot be written to: {}", std::io::Error::from(error)))
}

/// Returns whether a directory is one of the kernel's own, `/proc` or `/sys`: root may write to these
/// by their mode, but nobody can make a file there.
fn has_no_disk(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_ok_and(|stat| matches!(stat.f_type, 0x9fa0 | 0x6265_6572))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        refuse_unusable(path, WRITABLE_DATA_HELP).unwrap_err().message
    }

    #[test]
    fn a_directory_in_which_no_database_can_be_made_is_refused_with_the_reason() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs_err::write(&file, "precious").unwrap();
        assert!(refused(&file).ends_with("file` is not a directory"));
        assert!(refused(&file.join("data")).ends_with("file` is not a directory"));
        assert!(refused(Path::new("/proc/x")).ends_with("`/proc/x`: `/proc` is not on a disk"));

        // One that is there, and one that a run creates.
        refuse_unusable(place.path(), WRITABLE_DATA_HELP).unwrap();
        refuse_unusable(&place.path().join("new/data"), WRITABLE_DATA_HELP).unwrap();
        assert!(!place.path().join("new").exists());
    }

    #[test]
    fn a_load_that_needs_far_more_than_the_free_space_is_refused_with_both_sizes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/data");
        // A file system in memory may have no limit.
        let Some(free) = free_bytes_at(&path) else {
            return;
        };
        refuse_little_space(&path, free).unwrap();
        // Others write to the disk, too.
        refuse_little_space(&path, 3 * free).unwrap();

        let refused = refuse_little_space(&path, 1_659_000_000_000_000).unwrap_err();
        assert!(refused.message.contains("needs about 1,659,000 GB at a time, but"));
        assert!(refused.help.unwrap().contains("`--data DIR`"));
        // The kernel's own directories have no size.
        assert_eq!(free_bytes_at(Path::new("/proc/x")), None);
    }
}
