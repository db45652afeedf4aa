//! The field's figures per second and per operation. Each formula is explained in `docs/metrics.md`.

mod counters;
mod lsm;
mod op_time;
mod upkeep;

use std::collections::BTreeMap;

use record::{HostSeries, Step, StepKind};
use words::METRICS;

use crate::operation::{DELETE, INSERT, QUERY, done, queries_each, writing};
use crate::quality::mean;
use crate::series::samples;
use crate::{CounterSeries, OpSeries, rate_exceeded_in};

pub(crate) use lsm::lsm;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
pub(crate) const GIB: f64 = 1024.0 * MIB;

/// Every metric of [`METRICS`] for one step; `None` is not applicable. `ops` holds the seconds of each kind of
/// operation, `engine` those of each counter of the engine, and `embedded` says that the engine works in assay's own
/// process.
pub fn metrics(
    step: &Step,
    host: &HostSeries,
    ops: &BTreeMap<String, OpSeries>,
    engine: &BTreeMap<String, CounterSeries>,
    embedded: bool,
) -> BTreeMap<&'static str, Option<f64>> {
    let insert_rate = match step.kind {
        StepKind::Index => rows_indexed_per_second(step),
        _ => writing(step).and_then(|kind| per_second(step, kind, |ops| ops.rows)),
    };
    let queries = match step.kind {
        StepKind::Query => step.main_operation(),
        _ => Some(QUERY),
    };
    let query_rate = queries
        .and_then(|kind| per_second(step, kind, |ops| ops.ok))
        .map(|rate| rate * queries_each(step));
    let operations = operations(step);
    let rate = operations.and_then(|operations| over(operations, seconds(step)?));

    let grown = |name: &str| growth_per_second(host, name);
    let (reads, read_bytes) = (grown("disk_read_count"), grown("disk_read_bytes"));
    let (writes, written_bytes) = (grown("disk_write_count"), grown("disk_write_bytes"));
    let switches = grown("context_switch_count");
    let busy_ns = busy_cpu_ns_per_second(host);
    let busy_percent = busy_ns
        .zip(all_cpu_ns_per_second(host))
        .and_then(|(busy, all)| over(100.0 * busy, all));

    let per_op = |figure: Option<f64>| over(figure?, rate?);
    let per_insert = |figure: Option<f64>| over(figure?, insert_rate?);
    let scaled = |figure: Option<f64>, unit: f64| figure.map(|figure| figure / unit);

    let client_cpu_ns = (step.cpu.client_user_ns + step.cpu.client_system_ns) as f64;
    let server_cpu_ns = step.cpu.server_ns.filter(|_| !embedded).map(|ns| ns as f64);
    let cpu_us_per_op = |ns: f64| over(ns / 1e3, operations?);
    // A step without connections of its own, such as settling, has no load threads whose time would mean something.
    let has_clients = !step.connections.is_empty();
    let rows_of = |kind: &str| step.ops.get(kind).map(|ops| ops.rows as f64);
    let done_of = |kind: &str| step.ops.get(kind).map(|ops| ops.ok as f64);

    let mut metrics: BTreeMap<&'static str, Option<f64>> =
        METRICS.iter().map(|it| (it.name, None)).collect();
    let mut set = |name: &'static str, value: Option<f64>| {
        let is_known = metrics.insert(name, value.filter(|value| value.is_finite()));
        debug_assert!(is_known.is_some(), "{name}");
    };
    set("ips", insert_rate);
    set("dps", per_second(step, DELETE, |ops| ops.rows));
    set("qps", query_rate);
    set("rps", reads);
    set("rmbps", scaled(read_bytes, MIB));
    set("wps", writes);
    set("wmbps", scaled(written_bytes, MIB));
    set("rpq", per_op(reads));
    set("rkbpq", per_op(scaled(read_bytes, KIB)));
    set("wpi", per_insert(writes));
    set("wkbpi", per_insert(scaled(written_bytes, KIB)));
    set("csps", switches);
    set("cpups", busy_percent);
    set("cspq", per_op(switches));
    set("cpupq", per_op(scaled(busy_ns, 1e3)));
    set("dbgb1", scaled(database_bytes(step, host), GIB));
    set("dbgb2", scaled(data_and_log_bytes(step, host), GIB));
    set("rss", scaled(largest(host, "server_rss_bytes"), GIB));
    set("maxop", largest_response_seconds(step, ops));
    set("p50", rate_in_share_of_seconds(step, ops, 0.5));
    set("p99", rate_in_share_of_seconds(step, ops, 0.99));
    set("cpu/o", per_op(busy_percent));
    set("cs/o", per_op(switches));
    set("r/o", per_op(reads));
    set("rKB/o", per_op(scaled(read_bytes, KIB)));
    set("wKB/o", per_op(scaled(written_bytes, KIB)));
    set("o/s", rate);
    set("krows_sec", thousands_scanned_per_second(step));
    set("rows/event", rows_deleted_per_event(step));
    set("others%", others_percent(step, host, embedded));
    set(
        "cpu_mhz",
        scaled(mean_of_gauge(host, "cpu_frequency_khz"), 1e3),
    );
    set(
        "client_cpu_us_per_op",
        has_clients.then_some(client_cpu_ns).and_then(cpu_us_per_op),
    );
    set(
        "server_cpu_us_per_op",
        server_cpu_ns.and_then(cpu_us_per_op),
    );
    let of_role =
        |role: &str, units: Option<f64>| over(connections_cpu_ns(step, role)? / 1e3, units?);
    set(
        "client_cpu_us_per_row_inserted",
        of_role(INSERT, rows_of(INSERT)),
    );
    set(
        "client_cpu_us_per_row_deleted",
        of_role(DELETE, rows_of(DELETE)),
    );
    set("client_cpu_us_per_query", of_role(QUERY, done_of(QUERY)));
    for (role, name) in [
        ("read", "client_cpu_us_per_read"),
        ("write", "client_cpu_us_per_write"),
    ] {
        set(name, of_role(role, Some(operations_of_role(step, role))));
    }
    for (name, value) in op_time::op_time(step, host, embedded) {
        set(name, value);
    }
    set(
        "own_read_kb_per_op",
        per_op(scaled(own_bytes(host, "read", embedded), KIB)),
    );
    set(
        "own_write_kb_per_op",
        per_op(scaled(own_bytes(host, "write", embedded), KIB)),
    );
    for (name, value) in upkeep::upkeep(step, host) {
        set(name, value);
    }
    for (name, value) in lsm::figures(step, host, engine) {
        set(name, value);
    }
    metrics
}

