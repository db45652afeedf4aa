//! `finding.json`: the figures of a finding, for programs and for the run that repeats it.

use std::collections::BTreeMap;

use analysis::compare::{Compared, ComparedStep, ComparedWork, Interval, THROUGHPUT, WORK};
use record::CellKey;
use runner::failure::UsageError;
use serde::{Deserialize, Serialize};

/// The version of the format of `finding.json`.
pub const FORMAT: u32 = 1;

/// The CPU of an operation on the threads of its connections: the figure that shows a change of
/// cost where throughput shows none.
const OWN_CPU: &str = "own_cpu_us_per_op";

/// A finding: one figure of a step, of a target and its base.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BundledFinding {
    /// The version of this format.
    pub format: u32,
    /// The Assay that measured.
    pub assay: String,
    /// The finding in one sentence.
    pub sentence: String,
    /// The time at which the run started, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// The target that the other is compared with.
    pub base: String,
    /// The other target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The number of clients.
    pub clients: u32,
    /// The figure that the finding is about.
    pub finding: BundledFigure,
    /// All compared figures of the step.
    pub figures: Vec<BundledFigure>,
    /// The builds of both targets.
    pub builds: Vec<BundledBuild>,
    /// The settings that differ, by name: those of the base and of the target; `null` where a
    /// target has none.
    pub settings: BTreeMap<String, [Option<String>; 2]>,
    /// Facts of the machine.
    pub host: BTreeMap<String, String>,
    /// A hash of those facts: the same for machines that are alike.
    pub host_fingerprint: String,
}

/// A figure of a step, compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BundledFigure {
    /// `throughput`, the name of a metric, or `work`.
    pub metric: String,
    /// The part of the server whose work it is, such as a connection; only of `work`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Larger values are better.
    pub more_is_better: bool,
    /// The values of the base, by repeat.
    pub base_values: Vec<f64>,
    /// The values of the target, by repeat.
    pub values: Vec<f64>,
    /// Target / base.
    pub ratio: Option<f64>,
    /// The interval of the ratio; of `work`, the changes that its cells don't show are on either
    /// side of the ratio.
    pub interval: Option<BundledInterval>,
    /// The verdict in words.
    pub verdict: String,
    /// The repeats of each target that the change of the plan's smallest effect would need, as far
    /// as known.
    pub repeats_needed: Option<u32>,
}

/// The interval of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundledInterval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The confidence; 1 for work, whose bounds are not statistical.
    pub confidence: f64,
}

/// A build of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledBuild {
    /// The name in the plan.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// The version, as the engine reports it.
    pub version: String,
    /// The source in the plan of the bundle.
    pub source: String,
    /// The SHA-256 of each file, by the file's name.
    pub files: BTreeMap<String, String>,
}

impl BundledFigure {
    /// Returns whether the interval excludes 1.
    pub fn is_change(&self) -> bool {
        self.direction().is_some()
    }

    /// Returns whether a change is shown, and the ratio is above 1.
    pub fn direction(&self) -> Option<Direction> {
        let interval = self.interval?;
        if interval.low > 1.0 {
            Some(Direction::Up)
        } else if interval.high < 1.0 {
            Some(Direction::Down)
        } else {
            None
        }
    }

    /// Returns whether it is the same figure of another run.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.metric == other.metric && self.part == other.part
    }

    /// Returns the distance of the interval from 1, as a logarithm: how clear the change is.
    fn clearness(&self) -> f64 {
        let Some(interval) = self.interval else {
            return 0.0;
        };

        match self.direction() {
            Some(Direction::Up) => interval.low.ln(),
            Some(Direction::Down) => -interval.high.ln(),
            None => 0.0,
        }
    }

    /// Returns the ratio with its interval, as reports show it.
    pub fn ratio_text(&self) -> String {
        let interval = self.interval.map(|bundled| Interval {
            low: bundled.low,
            high: bundled.high,
            confidence: bundled.confidence,
        });

        match self.ratio {
            Some(ratio) => report::ratio_with_bounds(ratio, interval),
            None => "no ratio".to_owned(),
        }
    }

    /// Returns the name of the figure in sentences.
    pub fn label(&self) -> String {
        let label = analysis::compare::metric_label(&self.metric);
        match &self.part {
            Some(part) => format!("{label} of `{part}`"),
            None => label.to_owned(),
        }
    }

    /// Returns the figure of a compared metric.
    fn of_row(row: &ComparedStep) -> Self {
        let interval = row.interval.map(|interval| BundledInterval {
            low: interval.low,
            high: interval.high,
            confidence: interval.confidence,
        });
        let values = |samples: &[analysis::compare::Sample]| {
            samples.iter().map(|sample| sample.value).collect::<Vec<f64>>()
        };

        Self {
            metric: row.metric.clone(),
            part: None,
            more_is_better: row.more_is_better,
            base_values: values(&row.base_values),
            values: values(&row.values),
            ratio: row.ratio,
            interval,
            verdict: row.verdict.to_string(),
            repeats_needed: row.repeats_needed,
        }
    }

    /// Returns the figure of compared work.
    fn of_work(work: &ComparedWork) -> Self {
        let interval = work.ratio.zip(work.shown_from).map(|(ratio, shown_from)| BundledInterval {
            low: ratio - shown_from,
            high: ratio + shown_from,
            confidence: 1.0,
        });

        Self {
            metric: WORK.to_owned(),
            part: Some(work.part.name().to_owned()),
            more_is_better: false,
            base_values: work.base_values.iter().map(|sample| sample.value).collect(),
            values: work.values.iter().map(|sample| sample.value).collect(),
            ratio: work.ratio,
            interval,
            verdict: work.verdict.to_string(),
            repeats_needed: None,
        }
    }
}

