//! `assay history`: since when steps changed, over all runs below a folder.

use analysis::history::history;
use anyhow::Context;
use inquiry::shelf::{HistoryRuns, read_all, run_folders};
use report::{HistoryView, json_text, terminal_text};
use runner::failure::UsageError;
use words::counted;

use crate::cli::{Format, HistoryArgs, RESULTS_HELP};
use crate::exit::Exit;
use crate::output::{eprint_line, print, style};

/// Prints the history of the runs below a folder.
pub fn run(args: &HistoryArgs) -> anyhow::Result<Exit> {
    let mut reading = read_all(&run_folders(&args.folder));
    say_what_is_left_out(&reading);
    if !args.steps.is_empty() {
        reading.keep_steps(&args.steps);
    }
    if !args.plans.is_empty() {
        reading.keep_plans(&args.plans);
    }
    if reading.runs.is_empty() {
        return Err(nothing_to_show(args).into());
    }

    let options = args.options();
    let found = history(&reading.runs, &options);
    let folder = args.folder.display().to_string();
    let view = HistoryView {
        folder: &folder,
        runs: &reading.runs,
        names: &reading.names,
        history: &found,
        error_rate: options.levels.error_rate,
        effect: options.levels.effect,
    };

    print(&match args.format {
        Format::Table => report::history(&view, style()),
        Format::Json => json_text(&report::history_json(&view))?,
        Format::Csv => report::history_csv(&view),
        Format::Markdown => report::history_markdown(&view),
    })?;

    if let Some(file) = &args.html {
        fs_err::write(file, report::history_page(&view)).context("cannot write the page")?;
        eprint_line!("page: {}", terminal_text(&file.display().to_string()));
    }

    // A regression says more than a run that cannot be read.
    let is_regressed = found.changes().iter().any(|(_, change)| change.fails_gate());
    Ok(if args.gate && is_regressed {
        Exit::Regressed
    } else if reading.failures.is_empty() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

/// Prints which runs are not part of the history, and why.
fn say_what_is_left_out(reading: &HistoryRuns) {
    for failure in &reading.failures {
        eprint_line!("error: {}", terminal_text(failure));
    }

    if reading.in_progress > 0 {
        eprint_line!("note: {} in progress left out", counted(reading.in_progress, "run"));
    }
    if reading.copies > 0 {
        eprint_line!(
            "note: {} left out: each run counts once",
            counted(reading.copies, "duplicate")
        );
    }
}

fn nothing_to_show(args: &HistoryArgs) -> UsageError {
    let shown = terminal_text(&args.folder.display().to_string());
    let message = if args.plans.is_empty() {
        format!("there are no runs below `{shown}`")
    } else {
        format!("there are no runs of that plan below `{shown}`")
    };

    UsageError::new(message, Some(RESULTS_HELP.into()))
}
