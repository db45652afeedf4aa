//! Writes of one block, each followed by `fdatasync`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use fs_err::File;
use fs_err::os::unix::fs::FileExt as _;
use rustix::fs::{FallocateFlags, fallocate};
use words::{DiskFloor, IoMode, IoRate, SyncFloor, SyncPlace};

use super::direct::{AlignedBlock, is_unsupported, set_mode};
use super::{FloorRequest, Requests, rate_of};
use crate::scratch::ScratchFile;
use crate::timing::{now, whole_ns};

/// The size of a block.
const BLOCK_BYTES: usize = 4096;

/// The most blocks of a file that grows. Its measurement ends before it is over only on a disk with
/// more syncs than this in its time.
const APPENDED_BLOCKS: u64 = 65_536;

/// The blocks of a file that is used again and again.
const OVERWRITTEN_BLOCKS: u64 = 1024;

/// Measures the rate at each place, in both modes.
///
/// The file has a name, because some file systems skip the flush of a file without one.
pub(super) fn measure(
    request: &FloorRequest<'_>,
    stop: &AtomicBool,
    floor: &mut DiskFloor,
) -> io::Result<()> {
    for &place in &request.places {
        for &mode in &request.modes {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let scratch = ScratchFile::create(request.dir)?;
            let measured = rate(&scratch.file, place, mode, request, stop);
            scratch.remove()?;
            match measured {
                Ok(rate) => {
                    let block_bytes = BLOCK_BYTES as u32;
                    floor.syncs.push(SyncFloor { place, block_bytes, mode, rate });
                }
                Err(error) if is_unsupported(&error, mode) => {
                    let place = place.name();
                    floor
                        .notes
                        .push(format!("direct writes that {place}: the file system refuses them"));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn rate(
    file: &File,
    place: SyncPlace,
    mode: IoMode,
    request: &FloorRequest<'_>,
    stop: &AtomicBool,
) -> io::Result<IoRate> {
    let mut block = AlignedBlock::new(BLOCK_BYTES);
    block.bytes().fill(0x5a);
    let blocks = lay_out(file, place, request, block.bytes())?;
    set_mode(file, mode)?;

    let mut times_ns = Vec::new();
    let start = now();
    let mut last = start;
    for index in 0.. {
        // What is written must differ from what is there.
        block.bytes()[..8].copy_from_slice(&u64::to_le_bytes(index));
        file.write_all_at(block.bytes(), index % blocks * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        let done = now();
        times_ns.push(whole_ns(done - last));
        last = done;

        let is_full = place == SyncPlace::Append && index + 1 == blocks;
        if is_full || done - start >= request.time || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(rate_of(vec![Requests { times_ns, elapsed: last - start }]))
}

/// Prepares the file, and returns the number of its blocks: space for those that are appended, as
/// fio allocates it, or blocks that are overwritten.
fn lay_out(
    file: &File,
    place: SyncPlace,
    request: &FloorRequest<'_>,
    block: &[u8],
) -> io::Result<u64> {
    let most = (request.file_bytes / BLOCK_BYTES as u64).max(1);
    let blocks = match place {
        SyncPlace::Append => {
            let blocks = most.min(APPENDED_BLOCKS);
            // A file system that cannot allocate lets the file grow with each write.
            let _ = fallocate(file, FallocateFlags::empty(), 0, blocks * BLOCK_BYTES as u64);
            blocks
        }
        SyncPlace::Overwrite => {
            let blocks = most.min(OVERWRITTEN_BLOCKS);
            for index in 0..blocks {
                file.write_all_at(block, index * BLOCK_BYTES as u64)?;
            }
            blocks
        }
    };
    file.sync_all()?;
    Ok(blocks)
}
