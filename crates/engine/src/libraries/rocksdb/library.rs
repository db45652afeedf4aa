//! Loads a shared library with RocksDB's C API, and identifies its version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use semver::Version;

use super::ffi::{self, Api, Database, Options};
use super::options::{self, OptionsFile};
use crate::error::SetupError;
use crate::libraries::loaded::Loaded;
use crate::safety::trial;

/// A library that stays loaded until the process ends.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    pub(super) api: &'static Api,
    version: Version,
    version_text: String,
    /// The options file of a database with default options. It has all options that the version
    /// knows.
    pub(super) defaults: OptionsFile,
}

/// The library that this process has loaded.
static LOADED: Loaded<Library> = Loaded::new();
/// The description of a build of RocksDB.
const WANTED: &str =
    "a shared library with RocksDB's C API (`assay fetch rocksdb@9.9.3` downloads one)";

impl Library {
    /// Loads the library at `path`, or returns it if it is already loaded. A process can load only
    /// one: two versions in one address space would mix their functions and threads.
    ///
    /// To identify the version, creates and removes an empty database in the directory for
    /// temporary files.
    ///
    /// # Errors
    /// [`SetupError::Build`] when the file is not a library, is for another architecture, or is not
    /// RocksDB, or another library is already loaded.
    pub fn open(path: &Path) -> Result<Arc<Self>, SetupError> {
        LOADED.get_or_load(path, WANTED, |path| {
            let api = ffi::load(&path).map_err(|what| SetupError::Build {
                build: path.display().to_string(),
                what,
                help: "use RocksDB 6.0 to 10.x or Speedb 2.x, built with the C API".into(),
            })?;
            Self::identify(path, api)
        })
    }

    /// Creates an empty database, and reads the version that the library wrote.
    fn identify(path: PathBuf, api: &'static Api) -> Result<Self, SetupError> {
        let build = path.display().to_string();
        let place = trial::Directory::create()?;
        let database = place.path().join("empty");

        let mut settings = Options::new(api);

        settings.set_create(true);
        let open =
            Database::open(settings, &database, None).map_err(|source| SetupError::Server {
                server: format!("`{build}`, tested in `{}`", database.display()),
                source,
                help: None,
            })?;

        let silent = || SetupError::Build {
            build: build.clone(),
            what: "the library wrote no version to the options file of a new database".into(),
            help: "use RocksDB 6.0 to 10.x or Speedb 2.x".into(),
        };
        let defaults = options::read_newest(&database)?.ok_or_else(silent)?;
        let version = defaults.version().ok_or_else(silent)?;
        let log = fs::read_to_string(database.join("LOG")).unwrap_or_default();

        drop(open);

        let version_text = match speedb(&log) {
            None => format!("RocksDB {version}"),
            Some(own) => format!("Speedb {own} (RocksDB {version})"),
        };
        Ok(Self { path, api, version, version_text, defaults })
    }

    /// Returns the library's path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version of RocksDB, or for a fork, the version that it is based on.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Returns product and version: `RocksDB 9.9.3`, `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub fn version_text(&self) -> &str {
        &self.version_text
    }

    /// Returns true when the library has a lock-free cache for entries of similar size, or with
    /// `adapts`, one that adapts to their sizes.
    pub fn has_clock_cache(&self, adapts: bool) -> bool {
        self.api.has_clock_cache() && (!adapts || self.version >= FIRST_AUTO_CLOCK)
    }
}

/// The first version in which an entry charge of 0 means a cache that adapts.
const FIRST_AUTO_CLOCK: Version = Version::new(8, 6, 0);

/// Returns the version of Speedb in the first lines of its log: `Speedb version: 2.8.0-? (8.6.7)`.
fn speedb(log: &str) -> Option<&str> {
    let mut lines = log.lines().take(20);
    let version = lines.find_map(|line| Some(line.split_once("Speedb version:")?.1))?;
    let own = version.split_whitespace().next()?;
    // The text after `-` is the branch of the build, or `?`.
    Some(own.strip_suffix("-?").unwrap_or(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libraries::loaded::tests::check_refusals;

    #[test]
    fn the_log_shows_the_product() {
        let speedb = "2026/11/22-00:13:09.951897 139937266244480 Speedb version: 2.8.0-? (8.6.7)\n";
        assert_eq!(super::speedb(speedb), Some("2.8.0"));
        let rocksdb = "2026/11/22-00:12:13.371835 140517348608896 RocksDB version: 6.29.5\n";
        assert_eq!(super::speedb(rocksdb), None);
    }

    #[test]
    fn the_error_says_why_a_file_is_not_rocksdb() {
        check_refusals("RocksDB", Library::open);
    }
}
