//! Chooses the design for a request.

use crate::fractions::{plackett_burman, regular};
use crate::model::weights;
use crate::optimal::optimal;
use crate::request::{DesignError, Kind, Request, TARGET_COUNTS, TARGETS_MAX};
use crate::{Design, Levels};

/// The numbers of [`TARGET_COUNTS`] that are chosen without being asked for: their designs mix an effect with few
/// interactions, and with these entirely. Those of 12, 20 and 24 mix a part of each interaction
/// with all other factors.
const USUAL_TARGET_COUNTS: [usize; 4] = [4, 8, 16, 32];
/// The seed of D-optimal designs: they belong to their factors, not to the data.
const SEED: u64 = 1;

/// Returns the design for a request.
///
/// # Errors
/// Returns why there is none.
pub fn generate(request: &Request<'_>) -> Result<Design, DesignError> {
    let base: Levels = vec![0; request.level_counts.len()];
    if request.excluded.iter().any(|exclusion| exclusion.forbids(&base)) {
        return Err(DesignError::BaseExcluded);
    }

    let mut targets = match request.kind {
        Kind::Screening => screening(request)?,
        Kind::Full => full(request.level_counts)?,
        Kind::OneAtATime => one_at_a_time(request.level_counts),
        Kind::Listed => {
            let mut targets = vec![base];
            targets.extend_from_slice(request.listed);
            return Ok(Design { level_counts: request.level_counts.to_vec(), targets });
        }
    };
    targets.retain(|target| !request.excluded.iter().any(|exclusion| exclusion.forbids(target)));

    let blocks = vec![0; targets.len()];
    if weights(request.level_counts, &targets, &blocks, &[]).is_none() {
        return Err(DesignError::NotEstimable);
    }
    Ok(Design { level_counts: request.level_counts.to_vec(), targets })
}

fn screening(request: &Request<'_>) -> Result<Vec<Levels>, DesignError> {
    let level_counts = request.level_counts;
    let needed = level_counts.iter().map(|count| count - 1).sum::<usize>() + 1;
    let target_count = match request.target_count {
        Some(count) => count,
        None => smallest(&USUAL_TARGET_COUNTS, needed)
            .ok_or(DesignError::TooFewTargets { needed: None })?,
    };
    if target_count < needed {
        return Err(DesignError::TooFewTargets { needed: smallest(&TARGET_COUNTS, needed) });
    }

    let has_two_levels = level_counts.iter().all(|count| *count == 2);
    if !has_two_levels || !request.excluded.is_empty() {
        return optimal(level_counts, request.excluded, target_count, SEED)
            .ok_or(DesignError::NotEstimable);
    }
    let factor_count = level_counts.len();
    if 1 << factor_count <= target_count {
        return full(level_counts);
    }
    if target_count.is_power_of_two() {
        return Ok(regular(factor_count, target_count.ilog2()));
    }
    Ok(plackett_burman(factor_count, target_count))
}

/// Returns the first of these counts that is large enough.
fn smallest(counts: &[usize], needed: usize) -> Option<usize> {
    counts.iter().find(|count| **count >= needed).copied()
}

/// Returns all combinations. The levels of the first factor change fastest.
fn full(level_counts: &[usize]) -> Result<Vec<Levels>, DesignError> {
    let count = level_counts.iter().fold(1_usize, |product, count| product.saturating_mul(*count));
    if count > TARGETS_MAX {
        return Err(DesignError::TooManyTargets(count));
    }

    let target = |number: usize| {
        let mut rest = number;
        let mut levels = Levels::new();
        for count in level_counts {
            levels.push(rest % count);
            rest /= count;
        }
        levels
    };
    Ok((0..count).map(target).collect())
}

fn one_at_a_time(level_counts: &[usize]) -> Vec<Levels> {
    let base: Levels = vec![0; level_counts.len()];
    let mut targets = vec![base.clone()];
    for (factor, count) in level_counts.iter().enumerate() {
        for level in 1..*count {
            let mut target = base.clone();
            target[factor] = level;
            targets.push(target);
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exclusion;

    fn design(kind: Kind, level_counts: &[usize], target_count: Option<usize>) -> Design {
        generate(&Request { kind, level_counts, target_count, excluded: &[], listed: &[] }).unwrap()
    }

    #[test]
    fn a_screening_has_as_few_targets_as_usual_or_as_many_as_asked_for() {
        let count =
            |factors, asked| design(Kind::Screening, &vec![2; factors], asked).targets.len();
        let usual: Vec<usize> = [2, 3, 4, 7, 8, 11, 15, 16, 31].map(|n| count(n, None)).to_vec();
        assert_eq!(usual, [4, 4, 8, 8, 16, 16, 16, 32, 32]);
        assert_eq!(count(11, Some(12)), 12);
        // All combinations are fewer.
        assert_eq!(count(3, Some(32)), 8);
    }

    #[test]
    fn every_design_begins_with_the_base_and_has_no_target_twice() {
        for (kind, level_counts) in [
            (Kind::Screening, vec![2; 11]),
            (Kind::Full, vec![2, 3, 2]),
            (Kind::OneAtATime, vec![2, 3, 2]),
            (Kind::Screening, vec![2, 3, 2, 4]),
        ] {
            let targets = design(kind, &level_counts, None).targets;
            assert!(targets[0].iter().all(|level| *level == 0));
            for (index, target) in targets.iter().enumerate() {
                assert!(!targets[..index].contains(target), "{kind:?} {target:?}");
            }
        }
    }

    #[test]
    fn what_can_not_be_designed_has_a_reason() {
        let request = |kind, level_counts, target_count| Request {
            kind,
            level_counts,
            target_count,
            excluded: &[],
            listed: &[],
        };
        let many = [2; 32];
        for (request, expected) in [
            (
                request(Kind::Screening, &many[..11], Some(8)),
                DesignError::TooFewTargets { needed: Some(12) },
            ),
            (request(Kind::Screening, &many, None), DesignError::TooFewTargets { needed: None }),
            (request(Kind::Full, &many[..8], None), DesignError::TooManyTargets(256)),
        ] {
            assert_eq!(generate(&request), Err(expected));
        }

        let excluded = [Exclusion { levels: vec![(0, 0), (1, 0)] }];
        let request = Request { excluded: &excluded, ..request(Kind::Full, &many[..2], None) };
        assert_eq!(generate(&request), Err(DesignError::BaseExcluded));
        let excluded = [Exclusion { levels: vec![(0, 1)] }];
        let request = Request { excluded: &excluded, ..request };
        assert_eq!(generate(&request), Err(DesignError::NotEstimable));
    }
}
