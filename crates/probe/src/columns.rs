//! The columns of a sample: their names, order and kinds. To add one is a minor change of the
//! record's format; to rename one is a major change.

use words::CounterKind;

/// A column of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, which ends with the unit.
    pub name: &'static str,
    /// The kind of counter: its value accumulates, or goes up and down.
    pub kind: CounterKind,
}

macro_rules! columns {
    ($($(#[$about:meta])* $id:ident $kind:ident $name:literal;)*) => {
        /// The index of a column in a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ColumnIndex { $($(#[$about])* $id),* }

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
    /// All processors in deferred interrupt work.
    CpuSoftirq Cumulative "cpu_softirq_ns";
    /// Time that the hypervisor gave to other virtual machines.
    CpuSteal Cumulative "cpu_steal_ns";
    /// The measured frequency of the fastest processor, so that idle ones don't lower it.
    CpuFrequency Gauge "cpu_frequency_khz";
    /// Context switches of the host.
    ContextSwitch Cumulative "context_switch_count";
    /// Processes and threads created on the host.
    Created Cumulative "process_created_count";
    /// Threads that run or are ready to run, including the sampling thread.
    Runnable Gauge "runnable_count";
    /// Threads that wait for I/O.
    Blocked Gauge "blocked_count";
    /// Reads completed by the devices of the data.
    DiskReadCount Cumulative "disk_read_count";
    /// Bytes read from these devices.
    DiskReadBytes Cumulative "disk_read_bytes";
    /// The sum of these reads' durations.
    DiskReadNs Cumulative "disk_read_ns";
    /// Writes completed by the devices of the data.
    DiskWriteCount Cumulative "disk_write_count";
    /// Bytes written to these devices.
    DiskWriteBytes Cumulative "disk_write_bytes";
    /// The sum of these writes' durations.
    DiskWriteNs Cumulative "disk_write_ns";
    /// Discards completed by the devices of the data.
    DiskDiscardCount Cumulative "disk_discard_count";
    /// Bytes discarded.
    DiskDiscardBytes Cumulative "disk_discard_bytes";
    /// The sum of these discards' durations.
    DiskDiscardNs Cumulative "disk_discard_ns";
    /// Cache flushes completed by the whole disks below the data.
    DiskFlushCount Cumulative "disk_flush_count";
    /// The sum of these flushes' durations.
    DiskFlushNs Cumulative "disk_flush_ns";
    /// Time with at least one request in flight, summed over the devices.
    DiskIoNs Cumulative "disk_io_ns";
    /// The sum of all requests' durations. Divided by elapsed time, it is the mean queue length.
    DiskQueueNs Cumulative "disk_queue_ns";
    /// Requests in flight.
    DiskInflight Gauge "disk_inflight_count";
    /// Bytes that the network interfaces received. Of hardware interfaces, if there are any; else of all but the loopback.
    NetworkReceivedBytes Cumulative "network_received_bytes";
    /// Packets that they received.
    NetworkReceivedPackets Cumulative "network_received_packet_count";
    /// Bytes that they sent.
    NetworkSentBytes Cumulative "network_sent_bytes";
    /// Packets that they sent.
    NetworkSentPackets Cumulative "network_sent_packet_count";
    /// TCP segments that were sent again, over any interface.
    TcpRetransmit Cumulative "tcp_retransmit_count";
    /// Unused memory.
    MemoryFree Gauge "memory_free_bytes";
    /// Memory available to new work without swapping.
    MemoryAvailable Gauge "memory_available_bytes";
    /// Page cache, including shared memory.
    MemoryCached Gauge "memory_cached_bytes";
    /// Modified page cache that is not yet being written back.
    MemoryDirty Gauge "memory_dirty_bytes";
    /// Page cache that is being written back.
    MemoryWriteback Gauge "memory_writeback_bytes";
    /// Swap in use.
    SwapUsed Gauge "swap_used_bytes";
    /// Bytes read from all block devices.
    PageIn Cumulative "page_in_bytes";
    /// Bytes written to all block devices.
    PageOut Cumulative "page_out_bytes";
    /// Pages read from swap.
    SwapIn Cumulative "swap_in_page_count";
    /// Pages written to swap.
    SwapOut Cumulative "swap_out_page_count";
    /// Page faults of the host.
    Fault Cumulative "page_fault_count";
    /// Page faults that needed I/O.
    MajorFault Cumulative "major_fault_count";
    /// Time in which at least one thread waited for a processor.
    PressureCpuSome Cumulative "pressure_cpu_some_ns";
    /// Time in which at least one thread waited for I/O.
    PressureIoSome Cumulative "pressure_io_some_ns";
    /// Time in which all threads with work waited for I/O.
    PressureIoFull Cumulative "pressure_io_full_ns";
    /// Time in which at least one thread waited for memory.
    PressureMemorySome Cumulative "pressure_memory_some_ns";
    /// Time in which all threads with work waited for memory.
    PressureMemoryFull Cumulative "pressure_memory_full_ns";
    /// The server's process tree in user mode, including processes that ended.
    ServerCpuUser Cumulative "server_cpu_user_ns";
    /// The server's process tree in kernel mode, including processes that ended.
    ServerCpuSystem Cumulative "server_cpu_system_ns";
    /// Processes of the server.
    ServerProcess Gauge "server_process_count";
    /// Private memory of all server processes, plus the largest shared memory of one of them.
    ServerRss Gauge "server_rss_bytes";
    /// Resident memory of the server's largest process, including shared memory.
    ServerRssMax Gauge "server_rss_bytes_max";
    /// Private memory of all processes of the server.
    ServerPrivate Gauge "server_private_bytes";
    /// Bytes that the server read from storage.
    ServerRead Cumulative "server_read_bytes";
    /// Bytes of page cache that the server modified. The kernel counts whole folios, which may be far more than was written.
    ServerWrite Cumulative "server_write_bytes";
    /// Context switches of the server's threads.
    ServerContextSwitch Cumulative "server_context_switch_count";
    /// Memory charged to the server's control group, if the group has a limit.
    ServerGroupMemory Gauge "server_cgroup_memory_bytes";
    /// The page cache of files within that memory, without shared memory.
    ServerGroupCache Gauge "server_cgroup_cache_bytes";
    /// Assay's own process, in user and kernel mode.
    AssayCpu Cumulative "assay_cpu_ns";
    /// Bytes that assay's own process read from storage.
    AssayRead Cumulative "assay_read_bytes";
    /// Bytes of page cache that assay's own process modified, counted like the server's.
    AssayWrite Cumulative "assay_write_bytes";
    /// Allocated disk space of tables and indexes.
    Data Gauge "data_bytes";
    /// Allocated disk space of redo, undo and write-ahead logs.
    Log Gauge "log_bytes";
}

/// One row of the host's metrics: every column of [`Sample::COLUMNS`], in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Each column's name and value. `None` means not applicable: this kernel, machine or target
    /// does not have it.
    pub values: Vec<(&'static str, Option<i64>)>,
}

impl Sample {
    /// All columns, in order.
    pub const COLUMNS: &'static [Column] = ALL;

    /// Returns a row without values.
    pub(crate) fn new() -> Self {
        Self { values: ALL.iter().map(|column| (column.name, None)).collect() }
    }

    /// Sets a value. Limits it to 63 bits, which a counter of nanoseconds exceeds after 292 years.
    pub(crate) fn set(&mut self, column: ColumnIndex, value: impl Into<Option<u64>>) {
        self.values[column as usize].1 =
            value.into().map(|value| i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Adds to a value, which was 0 if there was none.
    pub(crate) fn add(&mut self, column: ColumnIndex, value: u64) {
        let sum = self.value(column).unwrap_or(0).saturating_add(value);
        self.set(column, sum);
    }

    /// Returns a value.
    pub(crate) fn value(&self, column: ColumnIndex) -> Option<u64> {
        self.values[column as usize].1.map(i64::cast_unsigned)
    }

    /// Returns the value of a column. `None` means not applicable, or no such column.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.iter().find(|(column, _)| *column == name).and_then(|(_, value)| *value)
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
            assert!(names.insert(column.name), "duplicate column `{}`", column.name);
            let name = column.name.trim_end_matches("_max");
            assert!(
                ["_ns", "_bytes", "_count", "_khz"].iter().any(|unit| name.ends_with(unit)),
                "`{name}` has no unit"
            );
        }
    }

    #[test]
    fn an_index_refers_to_its_column() {
        assert_eq!(Sample::COLUMNS[ColumnIndex::CpuUser as usize].name, "cpu_user_ns");
        assert_eq!(Sample::COLUMNS[ColumnIndex::Log as usize].name, "log_bytes");
        assert_eq!(ColumnIndex::Log as usize + 1, Sample::COLUMNS.len());
    }
}
