//! Tests of `ycsb`: its mixes, the rows that it asks for, and the rows that it inserts.

use super::*;

const YCSB: &str = "use = 'ycsb'";
const STEPS: &str = "'load', 'a', 'b', 'c', 'f', 'd', 'e', 'insert'";
/// The number of the step `insert`.
const INSERTS: usize = 7;
const ROWS: i64 = 1000;

/// Returns the loaded rows, for several clients.
fn loaded(clients: u32) -> Bench {
    let mut bench = Bench::loaded(&plan(YCSB, STEPS));
    assert_eq!(bench.failed_checks(), [""; 0]);
    bench.workload.options.clients = clients;
    bench
}

#[test]
fn each_test_has_the_shares_of_ycsb_and_leaves_the_data_as_it_should_be() {
    const COUNT: u64 = 1500;
    let mut bench = loaded(1);
    for (number, first, second, share) in [
        (1, "read", "update", 0.5),
        (2, "read", "update", 0.05),
        (3, "read", "", 0.0),
        (4, "read", "read_modify_write", 0.5),
        (5, "read_latest", "insert", 0.05),
        (6, "scan", "insert", 0.05),
    ] {
        let step = Step { number, is_warm_up: false };
        let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
        let names: Vec<&str> = task.program.kinds().iter().map(|kind| kind.name).collect();
        assert_eq!(names[0], first);
        assert_eq!(names.get(1).copied().unwrap_or(""), second);

        let mut count_of_second = 0;
        for _ in 0..COUNT {
            let Next::Ready(kind) = task.program.prepare() else { panic!() };
            count_of_second += kind as u64;
            let done = task.program.execute().unwrap_or_else(|error| panic!("{}", error.message));
            let is_scan = names[kind] == "scan";
            let expected = if names[kind] == "read_modify_write" { 2 } else { 1 };
            assert!(done.rows == expected || is_scan && done.rows <= 100, "{}", done.rows);
        }
        // Within five standard deviations.
        let mean = COUNT as f64 * share;
        let deviation = (mean * (1.0 - share)).sqrt();
        assert!((count_of_second as f64 - mean).abs() <= 5.0 * deviation, "{count_of_second}");

        let summary = task.program.summary(0).unwrap();
        drop(task);
        bench.workload.apply(number, &vec![(0, summary)]);
        assert_eq!(bench.failed_checks(), [""; 0], "step {number}");
    }
    let rows = bench.integers("select count(*) from usertable")[0][0];
    assert!(rows > ROWS, "{rows}");
}

/// YCSB draws from ten billion numbers, of which several mean the same row.
#[test]
fn the_most_frequent_row_has_its_share_whatever_the_number_of_rows() {
    const DRAWS: u32 = 200_000;
    let script = plan(YCSB, STEPS).script;
    let numbers = ["read", "update", "read_modify_write", "scan"].map(|name| {
        let transaction = script.transactions.iter().find(|known| known.name == name).unwrap();
        match &transaction.input[0] {
            plan::transactions::Action::Number { value, .. } => value.clone(),
            other => panic!("{other:?}"),
        }
    });
    assert!(numbers.iter().all(|number| *number == numbers[0]));

    let computation = values::Computation::new(&numbers[0], values::Constants::of_rows(1));
    let random = Random::stream(3, &[]);
    let mut values = Values {
        integers: vec![0],
        texts: Vec::new(),
        choices: random.clone(),
        letters: random.clone(),
        keyed: random,
        numbers: Vec::new(),
    };
    let mut counts = vec![0_u32; ROWS as usize];
    for _ in 0..DRAWS {
        counts[computation.value(&mut values).unwrap() as usize - 1] += 1;
    }
    counts.sort_unstable();

    // The sum of n^-0.99 over ten billion numbers is 26.47. The frequent numbers mean different rows,
    // and the many others add a thousandth to each.
    for (rank, count) in (1..=3).zip(counts.iter().rev()) {
        let expected = f64::from(rank).powf(-0.99) / 26.469;
        let share = f64::from(*count) / f64::from(DRAWS);
        let bounds = expected - 0.002..expected + 0.003;
        assert!(bounds.contains(&share), "{rank}: {share} instead of {expected}");
    }
}

