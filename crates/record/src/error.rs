//! Errors of reading and writing a run directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::{FORMAT, FormatVersion};
use crate::layout::RUN_FILE;

/// A record that cannot be written or read. Every error names the path.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system reports an error.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The action: `write`, `open`, `create directory`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A directory without a run, cell or step.
    #[error("`{}` is not {expected}: {what}", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
        /// The expected kind of directory: `a run directory`.
        expected: &'static str,
        /// The reason: it does not exist, or lacks a file.
        what: String,
        /// The remedy.
        help: &'static str,
    },
    /// A format that this Assay does not know.
    #[error("`{}` has format {found}, but this Assay reads formats {}.x", path.display(), FORMAT.major)]
    Format {
        /// The run directory.
        path: PathBuf,
        /// The format that it names.
        found: FormatVersion,
        /// The version of Assay that wrote it; empty if it does not name one.
        written_by: String,
    },
    /// A file that differs from what was written: truncated, changed, or copied in part.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// Something that the format cannot store.
    #[error("cannot record {what} in `{}`", path.display())]
    Unrecordable {
        /// The name of the thing, its value, and what is allowed.
        what: String,
        /// The file or directory that it was for.
        path: PathBuf,
    },
}

/// The remedy for a damaged part of a run.
pub const DAMAGE_HELP: &str = "copy the run directory again from where it was measured, or measure the cell again \
                               with `assay run --resume RUN`, which keeps the damaged attempt next to the new one";

impl RecordError {
    /// Returns the remedy, if one is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { action, source, .. } => io_help(action, source.kind()).map(str::to_owned),
            Self::Missing { help, .. } => Some((*help).into()),
            Self::Format { found, written_by, .. } if found.major > FORMAT.major => {
                if written_by.is_empty() {
                    return Some("read it with a newer Assay".into());
                }
                Some(format!(
                    "read it with Assay {written_by} or newer, or export it with `assay export` there"
                ))
            }
            Self::Format { written_by, .. } => Some(format!(
                "export it with `assay export` of the version that wrote it, {written_by}"
            )),
            Self::Damaged { path, .. } if path.ends_with(RUN_FILE) => {
                Some("copy the run directory again from where it was measured".into())
            }
            Self::Damaged { .. } => Some(DAMAGE_HELP.into()),
            Self::Unrecordable { .. } => None,
        }
    }

    /// Returns the error with its causes as one text.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }

        text
    }

    /// Returns the file or directory of the error.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Missing { path, .. }
            | Self::Format { path, .. }
            | Self::Damaged { path, .. }
            | Self::Unrecordable { path, .. } => path,
        }
    }

    /// Wraps an error of the file system. `fs_err` also names the path, so only its cause is kept.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action, path: path.to_owned(), source: cause(error) }
    }

    pub(crate) fn unrecordable(path: &Path, what: impl Into<String>) -> Self {
        Self::Unrecordable { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}

/// Returns the remedy for an error of the file system.
fn io_help(action: &str, kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
            "free some space, or choose another place with `--results`, and with `--data` for databases; finished steps are kept",
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("choose a writable directory with `--results`")
        }
        _ if action == "create directory" => Some("choose another place with `--results`"),
        _ => None,
    }
}

/// Returns the operating system's error within a wrapper.
fn cause(error: io::Error) -> io::Error {
    let code = error
        .get_ref()
        .and_then(|inner| inner.source())
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);

    match code {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}
