//! Distributions of latencies, in the field's buckets and percentiles.

use record::LatencyCount;
use serde::Serialize;

/// Percentiles of a latency in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 90th.
    pub p90: f64,
    /// 95th.
    pub p95: f64,
    /// 99th.
    pub p99: f64,
    /// 99.9th.
    pub p99_9: f64,
    /// 99.99th.
    pub p99_99: f64,
    /// The largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// A statistic of the times of operations.
struct Statistic {
    name: &'static str,
    /// The fewest operations of which one is slower than the percentile. With fewer operations,
    /// the percentile would be the longest time.
    operations_min: u64,
    of: fn(&Percentiles) -> f64,
}

const STATISTICS: [Statistic; 8] = [
    Statistic { name: "p50", operations_min: 2, of: |times| times.p50 },
    Statistic { name: "p90", operations_min: 10, of: |times| times.p90 },
    Statistic { name: "p95", operations_min: 20, of: |times| times.p95 },
    Statistic { name: "p99", operations_min: 100, of: |times| times.p99 },
    Statistic { name: "p99.9", operations_min: 1000, of: |times| times.p99_9 },
    Statistic { name: "p99.99", operations_min: 10_000, of: |times| times.p99_99 },
    Statistic { name: "max", operations_min: 1, of: |times| times.max },
    Statistic { name: "mean", operations_min: 1, of: |times| times.mean },
];

impl Percentiles {
    /// The names of all statistics, in the order of the fields.
    pub const NAMES: [&str; 8] = {
        let mut names = [""; 8];
        let mut at = 0;
        while at < names.len() {
            names[at] = STATISTICS[at].name;
            at += 1;
        }
        names
    };

    /// Returns a statistic of the times of this many operations by its name, such as `p99.9`.
    /// `None` if there is no such statistic, or if there were so few operations that a percentile
    /// would be the longest time.
    pub fn of_operations(&self, name: &str, operations: u64) -> Option<f64> {
        let statistic = STATISTICS.iter().find(|known| known.name == name)?;
        let time = (operations >= statistic.operations_min).then(|| (statistic.of)(self));
        // An imported record may have some statistics and not others.
        time.filter(|time| time.is_finite())
    }

    /// Returns the fewest operations that a statistic needs; `None` if there is no such statistic.
    pub(crate) fn operations_needed(name: &str) -> Option<u64> {
        STATISTICS.iter().find(|known| known.name == name).map(|known| known.operations_min)
    }
}

/// Response-time buckets: upper bounds 256us 1ms 4ms 16ms 64ms 256ms 1s 4s 16s and above.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Buckets {
    /// Operations in each; ten buckets.
    pub counts: [u64; 10],
    /// The largest, in seconds.
    pub max_seconds: f64,
}

/// The upper bounds of all buckets but the last, in nanoseconds; a bound is part of its bucket.
pub const BUCKET_NS_LIMITS: [u64; 9] = [
    256_000,
    1_000_000,
    4_000_000,
    16_000_000,
    64_000_000,
    256_000_000,
    1_000_000_000,
    4_000_000_000,
    16_000_000_000,
];

/// Sorts the times of a merged histogram into buckets. A time within 0.1% of a bound may be counted
/// on its other side, since the histogram has three significant digits.
pub fn buckets(times: &[LatencyCount], max_us: f64) -> Buckets {
    let mut counts = [0; 10];
    for time in times {
        counts[BUCKET_NS_LIMITS.partition_point(|&limit| limit < time.lowest_ns)] += time.count;
    }
    Buckets { counts, max_seconds: max_us / 1e6 }
}

/// Points of a curve per nine.
const POINTS_PER_NINE: f64 = 16.0;

/// Returns the times of a merged histogram as a curve for charts: nines, and the time in
/// microseconds. `nines` is `-log10(1 - p)` for a share `p` of all operations: 1 is 90% and 2 is
/// 99%. The time is the longest of that share. Points are about a sixteenth of a nine apart; the
/// last is the largest time at `log10(count)`.
pub fn curve(times: &[LatencyCount]) -> Vec<(f64, f64)> {
    let Some(longest) = times.last() else {
        return Vec::new();
    };

    let total = total(times) as f64;
    let us = |ns: u64| ns as f64 / 1e3;

    let mut points = Vec::new();
    let (mut seen, mut step) = (0_u64, 0.0);
    for time in times {
        seen += time.count;
        let slower = total - seen as f64;

        // Adds all points whose share this time completes.
        let reached = if slower > 0.0 { -(slower / total).log10() } else { f64::INFINITY };
        while step / POINTS_PER_NINE <= reached && step / POINTS_PER_NINE < total.log10() {
            points.push((step / POINTS_PER_NINE, us(time.highest_ns)));
            step += 1.0;
        }
    }

    points.push((total.log10(), us(longest.highest_ns)));
    points
}

