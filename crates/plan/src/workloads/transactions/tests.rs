//! Tests of scripts: what is read from them, and where faults are found.

use super::items::{Sizes, script};
use super::*;
use crate::Span;
use crate::spec::transactions::{Action, DataCheck, Expected, Number, SqlPiece, Transaction};

const SIZES: Sizes = Sizes { scale: 2, clients: 4 };

/// A table and the beginning of a transaction.
const BEGIN: &str =
    "table t (id int = row, v bigint = 0) key (id) rows 10 * scale; transaction a {\n";

fn transaction(body: &str) -> Transaction {
    let text = format!("{BEGIN}{body}}}");
    let script = script(&text, SIZES).unwrap_or_else(|fault| panic!("{}\n{body}", fault.message));
    script.transactions[0].clone()
}

/// Returns the message of the fault of a transaction, and the text that it points to.
fn fault_of(body: &str) -> (String, String) {
    let text = format!("{BEGIN}{body}}}");
    let fault = script(&text, SIZES).unwrap_err();
    let Place::File(Span { start, end }) = fault.place else {
        panic!("a fault without a place");
    };
    (fault.message, text[start..end].to_owned())
}

#[test]
fn every_script_of_assay_is_read_at_every_scale() {
    for (name, text) in BUILTIN {
        for scale in [*SCALE.start(), 7, *SCALE.end()] {
            let sizes = Sizes { scale: scale.into(), clients: 3 };
            let script = script(text, sizes)
                .unwrap_or_else(|fault| panic!("{name} at scale {scale}: {}", fault.message));
            assert!(script.rows() >= u64::from(scale), "{name}");
            assert!(!script.checks.is_empty(), "{name}");
        }
    }
}

#[test]
fn tpcb_has_the_tables_and_the_statements_of_pgbench() {
    let tpcb = script(BUILTIN[0].1, Sizes { scale: 3, clients: 1 }).unwrap();
    let rows: Vec<_> = tpcb.tables.iter().map(|table| (table.name.as_str(), table.rows)).collect();
    assert_eq!(
        rows,
        [
            ("pgbench_branches", 3),
            ("pgbench_tellers", 30),
            ("pgbench_accounts", 300_000),
            ("pgbench_history", 0),
        ]
    );

    let transaction = &tpcb.transactions[0];
    assert_eq!((transaction.input.len(), transaction.body.len()), (4, 5));
    let Action::Statement(first) = &transaction.body[0] else { panic!() };
    let texts: Vec<&str> = first
        .pieces
        .iter()
        .map(|piece| match piece {
            SqlPiece::Fixed(fixed) => fixed.as_str(),
            // All values fit in 32 bits, as pgbench's do.
            SqlPiece::Number { is_wide: false, .. } => "$",
            _ => "?",
        })
        .collect();
    let expected = "update pgbench_accounts set abalance = abalance + $ where aid = $";
    assert_eq!(texts.concat(), expected);
}

#[test]
fn statements_have_the_rows_that_their_first_words_imply() {
    for (body, expected) in [
        ("select 1;", None),
        ("update t set v = 1;", Some((1, 1))),
        ("DELETE from t;", Some((1, 1))),
        ("expect 3: insert into t values (1);", Some((3, 3))),
        ("expect 0..2: select v from t;", Some((0, 2))),
        ("expect any: update t set v = 1;", None),
        ("let v = select v from t;", Some((1, 1))),
        ("let v = expect 0..1: select v from t;", Some((0, 1))),
    ] {
        let transaction = transaction(body);
        let Action::Statement(statement) = &transaction.body[0] else { panic!("{body}") };
        let bounds = |value: i64| Number::Constant(value);
        let expected = expected.map(|(least, most)| (bounds(least), bounds(most)));
        assert_eq!(statement.rows, expected, "{body}");
    }
}

#[test]
fn a_test_of_each_transaction_is_there_unless_another_has_its_name() {
    let text = format!("{BEGIN}select 1; }} transaction b {{ select 2; }} test b = a 3, b;");
    let script = script(&text, SIZES).unwrap();
    let tests: Vec<_> = script.tests.iter().map(|test| (test.name.as_str(), &test.parts)).collect();
    assert_eq!(tests, [("b", &vec![(0, 3), (1, 1)]), ("a", &vec![(0, 1)])]);
}

