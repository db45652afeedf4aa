//! The result of a rule, which becomes a finding.

use super::finding::{CellStep, Evidence};
use super::statement::{CountedCaveat, Statement};

/// The result of one rule.
pub(super) struct Explanation<'a> {
    pub statement: Statement,
    /// The steps of cells that the explanation is about, the most important first.
    pub places: Vec<CellStep<'a>>,
    pub evidence: Vec<Evidence>,
    pub caveats: Vec<CountedCaveat>,
    pub weight: f64,
}

impl Explanation<'_> {
    /// Returns whether targets are compared with the base. Other findings are about one target
    /// alone.
    pub(super) fn is_compared(&self) -> bool {
        match &self.statement {
            Statement::Unfair(_) => self.evidence.iter().any(|evidence| evidence.base.is_some()),
            Statement::SlaMissed(_)
            | Statement::Machines(_)
            | Statement::AtFloor(_)
            | Statement::Sequence(_)
            | Statement::Swings(_) => false,
            Statement::Change(_)
            | Statement::ClientBound(_)
            | Statement::NoEffect(_)
            | Statement::Response(_)
            | Statement::HiddenCost(_)
            | Statement::Facts(_)
            | Statement::Work(_) => true,
        }
    }
}
