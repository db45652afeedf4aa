//! Finds the descendants of a process in `/proc`.

use fs_err as fs;

/// Returns all living descendants of the process `root`, without itself. Zombies are not alive.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };

    let processes: Vec<Process> = entries
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let (state, parent) = probe::state_and_parent(pid)?;
            Some((pid, state, parent))
        })
        .collect();

    living_below(root, &processes)
}

/// A process ID, the state of the process, and its parent's ID.
type Process = (u32, char, u32);

/// Returns the living descendants of `root`. Includes the children of zombies, because the
/// processes were not read at the same moment.
fn living_below(root: u32, processes: &[Process]) -> Vec<u32> {
    // As a zombie, the root is not among the living.
    let mut tree = vec![(root, 'Z')];
    let mut next = 0;
    while let Some(&(current, _)) = tree.get(next) {
        let children = processes.iter().filter(|(.., parent)| *parent == current);
        tree.extend(children.map(|&(pid, state, _)| (pid, state)));
        next += 1;
    }

    let living = tree.into_iter().filter(|(_, state)| *state != 'Z');
    living.map(|(pid, _)| pid).collect()
}

/// Returns true when a process is alive. A zombie is not.
pub fn is_alive(pid: u32) -> bool {
    probe::state_and_parent(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_descendants_of_zombies_are_found() {
        let processes = [(5, 'S', 10), (10, 'Z', 7), (11, 'R', 7), (12, 'S', 11), (13, 'S', 1)];
        assert_eq!(living_below(7, &processes), [11, 5, 12]);
        assert_eq!(living_below(12, &processes), [0; 0]);
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        assert!(is_alive(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
