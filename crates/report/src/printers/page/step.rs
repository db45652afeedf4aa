//! The section of a step: its figures, its charts, and settling.

use maud::{Markup, PreEscaped, html as markup};
use record::Step;

use crate::model::comparison::ComparedGroup;
use crate::model::matrix::{Matrix, StepHead};
use crate::model::number::duration;
use crate::model::operations::split_kinds;
use crate::model::table::{Table, anchor};
use crate::model::text::clean;
use crate::printers::page::brief::brief;
use crate::printers::page::charts::{self, Budget, Chart, Index, Plot};
use crate::printers::page::curve::ChartPlace;
use crate::printers::page::distributions;
use crate::printers::page::legend::Legend;
use crate::printers::page::marks;
use crate::printers::page::table::table;
use crate::printers::page::turns::{self, RatioChart};
use crate::printers::page::waits;
use crate::printers::page::{CellRecord, NamedMatrix, Source, cell_label, marked, permalink};
use crate::tables::classic;
use crate::tables::lsm;
use crate::tables::metrics;
use crate::tables::quality;
use crate::tables::times;
use crate::tables::turns as turns_table;

/// The charts of one step.
pub(super) struct StepCharts<'a> {
    step: StepHead<'a>,
    pub(super) charts: Vec<Chart<'a>>,
    /// The ratios to the base over the turns; `None` without turns.
    pub(super) ratios: Option<RatioChart<'a>>,
    distributions: Vec<Plot>,
}

impl<'a> StepCharts<'a> {
    pub(super) fn of(matrix: &Matrix<'a>, index: &Index<'a>, step: StepHead<'a>) -> Self {
        Self {
            step,
            charts: charts::of_step(matrix, index, step),
            ratios: turns::of_step(matrix, index, step),
            distributions: distributions::of_step(matrix, step),
        }
    }

    fn at<'s>(&'s self, places: &'s [ChartPlace]) -> impl Iterator<Item = &'s Chart<'a>> {
        self.charts.iter().filter(|chart| places.contains(&chart.place))
    }
}

/// The maximum number of steps and lines with which the sections of steps are open at first.
const OPEN_STEPS_MAX: usize = 4;
const OPEN_LINES_MAX: usize = 12;

