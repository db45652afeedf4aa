//! The commands with which a user continues after a run.

use std::collections::BTreeSet;

use record::{Run, RunDir};
use runner::matrix::incomplete::resume_command;

/// Returns the commands that tell more about a complete run.
pub fn next_commands(directory: &RunDir, run: &Run) -> Vec<String> {
    let path = directory.path().display();
    let tables = format!("`assay show {path} --all` prints all tables");
    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    let numbers: BTreeSet<u32> = measured.map(|cell| cell.key.repeat).collect();
    let more = |repeats: u32, why: &str| {
        let resume = resume_command(directory, run);
        format!("`{resume} --repeats {repeats}` {why}")
    };
    match numbers.len() as u32 {
        _ if run.search.is_some() => [tables].into(),
        _ if run.cells.iter().all(|cell| cell.key.target == run.base) => [
            tables,
            format!("`assay compare {path} LATER-RUN --by-run` compares a later run with this one"),
        ]
        .into(),
        0 | 1 => [more(5, "adds the repeats that verdicts need"), tables].into(),
        repeats => [
            format!("`assay compare {path}` also shows what each operation costs"),
            more(2 * repeats, "doubles the repeats, for narrower intervals"),
            format!(
                "`assay bundle {path} --between A B --step S` writes a finding as a bug report"
            ),
        ]
        .into(),
    }
}
