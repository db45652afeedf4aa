//! Facts about the machine, which help to explain a result. The host's name and the kernel's
//! command line are left out.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::Resource;

use crate::device::Device;
use crate::disk::{devices_of, mounts, nearest_existing};
use crate::parse::{Mount, count_processors, mount_of, parse_cpu_ticks, parse_cpuinfo, value};
use crate::{Group, Proc};

/// The facts about a machine. Facts that are unknown are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Names and values in the order in which they are shown. A name ends with its unit.
    pub facts: Vec<(String, String)>,
    /// The number of processors that are online.
    pub cpu_count: u32,
    /// The size of memory.
    pub memory_total_bytes: u64,
}

impl HostFacts {
    /// Returns the value of a fact.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a fact that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn add(&mut self, name: impl Into<String>, value: impl ToString) {
        self.facts.push((name.into(), value.to_string()));
    }

    fn add_known(&mut self, name: impl Into<String>, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Adds a fact for each file of `directory` that exists: its name, after `prefix`, and its
    /// text.
    fn add_files(&mut self, proc: &Proc, prefix: &str, directory: &str, files: &[(&str, &str)]) {
        for (fact, file) in files {
            let text = proc.text(format!("{directory}/{file}"));
            self.add_known(format!("{prefix}{fact}"), text);
        }
    }
}

/// Describes this machine, and the file system and disks of `data_dir` (or of its nearest ancestor
/// that exists).
pub fn host(data_dir: &Path) -> HostFacts {
    host_at(&Proc::live(), data_dir)
}

/// Describes the machine whose files are below another root. The results of system calls (limits,
/// free space, user) are this machine's.
pub fn host_at(proc: &Proc, data_dir: &Path) -> HostFacts {
    let mut facts = HostFacts::default();
    let mounts = mounts(proc);
    add_system(&mut facts, proc);
    add_cpu(&mut facts, proc);
    add_memory(&mut facts, proc);
    add_limits(&mut facts, proc);
    add_file_system(&mut facts, data_dir, &mounts);
    add_disks(&mut facts, proc, data_dir, &mounts);
    facts
}

fn add_system(facts: &mut HostFacts, proc: &Proc) {
    let release = proc.text("etc/os-release").or_else(|| proc.text("usr/lib/os-release"));
    let name = release
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")));
    facts.add_known("os_name", name.map(|name| name.trim_matches(['"', '\''])));

    let kernel = [("release", "osrelease"), ("version", "version")];
    facts.add_files(proc, "kernel_", "proc/sys/kernel", &kernel);
    facts.add("architecture", std::env::consts::ARCH);

    let model: Vec<String> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|file| proc.text(format!("sys/class/dmi/id/{file}")))
        .collect();
    if !model.is_empty() {
        facts.add("machine_model", model.join(" "));
    }

    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    facts.add_known("clocksource", proc.text(clock));
    facts.add("user_id", rustix::process::geteuid().as_raw());
}

fn add_cpu(facts: &mut HostFacts, proc: &Proc) {
    let info = parse_cpuinfo(&proc.text("proc/cpuinfo").unwrap_or_default());
    let stat = proc.text("proc/stat");
    facts.cpu_count = match &stat {
        Some(stat) => count_processors(stat),
        None => info.processor_count,
    };

    facts.add_known("cpu_model", info.model);
    facts.add("cpu_count", facts.cpu_count);
    facts.add_known("cpu_online_list", proc.text("sys/devices/system/cpu/online"));
    facts.add_known("cpu_socket_count", info.socket_count);
    facts.add_known("cpu_core_count", info.core_count);
    if let Ok(allowed) = rustix::thread::sched_getaffinity(None) {
        facts.add("cpu_allowed_count", allowed.count());
    }
    let smt = proc
        .text("sys/devices/system/cpu/smt/active")
        .map(|text| if text == "1" { "active" } else { "not active" });
    facts.add_known("cpu_smt", smt);
    facts.add("hypervisor", if info.has_hypervisor { "present" } else { "none seen" });

    add_cpu_frequency(facts, proc);

    let nodes = proc.names("sys/devices/system/node");
    let node_count = nodes
        .iter()
        .filter_map(|name| name.strip_prefix("node"))
        .filter(|number| number.parse::<u32>().is_ok())
        .count();
    if node_count > 0 {
        facts.add("numa_node_count", node_count);
    }

    if let Some(ticks) = stat.and_then(|text| parse_cpu_ticks(&text).ok()) {
        let [.., steal] = ticks;
        let total = ticks.into_iter().fold(0, u64::saturating_add);
        let percent = steal as f64 * 100.0 / total.max(1) as f64;
        facts.add("cpu_steal_since_boot_percent", format!("{percent:.2}"));
    }
}

