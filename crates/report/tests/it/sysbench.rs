//! Tables of microbenchmarks that never ran: tests in groups, two that load and index, a warm-up,
//! and one before the writes.

use std::collections::BTreeMap;

use analysis::figures::{
    FailedOperations, Figures, OpFigures, Percentiles, Remark, Row, Sla, UnfinishedCell,
};
use record::{Run, Status, StepKind, Warning};
use report::{csv, tables, tables_brief};

use crate::synthetic::target;
use crate::{PLAIN, check_once, column, page, words};

/// Name, group, queries per second.
const STEPS: [(&str, Option<&str>, f64); 9] = [
    ("load", None, 80_000.0),
    ("index", None, 1_200_000.0),
    ("point-query.warm", Some("point"), 50_000.0),
    ("point-query.pre", Some("point"), 56_789.0),
    ("update-index", Some("write"), 4_321.0),
    ("scan", Some("range-1"), 2.5),
    ("point-query", Some("point"), 54_321.0),
    ("points-notcovered-si", Some("point"), 1_234.5),
    ("insert", Some("write"), 9_876.0),
];

/// The speeds in the "scan" tables of the field: the same work at 1, 0.83, 0.98 and 1.2 times the
/// speed.
const SPEEDS: [f64; 6] = [1.0, 0.83, 0.98, 1.2, 1.1, 0.5];

const BUILDS: [&str; 6] =
    ["my8028", "my8040", "my8040-advanced-pre", "my8040adv_post", "my8405", "my9001"];

fn row(target: usize, (step, group, rate): (&str, Option<&str>, f64)) -> Row {
    let speed = SPEEDS[target];
    let rate = rate * speed;
    let kind = match step {
        "load" => StepKind::Load,
        "index" => StepKind::Index,
        _ => StepKind::Query,
    };
    let is_query = kind == StepKind::Query;
    let main_op = if is_query { "event" } else { "insert" };
    let us = 1e6 / rate;
    let times = Percentiles {
        p50: us,
        p95: us * 1.5,
        p99: us * 2.0,
        p99_9: us * 8.0,
        max: us * 40.0,
        ..Percentiles::default()
    };
    let op = OpFigures {
        count: (rate * 10.0) as u64,
        retried: if step == "update-index" { 7 } else { 0 },
        service_us: times.clone(),
        response_us: times,
        ..OpFigures::default()
    };
    Row {
        cell: record::CellKey::new(&format!("{}.z11a", BUILDS[target]), None, 1, 1),
        build: BUILDS[target].to_string(),
        config: "z11a".to_string(),
        engine: "mysql".to_string(),
        engine_version: "8.0".to_string(),
        workload: "sysbench".to_string(),
        step: step.to_string(),
        kind,
        main_op: Some(main_op.to_string()),
        queries_per_event: is_query.then_some(1.0),
        group: group.map(str::to_string),
        reported: !step.contains(".warm"),
        status: Status::Complete,
        seconds: 10.0,
        valid: true,
        ops: BTreeMap::from([(main_op.to_string(), op)]),
        metrics: BTreeMap::from([
            ("ips", (!is_query).then_some(rate)),
            ("qps", is_query.then_some(rate)),
            ("o/s", Some(rate)),
            ("cpupq", Some(us * 0.9)),
            ("cs/o", Some(2.5 / speed.powi(2))),
            ("r/o", Some(0.0)),
            // What rounds to nothing is three times as much.
            ("rKB/o", Some(if target == 1 { 0.000_3 } else { 0.000_1 })),
            ("wKB/o", Some(0.052)),
        ]),
        ..Row::default()
    }
}

/// The title of the table of throughput.
const TESTS: &str = "Throughput of tests: queries/s\n";
/// The number of reported tests.
const TEST_COUNT: usize = 6;

fn figures(targets: usize) -> Figures {
    let rows = (0..targets).flat_map(|target| STEPS.map(|step| row(target, step)));
    Figures { rows: rows.collect(), ..Figures::default() }
}

fn run() -> Run {
    let target = |build: &&str| target(&format!("{build}.z11a"), "mysql");
    Run {
        assay: record::Assay { version: "0.1.0".to_string(), ..record::Assay::default() },
        status: Status::Complete,
        name: "micro".to_string(),
        base: "my8028.z11a".to_string(),
        targets: BUILDS[..4].iter().map(target).collect(),
        started_unix_ns: 1_795_287_731_000_000_000,
        ..Run::default()
    }
}

