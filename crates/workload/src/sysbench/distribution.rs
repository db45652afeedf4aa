//! Random numbers between two bounds: uniform, or Zipfian.
//!
//! Zipfian numbers are drawn by rejection-inversion (W. Hörmann, G. Derflinger: Rejection-inversion
//! to generate variates from monotone discrete distributions, ACM TOMACS 6(3), 1996), which needs
//! no table and about one try for any range.

use plan::Distribution;

use crate::Random;

/// Draws numbers from a range that starts at `low`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sampler {
    Uniform { low: i64, span: u64 },
    Zipfian { low: i64, zipf: Zipf },
}

impl Sampler {
    /// Returns a sampler of `low..=high`, or of `low` alone if that is empty.
    #[inline]
    pub(crate) fn new(distribution: Distribution, low: i64, high: i64) -> Self {
        // Numbers in `low..=high`, at least 1.
        let span = high.saturating_sub(low).saturating_add(1).max(1) as u64;
        match distribution {
            Distribution::Uniform => Self::Uniform { low, span },
            Distribution::Zipfian { exponent } => {
                Self::Zipfian { low, zipf: Zipf::new(span, exponent) }
            }
        }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> i64 {
        match self {
            Self::Uniform { low, span } => low + random.below(*span) as i64,
            Self::Zipfian { low, zipf } => low + (zipf.draw(random) - 1) as i64,
        }
    }
}

/// The Zipf distribution over `1..=count`.
///
/// `area(x)` is the integral of `h(x) = 1 / x^exponent` from 1. A point is drawn uniformly from
/// that area up to `count + 0.5`, in which the part of 1 is a bar of height `h(1)`. The number that
/// its position rounds to is accepted if the point lies within the bar of that number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    count: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    /// A position this close below its number is accepted without further tests.
    shortcut: f64,
}

impl Zipf {
    pub(crate) fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { count: count as f64, exponent, area_first: 0.0, area_last: 0.0, shortcut: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.count + 0.5);
        zipf.shortcut = 2.0 - zipf.place(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    #[inline]
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// `(x^(1 - exponent) - 1) / (1 - exponent)`, also where the exponent is 1 or close to it.
    #[inline]
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        let factor = if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 };
        factor * log
    }

    /// Returns the inverse of [`Zipf::area`].
    #[inline]
    fn place(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        let factor = if scaled.abs() > 1e-8 { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 };
        (factor * area).exp()
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        /// The step between two fractions of 53 bits.
        const ULP: f64 = 1.0 / (1_u64 << 53) as f64;
        loop {
            let fraction = (random.next_u64() >> 11) as f64 * ULP;
            let area = self.area_last + fraction * (self.area_first - self.area_last);
            let place = self.place(area);
            let number = place.round().clamp(1.0, self.count);
            if number - place <= self.shortcut
                || area >= self.area(number + 0.5) - self.height(number)
            {
                return number as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipfian_numbers_have_the_exact_distribution() {
        const DRAWS: u32 = 400_000;
        for (count, exponent) in [(10, 0.8), (100, 0.8), (100, 1.0), (50, 1.5), (3, 0.2)] {
            let zipf = Zipf::new(count, exponent);
            let mut random = Random::stream(3, &[count]);
            let mut counts = vec![0_u32; count as usize];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize - 1] += 1;
            }
            let weight = |number: usize| (number as f64).powf(-exponent);
            let total: f64 = (1..=count as usize).map(weight).sum();
            let chi_square: f64 = counts
                .iter()
                .enumerate()
                .map(|(index, &values)| {
                    let expected = f64::from(DRAWS) * weight(index + 1) / total;
                    (f64::from(values) - expected).powi(2) / expected
                })
                .sum();
            let freedom = count as f64 - 1.0;
            assert!(
                chi_square < freedom + 4.0 * (2.0 * freedom).sqrt() + 4.0,
                "{count} {exponent}: {chi_square}"
            );
        }
    }

    #[test]
    fn zipfian_numbers_stay_in_a_large_range() {
        let zipf = Zipf::new(10_000_000_000, 0.8);
        let mut random = Random::stream(3, &[]);
        let values: Vec<u64> = (0..10_000).map(|_| zipf.draw(&mut random)).collect();
        assert!(values.iter().all(|number| (1..=10_000_000_000).contains(number)));
        // Half of the weight is below the 32nd part, which is 2^-5: the area is that of x^0.2.
        let below = values.iter().filter(|&&number| number < 10_000_000_000 / 32).count();
        assert!((4700..5300).contains(&below), "{below}");
    }

    #[test]
    fn both_bounds_are_drawn_and_a_single_number_always() {
        let mut random = Random::stream(9, &[]);
        for distribution in [Distribution::Uniform, Distribution::Zipfian { exponent: 1.2 }] {
            let sampler = Sampler::new(distribution, -2, 2);
            let values: std::collections::BTreeSet<i64> =
                (0..1000).map(|_| sampler.draw(&mut random)).collect();
            assert_eq!(values.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
            for high in [7, 3] {
                assert_eq!(Sampler::new(distribution, 7, high).draw(&mut random), 7);
            }
        }
    }
}
