//! How long a flush takes in a directory: what every commit of a durable engine waits for.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The size of one write.
const BLOCK_BYTES: usize = 4096;

/// Blocks of the file: 4 MiB in all.
const BLOCK_COUNT: u64 = 1024;

/// Flushes that are timed at most: on a device that answers in microseconds more would tell nothing new.
const SAMPLE_COUNT_MAX: usize = 10_000;

/// The latency of `fdatasync` after a write of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsyncSample {
    /// How many were timed.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

/// Measures, for about `limit` (and always one flush), the latency of `fdatasync` after a write of 4 KiB, in `dir`.
///
/// The file is written in full and flushed before, and then overwritten at increasing offsets: the flush has data to
/// write but no change of the file's extents, as with a log file that is used again. The file has a name while
/// it is measured, because some file systems skip the flush of a file without one; it is removed in any case.
///
/// # Errors
/// When the file can't be made, written or flushed: the directory is missing or read-only, the disk is full.
pub fn measure_fsync(dir: &Path, limit: Duration) -> io::Result<FsyncSample> {
    let file = tempfile::Builder::new()
        .prefix(".assay-fsync-")
        .tempfile_in(dir)?;
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!(
                "cannot write and flush `{}`: {error}",
                file.path().display()
            ),
        )
    };
    let mut block = [0x5au8; BLOCK_BYTES];
    for index in 0..BLOCK_COUNT {
        file.as_file()
            .write_all_at(&block, index * BLOCK_BYTES as u64)
            .map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;

    let mut samples = Vec::with_capacity(SAMPLE_COUNT_MAX);
    let start = now();
    for index in 0u64.. {
        block[..8].copy_from_slice(&index.to_le_bytes());
        file.as_file()
            .write_all_at(&block, index % BLOCK_COUNT * BLOCK_BYTES as u64)
            .map_err(failed)?;
        let written = now();
        file.as_file().sync_data().map_err(failed)?;
        let after = now();
        samples.push(u64::try_from((after - written).as_nanos()).unwrap_or(u64::MAX));
        if samples.len() == SAMPLE_COUNT_MAX || after - start >= limit {
            break;
        }
    }
    file.close()?;
    Ok(summary(&mut samples))
}

#[allow(
    clippy::disallowed_methods,
    reason = "a measurement of its own, outside of every step and its clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// Nearest-rank percentiles of at least one sample.
fn summary(samples: &mut [u64]) -> FsyncSample {
    samples.sort_unstable();
    let rank = |per_cent: usize| {
        let rank = (samples.len() * per_cent).div_ceil(100).max(1);
        samples.get(rank - 1).copied().unwrap_or(0)
    };
    FsyncSample {
        count: samples.len() as u64,
        p50_ns: rank(50),
        p99_ns: rank(99),
        max_ns: rank(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut samples: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(
            summary(&mut samples),
            FsyncSample {
                count: 200,
                p50_ns: 100,
                p99_ns: 198,
                max_ns: 200
            }
        );
        assert_eq!(
            summary(&mut [7]),
            FsyncSample {
                count: 1,
                p50_ns: 7,
                p99_ns: 7,
                max_ns: 7
            }
        );
    }

    #[test]
    fn it_measures_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let sample = measure_fsync(dir.path(), Duration::from_millis(20)).unwrap();
        assert!(sample.count >= 1);
        assert!(
            0 < sample.p50_ns && sample.p50_ns <= sample.p99_ns && sample.p99_ns <= sample.max_ns
        );
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let error = measure_fsync(&missing, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
