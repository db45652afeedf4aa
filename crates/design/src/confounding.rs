//! Effects that a design cannot tell apart: which interactions of two factors are mixed with which
//! effects.

use crate::Design;
use crate::model::{Effect, Weights, main_effects, weights};

/// Smaller shares are rounding errors.
const TINY: f64 = 1e-6;

/// The effects that a design keeps apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Effects of factors are mixed with interactions of two others (resolution III).
    MainWithInteractions,
    /// Effects of factors are clear of interactions of two factors, but some of these are mixed
    /// with each other (resolution IV).
    MainClear,
    /// Effects of factors and all interactions of two factors are clear of each other (resolution V
    /// or higher).
    InteractionsClear,
}

/// An interaction in the estimate of another effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed {
    /// The two factors.
    pub factors: [usize; 2],
    /// The share of the interaction that the estimate contains, with its sign: 1 or -1 if the
    /// design cannot tell them apart at all.
    pub share: f64,
}

/// Interactions that the design cannot tell apart from each other, but from all effects of factors
/// and from all other interactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteractionGroup {
    /// The pairs of factors, in their order.
    pub pairs: Vec<[usize; 2]>,
}

/// The effects and interactions that a design mixes with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Confounding {
    /// The effects of factors, each with the interactions that it may be instead.
    pub of_effects: Vec<(Effect, Vec<Mixed>)>,
    /// The interactions that can be estimated; empty if those are mixed with each other in parts,
    /// as in Plackett-Burman designs.
    pub groups: Vec<InteractionGroup>,
    /// The effects that the design keeps apart.
    pub resolution: Resolution,
}

/// An interaction of two factors, and its column.
struct Interaction {
    pair: [usize; 2],
    column: Vec<f64>,
}

impl Confounding {
    /// Examines targets of a design, each with its block; `None` if they cannot tell the effects of
    /// factors apart. Only interactions of factors with two levels are considered.
    pub fn of(design: &Design, blocks: &[usize]) -> Option<Self> {
        let weights = weights(&design.level_counts, &design.targets, blocks, &[])?;
        let interactions = interactions(design);
        let of_effects: Vec<(Effect, Vec<Mixed>)> = weights
            .iter()
            .map(|weights| (weights.effect, mixed_with(weights, &interactions)))
            .collect();

        let groups = groups(design, blocks, &weights, &interactions).unwrap_or_default();
        let grouped_count: usize = groups.iter().map(|group| group.pairs.len()).sum();
        let resolution = if of_effects.iter().any(|(_, mixed)| !mixed.is_empty()) {
            Resolution::MainWithInteractions
        } else if grouped_count == interactions.len() && grouped_count == groups.len() {
            Resolution::InteractionsClear
        } else {
            Resolution::MainClear
        };
        Some(Self { of_effects, groups, resolution })
    }
}

/// Returns the interactions of all factors with two levels.
fn interactions(design: &Design) -> Vec<Interaction> {
    let counts = design.level_counts.iter().enumerate();
    let factors: Vec<usize> =
        counts.filter(|(_, count)| **count == 2).map(|(factor, _)| factor).collect();

    let mut interactions = Vec::new();
    for (index, &a) in factors.iter().enumerate() {
        for &b in &factors[index + 1..] {
            let effect = Effect::Interaction([a, b]);
            let column = design.targets.iter().map(|levels| effect.code(levels)).collect();
            interactions.push(Interaction { pair: [a, b], column });
        }
    }
    interactions
}

/// Returns the interactions that change an estimate, by the alias matrix.
fn mixed_with(weights: &Weights, interactions: &[Interaction]) -> Vec<Mixed> {
    let mut mixed = Vec::new();
    for Interaction { pair, column } in interactions {
        let share = weights.sum(column);
        if share.abs() > TINY {
            mixed.push(Mixed { factors: *pair, share });
        }
    }
    mixed
}

