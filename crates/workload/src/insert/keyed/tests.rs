//! Tests of the benchmark on a map in memory: intact, with failures, and with damaged data.

use std::time::Duration;

use engine::ErrorClass;
use plan::{IndexSet, InsertStep, InsertStepKind, Query, Tables, WriteEnd};

use super::*;
use crate::insert::tests::{plan, step};
use crate::tests::memory::Memory;
use crate::{Next, Summaries};

fn shared() -> plan::Insert {
    plan::Insert { tables: Tables::Shared, ..plan() }
}

/// Returns a step with a number of rows per commit.
type StepSpec = (InsertStepKind, u32);

const LOAD: StepSpec = (InsertStepKind::Load { rows: 2000 }, 100);
const INDEX: StepSpec = (InsertStepKind::Index { rows: 100 }, 10);
const WRITE: StepSpec = (InsertStepKind::Write { until: WriteEnd::Rows(1000), rate: None }, 50);

fn query(query: Query, rows_per_commit: u32) -> StepSpec {
    let kind = InsertStepKind::Query { query, rate: 100.0, time: Duration::ZERO };
    (kind, rows_per_commit)
}

/// A benchmark, its engine, and the number of its next step.
struct Bench {
    insert: Insert,
    memory: Arc<Memory>,
    number: u32,
}

#[derive(Debug, Default, PartialEq)]
struct StepResult {
    roles: Vec<&'static str>,
    queries: u64,
    query_rows: u64,
    inserted: u64,
    deleted: u64,
    failed: u64,
    unexpected: u64,
}

impl Bench {
    /// Three clients if they share a table, otherwise two.
    fn new(plan: &plan::Insert) -> Self {
        Self::with_seed(plan, 1)
    }

    fn with_seed(plan: &plan::Insert, seed: u64) -> Self {
        let clients = 2 + u32::from(plan.tables == Tables::Shared);
        Self { insert: Insert::new(plan, clients, seed), memory: Arc::default(), number: 0 }
    }

    /// Returns a benchmark with loaded and indexed tables.
    fn ready(plan: &plan::Insert) -> Self {
        let mut bench = Self::new(plan);
        for kind in [LOAD, INDEX] {
            bench.step(kind, u64::MAX);
        }
        bench
    }

    fn begin(&mut self, (kind, rows_per_commit): StepSpec) -> (InsertStep, Vec<Task>) {
        let step = step(self.number, kind, rows_per_commit);
        self.number += 1;
        let database = Keyed { connect: || Ok(self.memory.connect()), refuses_points: None };
        let works = database.tasks(&self.insert, &step).unwrap();
        (step, works)
    }

    /// Runs a step, with up to `op_count` operations of each connection, in turns.
    fn step(&mut self, kind: StepSpec, op_count: u64) -> StepResult {
        let (step, mut works) = self.begin(kind);
        let mut result = StepResult::default();
        let mut rows = vec![0; works.len()];
        let mut running = vec![true; works.len()];
        let mut begun = vec![0; works.len()];
        while running.contains(&true) {
            for (number, work) in works.iter_mut().enumerate() {
                if !running[number] {
                    continue;
                }
                match work.program.prepare() {
                    Next::Later => {}
                    // A step usually ends with a prepared operation that never runs.
                    Next::Ready(_) if begun[number] == op_count => running[number] = false,
                    Next::Done => running[number] = false,
                    Next::Ready(kind) => {
                        begun[number] += 1;
                        rows[number] += run_one(work, kind, &mut result);
                    }
                }
            }
        }
        result.roles = works.iter().map(|work| work.role).collect();
        self.apply(&step, &mut works, &rows, result.failed == 0);
        result
    }

    fn apply(&mut self, step: &InsertStep, works: &mut [Task], rows: &[u64], is_flawless: bool) {
        let summary =
            |(work, &rows): (&mut Task, _)| (work.client, work.program.summary(rows).unwrap());
        let summaries: Summaries = works.iter_mut().zip(rows).map(summary).collect();
        self.insert.apply(step, &summaries, is_flawless);
    }

    fn checks(&self) -> Vec<Check> {
        let database = Keyed { connect: || Ok(self.memory.connect()), refuses_points: None };
        let tables = 0..self.insert.tables().len();
        let check = |table| database.check(&self.insert, table).unwrap();
        tables.flat_map(check).collect()
    }

