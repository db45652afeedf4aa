//! Random numbers of scripts, between two bounds.

use plan::Distribution;
use plan::transactions::Shape;

use crate::Random;
use crate::sysbench::distribution::{Sampler, Zipf};

/// The purpose of the constants of non-uniform numbers, the last part of their path.
const CONSTANTS: u64 = 5;
/// The range of the mask that is combined with the numbers of last names.
const LAST_NAMES: u64 = 255;

/// Draws numbers from a range.
#[derive(Clone, Copy, Debug)]
pub(super) enum RangeSampler {
    Plain(Sampler),
    /// The n-th value is `low + (n * step) % span`, which meets each value once.
    Scrambled {
        low: i64,
        span: u64,
        step: u64,
        zipf: Zipf,
    },
    Latest {
        high: i64,
        zipf: Zipf,
    },
    /// The first `part` numbers of `span` have a share of the draws.
    Hot {
        low: i64,
        span: u64,
        part: u64,
        share: f64,
    },
    NonUniform {
        low: i64,
        span: u64,
        x: u64,
        constant: u64,
    },
}

impl RangeSampler {
    /// Returns a sampler of `low..=high`, or of `low` alone if that is empty. `seed` gives the
    /// constants of non-uniform numbers.
    pub(super) fn new(shape: Shape, low: i64, high: i64, seed: u64) -> Self {
        let span = high.saturating_sub(low).saturating_add(1).max(1) as u64;
        match shape {
            Shape::Uniform => Self::Plain(Sampler::new(Distribution::Uniform, low, high)),
            Shape::Zipf { exponent } => {
                Self::Plain(Sampler::new(Distribution::Zipfian { exponent }, low, high))
            }
            Shape::Scrambled { exponent } => {
                let zipf = Zipf::new(span, exponent);
                Self::Scrambled { low, span, step: scattering_step(span), zipf }
            }
            Shape::Latest { exponent } => {
                Self::Latest { high: high.max(low), zipf: Zipf::new(span, exponent) }
            }
            Shape::Hot { part, share } => {
                let part = (span as f64 * part / 100.0).round() as u64;
                Self::Hot { low, span, part: part.clamp(1, span), share: share / 100.0 }
            }
            Shape::NonUniform { x, loads } => {
                let x = u64::from(x);
                Self::NonUniform { low, span, x, constant: constant(x, loads, seed) }
            }
        }
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> i64 {
        match *self {
            Self::Plain(sampler) => sampler.draw(random),
            Self::Scrambled { low, span, step, zipf } => {
                let rank = u128::from(zipf.draw(random) - 1);
                low + (rank * u128::from(step) % u128::from(span)) as i64
            }
            Self::Latest { high, zipf } => high - (zipf.draw(random) - 1) as i64,
            Self::Hot { low, span, part, share } => {
                let is_hot = random.fraction() < share || part == span;
                let offset =
                    if is_hot { random.below(part) } else { part + random.below(span - part) };
                low + offset as i64
            }
            Self::NonUniform { low, span, x, constant } => {
                let mask = random.below(x + 1);
                let number = low.wrapping_add(random.below(span) as i64);
                let mixed = (mask | number as u64).wrapping_add(constant) % span;
                low + mixed as i64
            }
        }
    }
}

/// Returns the constant of non-uniform numbers.
pub(super) fn constant(x: u64, loads: bool, seed: u64) -> u64 {
    let mut random = Random::stream(seed, &[x, CONSTANTS]);
    let loaded = random.below(x + 1);
    if loads || x != LAST_NAMES {
        return loaded;
    }

    // TPC-C 2.1.6.1: the two constants of last names differ by 65 to 119, but not by 96 or 112.
    let mut difference = 65 + random.below(53);
    difference += u64::from(difference >= 96);
    difference += u64::from(difference >= 112);
    if loaded + difference <= x { loaded + difference } else { loaded - difference }
}

/// Returns a step of about 0.618 of a span that has no common divisor with it, so that its multiples
/// meet each place of the span once, and neighbors are far from each other.
fn scattering_step(span: u64) -> u64 {
    let mut step = (span as f64 * 0.618_033_988_749_895) as u64;
    step = step.max(1);
    while common_divisor(step, span) != 1 {
        step += 1;
    }
    step
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    /// Draws from `1..=expected.len()`, and compares the counts with the expected probabilities by a
    /// chi-square test.
    fn check(shape: Shape, expected: &[f64]) {
        let high = expected.len() as i64;
        let sampler = RangeSampler::new(shape, 1, high, 7);
        let mut random = Random::stream(3, &[]);
        let mut counts = vec![0_u32; expected.len()];
        for _ in 0..DRAWS {
            counts[(sampler.draw(&mut random) - 1) as usize] += 1;
        }

        let total: f64 = expected.iter().sum();
        let mut chi_square = 0.0;
        let mut freedom = -1.0;
        for (count, probability) in counts.iter().zip(expected) {
            let mean = f64::from(DRAWS) * probability / total;
            if mean == 0.0 {
                assert_eq!(*count, 0, "{shape:?}");
                continue;
            }
            chi_square += (f64::from(*count) - mean).powi(2) / mean;
            freedom += 1.0;
        }
        let bound = freedom + 4.0 * (2.0 * f64::max(freedom, 1.0)).sqrt() + 4.0;
        assert!(chi_square < bound, "{shape:?}: {chi_square} with {freedom} degrees of freedom");
    }

    fn zipf(count: usize, exponent: f64) -> Vec<f64> {
        (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect()
    }

    #[test]
    fn each_distribution_has_its_shares() {
        check(Shape::Uniform, &[1.0; 50]);
        check(Shape::Zipf { exponent: 0.99 }, &zipf(100, 0.99));
        let mut latest = zipf(100, 0.8);
        latest.reverse();
        check(Shape::Latest { exponent: 0.8 }, &latest);

        // A tenth of the range has nine tenths of the draws.
        let mut hot = vec![0.9 / 10.0; 10];
        hot.extend([0.1 / 90.0; 90]);
        check(Shape::Hot { part: 10.0, share: 90.0 }, &hot);
        check(Shape::Hot { part: 100.0, share: 30.0 }, &[1.0; 20]);
    }

    #[test]
    fn scrambled_values_have_the_shares_of_zipf_at_other_places() {
        for count in [1_usize, 2, 97, 100] {
            let step = scattering_step(count as u64);
            let mut places = vec![0.0; count];
            for (rank, share) in zipf(count, 0.9).into_iter().enumerate() {
                places[(rank as u64 * step % count as u64) as usize] += share;
            }
            assert!(places.iter().all(|share| *share > 0.0), "each value is met once");
            check(Shape::Scrambled { exponent: 0.9 }, &places);
        }
    }

    #[test]
    fn non_uniform_numbers_have_the_shares_of_their_definition() {
        for (x, count) in [(255, 1000), (15, 20), (7, 3)] {
            let RangeSampler::NonUniform { constant, .. } =
                RangeSampler::new(Shape::NonUniform { x, loads: false }, 1, count, 7)
            else {
                panic!();
            };
            // Each pair of numbers that the definition combines is equally likely.
            let mut expected = vec![0.0; count as usize];
            for mask in 0..=u64::from(x) {
                for number in 1..=count as u64 {
                    expected[(((mask | number) + constant) % count as u64) as usize] += 1.0;
                }
            }
            check(Shape::NonUniform { x, loads: false }, &expected);
        }
    }

    #[test]
    fn last_names_of_transactions_have_another_constant_than_loaded_ones() {
        let mut differences = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            let [loaded, run] = [true, false].map(|loads| constant(LAST_NAMES, loads, seed));
            assert!(loaded <= LAST_NAMES && run <= LAST_NAMES, "{loaded} {run}");
            differences.insert(loaded.abs_diff(run));
        }
        let allowed = (65..=119).filter(|difference| ![96, 112].contains(difference));
        assert!(differences.into_iter().eq(allowed));
        assert_eq!(constant(1023, true, 7), constant(1023, false, 7));
    }

    #[test]
    fn an_empty_range_is_its_lower_bound() {
        let mut random = Random::stream(3, &[]);
        for shape in [
            Shape::Uniform,
            Shape::Zipf { exponent: 0.8 },
            Shape::Scrambled { exponent: 0.8 },
            Shape::Latest { exponent: 0.8 },
            Shape::Hot { part: 10.0, share: 90.0 },
            Shape::NonUniform { x: 255, loads: true },
        ] {
            for high in [7, 3] {
                let sampler = RangeSampler::new(shape, 7, high, 1);
                assert_eq!(sampler.draw(&mut random), 7, "{shape:?}");
            }
        }
    }
}
