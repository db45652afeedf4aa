//! Charts over what a plan varies: targets, numbers of clients, and rates.

use std::collections::BTreeMap;

use analysis::{
    Percentiles, RateTrial, Row, Sample, SearchedTarget, THROUGHPUT, Verdict, counted, distinct,
    rate_searches, throughput,
};

use super::chart::{Chart, Curve, Point};
use super::scale::Scale;
use crate::compared::{Board, mean_of, tone};
use crate::matrix::{Keys, StepHead};
use crate::operations::{noun, unit};
use crate::table::Tone;
use crate::worth::comparable;

/// The maximum number of lines that all have a color. Of more lines, only the base, the highest and
/// the lowest have one.
const COLORED_MAX: usize = 10;

/// Returns a percentile.
type Time = fn(&Percentiles) -> f64;

/// The percentiles that are drawn over rates.
const TIMES: [(&str, Time); 3] = [("p50", |it| it.p50), ("p99", |it| it.p99), ("max", |it| it.max)];

/// Returns a chart for each step: throughput relative to the base over the targets in the plan's
/// order, if there are at least three. Axes begin at zero, or at the smallest ratio or interval.
pub(super) fn targets(board: &Board<'_>, is_from_zero: bool) -> Vec<Chart> {
    let mut names: Vec<&str> = distinct(board.lines.iter().map(|line| line.cell.target.as_str()));
    let place = |name: &&str| {
        let mut targets = board.comparison.run.targets.iter();
        targets.position(|target| target.name == *name).unwrap_or(usize::MAX)
    };
    names.sort_by_key(place);
    if names.len() < 3 {
        return Vec::new();
    }
    let groups: Vec<_> = board.compared_groups().collect();
    let chart = |step: StepHead<'_>| {
        let mut has_ratio = false;
        let mut slower: Option<usize> = None;
        let curves = groups.iter().enumerate().map(|(number, lines)| {
            let points = names.iter().enumerate().filter_map(|(at, name)| {
                let x = at as f64;
                if *name == board.base {
                    return Some(Point { x, y: 1.0, range: None, tone: None });
                }
                let line = lines.iter().find(|line| line.cell.target == *name)?;
                let row = board.row(line, step.name, THROUGHPUT)?;
                let y = row.ratio?;
                has_ratio = true;
                if row.verdict == Verdict::Slower {
                    slower = Some(slower.map_or(at, |first| first.min(at)));
                }
                let range = row.interval.map(|interval| [interval.low, interval.high]);
                Some(Point { x, y, range, tone: Some(tone(row)) })
            });
            Curve {
                number,
                name: board.keys.group_label(&lines[0].cell).unwrap_or_else(|| "ratio".to_string()),
                is_faint: false,
                points: points.collect(),
            }
        });
        let curves: Vec<Curve> = curves.collect();
        let effect = board.comparison.compared.effect;
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let around = |ends: &mut dyn Iterator<Item = f64>| {
            let least = (1.0 - effect, 1.0 + effect);
            ends.fold(least, |(low, high), end| (end.min(low), end.max(high)))
        };
        let (low, high) = around(&mut points().map(|point| point.y));
        // Intervals that are much wider than the range of the ratios would leave no room.
        let room = (high - low).max(4.0 * effect) / 2.0;
        let ends = points().flat_map(|point| point.range.unwrap_or([point.y; 2]));
        let (low, high) =
            around(&mut ends.map(|end| end.clamp((low - room).max(0.0), high + room)));
        has_ratio.then(|| Chart {
            title: step.name.to_string(),
            of: format!("throughput relative to {}", board.short_base()),
            x: Scale::names(names.iter().map(|name| board.names.short(name))),
            y: Scale::linear(if is_from_zero { 0.0 } else { low }, high),
            effect: Some(effect),
            ideal: Vec::new(),
            curves,
            remark: slower.map(|at| {
                let first = board.names.short(names[at]);
                (Tone::Slower, format!("first slower: {first}"))
            }),
        })
    };
    board.matrix.measured().filter_map(chart).collect()
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
    let value = |row: &Row| match what {
        OverClients::Cost => row.metric("cpupq"),
        _ => throughput(row),
    };
    let chart = |step: StepHead<'_>| {
        let keys = Keys { clients: false, ..board.keys };
        let mut curves = curves(board, keys, |row| {
            (row.step == step.name).then_some(())?;
            Some((f64::from(row.cell.clients), value(row)?))
        });
        if what == OverClients::ScaleUp {
            for curve in &mut curves {
                let one = curve.points.first().map_or(1.0, |point| point.y);
                for point in &mut curve.points {
                    point.y /= one;
                    point.range = None;
                }
            }
        }
        let has_line = curves.iter().any(|curve| curve.points.len() > 1);
        let (least, most) = ends(&curves);
        let ideal = |count: &f64| (*count, count / counts[0]);
        let ideal: Vec<(f64, f64)> = match what {
            OverClients::ScaleUp => counts.iter().map(ideal).collect(),
            _ => Vec::new(),
        };
        let top = ideal.last().map_or(most, |(_, last)| last.max(most));
        has_line.then(|| Chart {
            title: step.name.to_string(),
            of: match what {
                OverClients::Throughput => format!("{} over clients", unit(step)),
                OverClients::Cost => format!("cpupq: CPU \u{b5}s per {} over clients", noun(step)),
                OverClients::ScaleUp => {
                    format!(
                        "{} over clients, relative to {}",
                        unit(step),
                        counted(counts[0] as usize, "client")
                    )
                }
            },
            x: Scale::values(&counts),
            y: match what {
                OverClients::ScaleUp => Scale::logarithmic(least.min(1.0), top),
                _ => Scale::linear(0.0, most),
            },
            effect: None,
            ideal,
            curves,
            remark: None,
        })
    };
    board.matrix.measured().filter_map(chart).collect()
}

