//! Puts threads of real servers, which run as another user if assay is root, on processors.

use engine::Session;
use engine::placement::{own_cpus, set_thread_cpus, set_tree_cpus};
use words::{format_cpus, parse_cpus};

use crate::server::{ServerDir, TestServer, on_each_server};

on_each_server!(a_server_and_the_thread_that_serves_a_session_are_placed);

/// Returns the processors of a thread; `None` if it has ended.
fn cpus_of(process: u32, thread: u32) -> Option<Vec<u32>> {
    let path = format!("/proc/{process}/task/{thread}/status");
    let status = fs_err::read_to_string(path).ok()?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    parse_cpus(cpus.trim())
}

fn a_server_and_the_thread_that_serves_a_session_are_placed<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let own = own_cpus().unwrap();
    let (first, last) = (own[0], own[own.len() - 1]);
    let place = ServerDir::<S>::new();
    let server = place.start(&[]).unwrap();
    let mut session = server.connect().unwrap();
    let thread = session.server_thread().unwrap();

    let pid = server.process_id().unwrap();
    set_tree_cpus(pid, &[last]).unwrap();
    set_thread_cpus(thread, &[first]).unwrap();
    assert_eq!(cpus_of(pid, pid), Some(vec![last]));
    assert_eq!(cpus_of(thread, thread), Some(vec![first]));
    for process in probe::process_tree(pid) {
        for tid in probe::threads_of(process) {
            let expected = if tid == thread { first } else { last };
            let actual = cpus_of(process, tid);
            assert!(actual.is_none_or(|cpus| cpus == [expected]), "{process} {tid}");
        }
    }
    assert_eq!(own_cpus().unwrap(), own, "{}", format_cpus(&own));

    // A new connection inherits the server's processors.
    let mut other = server.connect().unwrap();
    let thread = other.server_thread().unwrap();
    assert_eq!(cpus_of(thread, thread), Some(vec![last]));
    assert_eq!(other.query_i64("select 6 * 7").unwrap(), Some(42));
    drop((session, other));
    server.stop().unwrap();
}