fn add_cpu_frequency(facts: &mut HostFacts, proc: &Proc) {
    let policies: Vec<String> = proc
        .names("sys/devices/system/cpu/cpufreq")
        .into_iter()
        .filter(|name| name.starts_with("policy"))
        .map(|name| format!("sys/devices/system/cpu/cpufreq/{name}"))
        .collect();
    for (fact, file) in [
        ("cpu_governor", "scaling_governor"),
        ("cpu_frequency_driver", "scaling_driver"),
        ("cpu_energy_preference", "energy_performance_preference"),
        ("cpu_frequency_max_khz", "cpuinfo_max_freq"),
        ("cpu_frequency_limit_khz", "scaling_max_freq"),
    ] {
        // Usually the same on all processors; otherwise lists all values.
        let values: BTreeSet<String> =
            policies.iter().filter_map(|policy| proc.text(format!("{policy}/{file}"))).collect();
        if !values.is_empty() {
            facts.add(fact, Vec::from_iter(values).join(", "));
        }
    }

    let boost = match proc.text("sys/devices/system/cpu/intel_pstate/no_turbo") {
        Some(off) => Some(off == "0"),
        None => proc.text("sys/devices/system/cpu/cpufreq/boost").map(|on| on == "1"),
    };
    facts.add_known("cpu_boost", boost.map(|is_on| if is_on { "on" } else { "off" }));
}

fn add_memory(facts: &mut HostFacts, proc: &Proc) {
    let memory = proc.text("proc/meminfo").unwrap_or_default();
    let total = memory_value(&memory, "MemTotal");
    facts.memory_total_bytes = total.unwrap_or(0);
    let swap_total = memory_value(&memory, "SwapTotal");
    let swap_free = memory_value(&memory, "SwapFree");
    let swap_used = swap_total.zip(swap_free).map(|(total, free)| total.saturating_sub(free));
    for (fact, value) in [
        ("memory_total_bytes", total),
        ("memory_available_bytes", memory_value(&memory, "MemAvailable")),
        ("swap_total_bytes", swap_total),
        ("swap_used_bytes", swap_used),
        ("huge_page_size_bytes", memory_value(&memory, "Hugepagesize")),
        ("huge_page_count", memory_value(&memory, "HugePages_Total")),
        ("huge_page_free_count", memory_value(&memory, "HugePages_Free")),
    ] {
        facts.add_known(fact, value);
    }

    for (fact, file) in [
        ("thp_enabled", "enabled"),
        ("thp_defrag", "defrag"),
        ("thp_shmem_enabled", "shmem_enabled"),
    ] {
        let choice = proc.text(format!("sys/kernel/mm/transparent_hugepage/{file}"));
        facts.add_known(fact, choice.as_deref().map(selected));
    }

    let vm = [
        ("swappiness", "swappiness"),
        ("dirty_ratio_percent", "dirty_ratio"),
        ("dirty_background_ratio_percent", "dirty_background_ratio"),
        ("dirty_bytes", "dirty_bytes"),
        ("dirty_background_bytes", "dirty_background_bytes"),
        ("dirty_expire_centisecs", "dirty_expire_centisecs"),
        ("dirty_writeback_centisecs", "dirty_writeback_centisecs"),
        ("overcommit_memory", "overcommit_memory"),
        ("overcommit_ratio_percent", "overcommit_ratio"),
        ("zone_reclaim_mode", "zone_reclaim_mode"),
    ];
    facts.add_files(proc, "vm_", "proc/sys/vm", &vm);
}

/// Returns a value of `/proc/meminfo`.
fn memory_value(meminfo: &str, key: &str) -> Option<u64> {
    value(meminfo, key).ok().flatten()
}

