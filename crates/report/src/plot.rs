//! Plots of a comparison: values first, drawn as SVG on request. In a page they use its colors, and
//! each is drawn for wide and for narrow screens. As files they have a white background and a
//! title.

mod chart;
mod forest;
mod heat;
mod over;
mod scale;
mod svg;

use analysis::{ComparedStep, Figures, THROUGHPUT};
use maud::{Markup, PreEscaped, html as markup};
use record::Run;

use crate::compared::{self, Board, Comparison, RepeatedLine};
use crate::findings;
use crate::html::{clean, permalink};
use crate::matrix::StepHead;
use crate::table::Tone;
use chart::{Chart, Curve};
use forest::Forest;
use heat::{Heat, HeatCell};
use over::OverClients;
use svg::{MARKS, Panel, RATE_MISSED, mark};

pub(crate) use svg::STYLE;

/// The maximum number of forest plots, one per target; more targets are shown as a heat map.
const FORESTS_MAX: usize = 4;

/// The width of drawings on wide screens: of several side by side, and of one that takes the full
/// width.
const WIDE: f64 = 640.0;
const WIDEST: f64 = 1300.0;
/// The width of drawings on narrow screens.
const NARROW: f64 = 366.0;
/// The width of a chart on all screens, unless it shows more targets than this.
const CHART: f64 = 420.0;
const NAMES_MAX: usize = 14;

/// A plot.
struct Plot<'a> {
    /// Its file name.
    id: &'static str,
    title: String,
    /// An explanation for readers.
    note: String,
    drawing: Drawing<'a>,
}

/// The contents of a plot.
enum Drawing<'a> {
    Forests(Vec<Forest<'a>>),
    Heat(Heat),
    Charts(Vec<Chart>),
}

/// A group of plots: its identifier, its heading and its plots.
type Section<'a> = (&'static str, &'static str, Vec<Plot<'a>>);

/// Returns the plot of all verdicts; `None` if nothing could be compared.
fn verdicts<'a>(board: &'a Board<'a>) -> Option<Plot<'a>> {
    let steps: Vec<StepHead<'_>> = board.matrix.measured().collect();
    let rows = |line: &RepeatedLine| -> Vec<&'a ComparedStep> {
        let rows = steps.iter().filter_map(|step| board.row(line, step.name, THROUGHPUT));
        rows.collect()
    };
    let others = board.compared_groups().flatten();
    let others: Vec<&RepeatedLine> =
        others.filter(|line| line.cell.target != board.base && !rows(line).is_empty()).collect();
    let compared = board.comparison.compared;
    let all = || others.iter().flat_map(|line| rows(line));
    all().find(|row| row.ratio.is_some())?;
    let drawing = if others.len() <= FORESTS_MAX {
        let forest = |line: &&RepeatedLine| {
            let mut rows = rows(line);
            forest::sort(&mut rows);
            let missed = rows.iter().map(|row| row.step.as_str());
            let missed = missed.filter(|step| board.missed_sla(line, step, true));
            Forest {
                missed: missed.collect(),
                name: board.short_label(line),
                base: board.short_base(),
                rows,
                effect: compared.effect,
                reach: forest::reach(all(), compared.effect),
            }
        };
        Drawing::Forests(others.iter().map(forest).collect())
    } else {
        Drawing::Heat(heat(board, &others, &steps))
    };
    let (id, note) = match &drawing {
        Drawing::Heat(map) => {
            let missed =
                if map.has_missed() { format!("; * is {RATE_MISSED}") } else { String::new() };
            (
                "heat-map",
                format!(
                    "A ratio above 1 is faster. A shown change has \u{25b2} or \u{25bc} and a color, which is strongest at twice \
                     or half; ? is too noisy to say{missed}."
                ),
            )
        }
        Drawing::Forests(forests) if forests.iter().any(Forest::has_band) => (
            "forest",
            format!(
                "A ratio above 1 is faster. The band is a change of less than {}, which does not matter.",
                compared::percent(compared.effect)
            ),
        ),
        _ => ("forest", "A ratio above 1 is faster.".to_string()),
    };
    Some(Plot {
        id,
        title: format!("Throughput relative to {}", board.short_base()),
        note,
        drawing,
    })
}

/// Returns the subject of plots: the run, and what all its targets share, which names in plots
/// omit.
fn subject(board: &Board<'_>) -> String {
    let shared = board.names.shared().map(|shared| format!(", {shared}"));
    board.comparison.run.name.clone() + &shared.unwrap_or_default()
}