#[test]
fn only_a_transaction_that_changes_or_locks_writes() {
    assert!(!transaction("let v = select v from t where id = 1;").writes());
    assert!(transaction("let v = select v from t where id = 1 {for update};").writes());
    assert!(transaction("if 1 = 1 { update t set v = 1; }").writes());
    assert!(transaction("for i in 1 to 3 { delete from t; }").writes());
}

#[test]
fn names_end_with_their_block() {
    let body = "for i in 1 to 3 { let v = select v from t where id = {i}; }\n\
        for i in 1 to 2 { let v = 1 + i; select {v}; }";
    assert_eq!(transaction(body).integers, 5);
    let (message, at) = fault_of("if 1 = 1 { let v = 1; } select {v};");
    assert_eq!((message.as_str(), at.as_str()), ("unknown name `v`", "v"));
}

#[test]
fn a_draw_after_the_first_statement_is_refused() {
    for body in [
        "select 1; let v = uniform(1, 2);",
        "if 1 = 1 { let v = uniform(1, 2); }",
        "select 1; let w = letters(1, 2);",
        "select {uniform(1, 2)};",
        "if uniform(1, 2) = 1 { select 1; }",
        "for i in 1 to uniform(1, 2) { select 1; }",
    ] {
        let text = format!("{BEGIN}{body}}}");
        assert!(script(&text, SIZES).is_err(), "{body}");
    }
    assert_eq!(transaction("let v = if(uniform(1, 2) = 1, 5, 6); select {v};").input.len(), 1);
}

#[test]
fn faults_point_to_their_texts() {
    for (body, message, at) in [
        ("select {w};", "unknown name `w`", "w"),
        ("let v = 1; let v = 2;", "`v` is defined already", "v"),
        ("let v = 1 / 0;", "division by 0", "1 / 0"),
        ("let v = uniform(1);", "unexpected `)`", ")"),
        ("let v = unifrom(1, 2);", "unknown function `unifrom`", "unifrom"),
        ("on oracle { abort; }", "`oracle` is not an engine with SQL", "oracle"),
        ("select 'a;", "a quote that is not closed", "'"),
        ("select };", "a `}` without a `{`", "}"),
        ("for v in w, w { abort; }", "unknown name `w`", "w"),
        ("let v = list(2000, 1);", "a list of 2000 to 2000 values", "list(2000"),
        ("let V = 1;", "unexpected `V`", "V"),
        ("let v = at(1, 2);", "unexpected `1`", "1"),
        ("let v = home(u);", "unknown table `u`", "u"),
        ("let v = home(3);", "unexpected `3`", "3"),
        ("select 1; let v = home(t);", "`home` draws a random number here", "home(t)"),
    ] {
        let found = fault_of(body);
        assert_eq!((found.0.as_str(), found.1.as_str()), (message, at), "{body}");
    }
}

#[test]
fn new_rows_are_numbered_from_those_that_are_loaded() {
    let read = transaction("let a = next(t); let b = latest(1, newest(t), 0.9); select {a}, {b};");
    assert_eq!((read.input.len(), &read.numbered_tables), (2, &vec![0]));
    let Action::Number { value: Number::Next(0), .. } = read.input[0] else { panic!("{read:?}") };
    assert!(transaction("select 1;").numbered_tables.is_empty());

    for (body, message, at) in [
        ("let v = next(u);", "unknown table `u`", "u"),
        ("select {next(t)};", "`next(t)` is random", "next(t)"),
        ("select 1; let v = next(t);", "`next` draws a row's number here", "next(t)"),
    ] {
        let found = fault_of(body);
        assert_eq!((found.0.as_str(), found.1.as_str()), (message, at), "{body}");
    }
    let table = "table t (id int = row, v int = next(t)) key (id) rows 1;";
    assert_eq!(script(table, SIZES).unwrap_err().message, "unexpected `t`");
}

