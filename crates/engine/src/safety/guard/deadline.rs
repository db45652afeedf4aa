//! Time limits for setup and shutdown, outside of measurements.

use std::time::{Duration, Instant};

/// The time at which a wait ends, and its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    started: Instant,
    timeout: Duration,
}

impl Deadline {
    /// Returns a deadline at a duration from now.
    #[allow(
        clippy::disallowed_methods,
        reason = "these are time limits of setup work, not measured times"
    )]
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { started: Instant::now(), timeout }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns true when the deadline has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.elapsed() >= self.timeout
    }
}
