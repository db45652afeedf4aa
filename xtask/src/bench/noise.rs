//! Compares a program with itself. The ratio should be 1; the difference is the noise of this
//! machine in any other pair.

use std::process::Command;

use anyhow::Result;

use super::Setup;
use super::measure::{finish, pair};

/// Iterations of a shell's loop: a few tenths of a second, nearly all of it user CPU.
const ITERATION_COUNT: u64 = 400_000;

/// Runs the pair. It has no bound: it describes the machine.
pub fn run(setup: &Setup) -> Result<bool> {
    let iterate = || {
        let script = format!("i=0; while [ $i -lt {ITERATION_COUNT} ]; do i=$((i+1)); done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        Ok(finish(command)?.sample(ITERATION_COUNT))
    };
    pair(setup.round_count, ("first", &iterate), ("second", &iterate), &[])
}
