//! The CPU time, memory and I/O of the server's process tree, for servers with one process or one
//! process per connection.
//!
//! CPU time. The kernel counts a process's own time (`utime`, `stime`), and the time of the
//! children that it has waited for, including their children (`cutime`, `cstime`). When a backend
//! ends, its time stays in its own (zombie) entry until its parent waits for it. Just before the
//! entry is removed, the time moves to the parent. So the sum of all four over all processes
//! neither loses nor doubles time, even when backends end or start between two samples. Five cases
//! need care:
//!
//! - *The sum is not read in one moment.* Parents are read before children, so the time of a child
//!   that is read as alive cannot be in its parent's figure too. When a known child is gone, its
//!   parent may have waited for it after the parent was read. Then the reading is repeated until it
//!   finds every member of the reading before.
//! - *The entry outlives the move* for a moment, or longer if the parent's thread is delayed there.
//!   Until it is removed, its state is `X` and its parent may be 0. Such a process is left out, and
//!   the reading is repeated.
//! - *A parent does not wait* (it ignores `SIGCHLD`). The kernel then drops the child's time: the
//!   parent's `cutime` grows by less than the child's last known time. The difference is added
//!   here.
//! - *A process loses its parent* and is adopted by a process outside the tree. It remains a
//!   member, and its time is added here when it ends. A process that starts and loses its parent
//!   between two samples is not found.
//! - *Rounding.* The kernel rounds each figure down to a tick. The sum does not decrease, because
//!   the kernel adds times up before it rounds them.
//!
//! A reported time never decreases. After an inconsistent reading, it stays at the highest value
//! reported.
//!
//! Finding processes. `/proc/stat` counts all processes and threads created since boot. While that
//! count is unchanged, the tree cannot have grown, and only its members are read. Otherwise, `/proc`
//! is listed, and processes that are new are read. Unlike `/proc/PID/task/TID/children`, this needs
//! no `CONFIG_PROC_CHILDREN`, and no reading for each thread of the server.

mod switches;

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::parse::{
    ProcessIo, ProcessStat, Ticks, parse_process_io, parse_process_stat, parse_shared_pages,
};
use crate::{ProbeError, Proc};
use switches::Switches;

/// The number of births after which processes outside the tree are read again. The kernel reuses a
/// process ID only after it has used all of them, 32768 or more.
const BIRTHS_UNTIL_REUSE: u64 = 16_000;

/// The highest number of readings for one sample. More than two are needed only when processes end
/// faster than they can be read.
const READINGS_MAX: u32 = 4;

/// The number of members whose shared memory is read in one sample. More members take turns, so
/// some values are older.
const SHARED_READS_MAX: usize = 16;

impl Ticks {
    fn combine(self, other: Self, figure: fn(u64, u64) -> u64) -> Self {
        Self { user: figure(self.user, other.user), system: figure(self.system, other.system) }
    }

    fn plus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_sub)
    }
}

/// A process of the tree, as it was last read.
#[derive(Debug, Default)]
struct Member {
    pid: u32,
    stat: ProcessStat,
    /// True while the process's time moves to its parent. The other fields keep their last values,
    /// because in that state the kernel reports no parent.
    is_dead: bool,
    /// The time of the children at the last consistent sample. It is zero before the first one:
    /// when the tree is found, a child may be read before it ends, and its parent after.
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
        let mut member = Self { pid, ..Self::default() };
        member.stat.parent = stat.parent;
        member.stat.started_ticks = stat.started_ticks;
        member.update(stat);
        member
    }

    fn update(&mut self, stat: ProcessStat) {
        // The kernel may release the process between its state and its parent.
        self.is_dead = stat.state == 'X' || (stat.parent == 0 && self.stat.parent != 0);
        if !self.is_dead {
            self.stat = stat;
        }
    }

    fn total(&self) -> Ticks {
        self.stat.own.plus(self.stat.reaped)
    }
}

/// The figures of a whole tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeSample {
    pub cpu: Ticks,
    pub process_count: u64,
    /// Resident memory of the largest process.
    pub resident_pages_max: u64,
    /// Private resident memory of all processes.
    pub private_pages: u64,
    /// Resident memory that one process may share with others, the maximum of all processes.
    pub shared_pages_max: u64,
    /// `None` if it cannot be read.
    pub io: Option<ProcessIo>,
    /// `None` if there are too many threads.
    pub context_switches: Option<u64>,
}

