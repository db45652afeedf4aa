//! A heat map: the ratio of each target in each step, its verdict as a mark, and a color if a
//! change is shown.

use maud::{Markup, html as markup};

use super::svg::{Panel, class, cut, px, text_width};
use crate::compared::tone;
use crate::number::ratio_text;
use crate::operations::step_head;
use crate::table::{Cell, Tone};
use analysis::ComparedStep;

/// The height of a row, and of a line of a head.
const ROW: f64 = 24.0;
const LINE: f64 = 14.0;

/// The change with the strongest color: twice as fast, or half.
const STRONGEST: f64 = std::f64::consts::LN_2;

/// The result of a target in a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeatCell {
    /// The ratio with the mark of its verdict, or why there is none.
    pub text: String,
    pub tone: Tone,
    /// The strength of the color from 0 to 1; zero if no change is shown.
    pub strength: f64,
}

impl HeatCell {
    /// Returns the square of a comparison, or of the cell that replaces it.
    pub(super) fn of(
        row: Option<&ComparedStep>,
        is_missed: bool,
        nothing: impl FnOnce() -> Cell,
    ) -> Self {
        let missed = if is_missed { Tone::SlaMissed.mark() } else { "" };
        let (Some(row), Some(ratio)) = (row, row.and_then(|row| row.ratio)) else {
            let Cell { text, mark, tone, .. } = nothing();
            return Self { text: text + &mark + missed, tone, strength: 0.0 };
        };
        let tone = tone(row);
        let is_shown = matches!(tone, Tone::Faster | Tone::Slower);
        let size = (ratio.ln().abs() / STRONGEST).min(1.0);
        Self {
            text: format!("{} {}{missed}", ratio_text(ratio), tone.mark()).trim_end().to_string(),
            tone,
            strength: if is_shown { 0.15 + 0.85 * size } else { 0.0 },
        }
    }
}

/// A heat map with targets in rows and steps in columns, or the other way round if there are more
/// steps.
#[derive(Clone, Debug)]
pub(super) struct Heat {
    /// Its title.
    pub name: String,
    pub columns: Vec<String>,
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

impl Heat {
    /// Returns true if any square has the mark of a missed rate.
    pub(super) fn has_missed(&self) -> bool {
        let mut squares = self.rows.iter().flat_map(|(_, squares)| squares);
        squares.any(|it| it.text.ends_with(Tone::SlaMissed.mark()))
    }

    /// Draws the map, divided into panels with as many columns as fit.
    pub(super) fn draw(&self, width: f64) -> Vec<Panel> {
        let names = self.rows.iter().map(|(name, _)| text_width(name));
        let left = names.fold(0.0, f64::max).min(width * 0.3) + 8.0;
        let heads: Vec<Vec<String>> = self.columns.iter().map(|name| broken(name)).collect();
        let texts =
            self.rows.iter().flat_map(|(_, squares)| squares.iter().map(|it| it.text.as_str()));
        let texts = texts.chain(heads.iter().flatten().map(String::as_str));
        let column = texts.map(text_width).fold(0.0, f64::max).clamp(50.0, 96.0) + 8.0;
        let fitting = (((width - left) / column) as usize).max(1);
        // All panels have about the same width.
        let each = self.columns.len().div_ceil(self.columns.len().div_ceil(fitting).max(1)).max(1);
        let head = heads.iter().map(Vec::len).max().unwrap_or(1) as f64 * LINE + 8.0;
        let firsts = (0..self.columns.len()).step_by(each);
        let panels = firsts.map(|first| {
            let columns = first..(first + each).min(self.columns.len());
            let descriptions = self.rows.iter().map(|(name, squares)| {
                let squares = columns.clone().map(|at| format!("{} {}", self.columns[at], squares[at].text));
                format!("{name}: {}", squares.collect::<Vec<_>>().join(", "))
            });
            Panel {
                width: left + column * columns.len() as f64 + 1.0,
                height: head + ROW * self.rows.len() as f64 + 2.0,
                label: format!("{}. {}", self.name, descriptions.collect::<Vec<_>>().join("; ")),
                title: self.name.clone(),
                body: markup! {
                    @for (place, at) in columns.clone().enumerate() {
                        @let x = left + column * (place as f64 + 0.5);
                        @for (line, text) in heads[at].iter().rev().enumerate() {
                            text.soft x=(px(x)) y=(px(head - 6.0 - LINE * line as f64)) text-anchor="middle" { (cut(text, column)) }
                        }
                    }
                    @for (number, (name, squares)) in self.rows.iter().enumerate() {
                        @let y = head + ROW * number as f64;
                        text x="0" y=(px(y + ROW / 2.0 + 4.0)) { (cut(name, left - 4.0)) }
                        @for (place, at) in columns.clone().enumerate() {
                            g {
                                title { (name) " " (self.columns[at]) " " (squares[at].text) }
                                (square(&squares[at], left + column * place as f64, y, column))
                            }
                        }
                    }
                },
            }
        });
        panels.collect()
    }
}

fn square(square: &HeatCell, x: f64, y: f64, width: f64) -> Markup {
    let (left, top, height) = (px(x), px(y), px(ROW));
    let opacity = format!("{:.2}", 0.5 * square.strength);
    let is_soft = !matches!(square.tone, Tone::Faster | Tone::Slower | Tone::Plain);
    markup! {
        @if square.strength > 0.0 {
            rect class={ "shade " (class(square.tone)) } fill-opacity=(opacity) x=(left) y=(top) width=(px(width)) height=(height) {}
        }
        rect.cell x=(left) y=(top) width=(px(width)) height=(height) {}
        text.soft[is_soft] x=(px(x + width / 2.0)) y=(px(y + ROW / 2.0 + 4.0)) text-anchor="middle" { (square.text) }
    }
}

/// Breaks the head of a column into lines.
fn broken(name: &str) -> Vec<String> {
    step_head(name).split('\n').map(str::to_string).collect()
}
