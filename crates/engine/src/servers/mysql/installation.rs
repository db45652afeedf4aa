//! Finds an installed build, its version and its files, without starting a server.

use std::fmt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::SetupError;
use crate::local::program;
use crate::local::search::Search;
use crate::servers::sql_kind::Build;

/// The oldest supported versions.
const OLDEST_MYSQL: (u32, u32) = (5, 6);
const OLDEST_MARIADB: (u32, u32) = (10, 6);

/// The newest major versions that assay was tested with.
const NEWEST_MYSQL: u32 = 9;
const NEWEST_MARIADB: u32 = 12;

const SUPPORTED: &str = "MySQL 5.6 to 9 and MariaDB 10.6 to 12";

/// The names of the server's program.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];

/// The directories of the program within a build.
const PROGRAM_DIRECTORIES: [&str; 6] = ["bin", "sbin", "libexec", "usr/sbin", "usr/bin", ""];

/// The directories of the program in the system's packages.
const PACKAGE_DIRECTORIES: [&str; 4] =
    ["/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/opt/mysql/server/bin"];

/// The directories of messages and plugins within a build.
const SHARE_DIRECTORIES: [&str; 3] = ["share/mysql", "share/mariadb", "share"];
const PLUGIN_DIRECTORIES: [&str; 5] =
    ["lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib64/plugin", "lib/mariadb/plugin"];

/// The family of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MySQL and its forks other than MariaDB.
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
pub struct MysqlVersion {
    /// The family.
    pub flavor: Flavor,
    /// The numbers, such as 10, 11 and 18 in 10.11.18.
    pub number: (u32, u32, u32),
    /// The server's own text, such as `10.11.18-MariaDB-0+deb12u1`.
    pub text: String,
}

impl MysqlVersion {
    /// Parses the output of `mysqld --version`: `mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL
    /// Community ...)`.
    fn parse_printed(printed: &str) -> Option<Self> {
        let text = printed.split_once("Ver ")?.1.trim_start();
        let version = Self::parse(text.split_ascii_whitespace().next()?)?;
        Some(Self {
            flavor: if printed.contains("MariaDB") { Flavor::MariaDb } else { version.flavor },
            ..version
        })
    }

    /// Parses a server's version: `8.0.36-28`, `10.11.18-MariaDB-log`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Old versions of MariaDB put this before their version for replication.
        let flavor = if text.contains("MariaDB") { Flavor::MariaDb } else { Flavor::MySql };
        let own_text = match flavor {
            Flavor::MariaDb => text.strip_prefix("5.5.5-").unwrap_or(text),
            Flavor::MySql => text,
        };

        let digits = own_text.split(|char: char| !char.is_ascii_digit() && char != '.').next()?;
        let mut numbers = digits.split('.').map(str::parse::<u32>);
        let mut number = || numbers.next()?.ok();
        Some(Self {
            flavor,
            number: (number()?, number()?, number().unwrap_or(0)),
            text: own_text.to_string(),
        })
    }

    /// Returns true for MySQL of at least that version.
    pub(super) fn is_mysql_from(&self, major: u32, minor: u32, patch: u32) -> bool {
        self.flavor == Flavor::MySql && self.number >= (major, minor, patch)
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.flavor == Flavor::MariaDb
    }

    /// Returns the error for a version that is too old; `None` for any other.
    pub(super) fn refusal(&self, build: &str) -> Option<SetupError> {
        let oldest = match self.flavor {
            Flavor::MySql => OLDEST_MYSQL,
            Flavor::MariaDb => OLDEST_MARIADB,
        };

        if (self.number.0, self.number.1) >= oldest {
            return None;
        }

        Some(SetupError::Version {
            build: build.to_string(),
            found: format!("{} {}", self.flavor, self.text),
            supported: format!("{SUPPORTED}, or newer"),
        })
    }

    /// Returns a note about results of a version that was not tested.
    fn note(&self) -> Option<String> {
        let newest = match self.flavor {
            Flavor::MySql => NEWEST_MYSQL,
            Flavor::MariaDb => NEWEST_MARIADB,
        };

        if self.number.0 <= newest {
            return None;
        }

        Some(format!(
            "{self} is newer than the versions that assay was tested with ({SUPPORTED}): some counters may be missing"
        ))
    }
}

impl fmt::Display for MysqlVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flavor {
            Flavor::MariaDb if self.text.contains("MariaDB") => f.write_str(&self.text),
            flavor => write!(f, "{flavor} {}", self.text),
        }
    }
}

