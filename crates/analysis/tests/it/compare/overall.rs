//! The geometric mean of all steps, by hand, and on machines of which the truth is known.

use analysis::compare::{CompareOptions, Overall, Pairing, Verdict, compare};
use analysis::figures::{Figures, Row};

use super::machine::{BASE, Drift, NOISES, Random, Truth, row};
use crate::simulations::{at_most, simulations};

const TARGET: &str = "new1.base";

fn overall(figures: &Figures) -> Vec<Overall> {
    let options = CompareOptions { base: BASE.to_owned(), ..CompareOptions::default() };
    compare(figures, &options).overall
}

/// Returns both targets with these values in each repeat of a step.
fn step(name: &str, values: &[(f64, f64)]) -> Vec<Row> {
    let repeats = (1..).zip(values);
    repeats
        .flat_map(|(repeat, &(base, value))| {
            [row(BASE, repeat, name, base), row(TARGET, repeat, name, value)]
        })
        .collect()
}

/// Returns the mean of the only target. Rows stand in the order in which they are measured.
fn mean_of(steps: Vec<Vec<Row>>) -> Overall {
    let mut rows = steps.concat();
    rows.sort_by_key(|row| (row.cell.repeat, row.cell.target != BASE));
    let mut found = overall(&Figures { rows, ..Figures::default() });
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn the_mean_is_that_of_the_logarithms_and_its_interval_rests_on_the_repeats() {
    let halved = step("scan", &[(100.0, 50.0), (100.0, 52.0), (100.0, 48.0)]);
    let doubled = step("insert", &[(10.0, 80.0), (10.0, 78.0), (10.0, 82.0)]);
    let mean = mean_of(vec![halved, doubled]);
    let product: f64 = [(0.5 * 8.0), (0.52 * 7.8), (0.48 * 8.2)].iter().product();
    assert!((mean.compared.ratio.unwrap() - product.powf(1.0 / 6.0)).abs() < 1e-9);
    assert_eq!((mean.step_count, mean.all_step_count), (2, 2));
    assert_eq!(mean.compared.values.len(), 3, "three repeats, not six ratios");
    assert_eq!(mean.compared.pairing, Pairing::Paired);
    assert_eq!(mean.compared.verdict, Verdict::Faster);
    assert!((mean.compared.interval.unwrap().confidence - 0.99).abs() < 1e-9);
}

#[test]
fn the_means_of_several_targets_share_one_error_rate() {
    let of_target = |target: &str, ratio: f64| {
        [1, 2, 3].map(|repeat| row(target, repeat, "scan", ratio * (100.0 + f64::from(repeat))))
    };
    let mut rows = of_target(BASE, 1.0).to_vec();
    for target in ["new1.base", "new2.base", "new3.base", "new4.base"] {
        rows.extend(of_target(target, 1.1));
    }
    for mean in overall(&Figures { rows, ..Figures::default() }) {
        assert!((mean.compared.interval.unwrap().confidence - 0.9975).abs() < 1e-9);
    }
}

#[test]
fn a_load_that_only_the_first_repeat_has_does_not_take_the_interval_away() {
    let load = step("load", &[(100.0, 900.0)]);
    let scan = step("scan", &[(100.0, 50.0), (100.0, 52.0), (100.0, 48.0)]);
    let mean = mean_of(vec![load, scan]);
    assert_eq!((mean.step_count, mean.all_step_count), (1, 2));
    assert!(mean.compared.ratio.unwrap() < 0.55);
    assert_eq!(mean.compared.verdict, Verdict::Slower);
}

#[test]
fn a_target_that_was_measured_once_has_a_mean_without_an_interval() {
    let mean = mean_of(vec![step("load", &[(1.0, 2.0)]), step("scan", &[(1.0, 8.0)])]);
    assert!((mean.compared.ratio.unwrap() - 4.0).abs() < 1e-9);
    assert_eq!(mean.compared.interval, None);
    assert_eq!(mean.compared.verdict, Verdict::Single);
}

#[test]
fn the_overall_mean_of_equal_targets_differs_at_most_as_often_as_the_error_rate() {
    let equal = Truth { steps: 3, ..Truth::EQUAL };
    let mut truths: Vec<Truth> = NOISES.map(|noise| Truth { noise, ..equal }).to_vec();
    for drift in [Drift::Linear, Drift::Levels, Drift::Neighbors, Drift::Cells] {
        truths.push(Truth { drift, ..equal });
    }
    truths.extend([3, 10].map(|repeats| Truth { repeats, drift: Drift::Cells, ..equal }));
    for truth in truths {
        let times = simulations(500);
        let mut random = Random::new(u64::from(truth.repeats));
        let is_different =
            |found: &Overall| matches!(found.compared.verdict, Verdict::Faster | Verdict::Slower);
        let hits = (0..times).filter(|_| is_different(&overall(&truth.measure(&mut random))[0]));
        let percent = 100.0 * hits.count() as f64 / f64::from(times);
        #[allow(clippy::print_stdout, reason = "the figures of docs/validation.md")]
        {
            println!("overall: {truth:?}: {percent:.1}% of {times}");
        }
        assert!(percent <= 100.0 * at_most(0.01, times), "{truth:?}: {percent}");
    }
}
