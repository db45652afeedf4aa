//! Adds profiles of 10,000 samples to the record of an invented run, for benchmarks: `profiles
//! RUN`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests use all of it, and what is made by rule is well formed"
)]

#[path = "../tests/it/synthetic.rs"]
mod synthetic;
use std::path::Path;

use record::{Cell, CellKey, CellRef, RunDir, Status, Step, StepKind, StepProfile};
use synthetic::{ALL_STEPS, noise};
use words::{CellKind, Stacks};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let run = RunDir::open(Path::new(&path)).unwrap();
    let steps = ALL_STEPS.iter().copied();
    let steps: Vec<_> = steps.filter(|(name, _, _)| *name != "settle").collect();
    add_profiles(&run, &steps, 10_000);
}

/// Adds a profiled cell to each target of a run that was written, with these steps and samples in
/// each.
fn add_profiles(directory: &RunDir, steps: &[(&str, StepKind, f64)], samples: u64) {
    let mut run = directory.read_run().unwrap();
    for (target, of_run) in run.cells.clone().iter().enumerate() {
        // One was never started.
        let Ok(measured) = directory.cell(of_run).unwrap().read() else {
            continue;
        };
        let key = CellKey { kind: CellKind::Profiled, ..measured.key.clone() };
        let reference = CellRef::of(key, &of_run.workload);
        let cell = directory.begin_cell(&reference).unwrap();
        cell.write(&Cell { key: reference.key.clone(), ..measured }).unwrap();
        for (number, (name, kind, _)) in steps.iter().enumerate() {
            let mut writer = cell.begin_step(number as u32 + 1, name, &[]).unwrap();
            writer.profile(&stacks((target * 64 + number) as u64, samples)).unwrap();
            let profile = StepProfile {
                event: "cycles".to_string(),
                frequency_hz: 199,
                call_graph: "fp".to_string(),
                samples,
                ..StepProfile::default()
            };
            let step = Step {
                name: (*name).to_string(),
                kind: *kind,
                status: Status::Complete,
                valid: true,
                elapsed_ns: 60_000_000_000,
                profile: Some(profile),
                ..Step::default()
            };
            writer.finish(&step).unwrap();
        }
        run.cells.push(reference);
    }
    directory.write_run(&run).unwrap();
}

/// Returns call stacks of a program with 1500 functions: few callees have most of a function's
/// samples.
fn stacks(seed: u64, samples: u64) -> Stacks {
    const OUTER: [&str; 6] =
        ["postgres", "_start", "main", "PostmasterMain", "ServerLoop", "PostgresMain"];
    let name = |function: u64| format!("function_{function:04}_of_the_executor");
    let mut stacks = Stacks::default();
    for sample in 0..samples {
        let mut function = 0;
        let mut frames: Vec<String> = OUTER.iter().map(|frame| (*frame).to_string()).collect();
        for depth in 0..40 {
            let drawn = |what: u64| noise((seed * samples + sample) * 128 + depth * 2 + what);
            if depth > 4 && drawn(0) < 0.12 {
                break;
            }
            let callee = (6.0 * drawn(1).powi(3)) as u64;
            function = (noise(function * 8 + callee) * 1500.0) as u64;
            frames.push(name(function));
        }
        stacks.add(frames.iter().map(String::as_str), 1);
    }
    stacks
}
