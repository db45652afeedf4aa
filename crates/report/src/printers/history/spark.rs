//! Draws a series in a line of text.

use analysis::history::SeriesHistory;
use maud::{Markup, html as markup};

/// The size of the drawing.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 34.0;
const MARGIN: f64 = 3.0;
/// More points than this share a place.
const PLACES_MAX: usize = 110;

/// Returns the points as a line, with the levels and the changes between them.
pub(super) fn line(series: &SeriesHistory) -> Markup {
    let values: Vec<f64> = series.points.iter().map(|point| point.mean.ln()).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A flat series is a flat line, however little it varies.
    let span = (high - low).max(0.02);

    let last = (values.len().max(2) - 1) as f64;

    let x = |at: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * at / last;
    let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (value - low) / span;

    let places: Vec<String> = thinned(&values)
        .into_iter()
        .map(|at| format!("{:.1},{:.1}", x(at as f64), y(values[at])))
        .collect();

    markup! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" {
            polyline points=(places.join(" ")) {}

            @for level in &series.levels.levels {
                line.level x1=(format!("{:.1}", x(level.points.start as f64))) x2=(format!("{:.1}", x(level.points.end as f64 - 1.0)))
                    y1=(format!("{:.1}", y(level.mean.ln()))) y2=(format!("{:.1}", y(level.mean.ln()))) {}
            }

            @for change in &series.changes {
                line class={ "mark " (super::class(change)) } x1=(format!("{:.1}", x(change.level.at as f64 - 0.5)))
                    x2=(format!("{:.1}", x(change.level.at as f64 - 0.5))) y1="0" y2=(HEIGHT) {}
            }
        }
    }
}

/// Returns the indexes of the points that are drawn: of many, the least and the greatest of each
/// place.
fn thinned(values: &[f64]) -> Vec<usize> {
    if values.len() <= PLACES_MAX * 2 {
        return (0..values.len()).collect();
    }

    let mut kept = Vec::new();
    for place in 0..PLACES_MAX {
        let inside = place * values.len() / PLACES_MAX..(place + 1) * values.len() / PLACES_MAX;

        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        let mut ends: Vec<usize> = [inside.clone().min_by(by_value), inside.max_by(by_value)]
            .into_iter()
            .flatten()
            .collect();
        ends.sort_unstable();
        ends.dedup();

        kept.extend(ends);
    }

    kept
}
