//! Freezes servers and other programs, and kills those who should thaw them.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::guard::{Ending, Guarded, Spawn, is_alive};
use engine::{Freezer, Freezing, Session};
use rustix::process::Signal;
use words::Random;

use crate::guard::{eventually, guard_exe, is_running, kill_guard_of, pids, shell, signal, within};
use crate::server::{ServerDir, TestServer, on_each_server};

on_each_server!(
    a_frozen_server_uses_no_processor_and_answers_once_it_is_thawed,
    a_frozen_server_stops_cleanly,
    a_server_that_assay_did_not_start_is_not_frozen,
    nothing_of_a_frozen_server_outlives_assay_or_guard_or_server,
);

/// The means of freezing, of which the first is not possible everywhere.
const MEANS: [&str; 2] = ["group", "signals"];

/// Returns a freezer with these means, or with those that are possible.
fn freezer(guarded: &Guarded, means: &str) -> Freezer {
    if means == "signals" {
        Freezer::by_signals(guarded, "the test asks for it").unwrap()
    } else {
        Freezer::of(guarded).unwrap()
    }
}

/// Returns the CPU time of all threads of these processes, in nanoseconds.
fn cpu_ns(processes: &[u32]) -> u64 {
    let mut sum = 0;
    for pid in processes {
        for thread in fs_err::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let text = fs_err::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
            sum += text.split(' ').next().unwrap().parse::<u64>().unwrap();
        }
    }
    sum
}

/// More CPU time than frozen processes use. The kernel counts a process as frozen some microseconds
/// of its time before it leaves its processor, and then others may have their turn first.
const LEAVING_NS_MAX: u64 = 1_000_000;

/// Uses the processor for some time.
fn work() -> u64 {
    let mut random = Random::new(1);
    (0..1_000_000).map(|_| random.below(2)).sum()
}

/// Kills a server when a test fails, so that its clients end too.
struct EndOnFailure(u32);

impl Drop for EndOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            signal(self.0, Signal::KILL);
        }
    }
}

/// Returns the parent of a process.
fn parent_of(pid: u32) -> u32 {
    probe::state_and_parent(pid).unwrap().1
}

fn a_frozen_server_uses_no_processor_and_answers_once_it_is_thawed<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let (pid, guarded) = (server.process_id().unwrap(), server.server().unwrap().guarded());
    let [mut busy, mut other] = [(); 2].map(|()| server.connect().unwrap());
    let [id, end, _] = S::SQL.session;
    let id = busy.query_i64(id).unwrap().unwrap().to_string();

    std::thread::scope(|scope| {
        scope.spawn(move || busy.query(S::SQL.work[1]).unwrap_err());
        let _end = EndOnFailure(pid);
        for means in MEANS {
            let mut freezer = freezer(guarded, means);
            for _ in 0..20 {
                freezer.freeze().unwrap();
                let processes = probe::process_tree(pid);
                let before_ns = cpu_ns(&processes);
                assert!(work() > 0);
                let used_ns = cpu_ns(&processes) - before_ns;
                assert!(used_ns < LEAVING_NS_MAX, "{used_ns}: {}", freezer.how());

                freezer.thaw().unwrap();
                assert_eq!(other.query_i64("select 6 * 7").unwrap(), Some(42));
            }
            // A dropped freezer thaws too.
            freezer.freeze().unwrap();
            drop(freezer);
            assert_eq!(other.query_i64("select 6 * 7").unwrap(), Some(42));
        }
        other.query(&end.replace('?', &id)).unwrap();
    });
    server.stop().unwrap();
}

fn a_frozen_server_stops_cleanly<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    for means in MEANS {
        let server = place.start(&[]).unwrap();
        let session = server.connect().unwrap();
        let mut freezer = freezer(server.server().unwrap().guarded(), means);
        let group = group_of(server.process_id().unwrap());
        let is_group = *freezer.how() == Freezing::ControlGroup;
        assert_eq!(is_group, group.is_some(), "{}", freezer.how());

        freezer.freeze().unwrap();
        server.stop().unwrap();
        assert!(group.is_none_or(|group| !group.exists()), "its group is gone too");
        assert!(freezer.freeze().is_err());
        drop((session, freezer));
    }
}

