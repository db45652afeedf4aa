//! Lists the tests of binaries, and runs them. Runs the doctests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use wait4::Wait4;

use super::compilation::Compilation;
use super::libtest::{Outcome, TestTime, Used};
use super::meter::Meter;
use crate::stages::Stopwatch;
use crate::workspace::{Workspace, output};

/// A binary with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The folder of its crate, and the target of integration tests: `engine it`.
    pub name: String,
    program: PathBuf,
    folder: PathBuf,
}

impl Binary {
    /// Returns a binary that has a name only.
    #[cfg(test)]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), program: "/bin/sh".into(), folder: "/".into() }
    }

    /// Returns a binary that lists the tests in a file, and those that only `--all` runs in the file
    /// beside it with the extension `all`.
    #[cfg(test)]
    pub fn listing(name: &str, file: &Path) -> Self {
        let program = file.with_extension("sh");
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *--ignored*) cat '{0}.all' ;; *) cat '{0}' ;; esac\n",
            file.display()
        );
        fs_err::write(&program, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&program, mode).unwrap();
        Self { program, ..Self::named(name) }
    }

    /// Returns the test binary in a message of cargo, if it has one.
    ///
    /// # Errors
    ///
    /// Fails if its crate has no folder.
    pub fn in_message(message: &Value) -> Result<Option<Self>> {
        let is_test =
            message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
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
        Ok(Some(Self { name, program: program.into(), folder: folder.into() }))
    }

    /// Returns the name of the crate.
    pub fn package(&self) -> &str {
        self.name.split(' ').next().unwrap_or(&self.name)
    }

    /// Returns whether these are integration tests.
    pub fn has_integration_tests(&self) -> bool {
        self.name.contains(' ')
    }

    /// Returns the names of all tests, or only of those that `--all` adds.
    fn list(&self, of_all_only: bool) -> Result<Vec<String>> {
        let mut command = Command::new(&self.program);
        command.args(["--list", "--format", "terse"]).current_dir(&self.folder);
        if of_all_only {
            command.arg("--ignored");
        }
        let printed = output(&mut command)?;
        let names = printed.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the names of its tests, by whether `--all` adds them.
    ///
    /// # Errors
    ///
    /// Fails if the binary cannot list them.
    pub fn tests(&self) -> Result<TestNames> {
        let of_all = self.list(true)?;
        let mut usual = self.list(false)?;
        usual.retain(|name| !of_all.contains(name));
        Ok(TestNames { usual, of_all })
    }
}

/// The names of the tests of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestNames {
    /// Tests that run each time.
    pub usual: Vec<String>,
    /// Tests of the cross product, which only `--all` runs.
    pub of_all: Vec<String>,
}

/// The tests that a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All whose names contain one of these parts, or all if there is none. Each part must match a
    /// test that passes.
    Containing(&'static [&'static str]),
    /// One test, in a process of its own.
    One(String),
    /// These tests, in one process.
    These(Vec<String>),
}

/// One run of a binary.
pub struct Job<'a> {
    /// The name of the run.
    pub name: String,
    /// The binary.
    pub binary: &'a Binary,
    /// The tests to run.
    pub tests: Chosen,
    /// Further arguments of libtest, such as the number of threads.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub variables: Vec<(&'static str, String)>,
    /// The tests keep processors busy, and therefore run at a low priority.
    pub is_nice: bool,
}

impl Job<'_> {
    /// Runs the tests.
    ///
    /// # Errors
    ///
    /// Fails if the binary cannot run. A test that fails is no error.
    pub fn run(&self) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let mut meter = Meter::begin();
        let mut child = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.binary.program.display()))?;
        let mut stdout = child.stdout.take().context("a test binary has no output")?;
        let mut printed = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut printed)?;

        let ended = child.wait4()?;
        // The kernel's own sum lacks servers that nobody waited for.
        let waited_for = ended.rusage.utime + ended.rusage.stime;
        let used = Used {
            cpu_seconds: meter.cpu_seconds().or(Some(waited_for.as_secs_f64())),
            programs: meter.programs(),
        };

        let printed = String::from_utf8_lossy(&printed);
        let mut outcome = Outcome::read(&self.name, &printed, ended.status);
        self.note_used(&mut outcome, used, stopwatch.seconds());
        self.refuse_parts_without_test(&mut outcome);
        Ok(outcome)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("env");
        // A shell makes what it starts in the background ignore these, and some tests send them.
        command.arg("--default-signal=INT,QUIT");
        if self.is_nice {
            command.arg("nice");
        }
        command.arg(&self.binary.program);
        match &self.tests {
            Chosen::Containing(parts) => command.args(*parts),
            // In a thread of its own, which has the name of the test.
            Chosen::One(name) => command.args(["--exact", name, "--test-threads=2"]),
            Chosen::These(names) => command.arg("--exact").args(names),
        };
        command
            .args(&self.arguments)
            // Only a nightly libtest reports times, or one that is told to act as nightly.
            .args(["-Z", "unstable-options", "--report-time"])
            .env("RUSTC_BOOTSTRAP", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.binary.folder);
        command
    }

    /// Adds what the process used to the only test, or as a row of all tests together.
    fn note_used(&self, outcome: &mut Outcome, used: Used, seconds: f64) {
        if let (Chosen::One(_), [time]) = (&self.tests, outcome.times.as_mut_slice()) {
            time.used = used;
        } else {
            let job = self.name.clone();
            outcome.times.push(TestTime { job, test: None, seconds, used });
        }
    }

    /// A part of a name that matches no test is a mistake: the tests were renamed.
    fn refuse_parts_without_test(&self, outcome: &mut Outcome) {
        let Chosen::Containing(parts) = &self.tests else { return };
        for part in *parts {
            let mut tests = outcome.times.iter().filter_map(|time| time.test.as_deref());
            if outcome.counts.failed == 0 && !tests.any(|test| test.contains(part)) {
                outcome.text += &format!("{} has no test with `{part}` in its name\n", self.name);
                outcome.counts.failed = 1;
            }
        }
    }
}