/// Returns the text between two texts.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no `{from}` in {text}"));
    rest.split(to).next().unwrap()
}

/// Up to where the steps begin, each with tables of its own.
fn overview(figures: &Figures) -> String {
    let text = tables(&run(), figures, PLAIN);
    text.split("━━").next().unwrap().to_string()
}

#[test]
fn a_row_is_a_test_and_a_column_a_target() {
    let mut figures = figures(4);
    let broken = figures.rows.last_mut().unwrap();
    broken.valid = false;
    broken.reasons = vec!["rows of sbtest1: 9 found, 10 expected".to_string()];
    insta::assert_snapshot!(overview(&figures));
}

#[test]
fn the_base_comes_first_wherever_the_plan_has_it() {
    let mut run = run();
    run.base = "my8040.z11a".to_string();
    let text = tables_brief(&run, &figures(2), PLAIN);
    let relative = between(&text, "my8028.z11a relative to my8040.z11a\n", "\n\n");
    let head = ["step", "throughput"];
    assert_eq!(words(relative, "step"), head);
    assert_eq!(words(relative, "scan"), ["scan", "1.20"]);
}

#[test]
fn tables_of_two_to_six_targets_fit_a_terminal() {
    for targets in 2..=6 {
        let mut figures = figures(targets);
        let long = figures.rows.iter_mut();
        for row in long.filter(|row| row.step == "points-notcovered-si") {
            row.step = "random-points.range1000.pre".to_string();
        }
        let text = tables(&run(), &figures, PLAIN);
        let widest = text.lines().max_by_key(|line| line.chars().count());
        assert!(widest.unwrap().chars().count() <= 100, "{widest:?}");
        // The table is not divided: the heads appear once.
        let tests = between(&text, TESTS, "\n\n");
        for test in ["point-query.pre", "random-points.range1000.pre"] {
            let rows = tests.lines().filter(|line| line.starts_with(test));
            let rows: Vec<_> = rows.collect();
            assert_eq!(rows.len(), 1, "{tests}");
            assert_eq!(rows[0].split_whitespace().count(), 1 + targets, "{tests}");
        }
        let costs = between(&text, "Cost per query in tests, of the whole host\n", "\n\n");
        assert_eq!(costs.lines().count(), 3 + TEST_COUNT * targets, "{costs}");
    }
}

#[test]
fn unreported_steps_are_listed_but_not_shown() {
    let mut figures = figures(2);
    let warm = |row: &&mut Row| row.step == "point-query.warm";
    let warm = figures.rows.iter_mut().find(warm).unwrap();
    warm.warnings =
        vec![Warning { code: "step::warm".to_string(), text: "it was cold".to_string() }];
    for text in [tables(&run(), &figures, PLAIN), tables_brief(&run(), &figures, PLAIN)] {
        let (shown, known) = text.split_once("Problems and warnings").unwrap();
        assert!(!shown.contains("point-query.warm"), "{shown}");
        assert!(known.contains("it was cold [step::warm]"), "{known}");
        assert!(known.contains("my8028.z11a point-query.warm"), "{known}");
        assert!(!known.contains("━━ point-query.warm"), "{known}");
    }
    let report = page(run(), &figures);
    assert!(report.contains("id=\"step-point-2d-query-pre\""));
    assert!(!report.contains("id=\"step-point-2d-query-warm\""));
    let folded = between(&report, "<details id=\"unreported\">", "</details>");
    assert!(folded.contains("point-query.warm"), "{folded}");
    // Scripts have it.
    let csv = csv(&run(), &figures);
    let (steps, reported) = (column(&csv, "step"), column(&csv, "reported"));
    let not = steps.iter().zip(&reported).filter(|(_, reported)| *reported == "false");
    let not: Vec<_> = not.map(|(step, _)| step).collect();
    assert_eq!(not, ["point-query.warm"; 2]);
    let json = analysis::json(&run(), &figures);
    let rows = json["rows"].as_array().unwrap();
    let count = |wanted: bool| rows.iter().filter(|row| row["reported"] == wanted).count();
    assert_eq!((count(false), count(true)), (2, 16));
}

#[test]
fn a_warm_up_that_is_selected_alone_is_shown() {
    let mut figures = figures(2);
    figures.rows.retain(|row| row.step == "point-query.warm");
    let text = tables(&run(), &figures, PLAIN);
    assert!(text.contains("━━ point-query.warm"), "{text}");
    assert!(text.contains(TESTS), "{text}");
}

