//! Charts over what a plan varies: targets, numbers of clients, and rates.

use std::collections::BTreeMap;

use analysis::compare::{Sample, THROUGHPUT};
use analysis::figures::{Percentiles, Row, throughput};
use analysis::search::{RateTrial, SearchedTarget, rate_searches};
use analysis::{counted, distinct};

use super::chart::{Chart, Curve, Point};
use super::scale::Scale;
use crate::compared::{Board, RepeatedLine, mean_of, tone};
use crate::matrix::{Keys, StepHead};
use crate::operations::{noun, unit};
use crate::table::Tone;
use crate::worth::comparable;

/// The maximum number of lines that all have a color. Of more lines, only the base, the highest and
/// the lowest have one.
const COLORED_MAX: usize = 10;

type PercentileOf = fn(&Percentiles) -> f64;

/// The percentiles that are drawn over rates.
const TIMES: [(&str, PercentileOf); 3] =
    [("p50", |times| times.p50), ("p99", |times| times.p99), ("max", |times| times.max)];

/// Returns a chart for each step: throughput relative to the base over the targets in the plan's
/// order, if there are at least three. Axes begin at zero, or at the smallest ratio or interval.
pub(super) fn targets(board: &Board<'_>, is_from_zero: bool) -> Vec<Chart> {
    let targets = targets_of_plan(board);
    if targets.len() < 3 {
        return Vec::new();
    }

    let steps = board.matrix.measured();
    steps.filter_map(|step| target_chart(board, &targets, step, is_from_zero)).collect()
}

/// Returns all targets in the plan's order.
fn targets_of_plan<'a>(board: &'a Board<'_>) -> Vec<&'a str> {
    let mut names = distinct(board.lines.iter().map(|line| line.cell.target.as_str()));
    let planned = &board.comparison.run.targets;
    names.sort_by_key(|name| {
        planned.iter().position(|target| target.name == *name).unwrap_or(usize::MAX)
    });
    names
}

/// Returns the chart of a step over targets; `None` if no target has a ratio.
fn target_chart(
    board: &Board<'_>,
    targets: &[&str],
    step: StepHead<'_>,
    is_from_zero: bool,
) -> Option<Chart> {
    let curve = |(number, lines): (usize, &[RepeatedLine])| Curve {
        number,
        name: board.keys.group_label(&lines[0].cell).unwrap_or_else(|| "ratio".to_string()),
        is_faint: false,
        points: ratio_points(board, targets, lines, step),
    };
    let curves: Vec<Curve> = board.compared_groups().enumerate().map(curve).collect();

    // Only ratios have a tone; the points of the base are always there.
    if points(&curves).all(|point| point.tone.is_none()) {
        return None;
    }

    let effect = board.comparison.compared.effect;
    let (low, high) = ends_of_ratios(&curves, effect);
    let slower = points(&curves).filter(|point| point.tone == Some(Tone::Slower));
    let first_slower = slower.map(|point| point.x as usize).min();

    Some(Chart {
        title: step.name.to_string(),
        of: format!("throughput relative to {}", board.short_base()),
        x: Scale::names(targets.iter().map(|name| board.names.short(name))),
        y: Scale::linear(if is_from_zero { 0.0 } else { low }, high),
        effect: Some(effect),
        ideal: Vec::new(),
        curves,
        remark: first_slower.map(|at| {
            let first = board.names.short(targets[at]);
            (Tone::Slower, format!("first slower: {first}"))
        }),
    })
}

/// Returns the ratio of each target; their horizontal positions are indexes of `targets`.
fn ratio_points(
    board: &Board<'_>,
    targets: &[&str],
    lines: &[RepeatedLine],
    step: StepHead<'_>,
) -> Vec<Point> {
    let point = |(at, target): (usize, &&str)| {
        let x = at as f64;
        if *target == board.base {
            return Some(Point { x, y: 1.0, range: None, tone: None });
        }

        let line = lines.iter().find(|line| line.cell.target == *target)?;
        let row = board.row(line, step.name, THROUGHPUT)?;
        Some(Point {
            x,
            y: row.ratio?,
            range: row.interval.map(|interval| [interval.low, interval.high]),
            tone: Some(tone(row)),
        })
    };
    targets.iter().enumerate().filter_map(point).collect()
}

/// Returns the ends of an axis of ratios. All ratios and the band of `effect` fit, and of the
/// intervals as much as leaves room for them.
fn ends_of_ratios(curves: &[Curve], effect: f64) -> (f64, f64) {
    let band = (1.0 - effect, 1.0 + effect);
    let (low, high) = points(curves).map(|point| point.y).fold(band, widened);

    // Intervals that are much wider than the range of the ratios would leave no room.
    let room = (high - low).max(4.0 * effect) / 2.0;
    let (lowest, highest) = ((low - room).max(0.0), high + room);
    bounds(curves).map(|bound| bound.clamp(lowest, highest)).fold(band, widened)
}

