//! A record of a run that never was, written by rule: as large as one likes.

use std::path::Path;

use record::{
    Cell, Connection, Counter, Cpu, HostColumn, IntervalRow, Ops, RunDir, Status, Step, StepKind,
    StepWriter,
};

use crate::synthetic::{Size, noise, source};

/// The host's columns that are recorded on Linux; those of the first list only grow.
const CUMULATIVE: [&str; 38] = [
    "cpu_user_ns",
    "cpu_nice_ns",
    "cpu_system_ns",
    "cpu_irq_ns",
    "cpu_softirq_ns",
    "cpu_idle_ns",
    "cpu_iowait_ns",
    "cpu_steal_ns",
    "assay_cpu_ns",
    "server_cpu_user_ns",
    "server_cpu_system_ns",
    "context_switch_count",
    "process_created_count",
    "disk_read_bytes",
    "disk_read_count",
    "disk_read_ns",
    "disk_write_bytes",
    "disk_write_count",
    "disk_write_ns",
    "disk_flush_count",
    "disk_flush_ns",
    "disk_discard_bytes",
    "disk_discard_count",
    "disk_discard_ns",
    "disk_io_ns",
    "disk_queue_ns",
    "page_fault_count",
    "major_fault_count",
    "page_in_bytes",
    "page_out_bytes",
    "pressure_cpu_some_ns",
    "pressure_io_some_ns",
    "pressure_io_full_ns",
    "pressure_memory_some_ns",
    "server_read_bytes",
    "server_write_bytes",
    "swap_in_page_count",
    "swap_out_page_count",
];
const GAUGES: [&str; 14] = [
    "memory_available_bytes",
    "memory_free_bytes",
    "memory_cached_bytes",
    "memory_dirty_bytes",
    "memory_writeback_bytes",
    "swap_used_bytes",
    "server_rss_bytes",
    "server_private_bytes",
    "server_process_count",
    "runnable_count",
    "blocked_count",
    "disk_inflight_count",
    "data_bytes",
    "log_bytes",
];

/// Counters of an engine, each of them moving: the first 32 only grow, the others are of two
/// tables.
const COUNTER_COUNT: usize = 54;

/// The length of a second on the step's clock.
const SECOND_NS: u64 = 1_000_000_000;

/// Writes the run in which all targets but one did all steps; that one was never started.
pub fn write(results: &Path, size: Size) -> RunDir {
    let source = source(size);
    let directory = RunDir::create(results, &source.run).unwrap();
    let measured = &source.run.cells[..source.run.cells.len() - 1];
    std::thread::scope(|scope| {
        // Two at a time: writing is bound by the processor.
        for half in 0..2 {
            let (directory, cells, source) = (&directory, measured, &source);
            scope.spawn(move || {
                for target in (half..cells.len()).step_by(2) {
                    let reference = &cells[target];
                    let cell = directory.begin_cell(reference).unwrap();
                    let (build, config) = reference.key.target.split_once('.').unwrap();
                    cell.write(&Cell {
                        key: reference.key.clone(),
                        build: build.to_string(),
                        config: config.to_string(),
                        engine: "postgres".to_string(),
                        engine_version: "17.2".to_string(),
                        workload: "insert".to_string(),
                        status: Status::Complete,
                        settings: source.cells[target].cell.settings.clone(),
                        ..Cell::default()
                    })
                    .unwrap();
                    for (number, step) in size.steps.iter().enumerate() {
                        write_step(&cell, size, target, number, *step);
                    }
                }
            });
        }
    });
    directory.write_run(&source.run).unwrap();
    directory
}

/// Returns the work of all clients in each second: kind, rows of an operation, operations, whether
/// by a schedule.
fn kinds(kind: StepKind, rate: f64, clients: usize) -> Vec<(&'static str, u64, f64, bool)> {
    let writes = rate * clients as f64 / 50.0;
    match kind {
        StepKind::Load => vec![("insert", 50, 2400.0, false), ("delete", 50, 2400.0, false)],
        StepKind::Query => vec![
            ("insert", 50, writes, true),
            ("delete", 50, writes, true),
            ("query", 10, 9000.0, false),
        ],
        StepKind::Index => vec![("insert", 50, 40.0, false)],
        StepKind::Settle => Vec::new(),
    }
}

fn write_step(
    cell: &record::CellDir,
    size: Size,
    target: usize,
    number: usize,
    (name, kind, rate): (&str, StepKind, f64),
) {
    let seed = (target * 64 + number) as u64;
    let columns: Vec<HostColumn<'_>> = CUMULATIVE
        .iter()
        .map(|name| (name, true))
        .chain(GAUGES.iter().map(|name| (name, false)))
        .map(|(name, cumulative)| HostColumn { name, cumulative })
        .collect();
    let mut writer = cell.begin_step(number as u32 + 1, name, &columns).unwrap();
    let kinds = kinds(kind, rate, size.clients);
    let mut step = Step {
        name: name.to_string(),
        kind,
        status: Status::Complete,
        valid: true,
        elapsed_ns: size.seconds as u64 * SECOND_NS,
        cpu: Cpu { server_ns: Some(size.seconds as u64 * SECOND_NS), ..Cpu::default() },
        clients: size.clients as u32,
        insert_rate_target_rows_per_s: (rate > 0.0).then_some(rate * size.clients as f64),
        ..Step::default()
    };
    for (kind, _, _, scheduled) in &kinds {
        let ops = Ops {
            rate_target_ops_per_s: scheduled.then_some(rate * size.clients as f64 / 50.0),
            ..Ops::default()
        };
        step.ops.insert((*kind).to_string(), ops);
        step.connections.extend((0..size.clients).map(|client| Connection {
            client: client as u32,
            role: (*kind).to_string(),
            ended_ns: step.elapsed_ns,
            cpu_user_ns: SECOND_NS,
            ..Connection::default()
        }));
    }
    write_intervals(&mut writer, &mut step, size, target, &kinds, seed);
    write_latencies(&mut writer, &step, seed);
    write_samples(&mut writer, &mut step, size, columns.len(), seed);
    writer.finish(&step).unwrap();
}

