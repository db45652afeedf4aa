//! Tests of the step with transactions.

use engine::ErrorClass;

use super::*;

/// Returns a loaded sequence whose other steps are these, and the work of each of its steps.
fn loaded(steps: &str, more: &str) -> (Bench, Vec<KvStepKind>) {
    let plan = planned_kv(&format!("steps = [\"fillseq\", {steps}]\n{more}"));
    let mut bench = Bench::new(&plan, 1);
    bench.step(KvStepKind::FillSeq, u64::MAX);
    (bench, plan.steps.iter().map(|step| step.kind).collect())
}

fn check_sums(bench: &Bench) -> Check {
    bench.kv.check_sums(&mut bench.memory.connect()).unwrap().unwrap()
}

/// Runs all prepared transactions, whose failures the engine was given.
fn run_with_failures(bench: &mut Bench, kind: KvStepKind, rounds: u32) -> (u64, Vec<Check>) {
    let (step, mut works) = bench.tasks(kind);
    bench.number += 1;
    let mut failed = 0;
    for _ in 0..rounds {
        for work in &mut works {
            assert_eq!(work.program.prepare(), Next::Ready(0));
            failed += u64::from(work.program.execute().is_err());
        }
    }
    let summary = |work: &mut Task| (work.client, work.program.summary(0).unwrap());
    let summaries = works.iter_mut().map(summary).collect();
    (failed, bench.kv.apply(&step, &summaries, true))
}

#[test]
fn transactions_add_the_same_to_each_set() {
    let others = "\"randomtransaction\", \"randomtransaction.2\", \"deleterandom\", \
                  \"randomtransaction.3\"";
    let more = "step.randomtransaction.transaction-sets = 7\n\
                step.\"randomtransaction.2\".transaction-keys = 3";
    let (mut bench, kinds) = loaded(others, more);
    assert!(bench.kv.check_sums(&mut bench.memory.connect()).unwrap().is_none());

    for (place, kind) in kinds.iter().enumerate().skip(1) {
        if matches!(kind, KvStepKind::Delete { .. }) {
            bench.step(DELETE_RANDOM, u64::MAX);
            continue;
        }
        let done = bench.step(*kind, 400);
        assert_eq!((done.operations, done.unexpected), (1200, 0), "{place}");
        assert_eq!(failed(&done.checks), [""; 0], "{place}: {:?}", done.checks);
        assert_eq!(done.works[0].program.kinds()[0].name, "transaction");

        // 1 to 100 in each of 1200 transactions.
        let sums = check_sums(&bench);
        let sum: u64 = sums.found.parse().unwrap();
        assert!(sums.holds && (50_000..70_000).contains(&sum), "{place}: {sums:?}");

        assert_eq!(failed(&bench.kv.check(&bench.memory.facts())), [""; 0], "{place}");
        let values = bench.check_values();
        assert!(values.holds, "{place}: {}", values.found);
    }

    // The keys of the sets were brought back, and others are still deleted.
    assert_reads_are_right(&mut bench, "after transactions");
    bench.step(OVERWRITE, 100);
    assert_reads_are_right(&mut bench, "after overwrites");
}

#[test]
fn a_lost_update_and_one_that_took_place_twice_are_reported() {
    let (mut bench, kinds) = loaded("\"randomtransaction\"", "");
    bench.step(kinds[1], 50);
    let before = bench.memory.map().clone();
    assert!(check_sums(&bench).holds);

    let data = Arc::clone(&bench.kv.data);
    let (number, key) = (0..500)
        .map(|number| (number, bench.key(number)))
        .find(|(number, key)| data.counter_of(*number, &before[key], 1) > 0)
        .unwrap();
    let counter = data.counter_of(number, &before[&key], 1);
    let version = data.version_of(number, &before[&key]).unwrap();
    for wrong in [counter - 1, counter + 1] {
        let mut value = before[&key].clone();
        data.set_counter(number, version, wrong, &mut value);
        bench.memory.map().insert(key.clone(), value);
        let sums = check_sums(&bench);
        let places =
            if wrong < counter { ["in set 1, ", "in set 2"] } else { ["in set 2, ", "in set 1"] };
        let names_both = places.iter().all(|place| sums.found.contains(place));
        assert!(!sums.holds && names_both, "{sums:?}");

        // The value itself is whole.
        assert!(bench.check_values().holds);
    }

    // A whole transaction is missing, so the sums are still equal.
    let (mut bench, kinds) = loaded("\"randomtransaction\"", "");
    let loaded = bench.memory.map().clone();
    bench.step(kinds[1], 50);
    *bench.memory.map() = loaded;
    let sums = check_sums(&bench);
    assert!(!sums.holds && sums.found == "0", "{sums:?}");
    assert!(bench.check_values().found.contains("outdated value"));
}

#[test]
fn a_transaction_that_fails_is_made_again_and_counts_once() {
    let (mut bench, kinds) = loaded("\"randomtransaction\"", "");
    *bench.memory.failures.lock().unwrap() =
        [ErrorClass::Serialization, ErrorClass::LockTimeout].repeat(40);
    let (failures, checks) = run_with_failures(&mut bench, kinds[1], 100);
    assert_eq!((failures, failed(&checks)), (80, vec![]));
    let sums = check_sums(&bench);
    assert!(sums.holds, "{sums:?}");
    let values = bench.check_values();
    assert!(values.holds, "{}", values.found);
    assert_reads_are_right(&mut bench, "after conflicts");
}

#[test]
fn a_commit_of_which_nothing_is_known_leaves_a_range_of_sums() {
    let (mut bench, kinds) = loaded("\"randomtransaction\"", "");
    *bench.memory.failures.lock().unwrap() = vec![ErrorClass::Other];
    let (failures, _) = run_with_failures(&mut bench, kinds[1], 100);
    assert_eq!(failures, 1);
    let sums = check_sums(&bench);
    let (least, most) = sums.expected.split_once(" to ").unwrap();
    assert!(sums.holds && sums.found == least && least != most, "{sums:?}");
    assert_reads_are_right(&mut bench, "after a lost commit");
}

#[test]
fn contention_is_on_the_first_keys_of_each_set() {
    let more = "step.randomtransaction.transaction-sets = 4\n\
                step.randomtransaction.transaction-keys = 2";
    let (mut bench, kinds) = loaded("\"randomtransaction\"", more);
    let loaded = bench.memory.map().clone();
    bench.step(kinds[1], 100);
    let after = bench.memory.map().clone();
    let changed: Vec<u64> = (0..1000)
        .filter(|number| loaded[&bench.key(*number)] != after[&bench.key(*number)])
        .collect();
    assert_eq!(changed, [0, 1, 250, 251, 500, 501, 750, 751]);
}
