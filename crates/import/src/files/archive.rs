//! Reads archives entry by entry. `crates/builds` unpacks archives; here nothing gets a name on a
//! disk, so an entry cannot overwrite anything. Links have no content, and are refused.

use std::io::{BufReader, Read};
use std::path::{Component, Path};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use tar::EntryType;

use super::{Budget, Metered, PATH_BYTES_MAX, Visit, WalkError, visit_content};

/// The most archives inside each other.
const ARCHIVES_MAX: usize = 2;

/// The largest header with a long name in bytes.
const NAME_HEADER_BYTES_MAX: u64 = 1 << 16;

/// The memory for a block of `xz` in KiB: the strongest usual level needs half of it.
const XZ_KB_MAX: u32 = 128 << 10;

/// The form in which a file is packed, by the end of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Xz,
    Tar,
    TarGzip,
    TarXz,
}

/// The ends of names.
const ENDS: [(&str, Packing); 7] = [
    (".tar.gz", Packing::TarGzip),
    (".tgz", Packing::TarGzip),
    (".tar.xz", Packing::TarXz),
    (".txz", Packing::TarXz),
    (".tar", Packing::Tar),
    (".gz", Packing::Gzip),
    (".xz", Packing::Xz),
];

impl Packing {
    /// Returns the form of a file with this name.
    pub fn of_name(name: &str) -> Self {
        let end = ENDS.iter().find(|(end, _)| name.ends_with(end));
        end.map_or(Self::Plain, |(_, packing)| *packing)
    }

    /// Returns whether it has several files.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Tar | Self::TarGzip | Self::TarXz)
    }

    /// Returns the name without the end.
    pub fn plain_name(self, name: &str) -> &str {
        match self {
            Self::Gzip => name.strip_suffix(".gz").unwrap_or(name),
            Self::Xz => name.strip_suffix(".xz").unwrap_or(name),
            _ => name,
        }
    }

    /// Returns the content without compression.
    pub fn unpacked<'a>(self, content: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Plain | Self::Tar => Box::new(content),
            Self::Gzip | Self::TarGzip => Box::new(MultiGzDecoder::new(BufReader::new(content))),
            Self::Xz | Self::TarXz => {
                Box::new(XzReader::new_mem_limit(BufReader::new(content), true, XZ_KB_MAX))
            }
        }
    }
}

/// Visits the files of an archive. An archive that is cut off or damaged ends there, and is named
/// among what was refused.
pub fn read_archive(
    shown: &str,
    content: &mut dyn Read,
    depth: usize,
    budget: &mut Budget,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    if depth >= ARCHIVES_MAX {
        budget.refuse(shown, format!("more than {ARCHIVES_MAX} archives are inside each other"));
        return Ok(());
    }

    let folder = shown.rsplit_once('/').map_or("", |(folder, _)| folder);
    let unpacked = Packing::of_name(shown).unpacked(content);
    let mut archive = tar::Archive::new(Metered { reader: unpacked, left: budget.bytes.clone() });
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => {
            budget.refuse(shown, format!("the archive cannot be read: {error}"));
            return Ok(());
        }
    };

    // Entries with long names are read here, since the library would keep them whole.
    let mut long_name = None;
    for entry in entries.raw(true) {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                budget.refuse(shown, format!("the archive ends early: {error}"));
                break;
            }
        };

        let kind = entry.header().entry_type();
        if kind == EntryType::GNULongName || kind == EntryType::XHeader {
            long_name = name_in(&mut entry, kind);
            continue;
        }
        if matches!(kind, EntryType::XGlobalHeader | EntryType::GNULongLink) {
            continue;
        }

        let bytes = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = match inside(&String::from_utf8_lossy(&bytes)) {
            Ok(inner) if folder.is_empty() => inner,
            Ok(inner) => format!("{folder}/{inner}"),
            Err(reason) => {
                budget.refuse(shown, reason);
                continue;
            }
        };

        match kind {
            EntryType::Regular | EntryType::Continuous => {
                visit_content(&name, &mut entry, depth + 1, budget, visit)?;
            }
            EntryType::Directory => {}
            _ => budget.refuse(&name, "it is a link or no regular file"),
        }
    }
    Ok(())
}

/// Returns the name in a header that precedes its entry; `None` if it has none.
fn name_in(entry: &mut impl Read, kind: EntryType) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    entry.take(NAME_HEADER_BYTES_MAX).read_to_end(&mut text).ok()?;
    if kind == EntryType::GNULongName {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        text.truncate(end);
        return Some(text);
    }

    // Lines such as `27 path=a/long/name`.
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let begin = line.iter().position(|byte| *byte == b' ')?;
        line[begin + 1..].strip_prefix(b"path=").map(<[u8]>::to_vec)
    })
}

/// Returns the path of an entry, or why it is refused.
fn inside(path: &str) -> Result<String, String> {
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("the archive has a path of {} bytes", path.len()));
    }

    let mut names = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            _ => return Err(format!("the path `{path}` leads out of the archive")),
        }
    }
    Ok(names.join("/"))
}
