//! Measures the frequency of wrong verdicts where nothing changed, by the order of cells, the noise
//! and the repeats: the tables of `docs/validation.md`, through the same code as `assay compare`.
//! `cargo xtask bench verdicts` runs it.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;

use std::process::ExitCode;

use analysis::compare::{CompareOptions, ComparedStep, Gate, Thresholds, Verdict, compare, gate};
use machine::{BASE, DRIFTS, Drift, NOISES, Noise, Order, Random, Steps, Truth};

/// Simulated runs for each figure.
const RUNS: u32 = 1000;

/// The noise and drift of machines while nothing changes.
const MACHINES: [(&str, Noise, Drift); 6] = [
    ("normal, 1%", Noise::Normal, Drift::None),
    ("the same, and 10% slower in the end, steadily", Noise::Normal, Drift::Linear),
    ("neighbors: 35% for all steps of a cell, AR(1)", Noise::Normal, Drift::Neighbors),
    ("bursts: three values of ten are 60% less", Noise::Bursts, Drift::None),
    ("every second cell is 10% slower", Noise::Normal, Drift::EveryTwo),
    ("two of every four cells are 10% slower", Noise::Normal, Drift::EveryFour),
];

const ORDERS: [(&str, Order); 3] =
    [("`ab ab`", Order::Fixed), ("random", Order::Random), ("balanced", Order::Balanced)];

const REPEATS: [u32; 3] = [3, 5, 10];

/// The noise of tables whose comparisons lend each other their spreads.
const TABLES: [(&str, Noise, Drift, Steps); 15] = [
    ("normal, 1%", Noise::Normal, Drift::None, Steps::Alike),
    ("the same, and a level for each repeat", Noise::Normal, Drift::Levels, Steps::Alike),
    ("the same, and 10% slower in the end", Noise::Normal, Drift::Linear, Steps::Alike),
    ("heavy tails", Noise::HeavyTailed, Drift::None, Steps::Alike),
    ("skewed", Noise::Skewed, Drift::None, Steps::Alike),
    ("one value of ten is 30% less", Noise::Outliers, Drift::None, Steps::Alike),
    ("bursts: three values of ten are 60% less", Noise::Bursts, Drift::None, Steps::Alike),
    ("one wild value in the table", Noise::Normal, Drift::None, Steps::OneWild),
    ("a level of 2% for each cell", Noise::Normal, Drift::Cells, Steps::Alike),
    ("the same, felt 0.2 to 2 times", Noise::Normal, Drift::Cells, Steps::Sensitive),
    ("neighbors", Noise::Normal, Drift::Neighbors, Steps::Alike),
    ("spreads of steps differ 25 times", Noise::Normal, Drift::None, Steps::Differing),
    ("one step of eight is five times as noisy", Noise::Normal, Drift::None, Steps::FewNoisy),
    ("two modes, 5% apart", Noise::TwoModes, Drift::None, Steps::Alike),
    ("delays in one target only", Noise::DelaysOfTargets, Drift::None, Steps::Alike),
];

/// Repeats and steps of these tables.
const SIZES: [(u32, usize); 6] = [(3, 6), (3, 24), (3, 100), (5, 6), (5, 24), (10, 24)];

/// Simulated runs for each figure of these tables.
const TABLE_RUNS: u32 = 300;

fn main() -> ExitCode {
    let is_kept = orders();
    lent_spreads();
    one_of_many();
    println!(
        "\nOne comparison:\n\n| noise | drift | 2 repeats | 3 | 5 | 10 |\n|---|---|---|---|---|---|"
    );
    for noise in NOISES {
        for drift in DRIFTS {
            let truth = Truth { noise, drift, ..Truth::default() };
            line(truth, &[(2, 1), (3, 1), (5, 1), (10, 1)]);
        }
    }
    println!(
        "\nSeveral invocations:\n\n| noise | drift | 2 + 2 repeats | 3 + 2 | 5 + 5 | 5 + 5 + 5 |\n|---|---|---|---|---|---|"
    );
    let drifts = [(Noise::Normal, Drift::ToAndFro), (Noise::Normal, Drift::Wandering)];
    for (noise, drift) in NOISES.map(|noise| (noise, Drift::Linear)).into_iter().chain(drifts) {
        let truth = Truth { noise, drift, ..Truth::default() };
        line(truth, &[(4, 2), (5, 2), (10, 2), (15, 3)]);
    }
    if is_kept {
        ExitCode::SUCCESS
    } else {
        println!("\na balanced order with five repeats or more makes more than 5% false claims");
        ExitCode::FAILURE
    }
}

/// Prints the table of orders; false when a balanced one makes too many false claims.
fn orders() -> bool {
    let mut is_kept = true;
    println!(
        "Tables of 10 steps, all equal, in which anything is called faster or slower, in %:\n"
    );
    print!("| noise |");
    for (order, _) in ORDERS {
        let [few, more, most] = REPEATS;
        print!(" {order}, {few} repeats | {more} | {most} |");
    }
    println!("\n|---|{}", "---|".repeat(ORDERS.len() * REPEATS.len()));
    for (name, noise, drift) in MACHINES {
        print!("| {name} |");
        for (_, order) in ORDERS {
            for repeats in REPEATS {
                let share = false_claims(Truth {
                    order,
                    noise,
                    drift,
                    repeats,
                    steps: 10,
                    ..Truth::default()
                });
                print!(" {:.1} |", 100.0 * share);
                // A balanced order can have the rhythm of four cells by chance.
                let is_bound =
                    order == Order::Balanced && repeats >= 5 && drift != Drift::EveryFour;
                let chance = 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt();
                is_kept &= !is_bound || share <= 0.05 + chance;
            }
        }
        println!();
    }
    is_kept
}

