//! `assay run`, `assay find` and `assay augment`: run a plan, then show its results from the record.

mod exit;
mod report_file;

use analysis::{compare::CompareOptions, figures::Figures};
use inquiry::bundle;
use inquiry::next::next_commands;
use record::{Run, Status};
use report::{Curves, file_url};
use runner::{Events as _, MeasuredCells, RunEnd, RunOutcome, RunRequest};

use self::exit::{exit_of, exit_of_repetition};
use self::report_file::{renew_report, write_report};
use crate::cli::PlaceArgs;
use crate::display::Display;
use crate::exit::Exit;
use crate::output::{print, style};
use crate::run_view::RunView;

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

/// Returns the noise of the machine that a run of a target against itself shows.
fn noise(run: &Run, figures: &Figures) -> String {
    let options =
        CompareOptions { base: run.base.clone(), metrics: Vec::new(), ..CompareOptions::default() };
    let compared = analysis::compare::compare(figures, &options);
    format!("\n{}", report::noise_floor(&compared, style()))
}
