//! A directory for an engine's files. A marker file in it shows that assay created it and may
//! remove it.

use std::fs::{DirBuilder, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

use super::guard::Deadline;
use crate::error::SetupError;

/// The name of the file that marks a directory as assay's.
pub const MARKER: &str = "assay-data-directory.json";

/// The start of the marker, which is checked. The rest is for human readers.
const MARKER_START: &str = "{\"made_by\":\"assay\"";
const MARKER_REST: &str =
    ",\"note\":\"assay created this directory, and removes it when it needs the space again\"}\n";

/// The time to wait before a wipe for the end of processes that write to the directory.
const WRITER_TIMEOUT: Duration = Duration::from_secs(10);

/// A directory that assay created, and that only its owner may enter. Dropping the value does not
/// remove the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
}

/// The mode of a directory that only this user may enter.
const PRIVATE: u32 = 0o700;
/// The mode of a directory that all may enter, but not list.
const ENTERABLE: u32 = 0o711;

/// Creates the directories of `path` that don't exist, whatever the umask is: only this user may
/// list them or write to them. As root, lets other users enter them, since servers run as another
/// user.
///
/// # Errors
/// The system's.
pub fn create_enterable(path: &Path) -> std::io::Result<()> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
    private_builder().recursive(true).create(path).map_err(|error| with_path(path, &error))?;

    if rustix::process::geteuid().is_root() {
        for directory in new {
            fs::set_permissions(directory, Permissions::from_mode(ENTERABLE))?;
        }
    }
    Ok(())
}

/// Returns what creates directories that only this user may enter.
fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(PRIVATE);
    builder
}

/// Returns an error that names the directory that could not be created.
fn with_path(path: &Path, error: &std::io::Error) -> std::io::Error {
    let text = format!("failed to create directory `{}`: {error}", path.display());
    std::io::Error::new(error.kind(), text)
}

impl DataDir {
    /// Creates and marks `parent/name`, and `parent` if it is missing. Opens an existing directory
    /// with a marker, without emptying it; [`wipe`](Self::wipe) does that. Takes over a
    /// directory that is empty, or has only the start of a marker. Refuses any other, and links in
    /// place of it or of `parent`.
    ///
    /// # Errors
    /// [`SetupError::Directory`] when something else has that name, [`SetupError::Io`] when it
    /// cannot be created.
    pub fn create(parent: &Path, name: &str) -> Result<Self, SetupError> {
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            return Err(SetupError::Directory {
                path: parent.to_path_buf(),
                what: format!("invalid name `{name}` of a data directory"),
                help: "use a name without `/` that is not empty, `.` or `..`".into(),
            });
        }

