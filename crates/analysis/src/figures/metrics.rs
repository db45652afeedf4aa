//! Computes the field's figures per second and per operation. Each formula is explained in
//! `docs/metrics.md`.

mod contention;
mod lag_trend;
mod lsm;
mod op_time;
mod replication;
pub(super) mod system_calls;
mod upkeep;

use std::collections::BTreeMap;

use record::{HostSeries, OpRole, Role, Step, StepKind};
use words::METRICS;
use words::metric::{CLIENT_HOST, NETWORK};

use super::counters::Counters;
use crate::figures::average::mean;
use crate::figures::operation::{done, queries_each, sum_of_role, writing};
use crate::figures::series::samples;
use crate::figures::{CounterSeries, OpSeries, rate_exceeded_in, sizes};

pub use lsm::COARSE_SHARE;
pub(crate) use lsm::lsm;
pub use lsm::{Level, Lsm};
pub use replication::{Lag, LagVerdict, lag};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
pub(crate) const GIB: f64 = 1024.0 * MIB;

/// A metric's name and its value; `None`: not applicable.
type Figure = (&'static str, Option<f64>);

/// Returns every metric of [`METRICS`] for one step. `ops` holds the seconds of each kind of
/// operation, `engine` those of each counter of the engine, and `embedded` says that the engine
/// works in assay's own process.
pub fn metrics(
    step: &Step,
    host: &HostSeries,
    ops: &BTreeMap<String, OpSeries>,
    engine: &BTreeMap<String, CounterSeries>,
    embedded: bool,
) -> BTreeMap<&'static str, Option<f64>> {
    let figures = rate_metrics(step, ops)
        .into_iter()
        .chain(processor_metrics(step, host, embedded))
        .chain(device_metrics(step, host, embedded))
        .chain(network_metrics(step, host))
        .chain(size_metrics(step, host))
        .chain(client_metrics(step, embedded))
        .chain(op_time::op_time(step, host, embedded))
        .chain(contention::figures(step))
        .chain(upkeep::upkeep(step, host))
        .chain(lsm::figures(step, host, engine))
        .chain(replication::figures(step, engine));

    let mut metrics: BTreeMap<&str, Option<f64>> =
        METRICS.iter().map(|metric| (metric.name, None)).collect();

    for (name, value) in figures {
        let known = metrics.insert(name, value.filter(|value| value.is_finite()));
        debug_assert!(known.is_some(), "{name}");
    }
    metrics
}

/// Returns the metrics of [`CLIENT_HOST`] and [`NETWORK`] for one step and the samples of a client
/// host.
pub fn client_host_metrics(step: &Step, host: &HostSeries) -> BTreeMap<&'static str, Option<f64>> {
    let processors = processor_metrics(step, host, false);
    let network = network_metrics(step, host);

    let mut metrics = BTreeMap::new();
    for (name, value) in processors.into_iter().chain(network) {
        if CLIENT_HOST.iter().chain(NETWORK).any(|(shown, _)| *shown == name) {
            metrics.insert(name, value);
        }
    }
    metrics
}

/// Returns throughput and its rates.
fn rate_metrics(step: &Step, ops: &BTreeMap<String, OpSeries>) -> [Figure; 10] {
    let query_rate = match step.kind {
        StepKind::Query => {
            step.main_operation().and_then(|kind| per_second(step, kind, |ops| ops.ok))
        }
        _ => of_role_per_second(step, OpRole::Query, |ops| ops.ok),
    };

    [
        ("ips", insert_rate(step)),
        ("dps", of_role_per_second(step, OpRole::Delete, |ops| ops.rows)),
        ("qps", query_rate.map(|rate| rate * queries_each(step))),
        ("o/s", operation_rate(step)),
        ("maxop", largest_response_seconds(step, ops)),
        ("p50", rate_in_share_of_seconds(step, ops, 0.5)),
        ("p99", rate_in_share_of_seconds(step, ops, 0.99)),
        ("per_minute", operations_per_minute(step)),
        ("krows_sec", thousands_scanned_per_second(step)),
        ("rows/event", rows_deleted_per_event(step)),
    ]
}

