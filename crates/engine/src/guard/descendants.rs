//! The processes that descend from one, from /proc.

use fs_err as fs;

/// All living descendants of the process `root`, without itself: zombies are not alive.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (state, parent) = state_and_parent(&stat)?;
            (state != 'Z').then_some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            processes
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// Whether a process lives: a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| state_and_parent(&stat))
        .is_some_and(|(state, _)| state != 'Z')
}

/// The state and the parent's id in the text of /proc/PID/stat. The name before them may hold anything, parentheses
/// included.
fn state_and_parent(stat: &str) -> Option<(char, u32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        assert_eq!(
            state_and_parent("12 (a) S 7 (b) Z 9) R 11 12 12 0"),
            Some(('R', 11))
        );
        assert_eq!(state_and_parent("12 (a"), None);
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
