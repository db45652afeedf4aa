//! sysbench's microbenchmarks: what reaches a server, by its own log of statements, and what comes
//! back.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use crate::place::{POSTGRES, Place, QUICK, SQLITE, mysql};
use crate::show_json::{Shown, number};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// Statements of several tests, by a name for each.
const STATEMENTS: &str = "
POINT: select c from sbtest where id = ?
SIMPLE: select c from sbtest where id between ? and ?
SUM: select sum(k) from sbtest where id between ? and ?
ORDER: select c from sbtest where id between ? and ? order by c
DISTINCT: select distinct c from sbtest where id between ? and ? order by c
UPDATE_K: update sbtest set k = k + ? where id = ?
UPDATE_C: update sbtest set c = ? where id = ?
DELETE: delete from sbtest where id = ?
INSERT_ID: insert into sbtest (id, k, c, pad) values (?)
IN_IDS: select c from sbtest where id in (?)
";

/// Tests: queries per event as sysbench counts them, and the statements of an event, but for begin
/// and commit, each with how often it is executed where that is not once: methodology of the
/// published microbenchmarks.
const TESTS: &str = "
point-query | 1 | POINT
random-points.range10 | 1 | IN_IDS
hot-points | 1 | IN_IDS
points-covered-pk | 1 | select id from sbtest where id in (?)
points-covered-si | 1 | select k from sbtest where k in (?)
points-notcovered-pk | 1 | select id, c from sbtest where id in (?)
points-notcovered-si | 1 | select k, c from sbtest where k in (?)
range-covered-pk | 1 | select id from sbtest where id between ? and ?
range-covered-si | 1 | select k from sbtest where k between ? and ?
range-notcovered-pk | 1 | select id, c from sbtest where id between ? and ?
range-notcovered-si | 1 | select k, c from sbtest where k between ? and ?
scan | 1 | select * from sbtest where length(c) < ?
read-only.range10 | 16 | POINT x 10 | SIMPLE | SUM | ORDER | DISTINCT
read-only-simple | 13 | POINT x 10 | SIMPLE
read-only-sum | 13 | POINT x 10 | SUM
read-only-order | 13 | POINT x 10 | ORDER
read-only-distinct | 13 | POINT x 10 | DISTINCT
read-only-count | 1 | select count(c) from sbtest where id between ? and ?
update-inlist | 1 | update sbtest set c = ? where id in (?)
update-index | 1 | UPDATE_K
update-nonindex | 1 | UPDATE_C
update-one | 1 | UPDATE_C
update-zipf | 1 | UPDATE_C
write-only | 6 | UPDATE_K | UPDATE_C | DELETE | INSERT_ID
read-write.range10 | 20 | POINT x 10 | SIMPLE | SUM | ORDER | DISTINCT | UPDATE_K | UPDATE_C | DELETE | INSERT_ID
delete | 1 | DELETE
insert | 1 | insert into sbtest (k, c, pad) values (?)
";

/// A test's name, its queries per event, and the statements of an event with the number of
/// executions of each.
type Shape = (&'static str, u32, Vec<(&'static str, u32)>);

fn tests() -> Vec<Shape> {
    let statement = |field: &'static str| {
        let (name, times) = field.split_once(" x ").unwrap_or((field, "1"));
        let known = STATEMENTS.lines().filter_map(|line| line.split_once(": "));
        let sql = known.clone().find(|known| known.0 == name);
        (sql.map_or(name, |known| known.1), times.parse().unwrap())
    };

    let test = |line: &'static str| {
        let mut fields = line.split(" | ");
        let (name, queries) = (fields.next().unwrap(), fields.next().unwrap());
        (name, queries.parse().unwrap(), fields.map(statement).collect())
    };

    TESTS.trim().lines().map(test).collect()
}

