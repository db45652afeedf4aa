//! The block devices that hold the data, and their counters.
//!
//! The device that counts is the one that the file system lies on: a partition, a whole disk, an `md` or `dm` device.
//! What lies below it (the members of an array, the disk of a partition) sees the same requests again and is not
//! added. Flushes are the exception: the kernel counts them for whole disks only, not for partitions, and not for
//! `md` and `dm`; they are taken from the whole disks at the bottom, and include those that others on these disks ask for.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::columns::{Place, Sample};
use crate::parse::{DiskLine, Mount, mount_of, parse_diskstats, parse_mountinfo};
use crate::{ProbeError, Proc};

/// How far below a device its disks may lie: LVM on LUKS on RAID on partitions needs five.
const DEPTH_MAX: u32 = 16;

/// A block device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Device {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl Device {
    fn of_number(number: u64) -> Self {
        Self {
            major: rustix::fs::major(number),
            minor: rustix::fs::minor(number),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    /// Its directory in `/sys`, a symbolic link.
    pub fn directory(self) -> String {
        format!("sys/dev/block/{self}")
    }

    /// Its name, `sda1`; its number where `/sys` does not have it.
    pub fn name(self, proc: &Proc) -> String {
        fs_err::canonicalize(proc.path(self.directory()))
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_else(|| self.to_string())
    }

    /// The whole disk that a partition lies on; itself otherwise.
    pub fn whole(self, proc: &Proc) -> Self {
        let directory = proc.path(self.directory());
        if !directory.join("partition").exists() {
            return self;
        }
        // The directory of a partition lies in that of its disk.
        fs_err::canonicalize(directory)
            .ok()
            .and_then(|path| fs_err::read_to_string(path.parent()?.join("dev")).ok())
            .and_then(|text| Self::parse(&text))
            .unwrap_or(self)
    }

    /// The whole disks at the bottom of it.
    pub fn disks(self, proc: &Proc) -> BTreeSet<Self> {
        let mut disks = BTreeSet::new();
        self.add_disks(proc, DEPTH_MAX, &mut disks);
        disks
    }

    /// The devices that a directory names.
    fn listed(proc: &Proc, directory: &str) -> Vec<Self> {
        let names = proc.names(directory).into_iter();
        let number = |name| Self::parse(&proc.text(format!("{directory}/{name}/dev"))?);
        names.filter_map(number).collect()
    }

    fn add_disks(self, proc: &Proc, depth: u32, disks: &mut BTreeSet<Self>) {
        let whole = self.whole(proc);
        let members = Self::listed(proc, &format!("{}/slaves", whole.directory()));
        if members.is_empty() || depth == 0 {
            disks.insert(whole);
            return;
        }
        for member in members {
            member.add_disks(proc, depth - 1, disks);
        }
    }
}

/// `path` without symbolic links, or its nearest ancestor that exists: the directory may not have been made yet.
pub(crate) fn existing(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors()
        .find_map(|path| fs_err::canonicalize(path).ok())
}

/// The mounts that this process sees; none if that can't be read.
pub(crate) fn mounts(proc: &Proc) -> Vec<Mount> {
    let text = proc.text("proc/self/mountinfo");
    parse_mountinfo(&text.unwrap_or_default())
}

/// The devices that the file system of `path` lies on, or why they are not known.
pub(crate) fn devices_of(
    proc: &Proc,
    path: &Path,
    mounts: &[Mount],
) -> Result<Vec<Device>, String> {
    let found = existing(path).ok_or_else(|| format!("`{}` can't be reached", path.display()))?;
    let number = fs_err::metadata(&found)
        .map_err(|error| error.to_string())?
        .dev();
    resolve(proc, &found, Device::of_number(number), mounts, |source| {
        Some(Device::of_number(fs_err::metadata(source).ok()?.rdev()))
    })
}

/// As [`devices_of`], for a path whose `st_dev` is known; `number_of` gives the number of a device file.
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
    // Without a block device's number: an anonymous one, which only the mount's source explains.
    let mount = mount_of(mounts, path)
        .ok_or_else(|| format!("`{}` lies on no known mount", path.display()))?;
    let reason = |why: &str| format!("`{}` lies on {}, {why}", path.display(), mount.fs_type);
    match mount.fs_type.as_str() {
        "tmpfs" | "ramfs" => return Err(reason("which is memory and has no disk")),
        "overlay" | "aufs" => return Err(reason("which does not say which disk is below it")),
        _ => {}
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
        return Err(reason("which names no block device"));
    }
    Ok(if mount.fs_type == "btrfs" {
        with_btrfs_members(proc, devices)
    } else {
        devices
    })
}

/// A btrfs of several devices names one of them in its mount; `/sys/fs/btrfs/UUID/devices` has them all.
fn with_btrfs_members(proc: &Proc, devices: Vec<Device>) -> Vec<Device> {
    for file_system in proc.names("sys/fs/btrfs") {
        let members = Device::listed(proc, &format!("sys/fs/btrfs/{file_system}/devices"));
        if devices.iter().any(|device| members.contains(device)) {
            return members;
        }
    }
    devices
}

/// A counter of milliseconds that wraps at 32 bits, as a 64-bit one. At a queue length of 32 the kernel's own
/// wraps after a day and a half.
#[derive(Clone, Copy, Debug, Default)]
struct Unwrapped {
    last: u64,
    above: u64,
}

