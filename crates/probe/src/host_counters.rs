//! The counters of the host that one reading has, in less than a millisecond: those of processors,
//! disks, network, paging and pressure, and of Assay's own process.
//!
//! A [`Sampler`](crate::Sampler) reads them once a second. Where targets take turns, they are also
//! read at the begin and the end of each turn, so that each target gets what grew in its own.

use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};

use crate::columns::{ColumnIndex, Sample};
use crate::disk::Disks;
use crate::network::Network;
use crate::parse::{parse_cpu_ticks, parse_pressure, parse_process_io, required_value, value};
use crate::{ProbeError, Proc};

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

/// Reads the counters of the host.
#[derive(Clone, Debug)]
pub struct HostCounters {
    proc: Proc,
    tick_ns: u64,
    buffer: Vec<u8>,
    pub(crate) disks: Disks,
    network: Network,
    /// The maxima of the times that may decrease.
    idle_ns: [(ColumnIndex, u64); 2],
}

impl HostCounters {
    /// Returns the counters of the host and of the devices that hold these paths.
    pub(crate) fn at<'p>(proc: Proc, data: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            buffer: Vec::new(),
            disks: Disks::find(&proc, data),
            network: Network::find(&proc),
            idle_ns: [(ColumnIndex::CpuIdle, 0), (ColumnIndex::CpuIowait, 0)],
            proc,
        }
    }

    /// Reads the counters. The other columns are not applicable.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read, or a file does not have the documented format.
    pub fn read(&mut self) -> Result<Sample, ProbeError> {
        let mut row = Sample::new();
        self.sample(&mut row)?;
        self.sample_own(&mut row)?;
        Ok(row)
    }

    /// Sets the columns of the host's counters. Returns the count of processes and threads created
    /// so far.
    pub(crate) fn sample(&mut self, row: &mut Sample) -> Result<u64, ProbeError> {
        let births = self.sample_system(row)?;
        self.disks.sample(&self.proc, &mut self.buffer, row)?;
        self.network.sample(&self.proc, &mut self.buffer, row)?;
        self.sample_paging(row)?;
        self.sample_pressure(row)?;
        Ok(births)
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

    /// Samples assay's own process.
    pub(crate) fn sample_own(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        let io = self.proc.optional("proc/self/io", &mut self.buffer, parse_process_io)?;
        row.set(ColumnIndex::AssayRead, io.map(|io| io.read_bytes));
        row.set(ColumnIndex::AssayWrite, io.map(|io| io.write_bytes));

        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ns = cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs();
        row.set(ColumnIndex::AssayCpu, cpu_ns);
        Ok(())
    }

    fn sample_paging(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        self.proc.optional("proc/vmstat", &mut self.buffer, |text| {
            for (key, factor, column) in PAGING {
                row.set(column, value(text, key)?.map(|count| count * factor));
            }
            Ok(())
        })?;
        Ok(())
    }

    fn sample_pressure(&mut self, row: &mut Sample) -> Result<(), ProbeError> {
        // If pressure stall information is off, these files exist but cannot be read.
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
}
