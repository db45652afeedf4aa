//! Targets that take turns within each step: what is recorded of the turns, and what goes wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use record::{CellRef, RunDir, TurnRow};
use rustix::process::Signal;
use serde_json::Value;

use crate::place::{
    Ended, POSTGRES, Place, SQLITE, comes_about, entries, eventually, is_alive, workload,
};
use crate::{postgres_is_here_or_test_is_skipped, rocksdb_or_test_is_skipped};

/// An interrupted run ends within a second or two, on a busy machine too.
const SOON_S: u64 = 30;

/// A second config of SQLite.
const OTHER: &str = "[config.sqlite.other]\nextends = \"base\"\nset.cache_size = -4000\n";

/// Returns a plan with turns of 10 ms, these lines, and these builds and configs.
fn plan(lines: &str, builds: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]\ntransactions = \"small\"";
    format!("turns = \"10ms\"\n{lines}\n{}{builds}", workload(2000, 200, "300ms", steps))
}

/// The work of a target in a step.
struct StepOfTarget {
    started_unix_ns: u64,
    /// The start in the header of the latency log, in seconds with three decimals.
    log_started_unix_s: String,
    turns: Vec<TurnRow>,
    /// The operations that the step counted, by kind.
    counted: BTreeMap<String, u64>,
}

/// The work of the targets in a step, by their names.
type TurnsOfStep = BTreeMap<String, StepOfTarget>;

/// Returns the turns of a repeat's steps, by the name of the step.
fn turns_of(run: &Path, repeat: u32) -> BTreeMap<String, TurnsOfStep> {
    let directory = RunDir::open(run).unwrap();
    let is_of_repeat = |cell: &&CellRef| cell.key.repeat == repeat;
    let mut steps: BTreeMap<String, TurnsOfStep> = BTreeMap::new();
    for cell in directory.read_run().unwrap().cells.iter().filter(is_of_repeat) {
        for step in directory.cell(cell).unwrap().read_steps().unwrap() {
            let counted = step.step().ops.iter().map(|(kind, ops)| (kind.clone(), ops.ok));
            let of_target = StepOfTarget {
                started_unix_ns: step.step().started_unix_ns,
                log_started_unix_s: log_start(step.path()),
                turns: step.turns().unwrap(),
                counted: counted.collect(),
            };
            let of_step = steps.entry(step.step().name.clone()).or_default();
            of_step.insert(cell.key.target.clone(), of_target);
        }
    }

    steps
}

/// Returns the start in the header of a step's latency log.
fn log_start(step: &Path) -> String {
    let log = fs_err::read_to_string(step.join("latency.hlog")).unwrap();
    let (_, after_name) = log.split_once("#[StartTime: ").unwrap();
    after_name.split(' ').next().unwrap().to_owned()
}

/// Checks what holds for the turns of all engines.
fn check_turns(run: &Path, repeat: u32, targets: usize) {
    let steps = turns_of(run, repeat);
    assert_eq!(steps.len(), 4, "{:?}", steps.keys());
    for (step, of_targets) in &steps {
        assert_eq!(of_targets.len(), targets, "{step}");

        for (target, StepOfTarget { turns, counted, .. }) in of_targets {
            // Every operation belongs to a turn.
            let mut in_turns: BTreeMap<String, u64> = BTreeMap::new();
            for (kind, ok) in turns.iter().flat_map(|turn| &turn.ok) {
                *in_turns.entry(kind.clone()).or_default() += ok;
            }
            assert_eq!(&in_turns, counted, "{target} in {step}");

            // The target's clock stands still between its turns.
            assert_eq!(turns[0].began_ns, 0, "{target} in {step}");
            for two in turns.windows(2) {
                assert_eq!(two[0].began_ns + two[0].length_ns, two[1].began_ns, "{step}");
            }
        }

        // One target works at a time, by the host's clock.
        let mut all: Vec<&TurnRow> =
            of_targets.values().flat_map(|of_target| &of_target.turns).collect();
        all.sort_by_key(|turn| turn.number);
        for two in all.windows(2) {
            assert_eq!(two[0].number + 1, two[1].number, "{step}");
            assert!(two[0].at_ns + two[0].length_ns <= two[1].at_ns, "{step}: {two:?}");
        }
        check_starts(step, of_targets);
    }
}

