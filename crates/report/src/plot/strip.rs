//! A strip: one comparison on one line, for a cell of a table.
//!
//! All strips of a table share one scale. A strip is as wide as its cell, so positions are
//! percentages.

use analysis::compare::ComparedStep;
use maud::{Markup, html as markup};

use super::scale::{Scale, compact};
use super::svg::{MARKS, class, mark, px, repeat_mark};
use crate::model::comparison::repeat_ratios;
use crate::model::table::Tone;
use crate::tables::compared::tone;

/// The reach of an axis up to which intervals and repeats widen it: from a quarter to four times.
const USUAL_REACH: f64 = 2.0 * std::f64::consts::LN_2;
/// The maximum reach, for ratios: from a thousandth to a thousand.
const REACH_MAX: f64 = 3.0 * std::f64::consts::LN_10;
/// The upper ends of axes that have ticks at powers of two.
const DOUBLINGS: std::ops::Range<f64> = 1.65..12.0;
/// The minimum width of a visible band, as a share of half the axis.
const BAND_MIN: f64 = 0.02;

/// The height of a strip, and the heights of its interval and its repeats.
const HEIGHT: f64 = 22.0;
const INTERVAL_Y: f64 = 8.0;
const REPEATS_Y: f64 = 18.0;

/// Returns the reach of an axis to both sides of 1, as a logarithm. All ratios fit. Intervals and
/// repeats widen the axis up to a quarter and four times.
pub(super) fn reach<'a>(rows: impl Iterator<Item = &'a ComparedStep>, effect: f64) -> f64 {
    let distance = |ratio: f64| ratio.ln().abs();

    let (mut of_ratios, mut of_others) = (0.0_f64, 0.0_f64);
    for row in rows {
        if let Some(ratio) = row.ratio.filter(|ratio| *ratio > 0.0) {
            of_ratios = of_ratios.max(distance(ratio));
        }
        let bounds = row.interval.into_iter().flat_map(|interval| [interval.low, interval.high]);
        of_others = bounds.chain(repeat_ratios(row)).map(distance).fold(of_others, f64::max);
    }

    let furthest = of_others.min(USUAL_REACH).max(of_ratios.min(REACH_MAX));
    furthest.max(2.0 * effect) * 1.08
}

/// Returns ticks at powers of two, which are as far from 1 on both sides.
fn doublings(scale: &Scale) -> Vec<(f64, String)> {
    let powers = (-3..=3).map(|power| 2_f64.powi(power));
    let inside = powers.filter(|tick| !scale.is_beyond(*tick));
    inside.map(|tick| (tick, compact(tick))).collect()
}

/// The scale of all strips of a table.
pub(crate) struct StripScale {
    scale: Scale,
    /// The ends of the band of changes that do not matter; `None` if it is too narrow to be seen.
    band: Option<(f64, f64)>,
}

