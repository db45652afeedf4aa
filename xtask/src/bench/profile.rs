//! Compares measured repeats of a plan that also profiles with those of one that does not.

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, THROUGHPUT, pair};
use super::run::lookups;

/// Runs the pair. An equal pair differs by as much on a machine with neighbors.
pub fn run(setup: &Setup) -> Result<bool> {
    pair(
        setup.round_count,
        ("with [profile]", &|| lookups(setup, 0, "[profile]\n")),
        ("without", &|| lookups(setup, 0, "")),
        &[(CPU, Bound::AtMost(1.1)), (THROUGHPUT, Bound::AtLeast(0.9))],
    )
}
