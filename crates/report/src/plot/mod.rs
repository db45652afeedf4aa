//! Plots of a comparison, in a page and as SVG files.
//!
//! A [`Plot`] holds values, not drawings, because each plot is drawn several times: for wide and
//! for narrow screens, and as a file. A drawing in a page has the page's colors and follows its
//! dark mode; a file has no page around it, so it brings colors, a background, a title and a
//! legend.
//!
//! ```text
//! Board ─┬─ effects of factors ─────────► Forest, one per level ──┐
//!        ├─ ratios ─────────────────────► Forest, one per target ─┤             ┌─► page, wide and narrow
//!        │                                Heat, of many targets ──┼─► [Panel] ──┤
//!        └─ over factors, targets, ... ─► Chart, one per step ────┘             └─► file
//! ```
//!
//! A page shows the ratios as a table of [strips](StripScale), so forest plots and heat maps are
//! files only.
//!
//! The shape of a mark alone shows its verdict, and each drawing is described in words, for readers
//! without colors or with a screen reader.

mod chart;
mod files;
mod forest;
mod heat;
mod over;
mod scale;
mod strip;
mod svg;
mod versions;

use analysis::compare::{ComparedStep, Effect, THROUGHPUT};
use maud::{Markup, html as markup};

use crate::model::matrix::StepHead;
use crate::model::number::{percent, typeset};
use crate::model::table::Tone;
use crate::model::text::clean;
use crate::tables::compared::{self, Board, RepeatedLine};
use chart::{Chart, Curve};
use forest::Forest;
use heat::{Heat, HeatCell};
use over::OverClients;
use svg::{GAP, MARKS, Panel, RATE_MISSED, mark, repeat_mark};

pub(crate) use chart::{COLOR_COUNT, DASHES};
pub use files::{PlotFiles, plots};
pub(crate) use strip::{StripScale, strip_keys};
pub(crate) use svg::STYLE;
pub use versions::{VersionChart, VersionLevel};

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
/// The least widths of a forest plot and of a chart that stand side by side in a file.
const FOREST_MIN: f64 = 420.0;
const CHART_MIN: f64 = 300.0;

/// The note of charts whose points are repeats.
const RANGES: &str =
    "A point is the mean of all valid repeats; the line through it is their range.";

/// The meaning of the dots of repeats: figures, or ratios to the base.
const REPEAT: &str = "one repeat";
const RELATIVE_REPEAT: &str = "one repeat, relative to the base";

pub(crate) struct Plot<'a> {
    /// The file name without extension, and a part of the anchor in a page.
    pub id: &'static str,
    pub title: String,
    /// An explanation for readers.
    pub note: String,
    drawing: Drawing<'a>,
}

enum Drawing<'a> {
    Forests(Vec<Forest<'a>>),
    Heat(Heat),
    Charts(Vec<Chart>),
}

/// A group of plots in a page.
pub(crate) struct PlotSection {
    pub id: &'static str,
    pub heading: &'static str,
    pub plots: Vec<Plot<'static>>,
}

/// The identifiers of the sections whose figures the matrices of a page have, too.
pub(crate) const FACTORS: &str = "factors";
pub(crate) const OVER_TARGETS: &str = "over-targets";

/// Returns the plot of all verdicts; `None` if nothing could be compared.
pub(crate) fn verdicts<'a>(board: &'a Board<'a>) -> Option<Plot<'a>> {
    let steps: Vec<StepHead<'_>> = board.matrix.measured().collect();
    let others: Vec<ComparedLine<'_>> = board
        .compared_groups()
        .flatten()
        .filter(|line| line.cell.target != board.base)
        .map(|line| ComparedLine::of(board, line, &steps))
        .filter(|other| !other.rows.is_empty())
        .collect();

    let has_ratio = others.iter().flat_map(|other| &other.rows).any(|row| row.ratio.is_some());
    if !has_ratio {
        return None;
    }

    let title = format!("Throughput relative to {}", board.short_base());
    if others.len() > FORESTS_MAX {
        let map = heat(board, &others, &steps);
        let note = heat_note(&map);
        return Some(Plot { id: "heat-map", title, note, drawing: Drawing::Heat(map) });
    }

    let forests = forests(board, others);
    let note = forest_note(&forests, board.comparison.compared.effect);
    Some(Plot { id: "forest", title, note, drawing: Drawing::Forests(forests) })
}

