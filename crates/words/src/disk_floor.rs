//! The floor of a disk: what it can do for a program that does nothing else.

use serde::{Deserialize, Serialize};

/// The rates that the disk of a directory reaches for a program that only reads, or only writes
/// and syncs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskFloor {
    /// The time at which the measurement began.
    pub measured_unix_ns: u64,
    /// The size of the file that was read.
    pub file_bytes: u64,
    /// Random reads, in the order in which they were measured.
    pub reads: Vec<ReadFloor>,
    /// Writes of one block, each followed by `fdatasync`.
    pub syncs: Vec<SyncFloor>,
    /// The parts that were not measured, with the reasons.
    pub notes: Vec<String>,
}

/// The rate of random reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadFloor {
    /// The number of threads, each of which has one read in progress.
    pub depth: u32,
    /// The size of a read.
    pub block_bytes: u32,
    /// The way past or through the page cache.
    pub mode: IoMode,
    /// The rate of all threads.
    pub rate: IoRate,
}

/// The rate of writes of one block that are each followed by `fdatasync`, by one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyncFloor {
    /// The place of the block.
    pub place: SyncPlace,
    /// The size of a block.
    pub block_bytes: u32,
    /// The way past or through the page cache.
    pub mode: IoMode,
    /// The rate of syncs.
    pub rate: IoRate,
}

/// The way of reads and writes with regard to the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoMode {
    /// Past the page cache: `O_DIRECT`.
    Direct,
    /// Through the page cache. Reads find nothing there: it is emptied before, and each block is
    /// read once.
    Buffered,
}

impl IoMode {
    /// Returns the word of tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
        }
    }
}

/// The place of a block that is written and synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPlace {
    /// Allocated space that was never written: a log that grows. A sync also makes the file
    /// system's record of the block durable.
    Append,
    /// Space that was written before: a log that is used again.
    Overwrite,
}

impl SyncPlace {
    /// Returns the word of tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Overwrite => "overwrite",
        }
    }
}

/// A rate of requests, with the times that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoRate {
    /// The number of requests.
    pub count: u64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// The median time of a request.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

/// Sizes that differ by this share are the same size: the mean of many reads is never exactly that
/// of a page.
const SAME_SIZE: f64 = 0.05;

impl DiskFloor {
    /// Returns the random reads per second of the faster mode at a depth and a size. Between two
    /// measured sizes, the time of a read is interpolated. `None` if that depth was not measured,
    /// or the size is smaller or larger than all that were.
    pub fn reads_per_s(&self, depth: u32, bytes: f64) -> Option<f64> {
        let mut sizes: Vec<u32> = Vec::new();
        let of_depth = self.reads.iter().filter(|read| read.depth == depth);
        sizes.extend(of_depth.map(|read| read.block_bytes));
        sizes.sort_unstable();
        sizes.dedup();

        let is_same = |size: f64| (bytes / size - 1.0).abs() <= SAME_SIZE;
        let at = |size: u32| Some((f64::from(size), self.fastest_read(depth, size)?));
        if let Some(&same) = sizes.iter().find(|size| is_same(f64::from(**size))) {
            return self.fastest_read(depth, same);
        }

        let above = sizes.iter().position(|size| f64::from(*size) > bytes)?;
        let (small, small_rate) = at(*sizes.get(above.checked_sub(1)?)?)?;
        let (large, large_rate) = at(sizes[above])?;
        let share = (bytes - small) / (large - small);
        let seconds = (1.0 - share) / small_rate + share / large_rate;
        Some(1.0 / seconds)
    }

    fn fastest_read(&self, depth: u32, bytes: u32) -> Option<f64> {
        let same =
            self.reads.iter().filter(|read| (read.depth, read.block_bytes) == (depth, bytes));
        fastest(same.map(|read| &read.rate))
    }

    /// Returns the `fdatasync` calls per second of the fastest way to write before them.
    pub fn syncs_per_s(&self) -> Option<f64> {
        fastest(self.syncs.iter().map(|sync| &sync.rate))
    }
}

fn fastest<'a>(rates: impl Iterator<Item = &'a IoRate>) -> Option<f64> {
    rates.map(|rate| rate.requests_per_s).filter(|rate| *rate > 0.0).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(depth: u32, kib: u32, mode: IoMode, requests_per_s: f64) -> ReadFloor {
        let rate = IoRate { requests_per_s, ..IoRate::default() };
        ReadFloor { depth, block_bytes: kib * 1024, mode, rate }
    }

    fn floor() -> DiskFloor {
        let reads = vec![
            read(1, 4, IoMode::Direct, 10_000.0),
            read(1, 4, IoMode::Buffered, 9_000.0),
            read(1, 16, IoMode::Direct, 5_000.0),
            read(4, 8, IoMode::Buffered, 30_000.0),
        ];
        DiskFloor { reads, ..DiskFloor::default() }
    }

    #[test]
    fn the_floor_is_the_faster_mode_at_the_same_depth_and_size() {
        assert_eq!(floor().reads_per_s(1, 4096.0), Some(10_000.0));
        assert_eq!(floor().reads_per_s(4, 8192.0), Some(30_000.0));
        // Some reads of an engine are larger than its page.
        assert_eq!(floor().reads_per_s(1, 4200.0), Some(10_000.0));
    }

    #[test]
    fn between_two_sizes_the_time_of_a_read_is_interpolated() {
        // 100 us for 4 KiB and 200 us for 16 KiB are 150 us for 10 KiB.
        let rate = floor().reads_per_s(1, 10_240.0).unwrap();
        assert!((rate - 1e6 / 150.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn a_depth_or_size_that_was_not_measured_has_no_floor() {
        assert_eq!(floor().reads_per_s(2, 4096.0), None);
        assert_eq!(floor().reads_per_s(1, 2048.0), None);
        assert_eq!(floor().reads_per_s(1, 32_768.0), None);
        assert_eq!(floor().reads_per_s(4, 4096.0), None);
        assert_eq!(floor().syncs_per_s(), None);
    }

    #[test]
    fn the_floor_of_syncs_is_their_fastest_way() {
        let sync = |place, mode, requests_per_s| SyncFloor {
            place,
            mode,
            block_bytes: 4096,
            rate: IoRate { requests_per_s, ..IoRate::default() },
        };
        let syncs = vec![
            sync(SyncPlace::Append, IoMode::Buffered, 500.0),
            sync(SyncPlace::Overwrite, IoMode::Buffered, 900.0),
            sync(SyncPlace::Overwrite, IoMode::Direct, 800.0),
        ];
        let floor = DiskFloor { syncs, ..DiskFloor::default() };
        assert_eq!(floor.syncs_per_s(), Some(900.0));
    }
}
