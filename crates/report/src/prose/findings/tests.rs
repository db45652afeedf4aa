//! One page with the words of all findings and caveats. Tests of `analysis` assert the values behind
//! them.

mod details;
mod own_cpu;

use std::collections::BTreeSet;
use std::fmt::Write;

use analysis::compare::{
    ChangedCalls, ChangedFunction, InitialTree, Interval, TreeDifference, VarianceShare,
};
use analysis::explain::FindingKind;
use analysis::explain::statement::{
    Agreement, AtFloor, AtFloorStep, BusyClients, CaseFacts, Cause, Caveat, ChangedCost,
    ChangedSetting, CountedCaveat, Detail, Fact, FloorRequests, HiddenCost, InheritedDebt,
    KnownDifferences, LargeReadAhead, LevelShift, MachineShare, MachineVariance, MissedRate,
    MissedRates, NoEffect, OtherBuild, OtherTime, Pair, PartOfTime, RetryCause, SequencedStep,
    SharedDifference, StallReason, Statement, StepWitnesses, SwingingTarget, TargetDifference,
    ThroughputChange, UnfairStep, WhyUnexplained,
};
use analysis::figures::swing::{InStep, Source, Swing};
use analysis::figures::{ConcurrentChange, FloorRate, Shift, Stall};
use analysis::settings::{Difference, DifferenceKind};
use words::OpRole;

use super::*;

/// Returns a target that is slower than `a.c`.
fn slower(step: &str) -> CaseFacts {
    case("b.c", step, 1.0 / 1.2, [1.0 / 1.207, 1.0 / 1.192])
}

/// Returns a target that is faster than `a.c`.
fn faster(step: &str) -> CaseFacts {
    case("c.c", step, 1.199, [1.196, 1.201])
}

fn case(target: &str, step: &str, ratio: f64, [low, high]: [f64; 2]) -> CaseFacts {
    CaseFacts {
        base: "a.c".to_owned(),
        target: target.to_owned(),
        who: target.to_owned(),
        step: step.to_owned(),
        place: step.to_owned(),
        clients: 4,
        ratio,
        interval: Some(Interval { low, high, confidence: 0.95 }),
        repeat_count: 5,
        operation: "query".to_owned(),
        rate_unit: "queries/s".to_owned(),
        ..CaseFacts::default()
    }
}

fn pair(base: f64, value: f64) -> Pair {
    Pair { base, value }
}

fn setting(name: &str, a: &str, b: Option<&str>) -> Difference {
    Difference {
        name: name.to_owned(),
        a: Some(a.to_owned()),
        b: b.map(str::to_owned),
        mark: DifferenceKind::Declared,
        role: None,
    }
}

/// Returns settings that differ by default.
fn implicit_settings() -> Vec<Difference> {
    let settings = [("log_bin", "OFF", "ON"), ("sync_binlog", "0", "1")];
    let implicit = settings.map(|(name, a, b)| Difference {
        mark: DifferenceKind::Undeclared,
        ..setting(name, a, Some(b))
    });
    implicit.into()
}

