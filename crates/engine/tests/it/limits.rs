//! Limits of a server's memory and processors, with real servers. If this machine does not let
//! assay limit memory, these tests are reported as skipped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use engine::limits::Limits;
use engine::postgres::Postgres;
use engine::{Engine, ErrorClass, Session, SetupError, SqlEngine};
use rustix::process::Signal;
use words::Limit;

use crate::guard::{eventually, guard_exe, is_running, signal};
use crate::postgres::{ServerDir, build, is_installed};
use crate::tables::class_of;
use crate::{mysql, say_skipped};

const MIB: u64 = 1 << 20;

/// 96 MiB for a server and its processes, just enough for its program.
const MEMORY: u64 = 96 * MIB;

fn memory(bytes: u64) -> Limits {
    Limits { memory_bytes: Some(bytes), ..Limits::default() }
}

/// Returns the memory limit if it is in effect; reports the test as skipped if this machine does
/// not allow it.
fn holding(limits: &[Limit]) -> Option<&Limit> {
    let memory = limits.iter().find(|limit| limit.what == "memory").unwrap();
    if memory.effective.is_none() {
        say_skipped(memory.reason.as_deref().unwrap());
        return None;
    }
    Some(memory)
}

/// Starts a server with limited memory; `None` if that is not possible, or if the server may swap.
fn limited(place: &ServerDir, bytes: u64, set: &[(&str, &str)]) -> Option<Postgres> {
    if !is_installed() {
        return None;
    }
    let postgres = place.start_limited(&memory(bytes), set).unwrap();
    let memory = holding(postgres.limits())?;
    let reason = memory.reason.as_deref();
    if let Some(reason) = reason.filter(|reason| reason.starts_with("swap is not limited")) {
        say_skipped(reason);
        return None;
    }
    Some(postgres)
}

/// Returns the directory of the control group that assay created for a process.
fn group_of(pid: u32) -> PathBuf {
    groups_of(pid).remove(0)
}

/// Returns the directories of the control groups that assay created for a process.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let groups = fs_err::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let directory = |ours: &str| {
        let mut fields = ours.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap(), fields.next().unwrap());
        let is_it = |line: &&str| match controllers {
            "" => line.contains(" - cgroup2 "),
            _ => line.contains(" - cgroup ") && line.ends_with(&format!(",{controllers}")),
        };
        let mount: Vec<&str> = mounts.lines().find(is_it).unwrap().split(' ').collect();
        Path::new(mount[4]).join(Path::new(path).strip_prefix(mount[3]).unwrap())
    };
    let ours = groups.lines().filter(|line| line.contains("/assay-"));
    ours.map(directory).collect()
}

/// Returns the bytes charged to the group.
fn charged(group: &Path) -> u64 {
    ["memory.usage_in_bytes", "memory.current"]
        .iter()
        .find_map(|file| fs_err::read_to_string(group.join(file)).ok())
        .and_then(|text| text.trim().parse().ok())
        .unwrap()
}

/// Returns the bytes that the processes of a group have read from storage. In newer servers, some
/// read for others.
fn read_bytes(group: &Path) -> u64 {
    let read = |pid: &str| -> Option<u64> {
        let io = fs_err::read_to_string(format!("/proc/{pid}/io")).ok()?;
        let line = io.lines().find_map(|line| line.strip_prefix("read_bytes:"));
        line?.trim().parse().ok()
    };
    let inside = fs_err::read_to_string(group.join("cgroup.procs")).unwrap();
    inside.lines().filter_map(read).sum()
}

/// Returns a line of a process's status.
fn status_of(pid: u32, name: &str) -> String {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().to_string()
}

fn cpus_of(pid: u32) -> String {
    status_of(pid, "Cpus_allowed_list")
}

fn parent_of(pid: u32) -> u32 {
    status_of(pid, "PPid").parse().unwrap()
}

fn backend_of(session: &mut impl Session) -> u32 {
    let pid = session.query_i64("select pg_backend_pid()").unwrap();
    pid.unwrap().try_into().unwrap()
}

#[test]
fn memory_is_limited_and_the_group_is_removed_with_the_server() {
    let place = ServerDir::on_disk();
    // Not a whole number of pages.
    let Some(postgres) = limited(&place, MEMORY + 1000, &[]) else {
        return;
    };
    let expected = Limit {
        what: "memory".into(),
        asked: (MEMORY + 1000).to_string(),
        effective: Some(MEMORY.to_string()),
        reason: None,
    };
    assert_eq!(postgres.limits(), [expected]);
    let group = group_of(postgres.process_id().unwrap());
    let mut session = postgres.connect().unwrap();
    assert_eq!(group_of(backend_of(&mut session)), group);
    // Neither the guard nor this process is in the group: only the server is charged.
    let inside = fs_err::read_to_string(group.join("cgroup.procs")).unwrap();
    let guard = parent_of(postgres.process_id().unwrap()).to_string();
    assert!(inside.lines().all(|pid| pid != guard), "{inside}");
    assert_eq!(postgres.killed_for_memory(), None);
    drop(session);
    postgres.stop().unwrap();
    assert!(!group.exists());
}

