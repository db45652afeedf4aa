//! Estimates the time, the disk space and the connections that a run needs.

use std::time::Duration;

use engine::Needs;
use plan::{
    BuildSource, Insert, InsertStepKind, Kv, KvStepKind, Plan, Sysbench, SysbenchStepKind, Tables,
    Variant, Workload, WriteEnd,
};

/// The size of a row with its three indexes and the free space in B-trees, rounded, as seen in
/// SQLite and PostgreSQL.
const ROW_BYTES: u64 = 260;
/// The size of a row of sysbench's tables with its two indexes, doubled for the old versions that
/// updates leave behind.
const SYSBENCH_ROW_BYTES: u64 = 2 * 230;
/// A server's logs and system tables.
const SERVER_BYTES: u64 = 1_500_000_000;
/// Rows per second that a server loads; only for the estimate of time.
pub const LOAD_ROWS_PER_S: u64 = 60_000;
/// Rows per second that a server inserts and deletes with indexes; only for the estimate of time.
pub const WRITE_ROWS_PER_S: u64 = 8_000;
/// Entries per second that an embedded engine writes; only for the estimate of time.
pub const PUTS_PER_S: u64 = 200_000;
/// The time of a cell besides its steps: start, stop, checks.
const CELL_OVERHEAD: Duration = Duration::from_secs(5);

/// The estimated needs of a run.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The time of all cells, which run one after the other.
    pub time: Duration,
    /// The space of the largest cell with its replicas; each cell removes its data.
    pub disk_bytes: u64,
    /// The maximum number of connections at a time.
    pub connections: u32,
    /// The maximum number of connections that work at a time in a measured step.
    pub working: u32,
}

/// Returns the maximum number of connections that a cell opens at a time, with a reserve for
/// observers.
pub fn connections(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Kv(_) => clients + 1,
        _ => of_load(variant, clients) + 8,
    }
}

/// Returns the needs of a cell from a server that assay did not start.
pub fn needs(variant: &Variant, clients: u32) -> Needs {
    Needs {
        // Two more connections observe.
        connections: of_load(variant, clients) + 2,
        makes_tables: match &variant.workload {
            Workload::Sysbench(sysbench) => sysbench.loads(),
            _ => true,
        },
    }
}

/// Returns the number of connections of a cell's load.
fn of_load(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Insert(insert) => {
            let each = 2
                + u32::from(insert.delete_per_insert)
                + u32::from(insert.long_transaction.is_some());
            clients * each
        }
        // One more connection writes.
        Workload::Kv(_) => clients + 1,
        Workload::Sysbench(sysbench) => clients.max(sysbench.load_connections),
    }
}

/// Returns the number of connections that work at a time in a measured step. It excludes those that
/// load, observe, or only hold a transaction open.
fn working(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Insert(insert) => clients * (2 + u32::from(insert.delete_per_insert)),
        Workload::Kv(_) => clients + 1,
        Workload::Sysbench(_) => clients,
    }
}

/// Returns the estimate of a run of `plan`.
pub fn of_plan(plan: &Plan) -> Estimate {
    of_cells(plan, &plan.cells())
}

/// Returns the estimate of some cells of `plan`.
pub fn of_cells<'c>(plan: &Plan, cells: impl IntoIterator<Item = &'c plan::Cell>) -> Estimate {
    sum(cells.into_iter().map(|cell| of_cell(plan, cell)))
}

/// Returns the estimate of several cells together.
pub fn sum(cells: impl IntoIterator<Item = Estimate>) -> Estimate {
    let nothing = Estimate { time: Duration::ZERO, disk_bytes: 0, connections: 0, working: 0 };
    cells.into_iter().fold(nothing, |sum, cell| Estimate {
        time: sum.time + cell.time,
        disk_bytes: sum.disk_bytes.max(cell.disk_bytes),
        connections: sum.connections.max(cell.connections),
        working: sum.working.max(cell.working),
    })
}