/// The direction of a shown change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The ratio is above 1.
    Up,
    /// The ratio is below 1.
    Down,
}

/// The cells and the step that a finding is about.
#[derive(Clone, Debug)]
pub struct FindingPlace<'a> {
    /// The target that is not the base.
    pub target: &'a str,
    /// The step.
    pub step: &'a str,
    /// The variant, if it is given.
    pub variant: Option<&'a str>,
    /// The number of clients, if it is given.
    pub clients: Option<u32>,
}

impl FindingPlace<'_> {
    /// Returns whether a comparison is of this place, whatever the number of clients.
    pub fn has(&self, cell: &CellKey, step: &str) -> bool {
        cell.target == self.target
            && step == self.step
            && self.variant.is_none_or(|variant| cell.variant.as_deref() == Some(variant))
    }

    /// Returns whether a comparison of measured cells is of this place.
    pub fn has_load(&self, cell: &CellKey, step: &str) -> bool {
        self.has(cell, step) && self.clients.is_none_or(|clients| clients == cell.clients)
    }
}

/// A figure with the cell that it is of.
struct FoundFigure {
    cell: CellKey,
    figure: BundledFigure,
}

/// Returns all figures of a place.
fn found(compared: &Compared, place: &FindingPlace<'_>) -> Vec<FoundFigure> {
    let mut all = Vec::new();
    for row in compared.rows.iter().filter(|row| place.has_load(&row.cell, &row.step)) {
        all.push(FoundFigure { cell: row.cell.clone(), figure: BundledFigure::of_row(row) });
    }

    // The number of clients of exact cells is their own.
    for work in compared.work.iter().filter(|work| place.has(&work.cell, &work.step)) {
        all.push(FoundFigure { cell: work.cell.clone(), figure: BundledFigure::of_work(work) });
    }

    all
}

/// Returns the figures of a step of a target with this load.
pub fn figures_of(compared: &Compared, place: &FindingPlace<'_>) -> Vec<BundledFigure> {
    found(compared, place).into_iter().map(|found| found.figure).collect()
}

/// A finding with its load.
pub struct ChosenFinding {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The figure.
    pub figure: BundledFigure,
    /// The number of other loads of the step.
    pub other_loads: usize,
}

/// Chooses the figure that a bundle is about, and its load: the clearest change of the metric that
/// is given, or of the first metric that shows a change.
///
/// # Errors
/// Nothing is compared there, or no change is shown.
pub fn choose(
    compared: &Compared,
    place: &FindingPlace<'_>,
    metric: Option<&str>,
) -> Result<ChosenFinding, UsageError> {
    let all = found(compared, place);
    let metrics = metric.map_or(vec![THROUGHPUT, WORK, OWN_CPU], |metric| vec![metric]);

    for metric in &metrics {
        let of_metric = all.iter().filter(|found| found.figure.metric == *metric);
        let changes = of_metric.filter(|found| found.figure.is_change());
        let clearest = changes.max_by(|a, b| a.figure.clearness().total_cmp(&b.figure.clearness()));
        let Some(FoundFigure { cell, figure }) = clearest else {
            continue;
        };

        let loads = all.iter().map(|found| (&found.cell.variant, found.cell.clients));
        let others = loads.filter(|load| *load != (&cell.variant, cell.clients));
        let other_loads = others.collect::<std::collections::BTreeSet<_>>().len();

        return Ok(ChosenFinding { cell: cell.clone(), figure: figure.clone(), other_loads });
    }
    Err(nothing_found(compared, place, &all, &metrics))
}

/// Returns the error that no change is shown, with what the comparison says.
fn nothing_found(
    compared: &Compared,
    place: &FindingPlace<'_>,
    all: &[FoundFigure],
    metrics: &[&str],
) -> UsageError {
    let FindingPlace { target, step, .. } = place;
    let base = &compared.base;
    // A comparison that shows nothing has another remedy than one that was not made.
    let Some(first) = all.iter().find(|found| metrics.contains(&found.figure.metric.as_str()))
    else {
        let what = if metrics.len() == 1 { format!("`{}` of ", metrics[0]) } else { String::new() };
        let message =
            format!("the run has no comparison of {what}`{step}` of `{target}` with `{base}`");
        let help = "`assay compare RUN` shows what was compared, and by which metrics";
        return UsageError::new(message, Some(help.into()));
    };

    let figure = &first.figure;
    let message = format!(
        "there is no finding to bundle: `{step}` of `{target}` against `{base}` shows no change ({} {}: {})",
        figure.label(),
        figure.ratio_text(),
        figure.verdict
    );
    let help = "more repeats show smaller changes: `assay run --resume RUN --repeats 10`; `--metric` chooses another figure";
    UsageError::new(message, Some(help.into()))
}
