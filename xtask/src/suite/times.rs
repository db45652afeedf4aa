//! The times of tests, kept in a file for the next run and for people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::libtest::TestTime;
use crate::workspace::Workspace;

/// The first line of the file.
const HEADER: &str = "binary,test,seconds,cpu_seconds,programs";

/// The number of slowest tests that are listed.
const SLOWEST_COUNT: usize = 10;

/// The seconds of tests, by the names of the job and of the test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    seconds: BTreeMap<(String, String), f64>,
}

impl Times {
    /// Reads the times of earlier runs. There are none in a new target directory.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is not one of these.
    pub fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let mut times = Self::default();
        for (index, line) in fs::read_to_string(file)?.lines().enumerate().skip(1) {
            let (job, test, seconds) = fields(line).with_context(|| {
                format!(
                    "line {} of {} is not a time of a test; remove the file",
                    index + 1,
                    file.display()
                )
            })?;
            times.seconds.insert((job.to_owned(), test.to_owned()), seconds);
        }
        Ok(times)
    }

    /// Returns the seconds that a test last took.
    pub fn of(&self, job: &str, test: &str) -> Option<f64> {
        self.seconds.get(&(job.to_owned(), test.to_owned())).copied()
    }
}

fn fields(line: &str) -> Option<(&str, &str, f64)> {
    let mut fields = line.split(',');
    let (job, test, seconds) = (fields.next()?, fields.next()?, fields.next()?);
    Some((job, test, seconds.parse().ok()?))
}

/// Returns the file with the times of the last run: a row for each test, and one without a test for
/// each process that ran several.
///
/// # Errors
///
/// Fails if cargo does not name its target directory.
pub fn file(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.target_directory()?.join("test-times.csv"))
}

/// Writes the times, the longest first.
///
/// # Errors
///
/// Fails if the file cannot be written, or a name has a comma, which separates the fields.
pub fn write(file: &Path, times: &[TestTime]) -> Result<()> {
    let mut times: Vec<&TestTime> = times.iter().collect();
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut text = format!("{HEADER}\n");
    for time in times {
        let test = time.test.as_deref().unwrap_or_default();
        ensure!(
            !time.job.contains(',') && !test.contains(','),
            "`{} {test}` has a comma",
            time.job
        );
        let cpu_seconds = time.used.cpu_seconds.map(|seconds| format!("{seconds:.3}"));
        let programs = time.used.programs.map(|programs| programs.to_string());
        text += &format!(
            "{},{test},{:.3},{},{}\n",
            time.job,
            time.seconds,
            cpu_seconds.unwrap_or_default(),
            programs.unwrap_or_default()
        );
    }
    fs::write(file, text)?;
    Ok(())
}

/// Returns the slowest tests as text.
pub fn slowest(times: &[TestTime]) -> String {
    let mut tests: Vec<&TestTime> = times.iter().filter(|time| time.test.is_some()).collect();
    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut text = "the slowest tests:\n".to_owned();
    for time in tests.iter().take(SLOWEST_COUNT) {
        let test = time.test.as_deref().unwrap_or_default();
        text += &format!("{:>7.1} s  {} {test}\n", time.seconds, time.job);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::libtest::Used;

    fn time(test: Option<&str>, seconds: f64, cpu_seconds: Option<f64>) -> TestTime {
        let test = test.map(str::to_owned);
        let used = Used { cpu_seconds, programs: cpu_seconds.map(|_| 7) };
        TestTime { job: "load it".to_owned(), test, seconds, used }
    }

    #[test]
    fn times_are_kept_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("times.csv");
        assert_eq!(Times::read(&file).unwrap(), Times::default());

        let times = [
            time(Some("a::b"), 0.25, None),
            time(Some("a::c"), 3.5, Some(1.25)),
            time(None, 4.0, Some(2.0)),
        ];
        write(&file, &times).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            format!(
                "{HEADER}\nload it,,4.000,2.000,7\nload it,a::c,3.500,1.250,7\nload it,a::b,0.250,,\n"
            )
        );
        let read = Times::read(&file).unwrap();
        assert_eq!(read.of("load it", "a::c"), Some(3.5));
        assert_eq!(read.of("load", "a::c"), None);
        assert_eq!(slowest(&times).lines().nth(1), Some("    3.5 s  load it a::c"));
    }

    #[test]
    fn a_name_that_would_shift_the_fields_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let comma = TestTime { job: "a, b".to_owned(), ..time(None, 1.0, None) };
        let error = write(&folder.path().join("times.csv"), &[comma]).unwrap_err().to_string();
        assert!(error.contains("has a comma"), "{error}");
    }

    #[test]
    fn a_file_that_is_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("times.csv");
        fs::write(&file, format!("{HEADER}\na,b,soon,,\n")).unwrap();
        let error = Times::read(&file).unwrap_err().to_string();
        assert!(error.starts_with("line 2 of ") && error.contains("times.csv"), "{error}");
    }
}
