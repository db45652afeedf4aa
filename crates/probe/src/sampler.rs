//! The sampler, which takes one row of the host's metrics per call.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::columns::{ColumnIndex, Sample};
use crate::disk::Disks;
use crate::exporter::{Exporter, ExporterFailures, ExporterSource};
use crate::frequency::Frequency;
use crate::group::ServerGroup;
use crate::network::Network;
use crate::parse::{parse_cpu_ticks, parse_pressure, parse_process_io, required_value, value};
use crate::tree::Tree;
use crate::{ProbeError, Proc, storage_size};

/// The interval between walks over a target's files, as a multiple of a walk's duration. So walks
/// take at most 0.5% of one processor: a walk of 5 ms is repeated after 1 s, a walk of 50 ms after
/// 10 s.
const WALK_SPACING: u32 = 200;

/// The columns of the times in `/proc/stat`, in order.
const TIMES: [ColumnIndex; 8] = [
    ColumnIndex::CpuUser,
    ColumnIndex::CpuNice,
    ColumnIndex::CpuSystem,
    ColumnIndex::CpuIdle,
    ColumnIndex::CpuIowait,
    ColumnIndex::CpuIrq,
    ColumnIndex::CpuSoftirq,
    ColumnIndex::CpuSteal,
];

/// The lines of `/proc/stat` that every kernel has, and their columns.
const SYSTEM: [(&str, ColumnIndex); 4] = [
    ("ctxt", ColumnIndex::ContextSwitch),
    (CREATED, ColumnIndex::Created),
    ("procs_running", ColumnIndex::Runnable),
    ("procs_blocked", ColumnIndex::Blocked),
];

/// The line of `/proc/stat` that counts the processes and threads created so far.
const CREATED: &str = "processes";

/// The lines of `/proc/meminfo` that every kernel has, and their columns.
const MEMORY: [(&str, ColumnIndex); 4] = [
    ("MemFree", ColumnIndex::MemoryFree),
    ("Cached", ColumnIndex::MemoryCached),
    ("Dirty", ColumnIndex::MemoryDirty),
    ("Writeback", ColumnIndex::MemoryWriteback),
];

/// The lines of `/proc/vmstat`, their factors, and their columns. `pgpgin` and `pgpgout` count KiB,
/// not pages.
const PAGING: [(&str, u64, ColumnIndex); 6] = [
    ("pgpgin", 1024, ColumnIndex::PageIn),
    ("pgpgout", 1024, ColumnIndex::PageOut),
    ("pswpin", 1, ColumnIndex::SwapIn),
    ("pswpout", 1, ColumnIndex::SwapOut),
    ("pgfault", 1, ColumnIndex::Fault),
    ("pgmajfault", 1, ColumnIndex::MajorFault),
];

/// The files of `/proc/pressure`, their lines, and the lines' columns.
const PRESSURE: [(&str, &[(&str, ColumnIndex)]); 3] = [
    ("cpu", &[("some", ColumnIndex::PressureCpuSome)]),
    ("io", &[("some", ColumnIndex::PressureIoSome), ("full", ColumnIndex::PressureIoFull)]),
    (
        "memory",
        &[("some", ColumnIndex::PressureMemorySome), ("full", ColumnIndex::PressureMemoryFull)],
    ),
];

/// The processes and files that a sampler observes in addition to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The root of the server's process tree, if a server runs on this host.
    pub server_pid: Option<u32>,
    /// Directories and files with tables and indexes.
    pub data: Vec<PathBuf>,
    /// Directories and files with redo, undo or write-ahead logs. They may be inside those of
    /// `data`.
    pub logs: Vec<PathBuf>,
}

/// Takes samples of one target. Keeps its knowledge of processes and counters from call to call.
#[derive(Debug)]
pub struct Sampler {
    proc: Proc,
    tick_ns: u64,
    page_bytes: u64,
    buffer: Vec<u8>,
    targets: Targets,
    disks: Disks,
    network: Network,
    frequency: Frequency,
    server: Option<Tree>,
    server_group: Option<ServerGroup>,
    /// The exporter of another host, whose counters take the place of this host's.
    exporter: Option<Exporter>,
    sizes: Sizes,
    /// The maxima of the times that may decrease.
    idle_ns: [(ColumnIndex, u64); 2],
}