/// Returns the use of all processors.
fn processor_metrics(step: &Step, host: &HostSeries, embedded: bool) -> [Figure; 14] {
    let ops = operation_rate(step);

    let all_ns = all_cpu_ns_per_second(host);
    let busy_ns = busy_cpu_ns_per_second(host);
    let busy_percent = percent(busy_ns, all_ns);

    let switches = growth_per_second(host, "context_switch_count");
    let server_switches = growth_per_second(host, "server_context_switch_count");
    let others = others_ns_per_second(step, host, embedded);
    let khz = mean_of_gauge(host, "cpu_frequency_khz");

    [
        ("csps", switches),
        ("cspq", per(switches, ops)),
        ("cs/o", per(switches, ops)),
        ("server_switches_per_op", per(server_switches, ops)),
        ("cpups", busy_percent),
        ("cpupq", per(scaled(busy_ns, 1e3), ops)),
        ("cpu/o", per(busy_percent, ops)),
        ("us%", percent(sum_of(host, &USER), all_ns)),
        ("sy%", percent(sum_of(host, &SYSTEM), all_ns)),
        ("id%", percent(growth_per_second(host, "cpu_idle_ns"), all_ns)),
        ("wa%", percent(growth_per_second(host, "cpu_iowait_ns"), all_ns)),
        ("steal%", percent(growth_per_second(host, "cpu_steal_ns"), all_ns)),
        ("others%", percent(others, all_ns)),
        ("cpu_mhz", scaled(khz, 1e3)),
    ]
}

/// Returns the reads and writes of the devices, by whatever process, and those of the engine.
fn device_metrics(step: &Step, host: &HostSeries, embedded: bool) -> [Figure; 19] {
    // All of these are rates per second, so that one can be divided by another.
    let ops = operation_rate(step);
    let inserts = insert_rate(step);

    let reads = growth_per_second(host, "disk_read_count");
    let read_bytes = growth_per_second(host, "disk_read_bytes");
    let read_kb = scaled(read_bytes, KIB);
    let read_ms = scaled(growth_per_second(host, "disk_read_ns"), 1e6);

    let writes = growth_per_second(host, "disk_write_count");
    let written_bytes = growth_per_second(host, "disk_write_bytes");
    let written_kb = scaled(written_bytes, KIB);
    let write_ms = scaled(growth_per_second(host, "disk_write_ns"), 1e6);

    let queue_ns = growth_per_second(host, "disk_queue_ns");
    let busy_ns = growth_per_second(host, "disk_io_ns");

    let own_read_kb = scaled(own_bytes(host, "read", embedded), KIB);
    let own_written_kb = scaled(own_bytes(host, "write", embedded), KIB);

    [
        ("rps", reads),
        ("rmbps", scaled(read_bytes, MIB)),
        ("wps", writes),
        ("wmbps", scaled(written_bytes, MIB)),
        ("rawait", per(read_ms, reads)),
        ("wawait", per(write_ms, writes)),
        ("rareqsz", per(read_kb, reads)),
        ("wareqsz", per(written_kb, writes)),
        ("aqu-sz", scaled(queue_ns, 1e9)),
        ("util%", scaled(busy_ns, 1e7)),
        ("rpq", per(reads, ops)),
        ("rkbpq", per(read_kb, ops)),
        ("wpi", per(writes, inserts)),
        ("wkbpi", per(written_kb, inserts)),
        ("r/o", per(reads, ops)),
        ("rKB/o", per(read_kb, ops)),
        ("wKB/o", per(written_kb, ops)),
        ("own_read_kb_per_op", per(own_read_kb, ops)),
        ("own_write_kb_per_op", per(own_written_kb, ops)),
    ]
}

