//! Finds source files that are too long to be one thing to read.
//!
//! clippy judges the length of functions (`too_many_lines`).

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::workspace::{Workspace, output};

/// The most lines of a file, its unit tests included.
const LINE_COUNT_MAX: usize = 600;

/// Files that are longer. An entry whose file has become short enough is refused as well, so the list
/// can only shrink.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/analysis/src/explain/tests/causes.rs", "cases of one rule"),
    ("crates/analysis/src/figures/quality/tests.rs", "cases of one rule"),
    ("crates/load/src/tests.rs", "cases of one driver"),
    ("crates/report/tests/it/synthetic.rs", "one synthetic record"),
];

/// Returns the files that are too long, and the exceptions that no file needs any more.
pub fn find(workspace: &Workspace) -> Result<Vec<String>> {
    let mut list = workspace.command("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.rs"]);
    let files = output(&mut list)?;

    let mut findings = Vec::new();
    for file in files.lines() {
        let path = workspace.root.join(file);
        // git still lists a file that is deleted but not committed.
        if path.exists() {
            findings.extend(judge(file, line_count(&path)?));
        }
    }
    let lost = EXCEPTIONS.iter().filter(|(file, _)| !workspace.root.join(file).exists());
    findings.extend(lost.map(|(file, _)| format!("{file}: no such file, but an exception")));
    Ok(findings)
}

fn judge(file: &str, line_count: usize) -> Option<String> {
    let is_exception = EXCEPTIONS.iter().any(|(exception, _)| *exception == file);
    if line_count > LINE_COUNT_MAX && !is_exception {
        return Some(format!("{file}: {line_count} lines, of at most {LINE_COUNT_MAX}"));
    }
    if line_count <= LINE_COUNT_MAX && is_exception {
        return Some(format!("{file}: is short enough to be no exception any more"));
    }
    None
}

fn line_count(path: &Path) -> Result<usize> {
    let text = fs::read(path)?;
    let text = str::from_utf8(&text).with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_and_a_needless_exception_are_found() {
        assert_eq!(judge("a.rs", LINE_COUNT_MAX), None);
        assert_eq!(judge("a.rs", 601), Some("a.rs: 601 lines, of at most 600".to_owned()));
        let (exception, _) = EXCEPTIONS[0];
        assert_eq!(judge(exception, 601), None);
        assert!(judge(exception, 600).is_some());
    }
}
