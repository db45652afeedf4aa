//! Finds since when a step changed, over many runs: by how much, how certain, and what changed with
//! it.
//!
//! ```text
//! record ─► RunSummary ─► series ─► levels ─► cause ─► History
//!           facts and     points    noise,    target,
//!           values of     in their  segments, machine
//!           a run         order     evidence  or assay
//! ```
//!
//! * [`summarize`] reads what history needs of a run: a few kilobytes, which can be kept instead of
//!   the run.
//! * [`levels()`] finds the levels of many series together, so that the share of false changes is
//!   bounded over all of them. It knows nothing of runs.
//! * [`history`] puts both together, and tells a change of the machine from one of the target.
//!
//! `docs/history.md` explains the method, and says how often it is right.

mod cause;
mod evidence;
mod levels;
mod noise;
mod segments;
mod series;
mod summary;

pub use cause::{Cause, Circumstances, ReferenceMove};
pub use levels::{
    ERROR_RATE, Level, LevelChange, LevelOptions, Levels, POINTS_MIN, Pending, levels,
};
pub use series::{HistoryOrder, HistoryPoint, SeriesKey};
pub use summary::{
    Brief, RESPONSE_P99, RecordSums, RunSummary, StepSummary, TargetFacts, history_metrics,
    summarize,
};

use crate::order::sort_largest_first;
use cause::{Evidence, machines};
use series::collect;

use crate::compare::more_is_better;

/// The most runs that a new level may have to be one of the newest: a week of nights.
pub const RECENT_RUNS: usize = 7;

/// The options of a history.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// The options of levels.
    pub levels: LevelOptions,
    /// The order of points.
    pub order: HistoryOrder,
    /// The metrics; empty for all that have a history.
    pub metrics: Vec<String>,
    /// The most runs of a level that counts as new.
    pub recent_runs: usize,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            levels: LevelOptions::default(),
            order: HistoryOrder::default(),
            metrics: Vec::new(),
            recent_runs: RECENT_RUNS,
        }
    }
}

/// The series of some runs.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The series, those with the largest change first.
    pub series: Vec<SeriesHistory>,
    /// The number of each run's machine, from 0, in the order in which they are met.
    pub machines: Vec<usize>,
}

/// A step of a target over many runs.
#[derive(Clone, Debug, Default)]
pub struct SeriesHistory {
    /// The subject.
    pub key: SeriesKey,
    /// The unit of its values.
    pub unit: String,
    /// The points in their order.
    pub points: Vec<HistoryPoint>,
    /// The levels.
    pub levels: Levels,
    /// The changes between levels, the oldest first.
    pub changes: Vec<Change>,
}

/// A change of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The place and the size of the change, and how certain it is.
    pub level: LevelChange,
    /// It is for the worse.
    pub is_worse: bool,
    /// Its level is the newest one, and has few runs.
    pub is_recent: bool,
    /// The cause.
    pub cause: Cause,
    /// The differences between the runs around it.
    pub circumstances: Circumstances,
}

impl Change {
    /// Returns whether the gate fails because of it.
    pub fn fails_gate(&self) -> bool {
        self.is_worse && self.is_recent && self.cause == Cause::Target
    }
}

impl SeriesHistory {
    /// Returns the size of the largest change, as a logarithm; zero without changes.
    pub fn largest_change(&self) -> f64 {
        let sizes = self.changes.iter().map(|change| change.level.ratio.ln().abs());
        sizes.fold(0.0, f64::max)
    }
}

impl History {
    /// Returns all changes with their series: those that fail the gate, then those of targets, then
    /// the others, each the largest first.
    pub fn changes(&self) -> Vec<(&SeriesHistory, &Change)> {
        let mut all: Vec<(&SeriesHistory, &Change)> = self
            .series
            .iter()
            .flat_map(|series| series.changes.iter().map(move |change| (series, change)))
            .collect();

        all.sort_by(|(_, a), (_, b)| {
            let size = |change: &Change| change.level.ratio.ln().abs();
            let is_of_target = |change: &Change| change.cause == Cause::Target;
            b.fails_gate()
                .cmp(&a.fails_gate())
                .then(is_of_target(b).cmp(&is_of_target(a)))
                .then(size(b).total_cmp(&size(a)))
        });
        all
    }
}

/// Returns the history of runs, which are in the order of their start.
pub fn history(runs: &[RunSummary], options: &HistoryOptions) -> History {
    let collected = collect(runs, options.order, &options.metrics);
    let logs: Vec<Vec<f64>> = collected
        .iter()
        .map(|series| series.points.iter().map(|point| point.mean.ln()).collect())
        .collect();

    let all_levels = levels(&logs, options.levels);
    let machines = machines(runs);
    let evidence = Evidence { runs, series: &collected, levels: &all_levels, machines: &machines };

    let changes: Vec<Vec<Change>> = (0..collected.len())
        .map(|series| {
            let of_series = 0..all_levels[series].changes.len();
            of_series.map(|change| judged(&evidence, series, change, options)).collect()
        })
        .collect();

    let parts = collected.into_iter().zip(all_levels).zip(changes);
    let mut series: Vec<SeriesHistory> = parts
        .map(|((raw, levels), changes)| SeriesHistory {
            key: raw.key,
            unit: raw.unit,
            points: raw.points,
            levels,
            changes,
        })
        .collect();

    sort_largest_first(&mut series, |item| item.largest_change());
    History { series, machines }
}

fn judged(
    evidence: &Evidence<'_>,
    series: usize,
    change: usize,
    options: &HistoryOptions,
) -> Change {
    let levels = &evidence.levels[series];
    let level = levels.changes[change];
    let (cause, circumstances) = evidence.cause(series, change);

    let is_more = level.ratio > 1.0;
    let is_newest = change + 1 == levels.changes.len();
    let newest = levels.levels.last().map_or(0, |newest| newest.points.len());
    Change {
        level,
        is_worse: is_more != more_is_better(&evidence.series[series].key.metric),
        is_recent: is_newest && newest <= options.recent_runs,
        cause,
        circumstances,
    }
}
