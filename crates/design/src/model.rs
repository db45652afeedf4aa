//! The effects of factors as weighted sums over targets: ordinary least squares.

use crate::Levels;

/// An effect that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The difference between a level of a factor, from 1, and its level 0.
    Level {
        /// The index of the factor.
        factor: usize,
        /// The level.
        level: usize,
    },
    /// The dependence of one factor's effect on another factor, both with two levels: half of the
    /// difference between its effects at the other's two levels.
    Interaction([usize; 2]),
}

/// The weight of each target in the sum that estimates an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The effect.
    pub effect: Effect,
    /// A weight for each target, in their order. Their sum is 0.
    pub of_targets: Vec<f64>,
}

impl Weights {
    /// Returns the weighted sum of a value of each target.
    pub fn sum(&self, values: &[f64]) -> f64 {
        self.of_targets.iter().zip(values).map(|(weight, value)| weight * value).sum()
    }

    /// Returns the standard error of the sum, in units of the standard deviation of one value.
    pub fn error(&self) -> f64 {
        self.of_targets.iter().map(|weight| weight * weight).sum::<f64>().sqrt()
    }
}

/// A pivot below this share of its column's length is a rounding error.
const SINGULAR: f64 = 1e-9;

/// Returns the effects of all levels of all factors, and of some interactions of factors with two
/// levels, by ordinary least squares with equal errors. `blocks` has the block of each target: the
/// mean of each block is estimated too. `None` if these targets cannot tell the effects apart.
pub fn weights(
    level_counts: &[usize],
    targets: &[Levels],
    blocks: &[usize],
    interactions: &[[usize; 2]],
) -> Option<Vec<Weights>> {
    let mut effects: Vec<Effect> = main_effects(level_counts);
    effects.extend(interactions.iter().map(|pair| Effect::Interaction(*pair)));

    let mut columns: Vec<Vec<f64>> = vec![vec![1.0; targets.len()]];
    let block_count = blocks.iter().max().map_or(1, |last| last + 1);
    for block in 1..block_count {
        columns.push(blocks.iter().map(|of| f64::from(u8::from(*of == block))).collect());
    }
    let first_effect = columns.len();
    for effect in &effects {
        columns.push(targets.iter().map(|levels| effect.code(levels)).collect());
    }

    let inverse = pseudo_inverse(&columns)?;
    let of_effects = inverse.into_iter().skip(first_effect);
    let weights = effects.into_iter().zip(of_effects);
    Some(weights.map(|(effect, of_targets)| Weights { effect, of_targets }).collect())
}

/// Returns the effects of all levels but 0.
pub(crate) fn main_effects(level_counts: &[usize]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (factor, count) in level_counts.iter().enumerate() {
        for level in 1..*count {
            effects.push(Effect::Level { factor, level });
        }
    }
    effects
}

impl Effect {
    /// Returns the column's value for a target. Two levels are coded as -1/2 and 1/2 in products,
    /// so that an interaction does not change the meaning of main effects.
    pub(crate) fn code(self, levels: &Levels) -> f64 {
        match self {
            Self::Level { factor, level } => f64::from(u8::from(levels[factor] == level)),
            Self::Interaction([a, b]) => {
                if levels[a] == levels[b] {
                    0.5
                } else {
                    -0.5
                }
            }
        }
    }
}

/// Returns the pseudo-inverse of the matrix with these columns, row by row, by solving the normal
/// equations; `None` if the columns depend on each other.
pub(crate) fn pseudo_inverse(columns: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut left: Vec<Vec<f64>> =
        columns.iter().map(|a| columns.iter().map(|b| product(a, b)).collect()).collect();
    let mut right = columns.to_vec();
    let lengths: Vec<f64> = (0..left.len()).map(|index| left[index][index]).collect();

    // Elimination needs no exchange of rows: the matrix of the normal equations is symmetric and
    // positive definite, or the columns depend on each other.
    for pivot in 0..left.len() {
        if left[pivot][pivot] <= SINGULAR * lengths[pivot].max(f64::MIN_POSITIVE) {
            return None;
        }
        let scale = 1.0 / left[pivot][pivot];
        scale_row(&mut left[pivot], scale);
        scale_row(&mut right[pivot], scale);

        for row in (0..left.len()).filter(|row| *row != pivot) {
            let factor = left[row][pivot];
            if factor != 0.0 {
                subtract_row(&mut left, row, pivot, factor);
                subtract_row(&mut right, row, pivot, factor);
            }
        }
    }
    Some(right)
}

fn scale_row(row: &mut [f64], scale: f64) {
    row.iter_mut().for_each(|value| *value *= scale);
}

/// Subtracts `factor` times the row `pivot` from `row`.
fn subtract_row(matrix: &mut [Vec<f64>], row: usize, pivot: usize, factor: f64) {
    for column in 0..matrix[row].len() {
        let subtrahend = factor * matrix[pivot][column];
        matrix[row][column] -= subtrahend;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fractions::regular;

    #[test]
    fn an_effect_is_the_difference_of_the_means_of_both_levels() {
        let targets = regular(3, 2);
        let found = weights(&[2; 3], &targets, &[0; 4], &[]).unwrap();
        // Levels of the three factors: 000, 101, 011, 110.
        let expected = [[-0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0.5, 0.5], [-0.5, 0.5, 0.5, -0.5]];
        for (weights, expected) in found.iter().zip(expected) {
            let pairs = weights.of_targets.iter().zip(expected);
            assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-12), "{weights:?}");
            assert!((weights.error() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn effects_of_an_unbalanced_design_are_those_that_made_the_values() {
        let targets: Vec<Levels> =
            [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 0]].map(|levels| levels.to_vec()).to_vec();
        // A mean of 5, a block that adds 10, and effects of 1, 2 and 3.
        let blocks = [0, 0, 0, 1, 1, 1];
        let value = |(levels, block): (&Levels, &usize)| {
            5.0 + 10.0 * *block as f64 + levels[0] as f64 + [0.0, 2.0, 3.0][levels[1]]
        };
        let values: Vec<f64> = targets.iter().zip(&blocks).map(value).collect();
        let found = weights(&[2, 3], &targets, &blocks, &[]).unwrap();
        let effects: Vec<f64> = found.iter().map(|weights| weights.sum(&values)).collect();
        for (effect, expected) in effects.iter().zip([1.0, 2.0, 3.0]) {
            assert!((effect - expected).abs() < 1e-9, "{effects:?}");
        }
    }

    #[test]
    fn an_interaction_is_half_of_the_difference_between_effects() {
        let targets = regular(2, 2);
        // Level 1 of the first factor adds 1, and 5 if the second one has level 1 too.
        let values: Vec<f64> =
            targets.iter().map(|levels| (levels[0] + 4 * levels[0] * levels[1]) as f64).collect();
        let found = weights(&[2, 2], &targets, &[0; 4], &[[0, 1]]).unwrap();
        let effects: Vec<f64> = found.iter().map(|weights| weights.sum(&values)).collect();
        assert_eq!(effects, [3.0, 2.0, 2.0]);
    }

    #[test]
    fn targets_that_can_not_tell_factors_apart_have_no_weights() {
        let targets: Vec<Levels> = [[0, 0], [1, 1], [0, 0]].map(|levels| levels.to_vec()).to_vec();
        assert_eq!(weights(&[2, 2], &targets, &[0; 3], &[]), None);
    }
}
