//! A block device: its number, its name, and the disks below it, as `/sys` has them.

use std::collections::BTreeSet;
use std::fmt;

use crate::Proc;

/// The number of levels to search for disks below a device: LVM on LUKS on RAID on partitions needs
/// five.
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
    pub fn from_number(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Returns the device's directory in `/sys`, a symbolic link.
    pub fn directory(self) -> String {
        format!("sys/dev/block/{self}")
    }

    /// Returns the device's name, such as `sda1`, or its number if `/sys` does not list it.
    pub fn name(self, proc: &Proc) -> String {
        fs_err::canonicalize(proc.path(self.directory()))
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_else(|| self.to_string())
    }

    /// Returns the whole disk of a partition; of any other device, the device itself.
    pub fn whole(self, proc: &Proc) -> Self {
        let directory = proc.path(self.directory());
        if !directory.join("partition").exists() {
            return self;
        }
        // A partition's directory is in the directory of its disk.
        fs_err::canonicalize(directory)
            .ok()
            .and_then(|path| fs_err::read_to_string(path.parent()?.join("dev")).ok())
            .and_then(|text| Self::parse(&text))
            .unwrap_or(self)
    }

    /// Returns the whole disks at the bottom of the device.
    pub fn disks(self, proc: &Proc) -> BTreeSet<Self> {
        let mut disks = BTreeSet::new();
        self.add_disks(proc, DEPTH_MAX, &mut disks);
        disks
    }

    /// Returns the devices that a directory lists.
    pub fn in_directory(proc: &Proc, directory: &str) -> Vec<Self> {
        proc.names(directory)
            .into_iter()
            .filter_map(|name| Self::parse(&proc.text(format!("{directory}/{name}/dev"))?))
            .collect()
    }

    fn add_disks(self, proc: &Proc, depth: u32, disks: &mut BTreeSet<Self>) {
        let whole = self.whole(proc);
        let members = Self::in_directory(proc, &format!("{}/slaves", whole.directory()));
        if members.is_empty() || depth == 0 {
            disks.insert(whole);
            return;
        }
        for member in members {
            member.add_disks(proc, depth - 1, disks);
        }
    }
}
