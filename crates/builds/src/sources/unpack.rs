//! Unpacks archives, and writes nothing outside the destination folder.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use tar::EntryType;

use super::entry_headers::HeaderLimit;
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

/// The maximum number of entries of an archive.
const ENTRIES_MAX: usize = 100_000;
/// The most bytes of the headers of so many entries, with long names.
const ALL_HEADERS_BYTES_MAX: u64 = 2048 * ENTRIES_MAX as u64;

/// The memory for a block of `xz` in KiB: the strongest usual level needs half of it.
const XZ_KB_MAX: u32 = 128 << 10;

/// The most bytes and folders of a path in an archive. Real ones have less than half as many; each
/// folder costs a look when a link is created below it.
const PATH_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 64;

/// The size of an unpacked archive that is always accepted.
const UNPACKED_BYTES_FREE: u64 = 256 << 20;

/// The maximum size of an unpacked archive in relation to its own: programs shrink to a third or a
/// tenth of their size, archives made to fill a disk to a thousandth.
const UNPACKED_RATIO_MAX: u64 = 20;

/// The bytes that an archive may still unpack.
struct Budget {
    left: u64,
    limit: u64,
}

impl Budget {
    /// Returns the budget of an archive of this size.
    fn of_archive(packed_bytes: u64) -> Self {
        let limit = UNPACKED_BYTES_FREE + UNPACKED_RATIO_MAX.saturating_mul(packed_bytes);
        Self { left: limit, limit }
    }

    fn exceeded(&self) -> String {
        format!(
            "the archive unpacks to more than {} MB, which is too much for an archive of its size",
            self.limit / 1_000_000
        )
    }

    /// Fails if an entry, or all entries, of this size are too large.
    fn check(&self, declared_bytes: u64) -> anyhow::Result<()> {
        anyhow::ensure!(declared_bytes <= self.left, self.exceeded());
        Ok(())
    }

    /// Writes a file. What an archive declares may be wrong, so this counts what is there.
    fn write(&mut self, content: &mut impl Read, path: &Path) -> anyhow::Result<()> {
        let mut file = fs_err::File::create(path)?;
        let written = io::copy(&mut content.take(self.left.saturating_add(1)), &mut file)?;
        self.check(written)?;
        self.left -= written;
        Ok(())
    }
}

fn open(jar: &Path) -> anyhow::Result<zip::ZipArchive<io::BufReader<fs_err::File>>> {
    let archive = zip::ZipArchive::new(io::BufReader::new(fs_err::File::open(jar)?))
        .with_context(|| format!("`{}` is not a jar or zip archive", jar.display()))?;

    anyhow::ensure!(
        archive.len() <= ENTRIES_MAX,
        "`{}` has more than {ENTRIES_MAX} entries",
        jar.display()
    );

    Ok(archive)
}

/// Unpacks files of a jar below `root`. `select` returns a file's path below `root`, or `None` to
/// skip the file.
pub fn jar(jar: &Path, root: &Path, select: &dyn Fn(&str) -> Option<&str>) -> anyhow::Result<()> {
    let mut archive = open(jar)?;
    let mut budget = Budget::of_archive(fs_err::metadata(jar)?.len());
    let mut declared_bytes = 0_u64;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index)?;
        if entry.is_file() && select(&entry.name()?).is_some() {
            declared_bytes = declared_bytes.saturating_add(entry.size());
        }
    }
    budget.check(declared_bytes)?;

    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        let Some(path) = entry.is_file().then(|| select(&name)).flatten() else {
            continue;
        };
        let path = root.join(normalize(Path::new(path))?);
        make_parent(&path)?;
        budget.write(&mut entry, &path)?;
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
        Box::new(lzma_rust2::XzReader::new_mem_limit(entry, true, XZ_KB_MAX))
    };

    let mut links = Links::default();
    let budget = Budget::of_archive(fs_err::metadata(jar)?.len());
    unpack_tar(content, budget, root, &mut links, |path| Some(path.to_path_buf()))
        .and_then(|()| links.create(root))
        .with_context(|| format!("cannot unpack `{name}` in `{}`", jar.display()))
}

