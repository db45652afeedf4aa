//! The block devices that hold the data, and their counters.
//!
//! Counters come from the device that contains the file system: a partition, a whole disk, an `md`
//! or `dm` device. The devices below it (the members of an array, the disk of a partition) see the
//! same requests again, and are not added. Flushes are the exception. The kernel counts them only
//! for whole disks, so they come from the disks at the bottom, and include the flushes of other
//! users of these disks.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::columns::{ColumnIndex, Sample};
use crate::device::Device;
use crate::parse::{DiskLine, Mount, mount_of, parse_diskstats, parse_mountinfo};
use crate::{ProbeError, Proc};

/// Returns `path`, or its nearest ancestor that exists, without symbolic links. The directory may
/// not exist yet.
pub(crate) fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|ancestor| fs_err::canonicalize(ancestor).ok())
}

/// Returns the mounts that this process sees; none if the list cannot be read.
pub(crate) fn mounts(proc: &Proc) -> Vec<Mount> {
    let text = proc.text("proc/self/mountinfo");
    parse_mountinfo(&text.unwrap_or_default())
}

/// Returns the devices that contain the file system of `path`, or the reason why they are unknown.
pub(crate) fn devices_of(
    proc: &Proc,
    path: &Path,
    mounts: &[Mount],
) -> Result<Vec<Device>, String> {
    let existing = nearest_existing(path)
        .ok_or_else(|| format!("the path `{}` cannot be accessed", path.display()))?;
    let number = fs_err::metadata(&existing).map_err(|error| error.to_string())?.dev();
    resolve(proc, &existing, Device::from_number(number), mounts, |source| {
        Some(Device::from_number(fs_err::metadata(source).ok()?.rdev()))
    })
}

/// Like [`devices_of`], for a path whose `st_dev` is known. `number_of` returns the number of a
/// device file.
fn resolve(
    proc: &Proc,
    path: &Path,
    device: Device,
    mounts: &[Mount],
    number_of: impl Fn(&str) -> Option<Device>,
) -> Result<Vec<Device>, String> {
    if device.major != 0 {
        return Ok(vec![device]);
    }

    // An anonymous device number: only the source of the mount says which device it is.
    let mount = mount_of(mounts, path)
        .ok_or_else(|| format!("the mount point of `{}` is unknown", path.display()))?;
    let fs_type = mount.fs_type.as_str();
    let no_device = match fs_type {
        "tmpfs" | "ramfs" => Some("which is in memory and has no disk"),
        "overlay" | "aufs" => Some("which does not show which disk is below it"),
        _ => None,
    };
    if let Some(why) = no_device {
        return Err(format!("`{}` is on {fs_type}, {why}", path.display()));
    }

    // bcachefs names all its devices, joined with colons.
    let devices: Vec<Device> = mount
        .source
        .split(':')
        .filter(|source| source.starts_with("/dev/"))
        .filter_map(number_of)
        .filter(|device| device.major != 0)
        .collect();
    if devices.is_empty() {
        return Err(format!("`{}` is on {fs_type}, which names no block device", path.display()));
    }
    Ok(if fs_type == "btrfs" { with_btrfs_members(proc, devices) } else { devices })
}

/// Returns all devices of a btrfs file system. Its mount names only one of them;
/// `/sys/fs/btrfs/UUID/devices` has them all.
fn with_btrfs_members(proc: &Proc, devices: Vec<Device>) -> Vec<Device> {
    for file_system in proc.names("sys/fs/btrfs") {
        let members = Device::in_directory(proc, &format!("sys/fs/btrfs/{file_system}/devices"));
        if devices.iter().any(|device| members.contains(device)) {
            return members;
        }
    }
    devices
}

/// Extends a 32-bit counter of milliseconds to 64 bits. At a queue length of 32, the kernel's
/// counter wraps after a day and a half.
#[derive(Clone, Copy, Debug, Default)]
struct UnwrappedCounter {
    last: u64,
    wrapped_ms: u64,
}

impl UnwrappedCounter {
    fn ns(&mut self, ms: u64) -> u64 {
        // A decrease by less than half of 32 bits is no wrap: the device was gone for a moment, or
        // the kernel summed a moving value. Then the counter keeps its last value.
        let decrease = self.last.saturating_sub(ms);
        if decrease > 1 << 31 && self.last <= u64::from(u32::MAX) {
            self.wrapped_ms += 1 << 32;
            self.last = ms;
        }
        self.last = self.last.max(ms);
        (self.wrapped_ms + self.last) * 1_000_000
    }
}

/// The unit of a counter in `/proc/diskstats`.
#[derive(Clone, Copy)]
enum Unit {
    Requests,
    /// 512 bytes, independent of the device's block size.
    Sectors,
    /// Printed as a 32-bit number.
    Milliseconds,
}

