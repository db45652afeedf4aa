//! Tests of the sequence on a map in memory, intact and with damaged data.

use plan::KvRead;

use super::*;
use crate::Next;
use crate::tests::memory::Memory;
use crate::tests::planned;

fn plan() -> plan::Kv {
    planned_kv("")
}

/// Returns a small plan with more lines.
fn planned_kv(more: &str) -> plan::Kv {
    let text =
        "[workload.kv]\nkeys = 1000\nvalue-size = 50\nmultiget-keys = 7\nverify-share = 1.0\n";
    match planned("rocksdb", &(text.to_owned() + more)) {
        plan::Workload::Kv(kv) => kv,
        other => panic!("{other:?}"),
    }
}

const OVERWRITE: KvStepKind = KvStepKind::Overwrite { write: KvWrite::Put, time: Duration::ZERO };
const MERGE_RANDOM: KvStepKind =
    KvStepKind::Overwrite { write: KvWrite::Merge, time: Duration::ZERO };

const DELETE_RANDOM: KvStepKind = KvStepKind::Delete { delete: KvDelete::Random, deletes: 900 };
const DELETE_SEQ: KvStepKind = KvStepKind::Delete { delete: KvDelete::InOrder, deletes: 150 };

const DELETE_RANGE: KvStepKind =
    KvStepKind::Delete { delete: KvDelete::Range { width: 30 }, deletes: 20 };

fn read(read: KvRead) -> KvStepKind {
    KvStepKind::Read { read, keys: KvKeys::Uniform, time: Duration::ZERO }
}

fn read_while(write: KvWrite, read: KvRead) -> KvStepKind {
    let (keys, time) = (KvKeys::Uniform, Duration::ZERO);
    KvStepKind::ReadWhileWriting { read, keys, write, write_bytes_per_s: 7000, time }
}

/// A sequence, its engine, and the number of its next step.
struct Bench {
    kv: Kv,
    memory: Arc<Memory>,
    number: u32,
    /// No write of the following steps fails.
    is_flawless: bool,
    /// The writes of the following steps are synchronous.
    is_synced: bool,
}

struct StepResult {
    checks: Vec<Check>,
    works: Vec<Task>,
    operations: u64,
    unexpected: u64,
}

impl Bench {
    fn new(plan: &plan::Kv, seed: u64) -> Self {
        let kv = Kv::new(plan, 3, seed);
        Self { kv, memory: Arc::default(), number: 0, is_flawless: true, is_synced: false }
    }

    fn loaded() -> Self {
        let mut bench = Self::new(&plan(), 1);
        bench.step(KvStepKind::FillSeq, u64::MAX);
        bench
    }

    fn tasks(&self, kind: KvStepKind) -> (KvStep, Vec<Task>) {
        let step = KvStep { number: self.number, name: String::new(), kind, sync: self.is_synced };
        let tasks = self.kv.tasks(&step, || Ok(self.memory.connect())).unwrap();
        (step, tasks)
    }

    /// Runs a step, with up to `op_count` operations of each connection, in turns.
    fn step(&mut self, kind: KvStepKind, op_count: u64) -> StepResult {
        let (step, mut works) = self.tasks(kind);
        self.number += 1;
        let (mut operations, mut unexpected) = (0, 0);
        let mut running = vec![true; works.len()];
        for _ in 0..op_count {
            for (work, running) in works.iter_mut().zip(&mut running) {
                *running = *running && matches!(work.program.prepare(), Next::Ready(_));
                if *running {
                    let outcome = work.program.execute().unwrap();
                    operations += 1;
                    unexpected += u64::from(!outcome.is_expected);
                }
            }
            if !running.contains(&true) {
                break;
            }
        }
        let summary = |work: &mut Task| (work.client, work.program.summary(0).unwrap());
        let summaries = works.iter_mut().map(summary).collect();
        let checks = self.kv.apply(&step, &summaries, self.is_flawless);
        StepResult { checks, works, operations, unexpected }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = self.kv.data.key_buffer();
        self.kv.data.set_key(number, &mut key);
        key
    }

    fn check_values(&self) -> Check {
        let mut client = self.memory.connect();
        self.kv.check_values(&mut client, 5000, 0).unwrap()
    }
}

fn failed(checks: &[Check]) -> Vec<&str> {
    let failed = checks.iter().filter(|check| !check.holds);
    failed.map(|check| check.what.as_str()).collect()
}

