//! What the machine is: the facts that explain a result, or that it can't be repeated elsewhere. The host's name is
//! not among them, nor is the kernel's command line.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::Resource;

use crate::disk::{devices_of, existing, mounts};
use crate::group::Group;
use crate::parse::{
    Membership, Mount, mount_of, parse_cgroup, parse_cpu_max, parse_cpuinfo, parse_meminfo,
    parse_memory_limit, parse_stat,
};
use crate::{Malformed, Proc};

/// The machine as found. What could not be found out is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Facts by name, in the order in which they are shown; the unit is last in the name.
    pub facts: Vec<(String, String)>,
    /// Processors that are online.
    pub cpu_count: u32,
    /// Memory.
    pub memory_total_bytes: u64,
}

impl HostFacts {
    /// A fact by its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.facts
            .iter()
            .find(|(fact, _)| fact == name)
            .map(|(_, value)| value.as_str())
    }

    /// A fact that is a whole number.
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
}

/// Describes this machine, with the file system and disks of `data_dir` (or of its nearest ancestor that exists).
pub fn host(data_dir: &Path) -> HostFacts {
    host_at(&Proc::live(), data_dir)
}

/// As [`host`], from the files below another root. What system calls tell (limits, free space, user) is this machine's.
pub fn host_at(proc: &Proc, data_dir: &Path) -> HostFacts {
    let mut facts = HostFacts::default();
    let mounts = mounts(proc);
    add_system(&mut facts, proc);
    add_cpu(&mut facts, proc);
    add_memory(&mut facts, proc);
    add_limits(&mut facts, proc, &mounts);
    add_file_system(&mut facts, data_dir, &mounts);
    add_disks(&mut facts, proc, data_dir, &mounts);
    facts
}

fn add_system(facts: &mut HostFacts, proc: &Proc) {
    let release = proc
        .text("etc/os-release")
        .or_else(|| proc.text("usr/lib/os-release"));
    let pretty = release.as_deref().and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
    });
    facts.add_known("os_name", pretty.map(|name| name.trim_matches(['"', '\''])));
    facts.add_known("kernel_release", proc.text("proc/sys/kernel/osrelease"));
    facts.add_known("kernel_version", proc.text("proc/sys/kernel/version"));
    facts.add("architecture", std::env::consts::ARCH);
    let maker = [
        proc.text("sys/class/dmi/id/sys_vendor"),
        proc.text("sys/class/dmi/id/product_name"),
    ];
    let maker: Vec<String> = maker.into_iter().flatten().collect();
    facts.add_known(
        "machine_model",
        (!maker.is_empty()).then(|| maker.join(" ")),
    );
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    facts.add_known("clocksource", proc.text(clock));
    facts.add("user_id", rustix::process::geteuid().as_raw());
}

