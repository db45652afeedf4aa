//! Measures one rate of the floor of a disk, for `cargo xtask bench disk`: `DIR MILLISECONDS MODE
//! read DEPTH BYTES` or `DIR MILLISECONDS MODE sync PLACE`.

#![allow(clippy::print_stdout, reason = "it prints a figure")]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use probe::{FloorRequest, measure_disk_floor};
use words::{IoMode, SyncPlace};

/// The size of the file that is read.
const FILE_BYTES: u64 = 128 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (dir, milliseconds, mode, what) = match arguments.as_slice() {
        [dir, milliseconds, mode, what @ ..] => (dir, milliseconds, mode, what),
        _ => return Err("expected `DIR MILLISECONDS MODE ...`".into()),
    };
    let nothing = FloorRequest {
        depths: Vec::new(),
        block_bytes: Vec::new(),
        places: Vec::new(),
        modes: vec![if *mode == "direct" { IoMode::Direct } else { IoMode::Buffered }],
        file_bytes: FILE_BYTES,
        time: Duration::from_millis(milliseconds.parse()?),
        ..FloorRequest::new(Path::new(dir))
    };

    let request = match what {
        ["read", depth, bytes] => FloorRequest {
            depths: vec![depth.parse()?],
            block_bytes: vec![bytes.parse()?],
            ..nothing
        },
        ["sync", "append"] => FloorRequest { places: vec![SyncPlace::Append], ..nothing },
        ["sync", "overwrite"] => FloorRequest { places: vec![SyncPlace::Overwrite], ..nothing },
        _ => return Err("expected `read DEPTH BYTES` or `sync PLACE`".into()),
    };

    let floor = measure_disk_floor(&request, &AtomicBool::new(false))?.unwrap_or_default();
    let reads = floor.reads.iter().map(|read| read.rate);
    let rate = reads.chain(floor.syncs.iter().map(|sync| sync.rate)).next();
    let rate = rate.ok_or_else(|| floor.notes.join("; "))?;
    println!("per_s: {:.3}", rate.requests_per_s);
    Ok(())
}
