//! Tests of the whole workload, on SQLite, with a model of the same transactions in memory.

use engine::postgres::PostgresDialect;
use engine::sqlite::{Library, Sqlite};
use engine::{Dialect, Engine};

use super::*;
use crate::{ClientShare, Executed, Next};

mod clients;
mod orders;
mod ycsb;

const TPCB: &str = "use = 'tpcb'";

/// Returns a workload with these keys and steps after `load`.
fn plan(keys: &str, steps: &str) -> plan::Transactions {
    let text = format!(
        "build.x.null = \"bundled\"\nclients = [2]\n[workload.transactions]\n{keys}\nload-connections = 3\n\
         load-batch = 700\nsteps = [{steps}]\n"
    );
    let (plan, _) = plan::parse("p.toml", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", plan::render(&errors, "p.toml", &text, &[], false)));
    match &plan.variants[0].workload {
        plan::Workload::Transactions(transactions) => transactions.clone(),
        _ => panic!("another workload"),
    }
}

/// Returns the keys of a plan with a script of its own.
fn script(text: &str) -> String {
    format!("script = '''\n{text}\n'''")
}

/// A workload on a database in a directory.
struct Bench {
    workload: Transactions,
    sqlite: Sqlite,
    _directory: tempfile::TempDir,
}

impl Bench {
    /// Creates the tables of a plan for one client, and loads them.
    fn loaded(plan: &plan::Transactions) -> Self {
        Self::loaded_for(plan, 1)
    }

    /// Creates the tables of a plan, and loads them.
    fn loaded_for(plan: &plan::Transactions, clients: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pragmas = [("synchronous".to_owned(), "off".to_owned())];
        let sqlite = Sqlite::start(Library::bundled(), directory.path(), &pragmas).unwrap();
        let options = Options {
            seed: 5,
            nonce: 0,
            clients,
            share: ClientShare::ALL,
            writers_max: sqlite.capabilities().writers_max,
            is_unlimited: false,
        };

        let workload = Transactions::new(plan, options);
        let mut session = sqlite.connect().unwrap();
        for table in workload.tables() {
            for sql in sqlite.dialect().create_table(table) {
                session.query(&sql).unwrap();
            }
        }

        let mut bench = Self { workload, sqlite, _directory: directory };
        bench.step(0, u64::MAX);
        bench
    }

    /// Runs at most `operations` of each connection of a step, and returns what they did.
    fn step(&mut self, number: usize, operations: u64) -> Vec<Result<Executed, Error>> {
        let step = Step { number, is_warm_up: false };
        let mut done = Vec::new();
        let mut summaries = Summaries::new();
        for mut task in self.workload.connections(step, &self.sqlite).unwrap() {
            task.program.begin();
            for _ in 0..operations {
                match task.program.prepare() {
                    Next::Ready(_) => done.push(task.program.execute()),
                    Next::Later | Next::Done => break,
                }
            }
            summaries.push((task.client, task.program.summary(0).unwrap()));
        }
        self.workload.apply(number, &summaries);
        done
    }

    fn failed_checks(&self) -> Vec<String> {
        let checks = self.workload.check(&self.sqlite).unwrap();
        checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
    }

    /// Returns the integers that a query returns.
    fn integers(&self, sql: &str) -> Vec<Vec<i64>> {
        let rows = self.sqlite.connect().unwrap().query(sql).unwrap();
        let integer = |value: Option<String>| value.unwrap().parse().unwrap();
        rows.into_iter().map(|row| row.into_iter().map(integer).collect()).collect()
    }

    fn run(&self, sql: &str) {
        self.sqlite.connect().unwrap().query(sql).unwrap();
    }
}

#[test]
fn after_ten_thousand_transactions_of_tpcb_every_row_is_that_of_a_model() {
    const SCALE: i64 = 2;
    const COUNT: usize = 10_000;
    let mut bench = Bench::loaded(&plan(&format!("{TPCB}\nscale = {SCALE}"), "'load', 'tpcb'"));
    assert_eq!(bench.failed_checks(), [""; 0]);

    let done = bench.step(1, COUNT as u64);
    assert_eq!(done.len(), COUNT);
    assert!(done.iter().all(|done| done.as_ref().is_ok_and(|done| done.rows == 5)), "{done:?}");
    assert_eq!(bench.failed_checks(), [""; 0]);

    // The model draws the same numbers, and adds them up.
    let mut random = Random::stream(5, &[1, 0, 0, CHOICES]);
    let mut between = |least: i64, most: i64| {
        least + random.below((most - least + 1).unsigned_abs()).cast_signed()
    };
    let balances = |count: i64| vec![0; count as usize];
    let (mut accounts, mut tellers, mut branches) =
        (balances(100_000 * SCALE), balances(10 * SCALE), balances(SCALE));
    let mut history = Vec::new();
    for _ in 0..COUNT {
        let account = between(1, 100_000 * SCALE);
        let branch = between(1, SCALE);
        let teller = between(1, 10 * SCALE);
        let delta = between(-5000, 5000);
        accounts[account as usize - 1] += delta;
        tellers[teller as usize - 1] += delta;
        branches[branch as usize - 1] += delta;
        history.push(vec![teller, branch, account, delta]);
    }

    let found = bench.integers("select tid, bid, aid, delta from pgbench_history order by rowid");
    assert_eq!(found, history);
    for (table, key, value, expected) in [
        ("pgbench_accounts", "aid", "abalance", accounts),
        ("pgbench_tellers", "tid", "tbalance", tellers),
        ("pgbench_branches", "bid", "bbalance", branches),
    ] {
        let found = bench.integers(&format!("select {key}, {value} from {table} order by {key}"));
        let expected: Vec<Vec<i64>> =
            (1..).zip(expected).map(|(key, value)| vec![key, value]).collect();
        assert_eq!(found, expected, "{table}");
    }
}

#[test]
fn a_fault_of_the_data_is_found_by_a_check() {
    let mut bench = Bench::loaded(&plan(TPCB, "'load', 'tpcb'"));
    bench.step(1, 20);
    for (fault, repair, check) in [
        (
            "update pgbench_branches set bbalance = bbalance + 1",
            "update pgbench_branches set bbalance = bbalance - 1",
            "balances of branches less those of accounts",
        ),
        (
            "update pgbench_tellers set tbalance = tbalance - 1 where tid = 3",
            "update pgbench_tellers set tbalance = tbalance + 1 where tid = 3",
            "balances of tellers less those of accounts",
        ),
        (
            "insert into pgbench_history (tid, bid, aid, delta, mtime) values (1, 1, 1, 0, '')",
            "delete from pgbench_history where mtime = ''",
            "rows of the history",
        ),
        (
            "update pgbench_history set delta = delta + 1 where rowid = 1",
            "update pgbench_history set delta = delta - 1 where rowid = 1",
            "amounts in the history less balances of accounts",
        ),
    ] {
        bench.run(fault);
        assert_eq!(bench.failed_checks(), [check], "{fault}");
        bench.run(repair);
        assert_eq!(bench.failed_checks(), [""; 0], "{repair}");
    }

    let bench = Bench::loaded(&plan(TPCB, "'load', 'tpcb'"));
    bench.run("delete from pgbench_accounts where aid = 7");
    assert_eq!(bench.failed_checks(), ["rows of pgbench_accounts"]);
}

const SCRIPT: &str = "
table account (id int = row, balance bigint = 100, name varchar(40) = lastname(row)) key (id)
    index name (name) rows 50 * scale;
table entry (account int, amount int, note varchar(30)) rows 0;

transaction transfer {
    let first = uniform(1, 50 * scale);
    let count = uniform(1, 3);
    let others = list(count, uniform(1, 50 * scale));
    let amounts = list(count, uniform(1, 30));
    let note = letters(3, 9);

    let before, name: text = select balance, name from account where id = {first} {for update};
    for other, amount in others, amounts {
        update account set balance = balance - {amount} where id = {first};
        update account set balance = balance + {amount} where id = {other};
        insert into entry (account, amount, note) values ({other}, {amount}, {note});
    }
    expect 1..1: select id from account where id = {first} and name = {name};
    let after = select balance from account where id = {first};
    if after % 5 = 0 and not count = 1 {
        abort;
    } else {
        for i in 1 to count {
            insert into entry (account, amount, note) values ({-i}, {before - after}, 'end');
        }
    }
}

-- checks
";

fn own(more: &str) -> String {
    let text = SCRIPT.replace("-- checks\n", more);
    script(&text)
}

#[test]
fn values_of_a_row_conditions_loops_and_rollbacks_do_what_they_say() {
    let keys = own("check \"sum\" = 100 * 50 * scale: select sum(balance) from account;");
    let mut bench = Bench::loaded(&plan(&keys, "'load', 'index', 'transfer'"));
    bench.step(1, u64::MAX);
    let done = bench.step(2, 500);
    let done: Vec<Executed> = done.into_iter().map(Result::unwrap).collect();
    let rolled_back = done.iter().filter(|done| done.is_rolled_back).count();
    assert!((10..490).contains(&rolled_back), "{rolled_back}");
    assert_eq!(bench.failed_checks(), [""; 0]);

    // A transaction that was rolled back left nothing behind: each other one has as many entries of
    // its end as transfers.
    let counts = bench.integers(
        "select count(*) filter (where account > 0), count(*) filter (where account < 0), \
         count(*) filter (where account = -1) from entry",
    );
    let [transfers, ends, committed] = counts[0][..] else { panic!() };
    assert_eq!((transfers, committed as usize), (ends, done.len() - rolled_back));

    // An index of the step `index` exists.
    let indexes = bench.integers("select count(*) from sqlite_master where type = 'index'");
    assert_eq!(indexes, [[1]]);
}

#[test]
fn a_retry_has_the_same_input() {
    let keys = own("");
    let mut bench = Bench::loaded(&plan(&keys, "'load', 'transfer'"));
    let step = Step { number: 1, is_warm_up: false };
    let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
    let program = &mut tasks[0].program;

    // The first attempt fails for a reason that goes away.
    program.begin();
    program.prepare();
    bench.run("alter table entry rename to elsewhere");
    assert!(program.execute().is_err());
    bench.run("alter table elsewhere rename to entry");
    assert_eq!(bench.integers("select count(*) from entry"), [[0]]);
    while program.execute().unwrap().is_rolled_back {
        program.prepare();
    }
    drop(tasks);
    let retried = bench.integers("select account, amount from entry order by rowid");

    // Without a fault, the same connection does the same.
    bench = Bench::loaded(&plan(&keys, "'load', 'transfer'"));
    let mut tasks = bench.workload.connections(step, &bench.sqlite).unwrap();
    let program = &mut tasks[0].program;
    program.begin();
    program.prepare();
    while program.execute().unwrap().is_rolled_back {
        program.prepare();
    }
    assert_eq!(bench.integers("select account, amount from entry order by rowid"), retried);
}

#[test]
fn a_wrong_number_of_rows_fails_and_changes_nothing() {
    let text = "
        table t (id int = row, v int = 0) key (id) rows 3;
        transaction lost { update t set v = v + 1 where id = 1; update t set v = 1 where id = 9; }
        transaction twice { update t set v = v + 1 where id < 3; }
        transaction none { let v = select v from t where id = 9; }
        transaction wide { expect 2: update t set v = v + 1 where id < 3; }
        transaction text { let v = select 'a'; }";
    let steps = "'load', 'lost', 'twice', 'none', 'wide', 'text'";
    let mut bench = Bench::loaded(&plan(&script(text), steps));

    let mut messages = Vec::new();
    for number in [1, 2, 3, 5] {
        let done = bench.step(number, 1);
        messages.push(done[0].as_ref().unwrap_err().message.clone());
    }
    assert_eq!(
        messages,
        [
            "transaction `lost`: a statement has 0 rows instead of 1: `update t set v = 1 where id = 9`",
            "transaction `twice`: a statement has 2 rows instead of 1: `update t set v = v + 1 where id < 3`",
            "transaction `none`: a statement has 0 rows instead of 1: `select v from t where id = 9`",
            "transaction `text`: column 1 is not an integer: `select 'a'`",
        ]
    );
    assert_eq!(bench.integers("select sum(v) from t"), [[0]]);
    assert_eq!(bench.step(4, 1)[0].as_ref().unwrap().rows, 2);
}

#[test]
fn a_mix_has_the_shares_of_its_weights() {
    let text = "
        table t (id int = row) key (id) rows 1;
        transaction a { select 1; }
        transaction b { select 2; }
        test mixed = a 3, b;";
    let mut bench = Bench::loaded(&plan(&script(text), "'load', 'mixed'"));
    let step = Step { number: 1, is_warm_up: false };
    let mut task = bench.workload.connections(step, &bench.sqlite).unwrap().remove(0);
    let names: Vec<&str> = task.program.kinds().iter().map(|kind| kind.name).collect();
    assert_eq!(names, ["a", "b"]);

    let mut counts = [0; 2];
    for _ in 0..4000 {
        let Next::Ready(kind) = task.program.prepare() else { panic!() };
        counts[kind] += 1;
        task.program.execute().unwrap();
    }
    // Within five standard deviations of three quarters.
    assert!((2863..=3137).contains(&counts[0]), "{counts:?}");

    let Summary::Commits(commits) = task.program.summary(0).unwrap() else { panic!() };
    assert_eq!(commits.counts, [counts[0], counts[1]]);
    drop(task);
    bench.workload.apply(1, &vec![(0, Summary::Commits(commits.clone()))]);
    bench.workload.apply(1, &vec![(0, Summary::Commits(commits))]);
    assert_eq!(bench.workload.commits.counts[0], 2 * counts[0]);
}

#[test]
fn rows_are_a_function_of_the_seed_however_many_connections_load() {
    let text = "
        table t (
            id int = row, d decimal(8, 2) = uniform(-5, 2000), c char(5) = 'it''s',
            v varchar(9) = letters(2, 9), n int null, at timestamp = now
        ) key (id) rows 1000;
        transaction a { select 1; }";
    let rows = |connections: u32, batch: u32| {
        let mut plan = plan(&script(text), "'load', 'a'");
        (plan.load_connections, plan.load_batch) = (connections, batch);
        let bench = Bench::loaded(&plan);
        let mut session = bench.sqlite.connect().unwrap();
        session.query("select id, d, c, v, n from t order by id").unwrap()
    };
    let found = rows(1, 1000);
    assert_eq!(found, rows(3, 7));
    assert_eq!(found.len(), 1000);
    assert!(found.iter().all(|row| row[2].as_deref() == Some("it's") && row[4].is_none()));
    let distinct: std::collections::BTreeSet<_> = found.iter().map(|row| &row[3]).collect();
    assert!(distinct.len() > 900, "{}", distinct.len());
}

#[test]
fn decimals_are_written_with_all_their_digits() {
    let text = "
        table t (a decimal(8, 2) = row - 2, b decimal(8, 0) = row, c decimal(8, 3) = 1000 * row) rows 3;
        transaction a { select 1; }";
    let plan = plan(&script(text), "'load', 'a'");
    let mut writer = RowWriter::new(&plan.script.tables[0], 0, 1, None);
    let mut sql = String::new();
    writer.write(1..4, &mut sql).unwrap();
    let values = "(-0.01, 1, 1.000), (0.00, 2, 2.000), (0.01, 3, 3.000)";
    assert_eq!(sql, format!("insert into t (a, b, c) values {values}"));
}

#[test]
fn each_engine_has_its_own_types_and_keys() {
    let text = "
        table t (
            a int, b bigint, c decimal(12, 2), d char(3), e varchar(9) null, f timestamp
        ) key (b, a) rows 0;
        transaction x { select 1; }";
    let table = table(&plan(&script(text), "'load', 'x'").script.tables[0]);
    let postgres = PostgresDialect::default().create_table(&table);
    assert_eq!(
        postgres,
        ["create table t (a int not null, b bigint not null, c decimal(12, 2) not null, \
          d char(3) not null, e varchar(9) null, f timestamp not null, primary key (b, a))"]
    );
}

#[test]
fn native_statements_run_only_on_their_engine_and_if_asked_for() {
    let text = "
        table t (id int = row, v int = 0) key (id) rows 1;
        transaction a {
            native sqlite { update t set v = v + 100; } else { update t set v = v + 1; }
            on sqlite { update t set v = v + 10; }
            on postgres, mysql { update no_such_table set v = 1; }
        }";
    for (statements, expected) in [("portable", 11), ("native", 110)] {
        let keys = format!("{}\nstatements = '{statements}'", script(text));
        let mut bench = Bench::loaded(&plan(&keys, "'load', 'a'"));
        bench.step(1, 1).remove(0).unwrap();
        assert_eq!(bench.integers("select v from t"), [[expected]], "{statements}");
    }
}

#[test]
fn tables_agree_on_what_depends_on_a_key_only() {
    let text = "
        table header (id int = row, lines int = at(row, uniform(1, 4)), kind varchar(9) = either(row % 2 = 0, 'even', 'odd'))
            key (id) rows 100;
        table line (header int = (row - 1) / 4 + 1, number int = (row - 1) % 4 + 1, late int null = 7 when row > 200)
            key (header, number) rows 400 where (row - 1) % 4 < at((row - 1) / 4 + 1, uniform(1, 4));
        transaction a { select 1; }";
    let mut plan = plan(&script(text), "'load', 'a'");
    plan.load_batch = 1;
    let bench = Bench::loaded(&plan);

    let wrong = "select count(*) from header where lines <> (select count(*) from line where header = header.id)";
    assert_eq!(bench.integers(wrong), [[0]]);
    let counts = "select count(distinct lines), sum(kind = 'even') from header";
    assert_eq!(bench.integers(counts), [[4, 50]]);
    let late = "select min(header), count(*) from line where (late is null) <> (header <= 50)";
    assert_eq!(bench.sqlite.connect().unwrap().query(late).unwrap()[0][1].as_deref(), Some("0"));
}

#[test]
fn a_variable_that_changes_begins_anew_in_each_attempt() {
    let text = "
        table t (id int = row, v int = 0) key (id) rows 1;
        transaction a {
            let values = list(3, uniform(5, 5));
            var sum = 1;
            for value in values { set sum = sum + value; }
            update t set v = {sum} where id = 1;
        }";
    let mut bench = Bench::loaded(&plan(&script(text), "'load', 'a'"));
    let done = bench.step(1, 3);
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(bench.integers("select v from t"), [[16]]);
}