/// Runs the doctests of all crates.
///
/// # Errors
///
/// Fails if cargo cannot run.
pub fn run_doctests(workspace: &Workspace, compilation: &Compilation) -> Result<Outcome> {
    const NAME: &str = "doctests";
    let stopwatch = Stopwatch::start();
    let mut meter = Meter::begin();
    let mut command = compilation.cargo(workspace, "test --doc --workspace --no-fail-fast");
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.context("cannot run `cargo test --doc`")?;

    let mut outcome = Outcome::read(NAME, &String::from_utf8_lossy(&ended.stdout), ended.status);
    if outcome.counts.failed > 0 {
        outcome.text += &String::from_utf8_lossy(&ended.stderr);
    }
    let used = Used { cpu_seconds: meter.cpu_seconds(), programs: meter.programs() };
    let seconds = stopwatch.seconds();
    outcome.times.push(TestTime { job: NAME.to_owned(), test: None, seconds, used });
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn binaries_are_named_after_crate_and_target() {
        let message = |kind: &str, is_test: bool| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": "/x/crates/load/Cargo.toml",
                "executable": "/t/it-1",
                "target": {"name": "it", "kind": [kind]},
                "profile": {"test": is_test},
            })
        };
        let name = |message: &Value| Binary::in_message(message).unwrap().map(|found| found.name);
        assert_eq!(name(&message("test", true)).as_deref(), Some("load it"));
        assert_eq!(name(&message("lib", true)).as_deref(), Some("load"));
        assert_eq!(name(&message("bin", false)), None);
        assert_eq!(name(&json!({"reason": "build-finished"})), None);
    }

    /// Returns a job that runs a shell script in place of a binary.
    fn job<'a>(binary: &'a Binary, tests: Chosen, script: &str) -> Job<'a> {
        Job {
            name: "x".to_owned(),
            binary,
            tests,
            arguments: vec!["-c".to_owned(), script.to_owned()],
            variables: vec![("RESULT", "1 passed; 0 failed; 2 ignored".to_owned())],
            is_nice: true,
        }
    }

    #[test]
    fn a_test_whose_process_has_no_other_has_its_cpu_time() {
        let binary = Binary { program: "/usr/bin/env".into(), ..Binary::named("x") };
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let lines = "echo 'test a ... ok <0.1s>'; echo \"test result: ok. $RESULT;\"";
        let script = format!("{busy}; {lines}");
        let mut shared = job(&binary, Chosen::Containing(&[]), &script);
        shared.arguments.insert(0, "sh".to_owned());
        let times = shared.run().unwrap().times;
        assert_eq!((times.len(), times[0].used, &times[1].test), (2, Used::default(), &None));
        assert!(times[1].used.cpu_seconds.unwrap() > 0.0);

        let mut outcome = Outcome::default();
        outcome.times.push(times[0].clone());
        let own = job(&binary, Chosen::One("a".to_owned()), "");
        let used = Used { cpu_seconds: Some(1.5), programs: Some(3) };
        own.note_used(&mut outcome, used, 2.0);
        assert_eq!((outcome.times.len(), outcome.times[0].used), (1, used));
    }

    #[test]
    fn a_part_of_a_name_that_no_test_has_is_a_failure() {
        let binary = Binary::named("x");
        let script = "echo 'test a::b ... ok <0.1s>'; echo \"test result: ok. $RESULT;\"";
        for (part, failed) in [(&["a::"], 0), (&["c::"], 1)] {
            let mut outcome = job(&binary, Chosen::Containing(&[]), script).run().unwrap();
            job(&binary, Chosen::Containing(part), "").refuse_parts_without_test(&mut outcome);
            assert_eq!(outcome.counts.failed, failed, "{part:?}");
        }
    }

    #[test]
    fn the_counts_of_a_binary_are_read() {
        let binary = Binary::named("x");
        let script = "echo \"test result: ok. $RESULT;\"";
        let outcome = job(&binary, Chosen::Containing(&[]), script).run().unwrap();
        assert_eq!((outcome.counts.passed, outcome.counts.left_out), (1, 2));
    }
}