/// Writes each second of each client, and counts its operations in the step.
fn write_intervals(
    writer: &mut StepWriter,
    step: &mut Step,
    size: Size,
    target: usize,
    kinds: &[(&'static str, u64, f64, bool)],
    seed: u64,
) {
    let speed = 1.0 + 0.04 * target as f64;
    let mut rows = Vec::new();
    for second in 0..size.seconds {
        rows.clear();
        let stalled = target % 3 == 1 && second % 97 == 40;
        for client in 0..size.clients {
            for (at, (kind, rows_each, per_second, _)) in kinds.iter().enumerate() {
                let salt = seed * 7919 + ((second * size.clients + client) * 4 + at) as u64;
                let swing = 0.8 + 0.4 * noise(salt);
                let even = per_second * speed / size.clients as f64 * swing;
                let ok = if stalled { 0 } else { even.round() as u64 };
                let slow = 2e6 + 2e7 * noise(salt + 1).powi(6);
                let response_ns_max = if ok == 0 { 0 } else { (slow * 1.2) as u64 };
                let ops = step.ops.get_mut(*kind).unwrap();
                ops.ok += ok;
                ops.offered += ok;
                ops.rows += ok * rows_each;
                rows.push(IntervalRow {
                    second: second as u32,
                    client: client as u32,
                    kind,
                    ok,
                    rows: ok * rows_each,
                    service_ns_max: if ok == 0 { 0 } else { slow as u64 },
                    response_ns_max,
                    ..IntervalRow::default()
                });
            }
        }
        writer.intervals(&rows).unwrap();
    }
}

/// Writes the columns of the host and the counters of the engine in each second.
fn write_samples(
    writer: &mut StepWriter,
    step: &mut Step,
    size: Size,
    column_count: usize,
    seed: u64,
) {
    let mut host: Vec<Option<i64>> = vec![Some(1 << 33); column_count];
    let mut counters: Vec<Counter> = (0..COUNTER_COUNT).map(counter).collect();
    step.counters_before = counters.clone();
    for second in 0..=size.seconds {
        let at_ns = (second as u64 * SECOND_NS) as i64;
        for (at, value) in host.iter_mut().enumerate() {
            let moved = noise(seed * 31 + (second * 64 + at) as u64);
            let scale = match CUMULATIVE.get(at) {
                Some(name) if name.ends_with("_ns") => 8e8,
                Some(name) if name.ends_with("_bytes") => 1e8,
                Some(_) => 4e3,
                None => 4e7,
            };
            // Gauges go up and down, the others only up.
            let change = if at < CUMULATIVE.len() { moved } else { moved - 0.5 };
            *value = value.map(|value| value + (change * scale) as i64);
        }
        writer.host(0, second as u32, at_ns, &host).unwrap();
        for (at, counter) in counters.iter_mut().enumerate() {
            let moved = noise(seed * 37 + (second * 64 + at) as u64);
            let change = if counter.cumulative { moved } else { moved - 0.5 };
            counter.value = (counter.value + change * 1e4).floor();
        }
        writer.counters(second as u32, at_ns, &counters).unwrap();
    }
    step.counters_after = counters;
}

fn counter(at: usize) -> Counter {
    let name = match at {
        0..16 => format!("event_{at}_count"),
        16..32 => format!("event_{at}_bytes"),
        _ => format!("table_{}_bytes.pi{}", (at - 32) / 2, at % 2 + 1),
    };
    Counter { cumulative: at < 32, ..Counter::gauge(name, 1e9) }
}

/// The latencies of all operations, as if they had ended in the first second.
fn write_latencies(writer: &mut StepWriter, step: &Step, seed: u64) {
    for (kind, ops) in &step.ops {
        for (factor, time) in [(1.0, "service"), (1.3, "response")] {
            let mut histogram = record::latency_histogram();
            let mut left = ops.ok;
            for at in 0..400_u64 {
                // Most are near the fast end, few far away from it.
                let share = 1.0 - (at as f64 / 400.0).powi(2);
                let ns =
                    2e5 * factor * (1.0 + at as f64 / 20.0).powf(1.7) * (1.0 + noise(seed + at));
                let count = if at == 399 { left } else { (ops.ok as f64 * share / 200.0) as u64 };
                let count = count.min(left);
                left -= count;
                histogram.record_n(ns as u64, count).unwrap();
            }
            writer.latency(0, &format!("{kind}.{time}"), &histogram).unwrap();
        }
    }
}