#[test]
fn a_failed_warm_up_leaves_its_mark_on_the_first_test() {
    let mut figures = figures(2);
    let rows = &mut figures.rows;
    rows.retain(|row| {
        row.cell.target != "my8040.z11a" || STEPS[..3].iter().any(|(step, ..)| row.step == *step)
    });
    let warm = rows.last_mut().unwrap();
    (warm.status, warm.valid) = (Status::Failed, false);
    warm.reasons = vec!["the server ended".to_string()];
    figures.unfinished.push(UnfinishedCell {
        run: 0,
        cell: record::CellKey::new("my8040.z11a", None, 1, 1),
        status: Some(Status::Failed),
        causes: Vec::new(),
    });
    let text = tables_brief(&run(), &figures, PLAIN);
    assert_eq!(words(&text, "point-query.pre").last(), Some(&"failed"));
    assert!(text.contains("failed: the server ended"), "{text}");
}

/// As many configurations as the field has compared with three tests.
#[test]
fn of_more_targets_than_tests_each_is_a_row() {
    let mut figures = figures(1);
    figures.rows.retain(|row| row.group.as_deref() == Some("write"));
    let once = figures.rows.clone();
    for number in 0..12 {
        figures.rows.extend(once.iter().cloned().map(|mut row| {
            row.cell.target = format!("my8028.c{number}");
            row
        }));
    }
    let text = tables_brief(&run(), &figures, PLAIN);
    let write = between(&text, "write: throughput, queries/s\n", "\n\n");
    assert!(write.starts_with("target"), "{write}");
    assert_eq!(write.lines().count(), 2 + 13, "{write}");
}

#[test]
fn numbers_of_clients_have_tables_of_their_own() {
    let mut figures = figures(2);
    let more = figures.rows.clone().into_iter().map(|mut row| {
        row.cell.clients = 8;
        row
    });
    figures.rows.extend(more.collect::<Vec<_>>());
    let text = overview(&figures);
    for clients in ["1 client", "8 clients"] {
        let table = between(&text, &format!("Throughput of tests, {clients}: queries/s\n"), "\n\n");
        assert_eq!(words(table, "insert").len(), 3, "{table}");
        assert!(
            text.contains(&format!("Cost per query in tests relative to my8028.z11a, {clients}"))
        );
    }
    let report = page(run(), &figures);
    let ids = report.split(" id=\"").skip(1);
    let ids: Vec<&str> = ids.map(|id| id.split('"').next().unwrap()).collect();
    check_once(&report, &ids);
}

#[test]
fn of_dozens_of_tests_the_tables_of_each_are_left_out() {
    let mut figures = figures(2);
    let tests = figures.rows.iter().filter(|row| row.group.is_some() && row.reported);
    let tests: Vec<Row> = tests.cloned().collect();
    for number in 0..3 {
        figures.rows.extend(tests.iter().cloned().map(|mut row| {
            row.step += &format!(".{number}");
            row
        }));
    }
    figures.rows.last_mut().unwrap().seconds = 12.5;
    let text = tables(&run(), &figures, PLAIN);
    // If all lengths are equal, one is shown.
    let lengths = between(&text, "Length of tests in seconds\n", "\n\n");
    assert_eq!(lengths.lines().count(), 2 + 1, "{lengths}");
    assert!(lengths.contains("insert.2         10.0         12.5"), "{lengths}");
    assert!(text.contains("  other tests: 10.0 each\n"), "{text}");
    assert!(text.contains("━━ load") && !text.contains("━━ scan"), "{text}");
    assert!(text.contains("since there are 24 tests: --step NAME"), "{text}");
}

