//! Tables in formats that assay does not know, and how databases are made: PostgreSQL's own heap
//! under another name, and MariaDB's Aria.

use std::path::Path;
use std::process::Command;

use engine::mysql::Flavor;
use serde_json::Value;

use crate::place::{Place, QUICK, mysql, workload};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped, say_skipped};

const POSTGRES: &str = r#"
[build.pg]
postgres = "distribution"
[config.postgres.base]
set = { fsync = false, shared_buffers = "32MB", max_wal_size = "1GB" }
[config.postgres.heap2]
extends = "base"
table-format = "heap2"
table-options = "WITH (fillfactor = 70)"
extensions = ["btree_gin"]
setup-sql = ["create access method heap2 type table handler heap_tableam_handler"]
init-arguments = ["--wal-segsize=64", "--no-data-checksums"]
"#;

const SYSBENCH: &str = "name = \"test\"\n[workload.sysbench]\ntables = 2\nrows = 500\nwarmup = \"0s\"\n\
     read-time = \"100ms\"\nwrite-time = \"100ms\"\n";

/// Returns the build of MariaDB that tests use; otherwise the test is skipped.
fn mariadb_or_test_is_skipped() -> Option<String> {
    let build = mysql_or_test_is_skipped("innodb")?;
    let version = engine::mysql::locate(&build).unwrap().version;
    if version.flavor != Flavor::MariaDb {
        say_skipped("the server has no Aria");
        return None;
    }
    Some(build)
}

/// Returns the plan with Aria beside InnoDB.
fn aria(build: &str) -> String {
    mysql(build, "innodb")
        + "[config.mysql.aria]\nset = { innodb_buffer_pool_size = \"64M\" }\ntable-format = \"aria\"\n\
           table-options = \"TRANSACTIONAL=1\"\n"
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap()
}

/// Returns the record of a target's cell.
fn cell_of(run: &Path, target: &str) -> Value {
    read(&run.join("cells").join(target).join("c1/r1/cell.json"))
}

/// Returns the value of a recorded setting.
fn setting<'a>(cell: &'a Value, name: &str) -> Option<&'a str> {
    let settings = cell["settings"].as_array().unwrap();
    settings.iter().find(|setting| setting["name"] == name)?["value"].as_str()
}

/// Returns the record of a step of a target's cell.
fn step_of(run: &Path, target: &str, step: &str) -> Value {
    read(&run.join("cells").join(target).join("c1/r1/steps").join(step).join("step.json"))
}

/// Returns the counters after a step that have this role, by name.
fn of_role(step: &Value, role: &str) -> Vec<String> {
    let counters = step["counters_after"].as_array().unwrap().iter();
    let of_role = counters.filter(|counter| counter["role"] == role);
    of_role.map(|counter| counter["name"].as_str().unwrap().to_owned()).collect()
}

/// Checks that all steps of a run are valid, their data checks included.
fn assert_all_valid(ended: &crate::place::Ended) {
    assert!(ended.stdout.contains("step results are valid"), "{ended}");
}

#[test]
fn a_format_that_assay_does_not_know_is_measured_and_settled_by_what_the_server_says() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\"]\npartitions = 2\n";
    let ended = place.run(&(workload(600, 200, QUICK, steps) + POSTGRES), &[]).expect_code(0);
    assert_all_valid(&ended);
    let run = ended.run_directory();

    let cell = cell_of(&run, "pg.heap2");
    for (name, value) in [
        ("default_table_access_method", "heap2"),
        ("wal_segment_size", "64MB"),
        ("data_checksums", "off"),
        ("extensions", "btree_gin"),
        ("table-options", "WITH (fillfactor = 70)"),
        ("init-arguments", "--wal-segsize=64 --no-data-checksums"),
    ] {
        assert_eq!(setting(&cell, name), Some(value), "{name}");
    }

    assert_eq!(setting(&cell_of(&run, "pg.base"), "data_checksums"), Some("on"));

    let settled = step_of(&run, "pg.heap2", "04-settle");
    let actions = settled["settle"]["actions"].to_string();
    assert!(actions.contains("VACUUM") && actions.contains("CHECKPOINT"), "{actions}");
    assert!(actions.contains("wait until the server uses no CPU"), "{actions}");
    let known = step_of(&run, "pg.base", "04-settle");
    assert!(!known["settle"]["actions"].to_string().contains("uses no CPU"));
    assert_eq!(of_role(&settled, "table_bytes"), ["total_bytes.pi1"]);

    let differences = place.assay(&["show", run.to_str().unwrap(), "--all"]).expect_code(0).stdout;
    for line in [
        "default_table_access_method: heap -> heap2",
        "only in pg.heap2: extensions = btree_gin",
        "wal_segment_size: 16MB -> 64MB",
    ] {
        let is_shown = |shown: &str| shown.split(", ").any(|part| part.trim() == line);
        assert!(differences.contains(line) || differences.lines().any(is_shown), "{differences}");
    }
}

