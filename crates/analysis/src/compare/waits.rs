//! The states of the load's sessions, as the engine reported them, and how they differ between
//! targets.

use std::collections::BTreeSet;

use record::CellKey;
use serde::Serialize;
use words::WaitView;

use crate::compare::{
    ComparedStep, CostDifference, Mean, Pairing, Sample, THROUGHPUT, difference_of, level, mean,
    mean_of, quantile, tails,
};
use crate::figures::{Figures, Row, throughput};

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
    /// Returns whether sessions in this state wait for something that the engine names.
    pub fn is_wait(&self) -> bool {
        self.view == WaitView::Engine && self.name != RUNNING
    }
}

/// Compares the states of sessions, step by step. `compared` says which repeats count, and how they
/// are paired. The states of all steps are one family of the error rate.
pub(crate) fn compare_waits(
    figures: &Figures,
    compared: &[ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<ComparedWaits> {
    let steps = compared.iter().filter(|it| it.metric == THROUGHPUT);
    let estimates = steps.filter_map(|step| Some((step, estimates(figures, step, base)?)));
    let estimates: Vec<(&ComparedStep, Vec<StateEstimate>)> = estimates.collect();
    let all = estimates.iter().flat_map(|(_, states)| states);
    let p_values: Vec<f64> = all.map(StateEstimate::p_value).collect();
    let level = level(&p_values, error_rate);
    let compare = |(step, states): (&ComparedStep, Vec<StateEstimate>)| {
        let states = states.into_iter().map(|it| it.at(level));
        let mut states: Vec<StateDifference> = states.collect();
        let rank = |it: &StateDifference| (it.time.is_shown, it.time.difference_us.abs());
        states.sort_by(|a, b| {
            let ((a_shown, a), (b_shown, b)) = (rank(a), rank(b));
            b_shown.cmp(&a_shown).then(b.total_cmp(&a))
        });
        ComparedWaits {
            cell: step.cell.clone(),
            workload: step.workload.clone(),
            step: step.step.clone(),
            states,
        }
    };
    let compared = estimates.into_iter().map(compare);
    compared.filter(|it| !it.states.is_empty()).collect()
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

/// Returns the differences of all states of a step in the views that apply to all repeats; `None`
/// without repeats.
fn estimates(figures: &Figures, step: &ComparedStep, base: &str) -> Option<Vec<StateEstimate>> {
    if step.pairing == Pairing::Single {
        return None;
    }
    let row = |target: &str, sample: &Sample| -> Option<&Row> {
        step.rows_of(figures, target)
            .find(|row| (row.run, row.cell.repeat) == (sample.run, sample.repeat))
    };
    let rows = |target: &str, samples: &[Sample]| -> Option<Vec<&Row>> {
        samples.iter().map(|sample| row(target, sample)).collect()
    };
    let of_base = rows(base, &step.base_values)?;
    // Pairs are of the same run and repeat.
    let of_target = match step.pairing {
        Pairing::Paired => rows(&step.cell.target, &step.base_values)?,
        _ => rows(&step.cell.target, &step.values)?,
    };
    // States of two engines have different meanings.
    if of_base.first()?.engine != of_target.first()?.engine {
        return None;
    }
    let views = WaitView::ALL.into_iter();
    let estimates = views.filter_map(|view| {
        let waits = |rows: &[&Row]| rows.iter().all(|row| row.waits(view).is_some());
        let is_known = waits(&of_base) && waits(&of_target);
        is_known.then(|| in_view(view, &of_base, &of_target, step.pairing))
    });
    Some(estimates.flatten().collect())
}

/// Returns the differences of the states in one view.
fn in_view(
    view: WaitView,
    of_base: &[&Row],
    of_target: &[&Row],
    pairing: Pairing,
) -> Vec<StateEstimate> {
    let rows = || of_target.iter().chain(of_base);
    let states = || rows().filter_map(|it| it.waits(view)).flat_map(|it| &it.states);
    // PostgreSQL 17 spells `WALSync` as `WalSync`.
    let names: BTreeSet<String> = states().map(|it| it.name.to_lowercase()).collect();
    let estimate = |key: String| {
        let alike = || states().filter(|it| it.name.to_lowercase() == key);
        let sightings: Option<f64> = alike().map(|it| it.sightings).sum();
        let name = alike().next()?.name.clone();
        let times = |rows: &[&Row]| -> Option<Vec<Time>> {
            rows.iter().map(|row| Time::of(row, view, &key)).collect()
        };
        let (base, target) = (times(of_base)?, times(of_target)?);
        let floor = (counting_variance(&base) + counting_variance(&target)).sqrt();
        let us = |times: &[Time]| times.iter().map(|it| it.us).collect::<Vec<f64>>();
        let (base, target) = (us(&base), us(&target));
        let difference = match pairing {
            Pairing::Paired => {
                let pairs = base.iter().zip(&target);
                let differences: Vec<f64> = pairs.map(|(base, target)| target - base).collect();
                mean_of(&differences, floor)
            }
            _ => difference_of(&base, &target, floor),
        };
        let (base_us, target_us) = (mean(&base), mean(&target));
        let is_enough = sightings.is_none_or(|it| it >= SIGHTINGS_MIN);
        is_enough.then_some(StateEstimate { view, name, base_us, target_us, difference })
    };
    names.into_iter().filter_map(estimate).collect()
}

/// The time in a state in one repeat.
struct Time {
    us: f64,
    /// Its variance by counting alone.
    variance: f64,
}

impl Time {
    fn of(row: &Row, view: WaitView, key: &str) -> Option<Self> {
        let throughput = throughput(row).filter(|it| *it > 0.0)?;
        let waits = row.waits(view)?;
        let mut states = waits.states.iter();
        let state = states.find(|it| it.name.to_lowercase() == *key);
        if waits.samples == 0.0 {
            let us = state.map_or(Some(0.0), |it| it.us_per_op)?;
            return Some(Self { us, variance: 0.0 });
        }
        let us_per_sighting = 1e6 / (waits.samples * throughput);
        let sightings = state.and_then(|it| it.sightings).unwrap_or(0.0);
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
    times.iter().map(|it| it.variance).sum::<f64>() / count.powi(2)
}

#[cfg(test)]
mod tests {
    use record::{Status, StepKind};
    use words::Random;

    use super::*;
    use crate::compare::CompareOptions;
    use crate::figures::{SessionState, Waits};

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