/// Reads in every way, and checks that nothing is wrong.
fn assert_reads_are_right(bench: &mut Bench, when: &str) {
    for how in READS {
        let done = bench.step(read(how), 500);
        assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{how:?} {when}");
    }
    let found = bench.memory.facts();
    assert_eq!(failed(&bench.kv.check(&found)), [""; 0], "{when}");
    assert_eq!(bench.kv.keys(), found.keys, "{when}");
    let values = bench.check_values();
    assert!(values.holds, "{when}: {}", values.found);
}

const READS: [KvRead; 4] = [KvRead::Get, KvRead::MultiGet, KvRead::Forward, KvRead::Reverse];

#[test]
fn the_load_writes_exactly_its_keys_without_a_log() {
    let mut bench = Bench::new(&plan(), 1);
    let done = bench.step(KvStepKind::FillSeq, u64::MAX);
    assert_eq!((done.works.len(), done.operations, done.unexpected), (1, 1000, 0));
    assert_eq!(*bench.memory.durability.lock().unwrap(), [Durability::None]);
    assert_eq!(bench.kv.keys(), 1000);

    let facts = bench.memory.facts();
    assert_eq!(facts.bytes, 1000 * 70);
    assert_eq!(failed(&bench.kv.check(&facts)), [""; 0]);
    let mut client = bench.memory.connect();
    assert_eq!(failed(&bench.kv.check_keys(&mut client).unwrap()), [""; 0]);
    assert!(bench.check_values().holds);

    let last = bench.key(999);
    bench.memory.map().remove(&last);
    let all = ["keys", "bytes of keys and values", "largest key"];
    assert_eq!(failed(&bench.kv.check(&bench.memory.facts())), all);
    let checks = bench.kv.check_keys(&mut client).unwrap();
    assert_eq!(failed(&checks), ["largest key"]);
    assert_eq!(checks[1].expected, "999 in 20 bytes");
    assert_eq!(checks[1].found, "998 in 20 bytes");
    bench.memory.map().insert(b"other".to_vec(), Vec::new());
    let checks = bench.kv.check_keys(&mut client).unwrap();
    assert_eq!(checks[1].found, "other");
}

#[test]
fn every_kind_of_read_finds_what_was_written() {
    let mut bench = Bench::loaded();
    for round in 0..2 {
        for how in READS {
            let done = bench.step(read(how), 2000);
            assert_eq!((done.operations, done.unexpected), (6000, 0), "{how:?}");
            assert_eq!(done.checks.len(), 1);
            assert_eq!(failed(&done.checks), [""; 0], "{how:?}");
            assert_eq!(done.checks[0].found, "0 wrong; 6000 compared");
        }
        if round == 0 {
            let done = bench.step(KvStepKind::OverwriteSome { writes: 100 }, u64::MAX);
            assert_eq!((done.operations, done.works.len()), (100, 3));
            bench.step(OVERWRITE, 500);
            assert!(bench.check_values().holds);
        }
    }
}

#[test]
fn a_reader_may_see_concurrent_writes() {
    let mut bench = Bench::loaded();
    bench.step(OVERWRITE, 500);
    for how in READS {
        let done = bench.step(read_while(KvWrite::Put, how), 3000);
        assert_eq!((done.operations, done.unexpected), (12_000, 0), "{how:?}");
        assert_eq!(failed(&done.checks), [""; 0], "{how:?}");
        assert_eq!(done.checks[1].what, "newest write that was read");
        let seen: u64 = done.checks[1].found.parse().unwrap();
        assert!((2000..=3000).contains(&seen), "{seen}");
        let rates: Vec<_> = done.works.iter().map(|work| work.schedule).collect();
        let writes = Schedule::bursts(100.0, BURST);
        assert_eq!(rates, [[Schedule::Closed; 3].as_slice(), &[writes]].concat());
        let roles: Vec<_> = done.works.iter().map(|work| work.role).collect();
        assert_eq!(roles, ["read", "read", "read", "write"]);
    }
}

#[test]
fn the_kinds_of_operation_have_their_names() {
    let bench = Bench::loaded();
    let kind = |kind| bench.tasks(kind).1[0].program.kinds()[0].name;
    assert_eq!(kind(KvStepKind::FillSeq), "put");
    assert_eq!(kind(OVERWRITE), "put");
    let names = READS.map(|how| kind(read(how)));
    assert_eq!(names, ["get", "multiget", "scan", "scan"]);
}