        // Others may be able to write around it, and have put a link there.
        if fs::symlink_metadata(parent).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(not_ours(parent.to_path_buf(), "is a symbolic link"));
        }
        create_enterable(parent)?;
        refuse_shared(parent)?;

        // Resolves links once, so that a changed link cannot lead to another directory later.
        let path = fs::canonicalize(parent)?.join(name);
        match private_builder().create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let has_marker = Self::has_marker(&path)?;
                if !has_marker && !is_empty(&path)? {
                    return Err(not_ours(path, "is not empty, and not assay's: it has no marker"));
                }

                // Whoever created it: others must not change rows that are being measured.
                fs::set_permissions(&path, Permissions::from_mode(PRIVATE))?;
                if has_marker {
                    return Ok(Self { path });
                }
            }
            Err(error) => return Err(with_path(&path, &error).into()),
        }

        let mut marker = fs::File::create_new(path.join(MARKER))?;
        marker.write_all(MARKER_START.as_bytes())?;
        marker.write_all(MARKER_REST.as_bytes())?;
        marker.sync_all()?;
        Ok(Self { path })
    }

    /// Returns the absolute path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything in the directory except the marker. Removes symbolic links without
    /// following them. Waits for processes that write to the directory, because those of a
    /// killed server take a moment to end.
    ///
    /// # Errors
    /// [`SetupError::Directory`] when the marker is gone, the directory was replaced, or a process
    /// continues to write to it; [`SetupError::Io`] when a file cannot be removed.
    pub fn wipe(&self) -> Result<(), SetupError> {
        self.require_marker()?;
        // To look at the open files of all processes takes milliseconds, and most directories are new.
        if self.has_only_marker()? {
            return Ok(());
        }
        self.require_unused(WRITER_TIMEOUT)?;

        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARKER {
                continue;
            }

            let path = entry.path();
            // `file_type` does not follow links, nor does `remove_dir_all`.
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the directory and its contents, under the conditions of [`wipe`](Self::wipe).
    ///
    /// # Errors
    /// The errors of [`wipe`](Self::wipe).
    pub fn remove(self) -> Result<(), SetupError> {
        // Removes the marker last: after an interruption, the directory is still assay's.
        self.wipe()?;
        fs::remove_file(self.path.join(MARKER))?;
        Ok(fs::remove_dir(&self.path)?)
    }

    fn has_only_marker(&self) -> Result<bool, SetupError> {
        for entry in fs::read_dir(&self.path)? {
            if entry?.file_name() != MARKER {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn require_marker(&self) -> Result<(), SetupError> {
        if Self::has_marker(&self.path)? {
            Ok(())
        } else {
            Err(not_ours(self.path.clone(), "is not assay's: it has no marker"))
        }
    }

    fn require_unused(&self, timeout: Duration) -> Result<(), SetupError> {
        let deadline = Deadline::after(timeout);
        while let Some(pid) = writer_in(&self.path) {
            if deadline.has_passed() {
                return Err(SetupError::Directory {
                    path: self.path.clone(),
                    what: format!("is in use: process {pid} has a file in it open for writing"),
                    help: format!(
                        "end that process with `kill {pid}`, or choose another data directory"
                    ),
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns true when `path` is a directory with a marker. Neither may be a symbolic link.
    fn has_marker(path: &Path) -> Result<bool, SetupError> {
        let kind = fs::symlink_metadata(path)?.file_type();
        if !kind.is_dir() {
            let what = if kind.is_symlink() { "is a symbolic link" } else { "is not a directory" };
            return Err(not_ours(path.to_path_buf(), what));
        }

        let marker = path.join(MARKER);
        match fs::symlink_metadata(&marker) {
            Ok(metadata) if metadata.is_file() => {
                Ok(start_of(&marker)?.starts_with(MARKER_START.as_bytes()))
            }
            Ok(_) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns another process that has a file below `path` open for writing. Only root sees the files
/// of other users.
fn writer_in(path: &Path) -> Option<u32> {
    numbers_in("/proc").find(|&pid| pid != std::process::id() && writes_in(pid, path))
}

/// Returns true if the process has a file below `path` open for writing.
fn writes_in(pid: u32, path: &Path) -> bool {
    let directory = format!("/proc/{pid}/fd");
    numbers_in(&directory).any(|number| {
        let file = format!("{directory}/{number}");
        // The link's permissions show how the file was opened.
        fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.mode() & 0o200 != 0)
            && fs::read_link(&file).is_ok_and(|file| file.starts_with(path))
    })
}

/// Returns the names in a directory that are numbers.
fn numbers_in(directory: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns true when the directory is empty. First removes an incomplete marker, which is left when
/// assay was killed or the disk was full.
fn is_empty(path: &Path) -> std::io::Result<bool> {
    let mut entries = fs::read_dir(path)?;
    let (first, second) = (entries.next().transpose()?, entries.next());
    let Some(first) = first else {
        return Ok(true);
    };

    let is_incomplete_marker = second.is_none()
        && first.file_name() == MARKER
        && first.file_type()?.is_file()
        && MARKER_START.as_bytes().starts_with(&start_of(&first.path())?);
    if is_incomplete_marker {
        fs::remove_file(first.path())?;
    }
    Ok(is_incomplete_marker)
}

/// Returns the first bytes of a marker: more than it has to start with, in case that it has more.
fn start_of(marker: &Path) -> std::io::Result<Vec<u8>> {
    read_start(marker, MARKER_START.len() as u64 + 1)
}

/// Returns at most `bytes_max` bytes of a file in a directory in which a server's user, or somebody
/// else, may have prepared something: follows no link, and waits for no pipe.
pub(crate) fn read_start(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?
        .take(bytes_max)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// Refuses a directory in which another user could exchange what is in it: root would then change
/// the owner of something else.
fn refuse_shared(directory: &Path) -> Result<(), SetupError> {
    const OTHERS_WRITE: u32 = 0o002;

    let metadata = fs::symlink_metadata(directory)?;
    let user = rustix::process::geteuid();
    let is_foreign = metadata.uid() != user.as_raw() && metadata.uid() != 0;

    if user.is_root() && (is_foreign || metadata.mode() & OTHERS_WRITE != 0) {
        return Err(not_ours(
            directory.to_path_buf(),
            "belongs to another user, or others can write to it",
        ));
    }
    Ok(())
}

fn not_ours(path: PathBuf, what: &str) -> SetupError {
    SetupError::Directory {
        path,
        what: what.into(),
        help: format!(
            "choose another data directory, or move this one; assay removes only directories with its `{MARKER}`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_directory_with_a_marker_is_opened_and_wiped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        fs::create_dir(dir.path().join("cluster")).unwrap();
        fs::write(dir.path().join("cluster/1"), "x").unwrap();
        let reopened = DataDir::create(parent.path(), "cell").unwrap();
        assert_eq!(dir, reopened);
        reopened.wipe().unwrap();
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [MARKER]);
        dir.remove().unwrap();
        assert!(!parent.path().join("cell").exists());
    }

    #[test]
    fn only_the_owner_may_enter_a_directory_that_was_there_before() {
        let parent = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let open_to_all = |path: &Path| {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        };

        // One of an older assay, and an empty one.
        let known = DataDir::create(parent.path(), "known").unwrap();
        open_to_all(known.path());
        let empty = parent.path().join("empty");
        fs::create_dir(&empty).unwrap();
        open_to_all(&empty);

        for name in ["known", "empty"] {
            let directory = DataDir::create(parent.path(), name).unwrap();
            assert_eq!(mode(directory.path()), PRIVATE, "{name}");
        }
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
        // Until it runs its program, the new process has this process's files open.
        while fs::read_to_string(format!("/proc/{}/comm", writer.id())).unwrap().trim() != "cat" {
            std::thread::yield_now();
        }
        let error = dir.require_unused(Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} has", writer.id())), "{error}");
        // A wipe waits for the process.
        let waiting = {
            let dir = dir.clone();
            std::thread::spawn(move || dir.wipe())
        };
        assert!(file.exists());
        drop(writer.stdin.take());
        writer.wait().unwrap();
        waiting.join().unwrap().unwrap();
        assert!(!file.exists());
        // A process that only reads does not matter.
        fs::write(&file, "x").unwrap();
        let _reader = fs::File::open(&file).unwrap();
        dir.remove().unwrap();
    }

    #[test]
    fn a_foreign_directory_is_refused_and_unchanged() {
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
    fn a_directory_with_only_an_incomplete_marker_is_taken_over() {
        let parent = tempfile::tempdir().unwrap();
        for text in ["", &MARKER_START[..7]] {
            let path = parent.path().join("cell");
            fs::create_dir(&path).unwrap();
            fs::write(path.join(MARKER), text).unwrap();
            DataDir::create(parent.path(), "cell").unwrap().remove().unwrap();
            // Not if there is another file, or the text is different.
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
    fn a_directory_whose_marker_is_gone_is_not_wiped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        fs::remove_file(dir.path().join(MARKER)).unwrap();
        assert!(matches!(dir.wipe(), Err(SetupError::Directory { .. })));
        assert!(dir.path().join("file").exists());
    }

    #[test]
    fn links_are_refused_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "x").unwrap();
        // A link instead of the directory, even to a marked one.
        let marked = DataDir::create(outside.path(), "marked").unwrap();
        std::os::unix::fs::symlink(marked.path(), parent.path().join("link")).unwrap();
        assert!(matches!(
            DataDir::create(parent.path(), "link"),
            Err(SetupError::Directory { .. })
        ));
        // A link inside the directory, to another one.
        let dir = DataDir::create(parent.path(), "cell").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("way-out")).unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("deep/way-out")).unwrap();
        dir.wipe().unwrap();
        assert!(outside.path().join("precious").exists());
        assert!(!dir.path().join("way-out").exists());
        // A link instead of the marker.
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
    fn a_link_in_the_place_of_a_targets_directory_is_refused() {
        let outside = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let target = data.path().join("lite.default");
        std::os::unix::fs::symlink(outside.path(), &target).unwrap();
        let error = DataDir::create(&target, "sqlite").unwrap_err();
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn root_makes_no_databases_where_others_can_exchange_them() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let target = tempfile::tempdir().unwrap();
        for mode in [0o755, 0o777, 0o1777] {
            fs::set_permissions(target.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(DataDir::create(target.path(), "sqlite").is_ok(), mode == 0o755, "{mode:o}");
        }
        fs::set_permissions(target.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        fs::os::unix::fs::chown(target.path(), Some(7002), None).unwrap();
        let error = DataDir::create(target.path(), "sqlite").unwrap_err();
        assert!(error.to_string().contains("belongs to another user"), "{error}");
    }

    #[test]
    fn a_file_instead_of_the_directory_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("cell"), "x").unwrap();
        assert!(matches!(
            DataDir::create(parent.path(), "cell"),
            Err(SetupError::Directory { .. })
        ));
    }
}
