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
