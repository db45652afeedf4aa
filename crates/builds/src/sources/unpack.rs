//! Unpacks archives, and writes nothing outside the destination folder.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use tar::EntryType;

use crate::elf;

/// Folders of Debian packages that no server reads.
const NOT_NEEDED: [&str; 8] = [
    "usr/share/doc",
    "usr/share/i18n",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/perl",
    "var",
];

/// Folders that are links into `usr` on a system with merged `/usr`, as in Debian since bookworm.
const MERGED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

fn open(jar: &Path) -> anyhow::Result<zip::ZipArchive<io::BufReader<fs_err::File>>> {
    zip::ZipArchive::new(io::BufReader::new(fs_err::File::open(jar)?))
        .with_context(|| format!("`{}` is not a jar or zip archive", jar.display()))
}

/// Unpacks files of a jar below `root`. `select` returns a file's path below `root`, or `None` to
/// skip the file.
pub fn jar(jar: &Path, root: &Path, select: &dyn Fn(&str) -> Option<&str>) -> anyhow::Result<()> {
    let mut archive = open(jar)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        let Some(path) = entry.is_file().then(|| select(&name)).flatten() else {
            continue;
        };
        let path = root.join(normalize(Path::new(path))?);
        make_parent(&path)?;
        io::copy(&mut entry, &mut fs_err::File::create(&path)?)?;
        // A jar has no file modes.
        set_mode(&path, elf::is_program(&path))?;
    }
    Ok(())
}

/// Unpacks the compressed archive in a jar whose name ends with `suffix` below `root`.
pub fn archive_in_jar(jar: &Path, root: &Path, suffix: &str) -> anyhow::Result<()> {
    let mut archive = open(jar)?;
    let name = archive
        .file_names()
        .filter_map(Result::ok)
        .find(|name| name.ends_with(suffix))
        .map(std::borrow::Cow::into_owned)
        .with_context(|| format!("`{}` contains no file `*{suffix}`", jar.display()))?;
    let entry = io::BufReader::new(archive.by_name(&name)?);
    let content: Box<dyn Read + '_> = if name.ends_with(".gz") {
        Box::new(flate2::bufread::GzDecoder::new(entry))
    } else {
        Box::new(lzma_rust2::XzReader::new(entry, true))
    };
    tar(content, root, |path| Some(path.to_path_buf()))
        .with_context(|| format!("cannot unpack `{name}` in `{}`", jar.display()))
}

/// Unpacks the files of a Debian package below `root`, in the layout of a system with merged
/// `/usr`.
pub fn debian_package(files: impl Read, root: &Path) -> anyhow::Result<()> {
    tar(files, root, |path| {
        let path = merged_path(path);
        (!NOT_NEEDED.iter().any(|folder| path.starts_with(folder))).then_some(path)
    })
}

/// Returns the path on a system with merged `/usr`: `usr/lib/x` for `lib/x`.
fn merged_path(path: &Path) -> PathBuf {
    if MERGED.iter().any(|folder| path.starts_with(folder)) {
        Path::new("usr").join(path)
    } else {
        path.to_path_buf()
    }
}

