//! How often verdicts are wrong where nothing changed. Machines are simulated; comparisons are made by the code of `assay compare`.

use anyhow::Result;

use super::Setup;
use crate::workspace::{Workspace, succeeds};

/// Runs the simulation, which prints its tables; false when a balanced order makes too many false claims.
pub fn run(_: &Setup) -> Result<bool> {
    let mut command = Workspace::here().cargo();
    command.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "analysis",
        "--example",
        "verdicts",
    ]);
    succeeds(&mut command)
}
