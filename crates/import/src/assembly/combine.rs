//! Adds the results of several clients of one step.

use std::collections::BTreeMap;

use crate::formats::{Outcome, Second};

use super::FoundStep;

impl FoundStep {
    /// Returns the result of the step over all clients; `None` without results.
    pub fn combined(&self) -> Option<Outcome> {
        let (first, others) = self.outcomes.split_first()?;
        let mut all = first.outcome.clone();
        // Numbers in paths may be any, and the record counts clients from 0.
        for (client, other) in (1..).zip(others) {
            add(&mut all, &other.outcome, client);
        }
        Some(all)
    }
}

/// Adds the result of another client. Statistics that can't be added are left out.
fn add(all: &mut Outcome, outcome: &Outcome, client: u32) {
    all.elapsed_ns = all.elapsed_ns.max(outcome.elapsed_ns);
    all.rows_before = all.rows_before.saturating_add(outcome.rows_before);
    all.failure = all.failure.take().or_else(|| outcome.failure.clone());
    all.metrics.clear();

    for (kind, ops) in &outcome.ops {
        match all.ops.get_mut(kind) {
            Some(known) => known.add(ops),
            None => drop(all.ops.insert(kind.clone(), ops.clone())),
        }
    }

    for (kind, counts) in &outcome.buckets {
        let known = all.buckets.entry(kind.clone()).or_default();
        for (known, count) in known.iter_mut().zip(counts) {
            *known = known.saturating_add(*count);
        }
    }

    for (tag, counts) in &outcome.distributions {
        let known = all.distributions.entry(tag.clone()).or_default();
        for (time, count) in counts {
            let known = known.entry(*time).or_default();
            *known = known.saturating_add(*count);
        }
    }

    add_times(&mut all.times_us, &outcome.times_us);
    let seconds = outcome.seconds.iter();
    all.seconds.extend(seconds.map(|second| Second { client, ..second.clone() }));
}

/// Keeps the longest and the shortest times. Means and percentiles of clients can't be added.
fn add_times(
    all: &mut BTreeMap<String, BTreeMap<String, f64>>,
    others: &BTreeMap<String, BTreeMap<String, f64>>,
) {
    for (kind, times) in others {
        let known = all.entry(kind.clone()).or_default();
        known.retain(|name, _| name == "max" || name == "min");
        for (name, time) in times {
            let kept = match name.as_str() {
                "max" => known.get(name).map_or(*time, |known| known.max(*time)),
                "min" => known.get(name).map_or(*time, |known| known.min(*time)),
                _ => continue,
            };
            known.insert(name.clone(), kept);
        }
    }
}
