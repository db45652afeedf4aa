//! Compares what sessions and the engine's threads waited for, state by state.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use record::CellKey;
use serde::Serialize;
use words::WaitView;

use super::mean::{Mean, difference_of, mean, mean_of};
use super::profile::CostDifference;
use super::student::{quantile, tails};
use super::{ComparedStep, Pairing, Sample, THROUGHPUT, family};
use crate::figures::index::RowIndex;
use crate::figures::{Row, SessionState, throughput};

/// The state of a session that works and waits for nothing that the engine knows of.
const RUNNING: &str = "running";
/// States that sessions were seen in fewer times than this, in both targets together, are not
/// compared.
const SIGHTINGS_MIN: f64 = 10.0;

/// The states of sessions in one step of a target and of its base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedWaits {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The states that were compared: first those whose change is shown, the largest change first.
    pub states: Vec<StateDifference>,
}

/// The time of all sessions in a state, in two targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateDifference {
    /// The view.
    pub view: WaitView,
    /// The state's name in the view.
    pub name: String,
    /// The time per operation.
    #[serde(flatten)]
    pub time: CostDifference,
}

impl StateDifference {
    fn shown_and_large_first(&self, other: &Self) -> Ordering {
        let by_shown = other.time.is_shown.cmp(&self.time.is_shown);
        let size = |state: &Self| state.time.difference_us.abs();
        by_shown.then(size(other).total_cmp(&size(self)))
    }

    /// Returns whether sessions in this state wait for something that the engine names.
    pub fn is_wait(&self) -> bool {
        self.view == WaitView::Engine && self.name != RUNNING
    }
}

/// Compares the states of sessions, step by step. `compared` says which repeats count, and how they
/// are paired. The states of all steps are one family of the error rate.
pub(super) fn compare_waits(
    index: &RowIndex<'_>,
    compared: &[ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<ComparedWaits> {
    let mut estimated = Vec::new();
    for step in compared.iter().filter(|step| step.metric == THROUGHPUT) {
        if let Some(repeats) = Repeats::of(index, step, base) {
            estimated.push((step, repeats.estimates()));
        }
    }

    let states = estimated.iter().flat_map(|(_, states)| states);
    let p_values: Vec<f64> = states.map(StateEstimate::p_value).collect();
    let level = family::level(&p_values, error_rate);

    let mut all = Vec::new();
    for (step, estimates) in estimated {
        let mut states: Vec<StateDifference> =
            estimates.into_iter().map(|state| state.at(level)).collect();
        states.sort_by(StateDifference::shown_and_large_first);

        if !states.is_empty() {
            all.push(ComparedWaits {
                cell: step.cell.clone(),
                workload: step.workload.clone(),
                step: step.step.clone(),
                states,
            });
        }
    }
    all
}

/// The difference of the time in a state, before the family is decided.
struct StateEstimate {
    view: WaitView,
    name: String,
    base_us: f64,
    target_us: f64,
    difference: Mean,
}

impl StateEstimate {
    fn p_value(&self) -> f64 {
        tails(self.difference.t(), self.difference.freedom)
    }

    fn at(self, level: f64) -> StateDifference {
        let Mean { center, error, freedom } = self.difference;
        StateDifference {
            time: CostDifference {
                base_us: self.base_us,
                target_us: self.target_us,
                difference_us: center,
                margin_us: quantile(level, freedom) * error,
                is_shown: self.p_value() <= level,
            },
            view: self.view,
            name: self.name,
        }
    }
}

/// The repeats of a step that are compared with each other.
pub(super) struct Repeats<'a> {
    pub(super) base: Vec<&'a Row>,
    pub(super) target: Vec<&'a Row>,
    pub(super) pairing: Pairing,
}

impl<'a> Repeats<'a> {
    /// Returns the repeats of a step; `None` if there is only one, or a row is missing.
    pub(super) fn of(index: &RowIndex<'a>, step: &ComparedStep, base: &str) -> Option<Self> {
        let target = &step.cell.target;
        let of_target = match step.pairing {
            Pairing::Single => return None,
            // Pairs are of the same run and repeat.
            Pairing::Paired => &step.base_values,
            Pairing::Independent => &step.values,
        };

        let repeats = Self {
            base: rows_of(index, step, base, &step.base_values)?,
            target: rows_of(index, step, target, of_target)?,
            pairing: step.pairing,
        };

        // States of two engines have different meanings.
        let is_alike = repeats.base.first()?.engine == repeats.target.first()?.engine;
        is_alike.then_some(repeats)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'a Row> {
        self.target.iter().chain(&self.base).copied()
    }

    /// Returns the mean difference between the values of the target's repeats and of the base's, in
    /// pairs if the repeats are. Its standard error is at least `floor`.
    pub(super) fn difference(&self, base: &[f64], target: &[f64], floor: f64) -> Mean {
        if self.pairing == Pairing::Paired {
            let pairs = base.iter().zip(target);
            let differences: Vec<f64> = pairs.map(|(base, target)| target - base).collect();
            mean_of(&differences, floor)
        } else {
            difference_of(base, target, floor)
        }
    }

    /// Returns the differences of all states in the views that apply to all repeats.
    fn estimates(&self) -> Vec<StateEstimate> {
        let mut estimates = Vec::new();
        for view in WaitView::ALL {
            if self.all().all(|row| row.waits(view).is_some()) {
                estimates.extend(self.estimates_in(view));
            }
        }
        estimates
    }

    fn estimates_in(&self, view: WaitView) -> Vec<StateEstimate> {
        // PostgreSQL 17 spells `WALSync` as `WalSync`.
        let keys: BTreeSet<String> =
            self.states(view).map(|state| state.name.to_lowercase()).collect();
        keys.iter().filter_map(|key| self.estimate(view, key)).collect()
    }

    /// Returns the states of all repeats in a view.
    fn states(&self, view: WaitView) -> impl Iterator<Item = &'a SessionState> {
        self.all().filter_map(move |row| row.waits(view)).flat_map(|waits| &waits.states)
    }

    /// Returns the difference of one state, whose name is `key` in lower case; `None` if it was
    /// seen too rarely, or a repeat has no time per operation.
    fn estimate(&self, view: WaitView, key: &str) -> Option<StateEstimate> {
        let mut alike: Vec<&SessionState> = self.states(view).collect();
        alike.retain(|state| state.name.to_lowercase() == key);
        let name = alike.first()?.name.clone();
        let sightings: Option<f64> = alike.iter().map(|state| state.sightings).sum();

        let base_times = times_of(&self.base, view, key)?;
        let target_times = times_of(&self.target, view, key)?;
        if sightings.is_some_and(|sightings| sightings < SIGHTINGS_MIN) {
            return None;
        }

        // Repeats that happen to agree still have the error of counting.
        let floor = (counting_variance(&base_times) + counting_variance(&target_times)).sqrt();
        let base: Vec<f64> = base_times.iter().map(|time| time.us).collect();
        let target: Vec<f64> = target_times.iter().map(|time| time.us).collect();

        Some(StateEstimate {
            view,
            name,
            base_us: mean(&base),
            target_us: mean(&target),
            difference: self.difference(&base, &target, floor),
        })
    }
}

