use std::collections::BTreeMap;

use analysis::{
    compare::{
        Compared, ComparedStep, Effects, Interval, Overall, Pairing, Sample, THROUGHPUT, Verdict,
    },
    explain::statement::{
        CaseFacts, Cause, ChangedCost, ChangedTime, HiddenCost, KnownDifferences, Pair,
        ResponseChange, Statement, ThroughputChange, WhyUnexplained,
    },
    explain::{ChangeCause, Direction, Finding, FindingKind},
    figures::{
        ComparedSides, CopiedDatabase, ExactStep, Row, STEADINESS, StartedCell, TYPICAL_CPU,
        TYPICAL_RATE,
    },
};
use record::{CellKey, StepWork};

use super::*;

mod several;

const STEPS: [&str; 7] = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500"];

/// Target, and of each step the ratio with the verdict.
type Target<'a> = (&'a str, &'a [(f64, Verdict)]);

fn row(target: &str, step: &str, ratio: f64, verdict: Verdict) -> ComparedStep {
    let sample = Sample { run: 0, repeat: 1, value: 1.0 };
    let is_single = verdict == Verdict::Single;
    let is_absent = matches!(verdict, Verdict::Invalid | Verdict::NotComparable);
    ComparedStep {
        cell: CellKey::new(target, None, 1, 0),
        step: step.into(),
        metric: THROUGHPUT.into(),
        ratio: (!is_absent).then_some(ratio),
        interval: (!is_single && !is_absent).then_some(Interval {
            low: ratio * 0.95,
            high: ratio * 1.05,
            confidence: 0.98,
        }),
        pairing: if is_single || is_absent { Pairing::Single } else { Pairing::Paired },
        values: vec![sample; if is_single { 1 } else { 5 }],
        verdict,
        ..ComparedStep::default()
    }
}

