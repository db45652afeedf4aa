//! Finding an installed build, its version and the files around it, without starting a server.

use std::fmt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::SetupError;
use crate::local::program;
use crate::local::search::Search;
use crate::net::server::Build;

/// The oldest versions that are measured.
const OLDEST_MYSQL: (u32, u32) = (5, 6);
const OLDEST_MARIADB: (u32, u32) = (10, 6);

/// The newest major versions that assay was tried with.
const NEWEST_MYSQL: u32 = 9;
const NEWEST_MARIADB: u32 = 12;

const SUPPORTED: &str = "MySQL 5.6 to 9 and MariaDB 10.6 to 12";

/// Names of the server's program.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];

/// Where a build's directory has it.
const PROGRAM_DIRECTORIES: [&str; 6] = ["bin", "sbin", "libexec", "usr/sbin", "usr/bin", ""];

/// Where packages install it.
const PACKAGE_DIRECTORIES: [&str; 4] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/mysql/bin",
    "/opt/mysql/server/bin",
];

/// Where a build's base directory has messages, and parts that are loaded on demand.
const SHARE_DIRECTORIES: [&str; 3] = ["share/mysql", "share/mariadb", "share"];
const PLUGIN_DIRECTORIES: [&str; 5] = [
    "lib/plugin",
    "lib/mysql/plugin",
    "lib64/mysql/plugin",
    "lib64/plugin",
    "lib/mariadb/plugin",
];

/// Which of the two families a server is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MySQL, and builds of it by others.
    MySql,
    /// MariaDB.
    MariaDb,
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        })
    }
}

/// A version of MySQL or MariaDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The family.
    pub flavor: Flavor,
    /// 10, 11 and 18 of 10.11.18.
    pub number: (u32, u32, u32),
    /// As the server writes it: `10.11.18-MariaDB-0+deb12u1`.
    pub text: String,
}

impl Version {
    /// Understands what `mysqld --version` prints: `mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community ...)`.
    fn parse_printed(printed: &str) -> Option<Self> {
        let text = printed.split_once("Ver ")?.1.trim_start();
        let version = Self::parse(text.split_ascii_whitespace().next()?)?;
        Some(Self {
            flavor: if printed.contains("MariaDB") {
                Flavor::MariaDb
            } else {
                version.flavor
            },
            ..version
        })
    }

    /// Understands what the server says its version is: `8.0.36-28`, `10.11.18-MariaDB-log`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Put before the real one when MariaDB was young, for the sake of replication.
        let flavor = if text.contains("MariaDB") {
            Flavor::MariaDb
        } else {
            Flavor::MySql
        };
        let text = match flavor {
            Flavor::MariaDb => text.strip_prefix("5.5.5-").unwrap_or(text),
            Flavor::MySql => text,
        };
        let digits = text
            .split(|char: char| !char.is_ascii_digit() && char != '.')
            .next()?;
        let mut parts = digits.split('.').map(str::parse::<u32>);
        let mut part = || parts.next()?.ok();
        Some(Self {
            flavor,
            number: (part()?, part()?, part().unwrap_or(0)),
            text: text.to_string(),
        })
    }

    /// Whether it is MySQL, at least that version.
    pub(super) fn is_mysql_from(&self, major: u32, minor: u32, patch: u32) -> bool {
        self.flavor == Flavor::MySql && self.number >= (major, minor, patch)
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.flavor == Flavor::MariaDb
    }

    /// The error for a version that is too old; `None` for one that will do.
    pub(super) fn refusal(&self, build: &str) -> Option<SetupError> {
        let oldest = match self.flavor {
            Flavor::MySql => OLDEST_MYSQL,
            Flavor::MariaDb => OLDEST_MARIADB,
        };
        ((self.number.0, self.number.1) < oldest).then(|| SetupError::Version {
            build: build.to_string(),
            found: format!("{} {}", self.flavor, self.text),
            supported: format!("{SUPPORTED}, and newer ones with a note"),
        })
    }

    /// What should be known about results of this version.
    fn note(&self) -> Option<String> {
        let newest = match self.flavor {
            Flavor::MySql => NEWEST_MYSQL,
            Flavor::MariaDb => NEWEST_MARIADB,
        };
        (self.number.0 > newest).then(|| {
            format!("{self} is newer than the versions that assay was tried with, {SUPPORTED}")
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flavor {
            Flavor::MariaDb if self.text.contains("MariaDB") => f.write_str(&self.text),
            flavor => write!(f, "{flavor} {}", self.text),
        }
    }
}

/// A build that is there and works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The server's program.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
    /// The files that make it, for the record.
    pub files: Vec<PathBuf>,
    /// The directory that the build's other directories are found from.
    pub(super) base_dir: PathBuf,
    /// Messages, character sets and the statements that make system tables.
    pub(super) share_dir: Option<PathBuf>,
    /// Storage engines and other parts that are loaded on demand.
    pub(super) plugin_dir: Option<PathBuf>,
}

impl Build for Installation {
    fn program(&self) -> PathBuf {
        self.program.clone()
    }

    fn version(&self) -> String {
        self.version.to_string()
    }

    fn note(&self) -> Option<String> {
        self.version.note()
    }
}

