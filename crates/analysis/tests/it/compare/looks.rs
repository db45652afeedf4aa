//! Runs that are looked at after each repeat: how often they are wrong, and what they decide.

use analysis::compare::{Compared, THROUGHPUT, Verdict, compare};
use analysis::figures::{Figures, Looks};

use super::machine::{Drift, Noise, Random, Truth, first_repeats};
use super::simulated::{options, shown};
use crate::simulations::{at_most, simulations};

const REPEATS: u32 = 15;
const RUNS: u32 = 500;

/// A run of equal targets to which repeats are added.
const EQUAL: Truth = Truth { repeats: REPEATS, looks: Looks::Growing, ..Truth::EQUAL };

/// Returns the share of runs in which `found` holds after any of their repeats, or at their end.
fn share_at_any_time(truth: Truth, found: impl Fn(&Compared) -> bool) -> f64 {
    let runs = simulations(RUNS);
    let mut random = Random::new(7);
    let hits = (0..runs).filter(|_| {
        let figures = truth.measure(&mut random);
        let mut looks = 2..=truth.repeats;
        let is_found =
            looks.any(|repeats| found(&compare(&first_repeats(&figures, repeats), &options())));
        is_found || found(&compare(&at_its_end(figures), &options()))
    });
    hits.count() as f64 / f64::from(runs)
}

/// Returns the figures of a run whose time is up, if it may grow.
fn at_its_end(figures: Figures) -> Figures {
    let looks = match figures.looks {
        Looks::Growing => Looks::TimeUp,
        other => other,
    };
    Figures { looks, ..figures }
}

fn is_changed(compared: &Compared) -> bool {
    shown(compared) > 0
}

fn is_unchanged(compared: &Compared) -> bool {
    let mut throughput = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    throughput.any(|row| row.verdict == Verdict::Equal)
}

/// Returns the largest share that chance makes of a rate of 5%.
fn rate_and_chance() -> f64 {
    at_most(0.05, simulations(RUNS))
}

#[test]
fn looking_after_each_repeat_makes_no_more_errors_than_the_rate_says() {
    let once = Truth { looks: Looks::Once, ..EQUAL };
    let share = share_at_any_time(once, is_changed);
    assert!(share > 0.1, "intervals for one look are wrong too often: {share}");

    for (noise, drift, steps) in [
        (Noise::Normal, Drift::None, 1),
        (Noise::Normal, Drift::Linear, 1),
        (Noise::HeavyTailed, Drift::None, 1),
        (Noise::Normal, Drift::Cells, 6),
    ] {
        let equal = Truth { noise, drift, steps, ..EQUAL };
        let share = share_at_any_time(equal, is_changed);
        assert!(share <= rate_and_chance(), "{noise:?} {drift:?} {steps}: {share}");
    }
}

#[test]
fn a_change_that_matters_is_called_no_change_at_most_as_often_as_the_rate_says() {
    for noise in [Noise::Normal, Noise::HeavyTailed] {
        let slower = Truth { noise, ratios: &[0.97], ..EQUAL };
        let share = share_at_any_time(slower, is_unchanged);
        assert!(share <= rate_and_chance(), "{noise:?}: {share}");
    }
}

#[test]
fn a_change_of_five_spreads_and_none_at_all_are_decided() {
    let share = share_at_any_time(Truth { ratios: &[0.95], ..EQUAL }, is_changed);
    assert!(share > 0.99, "{share}");
    let share = share_at_any_time(EQUAL, is_unchanged);
    assert!(share > 0.95, "{share}");
}

#[test]
fn an_open_ended_run_says_so_and_has_wider_intervals() {
    let mut random = Random::new(1);
    let figures = Truth { steps: 6, ..EQUAL }.measure(&mut random);
    let at_any_time = compare(&figures, &options());
    assert_eq!(at_any_time.looks, Looks::Growing);
    let notes = at_any_time.notes.join("\n");
    assert!(notes.contains("intervals hold at any time"), "{notes}");

    let once = compare(&Figures { looks: Looks::Once, ..figures }, &options());
    assert_eq!(once.looks, Looks::Once);
    for (wide, narrow) in at_any_time.rows.iter().zip(&once.rows) {
        let [wide, narrow] = [wide, narrow].map(|row| row.interval.unwrap());
        assert!(wide.low < narrow.low && wide.high > narrow.high, "{wide:?} {narrow:?}");
    }
}
