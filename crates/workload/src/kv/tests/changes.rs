//! Tests of steps that delete, merge, and write in other ways than the usual ones.

use super::*;

#[test]
fn deleted_keys_are_missing_until_they_are_written_again() {
    let mut bench = Bench::loaded();
    let done = bench.step(DELETE_SEQ, u64::MAX);
    assert_eq!((done.works.len(), done.operations, bench.kv.keys()), (1, 150, 850));
    assert!(bench.memory.map().keys().next() == Some(&bench.key(150)));
    assert_reads_are_right(&mut bench, "after deletes in order");

    let done = bench.step(DELETE_RANDOM, u64::MAX);
    assert_eq!((done.works.len(), done.operations), (3, 900));
    assert_eq!(done.works[0].program.kinds()[0].name, "delete");
    // Of 1000 keys, 900 random ones leave e^-0.9.
    assert!((300..400).contains(&bench.kv.keys()), "{}", bench.kv.keys());
    assert_reads_are_right(&mut bench, "after random deletes");

    for how in READS {
        let done = bench.step(read_while(KvWrite::Put, how), 100);
        assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{how:?}");
    }
    assert_reads_are_right(&mut bench, "after concurrent writes");
    bench.step(DELETE_RANDOM, u64::MAX);
    for (name, _) in KvMix::YCSB {
        let done = bench.step(mixed(name), 100);
        assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{name}");
        assert_reads_are_right(&mut bench, name);
    }
}

#[test]
fn deleted_keys_are_known_to_another_process() {
    let mut bench = Bench::loaded();
    for kind in [DELETE_SEQ, DELETE_RANDOM] {
        bench.step(kind, u64::MAX);
        bench.step(OVERWRITE, 50);
    }
    let known = bench.kv.known_keys().unwrap();
    let mut other = Kv::new(&plan(), 3, 1);
    assert!(other.restore(known));
    assert_eq!(other.keys(), bench.kv.keys());
    bench.kv = other;
    assert_reads_are_right(&mut bench, "in another process");
}

#[test]
fn every_reader_reports_a_lost_deletion() {
    for how in READS {
        let mut bench = Bench::loaded();
        let before = bench.memory.map().clone();
        bench.step(DELETE_RANDOM, u64::MAX);
        *bench.memory.map() = before;

        let done = bench.step(read(how), 200);
        assert!(done.unexpected > 100, "{how:?}: {}", done.unexpected);
        assert_eq!(failed(&done.checks), ["values read"], "{how:?}");
        assert!(
            done.checks[0].found.contains("was deleted, but exists"),
            "{}",
            done.checks[0].found
        );
        let found = bench.check_values();
        assert!(!found.holds && found.found.contains("was deleted, but exists"), "{}", found.found);
        let counted = bench.kv.check(&bench.memory.facts());
        assert!(failed(&counted).starts_with(&["keys", "bytes of keys and values"]));
    }
}

/// One key alone is enough: the one that a scan should have skipped, or should not have skipped.
#[test]
fn a_scan_reports_one_key_too_many_or_too_few_among_deleted_ones() {
    for how in [KvRead::Forward, KvRead::Reverse] {
        for revives in [true, false] {
            let mut bench = Bench::loaded();
            let before = bench.memory.map().clone();
            let kind = KvStepKind::Delete { delete: KvDelete::InOrder, deletes: 990 };
            bench.step(kind, u64::MAX);
            let key = bench.key(if revives { 500 } else { 995 });
            let message = if revives {
                bench.memory.map().insert(key.clone(), before[&key].clone());
                "key 500 was deleted, but exists"
            } else {
                bench.memory.map().remove(&key);
                "a scan returned another key instead of 995"
            };

            let done = bench.step(read(how), 300);
            let missing = "key 995 is missing";
            let found = &done.checks[0].found;
            assert!(found.contains(message) || !revives && found.contains(missing), "{found}");
        }
    }
}

#[test]
fn an_old_value_of_a_deleted_key_is_reported_while_others_write() {
    let mut bench = Bench::loaded();
    let before = bench.memory.map().clone();
    bench.step(DELETE_RANDOM, u64::MAX);
    *bench.memory.map() = before;
    let done = bench.step(read_while(KvWrite::Put, KvRead::Get), 200);
    assert!(done.checks[0].found.contains("has an outdated value"), "{}", done.checks[0].found);
}

#[test]
fn keys_are_not_counted_after_a_deletion_that_failed() {
    let mut bench = Bench::loaded();
    let before = bench.memory.map().clone();
    bench.is_flawless = false;
    bench.step(DELETE_RANDOM, u64::MAX);
    // Any of the keys may exist or not.
    for (place, (key, value)) in before.into_iter().enumerate() {
        if place % 2 == 0 {
            bench.memory.map().insert(key, value);
        }
    }
    let checks = bench.kv.check(&bench.memory.facts());
    assert!(checks.len() == 1 && checks[0].left_out.is_some(), "{checks:?}");
    for how in READS {
        let done = bench.step(read(how), 500);
        assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{how:?}");
    }
    assert!(bench.check_values().holds);
}

