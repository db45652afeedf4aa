//! Measures how often lags of known shapes are found to grow: a table of `docs/validation.md`,
//! through the same code as `assay show`. `cargo xtask bench lag-verdicts` runs it.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../tests/it/random.rs"]
mod random;
#[path = "../tests/it/lag/shapes.rs"]
mod shapes;

use std::process::ExitCode;

use analysis::figures::LagVerdict;
use shapes::{HELD_OUT, Random, SHAPES, Shape};

/// Simulated steps for each figure.
const STEPS: u32 = 1000;

/// The lengths of steps in seconds.
const LENGTHS: [usize; 6] = [10, 20, 30, 40, 60, 120];

/// The shortest step whose rates are bounded.
const BOUNDED_FROM: usize = 20;

fn main() -> ExitCode {
    // The first table's thresholds were chosen by its shapes, so its demands are higher.
    let is_found = print_table(&SHAPES, 0.8, 0.999);
    println!();
    let is_found_elsewhere = print_table(&HELD_OUT, 0.0, 0.85);

    if is_found && is_found_elsewhere {
        ExitCode::SUCCESS
    } else {
        println!("\na growing lag is missed too often, or a bounded one is called growing");
        ExitCode::FAILURE
    }
}

/// Prints the rates of some shapes. Returns whether each growing lag is found in `found_min` of
/// steps and not called bounded in `not_bounded_min`, and no other is called growing too often.
fn print_table(shapes: &[Shape], found_min: f64, not_bounded_min: f64) -> bool {
    print!("| shape |");
    for seconds in LENGTHS {
        print!(" {seconds} s |");
    }
    println!("\n|---|{}", "---|".repeat(LENGTHS.len()));

    let mut is_kept = true;
    for shape in shapes {
        print!("| {} |", shape.name);
        for seconds in LENGTHS {
            let [grows, undecided] = rates(shape, seconds);
            print!(" {:.1}, {:.1} |", 100.0 * grows, 100.0 * undecided);
            let keeps = if shape.grows {
                grows >= found_min && grows + undecided > not_bounded_min
            } else {
                grows <= 0.05
            };
            is_kept &= keeps || seconds < BOUNDED_FROM;
        }
        println!();
    }
    is_kept
}

/// Returns the shares of steps in which the lag is found to grow, and in which that is undecided.
fn rates(shape: &Shape, seconds: usize) -> [f64; 2] {
    let mut random = Random::new(seconds as u64);
    let mut counts = [0_u32; 2];
    for _ in 0..STEPS {
        match shape.verdict(&mut random, seconds) {
            LagVerdict::Grows => counts[0] += 1,
            LagVerdict::Undecided => counts[1] += 1,
            _ => {}
        }
    }
    counts.map(|count| f64::from(count) / f64::from(STEPS))
}
