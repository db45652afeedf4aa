//! The difference that is not shown, but whose repeats are far apart. `docs/statistics.md` has the
//! rule, and how often noise alone looks like that.

use serde::Serialize;

use crate::compare::{Compared, ComparedStep, Sample, Verdict};

/// The fewest repeats on each side.
const REPEATS_MIN: usize = 3;
/// The least ratio between the nearest repeats of the two sides.
const DISTANCE_MIN: f64 = 2.0;

/// A comparison that is too noisy to say, although all repeats of one side are far above all of the
/// other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Apart {
    /// The target.
    pub target: String,
    /// The step.
    pub step: String,
    /// The variant of the workload.
    pub variant: Option<String>,
    /// Clients.
    pub clients: u32,
    /// The metric.
    pub metric: String,
    /// Target / base.
    pub ratio: f64,
    /// The ratio between the nearest repeats of the two sides; above 1.
    pub distance: f64,
    /// The number of the target's repeats.
    pub repeats: usize,
}

impl Apart {
    /// Returns the comparison of any metric whose sides are the furthest apart.
    pub(super) fn furthest(compared: &Compared) -> Option<Self> {
        let undecided = compared.rows.iter().filter(|row| row.verdict == Verdict::TooNoisy);
        let apart = undecided.filter_map(Self::of);
        apart.max_by(|a, b| a.distance.total_cmp(&b.distance))
    }

    fn of(row: &ComparedStep) -> Option<Self> {
        let values = |samples: &[Sample]| samples.iter().map(|sample| sample.value).collect();
        let (base, own): (Vec<f64>, Vec<f64>) = (values(&row.base_values), values(&row.values));

        Some(Self {
            target: row.cell.target.clone(),
            step: row.step.clone(),
            variant: row.cell.variant.clone(),
            clients: row.cell.clients,
            metric: row.metric.clone(),
            ratio: row.ratio?,
            distance: distance(&base, &own)?,
            repeats: own.len(),
        })
    }
}

/// Returns the ratio between the nearest values of two sides that are far apart: it is at least
/// [`DISTANCE_MIN`], and at least the range of either side, so that each side is a cluster of its
/// own.
fn distance(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len().min(b.len()) < REPEATS_MIN {
        return None;
    }

    let ends = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        Ends { low, high }
    };

    let (a, b) = (ends(a), ends(b));
    let (lower, upper) = if a.high < b.low { (a, b) } else { (b, a) };
    if lower.low <= 0.0 {
        return None;
    }

    let distance = upper.low / lower.high;
    let is_far = distance >= DISTANCE_MIN.max(lower.range()).max(upper.range());
    is_far.then_some(distance)
}

/// The ends of the values of one side.
struct Ends {
    low: f64,
    high: f64,
}

impl Ends {
    fn range(&self) -> f64 {
        self.high / self.low
    }
}

#[cfg(test)]
mod tests {
    use ::words::Random;

    use super::*;
    use crate::explain::tests::noise::Normal;

    #[test]
    fn sides_are_far_apart_if_the_gap_is_wider_than_either() {
        // Reads per put of RocksDB 8.5.4 and 8.6.7 in a process of 200 MiB.
        let (before, after) = ([0.0042, 0.0062, 0.0048], [0.0547, 0.0495, 0.0722]);
        let found = distance(&before, &after).unwrap();
        assert!((found - 0.0495 / 0.0062).abs() < 1e-9, "{found}");
        assert_eq!(distance(&after, &before), Some(found), "in either direction");

        assert_eq!(distance(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]), None, "less than twice");
        assert_eq!(distance(&[1.0, 4.0, 2.0], &[12.0, 13.0, 15.0]), None, "a wide side");
        assert_eq!(distance(&[1.0, 1.0, 9.0], &[8.0, 9.5, 9.0]), None, "they overlap");
        assert_eq!(distance(&[1.0, 1.0], &[8.0, 9.5]), None, "two repeats");
        assert_eq!(distance(&[0.0, 0.0, 0.0], &[8.0, 8.0, 9.0]), None, "no ratio");
    }

    /// The table of `docs/validation.md`: the share of tables of 57 comparisons without any
    /// difference in which noise alone looks like one.
    #[test]
    fn noise_alone_seldom_looks_like_a_difference_unless_it_is_wild() {
        const TABLES: usize = 300;
        let mut noise = Normal(Random::new(7));
        for (repeats, deviation, share_max) in
            [(3, 0.3, 0.03), (3, 0.5, 0.16), (3, 2.5, 0.45), (5, 0.5, 0.02), (5, 2.5, 0.02)]
        {
            let mut side =
                || -> Vec<f64> { (0..repeats).map(|_| noise.factor(deviation)).collect() };
            let mut has_one = || (0..57).any(|_| distance(&side(), &side()).is_some());
            let found = (0..TABLES).filter(|_| has_one()).count();
            let share = found as f64 / TABLES as f64;
            println!("{repeats} repeats, deviation {deviation}: {:.1}%", 100.0 * share);
            assert!(share <= share_max, "{repeats} repeats, deviation {deviation}: {share}");
        }
    }
}
