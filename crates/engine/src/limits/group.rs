//! A control group for one server, made below the group that assay is in, and removed with the server.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use fs_err as fs;
use probe::{Proc, Version};

use crate::guard::{ControlGroup, descendants, is_alive, remove_group};

/// A group that assay made is called `assay-PID-NUMBER`, by assay's process; the one that assay goes into itself ends
/// in this instead.
const OWN_LEAF: &str = "self";

/// A group with a limit. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Group {
    group: probe::Group,
    /// Where assay's own processes stay.
    home: PathBuf,
    /// Why the server might use swap beyond the limit, if it might.
    swap: Option<String>,
}

impl Group {
    /// Makes a group that limits memory to that.
    ///
    /// # Errors
    /// Why that can't be had here, and what would help.
    pub(super) fn make(bytes: u64) -> Result<Self, String> {
        // One after the other: the first moves assay into another group.
        static MOVING: Mutex<()> = Mutex::new(());
        let moving = MOVING.lock();
        let own = probe::Group::own(&Proc::live(), "memory")?;
        let (parent, home) = match own.version {
            Version::One => (own.directory.clone(), own.directory.clone()),
            Version::Two => with_memory(&own.directory)?,
        };
        drop(moving);
        // Who moves a process from one group to another has to be allowed to write in the one that they share.
        let processes = parent.join("cgroup.procs");
        rustix::fs::access(&processes, rustix::fs::Access::WRITE_OK).map_err(|error| {
            let error = std::io::Error::from(error);
            let path = processes.display();
            let what = format!("cannot write `{path}`: {error}");
            denied(own.version, &std::io::Error::new(error.kind(), what))
        })?;
        sweep(&parent);
        let directory = made(&parent).map_err(|error| denied(own.version, &error))?;
        let mut group = Self {
            group: probe::Group { directory, ..own },
            home,
            swap: None,
        };
        group.limit(bytes)?;
        Ok(group)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.group.directory.join(name)
    }

    fn limit(&mut self, bytes: u64) -> Result<(), String> {
        let version = self.group.version;
        let (memory, swap, swap_bytes) = match version {
            // The second is memory and swap together: as much as memory alone.
            Version::One => (
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
                bytes,
            ),
            Version::Two => ("memory.max", "memory.swap.max", 0),
        };
        write(&self.file(memory), bytes).map_err(|error| denied(version, &error))?;
        let swap = self.file(swap);
        let limited = match swap.exists() {
            true => write(&swap, swap_bytes).map_err(|error| error.to_string()),
            false => Err("this kernel does not account for it".into()),
        };
        // Where there is no swap it needs no limit.
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        self.swap = limited
            .err()
            .filter(|_| swaps.lines().count() > 1)
            .map(|reason| format!("swap is not limited: {reason}"));
        Ok(())
    }

    /// How a guard puts its program into it.
    pub(super) fn entry(&self) -> ControlGroup {
        ControlGroup {
            directory: self.group.directory.clone(),
            home: self.home.clone(),
        }
    }

    /// The limit that holds for the process `server`, of the `asked` bytes; why there is none, or another.
    pub(super) fn effective(&self, asked: u64, server: u32) -> (Option<u64>, Option<String>) {
        let directory = &self.group.directory;
        let name = directory.file_name().unwrap_or_default();
        let is_inside = fs::read_to_string(format!("/proc/{server}/cgroup")).is_ok_and(|groups| {
            groups
                .lines()
                .any(|line| Path::new(line).file_name() == Some(name))
        });
        if !is_inside {
            let reason = format!("it is not in its control group `{}`", directory.display());
            return (None, Some(reason));
        }
        // As the kernel has it, that of the groups above included.
        let Some(limit) = self.group.memory_limit(&Proc::live()) else {
            let reason = format!("`{}` does not say", directory.display());
            return (None, Some(reason));
        };
        // The kernel cuts it to whole pages.
        let page_bytes = rustix::param::page_size() as u64;
        let reason = if limit + page_bytes <= asked {
            Some("a control group above it, which assay is in too, has no more".to_string())
        } else {
            self.swap.clone()
        };
        (Some(limit), reason)
    }

    /// How many of its processes the kernel has killed for want of memory; `None` where it does not count them.
    pub(super) fn kill_count(&self) -> Option<u64> {
        let file = match self.group.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.file(file)).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.group.directory);
    }
}

