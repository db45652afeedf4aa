//! The metrics, each with its name, unit, decimals, better direction and place. A new metric needs
//! a row here, its formula in words in `formulas.rs`, and its code in `analysis`. `cargo xtask
//! docs` writes the tables of `docs/metrics.md` from these rows.

mod columns;
mod formulas;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::SystemCallSet;

pub use columns::*;
pub use formulas::{FORMULAS, Formula};

/// A figure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The metric's name, also the key in JSON.
    pub name: &'static str,
    /// The name in narrow columns.
    pub head: &'static str,
    /// The unit, with the divisor; empty for a count.
    pub unit: &'static str,
    /// The number of decimals that the metric is shown with.
    pub decimals: Decimals,
    /// The better direction.
    pub better: Better,
    /// The table of `docs/metrics.md` that has the formula.
    pub section: Section,
    /// The steps that have the metric.
    pub steps: StepScope,
    /// The name in exported tables: lower-case letters, digits and `_`, with the unit last.
    pub column: &'static str,
    /// The meaning of the name, for legends of tables; empty if the name says it.
    pub meaning: &'static str,
}

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Larger values: throughput, cache hits, and the frequency of the processors.
    More,
    /// Smaller values: work, space, debt, time.
    Less,
}

/// The steps that have a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepScope {
    /// All steps: where it is missing, it is not applicable.
    All,
    /// Some kinds of steps: the others don't show it.
    Certain,
}

/// Tables of `docs/metrics.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Completed work per time.
    Throughput,
    /// The use of all processors.
    Host,
    /// Processor time of client, server and others.
    ClientServer,
    /// The parts of an operation's time.
    Time,
    /// Waits for data that others lock, and attempts that this ends.
    Contention,
    /// The use of the disks.
    InputOutput,
    /// Traffic between the load's hosts and the server's.
    Network,
    /// The frequency with which commits were made durable.
    Durability,
    /// Bytes written in relation to the data.
    Writes,
    /// Postponed work.
    Debt,
    /// The lag of replicas.
    Replication,
    /// Log-structured merge trees, by db_bench's names.
    Lsm,
    /// Log-structured merge trees, with the work that continued after the step.
    LsmSettled,
    /// Log-structured merge trees: stalls, reads, and the state of the tree.
    LsmTree,
    /// Sizes of files and memory.
    Sizes,
    /// The time that operations took.
    Response,
    /// Requested rates.
    Sla,
    /// Differences between clients.
    Fairness,
}

impl Section {
    /// Returns the name of the table, which is the heading above the only table of a section.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::Host => "Cost per operation, whole host",
            Self::ClientServer => "Cost per operation, client and server",
            Self::Time => "The time of an operation",
            Self::Contention => "Contention",
            Self::InputOutput => "Input and output",
            Self::Network => "Network",
            Self::Durability => "Durability",
            Self::Writes => "Write amplification",
            Self::Debt => "Debt",
            Self::Replication => "Replication",
            Self::Lsm => "LSM trees",
            Self::LsmSettled => "LSM trees when the step has settled",
            Self::LsmTree => "More about LSM trees",
            Self::Sizes => "Sizes",
            Self::Response => "Response time",
            Self::Sla => "SLA",
            Self::Fairness => "Fairness",
        }
    }

    /// Returns the heading of the column with [`Formula::note`].
    pub const fn note_heading(self) -> &'static str {
        match self {
            Self::Time => "source",
            _ => "in published reports",
        }
    }
}

/// The number of decimals of a figure: the usual number, but never so few that a small figure
/// becomes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimals {
    /// None, for whole numbers.
    Whole,
    /// One, for megabytes and percent.
    One,
    /// Two, for ratios.
    Two,
    /// Three, for seconds.
    Milliseconds,
    /// For rates: none for large ones, three significant digits for small ones.
    Rate,
    /// For reads, kilobytes or context switches per operation.
    PerOperation,
    /// For microseconds: fewer for longer times.
    Microseconds,
    /// For gigabytes: fewer for larger sizes.
    Gigabytes,
}

impl Decimals {
    /// Returns the decimals of a column with these values: the same number for all, so that they
    /// line up.
    pub fn of(self, values: impl IntoIterator<Item = f64>) -> usize {
        let smallest = values
            .into_iter()
            .map(f64::abs)
            .filter(|value| *value > 0.0)
            .fold(f64::INFINITY, f64::min);
        match self {
            Self::Rate if smallest >= 10.0 => 0,
            // Enough for the rate of full scans of a large table.
            Self::Rate => (2.0 - smallest.max(1e-4).log10().floor()) as usize,
            Self::Whole => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Milliseconds => 3,
            // The usual three, and more where a figure would become 0.
            Self::PerOperation if smallest >= 0.001 => 3,
            Self::PerOperation => 5,
            Self::Microseconds if smallest >= 100.0 => 0,
            Self::Microseconds => 1 + usize::from(smallest < 10.0),
            Self::Gigabytes if smallest >= 10.0 => 1,
            Self::Gigabytes => 3,
        }
    }
}

