//! `cargo xtask test`: installs what the tests need, and runs tidy, all tests and the doctests. The
//! last line counts them.

mod binaries;
mod changed;
mod compilation;
mod jobs;
mod lanes;
mod libtest;
mod memory;
mod meter;
mod options;
mod part;
mod times;

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::builds;
use crate::dist;
use crate::prepare;
use crate::readers;
use crate::stages::{Stages, in_parallel};
use crate::tidy::Crates;
use crate::workspace::Workspace;
use binaries::Binary;
use changed::Changed;
use compilation::{Compilation, Compiled};
use jobs::{Jobs, Selection};
use lanes::{Lane, Task};
use libtest::{Counts, Outcome};
use memory::TestFolder;
pub use options::Options;
use times::Times;

/// Names the file to which a test that skips itself appends `SKIPPED <test>: <reason>`: libtest
/// reports such a test as `ok` and hides its output.
const SKIP_LOG: &str = "ASSAY_SKIP_LOG";
/// Tells tests to run all of their simulations.
const TEST_ALL: &str = "ASSAY_TEST_ALL";
/// Names engines and programs, such as `chromium`, whose tests must not be skipped.
const REQUIRE_ENGINES: &str = "ASSAY_REQUIRE_ENGINES";
/// All engines and programs that tests need.
const ENGINES: [&str; 20] = [
    "mpi",
    "slurm",
    "perf",
    "valgrind",
    "postgres",
    "other-postgres",
    "mysql",
    "myrocks",
    "rocksdb",
    "adapters",
    "chromium",
    "groff",
    readers::ALL[0],
    readers::ALL[1],
    readers::ALL[2],
    readers::ALL[3],
    readers::ALL[4],
    readers::ALL[5],
    readers::ALL[6],
    readers::ALL[7],
];

/// Runs the suite. Returns false if something failed.
///
/// # Errors
///
/// Fails if something cannot run at all. What fails in it is printed and counted.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let mut stages = Stages::default();
    prepare::compiler(workspace)?;
    // Without MPI, the tests of load ranks are skipped.
    let has_mpi = stages.run("packages of MPI", || prepare::ensure_installed(&[prepare::MPI]))?;

    // Installing waits for the network, building for the processors.
    let compilation = Compilation::choose(has_mpi)?;
    let (installed, compiled) = stages.run("build, packages", || {
        in_parallel(|| install_packages(options.all), || compilation.run(workspace))
    });
    installed?;
    let Some(Compiled { binaries, warnings }) = compiled? else {
        println!("the tests do not compile, see above");
        return Ok(false);
    };

    let changed = match &options.changed_since {
        Some(commit) => Some(Changed::since(commit, workspace)?),
        None => None,
    };
    if let Some(changed) = &changed {
        println!("{changed}");
    }

    // A whole run of everything tries a disk.
    let folder = if options.all { None } else { TestFolder::in_memory()? };

    // Checks keep processors busy, and so fill the time in which tests wait.
    let (checked, tested) = stages.run("tests, checks", || {
        in_parallel(
            || check(workspace, options, &compilation, changed.as_ref()),
            || test(workspace, options, &binaries, changed.as_ref(), folder.as_ref()),
        )
    });
    let Tested { mut outcome, alone, left_out, slow_left_out } = tested?;
    outcome.add(checked?);
    if compilation.lints() {
        println!("clippy, while compiling: {warnings} warnings");
        outcome.counts += Counts::of_check(warnings == 0);
    }

    let last = stages.run("tests that run alone", || lanes::run(vec![alone], workspace))?;
    outcome.add(last);

    if options.all {
        // Together they count as one test.
        let are_good = stages.run("packages of a release", || dist::run(workspace, None))?;
        outcome.counts += Counts::of_check(are_good);
    }

    println!("\n{}", times::slowest(&outcome.times));
    if changed.is_none() && !options.part.is_partial() {
        let file = times::file(workspace)?;
        times::write(&file, &outcome.times)?;
        println!("the times of all tests are in {}\n", file.display());
    }
    let skips = skips(&skip_log(workspace)?)?;
    for skip in &skips {
        println!("{skip}");
    }
    println!("{stages}");
    print_left_out(left_out + outcome.counts.left_out, slow_left_out, options);
    let total = with_skips(outcome.counts, skips.len());
    println!("{}", summary(total));
    Ok(total.failed == 0)
}

