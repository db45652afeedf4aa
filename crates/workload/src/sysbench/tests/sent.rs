//! Tests of the statements that events send, with a session that records them.

use super::*;

#[test]
fn the_same_seed_gives_the_same_statements() {
    for name in SHAPES {
        let test = builtin(name);
        let first = events(&test, 5, 4);
        assert_eq!(first.len() as f64, 4.0 * test.queries_per_event(), "{name}");
        assert_eq!(first, events(&test, 5, 4), "{name}");
        if !matches!(name, "scan" | "hot-points") {
            assert_ne!(first, events(&test, 6, 4), "{name}");
        }
    }
}

#[test]
fn the_first_event_of_a_stream_never_changes() {
    let sent = events(&builtin("read-write.range10"), 5, 1);
    let [.., insert, commit] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(commit.sql, "commit");
    let integers: Vec<&str> = sent
        .iter()
        .flat_map(|sent| &sent.parameters)
        .filter(|text| text.len() < 10)
        .map(String::as_str)
        .collect();
    assert_eq!(
        (integers.join(" ").as_str(), &insert.parameters[2][..23]),
        (
            "1297 1168 337 1498 1293 1032 856 1156 556 155 846 855 828 837 1021 1030 720 729 1199 1233 159 159 1169",
            "55044702401-78444805510"
        ),
        "changed choices change every result: it must be a decision"
    );
}

#[test]
fn statements_are_sent_as_the_test_says() {
    let sent = events(&builtin("read-write"), 5, 1);
    let table = sent[1].sql.split(' ').nth(3).unwrap();
    let (select, range) = (
        format!("SELECT c FROM {table} WHERE id = $1"),
        format!("FROM {table} WHERE id BETWEEN $1 AND $2"),
    );
    let mut expected = vec!["begin".to_string()];
    expected.extend(vec![select; 10]);
    expected.extend([
        format!("SELECT c {range}"),
        format!("SELECT sum(k) {range}"),
        format!("SELECT c {range} ORDER BY c"),
        format!("SELECT DISTINCT c {range} ORDER BY c"),
        format!("UPDATE {table} SET k = k + 1 WHERE id = $1"),
        format!("UPDATE {table} SET c = $1 WHERE id = $2"),
        format!("DELETE FROM {table} WHERE id = $1"),
        format!("INSERT INTO {table} (id, k, c, pad) VALUES ($1, $2, $3, $4)"),
        "commit".into(),
    ]);
    let sql: Vec<&str> = sent.iter().map(|sent| sent.sql.as_str()).collect();
    assert_eq!(sql, expected);
    let values = |index: usize| sent[index].parameters.as_slice();
    let number = |text: &String| text.parse::<i64>().unwrap();
    assert!((11..=14).all(|at| number(&values(at)[1]) == number(&values(at)[0]) + 99));
    let ids: std::collections::BTreeSet<&String> = (1..=10).map(|at| &values(at)[0]).collect();
    assert!(ids.len() > 8, "each execution draws anew: {ids:?}");
    assert_eq!(values(17)[0], values(18)[0], "what was deleted is inserted");
    let lengths = (values(18)[2].len(), values(18)[3].len());
    assert_eq!(lengths, (119, 59), "{:?}", values(18));
}

#[test]
fn the_text_of_a_statement_has_lists_and_tables() {
    let sent = events(&builtin("random-points.range3"), 5, 100);
    let first = &sent[0];
    assert!(first.sql.ends_with("WHERE id IN ($1, $2, $3)"), "{first:?}");
    assert_eq!(first.parameters.len(), 3);
    let of_first = sent.iter().filter(|sent| sent.sql.contains("sbtest1"));
    let count = of_first.count();
    assert!((30..70).contains(&count), "{count} of 100 events on one of two tables");
}

#[test]
fn each_row_of_values_has_its_own_parameters_and_shares_those_of_the_event() {
    let insert = |prepared: bool| {
        let text = r#"{ sql = "INSERT INTO {table} (id, k, c) VALUES {values}", values = "({id}, {k} + {t}, {c})", count = 3, repeat = 2, parameters = { k = "k", c = "c" }"#;
        let keys = r#"parameters = { id = "id", t = "thread * 10" }"#;
        own_test(keys, &[&format!("{text}, prepared = {prepared} }}")])
    };
    let [first, second] = &events(&insert(true), 5, 1)[..] else {
        panic!("not two statements");
    };
    let values = "($1, $2 + $3, $4), ($5, $6 + $7, $8), ($9, $10 + $11, $12)";
    assert!(first.sql.ends_with(values), "{first:?}");
    assert_eq!(first.sql, second.sql);
    let all: Vec<&[String]> =
        [first, second].iter().flat_map(|sent| sent.parameters.chunks(4)).collect();
    assert!(all.iter().all(|row| row[0] == all[0][0] && row[2] == "10"));
    let keys: std::collections::BTreeSet<&String> = all.iter().map(|row| &row[1]).collect();
    assert_eq!((all.len(), keys.len()), (6, 6));
    let rows = all.chunks(3).map(|rows| {
        let row = |row: &&[String]| format!("({}, {} + {}, '{}')", row[0], row[1], row[2], row[3]);
        rows.iter().map(row).collect::<Vec<_>>().join(", ")
    });
    let texts = events(&insert(false), 5, 1);
    assert!(rows.zip(&texts).all(|(rows, sent)| sent.sql.ends_with(&rows)), "{texts:?}");
}

