//! The server's process tree: its CPU time, memory and I/O, for servers of one process and for those with a process
//! per connection.
//!
//! CPU time. The kernel gives each process its own time (`utime`, `stime`) and that of the children it has waited for,
//! with theirs (`cutime`, `cstime`). When a backend ends, its time stays in its own (zombie) entry until its parent
//! waits for it, and moves to the parent's just before the entry goes. So the sum of all four over
//! all processes that are there neither loses nor doubles anything, also when backends end between two samples, or
//! are born and end between them. Five things could spoil that, and are dealt with:
//!
//! - *The sum is not read in one moment.* Parents are read before children, so a child that is read as alive can't be
//!   in its parent's figure as well. A child that was known and is gone may have been waited for after its parent was
//!   read; then the reading is repeated until one finds everyone who was there in the reading before it.
//! - *The entry outlives the move* by a moment, or by longer where the parent's thread is made to wait there. Until it
//!   is gone its state is `X` and its parent may be 0; such a process is left out, and the reading is repeated.
//! - *A parent that does not wait* (it ignores `SIGCHLD`): the kernel drops the child's time. Then the parent's
//!   `cutime` grew by less than the child was last seen with, and the difference is added here.
//! - *A process that lost its parent* is adopted by another outside the tree. It remains a member, and what it had is
//!   added here when it ends. One that is born and loses its parent between two samples is not found.
//! - *Rounding.* Each figure is cut to a tick. That keeps the sum from falling, as what is added up before it is cut
//!   is never less.
//!
//! What is reported never falls; where a reading could not be made consistent it waits at the highest value reported.
//!
//! Finding processes. `/proc/stat` counts all processes and threads that were ever created. While that count stands
//! still the tree can't have grown, and only its members are read. When it has moved, `/proc` is listed and the
//! processes that were not there before are looked at: that needs no `CONFIG_PROC_CHILDREN`, and costs no reading per
//! thread of the server, which `/proc/PID/task/TID/children` would.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::parse::{
    ProcessIo, ProcessStat, Ticks, parse_process_io, parse_process_stat, parse_shared_pages,
};
use crate::{ProbeError, Proc};

/// A process id is used again only when the kernel has gone once through all of them, 32768 or more. After so many
/// births what is known of processes outside the tree is forgotten and read anew.
const BIRTHS_UNTIL_REUSE: u64 = 16_000;

/// Readings of one sample, at most: more than two are needed only when processes end faster than they can be read.
const READINGS_MAX: u32 = 4;

/// Members whose shared memory is looked at in one sample: in turn, so with more of them it is some seconds old.
const SHARED_READS_MAX: usize = 16;

impl Ticks {
    fn both(self, other: Self, figure: fn(u64, u64) -> u64) -> Self {
        Self {
            user: figure(self.user, other.user),
            system: figure(self.system, other.system),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.both(other, u64::saturating_add)
    }

    fn less(self, other: Self) -> Self {
        self.both(other, u64::saturating_sub)
    }
}

/// A process of the tree, as last read.
#[derive(Debug, Default)]
struct Member {
    pid: u32,
    stat: ProcessStat,
    /// Whether its time is on the way to its parent. What else is known of it stays as it was: the kernel says that a
    /// process in that state has no parent.
    is_dead: bool,
    /// The time of its children at the last sample that was consistent; nothing before the first, as a child may have been
    /// read just before it ended and its parent, when both were found, just after.
    reaped_before: Ticks,
    shared_pages: u64,
    io: Option<ProcessIo>,
    /// `/proc/PID/stat`, kept open.
    stat_file: Option<OwnedFd>,
    /// `/proc/PID/io`, kept open.
    io_file: Option<OwnedFd>,
}

impl Member {
    fn new(pid: u32, stat: ProcessStat) -> Self {
        let mut member = Self {
            pid,
            ..Self::default()
        };
        member.stat.parent = stat.parent;
        member.stat.started_ticks = stat.started_ticks;
        member.update(stat);
        member
    }

    fn update(&mut self, stat: ProcessStat) {
        // It may have been released between the reading of its state and that of its parent.
        self.is_dead = stat.state == 'X' || (stat.parent == 0 && self.stat.parent != 0);
        if !self.is_dead {
            self.stat = stat;
        }
    }

    fn total(&self) -> Ticks {
        self.stat.own.plus(self.stat.reaped)
    }
}

/// The figures of the whole tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeSample {
    pub cpu: Ticks,
    pub process_count: u64,
    /// Resident memory of the largest process.
    pub resident_pages_max: u64,
    /// Resident memory that only one process holds, over all.
    pub private_pages: u64,
    /// The largest part of one process that others may hold too.
    pub shared_pages_max: u64,
    /// `None` where it may not be read.
    pub io: Option<ProcessIo>,
}

