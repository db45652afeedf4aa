//! Computes how far replicas lag behind their primary, and whether their lag is bounded.

use std::collections::BTreeMap;

use record::Step;
use serde::Serialize;

use super::Figure;
use super::lag_trend::{Quarters, Trend};
use crate::figures::CounterSeries;
use crate::figures::average::mean;

/// The lag of a step's replicas: of several, the largest of each second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// The slope of a straight line through the lags of the step's second half, in milliseconds
    /// per second; `None` if the step is too short.
    pub slope_ms_per_s: Option<f64>,
    /// The median lag of each quarter of the step in milliseconds; `None` if the step is too
    /// short.
    pub quarters_ms: Option<[f64; 4]>,
    /// The largest lag in milliseconds.
    pub max_ms: Option<f64>,
    /// The largest lag in milliseconds that counts as bounded; `None` without replicas.
    pub at_most_ms: Option<f64>,
    /// The verdict on the lag.
    pub verdict: LagVerdict,
}

/// The verdict on the lag of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LagVerdict {
    /// The lag neither grows nor ends far above its middle, and stays within the plan's bound.
    Bounded,
    /// The lag grows until the end of the step.
    Grows,
    /// The lag exceeds the plan's bound, and is not known to grow.
    TooLarge,
    /// The lag stays within the plan's bound and ends far above its middle, but is not known to
    /// grow.
    Undecided,
    /// There is no verdict, for this reason.
    NotApplicable(&'static str),
}

/// Returns the lag of a step, whose counters of the engine are `engine`, and whether it is bounded.
/// `docs/statistics.md` has the rule.
pub fn lag(step: &Step, engine: &BTreeMap<String, CounterSeries>) -> Lag {
    let lag_ms = largest_of_each_second(engine, "lag_ms");
    let quarters = Quarters::of(&lag_ms);
    let trend = quarters.as_ref().map(Quarters::trend);
    let max_ms = largest(&lag_ms);
    let at_most_ms = step.lag_at_most_ns.map(|ns| ns as f64 / 1e6);

    let verdict = match (at_most_ms, max_ms, trend) {
        (None, ..) => LagVerdict::NotApplicable("the target has no replicas"),
        (_, None, _) => LagVerdict::NotApplicable("the lag was not measured"),
        (.., Some(Trend::Grows)) => LagVerdict::Grows,
        (Some(at_most), Some(max), _) if max > at_most => LagVerdict::TooLarge,
        (.., Some(Trend::EndsHigh)) => LagVerdict::Undecided,
        (.., Some(Trend::None)) => LagVerdict::Bounded,
        (.., None) => {
            LagVerdict::NotApplicable("fewer than two seconds of a quarter of the step have a lag")
        }
    };

    Lag {
        slope_ms_per_s: lag_slope(&lag_ms),
        quarters_ms: quarters.map(|quarters| quarters.medians()),
        max_ms,
        at_most_ms,
        verdict,
    }
}

/// Returns the figures of this module: names as in [`words::METRICS`].
pub(super) fn figures(step: &Step, engine: &BTreeMap<String, CounterSeries>) -> [Figure; 10] {
    let lag_ms = largest_of_each_second(engine, "lag_ms");
    let mut sorted: Vec<f64> = lag_ms.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len().saturating_sub(1) / 2).copied();

    let replayed = largest_of_each_second(engine, "replayed_bytes");
    let last = replayed.iter().flatten().next_back().copied();

    let cpu_ns = most_expensive(engine, &["cpu_user_ns", "cpu_system_ns"]);
    let kb = |what| super::scaled(most_expensive(engine, &[what]), super::KIB);
    let switches = most_expensive(engine, &["context_switch_count"]);

    let ops = super::operation_rate(step);
    [
        ("debt_replica_mb", super::scaled(last, super::MIB)),
        ("lag_ms_p50", median),
        ("lag_ms_max", largest(&lag_ms)),
        ("lag_ms_slope", lag_slope(&lag_ms)),
        ("lag_bytes_max", largest(&replayed)),
        ("catch_up_s", step.catch_up_ns.map(|ns| ns as f64 / 1e9)),
        ("replica_cpu_us_per_op", super::per(super::scaled(cpu_ns, 1e3), ops)),
        ("replica_read_kb_per_op", super::per(kb("read_bytes"), ops)),
        ("replica_write_kb_per_op", super::per(kb("write_bytes"), ops)),
        ("replica_switches_per_op", super::per(switches, ops)),
    ]
}

/// Returns the series of one gauge or counter, with the number of each replica.
fn of_replicas<'a>(
    engine: &'a BTreeMap<String, CounterSeries>,
    what: &str,
) -> Vec<(&'a str, &'a CounterSeries)> {
    let named = engine.iter().filter_map(|(name, series)| {
        let (number, found) = name.strip_prefix("replica_")?.split_once('.')?;
        (found == what).then_some((number, series))
    });
    named.collect()
}

/// Returns the largest value of all replicas in each second.
fn largest_of_each_second(
    engine: &BTreeMap<String, CounterSeries>,
    what: &str,
) -> Vec<Option<f64>> {
    let mut seconds: Vec<Option<f64>> = Vec::new();
    for (_, series) in of_replicas(engine, what) {
        seconds.resize(seconds.len().max(series.values.len()), None);
        for (second, value) in seconds.iter_mut().zip(&series.values) {
            *second = largest(&[*second, *value]);
        }
    }
    seconds
}

