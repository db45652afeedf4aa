//! Control groups: where a process's group is, and what the server's holds.

use std::path::{Path, PathBuf};

use crate::parse::{
    Membership, Mount, parse_cgroup, parse_group_cache, parse_memory_limit, parse_mountinfo,
};
use crate::{ProbeError, Proc};

/// A group of a hierarchy, as far as it can be seen.
pub(crate) struct Group {
    /// The version of control groups.
    pub(crate) version: u32,
    /// Where the hierarchy is mounted, from the root without its leading slash.
    top: PathBuf,
    /// The group, below that.
    below: PathBuf,
}

impl Group {
    /// The group of a membership, if it is in the hierarchy of `controller` and that is mounted.
    pub(crate) fn of(mounts: &[Mount], group: &Membership, controller: &str) -> Option<Self> {
        let version = match group.controllers.is_empty() {
            true => 2,
            false if group.controllers.iter().any(|name| name == controller) => 1,
            false => return None,
        };
        let mount = mounts.iter().find(|mount| match version {
            1 => {
                mount.fs_type == "cgroup"
                    && mount
                        .fs_options
                        .split(',')
                        .any(|option| option == controller)
            }
            _ => mount.fs_type == "cgroup2",
        })?;
        // In a container the mount shows a part of the hierarchy, and the group's path may begin above it.
        let below = Path::new(&group.path)
            .strip_prefix(&mount.root)
            .unwrap_or(Path::new(""));
        let top = mount.point.strip_prefix("/").unwrap_or(&mount.point);
        Some(Self {
            version,
            top: top.to_path_buf(),
            below: below.strip_prefix("/").unwrap_or(below).to_path_buf(),
        })
    }

    /// The group's directory, from the root without its leading slash.
    fn directory(&self) -> PathBuf {
        self.top.join(&self.below)
    }

    /// The directories of the group and of those above it.
    pub(crate) fn with_above(&self) -> impl Iterator<Item = PathBuf> {
        self.below.ancestors().map(|group| self.top.join(group))
    }

    /// The file that holds the group's limit of memory.
    pub(crate) fn memory_limit_file(&self) -> &'static str {
        match self.version {
            1 => "memory.limit_in_bytes",
            _ => "memory.max",
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
        let memberships = |process: &str| {
            let text = proc.text(format!("proc/{process}/cgroup"));
            text.map(|text| parse_cgroup(&text)).unwrap_or_default()
        };
        let own = memberships("self");
        let mounts = parse_mountinfo(&proc.text("proc/self/mountinfo")?).ok()?;
        memberships(&server.to_string())
            .iter()
            .filter(|group| !own.contains(group))
            .filter_map(|group| Group::of(&mounts, group, "memory"))
            .find_map(|group| {
                let directory = group.directory();
                let limit = proc.text(directory.join(group.memory_limit_file()))?;
                parse_memory_limit(&limit).ok()??;
                let usage = match group.version {
                    1 => "memory.usage_in_bytes",
                    _ => "memory.current",
                };
                let path = |file: &str| Some(directory.join(file).to_str()?.to_string());
                Some(Self {
                    usage: path(usage)?,
                    stat: path("memory.stat")?,
                })
            })
    }

    /// What the group is charged with, and how much of that is page cache; each `None` when the group is gone.
    pub(crate) fn sample(
        &self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
    ) -> Result<(Option<u64>, Option<u64>), ProbeError> {
        let usage = proc.optional(&self.usage, buffer, parse_memory_limit)?;
        let cache = proc.optional(&self.stat, buffer, parse_group_cache)?;
        Ok((usage.flatten(), cache))
    }
}
