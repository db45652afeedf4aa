//! A forest plot: the ratio of each step to the base, with its interval, in the plan's order.

use analysis::compare::{ComparedStep, Interval, Verdict};
use maud::{Markup, html as markup};

use super::scale::Scale;
use super::svg::{Panel, RATE_MISSED, class, cut, mark, px, repeat_dots, text_width, whisker};
use crate::model::comparison::repeat_ratios;
use crate::model::number::ratio_text;
use crate::model::table::Tone;
use crate::tables::compared::{ratio_cell, tone};

/// The height of a step's row.
const ROW: f64 = 22.0;
/// The distance of the repeats below the interval of their step.
const BELOW: f64 = 7.5;
/// The minimum width of a visible band, as a share of half the axis.
const BAND_MIN: f64 = 0.02;
/// The space above the rows, and below them.
const HEAD: f64 = 26.0;
const FOOT: f64 = 40.0;

/// The steps of a target compared with those of the base.
#[derive(Clone, Debug)]
pub(super) struct Forest<'a> {
    /// The target, with what distinguishes it from other lines of the same target.
    pub name: String,
    pub base: String,
    /// In the plan's order.
    pub rows: Vec<&'a ComparedStep>,
    /// The steps in which either side missed the requested rate.
    pub missed: Vec<&'a str>,
    /// The smallest change that matters.
    pub effect: f64,
    /// The reach of the axis to both sides of 1, as a logarithm; equal in all forest plots of a
    /// report.
    pub reach: f64,
}

/// The positions in a drawing.
struct ForestLayout {
    width: f64,
    left: f64,
    right: f64,
    scale: Scale,
}

impl ForestLayout {
    fn x(&self, ratio: f64) -> f64 {
        self.left + self.scale.share(ratio) * (self.right - self.left)
    }

    fn whisker(&self, interval: Interval, y: f64) -> String {
        let ends = [interval.low, interval.high];
        let places = ends.map(|bound| (self.x(bound), y));
        whisker(places, ends.map(|bound| self.scale.is_beyond(bound)))
    }
}

impl Forest<'_> {
    /// Draws the plot with this width.
    pub(super) fn draw(&self, width: f64) -> Panel {
        let names = self.rows.iter().map(|row| text_width(&row.step));
        let values = self.rows.iter().map(|row| text_width(&self.value(row)));
        let layout = ForestLayout {
            width,
            left: names.fold(0.0, f64::max).min(width * 0.3) + 10.0,
            right: width - values.fold(0.0, f64::max) - 10.0,
            scale: Scale::ratios(self.reach),
        };
        let bottom = HEAD + ROW * self.rows.len() as f64;

        let title = format!("{}: throughput relative to {}", self.name, self.base);

        let descriptions = self.rows.iter().map(|row| description(row, &self.value(row)));
        Panel {
            width,
            height: bottom + FOOT,
            label: format!("{title}. {}", descriptions.collect::<Vec<_>>().join("; ")),
            title,
            body: markup! {
                text.name x="0" y="13" { (cut(&self.name, width)) }
                (self.axis(&layout, bottom))
                @for (at, row) in self.rows.iter().enumerate() { (self.row(&layout, row, HEAD + ROW * (at as f64 + 0.5))) }
            },
        }
    }

    /// Returns the text on the right of a step: the ratio with its interval, or why there is none.
    fn value(&self, row: &ComparedStep) -> String {
        if row.ratio.is_none() {
            return row.verdict.to_string();
        }

        let cell = ratio_cell(row);
        let is_missed = self.missed.contains(&row.step.as_str());
        let missed = if is_missed { Tone::SlaMissed.mark() } else { "" };
        format!("{} {}{missed}", cell.text, cell.mark).trim_end().to_string()
    }

    /// Returns true if the band of changes that do not matter is wide enough to be visible.
    pub(super) fn has_band(&self) -> bool {
        self.effect >= BAND_MIN * self.reach
    }

    /// Returns true if any step has dots of repeats.
    pub(super) fn has_repeats(&self) -> bool {
        self.rows.iter().any(|row| !repeat_ratios(row).is_empty())
    }

    fn axis(&self, layout: &ForestLayout, bottom: f64) -> Markup {
        let (low, high) = (layout.x(1.0 - self.effect), layout.x(1.0 + self.effect));
        let height = bottom - HEAD;
        let one = layout.x(1.0);
        let caption = format!("relative to {}, logarithmic", self.base);

        markup! {
            @if self.has_band() { rect.band x=(px(low)) y=(px(HEAD)) width=(px(high - low)) height=(px(height)) {} }
            @for (tick, text) in &layout.scale.ticks {
                @let x = px(layout.x(*tick));
                line.grid x1=(x) x2=(x) y1=(px(HEAD)) y2=(px(bottom + 4.0)) {}
                text.soft x=(x) y=(px(bottom + 16.0)) text-anchor="middle" { (text) }
            }
            line.one x1=(px(one)) x2=(px(one)) y1=(px(HEAD)) y2=(px(bottom + 4.0)) {}
            text.soft x=(px(layout.left)) y=(px(bottom + 32.0)) { (cut(&caption, layout.width - layout.left)) }
        }
    }

    fn row(&self, layout: &ForestLayout, row: &ComparedStep, y: f64) -> Markup {
        let tone = tone(row);
        let value = self.value(row);

        markup! {
            g {
                title { (description(row, &value)) }
                text x="0" y=(px(y + 4.0)) { (cut(&row.step, layout.left - 6.0)) }
                @if let Some(interval) = row.interval {
                    path class={ "interval " (class(tone)) } d=(layout.whisker(interval, y)) {}
                }
                (repeat_dots(&repeat_ratios(row), &layout.scale, |ratio| (layout.x(ratio), y + BELOW)))
                @if let Some(ratio) = row.ratio { (mark(tone, layout.x(ratio), y)) }
                text.soft[row.ratio.is_none()] x=(px(layout.right + 10.0)) y=(px(y + 4.0)) { (value) }
            }
        }
    }
}

