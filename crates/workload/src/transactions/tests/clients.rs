//! The work of each of several clients.

use super::*;

/// A script that notes which client ran each transaction.
const NOTES: &str = "
    table note (client int) rows 0;
    transaction a { insert into note (client) values ({client}); }";

/// Returns the number of notes of each client that has some.
fn notes(bench: &Bench) -> Vec<Vec<i64>> {
    bench.integers("select count(*) from note group by client order by client")
}

#[test]
fn the_transactions_of_a_test_are_divided_among_the_clients() {
    let keys = format!("{}\ntransactions = 11", script(NOTES));
    let mut bench = Bench::loaded_for(&plan(&keys, "'load', 'a'"), 3);
    let done = bench.step(1, u64::MAX);
    assert!(done.len() == 11 && done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(notes(&bench), [[4], [4], [3]]);
}

#[test]
fn a_warm_up_does_not_end_with_the_transactions_of_its_test() {
    let keys = format!("{}\ntransactions = 2\nwarmup = '1s'", script(NOTES));
    let bench = Bench::loaded(&plan(&keys, "'load', 'a'"));
    let step = Step { number: 1, is_warm_up: true };
    let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
    for _ in 0..5 {
        assert_eq!(task.program.prepare(), Next::Ready(0));
    }
}

/// A script that notes for which of ten places each client worked, and for how many it works.
const PLACES: &str = "
    table place (id int = row) key (id) rows 10;
    table note (client int, place int, places int) rows 0;
    transaction a {
        let place = home(place);
        insert into note (client, place, places) values ({client}, {place}, {homes(place)});
    }";

#[test]
fn each_client_works_for_its_homes() {
    let places = |least: i64, most: i64| (least..=most).collect::<Vec<_>>();
    for (rule, clients, expected) in [
        ("fixed", 3, [places(1, 1), places(2, 2), places(3, 3)]),
        ("spread", 3, [places(1, 3), places(4, 6), places(7, 10)]),
        ("all", 3, [places(1, 10), places(1, 10), places(1, 10)]),
    ] {
        let keys = format!("{}\nhome = '{rule}'", script(PLACES));
        let mut bench = Bench::loaded_for(&plan(&keys, "'load', 'a'"), clients);
        let done = bench.step(1, 200);
        assert!(done.iter().all(Result::is_ok), "{done:?}");

        for (client, expected) in expected.iter().enumerate() {
            let sql = format!("select distinct place from note where client = {client} order by 1");
            assert_eq!(bench.integers(&sql).concat(), *expected, "{rule}, client {client}");
            let sql = format!("select distinct places from note where client = {client}");
            assert_eq!(bench.integers(&sql), [[expected.len() as i64]], "{rule}, client {client}");
        }
    }
}

#[test]
fn a_retry_works_for_the_same_home() {
    let keys = format!("{}\nhome = 'all'", script(PLACES));
    let bench = Bench::loaded(&plan(&keys, "'load', 'a'"));
    let step = Step { number: 1, is_warm_up: false };
    let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
    for _ in 0..20 {
        assert_eq!(task.program.prepare(), Next::Ready(0));
        task.program.execute().unwrap();
        task.program.execute().unwrap();
    }
    let sql = "select count(*) from note as first join note as second
        on second.rowid = first.rowid + 1 where first.rowid % 2 = 1 and first.place = second.place";
    assert_eq!(bench.integers(sql), [[20]]);
}