#[test]
fn tables_are_chosen_as_the_test_says() {
    let count = |choice: &str| {
        let plan = mine("", &format!("table = \"{choice}\""), &[LOOKUP]);
        let sysbench = Sysbench::new(&plan, OPTIONS);
        let mut tasks = sysbench.connections(step(&sysbench, "mine"), &Null).unwrap();
        let tables = |task: &mut Task| {
            let Summary::RowChanges(changes) = task.program.summary(0).unwrap() else {
                panic!("it is the summary of another workload");
            };
            changes.iter().map(|(table, _)| *table).collect::<Vec<_>>()
        };
        tasks.iter_mut().map(tables).collect::<Vec<_>>()
    };
    assert_eq!(count("random"), [[0, 1, 2], [0, 1, 2]]);
    assert_eq!(count("thread"), [[0], [1]]);
    assert_eq!(count("first"), [[0], [0]]);
}

#[test]
fn a_failed_transaction_is_retried_from_its_start() {
    for (class, at) in [(ErrorClass::Deadlock, 3), (ErrorClass::DuplicateKey, 4)] {
        let mut answers: Vec<Result<u64, ErrorClass>> = vec![Ok(1); at];
        answers.push(Err(class));
        answers.reverse();
        let session = RecordingSession { answers, ..RecordingSession::default() };
        let mut connection = connection(&builtin("write-only"), 5, session);
        connection.prepare();
        let error = connection.execute().unwrap_err();
        assert!(connection.may_retry(error.class), "{class:?}");
        assert_eq!(connection.execute().unwrap(), Executed::new(4, (4, 4)));
        let session = &connection.session;
        let (sent, sql) = (&session.sent, session.sql());
        assert_eq!((sql[0], sql[at + 1], sql[at + 2]), ("begin", "rollback", "begin"));
        assert_eq!(sent[..=at], sent[at + 2..][..=at], "with the same values");
        assert_eq!(sql.last(), Some(&"commit"));
        let changes = &connection.changes;
        let put_back = changes.iter().all(|(_, it)| *it == RowChanges::default());
        assert!(put_back, "{changes:?}");
    }
}

#[test]
fn without_a_transaction_only_the_failed_statement_is_retried() {
    let session = RecordingSession {
        answers: vec![Err(ErrorClass::LockTimeout), Ok(1)],
        ..RecordingSession::default()
    };
    let mut connection = connection(&own_test("", &[INSERT, INSERT]), 5, session);
    connection.prepare();
    assert!(!connection.may_retry(ErrorClass::DuplicateKey));
    connection.execute().unwrap_err();
    assert_eq!(connection.execute().unwrap().rows, 2);
    let sent = &connection.session.sent;
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[1], sent[2]);
    assert_ne!(sent[0], sent[1]);
    let inserted: u64 = connection.changes.iter().map(|(_, changes)| changes.inserted).sum();
    assert_eq!(inserted, 2);
}

