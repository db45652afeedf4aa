//! A run that never was, recorded as one: two targets, some repeats, figures that are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::{
    Cell, CellDir, CellKey, CellRef, Connection, Cpu, Host, HostColumn, IntervalRow, Ops, Run,
    RunDir, Status, Step, StepKind, StepProfile, latency_histogram,
};
use words::{CellKind, Stacks};

pub(super) const BASE: &str = "old.tuned";
pub(super) const OTHER: &str = "new.tuned";
const CLIENTS: u32 = 2;
pub(super) const SECONDS: u32 = 4;
const STARTED_UNIX_NS: u64 = 1_795_287_731_250_000_000;

/// The reason why the queries of the other target's last repeat are invalid: a text that quoting
/// must preserve.
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

/// The samples per second of profiles.
pub(super) const FREQUENCY_HZ: u32 = 500;

/// Returns the stacks of a target's queries in one profiled repeat. The other target has more
/// samples of `range`.
pub(super) fn stacks(target: &str) -> Stacks {
    let mut stacks = Stacks::default();
    stacks.add(["postgres", "main", "query", "read"], 300);
    stacks.add(["postgres", "main", "query", "read", "pread64_[k]"], 80);
    stacks.add(["postgres", "main", "plan", "plan", "operator new"], 20);
    let of_range = if target == BASE { 50 } else { 150 };
    stacks.add(["postgres", "main", "plan", "plan", "range"], of_range);
    stacks.add(["checkpointer", "main", "[postgres]"], 7);
    stacks.add(["checkpointer", "main"], 1);
    stacks
}

/// Writes a run with this number of repeats and this start day, and returns its directory.
pub(crate) fn write(results: &Path, repeats: u32, day: u64) -> PathBuf {
    write_profiled(results, repeats, 0, day)
}

/// Writes a run that also has profiled repeats of each cell.
pub(super) fn write_profiled(results: &Path, repeats: u32, profiles: u32, day: u64) -> PathBuf {
    let started_unix_ns = STARTED_UNIX_NS + day * DAY_NS;
    // In turn, as they were measured.
    let rounds = |repeats: u32, kind| {
        let cell =
            move |repeat, target| CellKey { kind, ..CellKey::new(target, None, CLIENTS, repeat) };
        let round = move |repeat| [OTHER, BASE].map(|target| cell(repeat, target));
        (1..=repeats).flat_map(round)
    };

    let cells = rounds(repeats, CellKind::Measured).chain(rounds(profiles, CellKind::Profiled));
    let cells = cells.map(|key| CellRef::of(key, "insert"));
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
        assay: record::Assay { version: "0.1.0".to_owned(), ..record::Assay::default() },
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
        let last = if cell.key.kind == CellKind::Profiled { 3 } else { repeats };
        let invalid = cell.key.target == OTHER && cell.key.repeat == last;
        write_cell(&directory, cell, started_unix_ns, invalid);
    }

    directory.write_run(&run).unwrap();
    directory.path().to_owned()
}

fn write_cell(directory: &RunDir, reference: &CellRef, run_started_unix_ns: u64, invalid: bool) {
    let begun = directory.begin_cell(reference).unwrap();
    let cell = Cell {
        key: reference.key.clone(),
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
    let is_profiled = reference.key.kind == CellKind::Profiled;
    let profile = |stacks: Stacks| is_profiled.then_some(stacks);
    // The load is over before the first sample.
    let none = profile(Stacks::default());
    write_step(&begun, (1, "l.i0", started(1)), &load, none, false);

    let both = [("insert", 4, 50), ("query", queries, 10)];
    let stacks = profile(stacks(&reference.key.target));
    write_step(&begun, (2, "qr100", started(2)), &both, stacks, invalid);
}

/// A step with these kinds of operation: operations per second over all clients, and rows per
/// operation.
fn write_step(
    cell: &CellDir,
    (number, name, started_unix_ns): (u32, &str, u64),
    kinds: &[(&str, u64, u64)],
    profile: Option<Stacks>,
    invalid: bool,
) {
    let columns = [HostColumn { name: "context_switch_count", cumulative: true }];
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
        let ops = Ops { offered: ok, ok, rows: ok * rows_each, ..Ops::default() };
        (kind.to_owned(), ops)
    });

    if let Some(stacks) = &profile {
        writer.profile(stacks).unwrap();
    }
    let is_load = kinds.len() == 1;
    let connection = |client: u32| Connection {
        client,
        role: if is_load { "insert" } else { "query" }.to_owned(),
        ended_ns: u64::from(SECONDS) * 1_000_000_000,
        ..Connection::default()
    };

    let step = Step {
        name: name.to_owned(),
        kind: if is_load { StepKind::Load } else { StepKind::Query },
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
        profile: profile.map(|stacks| StepProfile {
            frequency_hz: FREQUENCY_HZ,
            samples: stacks.total(),
            ..StepProfile::default()
        }),
        cpu: Cpu { server_ns: Some(2_000_000_000), ..Cpu::default() },
        ..Step::default()
    };

    writer.finish(&step).unwrap();
}
