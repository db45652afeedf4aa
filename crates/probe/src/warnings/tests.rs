use super::*;

fn facts(list: &[(&str, &str)]) -> HostFacts {
    let quiet = [
        ("data_fs_type", "ext4"),
        ("data_fs_options", "rw,relatime"),
        ("data_fs_free_bytes", "107374182400"),
        ("swap_used_bytes", "0"),
        ("cpu_governor", "performance"),
        ("cpu_steal_since_boot_percent", "0.00"),
        ("clocksource", "tsc"),
        ("cpu_allowed_count", "8"),
        ("open_files_soft_count", "1024"),
        ("thp_enabled", "madvise"),
        ("vm_zone_reclaim_mode", "0"),
    ];
    let mut facts = HostFacts { facts: Vec::new(), cpu_count: 8, memory_total_bytes: 32 << 30 };
    for (name, value) in list.iter().chain(&quiet) {
        // `get` returns the first value of a name.
        facts.facts.push((name.to_string(), value.to_string()));
    }
    facts
}

/// Returns a context without a reason for a warning.
fn quiet() -> HostContext<'static> {
    HostContext {
        data_dir: Path::new("data"),
        needed_bytes: None,
        has_local_server: false,
        connections: 8,
        active_connections: 8,
        fsync: Some(FsyncLatency {
            count: 100,
            p50_ns: 300_000,
            p99_ns: 900_000,
            max_ns: 1_000_000,
        }),
    }
}

fn codes(list: &[(&str, &str)], context: HostContext<'_>) -> Vec<String> {
    warnings(&facts(list), context).into_iter().map(|warning| warning.code).collect()
}

#[test]
fn a_suitable_machine_has_no_warnings() {
    assert_eq!(codes(&[], quiet()), [""; 0]);
    // Unknown facts are no reason for a warning.
    assert_eq!(warnings(&HostFacts::default(), quiet()), []);
}

#[test]
fn each_fact_that_disturbs_has_its_warning() {
    for (name, value, code) in [
        ("swap_used_bytes", "4096", "host::swap-in-use"),
        ("cpu_governor", "powersave", "host::cpu-governor"),
        ("cpu_governor", "performance, schedutil", "host::cpu-governor"),
        ("data_fs_type", "tmpfs", "host::data-in-memory"),
        ("data_fs_type", "nfs4", "host::data-on-network"),
        ("data_fs_type", "fuse.sshfs", "host::data-on-network"),
        ("data_fs_type", "overlay", "host::data-on-overlay"),
        ("data_fs_options", "ro,relatime", "host::read-only"),
        ("data_fs_options", "rw,nobarrier", "host::no-barrier"),
        ("clocksource", "hpet", "host::slow-clock"),
        ("cpu_steal_since_boot_percent", "1.40", "host::cpu-steal"),
        ("cgroup_cpu_limit_millicpus", "4000", "host::cpu-limit"),
        ("cgroup_memory_limit_bytes", "1073741824", "host::memory-limit"),
        ("thp_enabled", "always", "host::transparent-huge-pages"),
        ("vm_zone_reclaim_mode", "1", "host::zone-reclaim"),
    ] {
        assert_eq!(codes(&[(name, value)], quiet()), [code], "{name} = {value}");
    }
    for (name, value) in [
        ("cgroup_cpu_limit_millicpus", "8000"),
        ("cgroup_memory_limit_bytes", "68719476736"),
        ("clocksource", "kvm-clock"),
        ("data_fs_options", "rw,errors=remount-ro"),
        ("cpu_steal_since_boot_percent", "0.40"),
    ] {
        assert_eq!(codes(&[(name, value)], quiet()), [""; 0], "{name} = {value}");
    }
}

#[test]
fn a_tenth_of_the_needed_space_must_be_spare() {
    let context = |bytes: u64| HostContext { needed_bytes: Some(bytes), ..quiet() };
    assert_eq!(codes(&[], context(90 << 30)), [""; 0]);
    assert_eq!(codes(&[], context(95 << 30)), ["host::little-disk"]);
    let list = warnings(&facts(&[]), context(1 << 40));
    assert!(list[0].text.starts_with(
        "the file system of `data` has 107 GB free, and the run needs about 1,100 GB"
    ));
}

#[test]
fn a_flush_in_memory_is_not_reported_as_too_fast() {
    let fast = FsyncLatency { count: 10, p50_ns: 5_000, p99_ns: 6_000, max_ns: 7_000 };
    let context = HostContext { fsync: Some(fast), ..quiet() };
    assert_eq!(codes(&[], context), ["host::fsync-too-fast"]);
    let in_memory = codes(&[("data_fs_type", "tmpfs")], context);
    assert_eq!(in_memory, ["host::data-in-memory"]);
}

#[test]
fn the_warning_of_a_local_server_says_when_processors_are_all_busy() {
    let text = |active_connections| {
        let list = warnings(
            &facts(&[]),
            HostContext {
                has_local_server: true,
                // These include connections that load and observe.
                connections: active_connections + 8,
                active_connections,
                ..quiet()
            },
        );
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].code, "host::shared-cpus");
        list[0].text.clone()
    };
    assert!(
        text(4).starts_with("clients and server share all 8 processors, so the clients may take CPU time from the server; to"),
        "{}",
        text(4)
    );
    assert!(
        text(8).contains("8 connections that work at the same time keep all of them busy"),
        "{}",
        text(8)
    );
    let many = HostContext { has_local_server: true, connections: 500, ..quiet() };
    assert_eq!(codes(&[], many), ["host::shared-cpus", "host::few-open-files"]);
}

#[test]
fn the_drivers_own_governor_is_explained() {
    let facts = facts(&[("cpu_governor", "powersave"), ("cpu_frequency_driver", "intel_pstate")]);
    let text = &warnings(&facts, quiet())[0].text;
    let explanation = "the driver chooses the frequency";
    assert!(text.contains(explanation), "{text}");
}

#[test]
fn sizes_have_binary_units() {
    assert_eq!([bytes(12), bytes(1536), bytes(3 << 30)], ["12 B", "1.5 KiB", "3.0 GiB"]);
}
