//! Judges a trial by the figures of its run.

use super::{Finding, Link, TrialResult};
use crate::compare::equality::is_within;
use crate::compare::{CompareOptions, Compared, ComparedStep, WORK, compare};
use crate::figures::{Figures, Looks};

/// The measure that a search compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasuredBy {
    /// A metric of repeats: [`crate::compare::THROUGHPUT`], or a name for
    /// [`words::Metric::named`].
    Repeats(String),
    /// The exact work of the step's connections: of the first one, if there are several.
    Work,
    /// The exact work of the background.
    BackgroundWork,
}

impl MeasuredBy {
    /// The name of the exact work of the background.
    const BACKGROUND_WORK: &'static str = "background-work";

    /// Returns what a name stands for. Any other name is that of a metric.
    pub fn named(name: &str) -> Self {
        match name {
            WORK => Self::Work,
            Self::BACKGROUND_WORK => Self::BackgroundWork,
            other => Self::Repeats(other.to_owned()),
        }
    }

    /// Returns whether exact cells decide, and no others.
    pub fn is_work(&self) -> bool {
        !matches!(self, Self::Repeats(_))
    }
}

/// A question to the figures of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// The step.
    pub step: &'a str,
    /// The measure that is compared.
    pub by: &'a MeasuredBy,
    /// The names of the trial's targets, the oldest first.
    pub targets: &'a [String],
    /// The error rate of each comparison.
    pub level: f64,
    /// The smallest change to find: 0.03 is 3%. Whether there is one of this size has to be decided.
    pub threshold: f64,
    /// A change that is shown to be smaller than this is none. At most the threshold.
    pub least: f64,
}

/// Compares each target of a trial with the one before. The figures have only the step.
pub fn judge(figures: &Figures, judgement: &Judgement<'_>) -> TrialResult {
    let pairs = judgement.targets.windows(2);
    TrialResult { links: pairs.map(|pair| link(figures, judgement, &pair[0], &pair[1])).collect() }
}

fn link(figures: &Figures, judgement: &Judgement<'_>, older: &str, newer: &str) -> Link {
    let mut options = CompareOptions {
        base: older.to_owned(),
        effect: judgement.threshold,
        error_rate: judgement.level,
        metrics: Vec::new(),
        ..CompareOptions::default()
    };
    if let MeasuredBy::Repeats(metric) = judgement.by {
        options.metrics.push(metric.clone());
    }

    let compared = compare(figures, &options);

    let found = match judgement.by {
        MeasuredBy::Repeats(metric) => {
            let mut rows = compared.rows.iter();
            let is_it = |row: &&ComparedStep| {
                row.metric == *metric && row.cell.target == newer && row.step == judgement.step
            };
            rows.find(is_it).map(|row| of_repeats(row, judgement))
        }
        MeasuredBy::Work => of_work(&compared, judgement, newer, false),
        MeasuredBy::BackgroundWork => of_work(&compared, judgement, newer, true),
    };

    found.unwrap_or(Link { ratio: None, interval: None, finding: Finding::Undecided })
}

fn of_repeats(row: &ComparedStep, judgement: &Judgement<'_>) -> Link {
    debug_assert_eq!(row.looks, Looks::AnyTime, "a trial is judged after each repeat");
    let Some(interval) = row.interval else {
        return Link { ratio: row.ratio, interval: None, finding: Finding::Undecided };
    };

    let includes_1 = interval.low <= 1.0 && interval.high >= 1.0;
    let finding = if is_within(interval, judgement.least) {
        Finding::Same
    } else if !includes_1 {
        Finding::Differs
    } else if is_within(interval, judgement.threshold) {
        Finding::Same
    } else {
        Finding::Undecided
    };

    Link { ratio: row.ratio, interval: Some([interval.low, interval.high]), finding }
}

/// Returns the comparison of work. Its interval reaches as far as a change would have to, to be
/// shown.
fn of_work(
    compared: &Compared,
    judgement: &Judgement<'_>,
    newer: &str,
    is_background: bool,
) -> Option<Link> {
    let work = compared.work.iter().find(|work| {
        work.cell.target == newer
            && work.step == judgement.step
            && work.part.connection.is_none() == is_background
    })?;

    let (Some(ratio), Some(shown_from)) = (work.ratio, work.shown_from) else {
        return Some(Link { ratio: work.ratio, interval: None, finding: Finding::Undecided });
    };

    let finding = if work.verdict.is_change() {
        Finding::Differs
    } else if shown_from <= judgement.threshold {
        Finding::Same
    } else {
        Finding::Undecided
    };

    let interval = [ratio * (1.0 - shown_from).max(0.0), ratio * (1.0 + shown_from)];
    Some(Link { ratio: Some(ratio), interval: Some(interval), finding })
}
