//! Exit codes, and errors as people read them.

use std::process::ExitCode;

use analysis::compat::Incomparable;
use record::{Failure, RecordError};

use crate::output::print_failure;
use crate::run::replication::ReplicaFailure;

/// The exit codes of all commands. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything went as planned.
    Ok = 0,
    /// A run or a step failed, or a command could not do its work.
    Failed = 1,
    /// The command line or the plan is wrong; nothing was run.
    Usage = 2,
    /// `compare` found a regression with `--gate`, or a missed bound with `--require`.
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

/// Sorts items by how similar their names are to `text`, the most similar first.
pub fn most_similar_first<T>(items: &mut [T], text: &str, name: impl Fn(&T) -> &str) {
    let similarity = |item: &T| strsim::normalized_damerau_levenshtein(text, name(item));
    items.sort_by(|a, b| similarity(b).total_cmp(&similarity(a)));
}

/// The least similarity of a name that is proposed for an unknown one.
const SIMILARITY_MIN: f64 = 0.5;
/// The number of names that the help for an unknown name lists.
const NAMES_MAX: usize = 12;

/// Returns the help for an unknown name: the most similar of `names` if it is similar enough, and
/// the names, the most similar first.
pub fn did_you_mean(names: &mut [impl AsRef<str>], unknown: &str, what: &str) -> Option<String> {
    most_similar_first(names, unknown, |name| name.as_ref());
    let nearest = names.first()?.as_ref();
    let is_similar = strsim::normalized_damerau_levenshtein(unknown, nearest) >= SIMILARITY_MIN;
    let proposal = if is_similar { format!("did you mean `{nearest}`? ") } else { String::new() };
    let listed = names.iter().take(NAMES_MAX).map(AsRef::as_ref);
    let listed: Vec<&str> = listed.collect();
    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{proposal}available {what}: `{}`{more}", listed.join("`, `")))
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

impl From<Incomparable> for UsageError {
    fn from(error: Incomparable) -> Self {
        Self::new(error.to_string(), Some(error.help.into()))
    }
}

/// Errors of a plan that were printed already.
#[derive(Debug, thiserror::Error)]
#[error("the plan has errors")]
pub struct PlanRefused;

/// Several errors, each of which is printed.
#[derive(Debug, thiserror::Error)]
#[error("{} errors", .0.len())]
pub struct Errors(Vec<anyhow::Error>);

impl Errors {
    /// Returns all `errors` as one; `Ok` if there are none.
    pub fn combine(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
        if errors.len() > 1 {
            return Err(Self(errors).into());
        }
        errors.pop().map_or(Ok(()), Err)
    }
}

/// Returns the remedy for an error, if one of its causes has help.
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
    let mut setups = error.chain().filter_map(|cause| cause.downcast_ref());
    let of_setup = setups.next().map(engine::SetupError::log_tail);
    let replica = error.downcast_ref::<ReplicaFailure>();
    let log_tail = replica.map(|it| it.log_tail.as_slice()).or(of_setup);
    Failure { causes, help: help_of(error), log_tail: log_tail.unwrap_or_default().to_vec() }
}

/// Prints an error and returns its exit code.
pub fn report_error(error: &anyhow::Error) -> Exit {
    if error.is::<PlanRefused>() {
        return Exit::Usage;
    }
    if let Some(Errors(errors)) = error.downcast_ref() {
        let exits: Vec<Exit> = errors.iter().map(report_error).collect();
        return exits.into_iter().min().unwrap_or(Exit::Failed);
    }
    print_failure(&failure_of(error));
    if is_usage(error) { Exit::Usage } else { Exit::Failed }
}

/// Returns true if the command line or the plan is wrong, or names an unusable build or directory,
/// or a directory without a run. Then nothing was run.
pub fn is_usage(error: &anyhow::Error) -> bool {
    use engine::SetupError::{Build, Directory, Version};
    let mut setups = error.chain().filter_map(|cause| cause.downcast_ref());
    let mut records = error.chain().filter_map(|cause| cause.downcast_ref());
    error.is::<UsageError>()
        || records.any(|record| {
            matches!(record, RecordError::Missing { .. } | RecordError::Format { .. })
        })
        || error.downcast_ref().is_some_and(builds::Error::is_usage)
        || setups.any(|setup| matches!(setup, Build { .. } | Directory { .. } | Version { .. }))
}
