//! A request for a design, and why there may be none.

use std::fmt;

use words::named_enum;

use crate::Levels;

/// The most factors of a design.
pub const FACTORS_MAX: usize = 31;
/// The most targets of a design.
pub const TARGETS_MAX: usize = 128;
/// The numbers of targets that a screening may have.
pub const TARGET_COUNTS: [usize; 7] = [4, 8, 12, 16, 20, 24, 32];

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

/// Levels that cannot go together.
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
    /// Levels that cannot go together.
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
    /// The targets that the exclusions leave cannot tell all effects apart.
    NotEstimable,
}

impl fmt::Display for DesignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaseExcluded => f.write_str("the base has levels that cannot go together"),
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
                f.write_str("the targets that may be measured cannot tell all factors apart")
            }
        }
    }
}
