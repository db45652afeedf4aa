//! The commands with which a user continues after a run.

use std::collections::BTreeSet;

use record::{Run, RunDir};
use runner::matrix::incomplete::resume_command;

/// The kind of designs whose effects may be interactions.
const SCREENING: &str = "screening";

/// Returns the commands that tell more about a complete run.
pub fn next_commands(directory: &RunDir, run: &Run) -> Vec<String> {
    let path = directory.path().display();
    let tables = format!("`assay show {path} --all` prints all tables");

    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    let numbers: BTreeSet<u32> = measured.map(|cell| cell.key.repeat).collect();
    let repeats = numbers.len() as u32;
    let more = |repeats: u32, why: &str| {
        let resume = resume_command(directory, run);
        format!("`{resume} --repeats {repeats}` {why}")
    };

    // A search adds its own repeats.
    if run.search.is_some() {
        return vec![tables];
    }

    // A base alone can be compared only with what is measured later.
    if run.cells.iter().all(|cell| cell.key.target == run.base) {
        return vec![
            tables,
            format!("`assay compare {path} LATER-RUN --by-run` compares a later run with this one"),
        ];
    }

    if run.design.is_some() {
        let more = more(2 * repeats.max(1), "doubles the repeats, for narrower intervals");
        return of_design(run, &path.to_string(), more);
    }
    if repeats <= 1 {
        return vec![more(5, "adds the repeats that verdicts need"), tables];
    }

    vec![
        format!("`assay compare {path}` also shows what each operation costs"),
        more(2 * repeats, "doubles the repeats, for narrower intervals"),
        format!("`assay bundle {path} --between A B --step S` writes a finding as a bug report"),
    ]
}

/// Returns the commands that tell more about a designed experiment.
fn of_design(run: &Run, path: &str, more: String) -> Vec<String> {
    let mut commands = vec![
        format!(
            "`assay compare {path} --by design` shows all effects, and what they may be instead"
        ),
        more,
    ];

    let Some(design) = &run.design else {
        return commands;
    };
    let is_folded = design.targets.iter().any(|target| target.is_folded);
    if design.kind == SCREENING && !is_folded {
        commands.push(format!("`assay augment {path}` tells effects from interactions"));
    }

    commands
}
