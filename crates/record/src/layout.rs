//! The names of folders and files in a run directory.

/// The record of the run.
pub(crate) const RUN_FILE: &str = "run.json";
/// The file that a process locks while it measures cells of the run.
pub const LOCK_FILE: &str = ".assay.lock";
/// The record of a cell.
pub(crate) const CELL_FILE: &str = "cell.json";
pub(crate) const LOG_FILE: &str = "server.log";
pub(crate) const LOG_EVENTS_FILE: &str = "log_events.parquet";
/// The folder of all cells, in the run's directory.
pub(crate) const CELLS: &str = "cells";
/// The folder of all steps, in the cell's directory.
pub(crate) const STEPS: &str = "steps";
/// The suffix of a directory until its step is finished.
pub(crate) const PARTIAL: &str = ".partial";
/// The record of a step; the others below are beside it.
pub(crate) const STEP_FILE: &str = "step.json";
pub(crate) const INTERVALS_FILE: &str = "intervals.parquet";
pub(crate) const HOST_FILE: &str = "host.parquet";
pub(crate) const COUNTERS_FILE: &str = "counters.parquet";
pub(crate) const PROFILE_FILE: &str = "profile.parquet";
pub(crate) const WORK_FUNCTIONS_FILE: &str = "work_functions.parquet";
pub(crate) const WORK_CALLS_FILE: &str = "work_calls.parquet";
pub(crate) const TURNS_FILE: &str = "turns.parquet";
pub(crate) const STATUS_FILE: &str = "engine_status.txt";
pub(crate) const LATENCY_FILE: &str = "latency.hlog";
/// The latencies of the whole step, so that readers of totals need not decode every second.
pub(crate) const LATENCY_TOTAL_FILE: &str = "latency_total.hlog";

/// The format of the time in the name of a directory: `20261121T190211Z`.
const COMPACT_TIME: &str = "%Y%m%dT%H%M%SZ";

/// Returns the name of the directory of a finished step.
pub(crate) fn step_name(number: u32, name: &str) -> String {
    format!("{number:02}-{name}")
}

/// Returns the name of the `step.json` in the directory of a finished step, relative to the cell.
pub(crate) fn step_file_name(directory: &str) -> String {
    format!("{STEPS}/{directory}/{STEP_FILE}")
}

/// Returns the name of the table with the samples of a host, given its first rank.
pub(crate) fn host_file(rank: u32) -> String {
    match rank {
        0 => HOST_FILE.to_owned(),
        rank => format!("host.rank{rank}.parquet"),
    }
}

/// Returns the name of a directory that is begun now: `20261121T190211Z-round-6`.
pub fn name_with_moment(name: &str) -> String {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    dated_name(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX), name)
}

/// Returns the name of a directory, from a time and a name: `20261121T190211Z-round-6`.
pub(crate) fn dated_name(unix_ns: u64, name: &str) -> String {
    format!("{}-{}", compact_time(unix_ns), file_name_of(name))
}

/// Returns the time with which the name of a directory begins, in nanoseconds since 1970. `None`: it
/// begins with something else.
pub fn moment_of_name(name: &str) -> Option<u64> {
    let (moment, _) = name.split_once('-')?;
    let time = jiff::civil::DateTime::strptime(COMPACT_TIME, moment).ok()?;
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_nanosecond()).ok()
}

/// Formats a time as `20261121T190211Z`.
fn compact_time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime(COMPACT_TIME).to_string()
}

/// Replaces characters that a file name should not have.
pub(crate) fn file_name_of(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let plain = name.replace(|letter| !is_plain(letter), "-");

    match plain.chars().next() {
        None => "-".into(),
        Some('.') => format!("-{}", &plain[1..]),
        Some(_) => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_name_is_read_back() {
        let unix_ns = 1_795_287_731_000_000_000;
        assert_eq!(moment_of_name(&dated_name(unix_ns, "tune-l.i1")), Some(unix_ns));
        assert_eq!(moment_of_name("tune-l.i1"), None);
        assert_eq!(moment_of_name("20261121T190211Z"), None);
    }
}
