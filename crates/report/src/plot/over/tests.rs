use std::collections::BTreeMap;

use analysis::figures::{Figures, OpFigures, Percentiles, Row, Sla};
use record::{CellKey, Design, DesignFactor, DesignedTarget, Run, Status, StepKind, Target};

use super::*;
use crate::model::comparison::Explained;
use crate::model::table::Tone;
use crate::plot::chart::Curve;
use crate::tables::compared::Board;

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
    let explained = Explained::new(run, &figures, &[]);
    look(&Board::new(&explained.comparison()))
}

#[test]
fn targets_are_in_the_order_of_the_plan_and_the_first_slower_one_is_named() {
    // The base is neither the first by name nor the first of the plan.
    let speeds = [("pg9.a", 900.0), ("pg10.a", 1000.0), ("pg11.a", 500.0), ("pg17.a", 400.0)];
    let names = speeds.map(|(name, _)| name);
    let rows =
        (1..=5).flat_map(|repeat| speeds.map(|(name, speed)| row(name, 1, repeat, "l.i0", speed)));
    let run = run(&names, "pg10.a");
    let rows: Vec<Row> = rows.collect();
    let [chart] = &on_board(&run, rows, targets)[..] else {
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
        let repeat_count = if point.tone.is_some() { 5 } else { 0 };
        assert_eq!(point.repeats.len(), repeat_count, "{point:?}");
        let [low, high] = point.range.unwrap_or([point.y; 2]);
        assert!(low <= point.y && point.y <= high, "{point:?}");
        assert!(chart.y.low <= point.y && point.y <= chart.y.high, "{point:?}");
    }
    let slower = Some((Tone::Slower, "first slower: pg9.a".to_string()));
    assert_eq!(chart.remark, slower);
    assert!(chart.y.low > 0.0);
}

#[test]
fn only_targets_that_differ_in_a_rising_or_falling_number_are_joined() {
    let is_joined = |names: &[&str]| {
        let rows = (1..=5).flat_map(|repeat| {
            names
                .iter()
                .enumerate()
                .map(move |(at, name)| row(name, 1, repeat, "l.i0", 1000.0 - 100.0 * at as f64))
        });
        let charts = on_board(&run(names, names[0]), rows.collect(), targets);
        let is_joined = charts[0].curves[0].is_joined;
        let drawn = charts[0].draw(400.0).body.into_string();
        assert_eq!(drawn.contains("class=\"curve\""), is_joined, "{drawn}");
        // Only where there is an order can a target be the first.
        assert_eq!(charts[0].remark.is_some(), is_joined);
        is_joined
    };
    for names in [
        ["pg9.6.base", "pg9.10.base", "pg17.base"],
        ["pg17.a", "pg16.a", "pg9.a"],
        ["pg17.cache1GB", "pg17.cache2GB", "pg17.cache16GB"],
        ["my-8.0.2", "my-8.0.15", "my-8.4.0"],
    ] {
        assert!(is_joined(&names), "{names:?}");
    }
    for names in [
        ["pg17.base", "pg17.small-cache", "pg17.nosync"],
        ["pg9.a", "pg17.a", "pg10.a"],
        ["pg16.a", "pg17.a", "pg17.b"],
        ["pg17.cache512MB", "pg17.cache1GB", "pg17.cache2GB"],
    ] {
        assert!(!is_joined(&names), "{names:?}");
    }
}

#[test]
fn the_steps_over_targets_have_one_scale() {
    let names = ["pg9.a", "pg10.a", "pg11.a"];
    let steps = [("l.i0", 100.0), ("l.x", 1000.0)];
    let rows: Vec<Row> = (1..=5)
        .flat_map(|repeat| {
            steps.into_iter().flat_map(move |(step, speed)| {
                (1_u32..).zip(names).map(move |(number, name)| {
                    let factor = if step == "l.x" { f64::from(number) } else { 1.0 };
                    row(name, 1, repeat, step, speed * factor)
                })
            })
        })
        .collect();
    let charts = on_board(&run(&names, "pg9.a"), rows, targets);
    assert_eq!(charts.len(), 2);
    assert_eq!(charts[0].y, charts[1].y);
}

