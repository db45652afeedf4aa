//! The columns of a sample: their names, in their order, and how each behaves. Adding one is a minor change of the
//! record's format, renaming one a major change.

use words::CounterKind;

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, the unit last.
    pub name: &'static str,
    /// How it behaves.
    pub kind: CounterKind,
}

macro_rules! columns {
    ($($(#[$about:meta])* $id:ident $kind:ident $name:literal;)*) => {
        /// A column's place in a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Place { $($(#[$about])* $id),* }

        const ALL: &[Column] = &[$(Column { name: $name, kind: CounterKind::$kind }),*];
    };
}

columns! {
    /// All processors in user mode, guests included.
    CpuUser Cumulative "cpu_user_ns";
    /// All processors in user mode at low priority.
    CpuNice Cumulative "cpu_nice_ns";
    /// All processors in kernel mode.
    CpuSystem Cumulative "cpu_system_ns";
    /// All processors, idle without outstanding I/O.
    CpuIdle Cumulative "cpu_idle_ns";
    /// All processors, idle with outstanding I/O.
    CpuIowait Cumulative "cpu_iowait_ns";
    /// All processors in interrupts.
    CpuIrq Cumulative "cpu_irq_ns";
    /// All processors in deferred work of interrupts.
    CpuSoftirq Cumulative "cpu_softirq_ns";
    /// Time that the hypervisor gave to others.
    CpuSteal Cumulative "cpu_steal_ns";
    /// Frequency of the fastest processor, as the kernel measures it: idle ones don't lower it.
    CpuFrequency Gauge "cpu_frequency_khz";
    /// Context switches of the host.
    ContextSwitch Cumulative "context_switch_count";
    /// Processes and threads created on the host.
    Created Cumulative "process_created_count";
    /// Threads that run or could run, the sampling thread included.
    Runnable Gauge "runnable_count";
    /// Threads that wait for I/O.
    Blocked Gauge "blocked_count";
    /// Reads completed by the devices of the data.
    DiskReadCount Cumulative "disk_read_count";
    /// Bytes read from them.
    DiskReadBytes Cumulative "disk_read_bytes";
    /// Time of these reads, each counted in full.
    DiskReadNs Cumulative "disk_read_ns";
    /// Writes completed by the devices of the data.
    DiskWriteCount Cumulative "disk_write_count";
    /// Bytes written to them.
    DiskWriteBytes Cumulative "disk_write_bytes";
    /// Time of these writes, each counted in full.
    DiskWriteNs Cumulative "disk_write_ns";
    /// Discards completed by the devices of the data.
    DiskDiscardCount Cumulative "disk_discard_count";
    /// Bytes discarded.
    DiskDiscardBytes Cumulative "disk_discard_bytes";
    /// Time of these discards, each counted in full.
    DiskDiscardNs Cumulative "disk_discard_ns";
    /// Cache flushes completed by the whole disks below the data.
    DiskFlushCount Cumulative "disk_flush_count";
    /// Time of these flushes.
    DiskFlushNs Cumulative "disk_flush_ns";
    /// Time with a request under way, summed over the devices.
    DiskIoNs Cumulative "disk_io_ns";
    /// Time of all requests: over elapsed time it is the mean queue length.
    DiskQueueNs Cumulative "disk_queue_ns";
    /// Requests under way.
    DiskInflight Gauge "disk_inflight_count";
    /// Memory that nothing uses.
    MemoryFree Gauge "memory_free_bytes";
    /// Memory that new work could get without swapping.
    MemoryAvailable Gauge "memory_available_bytes";
    /// Page cache, shared memory included.
    MemoryCached Gauge "memory_cached_bytes";
    /// Page cache that waits to be written back.
    MemoryDirty Gauge "memory_dirty_bytes";
    /// Page cache that is being written back.
    MemoryWriteback Gauge "memory_writeback_bytes";
    /// Swap in use.
    SwapUsed Gauge "swap_used_bytes";
    /// Read from all block devices.
    PageIn Cumulative "page_in_bytes";
    /// Written to all block devices.
    PageOut Cumulative "page_out_bytes";
    /// Pages read from swap.
    SwapIn Cumulative "swap_in_page_count";
    /// Pages written to swap.
    SwapOut Cumulative "swap_out_page_count";
    /// Page faults of the host.
    Fault Cumulative "page_fault_count";
    /// Page faults that needed I/O.
    MajorFault Cumulative "major_fault_count";
    /// Time in which some thread waited for a processor.
    PressureCpuSome Cumulative "pressure_cpu_some_ns";
    /// Time in which some thread waited for I/O.
    PressureIoSome Cumulative "pressure_io_some_ns";
    /// Time in which all threads with work waited for I/O.
    PressureIoFull Cumulative "pressure_io_full_ns";
    /// Time in which some thread waited for memory.
    PressureMemorySome Cumulative "pressure_memory_some_ns";
    /// Time in which all threads with work waited for memory.
    PressureMemoryFull Cumulative "pressure_memory_full_ns";
    /// The server's process tree in user mode, ended processes included.
    ServerCpuUser Cumulative "server_cpu_user_ns";
    /// The same in kernel mode.
    ServerCpuSystem Cumulative "server_cpu_system_ns";
    /// Processes of the server.
    ServerProcess Gauge "server_process_count";
    /// Private memory of all processes of the server, and the largest shared part once.
    ServerRss Gauge "server_rss_bytes";
    /// Resident memory of the server's largest process, its shared part included.
    ServerRssMax Gauge "server_rss_bytes_max";
    /// Private memory of all processes of the server.
    ServerPrivate Gauge "server_private_bytes";
    /// Bytes that the server read from storage.
    ServerRead Cumulative "server_read_bytes";
    /// Bytes of page cache that the server made dirty, as the kernel charges them: whole folios, so that it may be far more than was written.
    ServerWrite Cumulative "server_write_bytes";
    /// Memory that the server's control group is charged with, where that is limited.
    ServerGroupMemory Gauge "server_cgroup_memory_bytes";
    /// The part of it that is page cache of files, without shared memory.
    ServerGroupCache Gauge "server_cgroup_cache_bytes";
    /// All of assay's own process, user and kernel mode.
    AssayCpu Cumulative "assay_cpu_ns";
    /// Bytes that assay's own process read from storage.
    AssayRead Cumulative "assay_read_bytes";
    /// Bytes of page cache that assay's own process made dirty, charged as those of the server.
    AssayWrite Cumulative "assay_write_bytes";
    /// Tables and indexes, as allocated on disk.
    Data Gauge "data_bytes";
    /// Redo, undo and write-ahead logs, as allocated on disk.
    Log Gauge "log_bytes";
}

/// One row of the host's metrics: every column of [`Sample::COLUMNS`], in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Name and value; `None` is not applicable: this kernel, machine or target does not have it.
    pub values: Vec<(&'static str, Option<i64>)>,
}

impl Sample {
    /// All columns in their order.
    pub const COLUMNS: &'static [Column] = ALL;

    /// A row in which nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            values: ALL.iter().map(|column| (column.name, None)).collect(),
        }
    }

    /// A value above what 63 bits hold stays at that: it would take a nanosecond counter 292 years.
    pub(crate) fn set(&mut self, place: Place, value: impl Into<Option<u64>>) {
        self.values[place as usize].1 = value
            .into()
            .map(|value| i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A value by its column's name; `None` if it is not applicable, or no such column exists.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values
            .iter()
            .find(|(column, _)| *column == name)
            .and_then(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        let mut names = HashSet::new();
        for column in Sample::COLUMNS {
            assert!(names.insert(column.name), "`{}` twice", column.name);
            let name = column.name.trim_end_matches("_max");
            assert!(
                ["_ns", "_bytes", "_count", "_khz"]
                    .iter()
                    .any(|unit| name.ends_with(unit)),
                "`{name}` has no unit"
            );
        }
    }

    #[test]
    fn a_place_is_its_column() {
        assert_eq!(Sample::COLUMNS[Place::CpuUser as usize].name, "cpu_user_ns");
        assert_eq!(Sample::COLUMNS[Place::Log as usize].name, "log_bytes");
        assert_eq!(Place::Log as usize + 1, Sample::COLUMNS.len());
    }
}
