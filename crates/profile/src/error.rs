//! The reasons why there is no profile.

use std::io;

/// The reason why there is no profile, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// `perf` is not installed.
    #[error("`perf` is not installed; install Debian's package `linux-perf` or its equivalent")]
    NoPerf,
    /// `perf` failed.
    #[error("`{command}` failed: {stderr}{}", permission_help(.stderr))]
    Perf {
        /// The command.
        command: &'static str,
        /// The command's last lines on stderr.
        stderr: String,
    },
    /// `perf` did not answer.
    #[error("`perf record` did not answer `{request}` within {seconds} s")]
    Silent {
        /// The request.
        request: &'static str,
        /// The time that `perf` had to answer.
        seconds: u64,
    },
    /// Only functions outside of the kernel may be sampled, so that shares of all CPU time would be
    /// wrong.
    #[error(
        "the kernel's functions may not be sampled (`kernel.perf_event_paranoid` is {level}){}",
        PERMISSION_HELP
    )]
    NoKernel {
        /// The setting's value.
        level: String,
    },
    /// A file or a process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The profile has no samples.
    #[error(
        "`perf record` took no samples of the processes: they used no CPU time, or ended before"
    )]
    Empty,
}

impl ProfileError {
    /// Returns a function that adds what failed to an error.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// The help for users whose `perf` may not sample.
const PERMISSION_HELP: &str = "; set `sysctl kernel.perf_event_paranoid=1`, or run as root; a container also needs the capability PERFMON";

/// Returns what to do if `perf` was not permitted to sample.
fn permission_help(stderr: &str) -> &'static str {
    let text = stderr.to_lowercase();
    let is_refusal = ["perf_event_paranoid", "permission", "not permitted"]
        .iter()
        .any(|part| text.contains(part));
    if is_refusal { PERMISSION_HELP } else { "" }
}
