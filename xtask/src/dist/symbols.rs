//! The C library that a binary needs, by the versions of its symbols.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::output;

/// A version of glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns the oldest glibc with all symbols of a binary.
pub(super) fn needed_glibc(binary: &Path) -> Result<Version> {
    let table = output(Command::new("objdump").arg("-T").arg(binary))?;
    newest(&table).context("the binary uses no symbol of glibc")
}

/// Returns the newest version in a table of symbols.
fn newest(table: &str) -> Option<Version> {
    let after = table.split("GLIBC_").skip(1);
    after.filter_map(version_at_start).max()
}

fn version_at_start(text: &str) -> Option<Version> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let number = &text[..text.find(|letter| !is_number(letter)).unwrap_or(text.len())];
    let mut parts = number.split('.').map(str::parse);
    Some(Version { major: parts.next()?.ok()?, minor: parts.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_counts_by_its_number() {
        let table = "\
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.28)  statx
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.9)   pipe2
0000000000000000      DF *UND*  0000000000000000 (GCC_3.0)     _Unwind_Resume
";
        assert_eq!(newest(table), Some(Version { major: 2, minor: 28 }));
        assert_eq!(newest("GLIBC_PRIVATE"), None);
    }
}
