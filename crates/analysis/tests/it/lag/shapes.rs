//! Lags of which it is known whether they grow.

use std::collections::BTreeMap;

pub use crate::random::Random;
use analysis::figures::{CounterSeries, LagVerdict};
use record::Step;

/// Returns the lag of each second of a step with so many seconds, in milliseconds and without the
/// noise of the measurement.
type Lags = fn(&mut Random, usize) -> Vec<f64>;

/// A shape of lag over time.
pub struct Shape {
    pub name: &'static str,
    pub grows: bool,
    lags: Lags,
}

const fn growing(name: &'static str, lags: Lags) -> Shape {
    Shape { name, grows: true, lags }
}

const fn bounded(name: &'static str, lags: Lags) -> Shape {
    Shape { name, grows: false, lags }
}

/// All shapes. `x` is the share of the step that has passed.
pub const SHAPES: [Shape; 26] = [
    growing("50 ms/s", |_, seconds| each(seconds, |second| 50.0 * second)),
    growing("1 s/s", |_, seconds| each(seconds, |second| 1000.0 * second)),
    growing("4 s · x^1.5", |_, seconds| of_share(seconds, |x| 4000.0 * x.powf(1.5))),
    growing("4 s · x²", |_, seconds| of_share(seconds, |x| 4000.0 * x * x)),
    growing("1 s · x²", |_, seconds| of_share(seconds, |x| 1000.0 * x * x)),
    growing("4 s · √x", |_, seconds| of_share(seconds, |x| 4000.0 * x.sqrt())),
    growing("200 ms/s from the middle on", |_, seconds| {
        each(seconds, |second| 200.0 * (second - seconds as f64 / 2.0).max(0.0))
    }),
    growing("0.5 s more every 5 s", |random, seconds| {
        let offset = 5.0 * random.uniform();
        each(seconds, |second| 500.0 * ((second + offset) / 5.0).floor())
    }),
    growing("0.5 s more every quarter", |_, seconds| {
        of_share(seconds, |x| 500.0 * (4.0 * x).floor())
    }),
    growing("200 ms/s, wave of 10 s, ±0.25 s", |random, seconds| {
        line_and_wave(random, seconds, 200.0, 250.0)
    }),
    growing("200 ms/s, wave of 10 s, ±0.5 s", |random, seconds| {
        line_and_wave(random, seconds, 200.0, 500.0)
    }),
    bounded("constant", |_, seconds| each(seconds, |_| 300.0)),
    bounded("independent, 0.3 s", |random, seconds| correlated(random, seconds, 0.0)),
    bounded("AR(1), 0.5, 0.3 s", |random, seconds| correlated(random, seconds, 0.5)),
    bounded("AR(1), 0.8, 0.3 s", |random, seconds| correlated(random, seconds, 0.8)),
    bounded("AR(1), 0.9, 0.3 s", |random, seconds| correlated(random, seconds, 0.9)),
    bounded("wave of 3 s, ±1 s", |random, seconds| wave(random, seconds, 3.0)),
    bounded("wave of 7 s, ±1 s", |random, seconds| wave(random, seconds, 7.0)),
    bounded("wave of a third of the step, ±1 s", |random, seconds| {
        wave(random, seconds, seconds as f64 / 3.0)
    }),
    bounded("wave of 0.4 of the step, ±1 s", |random, seconds| {
        wave(random, seconds, 0.4 * seconds as f64)
    }),
    bounded("wave of half of the step, ±1 s", |random, seconds| {
        wave(random, seconds, seconds as f64 / 2.0)
    }),
    bounded("sawtooth of half of the step, 2 s", |random, seconds| {
        let offset = random.uniform();
        of_share(seconds, |x| 2000.0 * (2.0 * x + offset).fract())
    }),
    bounded("burst of 3 s that recovers", |random, seconds| {
        let (begin, length) = (0.6 * random.uniform(), 0.05 + 0.25 * random.uniform());
        of_share(seconds, |x| {
            let distance = (x - begin - length / 2.0).abs() / (length / 2.0);
            3000.0 * (1.0 - distance).max(0.0)
        })
    }),
    bounded("warm-up to 3 s, time constant 1/10", |_, seconds| {
        of_share(seconds, |x| 3000.0 * (1.0 - (-10.0 * x).exp()))
    }),
    bounded("warm-up to 3 s, time constant 1/5", |_, seconds| {
        of_share(seconds, |x| 3000.0 * (1.0 - (-5.0 * x).exp()))
    }),
    bounded("up to 3 s in 0.7 of the step, then flat", |_, seconds| {
        of_share(seconds, |x| 3000.0 * (x / 0.7).min(1.0))
    }),
];

