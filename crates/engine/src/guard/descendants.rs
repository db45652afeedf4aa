//! The processes that descend from one, from /proc.

use fs_err as fs;

/// All living descendants of the process `root`, without itself: zombies are not alive.
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
    below(root, &processes)
}

/// A process's id, its state, and its parent's id.
type Process = (u32, char, u32);

/// The living ones of `processes` that descend from `root`. They were looked at one after the other: one may have
/// been a child still of what had ended when that was looked at, so zombies lead on.
fn below(root: u32, processes: &[Process]) -> Vec<u32> {
    let mut found = vec![(root, 'Z')];
    let mut next = 0;
    while let Some(&(above, _)) = found.get(next) {
        let children = processes.iter().filter(|(.., parent)| *parent == above);
        found.extend(children.map(|&(pid, state, _)| (pid, state)));
        next += 1;
    }
    let living = found.into_iter().filter(|(_, state)| *state != 'Z');
    living.map(|(pid, _)| pid).collect()
}

/// Returns whether a process lives: a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    probe::state_and_parent(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_found_behind_the_dead() {
        let processes = [
            (5, 'S', 10),
            (10, 'Z', 7),
            (11, 'R', 7),
            (12, 'S', 11),
            (13, 'S', 1),
        ];
        assert_eq!(below(7, &processes), [11, 5, 12]);
        assert_eq!(below(12, &processes), [0; 0]);
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        assert!(is_alive(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
