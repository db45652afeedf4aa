//! The results of a measurement, as the live half counts them and the record stores them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ConnectionState, OpRole};

/// Totals of one kind of operation: `offered = skipped + ok + failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ops {
    /// The meaning of the kind; `None` in records that have no roles. See [`OpRole::of_kind`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<OpRole>,
    /// Operations that the schedule asked for, or the client if there is no rate.
    pub offered: u64,
    /// Operations that were due but not sent before the end of the step.
    pub skipped: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed after all attempts.
    pub failed: u64,
    /// Attempts beyond the first, whether they succeeded or not.
    pub retried: u64,
    /// The time of failed attempts that others followed; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_ns: Option<u64>,
    /// Rows that successful operations inserted, changed, deleted or read.
    pub rows: u64,
    /// Successful operations that rolled back, as their workload meant.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolled_back: u64,
    /// Successful operations with another number of rows than the data implies.
    pub unexpected_rows: u64,
    /// Failures by class, including failed attempts that were retried.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class.
    pub error_examples: BTreeMap<String, String>,
    /// Operations per second that the schedule asked for, of all clients; `None` without a rate.
    pub rate_target_ops_per_s: Option<f64>,
}

/// Returns whether a count is left out of a record.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Ops {
    /// Returns the totals of a kind of operation before the first one.
    pub fn of_role(role: OpRole) -> Self {
        Self { role: Some(role), ..Self::default() }
    }

    /// Adds the operations of other connections.
    pub fn add(&mut self, other: &Self) {
        self.role = self.role.or(other.role);
        self.offered += other.offered;
        self.skipped += other.skipped;
        self.ok += other.ok;
        self.failed += other.failed;
        self.retried += other.retried;
        if let Some(ns) = other.retried_ns {
            *self.retried_ns.get_or_insert(0) += ns;
        }
        self.rows += other.rows;
        self.rolled_back += other.rolled_back;
        self.unexpected_rows += other.unexpected_rows;
        for (class, count) in &other.errors {
            *self.errors.entry(class.clone()).or_default() += count;
        }
        for (class, example) in &other.error_examples {
            self.error_examples.entry(class.clone()).or_insert_with(|| example.clone());
        }
        if let Some(rate) = other.rate_target_ops_per_s {
            *self.rate_target_ops_per_s.get_or_insert(0.0) += rate;
        }
    }
}

/// The activity of one connection in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The client that the connection belongs to, from 0.
    pub client: u32,
    /// The connection's role: `insert`, `delete`, `query`, `long-transaction`, `read`, `write`.
    pub role: String,
    /// The time at which the first operation was due, since the step began.
    pub started_ns: u64,
    /// The time at which the last operation ended, since the step began.
    pub ended_ns: u64,
    /// CPU time of the client's thread in user mode.
    pub cpu_user_ns: u64,
    /// CPU time of the client's thread in the kernel.
    pub cpu_system_ns: u64,
    /// Time that the client's thread was runnable and waited for a processor; `None` if the kernel
    /// does not report it.
    pub cpu_wait_ns: Option<u64>,
    /// Events of the client's thread.
    #[serde(flatten)]
    pub events: ProcessorEvents,
    /// The server's thread, in the same time; `None` if the connection has none of its own on this
    /// host, or it is unknown.
    pub server_thread: Option<ThreadUse>,
    /// Samples of the connection's state, taken at random moments; empty if none could be taken.
    pub states: BTreeMap<ConnectionState, u64>,
    /// Rows that the connection inserted, changed, deleted or read.
    pub rows: u64,
    /// Operations that succeeded.
    pub ok: u64,
}

/// One row of `intervals.parquet`: one second of one connection and one kind of operation. A second
/// without completed operations is a row of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalRow<'a> {
    /// The second of the step, from 0.
    pub second: u32,
    /// The client, from 0.
    pub client: u32,
    /// The kind of operation: `insert`.
    pub kind: &'a str,
    /// Operations that succeeded in this second.
    pub ok: u64,
    /// Operations that failed in this second, after all attempts.
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
    /// Time on a processor, without time that a hypervisor took away, if the kernel knows of it.
    pub cpu_ns: u64,
    /// Time in a run queue: runnable, but waiting for a processor.
    pub cpu_wait_ns: u64,
    /// Events in the same time.
    #[serde(flatten)]
    pub events: ProcessorEvents,
}

/// Events that the processor's counters counted for a thread in user mode. `None` if the machine,
/// its kernel or the permissions do not allow that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorEvents {
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Cycles of the thread's processor.
    pub cycles: Option<u64>,
    /// Accesses that the last-level cache did not have.
    pub cache_misses: Option<u64>,
    /// Branches that were mispredicted.
    pub branch_misses: Option<u64>,
    /// Loads whose page the data TLB did not have.
    pub tlb_misses: Option<u64>,
    /// Time in which the events should have been counted: the thread's time on a processor.
    pub events_enabled_ns: Option<u64>,
    /// Time in which the events were counted: less if others used the counters too.
    pub events_running_ns: Option<u64>,
}

