//! Fourier transforms.

use std::f64::consts::{PI, TAU};

/// Transforms a series in place. Its length is a power of two (Cooley and Tukey's algorithm).
pub(super) fn transform(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    debug_assert!(size.is_power_of_two() && imaginary.len() == size);
    reorder(real, imaginary);

    let mut half = 1;
    while half < size {
        // Each pair turns by one step more, which is cheaper than another sine.
        let (step_sine, step_cosine) = (-PI / half as f64).sin_cos();
        let (mut sine, mut cosine) = (0.0, 1.0);
        for pair in 0..half {
            for low in (pair..size).step_by(2 * half) {
                let high = low + half;
                let turned_real = cosine * real[high] - sine * imaginary[high];
                let turned_imaginary = cosine * imaginary[high] + sine * real[high];
                real[high] = real[low] - turned_real;
                imaginary[high] = imaginary[low] - turned_imaginary;
                real[low] += turned_real;
                imaginary[low] += turned_imaginary;
            }

            let turned = cosine * step_cosine - sine * step_sine;
            sine = cosine * step_sine + sine * step_cosine;
            cosine = turned;
        }
        half *= 2;
    }
}

/// Exchanges each value with that at the index whose bits are reversed.
fn reorder(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    if size < 2 {
        return;
    }

    let unused_bits = usize::BITS - size.trailing_zeros();
    for index in 0..size {
        let reversed = index.reverse_bits() >> unused_bits;
        if index < reversed {
            real.swap(index, reversed);
            imaginary.swap(index, reversed);
        }
    }
}

/// A sum of cosines and sines of one frequency over a series.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wave {
    pub cosine: f64,
    pub sine: f64,
}

impl Wave {
    /// Returns the sums over a series at a frequency, per value.
    pub(super) fn of(values: &[f64], frequency: f64) -> Self {
        let mut wave = Self::default();
        for (at, value) in values.iter().enumerate() {
            let (sine, cosine) = (TAU * (frequency * at as f64).fract()).sin_cos();
            wave.cosine += value * cosine;
            wave.sine += value * sine;
        }
        wave
    }

    /// Returns the square of the amplitude.
    pub(super) fn power(self) -> f64 {
        self.cosine * self.cosine + self.sine * self.sine
    }
}

/// Equally distant points of a circle, so that waves with a whole number of cycles need no sines of
/// their own.
pub(super) struct Circle {
    /// The cosine and the sine of each point.
    points: Vec<(f64, f64)>,
}

impl Circle {
    pub(super) fn new(points: usize) -> Self {
        let angles = (0..points).map(|point| TAU * point as f64 / points as f64);
        Self { points: angles.map(|angle| (angle.cos(), angle.sin())).collect() }
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the cosine and the sine after so many points, over and over.
    pub(super) fn after(&self, points: usize) -> (f64, f64) {
        self.points[points % self.points.len()]
    }

    /// Returns the sums over a series of as many values, with so many cycles.
    pub(super) fn wave(&self, values: &[f64], cycles: usize) -> Wave {
        let mut wave = Wave::default();
        for (at, value) in values.iter().enumerate() {
            let (cosine, sine) = self.after(cycles * at);
            wave.cosine += value * cosine;
            wave.sine += value * sine;
        }
        wave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_has_the_sums_of_each_frequency() {
        let values: Vec<f64> = (0..16).map(|at| f64::from(at * at % 7) - 2.0).collect();
        let (mut real, mut imaginary) = (values.clone(), vec![0.0; 16]);
        transform(&mut real, &mut imaginary);
        for (index, (real, imaginary)) in real.into_iter().zip(imaginary).enumerate() {
            let wave = Wave::of(&values, index as f64 / 16.0);
            assert!((real - wave.cosine).abs() < 1e-9, "{index}");
            assert!((imaginary + wave.sine).abs() < 1e-9, "{index}");
        }
    }

    #[test]
    fn a_circle_has_the_waves_of_whole_cycles() {
        let values: Vec<f64> = (0..12).map(|at| f64::from(at * at % 5)).collect();
        let expected = Wave::of(&values, 2.0 / 12.0);
        let wave = Circle::new(12).wave(&values, 2);
        assert!((wave.cosine - expected.cosine).abs() < 1e-9);
        assert!((wave.sine - expected.sine).abs() < 1e-9);
    }
}
