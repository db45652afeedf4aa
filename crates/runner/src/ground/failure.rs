//! Errors: what they say, what to do about them, and what comes of them.
//!
//! Errors of all crates travel as [`anyhow::Error`]. Those that know a remedy, have lines of a log,
//! or say that nothing was run are [`Explains`], and `explained` is the one place that lists
//! them.

use std::error::Error;

use analysis::compat::Incomparable;
use engine::SetupError;
use record::{Failure, RecordError};

use crate::ground::events::PlanDiagnostics;

/// Lines of a server's log that a failure shows.
pub const LOG_LINES: usize = 20;

/// The information of an error beyond its message.
pub trait Explains {
    /// Returns the remedy.
    fn help(&self) -> Option<String> {
        None
    }

    /// Returns the last lines of the log of a server; `None` for an error that is not about one.
    fn log_tail(&self) -> Option<&[String]> {
        None
    }

    /// Returns true if the command line or the plan is wrong, or names an unusable build or
    /// directory, or a directory without a run. Then nothing was run.
    fn is_usage(&self) -> bool {
        false
    }
}

/// Returns what a cause of an error tells beyond its message.
fn explained<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e dyn Explains> {
    if let Some(error) = cause.downcast_ref::<UsageError>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<LoggedError>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<RejectedStatement>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<engine::Error>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<SetupError>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<RecordError>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<builds::BuildError>() {
        Some(error)
    } else if let Some(error) = cause.downcast_ref::<builds::CommitFailure>() {
        Some(error)
    } else {
        None
    }
}

fn all_explained(error: &anyhow::Error) -> impl Iterator<Item = &dyn Explains> {
    error.chain().filter_map(explained)
}

/// Returns the remedy for an error, if one of its causes has help.
pub fn help_of(error: &anyhow::Error) -> Option<String> {
    all_explained(error).find_map(Explains::help)
}

/// Returns true if the command line or the plan is wrong, or names an unusable build or directory,
/// or a directory without a run. Then nothing was run.
pub fn is_usage(error: &anyhow::Error) -> bool {
    all_explained(error).any(Explains::is_usage)
}

/// Returns an error as it is recorded and shown: its causes, outermost first and without
/// repetition, what to do about it, and the last lines of the log of a server that did not start,
/// or of a replica.
pub fn failure_of(error: &anyhow::Error) -> Failure {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if causes.last().is_none_or(|last| !last.ends_with(&text)) {
            causes.push(text);
        }
    }

    let log_tail = all_explained(error).find_map(Explains::log_tail);
    Failure { causes, help: help_of(error), log_tail: log_tail.unwrap_or_default().to_vec() }
}

/// Returns an error and its causes in one line.
pub fn error_text(error: &anyhow::Error) -> String {
    failure_of(error).causes.join(": ")
}

/// A mistake in the command line or the plan: nothing was run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// The error.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl UsageError {
    /// Returns an error from what is wrong and what to do about it.
    pub fn new(message: impl Into<String>, help: Option<String>) -> Self {
        Self { message: message.into(), help }
    }
}

/// Returns an error from what is wrong and what to do about it.
///
/// # Errors
/// Always.
pub fn usage<T>(message: impl Into<String>, help: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError::new(message, Some(help.into())).into())
}

impl Explains for UsageError {
    fn help(&self) -> Option<String> {
        self.help.clone()
    }

    fn is_usage(&self) -> bool {
        true
    }
}

impl From<Incomparable> for UsageError {
    fn from(error: Incomparable) -> Self {
        Self::new(error.to_string(), Some(error.help.into()))
    }
}

/// An error of a server, with the last lines of its log.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct LoggedError {
    /// The error.
    pub what: String,
    /// The last lines of the log.
    pub log_tail: Vec<String>,
    /// The cause.
    pub source: anyhow::Error,
}

impl Explains for LoggedError {
    fn log_tail(&self) -> Option<&[String]> {
        Some(&self.log_tail)
    }
}

/// The error of a statement of the plan that an engine rejects.
#[derive(Debug, thiserror::Error)]
#[error("a statement of the step cannot be prepared")]
pub struct RejectedStatement(#[source] pub engine::Error);

impl Explains for RejectedStatement {
    fn help(&self) -> Option<String> {
        let help = "if the statement comes from your plan, correct it there and start a new run: `--resume` uses the \
                    recorded plan";
        Some(help.to_owned())
    }
}

impl Explains for engine::Error {
    fn help(&self) -> Option<String> {
        engine::connection_help(self.code.as_deref()?)
    }
}

impl Explains for SetupError {
    fn help(&self) -> Option<String> {
        self.help()
    }

    fn log_tail(&self) -> Option<&[String]> {
        Some(self.log_tail())
    }

    fn is_usage(&self) -> bool {
        matches!(self, Self::Build { .. } | Self::Directory { .. } | Self::Version { .. })
    }
}

impl Explains for RecordError {
    fn help(&self) -> Option<String> {
        self.help()
    }

    fn is_usage(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Format { .. })
    }
}

