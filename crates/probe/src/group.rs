//! Control groups: the group of a process, its limits, and the memory of the server's group.

use std::path::{Path, PathBuf};

use crate::parse::{
    Membership, Mount, UNLIMITED, parse_cgroup, parse_cpu_max, parse_group_cache, parse_limit,
    parse_mountinfo, value,
};
use crate::{ProbeError, Proc};

/// The version of control groups. On a machine with both, each controller is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1, with a hierarchy for each controller.
    One,
    /// Version 2, with a single hierarchy.
    Two,
}

/// A control group and its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The version of the group's hierarchy.
    pub version: Version,
    /// The group's directory.
    pub directory: PathBuf,
    /// The directory of the highest visible group, where the hierarchy is mounted.
    pub top: PathBuf,
}

impl Group {
    /// Finds this process's group in the hierarchy of a controller. Uses the kernel's lists of
    /// groups and mounts instead of fixed paths.
    ///
    /// # Errors
    /// The reason why there is no such group.
    pub fn own(proc: &Proc, controller: &str) -> Result<Self, String> {
        Self::of_process(proc, "self", Some(controller))
    }

    /// Finds this process's group in the hierarchy of version 2, which may have no controllers.
    ///
    /// # Errors
    /// The reason why there is no such group.
    pub fn own_in_version_two(proc: &Proc) -> Result<Self, String> {
        Self::in_version_two(proc, "self")
    }

    /// Finds the group of a process in the hierarchy of version 2, like
    /// [`own_in_version_two`](Self::own_in_version_two).
    pub(crate) fn in_version_two(proc: &Proc, process: &str) -> Result<Self, String> {
        Self::of_process(proc, process, None)
    }

    /// Finds the group of a process in the hierarchy of a controller; `None` means version 2.
    fn of_process(proc: &Proc, process: &str, controller: Option<&str>) -> Result<Self, String> {
        let memberships = parse_cgroup(&read(proc, &format!("proc/{process}/cgroup"))?);
        let mounts = parse_mountinfo(&read(proc, "proc/self/mountinfo")?);
        Self::find(&memberships, &mounts, controller)
    }

    fn find(
        groups: &[Membership],
        mounts: &[Mount],
        controller: Option<&str>,
    ) -> Result<Self, String> {
        // A machine may have both versions. Version 1 has the controllers that its list names, and
        // version 2 has the others.
        let by_controller = groups
            .iter()
            .find(|group| group.controllers.iter().any(|name| Some(name.as_str()) == controller));
        let (version, group) = match by_controller {
            Some(group) => (Version::One, Some(group)),
            None => (Version::Two, groups.iter().find(|group| group.controllers.is_empty())),
        };
        let what = match controller {
            Some(controller) => format!("control groups for `{controller}`"),
            None => "control groups of version 2".to_owned(),
        };
        let Some(Membership { path, .. }) = group else {
            return Err(format!("this kernel has no {what}"));
        };

        let hierarchy: Vec<&Mount> =
            mounts.iter().filter(|mount| is_hierarchy(mount, version, controller)).collect();
        if hierarchy.is_empty() {
            return Err(format!("the {what} are not mounted"));
        }

        // In a container, the mount may show a subtree that does not contain this process's group.
        for mount in hierarchy {
            if let Ok(relative) = Path::new(path).strip_prefix(&mount.root)
                && !relative.components().any(|name| name.as_os_str() == "..")
            {
                let directory = mount.point.join(relative);
                return Ok(Self { version, directory, top: mount.point.clone() });
            }
        }
        Err(format!("assay's own control group `{path}` is not visible in this mount namespace"))
    }

    /// Returns the directories of the group and of its visible ancestors.
    fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|directory| directory.starts_with(&self.top))
    }

    /// Returns the CPU limit of the group in thousandths of a processor, the lowest of its own and
    /// its ancestors'. `None` means no limit.
    pub fn cpu_limit(&self, proc: &Proc) -> Option<u64> {
        self.directories().filter_map(|directory| self.own_cpu_limit(proc, directory)).min()
    }

    fn own_cpu_limit(&self, proc: &Proc, directory: &Path) -> Option<u64> {
        match self.version {
            Version::One => {
                let quota = proc.text(directory.join("cpu.cfs_quota_us"))?;
                let period = proc.text(directory.join("cpu.cfs_period_us"))?;
                parse_cpu_max(&format!("{quota} {period}"))
            }
            Version::Two => parse_cpu_max(&proc.text(directory.join("cpu.max"))?),
        }
    }

    /// Returns the memory limit of the group, the lowest of its own and its ancestors'. `None`
    /// means no limit.
    pub fn memory_limit(&self, proc: &Proc) -> Option<u64> {
        match self.version {
            Version::One => {
                let own = read_limit(proc, self.directory.join("memory.limit_in_bytes"));
                let stat = proc.text(self.directory.join("memory.stat")).unwrap_or_default();
                let hierarchical = value(&stat, "hierarchical_memory_limit").ok().flatten();
                own.into_iter().chain(hierarchical).min().filter(|bytes| *bytes < UNLIMITED)
            }
            Version::Two => self
                .directories()
                .filter_map(|directory| read_limit(proc, directory.join("memory.max")))
                .min(),
        }
    }
}