/// The quotient, if the divisor is more than nothing.
fn over(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}

fn seconds(step: &Step) -> Option<f64> {
    (step.elapsed_ns > 0).then(|| step.elapsed_ns as f64 / 1e9)
}

fn per_second(step: &Step, kind: &str, count: impl Fn(&record::Ops) -> u64) -> Option<f64> {
    over(count(step.ops.get(kind)?) as f64, seconds(step)?)
}

/// Rows that an index step indexed: those that were there and those that it inserted.
fn rows_indexed(step: &Step) -> u64 {
    step.rows_before + step.ops.get(INSERT).map_or(0, |ops| ops.rows)
}

fn rows_indexed_per_second(step: &Step) -> Option<f64> {
    over(rows_indexed(step) as f64, seconds(step)?)
}

/// What the step's cost is divided by: rows written, rows indexed, or queries and the like.
fn operations(step: &Step) -> Option<f64> {
    match step.kind {
        StepKind::Index => Some(rows_indexed(step) as f64),
        _ => done(step),
    }
}

/// Growth of a cumulative column per second: last minus first, over the time between these two samples. `None` with
/// fewer than two samples, or when it fell, for then it began anew.
fn growth_per_second(host: &HostSeries, name: &str) -> Option<f64> {
    let column = host.column(name).filter(|column| column.cumulative)?;
    let samples = samples(host, &column.values);
    let mut there = samples
        .iter()
        .filter_map(|&(at_ns, value)| Some((at_ns, value?)));
    let (first_ns, first) = there.next()?;
    let (last_ns, last) = there.next_back()?;
    let grown = Some(last - first).filter(|&grown| grown >= 0.0)?;
    over(grown, (last_ns - first_ns) as f64 / 1e9)
}

fn sum_of(host: &HostSeries, columns: &[&str]) -> Option<f64> {
    columns
        .iter()
        .map(|name| growth_per_second(host, name))
        .sum()
}

/// Nanoseconds per second that all processors spent in user mode (at low priority too) and in the kernel (interrupts
/// too): what vmstat calls us and sy.
fn busy_cpu_ns_per_second(host: &HostSeries) -> Option<f64> {
    sum_of(
        host,
        &[
            "cpu_user_ns",
            "cpu_nice_ns",
            "cpu_system_ns",
            "cpu_irq_ns",
            "cpu_softirq_ns",
        ],
    )
}

/// The same for all that a processor can spend its time on: one second per second and processor.
fn all_cpu_ns_per_second(host: &HostSeries) -> Option<f64> {
    Some(
        busy_cpu_ns_per_second(host)?
            + sum_of(host, &["cpu_idle_ns", "cpu_iowait_ns", "cpu_steal_ns"])?,
    )
}

