use std::os::unix::fs::symlink;

use super::*;

/// A machine with one disk, two partitions, and an array and a volume above disks.
fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let block = |name: &str, number: &str, is_partition: bool| {
        let path = dir.path().join("sys/devices").join(name);
        fs_err::create_dir_all(&path).unwrap();
        fs_err::write(path.join("dev"), format!("{number}\n")).unwrap();
        if is_partition {
            fs_err::write(path.join("partition"), "1\n").unwrap();
        }
        let links = dir.path().join("sys/dev/block");
        fs_err::create_dir_all(&links).unwrap();
        symlink(format!("../../devices/{name}"), links.join(number)).unwrap();
    };
    let put_below = |upper: &str, lower: &str| {
        let slaves = dir.path().join("sys/devices").join(upper).join("slaves");
        fs_err::create_dir_all(&slaves).unwrap();
        let name = Path::new(lower).file_name().unwrap();
        symlink(dir.path().join("sys/devices").join(lower), slaves.join(name)).unwrap();
    };
    block("nvme0n1", "259:0", false);
    block("nvme0n1/nvme0n1p1", "259:1", true);
    block("nvme1n1", "259:2", false);
    block("md127", "9:127", false);
    block("dm-0", "252:0", false);
    put_below("md127", "nvme0n1/nvme0n1p1");
    put_below("md127", "nvme1n1");
    put_below("dm-0", "md127");
    fs_err::create_dir_all(dir.path().join("proc")).unwrap();
    let stats = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proc/6.8-server/proc/diskstats");
    fs_err::copy(stats, dir.path().join("proc/diskstats")).unwrap();
    dir
}

fn number(text: &str) -> Device {
    Device::parse(text).unwrap()
}

/// Samples a set of devices of that machine.
fn row(dir: &tempfile::TempDir, devices: &[&str]) -> Sample {
    let proc = Proc::at(dir.path());
    let devices: BTreeSet<Device> = devices.iter().map(|text| number(text)).collect();
    let mut disks = Disks::new(&proc, devices);
    let mut row = Sample::new();
    disks.sample(&proc, &mut Vec::new(), &mut row).unwrap();
    row
}

#[test]
fn a_partition_counts_its_own_requests_and_its_disks_flushes() {
    let dir = machine();
    let row = row(&dir, &["259:1"]);
    assert_eq!(row.get("disk_read_count"), Some(990));
    assert_eq!(row.get("disk_write_bytes"), Some(159_000 * 512));
    assert_eq!(row.get("disk_write_ns"), Some(890_000_000));
    assert_eq!(
        (row.get("disk_flush_count"), row.get("disk_flush_ns")),
        (Some(300), Some(100_000_000))
    );
    assert_eq!(
        (row.get("disk_inflight_count"), row.get("disk_io_ns")),
        (Some(1), Some(1_190_000_000))
    );
}

#[test]
fn an_array_is_not_added_to_its_members() {
    let dir = machine();
    let row = row(&dir, &["9:127"]);
    assert_eq!((row.get("disk_read_count"), row.get("disk_write_count")), (Some(1500), Some(3500)));
    // The array has no count of flushes, so this is the sum of its disks.
    assert_eq!(row.get("disk_flush_count"), Some(601));
}

#[test]
fn a_volume_reaches_its_disks_through_an_array_and_a_partition() {
    let dir = machine();
    let proc = Proc::at(dir.path());
    let disks: Vec<String> =
        number("252:0").disks(&proc).iter().map(|disk| disk.name(&proc)).collect();
    assert_eq!(disks, ["nvme0n1", "nvme1n1"]);
    assert_eq!(number("259:1").name(&proc), "nvme0n1p1");
    assert_eq!(number("7:7").name(&proc), "7:7");
}

#[test]
fn two_devices_are_summed_and_their_common_disks_count_once() {
    let dir = machine();
    let row = row(&dir, &["252:0", "9:127"]);
    assert_eq!(row.get("disk_read_count"), Some(1540));
    assert_eq!(row.get("disk_flush_count"), Some(601));
}

