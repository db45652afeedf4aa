//! The clocks by which steps are measured: the host's, and that of a target that takes turns.

use std::sync::Arc;
use std::time::Duration;

use crate::system_clock::SystemClock;
use crate::turns::Gate;

/// A clock that counts nanoseconds from some moment, the same for all threads.
pub trait Clock: Clone + Send + Sync {
    /// The longest time that a connection waits for another one without a look at what goes on.
    const LONGEST_WAIT: Duration = Duration::from_millis(50);

    /// Returns the nanoseconds since the clock's start.
    fn now(&self) -> u64;

    /// Sleeps until `at`, or as soon after it as the kernel allows; returns at once if that is
    /// past.
    fn sleep_until(&self, at: u64);

    /// Returns the gate that connections pass before each operation; `None` for a clock that never
    /// stands still.
    #[inline(always)]
    fn gate(&self) -> Option<&Gate> {
        None
    }
}

impl Clock for SystemClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        self.elapsed_ns()
    }

    fn sleep_until(&self, at: u64) {
        loop {
            let now = self.now();
            if now >= at {
                return;
            }
            // The kernel's clock may differ slightly from ours: the loop sleeps again for what is
            // missing.
            std::thread::sleep(Duration::from_nanos(at - now));
        }
    }
}

/// The clock of a target that takes turns. It stands still while the target's gate is closed.
#[derive(Clone)]
pub struct TurnClock {
    gate: Arc<Gate>,
}

impl TurnClock {
    /// Returns the clock of a gate.
    pub fn new(gate: Arc<Gate>) -> Self {
        Self { gate }
    }

    /// Waits while the clock stands still, but not longer than `at_most` of the host's time.
    pub fn wait_while_stopped(&self, at_most: Duration) {
        self.gate.wait_while_closed(at_most);
    }
}

impl Clock for TurnClock {
    const LONGEST_WAIT: Duration = Duration::from_millis(1);

    #[inline(always)]
    fn now(&self) -> u64 {
        self.gate.now()
    }

    /// Sleeps until `at`, or until the gate closes.
    fn sleep_until(&self, at: u64) {
        self.gate.sleep_until(at);
    }

    #[inline(always)]
    fn gate(&self) -> Option<&Gate> {
        Some(&self.gate)
    }
}
