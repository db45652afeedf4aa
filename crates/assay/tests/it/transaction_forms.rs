//! Transactions as stored procedures and blocks do what the same transactions do statement by
//! statement: on real servers, row by row.

use std::os::unix::fs::PermissionsExt as _;

use engine::mysql::Mysql;
use engine::postgres::Postgres;
use engine::{ErrorClass, Session, SqlEngine};
use plan::transactions::ScriptType;
use workload::sysbench::{Options, Step};
use workload::transactions::Transactions;
use workload::{ClientShare, Executed, Next, Summaries};

use crate::foreign_server::Foreign;
use crate::own_server::OwnServer;
use crate::place::{POSTGRES, Place, QUICK, mysql};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// Returns the forms besides `statements` that a server has.
fn forms_of(engine: &impl SqlEngine) -> &'static [&'static str] {
    let is_postgres = engine.dialect().engine() == Some(plan::Engine::Postgres);
    let has_blocks = is_postgres || engine.version().contains("MariaDB");
    if has_blocks { &["procedure", "block"] } else { &["procedure"] }
}

const ORDERS: &str = include_str!("../../../plan/src/workloads/transactions/orders.script");
/// Numbers of the script for fewer rows, in order: see the tests of `workload`.
const FEWER_ROWS: [(&str, &str); 9] = [
    ("100000", "100"),
    ("3000 < 1000", "3000 < 10"),
    ("0, 999)", "0, 9)"),
    ("2101", "22"),
    ("2100", "21"),
    ("3000", "30"),
    ("3001", "31"),
    ("900", "9"),
    ("45000", "450"),
];

/// A script with everything that a transaction may do.
const ALL: &str = r"
table account (id int = row, balance bigint = 100, name varchar(40) = lastname(row - 1)) key (id) rows 20;
table entry (number int = row, account int, amount bigint, note varchar(60)) rows 0;

transaction all {
    let first = uniform(1, 20);
    let count = uniform(0, 3);
    let others = list(count, uniform(1, 20));
    let amounts = list(count, uniform(-30, 30));
    let note = letters(3, 9);
    let wide = uniform(1, 3) * 5000000000;

    var sum = 0;
    let again = list(2, first * 3 - 100);
    let title = 'it''s \ à {note}';
    let odd = either(first % 2 = 1, title, note);
    let before, name: text = select balance, name from account where id = {first} {for update};
    for other, amount in others, amounts {
        set sum = sum + amount;
        if amount < 0 or other = first {
            update account set balance = balance + {amount} where id = {other};
            update account set balance = balance - {amount} where id = {other};
        } else {
            update account set balance = balance - {amount} where id = {first};
            update account set balance = balance + {amount} where id = {other};
        }
        insert into entry (number, account, amount, note) values ({count}, {other}, {amount * wide / 7}, {odd});
    }
    for number in again {
        insert into entry (number, account, amount, note) values ({number}, {first}, {-7 % (count + 1)}, {name});
    }
    for turn in sum / 10 to count {
        expect 0..20: select id from account where id > {turn * 4 + 1} order by id limit {turn + 30};
        if turn != 2 {
            let nothing, none: text = expect 0..1: select id, name from account where id = {-turn};
            let last = lastname(turn * 37 - nothing);
            insert into entry (number, account, amount, note) values ({nothing}, {turn}, {not turn = 1}, {last});
        }
    }
    expect count: select note from entry where number = {count} and note = {odd} limit {count};
    if before % 5 = 0 and not count = 1 {
        abort;
    }
}
";

/// Returns the workload of a script in a form, with these steps after the load.
fn workload(script: &str, form: &str, steps: &str) -> Transactions {
    let text = format!(
        "build.x.postgres = \"distribution\"\n[workload.transactions]\nscript = '''\n{script}\n'''\nform = '{form}'\n\
         scale = 2\nload-connections = 1\nsteps = [\"load\", {steps}]\n"
    );
    let (plan, _) = plan::parse("p.toml", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", plan::render(&errors, "p.toml", &text, &[], false)));
    let plan::Workload::Transactions(transactions) = &plan.variants[0].workload else {
        panic!("another workload")
    };
    let options = Options {
        seed: 5,
        nonce: 0,
        clients: 1,
        share: ClientShare::ALL,
        writers_max: u32::MAX,
        is_unlimited: false,
    };
    Transactions::new(transactions, options)
}

/// A script on a server.
struct Bench<'a, E: SqlEngine> {
    engine: &'a E,
    workload: Transactions,
}

