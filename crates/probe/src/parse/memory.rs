//! `/proc/meminfo` and `/proc/vmstat`

use super::number;
use crate::Malformed;

/// Memory now. `None` is what the kernel does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All that the kernel manages.
    pub total_bytes: u64,
    /// Unused.
    pub free_bytes: u64,
    /// What new work could get without swapping: kernel 3.14 and later.
    pub available_bytes: Option<u64>,
    /// Page cache, shared memory included.
    pub cached_bytes: u64,
    /// Waits to be written back.
    pub dirty_bytes: u64,
    /// Is being written back.
    pub writeback_bytes: u64,
    /// Swap.
    pub swap_total_bytes: u64,
    /// Swap that is in use.
    pub swap_used_bytes: u64,
    /// Reserved huge pages of the default size.
    pub huge_page_count: Option<u64>,
    /// Those of them that are not used.
    pub huge_page_free_count: Option<u64>,
    /// The default size of huge pages.
    pub huge_page_bytes: Option<u64>,
}

/// Parses `/proc/meminfo`.
///
/// # Errors
/// When a line that every kernel has is missing, or a number is not one.
pub fn parse_meminfo(text: &str) -> Result<Memory, Malformed> {
    let find = |name: &str| -> Result<Option<u64>, Malformed> {
        for line in text.lines() {
            let Some(rest) = line
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(':'))
            else {
                continue;
            };
            let mut fields = rest.split_ascii_whitespace();
            let value = number(&format!("`{name}` of /proc/meminfo"), fields.next())?;
            return match fields.next() {
                // A container's file may have differences that fell below zero: numbers near 2^64.
                Some("kB") => Ok(Some(value.saturating_mul(1024))),
                None => Ok(Some(value)),
                Some(unit) => Err(Malformed::new(
                    format!("unit of `{name}` of /proc/meminfo"),
                    unit,
                    "`kB` or none",
                )),
            };
        }
        Ok(None)
    };
    let need = |name: &str| -> Result<u64, Malformed> {
        find(name)?.ok_or_else(|| {
            Malformed::new(
                format!("`{name}` of /proc/meminfo"),
                "",
                "a line with that name",
            )
        })
    };
    let swap_total_bytes = need("SwapTotal")?;
    Ok(Memory {
        total_bytes: need("MemTotal")?,
        free_bytes: need("MemFree")?,
        available_bytes: find("MemAvailable")?,
        cached_bytes: need("Cached")?,
        dirty_bytes: need("Dirty")?,
        writeback_bytes: need("Writeback")?,
        swap_total_bytes,
        swap_used_bytes: swap_total_bytes.saturating_sub(need("SwapFree")?),
        huge_page_count: find("HugePages_Total")?,
        huge_page_free_count: find("HugePages_Free")?,
        huge_page_bytes: find("Hugepagesize")?,
    })
}

/// The lines of `/proc/vmstat` that are wanted, and by what their numbers are multiplied: `pgpgin` and `pgpgout` count KiB,
/// not pages, whatever their names say.
const PAGING: [(&str, u64); 6] = [
    ("pgpgin", 1024),
    ("pgpgout", 1024),
    ("pswpin", 1),
    ("pswpout", 1),
    ("pgfault", 1),
    ("pgmajfault", 1),
];

/// Parses `/proc/vmstat`: bytes read from block devices and written to them, by the page cache and by direct I/O; pages read
/// from swap and written to it; faults, and those of them that needed I/O. All since boot.
///
/// # Errors
/// When a number is not one.
pub fn parse_vmstat(text: &str) -> Result<[Option<u64>; 6], Malformed> {
    let mut paging = [None; 6];
    for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let Some(at) = PAGING.iter().position(|(known, _)| *known == key) {
            let what = format!("`{key}` of /proc/vmstat");
            paging[at] = Some(number(&what, Some(value.trim()))? * PAGING[at].1);
        }
    }
    Ok(paging)
}
