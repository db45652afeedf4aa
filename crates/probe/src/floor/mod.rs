//! The floor of a disk: random reads and `fdatasync` calls per second, for a program that does
//! nothing else.
//!
//! ```text
//! FloorRequest ─┬─► reads   a file without a name, each block at most once per rate
//!               └─► syncs   a file with a name, one block at a time
//! ```
//!
//! The work is that of fio's engine `psync`: `--rw=randread --thread --numjobs=DEPTH` for reads,
//! and `--rw=write --fdatasync=1` for syncs, with `--overwrite=1` for those of old blocks.

mod direct;
mod reads;
mod syncs;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::statfs;
use words::{DiskFloor, IoMode, IoRate, SyncPlace, counted};

use crate::timing::percentile;

/// The most reads in progress that can be measured.
pub const FLOOR_DEPTH_MAX: u32 = 1024;

/// The reads and writes to measure, and their directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorRequest<'a> {
    /// The directory whose storage is measured. It must exist.
    pub dir: &'a Path,
    /// The numbers of threads that read, each from 1 to [`FLOOR_DEPTH_MAX`].
    pub depths: Vec<u32>,
    /// The sizes of reads, each at least 512.
    pub block_bytes: Vec<u32>,
    /// The places of blocks that are written and synced.
    pub places: Vec<SyncPlace>,
    /// The modes of reads and of writes.
    pub modes: Vec<IoMode>,
    /// The size of the file that is read.
    pub file_bytes: u64,
    /// The time for which each rate is measured.
    pub time: Duration,
}

impl<'a> FloorRequest<'a> {
    /// Returns a measurement of a directory at the depth of 1, with the usual sizes of pages, that
    /// takes 20 s.
    pub fn new(dir: &'a Path) -> Self {
        Self {
            dir,
            depths: vec![1],
            block_bytes: vec![4 << 10, 8 << 10, 16 << 10],
            places: vec![SyncPlace::Append, SyncPlace::Overwrite],
            modes: vec![IoMode::Direct, IoMode::Buffered],
            file_bytes: 1 << 30,
            time: Duration::from_secs(2),
        }
    }

    /// Returns the time that the measurement takes, without writing the file.
    pub fn time_total(&self) -> Duration {
        let requests = self.depths.len() * self.block_bytes.len() + self.places.len();
        self.time * (requests * self.modes.len()) as u32
    }

    /// Returns the space that must be free: that of the file, and as much as keeps the file system
    /// from being full.
    fn needed_bytes(&self) -> u64 {
        self.file_bytes + self.file_bytes / 4
    }

    fn check(&self) -> Result<(), FloorError> {
        let path = || self.dir.to_owned();
        let most = self.depths.iter().max().copied().unwrap_or(1);
        let largest = self.block_bytes.iter().max().copied().unwrap_or(0);
        if u64::from(most) * u64::from(largest) > self.file_bytes {
            return Err(FloorError::SmallFile { depth: most, block_bytes: largest });
        }

        let stat = statfs(self.dir)
            .map_err(|errno| FloorError::Io { dir: path(), source: io::Error::from(errno) })?;
        if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(stat.f_type as u64)) {
            return Err(FloorError::NoDisk { dir: path() });
        }
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_bsize as u64);
        if free_bytes < self.needed_bytes() {
            return Err(FloorError::LittleSpace {
                dir: path(),
                needed_mib: self.needed_bytes() >> 20,
                free_mib: free_bytes >> 20,
            });
        }
        Ok(())
    }
}

/// The reason why a floor was not measured.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// The file system has no disk.
    #[error("`{}` is on a file system in memory, which has no disk", dir.display())]
    NoDisk {
        /// The directory.
        dir: PathBuf,
    },
    /// The file system is nearly full.
    #[error(
        "`{}` has {free_mib} MiB free, and measuring its disk needs {needed_mib} MiB",
        dir.display()
    )]
    LittleSpace {
        /// The directory.
        dir: PathBuf,
        /// The space that must be free.
        needed_mib: u64,
        /// The space that is.
        free_mib: u64,
    },
    /// The file has fewer blocks than there are threads.
    #[error("the file is too small for {} of {block_bytes} bytes at once", counted(*depth as usize, "read"))]
    SmallFile {
        /// The number of threads.
        depth: u32,
        /// The size of a block.
        block_bytes: u32,
    },
    /// A file could not be made, written or read.
    #[error("cannot measure the disk of `{}`", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// File systems in memory, by `f_type` of `statfs(2)`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Measures the floor of the disk of a directory. Its files are removed at the end. Returns `None`
/// if `stop` was set meanwhile.
///
/// A rate that the file system cannot show has a note instead: one without `O_DIRECT`, and reads
/// that did not reach a disk.
///
/// # Errors
/// Fails if the file system has no disk or too little space, or a file cannot be made, written or
/// read.
pub fn measure_disk_floor(
    request: &FloorRequest<'_>,
    stop: &AtomicBool,
) -> Result<Option<DiskFloor>, FloorError> {
    request.check()?;
    let failed = |source| FloorError::Io { dir: request.dir.to_owned(), source };
    let mut floor = DiskFloor { file_bytes: request.file_bytes, ..DiskFloor::default() };

    reads::measure(request, stop, &mut floor).map_err(failed)?;
    syncs::measure(request, stop, &mut floor).map_err(failed)?;

    // A rate that was cut short may be that of a moment.
    let is_stopped = stop.load(Ordering::Relaxed);
    Ok((!is_stopped).then_some(floor))
}

/// The requests of one thread.
struct Requests {
    times_ns: Vec<u64>,
    elapsed: Duration,
}

/// Returns the rate of all threads together. They began together, and each ended with its last
/// request.
fn rate_of(threads: Vec<Requests>) -> IoRate {
    let rates = threads.iter().map(|thread| {
        let seconds = thread.elapsed.as_secs_f64();
        if seconds > 0.0 { thread.times_ns.len() as f64 / seconds } else { 0.0 }
    });
    let requests_per_s = rates.sum();

    let mut times_ns: Vec<u64> = threads.into_iter().flat_map(|thread| thread.times_ns).collect();
    times_ns.sort_unstable();
    IoRate {
        count: times_ns.len() as u64,
        requests_per_s,
        p50_ns: percentile(&times_ns, 50),
        p99_ns: percentile(&times_ns, 99),
        max_ns: percentile(&times_ns, 100),
    }
}

#[cfg(test)]
mod tests;
