//! The plans of a workload's statements, as engines explain them after each step.

use serde_json::Value;

use crate::place::{POSTGRES, Place, QUICK, SQLITE, mysql, workload};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// The beginning of the statement by which clients delete.
const DELETE: &str = "delete from pi1 ";

/// Returns a load, writes and range queries in few rows.
fn plan(configs: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i2\", \"qr100\"]";
    workload(2000, 200, QUICK, steps) + configs
}

/// Returns the plan of the statement that begins so.
fn plan_of<'a>(row: &'a Value, statement: &str) -> &'a str {
    let mut plans = row["plans"].as_array().unwrap().iter();
    let plan = plans.find(|it| it["statement"].as_str().unwrap().starts_with(statement));
    plan.unwrap_or_else(|| panic!("{statement} in {row}"))["plan"].as_str().unwrap()
}

/// Runs a target of each engine, and expects these lines in the plans of a delete, and of range
/// queries.
fn statements_are_explained(config: &str, target: &str, of_delete: &str, of_query: &str) {
    let place = Place::new();
    let ended = place.run(&plan(config), &["--quiet"]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    let delete = plan_of(shown.row(target, "l.i2"), DELETE);
    assert!(delete.contains(of_delete), "{delete}");
    let queries = shown.row(target, "qr100")["plans"].as_array().unwrap();
    let scans = queries.iter().filter(|it| {
        let statement = it["statement"].as_str().unwrap();
        statement.contains(" order by ") && it["plan"].as_str().unwrap().contains(of_query)
    });

    assert!(scans.count() >= 3, "{queries:?}");
    place
        .assay(&["show", run.to_str().unwrap(), "--table", "plans"])
        .expect_code(0)
        .expect_in_stdout(&[DELETE, of_delete, of_query]);
    let show = ["show", run.to_str().unwrap(), "--table", "engine-status"];
    let shown = place.assay(&[&show[..], &["--step", "l.i2"]].concat());
    match target {
        "my.base" => {
            let shown = shown.expect_code(0);
            assert!(!shown.stdout.contains("l.i0 of"), "{shown}");
            shown.expect_in_stdout(&["l.i2 of my.base/c1/r1", "\nLog sequence number "]);
        }
        _ => drop(shown.expect_code(2).expect_in_stderr(&["has an engine status"])),
    }

    place.assert_nothing_is_left();
}

#[test]
fn sqlite_explains_each_statement() {
    let [of_delete, of_query] = ["INTEGER PRIMARY KEY", "USING COVERING INDEX pi1_"];
    statements_are_explained(SQLITE, "lite.base", of_delete, of_query);
}

#[test]
fn mysql_explains_each_statement() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let config = mysql(&build, "innodb");
        statements_are_explained(&config, "my.base", "range on PRIMARY", "Using index");
    }
}

#[test]
fn a_plan_that_postgres_changed_is_shown_with_its_base() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let scan = "[config.postgres.scan]\nextends = \"base\"\n\
                set = { enable_indexscan = false, enable_indexonlyscan = false, enable_bitmapscan = false }\n";
    let plan = plan(&format!("{POSTGRES}{scan}"));
    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    let run = run.to_str().unwrap();
    let ended = place.assay(&["compare", run, "--format", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let shown = Shown::read(&place, run.as_ref());
    let sizes = &shown.row("pg.base", "l.i2")["sizes"];
    let of_part = |part: Value| {
        let mut sizes = sizes.as_array().unwrap().iter();
        let size = sizes.find(|it| it["part"] == part).unwrap();
        ["bytes", "bytes_per_row", "leaf_density_percent"].map(|key| size[key].as_f64())
    };

    let [table, all] = ["table", "all"].map(|part| of_part(part.into())[0].unwrap());
    assert!(8192.0 < table && table < all, "{sizes}");
    let [bytes, per_row, dense] =
        of_part(serde_json::json!({ "index": "pi1_pkey" })).map(Option::unwrap);
    assert!((bytes / per_row - 2000.0).abs() < 500.0 && dense > 10.0, "{sizes}");
    place.assay(&["show", run, "--table", "indexes"]).expect_code(0).expect_in_stdout(&[
        "table and indexes",
        "pi1_registersegment",
        "B/row",
    ]);

    let of_step = |step: &str| {
        let mut steps = json["plans"].as_array().unwrap().iter();
        steps.find(|it| it["step"] == step)
    };

    assert_eq!(of_step("l.i0"), None, "inserts have the same plan");
    let statements = of_step("l.i2").unwrap()["statements"].as_array().unwrap();
    let mut deletes = statements.iter();
    let delete = deletes.find(|it| it["statement"].as_str().unwrap().starts_with(DELETE));
    let [base, target] = ["base", "target"].map(|of| delete.unwrap()[of].as_str().unwrap());
    assert!(base.contains("Index") && !target.contains("Index Only Scan"), "{base}\n{target}");
    assert!(target.contains("Seq Scan on pi1"), "{target}");
    place.assay(&["compare", run]).expect_code(0).expect_in_stdout(&[
        "Plans that differ from pg.base",
        "Seq Scan on pi1",
        DELETE,
    ]);

    place.assert_nothing_is_left();
}
