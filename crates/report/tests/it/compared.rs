//! Comparisons that were never measured: each sort of verdict once.

use analysis::figures::Looks;
use analysis::{
    compare::{
        Compared, ComparedMachines, ComparedStep, Effects, Interval, Pairing, Sample, THROUGHPUT,
        Verdict,
    },
    explain::statement::{
        CaseFacts, Cause, Caveat, CountedCaveat, Detail, Pair, PartOfTime, Statement,
        ThroughputChange,
    },
    explain::{ChangeCause, Direction, Finding, FindingKind},
    figures::{Figures, Row, Sla, UnfinishedCell},
};
use record::{CellRef, ResolvedValue, Run, Status, StepKind};
use report::{
    ComparedRun, Comparison, TableStyle, compared, compared_csv, compared_json, compared_markdown,
    noise_floor,
};

use crate::synthetic::target;
use crate::{PLAIN, WIDE, column};

mod all_steps;

const BASE: &str = "pg15.base";
const TARGETS: [&str; 3] = [BASE, "pg17.base", "pg17.big_wal"];

/// Name, kind, group, throughput of the base.
type Steps = &'static [(&'static str, StepKind, Option<&'static str>, f64)];

const INSERT: Steps = &[
    ("l.i0", StepKind::Load, None, 35_000.0),
    ("l.x", StepKind::Index, None, 1_250_000.0),
    ("l.i1", StepKind::Load, None, 7_200.0),
    ("qr100", StepKind::Query, None, 9_000.0),
    ("qp100", StepKind::Query, None, 11_000.0),
];

const SYSBENCH: Steps = &[
    ("load", StepKind::Load, None, 80_000.0),
    ("point-query", StepKind::Query, Some("point"), 54_321.0),
    ("hot-points", StepKind::Query, Some("point"), 1_234.5),
    ("scan", StepKind::Query, Some("range-1"), 2.5),
];

fn figures(steps: Steps, repeats: u32) -> Figures {
    let mut figures = Figures::default();
    for target in TARGETS {
        let (build, config) = target.split_once('.').unwrap();
        for repeat in 1..=repeats {
            for &(step, kind, group, _) in steps {
                figures.rows.push(Row {
                    cell: record::CellKey::new(target, None, 1, repeat),
                    build: build.into(),
                    config: config.into(),
                    engine: "postgres".into(),
                    workload: "insert".into(),

                    step: step.into(),
                    kind,
                    main_op: Some(if kind == StepKind::Query { "query" } else { "insert" }.into()),
                    group: group.map(str::to_owned),
                    reported: true,
                    status: Status::Complete,
                    valid: true,
                    sla: (step == "qr100").then(|| Sla {
                        kind: "insert".into(),
                        target: 100.0,
                        achieved: 90.0,
                        met: target != "pg17.big_wal",
                        ..Sla::default()
                    }),
                    ..Row::default()
                });
            }
        }
    }
    figures
}

fn run() -> Run {
    Run {
        name: "round-6".into(),
        assay: record::Assay { version: "0.1.0".into(), ..record::Assay::default() },
        status: Status::Complete,
        started_unix_ns: 1_795_287_731_000_000_000,
        targets: TARGETS.map(|name| target(name, "postgres")).to_vec(),
        base: BASE.into(),
        ..Run::default()
    }
}

fn samples(value: f64, repeats: u32) -> Vec<Sample> {
    let sample = |repeat| Sample {
        run: 0,
        repeat,
        // The mean stays what it is.
        value: value * [1.0, 1.02, 1.0 / 1.02][(repeat as usize - 1) % 3],
    };
    (1..=repeats).map(sample).collect()
}

/// Returns a comparison by its ratio, with an interval so wide to both sides.
fn row(
    steps: Steps,
    (target, step, metric, base): (&str, &str, &str, f64),
    (ratio, half, verdict): (f64, f64, Verdict),
    repeats: u32,
) -> ComparedStep {
    let (.., group, _) = steps.iter().find(|known| known.0 == step).unwrap();
    let is_single = repeats == 1;
    let interval = (!is_single).then_some(Interval {
        low: ratio - half,
        high: ratio + half,
        confidence: 0.98,
    });
    ComparedStep {
        cell: record::CellKey::new(target, None, 1, 0),
        workload: "insert".into(),

        step: step.into(),
        group: group.map(str::to_owned),
        metric: metric.into(),
        more_is_better: metric == THROUGHPUT,
        base_values: samples(base, repeats),
        values: samples(base * ratio, repeats),
        ratio: Some(ratio),
        interval,
        equality: interval,
        family_level: (!is_single).then_some(0.02),
        pairing: if is_single { Pairing::Single } else { Pairing::Paired },
        machines: ComparedMachines::default(),
        verdict,
        p_value: (!is_single).then_some(0.25),
        moderated: None,
        spread: (!is_single).then_some(0.0125),
        repeats_needed: (!is_single).then_some(match verdict {
            Verdict::TooNoisy => 14,
            _ => 2,
        }),
        reasons: Vec::new(),
        error_within: None,
        contradicts_turns: false,
        not_borrowed: None,
        looks: Looks::Once,
    }
}

