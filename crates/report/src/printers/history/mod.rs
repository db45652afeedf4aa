//! The history of runs as one self-contained page: a sparkline for each series, those with the
//! largest change first, and the details of a series on demand. `assay serve` shows that of a step.
//!
//! Names come from records that strangers may have made. Text is escaped, and the page's policy
//! forbids it to load anything.

mod data;
mod spark;

use analysis::compare::metric_label;
use analysis::counted;
use analysis::history::{Change, SeriesHistory, StepSummary};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use crate::model::history::{
    HistoryView, cause_text, change_text, load_of, load_text, newest, plan_text,
};
use crate::model::number::{rate_text, typeset, with_microseconds};
use crate::model::table::{Table, anchor};
use crate::model::text::clean;
use crate::printers::catalog::{address, paths, shown};
use crate::printers::html::{Head, STYLE};
use crate::printers::page::table;
use crate::prose::history::{heading, method};
use crate::tables::history;

const OWN_STYLE: &str = include_str!("style.css");
/// The first keeps the state of the page in its address.
const SCRIPTS: [&str; 2] = [include_str!("../page/script/view.js"), include_str!("script.js")];

/// A step whose history `assay serve` shows, over the runs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct ServedStep<'a> {
    /// The step.
    pub step: &'a str,
    /// The plan of the runs.
    pub plan: &'a str,
    /// The number of runs of the plan that did other work, such as more rows.
    pub other_work: usize,
    /// The number of runs whose results were not read yet.
    pub unread: usize,
}

/// Returns the history as a file.
pub fn history_page(view: &HistoryView<'_>) -> String {
    let title = "History - Assay".to_owned();
    let top = markup! { h1 { "History of " (clean(view.folder)) } };

    page(view, &Frame { title, top, ..Frame::default() })
}

/// Returns the history of one step as a page of `assay serve`, with links to the pages of runs.
pub fn step_page(view: &HistoryView<'_>, step: &ServedStep<'_>) -> String {
    let title = format!("History of {} - Assay", shown(step.step));
    let top = markup! {
        nav { a href=(address(paths::LIST, &[])) { "All runs" } }
        h1 { "History of " (shown(step.step)) }
        p.soft { "in runs of the plan " (shown(step.plan)) }
    };

    let mut notes = Vec::new();
    if step.other_work > 0 {
        let runs = counted(step.other_work, "run");
        notes.push(format!("Left out: {runs} of the plan that did other work, such as more rows."));
    }
    if step.unread > 0 {
        notes.push(format!("{} not read yet.", counted(step.unread, "run")));
    }

    let is_incomplete = step.unread > 0;
    page(view, &Frame { title, has_run_pages: true, is_incomplete, top, notes })
}

/// The parts in which pages of histories differ.
#[derive(Default)]
struct Frame {
    title: String,
    /// Runs have pages, to which the script links.
    has_run_pages: bool,
    /// There are runs whose results were not read yet.
    is_incomplete: bool,
    top: Markup,
    /// Runs that are not shown, in sentences.
    notes: Vec<String>,
}

