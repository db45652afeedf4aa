//! Random numbers for simulations.

/// Random numbers, also of the normal distribution.
pub struct Random(words::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(words::Random::new(seed))
    }

    /// Returns a number in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
