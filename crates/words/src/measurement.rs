//! What a measurement comes to: the live half counts it, and the record keeps it as it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ConnectionState;

/// Totals of one kind of operation: `offered = skipped + ok + failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ops {
    /// What the schedule, or without a rate the client, asked for.
    pub offered: u64,
    /// Those that were due but not sent when the step's time was up.
    pub skipped: u64,
    /// Those that succeeded.
    pub ok: u64,
    /// Those that failed for good.
    pub failed: u64,
    /// Attempts beyond the first, whatever came of them.
    pub retried: u64,
    /// Rows inserted, changed, deleted or read by those that succeeded.
    pub rows: u64,
    /// Successes whose number of rows was not what the data says it must be.
    pub unexpected_rows: u64,
    /// Failures, and failed attempts that were tried again, by class.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class.
    pub error_examples: BTreeMap<String, String>,
    /// Operations per second that the schedule asked for, over all clients; `None` without a rate.
    pub rate_target_ops_per_s: Option<f64>,
}

/// What one connection did in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Its client, from 0.
    pub client: u32,
    /// What it does: `insert`, `delete`, `query`, `long-transaction`, `read`, `write`.
    pub role: String,
    /// When its first operation was due, since the step began.
    pub started_ns: u64,
    /// When its last operation had ended, since the step began.
    pub ended_ns: u64,
    /// CPU time of its thread in user mode.
    pub cpu_user_ns: u64,
    /// CPU time of its thread in the kernel.
    pub cpu_system_ns: u64,
    /// Time that its thread was runnable and waited for a processor; `None` where the kernel does not say.
    pub cpu_wait_ns: Option<u64>,
    /// Instructions of its thread in user mode; `None` where the processor's counters can't be read.
    pub instructions: Option<u64>,
    /// The server's thread, in the same time; `None` where there is none of its own on this host, or it is not known.
    pub server_thread: Option<ThreadUse>,
    /// Samples of its state, taken at random moments; empty where none could be taken.
    pub states: BTreeMap<ConnectionState, u64>,
    /// Rows that it inserted, changed, deleted or read.
    pub rows: u64,
    /// Operations that succeeded.
    pub ok: u64,
}

/// One row of `intervals.parquet`: one second of one connection and one kind of operation. A second in which nothing
/// was completed is a row of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalRow<'a> {
    /// Which second of the step, from 0.
    pub second: u32,
    /// The client, from 0.
    pub client: u32,
    /// The kind of operation: `insert`.
    pub kind: &'a str,
    /// Operations that succeeded in this second.
    pub ok: u64,
    /// Operations that failed for good in this second.
    pub failed: u64,
    /// Attempts beyond the first.
    pub retried: u64,
    /// Rows inserted, changed, deleted or read.
    pub rows: u64,
    /// The longest service time of a success that ended in this second; 0 without one.
    pub service_ns_max: u64,
    /// The longest response time of a success that ended in this second; 0 without one.
    pub response_ns_max: u64,
}

/// A thread's use of processors between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Time on a processor. Excludes time that a hypervisor took away, where the kernel knows of it.
    pub cpu_ns: u64,
    /// Time in a run queue: runnable, but waiting for a processor.
    pub cpu_wait_ns: u64,
    /// Instructions retired in user mode; `None` where the processor's counters can't be read.
    pub instructions: Option<u64>,
}

/// One comparison of what the engine holds with what the workload knows it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was compared: `rows of pi1`, `rows in index pdc of pi1`.
    pub what: String,
    /// What the workload expects: a number, or a bound such as `>= 17`.
    pub expected: String,
    /// What the engine says.
    pub found: String,
    /// Whether they agree; also where they were not compared.
    pub holds: bool,
    /// Why they were not compared, where that is so: then nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl Check {
    /// Returns a comparison that was made.
    pub fn new(
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
        holds: bool,
    ) -> Self {
        Self {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
            holds,
            left_out: None,
        }
    }

    /// Returns a comparison of what must be equal.
    pub fn equal<T: PartialEq + ToString>(what: impl Into<String>, expected: T, found: T) -> Self {
        let holds = expected == found;
        Self::new(what, expected, found, holds)
    }

    /// Returns what could not be compared, and why.
    pub fn left_out(what: String, why: impl Into<String>) -> Self {
        Self {
            left_out: Some(why.into()),
            ..Self::new(what, "", "", true)
        }
    }
}

/// The latency of `fdatasync` after a write of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncLatency {
    /// How many were timed.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

/// A remark that a reader of the results should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable name: `host::swap-in-use`.
    pub code: String,
    /// What it is, and what to do about it.
    pub text: String,
}

impl Warning {
    /// Returns the remark that has this stable name.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
        }
    }
}

/// What a server may use of the machine; `None`: all that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, with what the kernel caches of the server's files.
    pub memory_bytes: Option<u64>,
    /// The CPUs, by the kernel's numbers, ascending.
    pub cpus: Option<Vec<u32>>,
}

/// One limit of what a server may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Which: `memory`, in bytes, or `cpus`, a list of processors.
    pub what: String,
    /// What the config asks for: `1073741824`, `0-1`.
    pub asked: String,
    /// What held, as the kernel said it; `None`: the server was not limited.
    pub effective: Option<String>,
    /// Why it was not limited, or not as was asked.
    pub reason: Option<String>,
}

impl Limit {
    /// Returns why figures that are measured now are not those of a server with this limit; `None` where it holds.
    pub fn shortfall(&self) -> Option<String> {
        let Self { what, asked, .. } = self;
        let reason = self.reason.as_deref();
        let reason = reason.unwrap_or("the kernel does not say why");
        self.effective.is_none().then(|| {
            format!(
                "the server runs without the limit that its config sets, {what} = {asked}: {reason}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;

    #[test]
    fn a_limit_that_does_not_hold_is_a_shortfall() {
        let mut limit = Limit {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: None,
            reason: Some("there are no control groups".into()),
        };
        let said = limit.shortfall().unwrap();
        let end = "memory = 1073741824: there are no control groups";
        assert!(said.ends_with(end), "{said}");
        limit.effective = Some(limit.asked.clone());
        assert_eq!(limit.shortfall(), None);
    }
}
