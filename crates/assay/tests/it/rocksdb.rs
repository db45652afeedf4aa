//! RocksDB and Speedb, each library in a process of its own: what runs, what is recorded, and what
//! goes wrong.

mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::full_disk::Disk;
use crate::place::{Place, QUICK, entries, parent_of, send, workload};
use crate::show_json::{Shown, number};
use crate::{rocksdb_or_test_is_skipped, say_skipped};

/// Memtables so small that a few thousand keys make a tree of several levels.
const SMALL: &str = r#"
[config.rocksdb.small]
[config.rocksdb.small.set]
write_buffer_size = 262144
target_file_size_base = 262144
max_bytes_for_level_base = 1048576
level0_file_num_compaction_trigger = 2
compression = "kNoCompression"
block_size = 4096
"#;

/// Returns a place, and the libraries that are here; none: the test is skipped.
fn place_with_libraries() -> Option<(Place, Vec<PathBuf>)> {
    Some((Place::new(), rocksdb_or_test_is_skipped()?))
}

/// Returns the builds of these libraries, with the small config.
fn builds(libraries: &[PathBuf]) -> String {
    let build = |(number, library): (usize, &PathBuf)| {
        format!("[build.b{number}]\nrocksdb = '{}'\n", library.display())
    };
    libraries.iter().enumerate().map(build).collect::<String>() + SMALL
}

/// Returns the plan of a sequence with this number of keys, these steps, and more lines.
fn sequence(keys: u32, steps: &[&str], more: &str) -> String {
    format!(
        "name = \"test\"\nclients = [2]\n[workload.kv]\nkeys = {keys}\nkey-size = 16\nvalue-size = 100\n\
         read-time = \"{QUICK}\"\nread-write-time = \"{QUICK}\"\nsteps = {steps:?}\n{more}\n"
    )
}

fn counter<'a>(step: &'a Value, when: &str, name: &str) -> Option<&'a Value> {
    let counters = step[when].as_array().unwrap();
    let found = counters.iter().find(|counter| counter["name"] == name)?;
    Some(&found["value"])
}

/// Files of the first level when the step began.
fn files_of_first_level(step: &Value) -> Option<f64> {
    counter(step, "counters_before", "level_file_count.0").map(number)
}

