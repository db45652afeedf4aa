use super::*;

/// A file of a fixture: `crates/probe/tests/proc/KERNEL/...`.
fn fixture(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/proc")
        .join(name);
    fs_err::read_to_string(path).unwrap()
}

fn device(kernel: &str, name: &str) -> DiskLine {
    let lines =
        parse_diskstats(&fixture(&format!("{kernel}/proc/diskstats")), |_, _| true).unwrap();
    lines.into_iter().find(|line| line.name == name).unwrap()
}

#[test]
fn guests_are_not_added_to_user_time() {
    let system = parse_stat(&fixture("4.14-bare-metal/proc/stat")).unwrap();
    assert_eq!(
        system.cpu_ticks,
        [1_084_500, 2300, 402_100, 90_210_050, 31_200, 0, 9020, 0]
    );
    assert_eq!(
        (
            system.cpu_count,
            system.context_switch_count,
            system.created_count
        ),
        (2, 812_340_112, 441_230)
    );
    assert_eq!((system.runnable_count, system.blocked_count), (3, 1));
}

#[test]
fn the_first_kernels_cpu_line_has_four_columns() {
    let text = "cpu  1 2 3 4\nctxt 5\nprocesses 6\nprocs_running 7\nprocs_blocked 8\n";
    assert_eq!(
        parse_stat(text).unwrap().cpu_ticks,
        [1, 2, 3, 4, 0, 0, 0, 0]
    );
    let error = parse_stat(&text.replace("ctxt 5\n", "")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`ctxt` of /proc/stat: got ``, expected a line with that name"
    );
    let error = parse_stat(&text.replace(" 4\n", " x\n")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`cpu` of /proc/stat: got `x`, expected a whole number"
    );
    assert!(parse_stat(&text.replace(" 4\n", "\n")).is_err());
}

#[test]
fn diskstats_of_14_18_and_20_columns() {
    let old = device("4.14-bare-metal", "sda1");
    assert_eq!((old.major, old.minor), (8, 1));
    assert_eq!(
        (old.read_count, old.read_bytes, old.read_ms),
        (1_203_100, 90_210_000 * 512, 801_100)
    );
    assert_eq!(
        (old.write_count, old.write_bytes, old.write_ms),
        (8_912_233, 712_233_440 * 512, 20_023_301)
    );
    assert_eq!(
        (old.inflight_count, old.io_ms, old.queue_ms),
        (2, 4_002_330, 20_824_401)
    );
    assert_eq!((old.discard, old.flush), (None, None));

    let middle = device("5.4-cloud", "nvme0n1");
    assert_eq!(
        middle.discard,
        Some(Discard {
            count: 1000,
            bytes: 2_048_000 * 512,
            ms: 500
        })
    );
    assert_eq!(middle.flush, None);

    let new = device("6.8-server", "nvme0n1");
    assert_eq!(
        new.discard,
        Some(Discard {
            count: 10,
            bytes: 20_480 * 512,
            ms: 5
        })
    );
    assert_eq!(
        new.flush,
        Some(Flush {
            count: 300,
            ms: 100
        })
    );
}

#[test]
fn a_device_is_told_by_its_number_not_by_a_part_of_its_name() {
    let text = fixture("4.14-bare-metal/proc/diskstats");
    let lines = parse_diskstats(&text, |major, minor| (major, minor) == (9, 2)).unwrap();
    assert_eq!(
        lines
            .iter()
            .map(|line| line.name.as_str())
            .collect::<Vec<_>>(),
        ["md2"]
    );
}

#[test]
fn a_line_that_is_not_wanted_may_be_short() {
    let text = "   3       1 hda1 1 2 3 4\n";
    assert_eq!(parse_diskstats(text, |_, _| false).unwrap(), []);
    let error = parse_diskstats(text, |_, _| true).unwrap_err();
    assert!(
        error.to_string().contains("expected 14 columns or more"),
        "{error}"
    );
}

#[test]
fn memory_is_in_bytes_and_swap_used_is_a_difference() {
    let memory = parse_meminfo(&fixture("4.14-bare-metal/proc/meminfo")).unwrap();
    assert_eq!(memory.total_bytes, 65_973_524 * 1024);
    assert_eq!(memory.available_bytes, Some(40_123_344 * 1024));
    assert_eq!(
        (memory.cached_bytes, memory.dirty_bytes),
        (39_012_334 * 1024, 1234 * 1024)
    );
    assert_eq!(
        (memory.swap_total_bytes, memory.swap_used_bytes),
        (8_388_604 * 1024, 262_144 * 1024)
    );
    assert_eq!(
        (memory.huge_page_count, memory.huge_page_free_count),
        (Some(1024), Some(24))
    );
    assert_eq!(memory.huge_page_bytes, Some(2 << 20));
    let without = parse_meminfo(&fixture("5.4-cloud/proc/meminfo")).unwrap();
    assert_eq!(
        (without.huge_page_count, without.swap_used_bytes),
        (None, 0)
    );
    let error = parse_meminfo("MemTotal: 5 MB\n").unwrap_err();
    assert!(error.to_string().contains("SwapTotal"), "{error}");
}

#[test]
fn paging_is_in_kib_and_swapping_in_pages() {
    let paging = parse_vmstat(&fixture("4.14-bare-metal/proc/vmstat")).unwrap();
    let bytes = [45_106_672 * 1024, 356_116_720 * 1024];
    let counts = [1201, 65_536, 912_334_012, 40_123];
    let expected: Vec<_> = bytes.into_iter().chain(counts).map(Some).collect();
    assert_eq!(paging[..], expected);
    assert_eq!(parse_vmstat("").unwrap(), [None; 6]);
}

