//! The server's threads that serve connections, on this host.

use std::path::Path;

use engine::Engine;
use workload::Task;

/// Finds the server threads of tasks, if the server is on this host.
pub fn find_server_threads(engine: &dyn Engine, tasks: &mut [Task]) {
    if engine.process_id().is_none() {
        return;
    }
    for task in tasks {
        task.server_thread = on_this_host(engine, task.program.server_thread());
    }
}

/// Returns a thread ID that the server reports, if it is one of the server's threads or children on
/// this host. In a container, or behind a proxy, the server reports thread IDs of another host.
pub fn on_this_host(engine: &dyn Engine, tid: Option<u32>) -> Option<u32> {
    let server = engine.process_id()?;
    tid.filter(|tid| is_thread_of(server, *tid))
}

fn is_thread_of(server: u32, tid: u32) -> bool {
    Path::new(&format!("/proc/{server}/task/{tid}")).exists()
        || probe::state_and_parent(tid).is_some_and(|(_, parent)| parent == server)
}
