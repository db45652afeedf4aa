//! Computes how far replicas lag behind their primary.

use std::collections::BTreeMap;

use record::Step;

use super::Figure;
use crate::CounterSeries;
use crate::compare::quantile;

/// Returns the figures of this module: names as in [`words::METRICS`].
pub(super) fn figures(step: &Step, engine: &BTreeMap<String, CounterSeries>) -> [Figure; 6] {
    let values = |name: &str| engine.get(name).map_or(&[][..], |series| &series.values);
    let lag = values("replica.lag_ms");
    let largest = |values: &[Option<f64>]| values.iter().flatten().copied().reduce(f64::max);
    let mut sorted: Vec<f64> = lag.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len().saturating_sub(1) / 2).copied();
    let cpu_ns: Vec<f64> = ["replica.cpu_user_ns", "replica.cpu_system_ns"]
        .iter()
        .flat_map(|name| values(name).iter().flatten().copied())
        .collect();
    let seconds = values("replica.cpu_user_ns").iter().flatten().count() as f64;
    let cpu_us = super::over(cpu_ns.iter().sum::<f64>() / 1e3, seconds);
    let per_op = cpu_us.and_then(|us| super::over(us, super::operation_rate(step)?));
    [
        ("lag_ms_p50", median),
        ("lag_ms_max", largest(lag)),
        ("lag_ms_slope", lag_slope(lag).map(|(slope, _)| slope)),
        ("lag_bytes_max", largest(values("replica.replayed_bytes"))),
        ("catch_up_s", step.catch_up_ns.map(|ns| ns as f64 / 1e9)),
        ("replica_cpu_us_per_op", per_op),
    ]
}

/// Returns how fast the lag grows over the second half of a step, in milliseconds per second, and half of the width of its 95%
/// interval. `lag` has the largest lag of each second in milliseconds. `None` with fewer than four seconds.
///
/// It is a least-squares line. Its interval uses as many independent seconds as the correlation of successive residuals leaves.
pub fn lag_slope(lag: &[Option<f64>]) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> = (lag.len() / 2..lag.len())
        .filter_map(|second| Some((second as f64, lag[second]?)))
        .collect();
    let count = points.len() as f64;
    if points.len() < 4 {
        return None;
    }
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(&|it| it.0), mean(&|it| it.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let covariance = |(x, y): &(f64, f64)| (x - mean_x) * (y - mean_y);
    let slope = points.iter().map(covariance).sum::<f64>() / spread;
    let residual = |(x, y): &(f64, f64)| y - mean_y - slope * (x - mean_x);
    let residuals: Vec<f64> = points.iter().map(residual).collect();
    let squares: f64 = residuals.iter().map(|it| it * it).sum();
    let successive: f64 = residuals.windows(2).map(|it| it[0] * it[1]).sum();
    let correlation = super::over(successive, squares)
        .filter(|it| it.is_finite())
        .map_or(0.0, |it| it.clamp(0.0, 0.9));
    let independent = (count * (1.0 - correlation) / (1.0 + correlation)).max(3.0);
    let error = (squares / (independent - 2.0) / spread).sqrt();
    Some((slope, quantile(0.05, independent - 2.0) * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_second_half() {
        let lag = |growth: f64| -> Vec<Option<f64>> {
            let noise = [3.0, -2.0, 1.0, -4.0, 2.0];
            let value = |second: usize| match second {
                0..20 => Some(500.0),
                _ => Some(100.0 + growth * (second - 20) as f64 + noise[second % 5]),
            };
            (0..40).map(value).collect()
        };
        let (slope, half) = lag_slope(&lag(250.0)).unwrap();
        assert!(
            (slope - 250.0).abs() < half && half < 1.0,
            "{slope} +- {half}"
        );
        let (slope, half) = lag_slope(&lag(0.0)).unwrap();
        assert!(
            slope - half < 0.0 && slope + half > 0.0,
            "{slope} +- {half}"
        );
        assert_eq!(lag_slope(&lag(1.0)[..6]), None);
    }
}
