//! Tests of statements with weights, one of which each event runs, and of braces in text.

use super::*;

/// The statement with a weight.
fn weighted(weight: u32, statement: &str) -> String {
    statement.replacen('{', &format!("{{ weight = {weight},"), 1)
}

/// Two lookups, then three lookups, an update or an insert, with weights 6, 3 and 1.
fn mixed(keys: &str) -> plan::Sysbench {
    let lookups = |count: u32| LOOKUP.replacen('{', &format!("{{ repeat = {count},"), 1);
    let weighted = [weighted(6, &lookups(3)), weighted(3, UPDATE), weighted(1, INSERT)];
    let [three, update, insert] = &weighted;
    mine("", keys, &[&lookups(2), three, update, insert])
}

/// One lookup or one update.
fn half(keys: &str, more: &[&str]) -> Test {
    let (lookup, update) = (weighted(1, LOOKUP), weighted(1, UPDATE));
    own_test(keys, &[&[lookup.as_str(), &update], more].concat())
}

/// Returns the first word of each statement that was sent.
fn words(sent: &[SentStatement]) -> Vec<&str> {
    sent.iter().map(|sent| sent.sql.split(' ').next().unwrap()).collect()
}

#[test]
fn an_event_runs_all_statements_without_and_one_with_a_weight() {
    const EVENTS: usize = 4000;
    let sent = events(&test_of(&mixed(""), "mine"), 5, EVENTS);
    let mut remaining = words(&sent);
    let mut counts = [0; 3];
    while !remaining.is_empty() {
        let (kind, length) = match remaining[2] {
            // Lookups of the next event or of this one.
            "SELECT" => (0, 5),
            "UPDATE" => (1, 3),
            "INSERT" => (2, 3),
            other => panic!("{other}"),
        };
        assert!(remaining[..2].iter().all(|word| *word == "SELECT"), "{:?}", &remaining[..length]);
        counts[kind] += 1;
        remaining.drain(..length);
    }
    assert_eq!(counts.iter().sum::<usize>(), EVENTS);
    // 6, 3 and 1 in 10, within five standard deviations.
    for (count, share) in counts.into_iter().zip([0.6, 0.3, 0.1]) {
        let expected = share * EVENTS as f64;
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!((count as f64 - expected).abs() < 5.0 * deviation, "{counts:?}");
    }
}

#[test]
fn only_statements_that_run_are_drawn_checked_and_counted() {
    for transaction in [false, true] {
        let plan = mixed(&format!("transaction = {transaction}"));
        let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
        let before = sysbench.rows();
        let (_, wrong) = on(&mut sysbench, "mine", &engine, 200);
        assert_eq!(wrong, 0);
        let inserted = sysbench.rows() - before;
        assert!((15..70).contains(&inserted), "{inserted} of 400 events");
        assert_checks(&sysbench, &engine, 3 * 3);
    }
    // An update of a missing row is reported only when it runs.
    let missing = UPDATE.replace("id = \"id\"", "id = 1000000");
    let plan = mine("", "", &[&weighted(1, LOOKUP), &weighted(1, &missing)]);
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    let (_, wrong) = on(&mut sysbench, "mine", &engine, 100);
    assert!((60..140).contains(&wrong), "{wrong} of 200 events");
}

#[test]
fn an_event_that_only_reads_begins_a_read_only_transaction() {
    let sent = events(&half("transaction = true", &[]), 5, 50);
    let (mut reads, mut writes) = (0, 0);
    for event in sent.chunks(3) {
        match (event[0].sql.as_str(), words(event)[1]) {
            ("begin reading", "SELECT") => reads += 1,
            ("begin", "UPDATE") => writes += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(reads > 10 && writes > 10, "{reads} {writes}");
    // If a statement without a weight writes, every event writes.
    let sent = events(&half("transaction = true", &[UPDATE]), 5, 5);
    assert!(sent.chunks(4).all(|event| event[0].sql == "begin"));
}

#[test]
fn a_failed_event_is_retried_with_the_same_statement() {
    let test = half("transaction = true", &[]);
    for seed in 0..10 {
        let session = RecordingSession {
            answers: vec![Err(ErrorClass::Deadlock), Ok(0)],
            ..RecordingSession::default()
        };
        let mut connection = connection(&test, seed, session);
        connection.prepare();
        assert!(connection.execute().is_err());
        connection.execute().unwrap();
        let sent = &connection.session.sent;
        // begin, statement, rollback, begin, statement, commit
        assert_eq!((sent.len(), &sent[1]), (6, &sent[4]));
    }
}

#[test]
fn rows_that_only_some_events_reinsert_count_as_deleted() {
    let delete = r#"{ sql = "DELETE FROM {table} WHERE id = {same}" }"#;
    let insert =
        r#"{ sql = "INSERT INTO {table} (id, k) VALUES ({same}, {k})", parameters = { k = "k" } }"#;
    let reinserts_deleted = |delete: &str, insert: &str| {
        let keys = "transaction = true\nparameters = { same = \"id\" }";
        event(&own_test(keys, &[delete, insert])).reinserts_deleted()
    };
    assert!(reinserts_deleted(delete, insert));
    assert!(!reinserts_deleted(delete, &weighted(1, insert)));
    assert!(!reinserts_deleted(&weighted(1, delete), &weighted(1, insert)));
    assert!(!reinserts_deleted(delete, INSERT));
}

#[test]
fn doubled_braces_are_text() {
    for prepared in [false, true] {
        let update = r#"{ sql = '''UPDATE {table} SET c = '{{"a": {{}}}}' WHERE id = {id}''', parameters = { id = "id" } }"#;
        let plan = mine(&format!("prepared={prepared}"), "", &[update]);
        let sent = events(&test_of(&plan, "mine"), 5, 1);
        let (_, set) = sent[0].sql.split_once(" SET ").unwrap();
        let (set, _) = set.split_once(" WHERE ").unwrap();
        assert_eq!(set, r#"c = '{"a": {}}'"#);
    }
}
