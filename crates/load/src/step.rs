//! What a step is given and what it comes to.

use std::collections::BTreeMap;
use std::time::Duration;

use words::{Connection, Ops};
use workload::Program;

/// What ends a step.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The length of a step of given length; without it the step ends when the programs' quotas are done.
    pub time: Option<Duration>,
    /// Failed operations over all connections beyond which the step fails.
    pub error_limit: u64,
    /// Attempts at an operation that fails with a transient error, the first included.
    pub attempts: u32,
    /// How long connections may still wait for a reply once they are to end, before they are cut off and the step
    /// fails.
    pub grace: Duration,
}

impl Limits {
    /// Returns when operations stop being sent, since the step began.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.time.map(|time| time.as_nanos() as u64)
    }
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As planned.
    Complete,
    /// It could not go on, for these reasons.
    Failed(Vec<String>),
    /// The operator stopped it.
    Interrupted,
}

/// What one connection did.
pub struct Worked {
    /// The program, with its session, as the step left them.
    pub program: Box<dyn Program>,
    /// What is recorded of it; what it waited for is not known here.
    pub connection: Connection,
}

/// What a step came to.
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Its length: from the common start to the end of the last connection, and no less than the time it was given.
    pub elapsed_ns: u64,
    /// What each connection did, in the order of the tasks; of a step that failed because the system had no thread left,
    /// those that had one.
    pub worked: Vec<Worked>,
    /// Totals by kind of operation.
    pub totals: BTreeMap<&'static str, Ops>,
    /// The longest time that one connection lost waiting for the collector: the harness' own stall.
    pub handover_wait_ns_max: u64,
}
