//! Measures how often a period is found in throughput that has none, and how often a true one is
//! found with its cause: tables of `docs/validation.md`, through the same code as `assay show`.
//! `cargo xtask bench swings` runs it.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/random.rs"]
mod random;
#[path = "../tests/it/swing/shapes.rs"]
mod shapes;

use std::process::ExitCode;

use analysis::figures::swing::Swing;
use shapes::{EVENT, NOISES, Random, Rhythm, Shape, SwingingStep, Truth};

/// Simulated steps of noise for each figure, and steps that swing.
const NOISE_STEPS: u32 = 1000;
const SWINGING_STEPS: u32 = 100;

/// The lengths of steps in seconds.
const LENGTHS: [usize; 5] = [40, 60, 120, 180, 600];

/// The most steps of noise of which a period may be claimed, and of coincidences that may be
/// called in step.
const FALSE_PERIODS_MAX: f64 = 0.02;
const COINCIDENCES_MAX: f64 = 0.1;

/// The least share of steps of 600 s in which a strict rhythm with half of the variance must be
/// found.
const FOUND_MIN: f64 = 0.9;

fn main() -> ExitCode {
    let is_kept = [print_noise(), print_swings(), print_named()];
    if is_kept.iter().all(|kept| *kept) {
        ExitCode::SUCCESS
    } else {
        println!("\na period is missed or claimed too often, or a wrong cause is named too often");
        ExitCode::FAILURE
    }
}

/// Prints the percentages of steps of noise in which a period is claimed. Returns whether they are
/// within the bound.
fn print_noise() -> bool {
    print_head("throughput");
    let mut is_kept = true;
    for noise in &NOISES {
        print!("| {} |", noise.name);
        for seconds in LENGTHS {
            let mut random = Random::new(seconds as u64);
            let found = (0..NOISE_STEPS).filter(|_| noise.swing(&mut random, seconds).is_some());
            let share = found.count() as f64 / f64::from(NOISE_STEPS);
            print!(" {:.2} |", 100.0 * share);
            is_kept &= share <= FALSE_PERIODS_MAX;
        }
        println!();
    }
    is_kept
}

fn print_head(first: &str) {
    print!("\n| {first} |");
    for seconds in LENGTHS {
        print!(" {seconds} s |");
    }
    println!("\n|---|{}", "---|".repeat(LENGTHS.len()));
}

/// Shapes of rhythms that must be found.
const SHAPES: [Shape; 3] = [Shape::Sine, Shape::Sawtooth, Shape::Dips(0.15)];

/// Prints the percentages of steps in which a period with half of the variance is found, within
/// 10% of the truth. Returns whether strict ones are found.
fn print_swings() -> bool {
    print_head("rhythm with half of the variance");
    let mut is_kept = true;
    for shape in SHAPES {
        for period in [7.0, 20.0] {
            for jitter in [0.0, 0.05, 0.15] {
                let rhythm = Rhythm { period, jitter, shape };
                let step = SwingingStep { truth: Truth::Engine, rhythm, share: 0.5 };
                print!("| {}, {period} s ± {:.0}% |", shape.name(), 100.0 * jitter);
                for seconds in LENGTHS {
                    if (seconds as f64) < 5.0 * period {
                        print!(" – |");
                        continue;
                    }
                    let mut random = Random::new(seconds as u64);
                    let swings =
                        (0..SWINGING_STEPS).filter_map(|_| step.swing_alone(&mut random, seconds));
                    let found = swings.filter(|swing| is_near(swing, period)).count();
                    let found = found as f64 / f64::from(SWINGING_STEPS);
                    print!(" {:.0} |", 100.0 * found);
                    let must_be_found = jitter == 0.0 && seconds >= 600;
                    is_kept &= !must_be_found || found >= FOUND_MIN;
                }
                println!();
            }
        }
    }
    is_kept
}

fn is_near(swing: &Swing, period: f64) -> bool {
    (swing.period_seconds / period - 1.0).abs() <= 0.1
}

/// Prints what is named as keeping step in steps of 180 s: the event, other load of the host, and
/// decoys. Returns whether what has nothing to do with the swing is named seldom.
fn print_named() -> bool {
    println!("\n| truth | rhythm | found | the event | the host's other load | a decoy |");
    println!("|---|---|---|---|---|---|");
    let mut is_kept = true;
    for (truth, what) in [
        (Truth::Engine, "the event drives it"),
        (Truth::Coincidence, "the event has the same period by chance"),
        (Truth::Neighbor, "a neighbor drives it, and the event has the same period"),
    ] {
        for shape in [Shape::Dips(0.4), Shape::Sine] {
            for (period, jitter) in [(7.0, 0.0), (7.0, 0.05), (20.0, 0.0), (20.0, 0.05)] {
                let rhythm = Rhythm { period, jitter, shape };
                let step = SwingingStep { truth, rhythm, share: 0.5 };
                let [found, event, host, decoy] = named_shares(&step);
                println!(
                    "| {what} | {}, {period} s ± {:.0}% | {:.1} | {:.1} | {:.1} | {:.1} |",
                    shape.name(),
                    100.0 * jitter,
                    100.0 * found,
                    100.0 * event,
                    100.0 * host,
                    100.0 * decoy
                );
                is_kept &= decoy <= COINCIDENCES_MAX;
                is_kept &= truth == Truth::Engine || event <= COINCIDENCES_MAX;
                is_kept &= truth == Truth::Neighbor || host <= COINCIDENCES_MAX;
            }
        }
    }
    is_kept
}

/// Returns the shares of steps of 180 s in which a swing is found, the event is named, other load
/// of the host, and a decoy.
fn named_shares(step: &SwingingStep) -> [f64; 4] {
    let mut random = Random::new(180);
    let mut counts = [0_u32; 4];
    for swing in (0..SWINGING_STEPS).filter_map(|_| step.swing(&mut random, 180)) {
        let has = |is_so: fn(&str) -> bool| swing.in_step.iter().any(|one| is_so(&one.name));
        let found =
            [true, has(|name| name == EVENT), swing.host_load.is_some(), has(|name| name != EVENT)];
        for (count, found) in counts.iter_mut().zip(found) {
            *count += u32::from(found);
        }
    }
    counts.map(|count| f64::from(count) / f64::from(SWINGING_STEPS))
}
