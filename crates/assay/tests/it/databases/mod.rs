//! Databases that are loaded once and kept: what later cells begin with, what the record tells, and
//! what happens to them when something goes wrong.

mod any_step;
mod repeats;
mod trust;

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;

use crate::full_disk::Disk;
use crate::place::{
    ASSAY, Ended, POSTGRES, Place, QUICK, SQLITE, any_below, entries, eventually, mysql, workload,
};
use crate::show_json::{Shown, number};
use crate::{
    mysql_or_test_is_skipped, other_postgres_or_test_is_skipped,
    postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped, say_skipped,
};

/// The steps of the Insert Benchmark: the first two load.
const STEPS: &str = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]";

/// Returns a plan with two repeats, this value of `reuse`, and these targets.
fn plan(reuse: &str, targets: &str) -> String {
    format!("repeats = 2\nreuse = {reuse}\n{}{targets}", workload(5_000, 1_000, QUICK, STEPS))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

/// Returns the record of a cell with one client.
fn cell(run: &Path, target: &str, repeat: u32) -> Value {
    json(&run.join(format!("cells/{target}/c1/r{repeat}/cell.json")))
}

/// Returns the names of the steps that a cell has recorded.
fn recorded_steps(run: &Path, target: &str, repeat: u32) -> Vec<String> {
    let steps = entries(&run.join(format!("cells/{target}/c1/r{repeat}/steps")));
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    steps.iter().map(name).collect()
}

/// Returns the kept databases of a place.
fn kept(place: &Place) -> Vec<PathBuf> {
    let mut found = entries(&place.join("databases"));
    found.retain(|path| path.is_dir());
    found
}

/// Changes a file, but not its size.
fn change_last_byte(file: &Path) {
    let mut bytes = fs_err::read(file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs_err::write(file, bytes).unwrap();
}

/// Runs a plan that shares its loads with other runs.
fn run(place: &Place, targets: &str) -> Ended {
    let ended = place.run(&plan("true", targets), &[]).expect_code(0);
    Shown::read(place, &ended.run_directory()).assert_all_valid();
    ended
}

/// Asserts that the first step after the load began with as many rows in each repeat and run, and
/// wrote as many.
fn assert_equal_rows(runs: &[&Path], target: &str) {
    let mut facts = Vec::new();
    for run in runs {
        for repeat in [1, 2] {
            let step = run.join(format!("cells/{target}/c1/r{repeat}/steps/03-l.i1/step.json"));
            let step = json(&step);
            facts.push((step["rows_before"].clone(), step["ops"]["insert"]["rows"].clone()));
        }
    }
    // `l.x` inserts 100 rows before it creates the indexes.
    assert_eq!(facts[0].0, 5_100);
    assert!(facts.iter().all(|fact| *fact == facts[0]), "{facts:?}");
}

/// The first cell loads and continues with a copy like the others, which load nothing.
fn loads_once(target: &str, targets: &str) {
    let place = Place::new();
    let first = run(&place, targets).run_directory();
    assert_eq!(recorded_steps(&first, target, 1), ["01-l.i0", "02-l.x", "03-l.i1", "04-qr100"]);
    assert_eq!(recorded_steps(&first, target, 2), ["03-l.i1", "04-qr100"]);

    // A later run loads nothing at all.
    let second = run(&place, targets).run_directory();
    for repeat in [1, 2] {
        assert_eq!(recorded_steps(&second, target, repeat), ["03-l.i1", "04-qr100"]);
    }

    assert_equal_rows(&[&first, &second], target);
    assert_eq!(kept(&place).len(), 1);

    let maker = cell(&first, target, 1)["database"].clone();
    assert_eq!((&maker["made_here"], &maker["steps_left_out"]), (&true.into(), &0.into()));
    for copied in
        [&maker, &cell(&first, target, 2)["database"], &cell(&second, target, 1)["database"]]
    {
        assert_eq!(copied["fingerprint"], maker["fingerprint"]);
        assert!(number(&copied["bytes"]) > 0.0 && number(&copied["files"]) > 0.0, "{copied}");
        assert_eq!(copied["page_cache"], "warmed");
        let checks = copied["checks"].as_array().unwrap();
        assert!(!checks.is_empty() && checks.iter().all(|check| check["holds"] == true));
    }

    assert_eq!(cell(&second, target, 1)["database"]["steps_left_out"], 2);
}

#[test]
fn sqlite_is_loaded_once() {
    loads_once("lite.base", SQLITE);
}

#[test]
fn postgres_is_loaded_once() {
    if postgres_is_here_or_test_is_skipped() {
        loads_once("pg.base", POSTGRES);
    }
}

#[test]
fn mysql_is_loaded_once() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        loads_once("my.base", &mysql(&build, "innodb"));
    }
}

