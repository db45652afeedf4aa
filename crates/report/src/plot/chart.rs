//! A chart of a figure over targets, clients or rates, with a range at each point.

use maud::{Markup, html as markup};

use super::scale::{Scale, compact};
use super::svg::{Panel, class, cut, mark, px, repeat_dots, text_width, whisker};
use crate::model::table::Tone;

/// The number of colors of lines. More lines have the same colors with other dashes.
pub(crate) const COLOR_COUNT: usize = 10;

/// The dashes that distinguish lines of the same color.
pub(crate) const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// The height of the plot area, and of the titles above it.
const HEIGHT: f64 = 170.0;
const HEAD: f64 = 38.0;
/// The distance of the first and the last point from the sides.
const INSET: f64 = 18.0;
/// The width of a slot below which names are vertical.
const UPRIGHT: f64 = 16.0;
/// The horizontal distance between lines with ranges at the same place, and its maximum for all
/// lines together.
const APART: f64 = 5.0;
const APART_MAX: f64 = 20.0;
/// The distance of repeats from their range, if one line alone has the place.
const BESIDE: f64 = 7.0;
/// The width of a name below a chart.
const NAME: f64 = 100.0;
/// The most points of a line that has dots, and words that describe each.
const DOTS_MAX: usize = 60;

#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub title: String,
    /// The unit and meaning of the points.
    pub of: String,
    /// The horizontal axis.
    pub x: Scale,
    pub y: Scale,
    /// Points are ratios: draws a line at 1, and a band of the smallest change that matters.
    pub effect: Option<f64>,
    /// The points of the ideal line.
    pub ideal: Vec<(f64, f64)>,
    pub curves: Vec<Curve>,
    /// A remark with its mark.
    pub remark: Option<(Tone, String)>,
}

/// Points of a chart that belong together.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// Determines the color and the dashes.
    pub number: usize,
    pub name: String,
    /// One of many lines, drawn thin and gray.
    pub is_faint: bool,
    /// A line joins the points, because the horizontal axis has an order that means something.
    pub is_joined: bool,
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
    /// The interval, or the range of repeats.
    pub range: Option<[f64; 2]>,
    /// The values of repeats, if there are several.
    pub repeats: Vec<f64>,
    /// The meaning of the verdict, if there is one.
    pub tone: Option<Tone>,
}

/// The positions in a drawing.
struct ChartLayout<'c> {
    chart: &'c Chart,
    left: f64,
    right: f64,
    /// The distance between lines at the same place, so that none hides another.
    apart: f64,
    /// The distance of repeats from the range of their point.
    beside: f64,
    /// The angle of the names below the horizontal axis, in degrees.
    turn: f64,
    /// The height of these names.
    foot: f64,
}

impl ChartLayout<'_> {
    fn x(&self, value: f64) -> f64 {
        let (left, right) = (self.left + INSET, self.right - INSET);
        left + self.chart.x.share(value) * (right - left)
    }

    /// Returns the horizontal position of a line's point.
    fn x_of(&self, line: usize, point: &Point) -> f64 {
        let middle = (self.chart.curves.len() - 1) as f64 / 2.0;
        self.x(point.x) + (line as f64 - middle) * self.apart
    }

    fn y(&self, value: f64) -> f64 {
        HEAD + (1.0 - self.chart.y.share(value)) * HEIGHT
    }
}

impl Chart {
    /// Draws the chart with this width.
    pub(super) fn draw(&self, width: f64) -> Panel {
        let layout = self.layout(width);
        let title = format!("{}, {}", self.title, self.of);
        let descriptions = self.curves.iter().map(|curve| self.description(curve));
        let label = format!("{title}. {}", descriptions.collect::<Vec<_>>().join("; "));

        Panel {
            width,
            height: HEAD + HEIGHT + layout.foot + 4.0,
            title,
            label,
            body: markup! {
                text.name x="0" y="13" { (cut(&self.title, width / 2.0)) }
                text.soft x="0" y="29" { (cut(&self.of, width)) }
                @if let Some((tone, text)) = &self.remark {
                    (mark(*tone, width - text_width(text) - 12.0, 9.0))
                    text x=(px(width)) y="13" text-anchor="end" { (text) }
                }
                (self.axes(&layout))
                @for (at, curve) in self.curves.iter().enumerate() { (lines(&layout, at, curve)) }
                @for (at, curve) in self.curves.iter().enumerate() { (dots(&layout, at, curve)) }
            },
        }
    }

    fn layout(&self, width: f64) -> ChartLayout<'_> {
        let left = widest(&self.y) + 6.0;

        let mut points = self.curves.iter().flat_map(|curve| &curve.points);
        let has_ranges = points.any(|point| point.range.is_some());
        let apart = if has_ranges { APART.min(APART_MAX / self.curves.len() as f64) } else { 0.0 };

        // Names that are wider than their slots are turned, so that they don't overlap.
        let slot = (width - left - 2.0 * INSET) / (self.x.ticks.len().max(2) - 1) as f64;
        let name = widest(&self.x).min(NAME);

        let turn = if name + 4.0 <= slot {
            0.0_f64
        } else if slot < UPRIGHT {
            -90.0
        } else {
            -40.0
        };

        let angle = turn.to_radians();
        let beside = if self.curves.len() > 1 { apart / 2.0 } else { BESIDE.min(slot * 0.4) };
        let foot = 8.0 + 12.0 * angle.cos() + name * angle.sin().abs();

