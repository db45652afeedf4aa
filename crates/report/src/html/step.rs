//! The section of a step: its figures, its charts, and settling.

use analysis::Row;
use maud::{Markup, PreEscaped, html as markup};

use crate::classic;
use crate::compared::Comparison;
use crate::html::brief::{brief, standing_out};
use crate::html::charts::{self, Budget, Chart, Index, Plot};
use crate::html::curve::Place;
use crate::html::distributions;
use crate::html::marks;
use crate::html::table::table;
use crate::html::waits;
use crate::html::{CellRecord, Source, cell_label, clean, marked, permalink};
use crate::lsm;
use crate::matrix::{Line, Matrix, StepHead};
use crate::metrics;
use crate::names::Names;
use crate::number::duration;
use crate::operations::split_kinds;
use crate::quality;
use crate::table::{Table, anchor};
use crate::times;
use crate::worth::comparable;

/// The charts of one step.
pub(super) struct StepCharts<'a> {
    step: StepHead<'a>,
    pub(super) charts: Vec<Chart<'a>>,
    distributions: Vec<Plot>,
}

impl<'a> StepCharts<'a> {
    pub(super) fn of(matrix: &Matrix<'a>, index: &Index<'a>, step: StepHead<'a>) -> Self {
        Self {
            step,
            charts: charts::of_step(matrix, index, step),
            distributions: distributions::of_step(matrix, step),
        }
    }

    fn at<'s>(&'s self, places: &'s [Place]) -> impl Iterator<Item = &'s Chart<'a>> {
        let charts = self.charts.iter();
        charts.filter(|chart| places.contains(&chart.place))
    }
}

/// The maximum number of steps and lines with which the sections of steps are open at first.
const OPEN_STEPS_MAX: usize = 4;
const OPEN_LINES_MAX: usize = 12;

/// Returns the section of a step. Its heading has a summary and opens the rest.
pub(super) fn section(
    (matrix, names): (&Matrix<'_>, &Names<'_>),
    comparison: &Comparison<'_>,
    charts: &StepCharts<'_>,
    budget: Budget,
) -> Markup {
    let id = format!("step-{}", anchor(charts.step.name));
    let is_short =
        matrix.measured().count() <= OPEN_STEPS_MAX && matrix.lines.len() <= OPEN_LINES_MAX;
    markup! {
        section.step id=(id) data-of=(clean(charts.step.name)) {
            details open[is_short] {
                summary {
                    h3 { (clean(charts.step.name)) (permalink(&id)) }
                    span.brief { (brief((matrix, names), comparison, charts.step)) }
                }
                (body((matrix, names), charts, budget))
            }
        }
    }
}

/// Returns the contents of a step's section.
fn body(
    (matrix, names): (&Matrix<'_>, &Names<'_>),
    charts: &StepCharts<'_>,
    budget: Budget,
) -> Markup {
    let step = charts.step;
    let table = |shown: &Table| table(names, shown);
    let (kinds, others) = split_kinds(matrix, step);
    let beside = |mut table: Table| {
        table.id += "-beside";
        table
    };
    let figures = |places: &[Place]| {
        let charts = charts.at(places);
        markup! { div.charts { @for chart in charts { (figure(&chart.plot(budget), step)) } } }
    };
    let folded = |place: Place, what: &str| {
        let count = charts.at(&[place]).count();
        markup! {
            @if count > 0 {
                details {
                    summary { (what) " (" (count) ")" }
                    (figures(&[place]))
                }
            }
        }
    };
    let load = [Place::Load, Place::Beside];
    markup! {
        (table(&metrics::metrics(matrix, step)))
        (table(&metrics::costs(matrix, step)))
        (table(&metrics::time(matrix, step)))
        (waits::bars((matrix, names), step))
        (table(&metrics::upkeep(matrix, step)))
        (table(&metrics::replication(matrix, step)))
        @if charts.at(&load).next().is_none() {
            p.note { "No charts by second: the step ended in its first second." }
        }
        @if !charts.charts.is_empty() || !charts.distributions.is_empty() {
            (lines((matrix, names), step))
            (marks::of_step(matrix, step))
        }
        (figures(&load))
        @if !charts.distributions.is_empty() {
            div.charts {
                @for chart in &charts.distributions { (figure(chart, step)) }
            }
        }
        @let of_host = metrics::of_host(matrix, step);
        @if !of_host.is_empty() {
            details {
                summary { "disks and processors, as in iostat and vmstat; waits; events of the log; sizes of indexes; plans" }
                @for host in &of_host { (table(host)) }
            }
        }
        (folded(Place::Cost, "what an operation cost, second by second"))
        (folded(Place::Host, "host and server, second by second"))
        (folded(Place::Engine, "counters of the engine that changed, second by second"))
        @for quality in quality::tables(matrix, step) { (table(&quality)) }
        @for lsm in lsm::tables(matrix, step) { (table(&lsm)) }
        (table(&times::buckets(matrix, step, &kinds)))
        (table(&times::percentiles(matrix, step, &kinds)))
        (table(&times::accounting(matrix, step)))
        @if !others.is_empty() {
            details {
                summary { "times of bookkeeping operations: " (clean(&others.join(", "))) }
                (table(&beside(times::buckets(matrix, step, &others))))
                (table(&beside(times::percentiles(matrix, step, &others))))
            }
        }
        @let counters = classic::counters(matrix, step);
        @if !counters.is_empty() {
            details { summary { "counters of the engine (" (counters.rows.len()) ")" } (table(&counters)) }
        }
    }
}