#[test]
fn clients_insert_consecutive_rows_and_use_the_numbers_of_those_that_failed() {
    let mut bench = loaded(2);
    let step = Step { number: INSERTS, is_warm_up: false };
    let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
    assert_eq!(tasks.len(), 2);

    // The first insert fails, and the second one has been prepared when the step ends.
    let (first, second) = tasks.split_at_mut(1);
    let [first, second] = [&mut first[0].program, &mut second[0].program];
    first.prepare();
    second.prepare();
    bench.run("alter table usertable rename to elsewhere");
    assert!(first.execute().is_err());
    bench.run("alter table elsewhere rename to usertable");
    for _ in 0..5 {
        first.prepare();
        first.execute().unwrap();
    }
    first.prepare();

    let mut summaries = Summaries::new();
    for task in &mut tasks {
        summaries.push((task.client, task.program.summary(0).unwrap()));
    }
    drop(tasks);
    bench.workload.apply(INSERTS, &summaries);
    assert_eq!(bench.failed_checks(), [""; 0]);
    assert_eq!(bench.integers("select count(*) from usertable"), [[ROWS + 5]]);

    // Connections that are not applied, such as those that ask for plans, take no numbers.
    drop(bench.workload.connections(step, &bench.sqlite).unwrap());
    bench.step(INSERTS, 4);
    assert_eq!(bench.failed_checks(), [""; 0]);
    assert_eq!(bench.integers("select count(*) from usertable"), [[ROWS + 13]]);
    assert_eq!(bench.workload.numbers[0].next, ROWS as u64 + 14);
    assert!(bench.workload.numbers[0].unused.is_empty());
}

/// Another process continues with a copy of the database.
#[test]
fn a_restored_workload_goes_on_with_the_row_numbers() {
    let mut bench = loaded(2);
    let loaded_state = bench.workload.state();
    bench.step(INSERTS, 3);

    // The last client of a step ends with a number whose row is missing.
    let step = Step { number: INSERTS, is_warm_up: false };
    let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
    for task in &mut tasks {
        task.program.prepare();
    }
    tasks[1].program.execute().unwrap();
    let mut summaries = Summaries::new();
    for task in &mut tasks {
        summaries.push((task.client, task.program.summary(0).unwrap()));
    }
    drop(tasks);
    bench.workload.apply(INSERTS, &summaries);
    let missing = ROWS as u64 + 7;
    assert_eq!(bench.workload.numbers[0].unused, [missing]);

    let state = bench.workload.state();
    let mut restored = Transactions::new(bench.workload.plan(), bench.workload.options);
    assert_ne!(restored.state(), state);
    assert!(restored.restore(state, INSERTS + 1));
    assert_eq!(restored.numbers, bench.workload.numbers);
    assert_eq!(restored.commits, bench.workload.commits);

    bench.workload = restored;
    let done = bench.step(INSERTS, 4);
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(bench.failed_checks(), [""; 0]);
    assert_eq!(bench.integers("select count(*) from usertable"), [[ROWS + 15]]);
    assert_eq!(bench.workload.numbers[0].next, ROWS as u64 + 16);
    assert!(bench.workload.numbers[0].unused.is_empty());

    // The state after the load has no numbers of new rows.
    let mut restored = Transactions::new(bench.workload.plan(), bench.workload.options);
    assert!(restored.restore(loaded_state, 1));
    assert_eq!(restored.numbers[0].next, ROWS as u64 + 1);
}

/// A read of the newest rows while another client inserts one.
#[test]
fn the_newest_row_is_one_that_is_committed() {
    let text = "
        table t (id bigint = row) key (id) rows 3;
        table seen (id bigint) rows 0;
        transaction add { let id = next(t); insert into t (id) values ({id}); }
        transaction look { let id = newest(t); insert into seen (id) values ({id}); }
        test both = add, look;";
    let mut bench = Bench::loaded(&plan(&script(text), "'load', 'both'"));
    bench.workload.options.clients = 3;
    let step = Step { number: 1, is_warm_up: false };
    let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
    let kinds = ["add", "look"];
    let mut prepare = |client: usize, wanted: &str| {
        let program = &mut tasks[client].program;
        loop {
            let Next::Ready(kind) = program.prepare() else { panic!() };
            if kinds[kind] == wanted {
                return;
            }
        }
    };

    // The first client holds number 4 while the second inserts number 5.
    prepare(0, "add");
    prepare(1, "add");
    tasks[1].program.execute().unwrap();
    let mut prepare = |client: usize, wanted: &str| loop {
        let Next::Ready(kind) = tasks[client].program.prepare() else { panic!() };
        if kinds[kind] == wanted {
            tasks[client].program.execute().unwrap();
            return;
        }
    };
    prepare(2, "look");
    assert_eq!(bench.integers("select id from seen"), [[3]]);
}