#[expect(clippy::too_many_lines, reason = "a list of values, one after the other")]
fn all_causes_of_changes() -> Vec<Cause> {
    use FindingKind::{
        Cpu, Fsyncs, Handover, HostBusy, Locks, ProcessorWait, Reads, Unexplained, Writes,
    };
    let synchronous = || vec![setting("synchronous_commit", "off", Some("on"))];
    let fsyncs = |metric, base, value, waiting| Cause::FsyncsPerCommit {
        metric,
        count: pair(base, value),
        settings: synchronous(),
        waiting,
        larger: None,
    };
    let changed = |part, detail| PartOfTime {
        part,
        us: pair(95.0, 115.0),
        share: 0.75,
        has_wait: false,
        detail,
        settings: Vec::new(),
        others: Vec::new(),
    };
    let expected = |part, name| PartOfTime {
        settings: vec![setting(name, "1", Some("2"))],
        ..changed(part, None)
    };
    let with_others = PartOfTime {
        share: 1.4,
        has_wait: true,
        others: vec![Reads, Writes],
        ..changed(Cpu, Some(Detail::Client))
    };
    let parts = [
        changed(Cpu, Some(Detail::Server)),
        with_others,
        changed(Cpu, Some(Detail::ClientThreads)),
        changed(Cpu, Some(Detail::WholeProcess)),
        changed(ProcessorWait, None),
        changed(ProcessorWait, Some(Detail::NoLimit)),
        changed(HostBusy, None),
        changed(Reads, Some(Detail::BytesChanged)),
        changed(Reads, Some(Detail::BytesUnchanged)),
        expected(Reads, "shared_buffers"),
        changed(Writes, Some(Detail::BytesChanged)),
        changed(Writes, Some(Detail::BytesUnchanged)),
        changed(Fsyncs, None),
        expected(Fsyncs, "synchronous"),
        changed(Locks, None),
        changed(Locks, Some(Detail::SharedFsyncs)),
        changed(Locks, Some(Detail::LocksOnData)),
        changed(Handover, None),
        changed(Unexplained, None),
    ];
    let concurrent = vec![ConcurrentChange {
        name: "disk_write_bytes".to_owned(),
        ..ConcurrentChange::default()
    }];
    let stalls = |reason| Cause::WriteStalls { percent: pair(9.0, 25.9), share: 0.96, reason };
    let shift = |matches_before, is_of_base| {
        Cause::LevelShift(LevelShift {
            is_of_base,
            shift: Shift {
                second: 50,
                before: 30_100.0,
                after: 18_000.0,
                concurrent_changes: concurrent.clone(),
            },
            other_rate: 30_000.0,
            matches_before,
        })
    };
    let mut causes = vec![
        Cause::BothMissedWrites,
        fsyncs("log_fsyncs_per_commit", 0.008, 0.99, Some(0.9)),
        fsyncs("fsyncs_per_commit", 1.0, 0.01, None),
        fsyncs("binlog_syncs_per_commit", 0.3, 3.2, Some(1.0)),
        fsyncs("data_fsyncs_per_commit", 0.3, 3.2, Some(1.0)),
        Cause::FsyncsPerCommit {
            metric: "fsyncs_per_commit",
            count: pair(0.025, 1.05),
            settings: [synchronous(), implicit_settings()].concat(),
            waiting: None,
            larger: None,
        },
        stalls(None),
        stalls(Some(StallReason {
            limit: "memtable-limit",
            kind: "stops",
            count: pair(10.0, 104.0),
        })),
        Cause::Standstill {
            percent: pair(0.0, 20.0),
            share: 0.5,
            longest: Some(Stall {
                from_second: 31,
                seconds: 20,
                concurrent_changes: concurrent.clone(),
                ..Stall::default()
            }),
        },
        shift(true, false),
        shift(false, true),
        Cause::Retries(RetryCause { count: pair(0.02, 0.31), share: 0.62 }),
        Cause::Unexplained(WhyUnexplained::NotMeasured),
        Cause::Unexplained(WhyUnexplained::TooShort),
        Cause::Unexplained(WhyUnexplained::NotShown),
        Cause::Unexplained(WhyUnexplained::NoLargePart),
    ];
    causes.extend(parts.map(Cause::Part));
    causes
}

fn all_differences() -> Vec<TargetDifference> {
    let known = |build, declared: &[Difference], undeclared| TargetDifference::Known {
        build,
        declared: declared.to_vec(),
        implicit: Vec::new(),
        undeclared,
        undeclared_name: None,
    };
    let with_implicit = |build, declared: &[Difference], undeclared| TargetDifference::Known {
        build,
        declared: declared.to_vec(),
        implicit: implicit_settings(),
        undeclared,
        undeclared_name: None,
    };
    let build = |has_other_version, only_base, only_target| {
        Some(OtherBuild {
            base: "15.3".to_owned(),
            target: "17.2".to_owned(),
            has_other_version,
            only_base,
            only_target,
        })
    };
    let settings = [setting("jit", "on", Some("off")), setting("fsync", "on", None)];
    let jit = &settings[..1];
    let (base, target) = ("sqlite 3.46".to_owned(), "postgres 17.2".to_owned());
    vec![
        TargetDifference::Unknown(None),
        TargetDifference::Unknown(Some(("15.3".to_owned(), "17.2".to_owned()))),
        TargetDifference::Engines { base, target },
        known(None, &[], 0),
        known(None, jit, 0),
        known(None, jit, 1),
        known(None, &settings, 2),
        known(None, &[], 3),
        known(build(true, 7, 33), &[], 0),
        known(build(false, 0, 1), &[], 0),
        known(build(true, 1, 2), &settings, 4),
        with_implicit(build(true, 7, 33), &[], 0),
        with_implicit(build(true, 7, 33), &[], 70),
        with_implicit(build(true, 1, 2), &settings, 4),
        with_implicit(None, jit, 1),
    ]
}

