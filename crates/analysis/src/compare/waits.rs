//! Compares what sessions and the engine's threads waited for, state by state.

use std::collections::BTreeSet;

use record::CellKey;
use serde::Serialize;
use words::WaitView;

use super::ComparedStep;
use super::amounts::{Amount, AmountReader, ComparedRepeats, NamedAmount, compare_amounts};
use super::profile::CostDifference;
use crate::figures::index::RowIndex;
use crate::figures::{Row, SessionState, throughput};

/// The state of a session that works and waits for nothing that the engine knows of.
const RUNNING: &str = "running";
/// States that sessions were seen in fewer times than this, in both targets together, are not
/// compared.
const SIGHTINGS_MIN: f64 = 10.0;

/// The prefix of PostgreSQL's locks within shared memory, in lower case.
const LIGHTWEIGHT_LOCK: &str = "lwlock:";
/// The states that a release of an engine renamed: the old name and the new one, without case,
/// underscores and the ending of locks. Those of PostgreSQL are from 13 on: compare the wait events in
/// its manuals of 12 and 13. For the others see "General Thread States" in MySQL's manual.
const RENAMED: [[&str; 2]; 12] = [
    ["lwlock:clog", "lwlock:xactbuffer"],
    ["lwlock:clogcontrol", "lwlock:xactslru"],
    ["lwlock:subtrans", "lwlock:subtransbuffer"],
    ["lwlock:subtranscontrol", "lwlock:subtransslru"],
    ["lwlock:multixactoffset", "lwlock:multixactoffsetbuffer"],
    ["lwlock:multixactoffsetcontrol", "lwlock:multixactoffsetslru"],
    ["lwlock:multixactmember", "lwlock:multixactmemberbuffer"],
    ["lwlock:multixactmembercontrol", "lwlock:multixactmemberslru"],
    ["lwlock:proc", "lwlock:lockfastpath"],
    ["ipc:cloggroupupdate", "ipc:xactgroupupdate"],
    ["lock:speculative token", "lock:spectoken"],
    // MySQL 8.0.17 counts reading rows as a part of executing.
    ["sending data", "executing"],
];

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
pub(super) fn compare_waits(
    index: &RowIndex<'_>,
    compared: &[ComparedStep],
    base: &str,
    error_rate: f64,
) -> Vec<ComparedWaits> {
    let mut all = Vec::new();
    for amounts in compare_amounts::<WaitTimes>(index, compared, base, error_rate) {
        let states = amounts.differences.into_iter().map(|amount| StateDifference {
            view: amount.name.view,
            name: amount.name.name,
            time: CostDifference {
                base_us: amount.base,
                target_us: amount.target,
                difference_us: amount.difference,
                margin_us: amount.margin,
                is_shown: amount.is_shown,
            },
        });
        all.push(ComparedWaits {
            cell: amounts.step.cell.clone(),
            workload: amounts.step.workload.clone(),
            step: amounts.step.step.clone(),
            states: states.collect(),
        });
    }
    all
}

/// The times in states, in microseconds per operation.
struct WaitTimes;

/// A state in one of the views.
struct ViewedState {
    view: WaitView,
    name: String,
}

impl AmountReader for WaitTimes {
    type Name = ViewedState;

    /// Returns the times of all states in the views that apply to all repeats.
    fn read(repeats: &ComparedRepeats<'_>) -> Vec<NamedAmount<ViewedState>> {
        let mut times = Vec::new();
        for view in WaitView::ALL {
            if repeats.all().all(|row| row.waits(view).is_some()) {
                times.extend(times_in(view, repeats));
            }
        }
        times
    }
}

fn times_in(view: WaitView, repeats: &ComparedRepeats<'_>) -> Vec<NamedAmount<ViewedState>> {
    let names = StateNames::of(view, repeats);
    let keys: BTreeSet<String> =
        states(view, repeats).map(|state| names.key_of(&state.name)).collect();
    keys.iter().filter_map(|key| times_of(&names, key, repeats)).collect()
}

/// The names of the states in a view of two targets.
struct StateNames {
    view: WaitView,
    /// The states that one of the targets knows by their old name, and the other does not.
    renamed: Vec<[&'static str; 2]>,
}

impl StateNames {
    fn of(view: WaitView, repeats: &ComparedRepeats<'_>) -> Self {
        let has_state = |rows: &[&Row], key: &str| {
            let waits = rows.iter().filter_map(|row| row.waits(view));
            let mut states = waits.flat_map(|waits| &waits.states);
            states.any(|state| plain_key(view, &state.name) == key)
        };

        let mut renamed = RENAMED.to_vec();
        renamed.retain(|[old, _]| has_state(&repeats.base, old) != has_state(&repeats.target, old));
        Self { view, renamed }
    }

