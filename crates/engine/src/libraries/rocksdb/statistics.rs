//! Parses the library's texts about itself, in the formats of all its versions.
//!
//! The texts round bytes to hundredths or thousandths of a GB. If there is a rate next to a sum,
//! the more precise of the two is used. If statistics are on, [`tickers`] has the exact counters.

use words::{Counter, Role};

use crate::support::figures::{Figure, figures};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;

/// The names of write stall reasons in the older format and in the newer.
const OLD_REASONS: [(&str, &str); 8] = [
    ("level0_slowdown", "l0-file-count-limit-delays"),
    ("level0_slowdown_with_compaction", "cf-l0-file-count-limit-delays-with-ongoing-compaction"),
    ("level0_numfiles", "l0-file-count-limit-stops"),
    ("level0_numfiles_with_compaction", "cf-l0-file-count-limit-stops-with-ongoing-compaction"),
    ("slowdown for pending_compaction_bytes", "pending-compaction-bytes-delays"),
    ("stop for pending_compaction_bytes", "pending-compaction-bytes-stops"),
    ("memtable_slowdown", "memtable-limit-delays"),
    ("memtable_compaction", "memtable-limit-stops"),
];

/// Parses the counters of the property `rocksdb.cfstats`, with or without its histograms.
pub(super) fn family(text: &str) -> Vec<Counter> {
    let uptime = uptime_seconds(text);
    let mut counters = Vec::new();
    levels(text, &mut counters);

    for line in text.lines() {
        match line.split_once(": ") {
            Some(("Flush(GB)", rest)) => {
                let gib = rest.strip_prefix("cumulative ").and_then(number);
                let bytes = gib.map(|gib| (gib * GIB, 0.0));

                counters.extend(rounded_counter(
                    "flush_written_bytes",
                    Role::FlushWrittenBytes,
                    bytes,
                ));
            }
            Some(("Cumulative compaction", rest)) => {
                // Like the library, counts flushes as compactions.
                let name = "compaction_and_flush_written_bytes";
                let role = Role::CompactionAndFlushWrittenBytes;
                counters.extend(rounded_counter(name, role, finer(rest, uptime)));

                let read = rest.splitn(3, ", ").nth(2).and_then(|read| finer(read, uptime));
                counters.extend(rounded_counter(
                    "compaction_read_bytes",
                    Role::CompactionReadBytes,
                    read,
                ));
            }

            Some(("Blob file count", rest)) => {
                let count = number(rest);
                counters.extend(count.map(|count| Counter::gauge("blob_file_count", count)));
            }
            _ => stall_reasons(line, &mut counters),
        }
    }
    counters
}

/// Parses the counters of the property `rocksdb.dbstats`.
pub(super) fn database(text: &str) -> Vec<Counter> {
    let uptime = uptime_seconds(text);
    let exact = |value: f64| (value, 0.0);
    let after = |text: &str, label| finer(text.split_once(label)?.1, uptime);

    let mut counters = Vec::new();
    counters.extend(rounded_counter("uptime_seconds", Role::UptimeSeconds, uptime.map(exact)));

    for line in text.lines() {
        match line.split_once(": ") {
            Some(("Cumulative writes", rest)) => {
                let ingested = after(rest, "ingest: ");
                counters.extend(rounded_counter("ingested_bytes", Role::IngestedBytes, ingested));
            }

            Some(("Cumulative WAL", rest)) => {
                let syncs = rest.split(", ").find_map(|part| human(part.strip_suffix(" syncs")?));
                let count = syncs.map(exact);
                counters.extend(rounded_counter("wal_sync_count", Role::LogFsyncCount, count));

                let written = after(rest, "written: ");
                counters.extend(rounded_counter("wal_written_bytes", Role::LogBytes, written));
            }

            Some(("Cumulative stall", rest)) => {
                let (time, share) = rest.split_once(", ").unwrap_or((rest, ""));
                let seconds = clock_seconds(time).map(exact);
                counters.extend(rounded_counter("stall_seconds", Role::StallSeconds, seconds));
                counters.extend(number(share).map(|percent| {
                    Counter::gauge("stall_percent", percent).with_role(Role::StallPercent)
                }));
            }
            _ => stall_reasons(line, &mut counters),
        }
    }
    counters
}

