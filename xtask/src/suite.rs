//! `cargo xtask test`: installs what the tests need, and runs tidy, all tests and the doctests. The
//! last line counts them.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use crate::binaries::{self, Binary, Counts, Job, Timed};
use crate::builds::{self, ASSAY_TEST_OTHER_POSTGRES};
use crate::prepare;
use crate::readers;
use crate::stages::{Stages, in_parallel};
use crate::tidy;
use crate::workspace::Workspace;

/// Names the file to which a test that skips itself appends `SKIPPED <test>: <reason>`: libtest
/// reports such a test as `ok` and hides its output.
const SKIP_LOG: &str = "ASSAY_SKIP_LOG";
/// Names engines and programs, such as `chromium`, whose tests must not be skipped.
const REQUIRE_ENGINES: &str = "ASSAY_REQUIRE_ENGINES";
/// All engines and programs that tests need.
const ENGINES: [&str; 17] = [
    "mpi",
    "slurm",
    "perf",
    "postgres",
    "other-postgres",
    "mysql",
    "myrocks",
    "rocksdb",
    "chromium",
    "groff",
    readers::ALL[0],
    readers::ALL[1],
    readers::ALL[2],
    readers::ALL[3],
    readers::ALL[4],
    readers::ALL[5],
    readers::ALL[6],
];

/// Chooses the build that the tests of the PostgreSQL engine run on.
const TEST_POSTGRES: &str = "ASSAY_TEST_POSTGRES";

/// Binaries whose tests mostly wait for servers, the slowest first. The others keep processors
/// busy.
const WAITING: [&str; 2] = ["assay it", "engine it"];
/// Tests in modules of this name measure the load of the machine, so nothing else may run at the
/// same time.
const ALONE: &str = "alone::";
/// The number of binaries that run at the same time.
const PARALLEL_BINARIES: usize = 2;

/// The number of slowest tests that are listed.
const SLOWEST_COUNT: usize = 10;

/// Runs everything, with the whole cross product if `all`. Returns false if something failed.
pub fn run(workspace: &Workspace, all: bool) -> Result<bool> {
    let mut stages = Stages::default();
    prepare::compiler(workspace)?;
    // Without MPI, the tests of load ranks are skipped.
    let has_mpi = stages.run("packages of MPI", || prepare::ensure_installed(&[prepare::MPI]))?;
    let (installed, built) = stages.run("build, packages", || {
        let install = || {
            let slurm = all.then_some(prepare::SLURM);
            let packages: Vec<&str> = prepare::TEST_PACKAGES.into_iter().chain(slurm).collect();
            prepare::ensure_installed(&packages)
        };
        in_parallel(install, || binaries::build(workspace, has_mpi))
    });
    installed?;
    let Some(binaries) = built? else {
        println!("the tests do not compile, see above");
        return Ok(false);
    };
    let (fetched, tidied) = stages.run("tidy, downloads", || {
        let fetch = || -> Result<_> {
            let (mut variables, _) = builds::for_tests(workspace)?;
            variables.extend(readers::for_tests(workspace, all)?);
            Ok(variables)
        };
        in_parallel(fetch, || tidy::run(workspace, &[]))
    });
    let tidied = tidied?;
    let mut variables = fetched?;
    if std::env::var_os("CI").is_some() && std::env::var_os(REQUIRE_ENGINES).is_none() {
        variables.push((REQUIRE_ENGINES, ENGINES.join(",")));
    }
    let skip_log = workspace.target_directory()?.join("xtask/skipped.log");
    fs::create_dir_all(skip_log.parent().unwrap_or(Path::new(".")))?;
    fs::write(&skip_log, "")?;
    variables.push((SKIP_LOG, skip_log.display().to_string()));

    let (shared, alone) = jobs(&binaries, &variables, all);
    let mut outcome = stages.run("tests", || binaries::run(shared, PARALLEL_BINARIES))?;
    let last = stages.run("tests that run alone", || binaries::run(alone, 1))?;
    outcome.counts += last.counts;
    outcome.times.extend(last.times);
    outcome.counts += stages.run("doctests", || binaries::run_doctests(workspace))?.counts;

    let skips = skips(&skip_log)?;
    println!("\n{}", slowest(outcome.times));
    for skip in &skips {
        println!("{skip}");
    }
    let mut total = with_skips(outcome.counts, skips.len());
    total.passed += tidied.passed;
    total.failed += tidied.failed;
    println!("{stages}");
    if total.left_out > 0 {
        println!(
            "{} tests of the cross product were left out: run them with `cargo xtask test --all`",
            total.left_out
        );
    }
    println!("{}", summary(total));
    Ok(total.failed == 0)
}

