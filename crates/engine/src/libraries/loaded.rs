//! The shared library that a process has loaded, of which it loads at most one of each kind.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;

use crate::error::SetupError;

/// The library of one kind that this process has loaded, with its path.
pub(crate) struct Loaded<L>(Mutex<Option<(PathBuf, Arc<L>)>>);

impl<L> Loaded<L> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Loads the library at `path` with `load`, unless it is loaded. `wanted` says what to use
    /// instead of a file that cannot be loaded.
    pub(crate) fn get_or_load(
        &self,
        path: &Path,
        wanted: &str,
        load: impl FnOnce(PathBuf) -> Result<L, SetupError>,
    ) -> Result<Arc<L>, SetupError> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |what: String, help: String| SetupError::Build {
            build: path.display().to_string(),
            what,
            help,
        };

        let path = fs::canonicalize(path)
            .map_err(|error| refused(error.to_string(), format!("write the path of {wanted}")))?;
        match &*loaded {
            Some((known, library)) if *known == path => return Ok(Arc::clone(library)),
            Some((known, _)) => {
                let what = format!("this process has already loaded `{}`", known.display());
                return Err(refused(what, "use a separate process for each library".into()));
            }
            None => {}
        }

        fits_this_machine(&path).map_err(|what| {
            refused(what, format!("write the path of {wanted} that was built for this machine"))
        })?;

        let library = Arc::new(load(path.clone())?);
        *loaded = Some((path, Arc::clone(&library)));
        Ok(library)
    }
}

/// Checks by its header that this process can load a library. For another architecture, the dynamic
/// loader would only report a missing file.
fn fits_this_machine(path: &Path) -> Result<(), String> {
    let mut header = [0; 20];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(|error| {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                "the file is not a shared library: it is too short".into()
            }
            _ => error.to_string(),
        }
    })?;
    check_header(&header)
}

fn check_header(header: &[u8; 20]) -> Result<(), String> {
    if !header.starts_with(b"\x7fELF") {
        return Err("the file is not a shared library".into());
    }

    let own: Option<(u8, u16, &str)> = match std::env::consts::ARCH {
        "x86_64" => Some((2, 62, "x86-64")),
        "aarch64" => Some((2, 183, "AArch64")),
        _ => None,
    };

    let Some((class, machine, name)) = own else {
        return Ok(());
    };

    let found = u16::from_le_bytes([header[18], header[19]]);
    if (header[4], found) == (class, machine) {
        return Ok(());
    }

    let found = match found {
        3 => "32-bit x86".into(),
        40 => "32-bit ARM".into(),
        62 => "x86-64".into(),
        183 => "AArch64".into(),
        243 => "RISC-V".into(),
        other => format!("machine {other}"),
    };
    Err(format!("the library was built for {found}, but this process runs on {name}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Checks that a file that is not a library of `product` is refused with the reason, and a missing
    /// one with a remedy.
    pub fn check_refusals<L>(product: &str, open: impl Fn(&Path) -> Result<L, SetupError>) {
        let refusal = |path: &Path| open(path).err().unwrap();

        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, why) in
            [("short", "too short"), ("#!/bin/sh\necho not a library\n", "not a shared library")]
        {
            fs::write(file.path(), text).unwrap();
            let what = refusal(file.path()).to_string();
            assert!(what.contains(why), "{what}");
        }

        // Another library: the C library of this process.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let libc = paths.find(|path| path.contains("/libc.so") || path.contains("/libc-"));
        let what = refusal(Path::new(libc.unwrap())).to_string();
        assert!(what.contains(&format!("is not {product}")), "{what}");

        let missing = refusal(Path::new("/nowhere/library.so"));
        assert!(missing.help().unwrap().contains("assay fetch"));
    }

    #[test]
    fn the_header_shows_libraries_of_other_machines() {
        let mut header = [0; 20];
        assert!(check_header(&header).unwrap_err().contains("not a shared library"));
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let (own, other, name) =
            if cfg!(target_arch = "x86_64") { (62, 183, "AArch64") } else { (183, 62, "x86-64") };
        header[18] = own;
        assert_eq!(check_header(&header), Ok(()));
        header[18] = other;
        assert!(check_header(&header).unwrap_err().contains(name));
    }
}