/// Parses the library's statistics: all tickers under their own names, and the exact values of the
/// texts' rounded counters under the counters' names.
pub(super) fn tickers(text: &str) -> Vec<Counter> {
    const ALSO: &[Figure] = figures! {
        Cumulative "rocksdb.block.cache.hit" => "block_cache_hit_count" Work;
        Cumulative "rocksdb.block.cache.miss" => "block_cache_miss_count" Work;
        Cumulative "rocksdb.bytes.written" => "ingested_bytes" IngestedBytes;
        Cumulative "rocksdb.wal.bytes" => "wal_written_bytes" LogBytes;
        Cumulative "rocksdb.wal.synced" => "wal_sync_count" LogFsyncCount;
        Cumulative "rocksdb.flush.write.bytes" => "flush_written_bytes" FlushWrittenBytes;
        Cumulative "rocksdb.compact.read.bytes" => "compaction_read_bytes" CompactionReadBytes;
        Cumulative "rocksdb.compact.write.bytes" => "compaction_written_bytes" CompactionWrittenBytes;
    };
    // In microseconds.
    const TIMES: &[Figure] = figures! {
        Cumulative "rocksdb.stall.micros" => "stall_seconds" StallSeconds;
        Cumulative "rocksdb.wal.file.sync.micros" => "wait_seconds.WAL sync" WaitSeconds;
    };

    let mut counters = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(" COUNT : ") else {
            continue;
        };

        // Histograms have percentiles before their count, and the sum after it.
        if let Some((name, _)) = name.split_once(" P50 : ") {
            let sum = value.split_once(" SUM : ").and_then(|(_, sum)| sum.trim().parse().ok());
            counters.extend(named(TIMES, name, sum.unwrap_or(0.0) / 1e6));
            continue;
        }

        let (name, Ok(value)) = (name.trim(), value.trim().parse::<f64>()) else {
            continue;
        };
        if name.contains(' ') {
            continue;
        }

        counters.extend(named(TIMES, name, value / 1e6));
        counters.extend(named(ALSO, name, value));

        let role = match name {
            "rocksdb.block.cache.data.hit" => Some(Role::DataBlockHitCount),
            "rocksdb.block.cache.data.miss" => Some(Role::DataBlockMissCount),
            _ => None,
        };
        counters.push(Counter::cumulative(format!("ticker.{name}"), value).with_role(role));
    }
    counters
}

/// Returns the counter that one of the library's values stands for.
fn named(figures: &[Figure], source: &str, value: f64) -> Option<Counter> {
    let figure = figures.iter().find(|figure| figure.source == source)?;
    Some(figure.counter(value))
}

/// Parses the rows of the first compaction table by the names of its columns, which depend on the
/// version.
pub(crate) fn levels(text: &str, counters: &mut Vec<Counter>) {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Level "))
        .take_while(|line| !line.trim().is_empty());
    let Some(header) = lines.next() else {
        return;
    };
    let columns: Vec<&str> = header.split_whitespace().skip(1).collect();

    let mut deepest_level = None;
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(row) = words.next() else { continue };
        let level = row.strip_prefix('L').and_then(|number| number.parse::<u32>().ok());
        if level.is_none() && row != "Sum" {
            continue;
        }

        for &column in &columns {
            let Some(word) = words.next() else { break };
            let value = match column {
                "Size" => words.next().and_then(|unit| size(word, unit)),
                // `6/1` is the number of files, and how many of them are being compacted.
                "Files" => word.split('/').next().and_then(human),
                _ => human(word),
            };
            let Some(value) = value else { continue };

            if column == "Files" && level.is_some() && value > 0.0 {
                deepest_level = level;
            }
            counters.extend(match level {
                Some(level) => counter_of_level(column, level, value),
                None => counter_of_all_levels(column, value),
            });
        }
    }

    if let Some(level) = deepest_level {
        counters.push(Counter::gauge("deepest_level", f64::from(level)));
    }
}

/// Returns the counter of a column for one level.
fn counter_of_level(column: &str, level: u32, value: f64) -> Option<Counter> {
    let gauge = |name: &str| Counter::gauge(format!("level_{name}.{level}"), value);

    let cumulative = |name: &str| Counter::cumulative(format!("level_{name}.{level}"), value);

    // The table shows whole tenths of a GB.
    let moved = |name: &str| Counter {
        rounding: 0.05 * GIB,
        ..Counter::cumulative(format!("level_{name}.{level}"), value * GIB)
    };

    Some(match column {
        "Files" => gauge("file_count").with_role(Role::LevelFileCount),
        "Size" => gauge("bytes").with_role(Role::LevelBytes),
        "Score" => gauge("score").with_role(Role::LevelScore),
        "Read(GB)" => moved("compaction_read_bytes").with_role(Role::LevelReadBytes),
        "Write(GB)" => {
            moved("compaction_and_flush_written_bytes").with_role(Role::LevelWrittenBytes)
        }
        "Comp(sec)" => {
            cumulative("compaction_and_flush_seconds").with_role(Role::LevelCompactionSeconds)
        }
        "CompMergeCPU(sec)" => cumulative("compaction_and_flush_cpu_seconds"),
        "Comp(cnt)" => {
            cumulative("compaction_and_flush_count").with_role(Role::LevelCompactionCount)
        }
        _ => return None,
    })
}

