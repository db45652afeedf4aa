//! Repeats of several machines, of which the truth is known.

use analysis::compare::{Compared, Pairing, Verdict, compare};
use analysis::figures::Figures;

use super::machine::{BASE, Drift, Noise, Random, Truth};
use super::simulated::{called_different, options, share, shown};
use crate::simulations::{at_most, simulations};

/// Five machines whose levels differ by 30%, each with one repeat, as an array of jobs measures
/// them.
const ARRAY: Truth = Truth { invocations: 5, machines: 5, machine_levels: 0.3, ..Truth::EQUAL };

fn slower(compared: &Compared) -> bool {
    compared.rows[0].verdict == Verdict::Slower
}

/// Returns the figures as if one machine had measured all runs, one after the other.
fn of_one_machine(mut figures: Figures) -> Figures {
    for cell in &mut figures.begun {
        cell.machine = 0;
        cell.started_unix_ns += 1_000_000_000_000_000 * cell.run as u64;
    }
    figures
}

/// Returns the figures as if base and target were never measured by one run.
fn without_pairs(mut figures: Figures) -> Figures {
    for row in &mut figures.rows {
        row.run = 2 * row.run + usize::from(row.cell.target.starts_with("new"));
    }
    for cell in &mut figures.begun {
        cell.run = 2 * cell.run + usize::from(cell.cell.target.starts_with("new"));
    }
    figures
}

#[test]
fn repeats_of_machines_that_measure_at_the_same_time_are_pairs() {
    let figures = ARRAY.measure(&mut Random::new(1));
    let compared = compare(&figures, &options());
    let row = &compared.rows[0];
    assert_eq!((row.pairing, row.values.len()), (Pairing::Paired, 5));
    assert_eq!(row.machines.count, 5);
    let single = Truth { machines: 1, invocations: 1, ..ARRAY };
    let compared = compare(&single.measure(&mut Random::new(1)), &options());
    let machines = compared.rows[0].machines;
    assert_eq!((machines.count, machines.variance_share), (1, None));
}

#[test]
fn a_change_shows_within_machines_that_differ_by_far_more() {
    let truth = Truth { ratios: &[0.97], ..ARRAY };
    let paired = share(truth, 500, slower);
    let mut random = Random::new(1);
    let unpaired = (0..500).filter(|_| {
        let compared = compare(&without_pairs(truth.measure(&mut random)), &options());
        assert_eq!(compared.rows[0].pairing, Pairing::Independent);
        assert!(compared.notes.iter().any(|note| note.contains("differences between machines")));
        shown(&compared) > 0
    });
    let unpaired = unpaired.count() as f64 / 500.0;
    crate::tell!("3% on 5 machines that differ by 30%: in pairs {paired}, without {unpaired}");
    assert!(paired >= 0.8 && unpaired <= 0.06, "{paired} {unpaired}");
}

#[test]
fn equal_targets_on_unequal_machines_are_called_different_at_most_at_the_error_rate() {
    for (repeats, machines) in [(3, 3), (5, 5), (10, 5), (10, 10), (15, 3)] {
        for noise in [Noise::Normal, Noise::HeavyTailed] {
            for drift in [Drift::None, Drift::Linear] {
                let truth =
                    Truth { repeats, machines, invocations: machines, noise, drift, ..ARRAY };
                let times = simulations(1000);
                let found = called_different(truth, times);
                crate::tell!(
                    "{repeats} repeats on {machines} machines, {noise:?}, {drift:?}: {found}"
                );
                assert!(found <= at_most(0.05, times), "{truth:?}: {found}");
            }
        }
    }
}

#[test]
fn a_change_that_all_machines_share_shows_with_several_repeats_of_each() {
    // Where chance alone makes the ratios of machines differ, each machine counts as one value.
    for (repeats, machines, least) in [(10, 2, 0.7), (9, 3, 0.8), (10, 5, 0.9), (30, 10, 0.9)] {
        let truth = Truth { repeats, machines, invocations: machines, ratios: &[0.97], ..ARRAY };
        let found = share(truth, simulations(1000), slower);
        crate::tell!("3% with {repeats} repeats on {machines} machines: {found}");
        assert!(found >= least, "{truth:?}: {found}");
    }
}