impl Explains for builds::BuildError {
    fn help(&self) -> Option<String> {
        Some(self.help().to_owned())
    }

    fn is_usage(&self) -> bool {
        self.is_usage()
    }
}

impl Explains for builds::CommitFailure {
    fn help(&self) -> Option<String> {
        Some(self.help().to_owned())
    }

    fn log_tail(&self) -> Option<&[String]> {
        Some(&self.log_tail)
    }
}

/// A plan that cannot run.
#[derive(Debug, thiserror::Error)]
#[error("the plan has errors")]
pub struct PlanRefused(pub PlanDiagnostics);

/// Several errors, each of which is shown.
#[derive(Debug, thiserror::Error)]
#[error("{} errors", .0.len())]
pub struct Errors(pub Vec<anyhow::Error>);

impl Errors {
    /// Returns all `errors` as one; `Ok` if there are none.
    pub fn combine(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
        if errors.len() > 1 {
            return Err(Self(errors).into());
        }
        errors.pop().map_or(Ok(()), Err)
    }
}

/// Adds the result of cleaning up to a result.
pub trait AndCleanUp {
    /// Returns this result, or the error of cleaning up if this is no error. An earlier error takes
    /// precedence, since it may be the cause of the later one.
    fn and_clean_up(self, cleaned: anyhow::Result<()>) -> Self;
}

impl<T> AndCleanUp for anyhow::Result<T> {
    fn and_clean_up(self, cleaned: anyhow::Result<()>) -> Self {
        let value = self?;
        cleaned?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use engine::ErrorClass;

    use super::*;

    #[test]
    fn an_earlier_error_goes_before_that_of_cleaning_up() {
        let failed =
            |what: &str| -> anyhow::Result<()> { Err(anyhow::Error::msg(what.to_owned())) };
        let text = |result: anyhow::Result<()>| result.map_err(|error| error.to_string());
        assert_eq!(text(failed("first").and_clean_up(failed("later"))), Err("first".into()));
        assert_eq!(text(Ok(()).and_clean_up(failed("later"))), Err("later".into()));
        assert_eq!(text(failed("first").and_clean_up(Ok(()))), Err("first".into()));
        assert_eq!(Ok(7).and_clean_up(Ok(())).ok(), Some(7));
    }

    #[test]
    fn a_server_without_room_and_a_wrong_statement_have_a_remedy() {
        let refused = |class, code: &str, message: &str| engine::Error {
            class,
            code: Some(code.to_owned()),
            message: message.to_owned(),
        };
        for code in ["53300", "1040", "1203"] {
            let full = refused(ErrorClass::Refused, code, "too many clients already");
            let error =
                anyhow::Error::from(full).context("the step's connections cannot be opened");
            assert!(help_of(&error).unwrap().starts_with("raise the server's `max_connections`"));
        }

        let wrong = refused(ErrorClass::Other, "42703", "column \"kk\" does not exist");
        let failure = failure_of(&RejectedStatement(wrong).into());
        assert_eq!(
            failure.causes,
            ["a statement of the step cannot be prepared", "column \"kk\" does not exist (42703)"]
        );
        assert!(failure.help.unwrap().contains("start a new run"));
    }

    #[test]
    fn help_and_log_come_from_whichever_cause_knows_them() {
        let cause = UsageError::new("no such table", Some("create it".into()));
        let error = LoggedError {
            what: "replica_1 cannot be compared".into(),
            log_tail: vec!["last line".into()],
            source: anyhow::Error::from(cause).context("it was asked"),
        };
        let error = anyhow::Error::from(error).context("the step failed");
        let failure = failure_of(&error);
        let causes =
            ["the step failed", "replica_1 cannot be compared", "it was asked", "no such table"];
        assert_eq!(failure.causes, causes);
        assert_eq!(failure.help.as_deref(), Some("create it"));
        assert_eq!(failure.log_tail, ["last line"]);
        assert!(is_usage(&error));
        assert!(!is_usage(&anyhow::Error::msg("the disk is full")));
    }
}
