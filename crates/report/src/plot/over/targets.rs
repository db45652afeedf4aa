//! Charts over targets.

use analysis::{
    compare::{ComparedStep, THROUGHPUT},
    distinct,
};

use super::curves::{bounds, points, widened};
use crate::model::comparison::repeat_ratios;
use crate::model::matrix::StepHead;
use crate::model::table::Tone;
use crate::plot::chart::{Chart, Curve, Point};
use crate::plot::scale::Scale;
use crate::tables::compared::{Board, RepeatedLine, tone};

/// Returns a chart for each step: throughput relative to the base over the targets in the plan's
/// order, if there are at least three. All charts have one scale.
pub(in crate::plot) fn targets(board: &Board<'_>) -> Vec<Chart> {
    let targets = targets_of_plan(board);
    if targets.len() < 3 {
        return Vec::new();
    }

    let mut steps: Vec<(StepHead<'_>, Vec<Curve>)> =
        board.matrix.measured().map(|step| (step, curves_of(board, &targets, step))).collect();
    // Only ratios have a tone; the points of the base are always there.
    steps.retain(|(_, curves)| points(curves).any(|point| point.tone.is_some()));

    let all: Vec<Curve> = steps.iter().flat_map(|(_, curves)| curves.clone()).collect();
    let (low, high) = ends_of_ratios(&all, board.comparison.compared.effect);
    let y = Scale::linear(low, high);
    steps.into_iter().map(|(step, curves)| chart(board, &targets, step, curves, &y)).collect()
}

/// Returns all targets in the plan's order.
pub(super) fn targets_of_plan<'a>(board: &'a Board<'_>) -> Vec<&'a str> {
    let mut names = distinct(board.lines.iter().map(|line| line.cell.target.as_str()));
    let planned = &board.comparison.run.targets;
    names.sort_by_key(|name| {
        planned.iter().position(|target| target.name == *name).unwrap_or(usize::MAX)
    });
    names
}

/// Returns the lines of a step over targets, one for each load.
fn curves_of(board: &Board<'_>, targets: &[&str], step: StepHead<'_>) -> Vec<Curve> {
    let curve = |(number, lines): (usize, &[RepeatedLine])| Curve {
        number,
        name: board.keys.group_label(&lines[0].cell).unwrap_or_else(|| "ratio".to_string()),
        is_faint: false,
        is_joined: are_in_order(targets),
        points: ratio_points(board, targets, lines, step),
    };
    board.compared_groups().enumerate().map(curve).collect()
}

/// Returns whether names differ only in a number or a version that rises or falls from each to the
/// next: `pg9.6.base`, `pg10.base`, `pg17.base`.
fn are_in_order(names: &[&str]) -> bool {
    let numbered: Vec<NumberedName> = names.iter().map(|name| NumberedName::read(name)).collect();
    let pairs = || numbered.windows(2).map(|pair| (&pair[0], &pair[1]));
    pairs().all(|(a, b)| a.parts == b.parts)
        && (pairs().all(|(a, b)| a.numbers < b.numbers)
            || pairs().all(|(a, b)| a.numbers > b.numbers))
}

/// A name, taken apart.
struct NumberedName<'n> {
    /// The parts between numbers.
    parts: Vec<&'n str>,
    /// Each number or version, as its numbers between dots: 9.6 is before 9.10.
    numbers: Vec<Vec<u64>>,
}

impl<'n> NumberedName<'n> {
    fn read(name: &'n str) -> Self {
        let mut numbered = Self { parts: Vec::new(), numbers: Vec::new() };
        let mut rest = name;
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let (part, from_number) = rest.split_at(start);
            let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
            let end = from_number.find(|letter| !is_number(letter)).unwrap_or(from_number.len());
            // The last dot may separate the build from the config.
            let number = from_number[..end].trim_end_matches('.');

            let numbers = number.split('.').map(|digits| digits.parse().unwrap_or(u64::MAX));
            numbered.numbers.push(numbers.collect());
            numbered.parts.push(part);
            rest = &from_number[number.len()..];
        }
        numbered.parts.push(rest);
        numbered
    }
}

/// Returns the chart of a step over targets.
fn chart(
    board: &Board<'_>,
    targets: &[&str],
    step: StepHead<'_>,
    curves: Vec<Curve>,
    y: &Scale,
) -> Chart {
    // Of targets without an order, none is the first.
    let joined = curves.iter().filter(|curve| curve.is_joined);
    let slower =
        joined.flat_map(|curve| &curve.points).filter(|point| point.tone == Some(Tone::Slower));
    let first_slower = slower.map(|point| point.x as usize).min();

    Chart {
        title: step.name.to_string(),
        of: format!("throughput relative to {}", board.short_base()),
        x: Scale::names(targets.iter().map(|name| board.names.short(name))),
        y: y.clone(),
        effect: Some(board.comparison.compared.effect),
        ideal: Vec::new(),
        curves,
        remark: first_slower.map(|at| {
            let first = board.names.short(targets[at]);
            (Tone::Slower, format!("first slower: {first}"))
        }),
    }
}

/// Returns the ratio of each target; their horizontal positions are indexes of `targets`.
fn ratio_points(
    board: &Board<'_>,
    targets: &[&str],
    lines: &[RepeatedLine],
    step: StepHead<'_>,
) -> Vec<Point> {
    let point = |(at, target): (usize, &&str)| {
        if *target == board.base {
            return Some(Point { x: at as f64, y: 1.0, ..Point::default() });
        }

        let line = lines.iter().find(|line| line.cell.target == *target)?;
        ratio_point(at, board.row(line, step.name, THROUGHPUT)?)
    };
    targets.iter().enumerate().filter_map(point).collect()
}

/// Returns the ratio of a comparison at place number `at`; `None` if there is none.
pub(super) fn ratio_point(at: usize, row: &ComparedStep) -> Option<Point> {
    Some(Point {
        x: at as f64,
        y: row.ratio?,
        range: row.interval.map(|interval| [interval.low, interval.high]),
        repeats: repeat_ratios(row),
        tone: Some(tone(row)),
    })
}

/// Returns the ends of an axis of ratios. All ratios and the band of `effect` fit, and of the
/// intervals and repeats as much as leaves room for them.
pub(in crate::plot) fn ends_of_ratios(curves: &[Curve], effect: f64) -> (f64, f64) {
    let band = (1.0 - effect, 1.0 + effect);
    let (low, high) = points(curves).map(|point| point.y).fold(band, widened);

    // Intervals and repeats that are much wider than the range of the ratios would leave no room.
    let room = (high - low).max(4.0 * effect) / 2.0;
    let (lowest, highest) = ((low - room).max(0.0), high + room);
    let repeats = points(curves).flat_map(|point| point.repeats.iter().copied());
    bounds(curves).chain(repeats).map(|bound| bound.clamp(lowest, highest)).fold(band, widened)
}