#[test]
fn a_table_larger_than_the_limit_is_read_from_the_disk_again() {
    let place = ServerDir::on_disk();
    let tmpfs = 0x0102_1994;
    if rustix::fs::statfs(place.path()).unwrap().f_type == tmpfs {
        say_skipped("what is on a tmpfs is not read from a disk");
        return;
    }
    if !Path::new("/proc/self/io").exists() {
        say_skipped("this kernel does not count what a process reads");
        return;
    }

    let set = [("max_parallel_workers_per_gather", "0")];
    let Some(postgres) = limited(&place, MEMORY, &set) else {
        return;
    };

    let mut session = postgres.connect().unwrap();
    session
        .query(
            "create unlogged table big as \
             select i, repeat(md5(i::text), 50) from generate_series(1, 160000) i",
        )
        .unwrap();
    let table_bytes = session.query_i64("select pg_table_size('big')").unwrap();
    let table_bytes = u64::try_from(table_bytes.unwrap()).unwrap();
    assert!(table_bytes > 3 * MEMORY, "{table_bytes}");

    let group = group_of(postgres.process_id().unwrap());
    let scan = "select count(*) from big";
    assert_eq!(session.query_i64(scan).unwrap(), Some(160_000));
    let before = read_bytes(&group);
    assert_eq!(session.query_i64(scan).unwrap(), Some(160_000));
    let read = read_bytes(&group) - before;
    assert!(read >= table_bytes - MEMORY, "{read} of {table_bytes} were read");

    // The group includes the page cache of its files.
    let charged = charged(&group);
    assert!((MEMORY / 2..=MEMORY).contains(&charged), "{charged} of {MEMORY}");
    assert_eq!(postgres.killed_for_memory(), None);

    drop(session);
    postgres.stop().unwrap();
    assert!(!group.exists());
}

#[test]
fn the_server_gets_the_requested_processors() {
    if !is_installed() {
        return;
    }
    let own = cpus_of(std::process::id());
    let last: u32 = own.rsplit([',', '-']).next().unwrap().parse().unwrap();
    let place = ServerDir::new();
    let limits = Limits { cpus: Some(vec![last]), ..Limits::default() };
    let postgres = place.start_limited(&limits, &[]).unwrap();
    let expected = Limit {
        what: "cpus".into(),
        asked: last.to_string(),
        effective: Some(last.to_string()),
        reason: None,
    };
    assert_eq!(postgres.limits(), [expected]);
    let mut session = postgres.connect().unwrap();
    assert_eq!(cpus_of(backend_of(&mut session)), last.to_string());
    assert_eq!(cpus_of(std::process::id()), own);
    drop(session);
    postgres.stop().unwrap();
}

#[test]
fn a_cpu_quota_holds_and_its_group_is_removed_with_the_server() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::on_disk();
    let limits =
        Limits { memory_bytes: Some(MEMORY), cpu_quota_milli: Some(200), ..Limits::default() };
    let postgres = place.start_limited(&limits, &[]).unwrap();

    let quota = postgres.limits().last().unwrap();
    if quota.effective.is_none() {
        say_skipped(quota.reason.as_deref().unwrap());
        return;
    }

    let expected = Limit {
        what: "cpu-quota".into(),
        asked: "0.2".into(),
        effective: Some("0.2".into()),
        reason: None,
    };
    assert_eq!(*quota, expected);

    let groups = groups_of(postgres.process_id().unwrap());
    assert!(!groups.is_empty() && groups.iter().all(|group| group.is_dir()));

    let mut session = postgres.connect().unwrap();
    let backend = backend_of(&mut session);
    // Fields 14 and 15 are the time in user and kernel mode, in hundredths of a second.
    let used_s = || {
        let stat = fs_err::read_to_string(format!("/proc/{backend}/stat")).unwrap();
        let fields: Vec<u64> = stat.split(' ').skip(13).take(2).flat_map(str::parse).collect();
        fields.iter().sum::<u64>() as f64 / 100.0
    };

    let before_s = used_s();
    session.query("set statement_timeout = '2s'").unwrap();
    let busy = session.query("select count(*) from generate_series(1, 1000000000000) i");
    assert!(busy.is_err());
    // The server's timer may be late, but it cannot be by as much as the backend would use
    // otherwise.
    let used_s = used_s() - before_s;
    assert!(used_s < 1.0, "{used_s} s in 2 s");

    drop(session);
    postgres.stop().unwrap();
    assert!(groups.iter().all(|group| !group.exists()));
}

#[test]
fn limits_that_make_no_sense_are_refused_and_nothing_is_left_running() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::on_disk();
    let error = place.start_limited(&memory(63 * MIB), &[]).err().unwrap();
    assert!(matches!(error, SetupError::Config { .. }), "{error}");
    assert!(error.to_string().contains("`memory` is 63 MiB"), "{error}");
    let limits = Limits { cpus: Some(vec![1023]), ..Limits::default() };
    let error = place.start_limited(&limits, &[]).err().unwrap();
    assert!(error.to_string().contains("`cpus` lists 1023"), "{error}");
    assert!(error.help().is_some());
}