/// Checks that a target's step starts with its first turn, not when it is ready, in its log as well.
fn check_starts(step: &str, of_targets: &TurnsOfStep) {
    for of_target in of_targets.values() {
        let log_started_s: f64 = of_target.log_started_unix_s.parse().unwrap();
        let difference_s = log_started_s - of_target.started_unix_ns as f64 / 1e9;
        assert!(difference_s.abs() < 0.0011, "{step}: {difference_s} s");
    }

    let mut in_order: Vec<&StepOfTarget> = of_targets.values().collect();
    in_order.sort_by_key(|of_target| of_target.turns[0].number);
    for two in in_order.windows(2) {
        let first_ended_ns = two[0].started_unix_ns + two[0].turns[0].length_ns;
        assert!(first_ended_ns <= two[1].started_unix_ns, "{step}");
    }
}

/// Checks that a block has two turns of each target, and that its second half mirrors the first.
fn check_blocks(of_targets: &TurnsOfStep) {
    let mut blocks: BTreeMap<u32, BTreeMap<u32, &str>> = BTreeMap::new();
    for (target, of_target) in of_targets {
        for turn in &of_target.turns {
            blocks.entry(turn.block).or_default().insert(turn.number, target);
        }
    }

    // A load that ends leaves the rest to the others.
    let whole: Vec<Vec<&str>> = blocks
        .into_values()
        .map(|turns| turns.into_values().collect::<Vec<&str>>())
        .filter(|turns| turns.len() == 2 * of_targets.len())
        .collect();
    assert!(!whole.is_empty());
    for turns in whole {
        let mut mirrored = turns.clone();
        mirrored.reverse();
        assert_eq!(turns, mirrored);
    }
}

fn shown(place: &Place, run: &Path) -> Value {
    let run = run.to_str().unwrap();
    let ended = place.assay(&["show", run, "--format", "json"]).expect_code(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn each_operation_belongs_to_a_turn_and_each_target_has_a_clock_of_its_own() {
    let place = Place::new();
    let plan = plan("clients = [2]\nplacement = \"shuffled\"", &format!("{SQLITE}{OTHER}"));
    let plan = plan.replace("300ms", "1s");
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    check_turns(&run, 1, 2);
    check_blocks(&turns_of(&run, 1)["qr100"]);

    // A step of a second has a second of its own time, however long the turns of the others took. An
    // operation that waits for a processor may end later.
    for row in shown(&place, &run)["rows"].as_array().unwrap() {
        assert_eq!(row["valid"], true, "{row}");
        if row["step"] == "qr100" {
            let seconds = row["seconds"].as_f64().unwrap();
            assert!((1.0..1.9).contains(&seconds), "{seconds}");
            // On a busy machine they are longer than 10 ms.
            assert!(row["turns"].as_u64().unwrap() > 2, "{row}");
        }
    }
}

#[test]
fn a_rate_is_kept_in_a_target_s_own_time() {
    let place = Place::new();
    let plan = plan("", &format!("{SQLITE}{OTHER}")).replace("300ms", "1s");
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    for row in shown(&place, &run)["rows"].as_array().unwrap() {
        if row["step"] == "qr100" {
            // 100 rows per second for one second of the target's own time, those included for which a
            // busy machine had no time.
            let inserts = &row["ops"]["insert"];
            let [offered, done, rows] =
                ["offered", "count", "rows"].map(|key| inserts[key].as_f64().unwrap());
            assert!(done > 0.0 && (80.0..=120.0).contains(&(offered * rows / done)), "{row}");
        }
    }
}

#[test]
fn three_servers_take_turns_and_rest_between_them() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let others = "[config.postgres.b]\nextends = \"base\"\nset.work_mem = \"8MB\"\n\
                  [config.postgres.c]\nextends = \"base\"\nset.work_mem = \"16MB\"\n";
    let plan = plan("placement = \"pinned\"", &format!("{POSTGRES}{others}"));
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    check_turns(&run, 1, 3);

    let of_query = &turns_of(&run, 1)["qr100"];
    check_blocks(of_query);
    for of_target in of_query.values() {
        let used = of_target.turns.iter().filter_map(|turn| turn.server);
        let cpu_ns: u64 = used.map(|server| server.cpu_ns).sum();
        assert!(cpu_ns > 0, "the server works in its turns");
    }
}

#[test]
fn libraries_in_processes_of_their_own_take_turns() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let library = libraries[0].display();
    let builds = format!(
        "\n[build.rocks]\nrocksdb = '{library}'\n[config.rocksdb.a]\n[config.rocksdb.b]\nset.block_size = 8192\n"
    );
    let run = place.run(&plan("repeats = 2", &builds), &[]).expect_code(0).run_directory();
    for repeat in [1, 2] {
        check_turns(&run, repeat, 2);
    }
}

