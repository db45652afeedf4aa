//! Details of a cause from profiles, the engine and exact work, and differences in cost.

use analysis::compare::{CostDifference, NamedFunction, StateDifference};
use analysis::explain::Cost;
use analysis::explain::statement::{
    ChangedPlan, ChangedTime, Conflict, ConflictCount, CostGap, CostGaps, FsyncCount, PartShare,
    ProfiledFunction, ResponseChange,
};
use words::WaitView;

use super::*;

fn part(part: FindingKind, detail: Option<Detail>) -> Cause {
    Cause::Part(PartOfTime {
        part,
        us: pair(9.2, 17.0),
        share: 0.93,
        has_wait: false,
        detail,
        settings: Vec::new(),
        others: Vec::new(),
    })
}

/// Adds fsyncs that a setting adds to a finding about CPU.
fn with_fsyncs(mut finding: Finding) -> Finding {
    let Statement::Change(change) = &mut finding.statement else {
        panic!("{finding:?}");
    };
    change.fsyncs = Some(FsyncCount { metric: "fsyncs_per_commit", count: pair(1.09, 2.43) });
    finding
}

/// Returns fsyncs that a busy host makes dear: after each, a thread waits for a processor.
fn mostly_processor_wait() -> Cause {
    Cause::FsyncsPerCommit {
        metric: "fsyncs_per_commit",
        count: pair(2.7, 0.01),
        settings: vec![setting("sync_binlog", "1", Some("0"))],
        waiting: Some(0.11),
        larger: Some(PartShare { part: FindingKind::ProcessorWait, share: 0.87 }),
    }
}

fn changed(cause: Cause, case: CaseFacts) -> Finding {
    change(cause, &[case], Vec::new())
}

/// Returns changes of throughput with all that may support a cause.
fn supported() -> Vec<Finding> {
    let wait = StateDifference {
        view: WaitView::Engine,
        name: "IO:WALSync".to_owned(),
        time: CostDifference {
            base_us: 2.0,
            target_us: 150.0,
            difference_us: 148.0,
            ..CostDifference::default()
        },
    };
    let plan = |other_count| ChangedPlan {
        statement: "select c from t where id in (1, 2)".to_owned(),
        base: "Seq Scan on t".to_owned(),
        target: "Index Scan on t".to_owned(),
        other_count,
    };
    let of_process = |names: &[&str]| CaseFacts {
        without_threads: names.iter().map(|&name| name.to_owned()).collect(),
        server_cpu_us: Some(pair(8.0, 15.8)),
        function: Some(named_function(1.0, None)),
        ..slower("l.i0")
    };
    let with_function = |difference_us, caller| CaseFacts {
        function: Some(named_function(difference_us, caller)),
        wait: Some(wait.clone()),
        ..slower("q100")
    };
    let with_wait = CaseFacts { wait: Some(wait.clone()), ..slower("q100") };
    let with_plan = |other_count| CaseFacts { plan: Some(plan(other_count)), ..slower("q100") };

    let cpu = || part(FindingKind::Cpu, Some(Detail::Server));
    let process_cpu = || part(FindingKind::Cpu, Some(Detail::WholeProcess));
    let with_own_cpu = CaseFacts { own_cpu_ratio: Some(1.5), ..slower("l.i0") };
    vec![
        changed(cpu(), with_function(19.4, Some("plan"))),
        changed(cpu(), with_function(-19.4, None)),
        changed(process_cpu(), of_process(&["a.c"])),
        changed(process_cpu(), of_process(&["a.c", "b.c"])),
        changed(part(FindingKind::Fsyncs, None), with_wait.clone()),
        changed(mostly_processor_wait(), slower("insert")),
        changed(part(FindingKind::HostBusy, None), with_wait.clone()),
        changed(part(FindingKind::Reads, None), with_plan(0)),
        changed(part(FindingKind::Reads, None), with_plan(2)),
        changed(Cause::Unexplained(WhyUnexplained::NotMeasured), with_own_cpu.clone()),
        with_fsyncs(changed(Cause::Unexplained(WhyUnexplained::NotShown), with_own_cpu)),
        with_fsyncs(changed(cpu(), slower("q100"))),
    ]
}

