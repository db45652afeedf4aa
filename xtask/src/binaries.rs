//! Builds the test binaries, and runs them side by side, since they wait most of the time. Runs the
//! doctests.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prepare;
use crate::stages::Stopwatch;
use crate::workspace::{Workspace, printed};

/// A binary with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The folder of its crate, and the target of integration tests: `engine it`.
    pub name: String,
    program: PathBuf,
    folder: PathBuf,
}

#[cfg(test)]
impl Binary {
    /// Returns a binary that has a name only.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), program: "/bin/sh".into(), folder: "/".into() }
    }
}

/// One run of a binary.
pub struct Job<'a> {
    /// The name of the run.
    pub name: String,
    /// The binary.
    pub binary: &'a Binary,
    /// The tests to run, by parts of their names; empty for all. Each part must match a test that
    /// passes.
    pub tests: &'static [&'static str],
    /// Further arguments of libtest, such as the number of threads.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub variables: Vec<(&'static str, String)>,
    /// It keeps processors busy, and therefore runs at a low priority.
    pub is_nice: bool,
}

/// The numbers of tests, by their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that could not run here.
    pub skipped: usize,
    /// Tests of the cross product, which only `--all` runs.
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

/// A test that passed, with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The names of the job and the test.
    pub name: String,
    /// Its duration.
    pub seconds: f64,
}

/// The results of jobs.
#[derive(Default)]
pub struct Outcome {
    /// The numbers of their tests.
    pub counts: Counts,
    /// The times of tests that passed.
    pub times: Vec<Timed>,
    /// Their output, without lines about tests that passed.
    text: String,
}

/// Builds all tests, and the programs that they run. Returns `None` if they do not compile, after
/// cargo's messages.
pub fn build(workspace: &Workspace, has_mpi: bool) -> Result<Option<Vec<Binary>>> {
    let arguments = "test --workspace --no-run --message-format=json-render-diagnostics";
    let mut command = workspace.cargo(arguments);
    if has_mpi {
        command.args(prepare::MPI_FEATURE);
    }
    let Some(messages) = printed(&mut command)? else {
        return Ok(None);
    };
    messages.lines().filter_map(|line| binary(line).transpose()).collect::<Result<_>>().map(Some)
}

/// Returns the test binary in a message of cargo, if it has one.
fn binary(message: &str) -> Result<Option<Binary>> {
    let message: Value = serde_json::from_str(message).context("cannot read cargo's messages")?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let Some(program) = message["executable"].as_str().filter(|_| is_test) else {
        return Ok(None);
    };
    let manifest = message["manifest_path"].as_str().unwrap_or_default();
    let folder = Path::new(manifest).parent().context("a crate has no folder")?;
    let name = folder.file_name().unwrap_or_default();
    let mut name = name.to_string_lossy().into_owned();
    if message["target"]["kind"][0] == "test" {
        let target = message["target"]["name"].as_str().unwrap_or_default();
        name = format!("{name} {target}");
    }
    Ok(Some(Binary { name, program: program.into(), folder: folder.into() }))
}

