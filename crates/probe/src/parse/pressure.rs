//! `/proc/pressure/{cpu,io,memory}`

use super::{line, number};
use crate::Malformed;

/// Parses one line of a file of `/proc/pressure`: the microseconds since boot in which at least one thread waited (`some`),
/// or all that had work (`full`; for the CPU since kernel 5.13). `None` without that line.
///
/// # Errors
/// When its `total=` is missing or not a number.
pub(crate) fn parse_pressure(text: &str, key: &str) -> Result<Option<u64>, Malformed> {
    let Some(line) = line(text, key) else {
        return Ok(None);
    };
    let mut fields = line.split_ascii_whitespace();
    let total = fields.find_map(|field| field.strip_prefix("total="));
    number("`total`", total).map(Some)
}