/// Returns changes of own CPU where throughput shows none.
fn hidden_costs() -> Vec<Finding> {
    let of_process = CaseFacts {
        without_threads: vec!["a.c".to_owned()],
        server_cpu_us: Some(pair(8.0, 15.8)),
        function: Some(named_function(1.0, None)),
        ..slower("l.i0")
    };
    let hidden = HiddenCost {
        costs: vec![ChangedCost {
            ratio: 1.85,
            interval: Some(Interval { low: 1.8, high: 1.9, confidence: 0.95 }),
            repeat_count: 5,
            case: of_process,
        }],
        ..HiddenCost::default()
    };
    let of_fsyncs = HiddenCost {
        costs: vec![ChangedCost { ratio: 0.24, case: slower("l.i0"), ..hidden.costs[0].clone() }],
        is_noisy: true,
        fsyncs: Some(FsyncCount { metric: "fsyncs_per_commit", count: pair(2.0, 0.000_047) }),
        ..HiddenCost::default()
    };
    let saved = HiddenCost {
        costs: [("insert", 0.42), ("load", 0.76)]
            .map(|(step, ratio)| ChangedCost {
                ratio,
                interval: None,
                case: slower(step),
                ..hidden.costs[0].clone()
            })
            .to_vec(),
        is_noisy: true,
        fsyncs: Some(FsyncCount { metric: "fsyncs_per_commit", count: pair(2.43, 1.09) }),
        ..HiddenCost::default()
    };
    let of_reads = HiddenCost {
        costs: vec![ChangedCost { case: slower("q100"), ..hidden.costs[0].clone() }],
        is_noisy: true,
        read_kb: Some(pair(349.0, 50.5)),
        ..HiddenCost::default()
    };

    vec![
        finding(Statement::HiddenCost(hidden), &[slower("l.i0")]),
        finding(Statement::HiddenCost(of_fsyncs), &[slower("l.i0")]),
        finding(Statement::HiddenCost(saved), &[slower("insert"), slower("load")]),
        finding(Statement::HiddenCost(of_reads), &[slower("q100")]),
    ]
}

fn named_function(difference_us: f64, caller: Option<&str>) -> NamedFunction {
    NamedFunction { name: "range".to_owned(), caller: caller.map(str::to_owned), difference_us }
}

/// Returns changes by conflicts between operations, and those with larger indexes.
fn with_conflicts_or_indexes() -> Vec<Finding> {
    let cpu = || part(FindingKind::Cpu, Some(Detail::Server));
    let conflict = |conflict, base, value| ConflictCount { conflict, count: pair(base, value) };
    let retries = conflict(Conflict::Retries, 0.0, 0.31);
    let lock_waits = conflict(Conflict::LockWaits, 0.2, 1.7);
    let deadlocks = conflict(Conflict::Deadlocks, 0.0001, 0.012);
    let with_conflicts = |conflicts: &[ConflictCount]| CaseFacts {
        conflicts: conflicts.to_vec(),
        operation: "transaction".to_owned(),
        ..slower("transfer")
    };
    let with_indexes =
        |base, value| CaseFacts { index_gb: Some(pair(base, value)), ..slower("q100") };
    let of_retries = HiddenCost {
        costs: vec![ChangedCost {
            ratio: 1.85,
            interval: Some(Interval { low: 1.8, high: 1.9, confidence: 0.95 }),
            repeat_count: 5,
            case: with_conflicts(&[]),
        }],
        conflicts: vec![retries, deadlocks],
        retries: Some(retries.count),
        ..HiddenCost::default()
    };
    let retried = || Cause::Retries(RetryCause { count: retries.count, share: 0.62 });
    let on_data = || part(FindingKind::Locks, Some(Detail::LocksOnData));

    vec![
        changed(retried(), with_conflicts(&[retries, lock_waits, deadlocks])),
        changed(on_data(), with_conflicts(&[retries, lock_waits])),
        changed(on_data(), with_conflicts(&[deadlocks])),
        changed(cpu(), with_conflicts(&[retries])),
        changed(part(FindingKind::Reads, Some(Detail::BytesChanged)), with_indexes(0.43, 0.91)),
        changed(cpu(), with_indexes(0.43, 0.91)),
        finding(Statement::HiddenCost(of_retries), &[slower("transfer")]),
    ]
}

/// Returns changes of response times at the same throughput.
fn of_responses() -> Vec<Finding> {
    let time = |metric, [base, value]: [f64; 2], [low, high]: [f64; 2]| ChangedTime {
        metric,
        us: pair(base, value),
        ratio: value / base,
        interval: Some(Interval { low, high, confidence: 0.95 }),
    };
    let response = |times: &[ChangedTime], cause| {
        let case = CaseFacts { operation: "transaction".to_owned(), ..slower("transfer") };
        let speed = ThroughputChange {
            cases: vec![case],
            cause,
            fsyncs: None,
            comparison_count: 1,
            differences: Vec::new(),
            is_sure: false,
        };
        let statement =
            Statement::Response(ResponseChange { times: times.to_vec(), is_noisy: false, speed });
        finding(statement, &[slower("transfer")])
    };
    let mean = time("response_mean", [5_000.0, 12_000.0], [2.1, 2.7]);
    let p99 = time("response_p99", [11_000.0, 40_300.0], [3.1, 4.2]);
    vec![
        response(&[mean, p99], part(FindingKind::Locks, Some(Detail::LocksOnData))),
        response(&[p99], Cause::Unexplained(WhyUnexplained::NotShown)),
    ]
}