/// Returns the value of a setting of a cell, and where it came from.
fn setting(cell: &Path, name: &str) -> (String, String) {
    let record = json(&cell.join("cell.json"));
    let settings = record["settings"].as_array().unwrap();
    let found = settings.iter().find(|it| it["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no `{name}` in {settings:#?}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("value"), text("source"))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

fn cell(run: &Path, target: &str) -> PathBuf {
    run.join("cells").join(target).join("c2/r1")
}

/// Returns the process of the cell that runs: its parent is the guard.
pub(crate) fn process_of_cell(place: &Place) -> u32 {
    let is_cell = |pid: &u32| {
        let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|&byte| byte == 0).nth(1) == Some(b"cell")
    };
    let found: Vec<u32> = place.processes().into_iter().filter(is_cell).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

/// The rate, and a time of `readwhilewriting` in which its writer writes something on a busy machine,
/// too, where it may begin late.
const WRITE_FOR_A_WHILE: &str = "write-rate = \"1MiB/s\"\nstep.readwhilewriting.time = \"500ms\"";

/// The writer of `readwhilewriting` was offered what its rate asks for in the step's time, exactly:
/// see [`WRITE_FOR_A_WHILE`].
fn assert_writes_were_offered(shown: &Shown, target: &str) {
    let written = &shown.row(target, "readwhilewriting")["ops"]["put"];
    let asked = 0.5 * f64::from(1 << 20) / 116.0;
    let offered = number(&written["offered"]);
    assert!((offered / asked - 1.0).abs() < 0.01, "{written}");
    assert!(number(&written["count"]) > 0.0, "{written}");
}

#[test]
fn each_library_runs_the_whole_sequence_and_is_checked() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = [
        "fillseq",
        "flush",
        "readrandom",
        "fwdrange",
        "multireadrandom",
        "overwritesome",
        "flush.2",
        "revrangewhilewriting",
        "fwdrangewhilewriting",
        "readwhilewriting",
        "overwrite",
    ];

    let plan = sequence(30_000, &steps, WRITE_FOR_A_WHILE) + &builds(&libraries);
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let mut versions = Vec::new();
    for number_of_build in 0..libraries.len() {
        let target = format!("b{number_of_build}.small");
        let names: Vec<&str> = shown.steps(&target).iter().map(|step| step.0).collect();
        assert_eq!(names, steps, "{target}");
        let directory = cell(&run, &target);
        let record = json(&directory.join("cell.json"));
        versions.push(record["engine_version"].as_str().unwrap().to_owned());
        // Later versions leave it to the kernel to read ahead for compaction.
        let settings = record["settings"].as_array().unwrap();
        let is_left = |it: &Value| it["role"] == "compaction_readahead";
        let is_old = record["engine_version"].as_str().unwrap().contains("RocksDB 6.");
        assert_eq!(settings.iter().any(is_left), !is_old, "{target}");
        let setting = |name| setting(&directory, name);
        let memtable = setting("[CFOptions] write_buffer_size");
        assert_eq!(memtable, ("262144".into(), "config".into()));
        assert_eq!(setting("perf_level"), ("disable".into(), "assay".into()));
        assert!(directory.join("server.log").is_file(), "the library's log is kept");
        let events = &shown.row(&target, "fillseq")["events"];
        for figure in ["count", "seconds", "bytes"] {
            let value = events["flush"][figure].as_f64();
            assert!(value > Some(0.0), "{target}: {events}");
        }
        let step = |name: &str| {
            let number = 1 + steps.iter().position(|step| *step == name).unwrap();
            json(&directory.join(format!("steps/{number:02}-{name}/step.json")))
        };
        let loaded = step("fillseq");
        let found = &loaded["checks"][0];
        assert!(
            found["what"] == "keys" && found["found"] == "30000" && found["holds"] == true,
            "{found}"
        );
        // The tree that the reads begin with has nothing in its first level, in every version.
        for name in ["readrandom", "fwdrange", "multireadrandom", "revrangewhilewriting"] {
            let files = files_of_first_level(&step(name));
            assert_eq!(files, Some(0.0), "{target} {name}");
        }
        let overwritten = step("overwrite");
        let waited = overwritten["settle"]["actions"].to_string();
        assert!(waited.contains("wait for compaction"), "{waited}");
        assert_writes_were_offered(&shown, &target);
    }

    let builds = json(&run.join("run.json"))["builds"].clone();
    for (build, version) in builds.as_array().unwrap().iter().zip(&versions) {
        assert_eq!(build["version"], **version);
        assert_eq!(build["files"][0]["sha256"].as_str().unwrap().len(), 64);
    }

    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), libraries.len(), "{versions:?}");
}

#[test]
fn the_insert_benchmark_runs_on_a_library_and_is_checked() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = ["l.x", "l.i0", "l.i1", "l.i2", "settle", "qr100", "qp100", "settle.2", "qr0"];
    let more = format!(
        "secondary-indexes = 2\nstep.\"l.i2\".time = \"300ms\"\ndelete-per-insert = true\n\
         steps = {steps:?}"
    );

    // More files in the first level are needed than settling would compact by itself.
    let plan = "clients = [2]\n".to_owned()
        + &workload(4_000, 2_000, QUICK, &more)
        + &builds(&libraries[..1])
            .replace("num_compaction_trigger = 2", "num_compaction_trigger = 8")
        + "[config.rocksdb.small.load]\nwrite_buffer_size = 131072\n";
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let names: Vec<&str> = shown.steps("b0.small").iter().map(|step| step.0).collect();
    assert_eq!(names, steps);
    let of_cell = cell(&run, "b0.small");
    let read = json(&of_cell.join("steps/06-qr100/step.json"));
    assert_eq!(files_of_first_level(&read), Some(0.0));
    let of_load = setting(&of_cell, "[CFOptions] load.write_buffer_size");
    assert_eq!(of_load.0, "131072");
    let found = json(&cell(&run, "b0.small").join("steps/04-l.i2/step.json"))["checks"].to_string();
    for what in ["rows of pi1", "rows of pi2", "smallest key", "largest key"] {
        assert!(found.contains(what), "{what}: {found}");
    }

    let deleted = &shown.row("b0.small", "l.i1")["ops"]["delete"];
    assert_eq!(number(&deleted["rows"]), 3_200.0);
}

