//! Searches for a change whose place is known, among versions on a noisy machine. The figures are
//! in `docs/bisect.md`.

use analysis::bisect::{
    BisectOutcome, ChangeEnd, Finding, Judgement, MeasuredBy, Next, Search, Trial, TrialKind,
    TrialResult, judge,
};
use analysis::compare::THROUGHPUT;
use analysis::figures::{Figures, Looks, StartedCell};
use record::CellKey;

use crate::compare::machine::{Random, row};
use crate::simulations::{at_most, simulations};
use crate::tell;

/// The candidates of a search.
const CANDIDATES: usize = 32;
/// The repeats after which a trial is judged for the first time, and those after which it is given
/// up.
const REPEATS: (u32, u32) = (3, 40);
/// The threshold for the ends, where nothing is known about the change.
const THRESHOLD_MIN: f64 = 0.03;
const STEP: &str = "s0";

/// A list of versions, of which one is faster or slower than those before.
struct Versions<'r> {
    random: &'r mut Random,
    /// The first version with the change.
    changed_at: usize,
    /// Changed / unchanged.
    ratio: f64,
    /// The standard deviation of the logarithm of a value.
    noise: f64,
    /// The cells that were measured.
    cell_count: usize,
}

impl Versions<'_> {
    fn level(&self, version: usize) -> f64 {
        if version >= self.changed_at { self.ratio } else { 1.0 }
    }

    /// Measures a trial until it is decided.
    fn measure(&mut self, trial: &Trial, threshold: f64) -> TrialResult {
        self.measure_from(trial, threshold, THRESHOLD_MIN)
    }

    /// Measures a trial in which a change below `least` is none.
    fn measure_from(&mut self, trial: &Trial, threshold: f64, least: f64) -> TrialResult {
        let candidates = trial.candidates();
        let targets: Vec<String> = candidates.iter().map(|at| format!("v{at}.base")).collect();
        let judgement = Judgement {
            step: STEP,
            by: &MeasuredBy::Repeats(THROUGHPUT.to_owned()),
            targets: &targets,
            level: trial.level,
            threshold,
            least,
        };

        let mut figures = Figures { looks: Looks::AnyTime, ..Figures::default() };
        for repeat in 1..=REPEATS.1 {
            let mut order: Vec<usize> = (0..candidates.len()).collect();
            if repeat % 2 == 0 {
                order.reverse();
            }
            for (index, &at) in order.iter().enumerate() {
                let level = self.level(candidates[at]);
                let value = 1000.0 * level * (self.noise * self.random.normal()).exp();
                figures.rows.push(row(&targets[at], repeat, STEP, value));
                let begun = u64::from(repeat) * 10 + index as u64;
                figures.begun.push(StartedCell {
                    run: 0,
                    machine: 0,
                    cell: CellKey::new(&targets[at], None, 1, repeat),
                    invocation: 1,
                    started_unix_ns: begun * 1_000_000_000,
                    database: None,
                });
                self.cell_count += 1;
            }
            if repeat >= REPEATS.0 {
                let result = judge(&figures, &judgement);
                if result.is_decided() {
                    return result;
                }
            }
        }
        judge(&figures, &judgement)
    }
}

/// The results of many searches.
#[derive(Default)]
struct Tally {
    /// The change is found, confirmed, and between the right neighbors.
    right: u32,
    /// A change is confirmed between wrong neighbors.
    wrong: u32,
    /// The search says that it could not find out.
    undecided: u32,
    /// The ends do not differ.
    no_change: u32,
    trials: usize,
    cells: usize,
}

/// Searches for a change of this size, `times` times.
fn searches(candidates: usize, ratio: f64, noise: f64, times: u32) -> Tally {
    let mut random = Random::new(7);
    let mut tally = Tally::default();
    for _ in 0..times {
        let changed_at = 1 + (random.uniform() * (candidates - 1) as f64) as usize;
        let mut versions =
            Versions { random: &mut random, changed_at, ratio, noise, cell_count: 0 };
        let mut search = Search { count: candidates, ..Search::default() };
        let mut threshold = THRESHOLD_MIN;
        let outcome = loop {
            match search.next() {
                Next::End(outcome) => break outcome,
                Next::Measure(trial) => {
                    let result = versions.measure(&trial, threshold);
                    if trial.kind == TrialKind::Ends {
                        threshold = result.links[0].threshold_between(THRESHOLD_MIN);
                    }
                    search.ended.push((trial, result));
                }
            }
        };

        tally.trials += search.ended.len();
        tally.cells += versions.cell_count;
        match outcome {
            BisectOutcome::NoChange => tally.no_change += 1,
            BisectOutcome::EndsUndecided => tally.undecided += 1,
            BisectOutcome::Changes(changes) => {
                let mut confirmed =
                    changes.iter().filter(|change| change.end == ChangeEnd::Confirmed).peekable();
                let is_wrong = |newer: usize| newer != changed_at || ratio == 1.0;
                if confirmed.peek().is_none() {
                    tally.undecided += 1;
                } else if confirmed.any(|change| is_wrong(change.newer)) {
                    tally.wrong += 1;
                } else {
                    tally.right += 1;
                }
            }
        }
    }
    tally
}