fn comparison_of(rows: Vec<ComparedStep>) -> Compared {
    Compared {
        base: BASE.into(),
        effect: 0.03,
        error_rate: 0.05,
        comparison_count: rows.iter().filter(|row| row.metric == THROUGHPUT).count(),
        rows,
        overall: Vec::new(),
        unfinished: None,
        notes: vec!["the machine of run 2 is not that of run 1".into()],
        profiles: Vec::new(),
        waits: Vec::new(),
        system_calls: Vec::new(),
        plans: Vec::new(),
        work: Vec::new(),
        shown_metrics: Vec::new(),
        requirements: Vec::new(),
        looks: Looks::Once,
    }
}

/// Two targets; one has every kind of verdict.
fn with_repeats() -> Compared {
    use Verdict::{Equal, Faster, Invalid, NotComparable, Slower, TooNoisy};
    let mut rows = Vec::new();
    for (target, verdicts) in [
        (
            TARGETS[1],
            [
                (0.943, 0.02, Slower),
                (1.08, 0.03, Faster),
                (1.002, 0.012, Equal),
                (0.97, 0.08, TooNoisy),
                (1.0, 0.0, Invalid),
            ],
        ),
        (
            TARGETS[2],
            [
                (0.961, 0.03, Slower),
                (0.999, 0.02, Equal),
                (1.01, 0.02, Equal),
                (1.2, 0.05, Faster),
                (1.0, 0.0, NotComparable),
            ],
        ),
    ] {
        for (&(step, .., base), (ratio, half, verdict)) in INSERT.iter().zip(verdicts) {
            let mut of = row(INSERT, (target, step, THROUGHPUT, base), (ratio, half, verdict), 3);
            if matches!(verdict, Invalid | NotComparable) {
                (of.ratio, of.interval) = (None, None);
                of.values.clear();
                of.reasons = vec![match verdict {
                    Invalid => {
                        format!("{target}, repeat 1 is left out: rows of pi1: 9 found, 10 expected")
                    }
                    _ => format!("{target}: not applicable"),
                }];
            }
            if step == "l.i1" && target == TARGETS[1] {
                of.reasons = vec![format!("{target}, repeat 3 is left out: the server ended")];
            }
            rows.push(of);
            let cost = match verdict {
                Slower => (1.2, 0.03, Slower),
                Faster => (0.9, 0.03, Faster),
                verdict => (1.01, 0.05, verdict),
            };
            if !matches!(verdict, Invalid | NotComparable) {
                rows.push(row(INSERT, (target, step, "own_cpu_us_per_op", 20.5), cost, 3));
                rows.push(row(INSERT, (target, step, "cpupq", 41.2), cost, 3));
                rows.push(row(INSERT, (target, step, "wpi", 0.000_2), (1.5, 0.1, Slower), 3));
            }
        }
    }
    comparison_of(rows)
}

