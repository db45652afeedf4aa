use super::*;
use crate::parse::parse_mountinfo;

/// Returns the facts about a machine with these files.
fn facts_of(files: &[(&str, &str)]) -> HostFacts {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    host_at(&Proc::at(root.path()), root.path())
}

#[test]
fn the_facts_of_a_copy_come_from_its_files() {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proc/4.14-bare-metal");
    let facts = host_at(&Proc::at(kernel), Path::new("/"));
    assert_eq!((facts.cpu_count, facts.memory_total_bytes), (2, 65_973_524 * 1024));
    assert_eq!(facts.get("os_name"), Some("Debian GNU/Linux"));
    assert_eq!(facts.get("kernel_release"), Some("4.14.0-1-generic"));
    assert_eq!(facts.get("cpu_model"), Some("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz"));
    assert_eq!(
        (facts.get("cpu_socket_count"), facts.get("hypervisor")),
        (Some("2"), Some("none seen"))
    );
    assert_eq!(facts.number("swap_used_bytes"), Some(262_144 * 1024));
    assert_eq!(facts.get("huge_page_count"), Some("1024"));
    assert_eq!(facts.get("cpu_steal_since_boot_percent"), Some("0.00"));
    // Facts without a file are absent.
    assert_eq!((facts.get("cpu_governor"), facts.get("thp_enabled")), (None, None));
}

#[test]
fn the_facts_describe_processors_and_their_frequencies() {
    let facts = facts_of(&[
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "3200000\n"),
        ("sys/devices/system/cpu/cpufreq/policy1/cpuinfo_max_freq", "3200000\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/smt/active", "1\n"),
        ("sys/devices/system/node/node0/x", ""),
        ("sys/devices/system/node/node1/x", ""),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ]);
    assert_eq!(facts.get("cpu_governor"), Some("performance, powersave"));
    assert_eq!(facts.get("cpu_frequency_max_khz"), Some("3200000"));
    assert_eq!((facts.get("cpu_boost"), facts.get("cpu_smt")), (Some("off"), Some("active")));
    assert_eq!(
        (facts.get("numa_node_count"), facts.get("thp_enabled")),
        (Some("2"), Some("madvise"))
    );
}

#[test]
fn the_lowest_limit_of_a_group_and_its_ancestors_counts() {
    let facts = facts_of(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/memory.max", "2147483648\n"),
        ("sys/fs/cgroup/a/b/memory.max", "1073741824\n"),
    ]);
    assert_eq!(facts.number("cgroup_cpu_limit_millicpus"), Some(1500));
    assert_eq!(facts.number("cgroup_memory_limit_bytes"), Some(1 << 30));
}

#[test]
fn limits_of_version_one_in_a_container_are_found() {
    // The container sees its own group as the mount's root.
    let mounts = "31 23 0:28 /docker/1f /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  32 23 0:29 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let groups = "4:memory:/docker/1f\n2:cpu,cpuacct:/docker/1f\n1:name=systemd:/x\n";
    let unlimited = "9223372036854771712\n";
    let facts = facts_of(&[
        ("proc/self/cgroup", groups),
        ("proc/self/mountinfo", mounts),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
    ]);
    assert_eq!(facts.number("cgroup_cpu_limit_millicpus"), Some(2000));
    assert_eq!(facts.get("cgroup_memory_limit_bytes"), None);
}

#[test]
fn the_file_system_of_the_data_is_described() {
    let dir = tempfile::tempdir().unwrap();
    let mounts = parse_mountinfo("1 0 8:1 / / rw,noatime - xfs /dev/sda1 rw,logbufs=8\n");
    let mut facts = HostFacts::default();
    add_file_system(&mut facts, dir.path(), &mounts);
    assert_eq!(
        (facts.get("data_fs_type"), facts.get("data_fs_device")),
        (Some("xfs"), Some("/dev/sda1"))
    );
    assert_eq!(facts.get("data_fs_options"), Some("logbufs=8,noatime,rw"));
    assert!(facts.number("data_fs_total_bytes") >= facts.number("data_fs_free_bytes"));
    assert!(facts.number("data_fs_free_bytes").is_some());
}

#[test]
fn this_machine_is_described_without_its_name() {
    let facts = host(Path::new("/"));
    assert!(facts.cpu_count > 0 && facts.memory_total_bytes > 0);
    assert!(facts.get("kernel_release").is_some() && facts.get("user_id").is_some());
    let mut names = std::collections::HashSet::new();
    for (name, value) in &facts.facts {
        assert!(names.insert(name), "duplicate fact `{name}`");
        assert!(!value.is_empty() && !value.contains('\n'), "`{name}` is `{value}`");
        assert!(!name.contains("hostname"));
    }
}
