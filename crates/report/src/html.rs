//! One HTML file that needs nothing else: tables that read without scripts and without colour, charts that are drawn
//! when they come into view.
//!
//! uPlot draws them: it is embedded once and is small (50 KB), so a report can be mailed. Its files in `html/uplot` are
//! those of its version 1.6.32, unchanged, with their licence. The page's content security policy forbids it to load
//! anything.

mod charts;
mod curve;
mod distributions;
mod encode;
mod engine;
mod host;
mod load;
mod seconds;
mod tree;

use std::collections::BTreeSet;

use analysis::{Comparison, Figures, Mark, Pairing, Settings, counted};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use record::{Cell, Run, Status, Step};

use crate::classic;
use crate::compared;
use crate::differences::{heading, of_targets};
use crate::findings;
use crate::grouped;
use crate::lsm;
use crate::matrix::{Matrix, StepHead};
use crate::metrics;
use crate::number::{duration, moment};
use crate::operations::kinds_apart;
use crate::problems::{Weight, ended, problems, targets, verdict};
use crate::quality;
use crate::table::{Table, Tone};
use crate::terminal::printable;
use crate::times;
use charts::{Budget, Chart, Index};
use curve::Place;
use distributions::Distribution;

pub use curve::Curves;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/charts.js");
const UPLOT_SCRIPT: &str = include_str!("html/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("html/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("html/uplot/LICENSE");

/// What a report needs beside the figures: a run as it was recorded.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// `run.json`
    pub run: Run,
    /// Its cells, as far as they were begun.
    pub cells: Vec<CellRecord>,
}

/// A cell as it was recorded.
#[derive(Clone, Debug, Default)]
pub struct CellRecord {
    /// `cell.json`
    pub cell: Cell,
    /// `step.json` of each of its steps.
    pub steps: Vec<Step>,
}

/// All that a report shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The runs. The base and the order of targets are those of the first; without one the report is empty.
    pub sources: &'a [Source],
    /// Their figures.
    pub figures: &'a Figures,
    /// The curves of the figures' rows, in their order.
    pub curves: &'a [Curves],
    /// What should be known of several runs beside each other, a sentence each.
    pub notes: &'a [String],
}

/// A report of one or several runs as one HTML file, with charts of the figures' own seconds. Of many long steps the
/// seconds take gigabytes: [`html_page`] takes curves that were made while the record was read.
pub fn html(sources: &[Source], figures: &Figures) -> String {
    let curves: Vec<Curves> = figures.rows.iter().map(Curves::of).collect();
    html_page(&Page {
        sources,
        figures,
        curves: &curves,
        notes: &[],
    })
}

