//! A heat map: the ratio of each target in each step, its verdict as a mark, and a color if a
//! change is shown.

use std::ops::Range;

use maud::{Markup, html as markup};

use super::svg::{Panel, class, cut, px, text_width};
use crate::model::number::ratio_text;
use crate::model::operations::step_head;
use crate::model::table::{Cell, Tone};
use crate::tables::compared::tone;
use analysis::compare::ComparedStep;

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
        let text = format!("{} {}{missed}", ratio_text(ratio), tone.mark());
        let strength = match tone {
            // Even a small change that is shown must be visible.
            Tone::Faster | Tone::Slower => 0.15 + 0.85 * (ratio.ln().abs() / STRONGEST).min(1.0),
            _ => 0.0,
        };
        Self { text: text.trim_end().to_string(), tone, strength }
    }
}

/// A heat map with targets in rows and steps in columns, or the other way round if there are more
/// steps.
#[derive(Clone, Debug)]
pub(super) struct Heat {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

/// The positions in the panels of a map.
struct HeatLayout {
    /// The left side of the first column.
    left: f64,
    /// The width of a column.
    column: f64,
    /// The top of the first row.
    head: f64,
    /// The head of each column, a line each.
    heads: Vec<Vec<String>>,
}

impl Heat {
    /// Returns true if any square has the mark of a missed rate.
    pub(super) fn has_missed(&self) -> bool {
        let mut squares = self.rows.iter().flat_map(|(_, squares)| squares);
        squares.any(|square| square.text.ends_with(Tone::SlaMissed.mark()))
    }

    /// Draws the map, divided into panels with as many columns as fit.
    pub(super) fn draw(&self, width: f64) -> Vec<Panel> {
        let layout = self.layout(width);

        // All panels have about the same width: 7 columns of which 6 fit are 4 and 3.
        let count = self.columns.len();
        let fitting = (((width - layout.left) / layout.column) as usize).max(1);
        let panels = count.div_ceil(fitting).max(1);
        let each = count.div_ceil(panels).max(1);

        (0..count)
            .step_by(each)
            .map(|first| self.panel(&layout, first..(first + each).min(count)))
            .collect()
    }

    fn layout(&self, width: f64) -> HeatLayout {
        let names = self.rows.iter().map(|(name, _)| text_width(name));
        let left = names.fold(0.0, f64::max).min(width * 0.3) + 8.0;

        let heads: Vec<Vec<String>> = self.columns.iter().map(|name| broken(name)).collect();
        let squares = self.rows.iter().flat_map(|(_, squares)| squares);
        let texts = squares.map(|square| &square.text).chain(heads.iter().flatten());
        let widest = texts.map(|text| text_width(text)).fold(0.0, f64::max);

        let lines = heads.iter().map(Vec::len).max().unwrap_or(1);
        HeatLayout {
            left,
            column: widest.clamp(50.0, 96.0) + 8.0,
            head: lines as f64 * LINE + 8.0,
            heads,
        }
    }

    /// Draws some of the columns.
    fn panel(&self, layout: &HeatLayout, columns: Range<usize>) -> Panel {
        let HeatLayout { left, column, head, heads } = layout;
        let body = markup! {
            @for (place, at) in columns.clone().enumerate() {
                @let x = left + column * (place as f64 + 0.5);
                @for (line, text) in heads[at].iter().rev().enumerate() {
                    text.soft x=(px(x)) y=(px(head - 6.0 - LINE * line as f64)) text-anchor="middle" { (cut(text, *column)) }
                }
            }
            @for (number, (name, squares)) in self.rows.iter().enumerate() {
                @let y = head + ROW * number as f64;
                text x="0" y=(px(y + ROW / 2.0 + 4.0)) { (cut(name, left - 4.0)) }
                @for (place, at) in columns.clone().enumerate() {
                    g {
                        title { (name) " " (self.columns[at]) " " (squares[at].text) }
                        (square(&squares[at], left + column * place as f64, y, *column))
                    }
                }
            }
        };

        Panel {
            width: left + column * columns.len() as f64 + 1.0,
            height: head + ROW * self.rows.len() as f64 + 2.0,
            label: format!("{}. {}", self.name, self.description(columns)),
            title: self.name.clone(),
            body,
        }
    }

    /// Describes some of the columns in words, for screen readers.
    fn description(&self, columns: Range<usize>) -> String {
        let of_row = |(name, squares): &(String, Vec<HeatCell>)| {
            let texts: Vec<String> = columns
                .clone()
                .map(|at| format!("{} {}", self.columns[at], squares[at].text))
                .collect();
            format!("{name}: {}", texts.join(", "))
        };
        self.rows.iter().map(of_row).collect::<Vec<_>>().join("; ")
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

/// Breaks a column header into lines.
fn broken(name: &str) -> Vec<String> {
    step_head(name).split('\n').map(str::to_string).collect()
}
