use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::*;

/// A simulated `/proc`.
struct Host {
    dir: tempfile::TempDir,
    births: u64,
    tree: Tree,
}

impl Host {
    fn new(root: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("proc")).unwrap();
        Self { dir, births: 100, tree: Tree::new(root) }
    }

    /// Sets a process's own and children's user time. System time is ten times as much.
    fn set(&mut self, pid: u32, parent: u32, own: u64, reaped: u64) {
        self.start(pid, parent, u64::from(pid), own, reaped);
    }

    fn start(&mut self, pid: u32, parent: u32, started: u64, own: u64, reaped: u64) {
        let directory = self.dir.path().join("proc").join(pid.to_string());
        if !directory.exists() {
            self.births += 1;
        }
        fs_err::create_dir_all(&directory).unwrap();
        let stat = format!(
            "{pid} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {own} {} {reaped} {} 20 0 1 0 {started} 1000 {} 0",
            own * 10,
            reaped * 10,
            100 + pid
        );
        fs_err::write(directory.join("stat"), stat).unwrap();
        fs_err::write(directory.join("statm"), format!("1000 {} 40 0 0 0 0\n", 100 + pid)).unwrap();
    }

    fn end(&self, pid: u32) {
        fs_err::remove_dir_all(self.dir.path().join("proc").join(pid.to_string())).unwrap();
    }

    fn sample(&mut self) -> TreeSample {
        self.tree.sample(&Proc::at(self.dir.path()), self.births, &mut Vec::new()).unwrap()
    }

    /// Returns the user time, and checks that system time is ten times as much.
    fn user(&mut self) -> u64 {
        let cpu = self.sample().cpu;
        assert_eq!(cpu.system, cpu.user * 10);
        cpu.user
    }
}

#[test]
fn the_tree_is_the_root_and_its_descendants() {
    let mut host = Host::new(10);
    host.set(1, 0, 1000, 1000);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.set(12, 11, 9, 0);
    host.set(20, 1, 500, 0);
    let sample = host.sample();
    assert_eq!((sample.cpu.user, sample.process_count), (21, 3));
    // 110, 111 and 112 pages; 40 of each process are shared.
    assert_eq!(
        (sample.resident_pages_max, sample.shared_pages_max, sample.private_pages),
        (112, 40, 213)
    );
    assert_eq!(sample.io, None);
}

#[test]
fn the_time_of_an_ended_backend_moves_to_its_parent() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    assert_eq!(host.user(), 12);
    host.end(11);
    host.set(10, 1, 6, 9);
    assert_eq!(host.user(), 15);
    // A process starts and ends between two samples.
    host.births += 1;
    host.set(10, 1, 6, 30);
    assert_eq!(host.user(), 36);
}

#[test]
fn time_is_kept_if_a_parent_does_not_wait() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.set(12, 10, 8, 0);
    assert_eq!(host.user(), 20);
    host.end(11);
    host.set(10, 1, 6, 0);
    assert_eq!(host.user(), 21);
    // The parent waits for this child.
    host.end(12);
    host.set(10, 1, 6, 8);
    assert_eq!(host.user(), 21);
    host.set(10, 1, 7, 8);
    assert_eq!(host.user(), 22);
}

#[test]
fn time_moves_past_a_parent_that_ended_too() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.set(12, 11, 100, 0);
    assert_eq!(host.user(), 112);
    host.end(12);
    host.end(11);
    host.set(10, 1, 5, 107);
    assert_eq!(host.user(), 112);
}

#[test]
fn a_process_that_lost_its_parent_stays_a_member() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.set(12, 11, 100, 0);
    host.sample();
    host.end(11);
    host.set(10, 1, 5, 7);
    host.set(12, 1, 110, 0);
    assert_eq!(host.user(), 122);
    // Its child is a member too, and no member receives the child's time.
    host.set(13, 12, 3, 0);
    assert_eq!(host.user(), 125);
    host.end(13);
    host.end(12);
    assert_eq!(host.user(), 125);
}

#[test]
fn a_child_that_ends_while_the_tree_is_found_counts_once() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 2, 0);
    host.set(12, 11, 7, 0);
    let proc = Proc::at(host.dir.path());
    host.tree.find_members(&proc, host.births, &mut Vec::new()).unwrap();
    // The child was read before it ended and its parent after.
    host.end(12);
    host.set(11, 10, 2, 7);
    let stat = read_stat(&proc, 11, &mut None, false, &mut Vec::new()).unwrap().unwrap();
    host.tree.members[1] = Member::new(11, stat);
    assert_eq!(host.user(), 14);
}

#[test]
fn an_inconsistent_reading_never_reports_too_much() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.sample();
    // Processes end faster than they are read: the parent may have the time of a process in `gone`.
    host.end(11);
    host.set(10, 1, 5, 7);
    let proc = Proc::at(host.dir.path());
    assert!(!host.tree.read_members(&proc, &mut Vec::new()).unwrap());
    assert_eq!(host.tree.report().cpu.user, 12);
    assert_eq!(host.user(), 12);
}

#[test]
fn a_reused_process_id_is_another_process() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 7, 0);
    host.sample();
    host.start(11, 1, 999, 5000, 0);
    host.set(10, 1, 5, 7);
    assert_eq!(host.sample().process_count, 1);
    assert_eq!(host.user(), 12);
}