fn shown<T>(
    run: &Run,
    figures: &Figures,
    compared: &Compared,
    findings: &[Finding],
    show: impl FnOnce(&Comparison<'_>) -> T,
) -> T {
    let runs = [ComparedRun { name: "results/20261121T190211Z-round-6".into(), run }];
    show(&Comparison {
        run,
        runs: &runs,
        figures,
        compared,
        effects: &Effects::default(),
        findings,
    })
}

fn finding() -> Finding {
    let slower = CaseFacts {
        base: BASE.into(),
        target: TARGETS[1].into(),
        place: "l.i0".into(),
        ratio: 0.94,
        operation: "row".into(),
        ..CaseFacts::default()
    };
    Finding {
        kind: FindingKind::Cpu,
        target: TARGETS[1].into(),
        targets: vec![TARGETS[1].into()],
        base: Some(BASE.into()),
        workload: "insert".into(),
        variant: None,
        clients: None,
        step: Some("l.i0".into()),
        steps: vec!["l.i0".into()],
        cause: Some(ChangeCause {
            kind: FindingKind::Cpu,
            direction: Some(Direction::Slower),
            is_too_short: false,
            is_fsync_count: false,
        }),
        evidence: Vec::new(),
        caveats: vec![CountedCaveat {
            caveat: Caveat::OtherSettings { has_other_version: true, only: None },
            case: slower.clone(),
            count: 1,
            case_count: 1,
        }],
        statement: Statement::Change(ThroughputChange {
            cases: vec![slower],
            cause: Cause::Part(PartOfTime {
                part: FindingKind::Cpu,
                us: Pair { base: 41.2, value: 49.4 },
                share: 0.9,
                has_wait: false,
                detail: Some(Detail::Server),
                settings: Vec::new(),
                others: Vec::new(),
            }),
            fsyncs: None,
            comparison_count: 3,
            differences: Vec::new(),
            is_sure: false,
        }),
        weight: 0.06,
    }
}

#[test]
fn every_verdict_has_its_mark() {
    let (run, figures, of) = (run(), figures(INSERT, 3), with_repeats());
    let text = shown(&run, &figures, &of, &[finding()], |comparison| compared(comparison, PLAIN));
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn a_comparison_says_last_that_the_host_was_busy() {
    let (run, mut figures, of) = (run(), figures(INSERT, 3), with_repeats());
    for row in &mut figures.rows {
        row.metrics.insert("others%", Some(60.0));
    }
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, WIDE));
    let says = "\nAll 45 step results are valid, but other programs used up to 60% of the processors: on an idle machine, smaller differences would show.\n";
    assert!(text.ends_with(says), "{text}");
}

/// The escape sequence of the color.
const YELLOW: &str = "\u{1b}[38;5;11m";
const CYAN: &str = "\u{1b}[38;5;14m";

#[test]
fn a_ratio_stays_next_to_its_cost_on_a_narrow_terminal() {
    let compared = with_repeats();
    for width in 40..=120 {
        let style = TableStyle { width: Some(width), ..PLAIN };
        let text = shown(&run(), &figures(INSERT, 3), &compared, &[], |comparison| {
            report::compared(comparison, style)
        });
        let units: Vec<&str> = text.lines().filter(|line| line.contains("/base")).collect();
        assert!(!units.is_empty(), "{text}");
        for units in units {
            let units: Vec<&str> = units.split_whitespace().collect();
            assert!(units.chunks(2).all(|pair| pair[1] == "/base"), "{text}");
        }
    }
}

#[test]
fn verdicts_have_the_colors_of_better_and_worse() {
    let (run, figures, of) = (run(), figures(INSERT, 3), with_repeats());
    let style = TableStyle { color: true, ..PLAIN };
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, style));
    // Better is cyan, also where it is a lower cost; worse is yellow.
    let line_of = |start: &str| {
        let mut lines = text.lines().filter(|line| line.contains(start));
        lines.next().unwrap().to_owned()
    };
    let figures = [("0.94 (", YELLOW), ("1.08 (", CYAN), ("1.20▲", YELLOW), ("0.90▼", CYAN)];
    for (cost, color) in figures {
        let line = line_of(cost);
        let (before, _) = line.split_once(cost).unwrap();
        assert!(before.trim_end().ends_with(color), "{line:?}");
    }
}

#[test]
fn a_comparison_as_markdown() {
    let (run, figures, of) = (run(), figures(INSERT, 3), with_repeats());
    let text = shown(&run, &figures, &of, &[finding()], compared_markdown);
    insta::assert_snapshot!(text);
    // Every line of a table has as many cells as its head.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = 0;
    for line in text.lines() {
        if line.starts_with('|') {
            head = if head == 0 { cells(line) } else { head };
            assert_eq!(cells(line), head, "{line}");
        } else {
            head = 0;
        }
    }
}

#[test]
fn tests_are_rows_and_targets_columns() {
    let mut rows = Vec::new();
    for target in &TARGETS[1..] {
        for (&(step, .., base), ratio) in SYSBENCH.iter().zip([1.0, 0.83, 0.98, 1.2]) {
            let verdict = match ratio {
                0.83 => Verdict::Slower,
                1.2 => Verdict::Faster,
                _ => Verdict::Equal,
            };
            rows.push(row(SYSBENCH, (target, step, THROUGHPUT, base), (ratio, 0.025, verdict), 5));
            rows.push(row(
                SYSBENCH,
                (target, step, "cpupq", 12.5),
                (1.0 / ratio, 0.025, verdict),
                5,
            ));
        }
    }
    let (run, figures, of) = (run(), figures(SYSBENCH, 5), comparison_of(rows));
    insta::assert_snapshot!(shown(&run, &figures, &of, &[], |it| compared(it, PLAIN)));
}