#[test]
fn a_machine_that_measured_only_the_base_does_not_count() {
    let mut figures = ARRAY.measure(&mut Random::new(3));
    // The means of all repeats then differ by far.
    for row in &mut figures.rows {
        let faster = if row.run == 4 { 20.0 } else { 1.0 };
        row.metrics.insert("qps", row.metrics["qps"].map(|value| value * faster));
    }
    figures.rows.retain(|row| row.run != 4 || row.cell.target == BASE);
    let compared = compare(&figures, &options());
    let row = &compared.rows[0];
    assert_eq!((row.pairing, row.machines.count), (Pairing::Paired, 4));
    assert!(!matches!(row.verdict, Verdict::Faster | Verdict::Slower), "{row:?}");
    assert!((0.95..1.05).contains(&row.ratio.unwrap()));
    assert_eq!(row.reasons.len(), 1, "{:?}", row.reasons);
}

/// Returns the median estimate of the share of the variance between machines, and how often its
/// interval holds the truth.
fn variance(truth: Truth, of_repeats: f64) -> (f64, f64, f64) {
    let noise = 0.01_f64.powi(2);
    let between = truth.machine_levels.powi(2);
    let expected = between / (between + of_repeats + noise);
    let mut random = Random::new(5);
    let times = simulations(1000);
    let shares = (0..times).map(|_| {
        let compared = compare(&truth.measure(&mut random), &options());
        compared.rows[0].machines.variance_share.unwrap()
    });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_by(|a, b| a.share.total_cmp(&b.share));
    let holds = shares.iter().filter(|it| it.low <= expected && expected <= it.high);
    let median = shares[shares.len() / 2].share;
    (expected, median, holds.count() as f64 / f64::from(times))
}

#[test]
fn the_share_of_the_variance_between_machines_is_right_within_its_interval() {
    for machine_levels in [0.0, 0.01, 0.03] {
        for (repeats, machines, drift, of_repeats) in [
            (5, 5, Drift::None, 0.0),
            (20, 20, Drift::None, 0.0),
            (15, 5, Drift::None, 0.0),
            // Here repeats of one machine differ as well.
            (30, 10, Drift::Levels, 0.05_f64.powi(2)),
        ] {
            let truth =
                Truth { repeats, machines, invocations: machines, machine_levels, drift, ..ARRAY };
            let (expected, median, holds) = variance(truth, of_repeats);
            crate::tell!(
                "{repeats} repeats on {machines} machines: {expected:.3}, median {median:.3}, holds {holds}"
            );
            // The estimate is skewed, and cut at zero.
            let tolerance = if machines >= 10 { 0.08 } else { 0.15 };
            assert!((median - expected).abs() <= tolerance, "{truth:?} {median} {expected}");
            let missed = 1.0 - holds;
            assert!(missed <= at_most(0.05, simulations(1000)), "{truth:?} {holds}");
        }
    }
}

#[test]
fn ratios_that_differ_between_machines_are_no_repeats_of_each_other() {
    for machine_ratios in [0.0, 0.005, 0.01, 0.03] {
        // A test with few machines often overlooks a difference between them.
        for (repeats, machines, most) in
            [(10, 2, 0.14), (9, 3, 0.06), (10, 5, 0.06), (30, 10, 0.06)]
        {
            let truth = Truth { repeats, machines, invocations: machines, machine_ratios, ..ARRAY };
            let times = simulations(1000);
            let found = called_different(truth, times);
            let mut random = Random::new(7);
            let as_one = (0..200).filter(|_| {
                let figures = of_one_machine(truth.measure(&mut random));
                shown(&compare(&figures, &options())) > 0
            });
            let as_one = as_one.count() as f64 / 200.0;
            crate::tell!(
                "{repeats} repeats on {machines} machines, ratios apart {machine_ratios}: {found}, as of one machine {as_one}"
            );
            assert!(found <= at_most(most, times), "{truth:?}: {found}");
            if machine_ratios == 0.03 {
                assert!(as_one > 0.12 && as_one > 2.0 * found, "{truth:?}: {as_one}");
            }
        }
    }
}