/// Returns the plot of the effects of all factors on throughput; `None` without any.
pub(crate) fn effects_of_factors<'a>(board: &'a Board<'a>) -> Option<Plot<'a>> {
    let effects = board.comparison.effects;
    let of_throughput = effects.rows.iter().filter(|effect| {
        let row = &effect.compared;
        row.metric == THROUGHPUT && board.matrix.shows(&row.step)
    });
    let mut rows: Vec<&Effect> = of_throughput.collect();
    rows.sort_by_key(|effect| (effect.compared.cell.load(), effect.factor, effect.level));
    if rows.iter().all(|effect| effect.compared.ratio.is_none()) {
        return None;
    }

    // One reach for all, so that plots next to each other can be compared.
    let reach = strip::reach(rows.iter().map(|effect| &effect.compared), effects.effect);
    let forest = |of_level: &[&'a Effect]| {
        let factor = &effects.factors[of_level[0].factor];
        let change = typeset(&factor.change(of_level[0].level));
        let load = board.keys.group_label(&of_level[0].compared.cell);
        Forest {
            name: load.map_or(change.clone(), |load| format!("{change}, {load}")),
            base: factor.levels[0].clone(),
            rows: of_level.iter().map(|effect| &effect.compared).collect(),
            missed: Vec::new(),
            effect: effects.effect,
            reach,
        }
    };

    let levels = rows.chunk_by(|a, b| {
        let [first, second] = [a, b].map(|effect| (effect.factor, effect.level));
        first == second && a.compared.cell.load() == b.compared.cell.load()
    });
    let forests: Vec<Forest<'a>> = levels.map(forest).collect();

    Some(Plot {
        id: "effects",
        title: "Effects of factors on throughput, all else equal".to_owned(),
        note: forest_note(&forests, effects.effect),
        drawing: Drawing::Forests(forests),
    })
}

/// A line with its comparisons of throughput.
struct ComparedLine<'a> {
    line: &'a RepeatedLine,
    rows: Vec<&'a ComparedStep>,
}

impl<'a> ComparedLine<'a> {
    fn of(board: &'a Board<'a>, line: &'a RepeatedLine, steps: &[StepHead<'_>]) -> Self {
        let rows = steps.iter().filter_map(|step| board.row(line, step.name, THROUGHPUT)).collect();
        Self { line, rows }
    }
}

/// Returns a forest plot of each line.
fn forests<'a>(board: &Board<'a>, others: Vec<ComparedLine<'a>>) -> Vec<Forest<'a>> {
    let effect = board.comparison.compared.effect;
    // One reach for all, so that plots next to each other can be compared.
    let all_rows = others.iter().flat_map(|other| other.rows.iter().copied());
    let reach = strip::reach(all_rows, effect);

    let forest = |ComparedLine { line, rows }: ComparedLine<'a>| {
        let steps = rows.iter().map(|row| row.step.as_str());
        Forest {
            missed: steps.filter(|step| board.missed_sla(line, step, true)).collect(),
            name: board.short_label(line),
            base: board.short_base(),
            rows,
            effect,
            reach,
        }
    };

    others.into_iter().map(forest).collect()
}

