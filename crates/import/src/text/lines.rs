//! Reads a file line by line, within limits.

use std::io::{BufRead, Read};

use super::Refusal;

/// The longest line in bytes. Plans of statements are long, but not that long.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The number, from 1.
    pub number: u64,
    /// The text without its end.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Returns the words of the line.
    pub fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }

    /// Returns the text after a key at the beginning of the line, without spaces around it.
    pub fn after(&self, key: &str) -> Option<&'a str> {
        self.text.trim_start().strip_prefix(key).map(str::trim)
    }
}

/// The lines of a file as they are read.
pub(crate) struct Lines<R> {
    reader: R,
    bytes_max: u64,
    buffer: Vec<u8>,
    text: String,
    checksum: crc32fast::Hasher,
    /// The number of lines that were read.
    pub count: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The last line ended with a line end.
    pub is_ended: bool,
}

impl<R: BufRead> Lines<R> {
    /// Returns the lines of a file that may have this many bytes.
    pub fn new(reader: R, bytes_max: u64) -> Self {
        Self {
            reader,
            bytes_max,
            buffer: Vec::new(),
            text: String::new(),
            checksum: crc32fast::Hasher::new(),
            count: 0,
            bytes: 0,
            is_ended: true,
        }
    }

    /// Returns the next line; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or has a line that is too long.
    pub fn next(&mut self) -> Result<Option<Line<'_>>, Refusal> {
        self.buffer.clear();
        let number = self.count + 1;
        let mut limited = (&mut self.reader).take(LINE_BYTES_MAX);
        let read = limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| Refusal::at(number, format!("the file cannot be read: {error}")))?;
        if read == 0 {
            return Ok(None);
        }

        self.is_ended = self.buffer.ends_with(b"\n");
        if !self.is_ended && read as u64 >= LINE_BYTES_MAX {
            return Err(Refusal::at(number, "the line is longer than 1 MB"));
        }

        self.bytes += read as u64;
        if self.bytes > self.bytes_max {
            let limit = self.bytes_max >> 20;
            return Err(Refusal::at(number, format!("the file is larger than {limit} MB")));
        }

        self.count = number;
        self.checksum.update(&self.buffer);
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.buffer));
        let text = self.text.trim_end_matches(['\n', '\r']);
        Ok(Some(Line { number, text }))
    }

    /// Returns the CRC-32 of all that was read, in hexadecimal.
    pub fn crc32(&self) -> String {
        format!("{:08x}", self.checksum.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_no_ends() {
        let mut lines = Lines::new(&b"a b\r\n\nc"[..], 100);
        assert_eq!(lines.next().unwrap().unwrap().words(), ["a", "b"]);
        assert_eq!(lines.next().unwrap().unwrap().text, "");
        let last = lines.next().unwrap().unwrap();
        assert_eq!((last.number, last.text), (3, "c"));
        assert!(lines.next().unwrap().is_none());
        assert!(!lines.is_ended);
        assert_eq!((lines.count, lines.bytes), (3, 7));
    }

    #[test]
    fn a_line_without_an_end_and_a_large_file_are_refused() {
        let long = vec![b'x'; 1 << 21];
        assert!(Lines::new(&long[..], u64::MAX).next().is_err());
        let mut lines = Lines::new(&b"12345\n12345\n"[..], 8);
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap_err().line, Some(2));
    }
}
