//! What Rust's own tools say: format, lints, documentation.

use anyhow::Result;

use super::Verdict;
use crate::workspace::{Workspace, answers, succeeds};

/// Every file is as rustfmt would write it.
pub fn fmt(workspace: &Workspace) -> Result<Verdict> {
    with(workspace, "fmt", &["--all", "--check"], &[])
}

/// Clippy has nothing to say.
pub fn clippy(workspace: &Workspace) -> Result<Verdict> {
    with(
        workspace,
        "clippy",
        &[
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ],
        &[],
    )
}

/// The libraries' documentation has no broken link. Programs have no pages that anyone reads.
pub fn doc(workspace: &Workspace) -> Result<Verdict> {
    let options = ["--workspace", "--no-deps", "--lib", "--quiet"];
    with(
        workspace,
        "doc",
        &options,
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )
}

fn with(
    workspace: &Workspace,
    subcommand: &str,
    options: &[&str],
    settings: &[(&str, &str)],
) -> Result<Verdict> {
    // `cargo doc` has no `--version`, and no component of its own.
    if subcommand != "doc" && !answers(workspace.cargo().args([subcommand, "--version"])) {
        let reason = format!("no `cargo {subcommand}` in this installation of Rust");
        // Where changes are judged, what was not checked does not pass.
        if std::env::var_os("CI").is_some() {
            anyhow::bail!("{reason}");
        }
        return Ok(Verdict::Skipped(reason));
    }
    let mut command = workspace.cargo();
    command
        .arg(subcommand)
        .args(options)
        .envs(settings.iter().copied());
    Ok(if succeeds(&mut command)? {
        Verdict::Checked(Vec::new())
    } else {
        Verdict::Told
    })
}