/// A report as one HTML file.
pub fn html_page(page: &Page<'_>) -> String {
    let Page {
        sources, figures, ..
    } = *page;
    let nothing = Run::default();
    let run = sources.first().map_or(&nothing, |source| &source.run);
    let matrix = Matrix::new(run, figures);
    let (compared, findings) = findings::of(run, figures);
    let is_repeated = compared
        .rows
        .iter()
        .any(|row| row.pairing != Pairing::Single);
    let comparison = compared::Comparison {
        run,
        runs: &[],
        figures,
        compared: &compared,
        findings: &findings,
    };
    let index = Index::new(figures, page.curves);
    let steps: Vec<_> = matrix
        .measured()
        .map(|step| StepCharts::of(&matrix, &index, step))
        .collect();
    let budget = Budget::of(steps.iter().flat_map(|step| &step.charts));
    let title = sources
        .iter()
        .map(|source| clean(&source.run.name))
        .collect::<Vec<_>>()
        .join(", ");

    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                title { (title) " - Assay" }
                style { (PreEscaped(UPLOT_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    (judgement(figures))
                    @for (number, source) in sources.iter().enumerate() {
                        (head(&source.run, (sources.len() > 1).then_some(number + 1)))
                    }
                }
                main {
                    (contents(&matrix))
                    section id="results" {
                        h2 { "Summary" }
                        @for summary in classic::summary(&matrix) { (table(&summary)) }
                        @if is_repeated { (compared_tables(&comparison)) } @else {
                            @for relative in classic::relative(&matrix) { (table(&relative)) }
                        }
                        (findings::section(&findings))
                        @for rate in classic::rates(&matrix) { (table(&rate)) }
                        @if let Some(stalled) = lsm::stalled(&matrix) { (table(&stalled)) }
                        @if let Some(fairness) = classic::fairness(&matrix) { (table(&fairness)) }
                        @for costs in grouped::costs(&matrix) { (table(&costs)) }
                        @for times in grouped::times(&matrix) { (table(&times)) }
                        @for lengths in classic::lengths(&matrix) { (table(&lengths)) }
                        @if let Some(debt) = quality::debt(&matrix) { (table(&debt)) }
                        (unreported(&matrix))
                    }
                    section id="problems" {
                        h2 { "What should be known" }
                        (problem_list(page, &matrix))
                    }
                    section id="steps" {
                        h2 { "Steps" }
                        p.note {
                            "In charts, time is the second of the step. A second in which nothing was completed is drawn "
                            "as zero; it has no response time, which is a gap. A last second that is not whole is scaled "
                            "to one, or left out if it is shorter than a tenth."
                        }
                        p.note {
                            "Above the charts of a step stand its lines: a click hides one, with Ctrl all others. Drag in a chart to "
                            "zoom all charts of the step, double click to see all of it again. With the keyboard: Tab to a chart, arrows "
                            "to move along it, " kbd { "+" } " and " kbd { "\u{2212}" } " to zoom, " kbd { "Esc" } " to see all."
                        }
                        noscript { p.note { "Charts need JavaScript; the tables don't." } }
                        @for step in &steps { (step_section(&matrix, step, budget)) }
                        (settling(sources))
                    }
                    section id="host" {
                        h2 { "Host" }
                        @for source in sources { (host(source, sources.len() > 1)) }
                    }
                    section id="settings" {
                        h2 { "Targets and their settings" }
                        @for source in sources { (builds(&source.run)) }
                        (differences(&figures.settings))
                        (settings(sources))
                    }
                    section id="plan" {
                        h2 { "Plan" }
                        @for source in sources { (plan(source, sources.len() > 1)) }
                    }
                    section id="method" {
                        h2 { "Method" }
                        (method())
                    }
                }
                (labels(&matrix))
                script { (PreEscaped(UPLOT_SCRIPT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// The charts of one step.
struct StepCharts<'a> {
    step: StepHead<'a>,
    charts: Vec<Chart<'a>>,
    distributions: Vec<Distribution>,
}

impl<'a> StepCharts<'a> {
    fn of(matrix: &Matrix<'a>, index: &Index<'a>, step: StepHead<'a>) -> Self {
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

/// What the lines are called, for the script that draws them.
fn labels(matrix: &Matrix<'_>) -> Markup {
    let labels: Vec<String> = matrix
        .lines
        .iter()
        .map(|line| encode::text(&clean(&matrix.label(line))))
        .collect();
    markup! {
        script type="application/json" id="lines" { (PreEscaped(format!("[{}]", labels.join(",")))) }
    }
}

/// Text from outside without characters that command; line breaks and tabs stay.
fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|letter| {
            if matches!(letter, '\n' | '\t') {
                Some(letter)
            } else {
                printable(letter)
            }
        })
        .collect()
}

/// What changed, with intervals and verdicts: repeats are one line there.
fn compared_tables(comparison: &compared::Comparison<'_>) -> Markup {
    markup! {
        @for table in compared::tables(comparison) { (self::table(&table)) }
        @for text in compared::method(comparison) { p.note { (clean(&text)) } }
    }
}

/// Whether the results can be stood behind.
fn judgement(figures: &Figures) -> Markup {
    let (text, good) = verdict(figures);
    markup! {
        @if good {
            p { span.status.good { "\u{2713} " (text) } }
        } @else {
            p { a.status.doubt href="#problems" { "! " (text) } }
        }
    }
}

/// What was run, when, and how it ended.
fn head(run: &Run, number: Option<usize>) -> Markup {
    let took = run
        .ended_unix_ns
        .map(|end| end.saturating_sub(run.started_unix_ns) as f64 / 1e9);
    let class = if run.status == Status::Complete {
        "status"
    } else {
        "status bad"
    };
    let clients: BTreeSet<u32> = run.cells.iter().map(|cell| cell.clients).collect();
    let clients: Vec<_> = clients.iter().map(u32::to_string).collect();
    let repeats = run.cells.iter().map(|cell| cell.repeat).max().unwrap_or(0);
    markup! {
        p {
            @if let Some(number) = number { b { "run " (number) ", " (clean(&run.name)) } ": " }
            span class=(class) { (ended(run)) } @if let Some(took) = took { " in " (duration(took)) }
            ", started " (moment(run.started_unix_ns))
            " · " (counted(run.targets.len(), "target"))
            @if !clients.is_empty() { " · clients " (clients.join(", ")) }
            @if repeats > 1 { " · " (repeats) " repeats" }
            " · seed " (run.seed) " · assay " (clean(&run.assay_version))
        }
        dl.targets {
            @for (name, text) in targets(run) { div { dt { (clean(&name)) } dd { (clean(&text)) } } }
        }
    }
}

fn contents(matrix: &Matrix<'_>) -> Markup {
    let sections = [
        ("results", "Summary"),
        ("problems", "What should be known"),
        ("steps", "Steps"),
        ("host", "Host"),
        ("settings", "Settings"),
        ("plan", "Plan"),
        ("method", "Method"),
    ];
    markup! {
        nav aria-label="contents" {
            ul { @for (id, title) in sections { li { a href={ "#" (id) } { (title) } } } }
            ul {
                @for step in matrix.measured() {
                    li { a href={ "#step-" (classic::anchor(step.name)) } { (clean(step.name)) } }
                }
            }
        }
    }
}

/// The steps that are not among the results, in one folded line.
fn unreported(matrix: &Matrix<'_>) -> Markup {
    let steps = &matrix.unreported;
    let names: Vec<String> = steps.iter().map(|step| clean(step.name)).collect();
    markup! {
        @if !names.is_empty() {
            details id="unreported" {
                summary { "run and not among the results (" (names.len()) ")" }
                p { (names.join(", ")) }
            }
        }
    }
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::SlaMissed => "sla",
        Tone::Better | Tone::Faster | Tone::CostsLess => "better",
        Tone::Worse | Tone::Slower | Tone::CostsMore => "worse",
        Tone::Noisy => "sla",
        // What costs less is as good as what is faster.
        Tone::Dearer => "worse",
        Tone::Cheaper => "better",
        Tone::Coarse => "coarse",
        Tone::Invalid => "invalid",
        Tone::Failed => "failed",
        Tone::Absent => "absent",
    }
}

/// A table in a box of its own that scrolls, with the meaning of its marks.
fn table(table: &Table) -> Markup {
    if table.rows.is_empty() || table.columns.is_empty() {
        return markup! {};
    }
    let legend = table.legend();
    let bare = table
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .all(|cell| cell.mark.is_empty());
    // The legend is shown with its colours here, so the note that says the same in words is left out.
    let notes = table.notes.iter().skip(usize::from(is_legend(table)));
    markup! {
        div.block id=(table.id) {
            h4 id={ "title-" (table.id) } { (clean(&table.title)) }
            div.scroll tabindex="0" role="group" aria-labelledby={ "title-" (table.id) } {
                table class={ "figures" @if bare { " bare" } } aria-labelledby={ "title-" (table.id) } {
                    thead { tr {
                        @for head in &table.lead { th scope="col" { (clean(head)) } }
                        @for head in &table.columns { th.n scope="col" { (clean(head)) @if !bare { span.m {} } } }
                    } }
                    tbody {
                        @for (number, row) in table.rows.iter().enumerate() {
                            tr class=[row_class(table, number)] {
                                @for text in &row.lead { th scope="row" { (clean(text)) } }
                                @for cell in &row.cells {
                                    @let class = tone_class(cell.tone);
                                    td class=[(!class.is_empty()).then_some(class)] style=[share(cell.share)] {
                                        (clean(&cell.text)) @if !bare { span.m { (mark(&cell.mark)) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if !legend.is_empty() {
                ul.key {
                    @for (tone, meaning) in &legend { li { b class=(tone_class(*tone)) { (mark(tone.mark())) } (meaning) } }
                }
            }
            @for note in notes { p.note { (marked(note)) } }
        }
    }
}

/// Rows that say what was asked for, and the first of those that are compared with each other.
fn row_class(table: &Table, number: usize) -> Option<&'static str> {
    match (table.rows[number].target, table.begins_group(number)) {
        (true, _) => Some("target"),
        (_, true) => Some("group"),
        _ if table.begins_test(number) => Some("test"),
        _ => None,
    }
}

/// How dark the cell of a share is.
fn share(share: u8) -> Option<String> {
    (share > 0).then(|| format!("--share:{}%", u32::from(share) * 2))
}

/// A mark with a minus that is as easy to see as a plus.
fn mark(mark: &str) -> String {
    mark.replace('-', "\u{2212}")
}

/// Whether the first note of a table is its legend.
fn is_legend(table: &Table) -> bool {
    let first = table.legend().into_iter().next();
    let starts = |note: &String, (tone, meaning): (Tone, &str)| {
        note.starts_with(&format!("`{}` {meaning}", tone.mark()))
    };
    table
        .notes
        .first()
        .zip(first)
        .is_some_and(|(note, first)| starts(note, first))
}

/// A sentence of which the parts in backticks are code.
fn marked(text: &str) -> Markup {
    let text = clean(text);
    markup! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn problem_list(page: &Page<'_>, matrix: &Matrix<'_>) -> Markup {
    let Page {
        sources, figures, ..
    } = *page;
    let runs: Vec<&Run> = sources.iter().map(|source| &source.run).collect();
    let problems = problems(&runs, figures, matrix);
    markup! {
        @if problems.is_empty() { p { "Nothing: every step ended as planned and every check of the data holds." } }
        ul.problems {
            @for problem in &problems {
                @let class = match problem.weight {
                    Weight::Error | Weight::Missing => "failed",
                    Weight::Invalid => "invalid",
                    Weight::Warning => "warning",
                };
                li class=(class) {
                    span.word { (problem.weight.word()) } ": "
                    @for (index, text) in problem.texts.iter().enumerate() {
                        @if index > 0 { "; " }
                        (marked(text))
                    }
                    @if !problem.places.is_empty() {
                        span.soft {
                            " (" (clean(&problem.places[..problem.places.len().min(8)].join("; ")))
                            @if problem.places.len() > 8 { " and " (problem.places.len() - 8) " more" }
                            ")"
                        }
                    }
                }
            }
            @for note in page.notes {
                li class="warning" { span.word { (Weight::Warning.word()) } ": " (marked(note)) }
            }
        }
        @for cell in sources.iter().flat_map(|source| &source.cells) { (failure(cell)) }
    }
}

/// A cell in one piece of text.
fn cell_label(cell: &Cell) -> String {
    let variant = cell.variant.iter().map(|variant| format!(" {variant}"));
    let variant: String = variant.collect();
    clean(&format!(
        "{}{variant} c{} r{}",
        cell.target, cell.clients, cell.repeat
    ))
}

/// What is recorded of a failure beside its causes: what to do, and the last lines of the server's log.
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

fn step_section(matrix: &Matrix<'_>, charts: &StepCharts<'_>, budget: Budget) -> Markup {
    let step = charts.step;
    let (kinds, others) = kinds_apart(matrix, step);
    let beside = |mut table: Table| {
        table.id += "-beside";
        table
    };
    let figures = |places: &[Place]| {
        markup! {
            div.charts { @for chart in charts.at(places) { (figure(chart, step, budget)) } }
        }
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
        section.step id={ "step-" (classic::anchor(step.name)) } {
            h3 { (clean(step.name)) }
            (table(&metrics::metrics(matrix, step)))
            (table(&metrics::costs(matrix, step)))
            @if let Some(upkeep) = metrics::upkeep(matrix, step) { (table(&upkeep)) }
            @if charts.at(&load).next().is_none() {
                p.note { "No charts by second: it was over in its first." }
            }
            @if !charts.charts.is_empty() || !charts.distributions.is_empty() { (lines(matrix, step)) }
            (figures(&load))
            @if !charts.distributions.is_empty() {
                div.charts {
                    @for chart in &charts.distributions { (distribution(chart, step)) }
                }
            }
            (folded(Place::Cost, "what an operation cost, second by second"))
            (folded(Place::Host, "host and server, second by second"))
            (folded(Place::Engine, "counters of the engine that moved, second by second"))
            @for quality in quality::tables(matrix, step) { (table(&quality)) }
            @for lsm in lsm::tables(matrix, step) { (table(&lsm)) }
            (table(&times::buckets(matrix, step, &kinds)))
            (table(&times::percentiles(matrix, step, &kinds)))
            (table(&times::accounting(matrix, step)))
            @if !others.is_empty() {
                details {
                    summary { "times of what connections do beside the step: " (clean(&others.join(", "))) }
                    (table(&beside(times::buckets(matrix, step, &others))))
                    (table(&beside(times::percentiles(matrix, step, &others))))
                }
            }
            @if let Some(counters) = classic::counters(matrix, step) {
                details { summary { "counters of the engine (" (counters.rows.len()) ")" } (table(&counters)) }
            }
        }
    }
}

/// Colours of lines, after which they begin anew with other dashes.
const COLOUR_COUNT: usize = 10;

/// How lines of one colour are told apart.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// The lines of a step's charts: which is which, and which are shown.
fn lines(matrix: &Matrix<'_>, step: StepHead<'_>) -> Markup {
    let rows = matrix.lines.iter().enumerate();
    let rows = rows.filter_map(|(number, line)| Some((number, line, line.row(step.name)?)));
    let rows: Vec<_> = rows.collect();
    markup! {
        div.lines role="toolbar" aria-label={ "lines of the charts of " (clean(step.name)) } {
            @for (number, line, row) in &rows {
                @let invalid = !classic::comparable(row);
                button.line.invalid[invalid] type="button" aria-pressed="true" data-line=(number)
                    title=[invalid.then(|| clean(&row.reasons.join("; ")))] {
                    svg class={ "c" (number % COLOUR_COUNT) } width="24" height="8" aria-hidden="true" {
                        line x1="0" y1="4" x2="24" y2="4"
                            stroke-dasharray=(DASHES[number / COLOUR_COUNT % DASHES.len()]) {}
                    }
                    (clean(&matrix.label(line)))
                    @if invalid { " ! invalid" }
                }
            }
            @if rows.len() > 3 {
                button.all type="button" { "all" }
                button.none type="button" { "none" }
            }
            button.whole type="button" hidden { "show all seconds" }
        }
    }
}

fn figure(chart: &Chart<'_>, step: StepHead<'_>, budget: Budget) -> Markup {
    let bucket = budget.fineness(chart).bucket;
    let parts = !chart.parts.is_empty();
    markup! {
        figure data-log[chart.logarithmic] {
            figcaption {
                span { span.of { (clean(step.name)) " " } (clean(chart.title)) }
                @if parts { button.parts type="button" aria-pressed="false" { (chart.parts_are) } }
                button.log type="button" aria-pressed=(chart.logarithmic) title="logarithmic scale" { "log" }
                @if bucket > 1 { span.note { "smallest and largest second of every " (bucket) } }
            }
            div.plot tabindex="0" role="group" aria-label={ "chart: " (clean(step.name)) " " (clean(chart.title)) } {}
            script type="application/json" { (PreEscaped(charts::json(chart, budget))) }
            @if parts {
                script type="application/json" { (PreEscaped(charts::json_of_parts(chart, budget))) }
            }
        }
    }
}

/// A chart without time.
fn distribution(chart: &Distribution, step: StepHead<'_>) -> Markup {
    markup! {
        figure data-log {
            figcaption {
                span { span.of { (clean(step.name)) " " } (clean(&chart.title)) }
                button.log type="button" aria-pressed="true" title="logarithmic scale" { "log" }
                @if !chart.note.is_empty() { span.note { (chart.note) } }
            }
            div.plot tabindex="0" role="group" aria-label={ "chart: " (clean(step.name)) " " (clean(&chart.title)) } {}
            script type="application/json" { (PreEscaped(&chart.json)) }
        }
    }
}

/// How long it took to bring engines to rest, in steps of their own and at the end of others, and what was done.
fn settling(sources: &[Source]) -> Markup {
    let cells = || sources.iter().flat_map(|source| &source.cells);
    let settled = |record: &CellRecord| record.steps.iter().any(|step| step.settle.is_some());
    markup! {
        @if cells().any(settled) {
            section id="step-settling" {
                h3 { "Settling" }
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
                                            // Levels are the shape of a tree, not work that it has yet to do.
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

/// Names and values.
fn facts<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    markup! {
        div.scroll tabindex="0" {
            table { tbody {
                @for (name, value) in pairs { tr { th scope="row" { (clean(name)) } td { (clean(&value)) } } }
            } }
        }
    }
}

fn host(source: &Source, several: bool) -> Markup {
    let host = &source.run.host;
    let known: BTreeSet<&str> = host.facts.iter().map(|(name, _)| name.as_str()).collect();
    let mut pairs: Vec<(&str, String)> = host
        .facts
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    if host.cpu_count > 0 && !known.contains("cpu_count") {
        pairs.push(("cpu_count", host.cpu_count.to_string()));
    }
    if host.memory_total_bytes > 0 && !known.contains("memory_total_bytes") {
        pairs.push(("memory_total_bytes", host.memory_total_bytes.to_string()));
    }
    if let Some(fsync) = &host.fsync {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        pairs.push((
            "fdatasync of 4 KiB in the data directory, us",
            format!(
                "p50 {}, p99 {}, max {} ({} timed)",
                us(fsync.p50_ns),
                us(fsync.p99_ns),
                us(fsync.max_ns),
                fsync.count
            ),
        ));
    }
    markup! {
        @if several { h3 { (clean(&source.run.name)) } }
        (facts(pairs))
    }
}

fn builds(run: &Run) -> Markup {
    markup! {
        div.block { h4 { "Builds" } div.scroll tabindex="0" { table {
            thead { tr { @for head in ["build", "engine", "version", "source"] { th scope="col" { (head) } } } }
            tbody {
                @for build in &run.builds {
                    tr {
                        th scope="row" { (clean(&build.name)) }
                        td { (clean(&build.engine)) }
                        td { (clean(&build.version)) }
                        td { (clean(&build.source)) }
                    }
                }
            }
        } } }
        @let files: usize = run.builds.iter().map(|build| build.files.len()).sum();
        @if files > 0 {
            details {
                summary { "files of the builds (" (files) ")" }
                div.scroll tabindex="0" { table {
                    thead { tr { @for head in ["build", "file", "bytes", "SHA-256"] { th scope="col" { (head) } } } }
                    tbody {
                        @for build in &run.builds {
                            @for file in &build.files {
                                tr {
                                    th scope="row" { (clean(&build.name)) }
                                    td { (clean(&file.path)) }
                                    td { (file.size_bytes) }
                                    td { code { (clean(&file.sha256)) } }
                                }
                            }
                        }
                    }
                } }
            }
        }
        @if run.targets.iter().any(|target| !target.declared.is_empty()) {
            div.block { h4 { "Settings that the plan declares" } div.scroll tabindex="0" { table {
                tbody {
                    @for target in &run.targets {
                        tr {
                            th scope="row" { (clean(&target.name)) }
                            td {
                                @for (index, (name, value)) in target.declared.iter().enumerate() {
                                    @if index > 0 { br; }
                                    code { (clean(name)) " = " (clean(value)) }
                                }
                            }
                        }
                    }
                }
            } } }
        }
    }
}

/// All effective settings.
fn settings(sources: &[Source]) -> Markup {
    // Cells of one target run with the same settings: the first one speaks for all.
    let mut targets: Vec<&Cell> = Vec::new();
    for record in sources.iter().flat_map(|source| &source.cells) {
        if !record.cell.settings.is_empty()
            && !targets.iter().any(|cell| cell.target == record.cell.target)
        {
            targets.push(&record.cell);
        }
    }
    markup! {
        @if targets.is_empty() { p.soft { "No effective settings are recorded." } }
        @for cell in &targets {
            details {
                summary { "all settings of " (clean(&cell.target)) " (" (cell.settings.len()) ")" }
                div.scroll tabindex="0" { table {
                    thead { tr { @for head in ["setting", "value", "source"] { th scope="col" { (head) } } } }
                    tbody {
                        @for setting in &cell.settings {
                            tr {
                                th scope="row" { (clean(&setting.name)) }
                                td { code { (clean(&setting.value)) } }
                                td.absent { (clean(setting.source.as_deref().unwrap_or_default())) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// What differs between targets: folded, since a reader looks for one pair.
fn differences(settings: &Settings) -> Markup {
    markup! {
        @if !settings.differences.is_empty() { h3 { "What differs between targets" } }
        @for comparison in &settings.differences {
            @let count = comparison.settings.len() + comparison.only_a.len() + comparison.only_b.len();
            @if count == 0 {
                p { (clean(&heading(comparison))) }
            } @else {
                details {
                    summary { (clean(&heading(comparison))) ": " (tally(comparison)) }
                    (difference_table(comparison))
                }
            }
        }
        @for block in of_targets(&settings.targets) {
            h4 { (block.heading) }
            ul.problems { @for line in &block.lines { li.warning { (clean(line)) } } }
        }
    }
}

/// How much differs, in a few words.
fn tally(comparison: &Comparison) -> String {
    let of = |mark: Mark| {
        let settings = comparison.settings.iter();
        settings.filter(|setting| setting.mark == mark).count()
    };
    let mut texts = Vec::new();
    for (count, what) in [
        (of(Mark::Declared), "declared"),
        (of(Mark::Unverified), "declared and not reported"),
        (of(Mark::Undeclared), "undeclared"),
        (
            comparison.only_a.len() + comparison.only_b.len(),
            "of one side only",
        ),
    ] {
        if count > 0 {
            texts.push(format!("{count} {what}"));
        }
    }
    texts.join(", ")
}

fn difference_table(comparison: &Comparison) -> Markup {
    let declared = |mark: Mark| match mark {
        Mark::Declared => "declared",
        Mark::Undeclared => "undeclared",
        Mark::Unverified => "declared, not reported",
    };
    markup! {
        div.scroll tabindex="0" { table {
            thead { tr {
                @for head in ["setting", &comparison.a, &comparison.b, "by the plan"] { th scope="col" { (clean(head)) } }
            } }
            tbody {
                @for setting in &comparison.settings {
                    tr {
                        th scope="row" { (clean(&setting.name)) }
                        @for value in [&setting.a, &setting.b] {
                            @match value {
                                Some(value) => td { code { (clean(value)) } },
                                None => td.absent { "not declared" },
                            }
                        }
                        td.absent[setting.mark == Mark::Undeclared] { (declared(setting.mark)) }
                    }
                }
                @for (only, is_a) in [(&comparison.only_a, true), (&comparison.only_b, false)] {
                    @for setting in only {
                        tr {
                            th scope="row" { (clean(&setting.name)) }
                            @if !is_a { td.absent { "not there" } }
                            td { code { (clean(&setting.value)) } }
                            @if is_a { td.absent { "not there" } }
                            td.absent[setting.mark == Mark::Undeclared] { (declared(setting.mark)) }
                        }
                    }
                }
            }
        } }
    }
}

fn plan(source: &Source, several: bool) -> Markup {
    let plan = &source.run.plan;
    markup! {
        @if several { h3 { (clean(&source.run.name)) } }
        @if !source.run.command.is_empty() { p { code { (clean(&source.run.command.join(" "))) } } }
        @match &plan.path {
            Some(path) => p { code { (clean(path)) } ", verbatim:" },
            None => p { "The built-in default." },
        }
        @if !plan.text.is_empty() { pre tabindex="0" { (clean(&plan.text)) } }
        @for set in &plan.sets { p { code { "--set " (clean(set)) } } }
        @if !plan.resolved.is_empty() {
            details {
                summary { "every value and where it came from (" (plan.resolved.len()) ")" }
                div.scroll tabindex="0" { table {
                    thead { tr { @for head in ["key", "value", "origin"] { th scope="col" { (head) } } } }
                    tbody {
                        @for value in &plan.resolved {
                            tr {
                                th scope="row" { (clean(&value.key)) }
                                td { code { (clean(&value.value)) } }
                                td.absent { (clean(&value.origin)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn method() -> Markup {
    markup! {
        p {
            b { "Service time" } " runs from sending an operation to its reply. " b { "Response time" } " runs from when "
            "the schedule wanted it sent, so it includes the time that an operation waited because earlier ones were "
            "slow. Where there is no rate there is no schedule, and the two are one. Percentiles and buckets come from "
            "all clients, of operations that succeeded; failures are counted apart."
        }
        p {
            b { "Invalid" } " (" code { "!" } ") means that a step ended and its figures can't be stood behind: a check "
            "of the data did not hold, or the accounting does not add up. Such a figure is grey and is compared with "
            "nothing. " b { "failed" } " means that there is no figure; " code { "n/a" } " that it does not exist for this "
            "engine, host or step; " code { "-" } " that the step was not run."
        }
        p {
            b { "A rate" } " of writes, or of a test's events, is met when at least 95% of the target was had. A step that asks for a rate and "
            "misses it shows its other figures for less work than it was to do."
        }
        p {
            b { "Colours" } " in the throughput table: the best and the worst quarter of the range of a column, or of a row where rows are tests, among "
            "targets with the same number of clients; none of the worst where the smallest is at least 80% of the "
            "largest. In the relative table: more than 5% above or below the base."
        }
        p {
            b { "Metrics" } " per operation count inserts in load steps, rows indexed in index steps, queries in query "
            "steps; with keys and values what the step is about: puts, gets, reads of several keys, or scans. " code { "cpupq" } " is CPU time of the whole host in microseconds; " code { "client_cpu_us_per_op" }
            " that of the threads of the load, which with an embedded engine do the engine's work too; " code { "server_cpu_us_per_op" } " that of the server's processes. "
            code { "p50" } " and " code { "p99" } " are rates met or exceeded in 50% and 99% of the seconds. "
            code { "maxop" } " is the longest response time in seconds. " code { "dbgb1" } " is the size of the data, "
            code { "dbgb2" } " with the logs, " code { "rss" } " the memory of the server, in units of 2^30 bytes."
        }
        p {
            b { "LSM trees: " } code { "w_amp" } " is what flushes and compactions wrote, each byte counted once, over bytes "
            "of keys and values that were put; " code { "wal_amp" } " the same of the log. " code { "r_amp" } " is blocks "
            "looked up for each key or entry that was read, " code { "s_amp" } " live files over the data that is in them. "
            code { "settled" } " means until the check of the data and the settling that follow the step were over too; " code { "~" } " that more than 5% of a figure may be rounding. "
            code { "stall%" } " is the share of the step in which writes were held up; " code { "Nstall" } " how often they "
            "were. The engine counts a stall when it ends. " code { "c_wsecs" } " and " code { "c_csecs" } " are seconds that "
            "compactions and flushes took, by the clock and of CPU."
        }
        details {
            summary { "licence of uPlot, which draws the charts" }
            pre { (UPLOT_LICENCE) }
        }
    }
}
