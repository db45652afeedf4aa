//! Exact cells: each engine runs under callgrind, and the work of its steps is recorded.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use record::{RunDir, Status, StepReader, StepWork};
use rustix::process::Signal;
use words::{CellKind, WorkRole};

use crate::bundle::work_is_repeated_elsewhere;
use crate::foreign_server::Foreign;
use crate::place::{
    ASSAY, Ended, LONGEST_S, POSTGRES, Place, QUICK, SQLITE, any_below, comes_about, entries,
    eventually, mysql, with_children, workload,
};
use crate::show_json::Shown;
use crate::{
    callgrind_is_here_or_test_is_skipped, mysql_or_test_is_skipped,
    postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped,
    sqlite_library_or_test_is_skipped,
};

/// The operations of each connection that are counted.
const OPERATIONS: u64 = 50;
/// The largest difference of a read step's cells, relative to the smaller one.
const READ_NOISE: f64 = 0.01;
/// A user who is not the one of a server.
const SOMEBODY: u32 = 7002;

/// Returns a table `[exact]` with these numbers of cells and operations.
fn exact(cells: usize, operations: u64) -> String {
    format!("[exact]\nrepeats = {cells}\noperations = {operations}\nwarmup = 10\n")
}

/// Returns the number of cells that show the work of an engine. That cells of one target agree is
/// shown with SQLite each time, and with each engine by `cargo xtask test --all`.
fn engine_cells() -> usize {
    if std::env::var_os("ASSAY_TEST_ALL").is_some() { 2 } else { 1 }
}

/// Returns a plan that reads rows by their keys, and whose targets follow.
fn reads() -> String {
    format!(
        "name = \"test\"\n[workload.sysbench]\nrows = 1000\nwarmup = \"0s\"\nchecks = \"off\"\n\
         read-time = \"{QUICK}\"\nsteps = [\"load\", \"point-query\"]\n"
    )
}

/// Returns a plan whose step `qr100` has a connection that queries, and two that write at a rate.
fn reads_and_writes() -> String {
    workload(600, 200, QUICK, "steps = [\"l.i0\", \"l.x\", \"qr100\"]")
}

/// The steps of the exact cells of a run's only target.
struct ExactCells(Vec<Vec<StepReader>>);

impl ExactCells {
    fn read(run: &Path) -> Self {
        let mut cells = Vec::new();
        for cell in RunDir::open(run).unwrap().started_cells().unwrap() {
            if cell.read().unwrap().key.kind == CellKind::Exact {
                cells.push(cell.read_steps().unwrap());
            }
        }
        Self(cells)
    }

    /// Returns a step of each cell.
    fn step(&self, name: &str) -> Vec<&StepReader> {
        let find = |steps: &'_ Vec<StepReader>| {
            steps.iter().position(|step| step.step().name == name).expect("the cell has the step")
        };
        self.0.iter().map(|steps| &steps[find(steps)]).collect()
    }

    /// Returns the work of a step in each cell.
    fn work(&self, name: &str) -> Vec<&StepWork> {
        let work = |step: &'_ &StepReader| step.step().work.is_some();
        let steps = self.step(name);
        assert!(steps.iter().all(work), "step {name} has no work");
        steps.into_iter().filter_map(|step| step.step().work.as_ref()).collect()
    }

    /// Asserts that a read step counted its operations and nearly the same instructions in all
    /// cells, at least `least` in each operation, and that it names a function of the engine.
    #[track_caller]
    fn assert_reads_are_counted(&self, step: &str, kind: &str, least: f64, function: &str) {
        let expected = BTreeMap::from([(kind.to_owned(), OPERATIONS)]);
        let mut instructions = Vec::new();
        for work in self.work(step) {
            assert_eq!(work.missing, None);
            assert_eq!(work.operations, expected);

            let serving: Vec<_> =
                work.parts.iter().filter(|part| part.role == WorkRole::Serving).collect();
            assert_eq!(serving.len(), 1, "{:?}", work.parts);
            assert_eq!(serving[0].operations, [kind]);
            instructions.push(serving[0].instructions as f64 / OPERATIONS as f64);
        }

        let lowest = instructions.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = instructions.iter().copied().fold(0.0, f64::max);
        assert!(lowest >= least, "{instructions:?}");
        assert!((highest - lowest) / lowest < READ_NOISE, "{instructions:?}");

        self.assert_is_executed(step, function);
    }

    /// Asserts that the serving part of a step executed a function whose name begins so.
    #[track_caller]
    fn assert_is_executed(&self, step: &str, function: &str) {
        for step in self.step(step) {
            let graph = step.work().unwrap().remove(&WorkRole::Serving).unwrap();
            let mut names = graph.functions.iter().map(|function| &function.name);
            assert!(names.any(|name| name.starts_with(function)), "{:?}", graph.functions);
        }
    }

    /// Asserts that all steps are complete and nothing was held against their times.
    #[track_caller]
    fn assert_all_valid(&self) {
        for step in self.0.iter().flatten() {
            let step = step.step();
            assert!(step.valid, "{}: {:?}", step.name, step.reasons);
        }
    }
}

