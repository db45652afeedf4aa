//! How assay ends: exit codes, and errors as people read them.

use std::process::ExitCode;

use analysis::compat::Incomparable;

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

/// A mistake in the command line or the plan: nothing was run.
#[derive(Debug)]
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

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UsageError {}

impl From<Incomparable> for UsageError {
    fn from(error: Incomparable) -> Self {
        Self::new(error.to_string(), Some(error.help.into()))
    }
}

/// Diagnostics of a plan that are printed already.
#[derive(Debug)]
pub struct PlanRefused;

impl std::fmt::Display for PlanRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the plan has errors")
    }
}

impl std::error::Error for PlanRefused {}

/// Several errors, each of which is told.
#[derive(Debug)]
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

impl std::fmt::Display for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} errors", self.0.len())
    }
}

impl std::error::Error for Several {}

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

/// The last lines of a server's log that an error carries, oldest first.
pub fn log_tail_of(error: &anyhow::Error) -> Vec<String> {
    let setup = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<engine::SetupError>());
    setup.map_or_else(Vec::new, |setup| setup.log_tail().to_vec())
}

/// The error and its causes, outermost first, each once.
pub fn causes_of(error: &anyhow::Error) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if causes.last().is_none_or(|last| !last.ends_with(&text)) {
            causes.push(text);
        }
    }
    causes
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
    print_failure(
        &causes_of(error),
        help_of(error).as_deref(),
        &log_tail_of(error),
    );
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
