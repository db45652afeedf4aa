//! A library with SQLite's C API: the bundled one, or one of another version.

use std::path::Path;

use super::ffi::{self, Api};
use crate::error::SetupError;
use crate::libraries::loaded::Loaded;

/// The oldest version that is measured, as SQLite numbers versions: the first that inserts several
/// rows with one statement.
const OLDEST: i32 = 3_007_011;
const OLDEST_TEXT: &str = "3.7.11";

/// A library that stays loaded until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub(super) api: &'static Api,
}

/// The library that this process has loaded.
static LOADED: Loaded<Library> = Loaded::new();
/// The description of a build of SQLite.
const WANTED: &str = "a shared library of SQLite (`assay fetch sqlite@3.46.1` downloads one)";

impl Library {
    /// Returns the library that is part of this program.
    pub fn bundled() -> Self {
        Self { api: ffi::bundled() }
    }

    /// Loads the library at `path`, or returns it if it is already loaded. A process can load only
    /// one: two versions in one address space would mix their functions.
    ///
    /// # Errors
    /// [`SetupError::Build`] when the file is not a library, is for another architecture, or is not
    /// SQLite, when the library is not thread-safe, or when another one is already loaded.
    /// [`SetupError::Version`] when it is too old.
    pub fn open(path: &Path) -> Result<Self, SetupError> {
        let library = LOADED.get_or_load(path, WANTED, |path| Self::load(&path))?;
        Ok(*library)
    }

    /// Loads the library, and checks that it can be measured.
    fn load(path: &Path) -> Result<Self, SetupError> {
        let build = path.display().to_string();

        let api = ffi::load(path).map_err(|what| SetupError::Build {
            build: build.clone(),
            what,
            help: "use a shared library of SQLite 3 for this system, such as `sqlite@3.46.1`, which is compiled here".into(),
        })?;

        if api.version_number() < OLDEST {
            return Err(SetupError::Version {
                build,
                found: api.version().into(),
                supported: format!("SQLite {OLDEST_TEXT} or newer"),
            });
        }

        if !api.is_thread_safe() {
            return Err(SetupError::Build {
                build,
                what: "the library was compiled for a single thread".into(),
                help: "compile it with `-DSQLITE_THREADSAFE=1`".into(),
            });
        }

        Ok(Self { api })
    }

    /// Returns the version: `3.40.1`.
    pub fn version(self) -> &'static str {
        self.api.version()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::PathBuf;
    use std::process::Command;

    use fs_err as fs;

    use super::*;
    use crate::libraries::loaded::tests::check_refusals;

    /// Compiles a library that has the functions of SQLite, but does nothing. It returns this
    /// version, and whether it is thread-safe.
    fn imitation(directory: &Path, version_number: i32, is_thread_safe: bool) -> PathBuf {
        let mut source = String::new();
        for name in ffi::REQUIRED {
            let result = match *name {
                "sqlite3_libversion" => "(long)\"3.7.2\"".to_owned(),
                "sqlite3_libversion_number" => version_number.to_string(),
                "sqlite3_threadsafe" => i32::from(is_thread_safe).to_string(),
                _ => "0".to_owned(),
            };
            writeln!(source, "long {name}(void) {{ return {result}; }}").unwrap();
        }
        compiled(directory, &source)
    }

    fn compiled(directory: &Path, source: &str) -> PathBuf {
        let file = directory.join("imitation.c");
        fs::write(&file, source).unwrap();
        let library = directory.join("libsqlite3.so.0");
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-o"]).args([&library, &file]);
        assert!(command.status().unwrap().success());
        library
    }

    #[test]
    fn a_library_that_can_t_be_measured_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let old = imitation(directory.path(), 3_007_002, true);
        let error = Library::open(&old).unwrap_err().to_string();
        assert!(error.contains("version 3.7.2 is not supported"), "{error}");

        let directory = tempfile::tempdir().unwrap();
        let source = "int nowhere(void); int f(void) { return nowhere(); }";
        let incomplete = compiled(directory.path(), source);
        let error = Library::open(&incomplete).unwrap_err().to_string();
        assert!(error.contains("undefined symbol: nowhere"), "{error}");

        let directory = tempfile::tempdir().unwrap();
        let single = imitation(directory.path(), OLDEST, false);
        let error = Library::open(&single).unwrap_err().to_string();
        assert!(error.contains("compiled for a single thread"), "{error}");
    }

    #[test]
    fn the_error_says_why_a_file_is_not_sqlite() {
        check_refusals("SQLite", Library::open);
    }
}
