//! Runs the project's tasks: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask docs`,
//! `cargo xtask bench`.
//!
//! It uses no other crate of the workspace, so that it can check them all, and few from elsewhere,
//! so that it builds in seconds.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

mod bench;
mod builds;
mod dist;
mod prepare;
mod readers;
mod stages;
mod suite;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};

use workspace::{Workspace, succeeds};

const USAGE: &str = "\
usage: cargo xtask test                 install what the tests need; run tidy, all tests and the doctests
             [--all]                    add each fault and version on each engine
             [--changed [REV]]          run the tests of crates that differ from REV, by default from HEAD,
                                        and the quick tests of crates that depend on them
             [--part NUMBER/COUNT]      run one of several parts, for several machines
       cargo xtask tidy [CHECK]...      run all checks, or the given ones; `--list` lists them
       cargo xtask tidy --commits REV   name the commits after REV that a reader would stumble over
       cargo xtask docs                 write the tables of documents that come from the code
       cargo xtask builds               fetch the builds that tests use besides those of the system
       cargo xtask dist                 make the packages of a release in target/dist, and try each of them
             [--binary FILE]            package this binary, and make no wheel
       cargo xtask readers              fetch the tools with which tests read Assay's output
       cargo xtask bench [NAME]...      run all benchmarks, or the given ones; `--list` lists them
                         [--rounds N]   how often each side of a pair runs, default 5
                         [--seconds N]  how long each of sysbench's tests runs, default 5
                         [--campaigns DIR]  published campaigns of other tools, for `import`";

const TASKS: &str = "`test`, `tidy`, `docs`, `builds`, `dist`, `readers` or `bench`";

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

/// Runs one task. Returns false if it found something wrong with the project.
fn dispatch(arguments: &[String]) -> Result<bool> {
    let workspace = Workspace::here();
    let Some((task, options)) = arguments.split_first() else {
        bail!("no task given; expected {TASKS}\n{USAGE}");
    };

    match (task.as_str(), options) {
        ("test", arguments) => {
            let options = suite::Options::parse(arguments);
            let options = options.map_err(|error| anyhow!("{error}\n{USAGE}"))?;
            suite::run(&workspace, &options)
        }

        ("tidy", [list]) if list == "--list" => Ok(tidy::CHECKS.print()),
        ("tidy", [commits, since]) if commits == "--commits" => {
            tidy::judge_commits(&workspace, since)
        }
        ("tidy", names) => {
            let tally = tidy::run(&workspace, names, &tidy::Crates::All)?;
            Ok(tally.failed == 0)
        }

        ("docs", []) => write_tables_of_docs(&workspace),
        ("builds", []) => fetch_builds(&workspace),
        ("dist", []) => dist::run(&workspace, None),
        ("dist", [option, binary]) if option == "--binary" => {
            dist::run(&workspace, Some(Path::new(binary)))
        }
        ("readers", []) => fetch_readers(&workspace),
        ("bench", arguments) => bench::run(workspace, arguments),

        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(true)
        }
        (other, _) => bail!("unknown task `{other}`; expected {TASKS}\n{USAGE}"),
    }
}

/// Writes the tables of `docs/metrics.md` and `docs/plan.md` from the code. The tests that compare
/// them know how.
fn write_tables_of_docs(workspace: &Workspace) -> Result<bool> {
    let mut test = workspace.cargo("test --quiet --package plan --lib doc_tables::");
    succeeds(test.env("UPDATE", "1"))
}

/// Fetches the builds that tests use, and prints their directory.
fn fetch_builds(workspace: &Workspace) -> Result<bool> {
    // Assay itself fetches them.
    ensure!(
        succeeds(&mut workspace.cargo("build --quiet --package assay"))?,
        "Assay does not compile, see above"
    );

    let (variables, fetched) = builds::for_tests(workspace)?;
    println!("{}", variables[0].1);
    Ok(fetched)
}

/// Fetches the tools that read Assay's exports, and prints the variables that name them.
fn fetch_readers(workspace: &Workspace) -> Result<bool> {
    let variables = readers::for_tests(workspace, true)?;
    for (variable, path) in &variables {
        println!("{variable}={path}");
    }
    Ok(variables.len() == readers::ALL.len())
}
