//! The frequency of correct verdicts where the truth is known. The figures are in
//! `docs/validation.md`.

use analysis::compare::{
    CompareOptions, Compared, ComparedStep, Gate, Pairing, Thresholds, Verdict, compare, gate,
};
use analysis::figures::Looks;

use super::machine::{BASE, DRIFTS, Drift, NOISES, Noise, Order, Random, Steps, Truth};
use crate::simulations::{at_most, simulations};

/// The figures of `docs/validation.md`: `cargo test -p analysis simulated -- --nocapture` shows
/// them.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => {{
        #[allow(clippy::print_stdout, reason = "the figures of docs/validation.md")]
        {
            println!($($text)*);
        }
    }};
}

pub fn options() -> CompareOptions {
    CompareOptions { base: BASE.to_owned(), metrics: Vec::new(), ..CompareOptions::default() }
}

fn is_shown(row: &ComparedStep) -> bool {
    matches!(row.verdict, Verdict::Faster | Verdict::Slower)
}

pub fn shown(compared: &Compared) -> usize {
    compared.rows.iter().filter(|row| is_shown(row)).count()
}

/// Returns the share of `times` runs in which `found` holds.
pub fn share(truth: Truth, times: u32, found: impl Fn(&Compared) -> bool) -> f64 {
    let mut random = Random::new(u64::from(truth.repeats) * 1000 + truth.steps as u64);
    let hits = (0..times).filter(|_| {
        let figures = truth.measure(&mut random);
        found(&compare(&figures, &options()))
    });
    hits.count() as f64 / f64::from(times)
}

/// Returns the share of runs in which anything is called different.
pub fn called_different(truth: Truth, times: u32) -> f64 {
    share(truth, times, |compared| shown(compared) > 0)
}

/// Equal targets: the first of them may be called different at most at the error rate.
fn check_equal(truth: Truth, times: u32) {
    let times = simulations(times);
    let share = share(truth, times, |compared| {
        compared.rows.iter().any(|row| row.cell.target == "new1.base" && is_shown(row))
    });
    let Truth { noise, drift, repeats, invocations, steps, spreads, .. } = truth;
    tell!(
        "equal: {repeats} repeats, {invocations} invocations, {steps} steps, {noise:?}, {drift:?}, {spreads:?}: \
         {:.1}% of {times}",
        share * 100.0
    );
    assert!(share <= at_most(0.05, times), "{truth:?}: {share}");
}

#[test]
fn equal_targets_are_called_different_at_most_as_often_as_the_error_rate() {
    for noise in NOISES {
        // Pairs have nothing of the level of their repeat, whatever the noise.
        let of_pairs = |drift: &Drift| *drift != Drift::Levels || noise == Noise::Normal;
        for drift in DRIFTS.into_iter().filter(of_pairs) {
            let truth = Truth { noise, drift, ..Truth::default() };
            check_equal(truth, 2000);
        }
    }
}

#[test]
fn neither_few_nor_many_repeats_show_a_difference() {
    for (repeats, times) in [(2, 1000), (3, 1000), (10, 500)] {
        for noise in NOISES {
            for drift in [Drift::None, Drift::Linear] {
                let truth = Truth { noise, drift, repeats, ..Truth::default() };
                check_equal(truth, times);
            }
        }
    }
}

#[test]
fn a_drift_that_begins_anew_in_each_invocation_calls_nothing_different() {
    for (repeats, invocations) in [(4, 2), (5, 2), (10, 2), (15, 3)] {
        for drift in [Drift::Linear, Drift::ToAndFro] {
            let truth = Truth { drift, repeats, invocations, ..Truth::default() };
            check_equal(truth, 300);
        }
    }
}

#[test]
fn in_a_family_of_equal_targets_anything_is_called_different_at_most_as_often_as_the_error_rate() {
    let steady = NOISES.map(|noise| (noise, Drift::None));
    for (noise, drift) in steady.into_iter().chain([(Noise::Normal, Drift::Linear)]) {
        let truth = Truth { noise, drift, ratios: &[1.0, 1.0], steps: 5, ..Truth::default() };
        check_equal(truth, 1000);
    }
}

#[test]
fn a_load_with_the_rhythm_of_the_cells_deceives_a_fixed_order_and_not_a_balanced_one() {
    let of = |order, drift| {
        let truth = Truth { order, drift, steps: 10, ..Truth::default() };
        called_different(truth, simulations(500))
    };
    assert!(of(Order::Fixed, Drift::EveryTwo) > 0.9);
    assert_eq!(of(Order::Balanced, Drift::EveryTwo), 0.0);
    assert!(of(Order::Random, Drift::EveryTwo) < 0.15);
    // No order is safe from every rhythm.
    assert_eq!(of(Order::Fixed, Drift::EveryFour), 0.0);
    assert!(of(Order::Balanced, Drift::EveryFour) > 0.1);
}