/// A counter of a device: the column of its sum over the devices, its index in a line, and its
/// unit.
type DiskCounter = (ColumnIndex, usize, Unit);

/// The counters of the devices that contain file systems.
const COUNTERS: [DiskCounter; 12] = [
    (ColumnIndex::DiskReadCount, 0, Unit::Requests),
    (ColumnIndex::DiskReadBytes, 2, Unit::Sectors),
    (ColumnIndex::DiskReadNs, 3, Unit::Milliseconds),
    (ColumnIndex::DiskWriteCount, 4, Unit::Requests),
    (ColumnIndex::DiskWriteBytes, 6, Unit::Sectors),
    (ColumnIndex::DiskWriteNs, 7, Unit::Milliseconds),
    (ColumnIndex::DiskInflight, 8, Unit::Requests),
    (ColumnIndex::DiskIoNs, 9, Unit::Milliseconds),
    (ColumnIndex::DiskQueueNs, 10, Unit::Milliseconds),
    (ColumnIndex::DiskDiscardCount, 11, Unit::Requests),
    (ColumnIndex::DiskDiscardBytes, 13, Unit::Sectors),
    (ColumnIndex::DiskDiscardNs, 14, Unit::Milliseconds),
];

/// The counters of the whole disks below these devices.
const FLUSHES: [DiskCounter; 2] = [
    (ColumnIndex::DiskFlushCount, 15, Unit::Requests),
    (ColumnIndex::DiskFlushNs, 16, Unit::Milliseconds),
];

/// A device, and its counters of milliseconds by their index in a line.
#[derive(Clone, Debug)]
struct CountedDevice {
    device: Device,
    times: [UnwrappedCounter; 17],
}

impl CountedDevice {
    fn new(device: Device) -> Self {
        Self { device, times: Default::default() }
    }
}

/// Sets a column to the sum of a counter over the devices. If one device lacks the counter or is
/// not listed (a container may hide it), the sum is unknown.
fn sum_counter(
    (column, index, unit): DiskCounter,
    devices: &mut [CountedDevice],
    lines: &[DiskLine],
    row: &mut Sample,
) {
    let mut sum = Some(0_u64);
    for CountedDevice { device, times } in devices {
        let line = lines.iter().find(|line| line.device == *device);
        let counter = line.and_then(|line| line.counters.get(index));
        let value = counter.map(|&counter| match unit {
            Unit::Requests => counter,
            Unit::Sectors => counter.saturating_mul(512),
            Unit::Milliseconds => times[index].ns(counter),
        });
        sum = match (sum, value) {
            (Some(sum), Some(value)) => Some(sum.saturating_add(value)),
            _ => None,
        };
    }
    row.set(column, sum);
}

/// The devices of the data, and the state of their counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disks {
    /// The devices that contain the file systems.
    devices: Vec<CountedDevice>,
    /// The whole disks below these devices.
    disks: Vec<CountedDevice>,
    /// The reasons why a path has no device.
    pub notes: Vec<String>,
}

impl Disks {
    /// Finds the devices of all `paths`.
    pub fn find<'p>(proc: &Proc, paths: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let mounts = mounts(proc);
        let mut devices = BTreeSet::new();
        let mut notes = Vec::new();
        for path in paths {
            match devices_of(proc, path, &mounts) {
                Ok(found_devices) => devices.extend(found_devices),
                Err(note) if notes.contains(&note) => {}
                Err(note) => notes.push(note),
            }
        }
        Self { notes, ..Self::new(proc, devices) }
    }

    fn new(proc: &Proc, devices: BTreeSet<Device>) -> Self {
        let disks: BTreeSet<Device> =
            devices.iter().flat_map(|device| device.disks(proc)).collect();
        Self {
            devices: devices.into_iter().map(CountedDevice::new).collect(),
            disks: disks.into_iter().map(CountedDevice::new).collect(),
            notes: Vec::new(),
        }
    }

    /// Returns the names of the counted devices.
    pub fn names(&self, proc: &Proc) -> Vec<String> {
        self.devices.iter().map(|counted| counted.device.name(proc)).collect()
    }

    /// Sets the disk's columns.
    pub fn sample(
        &mut self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
        row: &mut Sample,
    ) -> Result<(), ProbeError> {
        if self.devices.is_empty() {
            return Ok(());
        }

        let is_counted =
            |device| self.devices.iter().chain(&self.disks).any(|counted| counted.device == device);
        let lines =
            proc.optional("proc/diskstats", buffer, |text| parse_diskstats(text, is_counted))?;
        let Some(lines) = lines else {
            return Ok(());
        };

        for counter in COUNTERS {
            sum_counter(counter, &mut self.devices, &lines, row);
        }
        for counter in FLUSHES {
            sum_counter(counter, &mut self.disks, &lines, row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
