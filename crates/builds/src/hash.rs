//! SHA-256 of files.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The size of a file in bytes, and its SHA-256 in hexadecimal.
pub fn of_file(path: &Path) -> io::Result<(u64, String)> {
    let mut hasher = Hasher(Sha256::new());
    let size = io::copy(&mut fs_err::File::open(path)?, &mut hasher)?;
    let digest = hasher.0.finalize();
    Ok((
        size,
        digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    ))
}

struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_size_and_its_hash() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("abc");
        fs_err::write(&path, "abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&path).unwrap(), (3, known.into()));
    }
}
