//! What of the machine spoils a measurement, and the way out.

use std::path::Path;

use crate::{FsyncSample, HostFacts};

/// A flush that takes less than this has not reached a medium that keeps data without power.
const FSYNC_TOO_FAST_NS: u64 = 20_000;

/// Steal above this share of all processor time disturbs a comparison.
const STEAL_PERCENT_MAX: f64 = 1.0;

/// Free space above what is needed that a file system should have left: logs and temporary files vary.
const SPARE_PERCENT: u64 = 10;

/// What the warnings depend on besides the machine.
#[derive(Clone, Copy, Debug)]
pub struct HostContext<'a> {
    /// Where the data will be.
    pub data_dir: &'a Path,
    /// The space that it will take there, if that is known.
    pub needed_bytes: Option<u64>,
    /// A server runs on the same host as the clients.
    pub local_server: bool,
    /// Connections at a time, at most; 0 if that is not known.
    pub connections: u32,
    /// Those of them that work at a time, at most; likewise.
    pub working: u32,
    /// The flush latency in the data directory, if it was measured.
    pub fsync: Option<FsyncSample>,
}

/// A remark on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWarning {
    /// Its stable name: `host::swap-in-use`.
    pub code: &'static str,
    /// What it is, and the way out.
    pub text: String,
}