/// Shapes that had no part in choosing the thresholds.
#[allow(dead_code, reason = "only the table has them")]
pub const HELD_OUT: [Shape; 12] = [
    growing("4 s · x³", |_, seconds| of_share(seconds, |x| 4000.0 * x.powi(3))),
    growing("exponential, 0.2 s to 4 s", |_, seconds| {
        of_share(seconds, |x| 200.0 * (3.0 * x).exp())
    }),
    growing("4 s · ln(1 + 9x) / ln 10", |_, seconds| {
        of_share(seconds, |x| 4000.0 * (1.0 + 9.0 * x).log10())
    }),
    growing("400 ms/s in the last quarter", |_, seconds| {
        each(seconds, |second| 400.0 * (second - 0.75 * seconds as f64).max(0.0))
    }),
    growing("1 s/s in the last tenth", |_, seconds| {
        each(seconds, |second| 1000.0 * (second - 0.9 * seconds as f64).max(0.0))
    }),
    growing("100 ms/s, sawtooth of 5 s, 1 s", |random, seconds| {
        let offset = random.uniform();
        each(seconds, |second| 100.0 * second + 1000.0 * (second / 5.0 + offset).fract())
    }),
    growing("150 ms/s, noise of 0.3 s", |random, seconds| {
        let noise = correlated(random, seconds, 0.0);
        (0..seconds).map(|second| 150.0 * second as f64 + noise[second]).collect()
    }),
    growing("stalls: 1 s more at 3 random moments", |random, seconds| {
        let at: Vec<f64> = (0..3).map(|i| (f64::from(i) + random.uniform()) / 3.0).collect();
        of_share(seconds, |x| 1000.0 * at.iter().filter(|at| **at < x).count() as f64)
    }),
    bounded("sawtooth of 4 s, 2 s", |random, seconds| {
        let offset = random.uniform();
        each(seconds, |second| 2000.0 * (second / 4.0 + offset).fract())
    }),
    bounded("falls from 3 s", |_, seconds| of_share(seconds, |x| 3000.0 * (-5.0 * x).exp())),
    bounded("wave of 10 s, ±0.5 s", |random, seconds| {
        wave(random, seconds, 10.0).into_iter().map(|lag| lag / 2.0).collect()
    }),
    bounded("spikes of 1 s in one second of ten", |random, seconds| {
        (0..seconds).map(|_| if random.uniform() < 0.1 { 1000.0 } else { 50.0 }).collect()
    }),
];

fn each(seconds: usize, lag: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..seconds).map(|second| lag(second as f64)).collect()
}

fn of_share(seconds: usize, lag: impl Fn(f64) -> f64) -> Vec<f64> {
    each(seconds, |second| lag(second / seconds as f64))
}

fn wave(random: &mut Random, seconds: usize, period: f64) -> Vec<f64> {
    let phase = random.uniform();
    each(seconds, |second| {
        1000.0 + 1000.0 * (std::f64::consts::TAU * (second / period + phase)).sin()
    })
}

fn line_and_wave(random: &mut Random, seconds: usize, slope: f64, height: f64) -> Vec<f64> {
    let wave = wave(random, seconds, 10.0);
    (0..seconds).map(|second| slope * second as f64 + height * wave[second] / 1000.0).collect()
}

/// Returns a lag of 1 s with a standard deviation of 0.3 s, whose successive seconds correlate.
fn correlated(random: &mut Random, seconds: usize, correlation: f64) -> Vec<f64> {
    let mut deviation = 300.0 * random.normal();
    (0..seconds)
        .map(|_| {
            let lag = 1000.0 + deviation;
            let innovation = 300.0 * (1.0 - correlation * correlation).sqrt();
            deviation = correlation * deviation + innovation * random.normal();
            lag
        })
        .collect()
}

/// The standard deviation of the measurement, in milliseconds.
const NOISE_MS: f64 = 20.0;

impl Shape {
    /// Returns the verdict on a step with this lag, as measured.
    pub fn verdict(&self, random: &mut Random, seconds: usize) -> LagVerdict {
        let lags = (self.lags)(random, seconds);
        let measured = lags.into_iter().map(|lag| (lag + NOISE_MS * random.normal()).max(0.0));
        verdict(&measured.collect::<Vec<_>>())
    }
}

/// Returns the verdict on a step whose only replica has these lags in milliseconds.
pub fn verdict(lag_ms: &[f64]) -> LagVerdict {
    let step = Step { lag_at_most_ns: Some(3_600_000_000_000), ..Step::default() };
    let values = lag_ms.iter().copied().map(Some).collect();
    let series = CounterSeries { values, ..CounterSeries::default() };
    analysis::figures::lag(&step, &BTreeMap::from([("replica_1.lag_ms".to_owned(), series)]))
        .verdict
}