/// Returns the problems and warnings at the end of a run.
fn known(figures: &Figures) -> String {
    let text = tables_brief(&run(), figures, PLAIN);
    let (_, known) = text
        .split_once("Problems and warnings\n")
        .unwrap_or_else(|| panic!("nothing should be known: {text}"));
    // Lines are broken where the terminal ends.
    known.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn scans_of_minutes_keep_three_digits_and_tell_the_rows_that_pass() {
    let mut figures = figures(2);
    for row in figures.rows.iter_mut().filter(|row| row.step == "scan") {
        let rate = if row.cell.target.starts_with("my8040") { 1.0 / 41.0 } else { 1.0 / 34.0 };
        row.metrics.insert("qps", Some(rate));
        row.metrics.insert("krows_sec", Some(rate * 30_000.0));
    }
    let text = tables_brief(&run(), &figures, PLAIN);
    let table = between(&text, TESTS, "\n\n");
    assert_eq!(words(table, "scan "), ["scan", "0.0294", "0.0244"]);
    assert_eq!(words(table, "scan,"), ["scan,", "Krows/s", "882", "732"]);
}

#[test]
fn a_test_with_many_failed_events_is_marked_and_explained() {
    let mut figures = figures(2);
    let row = figures.rows.last_mut().unwrap();
    let op = row.ops.get_mut("event").unwrap();
    (op.count, op.failed) = (1, 14_745);
    row.remarks = vec![Remark::Failures(FailedOperations {
        kind: "event".to_owned(),
        is_in_warm_up: false,
        failed: 14_745,
        all: 14_746,
        classes: vec!["duplicate_key".to_owned()],
    })];
    let text = tables_brief(&run(), &figures, PLAIN);
    let table = between(&text, TESTS, "\n\n");
    assert!(words(table, "insert")[2].ends_with('†'), "{table}");
    assert!(table.contains("† more than 1% of the step's main operations failed"));
    let known = known(&figures);
    let told = "takes less time [step::failures] (my8040.z11a insert: 14745 of 14746 of kind event, duplicate_key)";
    assert!(known.contains("warning: operations failed: ") && known.contains(told), "{known}");
}

#[test]
fn tests_with_a_requested_rate_show_it_next_to_the_achieved_rate() {
    let mut figures = figures(2);
    for row in figures.rows.iter_mut().filter(|row| row.step == "insert") {
        let achieved = if row.cell.target.starts_with("my8040") { 9_000.0 } else { 9_990.0 };
        row.sla = Some(Sla {
            kind: "event".to_owned(),
            role: None,
            target: 10_000.0,
            achieved,
            met: achieved >= 9_500.0,
            history: None,
        });
    }
    let text = tables_brief(&run(), &figures, PLAIN);
    let title = "Rate of events in tests with a requested rate, events/s over all clients\n";
    let rates = between(&text, title, "\n\n");
    assert_eq!(words(rates, "insert"), ["insert", "10,000", "9,990", "9,000*"]);
    assert!(!rates.contains("update-index"), "{rates}");
    let throughput = between(&text, TESTS, "\n\n");
    assert!(words(throughput, "insert")[2].ends_with('*'));
}

#[test]
fn others_on_the_host_are_one_line_whatever_the_number_of_steps_and_one_where_targets_differ() {
    let mut figures = figures(2);
    for row in &mut figures.rows {
        let is_base = row.cell.target.starts_with("my8028");
        let percent = match (is_base, row.step.as_str()) {
            (true, "scan") => 78.0,
            (true, _) => 56.0,
            (false, _) => 50.0,
        };
        row.metrics.insert("others%", Some(percent));
        row.remarks = vec![Remark::OtherPrograms(percent)];
    }
    let known = known(&figures);
    assert_eq!(known.matches("[host::busy]").count(), 1, "{known}");
    assert!(
        known
            .contains("measure again [host::busy] (my8028.z11a scan: 78%; my8028.z11a load: 56%; "),
        "{known}"
    );
    assert!(known.contains("[host::uneven] (scan: my8040.z11a 50%, my8028.z11a 78%)"), "{known}");
    for row in &mut figures.rows {
        row.metrics.insert("others%", Some(2.0));
        row.remarks.clear();
    }
    assert!(!tables_brief(&run(), &figures, PLAIN).contains("Problems and warnings"));
}

#[test]
fn repeats_of_tests_have_a_column_of_each_target() {
    let mut figures = Figures::default();
    for repeat in 1..=3 {
        for mut row in self::figures(2).rows {
            row.cell.repeat = repeat;
            for value in row.metrics.values_mut().flatten() {
                *value *= 1.0 + f64::from(repeat) / 10.0;
            }
            figures.rows.push(row);
        }
    }
    let page = page(run(), &figures);
    let table = between(&page, "id=\"summary-tests\"", "</table>");
    let heads = between(table, "<thead>", "</thead>");
    assert_eq!(heads.matches("median of 3").count(), 2, "{heads}");
    assert_eq!(heads.matches("class=\"n repeat\"").count(), 6, "{heads}");
    // The middle one of 1.1, 1.2 and 1.3 times the speed.
    let row = between(table, ">point-query<", "</tr>");
    assert!(row.contains("data-value=\"65185\""), "{row}");
    assert!(row.contains("65,185") && row.contains("\u{b1}8%"), "{row}");
}