/// Unpacks files of a compressed tar archive below `root`. `select` returns a file's path below
/// `root`, or `None` to skip the file.
pub fn tar_gz(
    archive: &Path,
    root: &Path,
    select: impl Fn(&Path) -> Option<PathBuf>,
) -> anyhow::Result<()> {
    let file = fs_err::File::open(archive)?;
    let budget = Budget::of_archive(file.metadata()?.len());
    let content = flate2::bufread::GzDecoder::new(io::BufReader::new(file));

    let mut links = Links::default();
    unpack_tar(content, budget, root, &mut links, select)
        .and_then(|()| links.create(root))
        .with_context(|| format!("cannot unpack `{}`", archive.display()))
}

/// Unpacks the files of a Debian package of `packed_bytes` below `root`, in the layout of a system
/// with merged `/usr`. Its links are added to `links`, which are created after all packages.
pub fn debian_package(
    files: impl Read,
    packed_bytes: u64,
    root: &Path,
    links: &mut Links,
) -> anyhow::Result<()> {
    unpack_tar(files, Budget::of_archive(packed_bytes), root, links, |path| {
        let path = merged_path(path);
        let is_needed = !NOT_NEEDED.iter().any(|folder| path.starts_with(folder));
        if is_needed { Some(path) } else { None }
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

/// Symbolic links of archives: their paths below the root, and their targets. They are created
/// after all files, so that nothing is written through a link, not even one of another archive.
#[derive(Default)]
pub struct Links(BTreeMap<PathBuf, PathBuf>);

impl Links {
    /// Creates the links below `root`. Keeps what exists: another archive's entry, or a folder with
    /// files.
    pub fn create(&self, root: &Path) -> anyhow::Result<()> {
        for (path, target) in &self.0 {
            let full = root.join(path);
            make_real_parent(root, path)?;
            match symlink(target, &full) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => result
                    .with_context(|| format!("cannot create the link `{}`", full.display()))?,
            }
        }

        Ok(())
    }
}

/// Unpacks entries of a tar archive below `root`, except for its symbolic links, which are added to
/// `links`. `select` returns an entry's path below `root`, or `None` to skip the entry. Does not
/// keep owners and special mode bits.
fn unpack_tar(
    content: impl Read,
    mut budget: Budget,
    root: &Path,
    links: &mut Links,
    select: impl Fn(&Path) -> Option<PathBuf>,
) -> anyhow::Result<()> {
    let mut hard_links = Vec::new();
    let destination = |path: &Path| -> anyhow::Result<Option<PathBuf>> {
        let path = normalize(path)?;
        Ok(select(&path).filter(|path| !path.as_os_str().is_empty()))
    };

    let content = content.take(budget.left.saturating_add(ALL_HEADERS_BYTES_MAX));
    let header_limit = HeaderLimit::default();
    let mut archive = tar::Archive::new(header_limit.reader(content));
    let mut entries = archive.entries()?;
    let mut entry_count = 0;
    while let Some(entry) = header_limit.next_entry(&mut entries) {
        entry_count += 1;
        anyhow::ensure!(
            entry_count <= ENTRIES_MAX,
            "the archive has more than {ENTRIES_MAX} entries"
        );
        let mut entry = entry?;
        // Entries that are skipped are decompressed, too.
        budget.check(entry.size())?;
        // Reading the holes of many would take hours.
        let is_sparse = entry.header().entry_type().is_gnu_sparse();
        anyhow::ensure!(!is_sparse, "the archive has a sparse file, which no build has");

        let selected = destination(&entry.path()?)?;
        if let Some(path) = selected {
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {
                    let full = root.join(&path);
                    make_parent(&full)?;
                    let is_executable = entry.header().mode()? & 0o111 != 0;
                    budget.write(&mut entry, &full)?;
                    set_mode(&full, is_executable)?;
                }
                EntryType::Symlink => {
                    let target = relative_target(&path, &link_target(&entry)?)?;
                    links.0.entry(path).or_insert(target);
                }
                EntryType::Link => hard_links.push((path, link_target(&entry)?)),
                // Folders are created with their first file; a server needs no devices.
                _ => {}
            }
        }

        // Else what is not read would count as headers of the next entry.
        io::copy(&mut entry, &mut io::sink())?;
    }

    // A link may come before its file.
    for (path, target) in hard_links {
        let Some(target) = destination(&target)? else {
            continue;
        };

        let full = root.join(&path);
        make_parent(&full)?;
        fs_err::hard_link(root.join(target), full)?;
    }

    Ok(())
}

fn link_target<R: Read>(entry: &tar::Entry<'_, R>) -> anyhow::Result<PathBuf> {
    let target = entry.link_name()?;
    Ok(target.context("a link in the archive has no target")?.into_owned())
}

/// Returns a link's target relative to the link's folder, because the archive's root is not the
/// system's root. `..` is only at its beginning, where all folders are real. Refuses a target
/// outside of the root.
fn relative_target(link: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let folder = link.parent().unwrap_or(Path::new(""));
    let from_root = match target.strip_prefix("/") {
        Ok(from_root) => merged_path(from_root),
        Err(_) => folder.join(target),
    };

    let mut inside = PathBuf::new();
    for component in from_root.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::ParentDir if inside.pop() => {}
            Component::ParentDir => bail!(
                "the link `{}` leads out of the archive, to `{}`",
                link.display(),
                target.display()
            ),
            _ => {}
        }
    }

    let shared = folder.components().zip(inside.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().count() - shared;
    let parents: PathBuf = std::iter::repeat_n("..", up).collect();
    let below: PathBuf = inside.components().skip(shared).collect();

    let relative = parents.join(below);
    Ok(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
}

/// Returns the path without `.` and the root. Refuses a path that leads out of the archive.
fn normalize(path: &Path) -> anyhow::Result<PathBuf> {
    let is_short =
        path.as_os_str().len() <= PATH_BYTES_MAX && path.components().count() <= DEPTH_MAX;
    anyhow::ensure!(is_short, "the archive has a path of {} bytes", path.as_os_str().len());

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

/// Creates the folder of a link. Refuses one that is reached through another link.
fn make_real_parent(root: &Path, path: &Path) -> anyhow::Result<()> {
    let mut folder = root.to_path_buf();
    for component in path.parent().into_iter().flat_map(Path::components) {
        folder.push(component);
        anyhow::ensure!(
            !folder.is_symlink(),
            "the archive has an entry below the link `{}`",
            folder.display()
        );
    }

    Ok(fs_err::create_dir_all(folder)?)
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
        let mut links = Links::default();
        debian_package(&package[..], package.len() as u64, root.path(), &mut links).unwrap();
        links.create(root.path()).unwrap();
        for name in ["y", "z"] {
            let path = root.path().join("usr/bin").join(name);
            assert_eq!(fs_err::read_to_string(path).unwrap(), "x", "{name}");
        }
        let mode = fs_err::metadata(root.path().join("usr/bin/su")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o7777, 0o755);
        assert!(!root.path().join("usr/share/doc").exists());
    }

    #[test]
    fn a_path_that_is_too_long_or_too_deep_is_refused() {
        for path in ["x".repeat(PATH_BYTES_MAX + 1), "x/".repeat(DEPTH_MAX) + "x"] {
            let root = tempfile::tempdir().unwrap();
            let package = archive(|builder| file(builder, &path, 0o644, "x"));
            let mut links = Links::default();
            let refused =
                debian_package(&package[..], package.len() as u64, root.path(), &mut links);
            let text = format!("{:#}", refused.unwrap_err());
            assert!(text.contains("has a path of") && text.len() < 200, "{text}");
        }
    }

    #[test]
    fn names_and_attributes_that_would_fill_the_memory_are_refused_before_they_are_read() {
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let size = 100_u64 << 20;
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(size);
            header.set_cksum();
            let mut long_name = io::repeat(b'x').take(size);
            let package = header.as_bytes().as_slice().chain(&mut long_name);
            let root = tempfile::tempdir().unwrap();
            let refused = debian_package(package, size, root.path(), &mut Links::default());
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("name and attributes have more than 64 KiB"), "{kind:?}: {text}");
            assert!(long_name.limit() > size - (1 << 20), "{kind:?}: {}", long_name.limit());
        }
    }

    #[test]
    fn the_content_of_an_entry_that_is_skipped_is_no_header_of_the_next() {
        let content = "x".repeat(1 << 20);
        let package = archive(|builder| {
            file(builder, "./usr/share/doc/long", 0o644, &content);
            file(builder, &format!("./usr/{}", "x".repeat(200)), 0o644, &content);
            file(builder, "./usr/last", 0o644, "last");
        });
        let root = tempfile::tempdir().unwrap();
        let mut links = Links::default();
        debian_package(&package[..], package.len() as u64, root.path(), &mut links).unwrap();
        assert_eq!(fs_err::read_to_string(root.path().join("usr/last")).unwrap(), "last");
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
        let below = root.path().join("root");
        let error = debian_package(&bytes[..], 1, &below, &mut Links::default()).unwrap_err();
        assert!(error.to_string().contains("leads out"), "{error}");
        assert!(!root.path().join("evil").exists());
    }

    #[test]
    fn a_link_that_leads_out_of_the_archive_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for target in ["../../../etc", "../../..", "a/../../../../etc", "/../etc"] {
            let package = archive(|builder| link(builder, "./usr/bin/x", target));
            let mut links = Links::default();
            let error = debian_package(&package[..], 1, root.path(), &mut links).unwrap_err();
            assert!(error.to_string().contains("leads out of the archive"), "{target}: {error}");
        }
        let inside = |link: &str, target: &str| {
            relative_target(Path::new(link), Path::new(target)).unwrap().display().to_string()
        };
        assert_eq!(inside("usr/bin/x", "../lib/a"), "../lib/a");
        assert_eq!(inside("usr/bin/x", "y"), "y");
        assert_eq!(inside("usr/bin/x", "/lib/a/x.so"), "../lib/a/x.so");
        // Where `a` is a link, `a/..` is not the folder that has it.
        assert_eq!(inside("usr/bin/x", "a/../b"), "b");
        assert_eq!(inside("usr/bin/x", "../../usr/bin"), ".");
    }

    #[test]
    fn nothing_is_written_through_the_link_of_another_package() {
        let root = tempfile::tempdir().unwrap();
        let first = archive(|builder| {
            link(builder, "./usr/lib/x", "y");
            file(builder, "./usr/lib/y/own", 0o644, "first");
        });
        let second = archive(|builder| file(builder, "./usr/lib/x/own", 0o644, "second"));
        let mut links = Links::default();
        for package in [&first, &second] {
            debian_package(&package[..], 1, root.path(), &mut links).unwrap();
        }
        links.create(root.path()).unwrap();
        let read = |name: &str| fs_err::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(read("usr/lib/y/own"), "first");
        assert_eq!(read("usr/lib/x/own"), "second");

        // Nor is a link created through another one.
        let package = archive(|builder| {
            link(builder, "./usr/a", "lib");
            link(builder, "./usr/a/b", "y");
        });
        let mut links = Links::default();
        debian_package(&package[..], 1, root.path(), &mut links).unwrap();
        let error = links.create(root.path()).unwrap_err();
        assert!(error.to_string().contains("below the link"), "{error}");
    }

    #[test]
    fn an_archive_that_unpacks_to_far_more_than_its_size_is_refused_before_it_fills_the_disk() {
        let root = tempfile::tempdir().unwrap();
        // The declared size is refused before anything is written.
        let mut header = tar::Header::new_gnu();
        header.set_path("usr/bin/x").unwrap();
        header.set_size(1 << 40);
        header.set_cksum();
        let mut links = Links::default();
        let error =
            debian_package(&header.as_bytes()[..], 2_700, root.path(), &mut links).unwrap_err();
        assert!(error.to_string().contains("unpacks to more than 268 MB"), "{error}");
        assert!(!root.path().join("usr/bin/x").exists());

        // The actual size counts, whatever is declared.
        let mut budget = Budget { left: 1000, limit: 1000 };
        let path = root.path().join("y");
        budget.write(&mut io::repeat(0).take(600), &path).unwrap();
        assert!(budget.write(&mut io::repeat(0), &path).is_err());
        assert!(fs_err::metadata(&path).unwrap().len() <= 401);
    }

    #[test]
    fn a_jar_that_declares_too_much_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let jar_path = folder.path().join("bomb.jar");
        let mut writer = zip::ZipWriter::new(fs_err::File::create(&jar_path).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file("lib.so", options).unwrap();
        io::copy(&mut io::repeat(0).take(300 << 20), &mut writer).unwrap();
        writer.finish().unwrap();
        let root = folder.path().join("root");
        let error = jar(&jar_path, &root, &|name| (name == "lib.so").then_some("lib.so"));
        let error = error.unwrap_err();
        assert!(
            error.to_string().contains("which is too much for an archive of its size"),
            "{error}"
        );
        assert!(!root.exists());
    }
}