/// Runs the checks of tidy and the doctests, which need no server, at a low priority. Lints what has
/// changed, since crates that depend on it have passed before.
fn check(
    workspace: &Workspace,
    options: &Options,
    compilation: &Compilation,
    changed: Option<&Changed>,
) -> Result<Outcome> {
    let crates = changed.map_or(Crates::All, |changed| Crates::Named(changed.names()));
    let mut tasks = vec![Task::Tidy(compilation.clone(), crates)];
    if changed.is_none() {
        tasks.push(Task::Doctests(compilation.clone()));
    }
    let lane = Lane { name: "checks", workers: 1, tasks: options.part.of(tasks) };
    lanes::run(vec![lane], &workspace.in_background())
}

/// The results of tests, and what is left to do.
struct Tested<'a> {
    outcome: Outcome,
    /// Tests that nothing else may run beside.
    alone: Lane<'a>,
    /// The number of tests of the cross product that were left out.
    left_out: usize,
    /// The number of other tests that were left out because they are not quick.
    slow_left_out: usize,
}

/// Fetches what tests need, and runs all tests that may run side by side.
fn test<'a>(
    workspace: &Workspace,
    options: &Options,
    binaries: &'a [Binary],
    changed: Option<&Changed>,
    folder: Option<&TestFolder>,
) -> Result<Tested<'a>> {
    let mut variables = fetch(workspace, options.all)?;
    variables.extend(folder.into_iter().flat_map(TestFolder::variables));
    if std::env::var_os("CI").is_some() && std::env::var_os(REQUIRE_ENGINES).is_none() {
        variables.push((REQUIRE_ENGINES, ENGINES.join(",")));
    }
    let skip_log = skip_log(workspace)?;
    fs::write(&skip_log, "")?;
    variables.push((SKIP_LOG, skip_log.display().to_string()));
    if options.all {
        variables.push((TEST_ALL, "1".to_owned()));
    }

    let times = Times::read(&times::file(workspace)?)?;
    let selection = Selection { options, changed, times: &times, variables: &variables };
    let Jobs { lanes, alone, left_out, slow_left_out } = Jobs::choose(binaries, &selection)?;
    let outcome = lanes::run(lanes, workspace)?;
    Ok(Tested { outcome, alone, left_out, slow_left_out })
}

/// Installs the Debian packages that tests need. Returns whether all are there.
fn install_packages(all: bool) -> Result<bool> {
    let slurm = all.then_some(prepare::SLURM);
    let packages: Vec<&str> = prepare::TEST_PACKAGES.into_iter().chain(slurm).collect();
    prepare::ensure_installed(&packages)
}

/// Fetches builds of engines and readers of exports. Returns the variables that name them.
fn fetch(workspace: &Workspace, all: bool) -> Result<Vec<(&'static str, String)>> {
    let (mut variables, _) = builds::for_tests(workspace)?;
    variables.extend(readers::for_tests(workspace, all)?);
    Ok(variables)
}

/// Returns the file to which tests that skip themselves append.
fn skip_log(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    Ok(folder.join("skipped.log"))
}

/// Says which tests did not run, and how to run them.
fn print_left_out(of_all: usize, slow: usize, options: &Options) {
    if of_all > 0 {
        println!(
            "{of_all} tests of the cross product were left out: run them with `cargo xtask test --all`"
        );
    }
    if options.changed_since.is_some() {
        println!(
            "{slow} slower tests of crates that depend on the change, their lints, and the doctests were left out: \
             run them with `cargo xtask test`"
        );
    }
    if options.part.is_partial() {
        println!("this was part {} of the tests", options.part);
    }
}

/// Reads the tests that skipped themselves.
fn skips(log: &Path) -> Result<Vec<String>> {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let mut skips: Vec<String> =
        text.lines().filter(|line| line.starts_with("SKIPPED ")).map(str::to_owned).collect();
    skips.sort();
    Ok(skips)
}

/// Counts tests that skipped themselves as skipped, and no longer as passed.
fn with_skips(counts: Counts, skip_count: usize) -> Counts {
    Counts {
        passed: counts.passed.saturating_sub(skip_count),
        skipped: counts.skipped + skip_count,
        ..counts
    }
}

/// Returns the last line of the output.
fn summary(counts: Counts) -> String {
    format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_skipped_itself_did_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("skipped.log");
        fs::write(&log, "SKIPPED b: no server\nnoise\nSKIPPED a: no server\n").unwrap();
        let skips = skips(&log).unwrap();
        assert_eq!(skips, ["SKIPPED a: no server", "SKIPPED b: no server"]);
        let counts = Counts { passed: 10, failed: 1, ..Counts::default() };
        let counts = with_skips(counts, skips.len());
        assert_eq!(summary(counts), "8 passed, 1 failed, 2 skipped");
    }
}
