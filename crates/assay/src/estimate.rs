//! What a run will take: time, disk, connections.

use std::time::Duration;

use engine::Needs;
use plan::{
    BuildSource, Engine, Insert, InsertStepKind, Kv, KvStepKind, Plan, Sysbench, SysbenchStepKind,
    Tables, Variant, Workload, WriteEnd,
};

/// Bytes that a row takes with its three indexes and the room that B-trees leave, in round numbers: what SQLite and
/// PostgreSQL were seen to need.
const ROW_BYTES: u64 = 260;
/// Bytes of a row of sysbench's tables with its two indexes, and as much again for what updates leave behind.
const SYSBENCH_ROW_BYTES: u64 = 2 * 230;
/// A server's logs and system tables.
const SERVER_BYTES: u64 = 1_500_000_000;
/// Rows per second that a server loads, and that it inserts and deletes with indexes: only for the estimate of time.
const LOAD_ROWS_PER_S: u64 = 60_000;
/// See there.
const WRITE_ROWS_PER_S: u64 = 8_000;
/// Entries per second that an embedded engine writes.
const PUTS_PER_S: u64 = 200_000;
/// What a cell takes besides its steps: start, stop, checks.
const CELL_OVERHEAD: Duration = Duration::from_secs(5);

/// What a run will take.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// All cells, one after the other.
    pub time: Duration,
    /// The largest cell; cells don't share the disk.
    pub disk_bytes: u64,
    /// Connections at a time, at most.
    pub connections: u32,
    /// Those of them that work at a time in a measured step, at most.
    pub working: u32,
}

/// Connections that a cell opens at a time at most, with room for those that observe.
pub fn connections(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Kv(_) => clients + 1,
        _ => of_load(variant, clients) + 8,
    }
}

/// What a cell needs of a server that assay did not start.
pub fn needs(variant: &Variant, clients: u32) -> Needs {
    Needs {
        // Two observe.
        connections: of_load(variant, clients) + 2,
        makes_tables: match &variant.workload {
            Workload::Sysbench(sysbench) => sysbench.loads(),
            _ => true,
        },
    }
}

/// Connections of a cell's load.
fn of_load(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Insert(insert) => {
            let each = 2
                + u32::from(insert.delete_per_insert)
                + u32::from(insert.long_transaction.is_some());
            clients * each
        }
        // One more writes.
        Workload::Kv(_) => clients + 1,
        Workload::Sysbench(sysbench) => clients.max(sysbench.load_connections),
    }
}

/// Connections that work at a time in a measured step: not those that load, observe, or only hold a transaction open.
fn working(variant: &Variant, clients: u32) -> u32 {
    match &variant.workload {
        Workload::Insert(insert) => clients * (2 + u32::from(insert.delete_per_insert)),
        Workload::Kv(_) => clients + 1,
        Workload::Sysbench(_) => clients,
    }
}

/// What a run of `plan` will take.
pub fn of_plan(plan: &Plan) -> Estimate {
    sum(plan.cells().iter().map(|cell| of_cell(plan, cell)))
}

/// How fast an engine is taken to be in that, to be read after `if`: variants are of one workload.
pub fn assumed(plan: &Plan) -> String {
    match plan.variants.first().map(|variant| &variant.workload) {
        Some(Workload::Kv(_)) => format!("{PUTS_PER_S} keys/s are loaded"),
        Some(Workload::Sysbench(_)) => format!("{LOAD_ROWS_PER_S} rows/s are loaded"),
        Some(Workload::Insert(_)) | None => format!(
            "{LOAD_ROWS_PER_S} rows/s are loaded and {WRITE_ROWS_PER_S} rows/s written with indexes"
        ),
    }
}

/// What several cells will take together.
pub fn sum(cells: impl IntoIterator<Item = Estimate>) -> Estimate {
    let nothing = Estimate {
        time: Duration::ZERO,
        disk_bytes: 0,
        connections: 0,
        working: 0,
    };
    cells.into_iter().fold(nothing, |sum, cell| Estimate {
        time: sum.time + cell.time,
        disk_bytes: sum.disk_bytes.max(cell.disk_bytes),
        connections: sum.connections.max(cell.connections),
        working: sum.working.max(cell.working),
    })
}

