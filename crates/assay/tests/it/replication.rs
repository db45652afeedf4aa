//! Replicas that fall behind, stop for a while, and go away with assay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{POSTGRES, Place, send, with_children, workload};
use crate::postgres_is_here_or_test_is_skipped;
use crate::show_json::{Shown, number};

/// Returns a plan with a replica, and more lines of its config, whose step `l.i1` ends then.
fn plan(end: &str, replica: &str) -> String {
    let steps = format!("steps = [\"l.i0\", \"l.x\", \"l.i1\"]\nstep.\"l.i1\".{end}");
    workload(5_000, 1_000, "1s", &steps) + POSTGRES + "replicas = 1\n" + replica
}

/// A step whose replica has too little CPU for what its primary writes, even where the primary shares
/// its processors and writes less.
const OVERLOADED: &str = "time = '8s'\nstep.\"l.i1\".rate = \"9k\"";

/// Returns the end of a step that outlasts an accident of a replica, and whose rate leaves the
/// processors to other tests.
pub(crate) fn at_a_low_rate(time: &str) -> String {
    format!("time = '{time}'\nstep.\"l.i1\".rate = \"2k\"")
}

/// The lag of `replica_1` in a step, by heartbeats and by positions in the log.
#[derive(Debug)]
struct LagByLog {
    /// The mean lag over the second half of the step in seconds: by heartbeats.
    lag_s: f64,
    /// The same by positions: since when the primary's log has been longer than what the replica
    /// has replayed.
    lag_s_by_log: f64,
    /// The log that the replica lacked in the end over the bytes that it replayed per second, in
    /// seconds.
    catch_up_s_by_log: f64,
}

impl LagByLog {
    /// Computes it from the record of a step. `position` is the counter of the bytes in the
    /// primary's log.
    fn of(run: &Path, step: &str, position: &str) -> Self {
        let step = crate::stall::step(run, step);
        let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        step.for_each_counter(|row| {
            let points = series.entry(row.name.to_owned()).or_default();
            points.push((row.at_ns as f64 / 1e9, row.value));
        })
        .unwrap();
        let half = step.step().elapsed_ns as f64 / 2e9;
        let second_half = |name: &str| -> Vec<(f64, f64)> {
            let points = series[name].iter().copied();
            points.filter(|(at, _)| *at > half).collect()
        };

        let written = &series[position];
        let lacks = second_half("replica_1.replayed_bytes");
        let replayed = |lacks: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let points = lacks.iter();
            let position = |at| interpolated(written.iter().copied(), at);
            points.map(|(at, lacks)| (*at, position(*at) - lacks)).collect()
        };

        let lag = |(at, bytes): &(f64, f64)| {
            let swapped = written.iter().map(|(at, bytes)| (*bytes, *at));
            (*at, at - interpolated(swapped, *bytes))
        };

        let lags: Vec<(f64, f64)> = replayed(&lacks).iter().map(lag).collect();
        let lag_ms = &series["replica_1.lag_ms"];
        let then = |(at, _): &(f64, f64)| (*at, interpolated(lag_ms.iter().copied(), *at) / 1e3);
        Self {
            lag_s: mean(&lacks.iter().map(then).collect::<Vec<_>>()).1,
            lag_s_by_log: mean(&lags).1,
            catch_up_s_by_log: lacks.last().unwrap().1
                / slope(&replayed(&series["replica_1.replayed_bytes"])),
        }
    }
}

/// Returns the value of a growing function at `x` by its points.
fn interpolated(points: impl Iterator<Item = (f64, f64)>, x: f64) -> f64 {
    let points: Vec<(f64, f64)> = points.collect();
    let after = points.iter().position(|it| it.0 >= x);
    let after = after.unwrap_or(points.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

/// Returns the mean point.
fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let sums = points.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    (sums.0 / points.len() as f64, sums.1 / points.len() as f64)
}

/// Returns the slope of a least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let (mean_x, mean_y) = mean(points);
    let products = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
    let squares = points.iter().map(|(x, _)| (x - mean_x).powi(2));
    products.sum::<f64>() / squares.sum::<f64>()
}

/// Runs a plan whose replica has too little CPU in `l.i1`, and compares its lag with the positions
/// in the log.
pub(crate) fn lag_agrees_with_the_log(place: &Place, plan: &str, target: &str, position: &str) {
    let run = place.run(plan, &[]).expect_code(0).run_directory();
    let shown = Shown::read(place, &run);
    shown.assert_all_valid();
    let row = shown.row(target, "l.i1");
    assert_eq!(row["lag"]["verdict"], "grows", "{row}");
    let by_log = LagByLog::of(&run, "l.i1", position);
    let ratio = by_log.lag_s / by_log.lag_s_by_log;

    // A replica that waits for a processor reports its position late, to the log as to the
    // heartbeats.
    assert!((0.8..1.25).contains(&ratio), "{by_log:?} {row}");
    let catch_up_s = number(&row["metrics"]["catch_up_s"]);

    // The replica replays some of the log faster than the rest, and shares processors with its
    // primary and other tests.
    let ratio = catch_up_s / by_log.catch_up_s_by_log;
    assert!((0.5..2.0).contains(&ratio), "{by_log:?} {row}");
}