    /// Returns the name of a state by which it is the same in both targets.
    fn key_of(&self, name: &str) -> String {
        let key = plain_key(self.view, name);
        let renamed = self.renamed.iter().find(|[old, _]| *old == key);
        renamed.map_or(key, |[_, new]| (*new).to_owned())
    }
}

/// Returns the name of a state by which it is the same in releases that spell it differently.
fn plain_key(view: WaitView, name: &str) -> String {
    // PostgreSQL 17 spells `WALSync` as `WalSync`.
    let key = name.to_lowercase();

    // Since PostgreSQL 13, `WALWriteLock` is `WALWrite`, and `wal_insert` is `WALInsert`.
    if view == WaitView::Engine && key.starts_with(LIGHTWEIGHT_LOCK) {
        key.strip_suffix("lock").unwrap_or(&key).replace('_', "")
    } else {
        key
    }
}

/// Returns the states of all repeats in a view.
fn states<'a>(
    view: WaitView,
    repeats: &ComparedRepeats<'a>,
) -> impl Iterator<Item = &'a SessionState> {
    repeats.all().filter_map(move |row| row.waits(view)).flat_map(|waits| &waits.states)
}

/// Returns the times in the state with this [key](StateNames::key_of); `None` if it was seen too rarely,
/// or a repeat has no time per operation.
fn times_of(
    names: &StateNames,
    key: &str,
    repeats: &ComparedRepeats<'_>,
) -> Option<NamedAmount<ViewedState>> {
    let view = names.view;
    let mut alike: Vec<&SessionState> = states(view, repeats).collect();
    alike.retain(|state| names.key_of(&state.name) == key);

    // Of an old name and a new one, the new one is shown.
    let with_new_name = alike.iter().find(|state| state.name.to_lowercase() == key);
    let name = with_new_name.or(alike.first())?.name.clone();

    let sightings: Option<f64> = alike.iter().map(|state| state.sightings).sum();
    if sightings.is_some_and(|sightings| sightings < SIGHTINGS_MIN) {
        return None;
    }

    Some(NamedAmount {
        name: ViewedState { view, name },
        base: times(&repeats.base, names, key)?,
        target: times(&repeats.target, names, key)?,
    })
}

fn times(rows: &[&Row], names: &StateNames, key: &str) -> Option<Vec<Amount>> {
    rows.iter().map(|row| time_of(row, names, key)).collect()
}

/// Returns the time in a state in one repeat; `None` if nothing was done in it.
fn time_of(row: &Row, names: &StateNames, key: &str) -> Option<Amount> {
    let throughput = throughput(row).filter(|throughput| *throughput > 0.0)?;
    let waits = row.waits(names.view)?;
    // A later release may have one name for what were two states.
    let alike = || waits.states.iter().filter(|state| names.key_of(&state.name) == key);

    // Without samples the engine measured times, which have no error of counting.
    if waits.samples == 0.0 {
        let us = alike().try_fold(0.0, |sum, state| Some(sum + state.us_per_op?))?;
        return Some(Amount { per_operation: us, variance: 0.0 });
    }

    let us_per_sighting = 1e6 / (waits.samples * throughput);
    let sightings = alike().fold(0.0, |sum, state| sum + state.sightings.unwrap_or(0.0));
    Some(Amount {
        per_operation: us_per_sighting * sightings,
        // A state that was not seen may still have happened.
        variance: us_per_sighting.powi(2) * (sightings + 1.0),
    })
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
    fn a_state_that_a_release_renamed_is_one_state_with_its_new_name() {
        let old = [
            ("LWLock:WALWriteLock", 300.0),
            ("LWLock:buffer_content", 150.0),
            ("LWLock:CLogControlLock", 150.0),
            ("sending data", 100.0),
            ("executing", 50.0),
        ];
        let new = [
            ("LWLock:WALWrite", 300.0),
            ("LWLock:BufferContent", 150.0),
            ("LWLock:XactSLRU", 150.0),
            ("executing", 150.0),
        ];

        for [base, target] in [[&old[..], &new], [&new, &old]] {
            let (mut figures, mut random) = (Figures::default(), Random::new(1));
            add(&mut figures, "old", base, &mut random);
            add(&mut figures, "new", target, &mut random);

            let states = compared(&figures).states;
            assert_eq!(states.len(), new.len(), "{states:?}");
            for StateDifference { name, time, .. } in &states {
                assert!(new.iter().any(|(known, _)| known == name), "{name}");
                assert!(time.base_us > 10.0 && time.difference_us.abs() < 5.0, "{name}: {time:?}");
            }
        }
    }

    #[test]
    fn states_that_both_targets_know_by_their_old_names_stay_apart() {
        let (mut figures, mut random) = (Figures::default(), Random::new(1));
        for target in ["old", "new"] {
            add(&mut figures, target, &[("sending data", 100.0), ("executing", 50.0)], &mut random);
        }
        assert_eq!(compared(&figures).states.len(), 2);
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
