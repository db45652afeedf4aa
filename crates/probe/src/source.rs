//! Reads `/proc` and `/sys`, or copies of them.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Malformed, ProbeError};

/// The directory that contains `proc` and `sys`: `/`, or a copy of another machine's files.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
    /// True for the files of this kernel.
    is_live: bool,
}

impl Proc {
    /// Returns the files of this machine.
    pub fn live() -> Self {
        Self { root: PathBuf::from("/"), is_live: true }
    }

    /// Returns the copies below `root`, such as `root/proc/stat`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), is_live: false }
    }

    /// Returns the path of a file. `name` is relative to the root, with or without a leading slash,
    /// such as `proc/stat`.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        self.root.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// Reads a file into `buffer`, which is reused so that a sample allocates little. Does not ask
    /// for the size, because files of `/proc` have none. Replaces bytes that are not UTF-8, which
    /// the name of a process may contain.
    pub(crate) fn read<'b>(
        &self,
        name: &str,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Cow<'b, str>, Errno> {
        let file = self.open(name)?;
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }

        let mut length = 0;
        loop {
            if length == buffer.len() {
                buffer.resize(length * 2, 0);
            }
            match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer[length..]))? {
                0 => return Ok(String::from_utf8_lossy(&buffer[..length])),
                count => length += count,
            }
        }
    }

    /// Reads a file of a process like [`Self::read`]. A single read returns the whole text of such
    /// a file. With `keep_open`, keeps the file in `open_file` and reads it again from its start
    /// the next time, which costs a third of opening it. Once the process is gone, such a read
    /// fails with `ESRCH`.
    pub(crate) fn read_at_once<'b>(
        &self,
        name: &str,
        open_file: &mut Option<OwnedFd>,
        keep_open: bool,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Cow<'b, str>, Errno> {
        let file = match open_file.take() {
            Some(file) => file,
            None => self.open(name)?,
        };

        // Never shrinks: clearing the buffer would fill it with zeros each time.
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let length = rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut buffer[..], 0))?;

        // The files of a copy may be replaced, so they are not kept open.
        if keep_open && self.is_live {
            *open_file = Some(file);
        }
        Ok(String::from_utf8_lossy(&buffer[..length]))
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        rustix::fs::open(self.path(name), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Reads and parses a required file.
    pub(crate) fn required<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<T, ProbeError> {
        let text = self
            .read(name, buffer)
            .map_err(|errno| ProbeError::Read { path: self.path(name), source: errno.into() })?;
        self.parsed(name, parse(&text))
    }

    /// Adds the file's path to the error of a parser.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        result: Result<T, Malformed>,
    ) -> Result<T, ProbeError> {
        result.map_err(|source| ProbeError::Malformed { path: self.path(name), source })
    }

    /// Reads and parses an optional file. Returns `None` if this kernel or container lacks it.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<Option<T>, ProbeError> {
        match self.read(name, buffer) {
            Ok(text) => self.parsed(name, parse(&text)).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Returns the text of a file without leading and trailing white space; `None` if it is empty
    /// or cannot be read.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        let bytes = fs_err::read(self.path(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_string();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the sorted names in a directory; none if it cannot be read.
    pub(crate) fn names(&self, name: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = fs_err::read_dir(self.path(name))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}
