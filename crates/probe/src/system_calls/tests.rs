use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::thread::{gettid, sched_yield};
use words::SystemCallSet;

use super::*;

#[path = "../../../engine/tests/it/skipped.rs"]
mod skipped;

/// Returns the events of all kinds; reports the test as skipped where they cannot be counted.
fn events() -> Option<SystemCallEvents> {
    match SystemCallEvents::open(SystemCallSet::All.names()) {
        Ok(events) => Some(events),
        Err(error) => {
            skipped::say_skipped(&format!("system calls cannot be counted here: {error}"));
            None
        }
    }
}

/// Makes a known number of system calls.
fn call(yields: u64, syncs: u64) {
    for _ in 0..yields {
        sched_yield();
    }
    let file = tempfile::tempfile().unwrap();
    for _ in 0..syncs {
        rustix::fs::fdatasync(&file).unwrap();
    }
}

/// A thread that waits for orders: how many calls to make, and how many threads that make as many
/// to start before.
struct Worker {
    tid: u32,
    orders: Sender<Order>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

struct Order {
    yields: u64,
    syncs: u64,
    helpers: u64,
}

impl Worker {
    fn spawn() -> Self {
        let (orders, inbox) = channel::<Order>();
        let (report, done) = channel();
        let (tell, tid) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            for Order { yields, syncs, helpers } in inbox {
                let begun = (0..helpers).map(|_| std::thread::spawn(move || call(yields, syncs)));
                let helpers: Vec<_> = begun.collect();
                call(yields, syncs);
                helpers.into_iter().for_each(|helper| helper.join().unwrap());
                report.send(()).unwrap();
            }
        });
        Self { tid: tid.recv().unwrap(), orders, done, thread }
    }

    fn work(&self, yields: u64, syncs: u64, helpers: u64) {
        self.orders.send(Order { yields, syncs, helpers }).unwrap();
        self.done.recv().unwrap();
    }

    fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}

#[test]
fn each_call_of_threads_that_begin_and_end_is_counted_once() {
    let Some(events) = events() else { return };
    let [stays, ends, other] = [(); 3].map(|()| Worker::spawn());
    stays.work(70, 7, 2);

    let counted = CountedThreads::Clients(vec![stays.tid, ends.tid]);
    let counting = events.begin(&counted).unwrap();
    stays.work(100, 3, 0);
    // Two helpers begin and end.
    stays.work(1000, 5, 2);
    ends.work(20, 1, 1);
    ends.end();
    other.work(5000, 50, 1);
    let counts = counting.end().unwrap();
    stays.work(1, 1, 0);

    assert_eq!(counts.calls["sched_yield"], 100 + 3 * 1000 + 2 * 20, "{counts:?}");
    assert_eq!(counts.calls["fdatasync"], 3 + 3 * 5 + 2, "{counts:?}");
    assert_eq!(counts.calls["fsync"], 0, "{counts:?}");
    assert_eq!(counts.threads, 2);
    assert_eq!(counts.missing, None);
    stays.end();
    other.end();
}

#[test]
fn the_processes_of_a_server_are_counted_also_those_that_begin_and_end() {
    let Some(events) = events() else { return };
    let directory = tempfile::tempdir().unwrap();
    // Each `dd` is a process that begins and ends. The shell in the background is there before.
    let script = "dd_of() { dd if=/dev/zero of=$1 bs=1 count=1 conv=$2 2>/dev/null; }
        (read go < pipe; dd_of d fdatasync; echo done > back) &
        dd_of a fdatasync; echo ready; read go
        dd_of a fdatasync; dd_of b fdatasync; dd_of c fsync
        echo go > pipe; read done < back; echo done; read end";
    for pipe in ["pipe", "back"] {
        let made = Command::new("mkfifo").arg(directory.path().join(pipe)).status();
        assert!(made.unwrap().success());
    }
    let mut server = Command::new("sh")
        .args(["-c", script])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");

    let counted = CountedThreads::Server { pid: server.id(), except: None };
    let counting = events.begin(&counted).unwrap();
    input.write_all(b"go\n").unwrap();
    output.read_line(&mut line).unwrap();
    let counts = counting.end().unwrap();
    input.write_all(b"end\n").unwrap();
    server.wait().unwrap();

    assert_eq!(line, "ready\ndone\n");
    let of = |name: &str| counts.calls[name];
    assert_eq!((of("fdatasync"), of("fsync")), (3, 1), "{counts:?}");
    assert_eq!(counts.threads, 2, "{counts:?}");
}