impl<'a, E: SqlEngine> Bench<'a, E> {
    /// Creates tables and procedures, and loads them.
    fn loaded(engine: &'a E, workload: Transactions) -> Self {
        let mut session = engine.connect().unwrap();
        let mut run =
            |sql: &str| session.query(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        for table in workload.tables() {
            engine.dialect().create_table(table).iter().for_each(|sql| drop(run(sql)));
        }
        for procedure in workload.procedures(engine.dialect()) {
            run(&procedure.create);
        }
        let mut bench = Self { engine, workload };
        bench.step(0, u64::MAX);
        bench
    }

    /// Runs at most `operations` of each connection of a step. Returns what each did, or its message.
    fn step(&mut self, number: usize, operations: u64) -> Vec<Result<Executed, String>> {
        let step = Step { number, is_warm_up: false };
        let mut done = Vec::new();
        let mut summaries = Summaries::new();
        for mut task in self.workload.connections(step, self.engine).unwrap() {
            task.program.begin();
            for _ in 0..operations {
                match task.program.prepare() {
                    Next::Ready(_) => {
                        done.push(task.program.execute().map_err(|error| error.message));
                    }
                    Next::Later | Next::Done => break,
                }
            }
            summaries.push((task.client, task.program.summary(0).unwrap()));
        }
        self.workload.apply(number, &summaries);
        done
    }

    fn failed_checks(&self) -> Vec<String> {
        let checks = self.workload.check(self.engine).unwrap();
        checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
    }

    /// Returns all rows of all tables, without times.
    fn rows(&self) -> Vec<(String, engine::Rows)> {
        let mut session = self.engine.connect().unwrap();
        let mut rows = Vec::new();
        for table in &self.workload.plan().script.tables {
            let columns = table.columns.iter().map(|column| match column.kind {
                ScriptType::Timestamp => format!("{} is null", column.name),
                _ => column.name.clone(),
            });
            let columns = Vec::from_iter(columns).join(", ");
            let mut found =
                session.query(&format!("select {columns} from {}", table.name)).unwrap();
            found.sort();
            rows.push((table.name.clone(), found));
        }
        rows
    }

    fn query(&self, sql: &str) -> engine::Rows {
        self.engine.connect().unwrap().query(sql).unwrap()
    }
}

impl<E: SqlEngine> Drop for Bench<'_, E> {
    fn drop(&mut self) {
        let mut session = self.engine.connect().unwrap();
        for table in self.workload.tables() {
            session.query(&format!("drop table {}", table.name)).unwrap();
        }
        for procedure in self.workload.procedures(self.engine.dialect()) {
            session.query(&format!("drop procedure {}", procedure.signature)).unwrap();
        }
    }
}

/// Runs transactions of the scripts in each form, and holds the forms to that of statements.
fn forms_agree(engine: &impl SqlEngine) {
    let mut orders = ORDERS.to_owned();
    for (number, smaller) in FEWER_ROWS {
        assert!(orders.contains(number), "{number}");
        orders = orders.replace(number, smaller);
    }
    for (script, test, count) in [(orders.as_str(), "orders", 600), (ALL, "all", 200)] {
        let run = |form: &str| {
            let mut bench = Bench::loaded(engine, workload(script, form, &format!("\"{test}\"")));
            let done = bench.step(1, count);
            assert_eq!(bench.failed_checks(), [""; 0], "{test} in {form}");
            (done, bench.rows())
        };

        let (expected_done, expected_rows) = run("statements");
        for &form in forms_of(engine) {
            let (done, rows) = run(form);
            assert_eq!(expected_done, done, "{test} in {form}");
            for (expected, found) in expected_rows.iter().zip(&rows) {
                assert_eq!(expected, found, "{test} in {form}");
            }
        }

        let done: Vec<Executed> = expected_done.into_iter().map(Result::unwrap).collect();
        let rolled_back = done.iter().filter(|done| done.is_rolled_back).count();
        assert!(rolled_back > 0 && rolled_back < done.len(), "{test}: {rolled_back}");
    }
}