#[test]
fn every_reader_reports_a_missing_key() {
    let mut bench = Bench::loaded();
    for number in 0..500 {
        let key = bench.key(2 * number);
        bench.memory.map().remove(&key);
    }
    for how in READS {
        let done = bench.step(read(how), 200);
        assert!(done.unexpected >= 250, "{how:?}: {}", done.unexpected);
        assert_eq!(failed(&done.checks), ["values read"], "{how:?}");
    }
    assert!(!bench.check_values().holds);
}

#[test]
fn every_reader_reports_a_value_that_was_not_written() {
    type Spoil = fn(&mut Vec<u8>);
    let ways: [(&str, Spoil); 3] = [
        ("damaged", |value| value[20] ^= 1),
        ("bytes", |value| value.truncate(49)),
        ("damaged", |value| value.fill(0)),
    ];
    for (word, spoil) in ways {
        let mut bench = Bench::loaded();
        bench.memory.map().values_mut().for_each(spoil);
        for how in READS {
            let done = bench.step(read(how), 100);
            let [check] = &done.checks[..] else { panic!() };
            let (wrong, _) = check.found.split_once(" wrong").unwrap();
            let all_are_wrong = wrong.parse::<u64>().unwrap() >= done.operations;
            assert!(
                !check.holds && all_are_wrong && check.found.contains(word),
                "{how:?}: {}",
                check.found
            );
        }
        assert!(bench.check_values().found.contains(word));
    }
}

#[test]
fn another_keys_value_and_an_unwritten_one_are_reported() {
    let mut bench = Bench::loaded();
    let (one, other) = (bench.key(1), bench.key(2));
    let value = bench.memory.map()[&one].clone();
    bench.memory.map().insert(other, value);
    let done = bench.step(read(KvRead::Get), 2000);
    assert!(done.checks[0].found.contains("key 2 is damaged"), "{}", done.checks[0].found);

    let mut bench = Bench::loaded();
    let version = data::ValueVersion { step: 7, writer: 0, sequence: 5 };
    let key = bench.key(1);
    bench.kv.data.set_value(1, version, bench.memory.map().get_mut(&key).unwrap());
    let done = bench.step(read(KvRead::Get), 2000);
    let never_written = "key 1 has a value that was never written: write 5 of writer 0 in step 7";
    assert!(done.checks[0].found.contains(never_written), "{}", done.checks[0].found);
}

#[test]
fn a_lost_write_is_reported() {
    let mut bench = Bench::loaded();
    let before = bench.memory.map().clone();
    bench.step(KvStepKind::OverwriteSome { writes: 3000 }, u64::MAX);
    let between = bench.memory.map().clone();
    assert!(bench.check_values().holds);
    *bench.memory.map() = before;
    let check = bench.check_values();
    assert!(!check.holds && check.found.contains("outdated value"), "{}", check.found);

    *bench.memory.map() = between.clone();
    bench.step(KvStepKind::OverwriteSome { writes: 3000 }, u64::MAX);
    assert!(bench.check_values().holds);
    *bench.memory.map() = between;
    assert!(bench.check_values().found.contains("outdated value"));
}

#[test]
fn a_share_of_the_reads_is_compared() {
    let a_tenth = plan::Kv { verify_share: 0.1, ..plan() };
    let mut bench = Bench::new(&a_tenth, 1);
    bench.step(KvStepKind::FillSeq, u64::MAX);
    let done = bench.step(read(KvRead::Get), 10_000);
    let words: Vec<&str> = done.checks[0].found.split(' ').collect();
    let compared: f64 = words[2].parse().unwrap();
    assert!((compared - 3000.0).abs() < 300.0, "{compared}");
}

#[test]
fn the_seed_determines_reads_and_writes() {
    let end = |seed| {
        let mut bench = Bench::new(&plan(), seed);
        bench.step(KvStepKind::FillSeq, u64::MAX);
        bench.step(OVERWRITE, 300);
        bench.memory.map().clone()
    };
    assert_eq!(end(1), end(1));
    assert_ne!(end(1), end(2));
}