#[test]
fn the_thread_of_the_observer_is_left_out() {
    let own = std::process::id();
    let worker = Worker::spawn();
    let all = CountedThreads::Server { pid: own, except: None }.now();
    let without = CountedThreads::Server { pid: own, except: Some(worker.tid) }.now();
    assert!(all.contains(&worker.tid) && !without.contains(&worker.tid));
    worker.end();
}

#[test]
fn threads_without_a_name_of_their_own_are_not_the_library_s() {
    let (tell, tid) = channel();
    let (end, ended) = channel::<()>();
    let named = std::thread::Builder::new().name("flush:0".into()).spawn(move || {
        tell.send(gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
        let _ = ended.recv();
    });
    let tid = tid.recv().unwrap();
    let main = std::process::id();
    let threads = CountedThreads::Library(Vec::new()).now();
    assert!(threads.contains(&tid) && !threads.contains(&main), "{threads:?}");
    let threads = CountedThreads::Library(vec![main]).now();
    assert!(threads.contains(&main), "a client has any name: {threads:?}");
    drop(end);
    named.unwrap().join().unwrap();
}

#[test]
fn with_too_few_open_files_the_last_kinds_are_left_out() {
    let Some(mut events) = events() else { return };
    let [one, two] = [(); 2].map(|()| Worker::spawn());
    events.files_max = 5;
    let counted = CountedThreads::Clients(vec![one.tid, two.tid]);
    let counting = events.begin(&counted).unwrap();
    one.work(10, 4, 0);
    let counts = counting.end().unwrap();
    let counted_kinds: Vec<&str> = counts.calls.keys().map(String::as_str).collect();
    assert_eq!(counted_kinds, ["fdatasync", "fsync"]);
    assert_eq!(counts.calls["fdatasync"], 4);
    assert!(counts.left_out.iter().any(|name| name == "sched_yield"), "{counts:?}");

    events.files_max = 1;
    let error = events.begin(&counted).err().unwrap().to_string();
    assert!(error.starts_with("2 threads need more counters than open files"), "{error}");
    one.end();
    two.end();
}

#[test]
fn a_kind_that_the_machine_lacks_is_left_out_and_not_zero() {
    let Some(events) = SystemCallEvents::open(&["fdatasync", "no_such_call"]).ok() else {
        skipped::say_skipped("system calls cannot be counted here");
        return;
    };
    let worker = Worker::spawn();
    let counting = events.begin(&CountedThreads::Clients(vec![worker.tid])).unwrap();
    let counts = counting.end().unwrap();
    assert_eq!(counts.calls.get("no_such_call"), None);
    assert_eq!(counts.left_out, ["no_such_call"]);
    worker.end();
}

#[test]
fn without_tracepoints_the_reason_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let error = SystemCallEvents::open_in(empty.path(), &["fsync"]).err().unwrap().to_string();
    assert!(error.contains("mount -t tracefs"), "{error}");

    // An ID that belongs to no tracepoint.
    let event = empty.path().join("sys_enter_fsync");
    fs_err::create_dir(&event).unwrap();
    let mut id = fs_err::File::create(event.join("id")).unwrap();
    id.write_all(b"4294967295\n").unwrap();
    let error = SystemCallEvents::open_in(empty.path(), &["fsync"]).err().unwrap().to_string();
    assert!(error.starts_with("the kernel does not count them"), "{error}");
}
