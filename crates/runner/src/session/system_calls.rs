//! The system calls that an invocation can count. The kernel's tracepoints are opened once, and all
//! cells share them.

use std::sync::Arc;

use plan::Plan;
use probe::{CountedThreads, SystemCallCounting, SystemCallEvents};
use words::SystemCallSet;

/// The code of the warning that nothing is counted in a run.
pub(crate) const NO_SYSTEM_CALLS: &str = "host::no-system-calls";

/// The tracepoints of the kinds that the plan counts, or why they cannot be counted.
#[derive(Clone)]
pub(crate) struct SystemCalls(Arc<Result<SystemCallEvents, String>>);

impl SystemCalls {
    /// Registers the tracepoints; returns `None` if the plan counts nothing.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        if plan.system_calls == SystemCallSet::Off {
            return None;
        }
        let events = SystemCallEvents::open(plan.system_calls.names());
        Some(Self(Arc::new(events.map_err(|error| error.to_string()))))
    }

    /// Returns the reason why nothing can be counted on this host, and what to do about it.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.0.as_ref().as_ref().err().map(String::as_str)
    }
    /// Begins to count the system calls of threads. Otherwise returns the reason why they cannot be
    /// counted.
    pub(crate) fn begin(&self, threads: &CountedThreads) -> Result<SystemCallCounting, String> {
        match self.0.as_ref() {
            Ok(events) => events.begin(threads).map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        }
    }
}
