use super::*;
use crate::contract::{Index, IndexRows, ParamType, RangeScan, Session};
use crate::error::ErrorClass;
use crate::support::catalog::index_on;

fn table() -> Table {
    use crate::contract::{Column, ColumnType};
    let columns = [
        ("id", ColumnType::AutoKey),
        ("at", ColumnType::Timestamp),
        ("k", ColumnType::Int4),
        ("data", ColumnType::Text(100)),
    ];
    let index = Index { name: "k", columns: vec!["k", "at"] };
    Table {
        name: "t".into(),
        columns: columns.map(|(name, kind)| Column { name, kind }).into(),
        indexes: vec![index],
        partitions: None,
    }
}

fn start(set: &[(&str, &str)]) -> Result<(tempfile::TempDir, Sqlite), SetupError> {
    let directory = tempfile::tempdir().unwrap();
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let sqlite = Sqlite::start(Library::bundled(), directory.path(), &set)?;
    Ok((directory, sqlite))
}

fn filled(rows: u32) -> (tempfile::TempDir, Sqlite, SqliteSession) {
    let (directory, sqlite) = start(&[("journal_mode", "wal"), ("synchronous", "off")]).unwrap();
    let mut session = sqlite.connect().unwrap();
    let (dialect, table) = (sqlite.dialect(), table());
    for sql in dialect.create_table(&table) {
        session.query(&sql).unwrap();
    }
    let types = [ParamType::Timestamp, ParamType::Int4, ParamType::Text];
    let insert = session.prepare(&dialect.insert(&table, 1), &types).unwrap();
    for row in 0..rows {
        session.start(insert);
        session.timestamp(1_000_000 + i64::from(row));
        session.int4(row as i32 % 10);
        session.text("text");
        assert_eq!(session.execute().unwrap().rows, 1);
    }
    for sql in dialect.create_indexes(&table, words::IndexStatements::Usual) {
        session.query(&sql).unwrap();
    }
    (directory, sqlite, session)
}

/// Runs a statement whose parameters are keys.
fn run(session: &mut SqliteSession, sql: &str, keys: &[i64]) -> crate::contract::Outcome {
    let types = vec![ParamType::Int8; keys.len()];
    let statement = session.prepare(sql, &types).unwrap();
    session.start(statement);
    keys.iter().for_each(|&key| session.int8(key));
    session.execute().unwrap()
}

#[test]
fn every_statement_does_what_it_says() {
    let (_directory, sqlite, mut session) = filled(100);
    let (dialect, table) = (sqlite.dialect(), table());
    assert_eq!(session.last_key(&table).unwrap(), Some(100));
    let delete = dialect.delete_oldest(&table, 10, false);
    assert_eq!(run(&mut session, &delete, &[0]).rows, 10);
    // Without a new start the same statement runs again with the same parameters.
    assert_eq!(session.execute().unwrap().rows, 10);
    let min = run(&mut session, &dialect.min_key(&table), &[]);
    assert_eq!(min.value, Some(21));
    let scan = RangeScan {
        index: &table.indexes[0],
        comparison: crate::contract::Comparison::Above,
        limit: 7,
    };
    let scanned = run(&mut session, &dialect.range_scan(&table, scan), &[3]);
    assert_eq!((scanned.rows, scanned.value), (7, Some(4)));
    let point = dialect.point_lookup(&table, &["k"], 2);
    let found = run(&mut session, &point, &[20, 21]).rows;
    assert_eq!(found, 1, "key 20 was deleted");
    let facts = sqlite.inspect(&table, true).unwrap();
    let keys = (facts.key_min, facts.key_max);
    assert_eq!((facts.rows, keys), (80, (Some(21), Some(100))));
    let counted = ("k".to_string(), IndexRows::Counted(80));
    assert_eq!(facts.index_rows, [counted]);
}

#[test]
fn an_index_is_counted_by_reading_it() {
    let (_directory, sqlite, mut session) = filled(100);
    let table = table();
    let sql = sqlite.dialect().count_rows(&table, Some(&table.indexes[0]));
    let plan = session.query(&format!("explain query plan {}", sql[0]));
    let plan = plan.unwrap()[0][3].clone().unwrap();
    assert!(plan.contains("INDEX t_k"), "{plan}");
}

