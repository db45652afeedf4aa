//! Makes programs run that were built for another C library than this system's.
//!
//! Moves each program to another folder, and puts a script in its place that starts it with its own
//! loader and libraries. A prefix to the command line would not suffice, because PostgreSQL's
//! `initdb` starts `postgres` by its path. Neither would LD_LIBRARY_PATH, because the programs
//! start the system's shell, which would inherit it and break.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::asking::ask;
use crate::elf::Elf;
use crate::error::BuildError;

/// The folder of the moved programs, in the folder of the scripts.
const MOVED_PROGRAMS: &str = ".program";

/// Replaces each program in the folders `bins` by a script that starts it. `folder` is the build's
/// folder, and `root` the folder in it with the unpacked packages. [`moved_program`] returns where
/// a program was moved to.
pub fn wrap_programs(folder: &Path, root: &Path, bins: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let mut programs = Vec::new();
    for bin in bins {
        for entry in fs_err::read_dir(bin)? {
            let entry = entry?;
            // Scripts and static programs have no loader, and need none of the packages' own.
            if entry.file_type()?.is_file()
                && let Some(loader) = Elf::read(&entry.path()).and_then(|elf| elf.loader)
            {
                programs.push((entry.path(), loader));
            }
        }
    }

    let (_, loader_path) = programs.first().context("the packages contain no programs")?;
    let loader = own_loader(root, loader_path)?;
    check_loader(&loader)?;

    // The store may be moved, so scripts have paths relative to the build's folder.
    let canonical = fs_err::canonicalize(folder)?;
    let relative = |path: &Path| -> anyhow::Result<PathBuf> {
        let path = path.strip_prefix(&canonical).or_else(|_| path.strip_prefix(folder))?;
        Ok(path.to_path_buf())
    };

    let library_path = library_folders(root, &loader)
        .iter()
        .map(|path| relative(path))
        .collect::<anyhow::Result<Vec<PathBuf>>>()?;
    let loader = relative(&loader)?;

    for (path, _) in programs {
        let moved = moved_program(&path);
        fs_err::create_dir_all(path.with_file_name(MOVED_PROGRAMS))?;
        fs_err::rename(&path, &moved)?;
        fs_err::write(&path, script(&loader, &library_path, &relative(&path)?))?;
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    }

    Ok(())
}

/// Returns the folders with the libraries of the packages, in the order in which they are searched.
fn library_folders(root: &Path, loader: &Path) -> Vec<PathBuf> {
    let lib = root.join("usr/lib");
    let mut folders: Vec<PathBuf> = loader.parent().map(Path::to_path_buf).into_iter().collect();
    folders.push(lib.clone());
    folders.retain(|folder| folder.is_dir());
    folders.extend(private_folders(&lib));

    folders
}

/// Returns the new path of the program that the script `path` starts.
pub fn moved_program(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.with_file_name(MOVED_PROGRAMS).join(name)
}

/// Returns the packages' copy of the loader that programs name by `loader_path`.
fn own_loader(root: &Path, loader_path: &Path) -> anyhow::Result<PathBuf> {
    let relative = loader_path.strip_prefix("/").unwrap_or(loader_path);
    [root.join("usr").join(relative), root.join(relative)]
        .iter()
        .find_map(|path| fs_err::canonicalize(path).ok())
        .with_context(|| {
            format!("the packages do not contain the loader `{}`", loader_path.display())
        })
}

/// Refuses a loader before glibc 2.33, which has no option to set the program's name.
fn check_loader(loader: &Path) -> anyhow::Result<()> {
    let help = ask(Command::new(loader).arg("--help"));
    let is_new = help.is_ok_and(|answer| {
        [answer.stdout, answer.stderr].iter().any(|text| text.contains("--argv0"))
    });

    if is_new {
        return Ok(());
    }

    Err(BuildError::new(
        "programs of this suite cannot run here: its C library is older than glibc 2.33, or for another machine",
        "use bookworm or a later suite, or `postgres@VERSION` or `mariadb@VERSION`",
    )
    .into())
}

/// Returns the folders of libraries that belong to a single package, such as
/// `usr/lib/mysql/private`.
fn private_folders(lib: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(lib).into_iter().flatten().flatten();
    let private = entries.map(|entry| entry.path().join("private"));
    let mut folders: Vec<PathBuf> = private.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Returns the script that replaces the program `path`. All paths are relative to the build's
/// folder. The script finds them from its own path, because the store may be moved.
fn script(loader: &Path, library_path: &[PathBuf], path: &Path) -> String {
    let depth = path.components().count() - 1;
    let home = std::iter::repeat_n("/..", depth).collect::<String>();
    let name = path.file_name().unwrap_or_default().display();

    let libraries: Vec<String> =
        library_path.iter().map(|path| format!("$home/{}", path.display())).collect();

    format!(
        "#!/bin/sh\n\
         # Starts `{name}` with the loader and the libraries that it was built for.\n\
         self=$(readlink -f \"$0\")\n\
         bin=${{self%/*}}\n\
         home=$(readlink -f \"$bin{home}\")\n\
         exec \"$home/{}\" --inhibit-cache --library-path \"{}\" --argv0 \"$self\" \"$bin/{MOVED_PROGRAMS}/{name}\" \"$@\"\n",
        loader.display(),
        libraries.join(":"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_starts_the_moved_program() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs_err::canonicalize(folder.path()).unwrap();
        let root = folder.join("root");
        let bin = root.join("usr/bin");
        fs_err::create_dir_all(&bin).unwrap();
        // This system's shell and loader take the place of those in packages.
        let sh = fs_err::canonicalize("/bin/sh").unwrap();
        let loader = Elf::read(&sh).unwrap().loader.unwrap();
        let libraries = root.join("usr/lib/own");
        fs_err::create_dir_all(&libraries).unwrap();
        let own_loader = root.join("usr").join(loader.strip_prefix("/").unwrap());
        fs_err::create_dir_all(own_loader.parent().unwrap()).unwrap();
        let real = libraries.join("ld.so");
        fs_err::copy(&loader, &real).unwrap();
        std::os::unix::fs::symlink(&real, &own_loader).unwrap();
        fs_err::copy(&sh, bin.join("shell")).unwrap();
        fs_err::write(bin.join("text"), "not a program").unwrap();
        wrap_programs(&folder, &root, &[bin.clone()].into()).unwrap();
        assert!(bin.join(".program/shell").is_file());
        assert_eq!(fs_err::read_to_string(bin.join("text")).unwrap(), "not a program");
        let output = Command::new(bin.join("shell"))
            .args(["-c", "echo \"$0\" \"$1\"; readlink /proc/$$/exe", "zero", "a b"])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with("zero a b\n"), "{printed}");
        assert!(printed.contains("root/usr/lib/own/ld.so"), "{printed}");
    }
}
