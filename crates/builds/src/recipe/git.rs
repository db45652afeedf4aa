//! Runs git so that it executes nothing that a repository names, and asks nobody anything.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::Context;

use crate::error::BuildError;
use crate::process_group::ProcessGroup;

/// The variables with which git's own hooks and aliases redirect it to another repository.
const REDIRECTIONS: [&str; 9] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// Removes the variables that redirect git to another repository, as in a hook.
pub fn without_redirections(command: &mut Command) -> &mut Command {
    for name in REDIRECTIONS {
        command.env_remove(name);
    }
    command
}

/// Returns git, to be run in `folder`. It runs no hook, no monitor of files and no transport of the
/// repository's configuration.
pub fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager");
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "log.showSignature=false",
        // A partial clone would fetch what it lacks with a program that its configuration names.
        "protocol.allow=never",
    ] {
        command.args(["-c", setting]);
    }

    command.arg("-C").arg(folder);

    without_redirections(&mut command)
        .env("LC_ALL", "C")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// Returns git for a repository in `folder` that Assay made, without any configuration of the user
/// or the system, which could name programs that filter files.
pub fn git_of_scratch(folder: &Path) -> Command {
    let mut command = git(folder);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        // No folder: the source itself may have a file `.gitconfig`.
        .env("HOME", "/dev/null")
        .env("XDG_CONFIG_HOME", "/dev/null")
        .env_remove("GIT_CONFIG_GLOBAL")
        .env_remove("GIT_CONFIG_SYSTEM");

    command
}

/// The output of git, and whether it succeeded.
pub struct GitOutput {
    pub is_success: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl GitOutput {
    /// Returns the standard output as text, without the newline at its end.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// Returns the first error that git printed.
    pub fn first_error(&self) -> &str {
        let line = self.stderr.lines().find(|line| !line.trim().is_empty());
        let line = line.unwrap_or("git printed no error");
        line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line)
    }
}

impl From<Output> for GitOutput {
    fn from(output: Output) -> Self {
        Self {
            is_success: output.status.success(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs git.
///
/// # Errors
/// There is no git. That git itself fails is no error.
pub fn output(command: &mut Command) -> anyhow::Result<GitOutput> {
    let group = ProcessGroup::begin()?;
    Ok(group.add(command).output().map_err(cannot_start)?.into())
}

/// Runs git with `input` as its standard input.
///
/// # Errors
/// There is no git. That git itself fails is no error.
pub fn output_with_input(command: &mut Command, input: &[u8]) -> anyhow::Result<GitOutput> {
    let group = ProcessGroup::begin()?;
    let mut child = group
        .add(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot_start)?;

    if let Some(mut stdin) = child.stdin.take() {
        // If git ends without reading everything, its error says why.
        let _ = stdin.write_all(input);
    }

    Ok(child.wait_with_output().context("cannot wait for `git`")?.into())
}

fn cannot_start(error: std::io::Error) -> BuildError {
    BuildError::new(
        format!("cannot start `git`: {error}"),
        "builds of commits need git: install it, for example with `apt install git`",
    )
}
