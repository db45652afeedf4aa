//! One program against itself. The ratio should be 1: how far it is from it is what this machine adds to any other pair.

use std::process::Command;

use anyhow::{Context, Result};

use super::Setup;
use super::pair::{Contender, Finished, Pair};

/// Turns of a shell's loop: a few tenths of a second, nearly all of it user CPU.
const TURN_COUNT: u64 = 400_000;

/// Runs the pair. It has no bound: it is a fact about the machine.
pub fn run(setup: &Setup) -> Result<bool> {
    let side = |name: &str| Contender {
        name: name.to_owned(),
        command: Box::new(|| {
            let mut command = Command::new("sh");
            command.args([
                "-c",
                &format!("i=0; while [ $i -lt {TURN_COUNT} ]; do i=$((i+1)); done; echo $i"),
            ]);
            Ok(command)
        }),
        read: Box::new(|finished: &Finished| {
            let turn_count = finished
                .stdout
                .trim()
                .parse()
                .context("the loop printed no number")?;
            Ok(finished.sample(turn_count))
        }),
    };
    Pair {
        ours: side("first"),
        peer: side("second"),
        bounds: Vec::new(),
    }
    .run(setup.round_count)
}