fn forest_note(forests: &[Forest<'_>], effect: f64) -> String {
    // On a wide axis the band is too narrow to be seen, so no text mentions it.
    if !forests.iter().any(Forest::has_band) {
        return "A ratio above 1 is faster.".to_string();
    }
    format!(
        "A ratio above 1 is faster. The band is a change of less than {}, which does not matter.",
        percent(effect)
    )
}

fn heat_note(map: &Heat) -> String {
    let missed = if map.has_missed() { format!("; * is {RATE_MISSED}") } else { String::new() };
    format!(
        "A ratio above 1 is faster. A shown change has \u{25b2} or \u{25bc} and a color, which is \
         strongest at twice or half; ? is too noisy to say{missed}."
    )
}

/// Returns the subject of plots: the run, and what all its targets share, which names in plots
/// omit.
pub(crate) fn subject(board: &Board<'_>) -> String {
    let shared = board.names.shared().map(|shared| format!(", {shared}"));
    board.comparison.run.name.clone() + &shared.unwrap_or_default()
}

/// Returns the heat map of all lines in all steps.
fn heat(board: &Board<'_>, others: &[ComparedLine<'_>], steps: &[StepHead<'_>]) -> Heat {
    let square = |line: &RepeatedLine, step: &StepHead<'_>| {
        let row = board.row(line, step.name, THROUGHPUT);
        let nothing = || board.missing_cell(line, *step, THROUGHPUT);
        HeatCell::of(row, board.missed_sla(line, step.name, true), nothing)
    };

    let name = format!("throughput relative to {}", board.short_base());
    let targets = others.iter().map(|other| board.short_label(other.line));
    let step_names = steps.iter().map(|step| step.name.to_string());

    // The longer list goes down the page, which scrolls in that direction only.
    if steps.len() > others.len() {
        let rows = steps.iter().zip(step_names).map(|(step, step_name)| {
            (step_name, others.iter().map(|other| square(other.line, step)).collect())
        });
        Heat { name, columns: targets.collect(), rows: rows.collect() }
    } else {
        let rows = others.iter().zip(targets).map(|(other, target)| {
            (target, steps.iter().map(|step| square(other.line, step)).collect())
        });
        Heat { name, columns: step_names.collect(), rows: rows.collect() }
    }
}

impl Plot<'_> {
    /// Draws the plot for wide or narrow screens.
    pub(crate) fn panels(&self, is_wide: bool) -> Vec<Panel> {
        let width = |at_desk: f64| if is_wide { at_desk } else { NARROW };

        match &self.drawing {
            Drawing::Forests(forests) => {
                forests.iter().map(|forest| forest.draw(width(WIDE))).collect()
            }
            Drawing::Heat(map) => map.draw(width(WIDEST)),
            Drawing::Charts(charts) => {
                let at_desk = if self.is_of_one_size() { CHART } else { WIDE };
                charts.iter().map(|chart| chart.draw(width(at_desk))).collect()
            }
        }
    }

    /// Returns true if one drawing fits wide and narrow screens.
    pub(crate) fn is_of_one_size(&self) -> bool {
        match &self.drawing {
            Drawing::Charts(charts) => charts.iter().all(|chart| chart.x.ticks.len() <= NAMES_MAX),
            _ => false,
        }
    }

    /// Returns the legend: marks and lines with their meanings.
    pub(crate) fn keys(&self) -> Vec<(Markup, String)> {
        match &self.drawing {
            Drawing::Forests(forests) => {
                let rows = forests.iter().flat_map(|forest| &forest.rows);
                let mut tones: Vec<Tone> =
                    rows.filter(|row| row.ratio.is_some()).map(|row| compared::tone(row)).collect();
                if forests.iter().any(|forest| !forest.missed.is_empty()) {
                    tones.push(Tone::SlaMissed);
                }

                let mut keys = mark_keys(&tones);
                if forests.iter().any(Forest::has_repeats) {
                    keys.push(repeat_key(RELATIVE_REPEAT));
                }
                keys
            }
            // The marks of a heat map are those of tables, and its note explains them.
            Drawing::Heat(_) => Vec::new(),
            Drawing::Charts(charts) => chart_keys(charts),
        }
    }

    /// Draws the plot so that it fits a file of this width.
    fn panels_within(&self, width: f64) -> Vec<Panel> {
        let room = width - 2.0 * GAP;
        match &self.drawing {
            Drawing::Forests(forests) => {
                let column = column(room, forests.len(), FOREST_MIN, WIDE);
                forests.iter().map(|forest| forest.draw(column)).collect()
            }
            Drawing::Heat(map) => map.draw(room),
            Drawing::Charts(charts) => {
                let least = if self.is_of_one_size() { CHART_MIN } else { room };
                let column = column(room, charts.len(), least, WIDEST);
                charts.iter().map(|chart| chart.draw(column)).collect()
            }
        }
    }

    /// Returns the plot as an SVG file of its own, as wide as its drawings need.
    pub(crate) fn file(&self, subject: &str) -> String {
        self.file_of(subject, &self.panels(true), None)
    }

    /// Returns the plot as an SVG file of this width in pixels.
    fn file_within(&self, subject: &str, width: f64) -> String {
        self.file_of(subject, &self.panels_within(width), Some(width))
    }

    fn file_of(&self, subject: &str, panels: &[Panel], width: Option<f64>) -> String {
        let title = format!("{subject}: {}", self.title);
        clean(&svg::file(&title, panels, &self.keys(), &self.note, width))
    }
}