impl StripScale {
    /// Returns a scale for these comparisons. Changes below `effect` do not matter.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a ComparedStep>, effect: f64) -> Self {
        let reach = reach(rows, effect);
        let has_band = effect >= BAND_MIN * reach;
        let mut scale = Scale::ratios(reach);
        if DOUBLINGS.contains(&scale.high) {
            scale.ticks = doublings(&scale);
        }
        Self { scale, band: has_band.then_some((1.0 - effect, 1.0 + effect)) }
    }

    /// Returns true if the band is drawn.
    pub(crate) fn has_band(&self) -> bool {
        self.band.is_some()
    }

    fn x(&self, ratio: f64) -> String {
        format!("{:.2}%", 100.0 * self.scale.share(ratio))
    }

    /// Draws the axis for a column header: the lowest and the highest tick, and 1.
    pub(crate) fn axis(&self) -> Markup {
        let ticks = &self.scale.ticks;
        let is_one = |tick: f64| (tick - 1.0).abs() < 1e-9;

        let first = ticks.first().filter(|(tick, _)| *tick < 1.0 && !is_one(*tick));
        let last = ticks.last().filter(|(tick, _)| *tick > 1.0 && !is_one(*tick));
        let shown =
            first.into_iter().chain(ticks.iter().filter(|(tick, _)| is_one(*tick))).chain(last);

        markup! {
            svg.strip.drawn width="100%" height="16" aria-hidden="true" {
                @for (tick, text) in shown {
                    text.soft x=(self.x(*tick)) y="12" text-anchor=(self.anchor(*tick)) { (text) }
                }
            }
        }
    }

    /// Returns the side of a tick's label that stands at the tick: near an end, the label must not
    /// reach into the next column.
    fn anchor(&self, tick: f64) -> &'static str {
        match self.scale.share(tick) {
            share if share < 0.15 => "start",
            share if share > 0.85 => "end",
            _ => "middle",
        }
    }

    /// Draws a comparison: its interval, its repeats below, and the mark of its verdict. The texts
    /// of its cell say the same, so it is hidden from screen readers.
    pub(crate) fn strip(&self, row: &ComparedStep) -> Markup {
        let tone = tone(row);
        markup! {
            svg.strip.drawn width="100%" height=(px(HEIGHT)) aria-hidden="true" {
                (self.ground())
                @if let Some(interval) = row.interval {
                    line class={ "interval " (class(tone)) } x1=(self.x(interval.low)) x2=(self.x(interval.high)) y1=(px(INTERVAL_Y)) y2=(px(INTERVAL_Y)) {}
                    (self.end(interval.low, -1.0, tone))
                    (self.end(interval.high, 1.0, tone))
                }
                (self.repeats(&repeat_ratios(row)))
                @if let Some(ratio) = row.ratio {
                    svg.at x=(self.x(ratio)) y=(px(INTERVAL_Y)) { (mark(tone, 0.0, 0.0)) }
                }
            }
        }
    }

    /// Draws what lies behind a comparison: the band, and lines at the ticks.
    fn ground(&self) -> Markup {
        let bottom = px(HEIGHT);

        markup! {
            @if let Some((low, high)) = self.band {
                @let width = 100.0 * (self.scale.share(high) - self.scale.share(low));
                rect.band x=(self.x(low)) width=(format!("{width:.2}%")) y="0" height=(bottom) {}
            }
            @for (tick, _) in &self.scale.ticks {
                @let is_one = (tick - 1.0).abs() < 1e-9;
                line class=(if is_one { "one" } else { "grid" }) x1=(self.x(*tick)) x2=(self.x(*tick)) y1="0" y2=(bottom) {}
            }
        }
    }

    /// Draws an end of an interval: a cap, or an arrow where it continues beyond the axis.
    /// `outward` is -1 for the lower end.
    fn end(&self, bound: f64, outward: f64, tone: Tone) -> Markup {
        const SIZE: f64 = 4.0;
        let back = if self.scale.is_beyond(bound) { -outward * SIZE } else { 0.0 };
        let path = format!("M{} {}L0 0L{} {}", px(back), px(-SIZE), px(back), px(SIZE));
        markup! {
            svg.at x=(self.x(bound)) y=(px(INTERVAL_Y)) { path class={ "interval " (class(tone)) } d=(path) {} }
        }
    }

    /// Draws a dot for each repeat; those beyond an end of the axis are one arrow there.
    fn repeats(&self, ratios: &[f64]) -> Markup {
        let (beyond, inside): (Vec<f64>, Vec<f64>) =
            ratios.iter().partition(|ratio| self.scale.is_beyond(**ratio));
        let ends = [(self.scale.low, -1.0), (self.scale.high, 1.0)];
        let is_outside = |ratio: f64, outward: f64| (ratio > 1.0) == (outward > 0.0);

        markup! {
            @for ratio in &inside { circle.dot cx=(self.x(*ratio)) cy=(px(REPEATS_Y)) r="1.8" {} }
            @for (end, outward) in ends {
                @if beyond.iter().any(|ratio| is_outside(*ratio, outward)) {
                    @let back = px(-3.0 * outward);
                    svg.at x=(self.x(end)) y=(px(REPEATS_Y)) { path.beyond d={ "M" (back) " -3L0 0L" (back) " 3" } {} }
                }
            }
        }
    }
}