/// Prints a line of the table.
fn print(candidates: usize, ratio: f64, noise: f64, times: u32) -> Tally {
    let tally = searches(candidates, ratio, noise, times);
    let share = |count: u32| 100.0 * f64::from(count) / f64::from(times);
    let mean = |count: usize| count as f64 / f64::from(times);
    tell!(
        "{candidates} candidates, change {:.0}%, noise {:.0}%: right {:.1}%, wrong {:.1}%, not found out {:.1}%, \
         no change {:.1}%; {:.1} trials, {:.0} cells",
        100.0 * (1.0 - ratio),
        100.0 * noise,
        share(tally.right),
        share(tally.wrong),
        share(tally.undecided),
        share(tally.no_change),
        mean(tally.trials),
        mean(tally.cells)
    );
    tally
}

/// Returns the largest number of errors that chance makes of the stated rate.
fn errors_at_most(times: u32) -> u32 {
    (at_most(analysis::bisect::ERROR_RATE, times) * f64::from(times)) as u32
}

#[test]
fn a_wrong_version_is_named_at_most_at_the_error_rate() {
    let times = simulations(40);
    for (percent, noise) in [(20.0, 0.01), (20.0, 0.05), (10.0, 0.02), (5.0, 0.01), (3.0, 0.01)] {
        let tally = print(CANDIDATES, 1.0 - percent / 100.0, noise, times);
        assert!(tally.wrong <= errors_at_most(times));
        assert!(tally.right >= times * 8 / 10 || percent < 5.0);
    }
}

#[test]
fn versions_that_are_equal_show_no_change() {
    let times = simulations(100);
    for noise in [0.01, 0.02] {
        let tally = print(CANDIDATES, 1.0, noise, times);
        assert!(tally.wrong + tally.right <= errors_at_most(times));
        assert!(tally.trials < 2 * times as usize, "the search ends after the ends");
    }
}

/// A change of 1%, which a noise of 0.05% shows at once.
#[test]
fn a_change_that_is_smaller_than_the_least_is_none() {
    let trial = Trial { kind: TrialKind::Ends, low: 0, high: 1, level: 0.05 };
    let finding = |threshold: f64, least: f64| {
        let mut random = Random::new(7);
        let (ratio, noise) = (0.99, 0.0005);
        let mut versions =
            Versions { random: &mut random, changed_at: 1, ratio, noise, cell_count: 0 };
        versions.measure_from(&trial, threshold, least).links[0].finding
    };

    assert_eq!(finding(0.03, 0.03), Finding::Same);
    assert_eq!(finding(0.5, 0.03), Finding::Same);
    assert_eq!(finding(0.5, 0.005), Finding::Differs, "half of a larger change hides none");
}

#[test]
fn measurements_grow_as_the_logarithm_of_the_candidates() {
    let trials = [8, 32, 128].map(|candidates| {
        let tally = print(candidates, 0.8, 0.01, 20);
        tally.trials as f64 / 20.0
    });
    // Four times as many candidates are two more halvings.
    assert!(trials[1] - trials[0] < 2.5 && trials[2] - trials[1] < 2.5, "{trials:?}");
}

/// The table of `docs/bisect.md`, which takes minutes.
#[test]
#[ignore = "a long simulation; its results are in the documentation"]
fn the_table_of_the_documentation() {
    for (ratio, noise) in [
        (1.0, 0.01),
        (1.0, 0.05),
        (0.97, 0.01),
        (0.95, 0.01),
        (0.95, 0.02),
        (0.9, 0.01),
        (0.9, 0.03),
        (0.8, 0.01),
        (0.8, 0.05),
    ] {
        print(CANDIDATES, ratio, noise, 1000);
    }
}