/// Returns the width of each of `count` drawings, of which as many are side by side as fit with at
/// least `least`.
fn column(room: f64, count: usize, least: f64, most: f64) -> f64 {
    let columns = ((room + GAP) / (least + GAP)).floor().clamp(1.0, count.max(1) as f64);
    ((room - GAP * (columns - 1.0)) / columns).min(most)
}

/// Returns the legend of charts: their lines, each once, and then their marks.
fn chart_keys(charts: &[Chart]) -> Vec<(Markup, String)> {
    let all_curves = || charts.iter().flat_map(|chart| &chart.curves);

    let mut curves: Vec<&Curve> = Vec::new();
    for curve in all_curves() {
        // All faint lines look alike, so they share a line of the legend.
        let is_known = curves
            .iter()
            .any(|known| known.name == curve.name || (known.is_faint && curve.is_faint));
        if !is_known {
            curves.push(curve);
        }
    }

    // A single line needs no name: the title says what it shows.
    if curves.len() == 1 {
        curves.clear();
    }

    let points = all_curves().flat_map(|curve| &curve.points);
    let tones: Vec<Tone> = points.filter_map(|point| point.tone).collect();
    let lines = curves.iter().map(|curve| (chart::key(curve), curve.key_name()));
    let mut keys: Vec<(Markup, String)> = lines.chain(mark_keys(&tones)).collect();

    if all_curves().any(Curve::has_repeats) {
        let are_ratios = charts.iter().any(|chart| chart.effect.is_some());
        keys.push(repeat_key(if are_ratios { RELATIVE_REPEAT } else { REPEAT }));
    }
    keys
}

/// Returns the line of a legend about the dots of repeats.
fn repeat_key(meaning: &str) -> (Markup, String) {
    (repeat_mark(10.0, 0.0), meaning.to_owned())
}

/// Returns the marks of these tones with their meanings.
fn mark_keys(tones: &[Tone]) -> Vec<(Markup, String)> {
    MARKS
        .iter()
        .filter(|(tone, _)| tones.contains(tone))
        .map(|&(tone, meaning)| (mark(tone, 10.0, 0.0), meaning.to_string()))
        .collect()
}

/// Returns the plots of factors, and those over targets, clients and rates.
pub(crate) fn chart_sections(board: &Board<'_>) -> [PlotSection; 4] {
    [factor_charts(board), target_charts(board), client_charts(board), rate_charts(board)]
}