        ChartLayout { chart: self, left, right: width, apart, beside, turn, foot }
    }

    /// Describes the points of a line in words.
    fn description(&self, curve: &Curve) -> String {
        if curve.points.len() > DOTS_MAX {
            let values = || curve.points.iter().map(|point| point.y);
            let [least, most] =
                [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)];
            return format!("{}: {} to {}", curve.name, compact(least), compact(most));
        }

        let points = curve.points.iter().map(|point| {
            let value = compact(point.y);
            match self.x.ticks.iter().find(|(at, _)| *at == point.x) {
                Some((_, name)) => format!("{name} {value}"),
                None => value,
            }
        });
        format!("{}: {}", curve.name, points.collect::<Vec<_>>().join(", "))
    }

    fn axes(&self, layout: &ChartLayout<'_>) -> Markup {
        let (left, right, bottom) = (px(layout.left), px(layout.right), HEAD + HEIGHT);

        let band =
            self.effect.map(|effect| [1.0 + effect, 1.0 - effect].map(|ratio| layout.y(ratio)));

        let turn = layout.turn;
        let (anchor, drop) = if turn == 0.0 { ("middle", 16.0) } else { ("end", 12.0) };
        let ideal = self.ideal.iter().map(|(x, y)| (layout.x(*x), layout.y(*y)));

        markup! {
            @if let Some([high, low]) = band {
                rect.band x=(left) y=(px(high)) width=(px(layout.right - layout.left)) height=(px(low - high)) {}
            }
            @for (tick, text) in &self.y.ticks {
                @let y = layout.y(*tick);
                line.grid x1=(left) x2=(right) y1=(px(y)) y2=(px(y)) {}
                text.soft x=(px(layout.left - 5.0)) y=(px(y + 4.0)) text-anchor="end" { (text) }
            }
            @if self.effect.is_some() { line.one x1=(left) x2=(right) y1=(px(layout.y(1.0))) y2=(px(layout.y(1.0))) {} }
            @for (tick, text) in &self.x.ticks {
                @let x = layout.x(*tick);
                line.one x1=(px(x)) x2=(px(x)) y1=(px(bottom)) y2=(px(bottom + 4.0)) {}
                text.soft transform={ "translate(" (px(x + turn / 20.0)) " " (px(bottom + drop)) ") rotate(" (px(turn)) ")" }
                    text-anchor=(anchor) { (cut(text, NAME)) }
            }
            line.one x1=(left) x2=(right) y1=(px(bottom)) y2=(px(bottom)) {}
            @if !self.ideal.is_empty() { path.ideal d=(path(ideal)) {} }
        }
    }
}

/// Returns the width of the widest text of an axis.
fn widest(scale: &Scale) -> f64 {
    scale.ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max)
}

/// Returns an SVG path through some points.
fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = places.map(|(x, y)| format!("{} {}", px(x), px(y))).collect();
    format!("M{}", points.join("L"))
}

/// Returns the dashes of a line.
fn dashes(number: usize) -> &'static str {
    DASHES[number / COLOR_COUNT % DASHES.len()]
}

impl Curve {
    /// Returns true if dots of repeats are drawn.
    pub(super) fn has_repeats(&self) -> bool {
        !self.is_faint && self.points.iter().any(|point| !point.repeats.is_empty())
    }

    /// Returns the name for the legend.
    pub(super) fn key_name(&self) -> String {
        if self.is_faint { "others".to_string() } else { self.name.clone() }
    }
}

/// Draws a piece of a line, or a point, for the legend.
pub(super) fn key(curve: &Curve) -> Markup {
    markup! {
        g class=(color(curve)) {
            @if curve.is_joined {
                path.curve stroke-dasharray=(dashes(curve.number)) d="M0 0L24 0" {}
            } @else {
                circle.dot cx="12" cy="0" r="3" {}
            }
        }
    }
}

/// Returns the CSS class of a line.
fn color(curve: &Curve) -> String {
    if curve.is_faint { "faint".to_string() } else { format!("c{}", curve.number % COLOR_COUNT) }
}

fn lines(layout: &ChartLayout<'_>, at: usize, curve: &Curve) -> Markup {
    let is_line = curve.is_joined && curve.points.len() > 1;
    let places = curve.points.iter().map(|point| (layout.x_of(at, point), layout.y(point.y)));
    markup! {
        g class=(color(curve)) {
            @if is_line { path.curve stroke-dasharray=(dashes(curve.number)) d=(path(places)) {} }
        }
    }
}

/// Draws the points of a line with their ranges and repeats.
fn dots(layout: &ChartLayout<'_>, at: usize, curve: &Curve) -> Markup {
    let scale = &layout.chart.y;

    markup! {
        g class=(color(curve)) {
            @for point in &curve.points {
                @let (x, y) = (layout.x_of(at, point), layout.y(point.y));
                @if let Some(range) = point.range {
                    @let ends = range.map(|bound| (x, layout.y(bound)));
                    path class={ "interval " (point.tone.map_or("own", class)) } d=(whisker(ends, range.map(|bound| scale.is_beyond(bound)))) {}
                }
                // Of many lines at a place, only those that stand out have room for repeats.
                @if !curve.is_faint {
                    (repeat_dots(&point.repeats, scale, |value| (x + layout.beside, layout.y(value))))
                }
                @match point.tone {
                    Some(tone) => (mark(tone, x, y)),
                    None if curve.points.len() > DOTS_MAX => {},
                    None => circle.dot cx=(px(x)) cy=(px(y)) r="3" {},
                }
            }
        }
    }
}
