//! Operations that get in each other's way: retries, waits for locks on data, and deadlocks.
//!
//! A retried attempt repeats its work, and a lock wait is time without work. Both are measured as
//! time, which the parts of an operation's time contain as well: CPU, locks, handover. So they are
//! another cut of the same time, and may be the cause of what these parts show.

use super::accounting::{ChangedPart, changed_time};
use super::case::{Case, Pair};
use super::cause::Cause;
use super::thresholds::{EXPLAINS, LARGEST, NOTHING};

/// A kind of conflict between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Attempts after the first.
    Retries,
    /// Waits for locks on data.
    LockWaits,
    /// Deadlocks.
    Deadlocks,
}

impl Conflict {
    const ALL: [Self; 3] = [Self::Retries, Self::LockWaits, Self::Deadlocks];

    /// Returns the metric of their number per operation.
    pub(super) fn metric(self) -> &'static str {
        match self {
            Self::Retries => "retries_per_op",
            Self::LockWaits => "lock_waits_per_op",
            Self::Deadlocks => "deadlocks_per_op",
        }
    }
}

/// The number of conflicts per operation, which is shown to have changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConflictCount {
    /// The kind.
    pub conflict: Conflict,
    /// The number per operation.
    pub count: Pair,
}

/// Retries as the cause of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryCause {
    /// The number of retries per operation.
    pub count: Pair,
    /// The share of the change of an operation's time that more, or fewer, retries make up.
    pub share: f64,
}

/// The metrics of the times that conflicts take per operation.
const RETRIED_US: &str = "retried_us_per_op";
const LOCK_WAIT_US: &str = "lock_wait_us_per_op";

/// The prefix of PostgreSQL's names for waits of sessions for locks on data. Its lightweight locks,
/// of which no transaction knows, begin with `LWLock:`.
const LOCKS_ON_DATA: &str = "Lock:";

/// Returns the conflicts whose number per operation is shown to have grown, or else to have fallen.
/// A number that differs by no more than background work moves it is left out.
pub(super) fn changed_conflicts(case: &Case<'_>, is_growth: bool) -> Vec<ConflictCount> {
    let mut changed = Vec::new();

    for conflict in Conflict::ALL {
        let metric = conflict.metric();
        let difference = case.difference(|row| row.metric(metric));
        let is_shown = difference.is_some_and(|difference| {
            difference.is_shown() && (difference.mean > 0.0) == is_growth
        });

        if let Some(count) = case.metric(metric).filter(|_| is_shown)
            && count.max() >= NOTHING
            && !count.is_same()
        {
            changed.push(ConflictCount { conflict, count });
        }
    }
    changed
}

/// Explains a change by the number of retries, if the attempts that failed make up enough of it.
pub(super) fn retries(case: &Case<'_>) -> Option<Cause> {
    let changed = changed_conflicts(case, case.is_slower());
    let retries = changed.iter().find(|changed| changed.conflict == Conflict::Retries)?;

    // The time of failed attempts has to have changed as well, as measured.
    let us = case.metric(RETRIED_US)?;
    let difference = case.difference(|row| row.metric(RETRIED_US))?;
    let (_, whole) = changed_time(case).ok()?;
    if !difference.is_shown() || difference.mean * whole.mean <= 0.0 {
        return None;
    }

    // Attempts may also fail as often and take longer: that time has another cause.
    let share = retries.count.growth() * time_each(retries.count, us)? / whole.mean;
    let count = retries.count;
    (share >= EXPLAINS).then_some(Cause::Retries(RetryCause { count, share }))
}

/// Returns the mean of the times that a failed attempt takes on both sides; of one side, if the other
/// has none.
fn time_each(count: Pair, us: Pair) -> Option<f64> {
    let each = |us: f64, count: f64| (count > 0.0).then(|| us / count);
    match (each(us.base, count.base), each(us.value, count.value)) {
        (Some(base), Some(value)) => Some(f64::midpoint(base, value)),
        (one, other) => one.or(other),
    }
}

/// Returns whether most of a change of waiting for other threads is waiting for locks on data, as the
/// engine measures or names these waits.
pub(super) fn waits_for_locks_on_data(case: &Case<'_>, waiting: &ChangedPart) -> bool {
    let measured = case.difference(|row| row.metric(LOCK_WAIT_US));
    let measured_us = measured.filter(|us| us.is_shown()).map(|us| us.mean);
    let named_us: f64 = case
        .changed_states()
        .filter(|state| state.is_wait() && state.name.starts_with(LOCKS_ON_DATA))
        .map(|state| state.time.difference_us)
        .sum();

    let of_data_us = measured_us.unwrap_or(named_us);
    of_data_us / waiting.difference.mean >= LARGEST
}
