//! How long a flush takes in a directory: what every commit of a durable engine waits for.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use fs_err::File;
use fs_err::os::unix::fs::FileExt;
use rustix::fs::{FlockOperation, flock};
use words::FsyncLatency;

/// What the name of the file begins with.
const PREFIX: &str = ".assay-fsync-";

/// The size of one write.
const BLOCK_BYTES: usize = 4096;

/// Blocks of the file: 4 MiB in all.
const BLOCK_COUNT: u64 = 1024;

/// Flushes that are timed at most: the median and the 99th percentile are known by then.
const SAMPLE_COUNT_MAX: usize = 1000;

/// Measures, for about `limit` (and always one flush), the latency of `fdatasync` after a write of 4 KiB, in `dir`.
///
/// The file is written in full and flushed before, and then overwritten at increasing offsets: the flush has data to
/// write but no change of the file's extents, as with a log file that is used again. The file has a name while
/// it is measured, because some file systems skip the flush of a file without one; it is removed in any case, and one
/// that a process left which was killed meanwhile by whoever measures there next.
///
/// # Errors
/// When the file can't be made, written or flushed: the directory is missing or read-only, the disk is full.
pub fn measure_fsync(dir: &Path, limit: Duration) -> io::Result<FsyncLatency> {
    remove_left(dir);
    let (file, path) = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(dir)?
        .into_parts();
    // As long as this process lives, nobody takes it for left. A file system without locks has no such file removed.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let file = File::from_parts(file, &*path);
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
        samples.push(u64::try_from((after - written).as_nanos()).unwrap_or(u64::MAX));
        if samples.len() == SAMPLE_COUNT_MAX || after - start >= limit {
            break;
        }
    }
    match path.close() {
        // Another process took it for left in the moment before it was locked.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        closed => closed?,
    }
    Ok(summary(&mut samples))
}

/// Removes the files of processes that were killed while they measured: those that nobody holds. One that stays is no
/// reason not to measure.
fn remove_left(dir: &Path) {
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours
            && let Ok(file) = File::open(entry.path())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs_err::remove_file(entry.path());
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a measurement of its own, outside of every step and its clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// Nearest-rank percentiles of at least one sample.
fn summary(samples: &mut [u64]) -> FsyncLatency {
    samples.sort_unstable();
    let rank = |per_cent: usize| {
        let rank = (samples.len() * per_cent).div_ceil(100).max(1);
        samples.get(rank - 1).copied().unwrap_or(0)
    };
    FsyncLatency {
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
        let figures = |samples: &mut [u64]| {
            let it = summary(samples);
            (it.count, it.p50_ns, it.p99_ns, it.max_ns)
        };
        assert_eq!(figures(&mut samples), (200, 100, 198, 200));
        assert_eq!(figures(&mut [7]), (1, 7, 7, 7));
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
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in [".assay-fsync-left", ".assay-fsync-held", "theirs"] {
            fs_err::write(path(name), "x").unwrap();
        }
        let held = fs_err::File::open(path(".assay-fsync-held")).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        measure_fsync(dir.path(), Duration::from_millis(1)).unwrap();
        assert!(!path(".assay-fsync-left").exists());
        assert!(path(".assay-fsync-held").exists() && path("theirs").exists());
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
