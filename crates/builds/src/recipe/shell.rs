//! Runs the shell command of a recipe. Nothing of it survives the end of this process, nor an
//! interruption, unless it leaves its [process group](crate::process_group).

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::Signal;

use super::git::without_redirections;
use crate::error::BuildError;
use crate::process_group::ProcessGroup;
use crate::unprivileged::{other_user, unprivileged};
use crate::waiting::wait;

/// The user has interrupted the build. The store has nothing of it.
#[derive(Debug, thiserror::Error)]
#[error("interrupted while commit {commit} was built")]
pub struct Interrupted {
    pub(super) commit: String,
}

/// Runs `make` in the folder `source` with its output in `log`, with the environment of this
/// process. If this process runs as root, the command runs as `nobody` with the home `home`.
/// Returns `None` if `is_stopped` says so before the command has ended.
pub fn run(
    make: &str,
    source: &Path,
    home: &Path,
    log: &fs_err::File,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<Option<ExitStatus>> {
    let mut command = Command::new("sh");
    command.args(["-c", make]);
    unprivileged(without_redirections(&mut command));
    if other_user().is_some() {
        command.env("HOME", home).env_remove("TMPDIR").env_remove("XDG_CACHE_HOME");
    }

    let log = log.file();
    let group = ProcessGroup::begin()?;
    let mut child = group
        .add(&mut command)
        .current_dir(source)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .spawn()
        .map_err(|error| cannot_start(&error, source))?;

    let has_ended = wait(&child, is_stopped);
    // What the command left running would write into the source, and reads no more.
    group.kill();
    // It may have left the group.
    let _ = child.kill();
    let status = child.wait()?;
    Ok(has_ended?.then_some(status))
}

/// Returns the error for a command that cannot be started in the folder `source`.
fn cannot_start(error: &std::io::Error, source: &Path) -> BuildError {
    if error.kind() == ErrorKind::PermissionDenied {
        let folder = source.display();
        return BuildError::new(
            format!("`nobody`, who runs recipes for root, cannot enter `{folder}`"),
            "set ASSAY_BUILDS to a directory that everybody can enter, or let everybody enter this one: `chmod a+x`",
        );
    }

    let help = "a recipe is a command of the shell `sh`, which must be installed";
    BuildError::new(format!("cannot start `sh`: {error}"), help)
}

/// Returns true if a signal ended the command that others send: the kernel without memory, or a
/// user. A crash is the command's own.
pub fn is_ended_by_others(status: ExitStatus) -> bool {
    // A shell that waits adds 128 to a signal.
    let of_command = status.code().and_then(|code| code.checked_sub(128));
    let number = status.signal().or(of_command);
    let of_others = [Signal::HUP, Signal::INT, Signal::KILL, Signal::TERM];
    number.is_some_and(|number| of_others.iter().any(|signal| signal.as_raw() == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a log, as a recipe has them.
    struct RecipeFolder {
        folder: tempfile::TempDir,
        log: fs_err::File,
    }

    impl RecipeFolder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            if let Some((user, group)) = other_user() {
                fs_err::os::unix::fs::chown(folder.path(), Some(user), Some(group)).unwrap();
            }
            let log = fs_err::File::create(folder.path().join("log")).unwrap();
            Self { folder, log }
        }

        fn run(&self, make: &str, is_stopped: &dyn Fn() -> bool) -> Option<ExitStatus> {
            run(make, self.folder.path(), self.folder.path(), &self.log, is_stopped).unwrap()
        }

        fn read(&self, name: &str) -> String {
            fs_err::read_to_string(self.folder.path().join(name)).unwrap()
        }
    }

    #[test]
    fn a_command_has_its_status_and_its_output_is_in_the_log() {
        let place = RecipeFolder::new();
        let status = place.run("echo one; echo two >&2; exit 7", &|| false).unwrap();
        assert_eq!(status.code(), Some(7));
        assert_eq!(place.read("log"), "one\ntwo\n");
        assert!(place.run("cat; test -w .", &|| false).unwrap().success());
    }

    /// Waits for the end of the process whose number is in `file`.
    fn await_end(file: &Path) {
        let pid = fs_err::read_to_string(file).unwrap();
        let is_alive = || {
            let stat = fs_err::read_to_string(format!("/proc/{}/stat", pid.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z") && !stat.contains(") X"))
        };
        while is_alive() {
            std::thread::yield_now();
        }
    }

    /// Starts a process that would never end, and writes its number to `begun`.
    const ENDLESS: &str =
        "sh -c 'echo $$ > begun.new; mv begun.new begun; exec tail -f /dev/null' & ";

    #[test]
    fn nothing_of_an_interrupted_command_goes_on() {
        let place = RecipeFolder::new();
        let begun = place.folder.path().join("begun");
        assert!(place.run(&format!("{ENDLESS} wait"), &|| begun.exists()).is_none());
        await_end(&begun);
    }

    #[test]
    fn what_a_command_leaves_running_is_ended() {
        let place = RecipeFolder::new();
        let begun = place.folder.path().join("begun");
        let make = format!("{ENDLESS} while ! test -e begun; do :; done; exit 3");
        assert_eq!(place.run(&make, &|| false).unwrap().code(), Some(3));
        await_end(&begun);
    }
}
