//! Sizes and checksums of files, with which damage is found before the data is used.

use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::{RecordError, StepFile};

/// A file that computes the size and the checksum of what is written to it.
pub(crate) struct ChecksummedFile {
    file: fs_err::File,
    sum: crc32fast::Hasher,
    size_bytes: u64,
}

impl ChecksummedFile {
    pub(crate) fn new(file: fs_err::File) -> Self {
        Self { file, sum: crc32fast::Hasher::new(), size_bytes: 0 }
    }

    /// Makes the file durable, and returns its size and checksum.
    pub(crate) fn finish(self) -> Result<StepFile, RecordError> {
        let path = self.file.path().to_owned();
        self.file.sync_all().map_err(RecordError::io("sync", &path))?;

        Ok(StepFile {
            name: file_name(&path),
            size_bytes: self.size_bytes,
            crc32: hex(self.sum.finalize()),
        })
    }
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.size_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Compares an open file with the size and the checksum that were recorded when it was written, in
/// the file `recorder`. The next read then begins at its start.
pub(crate) fn verify(
    file: &mut fs_err::File,
    recorded: &StepFile,
    recorder: &str,
) -> Result<(), RecordError> {
    let path = file.path().to_owned();
    let size_bytes = file.metadata().map_err(RecordError::io("read", &path))?.len();
    // A file may claim a size that takes hours to read.
    check_size(&path, size_bytes, recorded, recorder)?;

    let mut sum = crc32fast::Hasher::new();
    let mut size_bytes = 0u64;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(RecordError::io("read", &path))? {
            0 => break,
            read => {
                sum.update(&buffer[..read]);
                size_bytes += read as u64;
            }
        }
    }

    check_size(&path, size_bytes, recorded, recorder)?;
    check_sum(&path, &hex(sum.finalize()), recorded, recorder)?;
    file.rewind().map_err(RecordError::io("read", &path))
}

/// Compares the contents of a file with the size and the checksum in the file `recorder`.
pub(crate) fn verify_bytes(
    path: &Path,
    bytes: &[u8],
    recorded: &StepFile,
    recorder: &str,
) -> Result<(), RecordError> {
    check_size(path, bytes.len() as u64, recorded, recorder)?;
    check_sum(path, &hex(crc32fast::hash(bytes)), recorded, recorder)
}

fn check_size(
    path: &Path,
    size_bytes: u64,
    recorded: &StepFile,
    recorder: &str,
) -> Result<(), RecordError> {
    if size_bytes == recorded.size_bytes {
        return Ok(());
    }
    let what = format!("it has {size_bytes} bytes, but `{recorder}` says {}", recorded.size_bytes);
    Err(RecordError::damaged(path, what))
}

fn check_sum(
    path: &Path,
    sum: &str,
    recorded: &StepFile,
    recorder: &str,
) -> Result<(), RecordError> {
    if sum == recorded.crc32 {
        return Ok(());
    }
    Err(RecordError::damaged(path, format!("its checksum does not match the one in `{recorder}`")))
}

/// Returns the size and the checksum of a file's contents.
pub(crate) fn of_bytes(name: &str, bytes: &[u8]) -> StepFile {
    StepFile {
        name: name.to_owned(),
        size_bytes: bytes.len() as u64,
        crc32: hex(crc32fast::hash(bytes)),
    }
}

pub(crate) fn hex(sum: u32) -> String {
    format!("{sum:08x}")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