#[test]
fn a_format_without_transactions_is_measured_and_what_it_lacks_is_not_applicable() {
    let Some(build) = mariadb_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let steps =
        "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"settle\", \"qr100\"]\nlong-transaction = \"1s\"\n";
    let ended = place.run(&(workload(600, 200, QUICK, steps) + &aria(&build)), &[]).expect_code(0);
    let ended = ended.expect_in_stderr(&["the format of the tables has no transactions"]);
    assert_all_valid(&ended);
    let run = ended.run_directory();

    assert_eq!(setting(&cell_of(&run, "my.aria"), "default_storage_engine"), Some("Aria"));
    let settled = step_of(&run, "my.aria", "04-settle");
    assert!(settled["settle"]["actions"].to_string().contains("uses no CPU"));
    assert_eq!(of_role(&settled, "table_bytes"), ["total_bytes.pi1"]);
    let writes = |target| step_of(&run, target, "03-l.i1")["ops"].clone();
    assert!(writes("my.base")["long_transaction"].is_object());
    assert!(writes("my.aria")["long_transaction"].is_null());

    // What InnoDB does is not what the tables need.
    for role in ["log_bytes", "fsync_count", "dirty_page_count", "history_list_length"] {
        assert_eq!(of_role(&settled, role), [""; 0], "{role}");
        let of_innodb = of_role(&step_of(&run, "my.base", "04-settle"), role);
        assert_eq!(of_innodb.len(), 1, "{role}");
    }
}

#[test]
fn sysbench_runs_on_formats_that_assay_does_not_know() {
    let Some(build) = mariadb_or_test_is_skipped() else {
        return;
    };
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = SYSBENCH.to_owned() + POSTGRES + &aria(&build);
    let ended = place.run(&plan, &["--only", "pg.heap2", "--only", "my.aria"]).expect_code(0);
    assert_all_valid(&ended);
}

#[test]
fn what_a_server_can_not_make_is_refused_before_the_run() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let build = workload(600, 100, QUICK, "") + "[build.pg]\npostgres = \"distribution\"\n";
    for (key, texts) in [
        (
            "table-format = \"columnar\"",
            [
                "does not support table format `columnar`; it supports `heap`",
                "`extensions` or `setup-sql`",
            ],
        ),
        (
            "extensions = [\"nonesuch\"]",
            ["cannot create the extension `nonesuch`", "pg_available_extensions"],
        ),
        ("setup-sql = [\"select nonsense\"]", ["refuses `select nonsense`", "`setup-sql`"]),
        ("table-options = \"WITH (colour = 1)\"", ["cannot create a table", "`table-options`"]),
        ("init-arguments = [\"--wal-segsize=65\"]", ["power of 2", "`init-arguments`"]),
        ("init-arguments = [\"--pgdata=/x\"]", ["decides on `--pgdata`", "remove"]),
        ("env.LD_PRELOAD = \"/nowhere/x.so\"", ["did not load `/nowhere/x.so`", "existing"]),
    ] {
        let plan = format!("{build}[config.postgres.a]\n{key}\n");
        let ended = place.run(&plan, &[]).expect_code(2).expect_in_stderr(&texts);
        assert!(ended.stderr.contains("refused") && ended.stderr.contains("nothing was run"));
    }
}

#[test]
fn a_server_has_the_environment_of_its_config() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let source = place.write("mark.c", "int assay_mark(void) { return 1; }\n");

    // Only its name says that it is an allocator.
    let library = place.join("libjemalloc.so.2");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    assert!(compiler.status().unwrap().success());

    let library = library.display();
    let plan = workload(100, 100, QUICK, "steps = [\"l.i0\"]")
        + "[build.pg]\npostgres = \"distribution\"\n[config.postgres.plain]\nset.fsync = false\n"
        + &format!(
            "[config.postgres.loaded]\nextends = \"plain\"\nenv.LD_PRELOAD = \"{library}\"\n"
        );
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    let loaded = cell_of(&run, "pg.loaded");
    assert_eq!(setting(&loaded, "env.LD_PRELOAD"), Some(library.to_string().as_str()));
    for name in ["build.compiler", "build.cflags", "runtime.c-library"] {
        assert!(setting(&loaded, name).is_some(), "{name}");
    }

    let shown = place.assay(&["show", run.to_str().unwrap(), "--all"]).expect_code(0).stdout;
    assert!(shown.contains("only in pg.loaded: env.LD_PRELOAD"), "{shown}");
    assert!(shown.contains("runtime.allocator: C library -> libjemalloc.so.2"), "{shown}");
}

#[test]
fn a_kept_database_is_used_only_by_configs_that_make_the_same_one() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"settle\", \"l.i1\"]\n";
    let plan =
        workload(600, 100, QUICK, steps).replacen("name", "reuse = true\nname", 1) + POSTGRES;
    for _ in 0..2 {
        place.run(&plan, &[]).expect_code(0);
    }

    // One for each config: the second run loads nothing.
    let kept = fs_err::read_dir(place.join("databases")).unwrap();
    let kept = kept.filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(kept.count(), 2);

    let other = "[[target]]\nbuilds = [\"pg\"]\nconfigs = [\"base\"]\n\
                 [[target]]\nbuilds = [\"pg\"]\nconfigs = [\"heap2\"]\nload-with = \"pg.base\"\n";
    place
        .run(&(plan + other), &[])
        .expect_code(2)
        .expect_in_stderr(&["`pg.base` cannot load its database", "same `table-format`"]);
}