/// Prints how borrowed spreads change false claims and found changes.
fn lent_spreads() {
    println!(
        "\nTables of several steps. In the first columns all steps are equal: in how many % of the tables \
         anything is called different, each step by itself / with borrowed spreads. In the others half of \
         the steps are 3% or 10% slower: in how many % of them that is shown.\n"
    );
    println!(
        "| noise | repeats | steps | false claims | false of those shown | 3% shown | 10% shown |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, noise, drift, spreads) in TABLES {
        for (repeats, steps) in SIZES {
            let truth = Truth { noise, drift, spreads, repeats, steps, ..Truth::default() };
            let changed = |ratios| Truth { ratios, changed_steps: steps / 2, ..truth };
            let [equal, small, large] = [truth, changed(&[0.97]), changed(&[0.9])]
                .map(|truth| [false, true].map(|moderate_spreads| claims(truth, moderate_spreads)));
            println!(
                "| {name} | {repeats} | {steps} | {:.1} / {:.1} | {:.1} / {:.1} | {:.0} / {:.0} | {:.0} / {:.0} |",
                100.0 * equal[0].any,
                100.0 * equal[1].any,
                100.0 * small[0].wrong,
                100.0 * small[1].wrong,
                100.0 * small[0].found,
                100.0 * small[1].found,
                100.0 * large[0].found,
                100.0 * large[1].found,
            );
        }
    }
}

/// Prints how often a change of one step among 24 is shown, and how often a gate passes.
fn one_of_many() {
    println!(
        "\nTables of 24 steps, noise 1%: in how many % a change of 2% in one step is shown, and in how many \
         all others are not; in how many the gate passes with a threshold of 3%, if all steps are equal, and \
         if one has lost 3%.\n"
    );
    println!("| repeats | 2% shown | no false claim | equal steps pass | one at the threshold |");
    println!("|---|---|---|---|---|");
    for repeats in [3, 5, 7, 8, 10, 14] {
        let truth = Truth { repeats, steps: 24, changed_steps: 1, ..Truth::default() };
        let small = claims(Truth { ratios: &[0.98], ..truth }, true);
        let passes = |ratios| passes_of_gate(Truth { ratios, ..truth });
        println!(
            "| {repeats} | {:.0} | {:.1} | {:.0} | {:.1} |",
            100.0 * small.found,
            100.0 * (1.0 - small.any_wrong),
            100.0 * passes(&[1.0]),
            100.0 * passes(&[0.97]),
        );
    }
}

/// Returns in which share of runs the gate passes.
fn passes_of_gate(truth: Truth) -> f64 {
    let options = options();
    let mut random = Random::new(u64::from(truth.repeats));
    let passes = (0..TABLE_RUNS).filter(|_| {
        let compared = compare(&truth.measure(&mut random), &options);
        gate(&compared, &Thresholds::default()) == Gate::Pass
    });
    passes.count() as f64 / f64::from(TABLE_RUNS)
}

/// The claims of comparisons of many simulated runs: shares of the runs.
#[derive(Default)]
struct Claims {
    /// Runs that call anything different.
    any: f64,
    /// Runs that call a step different that did not change.
    any_wrong: f64,
    /// The mean share of the changed steps that are shown.
    found: f64,
    /// The mean share of the shown steps that did not change.
    wrong: f64,
}

fn claims(truth: Truth, moderate_spreads: bool) -> Claims {
    let options = CompareOptions { moderate_spreads, ..options() };
    let mut random = Random::new(u64::from(truth.repeats));
    let mut claims = Claims::default();
    for _ in 0..TABLE_RUNS {
        let compared = compare(&truth.measure(&mut random), &options);
        let is_shown =
            |row: &ComparedStep| matches!(row.verdict, Verdict::Faster | Verdict::Slower);
        let throughput =
            compared.rows.iter().filter(|row| row.metric == analysis::compare::THROUGHPUT);
        let shown: Vec<bool> = throughput.map(is_shown).collect();
        let changed = truth.changed_steps.min(shown.len());
        let right = shown[..changed].iter().filter(|shown| **shown).count() as f64;
        let wrong = shown[changed..].iter().filter(|shown| **shown).count() as f64;
        claims.any += f64::from(u8::from(right + wrong > 0.0));
        claims.any_wrong += f64::from(u8::from(wrong > 0.0));
        claims.found += right / changed as f64;
        claims.wrong += wrong / (right + wrong).max(1.0);
    }
    let runs = f64::from(TABLE_RUNS);
    Claims {
        any: claims.any / runs,
        any_wrong: claims.any_wrong / runs,
        found: claims.found / runs,
        wrong: claims.wrong / runs,
    }
}

/// Prints a line of a table: a column for each number of repeats and of invocations.
fn line(truth: Truth, columns: &[(u32, u32)]) {
    print!("| {:?} | {:?} |", truth.noise, truth.drift);
    for &(repeats, invocations) in columns {
        let share = false_claims(Truth { repeats, invocations, ..truth });
        print!(" {:.1} |", 100.0 * share);
    }
    println!();
}

/// The ordinary options, which compare every metric with the base.
fn options() -> CompareOptions {
    CompareOptions { base: BASE.to_owned(), metrics: Vec::new(), ..CompareOptions::default() }
}

/// Returns in which share of runs anything is called faster or slower.
fn false_claims(truth: Truth) -> f64 {
    let options = options();
    let mut random = Random::new(u64::from(truth.repeats));
    let claims = (0..RUNS).filter(|_| {
        let compared = compare(&truth.measure(&mut random), &options);
        let mut rows = compared.rows.iter();
        rows.any(|row| matches!(row.verdict, Verdict::Faster | Verdict::Slower))
    });
    claims.count() as f64 / f64::from(RUNS)
}