/// Returns the traffic with other hosts.
fn network_metrics(step: &Step, host: &HostSeries) -> [Figure; 7] {
    let ops = operation_rate(step);
    let received = growth_per_second(host, "network_received_bytes");
    let sent = growth_per_second(host, "network_sent_bytes");
    let packets = sum_of(host, &["network_received_packet_count", "network_sent_packet_count"]);
    let retransmits = growth_per_second(host, "tcp_retransmit_count");

    [
        ("net_received_mb_per_s", scaled(received, MIB)),
        ("net_sent_mb_per_s", scaled(sent, MIB)),
        ("net_packets_per_s", packets),
        ("net_received_kb_per_op", per(scaled(received, KIB), ops)),
        ("net_sent_kb_per_op", per(scaled(sent, KIB), ops)),
        ("net_packets_per_op", per(packets, ops)),
        ("tcp_retransmits_per_s", retransmits),
    ]
}

/// Returns the sizes of files and memory.
fn size_metrics(step: &Step, host: &HostSeries) -> [Figure; 4] {
    [
        ("dbgb1", scaled(database_bytes(step, host), GIB)),
        ("dbgb2", scaled(data_and_log_bytes(step, host), GIB)),
        ("index_gb", scaled(sizes::index_bytes_before(step), GIB)),
        ("rss", scaled(largest(host, "server_rss_bytes"), GIB)),
    ]
}

/// Returns the processor time of client and server, and the engine's system calls.
fn client_metrics(step: &Step, embedded: bool) -> [Figure; 8] {
    let us_per_op = |ns: f64| over(ns / 1e3, operations(step)?);

    // A step without connections, such as settling, has no load threads.
    let load_ns = (step.cpu.client_user_ns + step.cpu.client_system_ns) as f64;
    let client_ns = (!step.connections.is_empty()).then_some(load_ns);
    let server_ns = step.cpu.server_ns.filter(|_| !embedded).map(|ns| ns as f64);

    let rows = |ops: &record::Ops| ops.rows;
    let queries = |ops: &record::Ops| ops.ok;
    [
        ("client_cpu_us_per_op", client_ns.and_then(us_per_op)),
        ("server_cpu_us_per_op", server_ns.and_then(us_per_op)),
        ("client_cpu_us_per_row_inserted", us_of_role(step, OpRole::Insert, rows)),
        ("client_cpu_us_per_row_deleted", us_of_role(step, OpRole::Delete, rows)),
        ("client_cpu_us_per_query", us_of_role(step, OpRole::Query, queries)),
        ("client_cpu_us_per_read", us_of_connections(step, OpRole::Get)),
        ("client_cpu_us_per_write", us_of_connections(step, OpRole::Put)),
        (system_calls::METRIC, system_calls::all_per_operation(step)),
    ]
}

fn scaled(figure: Option<f64>, unit: f64) -> Option<f64> {
    figure.map(|figure| figure / unit)
}

/// Returns the quotient, if the divisor is above zero.
fn over(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}

/// Returns the quotient of two figures; `None` if either is missing, or the divisor is not above zero.
fn per(dividend: Option<f64>, divisor: Option<f64>) -> Option<f64> {
    over(dividend?, divisor?)
}

/// Returns a part in percent of the whole.
fn percent(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    over(100.0 * part?, whole?)
}

fn seconds(step: &Step) -> Option<f64> {
    (step.elapsed_ns > 0).then(|| step.elapsed_ns as f64 / 1e9)
}

fn per_second(step: &Step, kind: &str, count: impl Fn(&record::Ops) -> u64) -> Option<f64> {
    over(count(step.ops.get(kind)?) as f64, seconds(step)?)
}

/// Returns a sum over all operations of a role per second; `None` if no connection does them.
fn of_role_per_second(
    step: &Step,
    role: OpRole,
    count: impl Fn(&record::Ops) -> u64,
) -> Option<f64> {
    over(sum_of_role(step, role, count)? as f64, seconds(step)?)
}