/// Returns a change in two steps of one variant, which the title names.
fn of_variant() -> Finding {
    let of_small = |step| CaseFacts {
        place: format!("{step} of small"),
        named_variant: Some("small".to_owned()),
        ..slower(step)
    };
    let shift = part(FindingKind::Locks, None);
    Finding {
        variant: Some("small".to_owned()),
        ..change(shift, &[of_small("q100"), of_small("q500")], Vec::new())
    }
}

/// Returns exact work with a function, and with what a profile names.
fn work() -> Vec<Finding> {
    let function = |difference| ChangedFunction {
        name: "find".to_owned(),
        difference,
        path: vec!["serve".to_owned()],
        ..ChangedFunction::default()
    };
    let opposite = ChangedFunction { name: "copy".to_owned(), ..function(-7_000.0) };
    let profiled = |name: &str, is_same| Some(ProfiledFunction { name: name.to_owned(), is_same });
    let step = |function, opposite, profiled| StepWitnesses {
        agreement: Agreement::Certain,
        step: "q100".to_owned(),
        change: 0.1667,
        base_instructions: 60_005.0,
        target_instructions: 70_006.0,
        floor: 0.000_171,
        shown_from: 0.005,
        ratio: Some(1.0 / 1.2),
        interval: None,
        other_time: OtherTime::Either,
        function,
        opposite,
        profiled,
    };
    let steps = [
        step(None, None, None),
        step(Some(function(10_001.0)), None, profiled("find", true)),
        step(Some(function(-10_001.0)), None, profiled("sort", false)),
        step(Some(function(10_001.0)), Some(opposite), None),
    ];
    steps.map(|step| finding(Statement::Work(vec![step]), &[slower("q100")])).into()
}

/// Returns large differences in each cost, of targets that were measured once.
fn gaps() -> Vec<CostGaps> {
    let gap = |cost, metric, figures, case| CostGap { case, cost, metric, figures, size: 1.0 };
    let once = |target: &str, ratio| case(target, "q100", ratio, [1.0, 1.0]);
    let costs = [
        (Cost::Cpu, "own_cpu_us_per_op", pair(80.0, 392.0)),
        (Cost::Reads, "rpq", pair(0.028, 8.12)),
        (Cost::Reads, "own_read_kb_per_op", pair(0.1, 16.0)),
        (Cost::Writes, "own_write_kb_per_op", pair(40.0, 16.0)),
        (Cost::Fsyncs, "fsyncs_per_commit", pair(0.01, 1.01)),
    ];

    let mut gaps = Vec::new();
    for (cost, metric, figures) in costs {
        let first = gap(cost, metric, figures, once("b.c", 0.075));
        gaps.push(CostGaps { gaps: vec![first.clone()] });
        let other = gap(cost, metric, figures, once("c.c", 12.3));
        gaps.push(CostGaps { gaps: vec![first, other] });
    }
    gaps
}

#[test]
fn what_supports_a_cause_reads_like_this() {
    let mut page = String::new();
    let findings = supported().into_iter().chain(hidden_costs()).chain(with_conflicts_or_indexes());
    for finding in findings.chain(of_responses()).chain([of_variant()]).chain(work()) {
        add_to(&mut page, &finding);
    }
    for of_cost in gaps() {
        writeln!(page, "- {}", gap::sentence(&of_cost)).unwrap();
    }
    insta::assert_snapshot!(page);
}

#[test]
fn background_cpu_that_changed_by_more_than_own_cpu_has_a_sentence() {
    let case = CaseFacts { background_cpu_us: Some(pair(8.81, 1.44)), ..faster("q100") };
    let text = Wording::of(&changed(part(FindingKind::Cpu, None), case)).text();
    let expected = "Background CPU, of the engine's other threads, changed by more time per query than own CPU: 8.81 -> 1.44 us, 84% less.";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_figures_that_a_title_names_follow_throughput_even_if_they_changed_little() {
    let figure = |name: &str, unit: &str, value: f64, is_cause: bool| Evidence {
        name: name.to_owned(),
        unit: unit.to_owned(),
        base: Some(100.0),
        value: Some(value),
        ratio: Some(value / 100.0),
        is_noise: false,
        is_cause,
    };
    let evidence = [
        figure("throughput", "/s", 110.0, false),
        figure("waiting for a processor", "us/op", 60.0, false),
        figure("response time, mean", "us", 90.0, true),
        figure("response time, p99", "us", 80.0, true),
        figure("own CPU", "us/op", 92.0, true),
        figure("background CPU", "us/op", 20.0, true),
    ];
    let names: Vec<&str> =
        by_importance(&evidence).into_iter().map(|shown| shown.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "throughput",
            "response time, mean",
            "own CPU",
            "background CPU",
            "waiting for a processor",
            "response time, p99",
        ]
    );
}