/// Runs transactions that fail in each form, and holds them to their messages.
fn failures_agree(engine: &impl SqlEngine, of_engine: [&str; 2]) {
    let script = "
        table t (id int = row, v int null = 0) key (id) rows 3;
        transaction lost { update t set v = v + 1 where id = 1; update t set v = 1 where id = 9; }
        transaction none { update t set v = v + 1 where id = 1; let v = select v from t where id = 9; }
        transaction range { let n = uniform(2, 2); expect n..n + 1: update t set v = v + 1 where id = 1; }
        transaction several { update t set v = v + 1 where id = 1; let v = select v from t; }
        transaction empty { update t set v = v + 1 where id = 1; let v = select null from t where id = 1; }
        transaction zero { let n = uniform(0, 0); update t set v = v + 1 where id = 1; var m = 1 / n; }
        transaction wide { let n = uniform(1, 1); update t set v = v + 1 where id = 1; var m = (n + 9223372036854775806) + n; }
        transaction after { update t set v = v + 1 where id = 1; }";
    let names = ["lost", "none", "range", "several", "empty", "zero", "wide", "after"];
    let steps = names.map(|name| format!("\"{name}\"")).join(", ");

    let messages_of = |form: &str| {
        let mut bench = Bench::loaded(engine, workload(script, form, &steps));
        let messages = (1..=names.len()).filter_map(|step| bench.step(step, 1).remove(0).err());
        let messages: Vec<String> = messages.collect();
        assert_eq!(bench.query("select sum(v) from t"), [[Some("1".to_owned())]], "{form}");
        messages
    };
    assert_eq!(messages_of("statements").len(), names.len() - 1);

    let [several, empty] = of_engine;
    for &form in forms_of(engine) {
        let messages = messages_of(form);
        assert_eq!(messages.len(), names.len() - 1, "{messages:?}");
        assert_eq!(
            messages[..5],
            [
                "transaction `lost`: a statement has 0 rows instead of 1: `update t set v = 1 where id = 9`",
                "transaction `none`: a statement has 0 rows instead of 1: `select v from t where id = 9`",
                "transaction `range`: a statement has 1 rows instead of 2 to 3: `update t set v = v + 1 where id = 1`",
                several,
                empty,
            ],
            "{form}"
        );
    }
}

/// Fails for a lock, and succeeds once it is gone, with the same input. `impatient` makes new sessions
/// wait for locks only shortly.
fn a_lock_timeout_can_be_retried(engine: &impl SqlEngine, form: &str, impatient: &str) {
    let script = "
        table t (id int = row, v bigint = 0) key (id) rows 2;
        transaction add {
            let n = uniform(1, 1000000);
            update t set v = v + {n} where id = 1;
            update t set v = v + {n} where id = 2;
        }";
    let bench = Bench::loaded(engine, workload(script, form, "\"add\""));
    bench.query(impatient);
    let step = Step { number: 1, is_warm_up: false };
    let mut task = bench.workload.connections(step, engine).unwrap().remove(0);
    task.program.begin();
    task.program.prepare();

    let mut other = engine.connect().unwrap();
    other.query(engine.dialect().begin_transaction(true)).unwrap();
    other.query("update t set v = v + 1 where id = 2").unwrap();
    let error = task.program.execute().unwrap_err();
    assert_eq!(error.class, ErrorClass::LockTimeout, "{error}");
    // What it had changed is gone, and not locked.
    other.query("update t set v = v + 1 where id = 1").unwrap();
    other.query(engine.dialect().commit()).unwrap();

    let expected = Executed { rows: 2, is_expected: true, is_rolled_back: false };
    assert_eq!(task.program.execute().unwrap(), expected);
    drop(task);
    assert_eq!(
        bench.query("select count(*) from t where v > 1 group by v")[0][0].as_deref(),
        Some("2")
    );
}

#[test]
fn forms_do_on_postgres_what_statements_do() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let server = OwnServer {
        folder: place.path(),
        name: "server",
        build: "distribution",
        config: "fsync = off\nshared_buffers = 32MB\n",
    };
    let postgres = server.start(Postgres::start);

    forms_agree(&postgres);
    let several = "transaction `several`: a statement has 2 rows instead of 1: `select v from t`";
    let empty = "transaction `empty`: a column is NULL: `select null from t where id = 1`";
    failures_agree(&postgres, [several, empty]);
    for &form in forms_of(&postgres) {
        let impatient = "alter role current_user set lock_timeout = '100ms'";
        a_lock_timeout_can_be_retried(&postgres, form, impatient);
    }

    // A rollback that is meant is no error, which the server would log.
    let log = fs_err::read_to_string(place.join("server.log")).unwrap();
    assert!(!log.contains("rolled back"), "{log}");
}

