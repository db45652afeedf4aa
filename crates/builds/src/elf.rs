//! What is needed of a program's header: which machine it is for, and which loader it asks for.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The type of a program header that names the loader.
const PT_INTERP: u32 = 3;

/// An ELF file of this machine's word size.
#[derive(Debug, PartialEq, Eq)]
pub struct Elf {
    /// For which machine: 62 is x86-64.
    pub machine: u16,
    /// The loader that it asks for; `None` for libraries and programs that need none.
    pub loader: Option<PathBuf>,
}

impl Elf {
    /// Reads a file's header; `None` when it is no 64-bit little-endian ELF file, or can't be read.
    pub fn read(path: &Path) -> Option<Self> {
        let mut file = fs_err::File::open(path).ok()?;
        let mut header = [0; 64];
        file.read_exact(&mut header).ok()?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let u16_at = |bytes: &[u8], at: usize| {
            Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
        };
        let u64_at = |bytes: &[u8], at: usize| {
            Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        let machine = u16_at(&header, 18)?;
        let (table, size, count) = (
            u64_at(&header, 32)?,
            u16_at(&header, 54)?,
            u16_at(&header, 56)?,
        );
        file.seek(SeekFrom::Start(table)).ok()?;
        let mut loader = None;
        let mut entry = vec![0; usize::from(size)];
        for _ in 0..count {
            file.read_exact(&mut entry).ok()?;
            if entry.get(..4)? == PT_INTERP.to_le_bytes() {
                let (offset, length) = (u64_at(&entry, 8)?, u64_at(&entry, 32)?);
                file.seek(SeekFrom::Start(offset)).ok()?;
                let mut name = Vec::new();
                file.take(length.min(4096)).read_to_end(&mut name).ok()?;
                let name = name.split(|&byte| byte == 0).next()?;
                loader = Some(PathBuf::from(std::str::from_utf8(name).ok()?));
                break;
            }
        }
        Some(Self { machine, loader })
    }

    /// Whether it is for the machine that this program was made for.
    pub fn is_for_this_machine(&self) -> bool {
        std::env::current_exe()
            .ok()
            .and_then(|own| Self::read(&own))
            .is_none_or(|own| own.machine == self.machine)
    }
}

/// Whether the kernel would start it: an ELF file or a script.
pub fn is_program(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = fs_err::File::open(path).and_then(|mut file| file.read(&mut start));
    matches!(read, Ok(length) if start[..length].starts_with(b"\x7fELF") || start[..length].starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_machine_and_its_loader() {
        let own = Elf::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.is_for_this_machine());
        let loader = own.loader.unwrap();
        assert!(
            loader.to_str().unwrap().contains("/ld-"),
            "{}",
            loader.display()
        );
    }

    #[test]
    fn text_is_no_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs_err::write(&path, "hello").unwrap();
        assert_eq!(Elf::read(&path), None);
        assert!(!is_program(&path));
        fs_err::write(&path, "#!/bin/sh\n").unwrap();
        assert!(is_program(&path));
    }
}
