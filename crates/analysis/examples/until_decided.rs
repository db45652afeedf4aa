//! Simulates runs that add repeats until every comparison is decided: how often they are wrong, and
//! how many repeats they take. Prints the tables of `docs/statistics.md`, through the same code as
//! `assay compare`. `cargo xtask bench until-decided` runs it.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;

use std::process::ExitCode;

use analysis::compare::{CompareOptions, Compared, THROUGHPUT, Verdict, compare};
use analysis::figures::Figures;
use machine::{BASE, Drift, Noise, Random, Steps, Truth, first_repeats};

/// Simulated runs for each figure about intervals that are meant for one look.
const RUNS_LOOKED_AT_ONCE: u32 = 300;

/// Simulated runs for each mean number of repeats.
const RUNS_TO_DECIDE: u32 = 300;

/// The accepted share of false verdicts.
const ERROR_RATE: f64 = 0.05;

/// The smallest change that matters.
const EFFECT: f64 = 0.03;

/// The fewest repeats with a verdict.
const REPEATS_MIN: u32 = 3;

/// The most repeats of a run that is to be decided.
const REPEATS_MAX: u32 = 100;

/// The noise and drift of machines.
const MACHINES: [(&str, Noise, Drift, Steps); 9] = [
    ("normal, 1 %", Noise::Normal, Drift::None, Steps::Alike),
    ("the same, and 10 % slower in the end, steadily", Noise::Normal, Drift::Linear, Steps::Alike),
    ("the same, and a level of 5 % for each repeat", Noise::Normal, Drift::Levels, Steps::Alike),
    (
        "neighbors: 35 % for all steps of a cell, AR(1)",
        Noise::Normal,
        Drift::Neighbors,
        Steps::Alike,
    ),
    ("a level of 2 % for each cell", Noise::Normal, Drift::Cells, Steps::Alike),
    ("heavy tails: t with 3 degrees, x 1 %", Noise::HeavyTailed, Drift::None, Steps::Alike),
    ("skewed", Noise::Skewed, Drift::None, Steps::Alike),
    ("one value of ten is 30 % less", Noise::Outliers, Drift::None, Steps::Alike),
    ("spreads of steps differ 25 times", Noise::Normal, Drift::None, Steps::Differing),
];

/// A table of steps that is looked at after each repeat, and the simulated runs for each figure.
struct Size {
    steps: usize,
    repeats: u32,
    runs: u32,
}

const SIZES: [Size; 3] = [
    Size { steps: 1, repeats: 40, runs: 2000 },
    Size { steps: 6, repeats: 20, runs: 2000 },
    Size { steps: 24, repeats: 20, runs: 300 },
];

/// The spreads of single values, in percent: the noise of 1 % is so many times as large.
const SPREADS: [f64; 3] = [1.0, 3.0, 10.0];

/// The ratios of a target that is 0, 2, 3, 5, 10 and 30 % slower.
const RATIOS: [&[f64]; 6] = [&[1.0], &[0.98], &[0.97], &[0.95], &[0.9], &[0.7]];

fn main() -> ExitCode {
    let is_kept = false_verdicts();
    repeats_to_decide();
    if is_kept {
        ExitCode::SUCCESS
    } else {
        println!("\nlooking after each repeat makes more than 5 % false verdicts");
        ExitCode::FAILURE
    }
}