#[test]
fn an_index_counts_rows_with_any_number() {
    let (_directory, sqlite, mut session) = filled(100);
    for (id, k) in [(1, "-1"), (2, "-9223372036854775808"), (3, "1e300")] {
        let sql = format!("update t set k = {k} where id = {id}");
        session.query(&sql).unwrap();
    }
    let facts = sqlite.inspect(&table(), true).unwrap();
    let counted = ("k".to_string(), IndexRows::Counted(100));
    assert_eq!(facts.index_rows, [counted]);
}

#[test]
fn an_index_is_found_by_its_columns() {
    let (_directory, _sqlite, mut session) = filled(1);
    let mut on =
        |columns: &[&str]| index_on(&mut session, &SqliteDialect, &table(), columns).unwrap();
    assert_eq!(on(&["k"]).as_deref(), Some("t_k"));
    assert_eq!(on(&["k", "at"]).as_deref(), Some("t_k"));
    assert_eq!(on(&["at"]), None);
    assert_eq!(on(&["id"]).as_deref(), Some("primary key"));
}

#[test]
fn writers_wait_for_each_other_and_the_waits_are_counted() {
    let (_directory, sqlite, mut first) = filled(10);
    let mut observer = sqlite.observer(&[]).unwrap();
    let mut waits = || {
        let counters = observer.sample().unwrap();
        counters.iter().find(|counter| counter.name == "lock_wait_count").unwrap().value
    };
    let before = waits();
    first.query("begin immediate").unwrap();
    let second = std::thread::scope(|scope| {
        let mut session = sqlite.connect().unwrap();
        let waiter = scope.spawn(move || session.query("delete from t where id = 1"));
        while waits() == before {
            std::thread::yield_now();
        }
        first.query("commit").unwrap();
        waiter.join().unwrap()
    });
    second.unwrap();
}

#[test]
fn an_interrupted_statement_says_so() {
    let (_directory, _sqlite, mut session) = filled(10);
    let interrupt = session.interrupt().unwrap();
    let (done, over) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) =
                over.recv_timeout(Duration::from_millis(1))
            {
                interrupt();
            }
        });
        let error = session
            .query("with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r")
            .unwrap_err();
        assert_eq!(error.class, ErrorClass::Interrupted);
        drop(done);
    });
}

#[test]
fn pragmas_take_effect_or_are_refused() {
    let (_directory, sqlite) = start(&[
        ("journal_mode", "wal"),
        ("page_size", "8192"),
        ("synchronous", "normal"),
        ("cache_size", "-65536"),
    ])
    .unwrap();
    let settings = sqlite.settings().unwrap();
    let values = ["page_size", "journal_mode", "synchronous", "cache_size"].map(|name| {
        let setting = settings.iter().find(|setting| setting.name == name);
        setting.unwrap().value.as_str()
    });
    assert_eq!(values, ["8192", "wal", "1", "-65536"]);
    let message = |set| start(&[set]).unwrap_err().to_string();
    assert!(message(("cache_sise", "1")).contains("`cache_sise` is not a pragma"));
    assert!(message(("x; drop table t", "1")).contains("`x; drop table t` is not a pragma"));
    assert!(message(("page_size", "1000")).contains("`page_size = 1000` did not take effect"));
    assert!(message(("journal_mode", "wall")).contains("did not take effect"));
    assert!(message(("synchronous", "fulll")).contains("did not take effect"));
}

fn settled(sqlite: &Sqlite, tables: &[Table], seconds: u64) -> Settled {
    let limits = SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(seconds) };
    let stop = AtomicBool::new(false);
    sqlite.settle(tables, limits, &stop).unwrap()
}

