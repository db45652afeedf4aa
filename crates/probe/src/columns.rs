//! The columns of a sample: their names, in their order, and how each behaves. Adding one is a minor change of the
//! record's format, renaming one a major change.

/// How a column behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// It only grows: an average is the difference of two samples over the time between them.
    Cumulative,
    /// It is what it is at that moment.
    Gauge,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, the unit last.
    pub name: &'static str,
    /// How it behaves.
    pub kind: ColumnKind,
    /// What it counts.
    pub meaning: &'static str,
}

macro_rules! columns {
    ($($id:ident $kind:ident $name:literal $meaning:literal;)*) => {
        /// A column's place in a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Place { $($id),* }

        const ALL: &[Column] = &[$(Column { name: $name, kind: ColumnKind::$kind, meaning: $meaning }),*];
    };
}

columns! {
    CpuUser Cumulative "cpu_user_ns" "all processors in user mode, guests included";
    CpuNice Cumulative "cpu_nice_ns" "all processors in user mode at low priority";
    CpuSystem Cumulative "cpu_system_ns" "all processors in kernel mode";
    CpuIdle Cumulative "cpu_idle_ns" "all processors, idle without outstanding I/O";
    CpuIowait Cumulative "cpu_iowait_ns" "all processors, idle with outstanding I/O";
    CpuIrq Cumulative "cpu_irq_ns" "all processors in interrupts";
    CpuSoftirq Cumulative "cpu_softirq_ns" "all processors in deferred work of interrupts";
    CpuSteal Cumulative "cpu_steal_ns" "time that the hypervisor gave to others";
    CpuFrequency Gauge "cpu_frequency_khz" "frequency of the fastest processor, as the kernel measures it: idle ones don't lower it";
    ContextSwitch Cumulative "context_switch_count" "context switches of the host";
    Created Cumulative "process_created_count" "processes and threads created on the host";
    Runnable Gauge "runnable_count" "threads that run or could run, the sampling thread included";
    Blocked Gauge "blocked_count" "threads that wait for I/O";
    DiskReadCount Cumulative "disk_read_count" "reads completed by the devices of the data";
    DiskReadBytes Cumulative "disk_read_bytes" "bytes read from them";
    DiskReadNs Cumulative "disk_read_ns" "time of these reads, each counted in full";
    DiskWriteCount Cumulative "disk_write_count" "writes completed by the devices of the data";
    DiskWriteBytes Cumulative "disk_write_bytes" "bytes written to them";
    DiskWriteNs Cumulative "disk_write_ns" "time of these writes, each counted in full";
    DiskDiscardCount Cumulative "disk_discard_count" "discards completed by the devices of the data";
    DiskDiscardBytes Cumulative "disk_discard_bytes" "bytes discarded";
    DiskDiscardNs Cumulative "disk_discard_ns" "time of these discards, each counted in full";
    DiskFlushCount Cumulative "disk_flush_count" "cache flushes completed by the whole disks below the data";
    DiskFlushNs Cumulative "disk_flush_ns" "time of these flushes";
    DiskIoNs Cumulative "disk_io_ns" "time with a request under way, summed over the devices";
    DiskQueueNs Cumulative "disk_queue_ns" "time of all requests: over elapsed time it is the mean queue length";
    DiskInflight Gauge "disk_inflight_count" "requests under way";
    MemoryFree Gauge "memory_free_bytes" "memory that nothing uses";
    MemoryAvailable Gauge "memory_available_bytes" "memory that new work could get without swapping";
    MemoryCached Gauge "memory_cached_bytes" "page cache, shared memory included";
    MemoryDirty Gauge "memory_dirty_bytes" "page cache that waits to be written back";
    MemoryWriteback Gauge "memory_writeback_bytes" "page cache that is being written back";
    SwapUsed Gauge "swap_used_bytes" "swap in use";
    PageIn Cumulative "page_in_bytes" "read from all block devices";
    PageOut Cumulative "page_out_bytes" "written to all block devices";
    SwapIn Cumulative "swap_in_page_count" "pages read from swap";
    SwapOut Cumulative "swap_out_page_count" "pages written to swap";
    Fault Cumulative "page_fault_count" "page faults of the host";
    MajorFault Cumulative "major_fault_count" "page faults that needed I/O";
    PressureCpuSome Cumulative "pressure_cpu_some_ns" "time in which some thread waited for a processor";
    PressureIoSome Cumulative "pressure_io_some_ns" "time in which some thread waited for I/O";
    PressureIoFull Cumulative "pressure_io_full_ns" "time in which all threads with work waited for I/O";
    PressureMemorySome Cumulative "pressure_memory_some_ns" "time in which some thread waited for memory";
    PressureMemoryFull Cumulative "pressure_memory_full_ns" "time in which all threads with work waited for memory";
    ServerCpuUser Cumulative "server_cpu_user_ns" "the server's process tree in user mode, ended processes included";
    ServerCpuSystem Cumulative "server_cpu_system_ns" "the same in kernel mode";
    ServerProcess Gauge "server_process_count" "processes of the server";
    ServerRss Gauge "server_rss_bytes" "private memory of all processes of the server, and the largest shared part once";
    ServerRssMax Gauge "server_rss_bytes_max" "resident memory of the server's largest process, its shared part included";
    ServerPrivate Gauge "server_private_bytes" "private memory of all processes of the server";
    ServerRead Cumulative "server_read_bytes" "bytes that the server read from storage";
    ServerWrite Cumulative "server_write_bytes" "bytes of page cache that the server made dirty, as the kernel charges them: whole folios, so that it may be far more than was written";
    ServerGroupMemory Gauge "server_cgroup_memory_bytes" "memory that the server's control group is charged with, where that is limited";
    ServerGroupCache Gauge "server_cgroup_cache_bytes" "the part of it that is page cache of files, without shared memory";
    AssayCpu Cumulative "assay_cpu_ns" "all of assay's own process, user and kernel mode";
    AssayRead Cumulative "assay_read_bytes" "bytes that assay's own process read from storage";
    AssayWrite Cumulative "assay_write_bytes" "bytes of page cache that assay's own process made dirty, charged as those of the server";
    Data Gauge "data_bytes" "tables and indexes, as allocated on disk";
    Log Gauge "log_bytes" "redo, undo and write-ahead logs, as allocated on disk";
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

    /// Adds to a value, which is 0 as long as it is not known.
    pub(crate) fn add(&mut self, place: Place, value: u64) {
        let known = self.values[place as usize].1.unwrap_or(0);
        self.set(place, known.unsigned_abs().saturating_add(value));
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
