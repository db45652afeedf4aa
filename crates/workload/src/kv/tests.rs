//! Tests of the sequence on a map in memory, intact and with damaged data.

mod changes;
mod rates;
mod shares;
mod transactions;

use plan::{KvGraph, KvGraphModel, KvRead, TestRate};

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
    /// The rate of the following steps.
    rate: Option<TestRate>,
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
        Self {
            kv,
            memory: Arc::default(),
            number: 0,
            is_flawless: true,
            is_synced: false,
            rate: None,
        }
    }

    fn loaded() -> Self {
        let mut bench = Self::new(&plan(), 1);
        bench.step(KvStepKind::FillSeq, u64::MAX);
        bench
    }

    fn tasks(&self, kind: KvStepKind) -> (KvStep, Vec<Task>) {
        let step = KvStep {
            number: self.number,
            name: String::new(),
            kind,
            sync: self.is_synced,
            rate: self.rate.clone(),
        };
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

            // 5% of 3000, and what was prepared when the step ended.
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