#[test]
fn noise_that_the_steps_of_a_cell_share_calls_nothing_different() {
    let truth = Truth { drift: Drift::Neighbors, steps: 10, ..Truth::default() };
    check_equal(truth, 500);
}

#[test]
fn noise_of_two_modes_deceives_two_repeats_and_not_five() {
    let [two, five] = [2, 5].map(|repeats| {
        let truth = Truth { noise: Noise::TwoModes, repeats, ..Truth::default() };
        called_different(truth, 400)
    });
    tell!("two modes: with 2 repeats {two}, with 5 {five}");
    assert!(two > 0.1 && five < 0.05, "{two} {five}");
}

#[test]
fn three_percent_less_is_shown_in_the_noise_of_one_percent_with_five_repeats() {
    let truth = Truth { ratios: &[0.97], ..Truth::default() };
    let slower = |compared: &Compared| compared.rows[0].verdict == Verdict::Slower;
    for (drift, least) in [(Drift::None, 0.8), (Drift::Linear, 0.8), (Drift::Levels, 0.8)] {
        let share = share(Truth { drift, ..truth }, 200, slower);
        tell!("power {drift:?}: {:.1}%", share * 100.0);
        assert!(share >= least, "{drift:?}: {share}");
    }
}

#[test]
fn intervals_hold_the_true_ratio_as_often_as_they_say() {
    let holds = |compared: &Compared| {
        let interval = compared.rows[0].interval;
        interval.is_some_and(|interval| interval.contains(0.97))
    };
    for (repeats, times) in [(3, 100), (5, 200), (10, 100)] {
        for noise in NOISES {
            for drift in [Drift::None, Drift::Linear] {
                let truth = Truth { noise, drift, repeats, ratios: &[0.97], ..Truth::default() };
                let share = share(truth, times, holds);
                tell!("holds {repeats} {noise:?} {drift:?}: {:.1}%", share * 100.0);
                assert!(share >= 0.93, "{truth:?}: {share}");
            }
        }
    }
}

#[test]
fn drift_breaks_repeats_that_did_not_take_turns_and_not_those_that_did() {
    for drift in [Drift::Linear, Drift::Wandering] {
        let in_turns = Truth { drift, ..Truth::default() };
        let grouped = Truth { order: Order::Grouped, ..in_turns };
        let (turns, groups) = (called_different(in_turns, 400), called_different(grouped, 400));
        tell!("order {drift:?}: {turns} {groups}");
        assert!(turns <= 0.05, "{drift:?}: {turns}");
        assert!(groups >= 0.3, "{drift:?}: {groups}");
    }
    let steady = Truth { order: Order::Grouped, ..Truth::default() };
    assert!(called_different(steady, 1000) <= 0.06);
    let compared = compare(&steady.measure(&mut Random::new(1)), &options());
    assert_eq!(compared.rows[0].pairing, Pairing::Independent);
}

#[test]
fn of_what_is_called_different_at_most_the_error_rate_is_not() {
    // Of two targets one is slower by 4% in all of three steps.
    let mut random = Random::new(11);
    let (mut all, mut wrong, mut found) = (0, 0.0, 0);
    for _ in 0..200 {
        let truth = Truth { ratios: &[1.0, 0.96], steps: 3, ..Truth::default() };
        let compared = compare(&truth.measure(&mut random), &options());
        let called = shown(&compared);
        let equal = compared.rows.iter().filter(|row| {
            row.cell.target == "new1.base"
                && matches!(row.verdict, Verdict::Faster | Verdict::Slower)
        });
        let mistaken = equal.count();
        all += 1;
        found += called - mistaken;
        if called > 0 {
            wrong += mistaken as f64 / called as f64;
        }
    }
    tell!(
        "of those called different {:.1}% are not; {:.1}% of those that are were found",
        wrong / f64::from(all) * 100.0,
        found as f64 / f64::from(all * 3) * 100.0
    );
    assert!(wrong / f64::from(all) <= 0.05);
    assert!(found as f64 / f64::from(all * 3) > 0.8);
}

#[test]
fn the_number_of_repeats_that_is_reported_as_needed_is_enough() {
    let noisy =
        Truth { noise: Noise::HeavyTailed, ratios: &[0.97], repeats: 5, ..Truth::default() };
    let mut needed: Vec<u32> = (0..101)
        .filter_map(|seed| {
            let compared = compare(&noisy.measure(&mut Random::new(seed)), &options());
            compared.rows[0].repeats_needed
        })
        .collect();
    needed.sort_unstable();
    let repeats = needed[needed.len() / 2];
    let slower = |compared: &Compared| compared.rows[0].verdict == Verdict::Slower;
    let share = share(Truth { repeats, ..noisy }, 1000, slower);
    tell!("needed {repeats}: {share}");
    assert!((3..=15).contains(&repeats), "{repeats}");
    assert!(share >= 0.75, "{repeats}: {share}");
}