/// What one cell will take.
pub fn of_cell(plan: &Plan, cell: &plan::Cell) -> Estimate {
    let variant = &plan.variants[cell.variant];
    let build = &plan.builds[plan.targets[cell.target].build];
    let server_bytes = match build.source {
        BuildSource::Installed(_) if build.engine == Engine::RocksDb => 0,
        BuildSource::Installed(_) => SERVER_BYTES,
        BuildSource::Bundled | BuildSource::Url(_) => 0,
    };
    let stored_bytes = match (build.engine, &build.source) {
        // Nothing is kept, or elsewhere.
        (Engine::Null, _) | (_, BuildSource::Url(_)) => 0,
        _ => match &variant.workload {
            Workload::Insert(insert) => cell_rows(insert, cell.clients) * ROW_BYTES,
            Workload::Kv(kv) => kv_bytes(kv),
            Workload::Sysbench(sysbench) => sysbench_rows(sysbench) * SYSBENCH_ROW_BYTES,
        },
    };
    let settling = variant.workload.policy().settle_at_least;
    let steps = variant.workload.steps();
    let times = steps
        .iter()
        .enumerate()
        .map(|(number, step)| match (step.time, step.measures) {
            (Some(time), _) => time + step.warmup,
            (None, true) => work_time(&variant.workload, number, cell.clients),
            (None, false) => settling.max(Duration::from_secs(1)),
        });
    Estimate {
        time: times.sum::<Duration>() + CELL_OVERHEAD,
        disk_bytes: stored_bytes + server_bytes,
        connections: connections(variant, cell.clients),
        working: working(variant, cell.clients),
    }
}

fn tables(insert: &Insert, clients: u32) -> u64 {
    if insert.tables == Tables::Shared {
        1
    } else {
        clients.into()
    }
}

/// The most rows that are in all tables at a time, or whose space is not yet used again.
fn cell_rows(insert: &Insert, clients: u32) -> u64 {
    let tables = tables(insert, clients);
    // Deleted rows leave their space for later ones sooner or later: half of it, for an estimate.
    let kept = |rows: u64| rows / (1 + u64::from(insert.delete_per_insert));
    let rows = |kind: &InsertStepKind| match *kind {
        InsertStepKind::Load { rows, .. } | InsertStepKind::Index { rows, .. } => rows * tables,
        InsertStepKind::Write { until } => kept(written(until, tables)),
        InsertStepKind::Query { rate, time, .. } => {
            kept((rate * time.as_secs_f64() * f64::from(clients)) as u64)
        }
        InsertStepKind::Settle => 0,
    };
    insert.steps.iter().map(|step| rows(&step.kind)).sum()
}

/// Rows that a step writes into all tables.
fn written(until: WriteEnd, tables: u64) -> u64 {
    match until {
        WriteEnd::Rows(rows) => rows * tables,
        WriteEnd::Time(time) => (time.as_secs_f64() * WRITE_ROWS_PER_S as f64) as u64,
    }
}

/// What a step takes that ends with its work.
fn work_time(workload: &Workload, step: usize, clients: u32) -> Duration {
    let (rows, per_second) = match workload {
        Workload::Insert(insert) => {
            let tables = tables(insert, clients);
            match insert.steps[step].kind {
                InsertStepKind::Load { rows, .. } => (rows * tables, LOAD_ROWS_PER_S),
                InsertStepKind::Write { until } => (written(until, tables), WRITE_ROWS_PER_S),
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

/// What the keys and values take, and as much again while they are compacted.
fn kv_bytes(kv: &Kv) -> u64 {
    kv.keys
        .saturating_mul(u64::from(kv.key_size) + u64::from(kv.value_size))
        .saturating_mul(2)
}

fn sysbench_rows(sysbench: &Sysbench) -> u64 {
    sysbench.rows * u64::from(sysbench.tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_what_its_own_workload_is_taken_to_do() {
        let of = |workload: &str, build: &str| {
            let text = format!("[workload.{workload}]\n[build.a]\n{build}\n");
            let (plan, _) = plan::parse("plan.toml", &text, &[]).unwrap();
            assumed(&plan)
        };
        let sqlite = "sqlite = \"bundled\"";
        assert_eq!(of("kv", "rocksdb = \"/l.so\""), "200000 keys/s are loaded");
        assert_eq!(of("sysbench", sqlite), "60000 rows/s are loaded");
        assert_eq!(
            of("insert", sqlite),
            "60000 rows/s are loaded and 8000 rows/s written with indexes"
        );
    }
}
