//! Chooses the design for a request.

use std::fmt;

use words::named_enum;

use crate::fractions::{plackett_burman, regular};
use crate::model::weights;
use crate::optimal::optimal;
use crate::{Design, Levels};

/// The most factors of a design.
pub const FACTORS_MAX: usize = 31;
/// The most targets of a design.
pub const TARGETS_MAX: usize = 128;
/// The numbers of targets that a screening may have.
pub const TARGET_COUNTS: [usize; 7] = [4, 8, 12, 16, 20, 24, 32];
/// Of these, the ones that are chosen without being asked for: their designs mix an effect with few
/// interactions, and with these entirely. Those of 12, 20 and 24 mix a part of each interaction
/// with all other factors.
const USUAL_TARGET_COUNTS: [usize; 4] = [4, 8, 16, 32];
/// The seed of D-optimal designs: they belong to their factors, not to the data.
const SEED: u64 = 1;

named_enum! {
    /// The kind of a design.
    pub enum Kind {
        /// As few targets as tell all effects of factors.
        Screening = "screening",
        /// All combinations of all levels.
        Full = "full",
        /// The base, and for each other level of a factor the base with that level.
        OneAtATime = "one-at-a-time",
        /// The base, and given combinations. They need not tell the effects of all factors.
        Listed = "listed",
    }
}

/// Levels that can't go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// Pairs of a factor and a level: a target must not have all of them.
    pub levels: Vec<(usize, usize)>,
}

impl Exclusion {
    /// Returns whether a target has all of the levels.
    pub fn forbids(&self, target: &Levels) -> bool {
        self.levels.iter().all(|(factor, level)| target[*factor] == *level)
    }
}

/// A request for a design.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The kind of the design.
    pub kind: Kind,
    /// The number of levels of each factor, at least 2.
    pub level_counts: &'a [usize],
    /// The number of targets of a screening; `None`: as few as usual.
    pub target_count: Option<usize>,
    /// Levels that can't go together.
    pub excluded: &'a [Exclusion],
    /// The combinations of [`Kind::Listed`].
    pub listed: &'a [Levels],
}

/// Why there is no design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesignError {
    /// The exclusions forbid the base.
    BaseExcluded,
    /// There are more effects than this number of targets can tell; the least number of targets.
    TooFewTargets {
        /// The least number that could do, of [`TARGET_COUNTS`]; `None`: there are too many
        /// effects.
        needed: Option<usize>,
    },
    /// The design has this many targets, which are more than [`TARGETS_MAX`].
    TooManyTargets(usize),
    /// The targets that the exclusions leave can't tell all effects apart.
    NotEstimable,
}

impl fmt::Display for DesignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaseExcluded => f.write_str("the base has levels that can't go together"),
            Self::TooFewTargets { needed: Some(needed) } => {
                write!(f, "so many factors and levels need at least {needed} targets")
            }
            Self::TooFewTargets { needed: None } => {
                let most = TARGET_COUNTS[TARGET_COUNTS.len() - 1];
                write!(f, "so many factors and levels need more than {most} targets")
            }
            Self::TooManyTargets(count) => {
                write!(f, "the design has {count} targets, and at most {TARGETS_MAX} are possible")
            }
            Self::NotEstimable => {
                f.write_str("the targets that may be measured can't tell all factors apart")
            }
        }
    }
}

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