/// All that applies, in order of how much it spoils.
pub fn warnings(facts: &HostFacts, context: HostContext<'_>) -> Vec<HostWarning> {
    let mut all = Vec::new();
    let mut warn = |code, text| all.push(HostWarning { code, text });
    let dir = context.data_dir.display();
    let fs_type = facts.get("data_fs_type").unwrap_or("");
    let in_memory = matches!(fs_type, "tmpfs" | "ramfs");

    if let (Some(needed), Some(free)) = (context.needed_bytes, facts.number("data_fs_free_bytes"))
        && free < needed.saturating_add(needed / 100 * SPARE_PERCENT)
    {
        warn(
            "host::little-disk",
            format!(
                "the file system of `{dir}` has {} free, and the run needs about {}; make room, choose another \
                 directory or fewer rows",
                bytes(free),
                bytes(needed)
            ),
        );
    }
    if let Some(read_only) = facts.get("data_fs_options")
        && read_only.split(',').any(|option| option == "ro")
    {
        warn(
            "host::read-only",
            format!(
                "the file system of `{dir}` is mounted read-only; choose another directory or mount it `rw`"
            ),
        );
    }
    if in_memory {
        warn(
            "host::data-in-memory",
            format!(
                "`{dir}` is on {fs_type}: a flush costs nothing there and the data takes memory from the server; choose \
                 a directory on a disk"
            ),
        );
    }
    if is_network(fs_type) {
        warn(
            "host::data-on-network",
            format!(
                "`{dir}` is on {fs_type}: its latency is that of the network or of another system, and its disk is not \
                 measured; choose a directory on a local disk"
            ),
        );
    }
    if matches!(fs_type, "overlay" | "aufs") {
        warn(
            "host::data-on-overlay",
            format!(
                "`{dir}` is on {fs_type}: the first write to a file copies it, and the disk below is not known; in a \
                 container put the data on a volume"
            ),
        );
    }
    if let Some(fsync) = context.fsync
        && fsync.p50_ns < FSYNC_TOO_FAST_NS
        && !in_memory
    {
        warn(
            "host::fsync-too-fast",
            format!(
                "fdatasync in `{dir}` takes {} at the median: nothing is written to a medium that fast, so a cache that \
                 a power failure may empty answers, or the flush is ignored; durable commits are cheaper here than on \
                 a disk that keeps its word",
                micros(fsync.p50_ns)
            ),
        );
    }
    if let Some(options) = facts.get("data_fs_options")
        && options
            .split(',')
            .any(|option| option == "nobarrier" || option == "barrier=0")
    {
        warn(
            "host::no-barrier",
            format!(
                "the file system of `{dir}` is mounted without write barriers: a flush does not reach the disk; \
                 mount it without `nobarrier`"
            ),
        );
    }
    let swap_used = facts.number("swap_used_bytes").unwrap_or(0);
    if swap_used > 0 {
        warn(
            "host::swap-in-use",
            format!(
                "{} of swap are in use: memory was short before this run, and pages may be read back in the middle of \
                 a step; stop what is not needed, then `swapoff -a`, and `swapon -a` if wanted",
                bytes(swap_used)
            ),
        );
    }
    if let Some(governor) = facts
        .get("cpu_governor")
        .filter(|governor| *governor != "performance")
    {
        // These drivers choose the frequency themselves; `powersave` is the name of their normal mode.
        let driver = facts.get("cpu_frequency_driver").unwrap_or("");
        let itself = if matches!(driver, "intel_pstate" | "amd-pstate-epp") {
            " (with the driver's own choice of frequency)"
        } else {
            ""
        };
        warn(
            "host::cpu-governor",
            format!(
                "the CPU governor is `{governor}`{itself}, not `performance`: the frequency follows the load, so CPU \
                 time per operation changes with it; `cpupower frequency-set -g performance`"
            ),
        );
    }
    if let Some(percent) = facts
        .get("cpu_steal_since_boot_percent")
        .and_then(|text| text.parse::<f64>().ok())
        && percent > STEAL_PERCENT_MAX
    {
        warn(
            "host::cpu-steal",
            format!(
                "the hypervisor gave {percent:.1}% of the processors' time since boot to others: results vary with the \
                 neighbours; use dedicated processors, more repeats and interleaved order"
            ),
        );
    }
    if let Some(clock) = facts
        .get("clocksource")
        .filter(|clock| !is_fast_clock(clock))
    {
        warn(
            "host::slow-clock",
            format!(
                "the clock source is `{clock}`: each reading of the clock is a system call and may take a microsecond, \
                 twice per operation; choose `tsc` (or `kvm-clock`) in \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource if it is stable there"
            ),
        );
    }
    if let Some(limit) = facts.number("cgroup_cpu_limit_millicpus")
        && limit < u64::from(facts.cpu_count) * 1000
    {
        warn(
            "host::cpu-limit",
            format!(
                "a control group limits this process to {} of {} processors: when the limit is reached all threads are \
                 stopped for up to 0.1 s, which shows as stalls; pin to whole processors instead (`cpuset`)",
                limit as f64 / 1000.0,
                facts.cpu_count
            ),
        );
    }
    if let Some(limit) = facts
        .number("cgroup_memory_limit_bytes")
        .filter(|limit| *limit < facts.memory_total_bytes)
    {
        warn(
            "host::memory-limit",
            format!(
                "a control group limits memory to {} of {}, page cache included: a server that sizes itself by the \
                 machine's memory will be killed or starved; set its sizes in the config",
                bytes(limit),
                bytes(facts.memory_total_bytes)
            ),
        );
    }
    if context.local_server {
        let allowed = facts
            .number("cpu_allowed_count")
            .unwrap_or(u64::from(facts.cpu_count));
        let crowded = if u64::from(context.working) >= allowed && context.working > 0 {
            format!(
                ", and the {} connections that work at a time keep all of them busy",
                context.working
            )
        } else {
            String::new()
        };
        warn(
            "host::shared-cpus",
            format!(
                "clients and server share all {allowed} processors{crowded}: what clients use is reported apart, but \
                 the server can't have it; for the server's full throughput run it on another host and name its `url` \
                 in the plan"
            ),
        );
        // A connection takes a descriptor at the client; the server, its child, inherits the limit.
        let files = facts.number("open_files_soft_count");
        if let Some(files) = files.filter(|files| *files < u64::from(context.connections) * 2 + 256)
        {
            warn(
                "host::few-open-files",
                format!(
                    "a process may have {files} files open, which {} connections and the server's files may exceed; \
                     raise it with `ulimit -n`",
                    context.connections
                ),
            );
        }
    }
    if facts.get("thp_enabled") == Some("always") {
        warn(
            "host::transparent-huge-pages",
            "transparent huge pages are `always`: memory is merged in the background, which costs CPU time and stalls at \
             times of its own, and most servers advise against it; write `madvise` to \
             /sys/kernel/mm/transparent_hugepage/enabled"
                .to_string(),
        );
    }
    if facts.number("vm_zone_reclaim_mode").unwrap_or(0) > 0 {
        warn(
            "host::zone-reclaim",
            "`vm.zone_reclaim_mode` is on: page cache of one NUMA node is dropped while another has free memory; set it \
             to 0"
                .to_string(),
        );
    }
    all
}

fn is_network(fs_type: &str) -> bool {
    matches!(
        fs_type,
        "nfs"
            | "nfs4"
            | "cifs"
            | "smb3"
            | "9p"
            | "virtiofs"
            | "ceph"
            | "lustre"
            | "afs"
            | "gfs2"
            | "ocfs2"
    ) || fs_type.starts_with("fuse")
}

/// Clocks that a process reads without entering the kernel.
fn is_fast_clock(name: &str) -> bool {
    matches!(
        name,
        "tsc"
            | "kvm-clock"
            | "hyperv_clocksource_tsc_page"
            | "arch_sys_counter"
            | "timebase"
            | "tod"
    ) || name == "riscv_clocksource"
}

/// A size for a reader, in powers of 1024.
fn bytes(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", count as f64 / (1u64 << shift) as f64),
        None => format!("{count} B"),
    }
}

fn micros(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1000.0)
}

#[cfg(test)]
mod tests;
