//! A server that pauses for two seconds: the report shows what clients with a schedule would have
//! noticed.

use std::collections::BTreeMap;
use std::time::Duration;

use load::{Clock, SystemClock};
use record::{RunDir, StepReader};
use rustix::process::Signal;

use crate::live::Watched;
use crate::place::{POSTGRES, Place, SQLITE, send, with_children, workload};
use crate::show_json::Shown;

const RATE: u64 = 1000;
/// So few commits that a slow server catches up with them soon, too.
const ROWS_PER_COMMIT: u64 = 20;
const STALL_S: u64 = 2;
const STEP_S: u32 = 6;
const STEP: &str = "6s";

pub(crate) fn step(run: &std::path::Path, name: &str) -> StepReader {
    let run = RunDir::open(run).unwrap();
    let cell = run.cell(&run.read_run().unwrap().cells[0]).unwrap();
    let mut steps = cell.read_steps().unwrap().into_iter();
    steps.find(|step| step.step().name == name).unwrap()
}

/// The work of a second.
#[derive(Debug)]
struct Done {
    ok: u64,
    response_ns_max: u64,
}

/// Operations that took so long or longer.
pub(crate) fn at_least(histogram: &hdrhistogram::Histogram<u64>, milliseconds: u64) -> u64 {
    histogram.count_between(milliseconds * 1_000_000, u64::MAX)
}

/// A pause of the whole server, with its least duration: a sleep may be longer than requested.
pub(crate) struct Stall {
    pub(crate) least_ns: u64,
}

/// Stops all processes of a server for a while.
pub(crate) fn stall(server: &[u32]) -> Stall {
    let clock = SystemClock::begin();
    server.iter().for_each(|&pid| send(pid, Signal::STOP));
    let stopped = clock.now();
    std::thread::sleep(Duration::from_secs(STALL_S));
    let ends = clock.now();
    server.iter().for_each(|&pid| send(pid, Signal::CONT));
    Stall { least_ns: ends - stopped }
}

/// Measures a step in which the server pauses.
pub(crate) fn a_stall_shows(place: &Place) {
    let steps = format!(
        "steps = [\"l.i0\", \"l.x\", \"qr1000\"]\nstep.qr1000.rows-per-commit = {ROWS_PER_COMMIT}"
    );
    let plan = workload(20_000, 1_000, STEP, &steps) + POSTGRES;
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr1000");
    std::thread::sleep(Duration::from_millis(1300));
    let server = with_children(place.server("pg.base"));
    assert!(server.len() > 5, "{server:?}");
    let stall = stall(&server);
    running.wait().expect_code(0);
    place.assert_nothing_is_left();

    let run = place.only_run();
    Shown::read(place, &run).assert_all_valid();

    let step = step(&run, "qr1000");

    // Every second has its row for every kind.
    let mut seconds: BTreeMap<u32, BTreeMap<String, Done>> = BTreeMap::new();
    step.for_each_interval(|row| {
        let kinds = seconds.entry(row.second).or_default();
        let done = Done { ok: row.ok, response_ns_max: row.response_ns_max };
        assert!(kinds.insert(row.kind.to_owned(), done).is_none(), "one client");
    })
    .unwrap();
    let count = seconds.len() as u32;
    assert!(count >= STEP_S, "{count} seconds");
    assert!(seconds.keys().copied().eq(0..count), "{seconds:?}");
    for kind in ["delete", "insert", "query"] {
        let mut rows = seconds.values();
        assert!(rows.all(|kinds| kinds.contains_key(kind)), "{seconds:?}");
    }

    let histograms = step.histograms().unwrap();
    let of = |tag: &str| &histograms[tag];
    for kind in ["insert", "delete"] {
        let response = of(&format!("{kind}.response"));
        for milliseconds in [100, 500, 1000, 1500] {
            let found = at_least(response, milliseconds);
            // All that were due in the stall are late, each by what was left of it, perhaps without
            // the first;
            let late_ns = stall.least_ns.saturating_sub(milliseconds * 1_000_000);
            let due = late_ns as f64 / 1e9 * (RATE / ROWS_PER_COMMIT) as f64;
            // and more, while the server catches up with what is due meanwhile, however long it
            // takes for that: in seconds that have such times, but for what a histogram
            // rounds.
            let has_late = |kinds: &&BTreeMap<String, Done>| {
                kinds[kind].response_ns_max >= milliseconds * 998_000
            };
            let late_seconds = seconds.values().filter(has_late);
            let most: u64 = late_seconds.map(|kinds| kinds[kind].ok).sum();
            assert!(
                found as f64 >= due - 1.0 && found <= most,
                "{found} {kind}s responded after {milliseconds} ms or more, not {due} at least and {most} at most"
            );
        }
        assert!(response.max() as f64 >= 0.95 * stall.least_ns as f64);
    }

    // The only operation of each connection that waited for the server itself.
    for kind in ["insert", "delete", "query"] {
        let waited = at_least(of(&format!("{kind}.service")), 1000);
        assert!(waited >= 1, "no {kind} waited for the server");
    }

    // The stall's whole seconds have nothing in them, and the host was still seen then.
    let is_empty = |kinds: &BTreeMap<String, Done>| kinds.values().all(|row| row.ok == 0);
    let empty: Vec<u32> =
        seconds.iter().filter(|(_, kinds)| is_empty(kinds)).map(|(second, _)| *second).collect();
    let whole = stall.least_ns / 1_000_000_000;
    assert!(empty.len() as u64 + 1 >= whole, "{seconds:?}");
    let host = step.host().unwrap().seconds;
    let was_seen = |second: &u32| host.contains(second);
    assert!(empty.iter().any(was_seen), "{empty:?}: {host:?}");
}

#[test]
fn a_stall_of_assay_itself_makes_the_step_invalid_and_is_not_a_stall_of_the_engine() {
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    let plan = workload(2_000, 1_000, STEP, steps) + SQLITE;
    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let queries = r#"step="qr100",role="query""#;
    Watched::find(&mut running).wait_for_more("assay_operations_total", queries, 0.0);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(STALL_S));
    running.signal(Signal::CONT);
    let ended = running.wait().expect_code(4);
    assert!(ended.stdout.contains("assay itself was stalled for "), "{ended}");

    let run = place.only_run();
    let step = step(&run, "qr100");
    let held_ns = step.step().held_up.iter().map(|it| it.to_ns - it.from_ns);
    let held_s = held_ns.sum::<u64>() as f64 / 1e9;

    assert!(held_s > 0.9 * STALL_S as f64, "{held_s} s");

    // With it the engine stood still: whole seconds of nothing.
    let mut idle_count = 0;
    step.for_each_interval(|row| idle_count += u32::from(row.kind == "query" && row.ok == 0))
        .unwrap();
    assert!(idle_count >= 1);
    let shown = Shown::read(&place, &run);
    let row = shown.row("lite.base", "qr100");
    assert_eq!(row["valid"], false);
    assert_eq!(row["quality"]["stall_count"], 0, "{}", row["quality"]);
}
