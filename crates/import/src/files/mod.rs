//! Walks over the files of a folder and of the archives in it. Nothing is unpacked to a disk.

mod archive;

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::text::Refusal;
use archive::{Packing, read_archive};

/// The most files of a campaign.
const FILES_MAX: u64 = 200_000;

/// The most bytes of all files, uncompressed.
const BYTES_MAX: u64 = 8 << 30;

/// The most folders inside each other.
const DEPTH_MAX: usize = 32;

/// The longest path in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// The largest file in bytes, uncompressed.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// A visitor of files. It gets the path below the campaign's folder, without the suffix of a
/// compressed file, and the content.
pub type Visit<'a> = dyn FnMut(&str, &mut dyn BufRead) -> Result<(), WalkError> + 'a;

/// The reason why a folder or an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is too much.
    #[error("{0}")]
    Limit(String),
}

/// The files and bytes that may still be read.
pub(crate) struct Budget {
    files: u64,
    bytes: Rc<Cell<u64>>,
    /// Entries that are not read, with the reasons.
    refused: Vec<Refusal>,
}

impl Budget {
    fn take_file(&mut self) -> Result<(), WalkError> {
        let left = self.files.checked_sub(1);
        let too_many = || WalkError::Limit(format!("it has more than {FILES_MAX} files"));
        self.files = left.ok_or_else(too_many)?;
        Ok(())
    }

    fn refuse(&mut self, path: &str, text: impl Into<String>) {
        self.refused.push(Refusal::of_file(text).in_file(path));
    }
}

/// Counts the bytes that are read of everything.
struct Metered<R> {
    reader: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let Some(left) = self.left.get().checked_sub(read as u64) else {
            let limit = BYTES_MAX >> 30;
            return Err(io::Error::other(format!("all files have more than {limit} GB")));
        };
        self.left.set(left);
        Ok(read)
    }
}

/// Visits the files of a folder or an archive in the order of their paths; those of an archive in
/// its order. Returns the entries that are not read: links, devices, and paths that lead out.
///
/// # Errors
/// Something cannot be read, or there is too much.
pub fn walk(source: &Path, visit: &mut Visit<'_>) -> Result<Vec<Refusal>, WalkError> {
    let mut budget =
        Budget { files: FILES_MAX, bytes: Rc::new(Cell::new(BYTES_MAX)), refused: Vec::new() };
    let metadata = fs_err::metadata(source).map_err(io_error(source))?;
    if metadata.is_dir() {
        walk_folder(source, "", 0, &mut budget, visit)?;
    } else {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        visit_file(source, &name, &mut budget, visit)?;
    }
    Ok(budget.refused)
}

fn walk_folder(
    folder: &Path,
    shown: &str,
    depth: usize,
    budget: &mut Budget,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    if depth > DEPTH_MAX {
        return Err(WalkError::Limit(format!("`{shown}` has more than {DEPTH_MAX} directories")));
    }

    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder).map_err(io_error(folder))? {
        let entry = entry.map_err(io_error(folder))?;
        names.push(entry.file_name());
    }
    names.sort();

    for name in names {
        let path = folder.join(&name);
        let name = name.to_string_lossy();
        let shown = if shown.is_empty() { name.into_owned() } else { format!("{shown}/{name}") };

        // A link may lead anywhere.
        let metadata = fs_err::symlink_metadata(&path).map_err(io_error(&path))?;
        if metadata.is_dir() {
            walk_folder(&path, &shown, depth + 1, budget, visit)?;
        } else if metadata.is_file() {
            visit_file(&path, &shown, budget, visit)?;
        } else {
            budget.refuse(&shown, "it is a link or no regular file");
        }
    }
    Ok(())
}

fn visit_file(
    path: &Path,
    shown: &str,
    budget: &mut Budget,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let mut file = fs_err::File::open(path).map_err(io_error(path))?;
    visit_content(shown, &mut file, 0, budget, visit)
}

/// Visits a file, or the files of an archive.
fn visit_content(
    shown: &str,
    content: &mut dyn Read,
    depth: usize,
    budget: &mut Budget,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    // A name may have any letters, and is printed and recorded.
    let shown = &shown.replace(char::is_control, "?");
    let packing = Packing::of_name(shown);
    if packing.is_archive() {
        return read_archive(shown, content, depth, budget, visit);
    }

    budget.take_file()?;
    let name = packing.plain_name(shown);
    let left = budget.bytes.clone();
    let mut content = BufReader::new(Metered { reader: packing.unpacked(content), left });
    visit(name, &mut content)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> WalkError {
    let path = path.to_owned();
    move |source| WalkError::Io { path, source }
}
