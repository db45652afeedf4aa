//! Real processes: the clocks of others cannot be made up.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Signal, kill_process};

use super::*;
use crate::state_and_parent;

/// A shell that works when it is told to, or starts a child that works until it is killed.
struct Shell {
    child: Child,
    output: BufReader<ChildStdout>,
}

const SCRIPT: &str = "\
    while read order; do \
        case $order in \
            work) i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done;; \
            start) (while :; do :; done) & echo $!;; \
        esac; \
    done";

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Gives an order, and returns the answer.
    fn order(&mut self, order: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Stops a process, so that its figures stay as they are.
fn stop(pid: u32) {
    signal(pid, Signal::STOP);
    while state_and_parent(pid).unwrap().0 != 'T' {
        std::thread::yield_now();
    }
}

#[test]
fn a_process_that_ends_while_its_group_is_looked_at_belongs_to_the_tree() {
    let tree = [10, 11];
    assert!(!has_others("10\n11\n", &tree, "10\n11\n"));
    assert!(!has_others("10\n11\n12\n", &tree, "10\n11\n"), "12 has ended");
    assert!(!has_others("10\n", &tree, "10\n13\n"), "13 was started by one of the tree");
    assert!(has_others("10\n12\n", &tree, "10\n12\n"));
}

#[test]
fn the_use_of_a_process_is_exact() {
    let mut shell = Shell::start();
    let mut tree = TreeUse::open(shell.id()).unwrap();
    // The shell is in the group of this process.
    assert!(!tree.includes_ended_processes());
    let first = tree.read().unwrap();
    shell.order("work");
    stop(shell.id());

    let reading = tree.read().unwrap();
    assert_eq!(tree.read().unwrap(), reading);
    assert_eq!(ThreadTime::of(shell.id()).read_ns(), Some(reading.cpu_ns));
    let stat = fs_err::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!(reading.minor_faults.to_string(), fields[9]);
    assert_eq!(reading.major_faults.to_string(), fields[11]);

    let used = reading - first;
    assert!(used.cpu_ns > 0 && used.voluntary_switches > 0, "{used:?}");
    assert!(reading.minor_faults > 0);
    signal(shell.id(), Signal::CONT);
}

#[test]
fn a_child_counts_once_it_is_found_and_what_it_used_stays() {
    let mut shell = Shell::start();
    let mut tree = TreeUse::open(shell.id()).unwrap();
    let child: u32 = shell.order("start").parse().unwrap();
    // Whenever its processor is taken from it.
    while ThreadTime::of(child).read_ns() < Some(1_000_000) {
        std::thread::yield_now();
    }
    stop(shell.id());
    stop(child);
    let childs_ns = ThreadTime::of(child).read_ns().unwrap();

    let without = tree.read().unwrap();
    tree.rescan().unwrap();
    let with = tree.read().unwrap();
    assert_eq!((with - without).cpu_ns, childs_ns);

    signal(child, Signal::KILL);
    signal(shell.id(), Signal::CONT);
    // It waits for its child, or not.
    shell.order("work");
    drop(shell);
    tree.rescan().unwrap();
    let after = tree.read().unwrap();
    assert_eq!(with - after, TreeReading::default(), "nothing decreases: {with:?} {after:?}");
}

#[test]
fn threads_of_this_process_count() {
    let mut own = TreeUse::open(std::process::id()).unwrap();
    let before = own.read().unwrap();
    let (has_worked, may_end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let own =
                ThreadTime::of(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
            has_worked.wait();
            may_end.wait();
            own
        });
        has_worked.wait();
        own.rescan().unwrap();
        assert!(own.read().unwrap().voluntary_switches > before.voluntary_switches);
        may_end.wait();
        let mut ended = thread.join().unwrap();
        while ended.read_ns().is_some() {
            std::thread::yield_now();
        }
    });
    let after = own.read().unwrap();
    assert!(after.cpu_ns > before.cpu_ns && after.voluntary_switches > before.voluntary_switches);
}
