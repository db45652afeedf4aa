//! Prepares a series: without its drift, and without spikes.

use std::f64::consts::PI;

use crate::figures::average::{mean, median, scale};

/// Half cycles per series that count as drift.
const DRIFT_HALF_CYCLES: usize = 4;

/// The distance from the median, in robust standard deviations, at which values are cut off.
const SPIKE: f64 = 4.0;

/// Returns a series without its mean and without its slow cosines.
pub(super) fn without_drift(values: &[f64]) -> Vec<f64> {
    let middle = mean(values.iter().copied()).unwrap_or(0.0);
    let mut rest: Vec<f64> = values.iter().map(|value| value - middle).collect();

    let count = values.len() as f64;
    for half_cycles in 1..=DRIFT_HALF_CYCLES {
        let angle = PI * half_cycles as f64 / count;
        let cosines: Vec<f64> =
            (0..values.len()).map(|at| (angle * (at as f64 + 0.5)).cos()).collect();

        let product: f64 = rest.iter().zip(&cosines).map(|(value, cosine)| value * cosine).sum();
        for (value, cosine) in rest.iter_mut().zip(&cosines) {
            *value -= 2.0 / count * product * cosine;
        }
    }
    rest
}

/// Cuts off values that are far from the median. A series that is usually constant, such as rare
/// events, stays as it is.
pub(super) fn without_spikes(values: &[f64]) -> Vec<f64> {
    let middle = median(values.iter().copied()).unwrap_or(0.0);
    let reach = SPIKE * scale(values.iter().copied(), middle).unwrap_or(0.0);
    if reach <= 0.0 {
        return values.to_vec();
    }
    values.iter().map(|value| value.clamp(middle - reach, middle + reach)).collect()
}

/// Returns a series without its line of least squares.
pub(super) fn without_line(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let level = mean(values.iter().copied()).unwrap_or(0.0);

    let (mut product, mut square) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let distance = at as f64 - middle;
        product += distance * value;
        square += distance * distance;
    }
    let slope = if square > 0.0 { product / square } else { 0.0 };

    let line = |at: usize| level + slope * (at as f64 - middle);
    values.iter().enumerate().map(|(at, value)| value - line(at)).collect()
}