#[test]
fn clients_share_a_table_on_each_library_and_it_is_checked() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = ["l.i0", "l.x", "l.i1", "qr100", "qp100"];
    let more = format!("tables = \"shared\"\nsteps = {steps:?}");
    let plan =
        "clients = [2]\n".to_owned() + &workload(4_000, 2_000, QUICK, &more) + &builds(&libraries);

    // The machine may be too slow, but the results must be correct in any case.
    let _ended = place.run(&plan, &[]);
    for number in 0..libraries.len() {
        let of_cell = cell(&place.only_run(), &format!("b{number}.small"));
        for (index, step) in steps.iter().enumerate() {
            let step = of_cell.join(format!("steps/{:02}-{step}/step.json", index + 1));
            let checks = json(&step)["checks"].clone();
            let checks = checks.as_array().unwrap();
            let holds = |check: &Value| check["holds"] == true;
            assert!(checks.len() >= 3 && checks.iter().all(holds), "{checks:?}");
        }
    }
}

#[test]
fn the_load_has_options_of_its_own_and_the_database_is_opened_anew_after_it() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let steps = ["fillseq", "readrandom", "overwritesome", "flush", "fwdrange"];
    let plan = sequence(30_000, &steps, "")
        + &builds(&libraries)
        + "[config.rocksdb.packed]\nextends = \"small\"\n[config.rocksdb.packed.load]\n\
           compression = \"kLZ4Compression\"\nmemtable = \"vector\"\nallow_concurrent_memtable_write = false\n\
           \"block_based_table_factory.block_size\" = 16384\n";
    let ended = place.run(&plan, &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    for number_of_build in 0..libraries.len() {
        let target = format!("b{number_of_build}.packed");
        let names: Vec<&str> = shown.steps(&target).iter().map(|step| step.0).collect();
        assert_eq!(names, steps, "{target}");
        let directory = cell(&run, &target);
        for (name, value) in [
            ("[CFOptions] compression", "kNoCompression"),
            ("[CFOptions] load.compression", "kLZ4Compression"),
            ("[CFOptions] load.memtable", "vector"),
            ("[TableOptions/BlockBasedTable] block_size", "4096"),
            ("[TableOptions/BlockBasedTable] load.block_size", "16384"),
        ] {
            let expected = (value.to_owned(), "config".to_owned());
            assert_eq!(setting(&directory, name), expected, "{target}");
        }
        for log in ["load.log", "server.log"] {
            assert!(directory.join(log).is_file(), "{log}");
        }
        // What was loaded is smaller than what is written without it.
        let stored = |target: &str| {
            let step = json(&cell(&run, target).join("steps/01-fillseq/step.json"));
            number(&step["storage"]["data_bytes"])
        };
        let plain = stored(&format!("b{number_of_build}.small"));
        assert!(stored(&target) < 0.8 * plain, "{} {plain}", stored(&target));
    }

    // The differences between configs are shown, and each target has what it declares.
    let run = run.to_str().unwrap();
    let shown = place.assay(&["show", run, "--between", "b0.small", "b0.packed"]);
    let shown = shown.expect_code(0).stdout;
    assert!(shown.contains("load.compression"), "{shown}");
    assert!(!shown.contains("not had as declared"), "{shown}");
}

#[test]
fn a_cell_that_needs_more_memory_than_its_config_allows_has_failed_for_that_reason() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    if !rustix::process::geteuid().is_root() {
        say_skipped("only root may limit memory without preparation");
        return;
    }

    let plan = sequence(1_500_000, &["fillseq"], "checks = \"off\"")
        + &builds(&libraries[..1])
        + "[config.rocksdb.tight]\nextends = \"small\"\nmemory = \"64MiB\"\n\
           set = { write_buffer_size = 536870912 }\n\
           [[target]]\nbuilds = [\"b0\"]\nconfigs = [\"tight\"]\n";
    let ended = place.run(&plan, &[]);
    if ended.stderr.contains("warning[server::limits]") {
        say_skipped("memory cannot be limited here");
        return;
    }

    ended
        .expect_code(1)
        .expect_in_stderr(&["it needed more than the 64 MiB that its config allows"]);
}

