//! Finds the build in a folder: its engine, its programs, and the version that its own program
//! prints or that its library exports.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::asking::ask;
use crate::elf::{Elf, exported_text, exports};
use crate::error::BuildError;
use crate::spec::is_word;
use crate::version::numbers;

/// A build in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBuild {
    /// The engine that runs the build: `postgres`, `mysql`, `rocksdb`, `sqlite` or `library`.
    pub engine: &'static str,
    /// The path that the engine needs: a folder with programs, or a library.
    pub path: PathBuf,
    /// The programs or the library to measure; the first is the server.
    pub programs: Vec<PathBuf>,
}

impl FoundBuild {
    /// Returns true if the build is a shared library, without programs.
    pub fn is_library(&self) -> bool {
        LIBRARIES.iter().any(|(engine, _)| *engine == self.engine)
    }

    /// Returns true if only loading the build would show its version.
    pub fn hides_version(&self) -> bool {
        [ROCKSDB, ADAPTER].contains(&self.engine)
    }
}

/// The version that a program prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductVersion {
    /// The product: `postgres`, `mysql`, `mariadb`, `rocksdb`, `speedb`, `sqlite` or `library`.
    pub product: &'static str,
    /// The number alone, such as `17.2`.
    pub number: String,
    /// The whole text, such as `17.2 (Debian 17.2-1)`.
    pub text: String,
}

/// The most characters of the text of a version.
const VERSION_CHARS_MAX: usize = 200;

const SERVER_FOLDERS: [&str; 5] = ["bin", "sbin", "libexec", "usr/sbin", "usr/bin"];

const ROCKSDB: &str = "rocksdb";
const SQLITE: &str = "sqlite";
/// An adapter of an engine of others.
const ADAPTER: &str = "library";

/// The engines that are shared libraries, and how the names of the libraries' files begin.
const LIBRARIES: [(&str, &[&str]); 2] =
    [(ROCKSDB, &["librocksdb", "libspeedb"]), (SQLITE, &["libsqlite3"])];

/// The folders of libraries in a root, as Debian and others have them.
const LIBRARY_FOLDERS: [&str; 5] =
    ["", "lib", "usr/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"];

/// The name under which a library of SQLite exports its version.
const SQLITE_VERSION: &str = "sqlite3_version";

/// The name of the function that adapters export.
const ADAPTER_ENTRY: &str = "assay_engine";

/// Finds the build in the folder `root`; `root` may also be a library.
pub fn find(root: &Path) -> Option<FoundBuild> {
    if root.is_file() {
        Elf::read(root)?;
        return Some(library(engine_of(root), root.to_path_buf()));
    }

    if let Some(build) = postgres(root).or_else(|| mysql(root)) {
        return Some(build);
    }
    for (engine, _) in LIBRARIES {
        if let Some(path) = find_library(engine, root) {
            return Some(library(engine, path));
        }
    }
    None
}

/// Returns the engine of a shared library, by what it exports.
fn engine_of(path: &Path) -> &'static str {
    if exports(path, ADAPTER_ENTRY) {
        ADAPTER
    } else if exported_text(path, SQLITE_VERSION).is_some() {
        SQLITE
    } else {
        ROCKSDB
    }
}

/// Finds a shared library of `engine` in the folder `root`, itself or its usual folders.
pub fn find_library(engine: &str, root: &Path) -> Option<PathBuf> {
    let (_, beginnings) = LIBRARIES.iter().find(|(known, _)| *known == engine)?;

    let mut libraries: Vec<PathBuf> = Vec::new();
    for folder in LIBRARY_FOLDERS {
        libraries.extend(entries(&root.join(folder)));
    }
    // A folder may have scripts of the linker with such a name.
    libraries.retain(|path| is_library_named(path, beginnings) && Elf::read(path).is_some());
    libraries.sort();
    libraries.into_iter().next()
}

