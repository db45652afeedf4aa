//! Programs of builds don't run as root.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The user and the group `nobody`, if `/etc/passwd` has none.
const NOBODY: (u32, u32) = (65534, 65534);

/// Lets a program run as the user `nobody`, if this process runs as root.
pub fn unprivileged(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null());
    if let Some((user, group)) = other_user() {
        // `nobody` may not be able to enter the current directory.
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

/// Returns the user and the group with which programs of builds run, if this process runs as root.
pub fn other_user() -> Option<(u32, u32)> {
    rustix::process::geteuid().is_root().then(|| nobody().unwrap_or(NOBODY))
}

/// Returns the user and the group of `nobody` in `/etc/passwd`.
fn nobody() -> Option<(u32, u32)> {
    let users = fs_err::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("nobody:"))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