fn page(view: &HistoryView<'_>, frame: &Frame) -> String {
    let data = data::of(view, frame.has_run_pages);
    let head = Head {
        title: &frame.title,
        scripts: &SCRIPTS,
        styles: &[STYLE, OWN_STYLE],
        allowed: "",
        is_served: true,
        is_incomplete: frame.is_incomplete,
    };

    markup! {
        (DOCTYPE)
        html lang="en" {
            (head)

            body.history {
                header {
                    (frame.top)
                    p { (clean(&heading(view))) }
                }

                main {
                    (named_table(&history::pending(view)))
                    (filter())

                    section id="series" { @for series in &view.history.series { (row(view, series)) } }
                    @for note in &frame.notes { p.note { (note) } }
                    @for sentence in method(view) { p.note { (sentence) } }
                    noscript { p { "The details of a series need JavaScript; `assay history --format json` has them as well." } }
                }

                script type="application/json" id="data" { (PreEscaped(data)) }
                @for script in SCRIPTS { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

fn named_table(of: &Table) -> Markup {
    table(&crate::model::names::Names::default(), of)
}

fn filter() -> Markup {
    markup! {
        form.filter role="search" {
            input type="search" placeholder="plan, target, step, metric or version" aria-label="words of series";
            label { input type="checkbox" name="changed"; " only with changes" }
            output {}
        }
    }
}

/// Returns the identifier of a series in addresses, which stays the same with more runs.
fn id(series: &SeriesHistory) -> String {
    let key = &series.key;
    identifier(&plan_text(series), &key.target, &load_text(series), &key.step, &key.metric)
}

/// Returns the identifier of the series of a step, on its [`step_page`].
pub(in crate::printers) fn series_anchor(plan: &str, step: &StepSummary, metric: &str) -> String {
    let load = load_of(step.variant.as_deref(), step.clients);
    identifier(plan, &step.target, &load, &step.step, metric)
}

fn identifier(plan: &str, target: &str, load: &str, step: &str, metric: &str) -> String {
    anchor(&format!("{plan} {target} {load} {step} {metric}"))
}

/// Returns a series as one line, which opens.
fn row(view: &HistoryView<'_>, series: &SeriesHistory) -> Markup {
    let largest = series.changes.iter().max_by(|a, b| {
        let size = |change: &Change| change.level.ratio.ln().abs();
        size(a).total_cmp(&size(b))
    });

    let now = newest(series).map_or(String::new(), |point| {
        with_microseconds(&format!("{} {}", rate_text(point.mean), series.unit))
    });

    markup! {
        details.series id=(id(series)) data-changed=(series.changes.len()) {
            summary {
                (spark::line(series))
                span.name {
                    b { (clean(&series.key.step)) } " " (metric_label(&series.key.metric))
                    br;
                    span.soft { (clean(&series.key.target)) " " (clean(&load_text(series))) ", " (clean(&plan_text(series))) }
                }

                span.now { (now) }

                span.change {
                    @if let Some(change) = largest {
                        b class=(class(change)) { (typeset(&change_text(change))) }
                        " " (clean(&view.since(series, change)))
                        br;
                        span.soft { (cause_text(change.cause)) }
                    } @else { span.soft { "no change" } }
                }
            }
            div.detail {}
        }
    }
}

/// Returns the class of a change: its color says whether it is better, if it is the target's.
pub(super) fn class(change: &Change) -> &'static str {
    match (change.cause, change.is_worse) {
        (analysis::history::Cause::Target, true) => "worse",
        (analysis::history::Cause::Target, false) => "better",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use analysis::history::{HistoryOptions, RunSummary, StepSummary, history};

    use super::*;

    fn run(number: u64, value: f64) -> RunSummary {
        let evil = "</script><script>alert(1)</script>".to_owned();
        let values = [("throughput".to_owned(), vec![value])].into();
        let step = StepSummary {
            target: "a.b".into(),
            step: evil.clone(),
            clients: 1,
            values,
            ..StepSummary::default()
        };
        RunSummary {
            plan: evil,
            started_unix_ns: number,
            steps: vec![step],
            ..RunSummary::default()
        }
    }

    #[test]
    fn what_a_stranger_wrote_is_text_and_all_series_have_a_place() {
        let runs: Vec<RunSummary> =
            (0..20).map(|number| run(number, 100.0 + number as f64)).collect();
        let names: Vec<String> = (0..20).map(|number| format!("<img src={number}>")).collect();
        let found = history(&runs, &HistoryOptions::default());
        let view = HistoryView {
            folder: "<b>",
            runs: &runs,
            names: &names,
            history: &found,
            error_rate: 0.05,
            effect: 0.01,
        };
        let step = ServedStep { step: "<b>", plan: "<b>", other_work: 1, unread: 1 };
        let served = step_page(&view, &step);
        assert!(served.contains("<a href=\"./\">") && served.contains("\"served\":true"));
        assert!(!served.contains("<img") && served.contains("Left out: 1 run of the plan"));
        let anchor = series_anchor(&runs[0].plan, &runs[0].steps[0], "throughput");
        assert!(served.contains(&format!("<details class=\"series\" id=\"{anchor}\"")));

        let html = history_page(&view);
        assert!(
            !html.contains("<img")
                && !html.contains("alert(1)</script>")
                && !html.contains("<b>\"")
        );
        assert!(html.contains("default-src 'none'") && html.contains("<svg"));
        assert_eq!(html.matches("<details").count(), 1);
    }
}