/// Returns the counter of a column for all levels together. For bytes that compaction moved, other
/// lines are more precise.
fn counter_of_all_levels(column: &str, value: f64) -> Option<Counter> {
    Some(match column {
        "Files" => Counter::gauge("file_count", value).with_role(Role::FileCount),
        "Size" => Counter::gauge("lsm_bytes", value),
        // Tenths of a GB, the only source of these two values.
        "Rblob(GB)" => {
            Counter::cumulative("blob_read_bytes", value * GIB).with_role(Role::BlobReadBytes)
        }
        "Wblob(GB)" => {
            Counter::cumulative("blob_written_bytes", value * GIB).with_role(Role::BlobWrittenBytes)
        }
        "Comp(sec)" => Counter::cumulative("compaction_and_flush_seconds", value)
            .with_role(Role::CompactionAndFlushSeconds),
        "CompMergeCPU(sec)" => Counter::cumulative("compaction_and_flush_cpu_seconds", value)
            .with_role(Role::CompactionAndFlushCpuSeconds),
        "Comp(cnt)" => Counter::cumulative("compaction_and_flush_count", value),
        _ => return None,
    })
}

/// Parses the line with write stalls by reason, in either format. Ignores the totals of newer
/// versions, because [`add_stall_totals`] computes them for all versions.
fn stall_reasons(line: &str, counters: &mut Vec<Counter>) {
    let mut add = |reason: &str, count: f64| {
        let stalls = Counter::cumulative(format!("{STALLS}{reason}"), count);
        counters.push(stalls.with_role(Role::WriteStallCount));
    };

    if let Some(rest) = line.strip_prefix("Write Stall (count): ") {
        for part in rest.split(", ") {
            if let Some((reason, count)) = part.rsplit_once(": ")
                && !reason.starts_with("total-")
                && let Some(count) = human(count)
            {
                add(reason.trim(), count);
            }
        }
    } else if let Some(rest) = line.strip_prefix("Stalls(count): ") {
        for part in rest.split(", ") {
            if let Some((count, reason)) = part.split_once(' ')
                && let Some(count) = human(count)
                && let Some((_, name)) = OLD_REASONS.iter().find(|(old, _)| *old == reason)
            {
                add(name, count);
            }
        }
    }
}

/// The reasons that add up to all delays or all stops. The first one includes those
/// `with-ongoing-compaction`. The tree does not count stops of the write buffer manager.
const STALL_PARTS: [&str; 3] =
    ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes"];
const STALLS: &str = "write_stall_count.";

/// Adds the total numbers of delays and stops, if all reasons are counted.
pub(crate) fn add_stall_totals(counters: &mut Vec<Counter>) {
    let Some(prefix) = counters.iter().find_map(|counter| {
        let end = counter.name.find(STALLS)? + STALLS.len();
        Some(counter.name[..end].to_owned())
    }) else {
        return;
    };

    for sort in ["delays", "stops"] {
        let of = |part: &&str| {
            let name = format!("{prefix}{part}-{sort}");
            counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
        };

        if let Some(total) = STALL_PARTS.iter().map(of).sum::<Option<f64>>() {
            let total = Counter::cumulative(format!("{prefix}total-{sort}"), total);
            counters.push(total.with_role(Role::WriteStallCount));
        }
    }
}

/// Returns a counter for a value and its possible error.
fn rounded_counter(name: &str, role: Role, value: Option<(f64, f64)>) -> Option<Counter> {
    value.map(|(value, rounding)| Counter {
        rounding,
        ..Counter::cumulative(name, value).with_role(role)
    })
}

fn uptime_seconds(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("Uptime(secs): ")).and_then(number)
}

/// Parses the number at the beginning of `text`.
fn number(text: &str) -> Option<f64> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Parses a number that may be abbreviated: `76K`, `1.2M`.
fn human(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    let thousands = "KMGT".find(trimmed.chars().last()?).map_or(0, |at| at + 1);
    let digits = trimmed.trim_end_matches(['K', 'M', 'G', 'T']);
    let number: f64 = digits.parse().ok()?;
    Some(number * 1e3_f64.powi(thousands as i32))
}

fn size(number: &str, unit: &str) -> Option<f64> {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let power = units.iter().position(|known| *known == unit)?;
    let number: f64 = number.parse().ok()?;
    Some(number * KIB.powi(power as i32))
}

/// Parses `00:00:16.463 H:M:S` as seconds.
fn clock_seconds(text: &str) -> Option<f64> {
    let mut parts = text.split_whitespace().next()?.split(':');
    let mut next = || parts.next()?.parse::<f64>().ok();
    let (hours, minutes, seconds) = (next()?, next()?, next()?);
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// Parses `0.09 GB ..., 4.47 MB/s ...` as bytes and their possible error. Uses the sum, or the rate
/// times the uptime, whichever is more precise. Sums have hundredths of a GB, rates hundredths of a
/// MB/s, and the uptime tenths of a second.
fn finer(text: &str, uptime: Option<f64>) -> Option<(f64, f64)> {
    let mut parts = text.split(", ");
    let sum = (number(parts.next()?)? * GIB, 0.005 * GIB);
    let Some((mib_per_s, uptime)) = parts.next().and_then(number).zip(uptime) else {
        return Some(sum);
    };
    let rate = mib_per_s * MIB;
    let by_rate = (rate * uptime, uptime * 0.005 * MIB + rate * 0.05);
    Some(if by_rate.1 < sum.1 { by_rate } else { sum })
}

#[cfg(test)]
mod tests;