#[test]
fn a_mysql_whose_clients_connect_by_tcp_is_loaded_once() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let place = Place::new();
        let plan =
            "listen = \"127.0.0.1\"\n".to_owned() + &plan("\"run\"", &mysql(&build, "innodb"));
        let ended = place.run(&plan, &[]).expect_code(0);
        assert_eq!(recorded_steps(&ended.run_directory(), "my.base", 2), ["03-l.i1", "04-qr100"]);
    }
}

/// A tree of several levels, which the load makes without compaction.
const ROCKSDB: &str = "
[config.rocksdb.base]
[config.rocksdb.base.set]
write_buffer_size = 65536
[config.rocksdb.base.load]
disable_auto_compactions = true
";

#[test]
fn rocksdb_is_loaded_once_and_the_settings_of_its_load_are_recorded_for_each_cell() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let target = format!("[build.rocks]\nrocksdb = '{}'\n{ROCKSDB}", libraries[0].display());
    loads_once("rocks.base", &target);

    let place = Place::new();
    let plan = format!(
        "repeats = 2\nreuse = \"run\"\n[workload.kv]\nkeys = 20000\nread-time = \"{QUICK}\"\n\
         read-write-time = \"{QUICK}\"\nwrite-rate = \"1MiB/s\"\n\
         steps = [\"fillseq\", \"drain\", \"readrandom\", \"readwhilewriting\"]\n{target}"
    );

    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    Shown::read(&place, &run).assert_all_valid();

    let rest = ["03-readrandom", "04-readwhilewriting"];
    assert_eq!(recorded_steps(&run, "rocks.base", 2), rest);

    let settings = |repeat| cell(&run, "rocks.base", repeat)["settings"].clone();
    let names = |settings: Value| -> Vec<(String, String)> {
        let text = |setting: &Value, key: &str| setting[key].as_str().unwrap().to_owned();
        let all = settings.as_array().unwrap().clone();
        all.iter().map(|setting| (text(setting, "name"), text(setting, "value"))).collect()
    };

    let of_load = ("[CFOptions] load.disable_auto_compactions".to_owned(), "true".to_owned());
    for repeat in [1, 2] {
        let found = names(settings(repeat));
        let is_it = |(name, value): &&(String, String)| {
            name.ends_with("load.disable_auto_compactions") && *value == of_load.1
        };
        assert_eq!(found.iter().filter(is_it).count(), 1, "{found:?}");
    }
}

#[test]
fn sysbench_goes_on_with_the_tables_of_another_cell() {
    let place = Place::new();
    let plan = format!(
        "repeats = 2\nclients = [1, 2]\nreuse = \"run\"\n[workload.sysbench]\nrows = 500\n\
         tables = 2\nread-time = \"{QUICK}\"\nwrite-time = \"{QUICK}\"\nwarmup = \"0s\"\nsteps = [\"load\", \"index\", \"settle\", \
         \"point-query\", \"update-index\", \"delete\"]\n{SQLITE}"
    );
    let ended = place.run(&plan, &[]);
    let ended = ended.expect_code(0);
    let run = ended.run_directory();
    Shown::read(&place, &run).assert_all_valid();

    // The number of clients does not matter for the load.
    let loaded = entries(&run.join("cells/lite.base")).into_iter().flat_map(|c| entries(&c));
    let loaded = loaded.filter(|repeat| repeat.join("steps/01-load").exists());
    assert_eq!(loaded.count(), 1);
}

