//! A control group for a server, created below assay's own group and removed with the server.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use fs_err as fs;
use probe::{Proc, Version};

use crate::safety::guard::{ControlGroup, descendants, is_alive, remove_group};

/// The end of the name of the group that assay moves into. Other groups of assay are called
/// `assay-PID-NUMBER`.
const OWN_LEAF: &str = "self";

/// One look at assay's own group at a time, because a limit may move assay into another group.
static MOVES: Mutex<()> = Mutex::new(());

/// A limit that a control group enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// Memory, in bytes.
    Memory,
    /// CPU time per time, in thousandths of a processor.
    Cpu,
}

impl Resource {
    /// Returns the kernel's name of the controller.
    fn controller(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

/// The period of a CPU quota, which is the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;

/// A control group with a limit on one resource, or on both in version 2. Dropping it removes the
/// group.
#[derive(Debug)]
pub(super) struct ServerGroup {
    group: probe::Group,
    /// The group of assay's own processes.
    home: PathBuf,
    /// The reason why swap is not limited, if it is not.
    swap: Option<String>,
}

impl ServerGroup {
    /// Creates a group with a limit.
    ///
    /// # Errors
    /// The reason why that is not possible on this machine, and what to do.
    pub(super) fn create(resource: Resource, value: u64) -> Result<Self, String> {
        let (own, home) = Self::parent(resource)?;
        let directory = create_below(&own)?;
        let mut group = Self { group: probe::Group { directory, ..own }, home, swap: None };
        group.limit(resource, value)?;
        Ok(group)
    }

    /// Adds a limit if the controller of `resource` is in this group's hierarchy; otherwise,
    /// returns false.
    ///
    /// # Errors
    /// The errors of [`Self::create`].
    pub(super) fn also_limits(&mut self, resource: Resource, value: u64) -> Result<bool, String> {
        if self.group.version == Version::One
            || probe::Group::own(&Proc::live(), resource.controller())?.version == Version::One
        {
            return Ok(false);
        }
        Self::parent(resource)?;
        self.limit(resource, value)?;
        Ok(true)
    }

    /// Returns the group in which to create groups with limits on `resource`, and the directory of
    /// assay's own group.
    fn parent(resource: Resource) -> Result<(probe::Group, PathBuf), String> {
        let lock = MOVES.lock();
        let own = probe::Group::own(&Proc::live(), resource.controller())?;
        let (directory, home) = match own.version {
            Version::One => (own.directory.clone(), own.directory.clone()),
            Version::Two => enable_controller(&own.directory, resource.controller())?,
        };
        drop(lock);
        Ok((probe::Group { directory, ..own }, home))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.group.directory.join(name)
    }

    fn limit(&mut self, resource: Resource, value: u64) -> Result<(), String> {
        match resource {
            Resource::Memory => self.limit_memory(value),
            Resource::Cpu => self.limit_cpu(value),
        }
    }

    fn limit_cpu(&self, milli: u64) -> Result<(), String> {
        let version = self.group.version;
        let quota_us = milli * CPU_PERIOD_US / 1000;

        let files: &[(&str, String)] = match version {
            Version::One => &[
                ("cpu.cfs_period_us", CPU_PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota_us.to_string()),
            ],
            Version::Two => &[("cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))],
        };

        for (name, value) in files {
            write(&self.file(name), value).map_err(|error| denied(version, &error))?;
        }
        Ok(())
    }

    fn limit_memory(&mut self, bytes: u64) -> Result<(), String> {
        let version = self.group.version;

        let (memory, swap, swap_bytes) = match version {
            // The second file limits memory and swap together, so it gets the same value.
            Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            Version::Two => ("memory.max", "memory.swap.max", 0),
        };
        write(&self.file(memory), &bytes.to_string()).map_err(|error| denied(version, &error))?;

        let swap_file = self.file(swap);
        let limited = if swap_file.exists() {
            write(&swap_file, &swap_bytes.to_string()).map_err(|error| error.to_string())
        } else {
            Err("this kernel does not account for swap".into())
        };

        // A machine without swap needs no limit.
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();

        let has_swap = swaps.lines().count() > 1;
        self.swap = match limited {
            Err(reason) if has_swap => Some(format!("swap is not limited: {reason}")),
            _ => None,
        };
        Ok(())
    }

    /// Returns the group into which a guard puts its program.
    pub(super) fn control_group(&self) -> ControlGroup {
        ControlGroup { directory: self.group.directory.clone(), home: self.home.clone() }
    }

    /// Returns the effective limit of the process `server`, and the reason if it is not
    /// `requested`.
    pub(super) fn effective(
        &self,
        resource: Resource,
        requested: u64,
        server: u32,
    ) -> (Option<u64>, Option<String>) {
        let directory = &self.group.directory;
        let name = directory.file_name().unwrap_or_default();

        let is_inside = fs::read_to_string(format!("/proc/{server}/cgroup")).is_ok_and(|groups| {
            groups.lines().any(|line| Path::new(line).file_name() == Some(name))
        });
        if !is_inside {
            let reason =
                format!("the server is not in its control group `{}`", directory.display());
            return (None, Some(reason));
        }

        // Includes the limits of ancestors.
        let limit = match resource {
            Resource::Memory => self.group.memory_limit(&Proc::live()),
            Resource::Cpu => self.group.cpu_limit(&Proc::live()),
        };
        let Some(limit) = limit else {
            let reason = format!("the kernel reports no limit in `{}`", directory.display());
            return (None, Some(reason));
        };

        let rounding = match resource {
            // The kernel rounds limits down to whole pages.
            Resource::Memory => rustix::param::page_size() as u64,
            Resource::Cpu => 1,
        };
        let reason = if limit + rounding <= requested {
            Some("a parent control group, which assay is in too, has a lower limit".to_string())
        } else {
            self.swap.clone().filter(|_| resource == Resource::Memory)
        };
        (Some(limit), reason)
    }

    /// Returns the number of the group's processes that the kernel has killed to free memory;
    /// `None` if it does not count them.
    pub(super) fn kill_count(&self) -> Option<u64> {
        let file = match self.group.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.file(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
    }
}

impl Drop for ServerGroup {
    fn drop(&mut self) {
        remove_group(&self.group.directory);
    }
}

/// Creates a group of version 2 without limits, in which a server can be frozen.
///
/// # Errors
/// The reason why that is not possible on this machine, and what to do.
pub(crate) fn create_without_limits() -> Result<PathBuf, String> {
    let lock = MOVES.lock();
    let own = probe::Group::own_in_version_two(&Proc::live())?;
    let directory = parent_of_groups(&own.directory).to_path_buf();
    drop(lock);
    create_below(&probe::Group { directory, ..own })
}

/// Creates a group in the group `parent`.
fn create_below(parent: &probe::Group) -> Result<PathBuf, String> {
    // To move a process between groups takes write access to their common ancestor.
    let processes = parent.directory.join("cgroup.procs");
    rustix::fs::access(&processes, rustix::fs::Access::WRITE_OK).map_err(|error| {
        let error = std::io::Error::from(error);
        let path = processes.display();
        let what = format!("cannot write `{path}`: {error}");
        denied(parent.version, &std::io::Error::new(error.kind(), what))
    })?;

    remove_leftovers(&parent.directory);
    create_group(&parent.directory).map_err(|error| denied(parent.version, &error))
}

/// Creates a group in `parent` under an unused name. A killed process with this process's ID may
/// have left some.
fn create_group(parent: &Path) -> std::io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("assay-{}-{number}", std::process::id()));
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result.map(|()| directory),
        }
    }
}

/// Removes groups of assay processes that were killed together with their guards. The kernel
/// refuses to remove a group with processes or other groups in it.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let creator = name.to_str().and_then(creator);
        if creator.is_some_and(|pid| fs::metadata(format!("/proc/{pid}")).is_err()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the ID of the assay process that created a group of that name.
fn creator(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("assay-")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(pid) || !(is_number(number) || number == OWN_LEAF) {
        return None;
    }
    pid.parse().ok()
}

/// Enables a controller for new groups in version 2. Returns the group to create them in, and
/// assay's own group.
///
/// A group that delegates a controller to its children may have no processes. So assay moves into a
/// child of its group, unless the group has processes of others.
fn enable_controller(own: &Path, controller: &str) -> Result<(PathBuf, PathBuf), String> {
    let parent = parent_of_groups(own);
    let has_controller = |file: &str| {
        fs::read_to_string(parent.join(file))
            .is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
    };

    if !has_controller("cgroup.controllers") {
        return Err(format!(
            "assay's control group `{}` does not have the {controller} controller: {}",
            parent.display(),
            delegation_help()
        ));
    }
    if has_controller("cgroup.subtree_control") {
        return Ok((parent.to_path_buf(), own.to_path_buf()));
    }

    match delegate(parent, controller) {
        Ok(()) => Ok((parent.to_path_buf(), own.to_path_buf())),
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            let leaf = move_into_leaf(parent, controller)?;
            Ok((parent.to_path_buf(), leaf))
        }
        Err(error) => Err(denied(Version::Two, &error)),
    }
}

/// Returns the group in which to create others: assay's own, or its parent if assay has moved into
/// its leaf for an earlier limit.
fn parent_of_groups(own: &Path) -> &Path {
    match own.parent() {
        Some(parent) if own.file_name().is_some_and(|name| *name == *own_leaf_name()) => parent,
        _ => own,
    }
}

/// Returns the name of the group that assay makes for its own processes.
fn own_leaf_name() -> String {
    format!("assay-{}-{OWN_LEAF}", std::process::id())
}

/// Enables a controller for the children of a group.
fn delegate(group: &Path, controller: &str) -> std::io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"))
}