fn a_server_that_assay_did_not_start_is_not_frozen<S: TestServer>() {
    for shared in S::shared() {
        let attached = S::attach(&shared.server.url()).unwrap();
        assert!(attached.freezer().unwrap().is_none());
    }
}

/// Returns the control group that assay created for a process in version 2.
fn group_of(pid: u32) -> Option<PathBuf> {
    let groups = fs_err::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    if !path.contains("assay-") {
        return None;
    }
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let fields: Vec<&str> = mount.split(' ').collect();
    let root = fields[3].trim_start_matches('/');
    Some(Path::new(fields[4]).join(path.strip_prefix(root)?.trim_start_matches('/')))
}

/// The command of a server that has stopped, whose data is still there.
struct StoppedServer {
    program: PathBuf,
    args: Vec<String>,
    /// The directory of its data, in which all its processes work.
    data: PathBuf,
    socket_directory: PathBuf,
    log: PathBuf,
    url: String,
}

impl StoppedServer {
    /// Creates a server's data.
    fn create<S: TestServer>(place: &ServerDir<S>) -> Self {
        let server = place.start(&[]).unwrap();
        let process = PathBuf::from(format!("/proc/{}", server.process_id().unwrap()));
        let command = fs_err::read_to_string(process.join("cmdline")).unwrap();
        let args = command.trim_end_matches('\0').split('\0').skip(1).map(str::to_owned);
        let mut socket_directory = server.socket();
        if !socket_directory.is_dir() {
            socket_directory.pop();
        }
        let stopped = Self {
            program: fs_err::read_link(process.join("exe")).unwrap(),
            args: args.collect(),
            data: fs_err::read_link(process.join("cwd")).unwrap(),
            socket_directory,
            log: place.log(),
            url: server.url(),
        };
        server.stop().unwrap();
        stopped
    }

    /// Returns the processes that work in the directory of its data.
    fn processes(&self) -> Vec<u32> {
        let entries = fs_err::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let works_here = |pid: &u32| {
            fs_err::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == self.data)
        };
        pids.filter(works_here).filter(|&pid| is_alive(pid)).collect()
    }

    /// Starts the server again, from a process that freezes and thaws it.
    fn start_frozen(&self, means: &str) -> FrozenProgram {
        let owner = fs_err::metadata(&self.data).unwrap();
        let _ = fs_err::remove_dir_all(&self.socket_directory);
        std::fs::DirBuilder::new().mode(0o700).create(&self.socket_directory).unwrap();
        let (uid, gid) = (owner.uid(), owner.gid());
        std::os::unix::fs::chown(&self.socket_directory, Some(uid), Some(gid)).unwrap();
        let mut command = vec![means.to_owned(), uid.to_string(), gid.to_string()];
        command.extend([&self.log, &self.program].map(|path| path.display().to_string()));
        command.extend(self.args.iter().cloned());
        FrozenProgram::start(&command)
    }
}

/// Kills what a failed test has left of a server, so that its clients end too.
struct Rest<'a>(&'a StoppedServer);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        for pid in self.0.processes() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// A program that another process freezes and thaws again and again.
struct FrozenProgram {
    assay: Child,
    guard: u32,
    program: u32,
}