/// Runs a plan of one target, and returns its exact cells.
fn count(place: &Place, plan: &str) -> ExactCells {
    let plan = plan.to_owned() + &exact(engine_cells(), OPERATIONS);
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    assert_eq!(entries(&place.join("data")), [place.join("data/.assay.lock")]);
    let cells = ExactCells::read(&run);
    assert_eq!(cells.0.len(), engine_cells());
    cells.assert_all_valid();
    cells
}

#[test]
fn the_work_of_sqlite_is_counted_and_times_of_exact_cells_are_not_compared() {
    if !callgrind_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let twin = "[config.sqlite.next]\nextends = \"base\"\n";
    let plan = reads() + SQLITE + twin + &exact(2, OPERATIONS);
    let run = place.run(&plan, &[]).expect_code(0).run_directory();

    // Nothing is left, and cells agree, also those of equal targets.
    assert_eq!(entries(&place.join("data")), [place.join("data/.assay.lock")]);
    let cells = ExactCells::read(&run);
    assert_eq!(cells.0.len(), 4);
    cells.assert_all_valid();
    cells.assert_reads_are_counted("point-query", "event", 1_000.0, "sqlite3VdbeExec");

    let ended = place.assay(&["compare", run.to_str().unwrap(), "--format", "json"]);
    let compared: serde_json::Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();

    // There is one cell of time and two exact ones.
    let counts = |row: &serde_json::Value| {
        ["base_values", "values"].map(|key| row[key].as_array().unwrap().len())
    };
    let of_reads = |row: &&serde_json::Value| row["step"] == "point-query";
    let rows = compared["compared"]["rows"].as_array().unwrap().iter().filter(of_reads);
    assert!(rows.clone().count() > 0);
    for row in rows {
        assert_eq!(counts(row), [1, 1], "{row}");
    }

    let work = compared["work"].as_array().unwrap().iter().filter(of_reads);
    assert!(work.clone().count() > 0);
    for row in work {
        assert_eq!(counts(row), [2, 2], "{row}");
        assert_eq!(row["verdict"], "no_change_shown", "{row}");
    }
}

#[test]
fn the_work_of_a_library_of_sqlite_is_that_of_the_library() {
    let library = sqlite_library_or_test_is_skipped();
    let Some(library) = library.filter(|_| callgrind_is_here_or_test_is_skipped()) else {
        return;
    };
    let place = Place::new();
    let builds = SQLITE.replace("\"bundled\"", &format!("'{}'", library.display()));
    let cells = count(&place, &(reads() + &builds));
    cells.assert_reads_are_counted("point-query", "event", 1_000.0, "sqlite3_step");
}

