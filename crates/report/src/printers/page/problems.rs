//! Failures, doubts about results, and what to do about both.

use analysis::counted;
use maud::{Markup, html as markup};

use super::{CellRecord, Page, Source, cell_label, marked, permalink};
use crate::model::number::listed;
use crate::model::text::clean;
use crate::prose::problems::{Problem, Severity};

/// The number of failures that the head of the page lists; the others are counted.
const FAILURES_SHOWN: usize = 3;

/// The maximum number of places that a problem lists.
const PLACES_MAX: usize = 8;

/// Returns the section with all problems, and what to do about failures.
pub(super) fn section(page: &Page<'_>, problems: &[Problem]) -> Markup {
    markup! {
        section id="problems" {
            h2 { "Problems and warnings" (permalink("problems")) }
            @if problems.is_empty() { p { "None: every step ended as planned, and every check of the data passed." } }

            ul.problems {
                @for problem in problems { (problem_item(problem)) }
                @for note in page.notes {
                    li class="warning" { span.word { (Severity::Warning.word()) } ": " (marked(note)) }
                }
            }

            @for cell in page.sources.iter().flat_map(|source| &source.cells) { (failure(cell)) }
        }
    }
}

fn problem_item(problem: &Problem) -> Markup {
    let class = match problem.severity {
        Severity::Error | Severity::Damaged | Severity::Missing => "failed",
        Severity::Invalid => "invalid",
        Severity::Warning => "warning",
    };

    markup! {
        li class=(class) {
            span.word { (problem.severity.word()) } ": "
            @for (index, text) in problem.texts.iter().enumerate() {
                @if index > 0 { "; " }
                (marked(text))
            }

            @if !problem.places.is_empty() {
                span.soft {
                    " (" (clean(&listed(&problem.places, PLACES_MAX, "; ")))
                    ")"
                }
            }
        }
    }
}

/// Returns the first failures with their causes and what to do, for the head of the page.
pub(super) fn failures(problems: &[Problem], sources: &[Source]) -> Markup {
    let failed: Vec<&Problem> =
        problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    let more = failed.len().saturating_sub(FAILURES_SHOWN);

    let cells = || sources.iter().flat_map(|source| &source.cells);
    let of_steps =
        cells().flat_map(|record| &record.steps).filter_map(|step| step.failure.as_ref());
    let of_cells = cells().filter_map(|record| record.cell.failure.as_ref());
    let help = of_steps.chain(of_cells).find_map(|failure| failure.help.as_deref());

    markup! {
        @if !failed.is_empty() {
            ul.problems {
                @for problem in failed.iter().take(FAILURES_SHOWN) { (problem_item(problem)) }
                @if more > 0 { li.failed { a href="#problems" { (counted(more, "other failure")) } } }
                @if let Some(help) = help { li { span.word { "help" } ": " (marked(help)) } }
            }
        }
    }
}

/// Returns the remedy for a failure, and the last lines of the server's log.
fn failure(record: &CellRecord) -> Markup {
    let cell = &record.cell;
    let of_steps = record
        .steps
        .iter()
        .filter_map(|step| Some((Some(step.name.as_str()), step.failure.as_ref()?)));
    let of_cell = cell.failure.iter().map(|failure| (None, failure));

    markup! {
        @for (step, failure) in of_steps.chain(of_cell) {
            @if failure.help.is_some() || !failure.log_tail.is_empty() {
                details {
                    summary {
                        (cell_label(cell))
                        @if let Some(step) = step { " " (clean(step)) }
                        ": what to do, and the end of the server's log"
                    }

                    @for cause in &failure.causes { p { (marked(cause)) } }
                    @if let Some(help) = &failure.help { p { "help: " (marked(help)) } }
                    @if !failure.log_tail.is_empty() { pre { (clean(&failure.log_tail.join("\n"))) } }
                }
            }
        }
    }
}
