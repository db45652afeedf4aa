//! Bundles: a plan with the finding that it should show again, as `assay bundle` writes them. A
//! bundle comes from a stranger, so it is data:
//!
//! * `archive` reads and writes it as a tar, in memory: nothing is unpacked.
//! * `stranger` refuses a plan that could do more than measure builds that everybody can fetch.
//!
//! `docs/bundle.md` states the rules.

mod archive;
mod stranger;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

use crate::ground::failure::UsageError;

pub use archive::write as write_archive;
pub use stranger::{Refused, refused_values};

/// The plan in a bundle.
pub const PLAN: &str = "plan.toml";
/// The finding in a bundle, and in the directory of a run that repeats it.
pub const FINDING: &str = "finding.json";

/// The most bytes of a file of a bundle.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// The endings of the names of archives.
const ARCHIVES: [&str; 3] = [".tar.gz", ".tgz", ".tar"];

/// A bundle's files that a run needs.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The path of the plan, for messages. In an archive, nothing is there.
    pub plan_path: PathBuf,
    /// The text of the plan.
    pub plan: String,
    /// The text of the finding.
    pub finding: String,
}

impl Bundle {
    /// Reads a bundle: a directory or an archive. Returns `None` for a path of another kind, which
    /// may be a plan.
    ///
    /// # Errors
    /// The files cannot be read, or the archive has what a bundle does not have.
    pub fn open(path: &Path) -> Result<Option<Self>, UsageError> {
        let error = |problem: String| {
            let message = format!("cannot use `{}` as a bundle: {problem}", path.display());
            let help = "give a plan, or a directory or a tar from `assay bundle`";
            UsageError::new(message, Some(help.into()))
        };

        let [plan, finding] = if path.is_dir() {
            let text = |name: &str| text_in(path, name).map_err(error);
            [text(PLAN)?, text(FINDING)?]
        } else if is_archive(path) {
            archive::read(path, [PLAN, FINDING]).map_err(error)?
        } else {
            return Ok(None);
        };

        Ok(Some(Self { plan_path: path.join(PLAN), plan, finding }))
    }
}

/// Returns whether a path has the name of an archive.
pub fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ARCHIVES.iter().any(|ending| name.ends_with(ending))
}

/// Returns the text of a file in a directory that may be a stranger's: follows no link, opens
/// nothing but a regular file, and reads no more than a bundle's file may have.
///
/// # Errors
/// The file is not a regular one, is too large or cannot be read; the text says which.
pub fn text_in(directory: &Path, name: &str) -> Result<String, String> {
    let path = directory.join(name);
    let metadata = fs_err::symlink_metadata(&path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err(not_regular(&path));
    }
    let file = open_regular(&path, OFlags::NOFOLLOW)?;

    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;

    text_of(name, bytes)
}

/// Opens a file that may be a stranger's without waiting, as a pipe would make it: refuses what is
/// not a regular file.
fn open_regular(path: &Path, more_flags: OFlags) -> Result<fs_err::File, String> {
    let flags = more_flags | OFlags::NONBLOCK;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| error.to_string())?;

    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.is_file() { Ok(file) } else { Err(not_regular(path)) }
}

fn not_regular(path: &Path) -> String {
    format!("`{}` is not a regular file", path.display())
}

/// Returns the text of a file of a bundle.
fn text_of(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("`{name}` is larger than {} MiB", FILE_BYTES_MAX >> 20));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))
}
