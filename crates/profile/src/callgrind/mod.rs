//! Exact work of processes: runs programs under valgrind's callgrind, and counts the instructions
//! and calls of their functions between two points in time.
//!
//! ```text
//! Callgrind::command ──► valgrind PROGRAM ──► children
//!                            ▲    │
//! Counter::begin, end ──► vgdb    └──► dumps ──► Counted ──► split
//! ```
//!
//! The programs run without counting until [`Counter::begin`], about 5 times slower than alone.
//! While callgrind counts, they run about 50 times slower.
//!
//! ```no_run
//! use profile::callgrind::{Callgrind, Counter, Options};
//!
//! let callgrind = Callgrind::find()?;
//! let folder = std::path::Path::new("/tmp/counts");
//! let words = callgrind.command(folder, Options::default());
//! let server = std::process::Command::new(&words[0]).args(&words[1..]).arg("server").spawn()?;
//!
//! let stop = std::sync::atomic::AtomicBool::new(false);
//! let mut counter = Counter::new(&callgrind, folder, None);
//! counter.begin(&[server.id()], &stop)?;
//! // The load runs.
//! for counted in counter.end(&stop)? {
//!     println!("{} {:?}: {} instructions", counted.process, counted.thread, counted.graph.total());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counter;
mod dump;
mod error;
mod split;
mod vgdb;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{self, Path, PathBuf};
use std::process::Command;

pub use counter::{Counted, Counter};
pub use error::WorkError;
pub use split::{Split, split};

/// The beginning of the names of pipes to `vgdb`.
const PIPES: &str = "vgdb";
/// The beginning of the names of files with counts, which the id of the process follows.
const DUMPS: &str = "cg.";
/// The beginning of the names of callgrind's logs, which the id of the process follows.
const LOGS: &str = "log.";

/// The functions of the C library that fork. The first ones call the last one.
const FORKS: [&str; 4] = ["fork", "__fork", "__libc_fork", "_Fork"];

/// Options of callgrind beside counting instructions and calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Simulates the processor's caches and its prediction of branches.
    pub simulate_cache: bool,
    /// Leaves out the programs that the program starts, which then run as usual. Its forks without
    /// a program of their own are always counted.
    pub leaves_out_programs: bool,
}

/// An installed valgrind.
#[derive(Clone, Debug)]
pub struct Callgrind {
    valgrind: PathBuf,
    vgdb: PathBuf,
    version: String,
}

impl Callgrind {
    /// Finds valgrind's programs on `PATH`.
    ///
    /// # Errors
    /// [`WorkError::NotInstalled`], or valgrind does not start.
    pub fn find() -> Result<Self, WorkError> {
        // Debian's `valgrind` is a script that sets variables for the program that it runs.
        let valgrind = program("valgrind.bin").or_else(|_| program("valgrind"))?;
        let vgdb = program("vgdb")?;

        let output = Command::new(&valgrind)
            .args(["--command-line-only=yes", "--version"])
            .output()
            .map_err(WorkError::io("cannot start `valgrind`"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match printed.trim().strip_prefix("valgrind-") {
            Some(number) if output.status.success() => {
                Ok(Self { version: format!("callgrind {number}"), valgrind, vgdb })
            }
            _ => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                Err(WorkError::Version { printed: format!("{printed} {stderr}").trim().into() })
            }
        }
    }

    /// Returns the version: `callgrind 3.19.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the words that come before a program and its arguments; the first is the program to
    /// start. The program and all its children run under callgrind and have their files in
    /// `folder`, which must exist and in which their user must be able to create files. They count
    /// nothing at first.
    pub fn command(&self, folder: &Path, options: Options) -> Vec<OsString> {
        // The program may change its directory.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let escaped_folder = escaped(&folder);

        let mut words = vec![
            self.valgrind.clone().into_os_string(),
            "--tool=callgrind".into(),
            // Without the options in the user's environment and files.
            "--command-line-only=yes".into(),
            if options.leaves_out_programs {
                "--trace-children=no"
            } else {
                "--trace-children=yes"
            }
            .into(),
            "--vgdb=yes".into(),
            in_folder("--vgdb-prefix=", folder.as_os_str(), PIPES),
            in_folder("--log-file=", &escaped_folder, &format!("{LOGS}%p")),
            in_folder("--callgrind-out-file=", &escaped_folder, &format!("{DUMPS}%p")),
            // Threads get valgrind's only processor in turn, as they would get a real one.
            "--fair-sched=try".into(),
            "--instr-atstart=no".into(),
            "--separate-threads=yes".into(),
            // So that functions have the names that they have in profiles.
            "--demangle=no".into(),
            // So that calls of a function by itself are counted, too.
            "--skip-direct-rec=no".into(),
        ];
        for function in FORKS {
            // A child begins with the counts of its parent: here they are written and set to zero.
            words.push(format!("--dump-before={function}").into());
        }
        if options.simulate_cache {
            words.extend(["--cache-sim=yes".into(), "--branch-sim=yes".into()]);
        }
        words
    }
}

/// Returns an option whose value is the name of a file.
fn in_folder(option: &str, folder: &OsStr, name: &str) -> OsString {
    let mut word = OsString::from(option);
    word.push(folder);
    word.push("/");
    word.push(name);
    word
}

/// Returns the path of one of valgrind's programs.
fn program(name: &'static str) -> Result<PathBuf, WorkError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or(WorkError::NotInstalled { program: name })
}

/// Returns a folder as valgrind reads names of files, in which `%` has a meaning.
fn escaped(folder: &Path) -> OsString {
    let mut bytes = Vec::new();
    for &byte in folder.as_os_str().as_bytes() {
        bytes.push(byte);
        if byte == b'%' {
            bytes.push(b'%');
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_an_error_that_names_the_package() {
        let error = program("valgrind-that-is-missing").unwrap_err();
        assert!(error.to_string().contains("install Debian's package `valgrind`"), "{error}");
    }

    #[test]
    fn folders_may_have_any_name() {
        let callgrind =
            Callgrind { valgrind: "valgrind".into(), vgdb: "vgdb".into(), version: String::new() };
        let words = callgrind.command(Path::new("/a b/100%"), Options::default());
        for expected in [
            "--vgdb-prefix=/a b/100%/vgdb",
            "--log-file=/a b/100%%/log.%p",
            "--callgrind-out-file=/a b/100%%/cg.%p",
        ] {
            assert!(words.contains(&expected.into()), "{words:?}");
        }
    }
}