/// Returns the heat map of all lines in all steps.
fn heat(board: &Board<'_>, lines: &[&RepeatedLine], steps: &[StepHead<'_>]) -> Heat {
    let square = |line: &RepeatedLine, step: &StepHead<'_>| {
        let row = board.row(line, step.name, THROUGHPUT);
        let nothing = || board.missing_cell(line, *step, THROUGHPUT);
        HeatCell::of(row, board.missed_sla(line, step.name, true), nothing)
    };
    let (targets, names): (Vec<_>, Vec<_>) = (
        lines.iter().map(|line| board.short_label(line)).collect(),
        steps.iter().map(|step| step.name.to_string()).collect(),
    );
    let name = format!("throughput relative to {}", board.short_base());
    if steps.len() > lines.len() {
        let rows = steps
            .iter()
            .zip(names)
            .map(|(step, name)| (name, lines.iter().map(|line| square(line, step)).collect()));
        let rows = rows.collect();
        return Heat { name, columns: targets, rows };
    }
    let rows = lines
        .iter()
        .zip(targets)
        .map(|(line, name)| (name, steps.iter().map(|step| square(line, step)).collect()));
    let rows = rows.collect();
    Heat { name, columns: names, rows }
}

impl Plot<'_> {
    /// Draws the plot for wide or narrow screens.
    fn panels(&self, is_wide: bool) -> Vec<Panel> {
        let width = |at_desk: f64| if is_wide { at_desk } else { NARROW };
        match &self.drawing {
            Drawing::Forests(forests) => forests.iter().map(|it| it.draw(width(WIDE))).collect(),
            Drawing::Heat(map) => map.draw(width(WIDEST)),
            Drawing::Charts(charts) => {
                let at_desk = if self.is_of_one_size() { CHART } else { WIDE };
                charts.iter().map(|it| it.draw(width(at_desk))).collect()
            }
        }
    }

    /// Returns true if one drawing fits wide and narrow screens.
    fn is_of_one_size(&self) -> bool {
        match &self.drawing {
            Drawing::Charts(charts) => charts.iter().all(|it| it.x.ticks.len() <= NAMES_MAX),
            _ => false,
        }
    }

    /// Returns the legend: marks and lines with their meanings.
    fn keys(&self) -> Vec<(Markup, String)> {
        let mut tones: Vec<Tone> = Vec::new();
        let mut curves: Vec<&Curve> = Vec::new();
        match &self.drawing {
            Drawing::Forests(forests) => {
                let rows = forests.iter().flat_map(|forest| &forest.rows);
                tones.extend(rows.filter(|row| row.ratio.is_some()).map(|row| compared::tone(row)));
                let has_missed = forests.iter().any(|forest| !forest.missed.is_empty());
                tones.extend(has_missed.then_some(Tone::SlaMissed));
            }
            // Its marks are the same as in tables.
            Drawing::Heat(_) => {}
            Drawing::Charts(charts) => {
                for curve in charts.iter().flat_map(|chart| &chart.curves) {
                    tones.extend(curve.points.iter().filter_map(|point| point.tone));
                    let is_known = |known: &&Curve| {
                        known.name == curve.name || (known.is_faint && curve.is_faint)
                    };
                    if !curves.iter().any(is_known) {
                        curves.push(curve);
                    }
                }
            }
        }
        let lines = curves.iter().filter(|_| curves.len() > 1);
        let lines = lines.map(|curve| (chart::key(curve), curve.key_name()));
        let marks = MARKS.iter().filter(|(tone, _)| tones.contains(tone));
        let marks = marks.map(|&(tone, meaning)| (mark(tone, 10.0, 0.0), meaning.to_string()));
        lines.chain(marks).collect()
    }

    /// Returns the plot as an SVG file of its own.
    fn file(&self, subject: &str) -> String {
        let title = format!("{subject}: {}", self.title);
        clean(&svg::file(&title, &self.panels(true), &self.keys(), &self.note))
    }

    /// Returns the plot as a part of a page.
    fn figure(&self, subject: &str) -> Markup {
        let draw =
            |is_wide: bool| markup! { @for panel in self.panels(is_wide) { (panel.inline()) } };
        let figure = markup! {
            div.plots id={ "plot-" (self.id) } {
                div.heading {
                    h4 { (self.title) (permalink(&format!("plot-{}", self.id))) }
                    a.save download={ (self.id) ".svg" } href={ "data:image/svg+xml," (encoded(&self.file(subject))) } { "save as SVG" }
                }
                @if self.is_of_one_size() { div.panels { (draw(true)) } } @else {
                    div.panels.wide { (draw(true)) }
                    div.panels.narrow { (draw(false)) }
                }
                ul.key {
                    @for (mark, meaning) in self.keys() {
                        li { svg.drawn width="24" height="12" viewBox="0 -6 24 12" aria-hidden="true" { (mark) } (meaning) }
                    }
                }
                p.note { (self.note) }
            }
        };
        PreEscaped(clean(&figure.into_string()))
    }
}

