//! The log of a bisection, `bisect.json`: what is searched for, among which candidates, and the trials
//! that were made.

use std::collections::BTreeMap;

use analysis::bisect::{Search, Trial, TrialResult};
use report::BisectView;
use serde::{Deserialize, Serialize};

use crate::search::{FORMAT, Logged, SearchLog, SearchedPlan};

/// A bisection, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Log {
    format: u32,
    pub question: Question,
    /// The oldest first.
    pub candidates: Vec<Candidate>,
    /// In the order in which they were begun.
    pub trials: Vec<Logged<Trial, TrialResult>>,
    /// Why candidates cannot be measured, by their index.
    pub unusable: BTreeMap<usize, String>,
}

/// The least change that counts, where nothing is asked about its size.
const LEAST_CHANGE: f64 = 0.03;

/// The question of a bisection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    #[serde(flatten)]
    pub searched: SearchedPlan,
    pub step: String,
    pub metric: String,
    /// The config of all candidates.
    pub config: String,
    /// The smallest change to find; `None`: it depends on that between the ends.
    pub threshold: Option<f64>,
    pub explores: bool,
    pub repeats_max: u32,
}

impl Question {
    /// Returns the least change that counts: a smaller one is none.
    pub fn least(&self) -> f64 {
        self.threshold.unwrap_or(LEAST_CHANGE)
    }
}

/// A version that may be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Candidate {
    /// The name for people: a spec, or a commit with its subject.
    pub title: String,
    /// The name of its build in plans.
    pub build: String,
    pub source: Source,
}

/// Where a candidate comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// A spec, or the name of a build.
    Build(String),
    /// A commit, built as the plan's build with this name.
    Commit { recipe: String, hash: String },
}

impl Log {
    pub fn new(question: Question, candidates: Vec<Candidate>) -> Self {
        let (trials, unusable) = (Vec::new(), BTreeMap::new());
        Self { format: FORMAT, question, candidates, trials, unusable }
    }

    /// Returns the state of the search.
    pub fn search(&self) -> Search {
        let mut ended = Vec::new();
        for logged in &self.trials {
            if let Some(result) = &logged.result {
                ended.push((logged.trial, result.clone()));
            }
        }

        Search {
            count: self.candidates.len(),
            explores: self.question.explores,
            ended,
            unusable: self.unusable.keys().copied().collect(),
        }
    }

    /// Returns what the search has found out, for printing.
    pub fn view(&self) -> BisectView {
        let candidates = self.candidates.iter();
        BisectView {
            step: self.question.step.clone(),
            metric: self.question.metric.clone(),
            titles: candidates.map(|candidate| candidate.title.clone()).collect(),
            search: self.search(),
            unusable: self.unusable.clone(),
        }
    }
}

impl SearchLog for Log {
    type Trial = Trial;
    type Result = TrialResult;

    const FILE: &'static str = "bisect.json";
    const NAME: &'static str = "search";
    const TRIAL: &'static str = "trial";

    fn format(&self) -> u32 {
        self.format
    }

    fn plan(&self) -> &SearchedPlan {
        &self.question.searched
    }

    fn trials(&self) -> &[Logged<Trial, TrialResult>] {
        &self.trials
    }

    fn trials_mut(&mut self) -> &mut Vec<Logged<Trial, TrialResult>> {
        &mut self.trials
    }

    fn check_trials(&self) -> anyhow::Result<()> {
        let count = self.candidates.len();
        anyhow::ensure!(count >= 2, "it has {count} candidates");
        for Logged { trial, result, .. } in &self.trials {
            let candidates = trial.candidates();
            let is_ordered = candidates.is_sorted_by(|a, b| a < b);
            let is_known = candidates.iter().all(|candidate| *candidate < count);
            anyhow::ensure!(is_ordered && is_known, "a trial has unknown candidates");

            let has_links = |result: &TrialResult| result.links.len() == trial.pairs().len();
            anyhow::ensure!(result.as_ref().is_none_or(has_links), "a trial has too few results");
        }

        Ok(())
    }
}
