//! Recognizes formats by the first lines of files.

use super::Format;

/// Returns the format of a file by its first lines; `None` if no format is clear.
pub(crate) fn recognize(head: &[String]) -> Option<Format> {
    head.iter().find_map(|line| of_line(line))
}

fn of_line(line: &str) -> Option<Format> {
    let text = line.trim();
    let begins = |start: &str| text.starts_with(start);

    if begins("sysbench ") || (text.contains("sysbench ") && text.contains("--threads=")) {
        Some(Format::Sysbench)
    } else if begins("procs ") && text.contains("memory") {
        Some(Format::Vmstat)
    } else if begins("avg-cpu:") || (begins("Device") && text.contains("%util")) {
        Some(Format::Iostat)
    } else {
        None
    }
}
