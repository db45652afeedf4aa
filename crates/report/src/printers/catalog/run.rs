//! One run: its targets with the results of their steps, which lead to trends.

use analysis::{counted, distinct};
use maud::{Markup, html as markup};

use super::{address, page, paths, shown};
use crate::model::number::rate_text;
use crate::model::outline::Outline;
use crate::model::step_points::{StepPoint, TREND_METRICS};

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
    pub points: &'a [StepPoint],
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
    let steps = distinct(run.points.iter().map(|point| point.step.as_str()));
    let cells = distinct(run.points.iter().map(|point| &point.cell));

    markup! {
        @if cells.is_empty() { p { "No step has valid figures." } } @else {
            div.scroll tabindex="0" role="group" aria-label="throughput" {
                table.figures.bare {
                    thead { tr {
                        @for head in ["target", "variant", "clients"] { th.text scope="col" { (head) } }
                        @for step in &steps { th.n scope="col" { (shown(step)) } }
                    } }

                    tbody { @for cell in &cells { tr {
                        th.text scope="row" { (shown(&cell.target)) }
                        td.text { (shown(cell.variant.as_deref().unwrap_or_default())) }
                        td { (cell.clients) }
                        @for step in &steps {
                            @let point = run.points.iter().find(|point| point.cell == **cell && point.step == *step);
                            td { @if let Some(point) = point { (figure(run, point)) } }
                        }
                    } } }
                }
            }
        }
    }
}

fn figure(run: &RunPage<'_>, point: &StepPoint) -> Markup {
    let clients = point.cell.clients.to_string();
    let mut query = vec![
        ("name", run.name),
        ("target", point.cell.target.as_str()),
        ("clients", clients.as_str()),
        ("step", point.step.as_str()),
        ("metric", TREND_METRICS[0].name()),
    ];
    query.extend(point.cell.variant.as_deref().map(|variant| ("variant", variant)));

    let throughput = point.values[0].map(|spread| rate_text(spread.mean));

    markup! {
        a href=(address(paths::TREND, &query)) title={ (point.unit) ", " (counted(point.repeats, "repeat")) } {
            (throughput.unwrap_or_default())
        }
    }
}
