//! One program against itself. The ratio should be 1: how far it is from it is what this machine adds to any other pair.

use std::process::Command;

use anyhow::Result;

use super::Setup;
use super::measure::{finish, pair};

/// Turns of a shell's loop: a few tenths of a second, nearly all of it user CPU.
const TURN_COUNT: u64 = 400_000;

/// Runs the pair. It has no bound: it is a fact about the machine.
pub fn run(setup: &Setup) -> Result<bool> {
    let turns = || {
        let script = format!("i=0; while [ $i -lt {TURN_COUNT} ]; do i=$((i+1)); done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        Ok(finish(command)?.sample(TURN_COUNT))
    };
    pair(
        setup.round_count,
        ("first", &turns),
        ("second", &turns),
        &[],
    )
}