#[test]
fn a_table_lends_its_spreads_without_more_false_claims() {
    let equal = |noise, drift, spreads, (repeats, steps)| {
        let truth = Truth { noise, drift, spreads, repeats, steps, ..Truth::default() };
        called_different(truth, simulations(500))
    };
    for noise in NOISES {
        assert!(equal(noise, Drift::None, Steps::Alike, (3, 12)) <= 0.1, "{noise:?}");
    }
    // Noise that steps share, and steps whose noise differs.
    assert!(equal(Noise::Normal, Drift::Neighbors, Steps::Alike, (5, 12)) <= 0.1);
    assert!(equal(Noise::Normal, Drift::Cells, Steps::Sensitive, (3, 12)) <= 0.14);
    assert!(equal(Noise::Normal, Drift::None, Steps::Differing, (3, 6)) <= 0.14);
    assert!(equal(Noise::Normal, Drift::None, Steps::OneWild, (3, 12)) <= 0.1);
    // With three repeats, a few noisy steps among quiet ones are called different too often.
    assert!(equal(Noise::Normal, Drift::None, Steps::FewNoisy, (5, 24)) <= 0.14);
    assert!(equal(Noise::Normal, Drift::None, Steps::FewNoisy, (10, 24)) <= 0.1);
    assert!(equal(Noise::DelaysOfTargets, Drift::None, Steps::Alike, (5, 6)) <= 0.14);
}

#[test]
fn three_repeats_of_many_steps_show_what_three_repeats_of_one_step_cannot() {
    let truth = Truth { ratios: &[0.97], repeats: 3, steps: 24, changed_steps: 12, ..Truth::EQUAL };
    let found = |moderate_spreads| {
        let options = CompareOptions { moderate_spreads, ..options() };
        let mut random = Random::new(5);
        let mut found = 0;
        for _ in 0..50 {
            found += shown(&compare(&truth.measure(&mut random), &options));
        }
        f64::from(found as u32) / (50.0 * 12.0)
    };
    let (alone, lent) = (found(false), found(true));
    tell!("of changes of 3% in 12 of 24 steps: {alone} alone, {lent} with borrowed spreads");
    assert!(alone < 0.2 && lent > 0.6, "{alone} {lent}");
}

#[test]
fn more_repeats_show_a_small_change_of_one_step_among_many_more_often() {
    let found = |repeats| {
        let truth = Truth { ratios: &[0.98], repeats, steps: 24, changed_steps: 1, ..Truth::EQUAL };
        share(truth, simulations(500), |compared| is_shown(&compared.rows[0]))
    };
    let shares = [5, 7, 8, 10, 14].map(found);
    tell!("2% in one of 24 steps with 5, 7, 8, 10 and 14 repeats: {shares:?}");
    assert!(shares.is_sorted(), "{shares:?}");
    assert!(shares[3] > 0.75 && shares[4] > 0.9, "{shares:?}");
}

#[test]
fn equal_steps_pass_the_gate_and_one_at_the_threshold_does_not() {
    let times = simulations(500);
    let passes = |ratios| {
        let truth = Truth { ratios, repeats: 5, steps: 24, changed_steps: 1, ..Truth::EQUAL };
        share(truth, times, |compared| gate(compared, &Thresholds::default()) == Gate::Pass)
    };
    let (equal, at_threshold) = (passes(&[1.0]), passes(&[0.97]));
    tell!("24 steps pass the gate: {equal}; if one has lost 3%: {at_threshold}");
    assert!(equal > 0.85, "{equal}");
    assert!(at_threshold <= at_most(0.05, times), "{at_threshold}");
}

#[test]
fn targets_that_differ_by_what_matters_are_called_equal_at_most_at_the_error_rate() {
    let times = simulations(2000);
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::TwoModes] {
        for (repeats, looks) in
            [(3, Looks::Once), (5, Looks::Once), (10, Looks::Once), (10, Looks::Growing)]
        {
            let truth = Truth { noise, repeats, looks, ratios: &[0.97], ..Truth::EQUAL };
            let equal = |compared: &Compared| compared.rows[0].verdict == Verdict::Equal;
            let share = share(truth, times, equal);
            tell!("equal although 3% differ: {noise:?}, {repeats}, {looks:?}: {share}");
            assert!(share <= at_most(0.05, times), "{noise:?} {repeats}: {share}");
        }
    }
}

#[test]
fn another_target_takes_nothing_away_from_what_one_shows() {
    // The others are equal to the base, in many steps.
    let truth = Truth { ratios: &[0.97, 1.0, 1.0, 1.0], steps: 6, ..Truth::default() };
    let figures = truth.measure(&mut Random::new(9));
    let mut alone = figures.clone();
    alone.rows.retain(|row| row.cell.target == BASE || row.cell.target == "new1.base");
    let of_target = |figures| {
        let mut rows = compare(figures, &options()).rows;
        rows.retain(|row| row.cell.target == "new1.base");
        rows
    };
    assert_eq!(of_target(&figures), of_target(&alone));
}
