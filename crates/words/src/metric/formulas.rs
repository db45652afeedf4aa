//! The formulas of metrics, in the order in which `docs/metrics.md` shows them.

/// The formula of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formula {
    /// The name of the metric.
    pub metric: &'static str,
    /// The formula in words, in Markdown. Links are relative to `docs/metrics.md`.
    pub text: &'static str,
    /// The remark in the last column of the section's table, see
    /// [`Section::note_heading`](super::Section::note_heading); often empty.
    pub note: &'static str,
}

macro_rules! formulas {
    ($($metric:literal $text:literal $($note:literal)?;)*) => {
        /// The formulas of all metrics, except for [times of operations](super::OPERATION_TIMES),
        /// whose meaning says it. Those of a section are next to each other.
        pub const FORMULAS: &[Formula] = &[$(Formula {
            metric: $metric,
            text: $text,
            note: concat!($($note)?),
        }),*];
    };
}

formulas! {
    // Throughput
    "ips"
        "`rows inserted (or keys put) / elapsed`; in index steps `(rows in the tables before + \
         rows inserted) / elapsed`"
        "truncated to one decimal; counted with 32 bits, so it is wrong beyond 2^31 rows";
    "dps"
        "rows deleted / elapsed";
    "qps"
        "main operations of a query step that succeeded / elapsed; if events are counted, \
         events that succeeded x `queries_per_event` / elapsed; not applicable in steps without \
         queries"
        "0 in steps without queries";
    "o/s"
        "D1"
        "in the microbenchmarks, queries/s as sysbench counts them";
    "krows_sec"
        "events that succeeded x `scanned_rows_per_event` / elapsed / 1000: for `scan`, whose \
         event reads a whole table; over all clients"
        "since April 2025 for one thread, before that in other units";
    "per_minute"
        "D1 x 60, for tests of [scripts](transactions.md#scripts) that name it, such as new orders per \
         minute of `orders`"
        "not published";
    "rows/event"
        "rows deleted / events that succeeded, for tests that only delete by key \
         (`deletes_per_event`)"
        "not published";
    "p50"
        "the rate that 50% of the seconds reached"
        "of the first client alone, so it cannot be compared with `ips` or `qps`";
    "p99"
        "the rate that 99% of the seconds reached: a low number"
        "as above";
    "typical_rate"
        "geometric mean of the rates of [turns](turns.md), without the slowest fifth and the fastest \
         fifth"
        "not published";
    "steadiness"
        "throughput / `typical_rate`"
        "not published";
    // Cost per operation, whole host
    "cpups"
        "100 x busy / all, where busy is the growth of user + nice + system + irq + softirq, \
         and all adds idle + iowait + steal"
        "mean of vmstat's us + sy. It includes the line since boot, and a zero for every \
         repeated header, so it is about 4 to 5% too low";
    "cpupq"
        "busy in microseconds / D1"
        "computed from `cpups`, with the same error";
    "cpu/o"
        "`cpups` / D1: percent of the machine x s/operation"
        "as above. It is not comparable between hosts with different numbers of CPUs; `cpupq` \
         is";
    "us%"
        "100 x growth of user + nice / all: `us` of vmstat"
        "as `cpups`";
    "sy%"
        "100 x growth of system + irq + softirq / all: `sy`"
        "as `cpups`";
    "id%"
        "100 x growth of idle / all: `id`"
        "as `cpups`";
    "wa%"
        "100 x growth of iowait / all: `wa`, idle while a read or write was in progress"
        "as `cpups`";
    "steal%"
        "100 x growth of the time stolen by a hypervisor / all: `st`"
        "not published";
    "csps"
        "growth of context switches"
        "as `cpups`";
    "cspq"
        "`csps` / D1"
        "as `cpups`";
    "cs/o"
        "the same as `cspq`"
        "as `cpups`";
    // Cost per operation, client and server
    "client_cpu_us_per_op"
        "CPU time of all load threads, user and kernel, over operations. It includes threads \
         with other operations, such as deletes";
    "server_cpu_us_per_op"
        "CPU time of the server's process tree, including processes that ended, over operations";
    "server_switches_per_op"
        "context switches of the server's threads over operations. Threads that start and end \
         within a second are not counted; not applicable with more than 512 threads";
    "own_cpu_us_per_op"
        "CPU time of the engine's connection threads and of their clients, to the nanosecond, \
         over operations. Only connections that do the step's main operation count: in `l.i1`, \
         those that insert, not those that delete. It has its own verdicts: \
         [compare.md](compare.md#what-is-shown)";
    "typical_cpu_us_per_op"
        "CPU time of the load threads and of the server's processes over operations, of each \
         [turn](turns.md); the geometric mean without the lowest fifth and the highest fifth";
    "instructions_per_op"
        "instructions that these threads executed, over operations; it has its own verdicts too";
    "cycles_per_op"
        "processor cycles of these threads, over operations";
    "ipc"
        "instructions / cycles of these threads: low if they wait for memory";
    "cache_misses_per_op"
        "memory accesses of these threads that the last-level cache did not have, over \
         operations";
    "branch_misses_per_op"
        "mispredicted branches of these threads, over operations";
    "tlb_misses_per_op"
        "loads of these threads whose page the data TLB did not have, over operations";
    "client_cpu_us_per_row_inserted"
        "CPU time of the load threads that insert, over rows inserted";
    "client_cpu_us_per_row_deleted"
        "CPU time of the load threads that delete, over rows deleted";
    "client_cpu_us_per_query"
        "CPU time of the load threads that query, over queries";
    "client_cpu_us_per_read"
        "CPU time of the load threads that read keys, over their operations";
    "client_cpu_us_per_write"
        "CPU time of the load threads that put keys, over puts";
    "system_calls_per_op"
        "[system calls](#system-calls) of the engine's threads / operations, of all kinds that \
         were counted. A kind after a colon selects it, as in `system_calls_per_op:fdatasync`";
    "others%"
        "100 x (user + nice + system - CPU time of Assay's process - CPU time of the server's \
         process tree) / all. All are growths, with all as for `cpups`; at least 0";
    "cpu_mhz"
        "mean of `cpu_frequency_khz` / 1000: the frequency of the fastest processor in each \
         second, as the kernel measures it";
    // The time of an operation
    "op_time_us"
        "time of the connections / operations; with a rate or think times, it excludes the share of \
         samples in which a connection was not due"
        "step";
    "op_client_cpu_us"
        "CPU time of the load's threads / operations. It includes an embedded engine"
        "thread CPU clock";
    "op_server_cpu_us"
        "CPU time of the server's threads / operations"
        "first field of `/proc/TID/schedstat`";
    "op_cpu_wait_us"
        "time in which either thread was runnable and waited for a processor / operations"
        "second field of `/proc/TID/schedstat`";
    "op_steal_us"
        "`own_cpu_us_per_op` x growth of the host's stolen time / growth of its busy time: an \
         estimate"
        "host";
    "op_read_us"
        "`op_time_us` x share of samples in which the working thread (the client's or the \
         server's) waited for a file read: in a system call, or for a page"
        "sampled states";
    "op_write_us"
        "as `op_read_us`, in a system call that writes a file"
        "sampled states";
    "op_fsync_us"
        "as `op_read_us`, in a system call that syncs a file"
        "sampled states";
    "op_lock_us"
        "as `op_read_us`, waiting for another thread or process: a lock, a latch, a group \
         commit"
        "sampled states";
    "op_handover_us"
        "as `op_read_us`, with both threads waiting for a message"
        "sampled states";
    "op_overlap_us"
        "as `op_read_us`, with both threads at work: CPU that two figures above count twice"
        "sampled states";
    "op_unexplained_us"
        "`op_time_us` - the parts + `op_overlap_us`: time that no part explains"
        "all of them";
    "op_unexplained%"
        "100 x `op_unexplained_us` / `op_time_us`. It is below 0 if the parts add up to more \
         than the time"
        "as above";
    "background_cpu_us_per_op"
        "(CPU time of the server's process tree - CPU time of all connections' threads) / \
         operations. With an embedded engine, the process is Assay's"
        "step";
    "own_read_kb_per_op"
        "growth of `server_read_bytes`, or `assay_read_bytes` with an embedded engine, / D1"
        "`/proc/PID/io`";
    "own_write_kb_per_op"
        "growth of `server_write_bytes`, or `assay_write_bytes`, / D1. The kernel charges whole \
         folios of page cache, so it may exceed what was written"
        "`/proc/PID/io`";
    // Contention
    "retries_per_op"
        "attempts after the first / operations, with and without success";
    "retried_us_per_op"
        "time of attempts that failed and were retried / D1: the parts of the time of an operation \
         count it as well";
    "lock_waits_per_op"
        "growth of the engine's count of waits for locks on data / operations, with and without \
         success: `row_lock_wait_count` of InnoDB, `lock_wait_count` of SQLite";
    "lock_wait_us_per_op"
        "growth of the engine's time of these waits / D1: `row_lock_wait_ms` of InnoDB, \
         `lock_wait_ns` of SQLite";
    "deadlocks_per_op"
        "growth of `deadlock_count` / operations, with and without success";
    // Input and output
    "rps"
        "growth of reads completed"
        "mean of iostat's samples";
    "rmbps"
        "growth of bytes read"
        "as above";
    "wps"
        "growth of writes completed"
        "as above";
    "wmbps"
        "growth of bytes written"
        "as above";
    "rawait"
        "growth of the time of reads (`disk_read_ns`) / growth of reads completed: from \
         queueing to completion. Not applicable if none completed; so are the next three"
        "mean of iostat's samples: a second with one read weighs as much as a second with \
         thousands";
    "rareqsz"
        "growth of bytes read / growth of reads completed"
        "as above: for example 26.1 although `rMBps` / `rps` is 78.7";
    "wawait"
        "growth of the time of writes (`disk_write_ns`) / growth of writes completed"
        "as above";
    "wareqsz"
        "growth of bytes written / growth of writes completed"
        "as above";
    "aqu-sz"
        "growth of the time of all requests (`disk_queue_ns`) / time"
        "as above";
    "util%"
        "100 x growth of the time with a request in progress (`disk_io_ns`) / time, summed over \
         the devices: two busy devices have 200"
        "of one device";
    "rpq"
        "`rps` / D1";
    "rkbpq"
        "growth of bytes read / D1";
    "wpi"
        "`wps` / `ips`, in query steps too";
    "wkbpi"
        "growth of bytes written / `ips`, in query steps too";
    "r/o"
        "the same as `rpq`";
    "rKB/o"
        "the same as `rkbpq`";
    "wKB/o"
        "growth of bytes written / D1";
    "io_efficiency"
        "100 x `rps` x (bytes that the engine read / bytes that all read) / random reads per \
         second of the [floor](#the-floor-of-the-disk) at as many reads in progress as there are \
         clients, of the size `rareqsz`"
        "not published";
    // Network
    "net_received_mb_per_s"
        "growth of `network_received_bytes`";
    "net_sent_mb_per_s"
        "growth of `network_sent_bytes`";
    "net_packets_per_s"
        "growth of `network_received_packet_count` + `network_sent_packet_count`";
    "net_received_kb_per_op"
        "growth of `network_received_bytes` / D1";
    "net_sent_kb_per_op"
        "growth of `network_sent_bytes` / D1";
    "net_packets_per_op"
        "`net_packets_per_s` / D1";
    "tcp_retransmits_per_s"
        "growth of `tcp_retransmit_count`: segments that TCP sent again, because they were lost \
         or came too late";
    // Durability
    "fsyncs_per_commit"
        "MySQL and MariaDB: (`innodb_fsync_count` + `rocksdb_wal_sync_count` + \
         `binlog_sync_count`, the last two if they are counted) / commits. PostgreSQL: \
         (`wal_sync_count` + `relation_sync_count`) / commits. Other engines, if [system \
         calls](#system-calls) are counted: (`fsync` + `fdatasync`) / commits";
    "log_fsyncs_per_commit"
        "`innodb_log_fsync_count` / commits. For MyRocks tables `rocksdb_wal_sync_count`; for \
         PostgreSQL and RocksDB `wal_sync_count`";
    "data_fsyncs_per_commit"
        "`innodb_data_fsync_count` / commits, but not with MyRocks tables; for PostgreSQL \
         `relation_sync_count`";
    "binlog_syncs_per_commit"
        "`binlog_sync_count` / commits";
    "flushes_per_commit"
        "growth of `disk_flush_count` x elapsed / commits: cache flushes that the disks of the \
         data completed, whichever process asked for them";
    "fsync_efficiency"
        "100 x growth of the counter of `log_fsyncs_per_commit`, and of `binlog_sync_count` if \
         there is one / elapsed / `fdatasync` calls per second of the \
         [floor](#the-floor-of-the-disk)";
    // Write amplification
    "write_amplification"
        "growth of `disk_write_bytes` x elapsed / (rows inserted x mean size of a row): bytes \
         that any process wrote to the devices of the data"
        "db_bench's covers only compaction and counts flushes twice";
    // Debt
    "debt_dead_rows"
        "`dead_rows` of all tables of PostgreSQL, the server's own estimate: row versions that \
         vacuum still has to remove";
    "debt_history_list"
        "`history_list_length` of InnoDB: transactions whose undo logs purge still has to process";
    "debt_dirty_mb"
        "`dirty_bytes` of InnoDB: pages in the buffer pool that differ from those on disk";
    "debt_redo_mb"
        "`checkpoint_age_bytes` of InnoDB: redo written since the last checkpoint";
    "debt_compaction_mb"
        "`pending_compaction_bytes` of RocksDB, or `rocksdb_pending_compaction_bytes` of MyRocks: \
         the engine's own estimate of what compaction still has to rewrite";
    "debt_replica_mb"
        "the log that a [replica](#replication) had not replayed at the last reading of the \
         step; of several, the largest. Paid before the next step: `catch_up_s`";
    // Replication
    "lag_ms_p50"
        "the median of the seconds' lags";
    "lag_ms_max"
        "the largest lag";
    "lag_ms_slope"
        "the slope of a least-squares line through the lags of the step's second half, if at \
         least four seconds have one";
    "lag_bytes_max"
        "the most log that a replica had not replayed, read once a second";
    "catch_up_s"
        "the time from the end of the load until all replicas are seen to show a heartbeat that \
         was sent afterward, and [logical replicas](plan.md#logical-replicas-of-postgresql) \
         have the indexes; 0.15 s without lag";
    "replica_cpu_us_per_op"
        "CPU time of all processes of a replica (of several, the largest) per second over \
         operations per second";
    "replica_read_kb_per_op"
        "growth of `replica_N.read_bytes`, likewise";
    "replica_write_kb_per_op"
        "growth of `replica_N.write_bytes`, likewise";
    "replica_switches_per_op"
        "growth of `replica_N.context_switch_count`, likewise";
    // LSM trees
    "mb_sec"
        "rows of the main operation x (key + value) / elapsed: keys put, keys found, entries \
         passed"
        "as printed; not printed for reads of several keys in old versions";
    "lsm_sz"
        "`live_sst_bytes`, else `lsm_bytes`, when the step had ended";
    "blob_sz"
        "`live_blob_bytes` when the step had ended";
    "c_wgb"
        "bytes that flushes and compactions wrote: `flush_written_bytes` + \
         `compaction_written_bytes` if the library's statistics are on, else \
         `compaction_and_flush_written_bytes`, which includes flushes";
    "w_amp"
        "the same bytes / user bytes: rows put or inserted x their size if the record has the \
         size, else `ingested_bytes`. Not applicable without writes, in index steps (whose rows \
         existed before) and in settle steps"
        "adds flushes to a sum that includes them: a load that is only flushed shows 2.0";
    "c_mbps"
        "the bytes of `c_wgb` / elapsed"
        "includes the wait for compaction";
    "c_wsecs"
        "`compaction_and_flush_seconds`, over all threads: the column `Comp(sec)` of the row of \
         sums, found by its name. Not applicable in turns"
        "the 15th column: since RocksDB 10.3 that is the rate of writing";
    "c_csecs"
        "`compaction_and_flush_cpu_seconds`: the column `CompMergeCPU(sec)`"
        "the 16th column: since 10.3 that is `Comp(sec)`";
    "b_rgb"
        "`blob_read_bytes`: what compactions read from blob files, in tenths of a GB";
    "b_wgb"
        "`blob_written_bytes`: what compactions and flushes wrote to them, in tenths of a GB";
    "usec_op"
        "time from the first to the last operation of each connection of the main operation, \
         summed / operations";
    "uptime"
        "`uptime_seconds`: the step by the library's clock. Not applicable in turns";
    "stall%"
        "100 x `stall_s` / elapsed"
        "since the process began";
    "Nstall"
        "all delays and stops: see below"
        "empty since 8.1, which changed the line's format";
    "u_cpu"
        "growth of `server_cpu_user_ns` x elapsed, for the cell's process, which includes \
         library and load, as in db_bench"
        "in thousands";
    "s_cpu"
        "growth of `server_cpu_system_ns` x elapsed, for the same process"
        "in thousands";
    // LSM trees, settled
    "c_wgb_settled"
        "as `c_wgb`";
    "w_amp_settled"
        "as `w_amp`: the bytes of `c_wgb_settled` / user bytes of the step";
    "c_wsecs_settled"
        "as `c_wsecs`";
    "c_csecs_settled"
        "as `c_csecs`";
    // LSM trees, more
    "stall_s"
        "`stall_seconds`; MyRocks: `rocksdb_stall_seconds`: time in which writes were delayed \
         or stopped. The library counts a stall when it ends, so a second in a chart can have \
         more than one second";
    "flush_gb"
        "`flush_written_bytes`";
    "compaction_write_gb"
        "`compaction_written_bytes`; without the library's statistics \
         `compaction_and_flush_written_bytes` - `flush_written_bytes`";
    "compaction_read_gb"
        "`compaction_read_bytes`";
    "wal_gb"
        "`wal_written_bytes`";
    "wal_amp"
        "`wal_written_bytes` / user bytes, as for `w_amp`, which does not include it. Not \
         applicable where `w_amp` is not, or if the log was off (no bytes)";
    "r_amp"
        "data blocks that were looked up in the block cache (hits + misses) / keys, entries and \
         rows that were read. Needs the library's statistics (`statistics = true`): the tickers \
         `block.cache.data.hit` and `.miss`. It includes look-ups by compaction";
    "cache_hit%"
        "100 x hits / (hits + misses) of the same blocks, in query steps";
    "s_amp"
        "(`lsm_sz` + `blob_sz`) / `data_bytes` of the step, the expected bytes of user data: \
         keys x (key + value)";
    "pending_max_mb"
        "the largest `pending_compaction_bytes` of any second or of the end \
         (`debt_compaction_mb`)";
    "l0_files_begin"
        "files of the first level when the step began";
    "l0_files_max"
        "the largest number in any second or at the end";
    "l0_files"
        "files of the first level when the step had ended";
    "levels_begin"
        "levels with at least one file when the step began";
    "levels"
        "levels with at least one file when the step had ended";
    "lsm_files"
        "files of all levels when the step had ended";
    "memtable_max_mb"
        "the largest `memtable_bytes` (all memtables that are not flushed yet) in any second or \
         at the end";
    "memtable_mb"
        "`memtable_bytes` when the step had ended";
    "cache_mb"
        "`block_cache_bytes` when the step had ended";
    // Sizes
    "dbgb1"
        "the size that the engine reports (`database_bytes`) when the step had ended; if it \
         reports none, the bytes of its data files"
        "PostgreSQL: the reported size; others: the size of one directory";
    "dbgb2"
        "bytes of data and log files when the step had ended"
        "size of the data directory with all of its files";
    "index_gb"
        "the sum of `each_index_bytes` when the step began. In InnoDB, an index is also the table with its \
         primary key, and sizes are those of the last statistics: not applicable if a table changed since"
        "not published";
    "rss"
        "the largest resident memory of the server in any second: private memory of all its \
         processes, plus their shared memory once"
        "of one process; with a process per connection, an arbitrary one";
    // Response time
    "maxop"
        "the largest response time of the main operation; in index steps, of an insert"
        "measured from the start of the statement; the legend says ms";
    // SLA
    "sla"
        "100 x `achieved` / `target`";
    // Fairness
    "fairness"
        "`pct`";
}
