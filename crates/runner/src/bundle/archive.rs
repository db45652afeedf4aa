//! A bundle as a tar. It is read in memory, so that nothing in it can reach a file.

use std::io::{self, BufReader, Read};
use std::path::{Component, Path};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;
use tar::EntryType;

use super::{FILE_BYTES_MAX, open_regular, text_of};

/// The most entries of a bundle.
const ENTRIES_MAX: usize = 100;
/// The most bytes of an unpacked bundle, with its headers.
const UNPACKED_BYTES_MAX: u64 = 16 << 20;

const MODE: u32 = 0o644;

/// Returns the texts of the files of these names. They are at the top of the archive, or in the
/// one folder there.
///
/// # Errors
/// The archive cannot be read, lacks a file, or has a link, a path that leads out of it, or more
/// than a bundle has.
pub fn read<const N: usize>(path: &Path, names: [&str; N]) -> Result<[String; N], String> {
    // More bytes than a bundle can have are not unpacked: a small archive may hold any number.
    let file = BufReader::new(open_regular(path, OFlags::empty())?);
    let content: Box<dyn Read> = if path.extension().is_some_and(|ending| ending == "tar") {
        Box::new(file)
    } else {
        Box::new(GzDecoder::new(file))
    };

    let mut found = names.map(|_| None);
    let mut archive = tar::Archive::new(content.take(UNPACKED_BYTES_MAX));
    let damaged = |error: io::Error| format!("it is not a complete tar: {error}");
    for (index, entry) in archive.entries().map_err(damaged)?.enumerate() {
        if index >= ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }

        let mut entry = entry.map_err(damaged)?;
        let inner = checked_name(&entry)?;
        let Some(position) = names.iter().position(|name| Some(*name) == inner.as_deref()) else {
            continue;
        };
        if found[position].is_some() {
            return Err(format!("it has `{}` twice", names[position]));
        }

        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        found[position] = Some(text_of(names[position], bytes)?);
    }

    if let Some(missing) = found.iter().position(Option::is_none) {
        return Err(format!("it has no `{}`", names[missing]));
    }

    Ok(found.map(Option::unwrap_or_default))
}

/// Returns the name of a file within the bundle; `None` for a folder, or for a file in a folder
/// below. Refuses what no bundle has.
fn checked_name<R: Read>(entry: &tar::Entry<'_, R>) -> Result<Option<String>, String> {
    let path = entry.path().map_err(|error| error.to_string())?;

    let shown = path.display();
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("the path `{shown}` leads out of the archive"));
    }

    if entry.size() > FILE_BYTES_MAX {
        return Err(format!("`{shown}` is larger than {} MiB", FILE_BYTES_MAX >> 20));
    }

    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous => {}
        EntryType::Directory | EntryType::XGlobalHeader => return Ok(None),
        _ => return Err(format!("`{shown}` is a link or a special file")),
    }

    // An archive may or may not have a folder around its files.
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<&str> = parts.filter_map(|part| part.as_os_str().to_str()).collect();

    Ok(match parts[..] {
        [name] | [_, name] => Some(name.to_owned()),
        _ => None,
    })
}

/// Writes files into an archive, below a folder. Equal files make equal archives.
///
/// # Errors
/// The archive cannot be written.
pub fn write(path: &Path, folder: &str, files: &[(&str, &str)]) -> io::Result<()> {
    let file = fs_err::File::create_new(path)?;
    if path.extension().is_some_and(|ending| ending == "tar") {
        append(file, folder, files)?;
    } else {
        append(GzEncoder::new(file, Compression::best()), folder, files)?.finish()?;
    }

    Ok(())
}

fn append<W: io::Write>(sink: W, folder: &str, files: &[(&str, &str)]) -> io::Result<W> {
    let mut builder = tar::Builder::new(sink);
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(MODE);
        builder.append_data(&mut header, format!("{folder}/{name}"), text.as_bytes())?;
    }

    builder.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["plan.toml", "finding.json"];

    /// Returns what reading an archive says that `fill` adds entries to after the two files.
    fn reading(fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Result<[String; 2], String> {
        let mut builder = tar::Builder::new(Vec::new());
        for name in NAMES {
            file(&mut builder, &format!("x/{name}"), name.as_bytes());
        }
        fill(&mut builder);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("b.tar");
        fs_err::write(&path, builder.into_inner().unwrap()).unwrap();
        read(&path, NAMES)
    }

    fn file(builder: &mut tar::Builder<Vec<u8>>, path: &str, content: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path, content).unwrap();
    }

    /// Adds an entry whose name the builder would refuse.
    fn raw(builder: &mut tar::Builder<Vec<u8>>, path: &str, kind: EntryType, size: u64) {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        builder.append(&header, &b""[..]).unwrap();
    }

    #[test]
    fn what_is_written_is_read() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a.tar", "a.tar.gz", "a.tgz"] {
            let path = place.path().join(name);
            write(&path, "a", &[("README.md", "x"), ("finding.json", "{}"), ("plan.toml", "p")])
                .unwrap();
            assert_eq!(read(&path, NAMES).unwrap(), ["p", "{}"], "{name}");
            assert!(write(&path, "a", &[]).is_err(), "it would overwrite a file");
        }
    }

    #[test]
    fn an_archive_with_what_no_bundle_has_is_refused() {
        let refusal = |fill: fn(&mut tar::Builder<Vec<u8>>)| reading(fill).unwrap_err();
        assert!(refusal(|tar| raw(tar, "x/../../up", EntryType::Regular, 0)).contains("leads out"));
        assert!(refusal(|tar| raw(tar, "/etc/x", EntryType::Regular, 0)).contains("leads out"));
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char] {
            let refused = reading(|tar| raw(tar, "x/l", kind, 0)).unwrap_err();
            assert!(refused.contains("is a link or a special file"), "{refused}");
        }
        let huge = refusal(|tar| raw(tar, "x/big", EntryType::Regular, 10 << 30));
        assert!(huge.contains("`x/big` is larger than 1 MiB"), "{huge}");
        let twice = refusal(|tar| file(tar, "y/plan.toml", b"other"));
        assert!(twice.contains("has `plan.toml` twice"), "{twice}");
        let many = refusal(|tar| (0..ENTRIES_MAX).for_each(|n| file(tar, &n.to_string(), b"")));
        assert!(many.contains("more than 100 entries"), "{many}");
        assert!(reading(|tar| file(tar, "x/README.md", b"more")).is_ok());
    }

    #[test]
    fn a_pipe_with_the_name_of_an_archive_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("b.tar");
        let mode = rustix::fs::Mode::from_raw_mode(MODE);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(read(&path, NAMES).unwrap_err().contains("is not a regular file"));
    }

    #[test]
    fn an_archive_that_unpacks_to_much_more_is_cut() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("b.tar.gz");
        let zeros = "0".repeat(FILE_BYTES_MAX as usize);
        let names: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        let files: Vec<(&str, &str)> =
            names.iter().map(|name| (name.as_str(), zeros.as_str())).collect();
        write(&path, "x", &files).unwrap();
        assert!(read(&path, NAMES).unwrap_err().contains("not a complete tar"));
    }
}
