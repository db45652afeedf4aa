//! Tests of existing tables, which are used as they are.

use engine::{IndexRows, TableFacts};

use super::*;

/// Returns the plan of a cell that does not load, whose tables have no index.
fn unindexed(set: &str, steps: &[&str]) -> plan::Sysbench {
    let mut plan = plan(set, steps, "");
    plan.steps.drain(..2);
    plan.secondary_index = false;
    plan
}

/// Takes over tables that match the plan except for the seed, which is unknown.
fn taken(engine: &Sqlite, plan: &plan::Sysbench) -> (Sysbench, Vec<String>) {
    let options = Options { seed: 99, ..OPTIONS };
    let mut sysbench = Sysbench::new(plan, options);
    let messages = sysbench.adopt_tables(engine).unwrap();
    (sysbench, messages)
}

#[test]
fn loaded_tables_match_the_plan() {
    let (_directory, engine, first) = loaded(&plan("", &[], ""), OPTIONS);
    for (checks, count) in [("full", 3), ("keys", 2)] {
        let plan = unindexed(&format!("checks={checks}"), &["point-query"]);
        let (mut second, messages) = taken(&engine, &plan);
        assert_eq!(messages, [""; 0]);
        assert_eq!(second.rows(), first.rows());
        assert_eq!(on(&mut second, "point-query", &engine, 20), (40, 0));
        assert_checks(&second, &engine, 3 * count);
    }
}

#[test]
fn a_second_cell_continues_with_the_tables_of_the_first() {
    let (_directory, engine, _) = loaded(&plan("", &[], ""), OPTIONS);
    let plan = unindexed("", &["insert"]);
    let (mut first, _) = taken(&engine, &plan);
    on(&mut first, "insert", &engine, 50);
    let (mut second, messages) = taken(&engine, &plan);
    assert_eq!(second.rows(), 3 * 1501 + 100);
    let [messages] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert!(messages.contains("the plan's `rows = 1501`, as do 2 other tables"), "{messages}");
    // All rows exist, and the changes are checked against the initial state.
    assert!(second.ledgers.iter().all(Ledger::is_whole));
    on(&mut second, "insert", &engine, 50);
    assert_checks(&second, &engine, 3 * 3);
}

#[test]
fn missing_rows_are_reported_and_allowed() {
    let small = "tables=2 rows=20";
    let (_directory, engine, _) = loaded(&plan(small, &[], ""), OPTIONS);
    let mut session = engine.connect().unwrap();
    session.query("delete from sbtest1 where id between 5 and 14").unwrap();
    session
        .query(
            "insert into sbtest1 (id, k, c, pad) select id + 1000, k, c, pad from sbtest2 limit 10",
        )
        .unwrap();
    let (mut sysbench, messages) = taken(&engine, &unindexed(small, &["point-query"]));
    // The right number of rows, but with other keys.
    let [messages] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert!(messages.starts_with("`sbtest1` lacks 10 of the ids 1 to 20: "), "{messages}");
    let (found, wrong) = on(&mut sysbench, "point-query", &engine, 100);
    assert!(found < 190, "{found}");
    assert_eq!(wrong, 0);
    assert_checks(&sysbench, &engine, 2 * 3);
}

#[test]
fn an_index_exists_if_required_and_not_before_its_step() {
    let makes = plan("", &[], "");
    let wants = plan::Sysbench { steps: Vec::new(), ..makes.clone() };
    let (_directory, engine, _) = loaded(&makes, OPTIONS);
    let refused = |plan| {
        let mut sysbench = Sysbench::new(plan, OPTIONS);
        sysbench.adopt_tables(&engine).unwrap_err().message
    };
    let missing = refused(&wants);
    assert!(
        missing.starts_with("`sbtest1` has no index on `k`")
            && missing.contains("`create index k_sbtest1 on sbtest1 (k)`"),
        "{missing}"
    );
    let (sysbench, _) = taken(&engine, &makes);
    assert!(!sysbench.is_indexed());

    let mut session = engine.connect().unwrap();
    for number in 1..=3 {
        // The name in sysbench.
        let sql = format!("create index k_{number} on sbtest{number} (k)");
        session.query(&sql).unwrap();
    }
    let there = refused(&makes);
    assert!(there.contains("already has the index `k_1` on `k`"), "{there}");
    let (sysbench, messages) = taken(&engine, &wants);
    assert_eq!((sysbench.is_indexed(), messages.len()), (true, 0));
    let (sysbench, messages) = taken(&engine, &unindexed("", &["scan"]));
    assert!(sysbench.is_indexed());
    assert!(messages[0].contains("the plan's `secondary-index = false`"), "{messages:?}");
}

#[test]
fn a_table_of_another_program_is_refused() {
    let (_directory, engine) = sqlite();
    let mut session = engine.connect().unwrap();
    let refused = || {
        let mut sysbench = Sysbench::new(&unindexed("", &["scan"]), OPTIONS);
        sysbench.adopt_tables(&engine).unwrap_err().message
    };
    assert!(refused().starts_with("`sbtest1` is not a sysbench table"), "{}", refused());
    session.query("create table sbtest1 (id text, k integer, c text, pad text)").unwrap();
    assert!(refused().starts_with("`sbtest1` has no index on `id`"), "{}", refused());
}

#[test]
fn comparisons_that_are_not_possible_are_reported() {
    let replace = r#"{ sql = "REPLACE INTO {table} (id, k) VALUES (1, 2)" }"#;
    let (_directory, engine, mut sysbench) = loaded(&mine("", "", &[replace]), OPTIONS);
    let facts = TableFacts {
        rows: 1501,
        key_min: Some(1),
        key_max: Some(1501),
        index_rows: vec![("k".into(), IndexRows::NotCounted("why not".into()))],
    };
    let left_out = |sysbench: &Sysbench| -> Vec<(String, String)> {
        let checks = sysbench.check_table(0, &facts).into_iter();
        checks.filter_map(|check| Some((check.what, check.left_out?))).collect()
    };
    let index_check = ("rows in index k of sbtest1".into(), "why not".into());
    assert_eq!(left_out(&sysbench), [index_check]);
    on(&mut sysbench, "mine", &engine, 5);
    let what: Vec<String> = left_out(&sysbench).into_iter().map(|(what, _)| what).collect();
    assert_eq!(
        what,
        [
            "rows of sbtest1",
            "smallest key of sbtest1",
            "largest key of sbtest1",
            "rows in index k of sbtest1"
        ]
    );
}
