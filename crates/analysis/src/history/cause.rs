//! The causes of changes of levels: the target, the machine, or Assay. A change of the machine is
//! never called one of the target.

use std::ops::RangeInclusive;

use record::FactDifference;

use super::levels::{LevelChange, Levels};
use super::noise::Noise;
use super::series::{HistoryPoint, RawSeries};
use super::summary::{RunSummary, TargetFacts};
use crate::compare::student::quantile;
use crate::compat::{Facts, differences, machine_differences};
use crate::figures::average::median;

/// A reference has moved as well if its interval of 99% excludes no change, and it moved by
/// this share of the change at least.
const MOVED_SHARE: f64 = 0.2;
/// A reference has stayed if its interval at this level excludes this share of the change.
const STAYED_P: f64 = 0.05;
const STAYED_SHARE: f64 = 0.5;
/// Points of one machine on both sides show a change by themselves at this level, with this share
/// of its size.
const SHARED_P: f64 = 0.001;
const SHARED_SHARE: f64 = 0.5;
/// The fewest points of a reference on either side.
const REFERENCE_POINTS_MIN: usize = 2;

/// The cause of a change of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The target: its build or its config changed, and nothing that is known of the machine.
    Target,
    /// The machine: its facts changed.
    Machine,
    /// The machine: a target that did not change moved as well.
    Reference,
    /// The machine: neither build nor config of the target changed.
    SameTarget,
    /// Assay: another version measured, and no target that did not change says that this had no
    /// effect.
    Assay,
    /// The targets that did not change are too noisy to tell the target from the machine.
    Unclear,
}

impl Cause {
    /// Returns the name for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Machine => "machine",
            Self::Reference => "reference",
            Self::SameTarget => "same_target",
            Self::Assay => "assay",
            Self::Unclear => "unclear",
        }
    }
}

/// A target with the same build and config before and after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceMove {
    /// The target.
    pub target: String,
    /// New / old of the reference.
    pub ratio: f64,
    /// The ends of its 95% interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// The differences between the runs around a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// The last run that is certainly before the change.
    pub before: usize,
    /// The first run that is certainly after it.
    pub after: usize,
    /// Facts of the build.
    pub build: Vec<FactDifference>,
    /// Facts of the config.
    pub config: Vec<FactDifference>,
    /// Facts of the machine.
    pub machine: Vec<FactDifference>,
    /// Assay's versions, if they differ.
    pub assay: Vec<FactDifference>,
    /// Targets that did not change.
    pub references: Vec<ReferenceMove>,
}

/// All series, with what tells causes apart.
pub(super) struct Evidence<'a> {
    pub runs: &'a [RunSummary],
    pub series: &'a [RawSeries],
    pub levels: &'a [Levels],
    /// The number of each run's machine.
    pub machines: &'a [usize],
}

/// Returns the number of each run's machine, in the order in which they are met.
pub(super) fn machines(runs: &[RunSummary]) -> Vec<usize> {
    let mut known: Vec<&Facts> = Vec::new();

    let number = |run: &'_ RunSummary, known: &mut Vec<&Facts>| {
        known.iter().rposition(|facts| **facts == run.machine).or_else(|| {
            let is_same = |facts: &&Facts| machine_differences(facts, &run.machine).is_empty();
            known.iter().rposition(is_same)
        })
    };

    let mut numbers = Vec::new();

    for run in runs {
        let place = number(run, &mut known).unwrap_or(known.len());
        if place == known.len() {
            known.push(&run.machine);
        }

        numbers.push(place);
    }
    numbers
}

