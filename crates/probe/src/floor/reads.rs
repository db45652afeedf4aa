//! Random reads of a file that nothing has read before.

use std::io;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fs_err::File;
use fs_err::os::unix::fs::FileExt as _;
use rustix::fs::{Advice, fadvise};
use words::{DiskFloor, IoMode, IoRate, Random, ReadFloor, counted};

use super::direct::{AlignedBlock, is_unsupported, set_mode};
use super::{FloorRequest, Requests, rate_of};
use crate::Proc;
use crate::parse::parse_process_io;
use crate::timing::{now, whole_ns};

/// The bytes of one write while the file is made.
const CHUNK_BYTES: usize = 1 << 20;

/// The seed of the file's contents and of the orders in which blocks are read.
const SEED: u64 = 0x00D1_5CF1_0042;

/// The least share of the bytes read that must come from storage.
const FROM_STORAGE: f64 = 0.95;

/// Measures the rate at each size and depth, in both modes.
pub(super) fn measure(
    request: &FloorRequest<'_>,
    stop: &AtomicBool,
    floor: &mut DiskFloor,
) -> io::Result<()> {
    if request.depths.is_empty() {
        return Ok(());
    }
    let Some(file) = written_file(request.dir, request.file_bytes, stop)? else {
        return Ok(());
    };

    for &block_bytes in &request.block_bytes {
        for &depth in &request.depths {
            for &mode in &request.modes {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let load = ReadLoad { file: &file, depth, block_bytes, time: request.time, stop };
                match load.measure(mode, request.file_bytes) {
                    Ok(ReadRate { rate, is_from_storage: true }) => {
                        floor.reads.push(ReadFloor { depth, block_bytes, mode, rate });
                    }
                    Ok(_) => floor.notes.push(format!(
                        "{} of {block_bytes} bytes, {}: they did not all reach a disk",
                        counted(depth as usize, "read"),
                        mode.name()
                    )),
                    Err(error) if is_unsupported(&error, mode) => floor.notes.push(format!(
                        "direct reads of {block_bytes} bytes: the file system refuses them"
                    )),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// Makes a file whose blocks differ, so that no layer below compresses or shares them. It has no
/// name, so nothing is left of it when this process ends. Returns `None` if `stop` was set.
fn written_file(dir: &Path, bytes: u64, stop: &AtomicBool) -> io::Result<Option<File>> {
    let file = tempfile::tempfile_in(dir)?;
    let file = File::from_parts(file, dir.join("(a file without a name)"));

    let mut random = Random::new(SEED);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < bytes {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let len = bytes.saturating_sub(at).min(CHUNK_BYTES as u64);
        file.write_all_at(&chunk[..len as usize], at)?;
        at += len;
    }
    file.sync_all()?;
    Ok(Some(file))
}

/// Reads of one size by some threads.
struct ReadLoad<'a> {
    file: &'a File,
    depth: u32,
    block_bytes: u32,
    time: Duration,
    stop: &'a AtomicBool,
}

/// A rate of reads.
struct ReadRate {
    rate: IoRate,
    /// The reads were not answered from memory.
    is_from_storage: bool,
}

impl ReadLoad<'_> {
    fn measure(&self, mode: IoMode, file_bytes: u64) -> io::Result<ReadRate> {
        set_mode(self.file, mode)?;
        fadvise(self.file, 0, None, Advice::Random)?;
        fadvise(self.file, 0, None, Advice::DontNeed)?;

        let blocks = shuffled(file_bytes / u64::from(self.block_bytes));
        let before = bytes_from_storage();
        let rate = self.run(&blocks)?;
        let after = bytes_from_storage();

        let read = (rate.count * u64::from(self.block_bytes)) as f64;
        let from_storage = before.zip(after).map(|(before, after)| (after - before) as f64);
        let is_from_storage = from_storage.is_some_and(|bytes| bytes >= FROM_STORAGE * read);
        Ok(ReadRate { rate, is_from_storage })
    }

    /// Lets each thread read blocks of its own, until the time is up or it has read them all.
    fn run(&self, blocks: &[u32]) -> io::Result<IoRate> {
        let blocks_each = blocks.len() / self.depth as usize;
        let parts = blocks.chunks_exact(blocks_each).take(self.depth as usize);
        let gate = &RwLock::new(());
        let threads: io::Result<Vec<Requests>> = std::thread::scope(|scope| {
            // The threads begin together when all of them are there, or end if one cannot be made.
            let closed = gate.write();
            let mut threads = Vec::new();
            for part in parts {
                let thread = std::thread::Builder::new().name("disk-floor".into());
                threads.push(thread.spawn_scoped(scope, move || {
                    drop(gate.read());
                    self.read(part)
                })?);
            }
            drop(closed);

            let results = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread that reads panicked")))
            });
            results.collect()
        });
        Ok(rate_of(threads?))
    }

    /// Reads blocks one after the other.
    fn read(&self, blocks: &[u32]) -> io::Result<Requests> {
        let mut block = AlignedBlock::new(self.block_bytes as usize);
        let mut times_ns = Vec::with_capacity(blocks.len());

        let start = now();
        let mut last = start;
        for &index in blocks {
            self.file
                .read_exact_at(block.bytes(), u64::from(index) * u64::from(self.block_bytes))?;
            let done = now();
            times_ns.push(whole_ns(done - last));
            last = done;
            if done - start >= self.time || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(Requests { times_ns, elapsed: last - start })
    }
}

/// Returns the numbers of all blocks in a random order.
fn shuffled(count: u64) -> Vec<u32> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let mut blocks: Vec<u32> = (0..count).collect();
    let mut random = Random::stream(SEED, &[u64::from(count)]);
    for last in (1..blocks.len()).rev() {
        blocks.swap(last, random.below(last as u64 + 1) as usize);
    }
    blocks
}

/// Returns the bytes that this process has read from storage; `None` if the kernel does not say.
fn bytes_from_storage() -> Option<u64> {
    let text = Proc::live().text("proc/self/io")?;
    Some(parse_process_io(&text).ok()?.read_bytes)
}
