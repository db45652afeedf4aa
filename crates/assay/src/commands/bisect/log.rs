//! The log of a search, `bisect.json`: what is searched for, among which candidates, and the trials
//! that were made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::bisect::{Search, Trial, TrialResult};
use anyhow::Context as _;
use runner::prepare::trust;
use serde::{Deserialize, Serialize};

use crate::commands::own_log;

/// The file in the directory of a search.
const FILE: &str = "bisect.json";
/// The folder of the trials' runs in that directory.
pub(super) const RUNS: &str = "runs";
/// The version of the format.
const FORMAT: u32 = 1;

/// A search, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Log {
    pub format: u32,
    pub question: Question,
    /// The oldest first.
    pub candidates: Vec<Candidate>,
    /// In the order in which they were begun.
    pub trials: Vec<LoggedTrial>,
    /// Why candidates can't be measured, by their index.
    pub unusable: BTreeMap<usize, String>,
}

/// What is searched for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// The absolute path of the plan.
    pub plan: PathBuf,
    /// The plan's text, which must stay the same.
    pub plan_text: String,
    /// Changes of the plan.
    pub sets: Vec<String>,
    pub step: String,
    pub metric: String,
    /// The config of all candidates.
    pub config: String,
    /// The smallest change to find; `None`: it depends on that between the ends.
    pub threshold: Option<f64>,
    pub explores: bool,
    pub repeats_max: u32,
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

/// A trial that was begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoggedTrial {
    pub trial: Trial,
    /// The run's folder below [`RUNS`]; `None`: it did not begin.
    pub run: Option<String>,
    /// `None`: it has not ended, or a candidate could not be measured.
    pub result: Option<TrialResult>,
}

impl Log {
    pub(super) fn new(question: Question, candidates: Vec<Candidate>) -> Self {
        let (trials, unusable) = (Vec::new(), BTreeMap::new());
        Self { format: FORMAT, question, candidates, trials, unusable }
    }

    /// Reads the log of a search, whose plan and builds are run: refuses what others could have
    /// written, unless the operator trusts it.
    pub(super) fn read(directory: &Path, is_trusted: bool) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        let log: Self = own_log::read(directory, FILE, is_trusted)?;
        log.check().with_context(|| format!("`{}` is damaged", path.display()))?;
        if !is_trusted {
            trust::refuse_recorded_plan(&log.question.plan()?)?;
        }
        Ok(log)
    }

    /// Checks what the search relies on.
    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.format == FORMAT, "its format is {}, not {FORMAT}", self.format);

        let count = self.candidates.len();
        anyhow::ensure!(count >= 2, "it has {count} candidates");
        for LoggedTrial { trial, run, result } in &self.trials {
            let candidates = trial.candidates();
            let is_ordered = candidates.is_sorted_by(|a, b| a < b);
            let is_known = candidates.iter().all(|candidate| *candidate < count);
            anyhow::ensure!(is_ordered && is_known, "a trial has unknown candidates");

            let has_links = |result: &TrialResult| result.links.len() == trial.pairs().len();
            anyhow::ensure!(result.as_ref().is_none_or(has_links), "a trial has too few results");

            let is_name = run.as_deref().is_none_or(own_log::is_folder_name);
            anyhow::ensure!(is_name, "the run of a trial is no name");
        }
        Ok(())
    }

    /// Replaces the file in the directory of the search.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        own_log::write(directory, FILE, self)
    }

    /// Returns the state of the search.
    pub(super) fn search(&self) -> Search {
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

    /// Returns the trial that was begun and has no result, so that its run can be resumed.
    pub(super) fn begun(&self, trial: &Trial) -> Option<usize> {
        let is_it = |logged: &LoggedTrial| logged.trial == *trial && logged.result.is_none();
        self.trials.iter().rposition(is_it)
    }
}