#[test]
fn the_databases_of_one_run_are_removed_with_its_end() {
    let place = Place::new();
    let ended = place.run(&plan("\"run\"", SQLITE), &[]).expect_code(0);
    let run = ended.run_directory();
    assert_eq!(recorded_steps(&run, "lite.base", 2), ["03-l.i1", "04-qr100"]);
    assert!(entries(&place.join("data")).iter().all(|path| path.is_file()));
    assert!(kept(&place).is_empty());
    // Whoever resumes it finds nothing to measure.
    place
        .assay(&["run", "--resume", run.to_str().unwrap()])
        .expect_code(0)
        .expect_in_stderr(&["nothing to measure"]);
}

#[test]
fn what_shapes_a_database_tells_it_apart() {
    let place = Place::new();

    run(&place, SQLITE);
    let other_seed = format!("seed = 2\n{}", plan("true", SQLITE));
    place.run(&other_seed, &[]).expect_code(0);
    assert_eq!(kept(&place).len(), 2);

    let other_pages = SQLITE.replace("journal_mode", "page_size = 8192, journal_mode");
    run(&place, &other_pages);
    assert_eq!(kept(&place).len(), 3);

    // The size of a cache leaves no trace.
    let other_cache = SQLITE.replace("journal_mode", "cache_size = 500, journal_mode");
    assert_ne!(other_cache, SQLITE);
    let ended = run(&place, &other_cache);
    assert_eq!(kept(&place).len(), 3);
    assert_eq!(recorded_steps(&ended.run_directory(), "lite.base", 1).len(), 2);

    // The steps after the load don't matter.
    let longer = plan("true", SQLITE).replace(QUICK, "300ms");
    let ended = place.run(&longer, &[]).expect_code(0);
    assert_eq!(kept(&place).len(), 3);
    assert_eq!(recorded_steps(&ended.run_directory(), "lite.base", 1).len(), 2);
}

#[test]
fn a_resumed_run_keeps_databases_where_it_began_to() {
    let place = Place::new();
    let plan = plan("true", SQLITE);
    let ended = place.run(&plan, &["--reuse", "chosen", "--repeats", "1"]).expect_code(0);
    let run = ended.run_directory();
    fs_err::remove_dir_all(place.join("chosen")).unwrap();

    let resume = ["run", "--resume", run.to_str().unwrap(), "--repeats", "2"];
    place.assay(&resume).expect_code(0);
    assert_eq!(recorded_steps(&run, "lite.base", 2).len(), 4);
    assert_eq!(entries(&place.join("chosen")).iter().filter(|path| path.is_dir()).count(), 1);
    assert!(kept(&place).is_empty());
}

#[test]
fn databases_are_listed_shown_verified_and_removed() {
    let place = Place::new();
    place.assay(&["databases"]).expect_code(0).expect_in_stderr(&["no databases in"]);
    let ended = run(&place, SQLITE);
    let id = json(&ended.run_directory().join("run.json"))["id"].as_str().unwrap().to_owned();
    let path = kept(&place)[0].clone();
    let name = path.file_name().unwrap().to_str().unwrap();

    place.assay(&["databases"]).expect_code(0).expect_in_stdout(&[
        name,
        "insert, 5000 rows, 1 clients, seed 1",
        "journal_mode=wal",
        "ok",
    ]);
    place.assay(&["databases", name]).expect_code(0).expect_in_stdout(&["fingerprint", &id]);

    // The size stays the same.
    change_last_byte(&path.join("data/assay.sqlite"));
    place.assay(&["databases"]).expect_code(0);
    let verified = place.assay(&["databases", "--verify"]);
    verified.expect_code(1).expect_in_stdout(&["has changed"]);

    // Not while a run uses it.
    let in_use = fs_err::File::open(&path).unwrap();
    flock(&in_use, FlockOperation::LockShared).unwrap();
    let remove = || place.assay(&["databases", "--remove", name]);
    remove().expect_code(1).expect_in_stderr(&["is in use"]);
    drop(in_use);
    remove().expect_code(0).expect_in_stderr(&["removed"]);
    assert!(kept(&place).is_empty());
    remove().expect_code(2).expect_in_stderr(&["no database `sqlite-"]);
    place.assay(&["databases", "--remove", "../data"]).expect_code(2);
    assert!(place.join("data").exists());
}

