//! The sampler: one row of the host's metrics per call.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::columns::{Place, Sample};
use crate::disk::Disks;
use crate::frequency::Frequency;
use crate::group::ServerGroup;
use crate::parse::{parse_meminfo, parse_pressure, parse_process_io, parse_stat, parse_vmstat};
use crate::tree::Tree;
use crate::{ProbeError, Proc, storage_size};

/// The walk over a target's files is repeated only when this many times its own duration has passed: it takes at most
/// 0.5% of one processor. One of 5 ms is made every second, one of 50 ms every ten.
const WALK_SPACING: u32 = 200;

/// What a sampler looks at besides the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The root of the server's process tree, where there is a server on this host.
    pub server_pid: Option<u32>,
    /// Directories and files that hold tables and indexes.
    pub data: Vec<PathBuf>,
    /// Directories and files that hold redo, undo or write-ahead logs; they may lie within those of `data`.
    pub logs: Vec<PathBuf>,
}

/// Takes samples. One sampler serves one target: what it knows of processes and counters goes on from call to call.
#[derive(Debug)]
pub struct Sampler {
    proc: Proc,
    tick_ns: u64,
    page_bytes: u64,
    buffer: Vec<u8>,
    targets: Targets,
    disks: Disks,
    frequency: Frequency,
    server: Option<Tree>,
    server_group: Option<ServerGroup>,
    sizes: Sizes,
    idle_ns: u64,
    iowait_ns: u64,
}

/// Sizes of the target's files, and when they were last looked at.
#[derive(Debug, Default)]
struct Sizes {
    last: Option<(u64, u64)>,
    walked: Option<(Instant, Duration)>,
}

impl Sampler {
    /// A sampler of this machine. The devices of the data are looked up here, once: make it when the directories exist.
    pub fn new(targets: Targets) -> Self {
        Self::at(Proc::live(), targets)
    }