/// Prints how often runs are wrong that are looked at after each repeat. Returns false if they are
/// wrong too often.
fn false_verdicts() -> bool {
    println!(
        "Looked at after each repeat. Equal targets: tables in which anything is ever called faster or \
         slower, in %, with intervals for one look / at any time. Then steps that are 3 % slower: tables in \
         which any is ever said not to have changed by 3 %, at any time, in %.\n"
    );
    println!(
        "| noise | 1 step, 40 repeats | 6 steps, 20 | 24 steps, 20 | 3 % missed: 1 step | 6 | 24 |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut is_kept = true;
    for (name, noise, drift, spreads) in MACHINES {
        let equal = Truth { noise, drift, spreads, is_open_ended: true, ..Truth::default() };
        let slower = Truth { ratios: &[0.97], ..equal };
        print!("| {name} |");
        for size in &SIZES {
            let looked_at_once = Size { runs: RUNS_LOOKED_AT_ONCE, ..*size };
            let once = Truth { is_open_ended: false, ..equal };
            let once = wrong_runs(once, &looked_at_once, has_change);
            let any_time = wrong_runs(equal, size, has_change);
            print!(" {:.1} / {:.1} |", 100.0 * once, 100.0 * any_time);
            is_kept &= is_within_rate(any_time, size.runs);
        }
        for size in &SIZES {
            let share = wrong_runs(slower, size, has_no_change);
            print!(" {:.1} |", 100.0 * share);
            is_kept &= is_within_rate(share, size.runs);
        }
        println!();
    }
    is_kept
}

/// Returns whether this share of false verdicts can be due to chance at the error rate.
fn is_within_rate(share: f64, runs: u32) -> bool {
    let chance = 3.0 * (ERROR_RATE * (1.0 - ERROR_RATE) / f64::from(runs)).sqrt();
    share <= ERROR_RATE + chance
}

/// Returns in which share of runs a look after some repeat finds a wrong verdict.
fn wrong_runs(truth: Truth, size: &Size, is_wrong: fn(&Compared) -> bool) -> f64 {
    let truth = Truth { steps: size.steps, repeats: size.repeats, ..truth };
    let mut random = Random::new(size.steps as u64);
    let mut wrong = 0;
    for _ in 0..size.runs {
        let figures = truth.measure(&mut random);
        let mut looks = REPEATS_MIN..=size.repeats;
        wrong += u32::from(looks.any(|repeats| is_wrong(&look(&figures, repeats))));
    }
    f64::from(wrong) / f64::from(size.runs)
}

/// Prints how many repeats it takes to decide one comparison, and what five repeats decide.
fn repeats_to_decide() {
    println!(
        "\nOne comparison, until it is decided: the mean number of repeats, where those that are not decided \
         after {REPEATS_MAX} count as {REPEATS_MAX}; and what is decided. Then what a fixed five repeats decide.\n"
    );
    println!(
        "| spread | slower by | repeats | slower, % | no change, % | open, % | five: slower, % | no change, % | open, % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for spread in SPREADS {
        for ratios in RATIOS {
            let truth = Truth { spread, ratios, ..Truth::default() };
            let [open_ended, fixed] =
                [true, false].map(|is_open_ended| decide(Truth { is_open_ended, ..truth }));
            println!(
                "| {spread} % | {:.0} % | {:.1} | {} | {} |",
                100.0 * (1.0 - ratios[0]),
                open_ended.repeats,
                open_ended.shares(),
                fixed.shares()
            );
        }
    }
}

/// What many runs decided about one comparison.
#[derive(Default)]
struct Decided {
    /// The mean number of repeats.
    repeats: f64,
    changed: f64,
    unchanged: f64,
}

impl Decided {
    fn shares(&self) -> String {
        let open = 1.0 - self.changed - self.unchanged;
        let percents =
            [self.changed, self.unchanged, open].map(|share| format!("{:.0}", 100.0 * share));
        percents.join(" | ")
    }
}

/// Decides one comparison in many runs: open-ended ones until they are decided, others once.
fn decide(truth: Truth) -> Decided {
    let (first, last) = if truth.is_open_ended { (REPEATS_MIN, REPEATS_MAX) } else { (5, 5) };
    let truth = Truth { repeats: last, ..truth };
    let mut random = Random::new(1);
    let mut decided = Decided::default();
    for _ in 0..RUNS_TO_DECIDE {
        let figures = truth.measure(&mut random);
        for repeats in first..=last {
            let compared = look(&figures, repeats);
            let (is_changed, is_unchanged) = (has_change(&compared), has_no_change(&compared));
            if is_changed || is_unchanged || repeats == last {
                decided.repeats += f64::from(repeats);
                decided.changed += f64::from(u8::from(is_changed));
                decided.unchanged += f64::from(u8::from(is_unchanged));
                break;
            }
        }
    }
    let runs = f64::from(RUNS_TO_DECIDE);
    Decided {
        repeats: decided.repeats / runs,
        changed: decided.changed / runs,
        unchanged: decided.unchanged / runs,
    }
}

/// Compares what was measured after some repeats.
fn look(figures: &Figures, repeats: u32) -> Compared {
    let options = CompareOptions {
        base: BASE.to_owned(),
        effect: EFFECT,
        error_rate: ERROR_RATE,
        resamples: 499,
        metrics: Vec::new(),
        ..CompareOptions::default()
    };
    compare(&first_repeats(figures, repeats), &options)
}

fn has_change(compared: &Compared) -> bool {
    has(compared, &[Verdict::Faster, Verdict::Slower])
}

fn has_no_change(compared: &Compared) -> bool {
    has(compared, &[Verdict::NoChangeShown])
}

fn has(compared: &Compared, verdicts: &[Verdict]) -> bool {
    let mut throughput = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    throughput.any(|row| verdicts.contains(&row.verdict))
}
