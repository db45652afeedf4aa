//! The commands with which a user continues after a run.

use std::collections::BTreeSet;

use analysis::compare::{CompareOptions, ComparedStep, EFFECT, THROUGHPUT, Verdict, compare};
use analysis::figures::Figures;
use record::{Run, RunDir};
use runner::matrix::incomplete::resume_command;
use words::shell_quoted;

/// The kind of designs whose effects may be interactions.
const SCREENING: &str = "screening";

/// Returns the commands that tell more about a complete run, as sentences.
pub fn next_commands(directory: &RunDir, run: &Run, figures: &Figures) -> Vec<String> {
    let path = shell_quoted(&directory.path().display().to_string());
    let tables = format!("`assay show {path} --all` prints all tables");

    // A search adds its own repeats.
    if run.search.is_some() {
        return vec![tables];
    }

    // A base alone can be compared only with what is measured later.
    let has_one_target = run.cells.iter().all(|cell| cell.key.target == run.base);
    if has_one_target {
        let later =
            format!("`assay compare {path} LATER-RUN --by-run` compares a later run with this one");
        return vec![tables, later];
    }

    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    let repeats: BTreeSet<u32> = measured.map(|cell| cell.key.repeat).collect();
    let repeat_count = repeats.len() as u32;
    let resume = resume_command(directory, run);
    let twice_as_many = format!(
        "`{resume} --repeats {}` doubles the repeats, for narrower intervals",
        2 * repeat_count.max(1)
    );

    if run.design.is_some() {
        return of_design(run, &path, twice_as_many);
    }
    if repeat_count <= 1 {
        let more = format!("`{resume} --repeats 5` adds the repeats that verdicts need");
        return vec![more, tables];
    }

    let costs = format!("`assay compare {path}` also shows what each operation costs");
    let mut commands = vec![costs, twice_as_many];
    if let Some(change) = largest_change(run, figures) {
        let base = shell_quoted(&run.base);
        let target = shell_quoted(&change.cell.target);
        let step = shell_quoted(&change.step);
        commands.push(format!(
            "`assay bundle {path} --between {base} {target} --step {step}` writes the largest \
             change as a bug report"
        ));
    }
    commands
}

/// Returns the comparison with the largest change of throughput that is shown.
fn largest_change(run: &Run, figures: &Figures) -> Option<ComparedStep> {
    let options = CompareOptions {
        base: run.base.clone(),
        effect: figures.effect.unwrap_or(EFFECT),
        ..CompareOptions::default()
    };
    let shown = compare(figures, &options).rows.into_iter().filter(|row| {
        row.metric == THROUGHPUT && matches!(row.verdict, Verdict::Faster | Verdict::Slower)
    });

    let size = |row: &ComparedStep| row.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    shown.max_by(|a, b| size(a).total_cmp(&size(b)))
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