/// Makes a group of this process in `parent`, under a name that is not taken: an assay that was killed together with its
/// guards may have had the same number.
fn made(parent: &Path) -> std::io::Result<PathBuf> {
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

/// Removes the groups that assays left which were killed together with their guards. The kernel does not remove one
/// that holds a process or another group.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(maker);
        if maker.is_some_and(|pid| fs::metadata(format!("/proc/{pid}")).is_err()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that made a group of that name, if it was an assay.
fn maker(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("assay-")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(pid) && (is_number(number) || number == OWN_LEAF))
        .then(|| pid.parse().ok())
        .flatten()
}

/// The group of version 2 below which groups that limit memory can be made, and the one that assay is in then.
///
/// A group that gives its controllers to those below it may hold no processes itself. Where assay is alone in its group
/// it moves into one below; others' processes it does not move.
fn with_memory(own: &Path) -> Result<(PathBuf, PathBuf), String> {
    let me = std::process::id();
    let leaf_name = format!("assay-{me}-{OWN_LEAF}");
    if own.file_name().is_some_and(|name| *name == *leaf_name)
        && let Some(parent) = own.parent()
    {
        return Ok((parent.to_path_buf(), own.to_path_buf()));
    }
    let has_memory = |file: &str| {
        fs::read_to_string(own.join(file))
            .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
    };
    if !has_memory("cgroup.controllers") {
        return Err(format!(
            "assay's control group `{}` was not given the memory controller: {}",
            own.display(),
            way_out()
        ));
    }
    let as_it_is = (own.to_path_buf(), own.to_path_buf());
    if has_memory("cgroup.subtree_control") {
        return Ok(as_it_is);
    }
    let give = || fs::write(own.join("cgroup.subtree_control"), "+memory");
    match give() {
        Ok(()) => return Ok(as_it_is),
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
        Err(error) => return Err(denied(Version::Two, &error)),
    }
    let inside = processes(own).map_err(|error| denied(Version::Two, &error))?;
    let mine = descendants(me);
    if let Some(other) = stranger(&inside, me, &mine) {
        return Err(format!(
            "other processes than assay's are in its control group `{}`, such as {other}: {}",
            own.display(),
            way_out()
        ));
    }
    let leaf = own.join(leaf_name);
    fs::create_dir(&leaf).map_err(|error| denied(Version::Two, &error))?;
    match move_all(own, &leaf).and_then(|()| give()) {
        Ok(()) => Ok((own.to_path_buf(), leaf)),
        Err(error) => {
            // Back to where it was, as far as that goes.
            let _ = move_all(&leaf, own);
            remove_group(&leaf);
            Err(denied(Version::Two, &error))
        }
    }
}

/// One of the processes that is neither `me` nor `mine`. One that has ended since they were listed is nobody's; what the
/// kernel shows as 0 is outside of this container.
fn stranger(inside: &[u32], me: u32, mine: &[u32]) -> Option<u32> {
    let is_other = |pid: &u32| *pid != me && !mine.contains(pid);
    let mut others = inside.iter().copied().filter(is_other);
    others.find(|&pid| pid == 0 || is_alive(pid))
}

/// Moves all processes from one group to another. Some may end meanwhile, and others begin.
fn move_all(from: &Path, to: &Path) -> std::io::Result<()> {
    loop {
        let mut left = processes(from)?;
        left.retain(|&pid| is_alive(pid));
        if left.is_empty() {
            return Ok(());
        }
        for pid in left {
            match write(&to.join("cgroup.procs"), u64::from(pid)) {
                Err(error) if is_alive(pid) => return Err(error),
                _ => {}
            }
        }
    }
}

/// The processes in a group.
fn processes(group: &Path) -> std::io::Result<Vec<u32>> {
    let text = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// A refusal by the kernel as a reason, with the way out.
fn denied(version: Version, error: &std::io::Error) -> String {
    let is_root = rustix::process::geteuid().is_root();
    match (error.kind(), version) {
        // Of version 1 nothing is given to users.
        (ErrorKind::PermissionDenied, Version::One) if !is_root => {
            format!("{error}; start assay as root")
        }
        (ErrorKind::PermissionDenied, Version::Two) if !is_root => {
            format!("{error}; start assay as root, or {}", way_out())
        }
        _ => error.to_string(),
    }
}

/// How a user gets a group of his own.
fn way_out() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "start assay in a control group of its own: `systemd-run --scope -p Delegate=yes assay run ...`"
    } else {
        "start assay in a control group of its own: `systemd-run --user --scope -p Delegate=yes assay run ...`"
    }
}