fn add_cpu(facts: &mut HostFacts, proc: &Proc) {
    let info = proc
        .text("proc/cpuinfo")
        .map(|text| parse_cpuinfo(&text))
        .unwrap_or_default();
    let system = proc
        .text("proc/stat")
        .and_then(|text| parse_stat(&text).ok());
    facts.cpu_count = system.map_or(info.processor_count, |system| system.cpu_count);
    facts.add_known("cpu_model", info.model);
    facts.add("cpu_count", facts.cpu_count);
    facts.add_known("cpu_socket_count", info.socket_count);
    facts.add_known("cpu_core_count", info.core_count);
    if let Ok(allowed) = rustix::thread::sched_getaffinity(None) {
        facts.add("cpu_allowed_count", allowed.count());
    }
    let smt = proc.text("sys/devices/system/cpu/smt/active");
    facts.add_known(
        "cpu_smt",
        smt.map(|text| if text == "1" { "active" } else { "not active" }),
    );
    facts.add(
        "hypervisor",
        if info.hypervisor {
            "present"
        } else {
            "none seen"
        },
    );

    let policies: Vec<String> = proc
        .names("sys/devices/system/cpu/cpufreq")
        .into_iter()
        .filter(|name| name.starts_with("policy"))
        .map(|name| format!("sys/devices/system/cpu/cpufreq/{name}"))
        .collect();
    // The same on all processors as a rule; if not, all values are named.
    let distinct = |file: &str| -> Option<String> {
        let values: BTreeSet<String> = policies
            .iter()
            .filter_map(|policy| proc.text(format!("{policy}/{file}")))
            .collect();
        (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
    };
    facts.add_known("cpu_governor", distinct("scaling_governor"));
    facts.add_known("cpu_frequency_driver", distinct("scaling_driver"));
    facts.add_known(
        "cpu_energy_preference",
        distinct("energy_performance_preference"),
    );
    facts.add_known("cpu_frequency_max_khz", distinct("cpuinfo_max_freq"));
    facts.add_known("cpu_frequency_limit_khz", distinct("scaling_max_freq"));
    let boost = match proc.text("sys/devices/system/cpu/intel_pstate/no_turbo") {
        Some(off) => Some(off == "0"),
        None => proc
            .text("sys/devices/system/cpu/cpufreq/boost")
            .map(|on| on == "1"),
    };
    facts.add_known("cpu_boost", boost.map(|on| if on { "on" } else { "off" }));
    let nodes = proc.names("sys/devices/system/node");
    let is_node = |name: &&String| {
        name.strip_prefix("node")
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let node_count = nodes.iter().filter(is_node).count();
    facts.add_known("numa_node_count", (node_count > 0).then_some(node_count));
    if let Some(system) = system {
        let [.., steal] = system.cpu_ticks;
        let total = system.cpu_ticks.into_iter().fold(0, u64::saturating_add);
        let percent = steal as f64 * 100.0 / total.max(1) as f64;
        facts.add("cpu_steal_since_boot_percent", format!("{percent:.2}"));
    }
}

fn add_memory(facts: &mut HostFacts, proc: &Proc) {
    if let Some(memory) = proc
        .text("proc/meminfo")
        .and_then(|text| parse_meminfo(&text).ok())
    {
        facts.memory_total_bytes = memory.total_bytes;
        facts.add("memory_total_bytes", memory.total_bytes);
        facts.add_known("memory_available_bytes", memory.available_bytes);
        facts.add("swap_total_bytes", memory.swap_total_bytes);
        facts.add("swap_used_bytes", memory.swap_used_bytes);
        facts.add_known("huge_page_size_bytes", memory.huge_page_bytes);
        facts.add_known("huge_page_count", memory.huge_page_count);
        facts.add_known("huge_page_free_count", memory.huge_page_free_count);
    }
    for (name, file) in [
        ("thp_enabled", "enabled"),
        ("thp_defrag", "defrag"),
        ("thp_shmem_enabled", "shmem_enabled"),
    ] {
        let choice = proc.text(format!("sys/kernel/mm/transparent_hugepage/{file}"));
        facts.add_known(name, choice.as_deref().map(chosen));
    }
    for (name, file) in [
        ("vm_swappiness", "swappiness"),
        ("vm_dirty_ratio_percent", "dirty_ratio"),
        (
            "vm_dirty_background_ratio_percent",
            "dirty_background_ratio",
        ),
        ("vm_dirty_bytes", "dirty_bytes"),
        ("vm_dirty_background_bytes", "dirty_background_bytes"),
        ("vm_dirty_expire_centisecs", "dirty_expire_centisecs"),
        ("vm_dirty_writeback_centisecs", "dirty_writeback_centisecs"),
        ("vm_overcommit_memory", "overcommit_memory"),
        ("vm_overcommit_ratio_percent", "overcommit_ratio"),
        ("vm_zone_reclaim_mode", "zone_reclaim_mode"),
    ] {
        facts.add_known(name, proc.text(format!("proc/sys/vm/{file}")));
    }
}

/// Of `always [madvise] never` the one in brackets; a text without brackets as it is.
fn chosen(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(choice, _)| choice)
}

fn add_limits(facts: &mut HostFacts, proc: &Proc, mounts: &[Mount]) {
    let files = rustix::process::getrlimit(Resource::Nofile);
    let text = |limit: Option<u64>| {
        limit.map_or_else(|| "unlimited".to_string(), |limit| limit.to_string())
    };
    facts.add("open_files_soft_count", text(files.current));
    facts.add("open_files_hard_count", text(files.maximum));
    let groups = proc
        .text("proc/self/cgroup")
        .map(|text| parse_cgroup(&text))
        .unwrap_or_default();
    let cpu = group_limit(mounts, &groups, "cpu", |directory, group| {
        let text = match group.version {
            1 => {
                let quota = proc.text(directory.join("cpu.cfs_quota_us"))?;
                format!(
                    "{quota} {}",
                    proc.text(directory.join("cpu.cfs_period_us"))?
                )
            }
            _ => proc.text(directory.join("cpu.max"))?,
        };
        Some(parse_cpu_max(&text))
    });
    facts.add_known("cgroup_cpu_limit_millicpus", cpu);
    let memory = group_limit(mounts, &groups, "memory", |directory, group| {
        let file = group.memory_limit_file();
        Some(parse_memory_limit(&proc.text(directory.join(file))?))
    });
    facts.add_known("cgroup_memory_limit_bytes", memory);
}

/// The tightest limit of this process's group and the groups above it, as far as they can be seen. `read` is given a
/// group's directory, from the root without its leading slash, and the group that this process is in.
fn group_limit(
    mounts: &[Mount],
    groups: &[Membership],
    controller: &str,
    read: impl Fn(&Path, &Group) -> Option<Result<Option<u64>, Malformed>>,
) -> Option<u64> {
    let mut tightest: Option<u64> = None;
    for group in groups {
        let Some(group) = Group::of(mounts, group, controller) else {
            continue;
        };
        for directory in group.with_above() {
            if let Some(Ok(Some(limit))) = read(&directory, &group) {
                tightest = Some(tightest.map_or(limit, |other| other.min(limit)));
            }
        }
    }
    tightest
}

fn add_file_system(facts: &mut HostFacts, data_dir: &Path, mounts: &[Mount]) {
    let Some(path) = existing(data_dir) else {
        return;
    };
    if let Some(mount) = mount_of(mounts, &path) {
        facts.add("data_fs_type", &mount.fs_type);
        facts.add("data_fs_device", &mount.source);
        facts.add("data_fs_mount_point", mount.point.display());
        let both = [mount.options.as_str(), mount.fs_options.as_str()];
        let options: BTreeSet<&str> = both
            .iter()
            .flat_map(|list| list.split(','))
            .filter(|option| !option.is_empty())
            .collect();
        facts.add(
            "data_fs_options",
            options.into_iter().collect::<Vec<_>>().join(","),
        );
    }
    if let Ok(space) = rustix::fs::statvfs(&path) {
        facts.add(
            "data_fs_total_bytes",
            space.f_blocks.saturating_mul(space.f_frsize),
        );
        // What those without privileges may use: servers do not run as root.
        facts.add(
            "data_fs_free_bytes",
            space.f_bavail.saturating_mul(space.f_frsize),
        );
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
    // A partition's queue is its disk's; an array has one of its own above those of its members.
    let mut described = BTreeSet::new();
    for device in &devices {
        described.insert(device.whole(proc));
        described.extend(device.disks(proc));
    }
    for device in described {
        let name = device.name(proc);
        let directory = device.directory();
        for (fact, file) in [
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
        ] {
            facts.add_known(
                format!("disk.{name}.{fact}"),
                proc.text(format!("{directory}/{file}")),
            );
        }
        let rotational = proc.text(format!("{directory}/queue/rotational"));
        let rotational = rotational.map(|text| if text == "1" { "yes" } else { "no" });
        facts.add_known(format!("disk.{name}.rotational"), rotational);
        let scheduler = proc.text(format!("{directory}/queue/scheduler"));
        facts.add_known(
            format!("disk.{name}.scheduler"),
            scheduler.as_deref().map(chosen),
        );
        // In sectors of 512 bytes, whatever the device's own.
        let sectors = proc
            .text(format!("{directory}/size"))
            .and_then(|text| text.parse::<u64>().ok());
        facts.add_known(
            format!("disk.{name}.size_bytes"),
            sectors.map(|sectors| sectors * 512),
        );
    }
}

#[cfg(test)]
mod tests;