/// Returns the word in brackets of `always [madvise] never`, or the whole text if it has no
/// brackets.
fn selected(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, text)| text.split_once(']'))
        .map_or(text, |(choice, _)| choice)
}

fn add_limits(facts: &mut HostFacts, proc: &Proc) {
    let files = rustix::process::getrlimit(Resource::Nofile);
    facts.add("open_files_soft_count", limit_text(files.current));
    facts.add("open_files_hard_count", limit_text(files.maximum));

    if let Ok(group) = Group::own(proc, "cpu") {
        facts.add_known("cgroup_cpu_limit_millicpus", group.cpu_limit(proc));
    }
    if let Ok(group) = Group::own(proc, "memory") {
        facts.add_known("cgroup_memory_limit_bytes", group.memory_limit(proc));
    }
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_string(), |limit| limit.to_string())
}

fn add_file_system(facts: &mut HostFacts, data_dir: &Path, mounts: &[Mount]) {
    let Some(path) = nearest_existing(data_dir) else {
        return;
    };

    if let Some(mount) = mount_of(mounts, &path) {
        facts.add("data_fs_type", &mount.fs_type);
        facts.add("data_fs_device", &mount.source);
        facts.add("data_fs_mount_point", mount.point.display());
        let both = format!("{},{}", mount.options, mount.fs_options);
        let options: BTreeSet<&str> = both.split(',').filter(|option| !option.is_empty()).collect();
        facts.add("data_fs_options", Vec::from_iter(options).join(","));
    }

    if let Ok(space) = rustix::fs::statvfs(&path) {
        facts.add("data_fs_total_bytes", space.f_blocks.saturating_mul(space.f_frsize));
        // The space for unprivileged users: servers do not run as root.
        facts.add("data_fs_free_bytes", space.f_bavail.saturating_mul(space.f_frsize));
    }
}

fn add_disks(facts: &mut HostFacts, proc: &Proc, data_dir: &Path, mounts: &[Mount]) {
    let devices = match devices_of(proc, data_dir, mounts) {
        Ok(devices) => devices,
        Err(reason) => {
            facts.add("data_disk", format!("not known: {reason}"));
            return;
        }
    };
    let names: Vec<String> = devices.iter().map(|device| device.name(proc)).collect();
    facts.add("data_disk", names.join(", "));

    // A partition uses its disk's queue; an array has a queue of its own above its members'.
    let mut described = BTreeSet::new();
    for device in &devices {
        described.insert(device.whole(proc));
        described.extend(device.disks(proc));
    }
    for device in described {
        add_disk(facts, proc, device);
    }
}

fn add_disk(facts: &mut HostFacts, proc: &Proc, device: Device) {
    let directory = device.directory();
    let prefix = format!("disk.{}.", device.name(proc));
    let files = [
        ("model", "device/model"),
        ("firmware", "device/firmware_rev"),
        ("raid_level", "md/level"),
        ("raid_chunk_bytes", "md/chunk_size"),
        ("dm_name", "dm/name"),
        ("max_hw_sectors_kb", "queue/max_hw_sectors_kb"),
        ("max_sectors_kb", "queue/max_sectors_kb"),
        ("read_ahead_kb", "queue/read_ahead_kb"),
        ("nr_requests_count", "queue/nr_requests"),
        ("write_cache", "queue/write_cache"),
        ("logical_block_bytes", "queue/logical_block_size"),
        ("physical_block_bytes", "queue/physical_block_size"),
    ];
    facts.add_files(proc, &prefix, &directory, &files);

    let rotational = proc
        .text(format!("{directory}/queue/rotational"))
        .map(|text| if text == "1" { "yes" } else { "no" });
    facts.add_known(format!("{prefix}rotational"), rotational);
    let scheduler = proc.text(format!("{directory}/queue/scheduler"));
    facts.add_known(format!("{prefix}scheduler"), scheduler.as_deref().map(selected));

    // In sectors of 512 bytes, independent of the device's block size.
    let sectors = proc.text(format!("{directory}/size")).and_then(|text| text.parse::<u64>().ok());
    facts.add_known(format!("{prefix}size_bytes"), sectors.map(|sectors| sectors * 512));
}

#[cfg(test)]
mod tests;