/// The process tree below one process.
#[derive(Debug)]
pub(crate) struct Tree {
    root: u32,
    /// Parents before their children.
    members: Vec<Member>,
    /// Processes that were looked at and do not belong to the tree.
    strangers: HashSet<u32>,
    /// Births on the host when `/proc` was last listed; `None` before that.
    births_listed: Option<u64>,
    /// Births when `strangers` was last begun anew.
    births_forgotten: u64,
    /// Members whose files are kept open.
    kept_count_max: usize,
    /// The member whose shared memory is looked at next.
    shared_next: usize,
    /// Members that are gone and whose time has not been looked for yet.
    gone: Vec<Member>,
    /// Time of members that ended without anyone in the tree having got it.
    lost: Ticks,
    /// The highest values reported.
    reported: TreeSample,
}

impl Tree {
    pub fn new(root: u32) -> Self {
        Self {
            root,
            members: Vec::new(),
            strangers: HashSet::new(),
            births_listed: None,
            births_forgotten: 0,
            // Two files each, and at most a quarter of what the process may open: the rest is for connections.
            kept_count_max: (getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 8).min(4096)
                as usize,
            shared_next: 0,
            gone: Vec::new(),
            lost: Ticks::default(),
            reported: TreeSample::default(),
        }
    }

    /// Reads the tree. `births` is the count of processes created on the host, read before this call.
    pub fn sample(
        &mut self,
        proc: &Proc,
        births: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<TreeSample, ProbeError> {
        if self.births_listed != Some(births) {
            self.find_members(proc, births, buffer)?;
        }
        for _ in 0..READINGS_MAX {
            if self.read_members(proc, buffer)? {
                self.settle_gone();
                break;
            }
        }
        self.read_shared(proc, buffer)?;
        Ok(self.report())
    }

    /// Lists `/proc` and takes in the processes whose parent is a member.
    fn find_members(
        &mut self,
        proc: &Proc,
        births: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ProbeError> {
        // Without such a process the tree is empty, and stays so: another may have its number by then.
        if self.births_listed.is_none()
            && let Some(stat) = read_stat(proc, self.root, &mut None, false, buffer)?
        {
            self.members.push(Member::new(self.root, stat));
        }
        if births.saturating_sub(self.births_forgotten) >= BIRTHS_UNTIL_REUSE {
            self.strangers.clear();
            self.births_forgotten = births;
        }
        self.births_listed = Some(births);
        if self.members.is_empty() {
            return Ok(());
        }

        let entries = fs_err::read_dir(proc.path("proc")).map_err(|source| ProbeError::Read {
            path: proc.path("proc"),
            source,
        })?;
        let present: HashSet<u32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        self.strangers.retain(|pid| present.contains(pid));

        let mut candidates = Vec::new();
        for &pid in &present {
            if self.strangers.contains(&pid) || self.members.iter().any(|member| member.pid == pid)
            {
                continue;
            }
            match read_stat(proc, pid, &mut None, false, buffer) {
                Ok(Some(stat)) => candidates.push((pid, stat)),
                Ok(None) => {}
                // Of another user, where `/proc` is mounted with `hidepid`: a server's processes are its user's.
                Err(ProbeError::Read { source, .. })
                    if source.kind() == std::io::ErrorKind::PermissionDenied =>
                {
                    self.strangers.insert(pid);
                }
                Err(error) => return Err(error),
            }
        }
        // Children of members, then their children, until there are no more: parents come before children.
        let mut from = 0;
        while from < self.members.len() {
            let parent = self.members[from].pid;
            candidates.retain(|(pid, stat)| {
                let belongs = stat.parent == parent;
                if belongs {
                    self.members.push(Member::new(*pid, *stat));
                }
                !belongs
            });
            from += 1;
        }
        // One whose parent has just ended is not a stranger yet: it may have been adopted within the tree.
        let strangers = candidates
            .iter()
            .filter(|(_, stat)| stat.parent == 0 || present.contains(&stat.parent));
        self.strangers.extend(strangers.map(|(pid, _)| *pid));
        Ok(())
    }

    /// Reads all members once, parents first. False if one that was there is gone or about to be: then a parent's
    /// figures may be older or newer than the end of its child.
    fn read_members(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Result<bool, ProbeError> {
        let gone_before = self.gone.len();
        let mut kept = Vec::with_capacity(self.members.len());
        for mut member in std::mem::take(&mut self.members) {
            let keep = kept.len() < self.kept_count_max;
            match read_stat(proc, member.pid, &mut member.stat_file, keep, buffer)? {
                Some(stat) if stat.started_ticks == member.stat.started_ticks => {
                    member.update(stat);
                    // What can't be read of a process that ends right now stays as it was.
                    let name = format!("proc/{}/io", member.pid);
                    if let Ok(text) = proc.read_piece(&name, &mut member.io_file, keep, buffer) {
                        member.io = Some(proc.parsed(&name, parse_process_io(&text))?);
                    }
                    kept.push(member);
                }
                _ => self.gone.push(member),
            }
        }
        self.members = kept;
        Ok(self.gone.len() == gone_before && !self.members.iter().any(|member| member.is_dead))
    }

    /// Looks at the shared memory of some members, in turn: it costs a file per process and changes slowly.
    fn read_shared(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
        let count = self.members.len();
        // All of them the first time, so that the first sample is whole.
        let reads = if self.shared_next == 0 {
            count
        } else {
            count.min(SHARED_READS_MAX)
        };
        for _ in 0..reads {
            let member = &mut self.members[self.shared_next % count];
            self.shared_next += 1;
            let name = format!("proc/{}/statm", member.pid);
            if let Ok(text) = proc.read_piece(&name, &mut None, false, buffer) {
                member.shared_pages = proc.parsed(&name, parse_shared_pages(&text))?;
            }
        }
        Ok(())
    }

    /// Looks for the time of members that are gone: their nearest member above must have got it, and what it did not
    /// get is kept in `lost`.
    fn settle_gone(&mut self) {
        let known = |pid| {
            let mut all = self.members.iter().chain(&self.gone);
            all.any(|member| member.pid == pid)
        };
        let left = |member| self.missing(member, self.gone.len());
        let orphans = self.gone.iter().filter(|member| !known(member.stat.parent));
        let lost = orphans
            .map(|orphan| orphan.total().plus(left(orphan)))
            .chain(self.members.iter().map(left))
            .fold(self.lost, Ticks::plus);
        self.lost = lost;
        self.gone.clear();
        for member in &mut self.members {
            member.reaped_before = member.stat.reaped;
        }
    }

    /// Of the time of the members below `member` that are gone, what it had not got when it was last read. Each level
    /// is of younger processes, so this ends; the bound on `levels` is for ids that were used again.
    fn missing(&self, member: &Member, levels: usize) -> Ticks {
        if levels == 0 {
            return Ticks::default();
        }
        let received = member.stat.reaped.less(member.reaped_before);
        let children = self
            .gone
            .iter()
            .filter(|gone| gone.stat.parent == member.pid);
        children
            .map(|child| child.total().plus(self.missing(child, levels - 1)))
            .fold(Ticks::default(), Ticks::plus)
            .less(received)
    }

    fn report(&mut self) -> TreeSample {
        let mut sample = TreeSample {
            cpu: self.lost,
            process_count: self.members.len() as u64,
            ..Default::default()
        };
        // Those in `gone` and the dead are left out: if the reading could not be made consistent, a parent may have
        // their time or not. That can only be too little, and is made good by the next reading.
        for member in self.members.iter().filter(|member| !member.is_dead) {
            let (resident, shared) = (member.stat.resident_pages, member.shared_pages);
            sample.cpu = sample.cpu.plus(member.total());
            sample.resident_pages_max = sample.resident_pages_max.max(resident);
            sample.shared_pages_max = sample.shared_pages_max.max(shared);
            sample.private_pages += resident.saturating_sub(shared);
            if let Some(io) = member.io {
                let sum = sample.io.get_or_insert_default();
                sum.read_bytes += io.read_bytes;
                sum.write_bytes += io.write_bytes;
            }
        }
        sample.cpu = sample.cpu.both(self.reported.cpu, u64::max);
        // A child's I/O moves to its parent as its time does, but into the same figure as the parent's own.
        if let Some(before) = self.reported.io {
            let io = sample.io.get_or_insert_default();
            io.read_bytes = io.read_bytes.max(before.read_bytes);
            io.write_bytes = io.write_bytes.max(before.write_bytes);
        }
        self.reported = sample;
        sample
    }
}

/// `None` if there is no such process any more.
fn read_stat(
    proc: &Proc,
    pid: u32,
    kept: &mut Option<OwnedFd>,
    keep: bool,
    buffer: &mut Vec<u8>,
) -> Result<Option<ProcessStat>, ProbeError> {
    let name = format!("proc/{pid}/stat");
    match proc.read_piece(&name, kept, keep, buffer) {
        Ok(text) => proc.parsed(&name, parse_process_stat(&text)).map(Some),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(ProbeError::Read {
            path: proc.path(&name),
            source: errno.into(),
        }),
    }
}

#[cfg(test)]
mod tests;