#[test]
fn a_device_that_is_not_listed_makes_the_disk_unknown() {
    let dir = machine();
    let row = row(&dir, &["259:1", "8:0"]);
    assert_eq!((row.get("disk_read_count"), row.get("disk_flush_count")), (None, None));
}

#[test]
fn an_old_kernel_has_no_discards_and_no_flushes() {
    let dir = machine();
    let stats =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proc/4.14-bare-metal/proc/diskstats");
    fs_err::copy(stats, dir.path().join("proc/diskstats")).unwrap();
    let row = row(&dir, &["8:1"]);
    assert_eq!(row.get("disk_write_count"), Some(8_912_233));
    assert_eq!((row.get("disk_discard_count"), row.get("disk_flush_count")), (None, None));
}

#[test]
fn a_time_continues_when_the_kernels_counter_wraps() {
    let mut time = UnwrappedCounter::default();
    let ms = |ms: u64| ms * 1_000_000;
    assert_eq!(time.ns(4_294_967_000), ms(4_294_967_000));
    assert_eq!(time.ns(100), ms(4_294_967_396));
    assert_eq!(time.ns(4_294_967_295), ms((1 << 32) + 4_294_967_295));
    assert_eq!(time.ns(90), ms((2 << 32) + 90));
}

#[test]
fn a_time_stays_when_a_counter_decreases_or_restarts() {
    let mut time = UnwrappedCounter::default();
    let ms = |ms: u64| ms * 1_000_000;
    assert_eq!(time.ns(70_000), ms(70_000));
    assert_eq!(time.ns(69_999), ms(70_000));
    assert_eq!(time.ns(0), ms(70_000));
    assert_eq!(time.ns(70_004), ms(70_004));
}

#[test]
fn an_anonymous_device_is_explained_by_its_mount() {
    let text = "1 0 0:30 / / rw - overlay overlay rw,upperdir=/u\n\
                2 1 0:31 / /shm rw - tmpfs none rw\n\
                3 1 0:32 / /b rw - btrfs /dev/nvme0n1p1 rw\n\
                4 1 0:33 / /n rw - nfs4 server:/export rw\n";
    let mounts = parse_mountinfo(text);
    let dir = machine();
    let proc = Proc::at(dir.path());
    let members = dir.path().join("sys/fs/btrfs/0f1e/devices");
    fs_err::create_dir_all(&members).unwrap();
    let number_of = |source: &str| (source == "/dev/nvme0n1p1").then(|| number("259:1"));
    let find = |path: &str| resolve(&proc, path.as_ref(), number("0:99"), &mounts, number_of);

    assert_eq!(
        find("/x").unwrap_err(),
        "`/x` is on overlay, which does not show which disk is below it"
    );
    assert_eq!(
        find("/shm/x").unwrap_err(),
        "`/shm/x` is on tmpfs, which is in memory and has no disk"
    );
    assert_eq!(find("/n/x").unwrap_err(), "`/n/x` is on nfs4, which names no block device");
    assert_eq!(find("/b/x").unwrap(), [number("259:1")]);
    // Adds a second device to the file system.
    symlink(dir.path().join("sys/devices/nvme0n1/nvme0n1p1"), members.join("nvme0n1p1")).unwrap();
    symlink(dir.path().join("sys/devices/nvme1n1"), members.join("nvme1n1")).unwrap();
    assert_eq!(find("/b/x").unwrap(), [number("259:1"), number("259:2")]);
    // A device with a number needs no mount.
    let direct = resolve(&proc, "/x".as_ref(), number("8:1"), &[], |_| None);
    assert_eq!(direct.unwrap(), [number("8:1")]);
}

#[test]
fn a_missing_directory_is_on_the_device_of_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let real = fs_err::canonicalize(dir.path()).unwrap();
    assert_eq!(nearest_existing(&dir.path().join("a/b")), Some(real));
}