/// Returns the estimate of one cell.
pub fn of_cell(plan: &Plan, cell: &plan::Cell) -> Estimate {
    let variant = &plan.variants[cell.variant];
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];
    let copies = 1 + u64::from(plan.configs[target.config].replicas);
    let facts = build.engine.facts();
    let is_elsewhere = matches!(build.source, BuildSource::Url(_));
    let server_bytes = if facts.is_server() && !is_elsewhere { SERVER_BYTES } else { 0 };
    let stored_bytes = if is_elsewhere || !facts.stores_data {
        0
    } else {
        match &variant.workload {
            Workload::Insert(insert) => cell_rows(insert, cell.clients) * ROW_BYTES,
            Workload::Kv(kv) => kv_bytes(kv),
            Workload::Sysbench(sysbench) => sysbench_rows(sysbench) * SYSBENCH_ROW_BYTES,
        }
    };

    let settling = variant.workload.policy().settle_at_least;
    let steps = variant.workload.steps();
    let times = steps.iter().enumerate().map(|(number, step)| match (step.time, step.measures) {
        (Some(time), _) => time + step.warmup,
        (None, true) => work_time(&variant.workload, number, cell.clients),
        (None, false) => settling.max(Duration::from_secs(1)),
    });
    Estimate {
        time: times.sum::<Duration>() + CELL_OVERHEAD,
        disk_bytes: copies * (stored_bytes + server_bytes),
        connections: connections(variant, cell.clients),
        working: working(variant, cell.clients),
    }
}

fn tables(insert: &Insert, clients: u32) -> u64 {
    if insert.tables == Tables::Shared { 1 } else { clients.into() }
}

/// Returns the maximum number of rows in all tables, including deleted rows whose space is not
/// reused yet.
fn cell_rows(insert: &Insert, clients: u32) -> u64 {
    let tables = tables(insert, clients);
    // The space of deleted rows is reused sooner or later: the estimate takes half of it.
    let kept = |rows: u64| rows / (1 + u64::from(insert.delete_per_insert));
    let rows = |kind: &InsertStepKind| match *kind {
        InsertStepKind::Load { rows, .. } | InsertStepKind::Index { rows, .. } => rows * tables,
        InsertStepKind::Write { until, rate } => kept(written(until, rate, tables, clients)),
        InsertStepKind::Query { rate, time, .. } => {
            kept((rate * time.as_secs_f64() * f64::from(clients)) as u64)
        }
        InsertStepKind::Settle => 0,
    };
    insert.steps.iter().map(|step| rows(&step.kind)).sum()
}

/// Returns the number of rows that a step writes into all tables.
fn written(until: WriteEnd, rate: Option<f64>, tables: u64, clients: u32) -> u64 {
    match until {
        WriteEnd::Rows(rows) => rows * tables,
        WriteEnd::Time(time) => (time.as_secs_f64() * written_per_s(rate, clients) as f64) as u64,
    }
}

/// Returns the rows per second that all clients write at a rate for each, or as fast as possible.
fn written_per_s(rate: Option<f64>, clients: u32) -> u64 {
    rate.map_or(WRITE_ROWS_PER_S, |rate| (rate * f64::from(clients)).ceil() as u64)
}

/// Returns the time of a step that ends when its work is done.
fn work_time(workload: &Workload, step: usize, clients: u32) -> Duration {
    let (rows, per_second) = match workload {
        Workload::Insert(insert) => {
            let tables = tables(insert, clients);
            match insert.steps[step].kind {
                InsertStepKind::Load { rows, .. } => (rows * tables, LOAD_ROWS_PER_S),
                InsertStepKind::Write { until, rate } => {
                    let rows = written(until, rate, tables, clients);
                    (rows, written_per_s(rate, clients))
                }
                _ => (insert.initial_rows * tables, LOAD_ROWS_PER_S * 5),
            }
        }
        Workload::Kv(kv) => match kv.steps[step].kind {
            KvStepKind::OverwriteSome { writes } => (writes, PUTS_PER_S),
            _ => (kv.keys, PUTS_PER_S),
        },
        Workload::Sysbench(sysbench) => match sysbench.steps[step].kind {
            SysbenchStepKind::Index => (sysbench_rows(sysbench), LOAD_ROWS_PER_S * 15),
            _ => (sysbench_rows(sysbench), LOAD_ROWS_PER_S),
        },
    };
    Duration::from_secs_f64(rows as f64 / per_second as f64)
}

/// Returns the size of keys and values, doubled for the copies that exist during a compaction.
fn kv_bytes(kv: &Kv) -> u64 {
    kv.keys.saturating_mul(u64::from(kv.key_size) + u64::from(kv.value_size)).saturating_mul(2)
}

fn sysbench_rows(sysbench: &Sysbench) -> u64 {
    sysbench.rows * u64::from(sysbench.tables)
}