/// Kills a run once `is_time`, and asserts that the next run of the plan is as if nothing had
/// happened.
fn kill_and_run_again(place: &Place, targets: &str, is_time: impl Fn() -> bool) {
    // The database is the same, and the run has not ended when the signal comes.
    let long = plan("true", targets).replace(QUICK, "60s");
    let mut running = place.spawn_run(&long, &[]);
    eventually("the moment to kill assay", || {
        if !is_time() {
            running.must_run("the moment to kill it");
        }
        is_time()
    });

    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));
    eventually("its processes end", || place.processes().is_empty());

    // A killed run leaves its files, which the next one removes.
    fs_err::remove_dir_all(place.join("results")).unwrap();
    fs_err::create_dir(place.join("results")).unwrap();
    let ended = place.spawn_run(&plan("true", targets), &[]).wait().expect_code(0);
    let shown = Shown::read(place, &place.only_run());
    shown.assert_all_valid();
    place.assert_no_process_is_left();

    place.assay(&["databases", "--verify"]).expect_code(0);
    let left = kept(place);
    assert_eq!(left.len(), 1, "{left:?}\n{ended}");
    assert!(!left[0].file_name().unwrap().to_string_lossy().starts_with('.'), "{left:?}");
}

#[test]
fn an_assay_that_is_killed_while_it_keeps_a_database_leaves_none_that_is_incomplete() {
    for targets in [POSTGRES, SQLITE] {
        if targets == POSTGRES && !postgres_is_here_or_test_is_skipped() {
            continue;
        }
        let place = Place::new();
        let partial = || {
            let names = entries(&place.join("databases"));
            names.into_iter().find(|path| path.to_string_lossy().contains(".partial-"))
        };
        kill_and_run_again(&place, targets, || partial().is_some() || !kept(&place).is_empty());
    }
}

#[test]
fn an_assay_that_is_killed_while_it_copies_a_database_leaves_it_whole() {
    for (targets, copy) in [(POSTGRES, "PG_VERSION"), (SQLITE, "assay.sqlite")] {
        if targets == POSTGRES && !postgres_is_here_or_test_is_skipped() {
            continue;
        }
        let place = Place::new();
        run(&place, targets);
        fs_err::remove_dir_all(place.join("results")).unwrap();
        fs_err::create_dir(place.join("results")).unwrap();
        // It only ever copies.
        kill_and_run_again(&place, targets, || any_below(&place.join("data"), copy));
    }
}

/// Makes a file system in a file, and mounts it. `None`, after the test was called skipped, where
/// that is not possible.
fn mount_file_system(place: &Place, kind: &str) -> Option<Disk> {
    let (image, path) = (place.join("image"), place.join("disk"));
    fs_err::File::create(&image).unwrap().set_len(400 << 20).unwrap();
    fs_err::create_dir(&path).unwrap();

    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output();
        output.is_ok_and(|output| output.status.success())
    };

    let (image, mounted_at) = (image.to_str().unwrap(), path.to_str().unwrap());
    let is_mounted = rustix::process::geteuid().is_root()
        && run(&format!("mkfs.{kind}"), &["-q", image])
        && run("mount", &["-o", "loop", image, mounted_at]);

    if !is_mounted {
        say_skipped(&format!("no {kind} can be made in a file and mounted"));
        return None;
    }
    Some(Disk { path })
}

