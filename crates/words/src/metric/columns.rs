//! The columns of tables, comparisons and exported formats, by the names of
//! [metrics](super::METRICS).

/// The metrics of a table, in order, each with its column heading; an empty one means
/// [`column_heading`](super::Metric::column_heading).
pub type Columns = [(&'static str, &'static str)];

/// The costs of an operation, with figures that help to read them. The host's CPU is `cpupq`, which
/// includes client and server.
pub const COSTS: &Columns = &[
    ("client_cpu_us_per_op", ""),
    ("server_cpu_us_per_op", ""),
    ("own_cpu_us_per_op", ""),
    ("instructions_per_op", ""),
    ("cycles_per_op", ""),
    ("ipc", ""),
    ("cache_misses_per_op", ""),
    ("branch_misses_per_op", ""),
    ("tlb_misses_per_op", ""),
    ("cpupq", "host_cpu\n\u{b5}s/op"),
    ("cs/o", ""),
    ("r/o", ""),
    ("rKB/o", ""),
    ("wKB/o", ""),
    ("net_received_kb_per_op", ""),
    ("net_sent_kb_per_op", ""),
    ("client_cpu_us_per_row_inserted", ""),
    ("client_cpu_us_per_row_deleted", ""),
    ("client_cpu_us_per_query", ""),
    ("client_cpu_us_per_read", ""),
    ("client_cpu_us_per_write", ""),
    ("krows_sec", ""),
    ("rows/event", ""),
    ("retries_per_op", ""),
    ("retried_us_per_op", ""),
    ("lock_waits_per_op", ""),
    ("lock_wait_us_per_op", ""),
    ("deadlocks_per_op", ""),
    ("others%", ""),
    ("cpu_mhz", ""),
];

/// The costs of a query of each sysbench test. Published tables have `cpu/o` in percent of their
/// machine; here it is CPU time, which other machines can be compared with.
pub const TEST_COSTS: &Columns = &[
    ("cpupq", "cpu/o\n\u{b5}s"),
    ("cs/o", "cs/o\n"),
    ("r/o", "r/o\n"),
    ("rKB/o", "rKB/o\nKB"),
    ("wKB/o", "wKB/o\nKB"),
    ("o/s", "o/s\n/s"),
];

/// The metrics that comparisons of the Insert Benchmark show by default, after throughput.
pub const INSERT_COMPARISON_METRICS: [&str; 15] = [
    "cpupq",
    "client_cpu_us_per_op",
    "server_cpu_us_per_op",
    "cycles_per_op",
    "ipc",
    "cache_misses_per_op",
    "branch_misses_per_op",
    "tlb_misses_per_op",
    "cs/o",
    "rpq",
    "rkbpq",
    "wpi",
    "wkbpi",
    "fsyncs_per_commit",
    "w_amp",
];
/// The metrics that comparisons of other workloads show by default, after throughput.
pub const COMPARISON_METRICS: [&str; 14] = [
    "cpupq",
    "client_cpu_us_per_op",
    "server_cpu_us_per_op",
    "cycles_per_op",
    "ipc",
    "cache_misses_per_op",
    "branch_misses_per_op",
    "tlb_misses_per_op",
    "cs/o",
    "r/o",
    "rKB/o",
    "wKB/o",
    "fsyncs_per_commit",
    "w_amp",
];

/// The columns of the disks that comparisons look at besides: a change of them is evidence, and their
/// tables show those that changed.
pub const DEVICE_COMPARISON_METRICS: [&str; 6] =
    ["rareqsz", "wareqsz", "rawait", "wawait", "aqu-sz", "util%"];

/// The metrics that can give a verdict of their own, besides throughput, and their names in
/// sentences.
pub const CPU_VERDICT_METRICS: [(&str, &str); 2] = [
    ("own_cpu_us_per_op", "own CPU per operation"),
    ("instructions_per_op", "instructions per operation"),
];

/// The columns of iostat for the disks of the data, with its headings, and the share of the floor.
pub const IOSTAT: &Columns = &[
    ("rps", ""),
    ("rmbps", "rMBps\nMB/s"),
    ("rawait", ""),
    ("rareqsz", ""),
    ("wps", ""),
    ("wmbps", "wMBps\nMB/s"),
    ("wawait", ""),
    ("wareqsz", ""),
    ("aqu-sz", ""),
    ("util%", ""),
    ("io_efficiency", "io_eff\n% of floor"),
];

/// The columns of vmstat for all processors, with its headings.
pub const VMSTAT: &Columns =
    &[("csps", "cs\n/s"), ("us%", ""), ("sy%", ""), ("id%", ""), ("wa%", ""), ("steal%", "st\n%")];

/// The use of a host by the load ranks on it, before its [`NETWORK`].
pub const CLIENT_HOST: &Columns = &[
    ("cpups", ""),
    ("us%", ""),
    ("sy%", ""),
    ("steal%", ""),
    ("csps", ""),
    ("cpupq", ""),
    ("cspq", ""),
];