/// Unpacks entries of a tar archive below `root`. `select` returns an entry's path below `root`, or
/// `None` to skip the entry. Does not keep owners and special mode bits.
fn tar(
    content: impl Read,
    root: &Path,
    select: impl Fn(&Path) -> Option<PathBuf>,
) -> anyhow::Result<()> {
    // Creates links last, so that nothing is written through one.
    let mut links = BTreeMap::new();
    let mut hard_links = Vec::new();
    let destination = |path: &Path| -> anyhow::Result<Option<PathBuf>> {
        let path = normalize(path)?;
        Ok(select(&path).filter(|path| !path.as_os_str().is_empty()))
    };
    for entry in tar::Archive::new(content).entries()? {
        let mut entry = entry?;
        let Some(path) = destination(&entry.path()?)? else {
            continue;
        };
        let target = |entry: &tar::Entry<'_, _>| -> anyhow::Result<PathBuf> {
            let target = entry.link_name()?;
            Ok(target.context("a link in the archive has no target")?.into_owned())
        };
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let full = root.join(&path);
                make_parent(&full)?;
                let is_executable = entry.header().mode()? & 0o111 != 0;
                io::copy(&mut entry, &mut fs_err::File::create(&full)?)?;
                set_mode(&full, is_executable)?;
            }
            EntryType::Symlink => {
                links.insert(path, target(&entry)?);
            }
            EntryType::Link => hard_links.push((path, target(&entry)?)),
            // Folders are created with their first file; a server needs no devices.
            _ => {}
        }
    }
    for (path, target) in hard_links {
        let Some(target) = destination(&target)? else {
            continue;
        };
        let full = root.join(&path);
        make_parent(&full)?;
        fs_err::hard_link(root.join(target), full)?;
    }
    for (path, target) in links {
        let full = root.join(&path);
        make_parent(&full)?;
        let target = relative_target(&path, &target);
        // Keeps what exists: another package's entry, or a folder with files.
        match symlink(&target, &full) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => {
                result.with_context(|| format!("cannot create the link `{}`", full.display()))?
            }
        }
    }
    Ok(())
}

/// Returns a link's target as a relative path, because the archive's root is not the system's root.
fn relative_target(link: &Path, target: &Path) -> PathBuf {
    let Ok(from_root) = target.strip_prefix("/") else {
        return target.to_path_buf();
    };
    let depth = link.components().count().saturating_sub(1);
    let parents: PathBuf = std::iter::repeat_n("..", depth).collect();
    parents.join(merged_path(from_root))
}

/// Returns the path without `.` and the root. Refuses a path that leads out of the archive.
fn normalize(path: &Path) -> anyhow::Result<PathBuf> {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normalized.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                bail!("the path `{}` leads out of the archive", path.display())
            }
        }
    }
    Ok(normalized)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs_err::create_dir_all)
}

/// Sets a file's mode independently of the umask, because another user may run the file.
fn set_mode(path: &Path, is_executable: bool) -> io::Result<()> {
    let mode = if is_executable { 0o755 } else { 0o644 };
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        fill(&mut builder);
        builder.into_inner().unwrap()
    }

    fn file(builder: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, content: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    }

    fn link(builder: &mut tar::Builder<Vec<u8>>, path: &str, target: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, path, target).unwrap();
    }

    #[test]
    fn a_package_has_the_merged_layout_and_its_links_stay_inside() {
        let root = tempfile::tempdir().unwrap();
        let package = archive(|builder| {
            file(builder, "./lib/a/x.so", 0o644, "x");
            file(builder, "./usr/bin/su", 0o4755, "su");
            file(builder, "./usr/share/doc/su", 0o644, "doc");
            link(builder, "./usr/bin/y", "/lib/a/x.so");
            link(builder, "./usr/bin/z", "../lib/a/x.so");
        });
        debian_package(&package[..], root.path()).unwrap();
        for name in ["y", "z"] {
            let path = root.path().join("usr/bin").join(name);
            assert_eq!(fs_err::read_to_string(path).unwrap(), "x", "{name}");
        }
        let mode = fs_err::metadata(root.path().join("usr/bin/su")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o7777, 0o755);
        assert!(!root.path().join("usr/share/doc").exists());
    }

    #[test]
    fn a_path_that_leads_out_of_the_archive_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let mut bytes = archive(|builder| file(builder, "xx/evil", 0o644, "x"));
        // The builder refuses such a name, so it is written into the bytes.
        bytes[..7].copy_from_slice(b"../evil");
        let sum: u32 = bytes[..512]
            .iter()
            .enumerate()
            .map(|(at, &byte)| u32::from(if (148..156).contains(&at) { b' ' } else { byte }))
            .sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let error = debian_package(&bytes[..], &root.path().join("root")).unwrap_err();
        assert!(error.to_string().contains("leads out"), "{error}");
        assert!(!root.path().join("evil").exists());
    }
}