impl FrozenProgram {
    fn start(arguments: &[String]) -> Self {
        let mut assay = Command::new(guard_exe().with_file_name("frozen_program"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(assay.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut pids = line.split_ascii_whitespace().map_while(|word| word.parse().ok());
        Self { assay, guard: pids.next().unwrap(), program: pids.next().unwrap() }
    }

    /// Returns the processes that are killed together.
    fn victims(&self) -> [Vec<u32>; 4] {
        let assay = self.assay.id();
        [vec![assay], vec![self.guard], vec![self.program], vec![assay, self.guard]]
    }
}

impl Drop for FrozenProgram {
    fn drop(&mut self) {
        // At the end of its input, it ends and takes the rest with it.
        self.assay.stdin = None;
        self.assay.wait().unwrap();
    }
}

/// Returns how many of some moments to try: a third, unless all are asked for.
fn tries(moments: u64) -> u64 {
    if std::env::var_os("ASSAY_TEST_ALL").is_some() { moments } else { moments / 3 }
}

fn nothing_of_a_frozen_server_outlives_assay_or_guard_or_server<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let stopped = StoppedServer::create(&place);
    let mut random = Random::new(7);

    for moment in 0..tries(20) {
        for kind in 0..4 {
            let means = MEANS[(moment % 2) as usize];
            let frozen = stopped.start_frozen(means);
            let mut attached = None;
            eventually("it answers", || {
                attached = S::attach(&stopped.url).ok();
                attached.is_some() || !is_alive(frozen.program)
            });
            let [mut busy, _idle] = [(); 2].map(|()| attached.as_ref().unwrap().connect().unwrap());

            std::thread::scope(|scope| {
                scope.spawn(move || busy.query(S::SQL.work[1]).unwrap_err());
                let _rest = Rest(&stopped);
                std::thread::sleep(Duration::from_micros(random.below(20_000)));
                for &victim in &frozen.victims()[kind] {
                    signal(victim, Signal::KILL);
                }
                let what = format!("all ends after a kill of kind {kind}, {means}");
                within(5, &what, || stopped.processes().is_empty());
            });
            within(5, "the guard ends", || !is_running(frozen.guard));
        }
    }
}

/// A program that starts sessions of their own, which work and end, faster than it is frozen.
const RESTLESS: &str = "\
    while :; do setsid sh -c 'i=0; while [ $i -lt 500 ]; do i=$((i+1)); done' & \
    setsid sh -c ':' & wait -n 2>/dev/null || wait; done";

#[test]
fn processes_that_start_while_a_program_is_frozen_are_frozen_too() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    for means in MEANS {
        let guarded = Guarded::spawn(&shell(&exe, &log, RESTLESS)).unwrap();
        let mut freezer = freezer(&guarded, means);
        for _ in 0..tries(60) {
            freezer.freeze().unwrap();
            let guard = parent_of(guarded.pid());
            let tree: Vec<u32> = probe::process_tree(guard).into_iter().skip(1).collect();
            let before_ns = cpu_ns(&tree);
            assert!(tree.contains(&guarded.pid()) && work() > 0);
            assert_eq!(probe::process_tree(guard)[1..], tree);
            let used_ns = cpu_ns(&tree) - before_ns;
            assert!(used_ns < LEAVING_NS_MAX, "{used_ns}: {}", freezer.how());
            freezer.thaw().unwrap();
        }
    }
}

#[test]
fn a_program_that_waits_for_a_child_to_run_another_program_is_frozen() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    // The shell calls `vfork`. In each new program, the freezer knows no process yet.
    let script = "while :; do /bin/true; done";
    for means in MEANS {
        for _ in 0..tries(60) {
            let guarded = Guarded::spawn(&shell(&exe, &log, script)).unwrap();
            let mut freezer = freezer(&guarded, means);
            for _ in 0..3 {
                freezer.freeze().unwrap();
                freezer.thaw().unwrap();
            }
        }
    }
}

#[test]
fn a_frozen_program_handles_the_signal_that_stops_it() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let script = "trap 'exit 3' TERM; echo $$; while :; do sleep 0.01; done";
    for (index, means) in MEANS.into_iter().enumerate() {
        let mut guarded = Guarded::spawn(&shell(&exe, &log, script)).unwrap();
        pids(&log, index + 1);
        let mut freezer = freezer(&guarded, means);
        freezer.freeze().unwrap();
        let (ending, ended) =
            guarded.stop(&[(Ending::Terminate, Duration::from_secs(60))]).unwrap();
        assert_eq!((ending, ended.code()), (Ending::Terminate, Some(3)));
    }
}

