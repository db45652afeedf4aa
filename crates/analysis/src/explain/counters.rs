//! Finds the engine's counter that changed the most with the time of an operation.

use words::unit_of;

use super::case::Case;
use super::finding::Evidence;
use super::thresholds::COUNTER;
use crate::order::distinct;

/// Returns the least growth of a counter per operation that makes its ratio meaningful. It is added
/// to both sides.
fn least(name: &str) -> f64 {
    match unit_of(name) {
        "bytes" | "us" => 1.0,
        "seconds" => 1e-6,
        _ => 0.001,
    }
}

/// Returns the counter that changed the most per operation, in the same direction as the time of an
/// operation.
pub(super) fn largest_change(case: &Case<'_>) -> Option<Evidence> {
    // Counters of two engines have different meanings.
    let [of_base, of_target] =
        [&case.base, &case.side].map(|side| distinct(side.rows.iter().map(|row| &row.engine)));
    if of_base != of_target {
        return None;
    }

    // All repeats have the same counters in the same order.
    let names = &case.side.rows.first()?.work_counters;
    let (name, pair, _) = names
        .iter()
        .filter_map(|name| {
            let pair = case.pair(|side| side.counter_per_op(name))?;
            let least = least(name);
            // It grows where an operation takes longer, and shrinks where it takes less time.
            let along = case.log_time().signum();
            let factor = along * ((pair.value + least) / (pair.base + least)).ln();
            Some((name, pair, factor))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .filter(|(.., factor)| *factor >= COUNTER.ln())?;

    let unit = unit_of(name);
    Some(Evidence::new(name, &format!("{unit}/{}", case.noun()), pair))
}