#[test]
fn two_targets_have_nothing_to_be_drawn_over() {
    let rows = vec![row("a.a", 1, 1, "l.i0", 1.0), row("b.a", 1, 1, "l.i0", 2.0)];
    let run = run(&["a.a", "b.a"], "a.a");
    assert!(on_board(&run, rows, |board| targets(board).is_empty()
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
        let response_us =
            Percentiles { p50: ms * 100.0, p99: ms * 1e3, max: ms * 1e4, ..Percentiles::default() };
        let op = OpFigures { count: 100, response_us, ..OpFigures::default() };
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

/// Returns a run of a design with two levels of each factor, and figures in which `speed` gives the
/// throughput of the levels of a target.
fn designed(
    factors: &[&str],
    targets: &[Vec<usize>],
    speed: impl Fn(&[usize]) -> f64,
) -> (Run, Figures) {
    let names: Vec<String> = (0..targets.len()).map(|at| format!("db.{at}")).collect();
    let factor = |name: &&str| DesignFactor {
        name: (*name).to_owned(),
        levels: vec!["off".to_owned(), "on".to_owned()],
    };
    let target = |(name, levels): (&String, &Vec<usize>)| DesignedTarget {
        target: name.clone(),
        levels: levels.clone(),
        is_folded: false,
    };
    let design = Design {
        kind: "screening".to_owned(),
        factors: factors.iter().map(factor).collect(),
        targets: names.iter().zip(targets).map(target).collect(),
    };

    let measured = |(at, name): (usize, &String)| {
        (1..=3).map(move |repeat| (at, name.clone(), repeat)).collect::<Vec<_>>()
    };
    let rows = names.iter().enumerate().flat_map(measured).map(|(at, name, repeat)| {
        // Noise of up to 0.6%, other in each target.
        let noise = 1.0 + 0.001 * ((at * 5 + repeat as usize * 3) % 7) as f64;
        row(&name, 1, repeat, "l.i0", noise * speed(&targets[at]))
    });
    let figures =
        Figures { rows: rows.collect(), design: Some(design.clone()), ..Figures::default() };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (Run { design: Some(design), ..run(&names, "db.0") }, figures)
}

#[test]
fn the_one_factor_that_matters_stands_above_the_line_of_noise() {
    let factors = ["a", "b", "c", "d", "e", "f", "g"];
    // A saturated design: the last factors are products of the first three.
    let targets: Vec<Vec<usize>> = (0..8_usize)
        .map(|at| {
            let [a, b, c] = [at & 1, at >> 1 & 1, at >> 2 & 1];
            vec![a, b, c, a ^ b, a ^ c, b ^ c, a ^ b ^ c]
        })
        .collect();
    let (run, figures) =
        designed(&factors, &targets, |levels| if levels[1] == 1 { 1300.0 } else { 1000.0 });

    let explained = Explained::new(&run, &figures, &[]);
    let comparison = explained.comparison();
    let board = Board::new(&comparison);
    let [half_normal] = &half_normal(&board)[..] else {
        panic!("one step, one chart");
    };
    let named: Vec<&Curve> = half_normal.curves.iter().filter(|curve| !curve.is_faint).collect();
    let [shown] = named[..] else {
        panic!("one effect is shown: {named:?}");
    };
    assert_eq!(shown.name, "b: off -> on");
    let (_, end_of_line) = half_normal.ideal[half_normal.ideal.len() - 1];
    assert!((shown.points[0].y - 1.3).abs() < 0.01, "{shown:?}");
    assert!(end_of_line < 1.02, "noise is small: {end_of_line}");
    let largest = half_normal.curves.last().map(|curve| curve.name.as_str());
    assert_eq!(largest, Some("b: off -> on"), "effects are sorted by size");

    let [levels] = &main_effects(&board)[..] else {
        panic!("one step, one chart");
    };
    assert_eq!(levels.curves.len(), 7);
    let slopes: Vec<f64> =
        levels.curves.iter().map(|curve| curve.points[1].y / curve.points[0].y).collect();
    assert!((slopes[1] - 1.3).abs() < 0.01, "{slopes:?}");
    assert!(slopes.iter().enumerate().all(|(at, slope)| at == 1 || (slope - 1.0).abs() < 0.02));
    // A screening of seven factors in eight targets tells no interaction.
    assert!(interactions(&board).is_empty());
}

#[test]
fn a_pair_that_interacts_has_lines_that_are_not_parallel() {
    let targets: Vec<Vec<usize>> = (0..4_usize).map(|at| vec![at & 1, at >> 1]).collect();
    // The second option helps only where the first is on.
    let speed = |levels: &[usize]| if levels == [1, 1] { 2000.0 } else { 1000.0 };
    let (run, figures) = designed(&["a", "b"], &targets, speed);

    let explained = Explained::new(&run, &figures, &[]);
    let comparison = explained.comparison();
    let [chart] = &interactions(&Board::new(&comparison))[..] else {
        panic!("one pair, one step");
    };
    assert_eq!(chart.title, "a \u{d7} b");
    let slopes: Vec<f64> =
        chart.curves.iter().map(|line| line.points[1].y / line.points[0].y).collect();
    assert!((slopes[0] - 1.0).abs() < 0.02 && (slopes[1] - 2.0).abs() < 0.04, "{slopes:?}");
    let names: Vec<&str> = chart.curves.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["b off", "b on"]);
}
