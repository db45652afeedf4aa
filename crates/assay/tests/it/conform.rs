//! Tests of adapters: those of the project keep their promises, and planted faults are found.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::adapters_are_here_or_test_is_skipped;
use crate::place::Place;

/// A statement that plants a fault, the check that finds it, and a part of the reason.
const FAULTS: [(&str, &str, &str); 22] = [
    ("table.write = lost_write", "reads", "the key"),
    ("table.write = kept_key", "deletes", "still there"),
    ("table.write = cut_value", "sizes", "a value of 65536 bytes instead of"),
    ("table.write = batch_in_wrong_order", "batches", "the key"),
    ("table.write = torn_batch", "crash-process", "after SIGKILL, the key"),
    ("table.write = late_write", "crash-process", "after SIGKILL, the key"),
    ("table.write = unsynced_write", "sync-write", "the kernel refused each call"),
    ("table.next = skipping_next", "scans", "a scan"),
    (
        "table.open_session = shared_session; table.close_session = never_close_session",
        "sessions",
        "while another session",
    ),
    ("table.get = stale_get", "fresh", "a read did not see"),
    ("table.get = leaking_get", "leaks", "each read keeps about"),
    ("table.get = crashing_get", "reads", "signal 6"),
    ("table.open_session = session_with_file", "leaks", "files open"),
    ("table.counters = shrinking_counters", "counters", "shrank"),
    ("table.counters = counters_of_unknown_role", "counters", "unknown role"),
    ("table.open = unknown_options_are_taken", "options", "was accepted"),
    ("table.sync = sync_that_does_nothing", "sync", "the kernel refused each call"),
    ("table.write = 0", "table", "lacks the function `write`"),
    ("table.name = 0", "table", "no name"),
    ("table.durabilities = 8", "table", "durabilities are 8"),
    ("table.features = 64", "table", "features are 64"),
    ("table.size = 16", "table", "16 bytes"),
];

/// Returns the root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles an adapter, or a part of the tests, into a library.
pub(crate) fn compiled(place: &Place, source: &str, name: &str, args: &[&str]) -> PathBuf {
    let library = place.join(&format!("lib{name}.so"));
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC"]).arg(root().join(source)).arg("-o").arg(&library);
    assert!(compile.args(args).status().unwrap().success(), "{source} does not compile");
    library
}

/// Returns what `conform` says of a check.
fn outcome_of(place: &Place, library: &Path, check: &str) -> Value {
    let library = library.to_str().unwrap();
    let ended = place.assay(&["conform", library, "--only", check, "--format", "json"]);
    let outcomes: Value = serde_json::from_str(&ended.stdout).unwrap();
    outcomes[0].clone()
}