#[test]
fn overwrites_are_spread_over_all_keys() {
    let data = Data::new(1, 1000, 20, 100, 0.5);
    let choices = data.choices(2, 0, KeyShape::Uniform);
    let mut counts = [0_u32; 1000];
    for sequence in 0..1_000_000 {
        counts[choices.get(sequence) as usize] += 1;
    }
    let chi_square: f64 =
        counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
    // 999 degrees of freedom: one in a thousand exceeds 1143.
    assert!(chi_square < 1143.0, "{chi_square}");
}

fn mixed(name: &str) -> KvStepKind {
    let (_, mix) = KvMix::YCSB.iter().find(|(known, _)| *known == name).unwrap();
    KvStepKind::Mixed { mix: *mix, time: Duration::ZERO }
}

#[test]
fn clients_of_every_mix_find_what_was_written() {
    let mut bench = Bench::loaded();
    for round in 0..2 {
        for (name, mix) in KvMix::YCSB {
            let before = bench.kv.keys();
            let done = bench.step(mixed(name), 1000);
            assert_eq!((done.operations, done.unexpected), (3000, 0), "{name} {round}");
            assert_eq!(failed(&done.checks), [""; 0], "{name} {round}: {:?}", done.checks);
            assert_eq!(failed(&bench.kv.check(&bench.memory.facts())), [""; 0], "{name}");
            let values = bench.check_values();
            assert!(values.holds, "{name} {round}: {}", values.found);

            // 5 % of 3000, and what was prepared when the step ended.
            let inserted = bench.kv.keys() - before;
            let expected = if mix.write == KvMixWrite::Insert { 80..230 } else { 0..1 };
            assert!(expected.contains(&inserted), "{name}: {inserted}");
        }
        for how in READS {
            let done = bench.step(read(how), 500);
            assert_eq!((done.unexpected, failed(&done.checks)), (0, vec![]), "{how:?} {round}");
        }
    }
}

#[test]
fn a_mix_has_its_kinds_in_its_shares() {
    for (name, kinds, share) in [
        ("ycsb_a", &["get", "put"][..], 0.5),
        ("ycsb_b", &["get", "put"], 0.05),
        ("ycsb_c", &["get"], 0.0),
        ("ycsb_d", &["get", "put"], 0.05),
        ("ycsb_e", &["scan", "put"], 0.05),
        ("ycsb_f", &["get", "read_modify_write"], 0.5),
    ] {
        let bench = Bench::loaded();
        let (_, mut tasks) = bench.tasks(mixed(name));
        let program = &mut tasks[0].program;
        let names: Vec<&str> = program.kinds().iter().map(|kind| kind.name).collect();
        assert_eq!(names, kinds, "{name}");

        let mut writes = 0;
        for _ in 0..4000 {
            let Next::Ready(kind) = program.prepare() else { panic!() };
            writes += kind;
            assert!(program.execute().unwrap().is_expected, "{name}");
        }
        // Within five standard deviations.
        let mean = 4000.0 * share;
        let deviation = f64::sqrt(mean * (1.0 - share));
        assert!((writes as f64 - mean).abs() <= 5.0 * deviation, "{name}: {writes}");
    }
}

/// Ten billion numbers, whose hashes are the keys.
#[test]
fn the_most_frequent_key_of_a_mix_has_its_share_whatever_the_number_of_keys() {
    const DRAWS: u64 = 200_000;
    for keys in [1000, 50_000] {
        let data = Data::new(1, keys, 20, 100, 0.5);
        let choices = data.choices(2, 0, KeyShape::Scrambled);
        let mut counts = vec![0_u32; keys as usize];
        for sequence in 0..DRAWS {
            counts[choices.get(sequence) as usize] += 1;
        }
        counts.sort_unstable();
        let share = f64::from(counts[keys as usize - 1]) / DRAWS as f64;
        // The sum of n^-0.99 over ten billion numbers is 26.47. On 1000 keys, those of other numbers
        // add a thousandth.
        let expected = 1.0 / 26.469 + 1.0 / keys as f64;
        assert!((share - expected).abs() < 0.003, "{keys}: {share}");
    }
}

