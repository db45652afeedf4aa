//! Finds an installed server by its directory, its version, or in the system's packages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::SetupError;

/// Names for the server of the system's packages.
const DISTRIBUTION: [&str; 3] = ["distribution", "debian", "system"];

/// A search for the builds of a kind of server.
pub(crate) struct Search<V> {
    /// The server's name, such as `PostgreSQL`.
    pub kind: &'static str,
    /// The names of the server's program. The first one that exists is used.
    pub programs: &'static [&'static str],
    /// The directories with programs within a build's directory.
    pub directories: &'static [&'static str],
    /// The directories with programs of the system's packages.
    pub packages: Vec<PathBuf>,
    /// A description of these directories.
    pub searched: &'static str,
    /// The instructions for installing the server.
    pub install: &'static str,
    /// Returns the version of a program.
    pub version: fn(&Path) -> Result<V, SetupError>,
    /// Returns the numbers of a version, most significant first.
    pub numbers: fn(&V) -> Vec<u32>,
}

impl<V: std::fmt::Display> Search<V> {
    /// Returns the server's program of a build. A build is one of these:
    ///
    /// * a directory, with a slash in its path, that contains the program, itself or in one of
    ///   [`Self::directories`];
    /// * `distribution`, `debian` or `system`, the newest version of the system's packages, or else
    ///   on PATH;
    /// * a version of those, in full or its beginning.
    pub(crate) fn program(&self, build: &str) -> Result<PathBuf, SetupError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if DISTRIBUTION.contains(&build) {
            return self.newest(build, &path, |_| true);
        }

        let is_number = build.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if !build.is_empty() && is_number {
            return self.newest(build, &path, |numbers| is_version(build, numbers));
        }

        // In a shared working directory, another user could make a directory of this name.
        if !build.contains('/') {
            return Err(SetupError::Build {
                build: build.to_string(),
                what: "no downloaded build has this name".to_string(),
                help: format!(
                    "write `./{build}` for a directory in the working directory; `assay builds` lists the builds on this machine"
                ),
            });
        }

        self.program_below(build)
    }

    /// Returns the server's program of a build that is a directory.
    fn program_below(&self, build: &str) -> Result<PathBuf, SetupError> {
        let directory = Path::new(build);
        if !directory.is_dir() {
            let what = format!("the directory `{build}` does not exist");
            return Err(self.no_program(build, what));
        }

        for name in self.directories {
            let bin_dir = directory.join(name);
            if let Some(program) = self.program_in(&bin_dir) {
                return Ok(fs::canonicalize(bin_dir)?.join(program));
            }
        }

        let programs = self.programs.join("` or `");
        let what = format!("neither `{build}` nor `{build}/bin` contains `{programs}`");
        Err(self.no_program(build, what))
    }

    /// Returns the error of a build that is not a directory with the server's program.
    fn no_program(&self, build: &str, what: String) -> SetupError {
        let programs = self.programs.join("` or `bin/");
        SetupError::Build {
            build: build.to_string(),
            what,
            help: format!(
                "write the directory that contains `bin/{programs}`, or `distribution`, or an installed version"
            ),
        }
    }

    /// Returns the name of the server's program in a directory. Its new name takes precedence over
    /// a link from an old one.
    fn program_in(&self, directory: &Path) -> Option<&'static str> {
        self.programs.iter().copied().find(|name| directory.join(name).is_file())
    }

    /// Returns the newest wanted version of the system's packages, or else on PATH.
    fn newest(
        &self,
        build: &str,
        path: &OsStr,
        is_wanted: impl Fn(&[u32]) -> bool,
    ) -> Result<PathBuf, SetupError> {
        let packaged = self.packages.iter().filter_map(|directory| {
            let program = directory.join(self.program_in(directory)?);
            Some((0, program))
        });

        // Resolves links: the directory of a link need not contain the rest of the build.
        let on_path = std::env::split_paths(path).filter_map(|directory| {
            let program = directory.join(self.program_in(&directory)?);
            Some((1, fs::canonicalize(program).ok()?))
        });

        let mut installed: Vec<(u8, PathBuf, V)> = Vec::new();
        for (priority, program) in packaged.chain(on_path) {
            if !installed.iter().any(|(_, other, _)| *other == program)
                && let Ok(version) = (self.version)(&program)
            {
                installed.push((priority, program, version));
            }
        }

        // The newest of the packages, or else of those on PATH.
        let wanted = installed.iter().filter_map(|(priority, program, version)| {
            let numbers = (self.numbers)(version);
            is_wanted(&numbers).then_some((std::cmp::Reverse(*priority), numbers, program))
        });

        if let Some((_, _, program)) = wanted.max() {
            return Ok(program.clone());
        }

        let listed: Vec<String> = installed
            .iter()
            .map(|(_, program, version)| format!("{version} in `{}`", program.display()))
            .collect();
        let found = if listed.is_empty() {
            "none is installed".to_string()
        } else {
            format!("installed: {}", listed.join(", "))
        };
        Err(SetupError::Build {
            build: build.to_string(),
            what: format!("no such {} in {} or PATH; {found}", self.kind, self.searched),
            help: format!("{}, or write the directory of a build", self.install),
        })
    }
}

