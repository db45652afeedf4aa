//! `/proc/diskstats`

use super::number;
use crate::Malformed;

/// Bytes in a sector of `/proc/diskstats`: always this, whatever the device's own block size.
const SECTOR_BYTES: u64 = 512;

/// Counters of one block device. Times are milliseconds that the kernel prints as 32-bit numbers: they wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskLine {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Its name: `nvme0n1p1`.
    pub name: String,
    /// Reads completed.
    pub read_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of all reads together.
    pub read_ms: u64,
    /// Writes completed.
    pub write_count: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time of all writes together.
    pub write_ms: u64,
    /// Requests under way now.
    pub inflight_count: u64,
    /// Time during which at least one request was under way.
    pub io_ms: u64,
    /// Time of all requests together, those under way included.
    pub queue_ms: u64,
    /// Discards: kernel 4.18 and later.
    pub discard: Option<Discard>,
    /// Flushes: kernel 5.5 and later.
    pub flush: Option<Flush>,
}

/// Discards (trims) of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discard {
    /// Discards completed.
    pub count: u64,
    /// Bytes discarded.
    pub bytes: u64,
    /// Time of all discards together.
    pub ms: u64,
}

/// Flushes of a block device's volatile cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Flushes completed.
    pub count: u64,
    /// Time of all flushes together.
    pub ms: u64,
}

/// Parses `/proc/diskstats` with 14, 18 or 20 columns, keeping the devices that `wanted` accepts by major and minor
/// number: names are not compared, so that `md2` is never taken for `md20`.
///
/// # Errors
/// When a wanted line has fewer columns or one that is not a number.
pub fn parse_diskstats(
    text: &str,
    wanted: impl Fn(u32, u32) -> bool,
) -> Result<Vec<DiskLine>, Malformed> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(major), Some(minor)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) else {
            return Err(Malformed::new(
                "device number in /proc/diskstats",
                line,
                "two whole numbers",
            ));
        };
        if !wanted(major, minor) {
            continue;
        }
        let name = fields.next().unwrap_or("").to_string();
        let mut values = [0u64; 17];
        let mut count = 0;
        for (value, field) in values.iter_mut().zip(fields) {
            *value = number("column of /proc/diskstats", Some(field))?;
            count += 1;
        }
        if count < 11 {
            return Err(Malformed::new(
                "line of /proc/diskstats",
                line,
                "14 columns or more",
            ));
        }
        lines.push(DiskLine {
            major,
            minor,
            name,
            read_count: values[0],
            read_bytes: values[2] * SECTOR_BYTES,
            read_ms: values[3],
            write_count: values[4],
            write_bytes: values[6] * SECTOR_BYTES,
            write_ms: values[7],
            inflight_count: values[8],
            io_ms: values[9],
            queue_ms: values[10],
            discard: (count >= 15).then_some(Discard {
                count: values[11],
                bytes: values[13] * SECTOR_BYTES,
                ms: values[14],
            }),
            flush: (count >= 17).then_some(Flush {
                count: values[15],
                ms: values[16],
            }),
        });
    }
    Ok(lines)
}
