//! Simulates runs that add repeats until every comparison is decided: how often they are wrong, and
//! how many repeats they take. Prints the tables of `docs/validation.md`, through the same code as
//! `assay compare`. `cargo xtask bench until-decided` runs it.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;

use std::ops::RangeInclusive;
use std::process::ExitCode;

use analysis::compare::{CompareOptions, Compared, THROUGHPUT, Verdict, compare};
use analysis::figures::{Figures, Looks};
use machine::{BASE, Drift, Noise, Random, Steps, Truth, first_repeats};

/// Simulated runs for each figure about intervals that are meant for one look.
const RUNS_LOOKED_AT_ONCE: u32 = 100;

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

/// Simulated runs for a single figure.
const RUNS_OF_ONE_LINE: u32 = 1000;

/// The noise and drift of machines.
const MACHINES: [(&str, Noise, Drift, Steps); 10] = [
    ("normal, 1%", Noise::Normal, Drift::None, Steps::Alike),
    ("the same, and 10% slower in the end, steadily", Noise::Normal, Drift::Linear, Steps::Alike),
    ("the same, and a level of 5% for each repeat", Noise::Normal, Drift::Levels, Steps::Alike),
    (
        "neighbors: 35% for all steps of a cell, AR(1)",
        Noise::Normal,
        Drift::Neighbors,
        Steps::Alike,
    ),
    ("a level of 2% for each cell", Noise::Normal, Drift::Cells, Steps::Alike),
    ("heavy tails: t with 3 degrees, x 1%", Noise::HeavyTailed, Drift::None, Steps::Alike),
    ("skewed", Noise::Skewed, Drift::None, Steps::Alike),
    ("one value of ten is 30% less", Noise::Outliers, Drift::None, Steps::Alike),
    ("bursts: three values of ten are 60% less", Noise::Bursts, Drift::None, Steps::Alike),
    ("spreads of steps differ 25 times", Noise::Normal, Drift::None, Steps::Differing),
];

/// A table of steps that is looked at after each repeat, and the simulated runs for each figure.
struct Size {
    steps: usize,
    repeats: u32,
    runs: u32,
}

const SIZES: [Size; 3] = [
    Size { steps: 1, repeats: 40, runs: 1000 },
    Size { steps: 6, repeats: 20, runs: 400 },
    Size { steps: 24, repeats: 20, runs: 100 },
];

/// The spreads of single values, in percent: the noise of 1% is so many times as large.
const SPREADS: [f64; 3] = [1.0, 3.0, 10.0];

/// The ratios of a target that is 0, 2, 3, 5, 10 and 30% slower.
const RATIOS: [&[f64]; 6] = [&[1.0], &[0.98], &[0.97], &[0.95], &[0.9], &[0.7]];

fn main() -> ExitCode {
    let is_kept = false_verdicts();
    look_at_five_first();
    repeats_to_decide();
    shown_at_the_end();
    if is_kept {
        ExitCode::SUCCESS
    } else {
        println!("\nlooking after each repeat makes more than 5% false verdicts");
        ExitCode::FAILURE
    }
}

/// Prints how often runs are wrong that are looked at after each repeat. Returns false if they are
/// wrong too often.
fn false_verdicts() -> bool {
    println!(
        "Looked at after each repeat. Equal targets: tables in which anything is ever called faster or \
         slower, in %, with intervals for one look / at any time. Then steps that are 3% slower: tables in \
         which any is ever called equal within 3%, at any time, in %.\n"
    );
    println!(
        "| noise | 1 step, 40 repeats | 6 steps, 20 | 24 steps, 20 | 3% missed: 1 step | 6 | 24 |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut is_kept = true;
    for (name, noise, drift, spreads) in MACHINES {
        let equal = Truth { noise, drift, spreads, looks: Looks::Growing, ..Truth::default() };
        let slower = Truth { ratios: &[0.97], ..equal };
        print!("| {name} |");
        for size in &SIZES {
            let looked_at_once = Size { runs: RUNS_LOOKED_AT_ONCE, ..*size };
            let once = Truth { looks: Looks::Once, ..equal };
            let once = wrong_runs(once, &looked_at_once, has_change);
            let any_time = wrong_runs(equal, size, has_change);
            print!(" {:.1} / {:.1} |", 100.0 * once, 100.0 * any_time);
            is_kept &= is_within_rate(any_time, size.runs);
        }
        for size in &SIZES {
            let share = wrong_runs(slower, size, has_no_change);
            print!(" {:.1} |", 100.0 * share);
            // Each step that is called equal has the error rate by itself.
            is_kept &= size.steps > 1 || is_within_rate(share, size.runs);
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
        let is_ever_wrong = looks.any(|repeats| is_wrong(&look(&figures, repeats, ERROR_RATE)));

        let is_growing = figures.looks == Looks::Growing;
        let at_its_end = Figures { looks: Looks::TimeUp, ..figures };
        let is_wrong_at_its_end =
            is_growing && is_wrong(&look(&at_its_end, size.repeats, ERROR_RATE));

        wrong += u32::from(is_ever_wrong || is_wrong_at_its_end);
    }
    f64::from(wrong) / f64::from(size.runs)
}

/// Prints how often a run is wrong that is judged once after five repeats, and continues at any
/// time.
fn look_at_five_first() {
    let truth = Truth { repeats: 40, ..Truth::default() };
    let mut random = Random::new(1);
    let mut wrong = 0;
    for _ in 0..RUNS_OF_ONE_LINE {
        let figures = truth.measure(&mut random);
        let at_any_time = Figures { looks: Looks::Growing, ..figures.clone() };
        let mut looks = 6..=truth.repeats;
        let is_wrong = has_change(&look(&figures, 5, ERROR_RATE))
            || looks.any(|repeats| has_change(&look(&at_any_time, repeats, ERROR_RATE)));
        wrong += u32::from(is_wrong);
    }
    let share = f64::from(wrong) / f64::from(RUNS_OF_ONE_LINE);
    println!(
        "\nOne step, judged after five repeats and then at any time up to 40: {:.1}%",
        100.0 * share
    );
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
            let open_ended = decide(truth, LookAfter::Each);
            let fixed = decide(truth, LookAfter::Once(5));
            println!(
                "| {spread}% | {} | {:.1} | {} | {} |",
                percent_slower(ratios),
                open_ended.repeats,
                open_ended.shares(),
                fixed.shares()
            );
        }
    }
}