/// Returns the sum of the growth of some counters per second, of the replica with the largest sum.
fn most_expensive(engine: &BTreeMap<String, CounterSeries>, counters: &[&str]) -> Option<f64> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (number, series) in counters.iter().flat_map(|counter| of_replicas(engine, counter)) {
        let per_second = mean(series.values.iter().flatten().copied())?;
        *sums.entry(number).or_default() += per_second;
    }
    sums.into_values().reduce(f64::max)
}

fn largest(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

/// Returns the slope of a least-squares line through the lags of the second half of a step, in
/// milliseconds per second. `lag` has the largest lag of each second in milliseconds. `None` with
/// fewer than four seconds.
fn lag_slope(lag: &[Option<f64>]) -> Option<f64> {
    let points: Vec<(f64, f64)> = (lag.len() / 2..lag.len())
        .filter_map(|second| Some((second as f64, lag[second]?)))
        .collect();
    if points.len() < 4 {
        return None;
    }

    let mean_second = mean(points.iter().map(|(second, _)| *second))?;
    let mean_lag = mean(points.iter().map(|(_, lag)| *lag))?;

    let squares = points.iter().map(|(second, _)| (second - mean_second).powi(2));
    let products = points.iter().map(|(second, lag)| (second - mean_second) * (lag - mean_lag));
    Some(products.sum::<f64>() / squares.sum::<f64>())
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
        assert!((lag_slope(&lag(250.0)).unwrap() - 250.0).abs() < 1.0);
        assert!(lag_slope(&lag(0.0)).unwrap().abs() < 1.0);
        assert_eq!(lag_slope(&lag(1.0)[..6]), None);
    }

    /// Returns the lag of a step in which the replicas had these lags and CPU times each second.
    fn step_with(replicas: &[(&[f64], f64)]) -> (Step, BTreeMap<String, CounterSeries>) {
        let mut engine = BTreeMap::new();
        let series =
            |values: Vec<Option<f64>>| CounterSeries { values, ..CounterSeries::default() };
        for (number, (lag_ms, cpu_ns)) in (1..).zip(replicas) {
            let lag_ms = lag_ms.iter().copied().map(Some).collect();
            engine.insert(format!("replica_{number}.lag_ms"), series(lag_ms));
            let name = format!("replica_{number}.cpu_user_ns");
            engine.insert(name, series(vec![None, Some(*cpu_ns)]));
        }
        let ops = record::Ops { rows: 1000, ok: 10, ..record::Ops::default() };
        let step = Step {
            elapsed_ns: 10_000_000_000,
            lag_at_most_ns: Some(1_000_000_000),
            ops: BTreeMap::from([("insert".to_owned(), ops)]),
            ..Step::default()
        };
        (step, engine)
    }

    #[test]
    fn lag_is_bounded_if_it_neither_grows_nor_exceeds_the_bound() {
        let verdict = |lag_ms: &[f64]| {
            let (step, engine) = step_with(&[(lag_ms, 0.0)]);
            lag(&step, &engine).verdict
        };
        let growing =
            |by_ms: f64| -> Vec<f64> { (0..10).map(|it| f64::from(it) * by_ms).collect() };
        assert_eq!(verdict(&[0.0, 50.0, 0.0, 150.0, 0.0, 50.0, 0.0, 50.0]), LagVerdict::Bounded);
        // Below twice the resolution.
        assert_eq!(verdict(&growing(30.0)), LagVerdict::Bounded);
        assert_eq!(verdict(&growing(50.0)), LagVerdict::Grows);
        // It does not grow in the second half.
        let peak = [0.0, 500.0, 1001.0, 500.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(verdict(&peak), LagVerdict::TooLarge);
        assert!(matches!(verdict(&[0.0; 6]), LagVerdict::NotApplicable(_)));
        // However short the step, a lag that is too large is not bounded.
        assert_eq!(verdict(&[0.0, 1001.0, 0.0]), LagVerdict::TooLarge);
        assert!(matches!(verdict(&[]), LagVerdict::NotApplicable(_)));
        let (step, engine) = (Step::default(), BTreeMap::new());
        let none = LagVerdict::NotApplicable("the target has no replicas");
        assert_eq!(lag(&step, &engine).verdict, none);
    }

    #[test]
    fn the_replica_that_lags_most_and_the_one_that_costs_most_count() {
        let (step, mut engine) = step_with(&[(&[7.0, 300.0], 4e6), (&[9.0, 20.0], 5e6)]);
        let replayed = CounterSeries {
            values: [9.0, 2.0].map(|mib| Some(mib * super::super::MIB)).to_vec(),
            ..CounterSeries::default()
        };
        engine.insert("replica_2.replayed_bytes".into(), replayed);
        let figures = BTreeMap::from(figures(&step, &engine));
        assert_eq!(figures["debt_replica_mb"], Some(2.0));
        assert_eq!(figures["lag_ms_max"], Some(300.0));
        assert_eq!(figures["lag_ms_p50"], Some(9.0));
        // 5 ms of CPU for 100 rows in a second.
        assert_eq!(figures["replica_cpu_us_per_op"], Some(50.0));
    }
}