#[test]
fn a_server_without_limits_reports_none() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::new();
    let postgres = place.start_limited(&Limits::default(), &[]).unwrap();
    assert!(postgres.limits().is_empty());
    assert_eq!(postgres.killed_for_memory(), None);
    let pid = postgres.process_id().unwrap();
    let groups = |pid: u32| fs_err::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    // For a server with a limit, another test's, assay may be moving into another group with all
    // that it has started.
    eventually("it is in assay's own group", || groups(pid) == groups(std::process::id()));
    postgres.stop().unwrap();
}

#[test]
fn a_backend_beyond_the_memory_limit_is_killed_and_reported() {
    let place = ServerDir::on_disk();
    let Some(postgres) = limited(&place, MEMORY, &[]) else {
        return;
    };
    let mut session = postgres.connect().unwrap();
    let greedy = session.query("select length(repeat('x', 500000000))");
    assert_eq!(class_of(greedy), ErrorClass::ConnectionLost);
    let said = postgres.killed_for_memory().unwrap();
    assert!(
        said.starts_with("a process of the server was killed: it needed more than the 96 MiB"),
        "{said}"
    );
    assert!(said.ends_with("(memory = \"96MiB\")"), "{said}");
}

#[test]
fn stopping_a_server_that_ran_out_of_memory_reports_it() {
    let place = ServerDir::on_disk();
    let Some(postgres) = limited(&place, MEMORY, &[("restart_after_crash", "off")]) else {
        return;
    };
    let (pid, group) = {
        let pid = postgres.process_id().unwrap();
        (pid, group_of(pid))
    };
    let mut session = postgres.connect().unwrap();
    let greedy = session.query("select length(repeat('x', 500000000))");
    assert_eq!(class_of(greedy), ErrorClass::ConnectionLost);
    eventually("the server ends", || !is_running(pid));
    let said = postgres.killed_for_memory().unwrap();
    assert!(said.starts_with("the server was killed: "), "{said}");
    // The guard may not have noticed yet.
    let error = postgres.stop().unwrap_err().to_string();
    assert!(error.contains("it needed more than the 96 MiB"), "{error}");
    assert!(!group.exists());
}

/// Starts another assay with a limited server, to be killed. Returns the process and the server's
/// process ID; `None` if memory cannot be limited.
fn other_assay(place: &ServerDir) -> Option<(Child, u32)> {
    // This process's server has the message.
    limited(&ServerDir::on_disk(), MEMORY, &[])?.stop().unwrap();
    fs_err::create_dir(place.path().join("data")).unwrap();
    let mut parent = Command::new(guard_exe().with_file_name("limited_server"))
        .arg(build())
        .arg(place.path().join("data"))
        .arg(MEMORY.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Some((parent, line.trim().parse().unwrap()))
}

#[test]
fn the_group_goes_also_when_assay_is_killed() {
    let place = ServerDir::on_disk();
    let Some((mut parent, pid)) = other_assay(&place) else {
        return;
    };
    let group = group_of(pid);
    assert!(group.is_dir() && is_running(pid));
    signal(parent.id(), Signal::KILL);
    parent.wait().unwrap();
    eventually("the server ends", || !is_running(pid));
    eventually("its group is removed", || !group.exists());
}

#[test]
fn a_group_whose_guard_was_killed_too_is_removed_by_the_next_run() {
    let place = ServerDir::on_disk();
    let Some((mut parent, pid)) = other_assay(&place) else {
        return;
    };
    let (group, guard) = (group_of(pid), parent_of(pid));
    signal(parent.id(), Signal::STOP);
    signal(guard, Signal::KILL);
    signal(parent.id(), Signal::KILL);
    parent.wait().unwrap();
    // With the server go its other processes; another test's server may remove the group from then
    // on.
    signal(pid, Signal::KILL);
    let processes = || fs_err::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    eventually("the server ends", || processes().is_empty());
    // In the same place, where it also finds what is left of the sockets.
    limited(&place, MEMORY, &[]).unwrap().stop().unwrap();
    assert!(!group.exists());
}

#[test]
fn mysql_is_limited_too() {
    let Some(_) = mysql::installed() else {
        return;
    };
    let place = mysql::ServerDir::on_disk();
    let own = cpus_of(std::process::id());
    let first: u32 = own.split([',', '-']).next().unwrap().parse().unwrap();
    let limits =
        Limits { memory_bytes: Some(512 * MIB), cpus: Some(vec![first]), cpu_quota_milli: None };
    let server = place.start_limited(&limits, &[]).unwrap();
    let Some(memory) = holding(server.limits()) else {
        return;
    };
    assert_eq!(memory.effective, Some((512 * MIB).to_string()));
    assert_eq!(server.limits()[1].effective, Some(first.to_string()));
    let group = group_of(server.process_id().unwrap());
    assert!(charged(&group) > 0);
    server.stop().unwrap();
    assert!(!group.exists());
}
