//! The summary of a run for its history: its facts, and the values of its steps. It is a few
//! kilobytes, so that a thousand runs are read in seconds, and so that it can be kept when the run
//! is deleted.

use std::collections::BTreeMap;

use record::{Run, RunDir, Status};
use serde::{Deserialize, Serialize};

use crate::compare::{THROUGHPUT, VERDICT_METRICS};
use crate::compat::{Facts, Work, machine_facts, target_facts};
use crate::figures::{Figures, Row, throughput, throughput_unit};

/// The version of the file; others are read anew from the run.
const FORMAT: u32 = 2;
/// The most steps of a run, repeats of a step, and letters of a name: a record from elsewhere may
/// have any number.
const STEPS_MAX: usize = 5_000;
const REPEATS_MAX: usize = 1_000;
const LETTERS_MAX: usize = 300;
/// The most bytes of a result in brief, which names a few factors and their levels.
const BRIEF_BYTES_MAX: usize = 10_000;

/// The 99th percentile of response times.
pub const RESPONSE_P99: &str = "response_p99";

/// Returns the metrics that have a history: those with verdicts, and [`RESPONSE_P99`].
pub fn history_metrics() -> impl Iterator<Item = &'static str> {
    VERDICT_METRICS.iter().map(|(name, _)| *name).chain([RESPONSE_P99])
}

/// A run in a history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The version of this format.
    pub format: u32,
    /// The checksums of the record that it was made of.
    pub made_of: RecordSums,
    /// The globally unique identifier of the run.
    pub id: String,
    /// The plan's name.
    pub plan: String,
    /// The time at which the run started.
    pub started_unix_ns: u64,
    /// The Assay that started it.
    pub assay: String,
    /// The work that its plan asks of the engine.
    pub work: Work,
    /// The facts of the machine that last. Empty if they are unknown.
    pub machine: Facts,
    /// The targets.
    pub targets: Vec<TargetFacts>,
    /// The values of steps.
    pub steps: Vec<StepSummary>,
    /// The result for lists; `None`: it was not worded yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
}

/// The result of a run in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    /// The words.
    pub text: String,
    /// The version of the Assay that worded it.
    pub by: String,
}

/// The checksums by which a record is recognized without reading it, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSums {
    /// The checksum of `run.json`, on which all of the record depends.
    pub run_crc32: String,
    /// That of the names and sizes of all files of its cells.
    pub sizes_crc32: String,
}

/// The parts of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The target's name.
    pub name: String,
    /// The version of its build, as the engine reports it.
    pub version: String,
    /// The time of the commit that its build was made from, in seconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_unix_s: Option<i64>,
    /// The facts of its build: version and hashes of its files.
    pub build: Facts,
    /// The facts of its config: settings, limits, and texts of its files.
    pub config: Facts,
}

/// The values of a step of a target, over the repeats of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// The target.
    pub target: String,
    /// The workload's variant, if the plan has variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The number of clients.
    pub clients: u32,
    /// The step.
    pub step: String,
    /// The unit of throughput: `rows/s`.
    pub unit: String,
    /// The values of each metric, one for each valid repeat.
    pub values: BTreeMap<String, Vec<f64>>,
}

impl StepSummary {
    /// Returns the geometric mean of the valid repeats, as comparisons use it.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        let values = self.values.get(metric).filter(|values| !values.is_empty())?;
        Some(geometric_mean(values))
    }

    /// Returns whether a row is a repeat of this step.
    fn is_of(&self, row: &Row) -> bool {
        self.step == row.step
            && self.target == row.cell.target
            && self.variant == row.cell.variant
            && self.clients == row.cell.clients
    }
}

impl RunSummary {
    /// Summarizes a run with its figures.
    pub fn new(run: &Run, figures: &Figures, made_of: RecordSums) -> Self {
        Self {
            format: FORMAT,
            made_of,
            id: cut(&run.id),
            plan: cut(&run.name),
            started_unix_ns: run.started_unix_ns,
            assay: cut(&run.assay.to_string()),
            work: Work::of(run),
            machine: machine_facts(run),
            targets: targets(run),
            steps: steps(figures),
            brief: None,
        }
    }

