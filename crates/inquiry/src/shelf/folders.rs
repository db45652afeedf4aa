//! Finds runs in a folder and in the folders below it.

use std::io;
use std::path::{Path, PathBuf};

use record::RunDir;

/// The file with the summary that is kept of a run for its history.
pub(super) const SUMMARY_FILE: &str = "history.json";

/// Folders below each other that are searched: a folder for each machine or month is fine, and a
/// whole disk is not.
const DEPTH_MAX: usize = 4;
/// More folders are not searched.
const FOLDERS_MAX: usize = 100_000;

/// A run, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    /// The directory.
    pub path: PathBuf,
    /// The path of the directory in the folder that was searched.
    pub name: String,
    /// The run has a record, not only what is kept for its history.
    pub has_record: bool,
}

/// Returns the runs in a folder and below it, without following links. Folders that cannot be read
/// are left out.
pub fn run_folders(folder: &Path) -> Vec<RunFolder> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), String::new(), 0)];
    let mut searched = 0;

    while let Some((path, name, depth)) = open.pop() {
        searched += 1;
        let has_record = depth > 0 && RunDir::exists_at(&path);
        if depth > 0 && (has_record || is_regular(&path.join(SUMMARY_FILE))) {
            found.push(RunFolder { path, name, has_record });
            continue;
        }

        if depth == DEPTH_MAX || searched > FOLDERS_MAX {
            continue;
        }

        let Ok(entries) = fs_err::read_dir(&path) else {
            continue;
        };

        for entry in entries.flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let own = entry.file_name().to_string_lossy().into_owned();
            if is_folder && !own.starts_with('.') {
                let below = if name.is_empty() { own } else { format!("{name}/{own}") };
                open.push((entry.path(), below, depth + 1));
            }
        }
    }

    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns the runs in a folder, the oldest first: names begin with the time of the start. Empty if
/// the path is not a folder.
///
/// # Errors
/// The folder cannot be read.
pub fn runs_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    entries_with(folder, RunDir::exists_at)
}

/// Returns the entries of a folder that `is_wanted`, in the order of their names. Empty if the path is
/// not a folder.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn entries_with(
    folder: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };

    let mut wanted = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A link may stand for a run that is in the folder as well.
        if !path.is_symlink() && is_wanted(&path) {
            wanted.push(path);
        }
    }

    wanted.sort();
    Ok(wanted)
}

/// Returns whether a path is a file, not a link to one.
pub(super) fn is_regular(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_below_a_folder_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let month = root.path().join("2026/01");
        fs_err::create_dir_all(&month).unwrap();
        let run = RunDir::create(&month, &record::Run::default()).unwrap();
        let kept = root.path().join("kept/20260101T000000Z-a");
        fs_err::create_dir_all(&kept).unwrap();
        fs_err::write(kept.join(SUMMARY_FILE), "{}").unwrap();
        std::os::unix::fs::symlink(&kept, root.path().join("linked")).unwrap();
        // The folders of a run are its cells, which are no runs.
        fs_err::create_dir_all(run.path().join("cells")).unwrap();
        fs_err::write(run.path().join("cells").join(SUMMARY_FILE), "{}").unwrap();

        let found = run_folders(root.path());
        let names: Vec<(&str, bool)> =
            found.iter().map(|place| (place.name.as_str(), place.has_record)).collect();
        let recorded = run.path().strip_prefix(root.path()).unwrap().to_str().unwrap();
        assert_eq!(names, [(recorded, true), ("kept/20260101T000000Z-a", false)]);
    }
}