/// Returns true for the name of a shared library that begins with one of these.
fn is_library_named(path: &Path, beginnings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".so") && beginnings.iter().any(|beginning| name.starts_with(beginning))
}

fn postgres(root: &Path) -> Option<FoundBuild> {
    let mut homes = vec![root.to_path_buf()];
    let mut packaged: Vec<PathBuf> = entries(&root.join("usr/lib/postgresql"));
    // The newest version wins.
    packaged.sort_by_key(|path| numbers(&path.file_name().unwrap_or_default().to_string_lossy()));
    homes.extend(packaged.into_iter().rev());

    for home in homes {
        for bin in [home.join("bin"), home.clone()] {
            let server = bin.join("postgres");
            if server.is_file() {
                return Some(FoundBuild {
                    engine: "postgres",
                    path: home,
                    programs: vec![server, bin.join("initdb")],
                });
            }
        }
    }
    None
}

fn mysql(root: &Path) -> Option<FoundBuild> {
    let programs = SERVER_FOLDERS
        .iter()
        .flat_map(|bin| ["mariadbd", "mysqld"].map(|name| root.join(bin).join(name)));
    let program = programs.into_iter().find(|path| path.is_file())?;

    let mut path = root.join("usr");
    if !program.starts_with(&path) {
        path = root.to_path_buf();
    }

    Some(FoundBuild { engine: "mysql", path, programs: vec![program] })
}

fn library(engine: &'static str, path: PathBuf) -> FoundBuild {
    FoundBuild { engine, programs: vec![path.clone()], path }
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns the version of a build. Fails when `program`, the server or the program behind its
/// script, was built for another machine.
pub fn version(place: &FoundBuild, program: &Path) -> anyhow::Result<ProductVersion> {
    if let Some(elf) = Elf::read(program)
        && !elf.is_for_this_machine()
    {
        return Err(BuildError::new(
            format!("`{}` was built for another machine", program.display()),
            format!("use a build for {}, the architecture of this machine", std::env::consts::ARCH),
        )
        .into());
    }

    if place.hides_version() {
        Ok(version_in_name(place))
    } else if place.engine == SQLITE {
        exported_version(&place.path)
    } else {
        server_version(place)
    }
}

fn server_version(place: &FoundBuild) -> anyhow::Result<ProductVersion> {
    let program = &place.programs[0];
    if let Some(missing) = place.programs.iter().find(|program| !program.is_file()) {
        return Err(BuildError::new(
            format!("`{}` is missing", missing.display()),
            "use a complete build, with the server and all its programs",
        )
        .into());
    }

    let failed = |reason: &str| {
        BuildError::new(
            format!("`{}` does not run on this machine: {reason}", program.display()),
            "install the missing library, or fetch the server with its libraries as `debian:SUITE/PACKAGE`",
        )
    };

    let (args, prefix): (&[&str], _) = match place.engine {
        "postgres" => (&["--version"], "(PostgreSQL) "),
        // Option files of the machine may hold what this version refuses.
        _ => (&["--no-defaults", "--version"], "Ver "),
    };

    let answer =
        ask(Command::new(program).args(args)).map_err(|error| failed(&error.to_string()))?;
    if answer.is_late {
        return Err(failed("it did not print its version in time").into());
    }

    let Some((_, after_prefix)) = answer.stdout.split_once(prefix) else {
        let reason = answer.stderr.lines().next();
        return Err(failed(reason.unwrap_or("it prints no version")).into());
    };

    // The text comes from the program, and the number becomes a part of the build's name.
    let first_line = after_prefix.lines().next().unwrap_or_default().trim();
    let text: String =
        first_line.chars().filter(|sign| !sign.is_control()).take(VERSION_CHARS_MAX).collect();
    let number = first_number(&text);
    if !is_number(&number) {
        return Err(failed("what it prints as its version is none").into());
    }

    Ok(ProductVersion {
        product: match place.engine {
            "mysql" if text.contains("MariaDB") => "mariadb",
            engine => engine,
        },
        number,
        text,
    })
}

/// Returns whether a text can be the number of a version: `17.2`, `17beta1`.
fn is_number(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_digit()) && is_word(text, "._+-")
}