fn all_caveats() -> Vec<Caveat> {
    let tree = |first_level_files| InitialTree { first_level_files, levels: 4.0 };
    let trees = TreeDifference { base: tree(0.0), target: tree(3.0) };
    let read_ahead = |of_base, of_target, read_kb| {
        Caveat::ReadAhead(LargeReadAhead {
            of_base,
            of_target,
            setting: "compaction_readahead_size".to_owned(),
            kb: 2048.0,
            max_sectors_kb: 128.0,
            read_kb,
        })
    };
    let busy_host = |others, waiting| Caveat::BusyHost { others, waiting };
    let codes = |codes: &[&str]| codes.iter().map(|&code| code.to_owned()).collect();
    vec![
        Caveat::WideBase { low: 28_000.0, high: 35_000.0 },
        Caveat::OtherRuns,
        Caveat::NoTurns,
        Caveat::NothingDiffers,
        Caveat::OneConnection,
        Caveat::BusyClient { share: Some(0.94) },
        Caveat::BusyClient { share: None },
        Caveat::BusyClientHost,
        Caveat::LargeClient,
        Caveat::MissedWrites { is_base: true },
        Caveat::MissedWrites { is_base: false },
        Caveat::Debt(InheritedDebt {
            step: "l.i1".to_owned(),
            what: "dead rows",
            left: pair(200_000.0, 5_000_000.0),
            could_be_alone: true,
        }),
        Caveat::Trees(trees),
        busy_host(Some(49.0), None),
        busy_host(Some(49.0), Some(31.0)),
        busy_host(None, None),
        Caveat::Steal(pair(0.0, 1.96)),
        Caveat::Frequency(pair(3400.0, 2720.0)),
        Caveat::Frequency(pair(2720.0, 3400.0)),
        Caveat::FsyncBefore(pair(180.0, 900.0)),
        read_ahead(true, true, None),
        read_ahead(true, false, Some(pair(80.0, 20.0))),
        read_ahead(false, true, None),
        Caveat::ReadSizes { kb: pair(80.0, 20.0), max_sectors_kb: 128.0, read_ahead_kb: 256.0 },
        Caveat::Swap(pair(0.0, 25_000.0)),
        Caveat::MemoryPressure(pair(0.0, 20.0)),
        Caveat::OtherEngines,
        Caveat::OtherSettings { has_other_version: true, only: None },
        Caveat::OtherSettings { has_other_version: false, only: None },
        Caveat::OtherSettings { has_other_version: true, only: Some("jit".to_owned()) },
        Caveat::SeveralSettings,
        Caveat::Warnings {
            base: codes(&["settle::not-over"]),
            target: codes(&["client::late", "settle::not-over"]),
        },
    ]
}