/// Returns the rows that an index step indexed: those that were there and those that it inserted.
fn rows_indexed(step: &Step) -> u64 {
    step.rows_before + sum_of_role(step, OpRole::Insert, |ops| ops.rows).unwrap_or(0)
}

/// Returns rows inserted or indexed, or keys put, per second.
fn insert_rate(step: &Step) -> Option<f64> {
    match step.kind {
        StepKind::Index => over(rows_indexed(step) as f64, seconds(step)?),
        _ => writing(step).and_then(|kind| per_second(step, kind, |ops| ops.rows)),
    }
}

fn operation_rate(step: &Step) -> Option<f64> {
    over(operations(step)?, seconds(step)?)
}

/// Returns the divisor of a step's costs: rows written, rows indexed, queries, or other operations.
pub(super) fn operations(step: &Step) -> Option<f64> {
    match step.kind {
        StepKind::Index => Some(rows_indexed(step) as f64),
        _ => done(step),
    }
}

/// Returns the growth of a cumulative column per second: last minus first, over the time between
/// these two samples. `None` with fewer than two samples, or if it fell, since then it restarted.
fn growth_per_second(host: &HostSeries, name: &str) -> Option<f64> {
    let column = host.column(name).filter(|column| column.cumulative)?;
    let samples = samples(host, &column.values);
    let mut there = samples.iter().filter_map(|&(at_ns, value)| Some((at_ns, value?)));
    let (first_ns, first) = there.next()?;
    let (last_ns, last) = there.next_back()?;
    let grown = Some(last - first).filter(|&grown| grown >= 0.0)?;
    over(grown, (last_ns - first_ns) as f64 / 1e9)
}

fn sum_of(host: &HostSeries, columns: &[&str]) -> Option<f64> {
    columns.iter().map(|name| growth_per_second(host, name)).sum()
}

/// Time of processors in user mode, at low priority too: what vmstat calls us.
const USER: [&str; 2] = ["cpu_user_ns", "cpu_nice_ns"];

/// Time of processors in the kernel, interrupts too: what vmstat calls sy.
const SYSTEM: [&str; 3] = ["cpu_system_ns", "cpu_irq_ns", "cpu_softirq_ns"];

/// Returns nanoseconds per second that all processors spent in user mode and in the kernel.
fn busy_cpu_ns_per_second(host: &HostSeries) -> Option<f64> {
    Some(sum_of(host, &USER)? + sum_of(host, &SYSTEM)?)
}

/// Returns the same for all states of the processors: one second per second and processor.
fn all_cpu_ns_per_second(host: &HostSeries) -> Option<f64> {
    Some(
        busy_cpu_ns_per_second(host)?
            + sum_of(host, &["cpu_idle_ns", "cpu_iowait_ns", "cpu_steal_ns"])?,
    )
}

/// Returns nanoseconds per second of processor time that neither assay nor the server used: other
/// programs, and the kernel's own threads. Load ranks on this host are assay too. Interrupts are
/// left out, because they mostly serve Assay and the server. `None` if assay cannot see the server,
/// which may be on this host.
fn others_ns_per_second(step: &Step, host: &HostSeries, embedded: bool) -> Option<f64> {
    let working = sum_of(host, &["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns"])?;

    let load_ranks = step.ranks.iter().filter(|rank| rank.is_server_host);
    let load_ranks_ns: u64 = load_ranks.map(|rank| rank.cpu_ns).sum();
    let assay =
        growth_per_second(host, "assay_cpu_ns")? + over(load_ranks_ns as f64, seconds(step)?)?;

    // An embedded engine works in assay's process, which then counts as the server's too.
    let server = if embedded {
        0.0
    } else {
        step.cpu.server_ns?;
        sum_of(host, &["server_cpu_user_ns", "server_cpu_system_ns"])?
    };
    Some((working - assay - server).max(0.0))
}

