//! Loads a shared library with RocksDB's C API, and identifies its version.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use semver::Version;

use super::ffi::{self, Api, Database, Options};
use super::options::{self, OptionsFile};
use crate::{SetupError, trial};

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
static LOADED: Mutex<Option<Arc<Library>>> = Mutex::new(None);

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
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |what: String, help: &str| SetupError::Build {
            build: path.display().to_string(),
            what,
            help: help.into(),
        };

        let path = fs::canonicalize(path).map_err(|error| {
            refused(
                error.to_string(),
                "write the path of a shared library with RocksDB's C API, or fetch one with `assay fetch rocksdb@9.9.3`",
            )
        })?;
        match &*loaded {
            Some(library) if library.path == path => return Ok(Arc::clone(library)),
            Some(library) => {
                return Err(refused(
                    format!("this process has already loaded `{}`", library.path.display()),
                    "use a separate process for each library",
                ));
            }
            None => {}
        }

        fits_this_machine(&path).map_err(|what| {
            refused(
                what,
                "write the path of a shared library with RocksDB's C API that was built for this machine",
            )
        })?;
        let api = ffi::load(&path).map_err(|what| {
            refused(what, "use RocksDB 6.0 to 10.x or Speedb 2.x, built with the C API")
        })?;

        let library = Arc::new(Self::identify(path.clone(), api)?);
        *loaded = Some(Arc::clone(&library));
        Ok(library)
    }

    /// Creates an empty database, and reads the version that the library wrote.
    fn identify(path: PathBuf, api: &'static Api) -> Result<Self, SetupError> {
        let build = path.display().to_string();
        let place = trial::Directory::create()?;
        let database = place.path().join("empty");
        let mut settings = Options::new(api);
        settings.set_create(true);
        let open = Database::open(settings, &database).map_err(|source| SetupError::Server {
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

/// Checks by its header that this process can load a library. For another architecture, the dynamic
/// loader would only report a missing file.
pub(crate) fn fits_this_machine(path: &Path) -> Result<(), String> {
    let mut header = [0; 20];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(|error| {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                "the file is not a shared library: it is too short".into()
            }
            _ => error.to_string(),
        }
    })?;
    check_header(&header)
}

fn check_header(header: &[u8; 20]) -> Result<(), String> {
    if !header.starts_with(b"\x7fELF") {
        return Err("the file is not a shared library".into());
    }
    let own: Option<(u8, u16, &str)> = match std::env::consts::ARCH {
        "x86_64" => Some((2, 62, "x86-64")),
        "aarch64" => Some((2, 183, "AArch64")),
        _ => None,
    };
    let Some((class, machine, name)) = own else {
        return Ok(());
    };
    let found = u16::from_le_bytes([header[18], header[19]]);
    if (header[4], found) == (class, machine) {
        return Ok(());
    }
    let found = match found {
        3 => "32-bit x86".into(),
        40 => "32-bit ARM".into(),
        62 => "x86-64".into(),
        183 => "AArch64".into(),
        243 => "RISC-V".into(),
        other => format!("machine {other}"),
    };
    Err(format!("the library was built for {found}, but this process runs on {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_shows_libraries_of_other_machines() {
        let mut header = [0; 20];
        assert!(check_header(&header).unwrap_err().contains("not a shared library"));
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let (own, other, name) =
            if cfg!(target_arch = "x86_64") { (62, 183, "AArch64") } else { (183, 62, "x86-64") };
        header[18] = own;
        assert_eq!(check_header(&header), Ok(()));
        header[18] = other;
        assert!(check_header(&header).unwrap_err().contains(name));
    }

    #[test]
    fn the_log_shows_the_product() {
        let speedb = "2026/11/22-00:13:09.951897 139937266244480 Speedb version: 2.8.0-? (8.6.7)\n";
        assert_eq!(super::speedb(speedb), Some("2.8.0"));
        let rocksdb = "2026/11/22-00:12:13.371835 140517348608896 RocksDB version: 6.29.5\n";
        assert_eq!(super::speedb(rocksdb), None);
    }

    #[test]
    fn the_error_says_why_a_file_is_not_a_library() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "short").unwrap();
        let what = Library::open(file.path()).unwrap_err().to_string();
        assert!(what.contains("too short"), "{what}");
        fs::write(file.path(), "#!/bin/sh\necho not a library\n").unwrap();
        let what = Library::open(file.path()).unwrap_err().to_string();
        assert!(what.contains("not a shared library"), "{what}");
        // Another library: the C library of this process.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("/libc.so") || path.contains("/libc-"))
            .unwrap();
        let what = Library::open(Path::new(libc)).unwrap_err().to_string();
        assert!(what.contains("is not RocksDB"), "{what}");
        let what = Library::open(Path::new("/nowhere/librocksdb.so")).unwrap_err();
        assert!(what.help().unwrap().contains("assay fetch"));
    }
}
