//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::directory::RUN_FILE;
use crate::{FORMAT, FormatVersion};

/// A record that can't be written or read. Each names the path.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system refuses.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried: `write`, `open`, `create directory`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A directory that holds no run, or no such cell or step.
    #[error("`{}` is not {expected}: {what}", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
        /// What it should be: `a run directory`.
        expected: &'static str,
        /// What is not there.
        what: String,
        /// What to do.
        help: &'static str,
    },
    /// A format that this assay does not know.
    #[error("`{}` has format {found}, this assay reads formats {}.x", path.display(), FORMAT.major)]
    Format {
        /// The run directory.
        path: PathBuf,
        /// The format that it says it has.
        found: FormatVersion,
        /// The version of assay that wrote it; empty where it does not say.
        written_by: String,
    },
    /// A file that is not what was written: truncated, changed, or half copied.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Something that the format has no place for.
    #[error("cannot record {what} in `{}`", path.display())]
    Unrecordable {
        /// What, its value, and what is allowed.
        what: String,
        /// The file or directory that it was meant for.
        path: PathBuf,
    },
}

impl RecordError {
    /// What to do about it, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { action, source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("make space there, or choose another place with `--results`; finished steps are kept".into())
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a directory that can be written with `--results`".into())
                }
                _ if *action == "create directory" => {
                    Some("choose another place with `--results`".into())
                }
                _ => None,
            },
            Self::Missing { help, .. } => Some((*help).into()),
            Self::Format { found, written_by, .. } if found.major > FORMAT.major => Some(if written_by.is_empty() {
                "read it with a newer assay".into()
            } else {
                format!("read it with assay {written_by} or newer, or export it there with `assay export`")
            }),
            Self::Format { written_by, .. } => {
                Some(format!("export it with the assay that wrote it ({written_by}) with `assay export`"))
            }
            Self::Damaged { path, .. } if path.ends_with(RUN_FILE) => {
                Some("copy the run directory again from where it was made".into())
            }
            Self::Damaged { .. } => Some(
                "copy the run directory again from where it was made, or measure the cell again with `assay run --resume \
                 RUN`, which keeps the damaged attempt beside the new one"
                    .into(),
            ),
            Self::Unrecordable { .. } => None,
        }
    }

    /// Returns the error, its causes and what to do about it as one text.
    pub fn with_causes_and_help(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        // A file of a record that can't be opened is as good as damaged.
        let help = match self {
            Self::Io { .. } => Self::damaged(self.path(), "").help(),
            _ => self.help(),
        };
        help.map(|help| format!("{text} ({help})")).unwrap_or(text)
    }

    /// The file or directory that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Missing { path, .. }
            | Self::Format { path, .. }
            | Self::Damaged { path, .. }
            | Self::Unrecordable { path, .. } => path,
        }
    }

    /// Wraps an error of the file system. `fs_err` names the path too: its own cause is kept, so that the path is
    /// said once.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io {
            action,
            path: path.to_owned(),
            source: cause(error),
        }
    }

    pub(crate) fn unrecordable(path: &Path, what: impl Into<String>) -> Self {
        Self::Unrecordable {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}

/// The operating system's own error within what a wrapper made of it.
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
