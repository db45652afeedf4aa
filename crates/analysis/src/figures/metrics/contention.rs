//! Computes how often operations were in the way of each other.

use record::{Role, Step};
use words::unit_of;

use super::{Figure, operations, over};
use crate::figures::counters::Counters;

/// Returns the figures of this module. Counts are per operation of the step's main role: a lock
/// belongs to one transaction of a mix as much as to another. Times are per main operation, as all
/// parts of its time are.
pub(super) fn figures(step: &Step) -> [Figure; 5] {
    let (mut attempted, mut retried) = (0.0, 0.0);
    let mut retried_ns = Some(0.0);
    if let Some(role) = step.main_role() {
        for (_, ops) in step.ops_of(role) {
            attempted += (ops.ok.saturating_add(ops.failed)) as f64;
            retried += ops.retried as f64;
            retried_ns = retried_ns.zip(ops.retried_ns).map(|(sum, ns)| sum + ns as f64);
        }
    }

    let counters = Counters::new(step);
    let growth_per_op = |role| over(counters.growth(role)?, attempted);
    let us_per_op = |ns: Option<f64>| over(ns? / 1e3, operations(step)?);
    [
        ("retries_per_op", over(retried, attempted)),
        ("retried_us_per_op", us_per_op(retried_ns)),
        ("lock_waits_per_op", growth_per_op(Role::LockWaitCount)),
        ("lock_wait_us_per_op", us_per_op(lock_wait_ns(&counters))),
        ("deadlocks_per_op", growth_per_op(Role::DeadlockCount)),
    ]
}

/// Returns the time for which sessions waited for locks on data, in nanoseconds; `None` if the engine
/// does not measure it.
fn lock_wait_ns(counters: &Counters<'_>) -> Option<f64> {
    let mut of_role = counters.labeled(Role::LockWaitTime).peekable();
    of_role.peek()?;
    let ns = of_role.map(|counter| {
        let unit_ns = if unit_of(&counter.name) == "ms" { 1e6 } else { 1.0 };
        Some(counters.growth_of(counter)? * unit_ns)
    });
    ns.sum()
}

#[cfg(test)]
mod tests {
    use record::{Counter, OpRole, Ops, StepKind};

    use super::*;
    use crate::figures::counters::tests::counter;

    #[test]
    fn waits_and_retries_are_those_of_all_transactions_of_a_mix() {
        let ops = |ok, failed, retried| Ops {
            ok,
            failed,
            retried,
            retried_ns: Some(retried * 2_000_000),
            role: Some(OpRole::Transaction),
            ..Ops::default()
        };
        let waited = |name, value| Counter::cumulative(name, value).with_role(Role::LockWaitTime);
        let counters = |grown: f64| {
            vec![
                counter("deadlock_count", grown, true),
                waited("row_lock_wait_ms", 0.6 * grown),
                waited("lock_wait_ns", 1e5 * grown),
            ]
        };
        let step = Step {
            kind: StepKind::Query,
            main_op: Some("pay".to_owned()),
            main_role: Some(OpRole::Transaction),
            ops: [("pay".to_owned(), ops(70, 10, 5)), ("look".to_owned(), ops(20, 0, 15))].into(),
            counters_before: counters(3.0),
            counters_after: counters(13.0),
            ..Step::default()
        };
        let expected = [
            ("retries_per_op", Some(0.2)),
            // 40 ms over the 70 payments.
            ("retried_us_per_op", Some(40_000.0 / 70.0)),
            ("lock_waits_per_op", None),
            ("lock_wait_us_per_op", Some(100.0)),
            ("deadlocks_per_op", Some(0.1)),
        ];
        assert_eq!(figures(&step), expected);
        assert_eq!(figures(&Step::default()).map(|(_, value)| value), [None; 5]);
    }

    #[test]
    fn time_that_no_client_measured_is_not_zero() {
        let ops = Ops { ok: 10, role: Some(OpRole::Transaction), ..Ops::default() };
        let step = Step {
            main_op: Some("pay".to_owned()),
            main_role: Some(OpRole::Transaction),
            ops: [("pay".to_owned(), ops)].into(),
            ..Step::default()
        };
        let [(_, retries), (_, retried_us), ..] = figures(&step);
        assert_eq!((retries, retried_us), (Some(0.0), None));
    }
}
