//! Exact cells: the engine runs under callgrind, which counts its instructions.
//!
//! * [`Window`](window::Window) says when to count in a step, and lets connections work in turn.
//! * [`in_turn`] makes the connections of a step ask the window.
//! * [`Counting`](counting::Counting) switches callgrind on and off, and sorts what it counted.
//!
//! A server runs under callgrind by itself. An engine that is a library runs with the client in a
//! process of its own ([`isolated`](crate::cells::isolated)), whose functions are sorted into the
//! engine's and the client's.

mod counting;
mod in_turn;
mod sorting;
mod window;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use engine::{DataDir, Wrapper};
use plan::{Plan, Simulate};
use profile::callgrind::{Callgrind, Options};
use words::CellKind;

use crate::ground::failure::UsageError;

pub use counting::{CountedLoad, CountedStep, Counting, StepToCount};

/// The directory of callgrind's files, in that of the server or of the target.
pub const FOLDER: &str = "callgrind";

/// Refuses exact cells if callgrind is not installed.
pub fn require_tool() -> Result<(), UsageError> {
    match Callgrind::find() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(UsageError::new(format!("exact cells cannot be measured: {error}"), None))
        }
    }
}

/// The tool with which the work of a cell is counted.
#[derive(Debug)]
pub struct Tool {
    callgrind: Callgrind,
    options: Options,
}

impl Tool {
    /// Returns the tool of an exact cell; `None` for any other cell.
    ///
    /// # Errors
    /// Callgrind is not installed.
    pub fn of(plan: &Plan, planned: plan::Cell) -> anyhow::Result<Option<Self>> {
        if planned.kind != CellKind::Exact {
            return Ok(None);
        }

        let engine = plan.builds[plan.targets[planned.target].build].engine;

        let options = Options {
            simulate_cache: plan.exact.simulate == Simulate::Cache,
            // A library's process starts only tools, such as those that count.
            leaves_out_programs: !engine.facts().is_server(),
        };

        Ok(Some(Self { callgrind: Callgrind::find()?, options }))
    }
}

impl Wrapper for Tool {
    fn folder(&self) -> &str {
        FOLDER
    }

    fn command(&self, folder: &Path) -> Vec<OsString> {
        self.callgrind.command(folder, self.options)
    }
}

/// Creates an empty directory for callgrind's files in a target's directory, which no other user
/// can enter.
pub fn begin_folder(home: &Path) -> anyhow::Result<PathBuf> {
    let folder = DataDir::create(home, FOLDER)?;
    folder.wipe()?;
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))?;
    Ok(folder.path().to_owned())
}

/// Returns the directory of callgrind's files for a target that runs in a process of assay.
pub fn folder_of_process(home: &Path) -> PathBuf {
    home.join(FOLDER)
}