/// Writes a file of the kernel's, which has to be there.
fn write(path: &Path, value: u64) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group in a directory of files: what the kernel makes of them is for the tests with real servers.
    fn group(version: Version, top: &Path, files: &[(&str, &str)]) -> Group {
        let directory = top.join("slice/assay-1-0");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
        let top = top.to_path_buf();
        Group {
            home: top.join("slice"),
            group: probe::Group {
                version,
                directory,
                top,
            },
            swap: None,
        }
    }

    #[test]
    fn only_groups_of_ended_assays_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let mine = format!("assay-{}-0", std::process::id());
        let kept = [
            mine.as_str(),
            "assay-0",
            "assay-4194304000-x",
            "assay-+7-0",
            "other",
        ];
        // No process has such a number.
        let swept = ["assay-4194304000-0", "assay-4194304000-self"];
        for name in kept.iter().chain(&swept) {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        sweep(parent.path());
        assert!(kept.iter().all(|name| parent.path().join(name).is_dir()));
        assert!(!swept.iter().any(|name| parent.path().join(name).exists()));
    }

    #[test]
    fn a_group_of_an_earlier_process_with_this_number_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let first = made(parent.path()).unwrap();
        let name = first.file_name().unwrap().to_str().unwrap();
        let number: u32 = name.rsplit('-').next().unwrap().parse().unwrap();
        for taken in number + 1..number + 9 {
            let name = format!("assay-{}-{taken}", std::process::id());
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let next = made(parent.path()).unwrap();
        assert!(next.is_dir() && next != first);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 10);
    }

    #[test]
    fn version_one_limits_memory_and_swap_together() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("memory.limit_in_bytes", ""),
            ("memory.memsw.limit_in_bytes", ""),
            (
                "memory.stat",
                "cache 1\nhierarchical_memory_limit 70000000\n",
            ),
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            ),
        ];
        let mut group = group(Version::One, top.path(), &files);
        group.limit(100_000_000).unwrap();
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
        group.limit(100_000_000).unwrap();
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
    fn a_group_without_the_memory_controller_is_a_reason() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
        let reason = with_memory(own.path()).unwrap_err();
        assert!(
            reason.contains("was not given the memory controller"),
            "{reason}"
        );
        assert!(reason.contains("Delegate=yes"), "{reason}");
    }

    #[test]
    fn a_group_that_gives_memory_on_is_taken_as_it_is() {
        let own = tempfile::tempdir().unwrap();
        for file in ["cgroup.controllers", "cgroup.subtree_control"] {
            fs::write(own.path().join(file), "cpu memory pids\n").unwrap();
        }
        let expected = (own.path().to_path_buf(), own.path().to_path_buf());
        assert_eq!(with_memory(own.path()), Ok(expected));
        let leaf = own
            .path()
            .join(format!("assay-{}-self", std::process::id()));
        assert_eq!(
            with_memory(&leaf),
            Ok((own.path().to_path_buf(), leaf.clone()))
        );
    }

    #[test]
    fn a_process_that_has_ended_is_no_stranger() {
        // No process has such a number.
        let (me, ended) = (std::process::id(), 4_194_304_000);
        assert_eq!(stranger(&[me, ended, 7_777], me, &[7_777]), None);
        // The first process of the machine, and one outside of the container.
        assert_eq!(stranger(&[ended, 1], me, &[]), Some(1));
        assert_eq!(stranger(&[me, 0], me, &[]), Some(0));
    }

    #[test]
    fn a_process_outside_is_not_limited() {
        let top = tempfile::tempdir().unwrap();
        let group = group(Version::Two, top.path(), &[("memory.max", "100000000")]);
        let (effective, reason) = group.effective(100_000_000, std::process::id());
        assert_eq!(effective, None);
        assert!(reason.unwrap().contains("not in its control group"));
    }
}
