//! `/proc/pressure/{cpu,io,memory}`

use super::number;
use crate::Malformed;

/// Time lost to a shortage, since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one thread waited.
    pub some_us: u64,
    /// All threads that had work waited; for the CPU since kernel 5.13.
    pub full_us: Option<u64>,
}

/// Parses one file of `/proc/pressure`.
///
/// # Errors
/// When the line `some` or a `total=` is missing, or not a number.
pub fn parse_pressure(text: &str) -> Result<Pressure, Malformed> {
    let mut some = None;
    let mut full = None;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let slot = match fields.next() {
            Some("some") => &mut some,
            Some("full") => &mut full,
            _ => continue,
        };
        let total = fields.find_map(|field| field.strip_prefix("total="));
        *slot = Some(number("`total` of /proc/pressure", total)?);
    }
    match some {
        Some(some_us) => Ok(Pressure {
            some_us,
            full_us: full,
        }),
        None => Err(Malformed::new("/proc/pressure", text, "a line `some`")),
    }
}