/// Returns all tests once, at a rate, so that a log of all statements stays small.
fn plan(engine: &str) -> String {
    let mut steps = vec!["load", "index", "settle"];
    steps.extend(tests().iter().map(|test| test.0));
    format!(
        "name = \"test\"\nclients = [2]\n[workload.sysbench]\ntables = 2\nrows = 3000\nload-batch = 100\nrate = 20\n\
         warmup = \"0s\"\nread-time = \"{QUICK}\"\nwrite-time = \"{QUICK}\"\nsteps = {steps:?}\n{engine}\n"
    )
}

/// Returns a statement without its values, the number of its table and the length of a list.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql.trim();
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
            out.push('?');
            rest = &rest[end..];
        } else if first == '$' || first.is_ascii_digit() && !out.ends_with("sbtest") {
            out.push('?');
            rest = rest[1..].trim_start_matches(|c: char| c.is_ascii_digit());
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            out.push(first.to_ascii_lowercase());
            rest = &rest[first.len_utf8()..];
        }
    }

    while out.contains("?, ?") && out.contains('(') {
        out = out.replace("?, ?", "?");
    }

    out
}

/// Holds what a server executed against what the tests say, times the events that were counted.
/// Where a server ended a transaction for the sake of another, so that it was tried again, there
/// are more.
fn hold_to_shapes(shown: &Shown, target: &str, executed: &[String]) {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for sql in executed {
        *found.entry(shape(sql)).or_default() += 1;
    }

    let mut expected: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut transactions = (0, 0);
    for (test, queries, statements) in tests() {
        let row = shown.row(target, test);
        let count = |key: &str| row["ops"]["event"][key].as_u64().unwrap();
        let events = count("count");
        // On a busy machine, both clients may begin after all that was due in so short a step.
        assert!(events + count("skipped") > 0, "{row}");
        let tried = events + count("failed") + count("retried");
        let each: u32 = statements.iter().map(|statement| statement.1).sum();
        let is_transaction = queries == each + 2;
        assert!(is_transaction || queries == each, "{test}");
        assert_eq!(number(&row["queries_per_event"]), f64::from(queries), "{row}");
        if is_transaction {
            transactions = (transactions.0 + events, transactions.1 + tried);
        }
        for (statement, times) in statements {
            let (least, most) = expected.entry(statement).or_default();
            *least += events * u64::from(times);
            *most += tried * u64::from(times);
        }
    }

    expected.insert("commit", transactions);
    for (statement, (least, most)) in expected {
        let times = found.get(statement).copied().unwrap_or(0);
        assert!(
            (least..=most).contains(&times),
            "{statement}: {least} to {most} times, {found:#?}"
        );
    }
}

