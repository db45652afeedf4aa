//! A shared library with RocksDB's C API: finding out what it is.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use semver::Version;

use super::ffi::{self, Api, Database, Options};
use super::options::{self, OptionsFile};
use crate::{SetupError, trial};

/// A library that is loaded, for as long as the process lives.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    pub(super) api: &'static Api,
    version: Version,
    version_text: String,
    /// The options file of a database without any option set: what the version knows, and its defaults.
    pub(super) defaults: OptionsFile,
}

/// The library of this process.
static LOADED: Mutex<Option<Arc<Library>>> = Mutex::new(None);

impl Library {
    /// Loads the library at `path`, or gives the one that is loaded. A process has one: two versions in one address
    /// space would take each other's functions and threads.
    ///
    /// To learn its version an empty database is made in the directory for temporary files, and removed.
    ///
    /// # Errors
    /// [`SetupError::Build`]: no library, one of another architecture, no RocksDB, or another is loaded already.
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
                "name a shared library with RocksDB's C API, or fetch one: `assay fetch rocksdb@9.9.3`",
            )
        })?;
        if let Some(library) = &*loaded {
            return if library.path == path {
                Ok(Arc::clone(library))
            } else {
                Err(refused(
                    format!(
                        "this process has `{}` loaded already",
                        library.path.display()
                    ),
                    "use a process of its own for each library",
                ))
            };
        }
        fits_this_machine(&path).map_err(|what| {
            refused(
                what,
                "name a shared library with RocksDB's C API that is built for this machine",
            )
        })?;
        let api = ffi::load(&path).map_err(|what| {
            refused(
                what,
                "versions 6.0 to 10.x of RocksDB and 2.x of Speedb work; the library has to export the C API",
            )
        })?;
        let library = Arc::new(Self::identify(path.clone(), api)?);
        *loaded = Some(Arc::clone(&library));
        Ok(library)
    }

    /// Makes an empty database and reads what the library wrote about itself.
    fn identify(path: PathBuf, api: &'static Api) -> Result<Self, SetupError> {
        let build = path.display().to_string();
        let place = trial::Directory::create()?;
        let database = place.path().join("empty");
        let mut settings = Options::new(api);
        settings.set_create(true);
        let open = Database::open(settings, &database).map_err(|source| SetupError::Server {
            server: format!("`{build}`, trying it in `{}`", database.display()),
            source,
            help: None,
        })?;
        let silent = || SetupError::Build {
            build: build.clone(),
            what: "it did not write its version into the options file of a new database".into(),
            help: "versions 6.0 to 10.x of RocksDB and 2.x of Speedb work".into(),
        };
        let defaults = options::read_newest(&database)?.ok_or_else(silent)?;
        let version = defaults.version().ok_or_else(silent)?;
        let log = fs::read_to_string(database.join("LOG")).unwrap_or_default();
        drop(open);
        let version_text = match speedb(&log) {
            None => format!("RocksDB {version}"),
            Some(own) => format!("Speedb {own} (RocksDB {version})"),
        };
        Ok(Self {
            path,
            api,
            version,
            version_text,
            defaults,
        })
    }

    /// Where it is; free of symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of RocksDB that it is, or is made from.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Product and version: `RocksDB 9.9.3`, `Speedb 2.8.0 (RocksDB 8.6.7)`.
    pub fn version_text(&self) -> &str {
        &self.version_text
    }

    /// Returns whether it has a cache without locks, whose entries are taken to be of one size; or, with `adapts`, one that
    /// adapts to their sizes.
    pub fn has_clock_cache(&self, adapts: bool) -> bool {
        self.api.has_clock_cache() && (!adapts || self.version >= FIRST_AUTO_CLOCK)
    }
}

/// The first version in which an entry charge of zero means a cache that adapts.
const FIRST_AUTO_CLOCK: Version = Version::new(8, 6, 0);

/// The version of Speedb in the first lines of a log, if it is that: `Speedb version: 2.8.0-? (8.6.7)`.
fn speedb(log: &str) -> Option<&str> {
    let mut lines = log.lines().take(20);
    let rest = lines.find_map(|line| Some(line.split_once("Speedb version:")?.1))?;
    let own = rest.split_whitespace().next()?;
    // What stands behind the version says of which branch it was built; `?` when it doesn't know.
    Some(own.strip_suffix("-?").unwrap_or(own))
}

/// Whether a file is a library that this process could load, by its header: the dynamic loader says of another
/// architecture's that there is no such file.
fn fits_this_machine(path: &Path) -> Result<(), String> {
    let mut header = [0; 20];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "it is no shared library: too short".into(),
            _ => error.to_string(),
        })?;
    check_header(&header)
}

fn check_header(header: &[u8; 20]) -> Result<(), String> {
    if !header.starts_with(b"\x7fELF") {
        return Err("it is no shared library".into());
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
    Err(format!("it is built for {found}, this process is {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_other_machines_libraries() {
        let mut header = [0; 20];
        assert!(
            check_header(&header)
                .unwrap_err()
                .contains("no shared library")
        );
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let (own, other, name) = if cfg!(target_arch = "x86_64") {
            (62, 183, "AArch64")
        } else {
            (183, 62, "x86-64")
        };
        header[18] = own;
        assert_eq!(check_header(&header), Ok(()));
        header[18] = other;
        assert!(check_header(&header).unwrap_err().contains(name));
    }

    #[test]
    fn the_log_tells_the_product() {
        let speedb = "2026/11/22-00:13:09.951897 139937266244480 Speedb version: 2.8.0-? (8.6.7)\n";
        assert_eq!(super::speedb(speedb), Some("2.8.0"));
        let rocksdb = "2026/11/22-00:12:13.371835 140517348608896 RocksDB version: 6.29.5\n";
        assert_eq!(super::speedb(rocksdb), None);
    }

    #[test]
    fn what_is_no_library_is_refused_with_the_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "short").unwrap();
        let what = Library::open(file.path()).unwrap_err().to_string();
        assert!(what.contains("too short"), "{what}");
        fs::write(file.path(), "#!/bin/sh\necho not a library\n").unwrap();
        let what = Library::open(file.path()).unwrap_err().to_string();
        assert!(what.contains("no shared library"), "{what}");
        // A library, but another one: the one of C, which this process has.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("/libc.so") || path.contains("/libc-"))
            .unwrap();
        let what = Library::open(Path::new(libc)).unwrap_err().to_string();
        assert!(what.contains("no RocksDB"), "{what}");
        let what = Library::open(Path::new("/nowhere/librocksdb.so")).unwrap_err();
        assert!(what.help().unwrap().contains("assay fetch"));
    }
}
