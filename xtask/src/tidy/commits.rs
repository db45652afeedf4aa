//! Names commits that a reader of the history would stumble over. Only their author runs this check
//! (`cargo xtask tidy --commits REV`): a subject cannot be mended once others have the commit.

use anyhow::Result;

use crate::workspace::{Workspace, output};

/// The length of subjects in the list of commits on one page of a terminal.
const SUBJECT_LENGTH_MAX: usize = 72;

/// Folders and files whose changes need a reason: they decide what is measured, what a verdict
/// means, and whether old records can still be read.
const NEED_A_REASON: &[&str] =
    &["crates/load/src/", "crates/analysis/src/compare/", "crates/record/src/model/"];

/// Separates the fields of a commit in git's output, and ends it.
const FIELD_END: char = '\u{1f}';
const COMMIT_END: char = '\u{1e}';

/// Returns the findings for all commits after `since`, one line for each. Merges are left out.
///
/// # Errors
///
/// Fails if git does not know `since`.
pub fn find(workspace: &Workspace, since: &str) -> Result<Vec<String>> {
    let mut log = workspace.command("git");
    log.args(["log", "--no-merges", "--reverse", "--name-only"]);
    log.arg(format!("--format={COMMIT_END}%h{FIELD_END}%s{FIELD_END}%b{FIELD_END}"));
    log.args(["--end-of-options", &format!("{since}..HEAD"), "--"]);

    let printed = output(&mut log)?;
    let commits = printed.split(COMMIT_END).filter_map(Commit::parse);
    Ok(commits.flat_map(|commit| commit.findings()).collect())
}

/// A commit as git prints it.
struct Commit<'a> {
    hash: &'a str,
    subject: &'a str,
    body: &'a str,
    files: Vec<&'a str>,
}

impl<'a> Commit<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut fields = text.splitn(4, FIELD_END);
        Some(Self {
            hash: fields.next()?,
            subject: fields.next()?,
            body: fields.next()?.trim(),
            files: fields.next()?.lines().filter(|line| !line.is_empty()).collect(),
        })
    }

    fn findings(&self) -> Vec<String> {
        let mut problems = Vec::new();

        let length = self.subject.chars().count();
        if length > SUBJECT_LENGTH_MAX {
            problems.push(format!("its subject has {length} characters"));
        }
        if self.subject.contains(';') {
            problems.push("its subject has two topics".to_owned());
        }
        if !self.subject.contains(": ") {
            problems.push("its subject names no crate or part".to_owned());
        }

        let needs_reason = |file: &&&str| NEED_A_REASON.iter().any(|part| file.starts_with(part));
        if let Some(file) = self.files.iter().find(needs_reason)
            && self.body.is_empty()
        {
            problems.push(format!("it changes {file}, and no body says why"));
        }

        problems
            .iter()
            .map(|problem| format!("{}: {problem}: {}", self.hash, self.subject))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(subject: &str, body: &str, file: &str) -> Vec<String> {
        let text = format!("abc{FIELD_END}{subject}{FIELD_END}{body}\n{FIELD_END}\n\n{file}\n");
        Commit::parse(&text).unwrap().findings()
    }

    #[test]
    fn a_subject_with_two_topics_or_without_a_part_or_too_long_is_named() {
        assert!(findings("plan: refuse links", "", "crates/plan/src/lib.rs").is_empty());
        let found = findings("plan: refuse links; docs: say so", "", "a");
        assert_eq!(found, ["abc: its subject has two topics: plan: refuse links; docs: say so"]);
        assert_eq!(findings("wip", "", "a").len(), 1);
        assert_eq!(findings(&format!("plan: {}", "x".repeat(66)), "", "a").len(), 0);
        assert_eq!(findings(&format!("plan: {}", "x".repeat(67)), "", "a").len(), 1);
    }

    #[test]
    fn a_change_of_a_verdict_needs_a_reason() {
        let file = "crates/analysis/src/compare/verdict.rs";
        let found = findings("analysis: widen intervals", "", file);
        assert_eq!(
            found,
            [format!("abc: it changes {file}, and no body says why: analysis: widen intervals")]
        );
        assert!(findings("analysis: widen intervals", "Because.", file).is_empty());
    }
}
