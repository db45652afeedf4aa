//! The output of test binaries: counts, times, and what people should read.

use std::process::ExitStatus;

/// The numbers of tests, by their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that could not run here.
    pub skipped: usize,
    /// Tests that this run leaves out, such as those of the cross product.
    pub left_out: usize,
}

impl Counts {
    /// Counts a check as one test.
    pub fn of_check(is_good: bool) -> Self {
        if is_good {
            Self { passed: 1, ..Self::default() }
        } else {
            Self { failed: 1, ..Self::default() }
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.left_out += other.left_out;
    }
}

/// The time of a test that passed.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTime {
    /// The name of the run of a binary: `engine it`.
    pub job: String,
    /// The name of the test, or `None` for all tests that shared a process.
    pub test: Option<String>,
    /// The duration.
    pub seconds: f64,
    /// The work of its process.
    pub used: Used,
}

/// The work of a process and of all that it started. Empty for a test that shared its process with
/// others, and as far as the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// The CPU time.
    pub cpu_seconds: Option<f64>,
    /// The number of programs that started.
    pub programs: Option<u64>,
}

/// The results of test binaries.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The numbers of their tests.
    pub counts: Counts,
    /// The times of tests that passed.
    pub times: Vec<TestTime>,
    /// The output of the binaries, without lines about tests that passed.
    pub text: String,
}

impl Outcome {
    /// Reads what a binary printed before it ended with this status.
    pub fn read(job: &str, printed: &str, status: ExitStatus) -> Self {
        let mut outcome = Self::default();
        for line in printed.lines() {
            if let Some(counts) = counted(line) {
                outcome.counts += counts;
            } else if let Some(time) = passed(job, line) {
                outcome.times.push(time);
            } else if !is_usual(line) {
                outcome.text += &format!("{line}\n");
            }
        }

        if !status.success() && outcome.counts.failed == 0 {
            // A test crashed its whole process, so no line reports it.
            outcome.text += &format!("{job} ended without a failed test: {status}\n");
            outcome.counts.failed = 1;
        }
        outcome
    }

    /// Adds the results of another run. Its text has been printed.
    pub fn add(&mut self, other: Self) {
        self.counts += other.counts;
        self.times.extend(other.times);
    }
}

/// Reads the numbers in a line `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn counted(line: &str) -> Option<Counts> {
    let result = line.strip_prefix("test result: ")?;
    Some(Counts {
        passed: number_before(result, " passed")?,
        failed: number_before(result, " failed")?,
        skipped: 0,
        left_out: number_before(result, " ignored")?,
    })
}

/// Returns the last number before a word.
fn number_before(text: &str, word: &str) -> Option<usize> {
    let (before, _) = text.split_once(word)?;
    before.split_whitespace().next_back()?.parse().ok()
}

/// Reads the test and the time in a line `test a::b ... ok <0.012s>`.
fn passed(job: &str, line: &str) -> Option<TestTime> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ok <")?;
    Some(TestTime {
        job: job.to_owned(),
        test: Some(test.to_owned()),
        seconds: end.trim_end().strip_suffix("s>")?.parse().ok()?,
        used: Used::default(),
    })
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
    use std::os::unix::process::ExitStatusExt;

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
        let outcome = Outcome::read("engine it", OUTPUT, ExitStatus::from_raw(101 << 8));
        let expected = Counts { passed: 10, failed: 3, skipped: 0, left_out: 1 };
        assert_eq!(outcome.counts, expected);
        let time = TestTime {
            job: "engine it".to_owned(),
            test: Some("a::b".to_owned()),
            seconds: 0.25,
            used: Used::default(),
        };
        assert_eq!(outcome.times, [time]);
        assert_eq!(outcome.text, "test a::d ... FAILED <61.000s>\nfailures:\nd said this\n");
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(counted("test result: unknown"), None);
        assert_eq!(counted("3 passed; 0 failed; 0 ignored"), None);
        assert_eq!(passed("x", "test a ... ok <soon>"), None);
    }

    #[test]
    fn a_binary_that_a_signal_ends_has_failed() {
        const SIGKILL: i32 = 9;
        let outcome = Outcome::read("x", "running 1 test\n", ExitStatus::from_raw(SIGKILL));
        assert_eq!(outcome.counts.failed, 1);
        assert!(outcome.text.contains("signal: 9"), "{}", outcome.text);
    }
}
