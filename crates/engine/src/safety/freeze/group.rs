//! A control group of version 2 that freezes the processes of a program.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::io::Errno;

use crate::safety::guard::{FREEZE_FILE, Guarded, Hold, descendants, is_alive, remove_group};
use crate::safety::limits::group;

/// More than the file with a group's state has.
const EVENTS_BYTES_MAX: usize = 256;

/// The group of a program, with open files.
#[derive(Debug)]
pub(super) struct GroupMeans {
    directory: PathBuf,
    is_temporary: bool,
    freeze: fs::File,
    events: fs::File,
    is_frozen: bool,
}

impl GroupMeans {
    /// Finds the group that limits the program, or that an earlier freezer used. Otherwise, creates
    /// one and moves the program into it.
    ///
    /// # Errors
    /// The reason why that is not possible on this machine, and what to do.
    pub(super) fn prepare(guarded: &Guarded) -> Result<Self, String> {
        let can_freeze = |group: &&PathBuf| group.join(FREEZE_FILE).exists();
        if let Some(limits) = guarded.groups().iter().find(can_freeze) {
            return Self::open(limits.clone(), false).map_err(|error| error.to_string());
        }

        if let Some(earlier) = guarded.freezer_group() {
            return Self::open(earlier, true).map_err(|error| error.to_string());
        }

        let directory = group::create_without_limits()?;
        let prepared = Self::open(directory.clone(), true)
            .and_then(|means| move_descendants(guarded.guard_pid(), &directory).map(|()| means));
        prepared.map_err(|error| {
            abandon(&directory);
            format!("cannot use the control group `{}`: {error}", directory.display())
        })
    }

    fn open(directory: PathBuf, is_temporary: bool) -> io::Result<Self> {
        let freeze = fs::OpenOptions::new().write(true).open(directory.join(FREEZE_FILE))?;
        let events = fs::File::open(directory.join("cgroup.events"))?;
        Ok(Self { directory, is_temporary, freeze, events, is_frozen: false })
    }

    /// Returns what the guard needs to know.
    pub(super) fn hold(&self) -> Hold {
        Hold::Group { directory: self.directory.clone(), is_temporary: self.is_temporary }
    }

    /// Orders the kernel to freeze the group, once. Returns true when it is frozen.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if !self.is_frozen {
            self.is_frozen = true;
            rustix::io::pwrite(&self.freeze, b"1", 0)?;
        }

        let mut buffer = [0; EVENTS_BYTES_MAX];
        let length = rustix::io::pread(&self.events, &mut buffer, 0)?;
        Ok(buffer[..length].split(|&byte| byte == b'\n').any(|line| line == b"frozen 1"))
    }

    /// Thaws the group. A group that is gone has no processes.
    pub(super) fn thaw(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_frozen) {
            return Ok(());
        }
        match rustix::io::pwrite(&self.freeze, b"0", 0) {
            Err(Errno::NODEV) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Moves all descendants of the guard to a group. Meanwhile, processes may start and end: those
/// that start in the group stay there.
fn move_descendants(guard: u32, directory: &Path) -> io::Result<()> {
    loop {
        let inside = group::processes(directory)?;
        let mut outside = descendants(guard);
        outside.retain(|pid| !inside.contains(pid));

        if outside.is_empty() {
            return Ok(());
        }

        for pid in outside {
            match group::write(&directory.join("cgroup.procs"), &pid.to_string()) {
                Err(error) if is_alive(pid) => return Err(error),
                // A process that has ended need not be moved.
                _ => {}
            }
        }
    }
}

/// Removes a group that cannot be used, and moves the processes in it back to its parent.
fn abandon(directory: &Path) {
    if let Some(parent) = directory.parent() {
        for pid in group::processes(directory).unwrap_or_default() {
            let _ = group::write(&parent.join("cgroup.procs"), &pid.to_string());
        }
    }
    remove_group(directory);
}