/// A process and all its descendants.
#[derive(Debug)]
pub(crate) struct Tree {
    root: u32,
    /// The processes of the tree, parents before their children.
    members: Vec<Member>,
    /// Known processes outside the tree.
    outsiders: HashSet<u32>,
    /// The count of births when `/proc` was last listed; `None` before that.
    births_at_listing: Option<u64>,
    /// The count of births when `outsiders` was last cleared.
    births_at_clearing: u64,
    /// The highest number of members whose files are kept open.
    open_members_max: usize,
    /// The member whose shared memory is read next.
    shared_next: usize,
    /// Members that are gone and whose time is not settled yet.
    gone: Vec<Member>,
    /// Time of ended members that moved to nobody in the tree.
    unclaimed: Ticks,
    switches: Switches,
    /// The highest values reported.
    reported: TreeSample,
}

impl Tree {
    pub fn new(root: u32) -> Self {
        Self {
            root,
            members: Vec::new(),
            outsiders: HashSet::new(),
            births_at_listing: None,
            births_at_clearing: 0,
            // Two files for each member, and at most a quarter of the limit, which leaves files for
            // connections.
            open_members_max: (getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 8)
                .min(4096) as usize,
            shared_next: 0,
            gone: Vec::new(),
            unclaimed: Ticks::default(),
            switches: Switches::default(),
            reported: TreeSample::default(),
        }
    }