/// Moves assay into a new child of its group `own`, and enables a controller for its children.
/// Returns the child.
fn move_into_leaf(own: &Path, controller: &str) -> Result<PathBuf, String> {
    let me = std::process::id();

    let inside = processes(own).map_err(|error| denied(Version::Two, &error))?;
    if let Some(other) = foreign_process(&inside, me, &descendants(me)) {
        return Err(format!(
            "assay's control group `{}` contains other processes, such as {other}: {}",
            own.display(),
            delegation_help()
        ));
    }

    let leaf = own.join(own_leaf_name());
    fs::create_dir(&leaf).map_err(|error| denied(Version::Two, &error))?;
    match move_all(own, &leaf).and_then(|()| delegate(own, controller)) {
        Ok(()) => Ok(leaf),
        Err(error) => {
            // Undoes the move as far as possible.
            let _ = move_all(&leaf, own);
            remove_group(&leaf);
            Err(denied(Version::Two, &error))
        }
    }
}

/// Returns a process that is neither `me` nor one of `mine`. Ignores processes that have ended. The
/// kernel shows a process outside of this container as 0.
fn foreign_process(inside: &[u32], me: u32, mine: &[u32]) -> Option<u32> {
    inside
        .iter()
        .copied()
        .filter(|pid| *pid != me && !mine.contains(pid))
        .find(|&pid| pid == 0 || is_alive(pid))
}

