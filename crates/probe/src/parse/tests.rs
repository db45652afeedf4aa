use super::*;
use crate::device::Device;

/// Reads the fixture `crates/probe/tests/proc/KERNEL/...`.
fn fixture(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proc").join(name);
    fs_err::read_to_string(path).unwrap()
}

#[test]
fn guests_are_not_added_to_user_time() {
    let text = fixture("4.14-bare-metal/proc/stat");
    let ticks = [1_084_500, 2300, 402_100, 90_210_050, 31_200, 0, 9020, 0];
    assert_eq!(parse_cpu_ticks(&text).unwrap(), ticks);
    assert_eq!(count_processors(&text), 2);
    let counts = ["ctxt", "processes", "procs_running", "procs_blocked"];
    let counts = counts.map(|key| required_value(&text, key).unwrap());
    assert_eq!(counts, [812_340_112, 441_230, 3, 1]);
}

#[test]
fn the_first_kernels_cpu_line_has_four_columns() {
    let ticks = parse_cpu_ticks("cpu  1 2 3 4\ncpu0 1\n").unwrap();
    assert_eq!(ticks, [1, 2, 3, 4, 0, 0, 0, 0]);
    let error = |text| parse_cpu_ticks(text).unwrap_err().to_string();
    assert_eq!(error("cpu  1 2 3 x\n"), "`cpu`: expected a whole number, found `x`");
    assert!(error("cpu  1 2 3\n").contains("four columns"));
    assert!(error("ctxt 5\n").contains("four columns"));
}

#[test]
fn diskstats_have_11_15_or_17_counters() {
    let counters = |kernel: &str, wanted: Device| {
        let text = fixture(&format!("{kernel}/proc/diskstats"));
        let mut lines = parse_diskstats(&text, |device| device == wanted).unwrap();
        assert_eq!(lines.len(), 1);
        lines.remove(0).counters
    };
    let device = |major, minor| Device { major, minor };
    let old = counters("4.14-bare-metal", device(8, 1));
    assert_eq!((old.len(), old[0], old[2]), (11, 1_203_100, 90_210_000));
    let middle = counters("5.4-cloud", device(259, 0));
    assert_eq!((middle.len(), &middle[11..]), (15, &[1000, 0, 2_048_000, 500][..]));
    let new = counters("6.8-server", device(259, 0));
    assert_eq!((new.len(), &new[15..]), (17, &[300, 100][..]));
}

#[test]
fn the_line_of_another_device_may_be_short() {
    let text = "   3       1 hda1 1 2 3 4\n";
    assert_eq!(parse_diskstats(text, |_| false).unwrap(), []);
    let error = parse_diskstats(text, |_| true).unwrap_err().to_string();
    assert!(error.contains("expected 14 columns or more"), "{error}");
}

#[test]
fn values_with_a_unit_are_converted_to_bytes() {
    let text = fixture("4.14-bare-metal/proc/meminfo");
    let memory = |key| value(&text, key).unwrap();
    assert_eq!(memory("MemAvailable"), Some(40_123_344 * 1024));
    // Not the value of `SwapCached`.
    assert_eq!(memory("Cached"), Some(39_012_334 * 1024));
    assert_eq!(memory("HugePages_Total"), Some(1024));
    assert_eq!(memory("Hugepagesize"), Some(2 << 20));
    assert_eq!(memory("Huge"), None);
    let error = value("MemTotal: 5 MB\n", "MemTotal").unwrap_err();
    assert!(error.to_string().contains("`MB`"), "{error}");
    let error = required_value(&text, "Swap").unwrap_err();
    assert_eq!(error.to_string(), "`Swap`: expected a line that begins with it, found ``");
}

#[test]
fn a_host_without_other_interfaces_has_no_traffic() {
    let text = fixture("5.4-cloud/proc/net/dev");
    let only_loopback: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(parse_traffic(&only_loopback.join("\n"), |_| true).unwrap(), None);
    assert_eq!(parse_traffic(&text, |name| name == "eth").unwrap(), None);
    let error = parse_traffic("\n\neth0: 1 2 3\n", |_| true).unwrap_err();
    assert!(error.to_string().contains("a counter of an interface"), "{error}");
    assert!(parse_traffic("\n\neth0: 1 2 3\n", |_| false).is_ok());
}

#[test]
fn the_column_of_retransmits_is_found_by_its_name() {
    let parse = |text| parse_retransmits(text).ok();
    assert_eq!(parse("Tcp: A RetransSegs\nTcp: -1 5\n"), Some(Some(5)));
    assert_eq!(parse("Tcp: A B\nTcp: 1 5\n"), Some(None));
    assert_eq!(parse("Tcp: A RetransSegs\n"), None);
    assert_eq!(parse(""), Some(None));
}

