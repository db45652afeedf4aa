//! Sizes and checksums of files, with which damage is found before the data is used.

use std::io::{self, Read, Write};
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

/// Compares a file with the size and the checksum that were recorded when it was written.
pub(crate) fn verify(path: &Path, recorded: &StepFile) -> Result<(), RecordError> {
    let mut file = fs_err::File::open(path).map_err(RecordError::io("open", path))?;
    let mut sum = crc32fast::Hasher::new();
    let mut size_bytes = 0u64;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(RecordError::io("read", path))? {
            0 => break,
            read => {
                sum.update(&buffer[..read]);
                size_bytes += read as u64;
            }
        }
    }
    if size_bytes != recorded.size_bytes {
        let what =
            format!("it has {size_bytes} bytes, but `step.json` says {}", recorded.size_bytes);
        return Err(RecordError::damaged(path, what));
    }
    if hex(sum.finalize()) != recorded.crc32 {
        return Err(RecordError::damaged(path, "its checksum is not the one in `step.json`"));
    }
    Ok(())
}

fn hex(sum: u32) -> String {
    format!("{sum:08x}")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
