//! The trend of a step: one metric of one target over the runs of a plan.

use analysis::counted;
use maud::{Markup, html as markup};

use super::{address, page, paths, shown};
use crate::model::number::rate_text;
use crate::model::step_points::{Spread, TREND_METRICS, TrendMetric};

/// The size of the drawing, and the place of its axes.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 15.0;
const BOTTOM: f64 = 40.0;
/// The number of parts into which the rules divide the vertical axis.
const PARTS: usize = 4;

/// A step of a target over many runs.
#[derive(Clone, Debug)]
pub struct Trend<'a> {
    /// The run from which the reader came.
    pub run: &'a str,
    /// The plan of the runs.
    pub plan: &'a str,
    /// The target.
    pub target: &'a str,
    /// The variant of the workload.
    pub variant: Option<&'a str>,
    /// The number of clients.
    pub clients: u32,
    /// The step.
    pub step: &'a str,
    /// The metric.
    pub metric: TrendMetric,
    /// The unit.
    pub unit: String,
    /// The points, the oldest first.
    pub points: Vec<TrendPoint<'a>>,
    /// The number of runs of the plan that did other work, such as more rows.
    pub other_work: usize,
    /// The number of runs whose results were not read yet.
    pub unread: usize,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub struct TrendPoint<'a> {
    /// The name of the run's directory.
    pub run: &'a str,
    /// The time of the start, for people.
    pub started: &'a str,
    /// The number of repeats that count.
    pub repeats: usize,
    /// The values of its repeats.
    pub spread: Spread,
}

/// Returns a trend as a page.
pub fn trend_page(trend: &Trend<'_>) -> String {
    let variant = trend.variant.map_or(String::new(), |variant| format!(", {variant}"));
    let clients = counted(trend.clients as usize, "client");

    let body = markup! {
        header {
            h1 { (trend.metric.title()) " of " (shown(trend.step)) }
            p.soft { (shown(trend.target)) (shown(&variant)) ", " (clients) ", in runs of the plan " (shown(trend.plan)) }
            p { @for metric in TREND_METRICS { (metric_link(trend, metric)) " " } }
        }

        main {
            @if trend.points.is_empty() { p { "No run has this figure." } } @else {
                (drawing(trend))
                p.note { "A point is the mean of a run's valid repeats; the line through it is their range." }
            }

            @if trend.other_work > 0 {
                p.note { "Left out: " (counted(trend.other_work, "run")) " of the plan that did other work, such as more rows." }
            }

            @if trend.unread > 0 { p.note { (counted(trend.unread, "run")) " not read yet." } }
            (table(trend))
        }
    };

    page(&format!("{} of {}", trend.step, trend.target), trend.unread > 0, body)
}

fn metric_link(trend: &Trend<'_>, metric: TrendMetric) -> Markup {
    let clients = trend.clients.to_string();

    let mut query = vec![
        ("name", trend.run),
        ("target", trend.target),
        ("clients", clients.as_str()),
        ("step", trend.step),
        ("metric", metric.name()),
    ];
    query.extend(trend.variant.map(|variant| ("variant", variant)));

    markup! {
        @if metric == trend.metric { b { (metric.title()) } } @else {
            a href=(address(paths::TREND, &query)) { (metric.title()) }
        }
    }
}

/// Draws the points in equal distances, on an axis that begins at zero.
fn drawing(trend: &Trend<'_>) -> Markup {
    let high = trend.points.iter().map(|point| point.spread.high).fold(0.0, f64::max);
    let top = if high > 0.0 { high * 1.05 } else { 1.0 };

    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top);

    let slot = (WIDTH - LEFT - RIGHT) / trend.points.len() as f64;
    let x = |number: usize| LEFT + slot * (number as f64 + 0.5);

    let places: Vec<String> = trend
        .points
        .iter()
        .enumerate()
        .map(|(number, point)| format!("{:.1},{:.1}", x(number), y(point.spread.mean)))
        .collect();
    let last = trend.points.len() - 1;

    markup! {
        svg.trend viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="the trend; the table below has its figures" {
            @for part in 0..=PARTS {
                @let value = top * part as f64 / PARTS as f64;
                line.rule x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(value)) y2=(y(value)) {}
                text x=(LEFT - 6.0) y=(y(value) + 4.0) text-anchor="end" { (rate_text(value)) }
            }
            text x=(LEFT) y=(HEIGHT - 6.0) { (trend.points[0].started) }
            @if last > 0 { text x=(WIDTH - RIGHT) y=(HEIGHT - 6.0) text-anchor="end" { (trend.points[last].started) } }
            polyline.line points=(places.join(" ")) {}
            @for (number, point) in trend.points.iter().enumerate() {
                a href=(address(paths::RUN, &[("name", point.run)])) {
                    title { (shown(point.run)) ": " (rate_text(point.spread.mean)) " " (trend.unit) }
                    line.range x1=(x(number)) x2=(x(number)) y1=(y(point.spread.low)) y2=(y(point.spread.high)) {}
                    circle.dot cx=(x(number)) cy=(y(point.spread.mean)) r="3.5" {}
                }
            }
        }
    }
}

/// Returns the figures, the newest first, each with its change from the run before.
fn table(trend: &Trend<'_>) -> Markup {
    let before = |number: usize| number.checked_sub(1).map(|place| trend.points[place].spread.mean);

    markup! {
        div.scroll tabindex="0" role="group" aria-label="figures" {
            table.figures.bare {
                thead { tr {
                    th.text scope="col" { "run" }
                    th.text scope="col" { "started (UTC)" }
                    @for head in ["repeats", "mean", "least", "greatest", "to the run before"] { th.n scope="col" { (head) } }
                    th.text scope="col" { "" }
                } }

                tbody { @for (number, point) in trend.points.iter().enumerate().rev() { tr {
                    th.text scope="row" { a href=(address(paths::RUN, &[("name", point.run)])) { (shown(point.run)) } }
                    td.text { (point.started) }
                    td { (point.repeats) }
                    @for value in [point.spread.mean, point.spread.low, point.spread.high] { td { (rate_text(value)) } }
                    td { @if let Some(before) = before(number).filter(|&before| before > 0.0) { (ratio(point.spread.mean / before)) } }
                    td.text { @if number > 0 { (compare_link(trend, number)) } }
                } } }
            }
        }
        p.note { "In " (trend.unit) ". The ratio to the run before is no verdict: compare the two runs for that." }
    }
}

fn ratio(ratio: f64) -> String {
    crate::model::number::ratio_text(ratio) + "x"
}

/// Returns the link that compares a run with the one before.
fn compare_link(trend: &Trend<'_>, number: usize) -> Markup {
    let query = [
        ("base", trend.points[number - 1].run),
        ("base_target", trend.target),
        ("other", trend.points[number].run),
        ("other_target", trend.target),
    ];
    markup! { a href=(address(paths::COMPARE, &query)) { "compare with it" } }
}