/// A copy on a file system that can share blocks takes none, and its cells get the same results.
fn blocks_are_shared(kind: &str) {
    let place = Place::new();
    let Some(disk) = mount_file_system(&place, kind) else {
        return;
    };
    let [data, databases] =
        ["data", "databases"].map(|name| disk.path.join(name).to_str().unwrap().to_owned());

    let mut targets = vec![("lite.base", SQLITE)];
    if postgres_is_here_or_test_is_skipped() {
        targets.push(("pg.base", POSTGRES));
    }

    for (target, text) in targets {
        let more = ["--data", &data, "--reuse", &databases];
        let ended = place.run(&plan("true", text), &more).expect_code(0);
        let run = ended.run_directory();
        Shown::read(&place, &run).assert_all_valid();
        for repeat in [1, 2] {
            let copied = cell(&run, target, repeat)["database"].clone();
            assert_eq!(copied["cloned"], copied["files"], "{copied}");
        }
        assert_equal_rows(&[&run], target);
    }
}

#[test]
fn a_copy_on_xfs_shares_its_blocks() {
    blocks_are_shared("xfs");
}

#[test]
fn a_copy_on_btrfs_shares_its_blocks() {
    blocks_are_shared("btrfs");
}

#[test]
fn a_disk_that_is_too_small_for_a_copy_is_told_before_the_copy() {
    let place = Place::new();
    let Some(disk) = Disk::mount(&place, 1) else {
        return;
    };
    let databases = disk.path.join("databases");
    let plan = plan("true", SQLITE).replace("initial-rows = 5000", "initial-rows = 30000");
    let ended = place.run(&plan, &["--reuse", databases.to_str().unwrap()]);
    ended.expect_code(1).expect_in_stderr(&["a copy of the database needs", "`reuse = false`"]);
    assert_eq!(entries(&databases).iter().filter(|path| path.is_dir()).count(), 0);
}

#[test]
fn targets_that_can_not_share_a_load_are_refused() {
    let place = Place::new();
    let replicas = POSTGRES.replace("set =", "replicas = 1\nset =");
    let refused = place.run(&plan("true", &replicas), &[]);
    refused.expect_code(2).expect_in_stderr(&["`reuse` is not possible", "replicas"]);
    let url = "[build.theirs]\nurl = \"postgres://assay@127.0.0.1:1/x\"\n";
    let refused = place.run(&plan("\"run\"", url), &[]);
    refused.expect_code(2).expect_in_stderr(&["`reuse` is not possible", "did not start"]);
    let refused = place.run(&plan("\"always\"", SQLITE), &[]);
    refused.expect_code(2).expect_in_stderr(&["`reuse`", "\"run\""]);
}

/// Runs a plan in which a second build opens what the first has loaded. Returns the record of the
/// database in the second repeat of that.
fn upgraded(first: &str, second: &str, config: &str) -> Value {
    let place = Place::new();
    let targets = format!(
        "[build.old]\n{first}\n[build.new]\n{second}\n{config}\n[[target]]\nbuilds = [\"new\"]\n\
         load-with = \"old.base\"\n[[target]]\nbuilds = [\"old\"]\n"
    );
    let ended = place.run(&plan("\"run\"", &targets), &[]).expect_code(0);
    let run = ended.run_directory();
    Shown::read(&place, &run).assert_all_valid();
    let ended = ended.expect_in_stderr(&["opened the database that `old.base` loaded"]);

    let target = "new.base-from-old.base";
    for repeat in [1, 2] {
        let steps = recorded_steps(&run, target, repeat);
        assert_eq!(steps, ["03-l.i1", "04-qr100"], "{ended}");
    }

    let database = cell(&run, target, 2)["database"].clone();
    assert_eq!(database["loaded_by"], "old.base");
    assert!(number(&database["open_ns"]) > 0.0, "{database}");
    database
}