/// Moves all processes from one group to another. Meanwhile, processes may start and end.
fn move_all(from: &Path, to: &Path) -> std::io::Result<()> {
    loop {
        let mut remaining = processes(from)?;
        remaining.retain(|&pid| is_alive(pid));
        if remaining.is_empty() {
            return Ok(());
        }
        for pid in remaining {
            match write(&to.join("cgroup.procs"), &pid.to_string()) {
                Err(error) if is_alive(pid) => return Err(error),
                // A process that has ended need not be moved.
                _ => {}
            }
        }
    }
}

/// Returns the processes in a group.
pub(crate) fn processes(group: &Path) -> std::io::Result<Vec<u32>> {
    let text = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Returns the kernel's error as a reason, with what to do.
fn denied(version: Version, error: &std::io::Error) -> String {
    let is_root = rustix::process::geteuid().is_root();
    match (error.kind(), version) {
        // Users get no groups in version 1.
        (ErrorKind::PermissionDenied, Version::One) if !is_root => {
            format!("{error}; start assay as root")
        }
        (ErrorKind::PermissionDenied, Version::Two) if !is_root => {
            format!("{error}; start assay as root, or {}", delegation_help())
        }
        _ => error.to_string(),
    }
}

/// Returns the help for starting assay in a delegated group.
fn delegation_help() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "start assay in a control group of its own: `systemd-run --scope -p Delegate=yes assay run ...`"
    } else {
        "start assay in a control group of its own: `systemd-run --user --scope -p Delegate=yes assay run ...`"
    }
}