/// Returns the sentences about some targets against `base`, which all have rows in the figures.
fn text_of(base: &str, targets: &[Target<'_>], cause: Option<ChangeCause>) -> String {
    let mut figures = Figures::default();
    let names = targets.iter().map(|(name, _)| *name);
    for name in std::iter::once(base).chain(names) {
        let (build, config) = name.split_once('.').unwrap_or((name, ""));
        figures.rows.push(Row {
            cell: CellKey::new(name, None, 1, 1),
            build: build.into(),
            config: config.into(),
            ..Row::default()
        });
    }
    let rows = targets.iter().flat_map(|(name, steps)| {
        let steps = STEPS.iter().zip(*steps);
        steps.map(|(step, &(ratio, verdict))| row(name, step, ratio, verdict))
    });
    let compared =
        Compared { base: base.into(), effect: 0.03, rows: rows.collect(), ..Compared::default() };
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    let finding = cause.map(|cause| finding(cause, &names));
    let findings: Vec<Finding> = finding.into_iter().collect();
    said_of(&figures, &compared, &findings)
}

fn cpu(direction: Direction) -> ChangeCause {
    ChangeCause {
        kind: FindingKind::Cpu,
        direction: Some(direction),
        is_too_short: false,
        is_fsync_count: false,
    }
}

/// Returns a finding that explains all steps of some targets.
fn finding(cause: ChangeCause, targets: &[&str]) -> Finding {
    Finding {
        kind: FindingKind::Cpu,
        cause: Some(cause),
        target: String::new(),
        targets: targets.iter().map(|name| (*name).to_owned()).collect(),
        base: None,
        workload: String::new(),
        variant: None,
        clients: None,
        step: None,
        steps: STEPS.map(str::to_owned).to_vec(),
        statement: Statement::Facts(KnownDifferences::default()),
        evidence: Vec::new(),
        caveats: Vec::new(),
        weight: 1.0,
    }
}

fn said_of(figures: &Figures, compared: &Compared, findings: &[Finding]) -> String {
    let answer = Answer::new(figures, compared, &Effects::default(), findings);
    let said = AnswerWriter::new(&answer, figures).passage();
    said.whole()
}

use Verdict::{Equal, Faster, Invalid, Single, Slower, TooNoisy};

#[test]
fn the_largest_change_comes_first_and_a_cause_explains_all() {
    let steps = [(1.05, TooNoisy), (1.56, Faster), (1.57, Faster), (1.0, Equal), (0.9, TooNoisy)];
    assert_eq!(
        text_of("pg15.base", &[("pg17.base", &steps)], Some(cpu(Direction::Faster))),
        "pg17.base is faster than pg15.base in 2 of 5 steps (l.i1 1.57x, l.x 1.56x), slower in none; 2 are too noisy to \
         say, 1 is equal within 3%. Less CPU per operation explains both. Over 5 repeats, pg17.base is 1.49x to 1.65x \
         faster in l.i1."
    );
}

#[test]
fn repeats_from_one_loaded_database_are_said_to_be() {
    let copied = |made_here, repeat| StartedCell {
        cell: CellKey::new("b.x", None, 1, repeat),
        database: Some(CopiedDatabase {
            // Each database that a cell loads itself is another one.
            fingerprint: if made_here {
                format!("of repeat {repeat}")
            } else {
                "of repeat 1".into()
            },
            made_here,
            ..CopiedDatabase::default()
        }),
        ..StartedCell::default()
    };
    let rows = vec![row("b.x", "l.i1", 1.5, Faster)];
    let compared = Compared { base: "a.x".into(), effect: 0.03, rows, ..Compared::default() };
    let said =
        |begun: Vec<StartedCell>| said_of(&Figures { begun, ..Figures::default() }, &compared, &[]);

    let shared = said(vec![copied(true, 1), copied(false, 2)]);
    assert!(shared.contains("Over 5 repeats from one loaded database, b.x is"), "{shared}");
    let each = said(vec![copied(true, 1), copied(true, 2)]);
    assert!(each.contains("Over 5 repeats, b.x is"), "{each}");
}

#[test]
fn the_repeats_beside_the_largest_change_are_its_own() {
    let mut rows = vec![row("b.x", "l.i1", 1.5, Faster), row("b.x", "l.i2", 1.0, Equal)];
    rows[1].values = vec![rows[0].values[0]; 12];
    let compared = Compared { base: "a.x".into(), effect: 0.03, rows, ..Compared::default() };
    let said = said_of(&Figures::default(), &compared, &[]);
    assert!(said.ends_with("Over 5 repeats, b.x is 1.42x to 1.58x faster in l.i1."), "{said}");
}

#[test]
fn targets_are_equal_only_if_all_their_steps_are() {
    let all = [(1.0, Equal), (1.0, Equal)];
    let some = [(1.0, Equal), (1.0, Invalid)];
    let said = text_of("a.x", &[("b.x", &all), ("c.x", &some)], None);
    let outcomes = "2 targets against a.x in 2 steps: b.x is equal within 3%; c.x is equal within 3% in some steps.";
    assert!(said.starts_with(outcomes), "{said}");
}

#[test]
fn what_is_slower_is_so_by_a_factor_above_one() {
    let steps = [(0.003_21, Slower), (1.2, Faster), (1.0, Invalid)];
    assert_eq!(
        text_of("lite.full", &[("lite.off", &steps)], None),
        "lite.off is faster than lite.full in 1 of 3 steps (l.x 1.20x), slower in 1 (l.i0 312x); 1 is not compared. Over \
         5 repeats, lite.off is 297x to 328x slower in l.i0."
    );
    assert_eq!(
        text_of("lite.full", &[("lite.off", &[(0.5, Slower)])], Some(cpu(Direction::Slower))),
        "lite.off is slower than lite.full in the only step (l.i0 2.00x). More CPU per operation explains the change. \
         Over 5 repeats, lite.off is 1.90x to 2.11x slower in l.i0."
    );
}

#[test]
fn without_a_change_that_is_shown_nothing_is_faster() {
    let steps = [(1.5, TooNoisy), (1.0, Equal), (1.0, Equal)];
    assert_eq!(
        text_of("a.x", &[("b.y", &steps)], None),
        "No change is shown between b.y and a.x in 3 steps: 1 is too noisy to say, 2 are equal within 3%. Each \
         target has 5 repeats."
    );
    let targets: [Target<'_>; 4] = [
        ("b.x", &[(1.5, TooNoisy), (1.5, TooNoisy)]),
        ("c.x", &[(1.0, Equal), (1.5, TooNoisy)]),
        ("d.x", &[(1.0, Equal), (1.0, Equal)]),
        ("e.x", &[(1.0, Equal), (1.0, Equal)]),
    ];
    assert_eq!(
        text_of("a.x", &targets, None),
        "4 targets against a.x in 2 steps: d.x and e.x are equal within 3%; b.x is too noisy to say; c.x is equal within \
         3% in some steps and too noisy in others. Each target has 5 repeats."
    );
    let noisy = text_of("a.x", &[targets[0], ("f.x", targets[0].1)], None);
    assert!(noisy.contains("in 2 steps: both are too noisy to say."), "{noisy}");
}

#[test]
fn nobody_reads_that_no_change_is_shown_where_own_cpu_shows_a_small_one() {
    let own_cpu = ComparedStep {
        metric: "own_cpu_us_per_op".into(),
        p_value: Some(0.0001),
        family_level: Some(0.01),
        ..row("b.x", "l.i1", 1.02, Slower)
    };
    let compared = Compared {
        base: "a.x".into(),
        effect: 0.03,
        rows: vec![row("b.x", "l.i1", 1.01, Equal), own_cpu],
        ..Compared::default()
    };
    let said = said_of(&Figures::default(), &compared, &[]);
    assert!(said.starts_with("No change in throughput is shown"), "{said}");
}

#[test]
fn a_cost_that_is_shown_heads_an_answer_that_throughput_does_not_give() {
    let fsyncs = ComparedStep {
        metric: "fsyncs_per_commit".into(),
        p_value: Some(0.0001),
        family_level: Some(0.01),
        ..row("b.x", "l.i1", 0.5, Faster)
    };
    let compared = Compared {
        base: "a.x".into(),
        rows: vec![row("b.x", "l.i1", 1.2, TooNoisy), fsyncs],
        ..Compared::default()
    };
    assert_eq!(
        said_of(&Figures::default(), &compared, &[]),
        "b.x has 0.50x the fsyncs per commit of a.x in l.i1 (0.47x to 0.53x). No change in throughput is shown between \
         b.x and a.x in 1 step: it is too noisy to say. Each target has 5 repeats."
    );
}

#[test]
fn response_times_that_changed_head_the_answer_without_the_cpu_of_the_same_target() {
    let time = ChangedTime {
        metric: "response_mean",
        us: Pair { base: 5_000.0, value: 12_000.0 },
        ratio: 2.4,
        interval: None,
    };
    let speed = ThroughputChange {
        cases: vec![CaseFacts::default()],
        cause: Cause::Unexplained(WhyUnexplained::NoLargePart),
        fsyncs: None,
        comparison_count: 1,
        differences: Vec::new(),
        is_sure: false,
    };
    let response = Finding {
        kind: FindingKind::Response,
        target: "b.x".into(),
        step: Some("pay".into()),
        statement: Statement::Response(ResponseChange { times: vec![time], is_noisy: true, speed }),
        ..finding(cpu(Direction::Slower), &["b.x"])
    };
    let of_cpu = Finding {
        kind: FindingKind::HiddenCost,
        target: "b.x".into(),
        statement: Statement::HiddenCost(HiddenCost::default()),
        ..finding(cpu(Direction::Slower), &["b.x"])
    };

    let compared = Compared {
        base: "a.x".into(),
        rows: vec![row("b.x", "pay", 1.0, TooNoisy)],
        ..Compared::default()
    };
    assert_eq!(
        said_of(&Figures::default(), &compared, &[response, of_cpu]),
        "b.x: response time 2.40x as long in pay, throughput too noisy to say: unexplained. No change in throughput is shown \
         between b.x and a.x in 1 step: it is too noisy to say. Each target has 5 repeats."
    );
}

#[test]
fn what_is_shown_beside_single_steps_heads_the_answer() {
    let noisy = |target: &str| [1.2, 1.3].map(|ratio| row(target, "l.i0", ratio, TooNoisy));
    let mean = |target: &str| Overall {
        compared: row(target, "", 1.25, Faster),
        step_count: 2,
        all_step_count: 2,
    };
    let less = ChangedCost {
        ratio: 0.7,
        interval: None,
        repeat_count: 5,
        case: CaseFacts { operation: "row".into(), ..CaseFacts::default() },
    };
    let cpu = Finding {
        kind: FindingKind::HiddenCost,
        target: "b.x".into(),
        step: Some("l.i0".into()),
        statement: Statement::HiddenCost(HiddenCost {
            costs: vec![less],
            is_noisy: true,
            ..HiddenCost::default()
        }),
        ..finding(cpu(Direction::Faster), &["b.x"])
    };
    let figures = Figures::default();
    let mut compared = Compared {
        base: "a.x".into(),
        rows: noisy("b.x").into(),
        overall: vec![mean("b.x")],
        ..Compared::default()
    };
    assert_eq!(
        said_of(&figures, &compared, std::slice::from_ref(&cpu)),
        "b.x is 1.25x faster than a.x over both steps together (1.19x to 1.31x); its steps have ratios of 1.20 (l.i0) to \
         1.30 (l.i0). b.x: 30% less own CPU per row in l.i0, throughput too noisy to say. No change in throughput is shown \
         between b.x and a.x in 2 steps: both are too noisy to say. Each target has 5 repeats."
    );

    // Of several targets, the heading names them.
    compared.rows.extend(noisy("c.x"));
    compared.overall.push(mean("c.x"));
    assert_eq!(
        said_of(&figures, &compared, std::slice::from_ref(&cpu)),
        "b.x: 30% less own CPU per row in l.i0, throughput too noisy to say. 2 targets against a.x in 2 steps: both are \
         faster over all steps together (up to 1.25x). b.x is 1.25x faster than a.x over both steps together (1.19x to 1.31x); its steps \
         have ratios of 1.20 (l.i0) to 1.30 (l.i0). c.x is 1.25x faster than a.x over both steps together (1.19x to \
         1.31x); its steps have ratios of 1.20 (l.i0) to 1.30 (l.i0). Each target has 5 repeats."
    );
}

#[test]
fn costs_of_a_target_without_a_change_follow_what_another_gains() {
    let cost = ComparedStep {
        metric: "rareqsz".into(),
        p_value: Some(0.0001),
        family_level: Some(0.01),
        ..row("b.x", "l.i0", 0.14, Faster)
    };
    let compared = Compared {
        base: "a.x".into(),
        effect: 0.03,
        rows: vec![row("b.x", "l.i0", 0.98, TooNoisy), row("c.x", "l.i0", 1.2, Faster), cost],
        ..Compared::default()
    };

    assert_eq!(
        said_of(&Figures::default(), &compared, &[]),
        "Of 2 targets against a.x in 1 step, c.x is faster in l.i0 (1.20x). b.x is too noisy to say. \
         b.x has 0.14x the size of a read (rareqsz) of a.x in l.i0 (0.13x to 0.15x). \
         Over 5 repeats, c.x is 1.14x to 1.26x faster in l.i0."
    );
}

#[test]
fn what_typical_turns_show_comes_before_what_all_turns_do_not() {
    let of_metric = |metric: &str, step, ratio, verdict| ComparedStep {
        metric: metric.into(),
        ..row("b.x", step, ratio, verdict)
    };
    let mut compared = Compared {
        base: "a.x".into(),
        effect: 0.03,
        rows: vec![
            row("b.x", "l.i0", 0.98, TooNoisy),
            of_metric(TYPICAL_RATE, "l.i0", 0.8, Slower),
            row("b.x", "qr100", 1.0, TooNoisy),
            of_metric(TYPICAL_RATE, "qr100", 1.0, Equal),
        ],
        ..Compared::default()
    };
    let figures = Figures::default();
    assert_eq!(
        said_of(&figures, &compared, &[]),
        "In a typical turn, b.x is slower than a.x in l.i0 (1.25x), and equal within 3% in 1 other step. Over all turns, stalls \
         included, no change is shown between b.x and a.x in 2 steps: both are too noisy to say. Each target has 5 \
         repeats."
    );

    let cpu = of_metric(TYPICAL_CPU, "qr100", 1.04, Slower);
    let with_cpu =
        Compared { rows: [compared.rows.clone(), vec![cpu]].concat(), ..compared.clone() };
    let said = said_of(&figures, &with_cpu, &[]);
    let sentence =
        "In a typical turn, b.x uses 4.0% more CPU per operation than a.x in qr100. Over all";
    assert!(said.contains(sentence), "{said}");

    // Equal targets of several are one sentence, after what all turns say.
    let mut of_two = compared.clone();
    of_two.rows.retain(|row| row.step == "qr100");
    let others = of_two.rows.clone().into_iter().map(|mut row| {
        row.cell.target = "c.x".to_owned();
        row
    });
    of_two.rows.extend(others);
    assert_eq!(
        said_of(&figures, &of_two, &[]),
        "2 targets against a.x in 1 step: both are too noisy to say. In a typical turn, b.x and c.x are equal to \
         a.x within 3% in 1 step. Each target has 5 repeats."
    );

    // What throughput says need not be said twice, and stalls that explain it are named.
    compared.rows[0].verdict = Slower;
    compared.rows[2].verdict = Equal;
    compared.rows.push(of_metric(STEADINESS, "l.i0", 0.8, Slower));
    assert_eq!(
        said_of(&figures, &compared, &[]),
        "b.x is slower than a.x in 1 of 2 steps (l.i0 1.02x), faster in none; 1 is equal within 3%. Stalls make b.x \
         slower than a.x in l.i0 (1.25x). Over 5 repeats, b.x is 0.93x to 1.03x slower in l.i0."
    );
}

/// MySQL 8.0 was shown to be slower than 5.6 over all steps, and PostgreSQL faster in one step: the
/// answer called 8.0 too noisy to say.
#[test]
fn the_answer_agrees_with_the_row_of_all_steps() {
    let rows = |target: &str, verdicts: [Verdict; 2]| {
        let ratios = [("l.i0", 0.7), ("qr100", 0.87)];
        let steps = ratios.iter().zip(verdicts);
        steps.map(|((step, ratio), verdict)| row(target, step, *ratio, verdict)).collect::<Vec<_>>()
    };
    let mut compared = Compared {
        base: "my56.files".into(),
        rows: rows("my80.capacity", [TooNoisy; 2]),
        overall: vec![Overall {
            compared: row("my80.capacity", "", 0.78, Slower),
            step_count: 2,
            all_step_count: 3,
        }],
        ..Compared::default()
    };
    compared.rows.push(row("pg15.b", "l.i0", 2.0, Faster));
    compared.rows.push(row("pg15.b", "qr100", 1.0, TooNoisy));

    assert_eq!(
        said_of(&Figures::default(), &compared, &[]),
        "Of 2 targets against my56.files in 2 steps, pg15.b is faster in l.i0 (2.00x). my80.capacity is 1.28x slower than my56.files over \
         2 of 3 steps together (1.22x to 1.35x); its steps have ratios of 0.70 (l.i0) to 0.87 (qr100). Over 5 repeats, \
         pg15.b is 1.90x to 2.10x faster in l.i0."
    );

    // A step that is shown says more than the mean.
    compared.rows[0].verdict = Slower;
    let said = said_of(&Figures::default(), &compared, &[]);
    assert!(!said.contains("together"), "{said}");
}

#[test]
fn one_run_shows_nothing() {
    let steps = [(0.83, Single), (1.2, Single), (1.0, Invalid)];
    assert_eq!(
        text_of("a.x", &[("b.x", &steps)], None),
        "b.x had 0.83x to 1.20x the throughput of a.x in 2 steps, measured once: one run cannot show a change; 1 is not \
         compared. `assay run --resume RUN --repeats 5` adds the repeats that verdicts need."
    );
    let answer = text_of("a.x", &[("b.x", &steps[..1]), ("c.x", &steps[..1])], None);
    let first = "2 targets had 0.83x the throughput of a.x in 1 step, measured once: one run cannot show a change.";
    assert!(answer.starts_with(first), "{answer}");
}

#[test]
fn runs_that_are_compared_with_each_other_get_no_advice_to_repeat_one_of_them() {
    let compared = Compared {
        base: "a.x@1".into(),
        rows: vec![row("a.x@2", "l.i0", 0.83, Single)],
        ..Compared::default()
    };
    let of_runs = Figures { sides: ComparedSides::Runs, ..Figures::default() };
    let said = said_of(&of_runs, &compared, &[]);
    assert!(said.contains("measured once") && !said.contains("--repeats"), "{said}");
    let said = said_of(&Figures::default(), &compared, &[]);
    assert!(said.contains("--repeats 5"), "{said}");
}

#[test]
fn targets_that_were_not_measured_do_not_count() {
    let once: &[(f64, Verdict)] = &[(0.83, Single), (1.2, Single)];
    let none: &[(f64, Verdict)] = &[(1.0, Invalid), (1.0, Invalid)];
    let answer = text_of("a.x", &[("b.x", once), ("c.x", once), ("d.x", none)], None);
    assert!(answer.starts_with("2 targets had 0.83x to 1.20x"), "{answer}");

    let noisy: &[(f64, Verdict)] = &[(1.5, TooNoisy), (1.5, TooNoisy)];
    let answer = text_of("a.x", &[("b.x", noisy), ("d.x", none)], None);
    assert!(answer.ends_with(" Each compared step has 5 repeats."), "{answer}");
}

#[test]
fn what_has_no_other_target_or_no_base_is_not_compared() {
    assert_eq!(
        text_of("a.x", &[], None),
        "a.x is the only target that was measured: there is nothing to compare it with."
    );
    assert_eq!(
        text_of("run 1", &[("run 2", &[(1.0, Invalid), (1.0, Invalid)])], None),
        "run 2 is not compared with run 1: none of its 2 steps is valid and complete on both sides."
    );
    let nothing = said_of(&Figures::default(), &Compared::default(), &[]);
    assert_eq!(nothing, "Nothing was measured.");

    // Exact cells alone have no rows.
    let exact = ExactStep {
        row: Row { cell: CellKey::new("a.x", None, 1, 1), ..Row::default() },
        work: StepWork::default(),
        graphs: BTreeMap::new(),
    };
    let figures = Figures { exact: vec![exact], ..Figures::default() };
    assert_eq!(
        said_of(&figures, &Compared::default(), &[]),
        "a.x is the only target whose work was counted: there is nothing to compare it with."
    );
}
