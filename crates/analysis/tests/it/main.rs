//! From a run directory to figures and JSON.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bisect;
mod compare;
mod exact;
mod history;
mod lag;
mod random;
mod simulations;
mod swing;
mod tune;

use std::collections::BTreeMap;
use std::path::Path;

use analysis::figures::{Row, figures};
use analysis::json;
use record::{
    Cell, CellRef, Connection, Counter, Failure, HostColumn, IntervalRow, Ops, Run, RunDir, Status,
    Step, StepKind, latency_histogram,
};

const TARGET: &str = "pg17.base";
const SECONDS: u32 = 12;

fn cell(repeat: u32) -> CellRef {
    CellRef::new(TARGET, "insert", None, 2, repeat)
}

fn run(repeats: u32) -> Run {
    Run { name: "figures".into(), cells: (1..=repeats).map(cell).collect(), ..Run::default() }
}

/// Returns a step of two clients that insert 10 times 50 rows each second, the second client at
/// half of that.
fn step() -> Step {
    let ok = u64::from(SECONDS) * 15;
    let insert =
        Ops { offered: ok + 2, skipped: 1, ok, failed: 1, rows: ok * 50, ..Ops::default() };
    let connection = |client: u32| Connection {
        client,
        role: "insert".into(),
        ended_ns: 10_000_000_000 + u64::from(client) * 2_000_000_000,
        ..Connection::default()
    };
    Step {
        name: "l.i1".into(),
        kind: StepKind::Load,
        status: Status::Complete,
        valid: true,
        elapsed_ns: u64::from(SECONDS) * 1_000_000_000,
        clients: 2,
        insert_rate_target_rows_per_s: Some(1000.0),
        connections: vec![connection(0), connection(1)],
        ops: BTreeMap::from([("insert".into(), insert)]),
        counters_before: vec![Counter::cumulative("wal_bytes", 1000.0)],
        counters_after: vec![Counter::cumulative("wal_bytes", 13_000.0)],
        ..Step::default()
    }
}

/// Writes a step; `lost` seconds at its end are not in its series.
fn write_step(run: &RunDir, repeat: u32, step: &Step, lost: u32) {
    let directory = run.begin_cell(&cell(repeat)).unwrap();
    let status = step.status;
    let failure = step.failure.clone();
    let names = (TARGET.to_owned(), "pg17".to_owned(), "base".to_owned(), "postgres".to_owned());
    let (target, build, config, engine) = names;
    let cell = Cell {
        key: record::CellKey::new(&target, None, 2, repeat),
        build,
        config,
        engine,

        status,
        failure,
        ..Cell::default()
    };
    directory.write(&cell).unwrap();
    let columns = [HostColumn { name: "context_switch_count", cumulative: true }];
    let mut writer = directory.begin_step(1, &step.name, &columns).unwrap();
    writer.host(0, 0, 0, &[Some(77)]).unwrap();
    for second in 0..SECONDS - lost {
        let row = |client: u32, ok: u64| IntervalRow {
            second,
            client,
            kind: "insert",
            ok,
            failed: u64::from(second == 0 && client == 0),
            rows: ok * 50,
            response_ns_max: 3_000_000,
            ..IntervalRow::default()
        };
        writer.intervals(&[row(0, 10), row(1, 5)]).unwrap();
        let mut histogram = latency_histogram();
        histogram.record_n(900_000, 15).unwrap();
        writer.latency(second, "insert.service", &histogram).unwrap();
        writer.latency(second, "insert.response", &histogram).unwrap();
        let at_ns = i64::from(second + 1) * 1_000_000_000;
        let counter = Counter::cumulative("wal_bytes", f64::from(second + 1) * 1000.0);
        writer.counters(second, at_ns, &[counter]).unwrap();
        writer.host(0, second, at_ns, &[Some(77 + i64::from(second + 1) * 750)]).unwrap();
    }
    writer.finish(step).unwrap();
}

fn only_row(step: &Step, lost: u32) -> Row {
    let results = tempfile::tempdir().unwrap();
    let run = RunDir::create(results.path(), &run(1)).unwrap();
    write_step(&run, 1, step, lost);
    let mut figures = figures(&[run]).unwrap();
    assert_eq!(figures.rows.len(), 1);
    figures.rows.remove(0)
}

