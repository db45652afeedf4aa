use words::CounterKind;

use super::*;

fn fixture(kernel: &str) -> Proc {
    Proc::at(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proc").join(kernel))
}

fn row(kernel: &str, targets: Targets) -> Sample {
    Sampler::at(fixture(kernel), targets).sample().unwrap()
}

#[test]
fn a_row_has_every_column_in_order_on_every_kernel() {
    for kernel in ["4.14-bare-metal", "5.4-cloud", "6.8-server"] {
        let row = row(kernel, Targets::default());
        let names: Vec<&str> = row.values.iter().map(|(name, _)| *name).collect();
        let columns: Vec<&str> = Sample::COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names, columns, "{kernel}");
        // Without a target, its columns are not applicable.
        for name in ["server_cpu_user_ns", "disk_read_count", "data_bytes"] {
            assert_eq!(row.get(name), None, "{kernel} {name}");
        }
    }
}

#[test]
fn ticks_become_nanoseconds() {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second() as i64;
    let row = row("4.14-bare-metal", Targets::default());
    assert_eq!(row.get("cpu_user_ns"), Some(1_084_500 * tick_ns));
    assert_eq!(row.get("cpu_iowait_ns"), Some(31_200 * tick_ns));
    assert_eq!(row.get("context_switch_count"), Some(812_340_112));
    assert_eq!(row.get("swap_used_bytes"), Some(262_144 * 1024));
    assert_eq!(row.get("memory_dirty_bytes"), Some(1234 * 1024));
    assert_eq!(row.get("page_in_bytes"), Some(45_106_672 * 1024));
    assert_eq!(row.get("swap_in_page_count"), Some(1201));
}

#[test]
fn figures_near_the_limit_of_64_bits_do_not_overflow() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("proc")).unwrap();
    for (name, from, to) in [
        ("proc/stat", " 9020 0 40000", " 9020 18446744073709551 40000"),
        ("proc/meminfo", "SwapFree:        8126460 kB", "SwapFree: 18446744073709551556 kB"),
    ] {
        let text = fs_err::read_to_string(fixture("4.14-bare-metal").path(name)).unwrap();
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{name}");
        fs_err::write(dir.path().join(name), changed).unwrap();
    }
    let proc = Proc::at(dir.path());
    let row = Sampler::at(proc.clone(), Targets::default()).sample().unwrap();
    assert_eq!(row.get("cpu_steal_ns"), Some(i64::MAX));
    assert_eq!(row.get("swap_used_bytes"), Some(0));
    assert!(crate::host_at(&proc, dir.path()).get("cpu_steal_since_boot_percent").is_some());
}

#[test]
fn pressure_is_absent_on_an_old_kernel_and_in_nanoseconds_on_a_new_one() {
    let old = row("4.14-bare-metal", Targets::default());
    assert_eq!((old.get("pressure_cpu_some_ns"), old.get("pressure_io_full_ns")), (None, None));
    let new = row("5.4-cloud", Targets::default());
    assert_eq!(new.get("pressure_cpu_some_ns"), Some(1_234_567_000));
    assert_eq!(
        (new.get("pressure_io_some_ns"), new.get("pressure_io_full_ns")),
        (Some(900_000), Some(800_000))
    );
}

#[test]
fn traffic_is_counted_once_and_excludes_the_loopback() {
    let traffic = |kernel: &str| {
        let row = row(kernel, Targets::default());
        let columns = ["received_bytes", "received_packet_count"]
            .into_iter()
            .chain(["sent_bytes", "sent_packet_count"]);
        let counts = columns.map(|column| row.get(&format!("network_{column}")));
        (counts.collect::<Vec<_>>(), row.get("tcp_retransmit_count"))
    };
    // A container has no hardware, so all interfaces count.
    let of_all = [1_003_200, 350, 514_669, 5755].map(Some).to_vec();
    assert_eq!(traffic("5.4-cloud"), (of_all, Some(42)));
    // The bridge's packets also pass the hardware.
    let of_hardware = [1000, 10, 2000, 20].map(Some).to_vec();
    assert_eq!(traffic("6.8-server"), (of_hardware, None));
    assert_eq!(traffic("4.14-bare-metal"), (vec![None; 4], None));
}

#[test]
fn a_server_of_the_fixture_is_measured() {
    let page_bytes = rustix::param::page_size() as i64;
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second() as i64;
    let row = row("6.8-server", Targets { server_pid: Some(4711), ..Targets::default() });
    assert_eq!(row.get("server_process_count"), Some(1));
    assert_eq!(row.get("server_cpu_user_ns"), Some((120 + 56) * tick_ns));
    assert_eq!(row.get("server_cpu_system_ns"), Some((34 + 78) * tick_ns));
    assert_eq!(row.get("server_rss_bytes"), Some(6400 * page_bytes));
    assert_eq!(row.get("server_rss_bytes_max"), Some(6400 * page_bytes));
    assert_eq!(row.get("server_private_bytes"), Some(500 * page_bytes));
    assert_eq!(
        (row.get("server_read_bytes"), row.get("server_write_bytes")),
        (Some(4096), Some(8192))
    );
}

