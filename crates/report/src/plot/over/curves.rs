//! The lines of charts: repeats become points with a range, and of many lines a few stand out.

use std::collections::BTreeMap;

use analysis::{
    compare::{Sample, mean_of_samples},
    distinct,
    figures::Row,
};

use crate::model::matrix::Keys;
use crate::model::worth::comparable;
use crate::plot::chart::{Curve, Point};
use crate::tables::compared::Board;

/// The maximum number of lines in a chart that gives each line a color. Otherwise only the base,
/// the highest and the lowest line have one.
const COLORED_MAX: usize = 10;

/// Returns all points of some lines.
pub(super) fn points(curves: &[Curve]) -> impl Iterator<Item = &Point> {
    curves.iter().flat_map(|curve| &curve.points)
}

/// Returns the minimum and the maximum of points and their ranges.
pub(super) fn ends(curves: &[Curve]) -> (f64, f64) {
    bounds(curves).fold((f64::INFINITY, 0.0), widened)
}

/// Returns the ends of the ranges of points, and the values of points without a range.
pub(super) fn bounds(curves: &[Curve]) -> impl Iterator<Item = f64> {
    points(curves).flat_map(|point| point.range.unwrap_or([point.y; 2]))
}

/// Returns a range that also holds `value`.
pub(super) fn widened((low, high): (f64, f64), value: f64) -> (f64, f64) {
    (value.min(low), value.max(high))
}

/// Returns the rates of points in rising order.
pub(super) fn distinct_rates(curves: &[Curve]) -> Vec<f64> {
    let mut rates: Vec<f64> = points(curves).map(|point| point.x).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// Returns a line for each target and for what else `keys` distinguishes; `figure` returns the
/// position and the value of a row. The repeats are one point with a range.
pub(super) fn curves(
    board: &Board<'_>,
    keys: Keys,
    figure: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Vec<Curve> {
    let samples = samples_by_line(board, keys, figure);

    // More lines than colors cannot be told apart, so most of them are faint.
    let are_many = samples.len() > COLORED_MAX;
    let curve = |(number, line): (usize, LineSamples)| Curve {
        number,
        name: line.name,
        is_faint: are_many,
        is_joined: true,
        points: line.samples.iter().filter_map(|(x, samples)| point_of(*x, samples)).collect(),
    };

    let mut curves: Vec<Curve> = samples.into_iter().enumerate().map(curve).collect();
    if are_many {
        stand_out(&mut curves, &board.short_base());
    }
    curves
}

/// The samples of a line by the bits of their positions. Positive numbers have the same order as
/// their bits.
struct LineSamples {
    name: String,
    samples: BTreeMap<u64, Vec<Sample>>,
}

fn samples_by_line(
    board: &Board<'_>,
    keys: Keys,
    figure: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Vec<LineSamples> {
    let mut lines: Vec<LineSamples> = Vec::new();

    for line in &board.matrix.lines {
        for row in line.rows.iter().filter(|row| comparable(row)) {
            let Some((x, value)) = figure(row) else {
                continue;
            };

            let name = board.names.short(&keys.label(line.cell, 0));
            let sample = Sample { run: row.run, repeat: row.cell.repeat, value };
            let at = lines.iter().position(|known| known.name == name).unwrap_or_else(|| {
                lines.push(LineSamples { name, samples: BTreeMap::new() });
                lines.len() - 1
            });
            lines[at].samples.entry(x.to_bits()).or_default().push(sample);
        }
    }
    lines
}

/// Returns the mean of samples with their range, if there are several.
fn point_of(x_bits: u64, samples: &[Sample]) -> Option<Point> {
    let mut range = [f64::INFINITY, 0.0];
    for sample in samples {
        range = [sample.value.min(range[0]), sample.value.max(range[1])];
    }
    let is_repeated = samples.len() > 1;

    let values = samples.iter().map(|sample| sample.value);
    Some(Point {
        x: f64::from_bits(x_bits),
        y: mean_of_samples(samples)?,
        range: is_repeated.then_some(range),
        repeats: if is_repeated { values.collect() } else { Vec::new() },
        tone: None,
    })
}

/// Gives colors to the base, and to the lines with the highest and the lowest ends.
fn stand_out(curves: &mut [Curve], base: &str) {
    let ends: Vec<f64> =
        curves.iter().map(|curve| curve.points.last().map_or(0.0, |point| point.y)).collect();
    let lowest = (0..ends.len()).min_by(|&a, &b| ends[a].total_cmp(&ends[b]));
    let highest = (0..ends.len()).max_by(|&a, &b| ends[a].total_cmp(&ends[b]));
    // After the target a label has the variant and the clients.
    let of_base = curves.iter().position(|curve| curve.name.split(' ').next() == Some(base));

    let chosen = distinct([of_base, highest, lowest].into_iter().flatten());
    for (number, at) in chosen.into_iter().enumerate() {
        curves[at].number = number;
        curves[at].is_faint = false;
    }

    // Colored lines are drawn above the others.
    curves.sort_by_key(|curve| !curve.is_faint);
}
