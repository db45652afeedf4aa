//! Writes the record of an invented run, for benchmarks: `record RESULTS TARGETS CLIENTS SECONDS`.
//! Prints its directory.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the tests use all of it, and what is made by rule is well formed"
)]

#[path = "../tests/it/synthetic.rs"]
mod synthetic;
#[path = "../tests/it/written.rs"]
mod written;

use synthetic::{ALL_STEPS, Size};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse().unwrap();
    // The ten measured steps.
    let steps: Vec<_> =
        ALL_STEPS.iter().copied().filter(|(name, _, _)| *name != "settle").collect();
    let size =
        Size { targets: number(1), clients: number(2), seconds: number(3), steps: steps.leak() };
    let run = written::write(std::path::Path::new(&arguments[0]), size);
    println!("{}", run.path().display());
}