#[test]
fn each_connection_of_a_postgres_has_a_part_and_the_rates_are_not_judged() {
    if !callgrind_is_here_or_test_is_skipped() || !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();

    let cells = count(&place, &(reads_and_writes() + POSTGRES));
    for work in cells.work("qr100") {
        assert_eq!(work.missing, None);
        assert_eq!(work.operations["query"], OPERATIONS);
        for role in ["query", "insert", "delete"] {
            let mut parts = work.parts.iter();
            let part = parts.find(|part| part.role == WorkRole::Serving && part.name == role);
            let part = part.unwrap_or_else(|| panic!("no part {role}: {:?}", work.parts));
            let counts = part.operations.iter().filter_map(|kind| work.operations.get(kind));
            let operations: u64 = counts.sum();
            assert!(operations > 0, "{:?}", work.operations);
            assert!(part.instructions > 10_000 * operations, "{:?}", work.parts);
        }
    }

    cells.assert_is_executed("qr100", "PostgresMain");
    cells.assert_is_executed("qr100", "ExecutorRun");
}

#[test]
fn the_work_of_mysql_is_counted_for_the_thread_of_the_connection() {
    let build = mysql_or_test_is_skipped("innodb");
    let Some(build) = build.filter(|_| callgrind_is_here_or_test_is_skipped()) else {
        return;
    };
    let place = Place::new();
    let cells = count(&place, &(reads() + &mysql(&build, "innodb")));
    cells.assert_reads_are_counted("point-query", "event", 10_000.0, "dispatch_command");
}

#[test]
fn the_work_of_rocksdb_is_that_of_its_library() {
    let libraries = rocksdb_or_test_is_skipped();
    let Some(libraries) = libraries.filter(|_| callgrind_is_here_or_test_is_skipped()) else {
        return;
    };

    let place = Place::new();
    let plan = format!(
        "name = \"test\"\n[workload.kv]\nkeys = 500\nkey-size = 16\nvalue-size = 100\n\
         read-time = \"{QUICK}\"\nread-write-time = \"{QUICK}\"\n\
         steps = [\"fillseq\", \"readrandom\", \"deleterandom\", \"mergerandom\", \"randomtransaction\"]\n\
         [build.b0]\nrocksdb = '{}'\n",
        libraries[0].display()
    );

    let cells = count(&place, &plan);
    cells.assert_reads_are_counted("readrandom", "get", 1_000.0, "rocksdb::DBImpl::Get");

    // A load that a library continues in the background is counted as a whole, after its warm-up, and
    // so is any other number of operations. A step with a time ends after those of `[exact]`.
    for (step, kind, operations) in [
        ("fillseq", "put", 490),
        ("deleterandom", "delete", 40),
        ("mergerandom", "merge", OPERATIONS),
        ("randomtransaction", "transaction", OPERATIONS),
    ] {
        for work in cells.work(step) {
            assert_eq!(work.operations, BTreeMap::from([(kind.to_owned(), operations)]));
        }
    }
}

#[test]
fn a_resumed_run_gets_exact_cells_beside_those_that_it_has() {
    if !callgrind_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = reads() + SQLITE;
    let sets = ["--set", "exact.operations=20", "--set", "exact.warmup=0"];
    let begin = [&sets[..], &["--only", "*/*/r1"]].concat();
    let run = place.run(&plan, &begin).expect_code(0).run_directory();
    let shown_before = Shown::read(&place, &run).json["rows"].clone();
    assert!(ExactCells::read(&run).0.is_empty());

    let resume = ["run", "--resume", run.to_str().unwrap(), "--exact", "--only", "*/*/x1"];
    place.assay(&resume).expect_code(0);
    place.assert_nothing_is_left();
    let cells = ExactCells::read(&run);
    assert_eq!(cells.0.len(), 1);
    cells.assert_all_valid();
    cells.assert_is_executed("point-query", "sqlite3VdbeExec");

    // The numbers of operations are those that the run began with.
    let [work] = cells.work("point-query")[..] else { panic!("one cell has work") };
    assert_eq!(work.operations["event"], 20);
    assert_eq!(work.warmup_operations, 0);

    // The cell of time is the same, and no other was added.
    let is_of_time = |row: &&serde_json::Value| row["exact"] != true;
    let shown = Shown::read(&place, &run);
    let rows: Vec<_> = shown.rows().iter().filter(is_of_time).collect();
    assert_eq!(rows, shown_before.as_array().unwrap().iter().collect::<Vec<_>>());
}