/// The figure that is drawn over clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverClients {
    Throughput,
    /// CPU time of the host per operation.
    Cost,
    /// Throughput as a multiple of that with the fewest clients.
    ScaleUp,
}

/// Returns a chart of each step over the number of clients, if a target has several.
pub(super) fn clients(board: &Board<'_>, what: OverClients) -> Vec<Chart> {
    let mut counts: Vec<u32> = board.lines.iter().map(|line| line.cell.clients).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < 2 {
        return Vec::new();
    }

    let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
    let steps = board.matrix.measured();
    steps.filter_map(|step| client_chart(board, &counts, step, what)).collect()
}

/// Returns the chart of a step over the number of clients; `None` if no line has two points.
fn client_chart(
    board: &Board<'_>,
    counts: &[f64],
    step: StepHead<'_>,
    what: OverClients,
) -> Option<Chart> {
    // The clients are the axis here, so they don't tell lines apart.
    let keys = Keys { clients: false, ..board.keys };
    let mut curves = curves(board, keys, |row| {
        if row.step != step.name {
            return None;
        }
        Some((f64::from(row.cell.clients), what.figure(row)?))
    });
    if !curves.iter().any(|curve| curve.points.len() > 1) {
        return None;
    }

    let (y, ideal) = if what == OverClients::ScaleUp {
        make_multiples(&mut curves);
        let (least, most) = ends(&curves);
        let ideal: Vec<_> = counts.iter().map(|count| (*count, count / counts[0])).collect();
        let top = ideal.last().map_or(most, |(_, last)| last.max(most));
        (Scale::logarithmic(least.min(1.0), top), ideal)
    } else {
        let (_, most) = ends(&curves);
        (Scale::linear(0.0, most), Vec::new())
    };

    Some(Chart {
        title: step.name.to_string(),
        of: match what {
            OverClients::Throughput => format!("{} over clients", unit(step)),
            OverClients::Cost => format!("cpupq: CPU \u{b5}s per {} over clients", noun(step)),
            OverClients::ScaleUp => {
                let fewest = counted(counts[0] as usize, "client");
                format!("{} over clients, relative to {fewest}", unit(step))
            }
        },
        x: Scale::values(counts),
        y,
        effect: None,
        ideal,
        curves,
        remark: None,
    })
}

impl OverClients {
    fn figure(self, row: &Row) -> Option<f64> {
        match self {
            Self::Cost => row.metric("cpupq"),
            Self::Throughput | Self::ScaleUp => throughput(row),
        }
    }
}

/// Turns the values of each line into multiples of its first.
fn make_multiples(curves: &mut [Curve]) {
    for curve in curves {
        let one = curve.points.first().map_or(1.0, |point| point.y);
        for point in &mut curve.points {
            point.y /= one;
            point.range = None;
        }
    }
}

/// Returns charts of response times over the rates of steps whose names differ only in a number:
/// `qr100`, `qr500`.
pub(super) fn rates(board: &Board<'_>) -> Vec<Chart> {
    // Each rate of a search is a variant, which would be a line of its own.
    if board.comparison.run.search.is_some() {
        return Vec::new();
    }

    let families = step_families(board);
    let charts = families.iter().flat_map(|family| {
        TIMES.iter().filter_map(|(name, time)| rate_chart(board, family, name, *time))
    });
    charts.collect()
}

/// Steps with a requested rate whose names differ only in a number.
struct StepFamily<'a> {
    /// The common name without the number.
    stem: &'a str,
    /// The kind of operation whose response times are drawn.
    kind: &'a str,
    steps: Vec<&'a str>,
}

/// Returns families of steps: one for the main operation, and one for the operation whose rate is
/// requested if that is another.
fn step_families<'a>(board: &Board<'a>) -> Vec<StepFamily<'a>> {
    let mut families: Vec<StepFamily<'a>> = Vec::new();
    for row in &board.comparison.figures.rows {
        let Some(sla) = row.sla.as_ref().filter(|_| board.matrix.shows(&row.step)) else {
            continue;
        };

        let stem = stem(&row.step);
        for kind in distinct(row.main_op.as_deref().into_iter().chain([sla.kind.as_str()])) {
            let is_same = |family: &&mut StepFamily<'_>| family.stem == stem && family.kind == kind;
            match families.iter_mut().find(is_same) {
                Some(family) if family.steps.contains(&row.step.as_str()) => {}
                Some(family) => family.steps.push(&row.step),
                None => families.push(StepFamily { stem, kind, steps: vec![&row.step] }),
            }
        }
    }
    families
}

