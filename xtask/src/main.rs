//! The project's chores: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask bench`.
//!
//! It uses no crate of the house, so that it can judge them all, and few others, so that it is built in seconds.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]

mod bench;
mod binaries;
mod builds;
mod prepare;
mod readers;
mod stages;
mod suite;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use workspace::{Workspace, succeeds};

const USAGE: &str = "\
usage: cargo xtask test [--all]         install what the tests need, then tidy and the tests; with
                                        `--all` each fault and version on each engine too
       cargo xtask tidy [CHECK]...      all checks, or those named; `--list` names them
       cargo xtask builds               fetch the builds that tests use beside the system's own
       cargo xtask readers              fetch the tools that tests read assay's output with
       cargo xtask bench [NAME]...      all benchmarks, or those named; `--list` names them
                         [--rounds N]   how often each side of a pair runs, default 5
                         [--seconds N]  how long a run of sysbench's tests lasts, default 5";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("caused by: {cause}");
            }
            ExitCode::from(2)
        }
    }
}

/// Runs one chore; false when it found something wrong with the project.
fn dispatch(arguments: &[String]) -> Result<bool> {
    let workspace = Workspace::here();
    match arguments
        .split_first()
        .map(|(name, rest)| (name.as_str(), rest))
    {
        Some(("test", [])) => suite::run(&workspace, false),
        Some(("test", [all])) if all == "--all" => suite::run(&workspace, true),
        Some(("test", [extra, ..])) => bail!("`test` takes only `--all`, got `{extra}`\n{USAGE}"),
        Some(("tidy", [list])) if list == "--list" => Ok(tidy::CHECKS.print()),
        Some(("tidy", names)) => tidy::run(&workspace, names).map(|tally| tally.failed == 0),
        Some(("builds", [])) => {
            ensure!(
                succeeds(&mut workspace.cargo("build --quiet --package assay"))?,
                "assay does not compile"
            );
            let (variables, fetched) = builds::for_tests(&workspace)?;
            println!("{}", variables[0].1);
            Ok(fetched)
        }
        Some(("readers", [])) => {
            let variables = readers::for_tests(&workspace, true)?;
            for (variable, path) in &variables {
                println!("{variable}={path}");
            }
            Ok(variables.len() == readers::ALL.len())
        }
        Some(("bench", rest)) => bench::run(workspace, rest),
        Some(("help" | "--help" | "-h", _)) => {
            println!("{USAGE}");
            Ok(true)
        }
        Some((other, _)) => {
            bail!("unknown chore `{other}` - expected `test`, `tidy` or `bench`\n{USAGE}")
        }
        None => bail!("no chore named - expected `test`, `tidy` or `bench`\n{USAGE}"),
    }
}