/// Returns the rows of a target's repeats; `None` if one is missing.
fn rows_of<'a>(
    index: &RowIndex<'a>,
    step: &ComparedStep,
    target: &str,
    samples: &[Sample],
) -> Option<Vec<&'a Row>> {
    let rows = samples.iter().map(|sample| {
        let mut rows = index.rows(step.place(), target);
        rows.find(|row| sample.is_of(row))
    });
    rows.collect()
}

fn times_of(rows: &[&Row], view: WaitView, key: &str) -> Option<Vec<Time>> {
    rows.iter().map(|row| Time::of(row, view, key)).collect()
}

/// The time in a state in one repeat.
struct Time {
    us: f64,
    /// Its variance by counting alone.
    variance: f64,
}

impl Time {
    fn of(row: &Row, view: WaitView, key: &str) -> Option<Self> {
        let throughput = throughput(row).filter(|throughput| *throughput > 0.0)?;
        let waits = row.waits(view)?;
        let state = waits.states.iter().find(|state| state.name.to_lowercase() == *key);

        // Without samples the engine measured times, which have no error of counting.
        if waits.samples == 0.0 {
            let us = state.map_or(Some(0.0), |state| state.us_per_op)?;
            return Some(Self { us, variance: 0.0 });
        }

        let us_per_sighting = 1e6 / (waits.samples * throughput);
        let sightings = state.and_then(|state| state.sightings).unwrap_or(0.0);
        Some(Self {
            us: us_per_sighting * sightings,
            // A state that was not seen may still have happened.
            variance: us_per_sighting.powi(2) * (sightings + 1.0),
        })
    }
}

/// Returns the variance of the mean of repeats by counting alone.
fn counting_variance(times: &[Time]) -> f64 {
    let count = times.len() as f64;
    times.iter().map(|time| time.variance).sum::<f64>() / count.powi(2)
}