#[test]
fn settling_empties_the_log() {
    let (_directory, sqlite, mut session) = filled(1000);
    session.query("update t set k = k + 1").unwrap();
    let settled = settled(&sqlite, &[table()], 60);
    assert!(settled.pending_before[0].value > 0.0);
    // The log alone: waits for locks are over.
    let [after] = &settled.pending_after[..] else {
        panic!("{:?}", settled.pending_after);
    };
    assert_eq!((after.name.as_str(), after.value), ("wal_file_bytes", 0.0));
    let mut actions = settled.actions.iter();
    assert!(actions.any(|action| action.what.contains("checkpoint")));
    assert_eq!(settled.unfinished, [""; 0]);
}

#[test]
fn a_log_that_a_reader_holds_is_told() {
    let (_directory, sqlite, mut session) = filled(10);
    let mut reader = sqlite.connect().unwrap();
    reader.query("begin").unwrap();
    reader.query("select count(*) from t").unwrap();
    session.query("update t set k = k + 1").unwrap();
    let settled = settled(&sqlite, &[], 0);
    let said = &settled.unfinished[..];
    assert!(
        matches!(said, [it] if it.starts_with("the write-ahead log is not written back")),
        "{said:?}"
    );
}

#[test]
fn a_duplicate_key_and_a_full_database_have_their_classes() {
    let (_directory, _sqlite, mut session) = filled(10);
    session.query("create unique index u on t(at)").unwrap();
    let mut class = |sql: &str| session.query(sql).unwrap_err().class;
    assert_eq!(class("insert into t values (1, 1, 1, '')"), ErrorClass::DuplicateKey);
    assert_eq!(class("update t set at = 1000000"), ErrorClass::DuplicateKey);
    assert_eq!(class("update t set k = null"), ErrorClass::Other);
    session.query("pragma max_page_count = 1").unwrap();
    let error = session
        .query("insert into t(at, k, data) with recursive r(n) as (select 1 union all select n + 1 from r limit 9999) select n, n, 'x' from r")
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::DiskFull);
}

#[test]
fn a_parameter_without_a_value_is_null_even_if_it_had_one() {
    let (_directory, _sqlite, mut session) = filled(1);
    let types = [ParamType::Text, ParamType::Int4];
    let find =
        session.prepare("select count(*) from t where data = ? and ? is null", &types).unwrap();
    session.start(find);
    session.text("text");
    session.int4(7);
    assert_eq!(session.execute().unwrap().value, Some(0));
    session.start(find);
    session.text("text");
    assert_eq!(session.execute().unwrap().value, Some(1));
    session.start(find);
    assert_eq!(session.execute().unwrap().value, Some(0), "no text is found by NULL");
}

#[test]
fn a_text_has_exactly_one_statement() {
    let (_directory, _sqlite, mut session) = filled(1);
    let mut message = |sql: &str| session.query(sql).unwrap_err().message;
    assert!(message("select 1; select 2").contains("several statements"));
    assert!(message("-- nothing").contains("no statement"));
    assert!(session.query("select 1; -- that is all").is_ok());
}

#[test]
fn an_error_shows_only_the_beginning_of_a_long_statement() {
    let (_directory, _sqlite, mut session) = filled(1);
    let rows = vec!["(1, 2, 3, 4, 5)"; 1000].join(", ");
    let error = session.query(&format!("insert into t values {rows}")).unwrap_err();
    let text = error.message;
    assert!(text.contains("insert into t values (1") && text.len() < 400, "{text}");
}

/// Each has its own table, but all share one schema: who waits for the lock finds it changed again
/// and again.
#[test]
fn many_connections_change_the_schema_at_once() {
    let (_directory, sqlite) = start(&[("journal_mode", "wal"), ("synchronous", "off")]).unwrap();
    let first = std::sync::Barrier::new(32);
    std::thread::scope(|scope| {
        for client in 0..32 {
            let (sqlite, first) = (&sqlite, &first);
            scope.spawn(move || {
                let mut session = sqlite.connect().unwrap();
                first.wait();
                session.query(&format!("create table t{client} (a integer, b integer)")).unwrap();
                for round in 0..20 {
                    session.start_text(&format!("create index i{client}_{round} on t{client} (b)"));
                    session.execute().unwrap();
                    let select = format!("select {round} from t{client} where b = {round}");
                    session.prepare(&select, &[]).unwrap();
                }
            });
        }
    });
}
