//! Tests of the states of connections and of the engine's threads.

use super::thread::parse;
use super::*;

#[test]
fn recorded_files_are_parsed() {
    let state = |state| Some(Activity::State(state));
    assert_eq!(parse("running\n"), state(ConnectionState::Runnable));
    assert_eq!(parse("-1 0x7ffd470a0bd8 0x7ff4c094a2ad\n"), state(ConnectionState::Read));
    let call = |number: i64| parse(&format!("{number} 0x3 0x7ff4c07ce000 0x20000 0x0\n"));
    assert_eq!(call(libc::SYS_fdatasync), state(ConnectionState::Fsync));
    assert_eq!(call(libc::SYS_pread64), state(ConnectionState::Read));
    assert_eq!(call(libc::SYS_futex), state(ConnectionState::Lock));
    assert_eq!(call(libc::SYS_recvfrom), Some(Activity::Message));
    assert_eq!(call(libc::SYS_getpid), state(ConnectionState::Other));
    assert_eq!(parse(""), None);
}

/// Creates a copy of `/proc` with the call of each thread.
fn proc_with(calls: &[(u32, String)]) -> (tempfile::TempDir, Proc) {
    let root = tempfile::tempdir().unwrap();
    for (tid, call) in calls {
        let folder = root.path().join(format!("proc/{tid}"));
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("syscall"), call).unwrap();
    }
    let proc = Proc::at(root.path());
    (root, proc)
}

#[test]
fn the_state_of_a_connection_is_that_of_the_working_thread() {
    let reply = format!("{} 0x3", libc::SYS_recvfrom);
    let fsync = format!("{} 0x5", libc::SYS_fdatasync);
    let (_root, proc) = proc_with(&[
        (1, reply.clone()),
        (2, fsync),
        (3, "running".to_owned()),
        (4, reply.clone()),
        (5, reply.clone()),
        (6, reply),
        (8, "running".to_owned()),
    ]);
    let watched = |client, server| WatchedConnection { client, server };
    let connections = [
        watched(1, Some(2)),
        watched(3, Some(4)),
        watched(5, Some(6)),
        watched(3, None),
        watched(3, Some(8)),
        watched(3, Some(2)),
        // There is no such thread.
        watched(7, None),
    ];
    let mut states = ThreadStates::at(proc, &connections);
    states.sample();
    states.sample();
    let count = |index: usize, state: ConnectionState| states.counts()[index][state as usize];
    assert_eq!(count(0, ConnectionState::Fsync), 2);
    assert_eq!(count(1, ConnectionState::Runnable), 2);
    assert_eq!(count(2, ConnectionState::Handover), 2);
    assert_eq!(count(3, ConnectionState::Runnable), 2);
    assert_eq!(count(4, ConnectionState::Overlap), 2);
    assert_eq!(count(5, ConnectionState::Runnable), 2);
    assert_eq!(states.counts()[6], StateCounts::default());
}

#[test]
fn a_thread_whose_peer_is_elsewhere_waits_for_messages() {
    let (_root, proc) = proc_with(&[
        (1, format!("{} 0x3", libc::SYS_recvfrom)),
        (2, format!("{} 0x5", libc::SYS_fdatasync)),
    ]);
    let mut states = ThreadStates::of_one_side_at(proc, &[Some(1), None, Some(2)]);
    states.sample();
    let count = |index: usize, state: ConnectionState| states.counts()[index][state as usize];
    assert_eq!(count(0, ConnectionState::Handover), 1);
    assert_eq!(states.counts()[1], StateCounts::default());
    assert_eq!(count(2, ConnectionState::Fsync), 1);
}

#[test]
fn a_server_that_waits_with_another_event_set_waits_for_a_lock() {
    let wait = |set: &str| format!("{} {set} 0x7ff4 0x1 0xffffffff", libc::SYS_epoll_pwait);
    let reply = format!("{} 0x3", libc::SYS_recvfrom);
    let (root, proc) = proc_with(&[(1, reply), (2, wait("0x5"))]);
    let watched = WatchedConnection { client: 1, server: Some(2) };
    let mut states = ThreadStates::at(proc, &[watched]);
    states.sample();
    fs_err::write(root.path().join("proc/2/syscall"), wait("0x8")).unwrap();
    states.sample();
    let count = |state: ConnectionState| states.counts()[0][state as usize];
    assert_eq!(count(ConnectionState::Handover), 1);
    assert_eq!(count(ConnectionState::Lock), 1);
}