/// The number of colors of lines. More lines have the same colors with other dashes.
pub(crate) const COLOR_COUNT: usize = 10;

/// The dashes that distinguish lines of the same color.
pub(crate) const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// Returns the buttons of the lines of a step's charts. Of many lines, only those that stand out
/// have colors at first.
fn lines((matrix, names): (&Matrix<'_>, &Names<'_>), step: StepHead<'_>) -> Markup {
    let rows = matrix.lines.iter().enumerate();
    let rows = rows.filter_map(|(number, line)| Some((number, line, line.row(step.name)?)));
    let rows: Vec<_> = rows.collect();
    let standing_out = standing_out(matrix, step);
    let are_many = standing_out.is_some();
    let marks = |number: usize| {
        let marks = standing_out.iter().flatten().filter(|(at, _)| *at == number);
        marks.map(|(_, what)| *what).collect::<Vec<_>>().join(", ")
    };
    let button = |number: usize, line: &Line<'_>, row: &Row| {
        let (is_invalid, marks, label) = (!comparable(row), marks(number), matrix.label(line));
        let subject = names.target_in(&label);
        let full = subject.as_ref().filter(|it| it.is_short).map(|_| clean(&label));
        let reasons = is_invalid.then(|| clean(&row.reasons.join("; ")));
        let tooltip: Vec<String> = full.into_iter().chain(reasons).collect();
        let is_on = !are_many || !marks.is_empty();
        markup! {
            button.line.invalid[is_invalid] type="button" aria-pressed=(is_on) data-line=(number)
                data-of=(clean(&line.cell.target)) title=[(!tooltip.is_empty()).then(|| tooltip.join(": "))] {
                svg class={ "c" (number % COLOR_COUNT) } width="24" height="8" aria-hidden="true" {
                    line x1="0" y1="4" x2="24" y2="4"
                        stroke-dasharray=(DASHES[number / COLOR_COUNT % DASHES.len()]) {}
                }
                (clean(&subject.map_or(label, |it| it.text)))
                @if !marks.is_empty() { small { (marks) } }
                @if is_invalid { " ! invalid" }
            }
        }
    };
    markup! {
        div.lines.many[are_many] role="toolbar" aria-label={ "lines of the charts of " (clean(step.name)) } {
            @for (number, line, row) in &rows { (button(*number, line, row)) }
            @if rows.len() > 3 {
                button.all type="button" { "all" }
                button.none type="button" { "none" }
            }
            button.whole type="button" hidden { "show all seconds" }
        }
    }
}

fn figure(plot: &Plot, step: StepHead<'_>) -> Markup {
    markup! {
        figure data-log[plot.is_logarithmic] {
            figcaption {
                span { span.of { (clean(step.name)) " " } (clean(&plot.title)) }
                @if let Some((parts, _)) = plot.parts { button.parts type="button" aria-pressed="false" { (parts) } }
                button.log type="button" aria-pressed=(plot.is_logarithmic) { "log scale" }
                @if !plot.note.is_empty() { span.note { (plot.note) } }
            }
            div.plot tabindex="0" role="group" aria-label={ "chart: " (clean(step.name)) " " (clean(&plot.title)) } {}
            script type="application/json" { (PreEscaped(&plot.data)) }
            @if let Some((_, data)) = &plot.parts { script type="application/json" { (PreEscaped(data)) } }
        }
    }
}

/// Returns the actions of settling and their durations, in settle steps and at the end of others.
pub(super) fn settling(sources: &[Source]) -> Markup {
    let cells = || sources.iter().flat_map(|source| &source.cells);
    let settled = |record: &CellRecord| record.steps.iter().any(|step| step.settle.is_some());
    markup! {
        @if cells().any(settled) {
            section id="step-settling" {
                h3 { "Settling" (permalink("step-settling")) }
                @for record in cells().filter(|record| settled(record)) {
                    details {
                        summary {
                            (cell_label(&record.cell))
                            ": what was done"
                        }
                        ul.problems {
                            @for step in &record.steps {
                                @if let Some(settle) = &step.settle {
                                    li {
                                        b { (clean(&step.name)) } ": "
                                        @for (index, (what, took_ns)) in settle.actions.iter().enumerate() {
                                            @if index > 0 { ", " }
                                            code { (clean(what)) } " " (duration(*took_ns as f64 / 1e9))
                                        }
                                        @for counter in &settle.pending_after {
                                            "; " (clean(&counter.name)) " " (counter.value)
                                            // Levels are the shape of a tree, not pending work.
                                            @if !counter.name.starts_with("level_") { " still pending" }
                                        }
                                        @for warning in step.warnings.iter().filter(|warning| warning.code.starts_with("settle::")) {
                                            "; " b { (marked(&warning.text)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
