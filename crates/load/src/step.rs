//! The limits of a step and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use words::{Connection, Ops};
use workload::Summaries;

/// Limits of a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The length of the step; `None` for until the programs' quotas are done.
    pub time: Option<Duration>,
    /// The step fails when more operations than this have failed, over all connections.
    pub error_limit: u64,
    /// Attempts at an operation that fails with a transient error, including the first.
    pub attempts: u32,
    /// The time that connections may wait for a reply after the step is over. Then they are cut
    /// off, and the step fails.
    pub grace: Duration,
}

impl Limits {
    /// Returns the time at which connections stop sending operations, in nanoseconds since the step
    /// began.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.time.map(|time| time.as_nanos() as u64)
    }
}

/// The way in which a step ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepEnd {
    /// The step ended as planned.
    #[default]
    Complete,
    /// The step failed, for these reasons.
    Failed(Vec<String>),
    /// The operator stopped it.
    Interrupted,
}

/// Totals of operations, by their kind.
pub type Totals = BTreeMap<String, Ops>;

/// The outcome of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepOutcome {
    /// The way in which the step ended.
    pub end: StepEnd,
    /// The time from the common start to the end of the last connection, and no less than
    /// [`Limits::time`].
    pub elapsed_ns: u64,
    /// The activity of each connection, in the order of the tasks, without the states that its
    /// threads were seen in. If the system ran out of threads, only the connections that had
    /// one.
    pub connections: Vec<Connection>,
    /// The summaries of the connections for the workload; empty unless the step is complete.
    pub summaries: Summaries,
    /// The totals of all connections.
    pub totals: Totals,
    /// The longest time that one connection waited for the collector: a stall caused by assay
    /// itself.
    pub handover_wait_ns_max: u64,
}
