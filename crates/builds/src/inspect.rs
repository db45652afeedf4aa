//! What lies in a folder: which engine's build, where, and of which version, as its own program says.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf::Elf;
use crate::error::Error;
use crate::version::numbers;

/// A build in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The engine that it is for.
    pub engine: &'static str,
    /// What the engine is given.
    pub path: PathBuf,
    /// The programs or the library that are measured; the first is the server.
    pub programs: Vec<PathBuf>,
}

/// A version, as a program says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `postgres`, `mysql`, `mariadb`, `rocksdb`, `speedb`.
    pub product: &'static str,
    /// `17.2`
    pub number: String,
    /// `17.2 (Debian 17.2-1)`
    pub text: String,
}

const SERVER_FOLDERS: [&str; 5] = ["bin", "sbin", "libexec", "usr/sbin", "usr/bin"];

/// Finds the build in `root`, or the library that `root` is.
pub fn find(root: &Path) -> Option<Place> {
    if root.is_file() {
        return Elf::read(root).map(|_| library(root.to_path_buf()));
    }
    postgres(root)
        .or_else(|| mysql(root))
        .or_else(|| rocksdb(root))
}

fn postgres(root: &Path) -> Option<Place> {
    let mut homes = vec![root.to_path_buf()];
    let mut packaged: Vec<PathBuf> = folder(&root.join("usr/lib/postgresql"));
    // The newest last in the folder, first here.
    packaged.sort_by_key(|path| numbers(&path.file_name().unwrap_or_default().to_string_lossy()));
    homes.extend(packaged.into_iter().rev());
    homes.into_iter().find_map(|home| {
        let bin = [home.join("bin"), home.clone()]
            .into_iter()
            .find(|bin| bin.join("postgres").is_file())?;
        Some(Place {
            engine: "postgres",
            path: home,
            programs: vec![bin.join("postgres"), bin.join("initdb")],
        })
    })
}

fn mysql(root: &Path) -> Option<Place> {
    let programs = SERVER_FOLDERS
        .iter()
        .flat_map(|bin| ["mariadbd", "mysqld"].map(|name| root.join(bin).join(name)));
    let program = programs.into_iter().find(|path| path.is_file())?;
    let mut path = root.join("usr");
    if !program.starts_with(&path) {
        path = root.to_path_buf();
    }
    Some(Place {
        engine: "mysql",
        path,
        programs: vec![program],
    })
}

fn rocksdb(root: &Path) -> Option<Place> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.starts_with("librocksdb") || name.starts_with("libspeedb")) && name.contains(".so")
    };
    let mut found: Vec<PathBuf> = [
        "",
        "lib",
        "usr/lib",
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
    ]
    .iter()
    .flat_map(|place| folder(&root.join(place)))
    .filter(is_library)
    .filter(|path| Elf::read(path).is_some())
    .collect();
    found.sort();
    found.into_iter().next().map(library)
}

fn library(path: PathBuf) -> Place {
    Place {
        engine: "rocksdb",
        programs: vec![path.clone()],
        path,
    }
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Asks a build for its version. `program` is what is asked to be of this machine: the server, or the program behind
/// its script.
pub fn version(place: &Place, program: &Path) -> anyhow::Result<Version> {
    if let Some(elf) = Elf::read(program)
        && !elf.is_for_this_machine()
    {
        return Err(Error::new(
            format!("`{}` is for another kind of machine", program.display()),
            format!(
                "this machine is {}: a build for it is needed",
                std::env::consts::ARCH
            ),
        )
        .into());
    }
    match place.engine {
        "rocksdb" => Ok(library_version(&place.path)),
        _ => server_version(place),
    }
}

fn server_version(place: &Place) -> anyhow::Result<Version> {
    let program = &place.programs[0];
    let (args, mark): (&[&str], _) = match place.engine {
        "postgres" => (&["--version"], "(PostgreSQL) "),
        _ => (&["--no-defaults", "--version"], "Ver "),
    };
    if let Some(missing) = place.programs.iter().find(|program| !program.is_file()) {
        return Err(Error::new(
            format!("`{}` is missing", missing.display()),
            "use a whole build of the server",
        )
        .into());
    }
    let failed = |what: &str| {
        Error::new(
            format!("`{}` does not run here: {what}", program.display()),
            "where a library is missing, install it, or fetch the server with all that it needs as `debian:SUITE/PACKAGE`",
        )
    };
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let Some((_, text)) = printed.split_once(mark) else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.lines().next().unwrap_or("it prints no version")).into());
    };
    let text = text.trim();
    Ok(Version {
        product: match place.engine {
            "mysql" if text.contains("MariaDB") => "mariadb",
            engine => engine,
        },
        number: first_number(text),
        text: text.to_owned(),
    })
}

/// A library says nothing without being loaded: its name may.
fn library_version(path: &Path) -> Version {
    let real = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let number = name.split_once(".so.").map(|(_, rest)| first_number(rest));
    let number = number.filter(|number| !number.is_empty());
    let number = number.unwrap_or_else(|| "unknown".to_owned());
    Version {
        product: if name.contains("speedb") {
            "speedb"
        } else {
            "rocksdb"
        },
        text: number.clone(),
        number,
    }
}

/// The numbers and points that `text` begins with.
fn first_number(text: &str) -> String {
    let end = text
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    // `17beta1`, `19devel`: more than its numbers.
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

    #[test]
    fn builds_are_found_where_their_packages_put_them() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find(root.path()), None);
        touch(&root.path().join("usr/sbin/mariadbd"));
        let place = find(root.path()).unwrap();
        assert_eq!(
            (place.engine, place.path),
            ("mysql", root.path().join("usr"))
        );
        for version in ["9.6", "15"] {
            touch(
                &root
                    .path()
                    .join("usr/lib/postgresql")
                    .join(version)
                    .join("bin/postgres"),
            );
        }
        let place = find(root.path()).unwrap();
        assert!(place.path.ends_with("postgresql/15"), "{place:?}");
    }

    #[test]
    fn versions_begin_with_their_numbers() {
        assert_eq!(first_number("17.2 (Debian 17.2-1)"), "17.2");
        assert_eq!(first_number("11.4.5-MariaDB for Linux"), "11.4.5");
        assert_eq!(first_number("19devel"), "19devel");
    }

    #[test]
    fn a_librarys_name_may_tell_its_version() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("librocksdb.so.7.8.3");
        touch(&path);
        assert_eq!(library_version(&path).number, "7.8.3");
        assert_eq!(
            library_version(&root.path().join("librocksdb.so")).number,
            "unknown"
        );
    }
}