#[cfg(test)]
mod tests {
    use record::{Status, StepKind};
    use words::Random;

    use super::*;
    use crate::compare::CompareOptions;
    use crate::figures::{Figures, Waits};

    /// Adds five repeats of a target in which sessions were seen waiting so many times in a
    /// thousand samples, give or take one in a hundred.
    fn add(figures: &mut Figures, target: &str, states: &[(&str, f64)], random: &mut Random) {
        for repeat in 1..=5 {
            let noise = 0.99 + 0.02 * random.fraction();
            let state = |(name, sightings): &(&str, f64)| {
                let chance = 2.0 * (random.fraction() - 0.5) * (3.0 * sightings).sqrt();
                let sightings = (sightings + chance).round().max(0.0);
                SessionState {
                    name: (*name).to_owned(),
                    sightings: Some(sightings),
                    percent: sightings / 10.0,
                    us_per_op: Some(noise * sightings / 10.0),
                }
            };
            let states = states.iter().map(state);
            let waits = Waits {
                samples: 1000.0,
                states: states.filter(|it| it.percent > 0.0).collect(),
                ..Waits::default()
            };
            figures.rows.push(Row {
                waits: vec![waits],
                cell: CellKey::new(target, None, 1, repeat),
                step: "l.i1".into(),
                valid: true,
                status: Status::Complete,
                reported: true,
                kind: StepKind::Load,
                metrics: [("ips", Some(10_000.0 / noise))].into(),
                ..Row::default()
            });
        }
    }

    fn compared(figures: &Figures) -> ComparedWaits {
        let options = CompareOptions { base: "old".to_owned(), ..CompareOptions::default() };
        crate::compare::compare(figures, &options).waits.remove(0)
    }

    #[test]
    fn a_repeat_in_which_nothing_was_done_has_no_time_per_operation() {
        let (mut figures, mut random) = (Figures::default(), Random::new(1));
        for target in ["old", "new"] {
            add(&mut figures, target, &[("Lock:tuple", 900.0)], &mut random);
        }
        figures.rows[7].metrics.insert("ips", Some(0.0));
        let options = CompareOptions { base: "old".to_owned(), ..CompareOptions::default() };
        assert_eq!(crate::compare::compare(&figures, &options).waits, []);
    }

    #[test]
    fn a_wait_that_grew_heads_the_difference_and_its_time_is_right() {
        for seed in 0..20 {
            let (mut figures, mut random) = (Figures::default(), Random::new(seed));
            let base = [("running", 300.0), ("IO:WALSync", 100.0), ("IO:DataFileRead", 50.0)];
            add(&mut figures, "old", &base, &mut random);
            let target = [("running", 300.0), ("IO:WalSync", 500.0), ("IO:DataFileRead", 50.0)];
            add(&mut figures, "new", &target, &mut random);
            let compared = compared(&figures);
            let first = &compared.states[0];
            assert_eq!(first.name, "IO:WalSync");
            assert!(first.time.is_shown, "{first:?}");
            assert!((first.time.difference_us - 40.0).abs() <= first.time.margin_us, "{first:?}");
            assert_eq!(compared.states.len(), 3);
        }
    }

    #[test]
    fn equal_targets_show_a_wait_in_at_most_the_error_rate() {
        let mut shown = 0;
        for seed in 0..200 {
            let (mut figures, mut random) = (Figures::default(), Random::new(1000 + seed));
            let states = [
                ("running", 300.0),
                ("IO:WALSync", 100.0),
                ("Lock:tuple", 4.0),
                ("LWLock:WALWrite", 20.0),
            ];
            add(&mut figures, "old", &states, &mut random);
            add(&mut figures, "new", &states, &mut random);
            let compared = compared(&figures);
            shown += u32::from(compared.states[0].time.is_shown);
        }
        // 10 are expected at most; more than 18 happen in one of 200 cases.
        assert!(shown <= 18, "{shown} of 200");
    }

    #[test]
    fn a_wait_that_was_seen_only_once_in_each_repeat_is_not_compared() {
        let (mut figures, mut random) = (Figures::default(), Random::new(1));
        add(&mut figures, "old", &[("running", 300.0)], &mut random);
        add(&mut figures, "new", &[("running", 300.0)], &mut random);
        for row in &mut figures.rows[5..] {
            row.waits[0].states.push(SessionState {
                name: "Lock:tuple".to_owned(),
                sightings: Some(1.0),
                percent: 0.1,
                us_per_op: Some(0.1),
            });
        }
        let states = compared(&figures).states;
        assert_eq!(states.len(), 1, "{states:?}");
    }
}
