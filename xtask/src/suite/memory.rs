//! A folder in memory for the files of tests.
//!
//! A cluster of PostgreSQL has a thousand files, which take a disk a second to make, and memory a
//! twentieth of one. Hardly any test looks at the disk: those that do ask for it. New clusters are kept
//! there, and copied.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use fs_err as fs;
use tempfile::TempDir;

/// The file system in memory that Linux has for any user.
const MEMORY: &str = "/dev/shm";

/// The free memory with which tests may put their files there.
const FREE_KB_MIN: u64 = 6 * 1024 * 1024;

/// The folder in it of new databases of servers, which those that are created alike are copies of.
const NEW_DATABASES: &str = "new-databases";

/// A folder for the files of tests, which is removed with what is in it.
pub struct TestFolder(TempDir);

impl TestFolder {
    /// Creates a folder in memory; `None` if there is too little, or no program may be started there.
    pub fn in_memory() -> Result<Option<Self>> {
        if free_kb("/proc/meminfo").unwrap_or(0) < FREE_KB_MIN {
            return Ok(None);
        }
        let Ok(folder) = tempfile::Builder::new().prefix("assay-tests-").tempdir_in(MEMORY) else {
            return Ok(None);
        };

        // Servers run as other users.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777))?;
        fs::create_dir(folder.path().join(NEW_DATABASES))?;
        let can_run = runs_programs(folder.path())?;
        Ok(can_run.then_some(Self(folder)))
    }

    /// Returns the variables that tell tests where their files are, and where a disk is, and the
    /// engines where new databases are kept.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("TMPDIR", self.0.path().display().to_string()),
            ("ASSAY_TEST_DISK", std::env::temp_dir().display().to_string()),
            ("ASSAY_TEST_NEW_DATABASES", self.0.path().join(NEW_DATABASES).display().to_string()),
        ]
    }
}

/// Returns the memory that programs may still take, in KiB.
fn free_kb(file: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns whether programs in a folder may be started, which an administrator can forbid.
fn runs_programs(folder: &Path) -> Result<bool> {
    let program = folder.join("try");
    fs::copy("/bin/true", &program)?;
    let status = Command::new(&program).status();
    fs::remove_file(&program)?;
    Ok(status.is_ok_and(|status| status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_memory_is_what_the_kernel_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "MemTotal:  100 kB\nMemAvailable:   42 kB\n").unwrap();
        assert_eq!(free_kb(file.path().to_str().unwrap()), Some(42));
        assert_eq!(free_kb("/nonexistent"), None);
    }

    #[test]
    fn programs_run_in_an_ordinary_folder() {
        assert!(runs_programs(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
