//! Checks second by second whether a requested rate was reached.

use std::collections::BTreeMap;

use record::Step;

use super::rates::longest_response;
use crate::figures::{OpSeries, SLA_SHARE, Sla, SlaHistory, operation};

/// Returns the history of a requested rate; `None` in steps of less than a second, and where
/// operations are too rare for seconds to mean anything.
pub(crate) fn history(
    step: &Step,
    sla: &Sla,
    ops: &BTreeMap<String, OpSeries>,
) -> Option<SlaHistory> {
    let kinds = operation::kinds_of_rate(step, &sla.kind);
    let of_rate: Vec<&OpSeries> = kinds.iter().filter_map(|kind| ops.get(*kind)).collect();

    let length_ns = step.time_given_ns.map_or(step.elapsed_ns, |given| given.min(step.elapsed_ns));
    let is_of_rows = sla.role().has_rate_in_rows();
    let counts = counts_per_second(&of_rate, is_of_rows);
    let whole_seconds = usize::try_from(length_ns / 1_000_000_000).ok()?.min(counts.len());

    let (rows, ok) = step.ops.get(&sla.kind).map(|ops| (ops.rows, ops.ok))?;
    let role = sla.role().connection(&sla.kind);
    let writers = step.connections.iter().filter(|connection| connection.role == role).count();
    // Without any success the size of an operation is unknown, and every second missed the rate.
    let rows_per_operation = match (is_of_rows, ok) {
        (true, 0) => 0.0,
        (true, ok) => rows as f64 / ok as f64,
        (false, _) => 1.0,
    };

    // One operation per connection may end just after the second.
    let wanted = SLA_SHARE * sla.target - writers as f64 * rows_per_operation;
    if whole_seconds == 0 || wanted <= 0.0 {
        return None;
    }

    let longest = of_rate.iter().filter_map(|series| longest_response(&series.response_us_max));
    let mut history = SlaHistory {
        seconds: whole_seconds,
        worst_second: counts[..whole_seconds].iter().copied().min()? as f64,
        worst_response: longest.max_by(|one, other| one.us.total_cmp(&other.us)),
        ..SlaHistory::default()
    };

    // Runs of missed seconds: `missed_from` is the first second of the current one.
    let mut missed_from = None;
    for (second, &count) in counts[..whole_seconds].iter().enumerate() {
        if count as f64 >= wanted {
            history.met_seconds += 1;
            missed_from = None;
            continue;
        }
        let from = *missed_from.get_or_insert(second);
        history.first_missed_second.get_or_insert(second);
        if second - from + 1 > history.longest_miss_seconds {
            history.longest_miss_seconds = second - from + 1;
            history.longest_miss_from = Some(from);
        }
    }

    history.met_pct = 100.0 * history.met_seconds as f64 / whole_seconds as f64;
    Some(history)
}

/// Returns the rows or the operations that succeeded in each second, over several kinds.
fn counts_per_second(kinds: &[&OpSeries], is_of_rows: bool) -> Vec<u64> {
    let mut counts: Vec<u64> = Vec::new();
    for series in kinds {
        let of_kind = if is_of_rows { &series.rows } else { &series.ok };
        counts.resize(counts.len().max(of_kind.len()), 0);
        for (count, added) in counts.iter_mut().zip(of_kind) {
            *count += added;
        }
    }
    counts
}
