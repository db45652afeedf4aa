//! The processes and threads of this machine, as they are now.

use crate::Proc;
use crate::parse::parse_process_stat;

/// Returns the state of a process on this machine, a letter, and its parent's process ID; `None` if
/// there is no such process.
pub fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let text = Proc::live().text(format!("proc/{pid}/stat"))?;
    let stat = parse_process_stat(&text).ok()?;
    Some((stat.state, stat.parent))
}

/// Returns the CPU time of a process on this machine and of all its threads, in ticks of
/// `sysconf(_SC_CLK_TCK)`; `None` if there is no such process.
pub fn cpu_ticks(pid: u32) -> Option<u64> {
    let text = Proc::live().text(format!("proc/{pid}/stat"))?;
    let stat = parse_process_stat(&text).ok()?;
    Some(stat.own.user + stat.own.system)
}

/// Returns the state of a thread on this machine, a letter; `None` if there is no such thread.
pub fn state_of_thread(process: u32, thread: u32) -> Option<char> {
    let text = Proc::live().text(format!("proc/{process}/task/{thread}/stat"))?;
    parse_process_stat(&text).ok().map(|stat| stat.state)
}

/// Returns the threads of a process on this machine, as they are now; none if it has ended.
pub fn threads_of(process: u32) -> Vec<u32> {
    let entries = fs_err::read_dir(Proc::live().path(format!("proc/{process}/task")));
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// Returns the children of all threads of a process on this machine; `None` if the process has
/// ended, or the kernel does not list them (`CONFIG_PROC_CHILDREN`). A child may be missing while a
/// sibling ends.
pub fn children_of(process: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    let mut is_listed = false;
    for thread in threads_of(process) {
        let file = Proc::live().path(format!("proc/{process}/task/{thread}/children"));
        // The thread may have ended.
        let Ok(text) = fs_err::read_to_string(file) else { continue };
        is_listed = true;
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    is_listed.then_some(children)
}

/// Returns a process and its descendants, like [`process_tree`]. Reads only their own files where
/// the kernel lists children, and otherwise those of all processes.
pub(crate) fn quick_process_tree(root: u32) -> Vec<u32> {
    if children_of(root).is_none() {
        return process_tree(root);
    }

    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&parent) = tree.get(at) {
        tree.extend(children_of(parent).unwrap_or_default());
        at += 1;
    }
    tree
}

/// Returns a process and its descendants, as they are now.
pub fn process_tree(root: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in fs_err::read_dir(Proc::live().path("proc")).into_iter().flatten().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some((_, parent)) = state_and_parent(pid)
        {
            parents.push((pid, parent));
        }
    }

    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&parent) = tree.get(at) {
        let children = parents.iter().filter(|(_, parent_of)| *parent_of == parent);
        tree.extend(children.map(|(pid, _)| *pid));
        at += 1;
    }
    tree
}