    /// Returns the smallest and the largest key of the first table.
    fn ends(&self) -> (i64, i64) {
        let (mut session, layout) = (self.memory.connect(), self.insert.layout(0));
        let key_min = smallest_key(&mut session, &layout).unwrap();
        let key_max = largest_key(&mut session, &layout).unwrap();
        (key_min.unwrap(), key_max.unwrap())
    }

    /// Returns the checks that don't hold.
    fn broken(&self) -> Vec<String> {
        let checks = self.checks();
        assert!(checks.len() >= 3, "{checks:?}");
        let broken = checks.into_iter().filter(|check| !check.holds);
        broken.map(|check| check.what).collect()
    }

    fn entry(&self, index: usize, nth: usize) -> Vec<u8> {
        let layout = self.insert.layout(0);
        let start = layout.indexes()[index].start();
        let map = self.memory.map();
        let mut entries = map.keys().filter(|key| key.starts_with(start));
        entries.nth(nth).unwrap().clone()
    }
}

/// Runs an operation, with up to three attempts, and returns its rows.
fn run_one(work: &mut Task, kind: usize, result: &mut StepResult) -> u64 {
    let mut executed = work.program.execute();
    for _ in 0..2 {
        if executed.as_ref().is_err_and(|error| error.class.is_transient()) {
            executed = work.program.execute();
        }
    }
    let Ok(executed) = executed else {
        result.failed += 1;
        return 0;
    };
    result.unexpected += u64::from(!executed.is_expected);
    match work.program.kinds()[kind].name {
        "query" => {
            result.queries += 1;
            result.query_rows += executed.rows;
        }
        "insert" => result.inserted += executed.rows,
        "delete" => result.deleted += executed.rows,
        _ => assert_eq!(executed.rows, 0),
    }
    executed.rows
}

#[test]
fn the_whole_benchmark_leaves_the_expected_data() {
    let ways = [
        (IndexSet::Current, IndexStatements::Usual),
        (IndexSet::Before2023Dec, IndexStatements::One),
    ];
    for (indexes, index_statements) in ways {
        let mut bench = Bench::new(&plan::Insert { indexes, index_statements, ..plan() });
        let result = bench.step(LOAD, u64::MAX);
        assert_eq!((result.inserted, result.unexpected), (4000, 0));
        assert_eq!(bench.memory.map().len(), 4000, "rows alone");
        assert_eq!(bench.broken(), [""; 0]);

        let result = bench.step(INDEX, u64::MAX);
        assert_eq!((result.inserted, result.roles), (200, vec!["index", "index"]));
        assert_eq!(bench.memory.map().len(), 4 * 4200);
        assert_eq!(bench.broken(), [""; 0]);

        let result = bench.step(WRITE, u64::MAX);
        assert_eq!((result.inserted, result.deleted, result.unexpected), (2000, 2000, 0));
        assert_eq!(result.roles, ["insert", "delete", "insert", "delete"]);
        assert_eq!(bench.broken(), [""; 0]);

        for how in [Query::Range, Query::Point] {
            let (kind, rows_per_commit) = query(how, 5);
            let result = bench.step((kind, rows_per_commit), 40);
            let roles = ["query", "insert", "delete"].repeat(2);
            assert_eq!((result.roles, result.unexpected), (roles, 0));
            // One operation queries the smallest key.
            assert_eq!((result.inserted, result.deleted), (400, 390));
            assert_eq!(bench.broken(), [""; 0]);
            let step = step(0, kind, rows_per_commit);
            let check = bench.insert.check_point_queries(&step, result.queries, result.query_rows);
            let is_point = how == Query::Point;
            assert_eq!(check.map(|check| check.holds), is_point.then_some(true));
        }
        assert_eq!(bench.insert.rows(), 4220);
        assert_eq!(bench.memory.map().len(), 4 * 4220);
    }
}

#[test]
fn fewer_indexes_are_kept_and_scanned() {
    for indexes in 0..3 {
        let mut bench = Bench::new(&plan::Insert { secondary_indexes: indexes, ..plan() });
        let mut steps = vec![LOAD, INDEX, WRITE, query(Query::Range, 5)];
        if indexes == 0 {
            steps = vec![LOAD, WRITE];
        }
        steps.push(query(Query::Point, 5));
        for kind in steps {
            let is_query = matches!(kind.0, InsertStepKind::Query { .. });
            let result = bench.step(kind, if is_query { 40 } else { u64::MAX });
            assert_eq!(result.unexpected, 0, "{kind:?}");
            assert_eq!(bench.broken(), [""; 0], "{kind:?}");
        }
        let rows = bench.insert.rows() as usize;
        assert_eq!(bench.memory.map().len(), (1 + indexes as usize) * rows);
    }
}

