//! The log of a tuning, `tune.json`: what it is to achieve, and the phases that were measured.

use std::path::{Path, PathBuf};

use analysis::tune::{EndedPhase, Goal, Phase, PhaseResult};
use anyhow::Context as _;
use plan::Plan;
use runner::events::PlanDiagnostics;
use runner::failure::PlanRefused;
use runner::prepare::trust;
use serde::{Deserialize, Serialize};

use crate::commands::own_log;

/// The file in the directory of a tuning.
const FILE: &str = "tune.json";
/// The folder of the phases' runs in that directory.
pub(super) const RUNS: &str = "runs";
/// The version of the format.
const FORMAT: u32 = 1;

/// A tuning, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Log {
    format: u32,
    pub question: Question,
    /// In the order in which they were begun.
    pub phases: Vec<LoggedPhase>,
}

/// What is tuned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// The absolute path of the plan.
    pub plan: PathBuf,
    /// The plan's text, which must stay the same.
    pub plan_text: String,
    /// Changes of the plan.
    pub sets: Vec<String>,
    pub goal: Goal,
    pub repeats_max: u32,
}

/// A phase that was begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoggedPhase {
    pub phase: Phase,
    /// The run's folder below [`RUNS`]; `None`: it did not begin.
    pub run: Option<String>,
    /// `None`: it has not ended.
    pub result: Option<PhaseResult>,
}

impl Question {
    /// Returns the plan with its changes.
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        let name = self.plan.display().to_string();
        match plan::parse(&name, &self.plan_text, &self.sets) {
            Ok((plan, _)) => Ok(plan),
            Err(errors) => {
                let diagnostics = PlanDiagnostics::new(&errors, name, &self.plan_text, &self.sets);
                Err(PlanRefused(diagnostics).into())
            }
        }
    }
}

impl Log {
    pub(super) fn new(question: Question) -> Self {
        Self { format: FORMAT, question, phases: Vec::new() }
    }

    /// Reads the log of a tuning, whose plan and builds are run: refuses what others could have
    /// written, unless the operator trusts it.
    pub(super) fn read(directory: &Path, is_trusted: bool) -> anyhow::Result<Self> {
        let log: Self = own_log::read(directory, FILE, is_trusted)?;
        let path = directory.join(FILE);
        log.check().with_context(|| format!("`{}` is damaged", path.display()))?;
        if !is_trusted {
            trust::refuse_recorded_plan(&log.question.plan()?)?;
        }
        Ok(log)
    }

    /// Checks what the tuning relies on.
    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.format == FORMAT, "its format is {}, not {FORMAT}", self.format);
        let plan = self.question.plan()?;
        let designed = plan.designed.context("its plan has no factors")?;

        for LoggedPhase { phase, run, .. } in &self.phases {
            let is_name = run.as_deref().is_none_or(own_log::is_folder_name);
            anyhow::ensure!(is_name, "the run of a phase is no name");

            let (Phase::Race(levels) | Phase::Verification(levels)) = phase else {
                continue;
            };
            let counts = designed.factors.iter().map(|factor| factor.levels.len());
            let is_known = levels.len() == designed.factors.len()
                && levels.iter().zip(counts).all(|(level, count)| *level < count);
            anyhow::ensure!(is_known, "a phase has unknown levels");
        }

        Ok(())
    }

    /// Replaces the file in the directory of the tuning.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        own_log::write(directory, FILE, self)
    }

    /// Returns the phases that have ended.
    pub(super) fn ended(&self) -> Vec<EndedPhase> {
        let mut ended = Vec::new();
        for LoggedPhase { phase, result, .. } in &self.phases {
            if let Some(result) = result {
                ended.push(EndedPhase { phase: phase.clone(), result: result.clone() });
            }
        }
        ended
    }

    /// Returns the index of a phase that was begun and has no result; adds it if there is none.
    pub(super) fn begun(&mut self, phase: &Phase) -> usize {
        let is_it = |logged: &LoggedPhase| logged.phase == *phase && logged.result.is_none();
        self.phases.iter().rposition(is_it).unwrap_or_else(|| {
            self.phases.push(LoggedPhase { phase: phase.clone(), run: None, result: None });
            self.phases.len() - 1
        })
    }
}