#[test]
fn skewed_reads_are_checked() {
    for keys in [KvKeys::Zipfian { exponent: 0.99 }, KvKeys::Exponential { range: 5.0 }] {
        for read in READS {
            let mut bench = Bench::loaded();
            let kind = KvStepKind::Read { read, keys, time: Duration::ZERO };
            let done = bench.step(kind, 500);
            assert_eq!((done.operations, done.unexpected), (1500, 0), "{read:?}");
            bench.memory.map().values_mut().for_each(|value| value[20] ^= 1);
            let done = bench.step(kind, 500);
            assert_eq!(failed(&done.checks), ["values read"], "{read:?}");
        }
    }
}

#[test]
fn synchronous_steps_ask_each_writer_for_durability() {
    let mut bench = Bench::loaded();
    let asked = |bench: &Bench| std::mem::take(&mut *bench.memory.durability.lock().unwrap());
    assert_eq!(asked(&bench), [Durability::None]);
    bench.step(OVERWRITE, 10);
    assert_eq!(asked(&bench), []);
    bench.is_synced = true;
    for kind in [OVERWRITE, DELETE_RANDOM, mixed("ycsb_a")] {
        bench.step(kind, 10);
        assert_eq!(asked(&bench), [Durability::Machine; 3], "{kind:?}");
    }
}

#[test]
fn merged_values_are_those_that_reads_find() {
    let mut bench = Bench::loaded();
    bench.step(DELETE_SEQ, u64::MAX);
    let done = bench.step(MERGE_RANDOM, 500);
    assert_eq!(done.works[0].program.kinds()[0].name, "merge");
    assert_reads_are_right(&mut bench, "after merges");
    for how in READS {
        let done = bench.step(read_while(KvWrite::Merge, how), 500);
        assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{how:?}");
        assert_eq!(done.works[3].program.kinds()[0].name, "merge");
    }
    assert_reads_are_right(&mut bench, "after concurrent merges");
}

#[test]
fn merged_numbers_are_added_up_and_a_lost_one_is_reported() {
    let text = "[workload.kv]\nkeys = 1000\nmultiget-keys = 7\nmerge-operator = \"uint64add\"\n\
                steps = [\"fillseq\"]";
    let plan::Workload::Kv(plan) = planned("rocksdb", text) else { panic!() };
    let mut bench = Bench::new(&plan, 1);
    bench.step(KvStepKind::FillSeq, u64::MAX);
    bench.step(MERGE_RANDOM, 500);
    let before = bench.memory.map().clone();
    bench.step(read_while(KvWrite::Merge, KvRead::Forward), 500);
    assert_reads_are_right(&mut bench, "after merges of numbers");
    assert!(bench.memory.map().values().all(|value| value.len() == 8));
    let check_total =
        |bench: &Bench| bench.kv.check_sums(&mut bench.memory.connect()).unwrap().unwrap();
    assert!(check_total(&bench).holds);

    // One key lacks what was merged last.
    let after = bench.memory.map().clone();
    let (key, value) = before.iter().find(|(key, value)| after[*key] != **value).unwrap();
    bench.memory.map().insert(key.clone(), value.clone());
    assert!(!check_total(&bench).holds);

    *bench.memory.map() = before;
    let lost = bench.check_values();
    assert!(!lost.holds && lost.found.contains("has the sum"), "{}", lost.found);

    // A key is missing, and a value has another length.
    let first = bench.key(0);
    bench.memory.map().remove(&first);
    bench.memory.map().values_mut().for_each(|value| value.push(0));
    let done = bench.step(read(KvRead::Get), 300);
    assert_eq!(failed(&done.checks), ["values read"]);
}

#[test]
fn lost_and_wrongly_merged_values_are_reported() {
    let mut bench = Bench::loaded();
    bench.step(MERGE_RANDOM, 1000);
    let before = bench.memory.map().clone();
    bench.step(MERGE_RANDOM, 1000);
    assert!(bench.check_values().holds);

    // The operator took the oldest value.
    let after = std::mem::replace(&mut *bench.memory.map(), before);
    let lost = bench.check_values();
    assert!(!lost.holds && lost.found.contains("outdated value"), "{}", lost.found);

    // The operator appended one value to the other.
    *bench.memory.map() = after;
    bench.memory.map().values_mut().for_each(|value| value.extend_from_within(..));
    let done = bench.step(read(KvRead::Get), 100);
    assert!(done.checks[0].found.contains("has 100 bytes"), "{}", done.checks[0].found);
}

