//! Analysis of variance by machine: which share of the variance of values is between machines, and
//! whether ratios differ between machines by more than chance. `docs/statistics.md` has the
//! formulas and their sources.

use serde::Serialize;

use super::mean::{Pair, mean, variance};
use super::student::{f_quantile, f_tail};

/// Ratios differ between machines if chance alone makes them differ as much with at most this
/// probability. A test at 5% would overlook many real differences, which would make intervals too
/// narrow (Bancroft 1964).
const DIFFERENCE_LEVEL: f64 = 0.25;

/// Both tails of intervals.
const ERROR_RATE: f64 = 0.05;

/// Variances of logarithms below this are rounding errors of equal figures.
const LEAST_VARIANCE: f64 = 1e-18;

/// A share of the variance of single values, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VarianceShare {
    /// The estimate, in 0..=1.
    pub share: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// Mean squares between and within machines.
struct Anova {
    between: f64,
    between_freedom: f64,
    within: f64,
    /// Zero if each machine has one value.
    within_freedom: f64,
    /// The values of one machine: of machines with different numbers of them, the number that
    /// makes the mean squares unbiased.
    size: f64,
}

impl Anova {
    /// Analyses the values of each machine; `None` if there is only one machine.
    fn of(groups: &[Vec<f64>]) -> Option<Self> {
        let machines = groups.len() as f64;
        let sizes = || groups.iter().map(|group| group.len() as f64);
        let count: f64 = sizes().sum();

        if groups.len() < 2 {
            return None;
        }

        let total = mean(&groups.concat());
        let around_total = groups.iter().map(|group| (mean(group) - total).powi(2));
        let between: f64 = sizes().zip(around_total).map(|(n, square)| n * square).sum();

        let within = groups.iter().map(|group| variance(group) * (group.len() as f64 - 1.0));
        // For groups of unlike sizes, the n0 of random-effects models (Searle, Casella and
        // McCulloch 1992); equal sizes give that size.
        let squares: f64 = sizes().map(|size| size * size).sum();
        let size = (count - squares / count) / (machines - 1.0);
        let within_freedom = count - machines;

        Some(Self {
            between: between / (machines - 1.0),
            between_freedom: machines - 1.0,
            within: within.sum::<f64>() / within_freedom.max(1.0),
            within_freedom,
            size,
        })
    }

    /// Returns the mean square between machines over that within them.
    fn ratio(&self) -> f64 {
        self.between / self.within.max(LEAST_VARIANCE)
    }
}

/// Returns a figure of each pair by machine. Pairs are in the order of machines.
fn by_machine(pairs: &[Pair], figure: impl Fn(&Pair) -> f64) -> Vec<Vec<f64>> {
    let machines = pairs.chunk_by(|a, b| a.block.machine == b.block.machine);
    machines.map(|pairs| pairs.iter().map(&figure).collect()).collect()
}

fn log_ratio(pair: &Pair) -> f64 {
    pair.value.ln() - pair.base.ln()
}

/// Returns the share of the variance of logarithms that is between machines, by the ANOVA method
/// (Shrout and Fleiss 1979; Searle, Casella and McCulloch 1992); `None` with one machine.
/// Differences between base and target do not count.
pub(super) fn between_machines(pairs: &[Pair]) -> Option<VarianceShare> {
    let level = |pair: &Pair| f64::midpoint(pair.base.ln(), pair.value.ln());
    let ratios: Vec<f64> = pairs.iter().map(log_ratio).collect();

    // The noise of a single value has twice the variance that it adds to the mean of a pair.
    let noise = variance(&ratios) / 4.0;

    let mut levels = Anova::of(&by_machine(pairs, level))?;
    if levels.within_freedom == 0.0 {
        // One pair of each machine: base and target are the two values of a machine.
        levels.within = noise;
        levels.within_freedom = levels.between_freedom;
    }

    let freedom = [levels.between_freedom, levels.within_freedom];
    let within = 1.0 + noise / levels.within.max(LEAST_VARIANCE);
    let share = |ratio: f64| {
        let between = ((ratio - 1.0) / levels.size).max(0.0);
        between / (between + within)
    };

    let ratio = levels.ratio();
    let tail = ERROR_RATE / 2.0;
    let [first, second] = freedom;

    Some(VarianceShare {
        share: share(ratio),
        low: share(ratio / f_quantile(tail, freedom)),
        high: share(ratio * f_quantile(tail, [second, first])),
    })
}