    /// Returns the process IDs of the tree, parents before their children.
    pub fn members(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|member| member.pid)
    }

    /// Reads the tree. `births` is the count of processes created on the host, read before this
    /// call.
    pub fn sample(
        &mut self,
        proc: &Proc,
        births: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<TreeSample, ProbeError> {
        if self.births_at_listing != Some(births) {
            self.find_members(proc, births, buffer)?;
        }

        // A reading during which a process ended is repeated.
        for _ in 0..READINGS_MAX {
            if self.read_members(proc, buffer)? {
                self.settle_gone();
                break;
            }
        }

        self.read_shared(proc, buffer)?;
        let processes = self.members.iter().map(|member| member.pid);
        let context_switches = self.switches.sample(proc, processes, buffer);
        Ok(TreeSample { context_switches, ..self.report() })
    }

    /// Lists `/proc` and adds the processes whose parent is a member.
    fn find_members(
        &mut self,
        proc: &Proc,
        births: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ProbeError> {
        // If the root is missing, the tree stays empty: later, the root's ID may belong to another
        // process.
        if self.births_at_listing.is_none()
            && let Some(stat) = read_stat(proc, self.root, &mut None, false, buffer)?
        {
            self.members.push(Member::new(self.root, stat));
        }

        if births.saturating_sub(self.births_at_clearing) >= BIRTHS_UNTIL_REUSE {
            self.outsiders.clear();
            self.births_at_clearing = births;
        }
        self.births_at_listing = Some(births);
        if self.members.is_empty() {
            return Ok(());
        }

        let entries = fs_err::read_dir(proc.path("proc"))
            .map_err(|source| ProbeError::Read { path: proc.path("proc"), source })?;
        let present: HashSet<u32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        self.outsiders.retain(|pid| present.contains(pid));

        let mut candidates = self.read_candidates(proc, &present, buffer)?;
        self.adopt_children(&mut candidates);

        // A process whose parent has just ended may have been adopted within the tree. It stays
        // unknown, and is read again.
        for candidate in candidates {
            let parent = candidate.stat.parent;
            if parent == 0 || present.contains(&parent) {
                self.outsiders.insert(candidate.pid);
            }
        }
        Ok(())
    }

    /// Reads the processes that are not known yet.
    fn read_candidates(
        &mut self,
        proc: &Proc,
        present: &HashSet<u32>,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<Candidate>, ProbeError> {
        let mut candidates = Vec::new();
        for &pid in present {
            if self.outsiders.contains(&pid) || self.members.iter().any(|member| member.pid == pid)
            {
                continue;
            }
            match read_stat(proc, pid, &mut None, false, buffer) {
                Ok(Some(stat)) => candidates.push(Candidate { pid, stat }),
                Ok(None) => {}
                // `hidepid` hides other users' processes, which cannot be the server's.
                Err(ProbeError::Read { source, .. })
                    if source.kind() == std::io::ErrorKind::PermissionDenied =>
                {
                    self.outsiders.insert(pid);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(candidates)
    }

    /// Moves the children of members from the candidates to the members, then their children, and
    /// so on. So parents come before children.
    fn adopt_children(&mut self, candidates: &mut Vec<Candidate>) {
        let mut index = 0;
        while index < self.members.len() {
            let parent = self.members[index].pid;
            let children = candidates.extract_if(.., |candidate| candidate.stat.parent == parent);
            self.members.extend(children.map(|child| Member::new(child.pid, child.stat)));
            index += 1;
        }
    }

    /// Reads all members once, parents first. Returns false if a member is gone or about to be.
    /// Then a parent's figures may be older or newer than the end of its child.
    fn read_members(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Result<bool, ProbeError> {
        let gone_before = self.gone.len();
        let mut present = Vec::with_capacity(self.members.len());
        for mut member in std::mem::take(&mut self.members) {
            let keep_open = present.len() < self.open_members_max;
            match read_stat(proc, member.pid, &mut member.stat_file, keep_open, buffer)? {
                Some(stat) if stat.started_ticks == member.stat.started_ticks => {
                    member.update(stat);
                    // If the process ends now, its last I/O figures remain.
                    let name = format!("proc/{}/io", member.pid);
                    if let Ok(text) =
                        proc.read_at_once(&name, &mut member.io_file, keep_open, buffer)
                    {
                        member.io = Some(proc.parsed(&name, parse_process_io(&text))?);
                    }
                    present.push(member);
                }
                _ => self.gone.push(member),
            }
        }

        self.members = present;
        Ok(self.gone.len() == gone_before && !self.members.iter().any(|member| member.is_dead))
    }

    /// Reads the shared memory of some members in turn, because it takes a file per process and
    /// changes slowly.
    fn read_shared(&mut self, proc: &Proc, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
        let count = self.members.len();
        // The first sample must be complete.
        let reads = if self.shared_next == 0 { count } else { count.min(SHARED_READS_MAX) };
        for _ in 0..reads {
            let member = &mut self.members[self.shared_next % count];
            self.shared_next += 1;
            let name = format!("proc/{}/statm", member.pid);
            if let Ok(text) = proc.read_at_once(&name, &mut None, false, buffer) {
                member.shared_pages = proc.parsed(&name, parse_shared_pages(&text))?;
            }
        }
        Ok(())
    }

    /// Settles the time of members that are gone. Their nearest remaining ancestor should have
    /// received it; `unclaimed` gets the difference.
    fn settle_gone(&mut self) {
        let levels = self.gone.len();
        let mut unclaimed = self.unclaimed;
        for orphan in self.gone.iter().filter(|member| !self.is_known(member.stat.parent)) {
            unclaimed = unclaimed.plus(orphan.total()).plus(self.missing(orphan, levels));
        }
        for member in &self.members {
            unclaimed = unclaimed.plus(self.missing(member, levels));
        }
        self.unclaimed = unclaimed;

        self.gone.clear();
        for member in &mut self.members {
            member.reaped_before = member.stat.reaped;
        }
    }

    /// Returns whether a process is or was a member.
    fn is_known(&self, pid: u32) -> bool {
        self.members.iter().chain(&self.gone).any(|member| member.pid == pid)
    }

    /// Returns the time of gone members below `member` that `member` had not received when it was
    /// last read. Each level has younger processes, so the recursion ends; `levels` bounds it
    /// if IDs were reused.
    fn missing(&self, member: &Member, levels: usize) -> Ticks {
        if levels == 0 {
            return Ticks::default();
        }
        let mut due = Ticks::default();
        for child in self.gone.iter().filter(|gone| gone.stat.parent == member.pid) {
            due = due.plus(child.total()).plus(self.missing(child, levels - 1));
        }
        let received = member.stat.reaped.minus(member.reaped_before);
        due.minus(received)
    }

    fn report(&mut self) -> TreeSample {
        let mut sample = TreeSample {
            cpu: self.unclaimed,
            process_count: self.members.len() as u64,
            ..Default::default()
        };

        // Leaves out gone and dead members: after an inconsistent reading, a parent may already
        // have their time. The result can only be too low, and the next reading corrects it.
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

        // Never less than before; see the top of this file.
        sample.cpu = sample.cpu.combine(self.reported.cpu, u64::max);
        // A child's I/O also moves to its parent, but into the parent's own figure.
        if let Some(before) = self.reported.io {
            let io = sample.io.get_or_insert_default();
            io.read_bytes = io.read_bytes.max(before.read_bytes);
            io.write_bytes = io.write_bytes.max(before.write_bytes);
        }
        self.reported = sample;
        sample
    }
}

/// A process that may belong to the tree.
#[derive(Debug)]
struct Candidate {
    pid: u32,
    stat: ProcessStat,
}

/// Reads the `stat` file of a process. Returns `None` if the process is gone.
fn read_stat(
    proc: &Proc,
    pid: u32,
    open_file: &mut Option<OwnedFd>,
    keep_open: bool,
    buffer: &mut Vec<u8>,
) -> Result<Option<ProcessStat>, ProbeError> {
    let name = format!("proc/{pid}/stat");
    match proc.read_at_once(&name, open_file, keep_open, buffer) {
        Ok(text) => proc.parsed(&name, parse_process_stat(&text)).map(Some),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(ProbeError::Read { path: proc.path(&name), source: errno.into() }),
    }
}

#[cfg(test)]
mod tests;
