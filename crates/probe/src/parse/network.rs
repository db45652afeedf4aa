//! The parsers for `/proc/net/dev` and `/proc/net/snmp`.

use super::number;
use crate::Malformed;

/// The loopback interface, which connects a host with itself.
const LOOPBACK: &str = "lo";

/// The counters of network interfaces: bytes and packets received, bytes and packets sent.
pub(crate) type Traffic = [u64; 4];

/// The columns of these counters in `/proc/net/dev`, from 0.
const COLUMNS: [usize; 4] = [0, 1, 8, 9];

/// Returns the names of all interfaces but the loopback, and the text of their counters. The first
/// two lines are headings.
pub(crate) fn interfaces(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, counters)| (name.trim(), counters))
        .filter(|(name, _)| *name != LOOPBACK)
}

/// Returns the sum of the counters of the interfaces that `is_wanted` accepts; `None` if there are
/// none.
///
/// # Errors
/// Fails if the line of such an interface lacks a counter, or has one that is not a number.
pub(crate) fn parse_traffic(
    text: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Option<Traffic>, Malformed> {
    let mut total = None;
    for (_, counters) in interfaces(text).filter(|(name, _)| is_wanted(name)) {
        let fields: Vec<&str> = counters.split_ascii_whitespace().collect();
        let total: &mut Traffic = total.get_or_insert_default();
        for (sum, column) in total.iter_mut().zip(COLUMNS) {
            let count: u64 = number("a counter of an interface", fields.get(column).copied())?;
            *sum = sum.saturating_add(count);
        }
    }
    Ok(total)
}

/// Returns the number of TCP segments that were sent again. A line of `/proc/net/snmp` names the
/// counters, and the next has their values. `None` if the kernel does not count them.
///
/// # Errors
/// Fails if the value is missing or not a number.
pub(crate) fn parse_retransmits(text: &str) -> Result<Option<u64>, Malformed> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let mut names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let Some(column) = names.position(|name| name == "RetransSegs") else {
        return Ok(None);
    };

    let values = lines.next().unwrap_or_default();
    number("`RetransSegs`", values.split_ascii_whitespace().nth(column)).map(Some)
}