#[test]
fn every_test_is_valid_on_sqlite() {
    let place = Place::new();
    let ended = place.run(&plan(SQLITE), &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();
    assert_eq!(shown.rows().len(), tests().len() + 3);
    let loaded = shown.row("lite.base", "load");
    assert_eq!(number(&loaded["ops"]["insert"]["rows"]), 6000.0);

    // It has one writer: the others of `load-connections` would wait for it.
    let run = record::RunDir::open(ended.run_directory()).unwrap();
    let steps = run.started_cells().unwrap()[0].read_steps().unwrap();
    assert_eq!(steps[0].step().connections.len(), 1);
}

#[test]
fn postgres_executes_the_statements_that_were_published() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let engine = POSTGRES.replace("fsync = false", "fsync = false, log_statement = \"all\"");
    let ended = place.run(&plan(&engine), &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let log = fs_err::read_to_string(run.join("cells/pg.base/c2/r1/server.log")).unwrap();
    let executed: Vec<String> = log
        .lines()
        .filter_map(|line| {
            let (_, said) = line.split_once("LOG:  ")?;
            let sql = said.strip_prefix("statement: ");
            let of_prepared = || said.strip_prefix("execute ")?.split_once(": ");
            sql.or_else(|| Some(of_prepared()?.1)).map(str::to_owned)
        })
        .collect();
    hold_to_shapes(&shown, "pg.base", &executed);
}

#[test]
fn mysql_executes_the_statements_that_were_published() {
    let Some(build) = mysql_or_test_is_skipped("innodb") else {
        return;
    };

    let place = Place::new();
    let logs = place.join("logs");
    fs_err::create_dir(&logs).unwrap();
    fs_err::set_permissions(&logs, PermissionsExt::from_mode(0o777)).unwrap();
    let log = logs.join("general.log");
    let more = format!("set = {{ general_log = true, general_log_file = '{}', ", log.display());
    let engine = mysql(&build, "innodb").replace("set = { ", &more);
    let ended = place.run(&plan(&engine), &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();
    let log = String::from_utf8_lossy(&fs_err::read(&log).unwrap()).into_owned();
    let executed: Vec<String> = log
        .lines()
        .filter_map(|line| {
            let (command, sql) = line.rsplit_once('\t')?;
            let is_run = command.ends_with("Execute") || command.ends_with("Query");
            is_run.then(|| sql.to_owned())
        })
        .collect();
    hold_to_shapes(&shown, "my.base", &executed);
}

#[test]
fn what_an_engine_cannot_do_is_left_out_and_no_failure() {
    let place = Place::new();
    let plan = format!(
        "name = \"test\"\nclients = [1, 2]\n[workload.sysbench]\nrows = 500\nwarmup = \"0s\"\nread-time = \"{QUICK}\"\n\
         steps = [\"load\", \"index\", \"point-query\"]\n[workload.sysbench.variant.keyed]\n\
         [workload.sysbench.variant.keyless]\nprimary-key = false\n{SQLITE}\n"
    );

    const SAID: &str =
        "`lite.base` with variant `keyless` cannot be measured and is left out: SQLite ";
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let ended = ended.expect_in_stderr(&[SAID, "2 cells without 2 that are not applicable"]);
    assert!(!ended.stderr.contains("failed"), "{ended}");
    assert!(ended.stdout.contains(&SAID.replace('`', "")), "{ended}");
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(shown.rows().len(), 2 * 3);
    let resumed = place.assay(&["run", "--resume", run.to_str().unwrap()]);
    resumed.expect_code(0);
}

#[test]
fn a_mix_of_statements_and_literals_with_braces_run_as_the_plan_says() {
    let place = Place::new();
    let plan = format!(
        r#"
        name = "test"
        clients = [2]
        [workload.sysbench]
        rows = 500
        warmup = "0s"
        write-time = "1s"
        rate = 200
        steps = ["load", "index", "mixed.writes50"]
        [workload.sysbench.test.mixed]
        group = "write"
        arguments = {{ writes = 5 }}
        [[workload.sysbench.test.mixed.statement]]
        sql = "SELECT c FROM {{table}} WHERE id = {{id}}"
        weight = "100 - writes"
        rows = 1
        parameters = {{ id = "id" }}
        [[workload.sysbench.test.mixed.statement]]
        sql = """INSERT INTO {{table}} (k, c) VALUES ({{k}}, '{{{{"on": {{{{}}}}}}}}')"""
        weight = "writes"
        rows = 1
        parameters = {{ k = "uniform(-5, 3)" }}
        {SQLITE}
        "#
    );

    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    shown.assert_all_valid();
    let row = shown.row("lite.base", "mixed.writes50");
    assert_eq!(number(&row["queries_per_event"]), 1.0);
    let run = record::RunDir::open(ended.run_directory()).unwrap();
    let steps = run.started_cells().unwrap()[0].read_steps().unwrap();
    let step = steps[2].step();
    let inserted = step.checks[0].found.parse::<u64>().unwrap() - 500;
    let events = step.ops["event"].ok;

    // A half, within six standard deviations.
    let share = inserted as f64 / events as f64;
    assert!((share - 0.5).abs() < 3.0 / (events as f64).sqrt(), "{inserted} of {events}");
}