    /// Returns whether a summary that was read has this format, and no more than a run has.
    pub fn is_usable(&self) -> bool {
        let has_few_repeats =
            |step: &StepSummary| step.values.values().all(|all| all.len() <= REPEATS_MAX);

        let is_short = |brief: &Brief| brief.text.len() <= BRIEF_BYTES_MAX;

        self.format == FORMAT
            && self.brief.as_ref().is_none_or(is_short)
            && self.steps.len() <= STEPS_MAX
            && self.steps.iter().all(has_few_repeats)
    }

    /// Returns the summary with the values of one step alone.
    #[must_use]
    pub fn of_step(&self, step: &str) -> Self {
        let steps = self.steps.iter().filter(|summary| summary.step == step);
        Self {
            steps: steps.cloned().collect(),
            made_of: self.made_of.clone(),
            id: self.id.clone(),
            plan: self.plan.clone(),
            assay: self.assay.clone(),
            work: self.work.clone(),
            machine: self.machine.clone(),
            targets: self.targets.clone(),
            brief: self.brief.clone(),
            ..*self
        }
    }

    /// Returns the facts of a target.
    pub fn target(&self, name: &str) -> Option<&TargetFacts> {
        self.targets.iter().find(|target| target.name == name)
    }
}

/// Returns the geometric mean of values above zero.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    let logs = values.iter().map(|value| value.ln()).sum::<f64>();
    (logs / values.len() as f64).exp()
}

fn cut(text: &str) -> String {
    text.chars().take(LETTERS_MAX).collect()
}

fn targets(run: &Run) -> Vec<TargetFacts> {
    let of_run = run.targets.iter().filter(|target| run.has_cell_of(&target.name));
    of_run
        .map(|target| {
            let build = run.builds.iter().find(|build| build.name == target.build);
            let (build_facts, config) = target_facts(run, target);
            TargetFacts {
                name: target.name.clone(),
                version: build.map_or(String::new(), |build| cut(&build.version)),
                committed_unix_s: build
                    .and_then(|build| build.commit.as_ref())
                    .map(|commit| commit.committed_unix_s),
                build: build_facts,
                config,
            }
        })
        .collect()
}

fn steps(figures: &Figures) -> Vec<StepSummary> {
    let mut steps: Vec<StepSummary> = Vec::new();
    let counts = |row: &&Row| row.reported && row.valid && row.status == Status::Complete;

    for row in figures.rows.iter().filter(counts) {
        let known = steps.iter().position(|step| step.is_of(row));
        if known.is_none() && steps.len() == STEPS_MAX {
            break;
        }

        let place = known.unwrap_or_else(|| {
            steps.push(StepSummary {
                target: row.cell.target.clone(),
                variant: row.cell.variant.clone(),
                clients: row.cell.clients,
                step: row.step.clone(),
                unit: throughput_unit(row.kind, row.main_operation()),
                values: BTreeMap::new(),
            });
            steps.len() - 1
        });

        for metric in history_metrics() {
            let value = if metric == THROUGHPUT { throughput(row) } else { row.metric(metric) };
            // Only these have a logarithm.
            if let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) {
                let values = steps[place].values.entry(metric.to_owned()).or_default();
                if values.len() < REPEATS_MAX {
                    values.push(value);
                }
            }
        }
    }
    steps
}

/// Reads what history needs of a run's record. The figures are those of this run alone.
///
/// # Errors
/// `run.json` cannot be read.
pub fn summarize(
    directory: &RunDir,
    figures: &Figures,
    made_of: RecordSums,
) -> Result<RunSummary, record::RecordError> {
    Ok(RunSummary::new(&directory.read_run()?, figures, made_of))
}
