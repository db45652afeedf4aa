//! Waits of sessions and threads, as engines and the kernel report them.

use serde_json::Value;

use crate::place::{POSTGRES, Place, mysql};
use crate::show_json::Shown;
use crate::{
    mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped,
};

/// Runs a test whose statement only sleeps, and expects that sessions wait in this state nearly all
/// the time.
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
    let in_view = |view: &str| -> Vec<Value> {
        let views = row["waits"].as_array().unwrap();
        let of_view = views.iter().find(|it| it["view"] == view);
        let of_view = of_view.unwrap_or_else(|| panic!("no view `{view}` in {views:?}"));
        assert!(of_view["samples"].as_f64().unwrap() > 0.0);
        of_view["states"].as_array().unwrap().clone()
    };

    // On a busy machine, they may wait for a processor more often.
    let waits = in_view("engine");
    let asleep = waits.iter().find(|wait| wait["name"] == state);
    let asleep = asleep.unwrap_or_else(|| panic!("no `{state}` in {waits:?}"));
    let number = |wait: &Value, key: &str| wait[key].as_f64().unwrap();
    let percent = number(asleep, "percent");

    // Samples may find a session between two statements, on a busy machine often.
    assert!((20.0..=101.0).contains(&percent), "{waits:?}");
    let us = number(asleep, "us_per_op");
    assert!(us >= 0.5 * percent / 100.0 * 50_000.0, "{waits:?}");

    // The kernel sees the same threads wait.
    let waits = in_view("kernel");
    let locks = waits.iter().filter(|wait| wait["name"].as_str().unwrap().starts_with("lock"));
    let locked_percent: f64 = locks.map(|wait| number(wait, "percent")).sum();
    assert!((20.0..=101.0).contains(&locked_percent), "{waits:?}");

    // Threads that sleep until there is work are not at work.
    let background = in_view("background");
    let is_asleep = |it: &Value| {
        let name = it["name"].as_str().unwrap();
        name.contains("lock") || name.contains("sleep")
    };

    assert!(!background.iter().any(is_asleep), "{background:?}");
    let run = ended.run_directory();
    let show = ["show", run.to_str().unwrap(), "--table", "waits"];

    // A head of several words has a line for each.
    let column = state.rsplit([':', ' ']).next().unwrap();
    place.assay(&show).expect_code(0).expect_in_stdout(&[column]);
    let page = fs_err::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(&format!("<span title=\"{state}: ")));
    assert!(page.contains("active sessions"));
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

#[test]
fn the_time_in_which_rocksdb_stalls_writes_is_measured() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();

    // One file in the first level is enough to slow down writes.
    let plan = format!(
        "name = \"test\"\nclients = [2]\n[workload.kv]\nkeys = 5000\nkey-size = 16\nvalue-size = 100\nread-write-time = \"3s\"\n\
         steps = [\"fillseq\", \"overwrite\"]\n[build.b]\nrocksdb = '{}'\n[config.rocksdb.slow]\nstatistics = true\n\
         set = {{ write_buffer_size = 65536, level0_file_num_compaction_trigger = 4, level0_slowdown_writes_trigger = 1, \
         delayed_write_rate = 65536 }}\n",
        libraries[0].display()
    );

    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    let row = shown.row("b.slow", "overwrite");
    let views = row["waits"].as_array().unwrap();
    let names: Vec<&Value> = views.iter().map(|view| &view["view"]).collect();
    assert_eq!(names, ["engine", "kernel", "background"], "{views:?}");
    let stall = &views[0]["states"][0];
    assert_eq!(stall["name"], "write stall", "{views:?}");
    assert_eq!((&views[0]["samples"], &stall["sightings"]), (&0.0.into(), &Value::Null));
    assert!(stall["percent"].as_f64().unwrap() > 1.0, "{views:?}");

    // One writes for both: it sleeps, and the other waits for it.
    let kernel = views[1]["states"].as_array().unwrap();
    let waits = |state: &str| {
        let mut names = kernel.iter().filter_map(|it| it["name"].as_str());
        names.any(|name| name.starts_with(state))
    };

    assert!(waits("sleep") && waits("lock"), "{views:?}");

    // Flushes and compactions are at work, and a sample may catch the threads of the process that
    // hosts the library, while they read the statistics.
    let background: Vec<&str> = views[2]["states"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|state| state["name"].as_str())
        .collect();
    assert!(background.iter().any(|name| name.starts_with("rocksdb:")), "{views:?}");
    for name in background {
        let is_known =
            ["rocksdb:", "host ", "observer "].iter().any(|thread| name.starts_with(thread));
        assert!(is_known, "{views:?}");
    }

    let run = ended.run_directory();
    let show = ["show", run.to_str().unwrap(), "--table", "engine-status"];
    place.assay(&show).expect_code(0).expect_in_stdout(&[
        "overwrite of b.slow/c2/r1",
        "** Compaction Stats [default] **",
        "Level Files Size(MB)",
        "rocksdb.bytes.written COUNT",
    ]);

    place.assert_nothing_is_left();
}
