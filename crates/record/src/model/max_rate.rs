//! The rates of steps that are shares of highest rates.

use serde::{Deserialize, Serialize};

/// The rate of a step that is a share of its highest rate, with a number of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MaxRate {
    /// The step's name.
    pub step: String,
    /// The variant of the workload that has the share, if the plan has variants.
    pub variant: Option<String>,
    /// The number of clients.
    pub clients: u32,
    /// The highest rate of all clients together, per second: the lowest of those in `achieved`.
    pub max_per_s: f64,
    /// The share in percent.
    pub percent: f64,
    /// The rate of all clients together that follows, per second.
    pub rate_per_s: f64,
    /// The rates that cells achieved without one; empty if the plan gives the highest rate.
    pub achieved: Vec<AchievedRate>,
}

impl MaxRate {
    /// Returns the step, with the variant that has the share: `tpcb of large`.
    pub fn place(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} of {variant}", self.step),
            None => self.step.clone(),
        }
    }

    /// Returns the slowest of the cells that measured the highest rate; `None` if the plan gives it.
    pub fn slowest(&self) -> Option<&AchievedRate> {
        self.achieved.iter().min_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }
}

/// The rate that a target achieves as fast as possible.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AchievedRate {
    /// The target.
    pub target: String,
    /// The variant of the workload that measured it, if the plan has variants.
    pub variant: Option<String>,
    /// The rate of all clients together, per second.
    pub per_s: f64,
}