#[test]
fn a_step_comes_to_its_figures() {
    let row = only_row(&step(), 0);
    assert!(row.valid, "{:?}", row.reasons);
    assert_eq!(row.cell.target.as_str(), TARGET);
    assert_eq!(row.step.as_str(), "l.i1");
    assert_eq!(row.seconds, 12.0);
    assert_eq!(row.metrics["ips"], Some(750.0));
    // One switch per row; of all clients, not of the first.
    assert_eq!(row.metrics["csps"], Some(750.0));
    assert_eq!(row.metrics["cspq"], Some(1.0));
    assert_eq!(row.metrics["p50"], Some(750.0));
    assert_eq!(row.metrics["p99"], Some(750.0));
    assert_eq!((row.metrics["qps"], row.metrics["cpups"]), (None, None));
    let sla = row.sla.unwrap();
    assert_eq!((sla.target, sla.achieved, sla.met), (1000.0, 750.0, false));
    // One operation of each of the two connections may be late: 850 rows are wanted in every
    // second.
    let history = sla.history.unwrap();
    assert_eq!((history.seconds, history.met_seconds), (12, 0));
    assert_eq!(history.first_missed_second, Some(0));
    assert_eq!(history.longest_miss_seconds, 12);
    let fairness = row.fairness.unwrap();
    assert_eq!((fairness.abs_seconds, fairness.pct), (2.0, 20.0));
    assert_eq!((fairness.fastest_client, fairness.slowest_client), (0, 1));
    let quality = row.quality.unwrap();
    assert_eq!((quality.kind.as_str(), quality.seconds), ("insert", 12));
    assert_eq!((quality.median, quality.cv), (750.0, Some(0.0)));
    assert_eq!((quality.zero_seconds, quality.stall_count), (0, 0));
    assert!(row.settled.is_none());
    assert_eq!(row.counters["wal_bytes"], 12_000.0);
    let insert = &row.ops["insert"];
    assert_eq!((insert.per_second, insert.rows_per_second), (15.0, 750.0));
    assert_eq!(insert.response_buckets.counts, [0, 180, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(insert.response_us.max, 3000.0);
    assert_eq!(row.series.ops["insert"].rows, [750; 12]);
    assert_eq!(row.series.ops["insert"].ok_by_client, [[10; 12], [5; 12]]);
    assert_eq!(row.series.host["context_switch_count"], [Some(750.0); 12]);
    let wal = &row.series.engine["wal_bytes"];
    assert!(wal.cumulative);
    assert_eq!(wal.values[1..], [Some(1000.0); 11]);
    assert!(!insert.scheduled);
}

#[test]
fn a_record_that_contradicts_itself_is_invalid() {
    let mut unbalanced = step();
    unbalanced.ops.get_mut("insert").unwrap().skipped = 0;
    let row = only_row(&unbalanced, 0);
    assert!(!row.valid);
    assert_eq!(
        row.reasons,
        ["`insert`: 182 operations offered, but 0 skipped + 180 ok + 1 failed = 181"]
    );

    let row = only_row(&step(), 1);
    assert!(!row.valid);
    assert!(row.reasons[0].contains("165 in intervals.parquet"), "{:?}", row.reasons);
}

#[test]
fn what_the_record_calls_invalid_stays_invalid() {
    let row = only_row(&Step { valid: false, reasons: vec!["rows of pi1".into()], ..step() }, 0);
    assert!(!row.valid);
    assert_eq!(row.reasons, ["rows of pi1"]);
    let row = only_row(&Step { status: Status::Interrupted, ..step() }, 0);
    assert!(!row.valid);
    assert_eq!(row.reasons, ["the step was interrupted"]);
}

#[test]
fn cells_that_did_not_end_as_planned_are_listed() {
    let results = tempfile::tempdir().unwrap();
    let run = RunDir::create(results.path(), &run(4)).unwrap();
    write_step(&run, 1, &step(), 0);
    let failure = Failure {
        causes: vec!["the server ended".into(), "signal 9".into()],
        ..Failure::default()
    };
    write_step(&run, 2, &Step { status: Status::Failed, failure: Some(failure), ..step() }, 0);
    // Killed in mid-step.
    let third = run.begin_cell(&cell(3)).unwrap();
    third
        .write(&Cell { key: record::CellKey::new(TARGET, None, 2, 3), ..Cell::default() })
        .unwrap();
    drop(third.begin_step(1, "l.i0", &[]).unwrap());

    let figures = figures(&[run]).unwrap();
    let unfinished: Vec<_> = figures
        .unfinished
        .iter()
        .map(|cell| (cell.cell.repeat, cell.status, cell.causes.len()))
        .collect();
    assert_eq!(
        unfinished,
        [(2, Some(Status::Failed), 2), (3, Some(Status::Incomplete), 0), (4, None, 0)]
    );
    let rows: Vec<_> =
        figures.rows.iter().map(|row| (row.cell.repeat, row.status, row.valid)).collect();
    assert_eq!(
        rows,
        [(1, Status::Complete, true), (2, Status::Failed, false), (3, Status::Incomplete, false)]
    );
    assert!(figures.rows[2].reasons[0].contains("never finished"));
}

#[test]
fn runs_of_one_machine_share_its_number() {
    let results = tempfile::tempdir().unwrap();
    let of_machine = |id: &str| {
        let mut run = run(1);
        run.host.facts = vec![("host_id".into(), id.into())];
        let directory = RunDir::create(results.path(), &run).unwrap();
        write_step(&directory, 1, &step(), 0);
        directory
    };
    let runs = ["a", "b", "a"].map(of_machine);
    let machines = figures(&runs).unwrap().begun;
    let machines: Vec<_> = machines.iter().map(|it| (it.run, it.machine)).collect();
    assert_eq!(machines, [(0, 0), (1, 1), (2, 0)]);
}

#[test]
fn the_json_contract_holds() {
    let results = tempfile::tempdir().unwrap();
    let directory = RunDir::create(results.path(), &run(1)).unwrap();
    write_step(&directory, 1, &step(), 0);
    let run = directory.read_run().unwrap();
    let json = json(&run, &figures(&[directory]).unwrap());
    assert_eq!(json["run"]["name"], "figures");
    let row = &json["rows"][0];
    for key in ["target", "build", "config", "engine", "workload", "step"] {
        assert!(row[key].is_string(), "{key}");
    }
    for key in ["clients", "repeat", "seconds"] {
        assert!(row[key].is_number(), "{key}");
    }
    assert_eq!(row["valid"], true);
    assert!(row["reasons"].as_array().unwrap().is_empty());
    let insert = &row["ops"]["insert"];
    for key in ["count", "rows", "failed", "per_second"] {
        assert!(insert[key].is_number(), "{key}");
    }
    for time in ["service_us", "response_us"] {
        for key in ["p50", "p90", "p95", "p99", "p99_9", "max", "mean"] {
            assert!(insert[time][key].is_number(), "{time}.{key}");
        }
    }
    assert_eq!(row["metrics"]["ips"], 750.0);
    assert!(row["metrics"].get("qps").is_none());
    let absent: Vec<&str> = row["not_applicable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(absent.contains(&"qps") && !absent.contains(&"ips"));
    assert_eq!(absent.len() + row["metrics"].as_object().unwrap().len(), words::METRICS.len());
    assert_eq!(row["sla"]["target"], 1000.0);
    assert_eq!(row["sla"]["met"], false);
    assert_eq!(row["fairness"]["pct"], 20.0);
    assert_eq!(row["quality"]["median"], 750.0);
    assert_eq!(row["sla"]["history"]["met_pct"], 0.0);
    assert!(row["settled"].is_null());
}

#[test]
fn the_first_format_comes_to_figures() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/fixtures/run-v1");
    let figures = figures(&[RunDir::open(path).unwrap()]).unwrap();
    assert_eq!(figures.rows[0].ops["insert"].count, 240);
    assert_eq!(figures.rows[0].series.ops["insert"].rows, [1000; 12]);
}