/// Returns the findings that are not about a change of throughput.
#[expect(clippy::too_many_lines, reason = "a list of values, one after the other")]
fn all_others(cases: &[CaseFacts]) -> Vec<Statement> {
    let case = &cases[0];
    let jit = || setting("jit", "on", Some("off"));
    let unfair = |unfair_count, repeat_count| {
        Statement::Unfair(UnfairStep {
            worst: "b.c".to_owned(),
            percent: 317.4,
            repeat_count,
            unfair_count,
            target_count: 15,
        })
    };
    let at_floor = |requests, count: usize, drift| {
        let step = |percent, commits_per_fsync| AtFloorStep {
            who: "b.c".to_owned(),
            step: "q100".to_owned(),
            percent,
            floor: FloorRate { per_s: 512.0, drift },
            clients: 4,
            read_kb: Some(8.2),
            commits_per_fsync,
        };
        let steps = [step(96.0, Some(1.0)), step(88.0, Some(3.4)), step(81.0, None)];
        Statement::AtFloor(AtFloor { requests, steps: steps[3 - count..].to_vec() })
    };
    let swings = all_swings();
    let swinging = |swings: &[Swing]| {
        let targets = ["b.c", "c.c"].into_iter().zip(swings).map(|(who, swing)| SwingingTarget {
            who: who.to_owned(),
            swing: swing.clone(),
            swinging_repeats: 2,
            repeat_count: swings.len(),
        });
        Statement::Swings(targets.collect())
    };
    let missed = |role, who: &[&str], reached_by: &[&str]| {
        let missed = who.iter().map(|&who| MissedRate {
            who: who.to_owned(),
            step: "q100".to_owned(),
            role,
            requested: 8000.0,
            achieved: 6950.0,
            missed_repeats: 4,
            repeat_count: 5,
        });
        let reached_by = reached_by.iter().map(|&target| target.to_owned());
        Statement::SlaMissed(MissedRates {
            missed: missed.collect(),
            reached_by: reached_by.collect(),
        })
    };
    let costs = |count: usize, is_noisy| {
        let costs = cases[..count].iter().map(|case| ChangedCost {
            ratio: case.ratio,
            interval: case.interval,
            repeat_count: case.repeat_count,
            case: case.clone(),
        });
        Statement::HiddenCost(HiddenCost {
            costs: costs.collect(),
            is_noisy,
            ..HiddenCost::default()
        })
    };
    let busy = |count: usize| {
        let cases = cases[..count].iter();
        let busy = cases.map(|case| BusyClients { share: 0.94, case: case.clone() });
        Statement::ClientBound(busy.collect())
    };
    let fact = |who: &str, fsyncs: &[&str]| Fact {
        who: who.to_owned(),
        fsyncs: fsyncs.iter().map(|&step| step.to_owned()).collect(),
        settings: vec![jit()],
    };
    let machines = |count: usize, differing: usize| {
        let shares = [0.93, 0.811, 0.6].map(|share| VarianceShare {
            share,
            low: share - 0.15,
            high: share + 0.06,
        });
        let shares = shares.into_iter().zip(&cases[..count]);
        Statement::Machines(MachineVariance {
            machine_count: 5,
            shares: shares
                .map(|(share, case)| MachineShare { share, case: case.clone() })
                .collect(),
            differing: cases[..differing].to_vec(),
        })
    };
    let work = |agreement, other_time, count: usize| {
        let step = StepWitnesses {
            agreement,
            step: "q100".to_owned(),
            change: 0.022,
            base_instructions: 60_000.0,
            target_instructions: 61_320.0,
            floor: 0.0003,
            shown_from: 0.005,
            ratio: Some(case.ratio),
            interval: case.interval,
            other_time,
            function: Some(changed_function()),
            opposite: None,
            profiled: None,
        };
        Statement::Work(vec![step; count])
    };
    let without_effect = |who: &str| ChangedSetting { who: who.to_owned(), setting: jit() };
    vec![
        work(Agreement::Certain, OtherTime::Either, 1),
        work(Agreement::SmallPart, OtherTime::Either, 2),
        work(Agreement::Opposite, OtherTime::Either, 1),
        work(Agreement::SameWork, OtherTime::Either, 1),
        work(Agreement::SameWork, OtherTime::Waits, 1),
        work(Agreement::SameWork, OtherTime::Memory, 1),
        work(Agreement::SameTime, OtherTime::Either, 1),
        work(Agreement::NoisyTime, OtherTime::Either, 1),
        work(Agreement::UnknownTime, OtherTime::Either, 1),
        busy(1),
        busy(2),
        Statement::Sequence(SequencedStep {
            who: "b.c".to_owned(),
            step: "q100".to_owned(),
            before: vec!["overwrite".to_owned(), "readwhilewriting".to_owned()],
            index_gb: Some(pair(0.43, 0.91)),
            ratio: case.ratio,
            interval: case.interval,
            repeat_count: case.repeat_count,
        }),
        at_floor(FloorRequests::Commits, 1, 1.04),
        at_floor(FloorRequests::Commits, 3, 1.3),
        at_floor(FloorRequests::Reads, 2, 1.0),
        unfair(1, 5),
        unfair(14, 1),
        swinging(&swings[..1]),
        swinging(&swings[1..4]),
        swinging(&swings[4..5]),
        swinging(&swings[5..]),
        missed(OpRole::Insert, &["b.c"], &[]),
        missed(OpRole::Insert, &["b.c", "c.c at 8 clients"], &[]),
        missed(OpRole::Insert, &["b.c"], &["a.c", "c.c"]),
        missed(OpRole::Event, &["b.c", "c.c"], &["a.c"]),
        Statement::NoEffect(NoEffect {
            settings: vec![without_effect("b.c"), without_effect("c.c")],
            comparison_count: 6,
            ratio_min: 0.991,
            ratio_max: 1.012,
            effect: 0.03,
        }),
        costs(1, false),
        costs(2, true),
        Statement::Facts(KnownDifferences {
            gaps: Vec::new(),
            facts: vec![fact("b.c", &["l.i1", "l.i2"]), fact("c.c", &[])],
        }),
        machines(1, 0),
        machines(3, 2),
    ]
}

/// Returns the function in which exact work changed.
fn changed_function() -> ChangedFunction {
    ChangedFunction {
        name: "execute".to_owned(),
        difference: 1310.0,
        calls: Some(ChangedCalls { callee: "read".to_owned(), base: 2.0, target: 3.0 }),
        path: vec!["serve".to_owned()],
        ..ChangedFunction::default()
    }
}

