//! The control group that assay itself is in, of the hierarchy that limits memory: found by what the kernel says of
//! this process and of its mounts, not by fixed paths.

use std::path::{Path, PathBuf};

use fs_err as fs;

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
        let group = |is_it: &dyn Fn(&str) -> bool| {
            memberships.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                is_it(controllers).then_some(path)
            })
        };
        let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
        let (version, path) = match group(&has_memory) {
            Some(path) => (Version::One, path),
            None => (
                Version::Two,
                group(&str::is_empty).ok_or("this kernel has no control groups of memory")?,
            ),
        };
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
        let mut hierarchy = mounts
            .iter()
            .filter(|mount| match version {
                Version::One => mount.fs_type == "cgroup" && has_memory(mount.options),
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

/// A line of `/proc/self/mountinfo`, as far as it is needed.
struct Mount<'t> {
    root: PathBuf,
    point: PathBuf,
    fs_type: &'t str,
    /// Of the file system, not of the mount.
    options: &'t str,
}

impl<'t> Mount<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut file_system = file_system.split(' ');
        Some(Self {
            root: plain(mount.next()?),
            point: plain(mount.next()?),
            fs_type: file_system.next()?,
            options: file_system.nth(1)?,
        })
    }
}

/// A path without the kernel's escapes: a backslash and three octal digits for blanks, line ends and backslashes.
fn plain(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut path = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                path.push(char::from(code));
                path.push_str(&part[3..]);
            }
            _ => {
                path.push('\\');
                path.push_str(part);
            }
        }
    }
    path.into()
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
