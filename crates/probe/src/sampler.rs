//! The sampler: one row of the host's metrics per call.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::columns::{Place, Sample};
use crate::disk::Disks;
use crate::frequency::Frequency;
use crate::group::ServerGroup;
use crate::parse::{parse_cpu_ticks, parse_pressure, parse_process_io, required_value, value};
use crate::tree::Tree;
use crate::{ProbeError, Proc, storage_size};

/// The walk over a target's files is repeated only when this many times its own duration has passed: it takes at most
/// 0.5% of one processor. One of 5 ms is made every second, one of 50 ms every ten.
const WALK_SPACING: u32 = 200;

/// Where the times of `/proc/stat` go, in their order.
const TIMES: [Place; 8] = [
    Place::CpuUser,
    Place::CpuNice,
    Place::CpuSystem,
    Place::CpuIdle,
    Place::CpuIowait,
    Place::CpuIrq,
    Place::CpuSoftirq,
    Place::CpuSteal,
];

/// The lines of `/proc/stat` that each kernel has, and where they go.
const SYSTEM: [(&str, Place); 4] = [
    ("ctxt", Place::ContextSwitch),
    (CREATED, Place::Created),
    ("procs_running", Place::Runnable),
    ("procs_blocked", Place::Blocked),
];

/// The line of `/proc/stat` that counts the processes and threads created so far.
const CREATED: &str = "processes";

/// The lines of `/proc/meminfo` that each kernel has, and where they go.
const MEMORY: [(&str, Place); 4] = [
    ("MemFree", Place::MemoryFree),
    ("Cached", Place::MemoryCached),
    ("Dirty", Place::MemoryDirty),
    ("Writeback", Place::MemoryWriteback),
];

/// The lines of `/proc/vmstat`, by what their numbers are multiplied, and where they go. `pgpgin` and `pgpgout` count KiB, not
/// pages, whatever their names say.
const PAGING: [(&str, u64, Place); 6] = [
    ("pgpgin", 1024, Place::PageIn),
    ("pgpgout", 1024, Place::PageOut),
    ("pswpin", 1, Place::SwapIn),
    ("pswpout", 1, Place::SwapOut),
    ("pgfault", 1, Place::Fault),
    ("pgmajfault", 1, Place::MajorFault),
];

/// The files of `/proc/pressure`, their lines, and where these go.
const PRESSURE: [(&str, &[(&str, Place)]); 3] = [
    ("cpu", &[("some", Place::PressureCpuSome)]),
    (
        "io",
        &[
            ("some", Place::PressureIoSome),
            ("full", Place::PressureIoFull),
        ],
    ),
    (
        "memory",
        &[
            ("some", Place::PressureMemorySome),
            ("full", Place::PressureMemoryFull),
        ],
    ),
];

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
    /// The most that each time was that may fall.
    idle_ns: [(Place, u64); 2],
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
        let mut sampler = Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            buffer: Vec::new(),
            server: None,
            server_group: None,
            sizes: Sizes::default(),
            idle_ns: [(Place::CpuIdle, 0), (Place::CpuIowait, 0)],
            frequency: Frequency::of(&proc),
            proc,
            targets,
            disks,
        };
        sampler.set_server(sampler.targets.server_pid);
        sampler
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
            let bytes = |pages: u64| pages * self.page_bytes;
            row.set(Place::ServerCpuUser, tree.cpu.user * self.tick_ns);
            row.set(Place::ServerCpuSystem, tree.cpu.system * self.tick_ns);
            row.set(Place::ServerProcess, tree.process_count);
            let resident_pages = tree.private_pages + tree.shared_pages_max;
            row.set(Place::ServerRss, bytes(resident_pages));
            row.set(Place::ServerRssMax, bytes(tree.resident_pages_max));
            row.set(Place::ServerPrivate, bytes(tree.private_pages));
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
        let khz = self.frequency.sample(&self.proc, &mut self.buffer);
        row.set(Place::CpuFrequency, khz);
        if let Some((data_bytes, log_bytes)) = self.sizes(now()) {
            row.set(Place::Data, data_bytes);
            row.set(Place::Log, log_bytes);
        }
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        let io = proc.optional("proc/self/io", buffer, parse_process_io)?;
        row.set(Place::AssayRead, io.map(|io| io.read_bytes));
        row.set(Place::AssayWrite, io.map(|io| io.write_bytes));
        let own = clock_gettime(ClockId::ProcessCPUTime);
        row.set(
            Place::AssayCpu,
            own.tv_sec.unsigned_abs() * 1_000_000_000 + own.tv_nsec.unsigned_abs(),
        );
        Ok(row)
    }

    /// CPU and processes of the host. Gives the count of processes and threads created so far.
    fn sample_system(&mut self, row: &mut Sample) -> Result<u64, ProbeError> {
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        proc.required("proc/stat", buffer, |text| {
            let ticks = parse_cpu_ticks(text)?;
            for (at, place) in TIMES.into_iter().enumerate() {
                // Some kernels' figure of stolen time is near 2^64 after a machine has moved to another host.
                let ns = ticks[at].saturating_mul(self.tick_ns);
                // The kernel's documentation says of idle times that they may fall.
                let ns = match self.idle_ns.iter_mut().find(|(idle, _)| *idle == place) {
                    Some((_, most)) => {
                        *most = ns.max(*most);
                        *most
                    }
                    None => ns,
                };
                row.set(place, ns);
            }
            for (key, place) in SYSTEM {
                row.set(place, required_value(text, key)?);
            }
            required_value(text, CREATED)
        })
    }

    fn sample_memory(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        proc.required("proc/meminfo", buffer, |text| {
            for (key, place) in MEMORY {
                row.set(place, required_value(text, key)?);
            }
            // Kernel 3.14 and later.
            row.set(Place::MemoryAvailable, value(text, "MemAvailable")?);
            let swap = required_value(text, "SwapTotal")?;
            let free = required_value(text, "SwapFree")?;
            row.set(Place::SwapUsed, swap.saturating_sub(free));
            Ok(())
        })?;
        proc.optional("proc/vmstat", buffer, |text| {
            for (key, factor, place) in PAGING {
                row.set(place, value(text, key)?.map(|count| count * factor));
            }
            Ok(())
        })?;
        Ok(())
    }

    fn sample_pressure(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        // A kernel with pressure switched off has the files and refuses to read them.
        for (file, lines) in PRESSURE {
            let name = format!("proc/pressure/{file}");
            self.proc.optional(&name, &mut self.buffer, |text| {
                for (key, place) in lines {
                    let us = parse_pressure(text, key)?;
                    row.set(*place, us.map(|us| us * 1000));
                }
                Ok(())
            })?;
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
