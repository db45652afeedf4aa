//! `cargo xtask test`: installs what the tests need, and runs tidy, all tests and the doctests. The
//! last line counts them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::binaries::{self, Binary, Counts, Job, Timed};
use crate::builds::{self, ASSAY_TEST_OTHER_POSTGRES};
use crate::dist;
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

/// Chooses the build that the tests of the PostgreSQL engine run on.
const TEST_POSTGRES: &str = "ASSAY_TEST_POSTGRES";

/// Binaries whose tests mostly wait for servers, the slowest first. The others keep processors
/// busy.
const WAITING: [&str; 2] = ["assay it", "engine it"];
/// Tests in modules of this name measure the load of the machine, so nothing else may run at the
/// same time.
const ALONE: &str = "alone::";
/// What the second PostgreSQL is tested with: statements and counters differ between versions,
/// starting and stopping a server does not.
const OTHER_POSTGRES: &[&str] =
    &["statements::postgres::", "postgres::statements::", "postgres::upkeep::"];
/// What `--all` tests it with.
const OTHER_POSTGRES_ALL: &[&str] = &["postgres::"];
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

    // Installing waits for the network, building for the processors.
    let (installed, built) = stages.run("build, packages", || {
        in_parallel(|| install_packages(all), || binaries::build(workspace, has_mpi))
    });
    installed?;
    let Some(binaries) = built? else {
        println!("the tests do not compile, see above");
        return Ok(false);
    };

    // Assay itself fetches the builds, so it had to be built first.
    let (fetched, tidied) = stages.run("tidy, downloads", || {
        in_parallel(|| fetch(workspace, all), || tidy::run(workspace, &[]))
    });
    let tidied = tidied?;
    let mut variables = fetched?;
    if std::env::var_os("CI").is_some() && std::env::var_os(REQUIRE_ENGINES).is_none() {
        variables.push((REQUIRE_ENGINES, ENGINES.join(",")));
    }
    let skip_log = empty_skip_log(workspace)?;
    variables.push((SKIP_LOG, skip_log.display().to_string()));

    let jobs = Jobs::new(&binaries, &variables, all);
    let mut outcome = stages.run("tests", || binaries::run(jobs.shared, PARALLEL_BINARIES))?;
    let last = stages.run("tests that run alone", || binaries::run(jobs.alone, 1))?;
    outcome.counts += last.counts;
    outcome.times.extend(last.times);
    outcome.counts += stages.run("doctests", || binaries::run_doctests(workspace))?.counts;

    if all {
        // Together they count as one test.
        let are_good = stages.run("packages of a release", || dist::run(workspace, None))?;
        outcome.counts += Counts {
            passed: usize::from(are_good),
            failed: usize::from(!are_good),
            ..Counts::default()
        };
    }

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

/// Returns the file for skipped tests, without those of earlier runs.
fn empty_skip_log(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    let log = folder.join("skipped.log");
    fs::write(&log, "")?;
    Ok(log)
}

/// The runs of test binaries.
struct Jobs<'a> {
    /// Runs side by side, the slowest first.
    shared: Vec<Job<'a>>,
    /// Runs that come after them, one at a time.
    alone: Vec<Job<'a>>,
}

impl<'a> Jobs<'a> {
    fn new(binaries: &'a [Binary], variables: &[(&'static str, String)], all: bool) -> Self {
        let other_postgres = variables.iter().find(|(name, _)| *name == ASSAY_TEST_OTHER_POSTGRES);
        let mut jobs = Jobs { shared: Vec::new(), alone: Vec::new() };
        for binary in binaries {
            let mut main = job(binary, variables, all);
            main.arguments.extend(["--skip".to_owned(), ALONE.to_owned()]);
            if waits(binary) {
                // About half of them wait at any time.
                main.arguments.push(format!("--test-threads={}", 2 * processor_count()));
            }
            jobs.shared.push(main);

            if binary.name == WAITING[0] {
                let mut alone = job(binary, variables, all);
                alone.name += ", alone";
                alone.tests = &[ALONE];
                alone.arguments.push("--test-threads=1".to_owned());
                jobs.alone.push(alone);
            }

            if binary.name == WAITING[1]
                && let Some((_, build)) = other_postgres
            {
                let mut other = job(binary, variables, all);
                other.name += ", other PostgreSQL";
                other.tests = if all { OTHER_POSTGRES_ALL } else { OTHER_POSTGRES };
                other.variables.push((TEST_POSTGRES, build.clone()));
                jobs.shared.push(other);
            }
        }

        jobs.shared.sort_by_key(|job| {
            let rank = WAITING.iter().position(|name| *name == job.binary.name);
            (rank.unwrap_or(WAITING.len()), !job.name.ends_with(" it"))
        });
        jobs
    }
}

/// Returns a run of all tests of a binary.
fn job<'a>(binary: &'a Binary, variables: &[(&'static str, String)], all: bool) -> Job<'a> {
    Job {
        name: binary.name.clone(),
        binary,
        tests: &[],
        arguments: all.then(|| "--include-ignored".to_owned()).into_iter().collect(),
        variables: variables.to_vec(),
        is_nice: !waits(binary),
    }
}

fn waits(binary: &Binary) -> bool {
    WAITING.contains(&binary.name.as_str())
}

fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn slowest(mut times: Vec<Timed>) -> String {
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut text = "the slowest tests:\n".to_owned();
    for test in times.iter().take(SLOWEST_COUNT) {
        text += &format!("{:>7.1} s  {}\n", test.seconds, test.name);
    }
    text
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
        let Jobs { shared, alone } = Jobs::new(&binaries, &variables, false);
        let names: Vec<&str> = shared.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            ["assay it", "engine it", "engine it, other PostgreSQL", "plan it", "load"]
        );
        assert_eq!(shared[0].arguments[..2], ["--skip", "alone::"]);
        assert!(shared[0].arguments[2].starts_with("--test-threads="));
        assert!(!shared[2].is_nice && shared[3].is_nice);
        assert_eq!(alone.len(), 1);
        let Jobs { shared, .. } = Jobs::new(&binaries, &variables, true);
        assert_eq!(shared[2].tests, ["postgres::"]);
        assert_eq!(shared[2].arguments, ["--include-ignored"]);
    }
}
