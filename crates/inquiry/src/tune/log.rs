//! The log of a tuning, `tune.json`: what it is to achieve, and the phases that were measured.

use analysis::tune::{EndedPhase, Goal, Phase, PhaseResult};
use anyhow::Context as _;
use plan::Designed;
use report::{TuneView, TunedFactor};
use serde::{Deserialize, Serialize};

use crate::search::{FORMAT, Logged, SearchLog, SearchedPlan};

/// A tuning, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Log {
    format: u32,
    pub question: Question,
    /// In the order in which they were begun.
    phases: Vec<Logged<Phase, PhaseResult>>,
}

/// The question of a tuning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    #[serde(flatten)]
    pub searched: SearchedPlan,
    pub goal: Goal,
    pub repeats_max: u32,
}

impl Log {
    pub fn new(question: Question) -> Self {
        Self { format: FORMAT, question, phases: Vec::new() }
    }

    /// Returns the phases that have ended.
    pub fn ended(&self) -> Vec<EndedPhase> {
        let mut ended = Vec::new();
        for Logged { trial, result, .. } in &self.phases {
            if let Some(result) = result {
                ended.push(EndedPhase { phase: trial.clone(), result: result.clone() });
            }
        }
        ended
    }

    /// Returns what the tuning has found out, for printing. `designed` is the design of its plan.
    pub fn view(&self, designed: &Designed) -> TuneView {
        let mut factors = Vec::new();
        for factor in &designed.factors {
            factors.push(TunedFactor { name: factor.name.clone(), levels: factor.levels.clone() });
        }

        TuneView {
            step: self.question.goal.step.clone(),
            factors,
            target_count: designed.targets.len(),
            ended: self.ended(),
        }
    }
}

impl SearchLog for Log {
    type Trial = Phase;
    type Result = PhaseResult;

    const FILE: &'static str = "tune.json";
    const NAME: &'static str = "tuning";
    const TRIAL: &'static str = "phase";

    fn format(&self) -> u32 {
        self.format
    }

    fn plan(&self) -> &SearchedPlan {
        &self.question.searched
    }

    fn trials(&self) -> &[Logged<Phase, PhaseResult>] {
        &self.phases
    }

    fn trials_mut(&mut self) -> &mut Vec<Logged<Phase, PhaseResult>> {
        &mut self.phases
    }

    fn check_trials(&self) -> anyhow::Result<()> {
        let plan = self.question.searched.parse()?;
        let designed = plan.designed.context("its plan has no factors")?;

        for logged in &self.phases {
            let (Phase::Race(levels) | Phase::Verification(levels)) = &logged.trial else {
                continue;
            };
            let counts = designed.factors.iter().map(|factor| factor.levels.len());
            let is_known = levels.len() == designed.factors.len()
                && levels.iter().zip(counts).all(|(level, count)| *level < count);
            anyhow::ensure!(is_known, "a phase has unknown levels");
        }

        Ok(())
    }
}
