//! What of the machine spoils a measurement, and the way out.

use std::path::Path;

use words::{FsyncLatency, Warning};

use crate::HostFacts;

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
    pub fsync: Option<FsyncLatency>,
}

/// What the checks look at.
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

    fn is_mounted_with(&self, wanted: &[&str]) -> bool {
        let options = self.facts.get("data_fs_options").unwrap_or("");
        options.split(',').any(|option| wanted.contains(&option))
    }
}

/// Returns all that applies, in order of how much it spoils.
pub fn warnings(facts: &HostFacts, context: HostContext<'_>) -> Vec<Warning> {
    let subject = Subject {
        facts,
        context,
        dir: context.data_dir.display(),
        fs_type: facts.get("data_fs_type").unwrap_or(""),
    };
    let found = CHECKS
        .iter()
        .filter_map(|(code, check)| Some(Warning::new(*code, check(&subject)?)));
    found.collect()
}

/// A check: its code, and what it says where it applies.
type Check = (&'static str, fn(&Subject<'_>) -> Option<String>);

/// All checks, in order of how much what they look for spoils.
const CHECKS: [Check; 17] = [
    ("host::little-disk", |at| {
        let needed = at.context.needed_bytes?;
        let free = at.facts.number("data_fs_free_bytes")?;
        (free < needed.saturating_add(needed / 100 * SPARE_PERCENT)).then(|| {
            format!(
                "the file system of `{}` has {} free, and the run needs about {}; make room, choose another directory or \
                 fewer rows",
                at.dir,
                bytes(free),
                bytes(needed)
            )
        })
    }),
    ("host::read-only", |at| {
        at.is_mounted_with(&["ro"]).then(|| {
            format!(
                "the file system of `{}` is mounted read-only; choose another directory or mount it `rw`",
                at.dir
            )
        })
    }),
    ("host::data-in-memory", |at| {
        at.is_in_memory().then(|| {
            format!(
                "`{}` is on {}: a flush costs nothing there and the data takes memory from the server; choose a \
                 directory on a disk",
                at.dir, at.fs_type
            )
        })
    }),
    ("host::data-on-network", |at| {
        is_network(at.fs_type).then(|| {
            format!(
                "`{}` is on {}: its latency is that of the network or of another system, and its disk is not measured; \
                 choose a directory on a local disk",
                at.dir, at.fs_type
            )
        })
    }),
    ("host::data-on-overlay", |at| {
        matches!(at.fs_type, "overlay" | "aufs").then(|| {
            format!(
                "`{}` is on {}: the first write to a file copies it, and the disk below is not known; in a container put \
                 the data on a volume",
                at.dir, at.fs_type
            )
        })
    }),
    ("host::fsync-too-fast", |at| {
        let fsync = at
            .context
            .fsync
            .filter(|it| it.p50_ns < FSYNC_TOO_FAST_NS && !at.is_in_memory())?;
        Some(format!(
            "fdatasync in `{}` takes {} at the median: nothing is written to a medium that fast, so a cache that a power \
             failure may empty answers, or the flush is ignored; durable commits are cheaper here than on a disk that \
             keeps its word",
            at.dir,
            micros(fsync.p50_ns)
        ))
    }),
    ("host::no-barrier", |at| {
        at.is_mounted_with(&["nobarrier", "barrier=0"]).then(|| {
            format!(
                "the file system of `{}` is mounted without write barriers: a flush does not reach the disk; mount it \
                 without `nobarrier`",
                at.dir
            )
        })
    }),
    ("host::swap-in-use", |at| {
        let used = at
            .facts
            .number("swap_used_bytes")
            .filter(|used| *used > 0)?;
        Some(format!(
            "{} of swap are in use: memory was short before this run, and pages may be read back in the middle of a step; \
             stop what is not needed, then `swapoff -a`, and `swapon -a` if wanted",
            bytes(used)
        ))
    }),
    ("host::cpu-governor", |at| {
        let governor = at
            .facts
            .get("cpu_governor")
            .filter(|governor| *governor != "performance")?;
        // These drivers choose the frequency themselves; `powersave` is the name of their normal mode.
        let itself = match at.facts.get("cpu_frequency_driver") {
            Some("intel_pstate" | "amd-pstate-epp") => {
                " (with the driver's own choice of frequency)"
            }
            _ => "",
        };
        Some(format!(
            "the CPU governor is `{governor}`{itself}, not `performance`: the frequency follows the load, so CPU time per \
             operation changes with it; `cpupower frequency-set -g performance`"
        ))
    }),
    ("host::cpu-steal", |at| {
        let percent: f64 = at.facts.get("cpu_steal_since_boot_percent")?.parse().ok()?;
        (percent > STEAL_PERCENT_MAX).then(|| {
            format!(
                "the hypervisor gave {percent:.1}% of the processors' time since boot to others: results vary with the \
                 neighbours; use dedicated processors, more repeats and interleaved order"
            )
        })
    }),
    ("host::slow-clock", |at| {
        let clock = at
            .facts
            .get("clocksource")
            .filter(|clock| !FAST_CLOCKS.contains(clock))?;
        Some(format!(
            "the clock source is `{clock}`: each reading of the clock is a system call and may take a microsecond, twice \
             per operation; choose `tsc` (or `kvm-clock`) in \
             /sys/devices/system/clocksource/clocksource0/current_clocksource if it is stable there"
        ))
    }),
    ("host::cpu-limit", |at| {
        let count = at.facts.cpu_count;
        let limit = at.facts.number("cgroup_cpu_limit_millicpus")?;
        (limit < u64::from(count) * 1000).then(|| {
            format!(
                "a control group limits this process to {} of {count} processors: when the limit is reached all threads \
                 are stopped for up to 0.1 s, which shows as stalls; pin to whole processors instead (`cpuset`)",
                limit as f64 / 1000.0
            )
        })
    }),
    ("host::memory-limit", |at| {
        let total = at.facts.memory_total_bytes;
        let limit = at
            .facts
            .number("cgroup_memory_limit_bytes")
            .filter(|limit| *limit < total)?;
        Some(format!(
            "a control group limits memory to {} of {}, page cache included: a server that sizes itself by the machine's \
             memory will be killed or starved; set its sizes in the config",
            bytes(limit),
            bytes(total)
        ))
    }),
    ("host::shared-cpus", |at| {
        let allowed = at.facts.number("cpu_allowed_count");
        let allowed = allowed.unwrap_or(u64::from(at.facts.cpu_count));
        let working = at.context.working;
        let crowded = match working > 0 && u64::from(working) >= allowed {
            true => {
                format!(", and the {working} connections that work at a time keep all of them busy")
            }
            false => String::new(),
        };
        at.context.local_server.then(|| {
            format!(
                "clients and server share all {allowed} processors{crowded}: what clients use is reported apart, but the \
                 server can't have it; for the server's full throughput run it on another host and name its `url` in the \
                 plan"
            )
        })
    }),
    ("host::few-open-files", |at| {
        let connections = at.context.connections;
        let files = at.facts.number("open_files_soft_count")?;
        // A connection takes a descriptor at the client; the server, its child, inherits the limit.
        let is_few = at.context.local_server && files < u64::from(connections) * 2 + 256;
        is_few.then(|| {
            format!(
                "a process may have {files} files open, which {connections} connections and the server's files may \
                 exceed; raise it with `ulimit -n`"
            )
        })
    }),
    ("host::transparent-huge-pages", |at| {
        (at.facts.get("thp_enabled") == Some("always")).then(|| {
            "transparent huge pages are `always`: memory is merged in the background, which costs CPU time and stalls at \
             times of its own, and most servers advise against it; write `madvise` to \
             /sys/kernel/mm/transparent_hugepage/enabled"
                .to_string()
        })
    }),
    ("host::zone-reclaim", |at| {
        at.facts
            .number("vm_zone_reclaim_mode")
            .filter(|mode| *mode > 0)?;
        Some(
            "`vm.zone_reclaim_mode` is on: page cache of one NUMA node is dropped while another has free memory; set it \
             to 0"
                .to_string(),
        )
    }),
];

fn is_network(fs_type: &str) -> bool {
    const NETWORK: [&str; 11] = [
        "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "afs", "gfs2", "ocfs2",
    ];
    NETWORK.contains(&fs_type) || fs_type.starts_with("fuse")
}

/// Clocks that a process reads without entering the kernel.
const FAST_CLOCKS: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
];

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