/// Returns the times of a merged histogram as percentiles in microseconds; the largest is known
/// exactly.
pub fn percentiles(times: &[LatencyCount], max_us: f64) -> Percentiles {
    if times.is_empty() {
        return Percentiles::default();
    }

    // A bucket's upper end may lie beyond the largest time.
    let total = total(times);
    let at = |quantile| (value_at(times, quantile, total) as f64 / 1e3).min(max_us);
    Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: max_us,
        mean: (mean_ns(times, total) / 1e3).min(max_us),
    }
}

/// Returns the number of all times.
fn total(times: &[LatencyCount]) -> u64 {
    times.iter().map(|time| time.count).sum()
}

/// Returns the longest time of the shortest `quantile` of all `total` times, in nanoseconds.
fn value_at(times: &[LatencyCount], quantile: f64, total: u64) -> u64 {
    let needed = ((quantile * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    for time in times {
        seen += time.count;
        if seen >= needed {
            return time.highest_ns;
        }
    }
    0
}

/// Returns the mean of all `total` times, in nanoseconds.
fn mean_ns(times: &[LatencyCount], total: u64) -> f64 {
    let mut mean = 0.0;
    for time in times {
        mean += time.median_ns as f64 * time.count as f64 / total as f64;
    }
    mean
}

#[cfg(test)]
mod tests {
    use record::latency_counts;

    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let mut histogram = record::latency_histogram();
        histogram.record(1).unwrap();
        for (index, &limit) in BUCKET_NS_LIMITS.iter().enumerate() {
            // One percent to either side, and the bound itself.
            let times = index as u64 + 1;
            histogram.record_n(limit - limit / 100, times).unwrap();
            histogram.record_n(limit, times).unwrap();
            histogram.record(limit + limit / 100).unwrap();
        }
        let buckets = buckets(&latency_counts(&histogram), 16_160_000.0);
        assert_eq!(buckets.counts, [3, 5, 7, 9, 11, 13, 15, 17, 19, 1]);
        assert_eq!(buckets.counts.iter().sum::<u64>(), histogram.len());
        assert_eq!(buckets.max_seconds, 16.16);
    }

    #[test]
    fn no_operations_are_no_counts() {
        assert_eq!(buckets(&[], 0.0).counts, [0; 10]);
    }

    #[test]
    fn a_curve_goes_from_the_fastest_to_the_slowest_by_nines() {
        let mut histogram = record::latency_histogram();
        for value in 1..=1000 {
            histogram.record(value * 1000).unwrap();
        }
        let points = curve(&latency_counts(&histogram));
        let at = |nines: f64| {
            let (_, us) = points.iter().find(|(at, _)| *at == nines).unwrap();
            *us
        };
        assert!((at(1.0) / 900.0 - 1.0).abs() < 0.002, "{}", at(1.0));
        assert!((at(2.0) / 990.0 - 1.0).abs() < 0.002, "{}", at(2.0));
        let &(nines, us) = points.last().unwrap();
        assert!((nines - 3.0).abs() < 1e-9 && (us / 1000.0 - 1.0).abs() < 0.001);
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert_eq!(points.len(), 49);
    }

    #[test]
    fn one_operation_is_one_point_and_none_is_no_curve() {
        let mut histogram = record::latency_histogram();
        assert!(curve(&latency_counts(&histogram)).is_empty());
        histogram.record(5000).unwrap();
        assert_eq!(curve(&latency_counts(&histogram)).len(), 1);
    }

    #[test]
    fn percentiles_are_microseconds() {
        let mut histogram = record::latency_histogram();
        histogram.record_n(1500, 999).unwrap();
        histogram.record(2_000_000).unwrap();
        let it = percentiles(&latency_counts(&histogram), 1999.9);
        assert_eq!(it.p50, 1.5);
        assert_eq!(it.p99_9, 1.5);
        assert_eq!(it.p99_99, 1999.9);
        assert_eq!(it.max, 1999.9);
        assert!((it.mean / 3.4985 - 1.0).abs() < 0.001, "{}", it.mean);
        assert_eq!(percentiles(&[], 0.0), Percentiles::default());
    }

    #[test]
    fn figures_are_those_of_the_histogram_itself() {
        let mut histogram = record::latency_histogram();
        for value in 1..2000_u64 {
            histogram.record_n(value * value * 37, value % 7).unwrap();
        }
        let it = percentiles(&latency_counts(&histogram), 1e9);
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        assert_eq!([it.p50, it.p90, it.p95], [us(0.5), us(0.9), us(0.95)]);
        assert_eq!([it.p99, it.p99_9, it.p99_99], [us(0.99), us(0.999), us(0.9999)]);
        assert_eq!(it.mean, histogram.mean() / 1e3);
    }
}
