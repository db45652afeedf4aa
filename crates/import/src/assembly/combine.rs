//! Adds the results of several files of one step: of several clients, of the threads of pgbench, or
//! its summary and its logs.

use std::collections::BTreeMap;

use crate::formats::{Second, StepResult};
use crate::text::Doubt;

use super::FoundStep;

/// The largest relative difference between the operations of a summary and of logs.
const LOG_ERROR_MAX: f64 = 0.01;

impl FoundStep {
    /// Returns the result of the step over all files, and what is doubtful about it; `None` without
    /// results.
    pub fn combined(&self) -> Option<(StepResult, Option<Doubt>)> {
        let outcomes = self.outcomes.iter().map(|client| &client.outcome);
        let (parts, wholes): (Vec<&StepResult>, Vec<&StepResult>) =
            outcomes.partition(|outcome| outcome.is_part);

        let logs = added(&parts);
        match (added(&wholes), logs) {
            (Some(summary), Some(logs)) => Some(with_logs(summary, logs)),
            (summary, logs) => summary.or(logs).map(|outcome| (outcome, None)),
        }
    }
}

/// Adds the results of clients or threads.
fn added(outcomes: &[&StepResult]) -> Option<StepResult> {
    let (first, others) = outcomes.split_first()?;
    let mut all = (*first).clone();
    let begin = outcomes.iter().filter_map(|outcome| outcome.begins_unix_s).min();
    shift(&mut all, begin);

    // Numbers in paths may be any, and the record counts clients from 0.
    for (client, other) in (1..).zip(others) {
        add(&mut all, other, client, begin);
    }
    Some(all)
}

/// Counts seconds from the beginning of the first log.
fn shift(outcome: &mut StepResult, begin: Option<i64>) {
    let later = outcome.begins_unix_s.zip(begin).map_or(0, |(own, begin)| own - begin);
    let later = u32::try_from(later).unwrap_or(0);
    for second in &mut outcome.seconds {
        second.second = second.second.saturating_add(later);
    }
    outcome.begins_unix_s = begin.filter(|_| outcome.begins_unix_s.is_some());
}

/// Gives a summary the seconds and the distribution of logs.
fn with_logs(summary: StepResult, logs: StepResult) -> (StepResult, Option<Doubt>) {
    let count = |outcome: &StepResult| outcome.ops.get(&outcome.main).map_or(0, |ops| ops.ok);
    let (all, logged) = (count(&summary), count(&logs));
    if all.abs_diff(logged) as f64 > LOG_ERROR_MAX * all as f64 {
        let text = format!(
            "logs have {logged} of {all} operations: a sample, or of another run; only their distribution is taken"
        );
        let outcome = StepResult { distributions: logs.distributions, ..summary };
        return (outcome, Some(Doubt::of_file("import::sample", text)));
    }

    let seconds = if logs.seconds.is_empty() { summary.seconds } else { logs.seconds };
    let outcome = StepResult { distributions: logs.distributions, seconds, ..summary };
    (outcome, None)
}

/// Adds the result of another client. Statistics that cannot be added are left out.
fn add(all: &mut StepResult, outcome: &StepResult, client: u32, begin: Option<i64>) {
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
    let mut shifted = outcome.clone();
    shift(&mut shifted, begin);
    for second in shifted.seconds {
        // Logs of threads have the numbers of their clients.
        let client = if outcome.is_part { second.client } else { client };
        all.seconds.push(Second { client, ..second });
    }
}

/// Keeps the longest and the shortest times. Means and percentiles of clients cannot be added.
fn add_times(
    all: &mut BTreeMap<String, BTreeMap<String, f64>>,
    others: &BTreeMap<String, BTreeMap<String, f64>>,
) {
    for times in all.values_mut() {
        times.retain(|name, _| name == "max" || name == "min");
    }
    for (kind, times) in others {
        let known = all.entry(kind.clone()).or_default();
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
