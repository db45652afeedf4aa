//! Designs of experiments: which levels of which factors are measured together, so that few targets
//! tell the effect of each factor; and what such a design cannot tell apart.
//!
//! ```text
//! generate ──► Design ──► weights: the effect of each factor, from the logarithms of all targets
//!                     └─► Confounding: which interactions are mixed with which effects
//! ```
//!
//! Levels are numbers: 0 is the base's. Row 0 of a design is the base, where all levels are 0. All
//! functions are pure, and equal input gives equal output in every version: a resumed run generates
//! its design again.
//!
//! The methods are those of Box, Hunter and Hunter, *Statistics for Experimenters*, 2nd edition
//! 2005, chapters 5 to 8, where no other source is given.

mod confounding;
mod fractions;
mod generate;
mod model;
mod optimal;
mod request;

pub use confounding::{Confounding, InteractionGroup, Mixed, Resolution};
pub use generate::generate;
pub use model::{Effect, Weights, weights};
pub use request::{DesignError, Exclusion, FACTORS_MAX, Kind, Request, TARGET_COUNTS, TARGETS_MAX};

/// The levels of all factors in one target: an index for each factor.
pub type Levels = Vec<usize>;

/// A design: the targets that are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// The number of levels of each factor, at least 2.
    pub level_counts: Vec<usize>,
    /// The levels of each target. The first target is the base, whose levels are all 0.
    pub targets: Vec<Levels>,
}

impl Design {
    /// Returns the targets that separate main effects from interactions of two factors: each has
    /// the opposite levels of a target of this design (fold-over; Box, Hunter and Hunter, section
    /// 6.9). Targets that the design has already are left out.
    pub fn folded(&self) -> Vec<Levels> {
        let mut folded: Vec<Levels> = Vec::new();
        for target in &self.targets {
            let opposite = target.iter().zip(&self.level_counts);
            let opposite: Levels = opposite.map(|(level, count)| count - 1 - level).collect();
            if !self.targets.contains(&opposite) && !folded.contains(&opposite) {
                folded.push(opposite);
            }
        }
        folded
    }
}
