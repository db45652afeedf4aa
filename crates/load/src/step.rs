//! What a step is given and what it comes to.

use std::collections::BTreeMap;
use std::time::Duration;

use workload::Program;

use crate::collect::KindTotals;
use crate::thread_use::ThreadUse;

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
    /// Its client, from 0.
    pub client: u32,
    /// Its role.
    pub role: &'static str,
    /// The program, with its session, as the step left them.
    pub program: Box<dyn Program>,
    /// When its first operation was due, since the step began.
    pub started_ns: u64,
    /// When its last operation had ended, since the step began.
    pub ended_ns: u64,
    /// CPU time of its thread in user mode.
    pub cpu_user_ns: u64,
    /// CPU time of its thread in the kernel.
    pub cpu_system_ns: u64,
    /// The load's thread, as the scheduler accounts for it; `None` where the kernel does not say.
    pub client_use: Option<ThreadUse>,
    /// The server's thread in the same time; `None` where none is known.
    pub server_use: Option<ThreadUse>,
    /// Rows of its successful operations.
    pub rows: u64,
    /// Its successful operations.
    pub ok: u64,
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
    pub totals: BTreeMap<&'static str, KindTotals>,
    /// The longest time that one connection lost waiting for the collector: the harness' own stall.
    pub handover_wait_ns_max: u64,
}