/// The traffic between the load's hosts and the server's.
pub const NETWORK: &Columns = &[
    ("net_received_mb_per_s", ""),
    ("net_sent_mb_per_s", ""),
    ("net_packets_per_s", ""),
    ("net_received_kb_per_op", ""),
    ("net_sent_kb_per_op", ""),
    ("net_packets_per_op", ""),
    ("tcp_retransmits_per_s", ""),
];

/// The bytes that a log-structured merge tree wrote and read, in relation to the data.
pub const LSM_WORK: &Columns = &[
    ("w_amp", ""),
    ("w_amp_settled", "w_amp, B/B\nsettled"),
    ("wal_amp", ""),
    ("r_amp", ""),
    ("s_amp", ""),
    ("flush_gb", "flush\nGB"),
    ("compaction_write_gb", "comp_write\nGB"),
    ("compaction_read_gb", "comp_read\nGB"),
    ("wal_gb", "wal\nGB"),
    ("c_wgb_settled", "c_wgb, GB\nsettled"),
    ("c_wsecs", ""),
    ("c_wsecs_settled", "c_wsecs, s\nsettled"),
    ("c_csecs", ""),
    ("c_csecs_settled", "c_csecs, s\nsettled"),
    ("cache_hit%", "cache_hit\n%"),
];

/// The columns of [`LSM_WORK`] for a step without writes, flushes and compactions.
pub const LSM_WORK_IDLE: &Columns = &[("r_amp", ""), ("s_amp", ""), ("cache_hit%", "cache_hit\n%")];

/// The write stalls of a log-structured merge tree.
pub const LSM_STALLS: &Columns = &[("stall_s", "stall\ns"), ("stall%", ""), ("Nstall", "")];

/// The state of a log-structured merge tree at the start and the end of a step.
pub const LSM_STATE: &Columns = &[
    ("pending_max_mb", "pending, MB\nmost"),
    ("debt_compaction_mb", "pending, MB\nend"),
    ("l0_files_begin", "L0 files\nbegin"),
    ("l0_files_max", "L0 files\nmost"),
    ("l0_files", "L0 files\nend"),
    ("levels_begin", "levels\nbegin"),
    ("levels", "levels\nend"),
    ("lsm_files", "files\nend"),
    ("memtable_max_mb", "memtable, MB\nmost"),
    ("memtable_mb", "memtable, MB\nend"),
    ("cache_mb", "cache, MB\nend"),
];

/// The columns of db_bench's summaries in their order, with their headings; `service_us_...` are
/// percentiles of service times.
pub const LSM_SUMMARY: &Columns = &[
    ("o/s", "ops_sec"),
    ("mb_sec", "mb_sec"),
    ("lsm_sz", "lsm_sz"),
    ("blob_sz", "blob_sz"),
    ("c_wgb", "c_wgb"),
    ("w_amp", "w_amp"),
    ("c_mbps", "c_mbps"),
    ("c_wsecs", "c_wsecs"),
    ("c_csecs", "c_csecs"),
    ("b_rgb", "b_rgb"),
    ("b_wgb", "b_wgb"),
    ("usec_op", "usec_op"),
    ("service_us_p50", "p50"),
    ("service_us_p99", "p99"),
    ("service_us_p99_9", "p99.9"),
    ("service_us_p99_99", "p99.99"),
    ("service_us_max", "pmax"),
    ("uptime", "uptime"),
    ("stall%", "stall%"),
    ("Nstall", "Nstall"),
    ("u_cpu", "u_cpu"),
    ("s_cpu", "s_cpu"),
    ("rss", "rss"),
];

/// Metrics of [`LSM_SUMMARY`], each with the one that includes the wait for compaction after the
/// step.
pub const LSM_SETTLED: [(&str, &str); 4] = [
    ("c_wgb", "c_wgb_settled"),
    ("w_amp", "w_amp_settled"),
    ("c_wsecs", "c_wsecs_settled"),
    ("c_csecs", "c_csecs_settled"),
];

/// The metrics after throughput in the format of Go's benchmarks, each with its unit there and the
/// factor to that unit. benchstat knows `ns` and `B`, and prints them with a suitable prefix.
pub const GO_BENCHMARKS: [(&str, &str, f64); 13] = [
    ("cpupq", "cpu-ns/op", 1e3),
    ("client_cpu_us_per_op", "client-cpu-ns/op", 1e3),
    ("server_cpu_us_per_op", "server-cpu-ns/op", 1e3),
    ("cs/o", "switches/op", 1.0),
    ("r/o", "reads/op", 1.0),
    ("rKB/o", "read-B/op", 1024.0),
    ("wpi", "writes/row", 1.0),
    ("wKB/o", "written-B/op", 1024.0),
    ("fsyncs_per_commit", "fsyncs/commit", 1.0),
    ("w_amp", "write-amp", 1.0),
    ("stall%", "stall-pct", 1.0),
    ("dbgb1", "data-B", 1_073_741_824.0),
    ("rss", "rss-B", 1_073_741_824.0),
];
