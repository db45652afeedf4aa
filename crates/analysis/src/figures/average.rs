//! Averages and spreads of a step's values.

/// The standard deviation of a normal distribution over its median absolute deviation.
pub(crate) const NORMAL: f64 = 1.4826;

/// Returns the arithmetic mean; `None` without values.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let sum_up = |(count, sum), value| (count + 1, sum + value);
    let (count, sum) = values.into_iter().fold((0_u32, 0.0), sum_up);
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the median, or the mean of the two middle values; `None` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }

    let is_even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);

    Some(match lower {
        Some(lower) if is_even => (lower + upper) / 2.0,
        _ => upper,
    })
}

/// Returns the robust scale of values around `center`: their median absolute deviation, as a
/// standard deviation.
pub(crate) fn scale(values: impl IntoIterator<Item = f64>, center: f64) -> Option<f64> {
    let distances = values.into_iter().map(|value| (value - center).abs());
    Some(NORMAL * median(distances)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_two_values_is_their_mean() {
        assert_eq!(median([0.25, 0.75]), Some(0.5));
        assert_eq!(median([3.0, 0.5, 1.0]), Some(1.0));
        assert_eq!(median([]), None);
    }
}