#[test]
fn a_library_that_crashes_is_a_failed_cell_and_the_next_is_run() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let twice = [libraries[0].clone(), libraries[0].clone()];
    let steps = ["fillseq", "overwrite"];

    // The step that crashes lasts a minute, that of the next cell a second.
    let variants =
        "[workload.kv.variant.long]\nread-write-time = \"60s\"\n[workload.kv.variant.short]\n";
    let plan = sequence(5_000, &steps, variants) + &builds(&twice);
    let only = ["--only", "b0.small/long/*/*", "--only", "b1.small/short/*/*"];
    let mut running = place.spawn_run(&plan, &only);
    place.wait_for_step(&mut running, "02-overwrite");
    send(process_of_cell(&place), Signal::ABORT);
    running.wait().expect_code(1).expect_in_stderr(&[
        "error: the process of cell `cells/b0.small/long/c2/r1` ended unexpectedly",
        "SIGABRT",
        "the last lines of the log",
    ]);

    place.assert_nothing_is_left();
    let run = place.only_run();
    assert!(cell(&run, "b0.small/long").join("server.log").is_file(), "the log of a crash is kept");
    let shown = Shown::read(&place, &run);
    assert_eq!(shown.status(), "failed");
    assert_eq!(
        shown.steps("b1.small"),
        [("fillseq", "complete", true), ("overwrite", "complete", true)]
    );

    assert_eq!(shown.steps("b0.small").first(), Some(&("fillseq", "complete", true)));
}

#[test]
fn a_killed_guard_takes_its_cell_with_it() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };
    let long = "step.overwrite.time = \"60s\"";
    let plan = sequence(5_000, &["fillseq", "overwrite"], long) + &builds(&libraries[..1]);
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "02-overwrite");
    send(parent_of(process_of_cell(&place)), Signal::KILL);
    running.wait().expect_code(1).expect_in_stderr(&["its guard was killed"]);
    place.assert_nothing_is_left();
}

#[test]
fn cells_that_are_left_out_need_no_library() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };
    let plan =
        sequence(500, &["fillseq"], "") + &builds(&[libraries[0].clone(), place.join("none.so")]);
    let ended = place.run(&plan, &["--only", "b0.*"]).expect_code(0);
    Shown::read(&place, &ended.run_directory()).assert_all_valid();
}

#[test]
fn a_killed_run_leaves_no_process_and_can_be_resumed() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    // Longer than the signal may be late; a resumed run begins the step again.
    let long = "step.overwrite.time = \"3s\"";
    let plan = sequence(5_000, &["fillseq", "overwrite"], long) + &builds(&libraries[..1]);
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "02-overwrite");
    running.signal(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.signal, Some(9), "{ended}");
    crate::place::eventually("the cell's process ends", || place.processes().is_empty());
    let run = place.only_run();
    place.assay(&["run", "--resume", run.to_str().unwrap()]).expect_code(0);
    Shown::read(&place, &run).assert_all_valid();
    place.assert_nothing_is_left();
}

#[test]
fn sigint_ends_the_cell_in_good_order() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let long = "step.readrandom.time = \"60s\"";
    let plan = sequence(5_000, &["fillseq", "readrandom"], long) + &builds(&libraries[..1]);
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "02-readrandom");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();
    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(shown.status(), "interrupted");
    assert_eq!(
        shown.steps("b0.small"),
        [("fillseq", "complete", true), ("readrandom", "interrupted", false)]
    );
}

#[test]
fn a_full_disk_fails_the_step_that_compacts() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let Some(disk) = Disk::mount(&place, 64) else {
        return;
    };

    let long = "step.overwrite.time = \"60s\"";
    let plan = sequence(20_000, &["fillseq", "overwrite"], long) + &builds(&libraries[..1]);
    let mut running = place.spawn_run(&plan, &["--data", "disk/data"]);
    place.wait_for_step(&mut running, "02-overwrite");
    disk.fill();
    running
        .wait()
        .expect_code(1)
        .expect_in_stderr(&["step `overwrite` of `b0.small` failed", "No space left"]);
    assert!(place.processes().is_empty());
    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(
        shown.steps("b0.small"),
        [("fillseq", "complete", true), ("overwrite", "failed", false)]
    );

    assert!(!disk.path.join("data/b0.small/rocksdb").exists());
}