/// Prints what a run shows of a small change, by whether its number of repeats was chosen in advance,
/// or its time is up, or it continues.
fn shown_at_the_end() {
    println!(
        "\nOne step of 6 or 24 is 2% slower, in noise of 1%: runs that show it, in %, after so many \
         repeats.\n"
    );
    println!("| steps | repeats | chosen in advance | the time is up | the run continues |");
    println!("|---|---|---|---|---|");
    for step_count in [6, 24] {
        for repeats in [5, 10, 28] {
            let truth = Truth {
                ratios: &[0.98],
                steps: step_count,
                changed_steps: 1,
                repeats,
                ..Truth::default()
            };

            print!("| {step_count} | {repeats} |");
            for looks in [Looks::Once, Looks::TimeUp, Looks::Growing] {
                let mut random = Random::new(1);
                let mut shown = 0;
                for _ in 0..RUNS_TO_DECIDE {
                    let figures = Truth { looks, ..truth }.measure(&mut random);
                    shown += u32::from(has_change(&look(&figures, repeats, ERROR_RATE)));
                }
                print!(" {:.0} |", 100.0 * f64::from(shown) / f64::from(RUNS_TO_DECIDE));
            }
            println!();
        }
    }
}

fn percent_slower(ratios: &[f64]) -> String {
    format!("{:.0}%", 100.0 * (1.0 - ratios[0]))
}

/// When one comparison is looked at.
#[derive(Clone, Copy)]
enum LookAfter {
    /// Once, after so many repeats.
    Once(u32),
    /// Each repeat.
    Each,
}

impl LookAfter {
    fn repeats(self) -> RangeInclusive<u32> {
        match self {
            Self::Once(repeats) => repeats..=repeats,
            Self::Each => REPEATS_MIN..=REPEATS_MAX,
        }
    }
}

/// The decisions of many runs about one comparison.
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
        let shares = [self.changed, self.unchanged, open];
        shares.map(|share| format!("{:.0}", 100.0 * share.abs())).join(" | ")
    }
}

/// Decides one comparison in many runs, each with as many looks as it takes.
fn decide(truth: Truth, look_after: LookAfter) -> Decided {
    let looks = match look_after {
        LookAfter::Once(_) => Looks::Once,
        LookAfter::Each => Looks::Growing,
    };
    let truth = Truth { looks, repeats: REPEATS_MAX, ..truth };
    let mut random = Random::new(1);
    let mut decided = Decided::default();
    for _ in 0..RUNS_TO_DECIDE {
        let figures = truth.measure(&mut random);
        let mut repeats_taken = REPEATS_MAX;
        for repeats in look_after.repeats() {
            let compared = look(&figures, repeats, ERROR_RATE);
            let (is_changed, is_unchanged) = (has_change(&compared), has_no_change(&compared));
            decided.changed += f64::from(u8::from(is_changed));
            decided.unchanged += f64::from(u8::from(is_unchanged));
            if is_changed || is_unchanged {
                repeats_taken = repeats;
                break;
            }
        }
        decided.repeats += f64::from(repeats_taken);
    }
    let runs = f64::from(RUNS_TO_DECIDE);
    Decided {
        repeats: decided.repeats / runs,
        changed: decided.changed / runs,
        unchanged: decided.unchanged / runs,
    }
}

/// Compares what was measured after some repeats.
fn look(figures: &Figures, repeats: u32, error_rate: f64) -> Compared {
    let options = CompareOptions {
        base: BASE.to_owned(),
        effect: EFFECT,
        error_rate,
        metrics: Vec::new(),
        ..CompareOptions::default()
    };
    compare(&first_repeats(figures, repeats), &options)
}

fn has_change(compared: &Compared) -> bool {
    has(compared, &[Verdict::Faster, Verdict::Slower])
}

fn has_no_change(compared: &Compared) -> bool {
    has(compared, &[Verdict::Equal])
}

fn has(compared: &Compared, verdicts: &[Verdict]) -> bool {
    let mut throughput = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    throughput.any(|row| verdicts.contains(&row.verdict))
}