/// Compares the lag of a replica of PostgreSQL with the positions in the log.
pub(crate) fn postgres_lag_agrees_with_the_log(place: &Place) {
    let plan = plan(OVERLOADED, "replica.cpu-quota = 0.02\n");
    lag_agrees_with_the_log(place, &plan, "pg.base", "wal_position_bytes");
}

/// The time for which a replica is stopped.
const STOPPED: Duration = Duration::from_secs(5);

/// Runs a plan whose replica is stopped for a while in `l.i1`.
pub(crate) fn run_with_a_stopped_replica(place: &Place, plan: &str, target: &str) -> PathBuf {
    let mut running = place.spawn_run(plan, &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    let replica = with_children(place.server(&format!("{target}/replica_1")));
    replica.iter().for_each(|&pid| send(pid, Signal::STOP));
    std::thread::sleep(STOPPED);
    replica.iter().for_each(|&pid| send(pid, Signal::CONT));
    running.wait().expect_code(0);
    place.assert_nothing_is_left();
    place.only_run()
}

/// Returns the longest time of this kind of an insert or a delete in a row, in milliseconds.
fn longest_write_ms(row: &Value, time: &str) -> f64 {
    let longest = ["insert", "delete"].map(|it| number(&row["ops"][it][time]["max"]));
    longest[0].max(longest[1]) / 1e3
}

#[test]
fn a_stopped_replica_lags_by_as_much_and_leaves_the_primary_alone() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let run = run_with_a_stopped_replica(&place, &plan(&at_a_low_rate("9s"), ""), "pg.base");
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let row = shown.row("pg.base", "l.i1");
    let lag_ms = number(&row["metrics"]["lag_ms_max"]);

    // A heartbeat is written each 0.1 s, and later on a busy machine.
    assert!(lag_ms >= 4_500.0, "{row}");
    // A busy machine may miss the rate, so that writes begin late.
    assert!(longest_write_ms(row, "service_us") < 4_000.0, "{row}");
    for metric in ["lag_bytes_max", "replica_cpu_us_per_op"] {
        assert!(number(&row["metrics"][metric]) > 0.0, "{row}");
    }

    assert!(number(&row["metrics"]["debt_replica_mb"]) >= 0.0, "{row}");
    let catch_up_s = number(&row["metrics"]["catch_up_s"]);
    assert!(catch_up_s < lag_ms / 1e3, "{row}");

    // Rows, keys and indexes of the replica were compared.
    let step = crate::stall::step(&run, "l.i1");
    let mut checks = step.step().checks.iter();
    let check = checks.find(|check| check.what == "contents of pi1 on replica_1");
    assert!(check.is_some_and(|check| check.holds && check.found.contains("pdc")));
}

#[test]
fn a_primary_that_waits_for_a_stopped_replica_shows_it_in_response_times() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let plan = plan(&at_a_low_rate("9s"), "");
    let plan = plan.replace("set = {", "set = { synchronous_standby_names = \"*\",");
    let run = run_with_a_stopped_replica(&place, &plan, "pg.base");
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let row = shown.row("pg.base", "l.i1");
    assert!(longest_write_ms(row, "response_us") >= 4_500.0, "{row}");

    // The heartbeat does not wait.
    assert!(number(&row["metrics"]["lag_ms_max"]) >= 4_500.0, "{row}");

    // The inserter and the deleter do.
    let mut samples = BTreeMap::new();
    let step = crate::stall::step(&run, "l.i1");
    step.for_each_counter(|row| {
        if ["wait.IPC:SyncRep", "wait_samples"].contains(&row.name) {
            let second: &mut BTreeMap<String, f64> = samples.entry(row.at_ns).or_default();
            second.insert(row.name.to_owned(), row.value);
        }
    })
    .unwrap();
    let waiting =
        samples.values().filter_map(|it| Some(it.get("wait.IPC:SyncRep")? / it["wait_samples"]));
    let most = waiting.reduce(f64::max).unwrap();
    assert!((1.0..=2.0).contains(&most), "{most} of {samples:?}");
}

