//! Tables that are there already are taken as they are found.

use engine::{IndexRows, TableFacts};

use super::*;

fn wanted(index: WantedIndex) -> Wanted {
    Wanted {
        index,
        counted: true,
    }
}

pub(super) const UNINDEXED: Wanted = Wanted {
    index: WantedIndex::Absent,
    counted: true,
};

/// Takes tables over that are as `options` say but for the seed, which nobody knows.
fn taken(engine: &Sqlite, options: Options, wanted: Wanted) -> (Sysbench, Vec<String>) {
    let mut sysbench = Sysbench::new(Options {
        seed: 99,
        ..options
    });
    let said = sysbench.take_over(engine, wanted).unwrap();
    (sysbench, said)
}

#[test]
fn tables_as_they_were_loaded_are_what_the_plan_says() {
    let (_directory, engine, first) = loaded(options());
    for counted in [true, false] {
        let unindexed = Wanted {
            counted,
            ..UNINDEXED
        };
        let (mut second, said) = taken(&engine, options(), unindexed);
        assert_eq!(said, [""; 0]);
        assert_eq!(second.rows(), first.rows());
        let point_query = test("point-query", Group::Point, [lookups(1)]);
        assert_eq!(on(&mut second, &run(3, point_query), &engine, 20), (40, 0));
        assert_checks(&second, &engine, 3 * 3);
    }
}

#[test]
fn a_second_cell_goes_on_from_what_the_first_one_left() {
    let (_directory, engine, _) = loaded(options());
    let (mut first, _) = taken(&engine, options(), UNINDEXED);
    on(&mut first, &run(1, insert()), &engine, 50);
    let (mut second, said) = taken(&engine, options(), UNINDEXED);
    assert_eq!(second.rows(), 3 * 1501 + 100);
    let [said] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(
        said.contains("the plan says `rows = 1501`, and 2 other tables are like that"),
        "{said}"
    );
    // All that it looks for is there, and what it does is held against what it found.
    assert!(second.ledgers.iter().all(Ledger::is_whole));
    on(&mut second, &run(1, insert()), &engine, 50);
    assert_checks(&second, &engine, 3 * 3);
}

#[test]
fn rows_that_are_missing_are_told_and_may_be_missing() {
    let options = Options {
        tables: 2,
        rows: 20,
        ..options()
    };
    let (_directory, engine, _) = loaded(options.clone());
    let mut session = engine.connect().unwrap();
    session
        .query("delete from sbtest1 where id between 5 and 14")
        .unwrap();
    session
        .query(
            "insert into sbtest1 (id, k, c, pad) select id + 1000, k, c, pad from sbtest2 limit 10",
        )
        .unwrap();
    let (mut sysbench, said) = taken(&engine, options, UNINDEXED);
    // As many rows as there should be, but others.
    let [said] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(
        said.starts_with("10 of the ids 1 to 20 are not in `sbtest1`: "),
        "{said}"
    );
    let point_query = test("point-query", Group::Point, [lookups(1)]);
    let (found, wrong) = on(&mut sysbench, &run(1, point_query), &engine, 100);
    assert!(found < 190, "{found}");
    assert_eq!(wrong, 0);
    assert_checks(&sysbench, &engine, 2 * 3);
}

#[test]
fn an_index_is_there_when_it_is_wanted_and_not_before_it_is_made() {
    let (_directory, engine, _) = loaded(options());
    let refused = |index| {
        let mut sysbench = Sysbench::new(options());
        let error = sysbench.take_over(&engine, wanted(index)).unwrap_err();
        error.message
    };
    let missing = refused(WantedIndex::There);
    assert!(
        missing.starts_with("`sbtest1` has no index on `k`")
            && missing.contains("`create index k_sbtest1 on sbtest1 (k)`"),
        "{missing}"
    );
    let (sysbench, _) = taken(&engine, options(), wanted(WantedIndex::Made));
    assert!(!sysbench.is_indexed());

    let mut session = engine.connect().unwrap();
    for number in 1..=3 {
        // As sysbench names it.
        let sql = format!("create index k_{number} on sbtest{number} (k)");
        session.query(&sql).unwrap();
    }
    let there = refused(WantedIndex::Made);
    assert!(
        there.contains("has the index `k_1` on `k` already"),
        "{there}"
    );
    let (sysbench, said) = taken(&engine, options(), wanted(WantedIndex::There));
    assert_eq!((sysbench.is_indexed(), said.len()), (true, 0));
    let (sysbench, said) = taken(&engine, options(), UNINDEXED);
    assert!(sysbench.is_indexed());
    assert!(
        said[0].contains("the plan says `secondary-index = false`"),
        "{said:?}"
    );
}

#[test]
fn a_table_that_is_not_sysbenchs_is_refused() {
    let (_directory, engine) = sqlite();
    let mut session = engine.connect().unwrap();
    let refused = || {
        let mut sysbench = Sysbench::new(options());
        sysbench.take_over(&engine, UNINDEXED).unwrap_err().message
    };
    assert!(
        refused().starts_with("`sbtest1` is not a table of sysbench's"),
        "{}",
        refused()
    );
    session
        .query("create table sbtest1 (id text, k integer, c text, pad text)")
        .unwrap();
    assert!(
        refused().starts_with("`sbtest1` has no index on `id`"),
        "{}",
        refused()
    );
}

#[test]
fn what_can_not_be_compared_is_said_to_be_left_out() {
    let (_directory, engine, mut sysbench) = loaded(options());
    let facts = TableFacts {
        rows: 1501,
        key_min: Some(1),
        key_max: Some(1501),
        index_rows: vec![("k".into(), IndexRows::NotCounted("why not".into()))],
    };
    let left_out = |sysbench: &Sysbench| -> Vec<(String, String)> {
        let checks = sysbench.check(0, &facts).into_iter();
        checks
            .filter_map(|check| Some((check.what, check.left_out?)))
            .collect()
    };
    let of_index = ("rows in index k of sbtest1".into(), "why not".into());
    assert_eq!(left_out(&sysbench), [of_index]);
    let truncated = test(
        "truncated",
        Group::Write,
        [statement(
            "REPLACE INTO {table} (id, k) VALUES (1, 2)",
            None,
            [],
        )],
    );
    on(&mut sysbench, &run(1, truncated), &engine, 5);
    let what: Vec<String> = left_out(&sysbench).into_iter().map(|it| it.0).collect();
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
