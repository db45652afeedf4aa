//! Statements with weights, of which an event runs one; and braces that are text.

use super::*;

fn weighted(weight: u32, statement: TestStatement) -> TestStatement {
    TestStatement {
        weight: Some(weight),
        ..statement
    }
}

/// Twice a lookup, then three lookups, an update or an insert, as 6 to 3 to 1.
fn mixed() -> Test {
    let [insert] = <[TestStatement; 1]>::try_from(insert().statements).unwrap();
    test(
        "mixed",
        Group::Write,
        [
            lookups(2),
            weighted(6, lookups(3)),
            weighted(3, update_index(Draw::Id)),
            weighted(1, insert),
        ],
    )
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
    let asked = events(&mixed(), 5, EVENTS);
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
fn queries_and_commits_of_a_mix_are_those_of_an_event_on_average() {
    let mut mixed = mixed();
    assert_eq!(mixed.queries_per_event(), 2.0 + (18.0 + 3.0 + 1.0) / 10.0);
    assert_eq!(mixed.commits_per_event(), 0.4);
    mixed.transaction = true;
    assert_eq!(mixed.queries_per_event(), 4.0 + 2.2);
    assert_eq!(mixed.commits_per_event(), 0.4);
    mixed.statements.push(update_index(Draw::Id));
    assert_eq!(mixed.commits_per_event(), 1.0);
}

#[test]
fn only_the_values_of_what_runs_are_drawn_and_rows_are_checked_and_counted() {
    let (_directory, engine, mut sysbench) = loaded(options());
    for (number, transaction) in [(1, false), (2, true)] {
        let before = sysbench.rows();
        let mut test = mixed();
        test.transaction = transaction;
        let (_, wrong) = on(&mut sysbench, &run(number, test), &engine, 200);
        assert_eq!(wrong, 0);
        let inserted = sysbench.rows() - before;
        assert!((15..70).contains(&inserted), "{inserted} of 400 events");
        assert_checks(&sysbench, &engine, 3 * 3);
    }
    // An update of a row that is not there is noticed when it is that one's turn.
    let missing = update_index(Draw::Value(integer(1_000_000)));
    let half = test(
        "half",
        Group::Write,
        [weighted(1, lookups(1)), weighted(1, missing)],
    );
    let (_, wrong) = on(&mut sysbench, &run(3, half), &engine, 100);
    assert!((60..140).contains(&wrong), "{wrong} of 200 events");
}

#[test]
fn a_transaction_that_only_reads_begins_as_one_that_does() {
    let of = |statements| Test {
        transaction: true,
        ..test("mine", Group::Write, statements)
    };
    let asked = events(
        &of([weighted(1, lookups(1)), weighted(1, update_index(Draw::Id))]),
        5,
        50,
    );
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
    let asked = events(&of([weighted(1, lookups(1)), update_index(Draw::Id)]), 5, 5);
    assert!(asked.chunks(4).all(|event| event[0].sql == "begin"));
}

#[test]
fn an_event_that_failed_is_done_again_with_the_same_statement() {
    let test = in_transaction(test(
        "mine",
        Group::Write,
        [weighted(1, lookups(1)), weighted(1, update_index(Draw::Id))],
    ));
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
    let [_, _, delete, insert] = writes();
    let puts_back = |delete, insert| {
        let test = Test {
            parameters: write_only().parameters,
            ..in_transaction(test("mine", Group::Write, [delete, insert]))
        };
        let event = Event::new(&test, &target(&SqliteDialect, 1000)).unwrap();
        event.puts_back()
    };
    assert!(puts_back(delete.clone(), insert.clone()));
    assert!(!puts_back(delete.clone(), weighted(1, insert.clone())));
    assert!(!puts_back(weighted(1, delete), weighted(1, insert)));
}

#[test]
fn doubled_braces_are_text() {
    for is_plain in [false, true] {
        let sql = r#"UPDATE {table} SET c = '{{"a": {{}}}}' WHERE id = {id}"#;
        let statement = statement(sql, None, [("id", Draw::Id)]);
        let test = test("mine", Group::Write, [statement]);
        let test = if is_plain { as_text(test) } else { test };
        let asked = events(&test, 5, 1);
        let (_, set) = asked[0].sql.split_once(" SET ").unwrap();
        let (set, _) = set.split_once(" WHERE ").unwrap();
        assert_eq!(set, r#"c = '{"a": {}}'"#);
    }
}
