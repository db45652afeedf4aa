//! The Insert Benchmark on RocksDB and Speedb: those that `ASSAY_TEST_ROCKSDB` names, separated by `:`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::rocksdb::{Config, Library, RocksDb};
use engine::{Engine, IndexStatements, SettleLimits};
use workload::insert::{Check, Done, IndexSet, Insert, Options, Step, StepKind};
use workload::{Next, Schedule, Task};

use crate::libraries::on_each;

const STEPS: [StepKind; 6] = [
    StepKind::Load {
        rows: 4000,
        rows_per_commit: 100,
    },
    StepKind::Index {
        rows: 100,
        rows_per_commit: 100,
    },
    StepKind::Write {
        rows: 3000,
        rows_per_commit: 50,
    },
    StepKind::Write {
        rows: 500,
        rows_per_commit: 5,
    },
    StepKind::Query {
        point: false,
        rate: 100.0,
        rows_per_commit: 50,
    },
    StepKind::Query {
        point: true,
        rate: 100.0,
        rows_per_commit: 50,
    },
];

fn options(shared_table: bool) -> Options {
    Options {
        seed: 7,
        clients: 2,
        shared_table,
        delete_per_insert: true,
        indexes: IndexSet::Current,
        data_length: (10, 20),
        partitions: None,
        index_statements: IndexStatements::Usual,
        bulk_load: false,
        long_transaction_seconds: None,
    }
}

/// Little memory, so that little data makes files.
fn config() -> Config {
    Config {
        set: vec![("write_buffer_size".into(), "128K".into())],
        ..Config::default()
    }
}

/// What one connection did.
#[derive(Default)]
struct Did {
    rows: u64,
    queries: u64,
    query_rows: u64,
}

/// Runs a connection to the end of its quota; one without any, so many operations.
fn run(work: &mut Task) -> Did {
    let mut did = Did::default();
    let is_query = work.role == "query";
    for _ in 0..500 {
        let kind = loop {
            match work.program.prepare() {
                Next::Ready(kind) => break kind,
                Next::Later => work.program.wait(Duration::from_secs(1)),
                Next::Done => return did,
            }
        };
        let outcome = work.program.execute().unwrap();
        let (least, most) = work.program.expected_rows();
        assert!(
            (least..=most).contains(&outcome.rows),
            "{}: {} rows, not {least} to {most}",
            work.program.kinds()[kind].0,
            outcome.rows
        );
        did.rows += outcome.rows;
        if is_query && kind == 0 {
            did.queries += 1;
            did.query_rows += outcome.rows;
        }
        if work.schedule != Schedule::Closed && did.rows >= 1000 {
            return did;
        }
    }
    did
}

fn step(insert: &mut Insert, database: &RocksDb, step: &Step) -> Vec<Check> {
    let connect = || Ok(database.connect());
    let mut works = insert.keyed_connections(step, connect).unwrap();
    let all: Vec<Did> = std::thread::scope(|scope| {
        let threads: Vec<_> = works
            .iter_mut()
            .map(|work| scope.spawn(|| run(work)))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut done: Vec<_> = works
        .iter_mut()
        .zip(&all)
        .map(|(work, did)| Done {
            client: work.client,
            program: &mut *work.program,
            rows: did.rows,
            flawless: true,
        })
        .collect();
    insert.apply(step, &mut done).unwrap();
    let queries = all.iter().map(|did| did.queries).sum();
    let query_rows = all.iter().map(|did| did.query_rows).sum();
    let mut checks = checks(insert, database);
    checks.extend(insert.check_point_queries(step, queries, query_rows));
    checks
}

fn checks(insert: &Insert, database: &RocksDb) -> Vec<Check> {
    let mut session = database.connect();
    let tables = 0..insert.tables().len();
    let check = |table| insert.check_keyed(table, &mut session).unwrap();
    tables.flat_map(check).collect()
}

fn assert_all_hold(checks: &[Check]) {
    assert!(checks.len() >= 3);
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

fn whole(library: &Arc<Library>, place: &Path, shared_table: bool) {
    let database = RocksDb::create(library, place, &config()).unwrap();
    let mut insert = Insert::new(options(shared_table));
    for (number, kind) in STEPS.into_iter().enumerate() {
        let number = number as u32;
        assert_all_hold(&step(&mut insert, &database, &Step { number, kind }));
    }
    assert_eq!(
        database.inspect().unwrap().keys,
        4 * insert.rows(),
        "nothing else is there"
    );
    let limits = SettleLimits {
        at_least: Duration::ZERO,
        at_most: Duration::from_secs(60),
    };
    database.settle(limits, &AtomicBool::new(false)).unwrap();
    database.stop().unwrap();
    let database = RocksDb::open(library, place, &config()).unwrap();
    assert_all_hold(&checks(&insert, &database));
    database.stop().unwrap();
}

#[test]
fn the_whole_benchmark_leaves_what_it_should() {
    let name = "insert_keyed::the_whole_benchmark_leaves_what_it_should";
    on_each(name, |library| {
        for shared_table in [false, true] {
            let place = tempfile::tempdir().unwrap();
            whole(library, place.path(), shared_table);
        }
    });
}
