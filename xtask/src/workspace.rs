//! The checkout, and helpers that run commands.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A checkout of the project.
pub struct Workspace {
    /// The top folder.
    pub root: PathBuf,
    /// Cargo runs at a low priority, since something else is more urgent.
    is_in_background: bool,
}

impl Workspace {
    /// Returns the checkout that this program was built from.
    pub fn here() -> Workspace {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::at(own.parent().unwrap_or(own).to_path_buf())
    }

    /// Returns the checkout in this folder.
    pub fn at(root: PathBuf) -> Workspace {
        Workspace { root, is_in_background: false }
    }

    /// Returns the same checkout, with a cargo that runs at a low priority.
    pub fn in_background(&self) -> Workspace {
        Workspace { root: self.root.clone(), is_in_background: true }
    }

    /// Returns a command that runs in the top folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// Returns a command of the cargo that runs this program. Arguments are separated by spaces,
    /// and cannot contain any.
    pub fn cargo(&self, arguments: &str) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = if self.is_in_background {
            let mut command = self.command("nice");
            command.arg(cargo);
            command
        } else {
            self.command(cargo)
        };
        command.args(arguments.split(' '));
        if std::env::var_os("CI").is_some() {
            // Only a later build of changed crates would be quicker, and CI makes none.
            command.env("CARGO_INCREMENTAL", "0");
        }
        // `cargo run` sets these for this program; build scripts below it would mistake them for
        // their own.
        let is_own = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name == "CARGO_BIN_NAME"
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_own(name)) {
            command.env_remove(name);
        }
        command
    }

    /// Returns the output of `cargo metadata` with an option.
    pub fn metadata(&self, option: &str) -> Result<Value> {
        let mut command = self.cargo(&format!("metadata --format-version 1 {option}"));
        serde_json::from_str(&output(&mut command)?)
            .context("cannot read the output of `cargo metadata`")
    }

    /// Returns cargo's target directory.
    pub fn target_directory(&self) -> Result<PathBuf> {
        let metadata = self.metadata("--no-deps")?;
        let path = metadata["target_directory"]
            .as_str()
            .context("`cargo metadata` names no target directory")?;
        Ok(PathBuf::from(path))
    }
}

/// The checks or benchmarks to choose from. Each line of the list has a name and a description.
pub struct Menu {
    /// The word for an entry: `check`.
    pub noun: &'static str,
    /// The list.
    pub text: &'static str,
}

impl Menu {
    /// Returns the names with their descriptions.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let entry = |line: &'static str| line.split_once(' ').unwrap_or((line, ""));
        self.text.lines().map(entry).map(|(name, about)| (name, about.trim_start()))
    }

    /// Prints the list, and returns true for success.
    pub fn print(&self) -> bool {
        println!("{}", self.text);
        true
    }

    /// Returns the entry with this name. The error lists all names.
    pub fn entry(&self, name: &str) -> Result<(&'static str, &'static str)> {
        let names: Vec<&str> = self.entries().map(|(name, _)| name).collect();
        let (noun, names) = (self.noun, names.join("`, `"));
        let entry = self.entries().find(|(known, _)| *known == name);
        entry.with_context(|| format!("unknown {noun} `{name}`; expected one of `{names}`"))
    }
}

/// Returns a command with arguments that are separated by spaces.
pub fn typed(program: impl AsRef<OsStr>, arguments: &str) -> Command {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace());
    command
}

/// Runs a command, and returns what it writes to stdout. The error of a failed command has its
/// stderr.
pub fn output(command: &mut Command) -> Result<String> {
    output_if_code(command, &[0])
}

/// Does what [`output`] does for a command that succeeds with any of these exit codes.
pub fn output_if_code(command: &mut Command, codes: &[i32]) -> Result<String> {
    let shown = shown(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.code().is_some_and(|code| codes.contains(&code)) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed: {}\n{}", output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("the output of `{shown}` is not UTF-8"))
}

/// Runs a command, and returns what it writes to stdout, or `None` if it fails. Its stderr goes to
/// the terminal.
pub fn printed(command: &mut Command) -> Result<Option<String>> {
    let shown = shown(command);
    let command = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run `{shown}`"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(output.status.success().then_some(text))
}

/// Runs a command whose output goes to the terminal. Returns false if it fails.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(printed(command.stdout(Stdio::inherit()))?.is_some())
}

/// Seconds to wait before each retry of what needs the network, where no test may be skipped:
/// mirrors and registries fail at times, and on a fresh machine another apt may hold the lock for a
/// while.
const PAUSES_S: [u64; 3] = [5, 20, 60];
/// The same for a developer, who may have no network.
const INTERACTIVE_PAUSES_S: [u64; 1] = [1];

/// Retries what needs the network. Returns false if no attempt succeeds. `what` names it on stderr.
pub fn with_retries(what: &str, attempt: impl FnMut() -> Result<bool>) -> Result<bool> {
    let pauses: &[u64] = match std::env::var_os("CI") {
        Some(_) => &PAUSES_S,
        None => &INTERACTIVE_PAUSES_S,
    };
    with_pauses(what, pauses, attempt)
}

fn with_pauses(
    what: &str,
    pauses_s: &[u64],
    mut attempt: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    for &pause in pauses_s {
        if attempt()? {
            return Ok(true);
        }
        eprintln!("note: {what} failed, see above; trying again in {pause} s");
        std::thread::sleep(Duration::from_secs(pause));
    }
    attempt()
}

/// Runs a command without showing its output. Returns whether it can run and succeeds.
pub fn succeeds_quietly(command: &mut Command) -> bool {
    output(command).is_ok()
}

/// Shows a command as one would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let words = program.into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_the_folder_of_its_program() {
        let mut command = Command::new("/opt/tools/cargo");
        command.args(["test", "--workspace"]);
        assert_eq!(shown(&command), "cargo test --workspace");
    }

    #[test]
    fn a_failed_attempt_is_retried_until_one_succeeds_or_none_is_left() {
        let succeeding_at = |number: u32| {
            let mut count = 0;
            let attempt = || {
                count += 1;
                Ok(count == number)
            };
            let succeeded = with_pauses("it", &[0, 0], attempt).unwrap();
            (succeeded, count)
        };
        assert_eq!(succeeding_at(1), (true, 1));
        assert_eq!(succeeding_at(3), (true, 3));
        assert_eq!(succeeding_at(4), (false, 3));
        assert!(with_pauses("it", &[0], || bail!("no such program")).is_err());
    }

    #[test]
    fn the_error_of_a_failed_command_has_its_stderr() {
        let error =
            output(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no such luck") && text.contains("exit status: 3"), "{text}");
    }
}