#[test]
fn a_blocked_thread_of_this_process_is_waiting() {
    let (send, tid) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        send.send(own.cast_unsigned()).unwrap();
        let _ = wait.recv();
    });
    let client = tid.recv().unwrap();
    let server = None;
    let mut states = ThreadStates::new(&[WatchedConnection { client, server }]);
    let waits = |states: &ThreadStates| states.counts()[0][ConnectionState::Lock as usize];
    while waits(&states) == 0 {
        states.sample();
        std::thread::yield_now();
    }
    drop(go);
    thread.join().unwrap();
    // The kernel wakes who waits for a thread before it forgets the thread.
    while std::path::Path::new(&format!("/proc/self/task/{client}")).exists() {
        std::thread::yield_now();
    }
    let before = states.counts()[0];
    states.sample();
    assert_eq!(states.counts()[0], before, "the thread has ended");
}

#[test]
fn the_engines_threads_are_seen_with_what_the_kernel_waits_for() {
    let reply = format!("{} 0x3", libc::SYS_recvfrom);
    let fsync = format!("{} 0x5", libc::SYS_fdatasync);
    let futex = format!("{} 0x5", libc::SYS_futex);
    let calls = [
        (1, reply.clone()),
        (2, fsync.clone()),
        (3, reply),
        (4, futex),
        (10, "running".to_owned()),
        (11, fsync.clone()),
        (12, fsync),
        (13, "running".to_owned()),
    ];
    let (root, proc) = proc_with(&calls);
    let write = |path: &str, text: &str| {
        let path = root.path().join("proc").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    };
    for tid in [2, 4, 10, 11, 12, 13] {
        write(&format!("9/task/{tid}/comm"), "");
        write(&format!("{tid}/comm"), &format!("rocksdb:low{tid}"));
    }
    write("9/comm", "server");
    write("2/wchan", "jbd2_log_wait_commit");
    write("11/wchan", "0");
    let stat = |state: char| format!("1 (a) {state} 1 {}", "0 ".repeat(48));
    write("11/stat", &stat('D'));
    // A thread that does not wait for storage has no work.
    write("12/stat", &stat('S'));
    let watched = |client, server| WatchedConnection { client, server };
    let connections = [watched(1, Some(2)), watched(3, Some(4))];
    let mut states = ThreadStates::at(proc, &connections).with_engine(false, vec![9], Some(13));
    for _ in 0..=SAMPLES_PER_ENGINE_SAMPLE {
        states.sample();
    }
    let samples = |states: &[(&str, u64)], samples| {
        let states = states.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let states = states.collect();
        StateSamples { samples, states }
    };
    let served = samples(&[("fsync:jbd2_log_wait_commit", 2), ("lock", 2)], 2.0);
    let background = samples(&[("rocksdb:low fsync", 2), ("rocksdb:low running", 2)], 2.0);
    let expected = [(WaitView::Kernel, served), (WaitView::Background, background)];
    assert_eq!(states.take_state_samples(), expected);
    assert_eq!(states.take_state_samples(), []);
}

#[test]
fn all_connections_take_turns_in_samples_of_the_engine() {
    let idle = format!("{} 0x3", libc::SYS_recvfrom);
    let calls = (1..=32).map(|tid| match tid {
        20 => (tid, "running".to_owned()),
        _ => (tid, idle.clone()),
    });
    let (_root, proc) = proc_with(&calls.collect::<Vec<_>>());
    let watched = |client| WatchedConnection { client, server: None };
    let connections: Vec<_> = (1..=32).map(watched).collect();
    let states = ThreadStates::at(proc, &connections);
    let mut states = states.with_engine(true, Vec::new(), None);
    for _ in 0..4 * SAMPLES_PER_ENGINE_SAMPLE {
        states.sample();
    }
    // Four samples of a half each.
    let [(WaitView::Kernel, samples)] = &states.take_state_samples()[..] else {
        panic!("only this view applies");
    };
    assert_eq!(samples.samples, 2.0);
    assert_eq!(samples.states, [("running".to_owned(), 2)].into());
    // The others have turns of their own.
    let busy = |index: usize| states.counts()[index][ConnectionState::Runnable as usize];
    assert_eq!(busy(19), 20);
}

#[test]
fn threads_that_can_not_be_read_are_not_idle() {
    // As of another user's server.
    let (root, proc) = proc_with(&[]);
    fs_err::create_dir_all(root.path().join("proc/9/task/10")).unwrap();
    let watched = WatchedConnection { client: 1, server: Some(2) };
    let states = ThreadStates::at(proc, &[watched]);
    let mut states = states.with_engine(false, vec![9], None);
    states.sample();
    assert_eq!(states.take_state_samples(), []);
}

#[test]
fn an_unknown_thread_of_the_engine_makes_its_view_not_applicable() {
    let (_root, proc) = proc_with(&[(1, "running".to_owned())]);
    let watched = |client| WatchedConnection { client, server: None };
    let states = |is_embedded| {
        let states = ThreadStates::at(proc.clone(), &[watched(1)]);
        let mut states = states.with_engine(is_embedded, Vec::new(), None);
        states.sample();
        states.take_state_samples()
    };
    assert_eq!(states(false), []);
    assert_eq!(states(true)[0].1.states, [("running".to_owned(), 1)].into());
}