/// Returns the sections of all steps, with what was done to settle after them.
pub(super) fn sections(
    named: NamedMatrix<'_>,
    groups: &[ComparedGroup<'_>],
    legend: &Legend,
    steps: &[StepCharts<'_>],
    budget: Budget,
    sources: &[Source],
) -> Markup {
    markup! {
        section id="steps" {
            h2 { "Steps" (permalink("steps")) }
            (how_to_read_charts())
            @for step in steps { (section(named, groups, legend, step, budget)) }
            (settling(sources))
        }
    }
}

fn how_to_read_charts() -> Markup {
    markup! {
        p.note.on-screen {
            "Charts show each second of a step. A second without completed operations is drawn as zero; its response time is "
            "a gap. An incomplete last second is scaled to a whole one, or omitted if it is shorter than 0.1 s."
        }

        p.note.on-screen {
            "A color is a target. If a target was repeated, the bold line is the median of its repeats in each second, and a thin line is "
            "one repeat. Above the charts of a step are buttons for the targets: click one to hide its lines, Ctrl-click it to hide all "
            "others. With more than eight targets, only the base, the fastest and the slowest are colored; then a click colors a target or "
            "removes its color, and Shift-click hides it. Drag in a chart to zoom all charts of the step; double-click to zoom out. Keyboard: Tab to a "
            "chart, arrow keys to move along it, " kbd { "+" } " and " kbd { "\u{2212}" } " to zoom, " kbd { "Esc" } " to zoom out."
        }

        noscript { p.note { "Charts need JavaScript; the tables don't." } }
    }
}

/// Returns the section of a step. Its heading has a summary and opens the rest.
fn section(
    named: NamedMatrix<'_>,
    groups: &[ComparedGroup<'_>],
    legend: &Legend,
    charts: &StepCharts<'_>,
    budget: Budget,
) -> Markup {
    let matrix = named.matrix;
    let id = format!("step-{}", anchor(charts.step.name));
    let is_short =
        matrix.measured().count() <= OPEN_STEPS_MAX && matrix.lines.len() <= OPEN_LINES_MAX;

    markup! {
        section.step id=(id) data-of=(clean(charts.step.name)) {
            details open[is_short] {
                summary {
                    h3 { (clean(charts.step.name)) (permalink(&id)) }
                    span.brief { (brief(named, groups, charts.step)) }
                }
                (body(named, legend, charts, budget))
            }
        }
    }
}

/// Returns the contents of a step's section: what the load did, in figures and in charts; what the
/// host and the engine did at the same time; how even the step was, and where its time went.
fn body(
    named: NamedMatrix<'_>,
    legend: &Legend,
    charts: &StepCharts<'_>,
    budget: Budget,
) -> Markup {
    let NamedMatrix { matrix, names } = named;
    let step = charts.step;
    let load = [ChartPlace::Load, ChartPlace::Beside];
    let host_tables = metrics::of_host(matrix, step);
    let counters = classic::counters(matrix, step);

    markup! {
        (table(names, &metrics::metrics(matrix, step)))
        (table(names, &metrics::costs(matrix, step)))
        (table(names, &metrics::time(matrix, step)))
        (waits::bars(named, step))
        (table(names, &metrics::upkeep(matrix, step)))
        (table(names, &metrics::replication(matrix, step)))

        @if charts.at(&load).next().is_none() {
            p.note { "No charts by second: the step ended in its first second." }
        }

        @if !charts.charts.is_empty() || !charts.distributions.is_empty() {
            (legend.buttons(named, step))
            (marks::of_step(matrix, step))
        }

        @if let Some(ratios) = &charts.ratios {
            div.charts { (figure(&ratios.plot(&names.short(&matrix.base_names()), budget), step)) }
        }

        (figures(charts, &load, budget))
        @if !charts.distributions.is_empty() {
            div.charts {
                @for chart in &charts.distributions { (figure(chart, step)) }
            }
        }

        @if !host_tables.is_empty() {
            details {
                summary { "disks and processors, as in iostat and vmstat; waits; system calls; events of the log; sizes of indexes; plans" }
                @for host in &host_tables { (table(names, host)) }
            }
        }

        (folded_figures(charts, ChartPlace::Cost, "what an operation cost, second by second", budget))
        (folded_figures(charts, ChartPlace::Host, "host and server, second by second", budget))
        (folded_figures(charts, ChartPlace::Engine, "counters of the engine that changed, second by second", budget))

        @for quality in quality::tables(matrix, step) { (table(names, &quality)) }
        @for lsm in lsm::tables(matrix, step) { (table(names, &lsm)) }

        (times_of_kinds(named, step))
        (table(names, &turns_table::totals(matrix, step)))

        @if !counters.is_empty() {
            details { summary { "counters of the engine (" (counters.rows.len()) ")" } (table(names, &counters)) }
        }
    }
}

/// Returns the tables of times; those of bookkeeping operations are folded.
fn times_of_kinds(NamedMatrix { matrix, names }: NamedMatrix<'_>, step: StepHead<'_>) -> Markup {
    let (kinds, others) = split_kinds(matrix, step);

    // Identifiers must be unique in a page.
    let beside = |mut table: Table| {
        table.id += "-beside";
        table
    };

    markup! {
        (table(names, &times::buckets(matrix, step, &kinds)))
        (table(names, &times::percentiles(matrix, step, &kinds)))
        (table(names, &times::accounting(matrix, step)))

        @if !others.is_empty() {
            details {
                summary { "times of bookkeeping operations: " (clean(&others.join(", "))) }
                (table(names, &beside(times::buckets(matrix, step, &others))))
                (table(names, &beside(times::percentiles(matrix, step, &others))))
            }
        }
    }
}

fn figures(charts: &StepCharts<'_>, places: &[ChartPlace], budget: Budget) -> Markup {
    markup! {
        div.charts {
            @for chart in charts.at(places) { (figure(&chart.plot(budget), charts.step)) }
        }
    }
}

/// Returns the charts of a place, folded and counted; nothing without charts.
fn folded_figures(
    charts: &StepCharts<'_>,
    place: ChartPlace,
    what: &str,
    budget: Budget,
) -> Markup {
    let count = charts.at(&[place]).count();

    markup! {
        @if count > 0 {
            details {
                summary { (what) " (" (count) ")" }
                (figures(charts, &[place], budget))
            }
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
fn settling(sources: &[Source]) -> Markup {
    let settled: Vec<&CellRecord> = sources
        .iter()
        .flat_map(|source| &source.cells)
        .filter(|record| record.steps.iter().any(|step| step.settle.is_some()))
        .collect();

    markup! {
        @if !settled.is_empty() {
            section id="step-settling" {
                h3 { "Settling" (permalink("step-settling")) }
                details {
                    summary { "what was done in " (analysis::counted(settled.len(), "cell")) }
                    @for record in settled {
                        h4 { (cell_label(&record.cell)) }
                        ul.problems { @for step in &record.steps { (settle_item(step)) } }
                    }
                }
            }
        }
    }
}

/// Returns what settling did in a step, and what it left.
fn settle_item(step: &Step) -> Markup {
    let Some(settle) = &step.settle else {
        return markup! {};
    };

    let warnings = step.warnings.iter().filter(|warning| warning.code.starts_with("settle::"));

    markup! {
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

            @for warning in warnings {
                "; " b { (marked(&warning.text)) }
            }
        }
    }
}