/// Encodes text for a `data:` link.
fn encoded(text: &str) -> String {
    let mut link = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'-'
            | b'_'
            | b'.'
            | b'/'
            | b','
            | b'='
            | b'('
            | b')' => {
                link.push(char::from(byte));
            }
            _ => link += &format!("%{byte:02X}"),
        }
    }
    link
}

/// Returns the plots over targets, clients and rates.
fn over(board: &Board<'_>) -> [Section<'static>; 3] {
    const RATIOS: &str = "Targets are in the plan's order. A line through a point is its interval; the band is a change \
        that does not matter.";
    const RANGES: &str =
        "A point is the mean of all valid repeats; the line through it is their range.";
    const IDEAL: &str = "Both axes are logarithmic. The dotted line is ideal: twice the clients, twice the throughput.";
    let ratios =
        |id, title, is_from_zero| of(id, title, RATIOS, over::targets(board, is_from_zero));
    let clients = |id, title, what| {
        let note = if what == OverClients::ScaleUp { IDEAL } else { RANGES };
        of(id, title, note, over::clients(board, what))
    };
    let targets = [
        ratios("over-targets", "Throughput relative to the base", false),
        ratios("over-targets-from-zero", "Throughput relative to the base, from zero", true),
    ];
    let clients = [
        clients("throughput-over-clients", "Throughput", OverClients::Throughput),
        clients("cost-over-clients", "CPU time of the host per operation", OverClients::Cost),
        clients(
            "scale-up",
            "Scale-up: throughput as a multiple of that with the fewest clients",
            OverClients::ScaleUp,
        ),
    ];
    let search = of(
        "search",
        "The search for the highest rate",
        "Rates are those of all clients together. The dotted line is the bound.",
        over::search(board),
    );
    let rates = of(
        "latency-over-rate",
        "Response time over the requested rate",
        &format!("{RANGES} Rates are those of all clients together."),
        over::rates(board),
    );
    [
        ("over-targets", "Over targets", targets.into_iter().flatten().collect()),
        ("over-clients", "Over clients", clients.into_iter().flatten().collect()),
        ("over-rates", "Over rates", search.into_iter().chain(rates).collect()),
    ]
}

/// Returns a plot of charts; `None` without charts.
fn of(id: &'static str, title: &str, note: &str, charts: Vec<Chart>) -> Option<Plot<'static>> {
    (!charts.is_empty()).then(|| Plot {
        id,
        title: title.to_string(),
        note: note.to_string(),
        drawing: Drawing::Charts(charts),
    })
}

/// Returns all plots of a report as SVG files: file names without extension, and contents. Of a
/// report of several runs, `run` is the first.
pub fn plots(run: &Run, figures: &Figures) -> Vec<(String, String)> {
    let (compared, findings) = findings::of(run, figures);
    let comparison = Comparison::of_run(run, figures, &compared, &findings);
    let board = Board::new(&comparison);
    let others = over(&board).into_iter().flat_map(|(.., plots)| plots);
    let plots = verdicts(&board).into_iter().chain(others);
    plots.map(|plot| (plot.id.to_string(), plot.file(&subject(&board)))).collect()
}

/// Returns the plot on the first screen of a page: a forest plot for each of a few targets, or a
/// heat map of many. Empty if there is nothing to compare.
pub(crate) fn overview(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    markup! { @if let Some(plot) = verdicts(&board) { (plot.figure(&subject(&board))) } }
}

/// Returns the sections of a page with the other plots.
pub(crate) fn sections(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    let subject = subject(&board);
    markup! {
        @for (id, heading, plots) in over(&board) {
            @if !plots.is_empty() {
                section id={ "plots-" (id) } {
                    h3 { (heading) (permalink(&format!("plots-{id}"))) }
                    @for plot in &plots { (plot.figure(&subject)) }
                }
            }
        }
    }
}
