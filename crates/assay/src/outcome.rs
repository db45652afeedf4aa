//! How assay ends: exit codes, and errors as people read them.

use std::process::ExitCode;

use analysis::compat::Incomparable;
use record::Failure;

use crate::output::print_failure;

/// The exit codes of all commands. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything went as planned.
    Ok = 0,
    /// A run or a step failed, or a command could not do its work.
    Failed = 1,
    /// The command line or the plan is wrong; nothing was run.
    Usage = 2,
    /// A regression is shown; only where that was asked for.
    Regressed = 3,
    /// A result is invalid or too noisy to judge.
    Invalid = 4,
    /// The operator interrupted it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Sorts what a command line could have meant by `text`: the most alike names first.
pub fn most_alike_first<T>(items: &mut [T], text: &str, name: impl Fn(&T) -> &str) {
    let alike = |item: &T| strsim::normalized_damerau_levenshtein(text, name(item));
    items.sort_by(|a, b| alike(b).total_cmp(&alike(a)));
}

/// A mistake in the command line or the plan: nothing was run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl UsageError {
    /// What is wrong, and what to do about it.
    pub fn new(message: impl Into<String>, help: Option<String>) -> Self {
        Self {
            message: message.into(),
            help,
        }
    }
}

impl From<Incomparable> for UsageError {
    fn from(error: Incomparable) -> Self {
        Self::new(error.to_string(), Some(error.help.into()))
    }
}

/// Diagnostics of a plan that are printed already.
#[derive(Debug, thiserror::Error)]
#[error("the plan has errors")]
pub struct PlanRefused;

/// Several errors, each of which is told.
#[derive(Debug, thiserror::Error)]
#[error("{} errors", .0.len())]
pub struct Several(Vec<anyhow::Error>);

impl Several {
    /// The error that `errors` are together; `Ok` where there is none.
    pub fn of(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
        if errors.len() > 1 {
            return Err(Self(errors).into());
        }
        errors.pop().map_or(Ok(()), Err)
    }
}

/// What to do about an error, where one of its causes knows.
pub fn help_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(setup) = cause.downcast_ref::<engine::SetupError>() {
            setup.help().map(str::to_owned)
        } else if let Some(record) = cause.downcast_ref::<record::RecordError>() {
            record.help()
        } else if let Some(build) = cause.downcast_ref::<builds::Error>() {
            Some(build.help().to_owned())
        } else {
            cause.downcast_ref::<UsageError>()?.help.clone()
        }
    })
}

/// Returns an error as it is recorded and shown: its causes, outermost first, each once, what to do about it, and the last
/// lines of a server's log that it carries.
pub fn failure_of(error: &anyhow::Error) -> Failure {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if causes.last().is_none_or(|last| !last.ends_with(&text)) {
            causes.push(text);
        }
    }
    let mut setups = error.chain().filter_map(|cause| cause.downcast_ref());
    let log_tail = setups.next().map(engine::SetupError::log_tail);
    Failure {
        causes,
        help: help_of(error),
        log_tail: log_tail.unwrap_or_default().to_vec(),
    }
}

/// Prints an error as people read it and says which exit code it means.
pub fn report_error(error: &anyhow::Error) -> Exit {
    if error.is::<PlanRefused>() {
        return Exit::Usage;
    }
    if let Some(Several(errors)) = error.downcast_ref() {
        let exits: Vec<Exit> = errors.iter().map(report_error).collect();
        return exits.into_iter().min().unwrap_or(Exit::Failed);
    }
    print_failure(&failure_of(error));
    if is_usage(error) {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

/// Returns true where the command line or the plan is wrong, or names a build or a directory that can't be used: nothing was run.
pub fn is_usage(error: &anyhow::Error) -> bool {
    use engine::SetupError::{Build, Directory, Version};
    let mut setups = error.chain().filter_map(|cause| cause.downcast_ref());
    error.is::<UsageError>()
        || error.downcast_ref().is_some_and(builds::Error::is_usage)
        || setups.any(|setup| matches!(setup, Build { .. } | Directory { .. } | Version { .. }))
}
