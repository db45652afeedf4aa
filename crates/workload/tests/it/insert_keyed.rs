//! The Insert Benchmark on RocksDB and Speedb: those that `ASSAY_TEST_ROCKSDB` names, separated by `:`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::rocksdb::{Config, Library, RocksDb};
use engine::{Engine, SettleLimits};
use plan::{Checks, IndexSet, IndexStatements, InsertStep, InsertStepKind, Query, Tables, Terms};
use workload::insert::keyed::Keyed;
use workload::insert::{Database, Insert};
use workload::{Check, Next, Schedule, Task};

use crate::libraries::on_each;

/// What each step does, with so many rows per commit.
const STEPS: [(InsertStepKind, u32); 6] = [
    (InsertStepKind::Load { rows: 4000 }, 100),
    (InsertStepKind::Index { rows: 100 }, 100),
    (InsertStepKind::Write { rows: 3000 }, 50),
    (InsertStepKind::Write { rows: 500 }, 5),
    (query(Query::Range), 50),
    (query(Query::Point), 50),
];

const fn query(query: Query) -> InsertStepKind {
    InsertStepKind::Query {
        query,
        rate: 100.0,
        time: Duration::ZERO,
    }
}

fn plan(tables: Tables) -> plan::Insert {
    plan::Insert {
        steps: Vec::new(),
        initial_rows: 0,
        write_rows: 0,
        read_write_time: Duration::ZERO,
        delete_per_insert: true,
        index_statements: IndexStatements::Usual,
        bulk_load: false,
        tables,
        partitions: 0,
        long_transaction: None,
        indexes: IndexSet::Current,
        data_length: (10, 20),
        terms: Terms {
            checks: Checks::Full,
            error_limit: 0,
            attempts: 1,
            settle_at_least: Duration::ZERO,
            settle_at_most: Duration::ZERO,
        },
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

fn step(insert: &mut Insert, database: &RocksDb, step: &InsertStep) -> Vec<Check> {
    let mut works = Keyed(|| database.connect()).tasks(insert, step).unwrap();
    let all: Vec<Did> = std::thread::scope(|scope| {
        let threads: Vec<_> = works
            .iter_mut()
            .map(|work| scope.spawn(|| run(work)))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let account = |(work, did): (&mut Task, &Did)| {
        let account = work.program.account(did.rows).unwrap();
        (work.client, account)
    };
    let accounts = works.iter_mut().zip(&all).map(account).collect();
    insert.apply(step, &accounts, true);
    let queries = all.iter().map(|did| did.queries).sum();
    let query_rows = all.iter().map(|did| did.query_rows).sum();
    let mut checks = checks(insert, database);
    checks.extend(insert.check_point_queries(step, queries, query_rows));
    checks
}

fn checks(insert: &Insert, database: &RocksDb) -> Vec<Check> {
    let database = Keyed(|| database.connect());
    let tables = 0..insert.tables().len();
    let check = |table| database.check(insert, table).unwrap();
    tables.flat_map(check).collect()
}

fn assert_all_hold(checks: &[Check]) {
    assert!(checks.len() >= 3);
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

fn whole(library: &Arc<Library>, place: &Path, tables: Tables) {
    let database = RocksDb::create(library, place, &config()).unwrap();
    let mut insert = Insert::new(&plan(tables), 2, 7);
    for (number, (kind, rows_per_commit)) in STEPS.into_iter().enumerate() {
        let one = InsertStep {
            number: number as u32,
            name: String::new(),
            kind,
            rows_per_commit,
        };
        assert_all_hold(&step(&mut insert, &database, &one));
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
        for tables in [Tables::PerClient, Tables::Shared] {
            let place = tempfile::tempdir().unwrap();
            whole(library, place.path(), tables);
        }
    });
}
