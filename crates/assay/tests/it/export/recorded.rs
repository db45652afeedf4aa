//! A run that never was, recorded as one: two targets, some repeats, figures that are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::{
    Cell, CellDir, CellRef, Connection, Host, HostColumn, IntervalRow, Ops, Run, RunDir, Status,
    Step, StepKind, latency_histogram,
};

pub(super) const BASE: &str = "old.tuned";
pub(super) const OTHER: &str = "new.tuned";
const CLIENTS: u32 = 2;
pub(super) const SECONDS: u32 = 4;
const STARTED_UNIX_NS: u64 = 1_795_287_731_250_000_000;

/// The reason why the queries of the other target's last repeat are invalid: a text that quoting must preserve.
pub(super) const REASON: &str = "rows of pi1: \"9\" found,\n10 expected";

/// Queries per second: the other target has a tenth less.
pub(super) fn queries_per_second(target: &str, repeat: u32) -> u64 {
    u64::from(if target == BASE { 1000 } else { 900 } + 10 * repeat)
}

/// The longest time of a query in nanoseconds, in the third second of the step.
pub(super) const LONGEST_NS: u64 = 250_000_000;

/// A day in nanoseconds.
const DAY_NS: u64 = 86_400_000_000_000;

/// Returns the id of the run of a day.
pub(super) fn id(day: u64) -> String {
    format!("6f1c2a52-9d04-4b8e-8f6a-0c1d2e3f4a{day:02}")
}

/// Writes a run with this number of repeats and this start day, and returns its directory.
pub(super) fn write(results: &Path, repeats: u32, day: u64) -> PathBuf {
    let started_unix_ns = STARTED_UNIX_NS + day * DAY_NS;
    // In turn, as they were measured.
    let cells = (1..=repeats).flat_map(|repeat| {
        [OTHER, BASE].map(|target| CellRef::new(target, "insert", None, CLIENTS, repeat))
    });
    let target = |name: &str| record::Target {
        name: name.to_owned(),
        build: name.replace(".tuned", ""),
        config: "tuned".to_owned(),
        engine: "postgres".to_owned(),
        set: Vec::new(),
        declared: Vec::new(),
        factors: Vec::new(),
        files: Vec::new(),
    };
    let run = Run {
        id: id(day),
        name: "known".to_owned(),
        assay: record::Assay {
            version: "0.1.0".to_owned(),
            ..record::Assay::default()
        },
        status: Status::Complete,
        base: BASE.to_owned(),
        started_unix_ns,
        host: Host {
            cpu_count: 2,
            facts: [("host_id", "lab-1"), ("cpu_model", "Some CPU @ 2 GHz")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Host::default()
        },
        targets: vec![target(BASE), target(OTHER)],
        cells: cells.collect(),
        ..Run::default()
    };
    let directory = RunDir::create(results, &run).unwrap();
    for cell in &run.cells {
        let invalid = cell.key.target == OTHER && cell.key.repeat == repeats;
        write_cell(&directory, cell, started_unix_ns, invalid);
    }
    directory.write_run(&run).unwrap();
    directory.path().to_owned()
}

fn write_cell(directory: &RunDir, reference: &CellRef, run_started_unix_ns: u64, invalid: bool) {
    let begun = directory.begin_cell(reference).unwrap();
    let cell = Cell {
        key: record::CellKey::new(
            &reference.key.target.clone(),
            None,
            CLIENTS,
            reference.key.repeat,
        ),
        build: reference.key.target.replace(".tuned", ""),
        config: "tuned".to_owned(),
        engine: "postgres".to_owned(),
        engine_version: "1.2".to_owned(),
        workload: reference.workload.clone(),
        started_unix_ns: run_started_unix_ns + u64::from(reference.key.repeat) * 60_000_000_000,
        status: Status::Complete,
        steps: vec!["01-l.i0".to_owned(), "02-qr100".to_owned()],
        ..Cell::default()
    };
    begun.write(&cell).unwrap();
    let queries = queries_per_second(&reference.key.target, reference.key.repeat);
    let started = |number: u64| run_started_unix_ns + number * 10_000_000_000;
    let load = [("insert", queries, 100)];
    write_step(&begun, (1, "l.i0", started(1)), &load, false);
    let both = [("insert", 4, 50), ("query", queries, 10)];
    write_step(&begun, (2, "qr100", started(2)), &both, invalid);
}

/// A step with these kinds of operation: operations per second over all clients, and rows per operation.
fn write_step(
    cell: &CellDir,
    (number, name, started_unix_ns): (u32, &str, u64),
    kinds: &[(&str, u64, u64)],
    invalid: bool,
) {
    let columns = [HostColumn {
        name: "context_switch_count",
        cumulative: true,
    }];
    let mut writer = cell.begin_step(number, name, &columns).unwrap();
    writer.started(started_unix_ns);
    writer.host(0, 0, 0, &[Some(0)]).unwrap();
    for second in 0..SECONDS {
        for &(kind, per_second, rows_each) in kinds {
            let is_slow = kind == "query" && second == 2;
            let longest_ns = if is_slow { LONGEST_NS } else { 1_000_000 };
            let interval = |client: u32| IntervalRow {
                second,
                client,
                kind,
                ok: per_second / u64::from(CLIENTS),
                rows: per_second / u64::from(CLIENTS) * rows_each,
                service_ns_max: longest_ns,
                response_ns_max: longest_ns,
                ..IntervalRow::default()
            };
            writer.intervals(&[interval(0), interval(1)]).unwrap();
            let mut histogram = latency_histogram();
            histogram.record_n(1_000_000, per_second - 1).unwrap();
            histogram.record(longest_ns).unwrap();
            for time in ["service", "response"] {
                let tag = format!("{kind}.{time}");
                writer.latency(second, &tag, &histogram).unwrap();
            }
        }
        let at_ns = i64::from(second + 1) * 1_000_000_000;
        let switches = i64::from(second + 1) * 5000;
        writer.host(0, second, at_ns, &[Some(switches)]).unwrap();
    }
    let ops = kinds.iter().map(|&(kind, per_second, rows_each)| {
        let ok = per_second * u64::from(SECONDS);
        let ops = Ops {
            offered: ok,
            ok,
            rows: ok * rows_each,
            ..Ops::default()
        };
        (kind.to_owned(), ops)
    });
    let is_load = kinds.len() == 1;
    let connection = |client: u32| Connection {
        client,
        role: if is_load { "insert" } else { "query" }.to_owned(),
        ended_ns: u64::from(SECONDS) * 1_000_000_000,
        ..Connection::default()
    };
    let step = Step {
        name: name.to_owned(),
        kind: if is_load {
            StepKind::Load
        } else {
            StepKind::Query
        },
        status: Status::Complete,
        valid: !invalid,
        reasons: invalid.then(|| REASON.to_owned()).into_iter().collect(),
        started_unix_ns,
        elapsed_ns: u64::from(SECONDS) * 1_000_000_000,
        time_given_ns: (!is_load).then_some(u64::from(SECONDS) * 1_000_000_000),
        insert_rate_target_rows_per_s: (!is_load).then_some(200.0),
        clients: CLIENTS,
        connections: vec![connection(0), connection(1)],
        ops: ops.collect::<BTreeMap<_, _>>(),
        ..Step::default()
    };
    writer.finish(&step).unwrap();
}