#[test]
fn a_limited_program_is_frozen_in_the_group_that_limits_it() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let sleeping = shell(&exe, &log, "exec sleep 1000");
    // The group of another program stands for one with limits.
    let other = Guarded::spawn(&sleeping).unwrap();
    let other_freezer = Freezer::of(&other).unwrap();
    if let Freezing::Signals { reason } = other_freezer.how() {
        crate::say_skipped(reason);
        return;
    }
    let group = group_of(other.pid()).unwrap();
    let confinement = engine::guard::Confinement {
        groups: vec![engine::guard::ControlGroup {
            directory: group.clone(),
            home: group.parent().unwrap().to_path_buf(),
        }],
        ..Default::default()
    };

    let limited =
        Guarded::spawn(&Spawn { confinement: Some(&confinement), ..sleeping.clone() }).unwrap();
    let _freezer = Freezer::of(&limited).unwrap();
    assert_eq!(group_of(limited.pid()), Some(group.clone()));
    drop(limited);
    assert!(group.exists(), "whoever made it removes it");
    drop(other);
    assert!(!group.exists());
}

#[test]
fn several_freezers_of_a_program_use_one_group_which_goes_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let guarded = Guarded::spawn(&shell(&exe, &log, "exec sleep 1000")).unwrap();
    let mut first = freezer(&guarded, "group");
    let group = group_of(guarded.pid());
    let mut others = MEANS.map(|means| freezer(&guarded, means));
    assert_eq!(group_of(guarded.pid()), group);

    for freezer in &mut others {
        freezer.freeze().unwrap();
        freezer.thaw().unwrap();
    }
    first.freeze().unwrap();
    drop(guarded);
    assert!(group.is_none_or(|group| !group.exists()));
}

#[test]
fn a_killed_guard_leaves_no_group_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    // Only a program that handles this signal must be thawed for it.
    let script = "trap 'exit 3' QUIT; echo $$; while :; do sleep 0.01; done";
    let spawn = Spawn { orphaned: Ending::Quit, ..shell(&exe, &log, script) };
    for (index, means) in MEANS.into_iter().enumerate() {
        let guarded = Guarded::spawn(&spawn).unwrap();
        pids(&log, index + 1);
        let mut freezer = freezer(&guarded, means);
        let group = group_of(guarded.pid());
        freezer.freeze().unwrap();
        kill_guard_of(guarded.pid());
        eventually("the program ends", || !is_running(guarded.pid()));
        assert!(freezer.freeze().is_err());
        eventually("its group is removed", || group.as_ref().is_none_or(|group| !group.exists()));
    }
}

#[test]
fn a_program_in_its_own_group_keeps_the_time_of_its_ended_processes() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    // It reports each child that has ended.
    let script =
        "echo 1; while :; do (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done); echo 1; done";
    let guarded = Guarded::spawn(&shell(&exe, &log, script)).unwrap();
    let mut freezer = Freezer::of(&guarded).unwrap();
    if let Freezing::Signals { reason } = freezer.how() {
        crate::say_skipped(reason);
        return;
    }

    let mut tree = probe::TreeUse::open(guarded.pid()).unwrap();
    assert!(tree.includes_ended_processes());
    // Fields 14 to 17 are the times of the program and of its ended children, in ticks of 10 ms.
    let ticks = || -> u64 {
        let stat = fs_err::read_to_string(format!("/proc/{}/stat", guarded.pid())).unwrap();
        stat.split(' ').skip(13).take(4).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };

    freezer.freeze().unwrap();
    let (first, first_ticks) = (tree.read().unwrap(), ticks());
    freezer.thaw().unwrap();
    eventually("its children have used some time", || ticks() > first_ticks + 20);
    freezer.freeze().unwrap();
    let used = tree.read().unwrap() - first;

    // Each of the four is rounded down to a tick.
    let least_ns = (ticks() - first_ticks - 4) * 10_000_000;
    assert!(used.cpu_ns >= least_ns, "{} < {least_ns}", used.cpu_ns);
}
