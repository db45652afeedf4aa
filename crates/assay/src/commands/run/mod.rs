//! `assay run` and `assay find`: run a plan, then show its results from the record.

mod next;

use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::{compare::CompareOptions, figures::Figures};
use inquiry::bundle;
use record::{CellKey, RateSearch, Run, RunDir, Status};
use report::Curves;
use runner::{CellRequest, Events as _, MeasuredCells, RunEnd, RunOutcome, RunRequest};

use super::report::write_report as write_report_of;
use crate::cli::{CellArgs, FindArgs, LibraryArgs, PlaceArgs};
use crate::display::Display;
use crate::exit::{Exit, report_error};
use crate::output::{print, style};
use crate::run_view::RunView;
use next::next_commands;

/// Runs a plan, or resumes a run, and prints its results.
pub fn run(request: &RunRequest, place: &PlaceArgs) -> anyhow::Result<Exit> {
    let finding = bundle::prepare(request, &|line| eprintln!("{line}"))?;
    let view = RunView::new(place).with_finding(finding);
    // A load rank has nothing to show.
    let Some(outcome) = runner::run(request, &view)? else {
        return Ok(Exit::Ok);
    };

    let display = &view.display;
    match &outcome.end {
        RunEnd::Measured(measured) => show_measured(&outcome, measured, display),
        RunEnd::NothingMatches => {
            let path = request.resume.as_deref().unwrap_or(outcome.directory.path());
            print(&format!("{}\n", path.display()))?;
            Ok(Exit::Ok)
        }
        RunEnd::WasComplete => finish(&outcome, Exit::Ok),
        RunEnd::BecameComplete => {
            renew_report(&outcome.directory);
            finish(&outcome, Exit::Ok)
        }
    }
}

/// Begins a search and runs it to its end.
pub fn find(args: &FindArgs) -> anyhow::Result<Exit> {
    let ms = |bound: Duration| bound.as_nanos() as f64 / 1e6;
    let request = RunRequest {
        plan: args.plan.request(),
        only: args.only.clone(),
        search: Some(RateSearch {
            step: args.step.clone(),
            p99_ms: args.p99.map(ms),
            lag_ms: args.lag.map(ms),
            rate_max: args.to,
            tolerance: args.tolerance / 100.0,
            // The plan has them.
            repeats: 0,
        }),
        ..args.place.request()
    };

    run(&request, &args.place)
}

/// Runs the process of a cell. Its exit code tells whether the cell's end is recorded.
pub fn cell(args: &CellArgs) -> anyhow::Result<Exit> {
    let view = RunView::of_cell(args)?;
    let request = CellRequest {
        run: args.run.clone(),
        cell: args.cell.clone(),
        data: args.data.clone(),
        pipes: args.pipes(),
        reuse: args.reuse.clone(),
    };

    runner::run_cell(&request, &view)?;
    Ok(Exit::Ok)
}

/// Loads the library and prints what it is. If stdin has a config, also prints the result of trying
/// it.
pub fn library(args: &LibraryArgs) -> anyhow::Result<Exit> {
    runner::describe_library(&args.engine, &args.path, std::io::stdin(), print)?;
    Ok(Exit::Ok)
}

/// Prints the run's directory.
fn finish(outcome: &RunOutcome, exit: Exit) -> anyhow::Result<Exit> {
    print(&format!("{}\n", outcome.directory.path().display()))?;
    Ok(exit)
}

/// Prints the results of a run, writes its report, and says what to do next.
fn show_measured(
    outcome: &RunOutcome,
    measured: &MeasuredCells,
    display: &Display,
) -> anyhow::Result<Exit> {
    let RunOutcome { directory, run, .. } = outcome;
    let (figures, curves) =
        analysis::figures::figures_and(std::slice::from_ref(directory), Curves::take)?;

    let report = write_report(directory, &figures, &curves);
    if !display.is_quiet() {
        print(&report::tables_brief(run, &figures, style()))?;
        if measured.is_against_itself {
            print(&noise(run, &figures))?;
        }
    }

    if let Some(report) = report {
        let report = std::path::absolute(&report).unwrap_or(report);
        display.say(&format!("report: {}", file_url(&report)));
    }

    if run.status == Status::Complete {
        for next in next_commands(directory, run, &figures) {
            display.say(&format!("next: {next}"));
        }
    }
    if let Some(incomplete) = &measured.incomplete {
        display.say(incomplete);
    }

    let mut exit = exit_of(run, &figures, measured.is_part.then_some(&measured.cells));
    if let Some(reproduction) = bundle::judge(directory, run, &figures) {
        for line in &reproduction.lines {
            display.say_even_if_quiet(line);
        }
        // A run that failed has no finding to reproduce, and its own code says so.
        if exit == Exit::Ok {
            exit = exit_of_repetition(&reproduction.outcome);
        }
    }

    finish(outcome, exit)
}

/// Returns the exit code of a run that repeats a finding, if it has no worse one.
fn exit_of_repetition(outcome: &bundle::ReproductionVerdict) -> Exit {
    match outcome {
        bundle::ReproductionVerdict::Reproduced { .. } => Exit::Ok,
        bundle::ReproductionVerdict::NotReproduced { .. } => Exit::Regressed,
        bundle::ReproductionVerdict::Undecided { .. }
        | bundle::ReproductionVerdict::NotCompared => Exit::Invalid,
    }
}

/// Writes the report of a run whose record was finished late.
fn renew_report(directory: &RunDir) {
    match analysis::figures::figures_and(std::slice::from_ref(directory), Curves::take) {
        Ok((figures, curves)) => {
            write_report(directory, &figures, &curves);
        }
        Err(error) => {
            report_error(&error.into());
        }
    }
}

/// Returns the path of the report; `None` if it cannot be written, which is not fatal: it can be
/// made again.
fn write_report(directory: &RunDir, figures: &Figures, curves: &[Curves]) -> Option<PathBuf> {
    match write_report_of(directory, figures, curves) {
        Ok(output) => Some(output),
        Err(error) => {
            report_error(&error);
            None
        }
    }
}

/// Returns the URL of a file.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => url += &format!("%{byte:02X}"),
        }
    }

    url
}

/// Returns the noise of the machine that a run of a target against itself shows.
fn noise(run: &Run, figures: &Figures) -> String {
    let options =
        CompareOptions { base: run.base.clone(), metrics: Vec::new(), ..CompareOptions::default() };
    let compared = analysis::compare::compare(figures, &options);
    format!("\n{}", report::noise_floor(&compared, style()))
}

/// Returns the exit code for the results of a run. `measured` are the cells of this invocation: if
/// only they are complete, they count, and not what else the run lacks.
fn exit_of(run: &Run, figures: &Figures, measured: Option<&Vec<CellKey>>) -> Exit {
    let is_measured = |cell: &CellKey| measured.is_none_or(|cells| cells.contains(cell));
    let mut rows = figures.rows.iter().filter(|row| is_measured(&row.cell));

    match run.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Incomplete | Status::Failed if measured.is_none() => Exit::Failed,
        // The run's own status is not enough: it may contradict its rows.
        _ if rows.any(|row| !row.valid) => Exit::Invalid,
        _ if runner::matrix::find::has_no_answer(run, figures, is_measured) => Exit::Invalid,
        _ => Exit::Ok,
    }
}
