//! The engine's counter that moved the most with a change.

use words::unit_of;

use super::case::Case;
use super::finding::Evidence;
use super::thresholds::COUNTER;
use crate::order::distinct;

/// Returns what a counter must come to, per operation, before its ratio means something: it is added to both sides.
fn least(name: &str) -> f64 {
    match unit_of(name) {
        "bytes" | "us" => 1.0,
        "seconds" => 1e-6,
        _ => 0.001,
    }
}

/// Returns the counter that changed the most per operation in the direction of time, if any did.
pub(super) fn moved(case: &Case<'_>) -> Option<Evidence> {
    // Of two engines no counter means quite the same.
    let [of_base, of_target] =
        [&case.base, &case.side].map(|side| distinct(side.rows.iter().map(|row| &row.engine)));
    if of_base != of_target {
        return None;
    }
    // Counters have one order in all repeats.
    let names = &case.side.rows.first()?.work_counters;
    let (name, pair, _) = names
        .iter()
        .filter_map(|name| {
            let pair = case.pair(|side| side.counter_per_op(name))?;
            let least = least(name);
            // More of it where an operation takes longer, less where it takes less time.
            let along = case.log_time().signum();
            let factor = along * ((pair.value + least) / (pair.base + least)).ln();
            Some((name, pair, factor))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .filter(|(.., factor)| *factor >= COUNTER.ln())?;
    let unit = unit_of(name);
    Some(Evidence::new(
        name,
        &format!("{unit}/{}", case.noun()),
        pair,
    ))
}
