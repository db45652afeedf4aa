//! Finds an installed build and its version, without starting a server.

use std::fmt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::SetupError;
use crate::local::program;
use crate::local::search::Search;
use crate::servers::sql_kind::Build;

/// The oldest supported major version.
const OLDEST_MAJOR: u32 = 12;

/// The newest major version that assay was tested with.
const NEWEST_MAJOR: u32 = 18;

const SUPPORTED: &str = "12 to 18";

/// The programs that a build must have, which identify it in the record.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// Parent directories of the system's packages, and the prefix of the directory of each major
/// version.
const PACKAGE_DIRECTORIES: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];

/// A version of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresVersion {
    /// The major version, such as 15 in 15.14.
    pub major: u32,
    /// The minor version, such as 14 in 15.14; `None` for a version in development.
    pub minor: Option<u32>,
    /// The server's own text, such as `15.14 (Debian 15.14-0+deb12u1)`.
    pub text: String,
}

impl PostgresVersion {
    /// Parses the output of `postgres --version`: `postgres (PostgreSQL) 15.14 (Debian ...)`,
    /// `17beta1`, `18devel`.
    fn parse(printed: &str) -> Option<Self> {
        let text = printed.trim().strip_prefix("postgres (PostgreSQL) ")?.trim();
        let number = text.split_ascii_whitespace().next()?;
        let (major, rest) = split_digits(number);
        let minor = rest.strip_prefix('.').and_then(|rest| split_digits(rest).0.parse().ok());
        Some(Self { major: major.parse().ok()?, minor, text: text.to_string() })
    }
}

/// Splits a text after the digits at its beginning.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

impl fmt::Display for PostgresVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An installed build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The directory of the build's programs.
    pub bin_dir: PathBuf,
    /// The build's version.
    pub version: PostgresVersion,
    /// The files that identify the build in the record.
    pub files: Vec<PathBuf>,
}

impl Build for Installation {
    fn program(&self) -> PathBuf {
        self.bin_dir.join(PROGRAMS[0])
    }

    fn version(&self) -> String {
        format!("PostgreSQL {}", self.version.text)
    }

    fn note(&self) -> Option<String> {
        if self.version.major <= NEWEST_MAJOR {
            return None;
        }
        Some(format!(
            "{} is newer than the versions that assay was tested with ({SUPPORTED}): some counters may be missing",
            Build::version(self)
        ))
    }
}

/// Returns the error for a version that is too old; `None` for any other.
pub(super) fn refusal(build: &str, major: u32, version: &str) -> Option<SetupError> {
    if major >= OLDEST_MAJOR {
        return None;
    }
    Some(SetupError::Version {
        build: build.to_string(),
        found: version.to_string(),
        supported: format!("{SUPPORTED}, or newer"),
    })
}

/// Finds a build. A build is one of these:
///
/// * a directory with the server's programs, or with `bin`;
/// * `distribution`, `debian` or `system`, the newest version of the system's packages, or else on
///   PATH;
/// * a version of those, such as `15` or `15.14`.
///
/// # Errors
/// [`SetupError::Build`] when there is no such build, [`SetupError::Version`] when it is too old,
/// [`SetupError::Command`] when its programs don't run.
pub fn locate(build: &str) -> Result<Installation, SetupError> {
    let search = Search {
        kind: "PostgreSQL",
        programs: &PROGRAMS[..1],
        directories: &["bin", ""],
        packages: package_directories(),
        searched: "`/usr/lib/postgresql`, `/usr/pgsql-*`",
        install: "install it (Debian: `apt-get install postgresql`), get it with `assay fetch postgres@VERSION`",
        version,
        numbers: |version| [Some(version.major), version.minor].into_iter().flatten().collect(),
    };
    inspect(build, &search.program(build)?)
}

/// Returns the directories with programs of the system's packages.
fn package_directories() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for (parent, prefix) in PACKAGE_DIRECTORIES {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if version.is_some_and(|version| version.parse::<f64>().is_ok()) {
                directories.push(entry.path().join("bin"));
            }
        }
    }
    directories
}

fn version(program: &Path) -> Result<PostgresVersion, SetupError> {
    program::version(program, &["--version"], ("PostgreSQL", "postgres"), PostgresVersion::parse)
}

fn inspect(build: &str, program: &Path) -> Result<Installation, SetupError> {
    let version = version(program)?;
    let bin_dir = program.parent().unwrap_or(Path::new("/"));

    if let Some(refusal) = refusal(build, version.major, &version.text) {
        return Err(refusal);
    }

    let files: Vec<PathBuf> = PROGRAMS.iter().map(|name| bin_dir.join(name)).collect();
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        return Err(SetupError::Build {
            build: build.to_string(),
            what: format!("`{}` is missing", missing.display()),
            help: "use a complete build of the server, with `postgres`, `initdb` and its `share` directory"
                .into(),
        });
    }

    Ok(Installation { bin_dir: bin_dir.to_path_buf(), version, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::user::public_directory;
    use crate::script::write_script;

    fn fake(version: &str, programs: &[&str]) -> tempfile::TempDir {
        let directory = public_directory();
        fs::create_dir(directory.path().join("bin")).unwrap();
        for program in programs {
            let path = directory.path().join("bin").join(program);
            write_script(&path, &format!("echo 'postgres (PostgreSQL) {version}'"));
        }
        directory
    }

    fn located(directory: &Path) -> Result<Installation, SetupError> {
        locate(directory.to_str().unwrap())
    }

    #[test]
    fn the_servers_version_texts_are_parsed() {
        let version = |text: &str| {
            PostgresVersion::parse(&format!("postgres (PostgreSQL) {text}\n"))
                .map(|v| (v.major, v.minor))
        };
        assert_eq!(version("15.14 (Debian 15.14-0+deb12u1)"), Some((15, Some(14))));
        assert_eq!(version("9.6.24"), Some((9, Some(6))));
        assert_eq!(version("17beta1"), Some((17, None)));
        assert_eq!(version("19devel"), Some((19, None)));
        assert_eq!(PostgresVersion::parse("mysqld 8.0"), None);
    }

    #[test]
    fn a_missing_program_is_an_error_and_an_untested_version_has_a_note() {
        let note = |version| located(fake(version, &PROGRAMS).path()).unwrap().note();
        assert!(note("99.1").unwrap().contains("99.1"));
        assert_eq!(note("18.0"), None);
        let error = located(fake("15.1", &["postgres"]).path()).unwrap_err();
        assert!(error.to_string().contains("initdb` is missing"), "{error}");
    }
}
