//! The system calls of an operation, by kind.

use std::collections::BTreeMap;

use record::Step;

use super::operations;

/// The metric of all kinds that were counted. A name of a kind after a colon selects that kind.
pub(crate) const METRIC: &str = "system_calls_per_op";

/// The kinds that make data durable.
const SYNCS: [&str; 2] = ["fsync", "fdatasync"];

/// Returns the calls of each kind per operation, by the kernel's names; empty if none was counted.
pub(crate) fn per_operation(step: &Step) -> BTreeMap<String, f64> {
    let operations = operations(step).filter(|operations| *operations > 0.0);
    let (Some(counted), Some(operations)) = (&step.system_calls, operations) else {
        return BTreeMap::new();
    };
    let calls = counted.calls.iter();
    calls.map(|(name, count)| (name.clone(), *count as f64 / operations)).collect()
}

/// Returns all calls per operation; `None` if nothing was counted.
pub(super) fn all_per_operation(step: &Step) -> Option<f64> {
    let calls = per_operation(step);
    (!calls.is_empty()).then(|| calls.values().sum())
}

/// Returns the calls that made data durable; `None` if not all of their kinds were counted.
pub(super) fn syncs(step: &Step) -> Option<f64> {
    let calls = &step.system_calls.as_ref()?.calls;
    let counts = SYNCS.map(|name| calls.get(name).copied());
    let mut total = 0;
    for count in counts {
        total += count?;
    }
    Some(total as f64)
}

/// Returns the calls of the kind that the name of a metric selects; `None` if it selects none, or
/// the kind was not counted.
pub(crate) fn of_kind(calls: &BTreeMap<String, f64>, metric: &str) -> Option<f64> {
    let (name, kind) = metric.split_once(':')?;
    if name == METRIC { calls.get(kind).copied() } else { None }
}

#[cfg(test)]
mod tests {
    use record::{OpRole, Ops, StepKind, SystemCallCounts};

    use super::*;

    fn step(calls: &[(&str, u64)]) -> Step {
        let calls = calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Step {
            kind: StepKind::Load,
            ops: BTreeMap::from([(
                "insert".to_owned(),
                Ops { ok: 10, rows: 40, ..Ops::of_role(OpRole::Insert) },
            )]),
            system_calls: Some(SystemCallCounts { calls, ..SystemCallCounts::default() }),
            ..Step::default()
        }
    }

    #[test]
    fn calls_are_divided_by_operations_and_syncs_need_both_kinds() {
        let counted = step(&[("fdatasync", 10), ("fsync", 2), ("pread64", 80)]);
        let calls = per_operation(&counted);
        assert_eq!((calls["pread64"], calls["fsync"]), (2.0, 0.05));
        assert_eq!(all_per_operation(&counted), Some(92.0 / 40.0));
        assert_eq!(syncs(&counted), Some(12.0));

        let partly = step(&[("fdatasync", 10)]);
        assert_eq!(syncs(&partly), None);
        let nothing = step(&[]);
        assert_eq!((all_per_operation(&nothing), syncs(&nothing)), (None, None));
        assert_eq!(all_per_operation(&Step { system_calls: None, ..counted }), None);
    }

    #[test]
    fn a_metric_selects_a_kind() {
        let calls = per_operation(&step(&[("futex", 20)]));
        assert_eq!(of_kind(&calls, "system_calls_per_op:futex"), Some(0.5));
        assert_eq!(of_kind(&calls, "system_calls_per_op:poll"), None);
        assert_eq!(of_kind(&calls, "fsyncs_per_commit:futex"), None);
    }
}