impl Installation {
    /// Where one of its loadable parts is, by the name of its file.
    pub(super) fn plugin(&self, file: &str) -> Option<PathBuf> {
        let path = self.plugin_dir.as_ref()?.join(file);
        path.is_file().then_some(path)
    }
}

/// Finds a build: a directory with the server's program, or with `bin` or `sbin` in it, or into which a distribution's
/// packages were unpacked; `distribution` (also `debian` or `system`) for what the system's packages installed; or a
/// version, such as `10.11` or `8.0.36`, of those.
///
/// # Errors
/// [`SetupError::Build`] when it is not there or not a build, [`SetupError::Version`] when it is too old,
/// [`SetupError::Command`] when its program doesn't run.
pub fn locate(build: &str) -> Result<Installation, SetupError> {
    let search = Search {
        kind: "MySQL or MariaDB",
        programs: &PROGRAMS,
        directories: &PROGRAM_DIRECTORIES,
        packages: PACKAGE_DIRECTORIES.map(PathBuf::from).to_vec(),
        searched: "`/usr/sbin`",
        install: "install it (Debian: `apt-get install mariadb-server`)",
        version,
        numbers: |version| <[u32; 3]>::from(version.number).to_vec(),
    };
    examined(build, &search.program(build)?)
}

fn version(program: &Path) -> Result<Version, SetupError> {
    let args = ["--no-defaults", "--version"];
    program::version(program, &args, "MySQL or MariaDB", Version::parse_printed)
}

fn examined(build: &str, program: &Path) -> Result<Installation, SetupError> {
    let program = fs::canonicalize(program)?;
    let version = version(&program)?;
    if let Some(refusal) = version.refusal(build) {
        return Err(refusal);
    }
    // A build that lies loose in one directory is its own base.
    let bin_dir = program.parent().unwrap_or(Path::new("/"));
    let base_dir = match bin_dir.parent() {
        Some(parent) if !bin_dir.join("share").is_dir() => parent,
        _ => bin_dir,
    };
    let place = |places: &[&str], is_it: fn(&Path) -> bool| {
        let mut places = places.iter().map(|place| base_dir.join(place));
        places.find(|place| is_it(place))
    };
    let share_dir = place(&SHARE_DIRECTORIES, |it| {
        it.join("english/errmsg.sys").is_file()
    });
    let plugin_dir = place(&PLUGIN_DIRECTORIES, Path::is_dir);
    let plugin = plugin_dir.as_ref().map(|it| it.join(ROCKSDB_PLUGIN));
    let plugin = plugin.filter(|it| it.is_file());
    Ok(Installation {
        files: std::iter::once(program.clone()).chain(plugin).collect(),
        base_dir: base_dir.to_path_buf(),
        program,
        version,
        share_dir,
        plugin_dir,
    })
}

/// The file of MyRocks.
pub(super) const ROCKSDB_PLUGIN: &str = "ha_rocksdb.so";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;

    fn fake(printed: &str, program: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_script(&path, &format!("echo '{printed}'"));
        directory
    }

    #[test]
    fn versions_are_read_as_the_servers_print_them() {
        for (printed, flavor, number, shown) in [
            (
                "mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
                Flavor::MySql,
                (9, 7, 4),
                "MySQL 9.7.4-2",
            ),
            (
                "/usr/sbin/mariadbd  Ver 10.11.18-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
                Flavor::MariaDb,
                (10, 11, 18),
                "10.11.18-MariaDB-0+deb12u1",
            ),
            (
                "mysqld  Ver 5.6.51 for linux-glibc2.12 on x86_64 (MySQL Community Server (GPL))",
                Flavor::MySql,
                (5, 6, 51),
                "MySQL 5.6.51",
            ),
        ] {
            let version = Version::parse_printed(printed).unwrap();
            assert_eq!((version.flavor, version.number), (flavor, number));
            assert_eq!(version.to_string(), shown);
        }
        let greeted = Version::parse("5.5.5-10.11.18-MariaDB-log").unwrap();
        assert_eq!(
            (greeted.flavor, greeted.number),
            (Flavor::MariaDb, (10, 11, 18))
        );
        assert_eq!(Version::parse_printed("postgres (PostgreSQL) 15"), None);
        assert_eq!(Version::parse("x"), None);
    }

    #[test]
    fn a_build_is_found_by_its_directory_in_any_layout() {
        for program in [
            "bin/mysqld",
            "sbin/mysqld",
            "mysqld",
            "libexec/mariadbd",
            "usr/sbin/mysqld",
        ] {
            let build = fake("mysqld  Ver 8.0.36 for Linux on x86_64 (x)", program);
            let found = locate(build.path().to_str().unwrap()).unwrap();
            assert!(found.program.ends_with(program), "{found:?}");
            assert_eq!(found.files.len(), 1);
        }
    }

    #[test]
    fn versions_that_are_too_old_are_refused_and_newer_ones_noted() {
        for (text, is_refused, is_noted) in [
            ("5.5.62", true, false),
            ("10.3.39-MariaDB", true, false),
            ("9.7.4", false, false),
            ("99.1.0", false, true),
        ] {
            let version = Version::parse(text).unwrap();
            assert_eq!(version.refusal("x").is_some(), is_refused, "{text}");
            assert_eq!(version.note().is_some(), is_noted, "{text}");
        }
    }
}
