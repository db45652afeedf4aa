//! The names of runs, cells and steps in the file system.

use crate::step_writer::STEP_FILE;
use crate::{CellKey, CellRef, Run};

/// The folder of all cells, in the run's directory.
pub(crate) const CELLS: &str = "cells";
/// The folder of all steps, in the cell's directory.
pub(crate) const STEPS: &str = "steps";

/// Returns the name of the directory of a finished step.
pub(crate) fn step_name(number: u32, name: &str) -> String {
    format!("{number:02}-{name}")
}

/// Returns the name of the `step.json` in the directory of a finished step, relative to the cell.
pub(crate) fn step_file_name(directory: &str) -> String {
    format!("{STEPS}/{directory}/{STEP_FILE}")
}

impl CellRef {
    /// Returns a measured cell with its directory.
    pub fn new(
        target: &str,
        workload: &str,
        variant: Option<&str>,
        clients: u32,
        repeat: u32,
    ) -> Self {
        Self::of(CellKey::new(target, variant, clients, repeat), workload)
    }

    /// Returns a cell with its directory: `cells/TARGET/[VARIANT/]cCLIENTS/rREPEAT`, with another
    /// letter for `r` if it is not measured: see [`words::CellKind::letter`].
    pub fn of(key: CellKey, workload: &str) -> Self {
        let variant_directory = match &key.variant {
            Some(variant) => format!("{}/", file_name_of(variant)),
            None => String::new(),
        };

        let letter = key.kind.letter();
        Self {
            workload: workload.to_owned(),
            path: format!(
                "{CELLS}/{}/{variant_directory}c{}/{letter}{}",
                file_name_of(&key.target),
                key.clients,
                key.repeat
            ),
            key,
        }
    }

    /// Returns the name of the cell, `TARGET/[VARIANT/]cCLIENTS/rREPEAT`, which is its directory
    /// below `cells/`.
    pub fn name(&self) -> &str {
        let below = self.path.strip_prefix(CELLS);
        below.map_or(&self.path, |name| name.trim_start_matches('/'))
    }
}

/// Returns the name of a run's directory, from its start and its name: `20261121T190211Z-round-6`.
pub(crate) fn run_name(run: &Run) -> String {
    dated_name(run.started_unix_ns, &run.name)
}

/// Returns the name of a directory that is begun now: `20261121T190211Z-round-6`.
pub fn name_with_moment(name: &str) -> String {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    dated_name(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX), name)
}

fn dated_name(unix_ns: u64, name: &str) -> String {
    format!("{}-{}", compact_time(unix_ns), file_name_of(name))
}

/// Formats a time as `20261121T190211Z`.
fn compact_time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Replaces characters that a file name should not have.
pub(crate) fn file_name_of(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let plain = name.replace(|letter| !is_plain(letter), "-");

    match plain.chars().next() {
        None => "-".into(),
        Some('.') => format!("-{}", &plain[1..]),
        Some(_) => plain,
    }
}