/// Returns charts of response times over the rates of steps whose names differ only in a number:
/// `qr100`, `qr500`.
pub(super) fn rates(board: &Board<'_>) -> Vec<Chart> {
    // Each rate of a search is a variant, which would be a line of its own.
    if board.comparison.run.search.is_some() {
        return Vec::new();
    }
    // Families of steps: the common name without the number, and the kind of operation.
    let mut families: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for row in &board.comparison.figures.rows {
        let Some(sla) = row.sla.as_ref().filter(|_| board.matrix.shows(&row.step)) else {
            continue;
        };
        for kind in distinct(row.main_op.as_deref().into_iter().chain([sla.kind.as_str()])) {
            let stem = stem(&row.step);
            match families.iter_mut().find(|(of, done, _)| (*of, *done) == (stem, kind)) {
                Some((.., steps)) if !steps.contains(&row.step.as_str()) => steps.push(&row.step),
                Some(_) => {}
                None => families.push((stem, kind, vec![&row.step])),
            }
        }
    }
    let charts = families.iter().flat_map(|(stem, kind, steps)| {
        TIMES.iter().filter_map(move |(name, time)| {
            let curves = curves(board, board.keys, |row| {
                let op = row.ops.get(*kind).filter(|op| op.count > 0)?;
                let sla = row.sla.as_ref().filter(|_| steps.contains(&row.step.as_str()))?;
                Some((sla.target, time(&op.response_us) / 1e3)).filter(|(_, ms)| *ms > 0.0)
            });
            let mut rates: Vec<f64> = points(&curves).map(|point| point.x).collect();
            rates.sort_by(f64::total_cmp);
            rates.dedup();
            let (least, most) = ends(&curves);
            (rates.len() > 1).then(|| Chart {
                title: format!("{}, {kind}", stem.trim_end_matches(['.', '-', '_'])),
                of: format!("{name} of response time, ms, over the requested rate (/s)"),
                x: Scale::values(&rates),
                y: Scale::logarithmic(least, most),
                effect: None,
                ideal: Vec::new(),
                curves,
                remark: None,
            })
        })
    });
    charts.collect()
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
    let p99: TrialFigure = |trial| trial.p99_ms;
    let bounded = [
        ("p99 of response times", search.p99_ms, p99),
        ("lag", search.lag_ms, |trial| trial.lag_ms_max),
    ];
    let chart = |(what, bound, figure): (&str, Option<f64>, TrialFigure)| {
        let bound = bound?;
        let curve = |(number, it): (usize, &SearchedTarget)| {
            let point = |trial: &RateTrial| {
                let (x, y) = (trial.rate?, figure(trial)?);
                let point = Point { x, y, range: None, tone: None };
                (y > 0.0).then_some(point)
            };
            Curve {
                number,
                name: format!("{}, {}", it.target, counted(it.clients as usize, "client")),
                is_faint: false,
                points: it.trials.iter().filter_map(point).collect(),
            }
        };
        let curves: Vec<Curve> = searched.iter().enumerate().map(curve).collect();
        let mut rates: Vec<f64> = points(&curves).map(|point| point.x).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let ends_of_rates = (*rates.first()?, *rates.last()?);
        let (least, most) = ends(&curves);
        (rates.len() > 1).then(|| Chart {
            title: search.step.clone(),
            of: format!("{what}, ms, over the requested rate (/s)"),
            x: Scale::logarithmic(ends_of_rates.0, ends_of_rates.1),
            y: Scale::logarithmic(least.min(bound), most.max(bound)),
            effect: None,
            ideal: vec![(ends_of_rates.0, bound), (ends_of_rates.1, bound)],
            curves,
            remark: None,
        })
    };
    bounded.into_iter().filter_map(chart).collect()
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
    let ends = points(curves).flat_map(|point| point.range.unwrap_or([point.y; 2]));
    ends.fold((f64::INFINITY, 0.0), |(least, most), end| (end.min(least), end.max(most)))
}

