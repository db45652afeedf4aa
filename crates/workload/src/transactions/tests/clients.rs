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

/// A script with two transactions in a mix.
const MIX: &str = "
    table note (kind int) rows 0;
    transaction a { insert into note (kind) values (1); }
    transaction b { insert into note (kind) values (2); }
    test mixed = a 3, b;";

#[test]
fn a_terminal_keys_before_a_transaction_and_thinks_after_it() {
    // With a think time of 0, only the keying time of the next transaction is left.
    let keys = "keying = { a = '3s', b = '500us' }\nthink-factor = 0.5";
    let with_pauses = plan(&format!("{}\n{keys}", script(MIX)), "'load', 'mixed'");
    let bench = Bench::loaded(&with_pauses);
    let step = Step { number: 1, is_warm_up: false };
    let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
    assert_eq!(task.schedule, Schedule::Paused);
    for _ in 0..50 {
        match task.program.prepare() {
            Next::Ready(0) => assert_eq!(task.program.pause_ns(), 1_500_000_000),
            Next::Ready(1) => assert_eq!(task.program.pause_ns(), 250_000),
            next => panic!("{next:?}"),
        }
    }
}

#[test]
fn think_times_are_those_of_the_transaction_before_and_change_no_transaction() {
    const COUNT: u64 = 4_000;
    let kinds = |keys: &str| {
        let with_keys = plan(&format!("{}\n{keys}", script(MIX)), "'load', 'mixed'");
        let bench = Bench::loaded(&with_keys);
        let step = Step { number: 1, is_warm_up: false };
        let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
        let mut drawn = Vec::new();
        for _ in 0..COUNT {
            let Next::Ready(kind) = task.program.prepare() else { panic!("no transaction") };
            drawn.push((kind, task.program.pause_ns()));
        }
        drawn
    };
    let thinking = kinds("think = { a = '2ms', b = '1s' }");
    let without = kinds("");
    assert!(thinking.iter().zip(&without).all(|(left, right)| left.0 == right.0));

    // Think times of `a` have a mean of 2 ms and are at most 20 ms.
    let after = |kind: usize| {
        let pairs = thinking.windows(2).filter(move |pair| pair[0].0 == kind);
        pairs.map(|pair| pair[1].1).collect::<Vec<u64>>()
    };
    let [after_a, after_b] = [after(0), after(1)];
    assert!(after_a.iter().all(|&ns| ns <= 20_000_000));
    let mean_ns = |all: &[u64]| all.iter().sum::<u64>() as f64 / all.len() as f64;
    assert!((mean_ns(&after_a) / 2e6 - 1.0).abs() < 0.1, "{}", mean_ns(&after_a));
    assert!((mean_ns(&after_b) / 1e9 - 1.0).abs() < 0.1, "{}", mean_ns(&after_b));
}

#[test]
fn clients_that_think_do_not_begin_at_once() {
    let keys = format!("{}\nthink = '1s'", script(MIX));
    let bench = Bench::loaded_for(&plan(&keys, "'load', 'mixed'"), 5);
    let step = Step { number: 1, is_warm_up: false };
    let mut first = Vec::new();
    for mut task in bench.workload.connections(step, &bench.sqlite).unwrap() {
        task.program.prepare();
        first.push(task.program.pause_ns());
    }
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 5);
}

/// A script that adds rows, and notes up to which row all are there.
const GROWING: &str = "
    table item (id int = row) rows 10;
    table seen (item int) rows 0;
    transaction add { let id = next(item); insert into item (id) values ({id}); }
    transaction look { let newest = newest(item); insert into seen (item) values ({newest}); }
    test mixed = add, look;";

/// A terminal thinks for seconds between the choice of its transaction and its begin.
#[test]
fn a_client_that_waits_takes_no_number_and_sees_the_rows_of_others() {
    for keys in ["think = '1s'", "rate = 10"] {
        let with_keys = plan(&format!("{}\n{keys}", script(GROWING)), "'load', 'mixed'");
        let bench = Bench::loaded_for(&with_keys, 2);
        let step = Step { number: 1, is_warm_up: false };
        let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
        let [slow, other] = &mut tasks[..] else { panic!("two clients") };

        // The other client adds ten rows while each of the slow one's transactions waits.
        let mut added = 10;
        let mut next_of_other = other.program.prepare();
        let mut looked = Vec::new();
        for _ in 0..20 {
            let kind = slow.program.prepare();
            for _ in 0..10 {
                other.program.on_due();
                other.program.execute().unwrap();
                added += i64::from(next_of_other == Next::Ready(0));
                next_of_other = other.program.prepare();
            }

            slow.program.on_due();
            slow.program.execute().unwrap();
            if kind == Next::Ready(1) {
                looked.push(added);
            }
            added += i64::from(kind == Next::Ready(0));
        }

        assert!(looked.len() >= 4, "{looked:?}");
        let seen = bench.integers("select item from seen").concat();
        assert!(looked.iter().all(|newest| seen.contains(newest)), "{keys}: {looked:?}, {seen:?}");
        let ids = bench.integers("select count(distinct id), max(id) from item");
        assert_eq!(ids, [[added, added]], "{keys}");
    }
}
