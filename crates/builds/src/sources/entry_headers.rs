//! Limits the headers of the entries of a tar archive, which its reader keeps in memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The most bytes of the headers of one entry: its name, the target of a link, and attributes. A path
/// has at most 4096 bytes in Linux.
const HEADERS_BYTES_MAX: u64 = 64 << 10;

/// The limit of the headers of each entry of an archive.
#[derive(Default)]
pub struct HeaderLimit {
    /// The bytes that may still be read.
    left: Rc<Cell<u64>>,
}

impl HeaderLimit {
    /// Returns the content of an archive, of which only [`next_entry`](Self::next_entry) lets
    /// anything be read.
    pub fn reader<R: Read>(&self, content: R) -> LimitedReader<R> {
        LimitedReader { content, left: Rc::clone(&self.left) }
    }

    /// Returns the next entry. The content of the one before it must have been read to its end, or
    /// would count as headers.
    pub fn next_entry<'archive, R: Read>(
        &self,
        entries: &mut tar::Entries<'archive, R>,
    ) -> Option<io::Result<tar::Entry<'archive, R>>> {
        self.left.set(HEADERS_BYTES_MAX);
        let entry = entries.next();
        self.left.set(u64::MAX);
        entry
    }
}

/// A reader that fails once more is read than is allowed.
pub struct LimitedReader<R> {
    content: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        let Some(left) = self.left.get().checked_sub(count as u64) else {
            let kilobytes = HEADERS_BYTES_MAX >> 10;
            return Err(io::Error::other(format!(
                "the archive has an entry whose name and attributes have more than {kilobytes} KiB"
            )));
        };

        self.left.set(left);
        Ok(count)
    }
}
