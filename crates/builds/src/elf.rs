//! Reads from an ELF file which machine a program was built for, which loader it needs, and what a
//! library exports.

use std::io::Read;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, Machine};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache};

/// An ELF file of this machine's word size.
#[derive(Debug, PartialEq, Eq)]
pub struct Elf {
    /// The machine that the file was built for.
    machine: Machine,
    /// The loader that the header names; `None` for libraries and static programs.
    pub loader: Option<PathBuf>,
}

impl Elf {
    /// Reads a file's header. Returns `None` when it is not a 64-bit little-endian ELF file, or
    /// cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        let data = ReadCache::new(fs_err::File::open(path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(&data).ok()?;
        let mut segments = header.program_headers(LittleEndian, &data).ok()?.iter();

        let loader = segments
            .find_map(|segment| segment.interpreter(LittleEndian, &data).ok()?)
            .and_then(|name| std::str::from_utf8(name).ok())
            .map(PathBuf::from);

        Some(Self { machine: header.e_machine(LittleEndian), loader })
    }

    /// Returns true when the file was built for the same machine as this program.
    pub fn is_for_this_machine(&self) -> bool {
        std::env::current_exe()
            .ok()
            .and_then(|own| Self::read(&own))
            .is_none_or(|own| own.machine == self.machine)
    }
}

/// Returns the text that a library exports under a name, as in `const char name[] = "text"`; `None`
/// when it exports none.
pub fn exported_text(path: &Path, name: &str) -> Option<String> {
    /// More than a version has.
    const TEXT_BYTES_MAX: u64 = 100;

    let data = ReadCache::new(fs_err::File::open(path).ok()?);
    let file = ElfFile64::<LittleEndian, _>::parse(&data).ok()?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;

    let size = symbol.size().min(TEXT_BYTES_MAX);
    let bytes = section.data_range(symbol.address(), size).ok()??;

    let text = bytes.split(|&byte| byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

/// Returns true when a library exports a name.
pub fn exports(path: &Path, name: &str) -> bool {
    let Ok(file) = fs_err::File::open(path) else {
        return false;
    };

    let data = ReadCache::new(file);
    let Ok(file) = ElfFile64::<LittleEndian, _>::parse(&data) else {
        return false;
    };

    file.dynamic_symbols().any(|symbol| symbol.name() == Ok(name) && symbol.is_definition())
}

/// Returns true when the kernel can start the file: an ELF file or a script.
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
        assert!(loader.to_str().unwrap().contains("/ld-"), "{}", loader.display());
    }

    #[test]
    fn text_is_not_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs_err::write(&path, "hello").unwrap();
        assert_eq!(Elf::read(&path), None);
        assert!(!is_program(&path));
        fs_err::write(&path, "#!/bin/sh\n").unwrap();
        assert!(is_program(&path));
    }
}