#[test]
fn work_alone_is_counted_compared_judged_and_repeated_elsewhere() {
    if !callgrind_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();

    let small_cache = "[config.sqlite.next]\nextends = \"base\"\nset = { cache_size = 1 }\n";
    let simulated = exact(2, OPERATIONS) + "simulate = \"cache\"\n";
    let plan = reads() + SQLITE + small_cache + &simulated;

    let ended = place.run(&plan, &["--exact", "--repeats", "0"]).expect_code(0);
    let ended = ended.expect_in_stdout(&[
        "lite.next does more work per operation than lite.base in the only comparison",
    ]);
    let run = ended.run_directory();

    // `--exact` without a value leaves the simulation to the plan.
    let cells = ExactCells::read(&run);
    assert_eq!(cells.0.len(), 4);

    let name = run.to_str().unwrap();
    let gate = place.assay(&["compare", name, "--gate"]).expect_code(3);
    gate.expect_in_stderr(&["regression: exact work in the only comparison"]);

    let same_side = ["compare", name, "--gate", "--base", "lite.next"];
    let passed = place.assay(&same_side).expect_code(0);
    passed.expect_in_stderr(&["no regression is shown: exact work in 1 comparison"]);

    // All exact cells of a run simulate the same.
    let other = place.assay(&["run", "--resume", name, "--exact=nothing"]).expect_code(2);
    other.expect_in_stderr(&["the run has exact cells that simulate `cache`"]);

    work_is_repeated_elsewhere(&place, name, ["lite.base", "lite.next"], "point-query");
}

#[test]
fn a_plan_without_repeats_and_without_exact_cells_is_refused() {
    let place = Place::new();
    let ended = place.run(&(reads() + SQLITE), &["--repeats", "0"]).expect_code(2);
    ended.expect_in_stderr(&["there is nothing to measure: `repeats` is 0", "`--exact`"]);
}

#[test]
fn exact_cells_without_valgrind_are_refused_with_the_name_of_the_package() {
    let place = Place::new();
    place.write("plan.toml", &(reads() + SQLITE));
    let mut command = Command::new(ASSAY);
    command.env("PATH", place.join("empty"));
    let ended = place.spawn_as(command, &["run", "plan.toml", "--exact"]).wait();
    ended
        .expect_code(2)
        .expect_in_stderr(&["exact cells cannot be measured", "Debian's package `valgrind`"]);
    assert!(entries(&place.join("results")).is_empty());
}

#[test]
fn targets_whose_work_can_not_be_counted_are_named_and_have_no_exact_cells() {
    if !callgrind_is_here_or_test_is_skipped() || !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let foreign = Foreign::start();
    let attached = format!("[build.theirs]\nurl = \"{}\"\n", foreign.url("right"));
    let replicated = POSTGRES.to_owned() + "replicas = 1\n";

    for (targets, why) in [
        (attached, "the work of `theirs.default` cannot be counted: its server runs already"),
        (replicated, "the work of `pg.base` cannot be counted: it has replicas"),
    ] {
        let place = Place::new();
        let steps = workload(500, 200, QUICK, "steps = [\"l.i0\"]");
        let plan = steps + &targets + &exact(2, OPERATIONS);
        let ended = place.run(&plan, &[]).expect_code(0).expect_in_stderr(&[why]);
        assert!(ExactCells::read(&ended.run_directory()).0.is_empty());
    }
}

/// Returns a process and all below it.
fn descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while next < all.len() {
        all.extend(&with_children(all[next])[1..]);
        next += 1;
    }
    all
}

/// Returns the folder with the pipes of callgrind, if a cell has one now.
fn callgrind_folder(place: &Place) -> Option<PathBuf> {
    let targets = entries(&place.join("data"));
    let mut folders = targets.iter().flat_map(|target| entries(target)).flat_map(|folder| {
        let inner = folder.join("callgrind");
        [folder, inner]
    });
    folders.find(|folder| folder.ends_with("callgrind") && folder.is_dir())
}

