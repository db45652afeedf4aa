//! What holds for all of the project's text, checked: each check is a line of [`CHECKS`].

mod edges;
mod licences;
mod rust_text;
mod spdx;
mod text;
mod toolchain;

use std::fmt;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// Something that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the root.
    pub path: String,
    /// Counted from 1; none where the file as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong and what is allowed.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// How a check ended.
pub enum Verdict {
    /// It was made. Without findings all is well.
    Checked(Vec<Finding>),
    /// A tool found something and has said what and where.
    Told,
    /// It could not be made.
    Skipped(String),
}

/// One check.
pub struct Check {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it demands.
    pub about: &'static str,
    run: fn(&Workspace) -> Result<Verdict>,
}

/// All checks, the quick ones first.
pub const CHECKS: &[Check] = &[
    Check {
        name: "names",
        about: "no file is called after no purpose (`util`, `misc`, `helper`)",
        run: text::names,
    },
    Check {
        name: "marks",
        about: "no mark of unfinished work",
        run: text::marks,
    },
    Check {
        name: "paths",
        about: "no path of one machine",
        run: text::machine_paths,
    },
    Check {
        name: "unsafe",
        about: "`unsafe` only in the listed files",
        run: text::unsafe_code,
    },
    Check {
        name: "fs-err",
        about: "no `std::fs`: its errors name no path",
        run: text::std_fs,
    },
    Check {
        name: "edges",
        about: "crates use each other only in the allowed directions",
        run: edges::check,
    },
    Check {
        name: "licences",
        about: "every dependency's licence is an allowed one",
        run: licences::check,
    },
    Check {
        name: "fmt",
        about: "`cargo fmt --check`",
        run: toolchain::fmt,
    },
    Check {
        name: "clippy",
        about: "`cargo clippy`, all targets, warnings denied",
        run: toolchain::clippy,
    },
    Check {
        name: "doc",
        about: "`cargo doc` of the libraries, warnings denied",
        run: toolchain::doc,
    },
];

/// How many checks ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nothing was found.
    pub passed: usize,
    /// Something was found.
    pub failed: usize,
    /// The check could not be made.
    pub skipped: usize,
}

/// Makes the checks of these names, or all; prints what they find.
pub fn run(workspace: &Workspace, names: &[String]) -> Result<Tally> {
    for name in names {
        if !CHECKS.iter().any(|check| check.name == name) {
            let known: Vec<String> = CHECKS
                .iter()
                .map(|check| format!("`{}`", check.name))
                .collect();
            bail!(
                "unknown check `{name}` - expected one of {}",
                known.join(", ")
            );
        }
    }
    let mut tally = Tally::default();
    for check in CHECKS {
        if !names.is_empty() && !names.iter().any(|name| name == check.name) {
            continue;
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "how long a check takes is nothing that is measured"
        )]
        let begun = Instant::now();
        // A check that breaks must not hide what the others find.
        let verdict = (check.run)(workspace);
        let seconds = begun.elapsed().as_secs_f64();
        let end = match verdict {
            Ok(Verdict::Checked(findings)) if findings.is_empty() => {
                tally.passed += 1;
                "ok".to_owned()
            }
            Ok(Verdict::Checked(mut findings)) => {
                tally.failed += 1;
                findings.sort();
                for finding in &findings {
                    println!("{finding}");
                }
                format!("FAILED, {} found", findings.len())
            }
            Ok(Verdict::Told) => {
                tally.failed += 1;
                "FAILED, see above".to_owned()
            }
            Ok(Verdict::Skipped(reason)) => {
                tally.skipped += 1;
                format!("SKIPPED: {reason}")
            }
            Err(error) => {
                tally.failed += 1;
                format!("FAILED, cannot check: {error:#}")
            }
        };
        println!("tidy {:<9} {seconds:6.1} s  {end}", check.name);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_check_is_refused_with_the_known_ones() {
        let error = run(&Workspace::here(), &["formatting".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`formatting`") && error.contains("`fmt`"),
            "{error}"
        );
    }

    #[test]
    fn a_finding_begins_with_path_and_line() {
        let what = "wrong".to_owned();
        let at_line = Finding {
            path: "a/b.rs".to_owned(),
            line: Some(7),
            what: what.clone(),
        };
        assert_eq!(at_line.to_string(), "a/b.rs:7: wrong");
        let whole = Finding {
            path: "a/b.rs".to_owned(),
            line: None,
            what,
        };
        assert_eq!(whole.to_string(), "a/b.rs: wrong");
    }
}
