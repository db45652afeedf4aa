//! Random numbers. The streams never change: a seed gives the same data, orders and resamples in
//! every version.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers.
///
/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014,
/// with the constants of its reference implementation): the n-th number of a stream is a hash of
/// `start + n * GAMMA`. So any client computes the values of any row in a few nanoseconds, without
/// those before it. The generator passes BigCrush.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts the reference implementation's stream for a seed.
    #[inline(always)]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Starts the stream of one purpose, which `path` identifies, such as step, client and
    /// connection.
    pub fn stream(seed: u64, path: &[u64]) -> Self {
        let state = path.iter().fold(mix(seed.wrapping_add(GAMMA)), |state, &part| {
            mix(state ^ mix(part.wrapping_add(GAMMA)))
        });
        Self { state }
    }

    /// Starts the stream of one row; each `index` has its own.
    #[inline(always)]
    pub fn at(&self, index: u64) -> Self {
        Self { state: mix(self.state ^ index.wrapping_mul(GAMMA)) }
    }

    /// Returns the next 64 bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Returns a number in `0..bound`, uniform except for a bias below `bound / 2^64` (Lemire's
    /// method without rejection).
    #[inline(always)]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in `0.0..1.0`.
    #[inline(always)]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_of_a_stream_never_change() {
        let mut random = Random::stream(1, &[2, 3]);
        let values: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        let expected = [
            5_649_887_244_965_920_420,
            13_925_306_368_521_941_324,
            16_497_069_670_036_673_811,
            5_280_393_994_674_944_613,
        ];
        assert_eq!(
            values, expected,
            "a changed stream changes every result: it must be a decision"
        );
    }

    #[test]
    fn the_stream_of_a_seed_is_the_published_one() {
        // The reference implementation's first numbers for the state 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(random.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut random = Random::stream(7, &[]);
        let mut counts = [0_u32; 100];
        for _ in 0..1_000_000 {
            counts[random.below(100) as usize] += 1;
        }
        let chi_square: f64 =
            counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        // 99 degrees of freedom: one in a thousand exceeds 149.
        assert!(chi_square < 149.0, "{chi_square}");
    }
}
