//! Finds between which versions of an ordered list a step changed, from few of them.
//!
//! ```text
//! Search ─► next()      which candidates to measure together, at which level
//!    ▲         │
//!    │         ▼
//!    └──── TrialResult ◄─ judge()  the ratios of a trial's candidates, from its figures
//! ```
//!
//! The first trial compares the ends of the list. Each further one measures a candidate between two
//! others that differ, and says from which of them the candidate differs. All decisions follow from
//! the trials that ended, so a search can be resumed from their list alone. `docs/bisect.md` has
//! the rules and the simulation.

mod judge;
mod search;

use serde::{Deserialize, Serialize};

pub use judge::{Judgement, MeasuredBy, judge};
pub use search::{BisectOutcome, CandidateLevel, Change, ChangeEnd, Next, Search};

/// The error rate of a whole search.
pub const ERROR_RATE: f64 = 0.05;

/// Candidates that are measured together. Candidates are indexes in the list, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The purpose of the trial.
    pub kind: TrialKind,
    /// The older end.
    pub low: usize,
    /// The newer end.
    pub high: usize,
    /// The error rate of each of its comparisons.
    pub level: f64,
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialKind {
    /// Compares the ends of the list.
    Ends,
    /// Compares a candidate with the two ends of an interval that contains it.
    Middle(usize),
    /// Compares neighbors that differ once more.
    Confirmation,
}

impl Trial {
    /// Returns the candidate between the ends; `None` if only the ends are measured.
    pub fn middle(&self) -> Option<usize> {
        match self.kind {
            TrialKind::Middle(middle) => Some(middle),
            TrialKind::Ends | TrialKind::Confirmation => None,
        }
    }

    /// Returns its candidates, the oldest first.
    pub fn candidates(&self) -> Vec<usize> {
        let ends = [Some(self.low), self.middle(), Some(self.high)];
        ends.into_iter().flatten().collect()
    }

    /// Returns the pairs of candidates that it compares, each with the older one first.
    pub fn pairs(&self) -> Vec<Pair> {
        let candidates = self.candidates();
        let neighbors = candidates.windows(2);
        neighbors.map(|pair| Pair { older: pair[0], newer: pair[1] }).collect()
    }
}

/// Two candidates that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The base.
    pub older: usize,
    /// The target.
    pub newer: usize,
}

/// The result of a trial: one link for each of [`Trial::pairs`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The comparisons.
    pub links: Vec<Link>,
}

impl TrialResult {
    /// Returns whether all comparisons are decided.
    pub fn is_decided(&self) -> bool {
        self.links.iter().all(|link| link.finding != Finding::Undecided)
    }

    /// Returns whether the search can continue from here: from one end that a candidate differs
    /// from, even if the other is not decided.
    pub fn says_where_to_go(&self) -> bool {
        let differs = self.links.iter().any(|link| link.finding == Finding::Differs);
        differs || self.is_decided()
    }
}

/// The comparison of a candidate with an older one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Newer / older; `None` if nothing could be compared.
    pub ratio: Option<f64>,
    /// The ends of the interval of the ratio.
    pub interval: Option<[f64; 2]>,
    /// The decision.
    pub finding: Finding,
}

impl Link {
    /// Returns the threshold for candidates between two that differ so: half of their difference,
    /// so that two equal steps are found, and at least `least`.
    pub fn threshold_between(&self, least: f64) -> f64 {
        let logarithm = self.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        (logarithm / 2.0).exp_m1().max(least)
    }
}

/// The answer whether two candidates differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The candidates differ: the interval excludes 1, and the change may be as large as the least
    /// one that is looked for.
    Differs,
    /// The candidates do not differ by the threshold, or by less than the least change.
    Same,
    /// Neither is shown.
    Undecided,
}
