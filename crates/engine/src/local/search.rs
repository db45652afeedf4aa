//! Finding an installed server: by its directory, by its version, or whatever the system's packages installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::SetupError;

/// Names for whatever the system's packages installed.
const DISTRIBUTION: [&str; 3] = ["distribution", "debian", "system"];

/// How one kind of server is found.
pub(crate) struct Search<V> {
    /// What it is called: `PostgreSQL`.
    pub kind: &'static str,
    /// Names of the server's program; the first that is there counts.
    pub programs: &'static [&'static str],
    /// Where a build's directory has its programs.
    pub directories: &'static [&'static str],
    /// The directories in which the system's packages have programs.
    pub packages: Vec<PathBuf>,
    /// Where packages are looked for, in words.
    pub searched: &'static str,
    /// How to get the server.
    pub install: &'static str,
    /// Asks a program for its version.
    pub version: fn(&Path) -> Result<V, SetupError>,
    /// Returns the numbers of a version, most significant first, as many as it has.
    pub numbers: fn(&V) -> Vec<u32>,
}

impl<V: std::fmt::Display> Search<V> {
    /// Returns the server's program of a build: a directory with the program, or with one of [`Self::directories`] that has
    /// it; `distribution` (also `debian` or `system`) for the newest that the system's packages installed, or where they
    /// installed none, the newest on PATH; or a version, whole or in part, of those.
    pub(crate) fn program(&self, build: &str) -> Result<PathBuf, SetupError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directory = Path::new(build);
        let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        if DISTRIBUTION.contains(&build) {
            return self.newest(build, &path, |_| true);
        }
        if !build.is_empty() && build.bytes().all(is_number) && !directory.is_dir() {
            return self.newest(build, &path, |numbers| is_version(build, numbers));
        }
        let missing = |what: String| SetupError::Build {
            build: build.to_string(),
            what,
            help: format!(
                "name the directory that holds `bin/{}`, `distribution`, or an installed version",
                self.programs.join("` or `bin/")
            ),
        };
        if !directory.is_dir() {
            return Err(missing(format!("there is no directory `{build}`")));
        }
        let found = self.directories.iter().find_map(|below| {
            let bin_dir = directory.join(below);
            let program = self.program_in(&bin_dir)?;
            Some(fs::canonicalize(bin_dir).map(|bin_dir| bin_dir.join(program)))
        });
        Ok(found.ok_or_else(|| {
            missing(format!(
                "no `{}` in `{build}` or `{build}/bin`",
                self.programs.join("` or `")
            ))
        })??)
    }

    /// Returns the name of the server's program in a directory. Where its old name is a link to the new one, the new one.
    fn program_in(&self, directory: &Path) -> Option<&'static str> {
        let mut programs = self.programs.iter().copied();
        programs.find(|name| directory.join(name).is_file())
    }

    /// Returns the newest wanted version that packages installed; where they have none, the newest on PATH.
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
        // The directories where the programs are, not those of links to them, which need not have all of a build.
        let on_path = std::env::split_paths(path).filter_map(|directory| {
            let program = directory.join(self.program_in(&directory)?);
            Some((1, fs::canonicalize(program).ok()?))
        });
        let mut known: Vec<(u8, PathBuf, V)> = Vec::new();
        for (place, program) in packaged.chain(on_path) {
            if !known.iter().any(|(_, other, _)| *other == program)
                && let Ok(version) = (self.version)(&program)
            {
                known.push((place, program, version));
            }
        }
        let wanted = known.iter().filter_map(|(place, program, version)| {
            let numbers = (self.numbers)(version);
            is_wanted(&numbers).then_some((std::cmp::Reverse(*place), numbers, program))
        });
        if let Some((_, _, program)) = wanted.max() {
            return Ok(program.clone());
        }
        let found: Vec<String> = known
            .iter()
            .map(|(_, program, version)| format!("{version} in `{}`", program.display()))
            .collect();
        let found = match found.is_empty() {
            true => "nothing".to_string(),
            false => found.join(", "),
        };
        Err(SetupError::Build {
            build: build.to_string(),
            what: format!(
                "no such {} in {} or PATH; found {found}",
                self.kind, self.searched
            ),
            help: format!("{}, or name the directory of a build", self.install),
        })
    }
}

/// Returns whether `asked`, `8`, `8.0` or `8.0.36`, means the version of these numbers.
pub(crate) fn is_version(asked: &str, numbers: &[u32]) -> bool {
    let asked: Vec<Option<u32>> = asked.split('.').map(|part| part.parse().ok()).collect();
    let mut pairs = asked.iter().zip(numbers);
    asked.len() <= numbers.len() && pairs.all(|(asked, number)| *asked == Some(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::write_script;

    fn fake(version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("bin")).unwrap();
        write_script(
            &directory.path().join("bin/served"),
            &format!("echo {version}"),
        );
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
                super::super::program::version(program, &[], "Served", |text| {
                    let is_number = text.starts_with(|char: char| char.is_ascii_digit());
                    is_number.then(|| text.trim().to_string())
                })
            },
            numbers: |version| {
                version
                    .split('.')
                    .map(|part| part.parse().unwrap())
                    .collect()
            },
        }
    }

    #[test]
    fn packages_come_before_path_and_links_lead_to_the_build() {
        let (old, new) = (fake("15.3"), fake("16.1"));
        let links = tempfile::tempdir().unwrap();
        // A link to the server alone, as some put one into /usr/local/bin.
        std::os::unix::fs::symlink(new.path().join("bin/served"), links.path().join("served"))
            .unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), links.path()]).unwrap();
        let search = search(vec![old.path().join("bin")]);
        let any = search.newest("distribution", &path, |_| true).unwrap();
        assert_eq!(any, old.path().join("bin/served"));
        let sixteen = search
            .newest("16", &path, |it| is_version("16", it))
            .unwrap();
        assert_eq!(
            sixteen,
            fs::canonicalize(new.path().join("bin/served")).unwrap()
        );
        let nothing = search
            .newest("17", &path, |it| is_version("17", it))
            .unwrap_err();
        let text = nothing.to_string();
        assert!(text.contains("15.3") && text.contains("16.1"), "{text}");
    }

    #[test]
    fn a_build_is_found_by_its_directory_and_what_is_missing_is_named() {
        let (build, search) = (fake("15.3"), search(Vec::new()));
        let bin = fs::canonicalize(build.path().join("bin")).unwrap();
        for directory in [build.path(), &bin] {
            let found = search.program(directory.to_str().unwrap()).unwrap();
            assert_eq!(found, bin.join("served"));
        }
        let empty = tempfile::tempdir().unwrap();
        for (build, said) in [
            (empty.path().to_str().unwrap(), "no `served` in"),
            ("/nowhere/at/all", "`/nowhere/at/all`"),
            ("999.9", "found nothing"),
        ] {
            let error = search.program(build).unwrap_err();
            assert!(matches!(error, SetupError::Build { .. }), "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
        let other = fake("something else");
        let error = (search.version)(&other.path().join("bin/served")).unwrap_err();
        assert!(error.to_string().contains("prints no version"), "{error}");
    }

    #[test]
    fn a_version_may_be_asked_for_in_part() {
        let is = |asked| is_version(asked, &[8, 0, 36]);
        assert!(is("8") && is("8.0") && is("8.0.36"));
        assert!(!is("8.1") && !is("8.0.3") && !is("8.0.36.1") && !is("8."));
    }
}