#[test]
fn tables_may_be_loaded_with_their_indexes() {
    for plan in [plan(), shared()] {
        let mut bench = Bench::new(&plan);
        for kind in [INDEX, LOAD, WRITE] {
            let result = bench.step(kind, u64::MAX);
            assert_eq!(result.unexpected, 0, "{kind:?}");
            assert_eq!(bench.broken(), [""; 0], "{kind:?}");
            let rows = bench.insert.rows() as usize;
            assert_eq!(bench.memory.map().len(), 4 * rows, "{kind:?}");
        }
    }
}

#[test]
fn queries_find_the_expected_rows_and_write_nothing() {
    let mut bench = Bench::ready(&plan());
    let before = bench.memory.map().clone();
    for query in [Query::Range, Query::Point] {
        let kind = InsertStepKind::Query { query, rate: 0.0, time: Duration::ZERO };
        let result = bench.step((kind, 0), 250);
        assert_eq!((result.roles, result.unexpected), (vec!["query"; 2], 0));
        let check =
            bench.insert.check_point_queries(&step(0, kind, 0), result.queries, result.query_rows);
        assert!(check.is_none_or(|check| check.holds));
        assert_eq!(bench.broken(), [""; 0]);
    }
    assert!(*bench.memory.map() == before);
}

#[test]
fn a_step_may_end_in_the_middle_of_its_writes() {
    let until = WriteEnd::Time(Duration::ZERO);
    let mut bench = Bench::ready(&plan());
    for _ in 0..2 {
        let result = bench.step((InsertStepKind::Write { until, rate: None }, 50), 40);
        // One operation queries the smallest key.
        assert_eq!((result.inserted, result.deleted), (4000, 3900));
        assert_eq!((result.unexpected, bench.broken()), (0, Vec::new()));
    }
}

#[test]
fn clients_that_share_a_table_share_its_keys_and_its_oldest_rows() {
    let mut bench = Bench::ready(&shared());
    assert_eq!(bench.broken(), [""; 0]);
    let before = bench.insert.rows();
    for kind in [WRITE, query(Query::Range, 50), query(Query::Point, 50), WRITE] {
        let result = bench.step(kind, 33);
        assert_eq!(result.unexpected, 0);
        assert_eq!(result.deleted % 50, 0, "each delete found all its rows");
        assert_eq!(bench.broken(), [""; 0]);
    }
    let (key_min, key_max) = bench.ends();
    let span = key_max - key_min + 1;
    assert_eq!(span as u64, bench.insert.rows(), "keys have no gaps");
    assert!(bench.insert.rows() > before);
}

