//! `cargo xtask test`: what the tests need, tidy, all tests, and one line that counts them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::builds::{self, ASSAY_TEST_OTHER_POSTGRES};
use crate::prepare::{self, Presence};
use crate::readers;
use crate::tidy;
use crate::workspace::Workspace;

/// The file to which a test that skips itself appends `SKIPPED <test>: <reason>`: libtest calls such a test `ok` and
/// keeps what it prints to itself.
const SKIP_LOG: &str = "ASSAY_SKIP_LOG";
/// Engines and programs, such as `chromium`, whose tests must not be skipped.
const REQUIRE_ENGINES: &str = "ASSAY_REQUIRE_ENGINES";

/// How many tests, the checks of tidy among them, ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Chooses the build that the tests of the PostgreSQL engine run on.
const TEST_POSTGRES: &str = "ASSAY_TEST_POSTGRES";
/// The tests that a second PostgreSQL has to pass too.
const ENGINE_TESTS: [&str; 7] = [
    "test",
    "--package",
    "engine",
    "--test",
    "it",
    "postgres::",
    "--no-fail-fast",
];

/// Runs everything; false when something failed.
pub fn run(workspace: &Workspace) -> Result<bool> {
    let found = prepare::run(workspace)?;
    let tidy = tidy::run(workspace, &[])?;
    let builds = builds::for_tests(workspace)?;
    let readers = readers::for_tests(workspace)?;
    let mut required = Vec::new();
    if std::env::var_os("CI").is_some() {
        required = vec![
            "postgres",
            "other-postgres",
            "mysql",
            "myrocks",
            "rocksdb",
            "chromium",
        ];
        required.extend(readers::ALL);
    } else {
        required.extend(&readers.there);
        for (presence, name) in [(found.postgres, "postgres"), (found.chromium, "chromium")] {
            if presence == Presence::Installed {
                required.push(name);
            }
        }
        if builds.servers {
            required.extend(["other-postgres", "mysql", "myrocks"]);
        }
        if builds.libraries {
            required.push("rocksdb");
        }
    }
    let mut variables = builds.variables.clone();
    variables.extend(readers.variables);
    if std::env::var_os(REQUIRE_ENGINES).is_none() {
        variables.push((REQUIRE_ENGINES, required.join(",")));
    }
    let all = ["test", "--workspace", "--no-fail-fast"];
    let (mut tests, mut skips) = tests(workspace, &all, &variables)?;
    if let Some((_, build)) = builds
        .variables
        .iter()
        .find(|(name, _)| *name == ASSAY_TEST_OTHER_POSTGRES)
    {
        println!("\nthe tests of the PostgreSQL engine, on {build}");
        variables.push((TEST_POSTGRES, build.clone()));
        let (other, other_skips) = self::tests(workspace, &ENGINE_TESTS, &variables)?;
        tests = tests.plus(other);
        skips.extend(other_skips);
    }
    println!();
    for skip in &skips {
        println!("{skip}");
    }
    let total = tests.plus(Counts {
        passed: tidy.passed,
        failed: tidy.failed,
        skipped: 0,
    });
    println!("{total}");
    Ok(total.failed == 0)
}

/// Runs tests by cargo with these arguments, passing on what it prints; what was counted, and what the skips said.
fn tests(
    workspace: &Workspace,
    arguments: &[&str],
    variables: &[(&str, String)],
) -> Result<(Counts, Vec<String>)> {
    let folder = workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    let skip_log = folder.join("skipped.log");
    fs::write(&skip_log, "")?;

    let mut command = workspace.cargo();
    command
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env(SKIP_LOG, &skip_log);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `cargo test`")?;
    let stdout = child.stdout.take().context("`cargo test` has no stdout")?;
    let mut counts = pass_on(stdout, &mut std::io::stdout())?;
    let status = child.wait().context("cannot wait for `cargo test`")?;

    let skips = skips(&skip_log)?;
    counts = with_skips(counts, skips.len());
    if !status.success() && counts.failed == 0 {
        // It did not compile, or a test took its whole process with it: no line says so.
        eprintln!("error: `cargo test` failed without a failed test - {status}, see above");
        counts.failed = 1;
    }
    Ok((counts, skips))
}

/// Copies lines as they come and adds up those that libtest ends a binary with.
fn pass_on(from: impl std::io::Read, to: &mut impl Write) -> Result<Counts> {
    let mut reader = BufReader::new(from);
    let (mut counts, mut line) = (Counts::default(), Vec::new());
    loop {
        line.clear();
        if reader
            .read_until(b'\n', &mut line)
            .context("cannot read the output of `cargo test`")?
            == 0
        {
            return Ok(counts);
        }
        to.write_all(&line)
            .and_then(|()| to.flush())
            .context("cannot write to stdout")?;
        if let Some(found) = counted(&String::from_utf8_lossy(&line)) {
            counts = counts.plus(found);
        }
    }
}

/// The numbers of a line `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn counted(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let before = rest
            .split(word)
            .next()
            .filter(|before| before.len() < rest.len())?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some(Counts {
        passed: number(" passed")?,
        failed: number(" failed")?,
        skipped: number(" ignored")?,
    })
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
        failed: counts.failed,
        skipped: counts.skipped + skip_count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_all_binaries_are_added_up_and_passed_on_unchanged() {
        let output = "\
running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: FAILED. 10 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.25s
test result: \u{1b}[32mok\u{1b}[m. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
no end of line";
        let mut copy = Vec::new();
        let counts = pass_on(output.as_bytes(), &mut copy).unwrap();
        assert_eq!(
            counts,
            Counts {
                passed: 17,
                failed: 3,
                skipped: 1
            }
        );
        assert_eq!(copy, output.as_bytes());
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(counted("test result: unknown"), None);
        assert_eq!(counted("3 passed; 0 failed; 0 ignored"), None);
        assert_eq!(counted(""), None);
    }

    #[test]
    fn a_test_that_skipped_itself_did_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("skipped.log");
        fs::write(&log, "SKIPPED b: no server\nnoise\nSKIPPED a: no server\n").unwrap();
        let skips = skips(&log).unwrap();
        assert_eq!(skips, ["SKIPPED a: no server", "SKIPPED b: no server"]);
        let counts = with_skips(
            Counts {
                passed: 10,
                failed: 1,
                skipped: 1,
            },
            skips.len(),
        );
        assert_eq!(counts.to_string(), "8 passed, 1 failed, 3 skipped");
    }
}
