//! `cargo xtask test`: what the tests need, tidy, all tests, and one line that counts them.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use crate::binaries::{self, Binary, Counts, Job, Timed};
use crate::builds::{self, ASSAY_TEST_OTHER_POSTGRES};
use crate::prepare;
use crate::readers;
use crate::stages::{Stages, beside};
use crate::tidy;
use crate::workspace::Workspace;

/// The file to which a test that skips itself appends `SKIPPED <test>: <reason>`: libtest calls such a test `ok` and
/// keeps what it prints to itself.
const SKIP_LOG: &str = "ASSAY_SKIP_LOG";
/// Engines and programs, such as `chromium`, whose tests must not be skipped.
const REQUIRE_ENGINES: &str = "ASSAY_REQUIRE_ENGINES";
/// All of them.
const ENGINES: [&str; 13] = [
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
];

/// Chooses the build that the tests of the PostgreSQL engine run on.
const TEST_POSTGRES: &str = "ASSAY_TEST_POSTGRES";

/// Binaries whose tests wait for servers most of the time, the longest first. The others keep processors busy.
const WAITING: [&str; 2] = ["assay it", "engine it"];
/// Tests of these modules measure what else the machine does: nothing runs beside them.
const ALONE: &str = "alone::";
/// Binaries that run at the same time. One with tests that wait is always among them.
const AT_A_TIME: usize = 2;

/// The slowest tests that are listed.
const SLOWEST: usize = 10;

/// Runs everything, with the whole cross product if `all`; false when something failed.
pub fn run(workspace: &Workspace, all: bool) -> Result<bool> {
    let mut stages = Stages::default();
    prepare::compiler(workspace)?;
    let (installed, built) = stages.run("build, packages", || {
        let install = || prepare::has(&prepare::OF_TESTS);
        beside(install, || binaries::build(workspace))
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
        beside(fetch, || tidy::run(workspace, &[]))
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
    let mut outcome = stages.run("tests", || binaries::run(shared, AT_A_TIME))?;
    let last = stages.run("tests that run alone", || binaries::run(alone, 1))?;
    outcome.counts += last.counts;
    outcome.times.extend(last.times);

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
            "{} tests of the cross product were left out: `cargo xtask test --all`",
            total.left_out
        );
    }
    println!("{}", line(total));
    Ok(total.failed == 0)
}

/// Returns what is run side by side, the longest first, and what is run after it, one after the other.
fn jobs<'a>(
    binaries: &'a [Binary],
    variables: &[(&'static str, String)],
    all: bool,
) -> (Vec<Job<'a>>, Vec<Job<'a>>) {
    let other_postgres = variables
        .iter()
        .find(|(name, _)| *name == ASSAY_TEST_OTHER_POSTGRES);
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
        let mut beside = job(binary.name.clone(), &[], &["--skip", ALONE]);
        if waits {
            // Half of them wait.
            beside
                .arguments
                .push(format!("--test-threads={}", 2 * processors));
        }
        shared.push(beside);
        if binary.name == WAITING[0] {
            let name = format!("{}, alone", binary.name);
            alone.push(job(name, &[ALONE], &["--test-threads=1"]));
        }
        if binary.name == WAITING[1]
            && let Some((_, build)) = other_postgres
        {
            // A statement may mean something else to another version, and counters differ; a server's life is the same.
            let tests: &'static [&'static str] = match all {
                true => &["postgres::"],
                false => &[
                    "statements::postgres::",
                    "postgres::statements::",
                    "postgres::upkeep::",
                ],
            };
            let name = format!("{}, other PostgreSQL", binary.name);
            let mut other = job(name, tests, &[]);
            other.variables.push((TEST_POSTGRES, build.clone()));
            shared.push(other);
        }
    }
    shared.sort_by_key(|job| {
        let place = WAITING.iter().position(|name| *name == job.binary.name);
        (place.unwrap_or(WAITING.len()), !job.name.ends_with(" it"))
    });
    (shared, alone)
}

/// The slowest tests, as a table.
fn slowest(mut times: Vec<Timed>) -> String {
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let rows = times.iter().take(SLOWEST);
    let rows = rows.map(|test| format!("{:>7.1} s  {}\n", test.seconds, test.name));
    format!("the slowest tests:\n{}", rows.collect::<String>())
}

fn skips(log: &Path) -> Result<Vec<String>> {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let mut skips: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("SKIPPED "))
        .map(str::to_owned)
        .collect();
    skips.sort();
    Ok(skips)
}

/// Tests that skipped themselves were counted as passed.
fn with_skips(counts: Counts, skip_count: usize) -> Counts {
    Counts {
        passed: counts.passed.saturating_sub(skip_count),
        skipped: counts.skipped + skip_count,
        ..counts
    }
}

/// The last line of a run.
fn line(counts: Counts) -> String {
    format!(
        "{} passed, {} failed, {} skipped",
        counts.passed, counts.failed, counts.skipped
    )
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
        let counts = Counts {
            passed: 10,
            failed: 1,
            ..Counts::default()
        };
        let counts = with_skips(counts, skips.len());
        assert_eq!(line(counts), "8 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn what_waits_comes_first_and_what_measures_last() {
        let binary = |name: &str| Binary::named(name);
        let binaries = ["load", "engine it", "plan it", "assay it"].map(binary);
        let variables = [(ASSAY_TEST_OTHER_POSTGRES, "/there".to_owned())];
        let (shared, alone) = jobs(&binaries, &variables, false);
        let names: Vec<&str> = shared.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "assay it",
                "engine it",
                "engine it, other PostgreSQL",
                "plan it",
                "load"
            ]
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
