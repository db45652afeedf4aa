//! The work of a run: what its plan asks of the engine.

use std::collections::BTreeMap;

use record::{FactDifference, Run};
use serde::{Deserialize, Serialize};

/// The prefix of the plan's values that are part of the work.
const PREFIX: &str = "workload.";

/// The values of a plan that say what is done, such as the number of rows. Steps of other work have
/// the same names and other figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work(BTreeMap<String, WorkValue>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WorkValue {
    value: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_default: bool,
}

impl Work {
    /// Returns the work of a run.
    pub fn of(run: &Run) -> Self {
        let values = run.plan.resolved.iter().filter(|value| value.key.starts_with(PREFIX));
        let entry = |value: &record::ResolvedValue| {
            let is_default = value.origin == "default";
            (value.key.clone(), WorkValue { value: value.value.clone(), is_default })
        };
        Self(values.map(entry).collect())
    }

    /// Returns the values that differ. A value that only one of the two has, and that its plan did
    /// not set, is a default of its version.
    pub fn differences(&self, other: &Self) -> Vec<FactDifference> {
        let facts = |work: &Self, other: &Self| {
            let counts = |(key, value): &(&String, &WorkValue)| {
                !value.is_default || other.0.contains_key(*key)
            };
            let of_work = work.0.iter().filter(counts);
            of_work.map(|(key, value)| (key.clone(), value.value.clone())).collect()
        };
        super::differences(&facts(self, other), &facts(other, self))
    }

    /// Returns whether steps of the same name did the same.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self == other || self.differences(other).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use record::{Plan, ResolvedValue};

    use super::*;

    fn work(values: &[(&str, &str, &str)]) -> Work {
        let value = |&(key, value, origin): &(&str, &str, &str)| ResolvedValue {
            key: key.into(),
            value: value.into(),
            origin: origin.into(),
        };
        let resolved = values.iter().map(value).collect();
        Work::of(&Run { plan: Plan { resolved, ..Plan::default() }, ..Run::default() })
    }

    #[test]
    fn a_default_that_an_older_version_did_not_know_is_no_other_work() {
        let old = work(&[("workload.insert.rows", "5", "plan:1:1"), ("repeats", "3", "default")]);
        let new = work(&[
            ("workload.insert.rows", "5", "--set"),
            ("workload.insert.tables", "1", "default"),
        ]);
        assert!(old.is_same_as(&new) && new.is_same_as(&old));
        let more = work(&[("workload.insert.rows", "6", "plan:1:1")]);
        let other = work(&[
            ("workload.insert.rows", "5", "plan:1:1"),
            ("workload.insert.tables", "2", "plan:2:1"),
        ]);
        assert!(!old.is_same_as(&more) && !old.is_same_as(&other));
    }
}
