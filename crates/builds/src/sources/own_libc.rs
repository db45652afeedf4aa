//! Programs that were made for another C library than this system's.
//!
//! Each is moved aside, and in its place comes a script that starts it by its own loader with its own libraries. A
//! prefix to the command line would not do: PostgreSQL's `initdb` starts `postgres` itself, by its path. Nor would
//! LD_LIBRARY_PATH: it would reach the system's shell, which those programs start, and break it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::elf::Elf;
use crate::error::Error;

/// The folder, beside the scripts, of the programs themselves.
const ASIDE: &str = ".program";

/// Gives each program in `bins` a script that starts it; `folder` is the build's, `root` the unpacked packages' in it.
/// The programs that were moved are where [`program`] says.
pub fn wrap(folder: &Path, root: &Path, bins: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let mut programs = Vec::new();
    for bin in bins {
        for entry in fs_err::read_dir(bin)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Some(loader) = Elf::read(&entry.path()).and_then(|elf| elf.loader)
            {
                programs.push((entry.path(), loader));
            }
        }
    }
    let (_, asked) = programs.first().context("the packages have no programs")?;
    let loader = own_loader(root, asked)?;
    refuse_old(&loader)?;
    let canonical = fs_err::canonicalize(folder)?;
    let below = |path: &Path| -> anyhow::Result<PathBuf> {
        let path = path
            .strip_prefix(&canonical)
            .or_else(|_| path.strip_prefix(folder))?;
        Ok(path.to_path_buf())
    };
    let lib = root.join("usr/lib");
    let folders = loader
        .parent()
        .map(Path::to_path_buf)
        .into_iter()
        .chain([lib.clone()]);
    let library_path: Vec<PathBuf> = folders
        .filter(|path| path.is_dir())
        .chain(private_folders(&lib))
        .map(|path| below(&path))
        .collect::<anyhow::Result<_>>()?;
    let loader = below(&loader)?;
    for (path, _) in programs {
        let aside = program(&path);
        fs_err::create_dir_all(path.with_file_name(ASIDE))?;
        fs_err::rename(&path, &aside)?;
        fs_err::write(&path, script(&loader, &library_path, &below(&path)?))?;
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

/// Returns where the program itself is whose place the script `path` has.
pub fn program(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.with_file_name(ASIDE).join(name)
}

/// The loader that programs ask for, as the packages bring it.
fn own_loader(root: &Path, asked: &Path) -> anyhow::Result<PathBuf> {
    let relative = asked.strip_prefix("/").unwrap_or(asked);
    [root.join("usr").join(relative), root.join(relative)]
        .iter()
        .find_map(|path| fs_err::canonicalize(path).ok())
        .with_context(|| format!("the packages bring no `{}`", asked.display()))
}

/// A loader before glibc 2.33 can't be told under which name a program is to run.
fn refuse_old(loader: &Path) -> anyhow::Result<()> {
    let help = Command::new(loader).arg("--help").output();
    let is_new = help.is_ok_and(|output| {
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).contains("--argv0")
    });
    if is_new {
        return Ok(());
    }
    Err(Error::new(
        "the suite's C library is older than glibc 2.33, or not for this machine: its programs can't be run here",
        "use a newer suite, bookworm or later, or `postgres@VERSION` or `mariadb@VERSION`",
    )
    .into())
}

/// Folders of libraries that a single package keeps for itself, such as `usr/lib/mysql/private`.
fn private_folders(lib: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(lib).into_iter().flatten().flatten();
    let private = entries.map(|entry| entry.path().join("private"));
    let mut folders: Vec<PathBuf> = private.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Returns the script in the place of the program `path`, relative to the build's folder, like `loader` and
/// `library_path`. It finds the rest from its own place: the store may be moved.
fn script(loader: &Path, library_path: &[PathBuf], path: &Path) -> String {
    let up = path.components().count() - 1;
    let home = std::iter::repeat_n("/..", up).collect::<String>();
    let name = path.file_name().unwrap_or_default().display();
    let libraries: Vec<String> = library_path
        .iter()
        .map(|path| format!("$home/{}", path.display()))
        .collect();
    format!(
        "#!/bin/sh\n\
         # Starts `{name}` by the loader and with the libraries that it was made for.\n\
         self=$(readlink -f \"$0\")\n\
         bin=${{self%/*}}\n\
         home=$(readlink -f \"$bin{home}\")\n\
         exec \"$home/{}\" --inhibit-cache --library-path \"{}\" --argv0 \"$self\" \"$bin/{ASIDE}/{name}\" \"$@\"\n",
        loader.display(),
        libraries.join(":"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_starts_the_program_that_was_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs_err::canonicalize(folder.path()).unwrap();
        let root = folder.join("root");
        let bin = root.join("usr/bin");
        fs_err::create_dir_all(&bin).unwrap();
        // This system's own programs and loader play those of the packages.
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
        fs_err::write(bin.join("text"), "no program").unwrap();
        wrap(&folder, &root, &[bin.clone()].into()).unwrap();
        assert!(bin.join(".program/shell").is_file());
        assert_eq!(
            fs_err::read_to_string(bin.join("text")).unwrap(),
            "no program"
        );
        let output = Command::new(bin.join("shell"))
            .args([
                "-c",
                "echo \"$0\" \"$1\"; readlink /proc/$$/exe",
                "zero",
                "a b",
            ])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with("zero a b\n"), "{printed}");
        assert!(printed.contains("root/usr/lib/own/ld.so"), "{printed}");
    }
}