macro_rules! metrics {
    ($(#[$about:meta])* $table:ident; $($name:literal $head:literal $unit:literal $decimals:ident $better:ident $section:ident $steps:ident $column:literal $meaning:literal;)*) => {
        $(#[$about])*
        pub const $table: &[Metric] = &[$(Metric {
            name: $name,
            head: $head,
            unit: $unit,
            decimals: Decimals::$decimals,
            better: Better::$better,
            section: Section::$section,
            steps: StepScope::$steps,
            column: $column,
            meaning: $meaning,
        }),*];
    };
}

metrics! {
    /// All metrics that tables show by their names, in the order of exported columns: first those of
    /// published summaries, then the others.
    METRICS;
    "ips"                            "ips"                 "rows/s"     Rate         More Throughput   All     "ips_rows_per_s"                             "rows inserted";
    "dps"                            "dps"                 "rows/s"     Rate         More Throughput   All     "dps_rows_per_s"                             "rows deleted";
    "qps"                            "qps"                 "/s"         Rate         More Throughput   All     "qps_per_s"                                  "queries";
    "rps"                            "rps"                 "/s"         Rate         Less InputOutput  All     "rps_per_s"                                  "disk reads";
    "rmbps"                          "rmbps"               "MB/s"       One          Less InputOutput  All     "rmbps_mib_per_s"                            "MB read";
    "wps"                            "wps"                 "/s"         Rate         Less InputOutput  All     "wps_per_s"                                  "disk writes";
    "wmbps"                          "wmbps"               "MB/s"       One          Less InputOutput  All     "wmbps_mib_per_s"                            "MB written";
    "rpq"                            "rpq"                 "/op"        PerOperation Less InputOutput  All     "rpq_per_op"                                 "reads per operation";
    "rkbpq"                          "rkbpq"               "KB/op"      PerOperation Less InputOutput  All     "rkbpq_kib_per_op"                           "KB read per operation";
    "wpi"                            "wpi"                 "/row"       PerOperation Less InputOutput  All     "wpi_per_insert"                             "writes per row inserted";
    "wkbpi"                          "wkbpi"               "KB/row"     PerOperation Less InputOutput  All     "wkbpi_kib_per_insert"                       "KB written per row inserted";
    "csps"                           "csps"                "/s"         Rate         Less Host         All     "csps_per_s"                                 "context switches";
    "cpups"                          "cpups"               "%"          One          Less Host         All     "cpups_pct"                                  "processors busy, user and system";
    "cspq"                           "cspq"                "/op"        PerOperation Less Host         All     "cspq_per_op"                                "context switches per operation";
    "cpupq"                          "cpupq"               "us/op"      Microseconds Less Host         All     "cpupq_us_per_op"                            "CPU of the whole host per operation";
    "dbgb1"                          "dbgb1"               "GB"         Gigabytes    Less Sizes        All     "dbgb1_gib"                                  "size of the data";
    "dbgb2"                          "dbgb2"               "GB"         Gigabytes    Less Sizes        All     "dbgb2_gib"                                  "size of data and logs";
    "rss"                            "rss"                 "GB"         Gigabytes    Less Sizes        All     "rss_gib"                                    "peak memory of the engine's processes";
    "maxop"                          "maxop"               "s"          Milliseconds Less Response     All     "maxop_s"                                    "longest response time";
    "p50"                            "p50"                 "/s"         Rate         More Throughput   All     "p50_rate_per_s"                             "rate reached in 50% of the seconds";
    "p99"                            "p99"                 "/s"         Rate         More Throughput   All     "p99_rate_per_s"                             "rate reached in 99% of the seconds";
    "cpu/o"                          "cpu/o"               ""           Microseconds Less Host         All     "cpu_pct_s_per_op"                           "CPU of the whole host per query";
    "cs/o"                           "cs/o"                "/op"        PerOperation Less Host         All     "cs_per_op"                                  "context switches per operation";
    "r/o"                            "r/o"                 "/op"        PerOperation Less InputOutput  All     "r_per_op"                                   "disk reads per operation";
    "rKB/o"                          "rKB/o"               "KB/op"      PerOperation Less InputOutput  All     "r_kib_per_op"                               "KB read per operation";
    "wKB/o"                          "wKB/o"               "KB/op"      PerOperation Less InputOutput  All     "w_kib_per_op"                               "KB written per operation";
    "o/s"                            "o/s"                 "/s"         Rate         More Throughput   All     "o_per_s"                                    "operations";
    "krows_sec"                      "scanned"             "Krows/s"    Rate         More Throughput   Certain "krows_per_s"                                "rows scanned";
    "per_minute"                     "per_minute"          "/min"       Rate         More Throughput   Certain "per_minute"                                 "throughput per minute";
    "rows/event"                     "deleted"             "rows/event" PerOperation More Throughput   Certain "rows_per_event"                             "rows deleted per event";
    "others%"                        "others"              "% of CPUs"  One          Less ClientServer All     "others_pct"                                 "share of CPU time that other programs used";
    "steal%"                         "steal"               "% of CPUs"  One          Less Host         All     "steal_pct"                                  "CPU time that the hypervisor took";
    "cpu_mhz"                        "clock"               "MHz"        Whole        More ClientServer Certain "cpu_mhz"                                    "frequency of the processors";
    "client_cpu_us_per_op"           "client_cpu"          "us/op"      Microseconds Less ClientServer All     "client_cpu_us_per_op"                       "CPU of all client threads, including those with other operations";
    "server_cpu_us_per_op"           "server_cpu"          "us/op"      Microseconds Less ClientServer All     "server_cpu_us_per_op"                       "CPU of the server";
    "op_time_us"                     "time"                "us/op"      Rate         Less Time         All     "op_time_us"                                 "";
    "op_client_cpu_us"               "client_cpu"          "us/op"      Rate         Less Time         All     "op_client_cpu_us"                           "";
    "op_server_cpu_us"               "server_cpu"          "us/op"      Rate         Less Time         All     "op_server_cpu_us"                           "";
    "op_cpu_wait_us"                 "cpu_wait"            "us/op"      Rate         Less Time         All     "op_cpu_wait_us"                             "ready to run, but without a processor";
    "op_steal_us"                    "steal"               "us/op"      Rate         Less Time         All     "op_steal_us"                                "CPU time that the hypervisor took";
    "op_read_us"                     "reads"               "us/op"      Rate         Less Time         All     "op_read_us"                                 "";
    "op_write_us"                    "writes"              "us/op"      Rate         Less Time         All     "op_write_us"                                "";
    "op_fsync_us"                    "fsyncs"              "us/op"      Rate         Less Time         All     "op_fsync_us"                                "";
    "op_lock_us"                     "locks"               "us/op"      Rate         Less Time         All     "op_lock_us"                                 "waiting for other threads";
    "op_handover_us"                 "handover"            "us/op"      Rate         Less Time         All     "op_handover_us"                             "client and server both waiting for a message";
    "op_overlap_us"                  "overlap"             "us/op"      Rate         Less Time         All     "op_overlap_us"                              "client and server busy at once, counted twice";
    "op_unexplained_us"              "unexplained"         "us/op"      Rate         Less Time         All     "op_unexplained_us"                          "time that no other column explains; below 0 if the columns add up to more than the time";
    "op_unexplained%"                "unexplained"         "% of time"  One          Less Time         All     "op_unexplained_pct"                         "";
    "own_cpu_us_per_op"              "own_cpu"             "us/op"      Microseconds Less ClientServer All     "own_cpu_us_per_op"                          "CPU of the client and server threads that do the step's main operation";
    "typical_rate"                   "typical"             "/s"         Rate         More Throughput   Certain "typical_rate_per_s"                         "rate in a typical turn: stalls, and turns in which others had the processor, are left out";
    "steadiness"                     "steadiness"          ""           Two          More Throughput   Certain "steadiness"                                 "rate over all turns as a share of that in a typical turn";
    "typical_cpu_us_per_op"          "typical_cpu"         "us/op"      Microseconds Less ClientServer Certain "typical_cpu_us_per_op"                      "CPU of client and server in a typical turn";
    "background_cpu_us_per_op"       "background_cpu"      "us/op"      Microseconds Less Time         All     "background_cpu_us_per_op"                   "CPU of the engine's other threads";
    "server_switches_per_op"         "server_switches"     "/op"        Rate         Less ClientServer Certain "server_switches_per_op"                     "context switches of the server's threads";
    "instructions_per_op"            "instructions"        "/op"        Rate         Less ClientServer Certain "instructions_per_op"                        "executed by the threads of the connections";
    "cycles_per_op"                  "cycles"              "/op"        Rate         Less ClientServer Certain "cycles_per_op"                              "processor cycles of the threads of the connections";
    "ipc"                            "ipc"                 "/cycle"     Two          More ClientServer Certain "ipc"                                        "instructions per cycle of these threads";
    "cache_misses_per_op"            "cache_misses"        "/op"        Rate         Less ClientServer Certain "cache_misses_per_op"                        "accesses that the last-level cache did not have";
    "branch_misses_per_op"           "branch_misses"       "/op"        Rate         Less ClientServer Certain "branch_misses_per_op"                       "mispredicted branches";
    "tlb_misses_per_op"              "tlb_misses"          "/op"        Rate         Less ClientServer Certain "tlb_misses_per_op"                          "loads whose page the data TLB did not have";
    "own_read_kb_per_op"             "own_read"            "KB/op"      Rate         Less Time         All     "own_read_kb_per_op"                         "the engine's own reads from storage";
    "own_write_kb_per_op"            "own_write"           "KB/op"      Rate         Less Time         All     "own_write_kb_per_op"                        "the engine's own writes to storage";
    "client_cpu_us_per_row_inserted" "client_cpu"          "us/insert"  Microseconds Less ClientServer Certain "client_cpu_us_per_row_inserted"             "";
    "client_cpu_us_per_row_deleted"  "client_cpu"          "us/delete"  Microseconds Less ClientServer Certain "client_cpu_us_per_row_deleted"              "";
    "client_cpu_us_per_query"        "client_cpu"          "us/query"   Microseconds Less ClientServer Certain "client_cpu_us_per_query"                    "";
    "client_cpu_us_per_read"         "client_cpu"          "us/read"    Microseconds Less ClientServer Certain "client_cpu_us_per_read"                     "";
    "client_cpu_us_per_write"        "client_cpu"          "us/write"   Microseconds Less ClientServer Certain "client_cpu_us_per_write"                    "";
    "system_calls_per_op"            "calls"               "/op"        PerOperation Less ClientServer Certain "system_calls_per_op"                        "system calls of the engine";
    "index_gb"                       "indexes"             "GB"         Gigabytes    Less Sizes        Certain "index_gib"                                  "size of all indexes when the step began";
    "retries_per_op"                 "retries"             "/op"        PerOperation Less Contention   Certain "retries_per_op"                             "attempts after the first";
    "retried_us_per_op"              "retry_time"          "us/op"      Microseconds Less Contention   Certain "retried_us_per_op"                          "time of attempts that failed and were retried";
    "lock_waits_per_op"              "lock_waits"          "/op"        PerOperation Less Contention   Certain "lock_waits_per_op"                          "waits for locks on data";
    "lock_wait_us_per_op"            "lock_wait"           "us/op"      Microseconds Less Contention   Certain "lock_wait_us_per_op"                        "time of waits for locks on data";
    "deadlocks_per_op"               "deadlocks"           "/op"        PerOperation Less Contention   Certain "deadlocks_per_op"                           "deadlocks of the engine";
    "fsyncs_per_commit"              "fsyncs"              "/commit"    PerOperation Less Durability   All     "fsyncs_per_commit"                          "fsyncs per commit";
    "log_fsyncs_per_commit"          "log_fsyncs"          "/commit"    PerOperation Less Durability   All     "log_fsyncs_per_commit"                      "";
    "data_fsyncs_per_commit"         "data_fsyncs"         "/commit"    PerOperation Less Durability   All     "data_fsyncs_per_commit"                     "";
    "binlog_syncs_per_commit"        "binlog_syncs"        "/commit"    PerOperation Less Durability   All     "binlog_syncs_per_commit"                    "";
    "flushes_per_commit"             "disk_flushes"        "/commit"    PerOperation Less Durability   All     "flushes_per_commit"                         "cache flushes that the disks completed";
    "write_amplification"            "write_amp"           "B/B"        One          Less Writes       All     "write_amplification"                        "bytes written to the disk per byte of rows inserted";
    "debt_dead_rows"                 "dead_rows"           ""           Whole        Less Debt         All     "debt_dead_rows"                             "";
    "debt_history_list"              "history_list"        ""           Whole        Less Debt         All     "debt_history_list"                          "";
    "debt_dirty_mb"                  "dirty"               "MB"         One          Less Debt         All     "debt_dirty_mb"                              "";
    "debt_redo_mb"                   "redo"                "MB"         One          Less Debt         All     "debt_redo_mb"                               "";
    "debt_compaction_mb"             "compaction"          "MB"         One          Less Debt         All     "debt_compaction_mb"                         "";
    "debt_replica_mb"                "replica_log"         "MB"         One          Less Debt         All     "debt_replica_mb"                            "";
    "lag_ms_p50"                     "lag"                 "ms"         Rate         Less Replication  Certain "lag_ms_p50"                                 "age of the oldest change that a replica lacks, median of the seconds";
    "lag_ms_max"                     "lag_max"             "ms"         Rate         Less Replication  Certain "lag_ms_max"                                 "largest age of the oldest change that a replica lacks";
    "lag_ms_slope"                   "lag_slope"           "ms/s"       One          Less Replication  Certain "lag_slope_ms_per_s"                         "growth of the lag over the second half of the step";
    "lag_bytes_max"                  "lag_bytes"           "B"          Whole        Less Replication  Certain "lag_bytes_max"                              "largest amount of log that a replica has not replayed";
    "catch_up_s"                     "catch_up"            "s"          Milliseconds Less Replication  Certain "catch_up_s"                                 "time until all replicas show everything that the step wrote";
    "replica_cpu_us_per_op"          "replica_cpu"         "us/op"      Microseconds Less Replication  Certain "replica_cpu_us_per_op"                      "CPU of a replica";
    "replica_read_kb_per_op"         "replica_read"        "KB/op"      Rate         Less Replication  Certain "replica_read_kb_per_op"                     "a replica's own reads from storage";
    "replica_write_kb_per_op"        "replica_write"       "KB/op"      Rate         Less Replication  Certain "replica_write_kb_per_op"                    "a replica's own writes to storage";
    "replica_switches_per_op"        "replica_switches"    "/op"        Rate         Less Replication  Certain "replica_switches_per_op"                    "context switches of a replica's threads";
    "mb_sec"                         "mb_sec"              "MB/s"       One          More Lsm          All     "mb_sec_mib_per_s"                           "keys and values written or read";
    "lsm_sz"                         "lsm_sz"              "GB"         Gigabytes    Less Lsm          All     "lsm_sz_gib"                                 "size of the tree";
    "blob_sz"                        "blob_sz"             "GB"         Gigabytes    Less Lsm          All     "blob_sz_gib"                                "size of blob files";
    "c_wgb"                          "c_wgb"               "GB"         Gigabytes    Less Lsm          All     "c_wgb_gib"                                  "written by flushes and compactions";
    "w_amp"                          "w_amp"               "B/B"        Two          Less Lsm          All     "w_amp_bytes_per_byte"                       "bytes that flushes and compactions wrote per byte that clients wrote";
    "c_mbps"                         "c_mbps"              "MB/s"       One          Less Lsm          All     "c_mbps_mib_per_s"                           "c_wgb per second";
    "c_wsecs"                        "c_wsecs"             "s"          One          Less Lsm          All     "c_wsecs_s"                                  "time of flushes and compactions";
    "c_csecs"                        "c_csecs"             "s"          One          Less Lsm          All     "c_csecs_s"                                  "CPU of flushes and compactions";
    "b_rgb"                          "b_rgb"               "GB"         Gigabytes    Less Lsm          All     "b_rgb_gib"                                  "read from blob files";
    "b_wgb"                          "b_wgb"               "GB"         Gigabytes    Less Lsm          All     "b_wgb_gib"                                  "written to blob files";
    "usec_op"                        "usec_op"             "us"         Microseconds Less Lsm          All     "usec_op_us_per_op"                          "thread time per operation";
    "uptime"                         "uptime"              "s"          One          Less Lsm          All     "uptime_s"                                   "the library's clock";
    "stall%"                         "stall%"              "%"          One          Less Lsm          All     "stall_pct"                                  "share of the time in which writes were stalled";
    "Nstall"                         "Nstall"              ""           Whole        Less Lsm          All     "nstall_count"                               "number of times that writes were delayed or stopped";
    "u_cpu"                          "u_cpu"               "s"          One          Less Lsm          All     "u_cpu_s"                                    "user CPU of the process";
    "s_cpu"                          "s_cpu"               "s"          One          Less Lsm          All     "s_cpu_s"                                    "system CPU of the process";
    "stall_s"                        "stall_s"             "s"          Milliseconds Less LsmTree      All     "stall_s"                                    "";
    "flush_gb"                       "flush_gb"            "GB"         Gigabytes    Less LsmTree      All     "flush_gb"                                   "";
    "compaction_write_gb"            "compaction_write_gb" "GB"         Gigabytes    Less LsmTree      All     "compaction_write_gb"                        "";
    "compaction_read_gb"             "compaction_read_gb"  "GB"         Gigabytes    Less LsmTree      All     "compaction_read_gb"                         "";
    "wal_gb"                         "wal_gb"              "GB"         Gigabytes    Less LsmTree      All     "wal_gb"                                     "";
    "wal_amp"                        "wal_amp"             "B/B"        Two          Less LsmTree      All     "wal_amp_bytes_per_byte"                     "bytes of log per byte that clients wrote";
    "r_amp"                          "r_amp"               "blocks/key" Two          Less LsmTree      All     "r_amp_blocks_per_key"                       "blocks looked up per key read";
    "s_amp"                          "s_amp"               "B/B"        Two          Less LsmTree      All     "s_amp_bytes_per_byte"                       "size per byte of data";
    "cache_hit%"                     "cache_hit%"          "%"          One          More LsmTree      All     "cache_hit_pct"                              "blocks found in the cache";
    "pending_max_mb"                 "pending_max_mb"      "MB"         One          Less LsmTree      All     "pending_max_mb"                             "";
    "l0_files_begin"                 "l0_files_begin"      ""           Whole        Less LsmTree      All     "l0_files_begin_count"                       "";
    "l0_files"                       "l0_files"            ""           Whole        Less LsmTree      All     "l0_files_count"                             "";
    "l0_files_max"                   "l0_files_max"        ""           Whole        Less LsmTree      All     "l0_files_max_count"                         "";
    "levels_begin"                   "levels_begin"        ""           Whole        Less LsmTree      All     "levels_begin_count"                         "";
    "levels"                         "levels"              ""           Whole        Less LsmTree      All     "levels_count"                               "";
    "lsm_files"                      "lsm_files"           ""           Whole        Less LsmTree      All     "lsm_files_count"                            "";
    "memtable_max_mb"                "memtable_max_mb"     "MB"         One          Less LsmTree      All     "memtable_max_mb"                            "";
    "memtable_mb"                    "memtable_mb"         "MB"         One          Less LsmTree      All     "memtable_mb"                                "";
    "cache_mb"                       "cache_mb"            "MB"         One          Less LsmTree      All     "cache_mb"                                   "";
    "c_wgb_settled"                  "c_wgb_settled"       "GB"         Gigabytes    Less LsmSettled   All     "c_wgb_settled_gib"                          "";
    "w_amp_settled"                  "w_amp_settled"       "B/B"        Two          Less LsmSettled   All     "w_amp_settled_bytes_per_byte"               "";
    "c_wsecs_settled"                "c_wsecs_settled"     "s"          One          Less LsmSettled   All     "c_wsecs_settled_s"                          "";
    "c_csecs_settled"                "c_csecs_settled"     "s"          One          Less LsmSettled   All     "c_csecs_settled_s"                          "";
    "rawait"                         "rawait"              "ms"         Two          Less InputOutput  All     "rawait_ms"                                  "time of a read, including its wait";
    "rareqsz"                        "rareqsz"             "KB"         One          Less InputOutput  All     "rareqsz_kib"                                "size of a read";
    "wawait"                         "wawait"              "ms"         Two          Less InputOutput  All     "wawait_ms"                                  "time of a write, including its wait";
    "wareqsz"                        "wareqsz"             "KB"         One          Less InputOutput  All     "wareqsz_kib"                                "size of a write";
    "aqu-sz"                         "aqu-sz"              ""           Two          Less InputOutput  All     "aqu_sz"                                     "mean number of requests in progress";
    "util%"                          "util"                "%"          One          Less InputOutput  All     "util_pct"                                   "share of the time with a request in progress";
    "us%"                            "us"                  "%"          One          Less Host         All     "us_pct"                                     "user";
    "sy%"                            "sy"                  "%"          One          Less Host         All     "sy_pct"                                     "system";
    "id%"                            "id"                  "%"          One          More Host         All     "id_pct"                                     "idle";
    "wa%"                            "wa"                  "%"          One          Less Host         All     "wa_pct"                                     "idle, waiting for the disk";
    "net_received_mb_per_s"          "received"            "MB/s"       One          Less Network      Certain "net_received_mib_per_s"                     "from other hosts";
    "net_sent_mb_per_s"              "sent"                "MB/s"       One          Less Network      Certain "net_sent_mib_per_s"                         "to other hosts";
    "net_packets_per_s"              "packets"             "/s"         Rate         Less Network      Certain "net_packets_per_s"                          "received and sent";
    "net_received_kb_per_op"         "received"            "KB/op"      PerOperation Less Network      Certain "net_received_kib_per_op"                    "from other hosts";
    "net_sent_kb_per_op"             "sent"                "KB/op"      PerOperation Less Network      Certain "net_sent_kib_per_op"                        "to other hosts";
    "net_packets_per_op"             "packets"             "/op"        PerOperation Less Network      Certain "net_packets_per_op"                         "received and sent";
    "tcp_retransmits_per_s"          "retransmits"         "/s"         Rate         Less Network      Certain "tcp_retransmits_per_s"                      "TCP segments that were sent again";
    "io_efficiency"                  "io_eff"              "% of floor" One          More InputOutput  Certain "io_efficiency_pct"                          "the engine's reads per second, of what the disk does for a program alone";
    "fsync_efficiency"               "fsync_eff"           "% of floor" One          More Durability   Certain "fsync_efficiency_pct"                       "fsyncs of logs per second, of what the disk does for a program alone";
}

metrics! {
    /// Figures of a step that can be compared like [`METRICS`]. Tables and exports have them under
    /// other names.
    STEP_FIGURES;
    "sla"                            "sla"                 "%"          One          More Sla          Certain "sla_achieved_pct"                             "share of the requested rate that was achieved";
    "fairness"                       "fairness"            "%"          One          Less Fairness     Certain "fairness_apart_pct"                           "how much later the last client ended than the first";
}

metrics! {
    /// The times of operations, which can be compared like [`METRICS`]. They are those of a step's
    /// main kind of operation, or of the kind after a colon: `response_p99:query`.
    OPERATION_TIMES;
    "response_p50"                   "response_p50"        "us"         Microseconds Less Response     All     "response_us_p50"                              "the median of the times from an operation's scheduled start to its reply";
    "response_p90"                   "response_p90"        "us"         Microseconds Less Response     All     "response_us_p90"                              "the 90th percentile of the times from an operation's scheduled start to its reply";
    "response_p95"                   "response_p95"        "us"         Microseconds Less Response     All     "response_us_p95"                              "the 95th percentile of the times from an operation's scheduled start to its reply";
    "response_p99"                   "response_p99"        "us"         Microseconds Less Response     All     "response_us_p99"                              "the 99th percentile of the times from an operation's scheduled start to its reply";
    "response_p99.9"                 "response_p99.9"      "us"         Microseconds Less Response     All     "response_us_p99_9"                            "the 99.9th percentile of the times from an operation's scheduled start to its reply";
    "response_p99.99"                "response_p99.99"     "us"         Microseconds Less Response     All     "response_us_p99_99"                           "the 99.99th percentile of the times from an operation's scheduled start to its reply";
    "response_max"                   "response_max"        "us"         Microseconds Less Response     All     "response_us_max"                              "the longest of the times from an operation's scheduled start to its reply";
    "response_mean"                  "response_mean"       "us"         Microseconds Less Response     All     "response_us_mean"                             "the mean of the times from an operation's scheduled start to its reply";
    "service_p50"                    "service_p50"         "us"         Microseconds Less Response     All     "service_us_p50"                               "the median of the times from sending an operation to its reply";
    "service_p90"                    "service_p90"         "us"         Microseconds Less Response     All     "service_us_p90"                               "the 90th percentile of the times from sending an operation to its reply";
    "service_p95"                    "service_p95"         "us"         Microseconds Less Response     All     "service_us_p95"                               "the 95th percentile of the times from sending an operation to its reply";
    "service_p99"                    "service_p99"         "us"         Microseconds Less Response     All     "service_us_p99"                               "the 99th percentile of the times from sending an operation to its reply";
    "service_p99.9"                  "service_p99.9"       "us"         Microseconds Less Response     All     "service_us_p99_9"                             "the 99.9th percentile of the times from sending an operation to its reply";
    "service_p99.99"                 "service_p99.99"      "us"         Microseconds Less Response     All     "service_us_p99_99"                            "the 99.99th percentile of the times from sending an operation to its reply";
    "service_max"                    "service_max"         "us"         Microseconds Less Response     All     "service_us_max"                               "the longest of the times from sending an operation to its reply";
    "service_mean"                   "service_mean"        "us"         Microseconds Less Response     All     "service_us_mean"                              "the mean of the times from sending an operation to its reply";
}

/// The number of [`METRICS`] that published summaries of insert benchmarks show. They come first,
/// in the published order.
pub const PUBLISHED_COUNT: usize = 21;

/// The metric of all system calls, and with a kind of one.
const SYSTEM_CALLS: &str = "system_calls_per_op";

/// All metrics by their names, which comparisons look up for each value.
static BY_NAME: LazyLock<BTreeMap<&'static str, &'static Metric>> =
    LazyLock::new(|| Metric::all().map(|metric| (metric.name, metric)).collect());

impl Metric {
    /// Returns the metric with this name: of [`METRICS`], [`STEP_FIGURES`] or [`OPERATION_TIMES`].
    /// Times of operations may be followed by a kind of operation, and the number of system calls
    /// by a kind of those: `response_p99:query`, `system_calls_per_op:futex`.
    pub fn named(name: &str) -> Option<&'static Self> {
        if let Some(metric) = BY_NAME.get(name) {
            return Some(metric);
        }

        let (figure, kind) = name.split_once(':')?;
        if figure == SYSTEM_CALLS {
            let is_known = SystemCallSet::All.names().contains(&kind);
            return METRICS.iter().find(|metric| metric.name == figure && is_known);
        }
        let time = OPERATION_TIMES.iter().find(|metric| metric.name == figure);
        time.filter(|_| !kind.is_empty())
    }

    /// Returns all metrics that can be compared.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        METRICS.iter().chain(STEP_FIGURES).chain(OPERATION_TIMES)
    }

    /// Returns the formula in words; `None` for [`OPERATION_TIMES`].
    pub fn formula(&self) -> Option<&'static Formula> {
        FORMULAS.iter().find(|formula| formula.metric == self.name)
    }

    /// Returns true if it is one of [`OPERATION_TIMES`].
    pub fn is_operation_time(&self) -> bool {
        OPERATION_TIMES.contains(self)
    }

    /// Returns the name of a metric in exported tables: `query_response_us_p99` for
    /// `response_p99:query`. The name itself if no metric has it.
    pub fn exported_name(name: &str) -> Cow<'_, str> {
        match Self::named(name) {
            None => name.into(),
            Some(metric) if metric.is_operation_time() => {
                let kind = name.split_once(':').map_or("main", |(_, kind)| kind);
                format!("{kind}_{}", metric.column).into()
            }
            Some(metric) => match name.split_once(':') {
                Some((_, kind)) => format!("{kind}_{}", metric.column).into(),
                None => metric.column.into(),
            },
        }
    }

    /// Returns the heading of the metric's column in a table: the name, and the unit below.
    pub fn column_heading(&self) -> String {
        let unit = match self.unit.strip_prefix("us") {
            Some(divisor) => format!("\u{b5}s{divisor}"),
            None => self.unit.to_owned(),
        };
        format!("{}\n{unit}", self.head).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_formula_or_is_a_time_of_operations() {
        for metric in Metric::all() {
            let count = FORMULAS.iter().filter(|formula| formula.metric == metric.name).count();
            let expected = usize::from(!metric.is_operation_time());
            assert_eq!(count, expected, "formulas of `{}`", metric.name);
        }

        for formula in FORMULAS {
            assert!(Metric::named(formula.metric).is_some(), "{}", formula.metric);
        }
    }

    #[test]
    fn names_and_columns_are_unique() {
        for (at, metric) in Metric::all().enumerate() {
            let mut others = Metric::all().take(at);
            assert!(others.all(|other| other.name != metric.name && other.column != metric.column));
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.column.chars().all(is_plain), "{}", metric.column);
        }
    }

    #[test]
    fn a_time_of_operations_may_name_a_kind_and_other_metrics_may_not() {
        let name = |text| Metric::named(text).map(|metric| metric.name);
        assert_eq!(name("response_p99:query"), Some("response_p99"));
        assert_eq!(name("service_p99.9"), Some("service_p99.9"));
        assert_eq!(name("response_p99:"), None);
        assert_eq!(name("sla:insert"), None);
        assert_eq!(name("system_calls_per_op:futex"), Some("system_calls_per_op"));
        assert_eq!(name("system_calls_per_op:fsnyc"), None);
        let exported = Metric::exported_name("system_calls_per_op:futex");
        assert_eq!(exported, "futex_system_calls_per_op");
        assert_eq!(Metric::exported_name("response_p99:query"), "query_response_us_p99");
        assert_eq!(Metric::exported_name("service_p99.9"), "main_service_us_p99_9");
        assert_eq!(Metric::exported_name("fairness"), "fairness_apart_pct");
        assert_eq!(Metric::exported_name("throughput"), "throughput");
    }

    #[test]
    fn tables_show_known_metrics() {
        let tables = [
            COSTS,
            TEST_COSTS,
            IOSTAT,
            VMSTAT,
            CLIENT_HOST,
            NETWORK,
            &CPU_VERDICT_METRICS,
            LSM_WORK,
            LSM_WORK_IDLE,
            LSM_STALLS,
            LSM_STATE,
            LSM_SUMMARY,
            &LSM_SETTLED,
        ];
        let shown = tables.iter().flat_map(|table| table.iter());
        let names = shown.map(|(name, _)| *name);
        let compared = INSERT_COMPARISON_METRICS.into_iter().chain(COMPARISON_METRICS);
        let exported = GO_BENCHMARKS.into_iter().map(|(name, ..)| name);
        for name in names.chain(compared).chain(exported) {
            assert!(Metric::named(name).is_some() || name.starts_with("service_us_"), "{name}");
        }
    }

    #[test]
    fn a_column_with_a_small_rate_gets_decimals() {
        assert_eq!(Decimals::Rate.of([12_345.6, 99.0]), 0);
        assert_eq!(Decimals::Rate.of([12_345.6, 0.0]), 0);
        assert_eq!(Decimals::Microseconds.of([2.5, 300.0]), 2);
        assert_eq!(Decimals::Microseconds.of([]), 0);
        assert_eq!(Decimals::PerOperation.of([0.0, 0.25]), 3);
        assert_eq!(Decimals::PerOperation.of([0.0, 0.000_31]), 5);
        assert_eq!(Decimals::PerOperation.of([0.0]), 3);
    }
}