/// An installed build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The server's program.
    pub program: PathBuf,
    /// The build's version.
    pub version: MysqlVersion,
    /// The files that identify the build in the record.
    pub files: Vec<PathBuf>,
    /// The base directory, which contains the build's other directories.
    pub(super) base_dir: PathBuf,
    /// The directory of messages, character sets, and the statements that create system tables.
    pub(super) share_dir: Option<PathBuf>,
    /// The directory of storage engines and other plugins.
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
    /// Returns the path of a plugin with this file name, if the build has it.
    pub(super) fn plugin(&self, file: &str) -> Option<PathBuf> {
        let path = self.plugin_dir.as_ref()?.join(file);
        path.is_file().then_some(path)
    }
}

/// Finds a build. A build is one of these:
///
/// * a directory with the server's program, with `bin` or `sbin`, or with unpacked packages of a
///   distribution;
/// * `distribution`, `debian` or `system`, the server of the system's packages;
/// * a version of those, such as `10.11` or `8.0.36`.
///
/// # Errors
/// [`SetupError::Build`] when there is no such build, [`SetupError::Version`] when it is too old,
/// [`SetupError::Command`] when its program does not run.
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
    inspect(build, &search.program(build)?)
}

fn version(program: &Path) -> Result<MysqlVersion, SetupError> {
    let args = ["--no-defaults", "--version"];
    program::version(program, &args, ("MySQL or MariaDB", "mysql"), MysqlVersion::parse_printed)
}

fn inspect(build: &str, program: &Path) -> Result<Installation, SetupError> {
    let program = fs::canonicalize(program)?;
    let version = version(&program)?;

    if let Some(refusal) = version.refusal(build) {
        return Err(refusal);
    }

    // A build without subdirectories is its own base directory.
    let bin_dir = program.parent().unwrap_or(Path::new("/"));
    let base_dir = match bin_dir.parent() {
        Some(parent) if !bin_dir.join("share").is_dir() => parent,
        _ => bin_dir,
    }
    .to_path_buf();

    let find = |names: &[&str], matches: fn(&Path) -> bool| {
        let mut paths = names.iter().map(|name| base_dir.join(name));
        paths.find(|path| matches(path))
    };

    let mut installation = Installation {
        files: vec![program.clone()],
        share_dir: find(&SHARE_DIRECTORIES, |path| path.join("english/errmsg.sys").is_file()),
        plugin_dir: find(&PLUGIN_DIRECTORIES, Path::is_dir),
        base_dir,
        program,
        version,
    };

    // The plugin is a storage engine, so that its code is measured, too.
    installation.files.extend(installation.plugin(ROCKSDB_PLUGIN));
    Ok(installation)
}

/// The file of MyRocks's plugin.
pub(super) const ROCKSDB_PLUGIN: &str = "ha_rocksdb.so";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::user::public_directory;
    use crate::script::write_script;

    fn fake(printed: &str, program: &str) -> tempfile::TempDir {
        let directory = public_directory();
        let path = directory.path().join(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_script(&path, &format!("echo '{printed}'"));
        directory
    }

    #[test]
    fn the_servers_version_texts_are_parsed() {
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
            let version = MysqlVersion::parse_printed(printed).unwrap();
            assert_eq!((version.flavor, version.number), (flavor, number));
            assert_eq!(version.to_string(), shown);
        }
        let greeted = MysqlVersion::parse("5.5.5-10.11.18-MariaDB-log").unwrap();
        assert_eq!((greeted.flavor, greeted.number), (Flavor::MariaDb, (10, 11, 18)));
        assert_eq!(MysqlVersion::parse_printed("postgres (PostgreSQL) 15"), None);
        assert_eq!(MysqlVersion::parse("x"), None);
    }

    #[test]
    fn a_build_is_found_by_its_directory_in_any_layout() {
        for program in
            ["bin/mysqld", "sbin/mysqld", "mysqld", "libexec/mariadbd", "usr/sbin/mysqld"]
        {
            let build = fake("mysqld  Ver 8.0.36 for Linux on x86_64 (x)", program);
            let installation = locate(build.path().to_str().unwrap()).unwrap();
            assert!(installation.program.ends_with(program), "{installation:?}");
            assert_eq!(installation.files.len(), 1);
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
            let version = MysqlVersion::parse(text).unwrap();
            assert_eq!(version.refusal("x").is_some(), is_refused, "{text}");
            assert_eq!(version.note().is_some(), is_noted, "{text}");
        }
    }
}
