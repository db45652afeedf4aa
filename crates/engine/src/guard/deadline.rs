//! Time limits for setting up and taking down; nothing here is a measurement.

use std::time::{Duration, Instant};

/// A moment at which waiting ends, and how long it has been.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    began: Instant,
    after: Duration,
}

impl Deadline {
    /// A deadline that long from now.
    #[allow(
        clippy::disallowed_methods,
        reason = "time limits of set-up work, not measured time"
    )]
    pub(crate) fn after(after: Duration) -> Self {
        Self {
            began: Instant::now(),
            after,
        }
    }

    /// Time since it was set.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether it has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.elapsed() >= self.after
    }
}
