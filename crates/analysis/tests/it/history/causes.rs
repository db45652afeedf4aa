//! Changes of machines, none of which may be attributed to a target, and changes of targets.

use std::collections::BTreeMap;

use analysis::history::{
    Cause, Change, History, HistoryOptions, RunSummary, StepSummary, TargetFacts, history,
};

use super::machine::Random;

const NIGHTS: usize = 60;
const STEPS: usize = 10;

/// Changes in a history of nights. Each night has another build of the target `new`; `old` is a
/// release.
#[derive(Clone, Copy)]
struct Truth {
    /// The first night on which it is different.
    at: usize,
    /// The machine's effect on all steps; each takes 0.5 to 1.5 times of it.
    machine: f64,
    /// The build's effect on the first step of `new`.
    build: f64,
    /// The machine gets another identity, or another kernel.
    fact: Option<&'static str>,
    /// The release is measured as well.
    has_reference: bool,
    /// The machine's level walks by this much each night.
    walk: f64,
    /// All nights are measured on two machines by turns, of which the second is 20% slower.
    has_two_machines: bool,
}

const NOTHING: Truth = Truth {
    at: 40,
    machine: 0.0,
    build: 0.0,
    fact: None,
    has_reference: true,
    walk: 0.0,
    has_two_machines: false,
};

fn nights(truth: Truth, random: &mut Random) -> Vec<RunSummary> {
    let sensitivities: Vec<f64> = (0..STEPS).map(|_| 0.5 + random.uniform()).collect();
    let mut walked = 0.0;
    (0..NIGHTS)
        .map(|night| {
            walked += truth.walk * random.normal();
            let is_after = night >= truth.at;
            let is_second = truth.has_two_machines && night % 2 == 1;
            let mut machine =
                BTreeMap::from([("host_id".to_owned(), format!("host {}", u32::from(is_second)))]);
            if let Some(fact) = truth.fact.filter(|_| is_after) {
                machine.insert(fact.to_owned(), "another".to_owned());
            }
            let targets: &[&str] = if truth.has_reference { &["old", "new"] } else { &["new"] };
            let build = |target: &str| {
                if target == "new" { format!("nightly {night}") } else { "1.0".to_owned() }
            };
            let mut steps = Vec::new();
            for target in targets {
                for (step, sensitivity) in sensitivities.iter().enumerate() {
                    let mut level = walked + if is_second { -0.2 } else { 0.0 };
                    if is_after {
                        level += truth.machine * sensitivity;
                        level += if *target == "new" && step == 0 { truth.build } else { 0.0 };
                    }
                    let values = (0..3).map(|_| 1000.0 * (level + 0.01 * random.normal()).exp());
                    steps.push(StepSummary {
                        target: (*target).to_owned(),
                        clients: 1,
                        step: format!("s{step}"),
                        values: BTreeMap::from([("throughput".to_owned(), values.collect())]),
                        ..StepSummary::default()
                    });
                }
            }
            RunSummary {
                id: night.to_string(),
                started_unix_ns: night as u64,
                machine,
                targets: targets
                    .iter()
                    .map(|target| TargetFacts {
                        name: (*target).to_owned(),
                        version: build(target),
                        build: BTreeMap::from([("version".to_owned(), build(target))]),
                        ..TargetFacts::default()
                    })
                    .collect(),
                steps,
                ..RunSummary::default()
            }
        })
        .collect()
}

fn found(truth: Truth, seed: u64) -> History {
    history(&nights(truth, &mut Random::new(seed)), &HistoryOptions::default())
}

fn put_down_to_the_target(history: &History) -> Vec<&Change> {
    let changes = history.changes().into_iter().map(|(_, change)| change);
    changes.filter(|change| change.cause == Cause::Target).collect()
}

#[test]
fn of_twenty_changes_of_the_machine_none_is_put_down_to_a_target() {
    let mut shown = 0;
    for number in 0..20_u64 {
        let size = [-0.2, -0.1, -0.05, 0.05, 0.1][number as usize % 5];
        let (fact, has_reference) = match number % 4 {
            0 => (Some("host_id"), true),
            1 => (Some("kernel_release"), false),
            2 => (Some("cpu_governor"), false),
            // Nothing but the reference tells of it.
            _ => (None, true),
        };
        let at = [40, 30, 55, 20][number as usize % 4];
        let truth = Truth { at, machine: size, fact, has_reference, ..NOTHING };
        let history = found(truth, number);
        let blamed = put_down_to_the_target(&history);
        assert!(blamed.is_empty(), "{number}: {blamed:#?}");
        shown += history.changes().len();
    }
    assert!(shown > 200, "hardly any change was shown: {shown}");
}

#[test]
fn a_machine_that_walks_moves_the_reference_as_well() {
    for seed in 0..5 {
        let history = found(Truth { walk: 0.004, ..NOTHING }, 100 + seed);
        assert!(put_down_to_the_target(&history).is_empty(), "{seed}");
    }
}

#[test]
fn a_slower_build_is_put_down_to_the_target_with_and_without_a_reference() {
    for has_reference in [false, true] {
        for seed in 0..5 {
            let history = found(Truth { build: -0.08, has_reference, ..NOTHING }, 200 + seed);
            let [change] = &put_down_to_the_target(&history)[..] else {
                panic!("{has_reference} {seed}: {:#?}", history.changes());
            };
            assert!(change.is_worse && change.level.at.abs_diff(40) <= 1);
            assert_eq!(change.circumstances.references.len(), usize::from(has_reference));
        }
    }
}

#[test]
fn two_machines_by_turns_hide_no_change_of_the_build() {
    let both = Truth { has_two_machines: true, ..NOTHING };
    let history = found(Truth { build: -0.6, has_reference: false, ..both }, 300);
    assert_eq!(put_down_to_the_target(&history).len(), 1, "{:#?}", history.changes());
    assert!(found(both, 301).changes().is_empty());
}

#[test]
fn what_changed_with_the_machine_is_not_put_down_to_the_build_even_if_both_changed() {
    let both = Truth { build: -0.1, machine: -0.1, fact: Some("host_id"), ..NOTHING };
    assert!(put_down_to_the_target(&found(both, 400)).is_empty());
}
