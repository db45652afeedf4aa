//! Charts of a step second by second, with a line for each repeat.

use analysis::distinct;
use analysis::figures::Row;

use super::curves::ends;
use crate::model::operations::rate_title;
use crate::model::worth::comparable;
use crate::plot::chart::{Chart, Curve, Point};
use crate::plot::scale::Scale;
use crate::tables::compared::Board;
use words::OpChart;

/// The most points of a line; longer ones have the least and the largest value of some seconds.
const POINTS_MAX: usize = 600;

/// The charts of a step, one for each load and figure.
pub(in crate::plot) struct StepSeconds {
    pub step: String,
    pub charts: Vec<Chart>,
}

/// A figure that each second has.
#[derive(Clone, Copy)]
enum OfSecond {
    /// The throughput of the main operation.
    Rate,
    /// Its longest response time.
    Longest,
}

/// Returns the charts of each step that is shown and has seconds.
pub(in crate::plot) fn seconds(board: &Board<'_>) -> Vec<StepSeconds> {
    let mut steps = Vec::new();
    for head in board.matrix.measured() {
        let charts = charts(board, head.name);
        if !charts.is_empty() {
            steps.push(StepSeconds { step: head.name.to_owned(), charts });
        }
    }
    steps
}

fn charts(board: &Board<'_>, step: &str) -> Vec<Chart> {
    let loads = distinct(board.matrix.lines.iter().map(|line| line.cell.load()));

    let mut charts = Vec::new();
    for load in loads {
        let mut rows: Vec<&Row> = Vec::new();
        for line in board.matrix.lines.iter().filter(|line| line.cell.load() == load) {
            rows.extend(line.rows.iter().filter(|row| row.step == step && comparable(row)));
        }
        for figure in [OfSecond::Rate, OfSecond::Longest] {
            charts.extend(chart(board, &rows, figure));
        }
    }
    charts
}

/// The words of a chart.
struct Labels {
    title: String,
    of: String,
}

impl Labels {
    fn of(board: &Board<'_>, row: &Row, figure: OfSecond) -> Self {
        let title = match board.keys.group_label(&row.cell) {
            Some(load) => format!("{}, {load}", row.step),
            None => row.step.clone(),
        };
        let kind = row.main_op.as_deref().unwrap_or_default();
        let of = match figure {
            OfSecond::Rate => rate_title(kind, row.role_of(kind)),
            OfSecond::Longest => format!("{kind}: longest response time in each second, ms"),
        };
        Self { title, of }
    }
}

/// Returns the chart of some rows, the repeats of all targets; `None` without seconds.
fn chart(board: &Board<'_>, rows: &[&Row], figure: OfSecond) -> Option<Chart> {
    let labels = Labels::of(board, rows.first()?, figure);

    // A target has a color, and its repeats are lines of their own.
    let names = distinct(rows.iter().map(|row| board.names.short(&row.cell.target)));
    let mut curves = Vec::new();
    for row in rows {
        let name = board.names.short(&row.cell.target);
        let number = names.iter().position(|known| *known == name).unwrap_or_default();
        curves.extend(pieces(number, &name, &values(row, figure)));
    }

    let (least, most) = ends(&curves);
    let all_points = curves.iter().flat_map(|curve| &curve.points);
    let seconds = all_points.map(|point| point.x).fold(0.0, f64::max);
    if seconds <= 0.0 {
        return None;
    }

    Some(Chart {
        title: labels.title,
        of: labels.of,
        x: Scale::linear(0.0, seconds),
        y: match figure {
            OfSecond::Rate => Scale::linear(0.0, most),
            OfSecond::Longest => Scale::logarithmic(least, most),
        },
        effect: None,
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}

/// Returns the values of all whole seconds of a row; `None` in a second without one.
fn values(row: &Row, figure: OfSecond) -> Vec<Option<f64>> {
    let Some(kind) = row.main_op.as_deref() else {
        return Vec::new();
    };
    let Some(op) = row.series.ops.get(kind) else {
        return Vec::new();
    };

    let whole = row.seconds as usize;
    let rates =
        |counts: &[u64]| counts.iter().take(whole).map(|count| Some(*count as f64)).collect();
    match figure {
        OfSecond::Rate if row.role_of(kind).facts().charted == OpChart::Rows => rates(&op.rows),
        OfSecond::Rate => rates(&op.ok),
        OfSecond::Longest => {
            let done = op.response_us_max.iter().zip(&op.ok).take(whole);
            // A logarithmic axis has no place for a second in which nothing ended.
            done.map(|(us, ok)| Some(us / 1e3).filter(|ms| *ok > 0 && *ms > 0.0)).collect()
        }
    }
}

/// Returns the lines through the seconds of a repeat. A long repeat has two points for each bucket of
/// several seconds: its least and its largest value. A bucket without any value ends a line.
fn pieces(number: usize, name: &str, values: &[Option<f64>]) -> Vec<Curve> {
    let bucket_seconds = (2 * values.len()).div_ceil(POINTS_MAX).max(1);

    let mut lines: Vec<Vec<Point>> = vec![Vec::new()];
    for (bucket, seconds) in values.chunks(bucket_seconds).enumerate() {
        let Some([first, last]) = ends_of_bucket(bucket * bucket_seconds, seconds) else {
            lines.push(Vec::new());
            continue;
        };

        if let Some(line) = lines.last_mut() {
            let is_one_second = first.x == last.x;
            line.push(first);
            if !is_one_second {
                line.push(last);
            }
        }
    }

    lines.retain(|points| !points.is_empty());
    let mut curves = Vec::new();
    for points in lines {
        let name = name.to_owned();
        curves.push(Curve { number, name, is_faint: false, is_joined: true, points });
    }
    curves
}

/// Returns the points of the least and the largest value of some seconds, the earlier one first.
/// `begin` is the number of seconds before these. `None` if no second has a value.
fn ends_of_bucket(begin: usize, seconds: &[Option<f64>]) -> Option<[Point; 2]> {
    let mut least: Option<Point> = None;
    let mut most: Option<Point> = None;
    for (index, value) in seconds.iter().enumerate() {
        let Some(y) = *value else { continue };
        // The value of a second belongs to its end.
        let x = (begin + index + 1) as f64;
        if least.as_ref().is_none_or(|known| y < known.y) {
            least = Some(Point { x, y, ..Point::default() });
        }
        if most.as_ref().is_none_or(|known| y > known.y) {
            most = Some(Point { x, y, ..Point::default() });
        }
    }

    let mut points = [least?, most?];
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    Some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_a_value_is_a_gap_in_the_line() {
        let pieces = pieces(0, "a", &[Some(1.0), Some(2.0), None, Some(4.0)]);
        let points: Vec<Vec<(f64, f64)>> = pieces
            .iter()
            .map(|piece| piece.points.iter().map(|point| (point.x, point.y)).collect())
            .collect();
        assert_eq!(points, [vec![(1.0, 1.0), (2.0, 2.0)], vec![(4.0, 4.0)]]);
    }

    #[test]
    fn a_long_line_keeps_its_extremes() {
        let mut values: Vec<Option<f64>> = (0..7200).map(|_| Some(5.0)).collect();
        (values[100], values[5000]) = (Some(0.0), Some(90.0));
        let pieces = pieces(0, "a", &values);
        assert_eq!(pieces.len(), 1);
        let points = &pieces[0].points;
        assert!(points.len() <= POINTS_MAX, "{}", points.len());
        assert!(points.contains(&Point { x: 101.0, y: 0.0, ..Point::default() }));
        assert!(points.contains(&Point { x: 5001.0, y: 90.0, ..Point::default() }));
    }
}