impl Unwrapped {
    fn ns(&mut self, ms: u64) -> u64 {
        // One that falls by less than half of 32 bits began anew, as a device's that was gone for a moment, or was summed
        // up while it moved: it waits at where it was.
        let fell_by = self.last.saturating_sub(ms);
        if fell_by > 1 << 31 && self.last <= u64::from(u32::MAX) {
            self.above += 1 << 32;
            self.last = ms;
        }
        self.last = self.last.max(ms);
        (self.above + self.last) * 1_000_000
    }
}

/// What a counter of `/proc/diskstats` is of.
#[derive(Clone, Copy)]
enum Unit {
    Requests,
    /// Of 512 bytes, whatever the device's own block size.
    Sectors,
    /// Printed as a 32-bit number.
    Milliseconds,
}

/// Where the sum of a counter goes, its number in a line, and its unit: of the devices that file systems lie on.
const COUNTERS: [(Place, usize, Unit); 12] = [
    (Place::DiskReadCount, 0, Unit::Requests),
    (Place::DiskReadBytes, 2, Unit::Sectors),
    (Place::DiskReadNs, 3, Unit::Milliseconds),
    (Place::DiskWriteCount, 4, Unit::Requests),
    (Place::DiskWriteBytes, 6, Unit::Sectors),
    (Place::DiskWriteNs, 7, Unit::Milliseconds),
    (Place::DiskInflight, 8, Unit::Requests),
    (Place::DiskIoNs, 9, Unit::Milliseconds),
    (Place::DiskQueueNs, 10, Unit::Milliseconds),
    (Place::DiskDiscardCount, 11, Unit::Requests),
    (Place::DiskDiscardBytes, 13, Unit::Sectors),
    (Place::DiskDiscardNs, 14, Unit::Milliseconds),
];

/// The same of the whole disks below them.
const FLUSHES: [(Place, usize, Unit); 2] = [
    (Place::DiskFlushCount, 15, Unit::Requests),
    (Place::DiskFlushNs, 16, Unit::Milliseconds),
];

/// A device, and its counters of milliseconds, by their number in a line.
#[derive(Debug)]
struct Counted {
    device: Device,
    times: [Unwrapped; 17],
}

/// Sets a column to the sum of a counter over the devices. One that does not have it, or is not listed (a container may hide
/// it), makes the sum unknown, not small.
fn add_up(
    (place, number, unit): (Place, usize, Unit),
    devices: &mut [Counted],
    lines: &[DiskLine],
    row: &mut Sample,
) {
    let mut sum = Some(0);
    for Counted { device, times } in devices {
        let line = lines.iter().find(|line| line.device == *device);
        let counter = line.and_then(|line| line.counters.get(number));
        let value = counter.map(|&counter| match unit {
            Unit::Requests => counter,
            Unit::Sectors => counter.saturating_mul(512),
            Unit::Milliseconds => times[number].ns(counter),
        });
        sum = sum
            .zip(value)
            .map(|(sum, value): (u64, u64)| sum.saturating_add(value));
    }
    row.set(place, sum);
}

/// The devices of the data, and what is needed to go on counting where a counter wraps.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    /// The devices that file systems lie on.
    devices: Vec<Counted>,
    /// The whole disks below them.
    whole: Vec<Counted>,
    /// Why a path has no device.
    pub notes: Vec<String>,
}

impl Disks {
    /// The devices of all `paths`, each once.
    pub fn of<'p>(proc: &Proc, paths: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let mounts = mounts(proc);
        let mut devices = BTreeSet::new();
        let mut notes = Vec::new();
        for path in paths {
            match devices_of(proc, path, &mounts) {
                Ok(found) => devices.extend(found),
                Err(note) if notes.contains(&note) => {}
                Err(note) => notes.push(note),
            }
        }
        Self {
            notes,
            ..Self::counting(proc, devices)
        }
    }

    fn counting(proc: &Proc, devices: BTreeSet<Device>) -> Self {
        let disks = devices.iter().flat_map(|device| device.disks(proc));
        let whole: BTreeSet<Device> = disks.collect();
        let counted = |device| Counted {
            device,
            times: Default::default(),
        };
        Self {
            devices: devices.into_iter().map(counted).collect(),
            whole: whole.into_iter().map(counted).collect(),
            notes: Vec::new(),
        }
    }

    /// The names of the devices that are counted.
    pub fn names(&self, proc: &Proc) -> Vec<String> {
        let devices = self.devices.iter();
        devices.map(|it| it.device.name(proc)).collect()
    }

    /// Fills the disk's columns.
    pub fn sample(
        &mut self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
        row: &mut Sample,
    ) -> Result<(), ProbeError> {
        if self.devices.is_empty() {
            return Ok(());
        }
        let wanted = |device| {
            let mut known = self.devices.iter().chain(&self.whole);
            known.any(|it| it.device == device)
        };
        let lines = proc.optional("proc/diskstats", buffer, |text| {
            parse_diskstats(text, wanted)
        })?;
        let Some(lines) = lines else {
            return Ok(());
        };
        for counter in COUNTERS {
            add_up(counter, &mut self.devices, &lines, row);
        }
        for counter in FLUSHES {
            add_up(counter, &mut self.whole, &lines, row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