/// The share of all processors' time that was used by what is neither assay's nor the server's, in percent: other
/// programs, and the kernel's own threads. Interrupts are left out, which mostly serve these two. `None` where the server
/// is not one that assay can see: it may be on this host.
fn others_percent(step: &Step, host: &HostSeries, embedded: bool) -> Option<f64> {
    let working = sum_of(host, &["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns"])?;
    let assay = growth_per_second(host, "assay_cpu_ns")?;
    // An embedded engine works in assay's process, which is then measured as the server's too.
    let server = match embedded {
        true => 0.0,
        false => {
            step.cpu.server_ns?;
            sum_of(host, &["server_cpu_user_ns", "server_cpu_system_ns"])?
        }
    };
    let others = (working - assay - server).max(0.0);
    over(100.0 * others, all_cpu_ns_per_second(host)?)
}

/// Bytes per second that the engine's own processes read from storage, or wrote to it: `server_read_bytes`, and of an
/// embedded engine those of assay's process.
fn own_bytes(host: &HostSeries, what: &str, embedded: bool) -> Option<f64> {
    let whose = if embedded { "assay" } else { "server" };
    growth_per_second(host, &format!("{whose}_{what}_bytes"))
}

/// Thousands of rows per second that events went through from end to end.
fn thousands_scanned_per_second(step: &Step) -> Option<f64> {
    let rows = step.scanned_rows_per_event? as f64;
    let events = per_second(step, step.main_operation()?, |ops| ops.ok)?;
    Some(events * rows / 1e3)
}

/// Rows that an event deleted, on average.
fn rows_deleted_per_event(step: &Step) -> Option<f64> {
    step.deletes_per_event?;
    let ops = step.ops.get(step.main_operation()?)?;
    over(ops.rows as f64, ops.ok as f64)
}

/// The largest value of a gauge.
fn largest(host: &HostSeries, name: &str) -> Option<f64> {
    host.column(name)?
        .values
        .iter()
        .flatten()
        .max()
        .map(|&value| value as f64)
}

/// The mean of a gauge's values.
fn mean_of_gauge(host: &HostSeries, name: &str) -> Option<f64> {
    let values = host.column(name)?.values.iter().flatten();
    mean(values.map(|&value| value as f64))
}

/// The last value of a gauge.
fn last(host: &HostSeries, name: &str) -> Option<f64> {
    host.column(name)?
        .values
        .iter()
        .rev()
        .flatten()
        .next()
        .map(|&value| value as f64)
}

/// The size that the engine itself states; else that of its data files.
fn database_bytes(step: &Step, host: &HostSeries) -> Option<f64> {
    let stated = step
        .counters_after
        .iter()
        .find(|counter| counter.name == "database_bytes");
    stated
        .map(|counter| counter.value)
        .or_else(|| match &step.storage {
            Some(storage) => Some(storage.data_bytes as f64),
            None => last(host, "data_bytes"),
        })
}

fn data_and_log_bytes(step: &Step, host: &HostSeries) -> Option<f64> {
    match &step.storage {
        Some(storage) => Some((storage.data_bytes + storage.log_bytes) as f64),
        None => Some(last(host, "data_bytes")? + last(host, "log_bytes")?),
    }
}

/// The largest response time of what the step is about: of inserts in index steps.
fn largest_response_seconds(step: &Step, ops: &BTreeMap<String, OpSeries>) -> Option<f64> {
    let kind = step
        .main_operation()
        .filter(|_| step.kind != StepKind::Settle)?;
    step.ops.get(kind).filter(|ops| ops.ok > 0)?;
    let longest = ops.get(kind)?.response_us_max.iter().copied();
    Some(longest.fold(0.0, f64::max) / 1e6)
}

fn rate_in_share_of_seconds(
    step: &Step,
    ops: &BTreeMap<String, OpSeries>,
    share: f64,
) -> Option<f64> {
    let of_main = || ops.get(step.main_operation()?);
    let rates = match step.kind {
        StepKind::Load => &of_main()?.rows,
        StepKind::Query => &of_main()?.ok,
        // Rows are not indexed second by second, and settling does nothing that is counted.
        StepKind::Index | StepKind::Settle => return None,
    };
    rate_exceeded_in(share, step.elapsed_ns, rates).map(|rate| rate as f64 * queries_each(step))
}

/// Operations of the connections with one role that succeeded.
fn operations_of_role(step: &Step, role: &str) -> f64 {
    step.connections
        .iter()
        .filter(|connection| connection.role == role)
        .map(|connection| connection.ok as f64)
        .sum()
}

/// CPU time of the load threads with one role; `None` where there are none.
fn connections_cpu_ns(step: &Step, role: &str) -> Option<f64> {
    let mut threads = step
        .connections
        .iter()
        .filter(|connection| connection.role == role)
        .peekable();
    threads.peek()?;
    Some(
        threads
            .map(|connection| (connection.cpu_user_ns + connection.cpu_system_ns) as f64)
            .sum(),
    )
}

#[cfg(test)]
mod tests;
