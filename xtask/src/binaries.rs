//! The binaries of the tests: built by cargo, and run side by side, since most of their time is waiting.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::stages::Stopwatch;
use crate::workspace::{Workspace, printed};

/// A binary with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The folder of its crate and, for integration tests, the target: `engine it`.
    pub name: String,
    program: PathBuf,
    folder: PathBuf,
}

#[cfg(test)]
impl Binary {
    /// One that is only talked about.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            program: "/bin/sh".into(),
            folder: "/".into(),
        }
    }
}

/// One run of a binary.
pub struct Job<'a> {
    /// How the run is called.
    pub name: String,
    /// What is run.
    pub binary: &'a Binary,
    /// Which tests: parts of their names, each of at least one that passes; none: all.
    pub tests: &'static [&'static str],
    /// Further arguments of libtest: how many at a time.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: Vec<(&'static str, String)>,
    /// It keeps processors busy, and gives way to those that measure.
    pub is_nice: bool,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// As they should.
    pub passed: usize,
    /// Otherwise.
    pub failed: usize,
    /// They could not be run.
    pub skipped: usize,
    /// They belong to the cross product, which was not asked for.
    pub left_out: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.left_out += other.left_out;
    }
}

/// How a test went that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Binary and test.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
}

/// What came of jobs.
#[derive(Default)]
pub struct Outcome {
    /// Their tests.
    pub counts: Counts,
    /// The times of tests that passed.
    pub times: Vec<Timed>,
    /// What they said beside lines of tests that passed.
    said: String,
}

/// Builds all tests, and the programs that they run; `None` where they do not compile, which cargo has said.
pub fn build(workspace: &Workspace) -> Result<Option<Vec<Binary>>> {
    let arguments = "test --workspace --no-run --message-format=json-render-diagnostics";
    let Some(messages) = printed(&mut workspace.cargo(arguments))? else {
        return Ok(None);
    };
    messages
        .lines()
        .filter_map(|line| binary(line).transpose())
        .collect::<Result<_>>()
        .map(Some)
}

/// The binary of tests that a message of cargo tells of.
fn binary(message: &str) -> Result<Option<Binary>> {
    let message: Value = serde_json::from_str(message).context("cannot read cargo's messages")?;
    let of_tests = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let Some(program) = message["executable"].as_str().filter(|_| of_tests) else {
        return Ok(None);
    };
    let manifest = message["manifest_path"].as_str().unwrap_or_default();
    let folder = Path::new(manifest)
        .parent()
        .context("a crate has no folder")?;
    let name = folder.file_name().unwrap_or_default();
    let mut name = name.to_string_lossy().into_owned();
    if message["target"]["kind"][0] == "test" {
        let target = message["target"]["name"].as_str().unwrap_or_default();
        name = format!("{name} {target}");
    }
    Ok(Some(Binary {
        name,
        program: program.into(),
        folder: folder.into(),
    }))
}