#[test]
fn an_option_that_a_version_does_not_know_is_left_out_where_the_plan_says_so() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let plan = sequence(500, &["fillseq"], "")
        + &builds(&libraries[..1])
        + "no_such_option = 3\n[config.rocksdb.skip]\nextends = \"small\"\nunknown-options = \"skip\"\n\
           [[target]]\nconfigs = [\"skip\"]\n";
    place.write("plan.toml", &plan);
    let checked = place.assay(&["check", "plan.toml"]).expect_code(0);
    assert!(checked.stdout.contains("no_such_option: b0.skip\n"), "{checked}");
    let ended = place.run(&plan, &[]).expect_code(0);
    let shown = Shown::read(&place, &ended.run_directory());
    assert_eq!(shown.steps("b0.skip"), [("fillseq", "complete", true)]);
    assert!(ended.stderr.contains("does not have these options"), "{ended}");
}

#[test]
fn configs_that_a_library_does_not_take_are_refused_all_at_once_before_the_run() {
    let Some((place, libraries)) = place_with_libraries() else {
        return;
    };

    let plan = sequence(500, &["fillseq"], "")
        + &builds(&libraries)
        + "write_bufer_size = 1\n[config.rocksdb.packed]\nextends = \"small\"\nunknown-options = \"skip\"\n\
           set.compression = \"kLZ5Compression\"\n[config.rocksdb.loading]\nextends = \"small\"\n\
           unknown-options = \"skip\"\nload.no_such_size = 1\nload.max_background_jobs = \"many\"\n";
    place.write("plan.toml", &plan);
    let is_many = |line: &str| line.contains("max_background_jobs = \"many\"");
    let line = 1 + plan.lines().position(is_many).unwrap();
    let place_of_many = format!("plan.toml:{line}:28");
    for command in ["check", "run"] {
        let ended = match command {
            "check" => place.assay(&["check", "plan.toml"]),
            _ => place.run(&plan, &[]),
        };
        let ended = ended.expect_code(2).expect_in_stderr(&[
            "`b0.small`",
            "does not know the option `write_bufer_size`",
            "did you mean `write_buffer_size`?",
            "`b0.packed`",
            "kLZ5Compression",
            "did you mean one of `kNoCompression`, ",
            "`b0.loading`",
            "`max_background_jobs = many`",
            &place_of_many,
            "load.max_background_jobs = \"many\"",
            "3 errors in `plan.toml`; nothing was run",
        ]);
        // A mistake in a config is reported once for all versions.
        let told = ended.stderr.matches("know the option `write_bufer_size`");
        assert_eq!(told.count(), 1, "{ended}");
        assert!(entries(&place.join("results")).is_empty(), "{ended}");
    }
}

#[test]
fn other_libraries_than_rocksdb_are_refused_before_the_run() {
    let place = Place::new();
    let elf = fs_err::read(std::env::current_exe().unwrap()).unwrap();
    let mut other_machine = elf[..4096].to_vec();
    // The field of the machine: 40 is 32-bit ARM.
    other_machine[18..20].copy_from_slice(&[40, 0]);
    place.write("text.so", "no library");
    fs_err::write(place.join("arm.so"), other_machine).unwrap();
    compiled(&place, "empty", "int nothing;");
    compiled(&place, "old", "void rocksdb_close(void) {}");
    compiled(
        &place,
        "crash",
        "#include <stdlib.h>\n__attribute__((constructor)) static void at_load(void) { abort(); }",
    );

    for (file, words) in [
        ("none.so", "No such file"),
        ("text.so", "not a shared library"),
        ("arm.so", "was built for"),
        ("empty.so", "is not RocksDB"),
        ("old.so", "lacks functions of RocksDB's C API: rocksdb_"),
        ("crash.so", "SIGABRT"),
    ] {
        let library = [place.join(file)];
        let plan = sequence(500, &["fillseq"], "") + &builds(&library);
        let ended =
            place.run(&plan, &[]).expect_code(2).expect_in_stderr(&["build `b0`", words, "help: "]);
        assert!(ended.stdout.is_empty(), "{ended}");
        assert!(entries(&place.join("results")).is_empty(), "{file}");
    }
}

/// A shared library of this C.
fn compiled(place: &Place, name: &str, c: &str) {
    let source = place.write(&format!("{name}.c"), c);
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(place.join(&format!("{name}.so")))
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
}
