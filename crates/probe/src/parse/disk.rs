//! `/proc/diskstats`

use super::number;
use crate::Malformed;
use crate::disk::Device;

/// The counters of one block device, in the order of their columns: 11, with discards (kernel 4.18 and later) 15, with
/// flushes (kernel 5.5 and later) 17.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskLine {
    pub(crate) device: Device,
    pub(crate) counters: Vec<u64>,
}

/// Parses the lines of the devices that `wanted` accepts. They are known by their numbers: names are not compared, so that
/// `md2` is never taken for `md20`.
///
/// # Errors
/// When a wanted line has fewer columns than any kernel writes, or one that is not a number.
pub(crate) fn parse_diskstats(
    text: &str,
    wanted: impl Fn(Device) -> bool,
) -> Result<Vec<DiskLine>, Malformed> {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut fields = line.split_ascii_whitespace();
        let device = Device {
            major: number("major number", fields.next())?,
            minor: number("minor number", fields.next())?,
        };
        if !wanted(device) {
            continue;
        }
        // The first is the device's name.
        let counters = fields.skip(1).map(|field| number("column", Some(field)));
        let counters: Vec<u64> = counters.collect::<Result<_, _>>()?;
        if counters.len() < 11 {
            return Err(Malformed::new("a line", line, "14 columns or more"));
        }
        lines.push(DiskLine { device, counters });
    }
    Ok(lines)
}