/// Returns the chart of a percentile over requested rates; `None` if there is only one rate.
fn rate_chart(
    board: &Board<'_>,
    family: &StepFamily<'_>,
    name: &str,
    time: PercentileOf,
) -> Option<Chart> {
    let curves = curves(board, board.keys, |row| {
        let op = row.ops.get(family.kind).filter(|op| op.count > 0)?;
        let sla = row.sla.as_ref().filter(|_| family.steps.contains(&row.step.as_str()))?;
        let ms = time(&op.response_us) / 1e3;
        // A logarithmic axis has no place for zero.
        (ms > 0.0).then_some((sla.target, ms))
    });
    let rates = distinct_rates(&curves);
    if rates.len() < 2 {
        return None;
    }

    let (least, most) = ends(&curves);
    Some(Chart {
        title: format!("{}, {}", family.stem.trim_end_matches(['.', '-', '_']), family.kind),
        of: format!("{name} of response time, ms, over the requested rate (/s)"),
        x: Scale::values(&rates),
        y: Scale::logarithmic(least, most),
        effect: None,
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}

/// Returns a figure of a rate that a search tried.
type TrialFigure = fn(&RateTrial) -> Option<f64>;

/// Returns a chart for each bound of a search: the bounded figure over the rates that were tried.
pub(super) fn search(board: &Board<'_>) -> Vec<Chart> {
    let run = board.comparison.run;
    let Some(search) = &run.search else {
        return Vec::new();
    };

    let searched = rate_searches(run, board.comparison.figures);
    let bounds = [
        search.p99_ms.map(|bound| SearchBound {
            what: "p99 of response times",
            bound,
            figure: |trial| trial.p99_ms,
        }),
        search.lag_ms.map(|bound| SearchBound {
            what: "lag",
            bound,
            figure: |trial| trial.lag_ms_max,
        }),
    ];
    bounds
        .iter()
        .flatten()
        .filter_map(|bound| search_chart(&search.step, &searched, bound))
        .collect()
}

/// A figure that a search keeps below a bound.
struct SearchBound {
    what: &'static str,
    /// In milliseconds.
    bound: f64,
    figure: TrialFigure,
}

/// Returns the chart of a bounded figure; `None` if only one rate was tried.
fn search_chart(
    step: &str,
    searched: &[SearchedTarget],
    &SearchBound { what, bound, figure }: &SearchBound,
) -> Option<Chart> {
    let point = |trial: &RateTrial| {
        let (x, y) = (trial.rate?, figure(trial)?);
        // A logarithmic axis has no place for zero.
        (y > 0.0).then_some(Point { x, y, range: None, tone: None })
    };
    let curve = |(number, target): (usize, &SearchedTarget)| Curve {
        number,
        name: format!("{}, {}", target.target, counted(target.clients as usize, "client")),
        is_faint: false,
        points: target.trials.iter().filter_map(point).collect(),
    };
    let curves: Vec<Curve> = searched.iter().enumerate().map(curve).collect();
    let rates = distinct_rates(&curves);
    let [slowest, .., fastest] = rates[..] else {
        return None;
    };

    let (least, most) = ends(&curves);
    Some(Chart {
        title: step.to_string(),
        of: format!("{what}, ms, over the requested rate (/s)"),
        x: Scale::logarithmic(slowest, fastest),
        y: Scale::logarithmic(least.min(bound), most.max(bound)),
        effect: None,
        ideal: vec![(slowest, bound), (fastest, bound)],
        curves,
        remark: None,
    })
}

/// Returns a step's name without the number at its end.
fn stem(step: &str) -> &str {
    step.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

fn points(curves: &[Curve]) -> impl Iterator<Item = &Point> {
    curves.iter().flat_map(|curve| &curve.points)
}

/// Returns the minimum and the maximum of points and their ranges.
fn ends(curves: &[Curve]) -> (f64, f64) {
    bounds(curves).fold((f64::INFINITY, 0.0), widened)
}

/// Returns the ends of the ranges of points, and the values of points without a range.
fn bounds(curves: &[Curve]) -> impl Iterator<Item = f64> {
    points(curves).flat_map(|point| point.range.unwrap_or([point.y; 2]))
}

/// Returns a range that also holds `value`.
fn widened((low, high): (f64, f64), value: f64) -> (f64, f64) {
    (value.min(low), value.max(high))
}

/// Returns the rates of points in rising order.
fn distinct_rates(curves: &[Curve]) -> Vec<f64> {
    let mut rates: Vec<f64> = points(curves).map(|point| point.x).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// Returns a line for each target and for what else `keys` distinguishes; `figure` returns the
/// position and the value of a row. The repeats are one point with a range.
fn curves(
    board: &Board<'_>,
    keys: Keys,
    figure: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Vec<Curve> {
    let samples = samples_by_line(board, keys, figure);

    // More lines than colors can't be told apart, so most of them are faint.
    let are_many = samples.len() > COLORED_MAX;
    let curve = |(number, line): (usize, LineSamples)| Curve {
        number,
        name: line.name,
        is_faint: are_many,
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
    let values = || samples.iter().map(|sample| sample.value);
    let range = [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)];
    Some(Point {
        x: f64::from_bits(x_bits),
        y: mean_of(samples)?,
        range: (samples.len() > 1).then_some(range),
        tone: None,
    })
}

/// Gives colors to the base, and to the lines with the highest and the lowest ends.
fn stand_out(curves: &mut [Curve], base: &str) {
    let end = |curve: &Curve| curve.points.last().map_or(0.0, |point| point.y);
    let by_end = |a: &usize, b: &usize| end(&curves[*a]).total_cmp(&end(&curves[*b]));
    let lowest = (0..curves.len()).min_by(by_end);
    let highest = (0..curves.len()).max_by(by_end);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compared::Comparison;
    use crate::findings;
    use analysis::figures::{Figures, OpFigures, Sla};
    use record::{CellKey, Run, Status, StepKind, Target};

    fn row(target: &str, clients: u32, repeat: u32, step: &str, rate: f64) -> Row {
        // Repeats differ by little, and not in the same way in all targets.
        let noise = 1.0 + 0.001 * f64::from((repeat * 7 + target.len() as u32) % 5);
        Row {
            cell: CellKey::new(target, None, clients, repeat),
            step: step.into(),
            kind: StepKind::Load,
            main_op: Some("insert".into()),
            reported: true,
            status: Status::Complete,
            valid: true,
            metrics: BTreeMap::from([("ips", Some(rate * noise)), ("cpupq", Some(50.0 / noise))]),
            ..Row::default()
        }
    }

    fn run(targets: &[&str], base: &str) -> Run {
        let target = |name: &&str| Target {
            name: (*name).into(),
            build: String::new(),
            config: String::new(),
            engine: String::new(),
            set: Vec::new(),
            declared: Vec::new(),
            factors: Vec::new(),
            files: Vec::new(),
        };
        Run { targets: targets.iter().map(target).collect(), base: base.into(), ..Run::default() }
    }

    fn on_board<T>(run: &Run, rows: Vec<Row>, look: impl Fn(&Board<'_>) -> T) -> T {
        let figures = Figures { rows, ..Figures::default() };
        let (compared, findings) = findings::of(run, &figures);
        look(&Board::new(&Comparison {
            run,
            runs: &[],
            figures: &figures,
            compared: &compared,
            findings: &findings,
        }))
    }

    #[test]
    fn targets_are_in_the_order_of_the_plan_and_the_first_slower_one_is_named() {
        // The base is neither the first by name nor the first of the plan.
        let speeds = [("pg9.a", 900.0), ("pg17.a", 1000.0), ("pg10.a", 500.0), ("pg11.a", 400.0)];
        let names = speeds.map(|(name, _)| name);
        let rows = (1..=5)
            .flat_map(|repeat| speeds.map(|(name, speed)| row(name, 1, repeat, "l.i0", speed)));
        let run = run(&names, "pg17.a");
        let rows: Vec<Row> = rows.collect();
        let from_zero = on_board(&run, rows.clone(), |board| targets(board, true));
        let [chart] = &on_board(&run, rows, |board| targets(board, false))[..] else {
            panic!("one step, one chart");
        };
        let ticks: Vec<&str> = chart.x.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(ticks, names);
        let [curve] = &chart.curves[..] else {
            panic!("one number of clients, one line");
        };
        assert_eq!(curve.points.len(), 4);
        assert_eq!((curve.points[1].y, curve.points[1].tone), (1.0, None));
        for point in &curve.points {
            let [low, high] = point.range.unwrap_or([point.y; 2]);
            assert!(low <= point.y && point.y <= high, "{point:?}");
            assert!(chart.y.low <= point.y && point.y <= chart.y.high, "{point:?}");
        }
        let slower = Some((Tone::Slower, "first slower: pg9.a".to_string()));
        assert_eq!(chart.remark, slower);
        assert!(chart.y.low > 0.0);
        assert_eq!(from_zero[0].y.low, 0.0);
        assert_eq!(from_zero[0].curves.len(), 1);
    }

    #[test]
    fn two_targets_have_nothing_to_be_drawn_over() {
        let rows = vec![row("a.a", 1, 1, "l.i0", 1.0), row("b.a", 1, 1, "l.i0", 2.0)];
        let run = run(&["a.a", "b.a"], "a.a");
        assert!(on_board(&run, rows, |board| targets(board, false).is_empty()
            && clients(board, OverClients::Throughput).is_empty()
            && rates(board).is_empty()));
    }

    #[test]
    fn a_single_target_is_drawn_over_its_clients() {
        let rows = [1, 2, 8].into_iter().flat_map(|clients| {
            let rate = 1000.0 * f64::from(clients).sqrt();
            (1..=3).map(move |repeat| row("a.a", clients, repeat, "l.i0", rate))
        });
        let mut rows: Vec<Row> = rows.collect();
        // What is not valid is in no mean.
        rows[0].valid = false;
        rows[0].metrics.insert("ips", Some(1e9));
        let run = run(&["a.a"], "a.a");
        let chart = |what| {
            let mut charts = on_board(&run, rows.clone(), |board| clients(board, what));
            assert_eq!(charts.len(), 1);
            charts.remove(0)
        };
        let throughput = chart(OverClients::Throughput);
        assert_eq!(throughput.y.low, 0.0);
        let points = &throughput.curves[0].points;
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 2.0, 8.0]);
        assert!(points.iter().all(|point| {
            let [low, high] = point.range.unwrap();
            low <= point.y && point.y <= high && high < 10_000.0
        }));
        let scale_up = chart(OverClients::ScaleUp);
        let points = &scale_up.curves[0].points;
        assert_eq!(points[0].y, 1.0);
        assert!((points[2].y - 8.0_f64.sqrt()).abs() < 0.02, "{points:?}");
        assert_eq!(scale_up.ideal, [(1.0, 1.0), (2.0, 2.0), (8.0, 8.0)]);
        assert!(chart(OverClients::Cost).of.starts_with("cpupq: CPU \u{b5}s per row"));
    }

    #[test]
    fn steps_that_differ_in_their_rate_are_one_line() {
        let row = |step: &str, rate: f64, ms: f64| {
            let response_us = Percentiles {
                p50: ms * 100.0,
                p99: ms * 1e3,
                max: ms * 1e4,
                ..Percentiles::default()
            };
            let op = OpFigures { count: 9, response_us, ..OpFigures::default() };
            Row {
                kind: StepKind::Query,
                main_op: Some("query".into()),
                ops: ["query", "insert"].map(|kind| (kind.to_string(), op.clone())).into(),
                sla: Some(Sla { kind: "insert".into(), target: rate, ..Sla::default() }),
                ..row("a.a", 1, 1, step, rate)
            }
        };
        let rows = vec![
            row("qr100", 100.0, 2.0),
            row("qp100", 100.0, 3.0),
            row("qr500", 500.0, 4.0),
            row("qr1000", 1000.0, 8.0),
        ];
        let charts = on_board(&run(&["a.a"], "a.a"), rows, rates);
        let titles: Vec<_> =
            charts.iter().map(|chart| (chart.title.as_str(), &chart.of[..3])).collect();
        let of = |kind| ["p50", "p99", "max"].map(|time| (kind, time));
        assert_eq!(titles, [of("qr, query"), of("qr, insert")].concat());
        let points = &charts[1].curves[0].points;
        let points: Vec<(f64, f64)> =
            points.iter().map(|point| (point.x, (point.y * 100.0).round() / 100.0)).collect();
        assert_eq!(points, [(100.0, 2.0), (500.0, 4.0), (1000.0, 8.0)]);
    }

    #[test]
    fn of_many_targets_the_base_and_the_ends_stand_out() {
        let names: Vec<String> = (0..12).map(|number| format!("t{number}.a")).collect();
        let rows = names.iter().enumerate().flat_map(|(at, name)| {
            [1, 4].map(|clients| row(name, clients, 1, "l.i0", 1000.0 + 50.0 * at as f64))
        });
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let charts = on_board(&run(&names, "t3.a"), rows.collect(), |board| {
            clients(board, OverClients::Throughput)
        });
        let colored = charts[0].curves.iter().filter(|curve| !curve.is_faint);
        let colored: Vec<&str> = colored.map(|curve| curve.name.as_str()).collect();
        assert_eq!(charts[0].curves.len(), 12);
        assert_eq!(colored, ["t0.a", "t3.a", "t11.a"]);
    }
}
