//! What sessions wait for, as servers report it.

use serde_json::Value;

use crate::place::{POSTGRES, Place, mysql};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

/// Runs a test whose statement only sleeps, and expects that sessions wait in this state nearly all the time.
fn sleeping_sessions_are_seen(engine: &str, target: &str, sleep: &str, state: &str) {
    let place = Place::new();
    let plan = format!(
        "name = \"test\"\nclients = [2]\n[workload.sysbench]\nrows = 100\nwarmup = \"0s\"\nread-time = \"3s\"\n\
         steps = [\"load\", \"nap\"]\n[workload.sysbench.test.nap]\ngroup = \"point\"\n\
         [[workload.sysbench.test.nap.statement]]\nsql = \"SELECT {sleep}\"\n{engine}"
    );
    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    let row = shown.row(target, "nap");
    let waits = row["waits"].as_array().unwrap();
    assert_eq!(waits[0]["name"], state, "{waits:?}");
    let number = |wait: &Value, key: &str| wait[key].as_f64().unwrap();
    let percent = number(&waits[0], "percent");
    // Looks may find a session between two statements.
    assert!((50.0..=101.0).contains(&percent), "{waits:?}");
    let us = number(&waits[0], "us_per_op");
    assert!(us >= 0.5 * percent / 100.0 * 50_000.0, "{waits:?}");
    let run = ended.run_directory();
    let show = ["show", run.to_str().unwrap(), "--table", "waits"];
    let column = state.rsplit(':').next().unwrap();
    place
        .assay(&show)
        .expect_code(0)
        .expect_in_stdout(&[column]);
    let page = fs_err::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(&format!("<span title=\"{state}: ")));
    assert!(page.contains("sessions that are not idle"));
    place.assert_nothing_is_left();
}

#[test]
fn what_sessions_of_postgres_wait_for_is_sampled() {
    if postgres_is_here_or_test_is_skipped() {
        sleeping_sessions_are_seen(POSTGRES, "pg.base", "pg_sleep(0.05)", "Timeout:PgSleep");
    }
}

#[test]
fn what_sessions_of_mysql_wait_for_is_sampled() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let engine = mysql(&build, "innodb");
        sleeping_sessions_are_seen(&engine, "my.base", "sleep(0.05)", "user sleep");
    }
}