#[test]
fn a_target_that_fails_leaves_the_turns_to_the_others() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let broken = "[config.postgres.broken]\nextends = \"base\"\nset.temp_file_limit = 0\n\
                  set.maintenance_work_mem = \"1MB\"\n";
    let plan = plan("", &format!("{POSTGRES}{broken}")).replace("2000", "60000");
    let ended: Ended = place.run(&plan, &[]).expect_code(1);
    let ended = ended.expect_in_stderr(&["temp_file_limit"]);
    let directory = entries(&place.join("results")).into_iter().find(|path| path.is_dir());
    let run = directory.unwrap_or_else(|| panic!("no run\n{ended}"));
    let rows = shown(&place, &run);
    let of_base = rows["rows"].as_array().unwrap().iter().filter(|row| row["target"] == "pg.base");
    assert_eq!(of_base.filter(|row| row["valid"] == true).count(), 4);
}

#[test]
fn an_interrupted_group_is_measured_again() {
    let place = Place::new();
    let long = plan("", &format!("{SQLITE}{OTHER}")).replace("300ms", "60s");
    let mut running = place.spawn_run(&long, &[]);
    eventually("both targets query", || {
        running.must_run("its query step");
        running.said().matches("l.i1").count() == 2
    });

    running.signal(Signal::INT);
    running.wait().expect_code(130);

    let run = entries(&place.join("results")).into_iter().find(|path| path.is_dir()).unwrap();
    let args = ["run", "--resume", run.to_str().unwrap(), "--quiet"];
    let mut again = place.spawn(&args);
    eventually("the cells began again", || {
        again.must_run("its query step");
        let cells = run.join("cells/lite.base/c1");
        entries(&cells).len() == 2
    });

    again.signal(Signal::INT);
    again.wait().expect_code(130);
}

/// Interrupts runs in turns of SQLite and a library, each so many milliseconds after its start. All
/// end at once: a process that waits for its turn would otherwise be killed after a minute.
fn interrupt_after(moments_ms: impl IntoIterator<Item = u64>) {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let rocksdb = format!("[build.rocks]\nrocksdb = '{}'\n", libraries[0].display());
    let plan = format!(
        "turns = \"10ms\"\nrepeats = 3\n{}{SQLITE}{rocksdb}",
        workload(2000, 200, "60s", "steps = [\"l.i0\", \"l.x\", \"qr100\"]")
    );

    for moment_ms in moments_ms {
        let place = Place::new();
        let mut running = place.spawn_run(&plan, &[]);
        eventually("the run begins", || {
            running.must_run("its first cell");
            place.join("results").read_dir().unwrap().next().is_some()
        });
        std::thread::sleep(Duration::from_millis(moment_ms));

        running.signal(Signal::INT);
        let has_ended = comes_about(SOON_S, || !is_alive(running.id()));
        assert!(has_ended, "no end {SOON_S} s after an interruption at {moment_ms} ms");
        running.wait().expect_code(130);
        place.assert_nothing_is_left();
    }
}

#[test]
fn an_interruption_ends_a_run_in_turns_at_once() {
    interrupt_after([0, 200, 500, 900, 1400, 2500]);
}

#[test]
#[ignore = "some moments are enough most of the time"]
fn an_interruption_at_any_moment_ends_a_run_in_turns_at_once() {
    interrupt_after((0..20).map(|step| step * 150));
}

#[test]
fn targets_that_can_t_take_turns_are_refused_before_anything_runs() {
    let place = Place::new();
    let both = format!("{SQLITE}{OTHER}");
    place
        .run(&plan("order = \"grouped\"\nrepeats = 2", &both), &[])
        .expect_code(2)
        .expect_in_stderr(&["the targets cannot take turns: `order` is `grouped`"]);

    let url = "\n[build.one]\nurl = \"postgres://u@127.0.0.1:1/d\"\n\
               [build.two]\nurl = \"postgres://u@127.0.0.1:1/d\"\n[config.postgres.base]\n";
    place
        .run(&plan("", url), &[])
        .expect_code(2)
        .expect_in_stderr(&["`two.base` has the database of another target"]);

    let limits = "\n[build.pg]\npostgres = \"distribution\"\n[config.postgres.a]\nmemory = \"1000TiB\"\n\
                  [config.postgres.b]\nmemory = \"1000TiB\"\n";
    place
        .run(&plan("", limits), &[])
        .expect_code(2)
        .expect_in_stderr(&["their limits of `memory` are"]);
}