/// Writes an existing file of the kernel.
pub(crate) fn write(path: &Path, value: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a group in a directory of plain files. Tests with real servers use the kernel's.
    fn group(version: Version, top: &Path, files: &[(&str, &str)]) -> ServerGroup {
        let directory = top.join("slice/assay-1-0");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
        let top = top.to_path_buf();
        ServerGroup {
            home: top.join("slice"),
            group: probe::Group { version, directory, top },
            swap: None,
        }
    }

    #[test]
    fn only_groups_of_ended_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let mine = format!("assay-{}-0", std::process::id());
        let kept = [mine.as_str(), "assay-0", "assay-4194304000-x", "assay-+7-0", "other"];
        // No process has this ID.
        let removed = ["assay-4194304000-0", "assay-4194304000-self"];
        for name in kept.iter().chain(&removed) {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_leftovers(parent.path());
        assert!(kept.iter().all(|name| parent.path().join(name).is_dir()));
        assert!(!removed.iter().any(|name| parent.path().join(name).exists()));
    }

    #[test]
    fn a_group_of_an_earlier_process_with_this_id_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let first = create_group(parent.path()).unwrap();
        let name = first.file_name().unwrap().to_str().unwrap();
        let number: u32 = name.rsplit('-').next().unwrap().parse().unwrap();
        for taken in number + 1..number + 9 {
            let name = format!("assay-{}-{taken}", std::process::id());
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let next = create_group(parent.path()).unwrap();
        assert!(next.is_dir() && next != first);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 10);
    }

    #[test]
    fn version_one_limits_memory_and_swap_together() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("memory.limit_in_bytes", ""),
            ("memory.memsw.limit_in_bytes", ""),
            ("memory.stat", "cache 1\nhierarchical_memory_limit 70000000\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ];
        let mut group = group(Version::One, top.path(), &files);
        group.limit(Resource::Memory, 100_000_000).unwrap();
        let read = |name: &str| fs::read_to_string(group.file(name)).unwrap();
        assert_eq!(read("memory.limit_in_bytes"), "100000000");
        assert_eq!(read("memory.memsw.limit_in_bytes"), "100000000");
        assert_eq!(group.group.memory_limit(&Proc::live()), Some(70_000_000));
        assert_eq!(group.kill_count(), Some(3));
    }

    #[test]
    fn version_two_limits_memory_and_forbids_swap() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("memory.max", ""),
            ("memory.swap.max", ""),
            ("memory.events", "oom 1\noom_kill 0\noom_group_kill 0\n"),
        ];
        let mut group = group(Version::Two, top.path(), &files);
        group.limit(Resource::Memory, 100_000_000).unwrap();
        let read = |name: &str| fs::read_to_string(group.file(name)).unwrap();
        assert_eq!(read("memory.swap.max"), "0");
        assert_eq!(group.kill_count(), Some(0));
        assert_eq!(group.group.memory_limit(&Proc::live()), Some(100_000_000));
        fs::write(top.path().join("slice/memory.max"), "70000000\n").unwrap();
        assert_eq!(group.group.memory_limit(&Proc::live()), Some(70_000_000));
        fs::write(top.path().join("slice/memory.max"), "max\n").unwrap();
        assert_eq!(group.group.memory_limit(&Proc::live()), Some(100_000_000));
    }

    #[test]
    fn both_versions_limit_cpu_time_and_ancestors_count() {
        let v1 = [("cpu.cfs_period_us", "5"), ("cpu.cfs_quota_us", "-1")];
        let v2 = [("cpu.max", "max 100000")];
        for (version, files, expected) in [
            (Version::One, &v1[..], ["100000", "50000"].as_slice()),
            (Version::Two, &v2[..], &["50000 100000"]),
        ] {
            let top = tempfile::tempdir().unwrap();
            let mut group = group(version, top.path(), files);
            group.limit(Resource::Cpu, 500).unwrap();
            for ((file, _), expected) in files.iter().zip(expected) {
                let written = fs::read_to_string(group.file(file)).unwrap();
                // The kernel replaces a value; a plain file keeps what is behind it.
                assert!(written.starts_with(expected), "{file}: {written}");
            }
            assert_eq!(group.group.cpu_limit(&Proc::live()), Some(500));
            for (file, lower) in files.iter().zip(["100000", "20000"]) {
                let text = if files.len() == 1 { "20000 100000" } else { lower };
                fs::write(top.path().join("slice").join(file.0), text).unwrap();
            }
            assert_eq!(group.group.cpu_limit(&Proc::live()), Some(200));
        }
    }

    #[test]
    fn the_error_of_a_group_without_the_memory_controller_says_what_to_do() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
        let reason = enable_controller(own.path(), "memory").unwrap_err();
        assert!(reason.contains("does not have the memory controller"), "{reason}");
        assert!(reason.contains("Delegate=yes"), "{reason}");
    }

    #[test]
    fn a_group_that_delegates_memory_is_unchanged() {
        let own = tempfile::tempdir().unwrap();
        for file in ["cgroup.controllers", "cgroup.subtree_control"] {
            fs::write(own.path().join(file), "cpu memory pids\n").unwrap();
        }
        let enable = |own: &Path| enable_controller(own, "memory");
        let expected = (own.path().to_path_buf(), own.path().to_path_buf());
        assert_eq!(enable(own.path()), Ok(expected));
        let leaf = own.path().join(format!("assay-{}-self", std::process::id()));
        assert_eq!(enable(&leaf), Ok((own.path().to_path_buf(), leaf.clone())));
    }

    #[test]
    fn a_process_that_has_ended_is_ignored() {
        // No process has this ID.
        let (me, ended) = (std::process::id(), 4_194_304_000);
        assert_eq!(foreign_process(&[me, ended, 7_777], me, &[7_777]), None);
        // The machine's first process, and one outside of the container.
        assert_eq!(foreign_process(&[ended, 1], me, &[]), Some(1));
        assert_eq!(foreign_process(&[me, 0], me, &[]), Some(0));
    }

    #[test]
    fn a_process_outside_is_not_limited() {
        let top = tempfile::tempdir().unwrap();
        let group = group(Version::Two, top.path(), &[("memory.max", "100000000")]);
        let me = std::process::id();
        let (effective, reason) = group.effective(Resource::Memory, 100_000_000, me);
        assert_eq!(effective, None);
        assert!(reason.unwrap().contains("not in its control group"));
    }
}
