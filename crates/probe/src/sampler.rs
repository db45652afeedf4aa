//! The sampler, which takes one row of the host's metrics per call.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::columns::{ColumnIndex, Sample};
use crate::exporter::{Exporter, ExporterFailures, ExporterSource};
use crate::frequency::Frequency;
use crate::group::ServerGroup;
use crate::host_counters::HostCounters;
use crate::parse::{required_value, value};
use crate::tree::Tree;
use crate::{ProbeError, Proc, storage_size};

/// The interval between walks over a target's files, as a multiple of a walk's duration. So walks
/// take at most 0.5% of one processor: a walk of 5 ms is repeated after 1 s, a walk of 50 ms after
/// 10 s.
const WALK_SPACING: u32 = 200;

/// The lines of `/proc/meminfo` that every kernel has, and their columns.
const MEMORY: [(&str, ColumnIndex); 4] = [
    ("MemFree", ColumnIndex::MemoryFree),
    ("Cached", ColumnIndex::MemoryCached),
    ("Dirty", ColumnIndex::MemoryDirty),
    ("Writeback", ColumnIndex::MemoryWriteback),
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
    counters: HostCounters,
    frequency: Frequency,
    server: Option<Tree>,
    server_group: Option<ServerGroup>,
    /// The exporter of another host, whose counters take the place of this host's.
    exporter: Option<Exporter>,
    sizes: Sizes,
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
        let files = targets.data.iter().chain(&targets.logs);
        let mut sampler = Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            buffer: Vec::new(),
            server: None,
            server_group: None,
            exporter: None,
            sizes: Sizes::default(),
            counters: HostCounters::at(proc.clone(), files),
            frequency: Frequency::find(&proc),
            proc,
            targets,
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
        self.counters.disks.names(&self.proc)
    }

    /// Returns the reasons why the disk's columns are not applicable, or don't include a directory.
    /// Each reason is a sentence.
    pub fn notes(&self) -> &[String] {
        &self.counters.disks.notes
    }

    /// Returns a reader of the host's counters, of the same devices.
    pub fn host_counters(&self) -> HostCounters {
        self.counters.clone()
    }

    /// Takes one sample. A rate needs two; the first may be taken at any time before the step.
    ///
    /// Repeats the file sizes of an earlier sample if a new walk would take more than 0.5% of a
    /// processor.
    ///
    /// # Errors
    /// Fails if `/proc/stat` or `/proc/meminfo` cannot be read, or a file does not have the
    /// documented format. A value that this kernel lacks, or a process that ends during the
    /// sample, is not an error, nor is another host that cannot be read: see
    /// [`take_failures`](Self::take_failures).
    pub fn sample(&mut self) -> Result<Sample, ProbeError> {
        if let Some(exporter) = &mut self.exporter {
            let mut row = exporter.sample();
            self.counters.sample_own(&mut row)?;
            return Ok(row);
        }

        let mut row = Sample::new();
        let births = self.counters.sample(&mut row)?;
        self.sample_server(&mut row, births)?;
        self.sample_memory(&mut row)?;

        // Last, because these may take longest: the counters above should belong to one moment.
        let khz = self.frequency.sample(&self.proc, &mut self.buffer);
        row.set(ColumnIndex::CpuFrequency, khz);
        if let Some(sizes) = self.sizes(now()) {
            row.set(ColumnIndex::Data, sizes.data);
            row.set(ColumnIndex::Log, sizes.logs);
        }
        self.counters.sample_own(&mut row)?;
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

    fn sample_memory(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        self.proc.required("proc/meminfo", &mut self.buffer, |text| {
            for (key, column) in MEMORY {
                row.set(column, required_value(text, key)?);
            }
            // Kernel 3.14 and later.
            row.set(ColumnIndex::MemoryAvailable, value(text, "MemAvailable")?);
            let swap = required_value(text, "SwapTotal")?;
            let free = required_value(text, "SwapFree")?;
            row.set(ColumnIndex::SwapUsed, swap.saturating_sub(free));
            Ok(())
        })
    }

    /// Returns the sizes of the files, from a new walk if one is due. `None` without files, or if
    /// they cannot be read.
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