#[test]
fn single_runs_have_no_interval_and_no_verdict() {
    let mut rows = Vec::new();
    for target in &TARGETS[1..] {
        for (&(step, .., base), ratio) in INSERT.iter().zip([1.0, 0.83, 0.98, 1.2, 1.06]) {
            rows.push(row(
                INSERT,
                (target, step, THROUGHPUT, base),
                (ratio, 0.0, Verdict::Single),
                1,
            ));
            rows.push(row(
                INSERT,
                (target, step, "cpupq", 9.5),
                (1.0 / ratio, 0.0, Verdict::Single),
                1,
            ));
        }
    }
    let (run, figures, of) = (run(), figures(INSERT, 1), comparison_of(rows));
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN));
    insta::assert_snapshot!(text);
    assert!(!text.contains('▲') && !text.contains('▼') && !text.contains("(0."));
}

#[test]
fn lines_of_a_comparison_have_every_figure() {
    let of = with_repeats();
    let (run, figures) = (run(), figures(INSERT, 3));
    let text = shown(&run, &figures, &of, &[], compared_csv);
    assert_eq!(text.lines().count(), 1 + of.rows.len());
    let value = |name: &str| column(&text, name).remove(0);
    for (name, expected) in [
        ("base", BASE),
        ("target", "pg17.base"),
        ("step", "l.i0"),
        ("metric", "throughput"),
        ("unit", "rows/s"),
        ("ratio", "0.943"),
        ("verdict", "slower"),
        ("pairing", "paired"),
        ("base_repeat_count", "3"),
        ("confidence_pct", "98"),
        ("needed_repeat_count", "2"),
        ("reasons", ""),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    let mean: f64 = value("base_mean").parse().unwrap();
    assert!((mean - 35_000.0).abs() < 1e-6, "{mean}");
    assert_eq!(value("base_values").split(' ').count(), 3);
}

#[test]
fn a_target_that_did_not_reach_a_step_is_reported() {
    let (mut run, mut figures, of) = (run(), figures(INSERT, 3), with_repeats());
    run.cells = vec![CellRef::new(BASE, "insert", None, 1, 1)];
    let cell = |target: &str, repeat: u32, causes: &[&str]| UnfinishedCell {
        run: 0,
        cell: record::CellKey::new(target, None, 1, repeat),
        status: (!causes.is_empty()).then_some(Status::Failed),
        causes: causes.iter().map(|&cause| cause.to_owned()).collect(),
    };
    figures.unfinished = vec![
        cell("pg18.base", 1, &["the server did not start", "no such file"]),
        cell("pg18.base", 2, &[]),
        // The reason why a repeat is left out of comparisons is shown there.
        cell(TARGETS[1], 3, &["the server ended"]),
        cell(BASE, 3, &["the server ended"]),
    ];
    let text = shown(&run, &figures, &of, &[], compared_csv);
    assert_eq!(text.lines().count(), 1 + of.rows.len() + 1, "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains(",pg15.base,pg18.base,,insert,,1,,,,"), "{last}");
    assert!(last.contains(",invalid,"), "{last}");
    let reasons =
        "repeat 1 failed: the server did not start: no such file; repeat 2 was never started";
    assert!(last.contains(reasons), "{last}");

    let of =
        Compared { unfinished: Some("the comparison is not finished: 2 missing".into()), ..of };
    for text in [
        shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN)),
        shown(&run, &figures, &of, &[], compared_markdown),
    ] {
        let told = text.find("The comparison is not finished: 2 missing.");
        assert!(told.unwrap() < text.find("The comparison uses").unwrap(), "{text}");
    }
    let json = shown(&run, &figures, &of, &[], compared_json);
    let told = &json["compared"]["notes"][0];
    assert_eq!(told, "the comparison is not finished: 2 missing");
    let unfinished = json["compared"]["unfinished"].as_array().unwrap();
    assert_eq!(unfinished.len(), 4);
    assert_eq!(unfinished[0]["target"], "pg18.base");
    assert_eq!(unfinished[0]["status"], "failed");
    assert!(unfinished[1]["status"].is_null());
}

#[test]
fn own_cpu_has_a_table_of_verdicts_that_says_what_it_could_show() {
    let (run, figures, mut of) = (run(), figures(INSERT, 3), with_repeats());
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN));
    let (_, own) = text.split_once("Own CPU per operation relative to pg15.base").unwrap();
    let line = |step: &str| own.lines().find(|line| line.starts_with(step)).unwrap();
    assert!(line("l.i0").contains("1.20 (1.17-1.23)▲"), "{own}");
    assert!(line("l.x").contains("0.90 (0.87-0.93)▼"), "{own}");
    assert!(line("qp100").ends_with("n/a"), "{own}");
    assert!(own.contains("the smallest change that could be shown here: "), "{own}");
    of.rows.retain(|row| row.metric != "own_cpu_us_per_op");
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN));
    assert!(!text.contains("Own CPU"), "{text}");
}

