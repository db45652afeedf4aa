//! The parser for `/proc/diskstats`.

use super::number;
use crate::Malformed;
use crate::device::Device;

/// The counters of one block device, in the order of their columns. There are 11; 15 with discards,
/// since kernel 4.18; or 17 with flushes, since kernel 5.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskLine {
    pub(crate) device: Device,
    pub(crate) counters: Vec<u64>,
}

/// Parses the lines of the devices that `is_wanted` accepts. Compares numbers instead of names, so
/// that `md2` is never mistaken for `md20`.
///
/// # Errors
/// Fails if the line of such a device has fewer columns than any kernel writes, or a column that is
/// not a number.
pub(crate) fn parse_diskstats(
    text: &str,
    is_wanted: impl Fn(Device) -> bool,
) -> Result<Vec<DiskLine>, Malformed> {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut fields = line.split_ascii_whitespace();
        let device = Device {
            major: number("major number", fields.next())?,
            minor: number("minor number", fields.next())?,
        };
        if !is_wanted(device) {
            continue;
        }

        // The first is the device's name.
        let counters: Vec<u64> =
            fields.skip(1).map(|field| number("column", Some(field))).collect::<Result<_, _>>()?;
        if counters.len() < 11 {
            return Err(Malformed::new("a line", line, "14 columns or more"));
        }
        lines.push(DiskLine { device, counters });
    }
    Ok(lines)
}