#[test]
fn pressure_of_the_cpu_may_lack_its_second_line() {
    let old = parse_pressure(&fixture("5.4-cloud/proc/pressure/cpu")).unwrap();
    assert_eq!(
        old,
        Pressure {
            some_us: 1_234_567,
            full_us: None
        }
    );
    let new = parse_pressure(&fixture("6.8-server/proc/pressure/cpu")).unwrap();
    assert_eq!(
        new,
        Pressure {
            some_us: 7000,
            full_us: Some(0)
        }
    );
    assert!(parse_pressure("").is_err());
}

#[test]
fn a_program_may_have_parentheses_in_its_name() {
    let stat = parse_process_stat(&fixture("6.8-server/proc/4711/stat")).unwrap();
    assert_eq!(
        stat,
        ProcessStat {
            is_dead: false,
            parent: 4700,
            user_ticks: 120,
            system_ticks: 34,
            children_user_ticks: 56,
            children_system_ticks: 78,
            started_ticks: 98_765,
            resident_pages: 6400
        }
    );
    let dead = fixture("6.8-server/proc/4711/stat").replace(") S ", ") X ");
    assert!(parse_process_stat(&dead).unwrap().is_dead);
    assert!(parse_process_stat("4711 (pg) S 1 2").is_err());
    assert!(parse_process_stat("").is_err());
}

#[test]
fn memory_and_io_of_a_process() {
    let memory = parse_statm(&fixture("6.8-server/proc/4711/statm")).unwrap();
    assert_eq!(
        memory,
        ProcessMemory {
            resident_pages: 6400,
            shared_pages: 5900
        }
    );
    // `cancelled_write_bytes` ends in the name of the column that is wanted.
    let io = parse_process_io(&fixture("6.8-server/proc/4711/io")).unwrap();
    assert_eq!(
        io,
        ProcessIo {
            read_bytes: 4096,
            write_bytes: 8192
        }
    );
}

#[test]
fn mounts_with_and_without_optional_fields() {
    let text = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                27 1 259:2 / / rw,relatime shared:1 master:7 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n\
                40 27 0:44 /@data /data\\040base rw,noatime shared:20 - btrfs /dev/sdb1 rw,ssd,subvol=/@data\n\
                41 27 0:45 / /data rw - tmpfs none rw\n";
    let mounts = parse_mountinfo(text).unwrap();
    let find = |path: &str| mount_of(&mounts, path.as_ref()).unwrap();
    assert_eq!(find("/home/x").fs_type, "ext4");
    assert_eq!((find("/home/x").major, find("/home/x").minor), (259, 2));
    assert_eq!(find("/home/x").options, "rw,relatime");
    assert_eq!(find("/data base/pg").source, "/dev/sdb1");
    assert_eq!(find("/data base/pg").root.to_str(), Some("/@data"));
    // A directory's name that begins like a mount point is not below it.
    assert_eq!(find("/database").fs_type, "ext4");
    assert_eq!(find("/data/x").fs_type, "tmpfs");
    assert!(parse_mountinfo("1 2 3\n").is_err());
}

#[test]
fn of_two_mounts_at_one_place_the_later_is_seen() {
    let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /d rw - xfs /dev/sda2 rw\n3 2 8:3 / /d rw - xfs /dev/sda3 rw\n";
    assert_eq!(
        mount_of(&parse_mountinfo(text).unwrap(), "/d/e".as_ref())
            .unwrap()
            .minor,
        3
    );
}

#[test]
fn limits_of_control_groups() {
    assert_eq!(parse_cpu_max("max 100000"), Ok(None));
    assert_eq!(parse_cpu_max("-1 100000"), Ok(None));
    assert_eq!(parse_cpu_max("150000 100000\n"), Ok(Some(1500)));
    assert!(parse_cpu_max("5").is_err() && parse_cpu_max("5 0").is_err());
    assert_eq!(parse_memory_limit("max\n"), Ok(None));
    assert_eq!(parse_memory_limit("9223372036854771712"), Ok(None));
    assert_eq!(parse_memory_limit("1073741824"), Ok(Some(1 << 30)));
    assert!(parse_memory_limit("much").is_err());
    let groups = parse_cgroup("4:memory:/a\n2:cpu,cpuacct:/b:c\n0::/user.slice\n");
    assert_eq!(
        groups[1],
        Membership {
            controllers: vec!["cpu".into(), "cpuacct".into()],
            path: "/b:c".into()
        }
    );
    assert_eq!(
        groups[2],
        Membership {
            controllers: vec![],
            path: "/user.slice".into()
        }
    );
}

#[test]
fn cores_are_counted_per_socket() {
    let info = parse_cpuinfo(&fixture("4.14-bare-metal/proc/cpuinfo"));
    assert_eq!(
        info.model.as_deref(),
        Some("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz")
    );
    assert_eq!(
        (info.processor_count, info.socket_count, info.core_count),
        (2, Some(2), Some(2))
    );
    assert!(!info.hypervisor);
    assert!(parse_cpuinfo(&fixture("5.4-cloud/proc/cpuinfo")).hypervisor);
    assert_eq!(parse_cpuinfo(""), CpuInfo::default());
}

#[test]
fn the_page_cache_of_a_group_is_without_shared_memory() {
    let two = "anon 9\nfile 800\nkernel 1\nshmem 300\nfile_mapped 3\n";
    assert_eq!(parse_group_cache(two).unwrap(), 500);
    let one = "cache 1\nshmem 1\ntotal_cache 800\n";
    assert_eq!(parse_group_cache(one).unwrap(), 800);
    assert!(parse_group_cache("anon 9\n").is_err());
    assert!(parse_group_cache("file many\n").is_err());
}
