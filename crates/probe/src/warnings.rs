//! Warnings about a machine that disturbs measurements: what is wrong, why it matters, and what to
//! do.

use std::path::Path;

use words::{FsyncLatency, Warning, size_text};

use crate::HostFacts;

/// A faster flush cannot have reached a medium that keeps data without power.
const FSYNC_TOO_FAST_NS: u64 = 20_000;

/// The highest share of steal time that does not disturb a comparison.
const STEAL_PERCENT_MAX: f64 = 1.0;

/// The free space that a file system should have beyond the estimate, because logs and temporary
/// files vary.
const SPARE_PERCENT: u64 = 10;

/// The facts that the warnings depend on in addition to the machine.
#[derive(Clone, Copy, Debug)]
pub struct HostContext<'a> {
    /// The directory of the data.
    pub data_dir: &'a Path,
    /// The disk space that the data will need, if it is known.
    pub needed_bytes: Option<u64>,
    /// A server runs on the same host as the clients.
    pub has_local_server: bool,
    /// The highest number of simultaneous connections; 0 if unknown.
    pub connections: u32,
    /// The highest number of connections that work at the same time; 0 if unknown.
    pub active_connections: u32,
    /// The measured flush latency in the data directory.
    pub fsync: Option<FsyncLatency>,
}

/// The input of the checks.
struct Subject<'a> {
    facts: &'a HostFacts,
    context: HostContext<'a>,
    dir: std::path::Display<'a>,
    fs_type: &'a str,
}

impl Subject<'_> {
    fn is_in_memory(&self) -> bool {
        matches!(self.fs_type, "tmpfs" | "ramfs")
    }

    fn is_mounted_with(&self, any_of: &[&str]) -> bool {
        let options = self.facts.get("data_fs_options").unwrap_or("");
        options.split(',').any(|option| any_of.contains(&option))
    }
}

/// Returns all warnings that apply, the most severe first.
pub fn warnings(facts: &HostFacts, context: HostContext<'_>) -> Vec<Warning> {
    let subject = Subject {
        facts,
        context,
        dir: context.data_dir.display(),
        fs_type: facts.get("data_fs_type").unwrap_or(""),
    };
    let mut warnings = Vec::new();
    for (code, check) in CHECKS {
        if let Some(text) = check(&subject) {
            warnings.push(Warning::new(code, text));
        }
    }
    warnings
}

/// A check: the code of its warning, and a function that returns the warning's text if it applies.
type HostCheck = (&'static str, fn(&Subject<'_>) -> Option<String>);

/// All checks, the most severe first.
const CHECKS: [HostCheck; 17] = [
    ("host::little-disk", little_disk),
    ("host::read-only", read_only),
    ("host::data-in-memory", data_in_memory),
    ("host::data-on-network", data_on_network),
    ("host::data-on-overlay", data_on_overlay),
    ("host::fsync-too-fast", fsync_too_fast),
    ("host::no-barrier", no_barrier),
    ("host::swap-in-use", swap_in_use),
    ("host::cpu-governor", cpu_governor),
    ("host::cpu-steal", cpu_steal),
    ("host::slow-clock", slow_clock),
    ("host::cpu-limit", cpu_limit),
    ("host::memory-limit", memory_limit),
    ("host::shared-cpus", shared_cpus),
    ("host::few-open-files", few_open_files),
    ("host::transparent-huge-pages", transparent_huge_pages),
    ("host::zone-reclaim", zone_reclaim),
];

fn little_disk(subject: &Subject<'_>) -> Option<String> {
    let needed = subject.context.needed_bytes?;
    let free = subject.facts.number("data_fs_free_bytes")?;
    if free >= needed.saturating_add(needed / 100 * SPARE_PERCENT) {
        return None;
    }
    Some(format!(
        "the file system of `{}` has {} free, and the run needs about {}: it may fail with a full \
         disk; free space, choose another directory, or load fewer rows",
        subject.dir,
        size_text(free),
        size_text(needed)
    ))
}

