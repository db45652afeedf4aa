//! Where `/proc` and `/sys` are read from.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::parse::parse_process_stat;
use crate::{Malformed, ProbeError};

/// The directory that holds `proc` and `sys`: `/`, or a copy of another machine's files.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
    /// The files are this kernel's own.
    live: bool,
}

impl Proc {
    /// This machine.
    pub fn live() -> Self {
        Self {
            root: PathBuf::from("/"),
            live: true,
        }
    }

    /// A copy: `root/proc/stat`, `root/sys/block`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            live: false,
        }
    }

    /// The path of a file that is named from the root, with or without its leading slash: `proc/stat`.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        self.root.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// Reads a file into `buffer`, which is reused so that a sample allocates little. No `fstat` for a size: the
    /// files of `/proc` have none. Bytes that are not UTF-8 (a process may name itself so) become replacements.
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

    /// As [`Self::read`], for the files of a process, which the kernel makes in one piece: what is not filled by one
    /// read is the end. With `keep` the open file is kept in `kept` and read again from its start the next time,
    /// which costs a third of opening it; once the process is gone such a read fails with `ESRCH`.
    pub(crate) fn read_piece<'b>(
        &self,
        name: &str,
        kept: &mut Option<OwnedFd>,
        keep: bool,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Cow<'b, str>, Errno> {
        let file = match kept.take() {
            Some(file) => file,
            None => self.open(name)?,
        };
        // Grown only, as clearing it would mean to fill it with zeros each time.
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let length = rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut buffer[..], 0))?;
        // A copy's files do not vanish with a process, so they are not kept.
        if keep && self.live {
            *kept = Some(file);
        }
        Ok(String::from_utf8_lossy(&buffer[..length]))
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        rustix::fs::open(
            self.path(name),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }

    /// Reads and parses a file that must be there.
    pub(crate) fn required<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&str) -> Result<T, Malformed>,
    ) -> Result<T, ProbeError> {
        let text = self.read(name, buffer).map_err(|errno| ProbeError::Read {
            path: self.path(name),
            source: errno.into(),
        })?;
        self.parsed(name, parse(&text))
    }

    /// Names the file whose text was malformed.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        result: Result<T, Malformed>,
    ) -> Result<T, ProbeError> {
        result.map_err(|source| ProbeError::Malformed {
            path: self.path(name),
            source,
        })
    }

    /// Reads and parses a file that this kernel or container may not offer: `None` if so.
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

    /// The text of a file without white space at its ends; `None` if it is empty or can't be read.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        let bytes = fs_err::read(self.path(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_string();
        (!text.is_empty()).then_some(text)
    }

    /// The names in a directory, sorted; none if it can't be read.
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

/// Returns the state of a process of this machine, a letter, and the process id of its parent; `None` where there is none.
pub fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let text = Proc::live().text(format!("proc/{pid}/stat"))?;
    let stat = parse_process_stat(&text).ok()?;
    Some((stat.state, stat.parent))
}