#[test]
fn the_servers_control_group_is_sampled_if_it_has_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    };
    for name in ["proc/stat", "proc/meminfo"] {
        let text = fs_err::read_to_string(fixture("5.4-cloud").path(name)).unwrap();
        write(name, &text);
    }
    write(
        "proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    );
    write("proc/self/cgroup", "4:memory:/a\n0::/\n");
    write("proc/7/cgroup", "4:memory:/a/server\n0::/\n");
    write("proc/8/cgroup", "4:memory:/a\n0::/\n");
    let group = |file: &str| format!("sys/fs/cgroup/memory/a/server/{file}");
    write(&group("memory.limit_in_bytes"), "1073741824\n");
    write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
    write(&group("memory.usage_in_bytes"), "900\n");
    write(&group("memory.stat"), "cache 5\nshmem 1\ntotal_cache 800\ntotal_shmem 300\n");
    let mut sampler = Sampler::at(Proc::at(dir.path()), Targets::default());
    let mut figures = |pid: Option<u32>| {
        sampler.set_server(pid);
        let row = sampler.sample().unwrap();
        (row.get("server_cgroup_memory_bytes"), row.get("server_cgroup_cache_bytes"))
    };
    assert_eq!(figures(Some(7)), (Some(900), Some(500)));
    // A server in assay's own group, and no server.
    assert_eq!(figures(Some(8)), (None, None));
    assert_eq!(figures(None), (None, None));
    // Without a limit.
    write(&group("memory.limit_in_bytes"), "9223372036854771712\n");
    assert_eq!(figures(Some(7)), (None, None));
}

#[test]
fn idle_time_does_not_decrease_when_the_kernel_corrects_it() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("proc")).unwrap();
    let meminfo = fixture("5.4-cloud").path("proc/meminfo");
    fs_err::copy(meminfo, dir.path().join("proc/meminfo")).unwrap();
    let mut sampler = Sampler::at(Proc::at(dir.path()), Targets::default());
    let mut iowait = |ticks: u64| {
        let text =
            format!("cpu 1 2 3 4 {ticks}\nctxt 5\nprocesses 6\nprocs_running 7\nprocs_blocked 8\n");
        fs_err::write(dir.path().join("proc/stat"), text).unwrap();
        sampler.sample().unwrap().get("cpu_iowait_ns").unwrap()
    };
    let first = iowait(50);
    assert_eq!(iowait(49), first);
    assert!(iowait(51) > first);
}

#[test]
fn the_error_names_a_missing_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = Sampler::at(Proc::at(dir.path()), Targets::default()).sample().unwrap_err();
    assert!(error.to_string().ends_with("/proc/stat`"), "{error}");
}

#[test]
fn counters_of_this_machine_do_not_decrease() {
    let dir = tempfile::tempdir().unwrap();
    let mut sampler = Sampler::new(Targets {
        server_pid: Some(std::process::id()),
        data: vec![dir.path().to_path_buf()],
        logs: Vec::new(),
    });
    let first = sampler.sample().unwrap();
    fs_err::write(dir.path().join("table"), vec![1u8; 1 << 20]).unwrap();
    let second = sampler.sample().unwrap();
    for (index, column) in Sample::COLUMNS.iter().enumerate() {
        if column.kind == CounterKind::Cumulative {
            assert!(second.values[index].1 >= first.values[index].1, "{}", column.name);
        }
    }
    assert!(second.get("assay_cpu_ns") > first.get("assay_cpu_ns"));
    assert!(second.get("server_rss_bytes_max").unwrap() > 1 << 20);
    assert!(second.get("server_process_count").unwrap() >= 1);
    assert!(first.get("data_bytes").is_some());
}

#[test]
fn sizes_are_repeated_until_a_walk_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let data = vec![dir.path().to_path_buf()];
    let mut sampler = Sampler::at(fixture("5.4-cloud"), Targets { data, ..Targets::default() });
    let at = now();
    let first = sampler.sizes(at).unwrap();
    fs_err::write(dir.path().join("table"), vec![1u8; 1 << 20]).unwrap();
    // Pretends that the walk took 50 ms.
    sampler.sizes.last_walk = Some((at, Duration::from_millis(50)));
    assert_eq!(sampler.sizes(at + Duration::from_secs(9)), Some(first));
    assert!(sampler.sizes(at + Duration::from_secs(10)).unwrap().data >= first.data + (1 << 20));
}