#[test]
fn a_lost_or_damaged_new_key_is_reported() {
    let inserted = |bench: &mut Bench| {
        bench.step(mixed("ycsb_d"), 2000);
        bench.kv.keys() - 7
    };

    let mut bench = Bench::loaded();
    let lost = inserted(&mut bench);
    let key = bench.key(lost);
    bench.memory.map().remove(&key);
    let facts = bench.memory.facts();
    assert_eq!(failed(&bench.kv.check(&facts)), ["keys", "bytes of keys and values"]);
    let done = bench.step(mixed("ycsb_d"), 2000);
    assert_eq!(failed(&done.checks), ["values read"]);
    let message = format!("key {lost} is missing");
    assert!(done.checks[0].found.contains(&message), "{}", done.checks[0].found);

    let mut bench = Bench::loaded();
    let damaged = inserted(&mut bench);
    let (key, other) = (bench.key(damaged), bench.key(damaged + 1));
    let value = bench.memory.map()[&other].clone();
    bench.memory.map().insert(key, value);
    let done = bench.step(mixed("ycsb_d"), 2000);
    let message = format!("the value of key {damaged} is damaged");
    assert!(done.checks[0].found.contains(&message), "{}", done.checks[0].found);
}

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

const DRAWS: u32 = 1_000_000;

/// Returns the number of reads of each of 1000 keys, of a million reads.
fn read_counts(keys: KvKeys, purpose: u64) -> Vec<u32> {
    let data = Data::new(1, 1000, 20, 100, 0.5);
    let chooser = data.chooser(keys);
    let mut random = Random::stream(9, &[purpose]);
    let mut counts = vec![0; 1000];
    for _ in 0..DRAWS {
        counts[chooser.draw(&mut random) as usize] += 1;
    }
    counts
}

/// Asserts that the counts fit these expected ones: a chi-square below four standard deviations
/// more than the mean.
pub(super) fn assert_fit(counts: &[u32], expected: &[f64]) {
    let (mut chi_square, mut freedom) = (0.0, -1.0);
    for (&count, &expected) in counts.iter().zip(expected) {
        if expected == 0.0 {
            assert_eq!(count, 0);
            continue;
        }
        chi_square += (f64::from(count) - expected).powi(2) / expected;
        freedom += 1.0;
    }
    assert!(chi_square < freedom + 4.0 * f64::sqrt(2.0 * freedom), "{chi_square} {freedom}");
}

#[test]
fn uniform_reads_have_equal_shares() {
    assert_fit(&read_counts(KvKeys::Uniform, 0), &[1000.0; 1000]);
}

/// Number n is drawn if `1000 exp(-x)` is from n to n + 1, where x is uniform from 0 to the range.
#[test]
fn exponential_reads_have_the_shares_of_db_bench() {
    for range in [2.0, 5.0, 12.0] {
        let smallest = 1000.0 * f64::exp(-range);
        let place_of = |number: f64| number.max(smallest).ln();
        let mut expected = vec![0.0; 1000];
        for number in 0..1000_u64 {
            let key = (number * 0x5bd1_e995 % 1000) as usize;
            let width = place_of(number as f64 + 1.0) - place_of(number as f64);
            expected[key] += f64::from(DRAWS) * width / range;
        }
        assert_fit(&read_counts(KvKeys::Exponential { range }, range as u64), &expected);
    }
}

#[test]
fn zipfian_reads_have_the_shares_of_the_mixes() {
    let counts = read_counts(KvKeys::Zipfian { exponent: 0.99 }, 1);
    let data = Data::new(1, 1000, 20, 100, 0.5);
    let choices = data.choices(2, 0, KeyShape::Scrambled);
    let mut others = vec![0_u32; 1000];
    for sequence in 0..DRAWS {
        others[choices.get(sequence.into()) as usize] += 1;
    }
    // Both have as many draws, so their difference has twice the variance of one.
    let pairs = counts.iter().zip(&others).map(|(&one, &other)| (f64::from(one), f64::from(other)));
    let chi_square: f64 = pairs.map(|(one, other)| (one - other).powi(2) / (one + other)).sum();
    assert!(chi_square < 999.0 + 4.0 * f64::sqrt(2.0 * 999.0), "{chi_square}");

    // The sum of n^-1.5 is 2.612.
    let most = *read_counts(KvKeys::Zipfian { exponent: 1.5 }, 2).iter().max().unwrap();
    let share = f64::from(most) / f64::from(DRAWS);
    assert!((share - 1.0 / 2.612).abs() < 0.005, "{share}");
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