impl Evidence<'_> {
    /// Returns the cause of a change of a series, with what changed.
    pub(super) fn cause(&self, series: usize, change: usize) -> (Cause, Circumstances) {
        let of_series = &self.series[series];
        let level_change = &self.levels[series].changes[change];
        let window = level_change.earliest.saturating_sub(1)..=level_change.latest;
        let runs_around: Vec<usize> =
            of_series.points[window].iter().map(|point| point.run).collect();
        let before = runs_around.first().copied().unwrap_or(0);
        let after = runs_around.last().copied().unwrap_or(0);

        let no_facts = TargetFacts::default();
        let target = |run: usize| self.runs[run].target(&of_series.key.target).unwrap_or(&no_facts);
        let (was, is) = (target(before), target(after));
        let found = Circumstances {
            before,
            after,
            build: differences(&was.build, &is.build),
            config: differences(&was.config, &is.config),
            machine: machine_differences(&self.runs[before].machine, &self.runs[after].machine),
            assay: assay_difference(&self.runs[before], &self.runs[after]),
            references: self.references(series, change),
        };

        let is_other_machine =
            runs_around.iter().any(|run| self.machines[*run] != self.machines[before]);
        let cause = if is_other_machine && !self.is_shown_on_one_machine(series, change) {
            Cause::Machine
        } else {
            cause_on_one_machine(&found, level_change)
        };
        (cause, found)
    }

    /// Returns whether the points of machines that are on both sides of a change show it.
    fn is_shown_on_one_machine(&self, series: usize, change: usize) -> bool {
        let points = &self.series[series].points;
        let levels = &self.levels[series];
        let Some(noise) = &levels.noise else {
            return false;
        };
        let [left, right] =
            [change, change + 1].map(|level| &points[levels.levels[level].points.clone()]);

        // The mean of what each machine shows, weighted by its number of points on both sides.
        let (mut weighted, mut weights) = (0.0, 0.0);
        for machine in 0..=self.machines.iter().copied().max().unwrap_or(0) {
            let logs = |side: &[HistoryPoint]| -> Vec<f64> {
                let of_machine = side.iter().filter(|point| self.machines[point.run] == machine);
                of_machine.map(|point| point.mean.ln()).collect()
            };
            let (old, new) = (logs(left), logs(right));

            if old.len().min(new.len()) < REFERENCE_POINTS_MIN {
                continue;
            }

            let weight = 1.0 / (1.0 / old.len() as f64 + 1.0 / new.len() as f64);
            weighted += weight * difference(&old, &new, noise);
            weights += weight;
        }
        if weights == 0.0 {
            return false;
        }

        let size = levels.changes[change].ratio.ln();
        let shown = weighted / weights * size.signum();
        let error = noise.spread / weights.sqrt();
        shown / error >= quantile(SHARED_P, noise.freedom) && shown >= SHARED_SHARE * size.abs()
    }

    /// Returns how the same step of each target that did not change has moved.
    fn references(&self, series: usize, change: usize) -> Vec<ReferenceMove> {
        let own = &self.series[series];
        let levels = &self.levels[series];

        let first_new = levels.changes[change].at;
        let [old_runs, new_runs] = [change, change + 1].map(|level| {
            let points = &own.points[levels.levels[level].points.clone()];
            points.iter().map(|point| point.run).collect::<Vec<_>>()
        });

        // In the order of versions, the runs of another target have another order.
        let in_time = old_runs.iter().chain(&new_runs).is_sorted();
        if !in_time || first_new == 0 {
            return Vec::new();
        }
        let place = own.points[first_new].run;

        let mut found = Vec::new();
        for (other, levels) in self.series.iter().zip(self.levels) {
            if other.key.target == own.key.target || !other.key.is_same_step_as(&own.key) {
                continue;
            }
            let Some(noise) = &levels.noise else {
                continue;
            };

            let runs = old_runs[0]..=new_runs.last().copied().unwrap_or(0);
            let Some([old, new]) = self.logarithms_around(other, runs, place) else {
                continue;
            };

            let size = difference(&old, &new, noise);
            let reach = quantile(STAYED_P, noise.freedom) * noise.error([old.len(), new.len()]);
            found.push(ReferenceMove {
                target: other.key.target.clone(),
                ratio: size.exp(),
                low: (size - reach).exp(),
                high: (size + reach).exp(),
            });
        }
        found
    }

    /// Returns the logarithms of another target's points among `runs`, before the run `place` and
    /// from it on; `None` if they are too few. Those with another build or config than right after
    /// the change do not count, nor do those beyond them.
    fn logarithms_around(
        &self,
        other: &RawSeries,
        runs: RangeInclusive<usize>,
        place: usize,
    ) -> Option<[Vec<f64>; 2]> {
        let inside = other.points.iter().filter(|point| runs.contains(&point.run));
        let (old, new): (Vec<_>, Vec<_>) = inside.partition(|point| point.run < place);

        let facts = |run: usize| self.runs[run].target(&other.key.target);
        let now = facts(new.first()?.run)?;
        let is_same = |point: &&&HistoryPoint| {
            facts(point.run)
                .is_some_and(|facts| facts.build == now.build && facts.config == now.config)
        };

        let before = old.iter().rev().take_while(is_same);
        let since = new.iter().take_while(is_same);
        let old_logs: Vec<f64> = before.map(|point| point.mean.ln()).collect();
        let new_logs: Vec<f64> = since.map(|point| point.mean.ln()).collect();
        if old_logs.len().min(new_logs.len()) < REFERENCE_POINTS_MIN {
            return None;
        }

        Some([old_logs, new_logs])
    }
}

/// Returns the difference between the means of two groups of points, without what outliers add.
fn difference(old: &[f64], new: &[f64], noise: &Noise) -> f64 {
    let [old, new] = [old, new].map(|values| {
        let center = median(values.iter().copied()).unwrap_or(0.0);
        let clipped: f64 = values.iter().map(|value| noise.clip(value - center)).sum();
        center + clipped / values.len().max(1) as f64
    });
    new - old
}

fn assay_difference(before: &RunSummary, after: &RunSummary) -> Vec<FactDifference> {
    let facts = |run: &RunSummary| Facts::from([("assay".to_owned(), run.assay.clone())]);
    differences(&facts(before), &facts(after))
}

/// Returns the cause of a change that no other machine explains.
fn cause_on_one_machine(found: &Circumstances, change: &LevelChange) -> Cause {
    let is_same_target = found.build.is_empty() && found.config.is_empty();
    let is_other_assay = !found.assay.is_empty();
    if is_same_target && !is_other_assay {
        return Cause::SameTarget;
    }

    let size = change.ratio.ln();
    if found.references.iter().any(|reference| has_moved(reference, size)) {
        Cause::Reference
    } else if found.references.iter().any(|reference| has_stayed(reference, size)) {
        if is_same_target { Cause::SameTarget } else { Cause::Target }
    } else if is_other_assay {
        Cause::Assay
    } else if found.references.is_empty() {
        Cause::Target
    } else {
        Cause::Unclear
    }
}

/// Returns whether a reference moved as much as it takes to be the cause of a change whose logarithm
/// is `size`.
fn has_moved(reference: &ReferenceMove, size: f64) -> bool {
    let moved = reference.ratio.ln() * size.signum();
    let reach = (reference.high / reference.low).ln() / 2.0;
    // The reach is that of a 95% interval; a 99% interval is wider by about a third.
    let is_sure = moved > reach * WIDER;
    is_sure && moved >= MOVED_SHARE * size.abs()
}

/// Returns whether a reference moved so little that it cannot be the cause of a change whose
/// logarithm is `size`.
fn has_stayed(reference: &ReferenceMove, size: f64) -> bool {
    let furthest = if size > 0.0 { reference.high } else { reference.low };
    furthest.ln() * size.signum() < STAYED_SHARE * size.abs()
}

/// The width of a 99% interval relative to a 95% interval, for many points.
const WIDER: f64 = 1.31;