/// Reads the version that a library of SQLite exports.
fn exported_version(path: &Path) -> anyhow::Result<ProductVersion> {
    let number = exported_text(path, SQLITE_VERSION).ok_or_else(|| {
        BuildError::new(
            format!("`{}` exports no version of SQLite", path.display()),
            "use a shared library with SQLite's C API",
        )
    })?;

    Ok(ProductVersion { product: SQLITE, text: number.clone(), number })
}

/// Reads a library's version from its file name: the library itself would have to be loaded.
fn version_in_name(place: &FoundBuild) -> ProductVersion {
    let real = fs_err::canonicalize(&place.path).unwrap_or_else(|_| place.path.clone());
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let number = match name.split_once(".so.").map(|(_, suffix)| first_number(suffix)) {
        Some(number) if !number.is_empty() => number,
        _ => "unknown".to_owned(),
    };

    ProductVersion {
        product: if name.contains("speedb") { "speedb" } else { place.engine },
        text: number.clone(),
        number,
    }
}

/// Returns the version number that `text` begins with.
fn first_number(text: &str) -> String {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');

    // Keeps the letters of `17beta1` and `19devel`.
    match text[end..].chars().next() {
        Some(char) if char.is_ascii_alphabetic() => {
            text.split_whitespace().next().unwrap_or(number).to_owned()
        }
        _ => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "").unwrap();
    }

    /// Returns the version of a server whose program prints this.
    fn version_printed(text: &str) -> anyhow::Result<ProductVersion> {
        use std::os::unix::fs::PermissionsExt;

        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("postgres");
        fs_err::write(&program, format!("#!/bin/sh\nprintf '%s' '{text}'\n")).unwrap();
        for path in [root.path(), &program] {
            fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let place = FoundBuild {
            engine: "postgres",
            path: root.path().to_path_buf(),
            programs: vec![program.clone()],
        };
        version(&place, &program)
    }

    #[test]
    fn a_program_can_not_choose_the_name_of_its_folder_by_its_version() {
        let version = version_printed("postgres (PostgreSQL) 19devel (x \u{1b}[31m)").unwrap();
        assert_eq!((&*version.number, &*version.text), ("19devel", "19devel (x [31m)"));
        for number in ["17a/../../up", "..", "", "x", "17a\u{1b}[31m/"] {
            let refused = version_printed(&format!("postgres (PostgreSQL) {number}")).unwrap_err();
            assert!(refused.to_string().contains("as its version is none"), "{number}: {refused}");
        }
    }

    #[test]
    fn builds_are_found_where_their_packages_put_them() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find(root.path()), None);
        touch(&root.path().join("usr/sbin/mariadbd"));
        let place = find(root.path()).unwrap();
        assert_eq!((place.engine, place.path), ("mysql", root.path().join("usr")));
        for version in ["9.6", "15"] {
            touch(&root.path().join("usr/lib/postgresql").join(version).join("bin/postgres"));
        }
        let place = find(root.path()).unwrap();
        assert!(place.path.ends_with("postgresql/15"), "{place:?}");
    }

    #[test]
    fn a_version_begins_with_its_number() {
        assert_eq!(first_number("17.2 (Debian 17.2-1)"), "17.2");
        assert_eq!(first_number("11.4.5-MariaDB for Linux"), "11.4.5");
        assert_eq!(first_number("19devel"), "19devel");
    }

    #[test]
    fn a_librarys_file_name_may_contain_its_version() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("librocksdb.so.7.8.3");
        touch(&path);
        assert_eq!(version_in_name(&library(ROCKSDB, path)).number, "7.8.3");
        let unversioned = library(ROCKSDB, root.path().join("librocksdb.so"));
        assert_eq!(version_in_name(&unversioned).number, "unknown");
    }
}