/// Compiles an adapter in Rust into a library. All of them share what they depend on. Without
/// optimization, the engine itself would take most of the time of its checks.
fn built_by_cargo(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adapters");
    let manifest = root().join("adapters").join(name).join("Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    build.arg("--target-dir").arg(&target);
    build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    assert!(build.status().unwrap().success(), "the adapter of {name} does not compile");
    target.join(format!("debug/lib{name}_assay.so"))
}

/// Runs all checks with few kills, of which each waits for the device many times, and with these
/// options.
fn keeps_its_promises(place: &Place, adapter: &Path, options: &[&str]) {
    let conform = ["conform", adapter.to_str().unwrap(), "--kills", "3"];
    let ended = place.assay(&[&conform[..], options].concat()).expect_code(0);
    ended.expect_in_stdout(&["0 failed", "ok      crash-machine", "ok      sync-write"]);
}

#[test]
fn the_adapters_in_c_keep_their_promises() {
    if !adapters_are_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    // Whenever it opens a database, WiredTiger reads a whole file of its log, usually of 100 MB.
    let short_log = ["--set", "config=log=(file_max=1MB)"];
    for (name, options) in [("lmdb", &[][..]), ("leveldb", &[]), ("wiredtiger", &short_log)] {
        let source = format!("adapters/{name}.c");
        let args = ["-Wall", "-Wextra", "-Werror", &format!("-l{name}")];
        keeps_its_promises(&place, &compiled(&place, &source, name, &args), options);
    }
}

#[test]
fn the_adapters_in_rust_keep_their_promises() {
    let place = Place::new();
    for name in ["redb", "fjall"] {
        keeps_its_promises(&place, &built_by_cargo(name), &[]);
    }
}

/// WiredTiger's threads may wait for each other forever once an fsync has failed.
#[test]
fn a_sync_that_hangs_after_a_refused_fsync_claims_no_success() {
    if !adapters_are_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let plant = "-DPLANT=table.sync = sync_that_hangs_after_failure";
    let source = "crates/conform/tests/faulty.c";
    let adapter = compiled(&place, source, "hangs", &[plant, "-w", "-llmdb"]);
    assert_eq!(outcome_of(&place, &adapter, "sync")["verdict"], "passed");
}

#[test]
fn planted_faults_in_an_adapter_are_found() {
    if !adapters_are_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    for (number, (plant, check, reason)) in FAULTS.into_iter().enumerate() {
        let name = format!("fault{number}");
        let plant = format!("-DPLANT={plant}");
        let source = "crates/conform/tests/faulty.c";
        let adapter = compiled(&place, source, &name, &[&plant, "-w", "-llmdb"]);

        let outcome = outcome_of(&place, &adapter, check);
        let failed = outcome["verdict"]["failed"].as_str().unwrap_or_default();
        assert!(failed.contains(reason), "{plant}: {outcome}");
    }
}

#[test]
fn what_an_adapter_starts_holds_no_check_up_and_outlives_none() {
    if !adapters_are_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let plant = "-DPLANT=if (fork() == 0) { sleep(991); _exit(0); }";
    let source = "crates/conform/tests/faulty.c";
    let adapter = compiled(&place, source, "forking", &[plant, "-w", "-llmdb"]);

    for check in ["reads", "crash-process"] {
        let outcome = outcome_of(&place, &adapter, check);
        assert_eq!(outcome["verdict"], "passed", "{outcome}");
        assert!(place.processes().is_empty(), "a child of the adapter lives on");
    }
}

#[test]
fn a_check_or_a_library_that_does_not_exist_is_refused() {
    let place = Place::new();
    let header = place.assay(&["conform", "--header"]).expect_code(0);
    header.expect_in_stdout(&["#ifndef ASSAY_ENGINE_H"]);
    place.assay(&["conform", "/nowhere.so"]).expect_code(2).expect_in_stderr(&["does not exist"]);
    let args = ["conform", "/nowhere.so", "--only", "magic"];
    place.assay(&args).expect_code(2).expect_in_stderr(&["no check `magic`", "--list"]);

    let libc = Command::new("cc").arg("-print-file-name=libm.so.6").output().unwrap();
    let libc = String::from_utf8(libc.stdout).unwrap();
    let other = place.assay(&["conform", libc.trim()]).expect_code(1);
    other.expect_in_stdout(&["FAILED  table", "does not export `assay_engine`"]);
}

#[test]
fn an_engine_of_ones_own_is_measured_beside_others_at_the_same_durability() {
    if !adapters_are_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let lmdb = compiled(&place, "adapters/lmdb.c", "lmdb", &["-llmdb"]);
    let leveldb = compiled(&place, "adapters/leveldb.c", "leveldb", &["-lleveldb"]);
    let plan = format!(
        "name = \"own\"\n[workload.kv]\nkeys = 2000\nread-time = \"200ms\"\n\
         read-write-time = \"200ms\"\nsteps = [\"fillseq\", \"multireadrandom\", \"revrange\", \
         \"overwrite\", \"deleterandom\", \"fwdrange\", \"deleterange\", \"mixgraph\"]\n[build.lmdb]\nlibrary = '{}'\n[build.leveldb]\nlibrary = '{}'\n\
         [config.library.process]\nset = {{}}\n[config.library.machine]\ndurability = \"machine\"\n",
        lmdb.display(),
        leveldb.display()
    );

    fs_err::write(place.join("own.toml"), plan).unwrap();
    let ran = place.assay(&["run", "own.toml", "--repeats", "1"]).expect_code(0);
    let ran = ran.expect_in_stderr(&[
        "`multireadrandom` is not applicable to `leveldb.process`: LevelDB 1.23 does not offer",
    ]);

    let run = place.join(ran.stdout.lines().last().unwrap());
    let cell = |target: &str| {
        let text = fs_err::read(run.join(format!("cells/{target}/c1/r1/cell.json"))).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()
    };
    assert_eq!(cell("leveldb.process")["not_applicable"][0]["step"], "multireadrandom");
    let lacking = cell("lmdb.process")["not_applicable"].clone();
    assert!(lacking.as_array().unwrap().len() == 1, "{lacking}");
    assert_eq!(lacking[0]["step"], "deleterange");
    let settings = cell("lmdb.machine")["settings"].as_array().unwrap().clone();
    let durability = settings.iter().find(|setting| setting["name"] == "durability").unwrap();
    assert_eq!(
        (&durability["value"], &durability["role"]),
        (&"machine".into(), &"durability".into())
    );

    let shown = place.assay(&["compare", run.to_str().unwrap()]).expect_code(0);
    shown.expect_in_stdout(&["durability (process -> machine)"]);

    // An option that the adapter refuses is an error before anything runs.
    let set = ["run", "own.toml", "--set", "config.library.process.set.no_such=1"];
    place.assay(&set).expect_code(2).expect_in_stderr(&["`no_such = 1` is not an option"]);
}