/// Returns a value for each machine if the ratios of pairs differ between machines by more than
/// within them; `None` if they don't, or if each machine has one pair. Further pairs of one machine
/// then say little about others, so that each machine counts as one value: the mean of its
/// logarithms, weighted so that the mean of all machines is that of all pairs.
pub(super) fn machine_values(pairs: &[Pair]) -> Option<Vec<f64>> {
    let groups = by_machine(pairs, log_ratio);
    let anova = Anova::of(&groups).filter(|anova| anova.within_freedom > 0.0)?;

    let freedom = [anova.between_freedom, anova.within_freedom];
    if f_tail(anova.ratio(), freedom) > DIFFERENCE_LEVEL {
        return None;
    }

    let total = mean(&groups.concat());
    let weight = groups.len() as f64 / pairs.len() as f64;
    let value = |group: &Vec<f64>| total + weight * group.len() as f64 * (mean(group) - total);
    Some(groups.iter().map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::mean::Block;

    /// Returns pairs of the machines, each with the logarithms of base and target.
    fn pairs(machines: &[&[(f64, f64)]]) -> Vec<Pair> {
        let of_machine = |(machine, pairs): (usize, &&[(f64, f64)])| {
            let pair = |&(base, value): &(f64, f64)| Pair {
                base: base.exp(),
                value: value.exp(),
                base_at: 0.0,
                at: 0.0,
                block: Block { machine, ..Block::default() },
            };
            pairs.iter().map(pair).collect::<Vec<Pair>>()
        };
        machines.iter().enumerate().flat_map(of_machine).collect()
    }

    /// The ratings of the first two judges in table 2 of Shrout and Fleiss, for six patients. By
    /// hand: the mean squares are 4.3833 between patients and 0.4833 residual, so that ICC(3,1)
    /// = (4.3833 - 0.4833) / (4.3833 + 0.4833).
    #[test]
    fn one_pair_of_each_machine_gives_the_intraclass_correlation_by_hand() {
        let ratings = [(9.0, 2.0), (6.0, 1.0), (8.0, 4.0), (7.0, 1.0), (10.0, 5.0), (6.0, 2.0)];
        let machines: Vec<&[(f64, f64)]> = ratings.iter().map(std::slice::from_ref).collect();
        let share = between_machines(&pairs(&machines)).unwrap();
        let (between, residual) = mean_squares(&ratings);
        let expected = (between - residual) / (between + residual);
        assert!((share.share - expected).abs() < 1e-9, "{share:?}");
        // F(0.025; 5, 5) = 7.146.
        let bound = |ratio: f64| (ratio - 1.0) / (ratio + 1.0);
        let (low, high) = (bound(between / residual / 7.146), bound(between / residual * 7.146));
        assert!((share.low - low.max(0.0)).abs() < 1e-3, "{share:?}");
        assert!((share.high - high).abs() < 1e-3, "{share:?}");
    }

    /// The two-way analysis as textbooks have it, from the values themselves.
    fn mean_squares(ratings: &[(f64, f64)]) -> (f64, f64) {
        let rows = ratings.len() as f64;
        let total = ratings.iter().map(|(a, b)| a + b).sum::<f64>() / (2.0 * rows);
        let first = ratings.iter().map(|it| it.0).sum::<f64>() / rows;
        let second = ratings.iter().map(|it| it.1).sum::<f64>() / rows;
        let (mut between, mut residual) = (0.0, 0.0);
        for (a, b) in ratings {
            let row = f64::midpoint(*a, *b);
            between += 2.0 * (row - total).powi(2);
            residual += (a - row - first + total).powi(2) + (b - row - second + total).powi(2);
        }
        (between / (rows - 1.0), residual / (rows - 1.0))
    }

    /// Two machines of 2 and 3 pairs without any difference between base and target. Levels 1, 3
    /// and 6, 8, 10; by hand: 43.2 between, 10 / 3 within, and 2.4 pairs each.
    #[test]
    fn several_pairs_of_a_machine_are_within_it() {
        let machines: [&[(f64, f64)]; 2] =
            [&[(1.0, 1.0), (3.0, 3.0)], &[(6.0, 6.0), (8.0, 8.0), (10.0, 10.0)]];
        let share = between_machines(&pairs(&machines)).unwrap();
        let variance = (43.2 - 10.0 / 3.0) / 2.4;
        let expected = variance / (variance + 10.0 / 3.0);
        assert!((share.share - expected).abs() < 1e-9, "{share:?}");
        assert!(share.low < expected && expected < share.high);
    }

    #[test]
    fn one_machine_has_no_variance_between_machines_and_equal_ones_have_none() {
        assert_eq!(between_machines(&pairs(&[&[(1.0, 2.0), (2.0, 4.0)]])), None);
        let equal: [&[(f64, f64)]; 3] = [&[(1.0, 2.0)], &[(1.0, 2.0)], &[(1.0, 2.0)]];
        let share = between_machines(&pairs(&equal)).unwrap();
        assert_eq!((share.share, share.low), (0.0, 0.0));
    }

    #[test]
    fn any_numbers_of_machines_and_pairs_have_a_share() {
        for (machines, most) in [(2, 1), (2, 40), (3, 2), (30, 1), (60, 3)] {
            let of_machine = |machine: i32| -> Vec<(f64, f64)> {
                let pair = |pair: i32| (f64::from(machine * pair % 7), f64::from(machine % 3));
                (0..=machine % most).map(pair).collect()
            };
            let all: Vec<Vec<(f64, f64)>> = (0..machines).map(of_machine).collect();
            let all: Vec<&[(f64, f64)]> = all.iter().map(Vec::as_slice).collect();
            let share = between_machines(&pairs(&all)).unwrap();
            let shares = [0.0, share.low, share.share, share.high, 1.0];
            assert!(shares.is_sorted(), "{machines} {most}: {share:?}");
        }
    }

    #[test]
    fn machines_with_other_ratios_count_once() {
        let apart: [&[(f64, f64)]; 2] =
            [&[(0.0, 0.10), (0.0, 0.11)], &[(0.0, 0.30), (0.0, 0.31), (0.0, 0.32)]];
        let values = machine_values(&pairs(&apart)).unwrap();
        // By hand: the mean of all pairs is 0.228; 2/5 x 2 (0.105 - 0.228) and 2/5 x 3 (0.31 -
        // 0.228) from it.
        let expected = [0.228 - 0.8 * 0.123, 0.228 + 1.2 * 0.082];
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{values:?}");
        }
        assert!((mean(&values) - 0.228).abs() < 1e-12);

        let alike: [&[(f64, f64)]; 2] = [&[(0.0, 0.1), (0.0, 0.3)], &[(5.0, 5.3), (5.0, 5.1)]];
        assert_eq!(machine_values(&pairs(&alike)), None);
        let single: [&[(f64, f64)]; 2] = [&[(0.0, 0.1)], &[(0.0, 0.3)]];
        assert_eq!(machine_values(&pairs(&single)), None);
        assert_eq!(machine_values(&pairs(&apart[..1])), None);
    }
}