/// The sizes of the target's files, from the last walk over them.
#[derive(Debug, Default)]
struct Sizes {
    /// `None` if the files could not be read.
    bytes: Option<SizeBytes>,
    /// The start and the duration of the last walk.
    last_walk: Option<(Instant, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeBytes {
    data: u64,
    logs: u64,
}

impl Sampler {
    /// Returns a sampler of this machine. Looks up the devices of the data, so the directories must
    /// exist.
    pub fn new(targets: Targets) -> Self {
        Self::at(Proc::live(), targets)
    }

    /// Returns a sampler of the files below another root.
    pub fn at(proc: Proc, targets: Targets) -> Self {
        let disks = Disks::find(&proc, targets.data.iter().chain(&targets.logs));
        let mut sampler = Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            buffer: Vec::new(),
            server: None,
            server_group: None,
            exporter: None,
            sizes: Sizes::default(),
            idle_ns: [(ColumnIndex::CpuIdle, 0), (ColumnIndex::CpuIowait, 0)],
            network: Network::find(&proc),
            frequency: Frequency::find(&proc),
            proc,
            targets,
            disks,
        };
        sampler.set_server(sampler.targets.server_pid);
        sampler
    }

    /// Returns a sampler of another host, which an exporter describes, and of Assay's own process.
    pub fn of_other_host(source: ExporterSource) -> Self {
        let mut sampler = Self::new(Targets::default());
        sampler.exporter = Some(Exporter::new(source));
        sampler
    }

    /// Returns whether the samples are of another host.
    pub fn is_of_other_host(&self) -> bool {
        self.exporter.is_some()
    }

    /// Returns the samples of another host that failed since the last call, if any did.
    pub fn take_failures(&mut self) -> Option<ExporterFailures> {
        self.exporter.as_mut()?.take_failures()
    }

    /// Sets the server to observe, or none. The server's counters restart.
    pub fn set_server(&mut self, pid: Option<u32>) {
        self.targets.server_pid = pid;
        self.server = pid.map(Tree::new);
        self.server_group = pid.and_then(|pid| ServerGroup::find(&self.proc, pid));
    }

    /// Returns the process IDs of the server, parents before their children, as of the last sample.
    pub fn server_processes(&self) -> Vec<u32> {
        self.server.iter().flat_map(Tree::members).collect()
    }

    /// Returns the names of the block devices whose counters the disk's columns sum.
    pub fn disks(&self) -> Vec<String> {
        self.disks.names(&self.proc)
    }

    /// Returns the reasons why the disk's columns are not applicable, or don't include a directory.
    /// Each reason is a sentence.
    pub fn notes(&self) -> &[String] {
        &self.disks.notes
    }

    /// Takes one sample. A rate needs two; the first may be taken at any time before the step.
    ///
    /// Repeats the file sizes of an earlier sample if a new walk would take more than 0.5% of a
    /// processor.
    ///
    /// # Errors
    /// Fails if `/proc/stat` or `/proc/meminfo` can't be read, or a file does not have the
    /// documented format. A value that this kernel lacks, or a process that ends during the
    /// sample, is not an error, nor is another host that can't be read: see
    /// [`take_failures`](Self::take_failures).
    pub fn sample(&mut self) -> Result<Sample, ProbeError> {
        if let Some(exporter) = &mut self.exporter {
            let mut row = exporter.sample();
            self.sample_own(&mut row)?;
            return Ok(row);
        }

        let mut row = Sample::new();
        let births = self.sample_system(&mut row)?;
        self.sample_server(&mut row, births)?;
        self.disks.sample(&self.proc, &mut self.buffer, &mut row)?;
        self.network.sample(&self.proc, &mut self.buffer, &mut row)?;
        self.sample_memory(&mut row)?;
        self.sample_pressure(&mut row)?;

        // Last, because these may take longest: the counters above should belong to one moment.
        let khz = self.frequency.sample(&self.proc, &mut self.buffer);
        row.set(ColumnIndex::CpuFrequency, khz);
        if let Some(sizes) = self.sizes(now()) {
            row.set(ColumnIndex::Data, sizes.data);
            row.set(ColumnIndex::Log, sizes.logs);
        }
        self.sample_own(&mut row)?;
        Ok(row)
    }

    /// Samples the server's processes and memory. `births` is the count of processes and threads
    /// created on the host.
    fn sample_server(&mut self, row: &mut Sample, births: u64) -> Result<(), ProbeError> {
        if let Some(server) = &mut self.server {
            let tree = server.sample(&self.proc, births, &mut self.buffer)?;
            let page_bytes = self.page_bytes;
            let resident_pages = tree.private_pages + tree.shared_pages_max;
            row.set(ColumnIndex::ServerCpuUser, tree.cpu.user * self.tick_ns);
            row.set(ColumnIndex::ServerCpuSystem, tree.cpu.system * self.tick_ns);
            row.set(ColumnIndex::ServerProcess, tree.process_count);
            row.set(ColumnIndex::ServerRss, resident_pages * page_bytes);
            row.set(ColumnIndex::ServerRssMax, tree.resident_pages_max * page_bytes);
            row.set(ColumnIndex::ServerPrivate, tree.private_pages * page_bytes);
            row.set(ColumnIndex::ServerRead, tree.io.map(|io| io.read_bytes));
            row.set(ColumnIndex::ServerWrite, tree.io.map(|io| io.write_bytes));
            row.set(ColumnIndex::ServerContextSwitch, tree.context_switches);
        }

        if let Some(group) = &self.server_group {
            let memory = group.sample(&self.proc, &mut self.buffer)?;
            row.set(ColumnIndex::ServerGroupMemory, memory.usage_bytes);
            row.set(ColumnIndex::ServerGroupCache, memory.cache_bytes);
        }
        Ok(())
    }

    /// Samples assay's own process.
    fn sample_own(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        let io = self.proc.optional("proc/self/io", &mut self.buffer, parse_process_io)?;
        row.set(ColumnIndex::AssayRead, io.map(|io| io.read_bytes));
        row.set(ColumnIndex::AssayWrite, io.map(|io| io.write_bytes));

        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ns = cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs();
        row.set(ColumnIndex::AssayCpu, cpu_ns);
        Ok(())
    }

    /// Samples CPU and processes of the host. Returns the count of processes and threads created so
    /// far.
    fn sample_system(&mut self, row: &mut Sample) -> Result<u64, ProbeError> {
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        proc.required("proc/stat", buffer, |text| {
            let ticks = parse_cpu_ticks(text)?;
            for (index, column) in TIMES.into_iter().enumerate() {
                // After a virtual machine's migration, some kernels report a steal time near 2^64.
                let mut ns = ticks[index].saturating_mul(self.tick_ns);
                // The kernel documents that idle times may decrease.
                if let Some((_, max_ns)) = self.idle_ns.iter_mut().find(|(idle, _)| *idle == column)
                {
                    *max_ns = ns.max(*max_ns);
                    ns = *max_ns;
                }
                row.set(column, ns);
            }

            for (key, column) in SYSTEM {
                row.set(column, required_value(text, key)?);
            }
            required_value(text, CREATED)
        })
    }

    fn sample_memory(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        let (proc, buffer) = (&self.proc, &mut self.buffer);
        proc.required("proc/meminfo", buffer, |text| {
            for (key, column) in MEMORY {
                row.set(column, required_value(text, key)?);
            }
            // Kernel 3.14 and later.
            row.set(ColumnIndex::MemoryAvailable, value(text, "MemAvailable")?);
            let swap = required_value(text, "SwapTotal")?;
            let free = required_value(text, "SwapFree")?;
            row.set(ColumnIndex::SwapUsed, swap.saturating_sub(free));
            Ok(())
        })?;

        proc.optional("proc/vmstat", buffer, |text| {
            for (key, factor, column) in PAGING {
                row.set(column, value(text, key)?.map(|count| count * factor));
            }
            Ok(())
        })?;
        Ok(())
    }

    fn sample_pressure(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        // If pressure stall information is off, these files exist but can't be read.
        for (file, lines) in PRESSURE {
            let name = format!("proc/pressure/{file}");
            self.proc.optional(&name, &mut self.buffer, |text| {
                for (key, column) in lines {
                    let us = parse_pressure(text, key)?;
                    row.set(*column, us.map(|us| us * 1000));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the sizes of the files, from a new walk if one is due. `None` without files, or if
    /// they can't be read.
    fn sizes(&mut self, at: Instant) -> Option<SizeBytes> {
        if self.targets.data.is_empty() && self.targets.logs.is_empty() {
            return None;
        }

        let is_due = match self.sizes.last_walk {
            Some((started_at, duration)) => {
                at.saturating_duration_since(started_at) >= duration * WALK_SPACING
            }
            None => true,
        };
        if is_due {
            self.sizes.bytes = storage_size(&self.targets.data, &self.targets.logs)
                .ok()
                .map(|(data, logs)| SizeBytes { data, logs });
            self.sizes.last_walk = Some((at, now().saturating_duration_since(at)));
        }
        self.sizes.bytes
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the cost of a walk over files, not a measured time"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