/// Returns swings with everything that may keep step with one.
fn all_swings() -> Vec<Swing> {
    let in_step = |source, name: &str| InStep {
        source,
        name: name.to_owned(),
        correlation: -0.83,
        p: (source != Source::Host).then_some(0.031),
    };
    let swing = Swing {
        period_seconds: 20.39,
        cycles: 11.8,
        variance_share: 0.33,
        range_of_mean: 0.27,
        ..Swing::default()
    };
    let of_engine = [
        vec![in_step(Source::Event, "autovacuum"), in_step(Source::Thread, "autovacuum worker")],
        vec![in_step(Source::Thread, "rocksdb:low")],
        vec![in_step(Source::Counter, "stall_seconds")],
        Vec::new(),
    ];
    let of_engine = of_engine.map(|in_step| Swing { in_step, ..swing.clone() });
    let of_host = ["other programs on the host", "the hypervisor"]
        .map(|name| Swing { host_load: Some(in_step(Source::Host, name)), ..swing.clone() });
    of_engine.into_iter().chain(of_host).collect()
}

/// Returns a finding about these cases.
fn finding(statement: Statement, cases: &[CaseFacts]) -> Finding {
    let names = |name: fn(&CaseFacts) -> &String| -> Vec<String> {
        analysis::distinct(cases.iter().map(name)).into_iter().cloned().collect()
    };
    let (targets, steps) = (names(|case| &case.target), names(|case| &case.step));

    Finding {
        kind: statement.kind(),
        target: targets[0].clone(),
        targets,
        base: Some("a.c".to_owned()),
        workload: "insert".to_owned(),
        variant: None,
        clients: Some(4),
        step: (steps.len() == 1).then(|| steps[0].clone()),
        steps,
        cause: statement.cause(),
        statement,
        evidence: Vec::new(),
        caveats: Vec::new(),
        weight: 1.0,
    }
}

fn change(cause: Cause, cases: &[CaseFacts], differences: Vec<SharedDifference>) -> Finding {
    let change = ThroughputChange {
        cases: cases.to_vec(),
        cause,
        fsyncs: None,
        comparison_count: 6,
        differences,
        is_sure: true,
    };
    finding(Statement::Change(change), cases)
}

/// Appends the words of a finding to a page.
fn add_to(page: &mut String, finding: &Finding) {
    let wording = Wording::of(finding);
    let text = wording.text();
    writeln!(page, "{}\n  {text}\n", wording.title).unwrap();

    let sentences = text.strip_suffix('.').expect(&text).split(". ").count();
    assert!(sentences <= 3, "{text}");
}

fn of_target(shared: Option<&str>, difference: &TargetDifference) -> SharedDifference {
    SharedDifference { shared: shared.map(str::to_owned), difference: difference.clone() }
}

#[test]
fn all_findings_and_caveats_read_like_this() {
    const STEPS: [&str; 3] = ["q100", "q500", "q1000"];
    let (slower, faster) = (STEPS.map(slower), STEPS.map(faster));
    let all = [slower.clone(), faster.clone()].concat();
    let differences = all_differences();

    let (mut findings, mut kinds) = (Vec::new(), BTreeSet::new());
    for cause in all_causes_of_changes() {
        findings.push(change(cause.clone(), &slower[..1], Vec::new()));
        if kinds.insert(cause.kind()) {
            findings.push(change(cause, &faster[..2], Vec::new()));
        }
    }
    let missed = || all_causes_of_changes().remove(0);
    for difference in &differences {
        findings.push(change(missed(), &slower[..1], vec![of_target(None, difference)]));
    }
    let targets = ["pg.a", "pg.b", "pg.c", "pg.d", "pg.e", "pg.f"];
    let shared: Vec<SharedDifference> = targets
        .iter()
        .zip(&differences[1..])
        .map(|(target, difference)| of_target(Some(target), difference))
        .collect();
    findings.push(change(missed(), &slower, shared[..5].to_vec()));
    findings.push(change(missed(), &slower, shared));
    findings.push(change(missed(), &all, Vec::new()));
    for statement in all_others(&all) {
        let case_count = match &statement {
            Statement::HiddenCost(hidden) => hidden.costs.len(),
            _ => 1,
        };
        findings.push(finding(statement, &slower[..case_count]));
    }

    let mut page = String::new();
    for finding in &findings {
        add_to(&mut page, finding);
    }
    kinds.extend(findings.iter().map(|finding| finding.kind));
    assert_eq!(kinds.len(), 24, "{kinds:?}");
    for (number, caveat) in all_caveats().into_iter().enumerate() {
        let counted = CountedCaveat {
            caveat,
            case: slower[0].clone(),
            count: if number == 0 { 2 } else { 3 },
            case_count: 3,
        };
        writeln!(page, "- {}", caveat::text(&counted)).unwrap();
    }
    insta::assert_snapshot!(page);
}