#[test]
fn threads_that_share_a_table_assign_and_delete_each_key_once() {
    let mut bench = Bench::ready(&shared());
    let (step, mut works) = bench.begin(WRITE);
    let rows: Vec<u64> = std::thread::scope(|scope| {
        let run = |work: &mut Task| {
            let (mut rows, mut result) = (0, StepResult::default());
            loop {
                match work.program.prepare() {
                    Next::Ready(kind) => rows += run_one(work, kind, &mut result),
                    Next::Later => work.program.wait(std::time::Duration::from_secs(1)),
                    Next::Done => return rows,
                }
            }
        };
        let threads: Vec<_> = works.iter_mut().map(|work| scope.spawn(move || run(work))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(rows, [350, 350, 350, 350, 300, 300]);
    bench.apply(&step, &mut works, &rows, true);
    assert_eq!(bench.insert.rows(), 2100);
    assert_eq!(bench.broken(), [""; 0]);
}

#[test]
fn an_index_of_a_shared_table_has_rows_inserted_during_its_creation() {
    let mut bench = Bench::new(&shared());
    bench.step(LOAD, u64::MAX);
    let (step, mut works) = bench.begin(INDEX);
    // The first client is done before the others begin.
    let mut result = StepResult::default();
    let mut rows = Vec::new();
    for work in &mut works {
        let mut own = 0;
        while let Next::Ready(kind) = work.program.prepare() {
            own += run_one(work, kind, &mut result);
        }
        rows.push(own);
    }
    bench.apply(&step, &mut works, &rows, true);
    assert_eq!(bench.broken(), [""; 0]);
    assert_eq!(bench.memory.map().len(), 4 * 2100);
}

#[test]
fn a_damaged_row_or_entry_is_found() {
    type Spoil = fn(&Bench);
    let ways: [(Spoil, &[&str]); 6] = [
        (
            |bench| {
                let entry = bench.entry(1, 77);
                bench.memory.map().remove(&entry);
            },
            &["rows in index registersegment of pi1"],
        ),
        (
            // The number of entries is the same, but one belongs to a missing row.
            |bench| {
                let mut entry = bench.entry(2, 77);
                let mut map = bench.memory.map();
                map.remove(&entry);
                *entry.last_mut().unwrap() ^= 1;
                entry[14] ^= 1;
                map.insert(entry, Vec::new());
            },
            &["entries of index pdc of pi1"],
        ),
        (
            |bench| {
                let key = bench.insert.layout(0).row_key(5);
                bench.memory.map().get_mut(&key[..]).unwrap()[30] ^= 1;
            },
            &["values of pi1"],
        ),
        (
            |bench| {
                let key = bench.insert.layout(0).row_key(5);
                // The product, with which one of the indexes starts.
                bench.memory.map().get_mut(&key[..]).unwrap()[16] ^= 1;
            },
            &["values of pi1", "entries of index marketsegment of pi1"],
        ),
        (
            |bench| {
                let key = bench.insert.layout(0).row_key(1);
                bench.memory.map().remove(&key[..]);
            },
            &[
                "rows of pi1",
                "smallest key of pi1",
                "entries of index marketsegment of pi1",
                "entries of index registersegment of pi1",
                "entries of index pdc of pi1",
            ],
        ),
        (
            |bench| {
                let key = bench.insert.layout(0).row_key(2101);
                bench.memory.map().insert(key.to_vec(), b"foreign".to_vec());
            },
            &["rows of pi1", "largest key of pi1", "values of pi1"],
        ),
    ];
    for (spoil, expected) in ways {
        let bench = Bench::ready(&plan());
        assert_eq!(bench.broken(), [""; 0]);
        spoil(&bench);
        assert_eq!(bench.broken(), expected);
    }
}

#[test]
fn queries_report_a_missing_entry() {
    let mut bench = Bench::ready(&plan());
    let middle = bench.insert.layout(0).indexes()[0].range_start(5000);
    bench.memory.map().retain(|key, _| !key.starts_with(&middle[..4]) || key[..] < middle[..]);
    let (_, mut works) = bench.begin(query(Query::Range, 50));
    let mut result = StepResult::default();
    for _ in 0..60 {
        assert_eq!(works[0].program.prepare(), Next::Ready(0));
        run_one(&mut works[0], 0, &mut result);
    }
    assert!((5..15).contains(&result.unexpected), "{}", result.unexpected);

    let mut bench = Bench::ready(&plan());
    bench.memory.map().retain(|key, _| {
        let is_row = key.len() == ROW_KEY_BYTES;
        !is_row || key[ROW_KEY_BYTES - 1] % 2 == 0
    });
    let result = bench.step(query(Query::Point, 1), 300);
    let (kind, rows_per_commit) = query(Query::Point, 1);
    let step = step(0, kind, rows_per_commit);
    let check = bench.insert.check_point_queries(&step, result.queries, result.query_rows);
    assert!(!check.unwrap().holds);
}

#[test]
fn a_row_that_can_not_be_read_is_not_deleted() {
    let mut bench = Bench::ready(&plan());
    let key = bench.insert.layout(0).row_key(20);
    bench.memory.map().get_mut(&key[..]).unwrap().truncate(23);
    let (_, mut works) = bench.begin(WRITE);
    let deleter = &mut works[1].program;
    assert_eq!(deleter.prepare(), Next::Ready(1));
    deleter.execute().unwrap();
    assert_eq!(deleter.prepare(), Next::Ready(0));
    let error = deleter.execute().unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.contains("damaged"), "{error}");
}

#[test]
fn a_delete_of_too_few_rows_is_reported() {
    let mut bench = Bench::ready(&plan());
    let rows = bench.insert.layout(0);
    bench
        .memory
        .map()
        .retain(|key, _| !key.starts_with(rows.start()) || *key < rows.row_key(31).to_vec());
    let (_, mut works) = bench.begin(query(Query::Point, 50));
    let deleter = &mut works[2];
    let mut result = StepResult::default();
    for expected in [0, 30, 0] {
        let Next::Ready(kind) = deleter.program.prepare() else { panic!() };
        assert_eq!(run_one(deleter, kind, &mut result), expected);
    }
    assert_eq!(result.unexpected, 2);
}

#[test]
fn a_retry_writes_the_same_rows() {
    for plan in [plan(), shared()] {
        let mut bench = Bench::ready(&plan);
        *bench.memory.failures.lock().unwrap() = vec![ErrorClass::Busy; 2];
        let result = bench.step(WRITE, u64::MAX);
        assert!(bench.memory.failures.lock().unwrap().is_empty());
        assert_eq!((result.failed, result.unexpected), (0, 0));
        assert_eq!(result.inserted, result.deleted);
        assert_eq!(bench.broken(), [""; 0]);
    }
}

#[test]
fn a_failed_operation_changes_nothing() {
    for plan in [plan(), shared()] {
        let mut bench = Bench::ready(&plan);
        for _ in 0..3 {
            // An insert and a delete fail, and others follow.
            *bench.memory.failures.lock().unwrap() = vec![ErrorClass::Other; 5];
            let result = bench.step(WRITE, u64::MAX);
            assert_eq!(result.failed, 5);
            assert!(result.inserted > 0 && result.deleted > 0);
            assert_eq!(bench.broken(), [""; 0]);
        }
        // Missing keys don't change the number of deleted rows.
        let rows = bench.insert.rows();
        let result = bench.step(WRITE, u64::MAX);
        assert_eq!(result.inserted - result.deleted, bench.insert.rows() - rows);
        assert!(result.inserted - result.deleted <= 250, "{result:?}");
        assert_eq!(bench.broken(), [""; 0]);
    }
}

#[test]
fn a_delete_that_failed_last_is_repeated_in_the_next_step() {
    let mut bench = Bench::ready(&shared());
    let (step, mut works) = bench.begin(query(Query::Point, 50));
    let mut result = StepResult::default();
    let mut rows = vec![0; works.len()];
    for (number, work) in works.iter_mut().enumerate() {
        for operation in 0..5 {
            let Next::Ready(kind) = work.program.prepare() else { panic!() };
            if work.role == "delete" && number == 2 && operation == 4 {
                *bench.memory.failures.lock().unwrap() = vec![ErrorClass::Other];
            }
            rows[number] += run_one(work, kind, &mut result);
        }
    }
    assert_eq!(result.failed, 1);
    bench.apply(&step, &mut works, &rows, false);
    assert_eq!(bench.broken(), [""; 0]);
    assert_eq!(bench.ends().0, 151, "the fourth delete");
    bench.step(query(Query::Point, 50), 40);
    assert!(bench.ends().0 > 2000);
    assert_eq!(bench.broken(), [""; 0]);
}

#[test]
fn an_interrupt_ends_the_creation_of_an_index() {
    let mut bench = Bench::new(&plan());
    bench.step(LOAD, u64::MAX);
    let (_, mut works) = bench.begin(INDEX);
    let work = &mut works[0];
    while work.program.prepare() == Next::Ready(0) {
        work.program.execute().unwrap();
    }
    work.interrupt.take().unwrap()();
    let error = work.program.execute().unwrap_err();
    assert_eq!(error.class, ErrorClass::Interrupted);
}

#[test]
fn unsupported_options_are_reported() {
    let asked =
        plan::Insert { partitions: 2, long_transaction: Some(Duration::from_secs(1)), ..plan() };
    let not_applicable = |plan: &plan::Insert| {
        let bench = Bench::new(plan);
        let (kind, rows_per_commit) = LOAD;
        let step = step(0, kind, rows_per_commit);
        let keyed = Keyed { connect: || Ok(bench.memory.connect()), refuses_points: None };
        keyed.not_applicable(&bench.insert, &step)
    };
    let names = ": `partitions`, `long-transaction`";
    assert!(not_applicable(&asked).unwrap().ends_with(names));
    assert_eq!(not_applicable(&plan()), None);
}

#[test]
fn the_same_seed_gives_the_same_data() {
    let end = |seed| {
        let mut bench = Bench::with_seed(&plan(), seed);
        bench.step(LOAD, u64::MAX);
        bench.step(INDEX, u64::MAX);
        bench.step(WRITE, 30);
        bench.memory.map().clone()
    };
    assert!(end(1) == end(1));
    assert!(end(1) != end(2));
}
