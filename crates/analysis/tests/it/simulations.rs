//! The number of simulations, and what chance makes of their results.

/// Names the variable with which all simulations run, as `cargo xtask test --all` does.
const TEST_ALL: &str = "ASSAY_TEST_ALL";

/// Returns how many of some simulations to run: a fifth, which shows an error in the code, unless
/// all are asked for. The documents have the results of all.
pub fn simulations(whole: u32) -> u32 {
    if std::env::var_os(TEST_ALL).is_some() { whole } else { whole / 5 }
}

/// Returns the largest share that chance makes of a rate in so many simulations: three standard
/// deviations more.
pub fn at_most(rate: f64, times: u32) -> f64 {
    rate + 3.0 * (rate * (1.0 - rate) / f64::from(times)).sqrt()
}
