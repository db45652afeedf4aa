//! One run: its targets with the results of their steps, which lead to their history.

use analysis::compare::THROUGHPUT;
use analysis::history::StepSummary;
use analysis::{counted, distinct};
use maud::{Markup, html as markup};

use super::{address, page, paths, shown};
use crate::model::number::rate_text;
use crate::model::outline::Outline;
use crate::printers::history::series_anchor;

/// A run with the results of its steps.
#[derive(Clone, Debug)]
pub struct RunPage<'a> {
    /// The name of the directory.
    pub name: &'a str,
    /// The facts of the run.
    pub outline: &'a Outline,
    /// The result in a few words, or why there is none.
    pub result: &'a str,
    /// The results of its steps.
    pub steps: &'a [StepSummary],
}

/// Returns a run as a page.
pub fn run_page(run: &RunPage<'_>) -> String {
    let outline = run.outline;

    let body = markup! {
        header {
            h1 { (shown(run.name)) }
            p.soft {
                "plan " (shown(&outline.plan)) ", started " (outline.started()) " UTC, " (outline.state.text()) ", "
                (counted(outline.repeats as usize, "repeat"))
            }
            p { (shown(run.result)) }
            p { a href=(address(paths::REPORT, &[("name", run.name)])) { "Open the report" } }
        }

        main {
            (comparing(run))
            h2 { "Throughput" }
            p.note { "Means of valid repeats. Each figure leads to the same step in the other runs of this plan." }
            (figures(run))
        }
    };
    page(run.name, false, body)
}

/// Returns the form that compares two targets of the run.
fn comparing(run: &RunPage<'_>) -> Markup {
    let targets = &run.outline.targets;
    let other = targets.iter().find(|target| **target != run.outline.base);

    markup! {
        @if targets.len() > 1 {
            form method="get" action=(address(paths::COMPARE, &[])) {
                input type="hidden" name="base" value=(run.name);
                input type="hidden" name="other" value=(run.name);
                p {
                    "Compare " (select("base_target", targets, Some(&run.outline.base)))
                    " with " (select("other_target", targets, other)) " " button { "Compare" }
                }
            }
        }
    }
}

/// Returns a choice among names.
pub(super) fn select(name: &str, choices: &[String], chosen: Option<&String>) -> Markup {
    markup! {
        select name=(name) aria-label=(name) {
            @for choice in choices {
                option value=(choice) selected[Some(choice) == chosen] { (shown(choice)) }
            }
        }
    }
}

/// Returns the throughput of each step, with a row for each target and load.
fn figures(run: &RunPage<'_>) -> Markup {
    let measured = || run.steps.iter().filter(|step| step.mean(THROUGHPUT).is_some());
    let steps = distinct(measured().map(|step| step.step.as_str()));
    let cells = distinct(measured().map(Load::of));

    markup! {
        @if cells.is_empty() { p { "No step has valid figures." } } @else {
            div.scroll tabindex="0" role="group" aria-label="throughput" {
                table.figures.bare {
                    thead { tr {
                        @for head in ["target", "variant", "clients"] { th.text scope="col" { (head) } }
                        @for step in &steps { th.n scope="col" { (shown(step)) } }
                    } }

                    tbody { @for cell in &cells { tr {
                        th.text scope="row" { (shown(cell.target)) }
                        td.text { (shown(cell.variant.unwrap_or_default())) }
                        td { (cell.clients) }
                        @for step in &steps {
                            @let summary = measured().find(|summary| Load::of(summary) == *cell && summary.step == *step);
                            td { @if let Some(summary) = summary { (figure(run, summary)) } }
                        }
                    } } }
                }
            }
        }
    }
}

/// A target under a load.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Load<'a> {
    target: &'a str,
    variant: Option<&'a str>,
    clients: u32,
}

impl<'a> Load<'a> {
    fn of(step: &'a StepSummary) -> Self {
        Self { target: &step.target, variant: step.variant.as_deref(), clients: step.clients }
    }
}

fn figure(run: &RunPage<'_>, step: &StepSummary) -> Markup {
    let query = [("name", run.name), ("step", step.step.as_str())];
    let anchor = series_anchor(&run.outline.plan, step, THROUGHPUT);
    let history = format!("{}#{anchor}", address(paths::HISTORY, &query));

    let repeats = step.values.get(THROUGHPUT).map_or(0, Vec::len);
    let mean = step.mean(THROUGHPUT).map(rate_text);

    markup! {
        a href=(history) title={ (step.unit) ", " (counted(repeats, "repeat")) } { (mean.unwrap_or_default()) }
    }
}