impl ProcessorEvents {
    /// Returns a count, extrapolated to all of the thread's time; `None` if its event was never
    /// counted.
    pub fn whole(&self, count: impl Fn(&Self) -> Option<u64>) -> Option<f64> {
        let counted = count(self)? as f64;
        match (self.events_enabled_ns, self.events_running_ns) {
            (Some(enabled), Some(0)) if enabled > 0 => None,
            (Some(enabled), Some(running)) if running < enabled => {
                Some(counted * enabled as f64 / running as f64)
            }
            _ => Some(counted),
        }
    }
}

/// One comparison of the data in the engine with what the workload did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The compared quantity: `rows of pi1`, `rows in index pdc of pi1`.
    pub what: String,
    /// The expected result: a number, or a bound such as `>= 17`.
    pub expected: String,
    /// The engine's result.
    pub found: String,
    /// The two results agree; also true if they were not compared.
    pub holds: bool,
    /// The reason why the results were not compared; `None` if they were.
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

    /// Returns a comparison of two values that must be equal.
    pub fn equal<T: PartialEq + ToString>(what: impl Into<String>, expected: T, found: T) -> Self {
        let holds = expected == found;
        Self::new(what, expected, found, holds)
    }

    /// Returns a comparison that was not made, with the reason.
    pub fn left_out(what: String, reason: impl Into<String>) -> Self {
        Self { left_out: Some(reason.into()), ..Self::new(what, "", "", true) }
    }
}

/// The latency of `fdatasync` after a write of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncLatency {
    /// The number of samples.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

/// A remark that readers of the results should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable name: `host::swap-in-use`.
    pub code: String,
    /// The remark, and what to do about it.
    pub text: String,
}

impl Warning {
    /// Returns a remark.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into() }
    }
}

/// The part of the machine that a server may use; `None` for no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, including the kernel's cache of the server's files.
    pub memory_bytes: Option<u64>,
    /// The CPUs, by the kernel's numbers, ascending.
    pub cpus: Option<Vec<u32>>,
    /// CPU time per elapsed time, in thousandths of a processor.
    pub cpu_quota_milli: Option<u64>,
}

impl Limits {
    /// Returns the limits that are set, as a plan names and writes them: `cpu-quota` and `0.5`.
    pub fn declared(&self) -> Vec<(&'static str, String)> {
        let limits = [
            ("memory", self.memory_bytes.map(|bytes| bytes.to_string())),
            ("cpus", self.cpus.as_deref().map(crate::format_cpus)),
            ("cpu-quota", self.cpu_quota_milli.map(format_cpu_quota)),
        ];
        limits.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Formats thousandths of a processor as a plan does: `0.5`.
pub fn format_cpu_quota(milli: u64) -> String {
    (milli as f64 / 1e3).to_string()
}

/// One limit of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The name of the limit: `memory`, in bytes, `cpus`, a list of processors, or `cpu-quota`, a
    /// number of processors.
    pub what: String,
    /// The value in the config: `1073741824`, `0-1`.
    pub asked: String,
    /// The effective value, as the kernel reports it; `None` if the server was not limited.
    pub effective: Option<String>,
    /// The reason why the server was not limited, or the effective value is another one.
    pub reason: Option<String>,
}

impl Limit {
    /// Returns the reason why measured figures are not those of a server with this limit; `None` if
    /// the limit is effective.
    pub fn shortfall(&self) -> Option<String> {
        if self.effective.is_some() {
            return None;
        }
        let Self { what, asked, .. } = self;
        let reason = self.reason.as_deref().unwrap_or("the kernel gives no reason");
        Some(format!(
            "the server runs without the limit that its config sets, {what} = {asked}: {reason}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_does_not_hold_is_a_shortfall() {
        let mut limit = Limit {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: None,
            reason: Some("there are no control groups".into()),
        };
        let text = limit.shortfall().unwrap();
        let end = "memory = 1073741824: there are no control groups";
        assert!(text.ends_with(end), "{text}");
        limit.effective = Some(limit.asked.clone());
        assert_eq!(limit.shortfall(), None);
    }

    #[test]
    fn events_are_extrapolated_to_the_time_in_which_others_used_the_counters() {
        let cycles = |times: [Option<u64>; 2]| {
            let events = ProcessorEvents {
                cycles: Some(300),
                events_enabled_ns: times[0],
                events_running_ns: times[1],
                ..ProcessorEvents::default()
            };
            assert_eq!(events.whole(|events| events.tlb_misses), None);
            events.whole(|events| events.cycles)
        };
        assert_eq!(cycles([Some(80), Some(80)]), Some(300.0));
        assert_eq!(cycles([Some(80), Some(60)]), Some(400.0));
        // Never counted: not zero.
        assert_eq!(cycles([Some(80), Some(0)]), None);
        // The thread never ran.
        assert_eq!(cycles([Some(0), Some(0)]), Some(300.0));
        // A record of an Assay that did not read the times.
        assert_eq!(cycles([None, None]), Some(300.0));
    }
}