#[test]
fn a_rocksdb_opens_what_an_older_one_has_loaded() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let [old, new, ..] = &libraries[..] else {
        say_skipped("only one library is named");
        return;
    };
    let of = |library: &Path| format!("rocksdb = '{}'", library.display());
    let database = upgraded(&of(old), &of(new), ROCKSDB);
    assert_eq!(database["upgrade_ns"], Value::Null);
}

#[test]
fn a_postgres_upgrades_what_another_major_version_has_loaded() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let Some(other) = other_postgres_or_test_is_skipped() else {
        return;
    };
    let config = &POSTGRES[POSTGRES.find("[config").unwrap()..];
    let (first, second) = ("postgres = \"distribution\"", format!("postgres = '{other}'"));
    let database = upgraded(first, &second, config);
    assert!(number(&database["upgrade_ns"]) > 0.0, "{database}");
}

#[test]
fn a_target_whose_database_nobody_loads_fails_and_says_what_to_measure() {
    let place = Place::new();
    let targets = "[build.old]\nsqlite = \"bundled\"\n[build.new]\nsqlite = \"bundled\"\n[[target]]\n\
         builds = [\"old\"]\n[[target]]\nbuilds = [\"new\"]\nload-with = \"old.default\"\n";
    let alone = ["--only", "new.*"];
    place.run(&plan("\"run\"", targets), &alone).expect_code(1).expect_in_stderr(&[
        "no database that `old.default` loaded is kept",
        "measure `old.default` in the same run",
    ]);

    place
        .run(&plan("false", targets), &[])
        .expect_code(2)
        .expect_in_stderr(&["`old.default` cannot load its database", "add `reuse"]);
}

#[test]
fn versus_loads_in_each_repeat_unless_it_is_told_not_to() {
    let place = Place::new();
    let versus = |more: &[&str]| {
        let mut args = vec!["versus", "sqlite", "--config", "synchronous=off", "--quick"];
        args.extend(more);
        place.assay(&args).expect_code(0)
    };

    // Another test lets `versus` run its plan; here the plan is made smaller.
    place.write("plan.toml", &versus(&["--load", "repeat", "--dry-run"]).stdout);
    let mut args = vec!["run", "plan.toml", "--data", "data"];
    for set in [
        "repeats=2",
        "workload.insert.initial-rows=2000",
        "workload.insert.read-write-time=\"200ms\"",
        "workload.insert.step.\"l.i1\".time=\"200ms\"",
        "workload.insert.step.\"l.i2\".time=\"200ms\"",
    ] {
        args.extend(["--set", set]);
    }
    let ended = place.assay(&args).expect_code(0);
    let run = place.only_run();

    // The configs differ in durability alone, so one of them loads for both.
    for repeat in 1..=2 {
        let targets = ["sqlite.base", "sqlite.synchronous-off"];
        let mut first = targets.map(|target| recorded_steps(&run, target, repeat)[0].clone());
        first.sort_unstable();
        assert_eq!(first, ["01-l.i0", "03-l.i1"], "{ended}");
    }

    let printed = versus(&["--load", "once", "--dry-run"]).stdout;
    assert!(printed.contains("\nreuse = \"run\""), "{printed}");

    let printed = versus(&["--dry-run"]).stdout;
    assert!(!printed.contains("\nreuse = "), "{printed}");
}

/// The suite names a folder for them.
#[test]
fn new_databases_of_tests_are_copies_of_one_that_is_kept() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let folder = place.join("new-databases");
    fs_err::create_dir(&folder).unwrap();
    place.write("plan.toml", &plan("false", POSTGRES));

    let mut assay = Command::new(ASSAY);
    assay.env("ASSAY_TEST_NEW_DATABASES", &folder);
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let ended = place.spawn_as(assay, &args).wait().expect_code(0);

    assert_eq!(entries(&folder).len(), 1, "{ended}");
    place.assert_nothing_is_left();
}
