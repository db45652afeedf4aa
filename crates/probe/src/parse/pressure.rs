//! The parser for `/proc/pressure/{cpu,io,memory}`.

use super::{line, number};
use crate::Malformed;

/// Parses a line of a file of `/proc/pressure`. Returns the microseconds since boot in which at
/// least one thread waited (`some`), or all threads with work did (`full`; for the CPU since kernel
/// 5.13). Returns `None` without that line.
///
/// # Errors
/// Fails if `total=` is missing or its value is not a number.
pub(crate) fn parse_pressure(text: &str, key: &str) -> Result<Option<u64>, Malformed> {
    let Some(line) = line(text, key) else {
        return Ok(None);
    };
    let mut fields = line.split_ascii_whitespace();
    let total = fields.find_map(|field| field.strip_prefix("total="));
    number("`total`", total).map(Some)
}