/// Returns true when `requested` is the beginning of a version: `8`, `8.0` and `8.0.36` match
/// 8.0.36.
pub(crate) fn is_version(requested: &str, numbers: &[u32]) -> bool {
    let requested: Vec<Option<u32>> =
        requested.split('.').map(|number| number.parse().ok()).collect();
    requested.len() <= numbers.len()
        && requested.iter().zip(numbers).all(|(requested, number)| *requested == Some(*number))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::safety::user::public_directory;
    use crate::script::write_script;

    fn fake(version: &str) -> tempfile::TempDir {
        let directory = public_directory();
        fs::create_dir(directory.path().join("bin")).unwrap();
        write_script(&directory.path().join("bin/served"), &format!("echo {version}"));
        directory
    }

    fn search(packages: Vec<PathBuf>) -> Search<String> {
        Search {
            kind: "Served",
            programs: &["served"],
            directories: &["bin", ""],
            packages,
            searched: "packages",
            install: "install it",
            version: |program| {
                super::super::program::version(program, &[], ("Served", "served"), |text| {
                    let is_number = text.starts_with(|char: char| char.is_ascii_digit());
                    is_number.then(|| text.trim().to_string())
                })
            },
            numbers: |version| version.split('.').map(|part| part.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn a_program_that_prints_its_version_does_not_run_as_root() {
        let build = fake("$(id -u).$(id -G | tr ' ' .)");
        let search = search(Vec::new());
        let version = (search.version)(&build.path().join("bin/served")).unwrap();
        let ids: Vec<&str> = version.split('.').collect();
        if rustix::process::geteuid().is_root() {
            assert!(!ids.contains(&"0"), "{version}");
        }
        // A build that only root can enter says so.
        fs::set_permissions(build.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let closed = (search.version)(&build.path().join("bin/served"));
        if rustix::process::geteuid().is_root() {
            let error = closed.unwrap_err().to_string();
            assert!(error.contains("cannot enter `"), "{error}");
        }
    }

    #[test]
    fn packages_come_before_path_and_links_lead_to_the_build() {
        let (old, new) = (fake("15.3"), fake("16.1"));
        let links = tempfile::tempdir().unwrap();
        // A link to the server alone, as in /usr/local/bin.
        std::os::unix::fs::symlink(new.path().join("bin/served"), links.path().join("served"))
            .unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), links.path()]).unwrap();
        let search = search(vec![old.path().join("bin")]);
        let any = search.newest("distribution", &path, |_| true).unwrap();
        assert_eq!(any, old.path().join("bin/served"));
        let sixteen = search.newest("16", &path, |it| is_version("16", it)).unwrap();
        assert_eq!(sixteen, fs::canonicalize(new.path().join("bin/served")).unwrap());
        let error = search.newest("17", &path, |it| is_version("17", it)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("15.3") && text.contains("16.1"), "{text}");
    }

    #[test]
    fn a_build_is_found_by_its_directory_and_the_error_names_what_is_missing() {
        let (build, search) = (fake("15.3"), search(Vec::new()));
        let bin = fs::canonicalize(build.path().join("bin")).unwrap();
        for directory in [build.path(), &bin] {
            let program = search.program(directory.to_str().unwrap()).unwrap();
            assert_eq!(program, bin.join("served"));
        }
        let empty = tempfile::tempdir().unwrap();
        for (build, text) in [
            (empty.path().to_str().unwrap(), "contains `served`"),
            ("/nowhere/at/all", "`/nowhere/at/all`"),
            ("999.9", "none is installed"),
            // The working directory of a test is that of its crate.
            ("src", "no downloaded build has this name"),
            ("./src", "contains `served`"),
        ] {
            let error = search.program(build).unwrap_err();
            assert!(matches!(error, SetupError::Build { .. }), "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
        let other = fake("something else");
        let error = (search.version)(&other.path().join("bin/served")).unwrap_err();
        assert!(error.to_string().contains("prints no version"), "{error}");
    }

    #[test]
    fn the_beginning_of_a_version_matches() {
        let matches = |requested| is_version(requested, &[8, 0, 36]);
        assert!(["8", "8.0", "8.0.36"].into_iter().all(matches));
        let others = ["8.1", "8.0.3", "8.0.36.1", "8."];
        assert!(!others.into_iter().any(matches));
    }
}
