//! The powers of a series by frequency, over those of noise.

use std::f64::consts::TAU;

use super::fourier::transform;
use super::waves::without_line;
use crate::figures::average::median;

/// The least number of frequencies for each independent one, so that a period between two of these
/// loses little of its power.
const OVERSAMPLING_MIN: usize = 4;

/// The first independent frequency that noise is fitted to, in cycles per segment. The lower ones
/// lost power with the drift.
const FITTED_MIN: usize = 3;

/// The most independent frequencies that noise is fitted to, so that long steps take no longer.
const FITTED_MAX: usize = 256;

/// The independent frequencies on each side that are the surroundings of a power.
const AROUND: f64 = 10.0;

/// The fewest of them that say anything.
const AROUND_MIN: usize = 5;

/// The correlations between neighbors that slow noise may have.
const CORRELATIONS: [f64; 21] = [
    0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8,
    0.85, 0.9, 0.95, 0.99,
];

/// The variances of the white noise on top, as multiples of that of slow noise.
const WHITE_SHARES: [f64; 6] = [0.0, 0.03, 0.1, 0.3, 1.0, 3.0];

/// The mean powers of the segments of a series. Noise has a mean of 1 at each frequency.
pub(super) struct Spectrum {
    /// The power at each frequency from 0 to a half per second, at equal distances.
    powers: Vec<f64>,
    /// Frequencies for each independent one.
    oversampling: f64,
    pub segment_count: usize,
    pub segment_seconds: usize,
}

impl Spectrum {
    /// Returns the powers of so many segments of equal length, over those of noise.
    pub(super) fn new(values: &[f64], segment_count: usize) -> Self {
        let segment_seconds = values.len() / segment_count;
        let size = (OVERSAMPLING_MIN * segment_seconds).next_power_of_two();

        let mut powers = vec![0.0; size / 2 + 1];
        for segment in values.chunks_exact(segment_seconds).take(segment_count) {
            let mut real = without_line(segment);
            real.resize(size, 0.0);
            let mut imaginary = vec![0.0; size];
            transform(&mut real, &mut imaginary);

            for (power, (real, imaginary)) in powers.iter_mut().zip(real.iter().zip(&imaginary)) {
                *power += real * real + imaginary * imaginary;
            }
        }

        let oversampling = size as f64 / segment_seconds as f64;
        let mut spectrum = Self { powers, oversampling, segment_count, segment_seconds };
        let noise = spectrum.noise();
        for index in 0..spectrum.powers.len() {
            let of_noise = noise.power(spectrum.frequency(index));
            spectrum.powers[index] /= of_noise;
        }
        spectrum
    }

    /// Returns the frequency at an index, per second.
    pub(super) fn frequency(&self, index: usize) -> f64 {
        index as f64 / (2 * (self.powers.len() - 1)) as f64
    }

    /// Returns the index of the frequency that is closest to this one.
    pub(super) fn index(&self, frequency: f64) -> usize {
        (frequency * (2 * (self.powers.len() - 1)) as f64).round() as usize
    }

    /// Returns the powers at the first `count` multiples of the frequency at an index, as far as
    /// there are such frequencies.
    pub(super) fn multiples(&self, index: usize, count: usize) -> impl Iterator<Item = f64> {
        (1..=count).map_while(move |multiple| self.powers.get(multiple * index).copied())
    }

    /// Returns the same powers over those of their surroundings, where these exceed the noise.
    pub(super) fn multiples_over_surroundings(
        &self,
        index: usize,
        count: usize,
    ) -> impl Iterator<Item = f64> {
        (1..=count).map_while(move |multiple| {
            let power = self.powers.get(multiple * index)?;
            Some(power / self.surroundings(multiple * index, index).max(1.0))
        })
    }

    /// Returns the mean power around an index, of independent frequencies that are no multiple of
    /// the one at `fundamental`.
    fn surroundings(&self, index: usize, fundamental: usize) -> f64 {
        let line = index as f64 / self.oversampling;
        let spacing = fundamental as f64 / self.oversampling;
        let first = (line - AROUND).max(2.0) as usize;
        let last = ((line + AROUND) as usize).min(self.segment_seconds / 2);

        let is_multiple = |line: usize| {
            let multiple = (line as f64 / spacing).round().max(1.0);
            (line as f64 - multiple * spacing).abs() <= 1.0
        };

        let lines = (first..=last).filter(|&line| !is_multiple(line));
        let powers: Vec<f64> = lines.map(|line| self.independent(line).1).collect();

        if powers.len() < AROUND_MIN {
            return 1.0;
        }
        median(powers).unwrap_or(1.0) / self.median_of_noise()
    }

    /// Returns a frequency with a whole number of cycles per segment, and its power.
    fn independent(&self, cycles: usize) -> (f64, f64) {
        let index = (cycles as f64 * self.oversampling).round() as usize;
        let index = index.min(self.powers.len() - 1);
        (self.frequency(index), self.powers[index])
    }

    /// Returns the median power of noise whose mean is 1: a mean of exponential powers (Wilson and
    /// Hilferty's approximation).
    fn median_of_noise(&self) -> f64 {
        (1.0 - 1.0 / (9.0 * self.segment_count as f64)).powi(3)
    }

    /// Fits noise to the logarithms of the independent powers by least absolute deviations, which
    /// the few powers of a rhythm hardly move.
    fn noise(&self) -> Noise {
        let last = self.segment_seconds / 2;
        let lines = (FITTED_MIN..last).step_by((last / FITTED_MAX).max(1));

        // Many shapes are tried at the same frequencies, so each cosine is computed once.
        let mut logs: Vec<(f64, f64)> = Vec::new();
        for line in lines {
            let (frequency, power) = self.independent(line);
            logs.push(((TAU * frequency).cos(), power.max(f64::MIN_POSITIVE).ln()));
        }

        let mut best = Noise { correlation: 0.0, white_share: 0.0, level: 1.0 };
        let mut least = f64::INFINITY;
        for correlation in CORRELATIONS {
            for white_share in WHITE_SHARES {
                let shape = Noise { correlation, white_share, level: 1.0 };
                let residuals: Vec<f64> = logs
                    .iter()
                    .map(|&(cosine, log)| log - shape.power_of_cosine(cosine).ln())
                    .collect();
                let middle = median(residuals.iter().copied()).unwrap_or(0.0);
                let deviation: f64 =
                    residuals.iter().map(|residual| (residual - middle).abs()).sum();
                if deviation < least {
                    least = deviation;
                    best = Noise { level: middle.exp() / self.median_of_noise(), ..shape };
                }
            }
        }
        best
    }
}

/// An autoregression of first order, with white noise on top.
#[derive(Clone, Copy)]
struct Noise {
    correlation: f64,
    white_share: f64,
    level: f64,
}

impl Noise {
    /// Returns the mean power at a frequency, per second.
    fn power(self, frequency: f64) -> f64 {
        self.power_of_cosine((TAU * frequency).cos())
    }

    /// Returns the mean power at the frequency whose angle per second has this cosine.
    fn power_of_cosine(self, cosine: f64) -> f64 {
        let Self { correlation, white_share, level } = self;
        let square = correlation * correlation;
        let slow = (1.0 - square) / (1.0 - 2.0 * correlation * cosine + square);
        level * (slow + white_share)
    }
}
