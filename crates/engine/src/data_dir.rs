//! A directory for an engine's files that assay made, and may therefore remove: it carries a marker that says so.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;

use crate::SetupError;
use crate::guard::Deadline;

/// The file that marks a directory as assay's.
pub const MARKER: &str = "assay-data-directory.json";

/// What the marker begins with; the rest of it is for people.
const MARKER_START: &str = "{\"made_by\":\"assay\"";
const MARKER_REST: &str =
    ",\"note\":\"assay made this directory and removes it when it needs the place again\"}\n";

/// The longest time that processes that write to a directory may take to end before it is wiped.
const WRITERS_END: Duration = Duration::from_secs(10);

/// A directory that assay made. Dropping it leaves it where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Makes `parent/name` and marks it, `parent` with it if need be. A directory of that name that carries the
    /// marker is opened as it is: [`wipe`](Self::wipe) empties it. One with nothing in it, or no more than the start of
    /// the marker, is taken over; any other is refused.
    ///
    /// # Errors
    /// [`SetupError::Directory`] when something else is there, [`SetupError::Io`] when it can't be made.
    pub fn create(parent: &Path, name: &str) -> Result<Self, SetupError> {
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            return Err(SetupError::Directory {
                path: parent.to_path_buf(),
                what: format!("`{name}` can't be the name of a data directory"),
                help: "a name has no `/` and is not empty".into(),
            });
        }
        fs::create_dir_all(parent)?;
        // Resolved once, so that a link that is changed later leads nowhere else.
        let path = fs::canonicalize(parent)?.join(name);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if Self::carries_marker(&path)? {
                    return Ok(Self { path });
                }
                if !is_empty(&path)? {
                    return Err(not_ours(
                        path,
                        "is not empty and not assay's: it has no marker",
                    ));
                }
            }
            Err(error) => return Err(error.into()),
        }
        let mut marker = fs::File::create_new(path.join(MARKER))?;
        marker.write_all(MARKER_START.as_bytes())?;
        marker.write_all(MARKER_REST.as_bytes())?;
        marker.sync_all()?;
        Ok(Self { path })
    }

    /// Where it is; absolute, and free of symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything in it but the marker. Symbolic links are removed, not followed. Waits for processes that write
    /// to it: those of a server that was killed take a moment to end.
    ///
    /// # Errors
    /// [`SetupError::Directory`] when the marker is gone, the directory was replaced by something else, or a process goes
    /// on writing to it; [`SetupError::Io`] when something can't be removed.
    pub fn wipe(&self) -> Result<(), SetupError> {
        self.require_marker()?;
        self.require_unused(WRITERS_END)?;
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARKER {
                continue;
            }
            let path = entry.path();
            // A link has the type of a link here: it is unlinked. `remove_dir_all` follows none either.
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes it with all that is in it, under the conditions of [`wipe`](Self::wipe).
    ///
    /// # Errors
    /// Those of [`wipe`](Self::wipe).
    pub fn remove(self) -> Result<(), SetupError> {
        // The marker goes last: what is interrupted here is still assay's.
        self.wipe()?;
        fs::remove_file(self.path.join(MARKER))?;
        Ok(fs::remove_dir(&self.path)?)
    }

    fn require_marker(&self) -> Result<(), SetupError> {
        match Self::carries_marker(&self.path)? {
            true => Ok(()),
            false => Err(not_ours(
                self.path.clone(),
                "is not assay's: it has no marker",
            )),
        }
    }

    fn require_unused(&self, within: Duration) -> Result<(), SetupError> {
        let limit = Deadline::after(within);
        while let Some(pid) = writer_in(&self.path) {
            if limit.has_passed() {
                return Err(SetupError::Directory {
                    path: self.path.clone(),
                    what: format!("is in use: process {pid} has a file in it open for writing"),
                    help: format!("end that process (`kill {pid}`)"),
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Whether `path` is a directory, not a link to one, with a marker that is a file, not a link to one.
    fn carries_marker(path: &Path) -> Result<bool, SetupError> {
        let kind = fs::symlink_metadata(path)?.file_type();
        if !kind.is_dir() {
            let what = if kind.is_symlink() {
                "is a symbolic link"
            } else {
                "is not a directory"
            };
            return Err(not_ours(path.to_path_buf(), what));
        }
        let marker = path.join(MARKER);
        match fs::symlink_metadata(&marker) {
            Ok(metadata) if metadata.is_file() => {
                Ok(fs::read_to_string(&marker)?.starts_with(MARKER_START))
            }
            Ok(_) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Another process that has a file below `path` open for writing. Those of other users are seen by root alone.
fn writer_in(path: &Path) -> Option<u32> {
    let numbers = |directory: &str| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let writes = |pid: u32| {
        let directory = format!("/proc/{pid}/fd");
        numbers(&directory).any(|number| {
            let file = format!("{directory}/{number}");
            // The link's own permissions tell how the file was opened.
            fs::symlink_metadata(&file).is_ok_and(|it| it.mode() & 0o200 != 0)
                && fs::read_link(&file).is_ok_and(|file| file.starts_with(path))
        })
    };
    numbers("/proc").find(|&pid| pid != std::process::id() && writes(pid))
}

/// Whether nothing is in the directory. What was written of a marker by an assay that was killed at that moment, or whose
/// disk was full, is removed.
fn is_empty(path: &Path) -> std::io::Result<bool> {
    let mut entries = fs::read_dir(path)?;
    let (first, second) = (entries.next().transpose()?, entries.next());
    let Some(first) = first else {
        return Ok(true);
    };
    let is_begun = second.is_none()
        && first.file_name() == MARKER
        && first.file_type()?.is_file()
        && MARKER_START
            .as_bytes()
            .starts_with(&fs::read(first.path())?);
    if is_begun {
        fs::remove_file(first.path())?;
    }
    Ok(is_begun)
}

fn not_ours(path: PathBuf, what: &str) -> SetupError {
    SetupError::Directory {
        path,
        what: what.into(),
        help: format!(
            "choose another data directory, or move this one away; assay removes only what carries its `{MARKER}`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_directory_of_ours_is_opened_again_and_wiped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        fs::create_dir(dir.path().join("cluster")).unwrap();
        fs::write(dir.path().join("cluster/1"), "x").unwrap();
        let again = DataDir::create(parent.path(), "cell").unwrap();
        assert_eq!(dir, again);
        again.wipe().unwrap();
        let left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, [MARKER]);
        dir.remove().unwrap();
        assert!(!parent.path().join("cell").exists());
    }

    #[test]
    fn a_directory_that_a_process_writes_to_is_not_wiped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        let file = dir.path().join("file");
        let mut writer = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&file).unwrap().into_parts().0)
            .spawn()
            .unwrap();
        // Until it runs its program, the new process has the files of this one open, its own among them.
        while fs::read_to_string(format!("/proc/{}/comm", writer.id()))
            .unwrap()
            .trim()
            != "cat"
        {
            std::thread::yield_now();
        }
        let refused = dir.require_unused(Duration::ZERO).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("process {} has", writer.id())),
            "{refused}"
        );
        // It is waited for.
        let waiting = {
            let dir = dir.clone();
            std::thread::spawn(move || dir.wipe())
        };
        assert!(file.exists());
        drop(writer.stdin.take());
        writer.wait().unwrap();
        waiting.join().unwrap().unwrap();
        assert!(!file.exists());
        // One that only reads does not matter.
        fs::write(&file, "x").unwrap();
        let _reader = fs::File::open(&file).unwrap();
        dir.remove().unwrap();
    }

    #[test]
    fn a_foreign_directory_is_refused_and_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let foreign = parent.path().join("theirs");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("precious"), "x").unwrap();
        let error = DataDir::create(parent.path(), "theirs").unwrap_err();
        assert!(matches!(error, SetupError::Directory { .. }), "{error}");
        assert!(error.to_string().contains("not assay's"), "{error}");
        assert!(foreign.join("precious").exists());
    }

    #[test]
    fn a_directory_with_the_start_of_a_marker_alone_is_taken_over() {
        let parent = tempfile::tempdir().unwrap();
        for text in ["", &MARKER_START[..7]] {
            let path = parent.path().join("cell");
            fs::create_dir(&path).unwrap();
            fs::write(path.join(MARKER), text).unwrap();
            DataDir::create(parent.path(), "cell")
                .unwrap()
                .remove()
                .unwrap();
            // Not where something else is, or is said.
            fs::create_dir(&path).unwrap();
            fs::write(path.join(MARKER), text).unwrap();
            fs::write(path.join("precious"), "x").unwrap();
            assert!(DataDir::create(parent.path(), "cell").is_err());
            fs::remove_file(path.join("precious")).unwrap();
            fs::write(path.join(MARKER), "mine").unwrap();
            assert!(DataDir::create(parent.path(), "cell").is_err());
            assert!(path.join(MARKER).exists());
            fs::remove_dir_all(&path).unwrap();
        }
    }

    #[test]
    fn wiping_needs_the_marker_to_be_there_still() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        fs::remove_file(dir.path().join(MARKER)).unwrap();
        assert!(matches!(dir.wipe(), Err(SetupError::Directory { .. })));
        assert!(dir.path().join("file").exists());
    }

    #[test]
    fn links_are_neither_taken_for_ours_nor_followed() {
        let parent = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "x").unwrap();
        // A link in the place of the directory, even to a marked one.
        let marked = DataDir::create(outside.path(), "marked").unwrap();
        std::os::unix::fs::symlink(marked.path(), parent.path().join("link")).unwrap();
        assert!(matches!(
            DataDir::create(parent.path(), "link"),
            Err(SetupError::Directory { .. })
        ));
        // A link within it, to elsewhere.
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("way-out")).unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("deep/way-out")).unwrap();
        dir.wipe().unwrap();
        assert!(outside.path().join("precious").exists());
        assert!(!dir.path().join("way-out").exists());
        // A link in the place of the marker.
        fs::create_dir(parent.path().join("other")).unwrap();
        std::os::unix::fs::symlink(
            marked.path().join(MARKER),
            parent.path().join("other").join(MARKER),
        )
        .unwrap();
        assert!(matches!(
            DataDir::create(parent.path(), "other"),
            Err(SetupError::Directory { .. })
        ));
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("cell"), "x").unwrap();
        assert!(matches!(
            DataDir::create(parent.path(), "cell"),
            Err(SetupError::Directory { .. })
        ));
    }
}