#[test]
fn a_replica_that_does_not_start_leaves_its_log_and_nothing_else() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();

    // A replica needs as many as its primary.
    let too_few = "replica.set.max_worker_processes = 0\n";
    place
        .run(&plan("rows = 1000", too_few), &[])
        .expect_code(1)
        .expect_in_stderr(&["cannot start replica_1", "insufficient parameter settings"]);
    place.assert_nothing_is_left();
    assert!(!place.join("data/pg.base").exists());
    let cell = place.only_run().join("cells/pg.base/c1/r1");
    for kept in ["server.log", "server.conf", "replica_1.log", "replica_1.conf"] {
        let text = fs_err::read_to_string(cell.join(kept)).unwrap();
        assert!(!text.is_empty(), "{kept}");
    }
}

#[test]
fn reads_from_a_replica_cost_the_replica_and_not_the_primary_and_pass_their_checks() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::on_disk();
    // Costs are the difference of two samples, and a busy machine may take one in two seconds: the
    // longer step has them.
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]\n[workload.insert.variant.short]\n\
                 [workload.insert.variant.long]\nstep.\"qp100\".time = \"4s\"";

    let text = workload(5_000, 1_000, "1s", steps)
        + POSTGRES
        + "replicas = 2\n[config.postgres.far]\nextends = \"base\"\nreads = \"replica\"\n";
    let only = ["--only", "pg.base/short/*", "--only", "pg.far/long/*"];
    let run = place.run(&text, &only).expect_code(0).run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    for step in ["qr100", "qp100"] {
        let [near, far] = ["pg.base", "pg.far"];
        // Each query commits where it is executed.
        let commits_per_query = |target| {
            let row = shown.row(target, step);
            number(&row["counters"]["commit_count"]) / number(&row["ops"]["query"]["count"])
        };
        assert!(commits_per_query(near) >= 1.0, "{step}");
        assert!(commits_per_query(far) < 1.0, "{step}");
    }

    for name in [
        "server_cpu_us_per_op",
        "replica_cpu_us_per_op",
        "replica_write_kb_per_op",
        "replica_switches_per_op",
        "server_switches_per_op",
    ] {
        assert!(number(&shown.row("pg.far", "qp100")["metrics"][name]) > 0.0, "{name}");
    }

    let cell = fs_err::read_to_string(run.join("cells/pg.far/long/c1/r1/cell.json")).unwrap();
    assert!(cell.contains("\"reads\""), "{cell}");
    let refused = place.run(&text.replace("replicas = 2", "replicas = 0"), &[]);
    refused.expect_code(2).expect_in_stderr(&["it reads from replicas, but has none"]);
}

#[test]
fn commits_that_wait_for_a_lost_replica_fail_the_step() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let warm_up = "name = \"test\"\n[workload.sysbench]\ntables = 1\nrows = 1000\nwarmup = \"100s\"\n\
                   steps = [\"load\", \"update-index\"]\n";
    let warm_up = warm_up.to_owned() + POSTGRES + "replicas = 1\n";
    for (plan, step) in
        [(plan("rows = 1_000_000_000", ""), "03-l.i1"), (warm_up, "02-update-index")]
    {
        let place = Place::new();
        let plan = plan.replace("set = {", "set = { synchronous_standby_names = \"*\",");
        let mut running = place.spawn_run(&plan, &["--ignore-space"]);
        place.wait_for_step(&mut running, step);
        send(place.server("pg.base/replica_1"), Signal::KILL);
        running
            .wait()
            .expect_code(1)
            .expect_in_stderr(&["replica_1 no longer follows its primary", "its server has ended"]);
        place.assert_nothing_is_left();
    }
}

#[test]
fn a_replica_goes_with_assay_and_a_lost_one_fails_the_step_which_is_resumed() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let place = Place::new();
    let mut running = place.spawn_run(&plan(&at_a_low_rate("6s"), ""), &[]);
    place.wait_for_step(&mut running, "03-l.i1");
    send(place.server("pg.base/replica_1"), Signal::KILL);
    running
        .wait()
        .expect_code(1)
        .expect_in_stderr(&["replica_1 no longer follows its primary", "entering standby mode"]);
    place.assert_nothing_is_left();
    let run = place.only_run();
    let resumed = ["run", "--resume", run.to_str().unwrap(), "--data", "data"];
    let mut running = place.spawn(&resumed);
    place.wait_for_step(&mut running, "03-l.i1");
    send(place.server("pg.base"), Signal::KILL);
    running.wait().expect_code(1);
    place.assert_nothing_is_left();
    let mut running = place.spawn(&resumed);
    place.wait_for_step(&mut running, "03-l.i1");
    running.signal(Signal::KILL);
    running.wait();
    crate::place::eventually("no process is left", || place.processes().is_empty());
    place.assay(&resumed).expect_code(0);
    place.assert_nothing_is_left();
    Shown::read(&place, &run).assert_all_valid();
}
