//! SHA-256 of files and texts.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the size of a file in bytes, and its SHA-256 in hexadecimal.
pub fn of_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = BufReader::with_capacity(1 << 16, fs_err::File::open(path)?);
    let (mut hasher, mut size) = (Sha256::new(), 0);
    loop {
        let bytes = file.fill_buf()?;
        let length = bytes.len();
        if length == 0 {
            break;
        }

        hasher.update(bytes);
        size += length as u64;
        file.consume(length);
    }

    Ok((size, hexadecimal(&hasher.finalize())))
}

/// Returns the SHA-256 of bytes in hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
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
        assert_eq!(of_bytes(b"abc"), known);
    }
}
