//! The control group that assay itself is in, of the hierarchy that limits memory: found by what the kernel says of
//! this process and of its mounts, not by fixed paths.

use std::path::{Path, PathBuf};

use fs_err as fs;
use probe::parse::{Membership, parse_cgroup, parse_mountinfo};

/// The version of control groups. A machine may have both; the memory controller is then in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A group, as a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) version: Version,
    /// The group's directory.
    pub(super) directory: PathBuf,
    /// The highest group that can be seen: where the hierarchy is mounted.
    pub(super) top: PathBuf,
}

impl Own {
    /// The group of this process.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn find() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| error.to_string());
        Self::of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    /// The same, from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
    fn of(memberships: &str, mounts: &str) -> Result<Self, String> {
        let groups = parse_cgroup(memberships);
        let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
        let is_of_memory =
            |group: &&Membership| group.controllers.iter().any(|name| name == "memory");
        let (version, group) = match groups.iter().find(is_of_memory) {
            Some(group) => (Version::One, group),
            None => (
                Version::Two,
                groups
                    .iter()
                    .find(|group| group.controllers.is_empty())
                    .ok_or("this kernel has no control groups of memory")?,
            ),
        };
        let path = &group.path;
        let mounts = parse_mountinfo(mounts).map_err(|error| error.to_string())?;
        let mut hierarchy = mounts
            .iter()
            .filter(|mount| match version {
                Version::One => mount.fs_type == "cgroup" && has_memory(&mount.fs_options),
                Version::Two => mount.fs_type == "cgroup2",
            })
            .peekable();
        if hierarchy.peek().is_none() {
            return Err("the hierarchy of control groups is not mounted".into());
        }
        // In a container the mount may show only a part of the hierarchy, and not the one that assay is in.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/user.slice/x.scope\n";

    #[test]
    fn version_one_is_taken_where_it_has_the_memory_controller() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /my\\040groups/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = Own::of(BOTH, mounts).unwrap();
        assert_eq!(own.version, Version::One);
        assert_eq!(own.directory, Path::new("/my groups/memory/a/b"));
        assert_eq!(own.top, Path::new("/my groups/memory"));
    }

    #[test]
    fn version_two_is_taken_elsewhere() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = Own::of("0::/user.slice/x.scope\n", mounts).unwrap();
        assert_eq!(own.version, Version::Two);
        assert_eq!(
            own.directory,
            Path::new("/sys/fs/cgroup/user.slice/x.scope")
        );
    }

    #[test]
    fn a_container_sees_a_part() {
        let mounts = "32 23 0:29 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let own = Own::of("4:memory:/docker/1f/sub\n", mounts).unwrap();
        assert_eq!(own.directory, Path::new("/sys/fs/cgroup/memory/sub"));
        for elsewhere in ["4:memory:/docker/2a\n", "4:memory:/docker/1f/../2a\n"] {
            let reason = Own::of(elsewhere, mounts).unwrap_err();
            assert!(reason.contains("/docker/"), "{reason}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let reason = Own::of("2:cpu:/\n", "").unwrap_err();
        assert!(reason.contains("no control groups of memory"), "{reason}");
        let reason = Own::of(BOTH, "1 2 0:3 / / rw - ext4 /dev/a rw\n").unwrap_err();
        assert!(reason.contains("not mounted"), "{reason}");
    }
}
