//! The options of `cargo xtask test`.

use anyhow::{Result, bail};

use super::part::Part;

/// The choices of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The whole cross product runs.
    pub all: bool,
    /// The commit since which crates have to have changed for all of their tests to run. Of crates
    /// that depend on them, only quick tests run.
    pub changed_since: Option<String>,
    /// The part of the suite that runs.
    pub part: Part,
}

/// The commit that `--changed` without a commit means: what is not committed has changed.
const LAST_COMMIT: &str = "HEAD";

impl Options {
    /// Reads the arguments after `test`.
    ///
    /// # Errors
    ///
    /// Fails for an unknown argument, and for a part that cannot be.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--all" => options.all = true,
                "--changed" => {
                    let commit = rest.next_if(|next| !next.starts_with("--"));
                    let commit = commit.map_or(LAST_COMMIT, String::as_str);
                    options.changed_since = Some(commit.to_owned());
                }
                "--part" => options.part = Part::parse(rest.next().map_or("", String::as_str))?,
                other => bail!(
                    "unknown argument `{other}` of `test`; expected `--all`, `--changed` or `--part`"
                ),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn changes_are_since_the_last_commit_unless_another_is_named() {
        let since = |line: &str| parse(line).unwrap().changed_since;
        assert_eq!(since(""), None);
        assert_eq!(since("--changed").as_deref(), Some("HEAD"));
        assert_eq!(since("--changed --all").as_deref(), Some("HEAD"));
        assert_eq!(since("--all --changed main~3").as_deref(), Some("main~3"));
    }

    #[test]
    fn the_error_of_a_bad_argument_says_what_is_allowed() {
        for (line, part) in [
            ("--everything", "unknown argument `--everything`"),
            ("main", "expected `--all`, `--changed` or `--part`"),
            ("--part", "expected `--part NUMBER/COUNT`"),
            ("--part 3/2", "`3/2`"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
