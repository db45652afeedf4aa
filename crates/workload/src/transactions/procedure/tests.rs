//! The procedures of scripts, as text.

use engine::postgres::PostgresDialect;
use words::Engine;

use super::*;
use crate::ClientShare;
use crate::sysbench::Options;
use crate::transactions::Transactions;

/// A script with everything that a transaction may do.
const ALL: &str = "
table t (id int = row, v bigint = 0, name varchar(40) = 'it') key (id) rows 5;
transaction all {
    let first = uniform(1, 5);
    let count = uniform(0, 3);
    let others = list(count, uniform(1, 5));
    let unused = uniform(1, 9);
    let note = letters(3, 9);

    var sum = 0;
    let again = list(2, first - 100);
    let title = either(first % 2 = 1, 'it''s \\', note);
    let before, name: text = select v, name from t where id = {first} {for update};
    for other in others {
        set sum = sum + other / count;
        if other < 3 or not sum = 0 {
            update t set v = {other * 2 + client}, name = {title} where id = {other};
        } else {
            native postgres, mysql { abort; } else { select 7; }
        }
    }
    for i in sum to count {
        let v = expect 0..1: select v from t where id = {i} limit {i + 1};
        let last = lastname(if(v > 0, v, 9));
        expect 0..count: select id, name from t where name = {last};
    }
    for i in 1 to 3 {
        on mysql { expect any: delete from t where id = 9; } else { with a as (select 1) select * from a; }
    }
}";

/// Returns the workload of a script.
fn workload(keys: &str) -> plan::Transactions {
    let text = format!("build.x.postgres = '1'\n[workload.transactions]\n{keys}\n");
    let (plan, _) = plan::parse("p.toml", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", plan::render(&errors, "p.toml", &text, &[], false)));
    match &plan.variants[0].workload {
        plan::Workload::Transactions(transactions) => transactions.clone(),
        _ => panic!("another workload"),
    }
}

/// Returns the first procedure of a script on an engine, and its call.
fn procedure_of(keys: &str, engine: Engine) -> String {
    let plan = workload(keys);
    let transaction = &plan.script.transactions[0];
    let procedure = Procedure::new(engine, plan.statements, transaction).unwrap();
    let language = language_of(engine).unwrap();
    let routine = Routine::new(language, plan.statements, transaction);
    let call = language.call(&procedure_name(transaction), &routine.kinds());
    format!("{}\n\n{call}", procedure.create)
}

#[test]
fn the_procedure_of_tpcb_has_its_four_inputs() {
    insta::assert_snapshot!("tpcb_postgres", procedure_of("use = 'tpcb'", Engine::Postgres));
    insta::assert_snapshot!("tpcb_mysql", procedure_of("use = 'tpcb'", Engine::Mysql));
}

#[test]
fn each_action_has_its_statements() {
    let script = format!("script = '''{ALL}'''");
    insta::assert_snapshot!("all_postgres", procedure_of(&script, Engine::Postgres));
    insta::assert_snapshot!("all_mysql", procedure_of(&script, Engine::Mysql));
}

#[test]
fn a_text_does_not_end_the_body_that_it_is_in() {
    let script = "
        table t (id int = row, name varchar(40) = 'x') key (id) rows 5;
        transaction a { update t set name = '$assay$ $_assay$' where id = 1; }";
    let procedure = procedure_of(&format!("script = '''{script}'''"), Engine::Postgres);
    assert_eq!(procedure.matches("$__assay$").count(), 2, "{procedure}");
}

#[test]
fn a_backslash_means_itself_whatever_the_options_of_the_server() {
    let script = r"
        table t (id int = row, name varchar(40) = 'x') key (id) rows 5;
        transaction a { select 1; let name = 'it''s \'; update t set name = {name} where id = 1; }";
    let text_on = |engine| {
        let procedure = procedure_of(&format!("script = '''{script}'''"), engine);
        let mut lines = procedure.lines().map(str::trim);
        lines.find(|line| line.contains("assay_t0") && line.contains('=')).unwrap().to_owned()
    };
    assert_eq!(text_on(Engine::Postgres), r"assay_t0 := e'it''s \\';");
    assert_eq!(text_on(Engine::Mysql), "set assay_t0 = _utf8mb4 x'69742773205c';");
}

#[test]
fn only_a_workload_in_this_form_has_procedures() {
    let options = Options {
        seed: 1,
        nonce: 0,
        clients: 1,
        share: ClientShare::ALL,
        writers_max: 1,
        is_unlimited: false,
    };
    let dialect = PostgresDialect::default();
    let names = |keys: &str| {
        let procedures = Transactions::new(&workload(keys), options).procedures(&dialect);
        Vec::from_iter(procedures.into_iter().map(|procedure| procedure.signature))
    };
    assert_eq!(
        names("use = 'tpcb'\nform = 'procedure'"),
        ["assay_tpcb(bigint, bigint, bigint, bigint, inout bigint)"]
    );
    assert_eq!(names("use = 'tpcb'"), [""; 0]);

    let plan = workload("use = 'tpcb'");
    let transaction = &plan.script.transactions[0];
    assert_eq!(Procedure::new(Engine::Sqlite, plan.statements, transaction), None);
}
