//! Computes the spread of a step's seconds.

use super::rates::Rates;
use super::{Quality, SECONDS_MIN};
use crate::figures::average::median;

/// Returns the figures of all seconds of a step, without stalls and shifts.
pub(super) fn spread(rates: &Rates<'_>) -> Quality {
    let values = &rates.values;
    let median = median(values.iter().copied()).unwrap_or(0.0);
    let usual = rates.usual();

    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let variance =
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);

    // When the last clients work alone, they are not slow.
    let below_half_count = values
        .iter()
        .enumerate()
        .filter(|&(second, &value)| value < 0.5 * usual * rates.share_at_work(second))
        .count();

    let enough = values.len() >= SECONDS_MIN;
    let of_usual = |value: f64| (enough && usual > 0.0).then(|| value / usual);
    Quality {
        kind: rates.kind.to_owned(),
        seconds: values.len(),
        zero_seconds: rates.ok.iter().filter(|&&ok| ok == 0).count(),
        worst_second: sorted.first().copied().unwrap_or(0.0),
        median,
        usual,
        cv: (enough && mean > 0.0).then(|| variance.sqrt() / mean),
        thickness: of_usual(exceeded_by(&sorted, 0.05) - exceeded_by(&sorted, 0.95)),
        p1_of_median: of_usual(exceeded_by(&sorted, 0.99)),
        below_half_median_seconds: below_half_count,
        worst_response: rates.worst_response(),
        ..Quality::default()
    }
}

/// Returns the value that at least `share` of the values, sorted from low to high, met or exceeded:
/// as the metrics `p50` and `p99`.
fn exceeded_by(sorted: &[f64], share: f64) -> f64 {
    let position = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len().max(1));
    let index = sorted.len().checked_sub(position);
    index.and_then(|index| sorted.get(index)).copied().unwrap_or(0.0)
}
