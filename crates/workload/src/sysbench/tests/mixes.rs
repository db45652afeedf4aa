//! Statements with weights, of which an event runs one; and braces that are text.

use super::*;

/// The statement with a weight.
fn weighted(weight: u32, statement: &str) -> String {
    statement.replacen('{', &format!("{{ weight = {weight},"), 1)
}

/// Twice a lookup, then three lookups, an update or an insert, as 6 to 3 to 1.
fn mixed(keys: &str) -> plan::Sysbench {
    let lookups = |count: u32| LOOKUP.replacen('{', &format!("{{ repeat = {count},"), 1);
    let weighted = [
        weighted(6, &lookups(3)),
        weighted(3, UPDATE),
        weighted(1, INSERT),
    ];
    let [three, update, insert] = &weighted;
    mine("", keys, &[&lookups(2), three, update, insert])
}

/// One lookup or one update.
fn half(keys: &str, more: &[&str]) -> Test {
    let (lookup, update) = (weighted(1, LOOKUP), weighted(1, UPDATE));
    own(keys, &[&[lookup.as_str(), &update], more].concat())
}

/// The first word of each statement that was asked for.
fn words(asked: &[Asked]) -> Vec<&str> {
    asked
        .iter()
        .map(|asked| asked.sql.split(' ').next().unwrap())
        .collect()
}

#[test]
fn an_event_runs_what_has_no_weight_and_one_of_those_with_one() {
    const EVENTS: usize = 4000;
    let asked = events(&test_of(&mixed(""), "mine"), 5, EVENTS);
    let mut rest = words(&asked);
    let mut counts = [0; 3];
    while !rest.is_empty() {
        let (kind, length) = match rest[2] {
            // Of the next event's lookups or of this one's.
            "SELECT" => (0, 5),
            "UPDATE" => (1, 3),
            "INSERT" => (2, 3),
            other => panic!("{other}"),
        };
        assert!(
            rest[..2].iter().all(|word| *word == "SELECT"),
            "{:?}",
            &rest[..length]
        );
        counts[kind] += 1;
        rest.drain(..length);
    }
    assert_eq!(counts.iter().sum::<usize>(), EVENTS);
    // 6, 3 and 1 of 10 each, within five standard deviations.
    for (count, share) in counts.into_iter().zip([0.6, 0.3, 0.1]) {
        let expected = share * EVENTS as f64;
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!(
            (count as f64 - expected).abs() < 5.0 * deviation,
            "{counts:?}"
        );
    }
}

#[test]
fn only_the_values_of_what_runs_are_drawn_and_rows_are_checked_and_counted() {
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
    // An update of a row that is not there is noticed when it is that one's turn.
    let missing = UPDATE.replace("id = \"id\"", "id = 1000000");
    let plan = mine("", "", &[&weighted(1, LOOKUP), &weighted(1, &missing)]);
    let (_directory, engine, mut sysbench) = loaded(&plan, OPTIONS);
    let (_, wrong) = on(&mut sysbench, "mine", &engine, 100);
    assert!((60..140).contains(&wrong), "{wrong} of 200 events");
}

#[test]
fn a_transaction_that_only_reads_begins_as_one_that_does() {
    let asked = events(&half("transaction = true", &[]), 5, 50);
    let (mut reads, mut writes) = (0, 0);
    for event in asked.chunks(3) {
        match (event[0].sql.as_str(), words(event)[1]) {
            ("begin reading", "SELECT") => reads += 1,
            ("begin", "UPDATE") => writes += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(reads > 10 && writes > 10, "{reads} {writes}");
    // Where something always writes, every event does.
    let asked = events(&half("transaction = true", &[UPDATE]), 5, 5);
    assert!(asked.chunks(4).all(|event| event[0].sql == "begin"));
}

#[test]
fn an_event_that_failed_is_done_again_with_the_same_statement() {
    let test = half("transaction = true", &[]);
    for seed in 0..10 {
        let session = Notes {
            answers: vec![Err(ErrorClass::Deadlock), Ok(0)],
            ..Notes::default()
        };
        let mut connection = connection(&test, seed, session);
        connection.prepare();
        assert!(connection.execute().is_err());
        connection.execute().unwrap();
        let asked = &connection.session.asked;
        // begin, statement, rollback, begin, statement, commit
        assert_eq!((asked.len(), &asked[1]), (6, &asked[4]));
    }
}

#[test]
fn rows_that_only_some_events_put_back_are_not_put_back() {
    let delete = r#"{ sql = "DELETE FROM {table} WHERE id = {same}" }"#;
    let insert =
        r#"{ sql = "INSERT INTO {table} (id, k) VALUES ({same}, {k})", parameters = { k = "k" } }"#;
    let reinserts_deleted = |delete: &str, insert: &str| {
        let keys = "transaction = true\nparameters = { same = \"id\" }";
        event(&own(keys, &[delete, insert])).reinserts_deleted()
    };
    assert!(reinserts_deleted(delete, insert));
    assert!(!reinserts_deleted(delete, &weighted(1, insert)));
    assert!(!reinserts_deleted(
        &weighted(1, delete),
        &weighted(1, insert)
    ));
    assert!(!reinserts_deleted(delete, INSERT));
}

#[test]
fn doubled_braces_are_text() {
    for prepared in [false, true] {
        let update = r#"{ sql = '''UPDATE {table} SET c = '{{"a": {{}}}}' WHERE id = {id}''', parameters = { id = "id" } }"#;
        let plan = mine(&format!("prepared={prepared}"), "", &[update]);
        let asked = events(&test_of(&plan, "mine"), 5, 1);
        let (_, set) = asked[0].sql.split_once(" SET ").unwrap();
        let (set, _) = set.split_once(" WHERE ").unwrap();
        assert_eq!(set, r#"c = '{"a": {}}'"#);
    }
}
