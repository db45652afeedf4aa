//! Schedules: when operations are sent.

use std::time::Duration;

/// The schedule of one connection. Times are nanoseconds since the step began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// The next operation is sent after the reply to the one before.
    Closed,
    /// Operation `i` is due at `first_ns + i * period_ns`, independently of those before it:
    /// lateness is caught up.
    Open {
        /// The time at which the first one is due.
        first_ns: u64,
        /// The time between two operations.
        period_ns: f64,
        /// Operations are due at multiples of this: all of one tick together.
        tick_ns: u64,
    },
    /// Each operation is due a time after the reply to the one before, which the program says:
    /// [`Program::pause_ns`](crate::Program::pause_ns). A late reply delays all that follow.
    Paused,
}

impl Schedule {
    /// Returns the open schedule of connection `index` of `count`: `per_second` operations each,
    /// with their phases spread evenly over one period, so that they don't all send at once.
    pub fn rate(per_second: f64, index: u32, count: u32) -> Self {
        let period_ns = 1e9 / per_second;
        Self::Open {
            first_ns: (period_ns * f64::from(index) / f64::from(count.max(1))) as u64,
            period_ns,
            tick_ns: 1,
        }
    }

    /// Returns the open schedule of `per_second` operations in bursts, one every `tick`: a thread
    /// that wakes for each of thousands of operations per second costs more than what it sends.
    pub fn bursts(per_second: f64, tick: Duration) -> Self {
        Self::Open {
            first_ns: 0,
            period_ns: 1e9 / per_second,
            tick_ns: (tick.as_nanos() as u64).max(1),
        }
    }

    /// Returns the time at which operation `index` is due; `None` in a closed loop, and with pauses.
    #[inline(always)]
    pub fn due_ns(&self, index: u64) -> Option<u64> {
        match *self {
            Self::Closed | Self::Paused => None,
            Self::Open { first_ns, period_ns, tick_ns } => {
                Some(open_due_ns(first_ns, period_ns, tick_ns, index))
            }
        }
    }

    /// Returns the number of operations that are due before `end_ns`; 0 in a closed loop, and with
    /// pauses.
    pub fn due_before(&self, end_ns: u64) -> u64 {
        match *self {
            Self::Closed | Self::Paused => 0,
            Self::Open { first_ns, period_ns, .. } => {
                let mut count = ((end_ns.saturating_sub(first_ns)) as f64 / period_ns) as u64;
                // The quotient may be off by one either way: `due_ns` decides.
                while count > 0 && self.due_ns(count - 1).is_some_and(|due| due >= end_ns) {
                    count -= 1;
                }
                while self.due_ns(count).is_some_and(|due| due < end_ns) {
                    count += 1;
                }
                count
            }
        }
    }
}

/// Kept out of line: otherwise the compiler would compute this in a closed loop too, at a tenth of
/// its cost, since it prefers computing over branching.
#[inline(never)]
fn open_due_ns(first_ns: u64, period_ns: f64, tick_ns: u64, index: u64) -> u64 {
    let due_ns = first_ns + (index as f64 * period_ns) as u64;
    due_ns - due_ns % tick_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_schedules_exactly_its_number_of_operations() {
        for rate in [2.0, 10.0, 20.0, 33.0, 999.0] {
            for count in [1, 3, 8] {
                for index in 0..count {
                    let schedule = Schedule::rate(rate, index, count);
                    assert_eq!(
                        schedule.due_before(60_000_000_000),
                        (rate * 60.0) as u64,
                        "{rate}/s, {index} of {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn bursts_keep_the_rate_in_every_second() {
        let schedule = Schedule::bursts(4993.0, Duration::from_millis(10));
        for second in 1..100 {
            assert_eq!(schedule.due_before(second * 1_000_000_000), 4993 * second);
        }
        assert_eq!(schedule.due_ns(49), Some(0));
        assert_eq!(schedule.due_ns(50), Some(10_000_000));
    }

    #[test]
    fn lateness_does_not_move_the_schedule() {
        let schedule = Schedule::rate(1000.0, 0, 1);
        assert_eq!(schedule.due_ns(0), Some(0));
        assert_eq!(schedule.due_ns(3_600_000), Some(3_600_000_000_000));
    }
}