fn read_only(subject: &Subject<'_>) -> Option<String> {
    if !subject.is_mounted_with(&["ro"]) {
        return None;
    }
    Some(format!(
        "the file system of `{}` is mounted read-only, so no data can be written; choose another \
         directory, or remount it with `rw`",
        subject.dir
    ))
}

fn data_in_memory(subject: &Subject<'_>) -> Option<String> {
    if !subject.is_in_memory() {
        return None;
    }
    Some(format!(
        "`{}` is on {}, in memory: flushes cost nothing, and the data takes memory from the \
         server; choose a directory on a disk",
        subject.dir, subject.fs_type
    ))
}

fn data_on_network(subject: &Subject<'_>) -> Option<String> {
    if !is_network(subject.fs_type) {
        return None;
    }
    Some(format!(
        "`{}` is on {}: its latency includes the network or another system, and assay cannot \
         measure its disk; choose a directory on a local disk",
        subject.dir, subject.fs_type
    ))
}

fn data_on_overlay(subject: &Subject<'_>) -> Option<String> {
    if !matches!(subject.fs_type, "overlay" | "aufs") {
        return None;
    }
    Some(format!(
        "`{}` is on {}: the first write to a file copies the file, and the disk below is unknown; \
         in a container, put the data on a volume",
        subject.dir, subject.fs_type
    ))
}

fn fsync_too_fast(subject: &Subject<'_>) -> Option<String> {
    let fsync = subject.context.fsync?;
    if fsync.p50_ns >= FSYNC_TOO_FAST_NS || subject.is_in_memory() {
        return None;
    }
    Some(format!(
        "the median fdatasync in `{}` takes {}: no durable medium is that fast, so a volatile \
         cache answers or the flush is ignored, and durable commits look too cheap; use a disk \
         that honors flushes, or compare only results from this machine",
        subject.dir,
        micros(fsync.p50_ns)
    ))
}

fn no_barrier(subject: &Subject<'_>) -> Option<String> {
    if !subject.is_mounted_with(&["nobarrier", "barrier=0"]) {
        return None;
    }
    Some(format!(
        "the file system of `{}` is mounted without write barriers: a flush does not reach the \
         disk, so durable commits look too cheap; remount it without `nobarrier`",
        subject.dir
    ))
}

fn swap_in_use(subject: &Subject<'_>) -> Option<String> {
    let used = subject.facts.number("swap_used_bytes").filter(|used| *used > 0)?;
    Some(format!(
        "{} of swap is in use: memory was short before this run, and the kernel may read pages \
         back during a step; stop other programs, then run `swapoff -a && swapon -a`",
        bytes(used)
    ))
}

fn cpu_governor(subject: &Subject<'_>) -> Option<String> {
    let governor = subject.facts.get("cpu_governor")?;
    if governor == "performance" {
        return None;
    }
    // These drivers choose the frequency themselves; `powersave` is their default mode.
    let by_driver = match subject.facts.get("cpu_frequency_driver") {
        Some("intel_pstate" | "amd-pstate-epp") => " (the driver chooses the frequency)",
        _ => "",
    };
    Some(format!(
        "the CPU governor is `{governor}`{by_driver}, not `performance`: the frequency follows the \
         load, and with it the CPU time per operation; run `cpupower frequency-set -g performance`"
    ))
}

fn cpu_steal(subject: &Subject<'_>) -> Option<String> {
    let percent: f64 = subject.facts.get("cpu_steal_since_boot_percent")?.parse().ok()?;
    (percent > STEAL_PERCENT_MAX).then(|| {
        format!(
            "since boot, the hypervisor gave {percent:.1}% of the processors' time to other \
             virtual machines: results vary with their load; use dedicated processors, or more \
             repeats in interleaved order"
        )
    })
}