#[test]
fn pressure_of_the_cpu_may_lack_its_second_line() {
    let us = |kernel: &str, key| {
        let text = fixture(&format!("{kernel}/proc/pressure/cpu"));
        parse_pressure(&text, key).unwrap()
    };
    assert_eq!(us("5.4-cloud", "some"), Some(1_234_567));
    assert_eq!(us("5.4-cloud", "full"), None);
    assert_eq!(us("6.8-server", "some"), Some(7000));
    assert_eq!(us("6.8-server", "full"), Some(0));
    assert!(parse_pressure("some avg10=0.00\n", "some").is_err());
}

#[test]
fn a_program_may_have_parentheses_in_its_name() {
    let stat = parse_process_stat(&fixture("6.8-server/proc/4711/stat")).unwrap();
    let ticks = |user, system| Ticks { user, system };
    let expected = ProcessStat {
        state: 'S',
        parent: 4700,
        own: ticks(120, 34),
        reaped: ticks(56, 78),
        started_ticks: 98_765,
        resident_pages: 6400,
    };
    assert_eq!(stat, expected);
    assert!(parse_process_stat("4711 (pg) S 1 2").is_err());
    assert!(parse_process_stat("4711 (pg)").is_err());
    assert!(parse_process_stat("").is_err());
}

#[test]
fn memory_and_io_of_a_process_are_parsed() {
    let statm = fixture("6.8-server/proc/4711/statm");
    assert_eq!(parse_shared_pages(&statm).unwrap(), 5900);
    // `cancelled_write_bytes` ends with the name of another field.
    let io = parse_process_io(&fixture("6.8-server/proc/4711/io")).unwrap();
    assert_eq!((io.read_bytes, io.write_bytes), (4096, 8192));
}

#[test]
fn mounts_may_have_optional_fields() {
    let text = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                27 1 259:2 / / rw,relatime shared:1 master:7 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n\
                40 27 0:44 /@data /data\\040base rw,noatime shared:20 - btrfs /dev/sdb1 rw,ssd,subvol=/@data\n\
                a line of another format\n\
                41 27 0:45 / /data rw - tmpfs none rw\n";
    let mounts = parse_mountinfo(text);
    let find = |path: &str| mount_of(&mounts, path.as_ref()).unwrap();
    assert_eq!(find("/home/x").fs_type, "ext4");
    assert_eq!(find("/home/x").options, "rw,relatime");
    assert_eq!(find("/data base/pg").source, "/dev/sdb1");
    assert_eq!(find("/data base/pg").root.to_str(), Some("/@data"));
    // `/database` is not below the mount point `/data`.
    assert_eq!(find("/database").fs_type, "ext4");
    assert_eq!(find("/data/x").fs_type, "tmpfs");
}

#[test]
fn of_two_mounts_at_one_point_the_later_one_counts() {
    let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /d rw - xfs /dev/sda2 rw\n3 2 8:3 / /d rw - xfs /dev/sda3 rw\n";
    let mounts = parse_mountinfo(text);
    let mount = mount_of(&mounts, "/d/e".as_ref()).unwrap();
    assert_eq!(mount.source, "/dev/sda3");
}

#[test]
fn limits_of_control_groups_are_parsed() {
    assert_eq!(parse_cpu_max("max 100000"), None);
    assert_eq!(parse_cpu_max("-1 100000"), None);
    assert_eq!(parse_cpu_max("150000 100000\n"), Some(1500));
    assert_eq!((parse_cpu_max("5"), parse_cpu_max("5 0")), (None, None));
    assert_eq!(parse_limit("max\n"), None);
    assert_eq!(parse_limit("9223372036854771712"), None);
    assert_eq!(parse_limit("1073741824\n"), Some(1 << 30));
    let groups = parse_cgroup("4:memory:/a\n2:cpu,cpuacct:/b:c\n?\n0::/user.slice\n");
    let group = |controllers: &[&str], path: &str| Membership {
        controllers: controllers.iter().map(|name| name.to_string()).collect(),
        path: path.into(),
    };
    assert_eq!(groups[1], group(&["cpu", "cpuacct"], "/b:c"));
    assert_eq!(groups[2], group(&[], "/user.slice"));
}

#[test]
fn cores_are_counted_per_socket() {
    let info = parse_cpuinfo(&fixture("4.14-bare-metal/proc/cpuinfo"));
    assert_eq!(info.model.as_deref(), Some("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz"));
    assert_eq!((info.processor_count, info.socket_count, info.core_count), (2, Some(2), Some(2)));
    assert!(!info.has_hypervisor);
    assert!(parse_cpuinfo(&fixture("5.4-cloud/proc/cpuinfo")).has_hypervisor);
    assert_eq!(parse_cpuinfo("").model, None);
}

#[test]
fn the_page_cache_of_a_group_excludes_shared_memory() {
    let two = "anon 9\nfile 800\nkernel 1\nshmem 300\nfile_mapped 3\n";
    assert_eq!(parse_group_cache(two).unwrap(), 500);
    let one = "cache 1\nshmem 1\ntotal_cache 800\n";
    assert_eq!(parse_group_cache(one).unwrap(), 800);
    assert!(parse_group_cache("anon 9\n").is_err());
    assert!(parse_group_cache("file many\n").is_err());
}