/// Returns the jobs that run side by side, the slowest first, and those that then run alone.
fn jobs<'a>(
    binaries: &'a [Binary],
    variables: &[(&'static str, String)],
    all: bool,
) -> (Vec<Job<'a>>, Vec<Job<'a>>) {
    let other_postgres = variables.iter().find(|(name, _)| *name == ASSAY_TEST_OTHER_POSTGRES);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut shared, mut alone) = (Vec::new(), Vec::new());
    for binary in binaries {
        let waits = WAITING.contains(&binary.name.as_str());
        let job = |name: String, tests, arguments: &[&str]| {
            let more = all.then_some("--include-ignored");
            let arguments = arguments.iter().copied().chain(more);
            Job {
                name,
                binary,
                tests,
                arguments: arguments.map(str::to_owned).collect(),
                variables: variables.to_vec(),
                is_nice: !waits,
            }
        };
        let mut all_but_alone = job(binary.name.clone(), &[], &["--skip", ALONE]);
        if waits {
            // About half of them wait at any time.
            all_but_alone.arguments.push(format!("--test-threads={}", 2 * processors));
        }
        shared.push(all_but_alone);
        if binary.name == WAITING[0] {
            let name = format!("{}, alone", binary.name);
            alone.push(job(name, &[ALONE], &["--test-threads=1"]));
        }
        if binary.name == WAITING[1]
            && let Some((_, build)) = other_postgres
        {
            // Statements and counters differ between versions; starting and stopping a server does
            // not.
            let tests: &'static [&'static str] = if all {
                &["postgres::"]
            } else {
                &["statements::postgres::", "postgres::statements::", "postgres::upkeep::"]
            };
            let name = format!("{}, other PostgreSQL", binary.name);
            let mut other = job(name, tests, &[]);
            other.variables.push((TEST_POSTGRES, build.clone()));
            shared.push(other);
        }
    }
    shared.sort_by_key(|job| {
        let rank = WAITING.iter().position(|name| *name == job.binary.name);
        (rank.unwrap_or(WAITING.len()), !job.name.ends_with(" it"))
    });
    (shared, alone)
}

/// Lists the slowest tests.
fn slowest(mut times: Vec<Timed>) -> String {
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let rows = times.iter().take(SLOWEST_COUNT);
    let rows = rows.map(|test| format!("{:>7.1} s  {}\n", test.seconds, test.name));
    format!("the slowest tests:\n{}", rows.collect::<String>())
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

    #[test]
    fn jobs_that_wait_come_first_and_tests_that_run_alone_come_last() {
        let binary = |name: &str| Binary::named(name);
        let binaries = ["load", "engine it", "plan it", "assay it"].map(binary);
        let variables = [(ASSAY_TEST_OTHER_POSTGRES, "/there".to_owned())];
        let (shared, alone) = jobs(&binaries, &variables, false);
        let names: Vec<&str> = shared.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            ["assay it", "engine it", "engine it, other PostgreSQL", "plan it", "load"]
        );
        assert_eq!(shared[0].arguments[..2], ["--skip", "alone::"]);
        assert!(shared[0].arguments[2].starts_with("--test-threads="));
        assert!(!shared[2].is_nice && shared[3].is_nice);
        assert_eq!(alone.len(), 1);
        let (shared, _) = jobs(&binaries, &variables, true);
        assert_eq!(shared[2].tests, ["postgres::"]);
        assert_eq!(shared[2].arguments, ["--include-ignored"]);
    }
}
