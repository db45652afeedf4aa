//! Reads and writes past the page cache.

use std::io;

use fs_err::File;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use words::IoMode;

/// The alignment of memory that all disks accept.
const ALIGNMENT: usize = 4096;

/// A block of memory with the alignment that `O_DIRECT` needs.
pub(super) struct AlignedBlock {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBlock {
    pub(super) fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, len }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

/// Chooses the mode of all further reads and writes of a file.
///
/// # Errors
/// The error has the kind `InvalidInput` if the file system has no `O_DIRECT`.
pub(super) fn set_mode(file: &File, mode: IoMode) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, mode == IoMode::Direct);
    Ok(fcntl_setfl(file, flags)?)
}

/// Returns whether an error says that the file system has no `O_DIRECT`, or none for blocks of
/// this size.
pub(super) fn is_unsupported(error: &io::Error, mode: IoMode) -> bool {
    let kinds = [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported];
    mode == IoMode::Direct && kinds.contains(&error.kind())
}