#[test]
fn scripts_get_what_is_promised() {
    let (run, figures, of) = (run(), figures(INSERT, 3), with_repeats());
    let json = shown(&run, &figures, &of, &[finding()], compared_json);
    let compared = &json["compared"];
    assert_eq!(compared["base"], BASE);
    assert_eq!(compared["comparison_count"], 10);
    assert_eq!(compared["runs"][0]["directory"], "results/20261121T190211Z-round-6");
    let row = &compared["rows"][0];
    assert_eq!(row["verdict"], "slower");
    assert_eq!(row["interval"]["confidence"], 0.98);
    assert_eq!(row["values"][2]["repeat"], 3);
    assert_eq!(json["findings"][0]["kind"], "cpu");
    assert!(json["noise_floor"].is_null());
    let invalid = compared["rows"].as_array().unwrap().iter();
    let invalid: Vec<_> = invalid.filter(|row| row["verdict"] == "invalid").collect();
    assert_eq!(invalid.len(), 1);
    assert!(invalid[0]["ratio"].is_null() && invalid[0]["interval"].is_null());
}

#[test]
fn the_noise_of_a_target_against_itself() {
    let verdicts = [Verdict::Equal, Verdict::Slower, Verdict::TooNoisy];
    let rows = INSERT.iter().zip(verdicts).zip([1.001, 0.96, 1.02]);
    let rows = rows.map(|((&(step, .., base), verdict), ratio)| {
        let mut row = row(INSERT, (TARGETS[1], step, THROUGHPUT, base), (ratio, 0.02, verdict), 5);
        row.values[1].value *= 1.04;
        row
    });
    let of = comparison_of(rows.collect());
    insta::assert_snapshot!(noise_floor(&of, PLAIN));

    let mut run = run();
    run.plan.resolved.push(ResolvedValue {
        key: "against-itself".into(),
        value: "\"pg15.base\"".into(),
        origin: "--set".into(),
    });
    let figures = figures(INSERT, 5);
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN));
    assert!(text.contains("Noise of this machine"), "{text}");
    let json = shown(&run, &figures, &of, &[], compared_json);
    assert_eq!(json["noise_floor"]["shown"], 1);
    assert!(json["noise_floor"]["steps"][0]["target"].is_string());
}

#[test]
fn a_missing_base_and_a_failure_are_reported() {
    let mut of = with_repeats();
    of.rows.retain(|row| row.step != "l.x" && row.step != "qr100");
    let mut figures = figures(INSERT, 1);
    figures.rows.retain(|row| row.step != "qr100" || row.cell.target != BASE);
    for row in &mut figures.rows {
        if row.step == "l.x" && row.cell.target == TARGETS[1] {
            row.status = Status::Failed;
            row.valid = false;
        }
    }
    let run = run();
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, PLAIN));
    let (_, table) = text.split_once("Throughput relative to").unwrap();
    let line = |step: &str| table.lines().find(|line| line.starts_with(step)).unwrap();
    assert!(line("l.x").contains("failed"), "{table}");
    assert!(line("qr100").contains("no base"), "{table}");
}

#[test]
fn where_it_is_too_noisy_to_say_more_repeats_are_told_with_what_they_show() {
    let mut of = with_repeats();
    for row in of.rows.iter_mut().filter(|row| row.metric == THROUGHPUT).take(3) {
        (row.verdict, row.repeats_needed) = (Verdict::TooNoisy, Some(100));
        row.reasons.clear();
    }
    let (run, figures) = (run(), figures(INSERT, 3));
    let text = shown(&run, &figures, &of, &[], |comparison| compared(comparison, WIDE));
    let (_, table) = text.split_once("Throughput relative to").unwrap();
    let note = table
        .lines()
        .find(|line| line.contains("more repeats would show smaller changes"))
        .unwrap_or_else(|| panic!("{text}"));
    // Of a spread of 1.25%, at a level of 2%.
    assert_eq!(
        note.trim(),
        "where it is too noisy to say, more repeats would show smaller changes in the median step: 6.1% with 5, 2.6% with \
         10, 1.5% with 20, 1.0% with 40, instead of 6.8% now (assay run --resume results/20261121T190211Z-round-6 --repeats \
         5); longer steps help as well"
    );
}