fn factor_charts(board: &Board<'_>) -> PlotSection {
    const LEVELS: &str = "A point is the mean of all targets with the level, and a small dot is that of one \
        repeat. Steep lines are large effects. The first level is the base's.";
    const PAIRS: &str = "A small dot is a target. If the lines of a pair are not parallel, one option changes \
        what the other does. Only interactions that are shown have a chart.";
    const NOISE: &str = "Effects are sorted by size. Those of noise alone lie near the dotted line, which most of \
        the small effects determine. An effect far above the line is real.";

    let plots = [
        chart_plot("main-effects", "Throughput at each level", LEVELS, over::main_effects(board)),
        chart_plot(
            "interactions",
            "Options that depend on each other",
            PAIRS,
            over::interactions(board),
        ),
        chart_plot("half-normal", "Effects and noise", NOISE, over::half_normal(board)),
    ];

    PlotSection {
        id: FACTORS,
        heading: "Effects of factors",
        plots: plots.into_iter().flatten().collect(),
    }
}

fn target_charts(board: &Board<'_>) -> PlotSection {
    const NOTE: &str = "Targets are in the plan's order. Points are joined if the targets differ \
        only in a number that rises or falls, such as a version. A vertical line through a point \
        is its interval; the band is a change that does not matter.";
    let plot =
        chart_plot("over-targets", "Throughput relative to the base", NOTE, over::targets(board));
    PlotSection { id: OVER_TARGETS, heading: "Over targets", plots: plot.into_iter().collect() }
}

fn client_charts(board: &Board<'_>) -> PlotSection {
    const IDEAL: &str = "Both axes are logarithmic. The dotted line is ideal: twice the clients, \
        twice the throughput.";

    let plots = [
        chart_plot(
            "throughput-over-clients",
            "Throughput",
            RANGES,
            over::clients(board, OverClients::Throughput),
        ),
        chart_plot(
            "cost-over-clients",
            "CPU time of the host per operation",
            RANGES,
            over::clients(board, OverClients::Cost),
        ),
        chart_plot(
            "scale-up",
            "Scale-up: throughput as a multiple of that with the fewest clients",
            IDEAL,
            over::clients(board, OverClients::ScaleUp),
        ),
    ];

    PlotSection {
        id: "over-clients",
        heading: "Over clients",
        plots: plots.into_iter().flatten().collect(),
    }
}

fn rate_charts(board: &Board<'_>) -> PlotSection {
    let plots = [
        chart_plot(
            "search",
            "The search for the highest rate",
            "Rates are those of all clients together. The dotted line is the bound.",
            over::search(board),
        ),
        chart_plot(
            "latency-over-rate",
            "Response time over the requested rate",
            &format!("{RANGES} Rates are those of all clients together."),
            over::rates(board),
        ),
    ];

    PlotSection {
        id: "over-rates",
        heading: "Over rates",
        plots: plots.into_iter().flatten().collect(),
    }
}

/// Returns a plot of charts; `None` without charts.
fn chart_plot(
    id: &'static str,
    title: &str,
    note: &str,
    charts: Vec<Chart>,
) -> Option<Plot<'static>> {
    if charts.is_empty() {
        return None;
    }

    Some(Plot {
        id,
        title: title.to_string(),
        note: note.to_string(),
        drawing: Drawing::Charts(charts),
    })
}

/// Returns a link that saves a plot as a file.
pub(crate) fn save_link(plot: &Plot<'_>, subject: &str) -> Markup {
    let address = format!("data:image/svg+xml,{}", encoded(&plot.file(subject)));
    markup! { a.save download={ (plot.id) ".svg" } href=(address) { "save as SVG" } }
}

/// Encodes text for a `data:` link.
fn encoded(text: &str) -> String {
    const PLAIN: &[u8] = b" -_./,=()";
    let mut link = String::with_capacity(text.len() * 3 / 2);

    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            link.push(char::from(byte));
        } else {
            link += &format!("%{byte:02X}");
        }
    }
    link
}
