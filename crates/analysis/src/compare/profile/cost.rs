//! Estimates the cost of functions per operation, with its error.

use words::Stacks;

use super::{ProfileRepeats, ProfileTotals};
use crate::compare::student::quantile;

/// The variance between runs over that of counting, where a target was profiled only once. In pairs
/// of equal runs on RocksDB it was 0.9 to 2.3 (`docs/profiles.md`).
pub(super) const DISPERSION: f64 = 2.0;
/// Degrees of freedom from which on Student's t is the normal distribution.
const FREEDOM_MAX: f64 = 1e6;

/// A mean with its variance and the degrees of freedom of that.
#[derive(Clone, Copy, Default)]
pub(super) struct Mean {
    pub value: f64,
    pub variance: f64,
    pub freedom: f64,
}

impl Mean {
    /// Returns the mean of values; `None` without any. One value has no variance.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|each| (each - value).powi(2)).sum();
        let variance = if values.len() == 1 { 0.0 } else { squares / (count - 1.0) / count };
        Some(Self { value, variance, freedom: (count - 1.0).max(1.0) })
    }
}

/// The profile of a target in a step.
pub(super) struct TargetProfile<'a> {
    /// CPU per operation in the repeats without a profiler.
    pub cpu: Mean,
    /// The profiled repeats.
    pub repeats: Vec<RepeatSamples<'a>>,
    pub totals: ProfileTotals,
}

/// The samples of a profiled repeat.
pub(super) struct RepeatSamples<'a> {
    pub stacks: &'a Stacks,
    total: u64,
}

impl<'a> TargetProfile<'a> {
    /// Returns the profile of a target's step, in all its profiled repeats; `None` without samples
    /// or without a measured cost.
    pub fn read(repeats: &ProfileRepeats<'a>) -> Option<Self> {
        let steps = repeats.profiled.iter();
        let samples =
            steps.map(|step| RepeatSamples { stacks: &step.stacks, total: step.stacks.total() });
        Some(Self { cpu: repeats.cpu_us()?, totals: repeats.totals()?, repeats: samples.collect() })
    }

    /// Returns the CPU per operation that one sample stands for.
    pub fn us_per_sample(&self) -> f64 {
        self.cpu.value / self.totals.samples.max(1) as f64
    }

    /// Returns the cost per operation of `samples`, one number for each repeat: their share times
    /// the CPU per operation. The variance of the share is that of counting, or the one between
    /// profiled repeats if it is larger.
    pub fn cost(&self, samples: &[u64], confidence: Confidence) -> CostEstimate {
        let total: u64 = self.repeats.iter().map(|repeat| repeat.total).sum();
        let count: u64 = samples.iter().sum();
        let share = count as f64 / total as f64;

        // Agresti and Coull's counts, so that a function without a sample has an error, too.
        let z = confidence.z;
        let padded_total = total as f64 + z * z;
        let padded = (count as f64 + z * z / 2.0) / padded_total;
        let counting = self.totals.dispersion * padded * (1.0 - padded) / padded_total;

        let shares: Vec<f64> = samples
            .iter()
            .zip(&self.repeats)
            .map(|(count, repeat)| *count as f64 / repeat.total as f64)
            .collect();

        let between = Mean::of(&shares).unwrap_or_default();
        let of_share = if between.variance > counting {
            VariancePart { variance: between.variance, freedom: between.freedom }
        } else {
            VariancePart { variance: counting, freedom: f64::INFINITY }
        };

        CostEstimate {
            us: share * self.cpu.value,
            parts: [
                of_share.scaled(self.cpu.value),
                VariancePart { variance: self.cpu.variance, freedom: self.cpu.freedom }
                    .scaled(share),
            ],
        }
    }
}

/// A part of a variance with its degrees of freedom.
#[derive(Clone, Copy)]
struct VariancePart {
    variance: f64,
    freedom: f64,
}

impl VariancePart {
    /// Returns the part of a value that is multiplied by `factor`.
    fn scaled(self, factor: f64) -> Self {
        Self { variance: factor.powi(2) * self.variance, ..self }
    }
}

/// A cost with the parts of its variance: that of the share, and that of the CPU per operation.
pub(super) struct CostEstimate {
    us: f64,
    parts: [VariancePart; 2],
}

impl CostEstimate {
    /// Returns the change from a base. The degrees of freedom are Welch and Satterthwaite's.
    pub fn minus(&self, base: &Self) -> CostChange {
        let parts = [self.parts, base.parts].concat();
        let variance: f64 = parts.iter().map(|part| part.variance).sum();
        let spread: f64 =
            parts.iter().map(|part| part.variance * part.variance / part.freedom).sum();

        let mut freedom = FREEDOM_MAX;
        if spread > 0.0 {
            freedom = (variance * variance / spread).clamp(1.0, FREEDOM_MAX);
        }
        CostChange { base_us: base.us, target_us: self.us, error_us: variance.sqrt(), freedom }
    }
}

/// A cost in two targets, with the error of their difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CostChange {
    pub base_us: f64,
    pub target_us: f64,
    /// The standard error of the difference.
    error_us: f64,
    /// The degrees of freedom of that error.
    freedom: f64,
}

impl CostChange {
    pub fn difference_us(&self) -> f64 {
        self.target_us - self.base_us
    }

    /// Returns true if the interval around the difference excludes 0.
    pub fn is_shown(&self, confidence: Confidence) -> bool {
        // Nearly all differences are less than the normal quantile allows, which Student's is never
        // below. It is known, while thousands of Student's quantiles take seconds.
        let difference_us = self.difference_us().abs();
        self.error_us > 0.0
            && difference_us > confidence.z * self.error_us
            && difference_us > self.margin_us(confidence)
    }

    /// Returns the half-width of the interval around the difference.
    pub fn margin_us(&self, confidence: Confidence) -> f64 {
        if self.error_us > 0.0 {
            quantile(confidence.error_rate, self.freedom) * self.error_us
        } else {
            0.0
        }
    }
}

/// The confidence that a comparison of one cost needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confidence {
    /// The probability that an interval is wrong.
    error_rate: f64,
    /// The quantile for as many samples as there may be: the least of all with this error rate.
    z: f64,
}

impl Confidence {
    pub fn new(error_rate: f64) -> Self {
        Self { error_rate, z: quantile(error_rate, FREEDOM_MAX) }
    }
}
