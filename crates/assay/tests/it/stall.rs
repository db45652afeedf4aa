//! A server that stands still for two seconds: what a client with a schedule would have noticed is what is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use record::{RunDir, StepReader};
use rustix::process::Signal;

use crate::place::{POSTGRES, Place, send, with_children, workload};
use crate::show_json::{Shown, number};
use crate::{have_the_machine_alone, postgres_is_here_or_test_is_skipped};

const RATE: u64 = 1000;
const ROWS_PER_COMMIT: u64 = 5;
const STALL_S: u64 = 2;
const STEP_S: u32 = 8;

fn step(run: &std::path::Path, name: &str) -> StepReader {
    let run = RunDir::open(run).unwrap();
    let cell = run.cell(&run.read_run().unwrap().cells[0]).unwrap();
    let mut steps = cell.read_steps().unwrap().into_iter();
    steps.find(|step| step.step().name == name).unwrap()
}

/// Operations that took so long or longer.
fn at_least(histogram: &hdrhistogram::Histogram<u64>, milliseconds: u64) -> u64 {
    histogram.count_between(milliseconds * 1_000_000, u64::MAX)
}

#[test]
fn a_stall_of_the_server_shows_in_the_response_time_of_all_that_it_delayed() {
    let _machine = have_the_machine_alone();
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let steps = format!(
        "steps = [\"l.i0\", \"l.x\", \"qr1000\"]\nstep.qr1000.rows-per-commit = {ROWS_PER_COMMIT}"
    );
    let plan = workload(20_000, 1_000, STEP_S, &steps) + POSTGRES;
    let mut running = place.spawn_run(&plan, &[]);
    place.wait_for_step(&mut running, "03-qr1000");
    std::thread::sleep(Duration::from_millis(800));
    let server = with_children(place.server("pg.base"));
    assert!(server.len() > 5, "{server:?}");
    server.iter().for_each(|&pid| send(pid, Signal::STOP));
    std::thread::sleep(Duration::from_secs(STALL_S));
    server.iter().for_each(|&pid| send(pid, Signal::CONT));
    running.wait().expect_code(0);
    place.assert_nothing_is_left();

    let run = place.only_run();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    let row = shown.row("pg.base", "qr1000");
    let achieved = number(&row["sla"]["achieved"]) / RATE as f64;
    assert!((0.99..=1.01).contains(&achieved), "{}", row["sla"]);

    let step = step(&run, "qr1000");
    let histograms = step.histograms().unwrap();
    let of = |tag: &str| &histograms[tag];
    // All that were due in the stall, each late by what was left of it.
    let due = STALL_S * RATE / ROWS_PER_COMMIT;
    for kind in ["insert", "delete"] {
        let response = of(&format!("{kind}.response"));
        for (milliseconds, share) in [(100, 0.95), (500, 0.75), (1000, 0.5), (1500, 0.25)] {
            let (found, expected) = (at_least(response, milliseconds) as f64, due as f64 * share);
            // More, while the server catches up with what is due meanwhile.
            assert!(
                (expected * 0.95..=expected * 1.7 + 10.0).contains(&found),
                "{found} {kind}s responded after {milliseconds} ms or more, not about {expected}"
            );
        }
        assert!(response.max() >= 1_900_000_000);
    }
    // The only operation of each connection that waited for the server itself.
    for kind in ["insert", "delete", "query"] {
        assert_eq!(
            at_least(of(&format!("{kind}.service")), 1000),
            1,
            "{kind}s that the server took a second for"
        );
    }

    // Every second has its row for every kind, and at least one of the stall has nothing in it.
    let mut ok: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for row in step.intervals().unwrap() {
        *ok.entry(row.second)
            .or_default()
            .entry(row.kind)
            .or_default() += row.ok;
    }
    // The last replies may come just after the time is up.
    let seconds = ok.len() as u32;
    assert!((STEP_S..=STEP_S + 1).contains(&seconds), "{ok:?}");
    assert!(ok.keys().copied().eq(0..seconds), "{ok:?}");
    let kinds = ["delete", "insert", "query"];
    for second in ok.values() {
        assert!(
            kinds.iter().all(|&kind| second.contains_key(kind)),
            "{ok:?}"
        );
    }
    let empty = ok
        .values()
        .filter(|second| second.values().all(|&ok| ok == 0));
    assert!((1..=2).contains(&empty.count()), "{ok:?}");
    // The host was still seen in the stall.
    assert!(step.host().unwrap().seconds.len() >= STEP_S as usize);
}
