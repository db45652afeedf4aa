//! Tunings of which the truth is known: what they accept.

use analysis::figures::Figures;
use analysis::figures::Looks;
use analysis::tune::{Goal, Keep};
use record::{Design, DesignedTarget};

use crate::compare::machine::{BASE, Random, Truth};
use crate::simulations::{at_most, simulations};

/// The combination that is verified.
const COMBINATION: &str = "new1.base";
/// The gain of the combination in the tuned step.
const GAIN: f64 = 1.3;
/// The bound of the kept step.
const BOUND: f64 = 0.95;

/// Returns the share of verifications that accept a combination whose kept step is at `ratios`.
fn accepted(ratios: &'static [f64], spread: f64, repeats: u32, times: u32) -> f64 {
    let target = |name: &str, level| DesignedTarget {
        target: name.to_owned(),
        levels: vec![level],
        ..DesignedTarget::default()
    };
    let design =
        Design { targets: vec![target(BASE, 0), target(COMBINATION, 1)], ..Design::default() };
    let goal =
        Goal { step: "s0".to_owned(), keeps: vec![Keep { step: "s1".to_owned(), share: BOUND }] };

    let truth = Truth { ratios, spread, repeats, steps: 2, looks: Looks::AnyTime, ..Truth::EQUAL };
    let mut random = Random::new(3);
    let is_accepted = |figures: &Figures| {
        let gain = goal.verified(figures, &design, &vec![1]).unwrap();
        gain.is_better && gain.keeps_bounds
    };
    let hits = (0..times).filter(|_| {
        let mut figures = truth.measure(&mut random);
        for row in figures.rows.iter_mut().filter(|row| row.cell.target == COMBINATION) {
            if row.step == "s0" {
                let rate = row.metrics["qps"].unwrap();
                row.metrics.insert("qps", Some(rate * GAIN / ratios[0]));
            }
        }
        is_accepted(&figures)
    });
    hits.count() as f64 / f64::from(times)
}

#[test]
fn a_combination_whose_kept_step_is_below_its_bound_is_hardly_ever_accepted() {
    let times = simulations(1000);
    for (spread, repeats) in [(1.0, 3), (2.0, 6), (3.0, 12)] {
        let share = accepted(&[0.90], spread, repeats, times);
        assert!(share <= at_most(0.05, times), "noise {spread}%, {repeats} repeats: {share}");
    }
    // At the bound itself.
    let share = accepted(&[0.95], 1.0, 8, times);
    assert!(share <= at_most(0.05, times), "{share}");
}

#[test]
fn a_combination_that_costs_the_kept_step_nothing_is_accepted() {
    let share = accepted(&[1.0], 1.0, 8, simulations(500));
    assert!(share > 0.9, "{share}");
}
