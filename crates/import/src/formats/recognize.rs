//! Recognizes formats by the first lines of files.

use super::Format;

/// The least lines of a log of numbers alone that are looked at, and the most.
const LOG_LINES: std::ops::RangeInclusive<usize> = 1..=20;

/// Returns the format of a file by its first lines; `None` if no format is clear.
pub(crate) fn recognize(head: &[String]) -> Option<Format> {
    head.iter().find_map(|line| of_line(line)).or_else(|| of_numbers(head))
}

fn of_line(line: &str) -> Option<Format> {
    let text = line.trim();
    let begins = |start: &str| text.starts_with(start);
    let words: Vec<&str> = text.split_whitespace().collect();
    let has = |name: &str| words.contains(&name);

    if begins("sysbench ") || (text.contains("sysbench ") && text.contains("--threads=")) {
        Some(Format::Sysbench)
    } else if begins("procs ") && text.contains("memory") {
        Some(Format::Vmstat)
    } else if begins("avg-cpu:") || (begins("Device") && text.contains("%util")) {
        Some(Format::Iostat)
    } else if begins("pgbench (") || begins("number of transactions actually processed:") {
        Some(Format::Pgbench)
    } else if has("t_sec") && has("t_ins") {
        Some(Format::Iibench)
    } else if begins("HammerDB CLI") || text.contains("System achieved ") {
        Some(Format::Hammerdb)
    } else if text.contains("Performance counter stats for") {
        Some(Format::PerfStat)
    } else if text.contains(" micros/op ") || begins("RocksDB:    version") {
        Some(Format::DbBench)
    } else if has("ops_sec") && has("mb_sec") {
        Some(Format::DbBenchReport)
    } else if (has("cpu/o") && has("dbms")) || (has("ips") && has("tag")) {
        Some(Format::MetTable)
    } else if begins("col-1 : ") {
        Some(Format::QpsTable)
    } else {
        None
    }
}

/// Returns the format of a log that has numbers only.
fn of_numbers(head: &[String]) -> Option<Format> {
    let lines: Vec<Vec<&str>> = head
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .take(*LOG_LINES.end())
        .collect();
    if !LOG_LINES.contains(&lines.len()) {
        return None;
    }

    let is_time = |word: &&str| word.len() == 10 && word.parse::<u64>().is_ok();
    let all = |place: usize| lines.iter().all(|words| words.get(place).is_some_and(is_time));
    if all(4) && lines.iter().all(|words| (6..=8).contains(&words.len())) {
        Some(Format::PgbenchLog)
    } else if all(0) && lines.iter().all(|words| words.len() >= 6) {
        Some(Format::PgbenchAggregate)
    } else {
        None
    }
}
