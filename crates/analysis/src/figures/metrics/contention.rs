//! Computes how often operations were in the way of each other.

use record::{Role, Step};

use super::{Figure, over};
use crate::figures::counters::Counters;

/// Returns the figures of this module, per operation of the step's main role: a lock belongs to one
/// transaction of a mix as much as to another.
pub(super) fn figures(step: &Step) -> [Figure; 3] {
    let (mut attempted, mut retried) = (0.0, 0.0);
    if let Some(role) = step.main_role() {
        for (_, ops) in step.ops_of(role) {
            attempted += (ops.ok.saturating_add(ops.failed)) as f64;
            retried += ops.retried as f64;
        }
    }

    let counters = Counters::new(step);
    let growth_per_op = |role| over(counters.growth(role)?, attempted);
    [
        ("retries_per_op", over(retried, attempted)),
        ("lock_waits_per_op", growth_per_op(Role::LockWaitCount)),
        ("deadlocks_per_op", growth_per_op(Role::DeadlockCount)),
    ]
}

#[cfg(test)]
mod tests {
    use record::{OpRole, Ops, StepKind};

    use super::*;
    use crate::figures::counters::tests::counter;

    #[test]
    fn waits_and_retries_are_those_of_all_transactions_of_a_mix() {
        let ops = |ok, failed, retried| Ops {
            ok,
            failed,
            retried,
            role: Some(OpRole::Transaction),
            ..Ops::default()
        };
        let counters = |deadlocks| vec![counter("deadlock_count", deadlocks, true)];
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
            ("lock_waits_per_op", None),
            ("deadlocks_per_op", Some(0.1)),
        ];
        assert_eq!(figures(&step), expected);
        assert_eq!(figures(&Step::default()).map(|(_, value)| value), [None; 3]);
    }
}