/// An entry of the legend of strips.
pub(crate) struct StripKey {
    /// The mark as it is drawn.
    pub mark: Markup,
    /// The sign that stands for it in texts; empty if it has none.
    pub sign: &'static str,
    pub meaning: &'static str,
}

/// Returns the legend of the marks in these comparisons, with the dots of repeats if there are any.
pub(crate) fn strip_keys<'a>(
    rows: impl Iterator<Item = &'a ComparedStep> + Clone,
) -> Vec<StripKey> {
    let has = |wanted: Tone| rows.clone().any(|row| row.ratio.is_some() && tone(row) == wanted);
    let shown = MARKS.iter().filter(|(tone, _)| has(*tone));

    let mut keys: Vec<StripKey> = shown
        .map(|&(tone, meaning)| StripKey {
            mark: mark(tone, 10.0, 0.0),
            sign: tone.mark(),
            meaning,
        })
        .collect();

    if rows.clone().any(|row| !repeat_ratios(row).is_empty()) {
        keys.push(StripKey {
            mark: repeat_mark(10.0, 0.0),
            sign: "",
            meaning: "one repeat, relative to the base",
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use analysis::compare::{Interval, Pairing, Sample, Verdict};

    use super::*;

    fn step(ratio: f64, bounds: (f64, f64)) -> ComparedStep {
        ComparedStep {
            more_is_better: true,
            ratio: Some(ratio),
            interval: Some(Interval { low: bounds.0, high: bounds.1, confidence: 0.95 }),
            verdict: Verdict::TooNoisy,
            ..ComparedStep::default()
        }
    }

    fn ends(rows: &[ComparedStep]) -> (f64, f64) {
        let scale = StripScale::of(rows.iter(), 0.03).scale;
        (scale.low, scale.high)
    }

    #[test]
    fn intervals_widen_the_axis_to_a_quarter_and_four_times_and_ratios_further() {
        let (low, high) = ends(&[step(1.1, (0.001, 900.0))]);
        assert!((0.22..0.25).contains(&low) && (4.0..4.6).contains(&high), "{low} {high}");
        let (low, high) = ends(&[step(0.04, (0.03, 0.05)), step(1.1, (0.9, 1.3))]);
        assert!((0.03..0.04).contains(&low) && (25.0..35.0).contains(&high), "{low} {high}");
        let (low, high) = ends(&[step(1.05, (1.03, 1.07))]);
        assert!((0.92..0.94).contains(&low) && (1.07..1.09).contains(&high), "{low} {high}");
        // Where nothing differs there is still room for the smallest change that matters.
        assert!(ends(&[]).1 > 1.06);
    }

    #[test]
    fn what_continues_beyond_the_axis_ends_in_an_arrow() {
        let samples = |values: [f64; 3]| {
            let sample = |(repeat, value)| Sample { run: 0, repeat, value };
            (1..).zip(values).map(sample).collect()
        };
        let row = ComparedStep {
            pairing: Pairing::Paired,
            base_values: samples([100.0, 100.0, 1.0]),
            values: samples([90.0, 120.0, 30.0]),
            ..step(1.1, (0.001, 2.0))
        };
        let drawn = StripScale::of(std::iter::once(&row), 0.03).strip(&row).into_string();
        assert_eq!(drawn.matches("class=\"dot\"").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("class=\"beyond\"").count(), 1, "{drawn}");
        // The lower end is an arrow, the higher one a cap.
        assert_eq!(drawn.matches("d=\"M4 -4L0 0L4 4\"").count(), 1, "{drawn}");
        assert_eq!(drawn.matches("d=\"M0 -4L0 0L0 4\"").count(), 1, "{drawn}");
    }
}
