//! Control groups: where a process's group is, what it is limited to, and what the server's holds.

use std::path::{Path, PathBuf};

use crate::parse::{
    Membership, Mount, UNLIMITED, parse_cgroup, parse_group_cache, parse_limit, parse_mountinfo,
    value,
};
use crate::{ProbeError, Proc};

/// The version of control groups. A machine may have both; a controller is then in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The first, with a hierarchy for each controller.
    One,
    /// The second, with one hierarchy.
    Two,
}

/// A group of a hierarchy, as a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The version.
    pub version: Version,
    /// The group's directory.
    pub directory: PathBuf,
    /// The highest group that can be seen: where the hierarchy is mounted.
    pub top: PathBuf,
}

impl Group {
    /// Finds the group that this process is in, of the hierarchy that has a controller: by what the kernel says of this
    /// process and of its mounts, not by fixed paths.
    ///
    /// # Errors
    /// Why there is none.
    pub fn own(proc: &Proc, controller: &str) -> Result<Self, String> {
        Self::of(proc, "self", controller)
    }

    fn of(proc: &Proc, process: &str, controller: &str) -> Result<Self, String> {
        let read = |name: &str| {
            let path = proc.path(name);
            fs_err::read_to_string(path).map_err(|error| error.to_string())
        };
        let memberships = parse_cgroup(&read(&format!("proc/{process}/cgroup"))?);
        let mounts = parse_mountinfo(&read("proc/self/mountinfo")?);
        Self::find(&memberships, &mounts, controller)
    }

    fn find(groups: &[Membership], mounts: &[Mount], controller: &str) -> Result<Self, String> {
        let has_it = |group: &&Membership| group.controllers.iter().any(|name| name == controller);
        let (version, group) = match groups.iter().find(has_it) {
            Some(group) => (Version::One, Some(group)),
            None => {
                let mut groups = groups.iter();
                (Version::Two, groups.find(|it| it.controllers.is_empty()))
            }
        };
        let path = match group {
            Some(group) => &group.path,
            None => return Err(format!("this kernel has no control groups of {controller}")),
        };
        let is_of_hierarchy = |mount: &&Mount| match version {
            Version::One => {
                let mut options = mount.fs_options.split(',');
                mount.fs_type == "cgroup" && options.any(|option| option == controller)
            }
            Version::Two => mount.fs_type == "cgroup2",
        };
        let mut hierarchy = mounts.iter().filter(is_of_hierarchy).peekable();
        if hierarchy.peek().is_none() {
            return Err("the hierarchy of control groups is not mounted".into());
        }
        // In a container the mount may show only a part of the hierarchy, and not the one that the process is in.
        let found = hierarchy.find_map(|mount| {
            let below = Path::new(path).strip_prefix(&mount.root).ok()?;
            let is_below = !below.components().any(|part| part.as_os_str() == "..");
            is_below.then(|| Self {
                version,
                directory: mount.point.join(below),
                top: mount.point.clone(),
            })
        });
        found.ok_or_else(|| {
            format!("assay's own control group, `{path}`, is not among those that are mounted")
        })
    }

    /// Returns the directories of the group and of those above it that can be seen.
    pub(crate) fn with_above(&self) -> impl Iterator<Item = &Path> {
        let all = self.directory.ancestors();
        all.take_while(|directory| directory.starts_with(&self.top))
    }

    /// Returns the limit of memory that holds in the group, those of the groups above included; `None` without one.
    pub fn memory_limit(&self, proc: &Proc) -> Option<u64> {
        let limit = |file: PathBuf| parse_limit(&proc.text(file)?);
        match self.version {
            Version::One => {
                let own = limit(self.directory.join("memory.limit_in_bytes"));
                let stat = proc.text(self.directory.join("memory.stat"));
                let stat = stat.unwrap_or_default();
                let with_above = value(&stat, "hierarchical_memory_limit").ok().flatten();
                let limits = own.into_iter().chain(with_above);
                limits.min().filter(|bytes| *bytes < UNLIMITED)
            }
            Version::Two => {
                let files = self.with_above().map(|it| it.join("memory.max"));
                files.filter_map(limit).min()
            }
        }
    }
}

/// The files that tell what a server's own group holds.
#[derive(Debug)]
pub(crate) struct ServerGroup {
    usage: String,
    stat: String,
}

impl ServerGroup {
    /// The group of the process `server`, where it has a limit of memory; `None` in assay's own, which holds others.
    pub(crate) fn of(proc: &Proc, server: u32) -> Option<Self> {
        let group = Group::of(proc, &server.to_string(), "memory").ok()?;
        if Group::own(proc, "memory").is_ok_and(|own| own == group) {
            return None;
        }
        let (limit, usage) = match group.version {
            Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Version::Two => ("memory.max", "memory.current"),
        };
        parse_limit(&proc.text(group.directory.join(limit))?)?;
        let path = |file: &str| Some(group.directory.join(file).to_str()?.to_string());
        Some(Self {
            usage: path(usage)?,
            stat: path("memory.stat")?,
        })
    }

    /// What the group is charged with, and how much of that is page cache; each `None` when the group is gone.
    pub(crate) fn sample(
        &self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) -> Result<(Option<u64>, Option<u64>), ProbeError> {
        let usage = proc.optional(&self.usage, buffer, |text| Ok(parse_limit(text)))?;
        let cache = proc.optional(&self.stat, buffer, parse_group_cache)?;
        Ok((usage.flatten(), cache))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(groups: &str, mounts: &str) -> Result<Group, String> {
        Group::find(&parse_cgroup(groups), &parse_mountinfo(mounts), "memory")
    }

    const BOTH: &str = "4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/user.slice/x.scope\n";

    #[test]
    fn version_one_is_taken_where_it_has_the_memory_controller() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /my\\040groups/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = find(BOTH, mounts).unwrap();
        assert_eq!(own.version, Version::One);
        assert_eq!(own.directory, Path::new("/my groups/memory/a/b"));
        assert_eq!(own.top, Path::new("/my groups/memory"));
    }

    #[test]
    fn version_two_is_taken_elsewhere() {
        let mounts = "of another format\n\
            31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = find("0::/user.slice/x.scope\n", mounts).unwrap();
        assert_eq!(own.version, Version::Two);
        assert_eq!(
            own.directory,
            Path::new("/sys/fs/cgroup/user.slice/x.scope")
        );
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "32 23 0:29 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let own = find("4:memory:/docker/1f/sub\n", mounts).unwrap();
        assert_eq!(own.directory, Path::new("/sys/fs/cgroup/memory/sub"));
        for elsewhere in ["4:memory:/docker/2a\n", "4:memory:/docker/1f/../2a\n"] {
            let reason = find(elsewhere, mounts).unwrap_err();
            assert!(reason.contains("/docker/"), "{reason}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let reason = find("2:cpu:/\n", "").unwrap_err();
        assert!(reason.contains("no control groups of memory"), "{reason}");
        let reason = find(BOTH, "1 2 0:3 / / rw - ext4 /dev/a rw\n").unwrap_err();
        assert!(reason.contains("not mounted"), "{reason}");
    }
}