/// Returns bytes per second that the engine's own processes read from storage, or wrote to it. An
/// embedded engine's are those of assay's process.
fn own_bytes(host: &HostSeries, what: &str, embedded: bool) -> Option<f64> {
    let whose = if embedded { "assay" } else { "server" };
    growth_per_second(host, &format!("{whose}_{what}_bytes"))
}

/// Returns the throughput per minute, if the workload has a name for it.
fn operations_per_minute(step: &Step) -> Option<f64> {
    step.per_minute.as_ref()?;
    Some(operation_rate(step)? * 60.0)
}

/// Returns thousands of rows per second that events scanned.
fn thousands_scanned_per_second(step: &Step) -> Option<f64> {
    let rows = step.scanned_rows_per_event? as f64;
    let events = per_second(step, step.main_operation()?, |ops| ops.ok)?;
    Some(events * rows / 1e3)
}

/// Returns the mean number of rows that an event deleted.
fn rows_deleted_per_event(step: &Step) -> Option<f64> {
    step.deletes_per_event?;
    let ops = step.ops.get(step.main_operation()?)?;
    over(ops.rows as f64, ops.ok as f64)
}

/// Returns the largest value of a gauge.
fn largest(host: &HostSeries, name: &str) -> Option<f64> {
    host.column(name)?.values.iter().flatten().max().map(|&value| value as f64)
}

/// Returns the mean of a gauge's values.
fn mean_of_gauge(host: &HostSeries, name: &str) -> Option<f64> {
    let values = host.column(name)?.values.iter().flatten();
    mean(values.map(|&value| value as f64))
}

/// Returns the last value of a gauge.
fn last(host: &HostSeries, name: &str) -> Option<f64> {
    host.column(name)?.values.iter().rev().flatten().next().map(|&value| value as f64)
}

/// Returns the size that the engine reports, or else that of its data files.
fn database_bytes(step: &Step, host: &HostSeries) -> Option<f64> {
    Counters::new(step).gauge(Role::DatabaseBytes).or_else(|| match &step.storage {
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

/// Returns the largest response time of the step's main operation, or of inserts in index steps.
fn largest_response_seconds(step: &Step, ops: &BTreeMap<String, OpSeries>) -> Option<f64> {
    let kind = step.main_operation().filter(|_| step.kind != StepKind::Settle)?;
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
        // Indexing and settling count nothing second by second.
        StepKind::Index | StepKind::Settle => return None,
    };
    rate_exceeded_in(share, step.elapsed_ns, rates).map(|rate| rate as f64 * queries_each(step))
}

/// Returns the CPU time of the connections for operations of a role, over what these counted.
fn us_of_role(step: &Step, role: OpRole, count: impl Fn(&record::Ops) -> u64) -> Option<f64> {
    let count = sum_of_role(step, role, count)?;
    over(connections_cpu_ns(step, role.facts().connection?)? / 1e3, count as f64)
}

/// Returns the CPU time of the connections for operations of a role, over all that they did.
fn us_of_connections(step: &Step, role: OpRole) -> Option<f64> {
    let connections = role.facts().connection?;
    let count = operations_of_role(step, connections);
    over(connections_cpu_ns(step, connections)? / 1e3, count)
}

/// Returns the successful operations of connections with one role.
fn operations_of_role(step: &Step, role: &str) -> f64 {
    step.connections
        .iter()
        .filter(|connection| connection.role == role)
        .map(|connection| connection.ok as f64)
        .sum()
}

/// Returns the CPU time of load threads with one role; `None` where there are none.
fn connections_cpu_ns(step: &Step, role: &str) -> Option<f64> {
    let mut threads =
        step.connections.iter().filter(|connection| connection.role == role).peekable();
    threads.peek()?;
    Some(threads.map(|connection| (connection.cpu_user_ns + connection.cpu_system_ns) as f64).sum())
}

#[cfg(test)]
mod tests;