/// Returns a line for each target and for what else `keys` distinguishes; `figure` returns the
/// position and the value of a row. The repeats are one point with a range.
fn curves(
    board: &Board<'_>,
    keys: Keys,
    figure: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Vec<Curve> {
    let mut curves: Vec<(String, BTreeMap<u64, Vec<Sample>>)> = Vec::new();
    for line in &board.matrix.lines {
        for row in line.rows.iter().filter(|row| comparable(row)) {
            let Some((x, value)) = figure(row) else {
                continue;
            };
            let name = board.names.short(&keys.label(line.cell, 0));
            let sample = Sample { run: row.run, repeat: row.cell.repeat, value };
            let at = curves.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| {
                curves.push((name, BTreeMap::new()));
                curves.len() - 1
            });
            // Positive numbers have the same order as their bits.
            curves[at].1.entry(x.to_bits()).or_default().push(sample);
        }
    }
    let are_many = curves.len() > COLORED_MAX;
    let curves = curves.into_iter().enumerate().map(|(number, (name, samples))| {
        let points = samples.into_iter().filter_map(|(x, samples)| {
            let values = || samples.iter().map(|sample| sample.value);
            let range = [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)];
            Some(Point {
                x: f64::from_bits(x),
                y: mean_of(&samples)?,
                range: (samples.len() > 1).then_some(range),
                tone: None,
            })
        });
        Curve { number, name, is_faint: are_many, points: points.collect() }
    });
    let mut curves: Vec<Curve> = curves.collect();
    if are_many {
        stand_out(&mut curves, &board.short_base());
    }
    curves
}

/// Gives colors to the base, and to the lines with the highest and the lowest ends.
fn stand_out(curves: &mut [Curve], base: &str) {
    let end = |curve: &Curve| curve.points.last().map_or(0.0, |point| point.y);
    let by_end = |a: &usize, b: &usize| end(&curves[*a]).total_cmp(&end(&curves[*b]));
    let (lowest, highest) = ((0..curves.len()).min_by(by_end), (0..curves.len()).max_by(by_end));
    let of_base = curves.iter().position(|curve| curve.name.split(' ').next() == Some(base));
    let chosen = distinct([of_base, highest, lowest].into_iter().flatten());
    for (number, at) in chosen.into_iter().enumerate() {
        (curves[at].number, curves[at].is_faint) = (number, false);
    }
    // Colored lines are drawn above the others.
    curves.sort_by_key(|curve| !curve.is_faint);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compared::Comparison;
    use crate::findings;
    use analysis::{Figures, OpFigures, Sla};
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
