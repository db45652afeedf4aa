//! The typical turn of a step: what a target does while nothing holds it up.
//!
//! A hypervisor or a neighbor takes the processor away for a whole turn now and then. A few such
//! turns decide the mean of a step, and they hit either target by chance. The mean of the turns
//! without the slowest fifth and the fastest fifth is free of them. `docs/validation.md` has the simulations.

use std::collections::BTreeMap;

use super::average::mean;
use super::turns::HalfBlock;

/// The rate in a typical turn, in the unit of the step's throughput.
pub const TYPICAL_RATE: &str = "typical_rate";

/// The CPU time of client and server for an operation of a typical turn, in microseconds.
pub const TYPICAL_CPU: &str = "typical_cpu_us_per_op";

/// The rate over all turns as a share of [`TYPICAL_RATE`].
pub const STEADINESS: &str = "steadiness";

/// The fewest turns of which one can say what is typical: those of ten blocks.
pub(crate) const TURNS_MIN: usize = 20;

/// The share of the turns that is left out at each end.
pub(crate) const TRIMMED_SHARE: f64 = 0.2;

/// Microseconds in a second.
const MICROSECONDS: f64 = 1e6;

/// Returns the figures of a typical turn of one target by itself. `throughput` is that of the step.
///
/// A target that does nothing in a fifth of its turns has no typical turn: its rate and its
/// steadiness are zero, so that nobody takes the other repeats for all.
pub(super) fn figures(
    halves: &[HalfBlock],
    throughput: Option<f64>,
) -> BTreeMap<&'static str, Option<f64>> {
    let typical_ln_rate = trimmed_mean(halves.iter().map(ln_rate));
    let typical_ln_cpu = trimmed_mean(halves.iter().map(ln_cpu));

    let steadiness = typical_ln_rate.map(|typical| {
        let share = (ln_mean_rate(halves) - typical).exp();
        if share.is_finite() { share } else { 0.0 }
    });
    let rate = throughput.zip(steadiness).map(|(throughput, steadiness)| {
        if steadiness > 0.0 { throughput / steadiness } else { 0.0 }
    });
    let cpu = typical_ln_cpu.filter(|ln_cpu| ln_cpu.is_finite());

    BTreeMap::from([
        (TYPICAL_RATE, rate),
        (TYPICAL_CPU, cpu.map(|ln_cpu| MICROSECONDS * ln_cpu.exp())),
        (STEADINESS, steadiness),
    ])
}

/// Returns the logarithm of the operations per second; of zero, minus infinity.
pub(crate) fn ln_rate(half: &HalfBlock) -> f64 {
    (half.operations as f64 / half.seconds).ln()
}

/// Returns the logarithm of the seconds of CPU time per operation; not a number if it is unknown.
pub(crate) fn ln_cpu(half: &HalfBlock) -> f64 {
    half.cpu_seconds.map_or(f64::NAN, |seconds| (seconds / half.operations as f64).ln())
}

/// Returns the logarithm of the operations per second over all of some turns.
pub(crate) fn ln_mean_rate(halves: &[HalfBlock]) -> f64 {
    let operations: f64 = halves.iter().map(|half| half.operations as f64).sum();
    let seconds: f64 = halves.iter().map(|half| half.seconds).sum();
    (operations / seconds).ln()
}

/// Returns the mean of some values without the fifth at each end (Tukey and McLaughlin 1963); `None`
/// if there are too few. It is infinite, or not a number, if more than a fifth of the values are
/// infinite.
pub(crate) fn trimmed_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    mean(trimmed(values)?)
}

/// Returns some values in ascending order, without the fifth at each end. Values that are no numbers
/// don't count. `None` if there are too few.
pub(crate) fn trimmed(values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    if sorted.len() < TURNS_MIN {
        return None;
    }

    sorted.sort_by(f64::total_cmp);
    let cut_count = (TRIMMED_SHARE * sorted.len() as f64) as usize;
    Some(sorted[cut_count..sorted.len() - cut_count].to_vec())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns halves of blocks with these numbers of operations in a tenth of a second each, half of
    /// which is CPU time.
    pub(crate) fn halves(operations: &[u64]) -> Vec<HalfBlock> {
        let half = |(number, operations): (usize, &u64)| HalfBlock {
            block: number as u32 / 2,
            half: number as u32 % 2,
            seconds: 0.1,
            operations: *operations,
            cpu_seconds: Some(0.05),
        };
        operations.iter().enumerate().map(half).collect()
    }

    #[track_caller]
    fn assert_near(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{value}, not {expected}");
    }

    #[test]
    fn a_stall_is_in_steadiness_and_not_in_the_typical_rate() {
        let mut operations = [100; 20];
        operations[3..6].fill(0);
        let figures = figures(&halves(&operations), Some(850.0));
        assert_near(figures[TYPICAL_RATE], 1000.0);
        assert_near(figures[STEADINESS], 0.85);
        assert_near(figures[TYPICAL_CPU], 500.0);
    }

    #[test]
    fn a_target_that_stands_still_has_no_typical_turn() {
        let mut operations = [0; 20];
        operations[0..8].fill(100);
        let figures = figures(&halves(&operations), Some(40.0));
        assert_eq!((figures[TYPICAL_RATE], figures[STEADINESS]), (Some(0.0), Some(0.0)));
        assert_eq!(figures[TYPICAL_CPU], None);
    }

    #[test]
    fn few_turns_have_no_typical_one() {
        let figures = figures(&halves(&[100; 19]), Some(1000.0));
        assert!(figures.values().all(Option::is_none), "{figures:?}");
    }

    #[test]
    fn cpu_that_is_unknown_says_nothing() {
        let mut unknown = halves(&[100; 20]);
        for half in &mut unknown {
            half.cpu_seconds = None;
        }
        assert_eq!(figures(&unknown, Some(1000.0))[TYPICAL_CPU], None);
    }
}
