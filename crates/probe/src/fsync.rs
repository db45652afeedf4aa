//! The latency of a flush in a directory, which each commit of a durable engine waits for.

use std::io;
use std::path::Path;
use std::time::Duration;

use fs_err::os::unix::fs::FileExt;
use words::FsyncLatency;

use crate::scratch::ScratchFile;
use crate::timing::{now, percentile, whole_ns};

/// The size of one write.
const BLOCK_BYTES: usize = 4096;

/// The number of blocks of the file, which has 4 MiB.
const BLOCK_COUNT: u64 = 1024;

/// The highest number of timed flushes, enough for the median and the 99th percentile.
const SAMPLE_COUNT_MAX: usize = 1000;

/// Measures the latency of `fdatasync` after a write of 4 KiB in `dir`, for about `limit` and at
/// least one flush.
///
/// First writes and flushes the whole file, then overwrites it at increasing offsets. So a flush
/// has data to write but does not change the file's extents, as in a log file that is used again.
/// The file keeps its name during the measurement, because some file systems skip the flush of a
/// file without a name. It is removed at the end, or by the next measurement in `dir` if the
/// process was killed.
///
/// # Errors
/// Fails if the file cannot be created, written or flushed: the directory is missing or read-only,
/// or the disk is full.
pub fn measure_fsync(dir: &Path, limit: Duration) -> io::Result<FsyncLatency> {
    let scratch = ScratchFile::create(dir)?;
    let file = &scratch.file;

    let mut block = [0x5au8; BLOCK_BYTES];
    for index in 0..BLOCK_COUNT {
        file.write_all_at(&block, index * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;

    let mut samples = Vec::with_capacity(SAMPLE_COUNT_MAX);
    let start = now();
    for index in 0u64.. {
        block[..8].copy_from_slice(&index.to_le_bytes());
        file.write_all_at(&block, index % BLOCK_COUNT * BLOCK_BYTES as u64)?;
        let written = now();
        file.sync_data()?;
        let after = now();
        samples.push(whole_ns(after - written));
        if samples.len() == SAMPLE_COUNT_MAX || after - start >= limit {
            break;
        }
    }

    scratch.remove()?;
    Ok(summary(&mut samples))
}

/// Returns the nearest-rank percentiles of at least one sample.
fn summary(samples: &mut [u64]) -> FsyncLatency {
    samples.sort_unstable();
    FsyncLatency {
        count: samples.len() as u64,
        p50_ns: percentile(samples, 50),
        p99_ns: percentile(samples, 99),
        max_ns: percentile(samples, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut samples: Vec<u64> = (1..=200).rev().collect();
        let figures = |samples: &mut [u64]| {
            let latency = summary(samples);
            (latency.count, latency.p50_ns, latency.p99_ns, latency.max_ns)
        };
        assert_eq!(figures(&mut samples), (200, 100, 198, 200));
        assert_eq!(figures(&mut [7]), (1, 7, 7, 7));
    }

    #[test]
    fn a_measurement_removes_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let sample = measure_fsync(dir.path(), Duration::from_millis(20)).unwrap();
        assert!(sample.count >= 1);
        assert!(
            0 < sample.p50_ns && sample.p50_ns <= sample.p99_ns && sample.p99_ns <= sample.max_ns
        );
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_error_names_a_missing_directory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let error = measure_fsync(&missing, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
