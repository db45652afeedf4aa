//! Exit codes, and errors as people read them.

use std::process::ExitCode;

use runner::failure::{Errors, PlanRefused, failure_of, is_usage};

use crate::output::{eprint_colored, has_color, print_failure};

/// The exit codes of all commands. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything went as planned.
    Ok = 0,
    /// A run or a step failed, or a command could not do its work.
    Failed = 1,
    /// The command line or the plan is wrong; nothing was run.
    Usage = 2,
    /// `compare` or `history` found a regression with `--gate`, or `compare` a missed bound with
    /// `--require`; or the finding of a bundle was not reproduced.
    Regressed = 3,
    /// A result is invalid or too noisy to say.
    Invalid = 4,
    /// `bisect --predicate` does not know: `git bisect run` skips the commit.
    Skipped = 125,
    /// The operator interrupted it.
    Interrupted = 130,
    /// `bisect --predicate` can judge no commit: `git bisect run` ends.
    Aborted = 255,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Prints an error and returns its exit code.
pub fn report_error(error: &anyhow::Error) -> Exit {
    if let Some(PlanRefused(diagnostics)) = error.downcast_ref() {
        eprint_colored(&diagnostics.render(has_color(&std::io::stderr())));
        return Exit::Usage;
    }

    if let Some(Errors(errors)) = error.downcast_ref() {
        let exits: Vec<Exit> = errors.iter().map(report_error).collect();
        return exits.into_iter().min().unwrap_or(Exit::Failed);
    }

    print_failure(&failure_of(error));
    if is_usage(error) { Exit::Usage } else { Exit::Failed }
}
