//! Divides a series into levels: candidates, which the test then accepts or removes.

use super::noise::without_outliers;
use crate::figures::average::median;

/// The fewest points of a level.
pub(super) const LEVEL_MIN: usize = 2;
/// The cost of a further level, as the sum of squared deviations in spreads that it must save. The
/// test decides; this only keeps the number of candidates small.
pub(super) const PENALTY: f64 = 10.0;

/// Returns the first points of the levels but for the first level, by optimal partitioning (Jackson
/// and others 2005) with the pruning of PELT (Killick and others 2012).
/// Points are measured in spreads of `unit`, and each level costs `penalty`.
pub(super) fn segments(values: &[f64], unit: f64, penalty: f64) -> Vec<usize> {
    let values = without_outliers(values, unit);
    let cost = Cost::new(&values, unit);
    let count = values.len();

    // For each end: the least cost of the points before it, and where the last of their levels
    // begins.
    let mut best = vec![(f64::INFINITY, 0); count + 1];
    best[0] = (-penalty, 0);
    let mut starts: Vec<usize> = Vec::new();
    for end in LEVEL_MIN..=count {
        let newest = end - LEVEL_MIN;
        if best[newest].0.is_finite() {
            starts.push(newest);
        }

        let total = |start: usize| best[start].0 + cost.of(start, end);
        let Some(start) = starts.iter().copied().min_by(|a, b| total(*a).total_cmp(&total(*b)))
        else {
            continue;
        };

        let least = total(start) + penalty;
        best[end] = (least, start);
        // A start that is worse by a penalty already does not become the best one.
        starts.retain(|start| best[*start].0 + cost.of(*start, end) <= least);
    }

    let mut changes = Vec::new();
    let mut end = count;
    while end > 0 {
        end = best[end].1;
        if end > 0 {
            changes.push(end);
        }
    }
    changes.reverse();
    changes
}

/// The sum of squared deviations from the mean, of any range of points, in squared spreads.
struct Cost {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Cost {
    fn new(values: &[f64], unit: f64) -> Self {
        // Sums of squares of small numbers keep their digits.
        let center = median(values.iter().copied()).unwrap_or(0.0);

        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);

        for value in values {
            let scaled = (value - center) / unit;
            sum += scaled;
            square += scaled * scaled;
            sums.push(sum);
            squares.push(square);
        }
        Self { sums, squares }
    }

    fn of(&self, start: usize, end: usize) -> f64 {
        let sum = self.sums[end] - self.sums[start];
        self.squares[end] - self.squares[start] - sum * sum / (end - start) as f64
    }
}