#[test]
fn the_cpu_time_of_an_ended_server_is_kept() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 2);
    host.set(11, 10, 7, 0);
    host.sample();
    host.end(11);
    host.end(10);
    assert_eq!(host.user(), 14);
    host.start(10, 1, 999, 1, 1);
    assert_eq!(host.user(), 14);
    assert_eq!(host.sample().process_count, 0);
    assert_eq!(Host::new(10).sample(), TreeSample::default());
}

#[test]
fn time_that_moves_to_a_parent_between_two_readings_counts_once() {
    let mut host = Host::new(10);
    host.set(10, 1, 5, 0);
    host.set(11, 10, 5, 0);
    host.set(12, 11, 4, 0);
    host.set(13, 10, 1, 0);
    assert_eq!(host.user(), 15);

    let read = |host: &mut Host| {
        let proc = Proc::at(host.dir.path());
        host.tree.read_members(&proc, &mut Vec::new()).unwrap()
    };
    host.end(12);
    host.set(11, 10, 5, 4);
    assert!(!read(&mut host));
    host.end(11);
    host.set(10, 1, 5, 9);
    assert!(!read(&mut host));
    host.end(13);
    host.set(10, 1, 5, 10);
    assert_eq!(host.user(), 15);
}

/// A shell that runs a script, then prints its own and its children's times, and `done`.
struct Shell {
    child: Child,
    stdin: Option<ChildStdin>,
    dir: tempfile::TempDir,
}

impl Shell {
    /// Runs a script, which should end soon after the file `$STOP` exists.
    fn run(script: &str) -> (Self, BufReader<std::process::ChildStdout>) {
        let script = format!("{script}\nwait\ntimes\necho done\nread answer");
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env("STOP", dir.path().join("stop"))
            // In other locales, some shells print `0m0,01s`.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        (Self { child, stdin, dir }, stdout)
    }

    fn stop(&self) -> std::io::Result<()> {
        fs_err::write(self.dir.path().join("stop"), "")
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.stop();
        if let Some(mut stdin) = self.stdin.take() {
            let _ = stdin.write_all(b"\n");
        }
        let _ = self.child.wait();
    }
}

/// Parses a time such as `0m1.230s` as centiseconds.
fn centiseconds(text: &str) -> u64 {
    let (minutes, seconds) = text.split_once('m').unwrap();
    let seconds: f64 = seconds.trim_end_matches('s').parse().unwrap();
    minutes.parse::<u64>().unwrap() * 6000 + (seconds * 100.0).round() as u64
}

/// Returns the sum of user and system time in hundredths of a second.
fn hundredths(cpu: Ticks) -> u64 {
    (cpu.user + cpu.system) * 100 / rustix::param::clock_ticks_per_second()
}

#[test]
fn cpu_time_of_real_children_that_end_is_complete_and_never_decreases() {
    // Three generations of processes use CPU time and end while samples are taken without pause.
    // The number of rounds depends on the machine.
    let script = r#"
        export BURN='i=0; while [ $i -lt 15000 ]; do i=$((i+1)); done'
        export CHILD='sh -c "$BURN" & eval "$BURN"; wait'
        round=0
        until { [ $round -ge 8 ] && [ -e "$STOP" ]; } || [ $round = 1000 ]; do
            round=$((round+1))
            sh -c "$BURN" &
            sh -c "$CHILD" &
            eval "$BURN"
            wait
        done"#;
    let (shell, stdout) = Shell::run(script);
    let reader = std::thread::spawn(move || {
        let lines = stdout.lines().map_while(Result::ok);
        lines.take_while(|line| line != "done").collect::<Vec<String>>()
    });
    let proc = Proc::live();
    let mut buffer = Vec::new();
    let mut tree = Tree::new(shell.child.id());
    let mut take_sample = |before: TreeSample| {
        let stat = fs_err::read_to_string("/proc/stat").unwrap();
        let births = crate::parse::required_value(&stat, "processes").unwrap();
        let sample = tree.sample(&proc, births, &mut buffer).unwrap();
        assert!(sample.cpu.user >= before.cpu.user && sample.cpu.system >= before.cpu.system);
        sample
    };
    let mut last = TreeSample::default();
    let mut process_count_max = 0;
    while !reader.is_finished() {
        last = take_sample(last);
        process_count_max = process_count_max.max(last.process_count);
        if process_count_max >= 4 && hundredths(last.cpu) >= 50 {
            shell.stop().unwrap();
        }
    }
    last = take_sample(last);
    let lines = reader.join().unwrap();
    let times: Vec<u64> = lines.iter().flat_map(|line| line.split(' ')).map(centiseconds).collect();
    let [user, system, children_user, children_system] = times[..] else { panic!("{lines:?}") };

    assert!(process_count_max >= 4, "{process_count_max}");
    assert_eq!(last.process_count, 1);
    assert!(children_user + children_system > 5, "the children used no CPU time: {lines:?}");
    let measured = hundredths(last.cpu);
    let expected = user + system + children_user + children_system;
    // Both sums have four figures that are rounded to a hundredth of a second.
    assert!(
        measured.abs_diff(expected) <= 4,
        "measured {measured}, expected {expected} hundredths of a second"
    );
}