fn read(proc: &Proc, name: &str) -> Result<String, String> {
    fs_err::read_to_string(proc.path(name)).map_err(|error| error.to_string())
}

fn read_limit(proc: &Proc, file: PathBuf) -> Option<u64> {
    parse_limit(&proc.text(file)?)
}

/// Returns whether `mount` shows the hierarchy of a controller.
fn is_hierarchy(mount: &Mount, version: Version, controller: Option<&str>) -> bool {
    match version {
        Version::One => {
            let mut options = mount.fs_options.split(',');
            mount.fs_type == "cgroup" && options.any(|option| Some(option) == controller)
        }
        Version::Two => mount.fs_type == "cgroup2",
    }
}

/// The files with the memory of a server's group.
#[derive(Debug)]
pub(crate) struct ServerGroup {
    usage: String,
    stat: String,
}

impl ServerGroup {
    /// Finds the group of the process `server`. Returns `None` if the group has no memory limit, or
    /// is assay's own, which has other processes too.
    pub(crate) fn find(proc: &Proc, server: u32) -> Option<Self> {
        let group = Group::of_process(proc, &server.to_string(), Some("memory")).ok()?;
        if Group::own(proc, "memory").is_ok_and(|own| own == group) {
            return None;
        }

        let (limit, usage) = match group.version {
            Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Version::Two => ("memory.max", "memory.current"),
        };
        read_limit(proc, group.directory.join(limit))?;
        Some(Self {
            usage: group.directory.join(usage).to_str()?.to_string(),
            stat: group.directory.join("memory.stat").to_str()?.to_string(),
        })
    }

    pub(crate) fn sample(
        &self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) -> Result<GroupMemory, ProbeError> {
        let usage = proc.optional(&self.usage, buffer, |text| Ok(parse_limit(text)))?;
        let cache_bytes = proc.optional(&self.stat, buffer, parse_group_cache)?;
        Ok(GroupMemory { usage_bytes: usage.flatten(), cache_bytes })
    }
}

/// The memory of a server's group. Figures are `None` when the group is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupMemory {
    /// The memory charged to the group.
    pub(crate) usage_bytes: Option<u64>,
    /// The page cache within that memory.
    pub(crate) cache_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(groups: &str, mounts: &str) -> Result<Group, String> {
        Group::find(&parse_cgroup(groups), &parse_mountinfo(mounts), Some("memory"))
    }

    const BOTH: &str = "4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/user.slice/x.scope\n";

    #[test]
    fn version_one_is_used_if_it_has_the_memory_controller() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /my\\040groups/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = find(BOTH, mounts).unwrap();
        assert_eq!(own.version, Version::One);
        assert_eq!(own.directory, Path::new("/my groups/memory/a/b"));
        assert_eq!(own.top, Path::new("/my groups/memory"));
    }

    #[test]
    fn version_two_is_found_beside_version_one() {
        let mounts = "35 31 0:32 / /groups/memory rw - cgroup cgroup rw,memory\n\
            41 31 0:38 / /groups/unified rw - cgroup2 cgroup2 rw\n";
        let find = |groups: &str, mounts: &str| {
            Group::find(&parse_cgroup(groups), &parse_mountinfo(mounts), None)
        };
        let own = find(BOTH, mounts).unwrap();
        assert_eq!(own.version, Version::Two);
        assert_eq!(own.directory, Path::new("/groups/unified/user.slice/x.scope"));

        let reason = find("4:memory:/a/b\n", mounts).unwrap_err();
        assert_eq!(reason, "this kernel has no control groups of version 2");
        let reason = find(BOTH, "1 2 0:3 / / rw - ext4 /dev/a rw\n").unwrap_err();
        assert_eq!(reason, "the control groups of version 2 are not mounted");
    }

    #[test]
    fn version_two_is_used_otherwise() {
        let mounts = "of another format\n\
            31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = find("0::/user.slice/x.scope\n", mounts).unwrap();
        assert_eq!(own.version, Version::Two);
        assert_eq!(own.directory, Path::new("/sys/fs/cgroup/user.slice/x.scope"));
    }

    #[test]
    fn a_container_sees_a_subtree() {
        let mounts = "32 23 0:29 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let own = find("4:memory:/docker/1f/sub\n", mounts).unwrap();
        assert_eq!(own.directory, Path::new("/sys/fs/cgroup/memory/sub"));
        for elsewhere in ["4:memory:/docker/2a\n", "4:memory:/docker/1f/../2a\n"] {
            let reason = find(elsewhere, mounts).unwrap_err();
            assert!(reason.contains("/docker/"), "{reason}");
        }
    }

    #[test]
    fn the_error_names_what_is_missing() {
        let reason = find("2:cpu:/\n", "").unwrap_err();
        assert!(reason.contains("no control groups for `memory`"), "{reason}");
        let reason = find(BOTH, "1 2 0:3 / / rw - ext4 /dev/a rw\n").unwrap_err();
        assert!(reason.contains("not mounted"), "{reason}");
    }
}
