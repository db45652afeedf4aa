//! Tests of the measurement of a disk's floor. None of them looks at a speed.

use words::SyncPlace;

use super::*;

/// Returns a directory on a disk: the folder of the build is never in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn small(dir: &Path) -> FloorRequest<'_> {
    FloorRequest {
        dir,
        depths: vec![1, 3],
        block_bytes: vec![4096, 16_384],
        file_bytes: 4 << 20,
        time: Duration::from_millis(20),
        ..FloorRequest::new(dir)
    }
}

fn is_empty(dir: &Path) -> bool {
    fs_err::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn each_rate_is_measured_or_has_a_note_and_no_file_is_left() {
    let dir = on_disk();
    let request = small(dir.path());
    let floor = measure_disk_floor(&request, &AtomicBool::new(false)).unwrap().unwrap();

    // Two sizes at two depths, and two places, each in two modes.
    assert_eq!(floor.reads.len() + floor.syncs.len() + floor.notes.len(), 12, "{floor:?}");
    assert_eq!(request.time_total(), 12 * request.time);
    let reads = floor.reads.iter().map(|read| &read.rate);
    let mut rates = reads.chain(floor.syncs.iter().map(|sync| &sync.rate));
    assert!(rates.all(|rate| {
        rate.count > 0
            && rate.requests_per_s > 0.0
            && rate.p50_ns <= rate.p99_ns
            && rate.p99_ns <= rate.max_ns
    }));
    let has = |place| {
        let mut syncs = floor.syncs.iter();
        syncs.any(|sync| (sync.place, sync.mode) == (place, IoMode::Buffered))
    };
    assert!(has(SyncPlace::Append) && has(SyncPlace::Overwrite));
    assert!(is_empty(dir.path()));
}

#[test]
fn no_block_is_read_twice_for_one_rate() {
    let dir = on_disk();
    let time = Duration::from_secs(600);
    let request =
        FloorRequest { file_bytes: 1 << 20, block_bytes: vec![4096], time, ..small(dir.path()) };
    let mut floor = DiskFloor::default();
    reads::measure(&request, &AtomicBool::new(false), &mut floor).unwrap();
    // 256 blocks: one thread reads all of them, and three threads 85 each.
    for read in &floor.reads {
        assert_eq!(read.rate.count, if read.depth == 1 { 256 } else { 255 });
    }
}

#[test]
fn a_measurement_that_is_stopped_has_no_result_and_leaves_no_file() {
    let dir = on_disk();
    let floor = measure_disk_floor(&small(dir.path()), &AtomicBool::new(true)).unwrap();
    assert_eq!(floor, None);
    assert!(is_empty(dir.path()));
}

#[test]
fn a_floor_needs_a_disk_with_space_and_a_file_of_enough_blocks() {
    let dir = on_disk();
    let message = |request: &FloorRequest<'_>| {
        measure_disk_floor(request, &AtomicBool::new(false)).unwrap_err().to_string()
    };

    let huge = FloorRequest { file_bytes: 1 << 60, ..small(dir.path()) };
    assert!(message(&huge).contains("MiB free"), "{}", message(&huge));
    let deep = FloorRequest { depths: vec![1025], ..small(dir.path()) };
    assert!(message(&deep).contains("too small for 1025 reads"), "{}", message(&deep));
    let missing = dir.path().join("missing");
    let missing = FloorRequest { dir: &missing, ..small(dir.path()) };
    assert!(message(&missing).contains("missing"), "{}", message(&missing));

    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        let message = message(&FloorRequest { dir: memory, ..small(memory) });
        assert!(message.contains("has no disk"), "{message}");
    }
    assert!(is_empty(dir.path()));
}

#[test]
fn the_rate_of_threads_is_the_sum_of_theirs() {
    let thread = |count: u64, ms| Requests {
        times_ns: (1..=count).collect(),
        elapsed: Duration::from_millis(ms),
    };
    let rate = rate_of(vec![thread(100, 1000), thread(50, 250)]);
    assert_eq!((rate.count, rate.requests_per_s), (150, 300.0));
    assert_eq!((rate.p50_ns, rate.p99_ns, rate.max_ns), (38, 99, 100));
    assert_eq!(rate_of(Vec::new()), IoRate::default());
}