/// Describes a step in words, for screen readers.
fn description(row: &ComparedStep, marked_value: &str) -> String {
    let missed = if marked_value.ends_with(Tone::SlaMissed.mark()) {
        format!(", {RATE_MISSED}")
    } else {
        String::new()
    };

    // Words for the verdict and the missed rate follow instead of the marks.
    let value = marked_value.trim_end_matches(['▲', '▼', '?', '*', ' ']);
    match row.ratio {
        Some(_) => format!("{} {value} {}{missed}{}", row.step, row.verdict, repeats_in_words(row)),
        None if row.verdict == Verdict::Invalid => format!("{} invalid", row.step),
        None => format!("{} {value}", row.step),
    }
}

/// Returns `, 5 repeats from 0.98 to 1.02`; empty without repeats.
fn repeats_in_words(row: &ComparedStep) -> String {
    let mut ratios = repeat_ratios(row);
    ratios.sort_by(f64::total_cmp);
    match ratios[..] {
        [lowest, .., highest] => {
            let (lowest, highest) = (ratio_text(lowest), ratio_text(highest));
            format!(", {} repeats from {lowest} to {highest}", ratios.len())
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::strip;
    use analysis::compare::{Interval, Pairing, Sample};

    fn step(name: &str, ratio: f64, bounds: (f64, f64), verdict: Verdict) -> ComparedStep {
        ComparedStep {
            step: name.into(),
            more_is_better: true,
            ratio: (ratio > 0.0).then_some(ratio),
            interval: (bounds.0 > 0.0).then_some(Interval {
                low: bounds.0,
                high: bounds.1,
                confidence: 0.95,
            }),
            verdict,
            ..ComparedStep::default()
        }
    }

    fn steps() -> [ComparedStep; 5] {
        [
            step("slow", 0.8, (0.7, 0.9), Verdict::Slower),
            step("none", 0.0, (0.0, 0.0), Verdict::Invalid),
            step("fast", 1.6, (1.5, 1.7), Verdict::Faster),
            step("wild", 1.1, (0.001, 900.0), Verdict::TooNoisy),
            step("once", 1.05, (0.0, 0.0), Verdict::Single),
        ]
    }

    #[test]
    fn each_repeat_is_drawn_and_told_also_where_it_is_too_noisy_to_say() {
        let samples = |values: [f64; 3]| {
            let sample = |(repeat, value)| Sample { run: 0, repeat, value };
            (1..).zip(values).map(sample).collect()
        };
        let mut noisy = step("noisy", 1.1, (0.8, 1.5), Verdict::TooNoisy);
        noisy.pairing = Pairing::Paired;
        noisy.base_values = samples([100.0, 200.0, 400.0]);
        noisy.values = samples([98.0, 230.0, 480.0]);
        let once = step("once", 1.05, (0.0, 0.0), Verdict::Single);
        let forest = Forest {
            name: "pg17.base".into(),
            base: "pg15.base".into(),
            rows: vec![&noisy, &once],
            missed: Vec::new(),
            effect: 0.03,
            reach: 1.15_f64.ln(),
        };

        let panel = forest.draw(640.0);
        assert!(panel.label.contains("too noisy to say, 3 repeats from 0.98 to 1.20"));
        let drawn = panel.body.into_string();
        assert_eq!(drawn.matches("h0").count(), 2, "the third is beyond the axis: {drawn}");
        assert_eq!(drawn.matches("class=\"beyond\"").count(), 1, "{drawn}");
        // The axis of a report has room for all three.
        assert!(strip::reach([&noisy].into_iter(), 0.03) > 1.2_f64.ln());
        assert!(forest.has_repeats());
    }

    #[test]
    fn a_dot_is_within_its_interval_and_both_within_the_drawing() {
        let steps = steps();
        let reach = strip::reach(steps.iter(), 0.03);
        for width in [366.0, 640.0] {
            let layout = ForestLayout {
                width,
                left: 80.0,
                right: width - 130.0,
                scale: Scale::ratios(reach),
            };
            for row in &steps {
                let (Some(ratio), Some(interval)) = (row.ratio, row.interval) else {
                    continue;
                };
                let [low, dot, high] =
                    [interval.low, ratio, interval.high].map(|value| layout.x(value));
                assert!(layout.left <= low && low < dot && dot < high && high <= layout.right);
            }
            assert!(layout.x(1.0) < layout.x(1.6));
        }
    }

    #[test]
    fn everything_is_also_described_in_words() {
        let steps = steps();
        let forest = Forest {
            name: "pg17.base".into(),
            base: "pg15.base".into(),
            rows: steps.iter().collect(),
            missed: vec!["fast"],
            effect: 0.03,
            reach: 1.0,
        };
        let panel = forest.draw(640.0);
        assert_eq!(
            panel.label,
            "pg17.base: throughput relative to pg15.base. slow 0.80 (0.70-0.90) slower; none invalid; fast 1.60 (1.50-1.70) \
             faster, requested rate missed; wild 1.1 (0.001-900) too noisy to say; once 1.05 single run"
        );
        let drawn = panel.body.into_string();
        assert!(drawn.contains("1.60 (1.50-1.70) ▲*<"));
        // Its shape says it without its color.
        for (class, count) in [
            ("path class=\"better\"", 1),
            ("path class=\"worse\"", 1),
            ("circle class=\"open\"", 1),
        ] {
            assert_eq!(drawn.matches(class).count(), count, "{class}");
        }
    }
}