#[test]
fn a_transaction_that_commits_each_statement_ends_with_its_only_write() {
    let text = |body: &str| {
        format!(
            "table t (id int = row, v int) key (id) rows 1; transaction a autocommit {{ {body} }}"
        )
    };
    for body in [
        "select 1;",
        "let v = select v from t; update t set v = {v};",
        "if 1 = 1 { update t set v = 1; } else if 1 = 2 { update t set v = 2; } else { delete from t; }",
    ] {
        let script = script(&text(body), SIZES).unwrap_or_else(|fault| panic!("{}", fault.message));
        assert!(script.transactions[0].is_autocommitted);
    }
    for body in [
        "update t set v = 1; select 1;",
        "update t set v = 1; abort;",
        "for i in 1 to 2 { update t set v = 1; }",
        "if 1 = 1 { update t set v = 1; } update t set v = 2;",
        "if 1 = 1 { select 1; } else { update t set v = 1; } select 2;",
    ] {
        let fault = script(&text(body), SIZES).unwrap_err();
        assert_eq!(fault.message, "a failure of `a` could not be rolled back", "{body}");
    }
}

#[test]
fn only_what_var_defines_changes() {
    let changed = transaction("let a = 1; var b = a; set b = b + 1; if 1 = 1 { set b = 7; }");
    assert_eq!((changed.input.len(), changed.body.len()), (1, 3));
    let Action::Number { slot: 2, .. } = changed.body[1] else { panic!("{:?}", changed.body) };
    // Otherwise it is SQL, which sets an option of a session.
    let statement = transaction("let a = 1; set a = 2;");
    assert!(matches!(statement.body[0], Action::Statement(_)));
}

#[test]
fn checks_have_constants_and_numbers_of_commits() {
    let text = format!(
        "{BEGIN}select 1; }} check \"rows\" = 10 * scale + committed(a) - 1: select count(*) from t;
         check \"loaded\" after load = 20: select count(*) from t;"
    );
    let script = script(&text, SIZES).unwrap();
    let DataCheck { name, only_after_load, sql, expected } = &script.checks[0];
    assert_eq!((name.as_str(), sql.as_str()), ("rows", "select count(*) from t"));
    assert!(!only_after_load);
    assert_eq!(*expected, Expected { constant: 19, committed: vec![(0, 1)] });
    assert!(script.checks[1].only_after_load);
}

#[test]
fn comments_and_braces_are_no_parameters() {
    let transaction = transaction("-- {no}\nselect '{no}', '{{' -- {no}\n  , 1;");
    let Action::Statement(statement) = &transaction.body[0] else { panic!() };
    assert_eq!(statement.pieces, [SqlPiece::Fixed("select '{no}', '{{' , 1".to_owned())]);
}

#[test]
fn deep_scripts_do_not_overflow_the_stack() {
    for open in ["(", "-", "not "] {
        let body = format!("let v = {}1;", open.repeat(100_000));
        assert!(script(&format!("{BEGIN}{body}}}"), SIZES).is_err());
    }
    let blocks = "if 1 = 1 { ".repeat(100_000);
    assert!(script(&format!("{BEGIN}{blocks}"), SIZES).is_err());
}

#[test]
fn only_a_table_with_fixed_rows_has_homes() {
    let (first, second) = (
        "table empty (id int) key (id) rows 0;",
        "table some (id int = row) key (id) rows 9 where row > 3;",
    );
    for table in ["empty", "some"] {
        let text =
            format!("{first}{second}transaction a {{ let v = home({table}); select {{v}}; }}");
        let fault = script(&text, SIZES).unwrap_err();
        assert_eq!(fault.message, format!("table `{table}` has no fixed number of rows"));
    }

    let text = format!("{BEGIN}let v = home(t); select {{v}}; }} transaction b {{ select 1; }}");
    let script = script(&text, SIZES).unwrap();
    let tables = |test| script.home_tables(test).map(|table| table.rows).collect::<Vec<_>>();
    assert_eq!([tables(0), tables(1)], [vec![20], vec![]]);
}

#[test]
fn a_test_may_name_its_rate_per_minute() {
    let rate_of = |end: &str| {
        let text = format!("{BEGIN}select 1; }} test many = a 3{end};");
        script(&text, SIZES).map(|script| script.tests[0].per_minute.clone())
    };
    assert_eq!(rate_of("").unwrap(), None);
    assert_eq!(
        rate_of(" per minute \"payments per minute\"").unwrap().as_deref(),
        Some("payments per minute")
    );
    for (end, message) in [
        (" per hour \"x\"", "unexpected `hour`"),
        (" per minute payments", "unexpected `payments`"),
        (" per minute \" \"", "a rate needs a name of one line"),
    ] {
        assert_eq!(rate_of(end).unwrap_err().message, message);
    }
}