#[test]
fn forms_do_on_mysql_what_statements_do() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };
    let place = Place::new();
    let server = OwnServer {
        folder: place.path(),
        name: "server",
        build: &build,
        // Texts of clients are in `utf8mb4`.
        config: "innodb_buffer_pool_size = 32M\ninnodb_flush_log_at_trx_commit = 0\n\
                 character_set_server = latin1\n",
    };
    let mysql = server.start(Mysql::start);

    forms_agree(&mysql);
    let several =
        "transaction `several`: a statement has several rows instead of 1: `select v from t`";
    let empty = "transaction `empty`: a column is NULL: `select null from t where id = 1`";
    failures_agree(&mysql, [several, empty]);
    for &form in forms_of(&mysql) {
        a_lock_timeout_can_be_retried(&mysql, form, "set global innodb_lock_wait_timeout = 1");
    }
}

/// Returns the text of a plan that runs `tpcb` in the form `procedure`.
fn tpcb(engine: &str) -> String {
    format!(
        "name = \"test\"\nclients = [2]\n[workload.transactions]\nuse = \"tpcb\"\nform = \"procedure\"\n\
         warmup = \"0s\"\ntime = \"{QUICK}\"\nsteps = [\"load\", \"tpcb\", \"tpcb.2\"]\n{engine}\n"
    )
}

/// Runs `tpcb` on an engine, and holds the run to what was counted.
fn tpcb_runs_on(place: &Place, engine: &str, target: &str) {
    let ended = place.run(&tpcb(engine), &[]).expect_code(0);
    let shown = Shown::read(place, &ended.run_directory());
    shown.assert_all_valid();
    let row = shown.row(target, "tpcb.2");
    let tpcb = &row["ops"]["tpcb"];
    assert!(tpcb["count"].as_u64().unwrap() > 0 && tpcb["failed"] == 0, "{row}");
    assert_eq!(tpcb["rows"].as_u64(), tpcb["count"].as_u64().map(|count| 5 * count), "{row}");
}

#[test]
fn procedures_of_tpcb_are_created_and_called_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        tpcb_runs_on(&Place::new(), POSTGRES, "pg.base");
    }
}

#[test]
fn procedures_of_tpcb_are_created_and_called_on_mysql() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        tpcb_runs_on(&Place::new(), &mysql(&build, "innodb"), "my.base");
    }
}

#[test]
fn blocks_of_mysql_are_refused_before_the_run() {
    let place = Place::new();
    let program = place.join("mysqld");
    let script =
        "#!/bin/sh\necho 'mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server)'\n";
    fs_err::write(&program, script).unwrap();
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let build = format!("[build.my]\nmysql = '{}'\n", place.path().display());
    let plan = tpcb(&build).replace("\"procedure\"", "\"block\"");
    let ended = place.run(&plan, &[]).expect_code(2);
    ended.expect_in_stderr(&[
        "transactions in the form `block` do not run on build `my`: MySQL 8.0.36 has no blocks",
        "use `form = \"procedure\"`, or MariaDB",
    ]);
}

#[test]
fn a_server_of_others_keeps_no_procedure() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let foreign = Foreign::start();
    let build = format!("[build.pg]\nurl = \"{}\"\n", foreign.url("right"));
    tpcb_runs_on(&place, &build, "pg.default");
    let mut session = Postgres::attach(&foreign.url("right")).unwrap().connect().unwrap();
    let count = "select count(*) from pg_proc where proname like 'assay%'";
    assert_eq!(session.query_i64(count).unwrap(), Some(0));

    // One that somebody else made stays.
    let signature = "assay_tpcb(bigint, bigint, bigint, bigint, inout bigint)";
    let create = format!("create procedure {signature} language sql as 'select 1::bigint'");
    session.query(&create).unwrap();
    let ended = place.run(&tpcb(&build), &[]).expect_code(1);
    let said = format!("the procedure `{signature}` exists, and this run did not create it");
    ended.expect_in_stderr(&[&said]);
    assert_eq!(session.query_i64(count).unwrap(), Some(1));
}
