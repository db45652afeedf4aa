//! The clock of a step.

use std::time::Duration;

use load::{Clock as _, SystemClock, TurnClock};

/// The clock by which a step is measured and sampled.
#[derive(Clone)]
pub enum StepClock {
    /// The host's, for a target that is measured alone.
    Host(SystemClock),
    /// The target's own, which stands still between its turns.
    Turns(TurnClock),
}

impl StepClock {
    /// Returns the nanoseconds since the clock's start.
    pub fn now(&self) -> u64 {
        match self {
            Self::Host(clock) => clock.now(),
            Self::Turns(clock) => clock.now(),
        }
    }

    /// Waits while the clock stands still, but not longer than `at_most` of the host's time.
    pub fn wait_while_stopped(&self, at_most: Duration) {
        if let Self::Turns(clock) = self {
            clock.wait_while_stopped(at_most);
        }
    }
}