/// Runs jobs in their order, `parallel` of them at a time. Prints how each ended, and the output of
/// failed tests.
pub fn run(jobs: Vec<Job<'_>>, parallel: usize) -> Result<Outcome> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let outcome = Mutex::new(Outcome::default());
    let work = || -> Result<()> {
        loop {
            let Some(job) = lock(&jobs).pop_front() else {
                return Ok(());
            };
            let stopwatch = Stopwatch::start();
            let mut result = run_one(&job)?;
            let mut outcome = lock(&outcome);
            result.print(&job.name, &stopwatch);
            outcome.counts += result.counts;
            outcome.times.append(&mut result.times);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallel).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| {
            let end = worker.join();
            end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ends.collect::<Result<()>>()
    })?;
    Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the doctests of all crates.
pub fn run_doctests(workspace: &Workspace) -> Result<Outcome> {
    const NAME: &str = "doctests";
    let stopwatch = Stopwatch::start();
    let mut command = workspace.cargo("test --doc --workspace --no-fail-fast");
    let output = command.stdin(Stdio::null()).output();
    let output = output.context("cannot run `cargo test --doc`")?;
    let mut outcome = outcome_of(NAME, &output);
    if outcome.counts.failed > 0 {
        outcome.text += &String::from_utf8_lossy(&output.stderr);
    }
    outcome.print(NAME, &stopwatch);
    Ok(outcome)
}

impl Outcome {
    /// Prints what a job said, and how it ended.
    fn print(&self, job: &str, stopwatch: &Stopwatch) {
        let (Counts { passed, failed, .. }, seconds) = (self.counts, stopwatch.seconds());
        let end = if failed == 0 { "ok" } else { "FAILED" };
        print!("{}", self.text);
        println!("{end:<6} {job:<28} {passed:>5} passed {seconds:>7.1} s");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_one(job: &Job<'_>) -> Result<Outcome> {
    // `env` without arguments runs a program as it is.
    let output = Command::new(if job.is_nice { "nice" } else { "env" })
        .arg(&job.binary.program)
        .args(job.tests)
        .args(&job.arguments)
        // Only a nightly libtest reports times, or one that is told to act as nightly.
        .args(["-Z", "unstable-options", "--report-time"])
        .env("RUSTC_BOOTSTRAP", "1")
        .envs(job.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(&job.binary.folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{}`", job.binary.program.display()))?;
    let mut outcome = outcome_of(&job.name, &output);
    for part in job.tests {
        let mut times = outcome.times.iter();
        if outcome.counts.failed == 0 && !times.any(|test| test.name.contains(part)) {
            outcome.text += &format!("{} has no test with `{part}` in its name\n", job.name);
            outcome.counts.failed = 1;
        }
    }
    Ok(outcome)
}

/// Returns the outcome of a job with this output.
fn outcome_of(job: &str, output: &Output) -> Outcome {
    let mut outcome = read(job, &String::from_utf8_lossy(&output.stdout));
    if !output.status.success() && outcome.counts.failed == 0 {
        // A test crashed its whole process, so no line reports it.
        outcome.text += &format!("{job} ended without a failed test: {}\n", output.status);
        outcome.counts.failed = 1;
    }
    outcome
}

/// Reads the output of libtest: counts, times, and the text for people.
fn read(job: &str, printed: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in printed.lines() {
        if let Some(counts) = counted(line) {
            outcome.counts += counts;
        } else if let Some((test, seconds)) = passed(line) {
            let name = format!("{job} {test}");
            outcome.times.push(Timed { name, seconds });
        } else if !is_usual(line) {
            outcome.text += &format!("{line}\n");
        }
    }
    outcome
}

/// Reads the numbers in a line `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn counted(line: &str) -> Option<Counts> {
    let result = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let (before, _) = result.split_once(word)?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some(Counts {
        passed: number(" passed")?,
        failed: number(" failed")?,
        skipped: 0,
        left_out: number(" ignored")?,
    })
}

/// Reads the test and the time in a line `test a::b ... ok <0.012s>`.
fn passed(line: &str) -> Option<(&str, f64)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ok <")?;
    Some((test, end.trim_end().strip_suffix("s>")?.parse().ok()?))
}

/// Returns whether a line says nothing of interest.
fn is_usual(line: &str) -> bool {
    let line = line.trim_end();
    let is_count =
        line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    let is_test = line.starts_with("test ");
    // A doctest that passed has no time.
    let is_passed = is_test && line.ends_with(" ... ok");
    let is_left_out = is_test && line.contains(" ... ignored");
    let is_slow = is_test && line.contains(" has been running for over ");
    let is_total = line.starts_with("all doctests ran in ");
    line.is_empty() || is_count || is_passed || is_left_out || is_slow || is_total
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test a::b ... ok <0.250s>
test a::c ... ignored, part of the cross product
test a::d has been running for over 60 seconds
test src/lib.rs - (line 3) ... ok
all doctests ran in 0.59s; merged doctests compilation took 0.58s
test a::d ... FAILED <61.000s>

failures:
d said this

test result: FAILED. 10 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.25s
";

    #[test]
    fn tests_are_counted_and_timed_and_output_of_failures_is_kept() {
        let outcome = read("engine it", OUTPUT);
        let expected = Counts { passed: 10, failed: 3, skipped: 0, left_out: 1 };
        assert_eq!(outcome.counts, expected);
        let time = Timed { name: "engine it a::b".to_owned(), seconds: 0.25 };
        assert_eq!(outcome.times, [time]);
        assert_eq!(outcome.text, "test a::d ... FAILED <61.000s>\nfailures:\nd said this\n");
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(counted("test result: unknown"), None);
        assert_eq!(counted("3 passed; 0 failed; 0 ignored"), None);
        assert_eq!(passed("test a ... ok <soon>"), None);
    }

    #[test]
    fn binaries_are_named_after_crate_and_target() {
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
    fn a_binary_that_a_signal_ends_has_failed() {
        let binary = Binary::named("x");
        let job = |script: &str| Job {
            name: "x".to_owned(),
            binary: &binary,
            tests: &[],
            arguments: vec!["-c".to_owned(), script.to_owned()],
            variables: vec![("RESULT", "8 passed; 0 failed; 2 ignored".to_owned())],
            is_nice: true,
        };
        let good = "echo \"test result: ok. $RESULT;\"";
        let outcome = run(vec![job(good), job("kill -9 $$"), job(good)], 2).unwrap();
        assert_eq!((outcome.counts.passed, outcome.counts.failed), (16, 1));
        assert_eq!(outcome.counts.left_out, 4);
    }
}