    /// A sampler of the files below another root.
    pub fn at(proc: Proc, targets: Targets) -> Self {
        let disks = Disks::of(&proc, targets.data.iter().chain(&targets.logs));
        Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            buffer: Vec::new(),
            server: targets.server_pid.map(Tree::new),
            server_group: targets
                .server_pid
                .and_then(|pid| ServerGroup::of(&proc, pid)),
            sizes: Sizes::default(),
            idle_ns: 0,
            iowait_ns: 0,
            frequency: Frequency::of(&proc),
            proc,
            targets,
            disks,
        }
    }

    /// Goes on with another server, or none. Its counters begin anew.
    pub fn set_server(&mut self, pid: Option<u32>) {
        self.targets.server_pid = pid;
        self.server = pid.map(Tree::new);
        self.server_group = pid.and_then(|pid| ServerGroup::of(&self.proc, pid));
    }

    /// The names of the block devices that the disk's columns count, summed.
    pub fn disks(&self) -> Vec<String> {
        self.disks.names(&self.proc)
    }

    /// Why the disk's columns are not applicable, or lack a directory: one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.disks.notes
    }

    /// Takes one sample. Rates need two; the first may be taken at any time before the step.
    ///
    /// Sizes of files are repeated from an earlier sample while a new walk would take more than 0.5% of a processor.
    ///
    /// # Errors
    /// When `/proc/stat` or `/proc/meminfo` can't be read, or a file is not as the kernel documents it. What this
    /// kernel does not have, or a process that ends meanwhile, is no error.
    pub fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut row = Sample::new();
        let births = self.sample_system(&mut row)?;
        if let Some(server) = &mut self.server {
            let tree = server.sample(&self.proc, births, &mut self.buffer)?;
            row.set(Place::ServerCpuUser, tree.cpu.user * self.tick_ns);
            row.set(Place::ServerCpuSystem, tree.cpu.system * self.tick_ns);
            row.set(Place::ServerProcess, tree.process_count);
            row.set(
                Place::ServerRss,
                (tree.private_pages + tree.shared_pages_max) * self.page_bytes,
            );
            row.set(
                Place::ServerRssMax,
                tree.resident_pages_max * self.page_bytes,
            );
            row.set(Place::ServerPrivate, tree.private_pages * self.page_bytes);
            row.set(Place::ServerRead, tree.io.map(|io| io.read_bytes));
            row.set(Place::ServerWrite, tree.io.map(|io| io.write_bytes));
        }
        if let Some(group) = &self.server_group {
            let (memory, cache) = group.sample(&self.proc, &mut self.buffer)?;
            row.set(Place::ServerGroupMemory, memory);
            row.set(Place::ServerGroupCache, cache);
        }
        self.disks.sample(&self.proc, &mut self.buffer, &mut row)?;
        self.sample_memory(&mut row)?;
        self.sample_pressure(&mut row)?;
        // Last, as these may take longest: the counters above then belong to one moment.
        row.set(
            Place::CpuFrequency,
            self.frequency.sample(&self.proc, &mut self.buffer),
        );
        if let Some((data_bytes, log_bytes)) = self.sizes(now()) {
            row.set(Place::Data, data_bytes);
            row.set(Place::Log, log_bytes);
        }
        if let Some(io) = self
            .proc
            .optional("proc/self/io", &mut self.buffer, parse_process_io)?
        {
            row.set(Place::AssayRead, io.read_bytes);
            row.set(Place::AssayWrite, io.write_bytes);
        }
        let own = clock_gettime(ClockId::ProcessCPUTime);
        row.set(
            Place::AssayCpu,
            own.tv_sec.unsigned_abs() * 1_000_000_000 + own.tv_nsec.unsigned_abs(),
        );
        Ok(row)
    }

    /// CPU and processes of the host. Gives the count of processes and threads created so far.
    fn sample_system(&mut self, row: &mut Sample) -> Result<u64, ProbeError> {
        let system = self
            .proc
            .required("proc/stat", &mut self.buffer, parse_stat)?;
        // Some kernels' figure of stolen time is near 2^64 after a machine has moved to another host.
        let ns = |ticks: u64| ticks.saturating_mul(self.tick_ns);
        let [user, nice, kernel, idle, iowait, irq, softirq, steal] = system.cpu_ticks.map(ns);
        // The kernel's documentation says of these two that they may fall.
        self.idle_ns = self.idle_ns.max(idle);
        self.iowait_ns = self.iowait_ns.max(iowait);
        row.set(Place::CpuUser, user);
        row.set(Place::CpuNice, nice);
        row.set(Place::CpuSystem, kernel);
        row.set(Place::CpuIdle, self.idle_ns);
        row.set(Place::CpuIowait, self.iowait_ns);
        row.set(Place::CpuIrq, irq);
        row.set(Place::CpuSoftirq, softirq);
        row.set(Place::CpuSteal, steal);
        row.set(Place::ContextSwitch, system.context_switch_count);
        row.set(Place::Created, system.created_count);
        row.set(Place::Runnable, system.runnable_count);
        row.set(Place::Blocked, system.blocked_count);
        Ok(system.created_count)
    }

    fn sample_memory(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        let memory = self
            .proc
            .required("proc/meminfo", &mut self.buffer, parse_meminfo)?;
        row.set(Place::MemoryFree, memory.free_bytes);
        row.set(Place::MemoryAvailable, memory.available_bytes);
        row.set(Place::MemoryCached, memory.cached_bytes);
        row.set(Place::MemoryDirty, memory.dirty_bytes);
        row.set(Place::MemoryWriteback, memory.writeback_bytes);
        row.set(Place::SwapUsed, memory.swap_used_bytes);
        if let Some(paging) = self
            .proc
            .optional("proc/vmstat", &mut self.buffer, parse_vmstat)?
        {
            let places = [
                Place::PageIn,
                Place::PageOut,
                Place::SwapIn,
                Place::SwapOut,
                Place::Fault,
                Place::MajorFault,
            ];
            for (place, value) in places.into_iter().zip(paging) {
                row.set(place, value);
            }
        }
        Ok(())
    }

    fn sample_pressure(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        // A kernel with pressure switched off has the files and refuses to read them.
        for (file, some, full) in [
            ("proc/pressure/cpu", Place::PressureCpuSome, None),
            (
                "proc/pressure/io",
                Place::PressureIoSome,
                Some(Place::PressureIoFull),
            ),
            (
                "proc/pressure/memory",
                Place::PressureMemorySome,
                Some(Place::PressureMemoryFull),
            ),
        ] {
            let Some(pressure) = self.proc.optional(file, &mut self.buffer, parse_pressure)? else {
                continue;
            };
            row.set(some, pressure.some_us * 1000);
            if let Some(full) = full {
                row.set(full, pressure.full_us.map(|us| us * 1000));
            }
        }
        Ok(())
    }

    /// Sizes of the files: looked at now, or repeated where looking is not due. `None` without files, and where they
    /// may not be read.
    fn sizes(&mut self, at: Instant) -> Option<(u64, u64)> {
        if self.targets.data.is_empty() && self.targets.logs.is_empty() {
            return None;
        }
        let due = match self.sizes.walked {
            Some((walked_at, took)) => {
                at.saturating_duration_since(walked_at) >= took * WALK_SPACING
            }
            None => true,
        };
        if due {
            self.sizes.last = storage_size(&self.targets.data, &self.targets.logs).ok();
            self.sizes.walked = Some((at, now().saturating_duration_since(at)));
        }
        self.sizes.last
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the cost of a walk over files, not a measured time"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
