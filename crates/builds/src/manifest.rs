//! The file `build.json`, which describes a build in the store.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::hash;

/// The file's name.
pub const FILE: &str = "build.json";

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// More than any manifest has.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The description of a build in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The name of the build and of its folder.
    pub name: String,
    /// The engine that runs the build: `postgres`, `mysql`, `rocksdb` or `sqlite`.
    pub engine: String,
    /// The product: `postgres`, `mysql`, `mariadb`, `rocksdb`, `speedb` or `sqlite`.
    pub product: String,
    /// The version number that its own program prints, such as `17.2`.
    pub version: String,
    /// The whole version text that its program prints.
    pub version_text: String,
    /// The spec that the user requested, such as `postgres@17`.
    pub spec: String,
    /// The time at which the build was fetched, in seconds since 1970 UTC.
    pub fetched_unix_s: u64,
    /// The path that the engine needs: a folder with programs, or a library. It is relative to the
    /// build's folder, or absolute for a registered directory.
    pub path: PathBuf,
    /// The recipe and the commit, if Assay made the build from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// The compilation, if Assay compiled a published source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<Compiled>,
    /// The downloads that the build was unpacked from.
    pub artifacts: Vec<Artifact>,
    /// The programs or the library to measure.
    pub programs: Vec<Program>,
    /// The SHA-256 of `files.sha256`, which lists the hashes of all files; `None` for a registered
    /// directory.
    pub files_sha256: Option<String>,
}

/// The way in which a build was made from a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The SHA-256 of everything that decides what the build is: see [`crate::Recipe`].
    pub key: String,
    /// The repository on this machine.
    pub repository: PathBuf,
    /// The commit.
    pub commit: Commit,
    /// The name that git gives the commit, from the last tag before it: `v9.9.3-12-g1a2b3c4d5e6f`.
    pub described: String,
    /// The shell command that made the build.
    pub make: String,
    /// The path of what the command made, in the source.
    pub gives: PathBuf,
    /// The patch that was applied to the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<MadePatch>,
    /// The compilers, each with the first line that it prints as its version.
    pub compilers: BTreeMap<String, String>,
    /// The variables with flags for compilers that were set, such as `CFLAGS`.
    pub flags: BTreeMap<String, String>,
    /// The time that the command took.
    pub duration_ms: u64,
}

/// The way in which a published source was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// The first line that the compiler prints as its version.
    pub compiler: String,
    /// The compiler's command line, in the build's folder of files.
    pub command: String,
}

/// A commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The whole hash in hexadecimal.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
    /// The time at which it was committed, in seconds since 1970 UTC.
    pub committed_unix_s: i64,
}

impl Commit {
    /// Returns the first twelve digits of the hash.
    pub fn short(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

/// A patch that was applied to a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadePatch {
    /// The file's name.
    pub name: String,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A downloaded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The file's name.
    pub name: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A program or library to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The path, relative or absolute like [`Manifest::path`].
    pub path: PathBuf,
    /// The file's size.
    pub size_bytes: u64,
    /// The time at which the file was last written, in nanoseconds since 1970 UTC.
    pub modified_unix_ns: i64,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Program {
    /// Reads the size, time and hash of the file `path` below `folder`.
    pub fn read(folder: &Path, path: PathBuf) -> anyhow::Result<Self> {
        let full = folder.join(&path);
        let metadata = fs_err::metadata(&full)?;
        let (size_bytes, sha256) = hash::of_file(&full)?;
        Ok(Self { path, size_bytes, modified_unix_ns: modified_unix_ns(&metadata), sha256 })
    }
}

fn modified_unix_ns(metadata: &Metadata) -> i64 {
    metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec()
}

/// Reads a manifest, which others may have replaced by a link, a pipe or a device.
fn read_regular(path: &Path) -> std::io::Result<String> {
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        let what = format!("`{}` is not a regular file", path.display());
        return Err(std::io::Error::other(what));
    }

    let mut text = String::new();
    file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns true if there is no such file, or no folder that could have it.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

impl Manifest {
    /// Reads a build's manifest. Returns `None` when the folder has none.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        /// The field that all formats have.
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }

        let path = folder.join(FILE);
        let text = match read_regular(&path) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };

        let damaged = || {
            format!(
                "`{}` is damaged: remove its directory and fetch the build again",
                path.display()
            )
        };
        let header: Header = serde_json::from_str(&text).with_context(damaged)?;
        if header.format != FORMAT {
            return Err(BuildError::new(
                format!(
                    "`{}` has format {}; this version of assay reads format {FORMAT}",
                    path.display(),
                    header.format
                ),
                "use the version of assay that fetched the build, or remove its directory by hand and fetch it again",
            )
            .into());
        }

        Ok(Some(serde_json::from_str(&text).with_context(damaged)?))
    }

    /// Writes the manifest into the build's folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(fs_err::write(folder.join(FILE), text)?)
    }

    /// Checks that the programs are unchanged, by size and time. The error names the first one that
    /// is not.
    pub fn quick_check(&self, folder: &Path) -> Result<(), String> {
        for program in &self.programs {
            let path = folder.join(&program.path);
            let metadata = std::path::Path::metadata(&path)
                .map_err(|_| format!("`{}` is missing", path.display()))?;
            let is_as_it_was = metadata.len() == program.size_bytes
                && modified_unix_ns(&metadata) == program.modified_unix_ns;
            // In a copy of the store, the times differ but the content does not.
            if !is_as_it_was
                && hash::of_file(&path).map_or(true, |(_, sha256)| sha256 != program.sha256)
            {
                return Err(format!("`{}` has changed", path.display()));
            }
        }

        Ok(())
    }
}