#[test]
fn an_unknown_outcome_of_a_write_makes_the_rows_unknown() {
    let call = own_test("", &[r#"{ sql = "call mine()" }"#]);
    let lost = Err(ErrorClass::ConnectionLost);
    for (test, answer, is_uncertain) in [
        (builtin("insert"), lost, true),
        (builtin("scan"), lost, false),
        // The statement reports no rows.
        (call, Ok(0), true),
    ] {
        let session = RecordingSession { answers: vec![answer], ..RecordingSession::default() };
        let mut connection = connection(&test, 5, session);
        connection.prepare();
        let _ = connection.execute();
        let is = connection.changes.iter().any(|(_, changes)| changes.is_uncertain);
        assert_eq!(is, is_uncertain, "{}", test.name);
    }
    let mut sysbench = Sysbench::new(&plan("", &[], ""), OPTIONS);
    sysbench.ledgers[0] = Ledger::found(1501, Some((1, 1501)), true, true);
    sysbench.ledgers[0].apply(RowChanges { is_uncertain: true, ..RowChanges::default() });
    let facts = TableFacts {
        rows: 1500,
        key_min: Some(1),
        key_max: Some(1500),
        index_rows: vec![("k".into(), engine::IndexRows::Counted(1499))],
    };
    let mut checks = sysbench.check_table(0, &facts);
    checks.retain(|check| check.left_out.is_none());
    let [check] = &checks[..] else {
        panic!("{checks:?}");
    };
    assert_eq!((check.what.as_str(), check.holds), ("rows in index k of sbtest1", false));
}

#[test]
fn a_connection_may_delete_what_another_inserted() {
    let plan = plan("tables=2 rows=10", &["insert"], "");
    let mut sysbench = Sysbench::new(&plan, OPTIONS);
    for ledger in &mut sysbench.ledgers {
        *ledger = Ledger::found(10, Some((1, 10)), true, false);
    }
    let mut programs: [Box<dyn Program>; 2] = ["delete", "insert"]
        .map(|name| Box::new(connection(&builtin(name), 5, RecordingSession::default())) as _);
    for program in &mut programs {
        for _ in 0..50 {
            program.prepare();
            program.execute().unwrap();
        }
    }
    let step = step(&sysbench, "insert");
    sysbench.apply(step.number, &summaries(&mut programs));
    assert_eq!(sysbench.rows(), 20);
}

#[test]
fn control_statements_are_text_if_they_can_not_be_prepared_or_all_are() {
    let run = |test: &Test, unprepared| {
        let session = RecordingSession { unprepared, ..RecordingSession::default() };
        let mut connection = connection(test, 5, session);
        connection.prepare();
        connection.execute().unwrap();
        connection.session
    };
    let session = run(&builtin("write-only"), Some("begin"));
    let sql = session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"commit")));
    let as_text = plan("prepared=false", &["write-only"], "");
    let session = run(&test_of(&as_text, "write-only"), None);
    assert_eq!(session.statements, []);
    let sql = session.sql();
    assert_eq!((sql[0], sql.last()), ("text: begin", Some(&"text: commit")));
}

#[test]
fn a_warm_up_makes_other_choices_than_its_step() {
    let plan = plan("", &["point-query"], "");
    let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
    let test = builtin("point-query");
    let values = |is_warm_up| {
        let step = Step { is_warm_up, ..step(&sysbench, "point-query") };
        let mut runner = sysbench.runner(step, &test, Distribution::Uniform, 0, &engine).unwrap();
        runner.next_random()
    };
    assert_eq!(values(false), values(false));
    assert_ne!(values(false), values(true));
}

#[test]
fn another_attempt_writes_other_texts_to_the_same_rows() {
    let plan = plan("", &["update-nonindex"], "");
    let (_directory, engine, _) = loaded(&plan, OPTIONS);
    let mut session = engine.connect().unwrap();
    session.query("create table written (id integer, before text, after text)").unwrap();
    for number in 1..=3 {
        session
            .query(&format!(
                "create trigger note{number} after update on sbtest{number} begin \
                 insert into written values (new.id, old.c, new.c); end"
            ))
            .unwrap();
    }
    let mut attempt = |nonce| {
        let mut sysbench = Sysbench::new(&plan, Options { nonce, ..OPTIONS });
        sysbench.adopt_tables(&engine).unwrap();
        assert_eq!(on(&mut sysbench, "update-nonindex", &engine, 50), (100, 0));
        let same = session.query_i64("select count(*) from written where before = after");
        let ids = session.query("select id from written").unwrap();
        session.query("delete from written").unwrap();
        (ids, same.unwrap())
    };
    let (first, second, repeated) = (attempt(1), attempt(2), attempt(2));
    assert_eq!((first.1, second.1), (Some(0), Some(0)));
    assert_eq!(first.0, second.0, "other rows");
    // With the same nonce the texts exist already, except in rows that were drawn twice.
    assert!(repeated.1 > Some(90), "{repeated:?}");
}

#[test]
fn numbers_are_as_wide_as_necessary() {
    let select = r#"{ sql = "SELECT {id} + {far} + {list}", parameters = { id = "id", far = "id * 2000000", list = "consecutive(far, 2)" } }"#;
    let (sql, types) =
        event(&own_test("", &[select])).sql(0, "t", &PostgresDialect::default()).unwrap();
    assert_eq!(sql, "SELECT $1 + $2 + $3, $4");
    let wide = ParamType::Int8;
    assert_eq!(types, [ParamType::Int4, wide, wide, wide]);
}

#[test]
fn the_error_names_a_statement_that_the_engine_refuses() {
    let plan = mine("", "", &[LOOKUP, r#"{ sql = "SELEC c FROM {table}" }"#]);
    let (_directory, engine, sysbench) = loaded(&plan, OPTIONS);
    let Err(error) = sysbench.connections(step(&sysbench, "mine"), &engine) else {
        panic!("it was taken");
    };
    let message = error.to_string();
    assert!(message.starts_with("test `mine`, statement 2: `SELEC c FROM sbtest1`: "), "{message}");
}
