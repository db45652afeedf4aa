//! `build.json`: what a build in the store is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::hash;

/// The name of the file.
pub const FILE: &str = "build.json";

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// A build in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The build's name: that of its folder too.
    pub name: String,
    /// The engine that it is for: `postgres`, `mysql`, `rocksdb`.
    pub engine: String,
    /// What it is: `postgres`, `mysql`, `mariadb`, `rocksdb`, `speedb`.
    pub product: String,
    /// Its version in numbers, as its own program says: `17.2`.
    pub version: String,
    /// All that its program says of its version.
    pub version_text: String,
    /// What was asked for: `postgres@17`.
    pub spec: String,
    /// When, in seconds since 1970 UTC.
    pub fetched_unix_s: u64,
    /// What the engine is given: a folder with its programs, or a library; relative to the build's folder, or absolute
    /// for what was only registered.
    pub path: PathBuf,
    /// What it was unpacked from.
    pub artifacts: Vec<Artifact>,
    /// The programs or the library that are measured.
    pub programs: Vec<Program>,
    /// The SHA-256 of `files.sha256`, which has that of every file; `None` for what was only registered.
    pub files_sha256: Option<String>,
}

/// A file that was downloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A file that is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Where, as [`Manifest::path`].
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
    /// When it was last written, in nanoseconds since 1970 UTC.
    pub modified_unix_ns: i64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Program {
    /// Looks at the file `path` below `folder`.
    pub fn of(folder: &Path, path: PathBuf) -> anyhow::Result<Self> {
        let full = folder.join(&path);
        let metadata = fs_err::metadata(&full)?;
        let (size_bytes, sha256) = hash::of_file(&full)?;
        Ok(Self {
            path,
            size_bytes,
            modified_unix_ns: modified(&metadata),
            sha256,
        })
    }
}

fn modified(metadata: &Metadata) -> i64 {
    metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec()
}

impl Manifest {
    /// Reads a build's manifest; `None` when the folder has none.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(FILE);
        let text = match fs_err::read_to_string(&path) {
            Ok(text) => text,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let damaged = || format!("`{}` can't be understood", path.display());
        let head: Head = serde_json::from_str(&text).with_context(damaged)?;
        if head.format != FORMAT {
            return Err(Error::new(
                format!("`{}` has format {}; this assay knows {FORMAT}", path.display(), head.format),
                "use the assay that fetched it, or remove the folder by hand and fetch the build again",
            )
            .into());
        }
        Ok(Some(serde_json::from_str(&text).with_context(damaged)?))
    }

    /// Writes it into the build's folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(fs_err::write(folder.join(FILE), text)?)
    }

    /// The first of its programs that is not as it was, by its size and time, and what is wrong with it.
    pub fn quick_check(&self, folder: &Path) -> Result<(), String> {
        for program in &self.programs {
            let path = folder.join(&program.path);
            let metadata = std::path::Path::metadata(&path)
                .map_err(|_| format!("`{}` is missing", path.display()))?;
            let is_as_it_was = metadata.len() == program.size_bytes
                && modified(&metadata) == program.modified_unix_ns;
            // A copy of the store has other times, and the same content.
            if !is_as_it_was
                && hash::of_file(&path).map_or(true, |(_, sha256)| sha256 != program.sha256)
            {
                return Err(format!("`{}` has changed", path.display()));
            }
        }
        Ok(())
    }
}