/// Returns the groups of interactions that are clear of all effects of factors, and of each other;
/// `None` if some are mixed in parts.
fn groups(
    design: &Design,
    blocks: &[usize],
    weights: &[Weights],
    interactions: &[Interaction],
) -> Option<Vec<InteractionGroup>> {
    let mut groups: Vec<(InteractionGroup, Vec<f64>)> = Vec::new();
    for Interaction { pair, column } in interactions {
        let shares: Vec<f64> = weights.iter().map(|weights| weights.sum(column).abs()).collect();
        let rest = rest_of(column, design, blocks, weights);
        let length = dot(&rest, &rest).sqrt();
        let is_clear = shares.iter().all(|share| *share < TINY);
        if length < TINY {
            // It is the same as an effect or a block.
            continue;
        }
        if !is_clear {
            return None;
        }

        let mut same = None;
        for (index, (_, other)) in groups.iter().enumerate() {
            let correlation = dot(&rest, other).abs() / (length * dot(other, other).sqrt());
            if correlation > 1.0 - TINY {
                same = Some(index);
            } else if correlation > TINY {
                return None;
            }
        }
        match same {
            Some(index) => groups[index].0.pairs.push(*pair),
            None => groups.push((InteractionGroup { pairs: vec![*pair] }, rest)),
        }
    }
    Some(groups.into_iter().map(|(group, _)| group).collect())
}

/// Returns what main effects and block means leave of a column.
fn rest_of(column: &[f64], design: &Design, blocks: &[usize], weights: &[Weights]) -> Vec<f64> {
    let mut rest = column.to_vec();
    for (effect, weights) in main_effects(&design.level_counts).into_iter().zip(weights) {
        let share = weights.sum(column);
        for (value, levels) in rest.iter_mut().zip(&design.targets) {
            *value -= share * effect.code(levels);
        }
    }

    let block_count = blocks.iter().max().map_or(1, |last| last + 1);
    for block in 0..block_count {
        let members: Vec<usize> = (0..rest.len()).filter(|index| blocks[*index] == block).collect();
        let mean =
            members.iter().map(|index| rest[*index]).sum::<f64>() / members.len().max(1) as f64;
        members.iter().for_each(|index| rest[*index] -= mean);
    }
    rest
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fractions::{plackett_burman, regular};

    fn of(factor_count: usize, targets: Vec<crate::Levels>) -> Confounding {
        let blocks = vec![0; targets.len()];
        let design = Design { level_counts: vec![2; factor_count], targets };
        Confounding::of(&design, &blocks).unwrap()
    }

    #[test]
    fn a_half_fraction_of_three_factors_mixes_each_with_the_interaction_of_the_others() {
        let found = of(3, regular(3, 2));
        assert_eq!(found.resolution, Resolution::MainWithInteractions);
        let mixed: Vec<[usize; 2]> =
            found.of_effects.iter().map(|(_, mixed)| mixed[0].factors).collect();
        assert_eq!(mixed, [[1, 2], [0, 2], [0, 1]]);
        assert!(
            found.of_effects.iter().all(|(_, mixed)| (mixed[0].share.abs() - 1.0).abs() < 1e-9)
        );
    }

    #[test]
    fn eight_factors_in_sixteen_targets_are_clear_and_interactions_come_in_groups_of_four() {
        let found = of(8, regular(8, 4));
        assert_eq!(found.resolution, Resolution::MainClear);
        assert_eq!(found.groups.len(), 7);
        assert!(found.groups.iter().all(|group| group.pairs.len() == 4));
    }

    #[test]
    fn five_factors_in_sixteen_targets_are_clear_with_all_interactions() {
        let found = of(5, regular(5, 4));
        assert_eq!(found.resolution, Resolution::InteractionsClear);
        assert_eq!(found.groups.len(), 10);
    }

    #[test]
    fn a_plackett_burman_design_mixes_a_third_of_each_interaction_with_each_other_factor() {
        let found = of(11, plackett_burman(11, 12));
        assert_eq!(found.resolution, Resolution::MainWithInteractions);
        assert!(found.groups.is_empty());
        for (_, mixed) in &found.of_effects {
            assert_eq!(mixed.len(), 45);
            assert!(mixed.iter().all(|mixed| (mixed.share.abs() - 1.0 / 3.0).abs() < 1e-9));
        }
    }

    #[test]
    fn a_fold_over_clears_the_effects_of_factors() {
        let mut design = Design { level_counts: vec![2; 7], targets: regular(7, 3) };
        let folded = design.folded();
        assert_eq!(folded.len(), 8);
        design.targets.extend(folded);
        let blocks: Vec<usize> = (0..16).map(|target| target / 8).collect();
        let found = Confounding::of(&design, &blocks).unwrap();
        assert_eq!(found.resolution, Resolution::MainClear);
    }
}