#[test]
fn clients_of_a_mixgraph_find_what_was_written() {
    for model in ["prefix_dist", "prefix_random", "all_dist", "all_random"] {
        let plan = planned_kv(&format!(
            "steps = [\"fillseq\", \"mixgraph\"]\nstep.mixgraph.model = \"{model}\"\n\
             step.mixgraph.mix = [0.4, 0.4, 0.2]\nstep.mixgraph.scan-length-end = 50"
        ));
        let mut bench = Bench::new(&plan, 1);
        bench.step(KvStepKind::FillSeq, u64::MAX);
        let graph = plan.steps[1].kind;
        let done = bench.step(graph, 1000);
        assert_eq!((done.operations, done.unexpected), (3000, 0), "{model}");
        assert_eq!(failed(&done.checks), [""; 0], "{model}: {:?}", done.checks);
        let kinds: Vec<&str> = done.works[0].program.kinds().iter().map(|kind| kind.name).collect();
        assert_eq!(kinds, ["get", "put", "scan"]);
        assert_reads_are_right(&mut bench, model);
        let sizes: std::collections::BTreeSet<usize> =
            bench.memory.map().values().map(Vec::len).collect();
        assert!(sizes.len() > 20 && sizes.contains(&50), "{sizes:?}");

        // Values of one size follow values of many.
        bench.step(DELETE_RANDOM, u64::MAX);
        bench.step(OVERWRITE, 200);
        assert_reads_are_right(&mut bench, "after overwrites");

        // A lost write, and a value of another size.
        let before = bench.memory.map().clone();
        let mut again = Bench::new(&plan, 1);
        again.step(KvStepKind::FillSeq, u64::MAX);
        let loaded = again.memory.map().clone();
        again.step(graph, 1000);
        assert!(again.check_values().holds, "{model}");
        *again.memory.map() = loaded;
        assert!(again.check_values().found.contains("outdated value"), "{model}");
        *again.memory.map() = before;
        again.memory.map().values_mut().for_each(|value| value.push(b'a'));
        let done = again.step(read(KvRead::Get), 300);
        assert_eq!(failed(&done.checks), ["values read"], "{model}");
    }
}

#[test]
fn deleted_ranges_are_missing_and_new_keys_are_not_in_them() {
    let mut bench = Bench::loaded();
    bench.step(mixed("ycsb_d"), 1000);
    let end = bench.kv.keys();
    for round in 0..5 {
        let done = bench.step(DELETE_RANGE, u64::MAX);
        assert_eq!((done.operations, done.unexpected), (20, 0));
        assert_eq!(done.works[0].program.kinds()[0].name, "delete_range");
        assert_reads_are_right(&mut bench, "after deletes of ranges");
        assert!(bench.memory.map().contains_key(&bench.key(end - 1)));
        bench.step(if round % 2 == 0 { OVERWRITE } else { MERGE_RANDOM }, 100);
        assert_reads_are_right(&mut bench, "after overwrites");
    }
}

#[test]
fn a_lost_or_too_wide_deletion_of_a_range_is_reported() {
    let mut bench = Bench::loaded();
    let before = bench.memory.map().clone();
    let ranges = KvStepKind::Delete { delete: KvDelete::Range { width: 30 }, deletes: 1 };
    bench.step(ranges, u64::MAX);
    let after = bench.memory.map().clone();
    assert_eq!(after.len(), 970);

    let first_deleted = (0..1000).find(|number| !after.contains_key(&bench.key(*number))).unwrap();
    for (key, message) in [
        (bench.key(first_deleted + 29), "was deleted, but exists"),
        (bench.key(first_deleted + 30), "is missing"),
    ] {
        *bench.memory.map() = after.clone();
        if bench.memory.map().remove(&key).is_none() {
            bench.memory.map().insert(key.clone(), before[&key].clone());
        }
        let done = bench.step(read(KvRead::Get), 3000);
        assert!(done.checks[0].found.contains(message), "{}", done.checks[0].found);
        let done = bench.step(read(KvRead::Reverse), 3000);
        assert_eq!(failed(&done.checks), ["values read"]);
        assert!(failed(&bench.kv.check(&bench.memory.facts())).contains(&"keys"));
    }
}

#[test]
fn keys_are_loaded_through_files() {
    let mut bench = Bench::new(&plan(), 1);
    let done = bench.step(KvStepKind::FillSst, 500);
    assert_eq!((done.operations, bench.kv.keys()), (500, 0), "nothing is ingested yet");
    assert!(bench.memory.map().is_empty());

    let mut bench = Bench::new(&plan(), 1);
    let done = bench.step(KvStepKind::FillSst, u64::MAX);
    assert_eq!((done.works.len(), done.operations, done.unexpected), (1, 1001, 0));
    let kinds: Vec<&str> = done.works[0].program.kinds().iter().map(|kind| kind.name).collect();
    assert_eq!(kinds, ["put", "ingest"]);
    assert_reads_are_right(&mut bench, "after the load");

    // The same keys and values as those of the usual load.
    assert_eq!(*bench.memory.map(), *Bench::loaded().memory.map());
}