/// Interrupts a run while it counts, and asserts that only it could enter the folder of callgrind,
/// and that nothing is left of it.
fn interrupt_while_counting(engine: &str) {
    let place = Place::new();
    // More operations than any machine counts before the signal.
    let mut running = place.spawn_run(&(reads() + engine + &exact(2, 10_000_000)), &[]);
    let results = place.join("results");
    let has_begun = comes_about(LONGEST_S, || {
        running.must_run("the exact cell");
        any_below(&results, "x1")
    });
    assert!(has_begun, "the exact cell did not begin within {LONGEST_S} s");
    let mut cell = place.only_run().join("cells");
    while !cell.ends_with("x1") {
        cell = entries(&cell).pop().unwrap();
    }
    place.wait_for_step_in(&cell, &mut running, "02-point-query");

    let folder = callgrind_folder(&place).expect("callgrind has a folder");
    let mode = fs_err::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "{}", folder.display());
    if rustix::process::geteuid().is_root() {
        let listed = Command::new("ls").arg(&folder).uid(SOMEBODY).gid(SOMEBODY).output().unwrap();
        assert!(!listed.status.success(), "{listed:?}");
        assert!(listed.stdout.is_empty(), "{listed:?}");
    }

    let processes = descendants(running.id());
    assert!(processes.iter().any(|process| is_of_callgrind(*process)), "{processes:?}");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();
    for process in processes {
        assert!(!is_of_callgrind(process), "process {process} was left");
    }
    assert_eq!(entries(&place.join("data")), [place.join("data/.assay.lock")]);
}

/// Returns whether a process runs under callgrind.
fn is_of_callgrind(process: u32) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe")).read_link().unwrap_or_default();
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callgrind-"))
}

#[test]
fn an_interrupted_count_of_sqlite_leaves_nothing() {
    if callgrind_is_here_or_test_is_skipped() {
        interrupt_while_counting(SQLITE);
    }
}

#[test]
fn an_interrupted_count_of_postgres_leaves_nothing() {
    if callgrind_is_here_or_test_is_skipped() && postgres_is_here_or_test_is_skipped() {
        interrupt_while_counting(POSTGRES);
    }
}

#[test]
fn a_tool_that_fails_while_it_is_interrupted_leaves_an_interrupted_cell() {
    let place = Place::new();
    // Valgrind ends with 1 if a signal reaches it while it opens a pipe.
    let valgrind = "#!/bin/sh\n\
                    case \"$*\" in *--version) echo valgrind-3.19.0; exit;; esac\n\
                    trap 'exit 1' INT\n\
                    echo > counts\n\
                    while :; do sleep 0.01; done\n";
    let program = place.write_program("tools/valgrind.bin", valgrind);
    place.write_program("tools/vgdb", "#!/bin/sh\n");
    let tools = program.parent().unwrap().to_owned();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());

    place.write("plan.toml", &(reads() + SQLITE + &exact(1, OPERATIONS)));
    let mut command = Command::new(ASSAY);
    command.env("PATH", path);
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];
    let mut running = place.spawn_as(command, &args);
    eventually("the tool starts", || {
        running.must_run("the tool");
        place.join("counts").exists()
    });

    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();

    let shown = Shown::read(&place, &place.only_run());
    let counted: Vec<_> = shown.rows().iter().filter(|row| row["cell_kind"] == "exact").collect();
    assert!(counted.is_empty(), "{counted:?}");
    let directory = RunDir::open(place.only_run()).unwrap();
    let cells = directory.read_run().unwrap().cells;
    let exact_cell = cells.iter().find(|cell| cell.key.kind == CellKind::Exact).unwrap();
    let record = directory.cell(exact_cell).unwrap().read().unwrap();
    assert_eq!(record.status, Status::Interrupted);
}

#[test]
fn the_plan_of_versus_has_exact_cells() {
    let place = Place::new();
    let args = ["versus", "sqlite", "null", "--exact=cache", "--dry-run"];
    let ended: Ended = place.assay(&args).expect_code(0);
    ended.expect_in_stdout(&["[exact]", "simulate = \"cache\""]);
}