fn slow_clock(subject: &Subject<'_>) -> Option<String> {
    let clock = subject.facts.get("clocksource")?;
    if FAST_CLOCKS.contains(&clock) {
        return None;
    }
    Some(format!(
        "the clock source is `{clock}`: reading the clock is a system call of up to a microsecond, \
         twice per operation; if `tsc` or `kvm-clock` is stable on this machine, write its name to \
         /sys/devices/system/clocksource/clocksource0/current_clocksource"
    ))
}

fn cpu_limit(subject: &Subject<'_>) -> Option<String> {
    let count = subject.facts.cpu_count;
    let limit = subject.facts.number("cgroup_cpu_limit_millicpus")?;
    if limit >= u64::from(count) * 1000 {
        return None;
    }
    Some(format!(
        "a control group limits this process to {} of {count} processors: at the limit, the kernel \
         stops all threads for up to 0.1 s, which looks like a stall of the engine; limit it to \
         whole processors instead (`cpuset`)",
        limit as f64 / 1000.0
    ))
}

fn memory_limit(subject: &Subject<'_>) -> Option<String> {
    let total = subject.facts.memory_total_bytes;
    let limit = subject.facts.number("cgroup_memory_limit_bytes")?;
    if limit >= total {
        return None;
    }
    Some(format!(
        "a control group limits memory to {} of {}, including page cache: a server that sizes its \
         caches by the machine's memory may be killed or run short of memory; set the sizes of its \
         caches in the config",
        bytes(limit),
        bytes(total)
    ))
}

fn shared_cpus(subject: &Subject<'_>) -> Option<String> {
    if !subject.context.has_local_server {
        return None;
    }
    let facts = subject.facts;
    let allowed = facts.number("cpu_allowed_count").unwrap_or(u64::from(facts.cpu_count));
    let active = subject.context.active_connections;
    let crowded = if active > 0 && u64::from(active) >= allowed {
        format!("; {active} connections that work at the same time keep all of them busy")
    } else {
        String::new()
    };
    Some(format!(
        "clients and server share all {allowed} processors, so the clients may take CPU time from \
         the server{crowded}; to measure the server's full throughput, run it on another host, and \
         write its `url` in the plan"
    ))
}

fn few_open_files(subject: &Subject<'_>) -> Option<String> {
    let connections = subject.context.connections;
    let files = subject.facts.number("open_files_soft_count")?;
    // A connection takes a descriptor in the client, and the server inherits the limit.
    let is_low = subject.context.has_local_server && files < u64::from(connections) * 2 + 256;
    is_low.then(|| {
        format!(
            "a process may open {files} files: {connections} connections and the server's files \
             may exceed that, and the run would fail; raise the limit with `ulimit -n`"
        )
    })
}

fn transparent_huge_pages(subject: &Subject<'_>) -> Option<String> {
    if subject.facts.get("thp_enabled") != Some("always") {
        return None;
    }
    let text = "transparent huge pages are set to `always`: the kernel merges memory in the \
                background, which takes CPU time and causes stalls at random times; write \
                `madvise` to /sys/kernel/mm/transparent_hugepage/enabled, as most servers' \
                manuals advise";
    Some(text.to_string())
}

fn zone_reclaim(subject: &Subject<'_>) -> Option<String> {
    subject.facts.number("vm_zone_reclaim_mode").filter(|mode| *mode > 0)?;
    let text = "`vm.zone_reclaim_mode` is on: the kernel drops page cache of one NUMA node while \
                another has free memory, so reads go to the disk; run \
                `sysctl vm.zone_reclaim_mode=0`";
    Some(text.to_string())
}

fn is_network(fs_type: &str) -> bool {
    const NETWORK: [&str; 11] =
        ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "afs", "gfs2", "ocfs2"];
    NETWORK.contains(&fs_type) || fs_type.starts_with("fuse")
}

/// Clock sources that a process reads without a system call.
const FAST_CLOCKS: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
];

/// Formats a size with a binary unit.
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