/// Runs jobs, so many at a time, in their order. Says of each how it ended, and of those that failed, why.
pub fn run(jobs: Vec<Job<'_>>, at_a_time: usize) -> Result<Outcome> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let outcome = Mutex::new(Outcome::default());
    let work = || -> Result<()> {
        loop {
            let Some(job) = lock(&jobs).pop_front() else {
                return Ok(());
            };
            let stopwatch = Stopwatch::start();
            let mut ran = run_one(&job)?;
            let seconds = stopwatch.seconds();
            let mut outcome = lock(&outcome);
            let Counts { passed, failed, .. } = ran.counts;
            let end = if failed == 0 { "ok" } else { "FAILED" };
            print!("{}", ran.said);
            println!(
                "{end:<6} {:<28} {passed:>5} passed {seconds:>7.1} s",
                job.name
            );
            outcome.counts += ran.counts;
            outcome.times.append(&mut ran.times);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| {
            let end = worker.join();
            end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ends.collect::<Result<()>>()
    })?;
    Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_one(job: &Job<'_>) -> Result<Outcome> {
    // What is not nice is run by something that changes nothing.
    let output = Command::new(if job.is_nice { "nice" } else { "env" })
        .arg(&job.binary.program)
        .args(job.tests)
        .args(&job.arguments)
        // The times of tests are told by nightly versions alone, unless a binary is told that it is one.
        .args(["-Z", "unstable-options", "--report-time"])
        .env("RUSTC_BOOTSTRAP", "1")
        .envs(job.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.binary.folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{}`", job.binary.program.display()))?;
    let mut ran = read(&job.name, &String::from_utf8_lossy(&output.stdout));
    if !output.status.success() && ran.counts.failed == 0 {
        // A test took its whole process with it: no line says so.
        let (name, status) = (&job.name, output.status);
        ran.said += &format!("{name} ended without a failed test - {status}\n");
        ran.counts.failed = 1;
    }
    for chosen in job.tests {
        if ran.counts.failed == 0 && !ran.times.iter().any(|test| test.name.contains(chosen)) {
            ran.said += &format!("{} has no test that is called `{chosen}`\n", job.name);
            ran.counts.failed = 1;
        }
    }
    Ok(ran)
}

/// Reads what libtest prints: counts, times, and what is left for people.
fn read(job: &str, printed: &str) -> Outcome {
    let mut ran = Outcome::default();
    for line in printed.lines() {
        if let Some(counts) = counted(line) {
            ran.counts += counts;
        } else if let Some((test, seconds)) = passed(line) {
            let name = format!("{job} {test}");
            ran.times.push(Timed { name, seconds });
        } else if !is_usual(line) {
            ran.said += &format!("{line}\n");
        }
    }
    ran
}

/// The numbers of a line `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn counted(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let (before, _) = rest.split_once(word)?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some(Counts {
        passed: number(" passed")?,
        failed: number(" failed")?,
        skipped: 0,
        left_out: number(" ignored")?,
    })
}

/// The test and the time of a line `test a::b ... ok <0.012s>`.
fn passed(line: &str) -> Option<(&str, f64)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ok <")?;
    Some((test, end.trim_end().strip_suffix("s>")?.parse().ok()?))
}

/// Lines that tell nothing of interest.
fn is_usual(line: &str) -> bool {
    let line = line.trim_end();
    let is_count =
        line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    let is_test = line.starts_with("test ");
    let is_left_out = is_test && line.contains(" ... ignored");
    let is_slow = is_test && line.contains(" has been running for over ");
    line.is_empty() || is_count || is_left_out || is_slow
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test a::b ... ok <0.250s>
test a::c ... ignored, part of the cross product
test a::d has been running for over 60 seconds
test a::d ... FAILED <61.000s>

failures:
d said this

test result: FAILED. 10 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.25s
";

    #[test]
    fn tests_are_counted_and_timed_and_what_failed_is_said() {
        let ran = read("engine it", OUTPUT);
        let expected = Counts {
            passed: 10,
            failed: 3,
            skipped: 0,
            left_out: 1,
        };
        assert_eq!(ran.counts, expected);
        let time = Timed {
            name: "engine it a::b".to_owned(),
            seconds: 0.25,
        };
        assert_eq!(ran.times, [time]);
        assert_eq!(
            ran.said,
            "test a::d ... FAILED <61.000s>\nfailures:\nd said this\n"
        );
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(counted("test result: unknown"), None);
        assert_eq!(counted("3 passed; 0 failed; 0 ignored"), None);
        assert_eq!(passed("test a ... ok <soon>"), None);
    }

    #[test]
    fn binaries_are_known_by_crate_and_target() {
        let message = |kind: &str, is_test: bool| {
            format!(
                r#"{{"reason": "compiler-artifact", "manifest_path": "/x/crates/load/Cargo.toml", "executable": "/t/it-1",
                    "target": {{"name": "it", "kind": ["{kind}"]}}, "profile": {{"test": {is_test}}}}}"#
            )
        };
        let name = |message: &str| binary(message).unwrap().map(|binary| binary.name);
        assert_eq!(name(&message("test", true)).as_deref(), Some("load it"));
        assert_eq!(name(&message("lib", true)).as_deref(), Some("load"));
        assert_eq!(name(&message("bin", false)), None);
        assert_eq!(name(r#"{"reason": "build-finished"}"#), None);
    }

    #[test]
    fn a_binary_that_ends_by_a_signal_has_failed() {
        let binary = Binary::named("x");
        let job = |script: &str| Job {
            name: "x".to_owned(),
            binary: &binary,
            tests: &[],
            arguments: vec!["-c".to_owned(), script.to_owned()],
            variables: vec![("SAID", "8 passed; 0 failed; 2 ignored".to_owned())],
            is_nice: true,
        };
        let good = "echo \"test result: ok. $SAID;\"";
        let outcome = run(vec![job(good), job("kill -9 $$"), job(good)], 2).unwrap();
        assert_eq!((outcome.counts.passed, outcome.counts.failed), (16, 1));
        assert_eq!(outcome.counts.left_out, 4);
    }
}
