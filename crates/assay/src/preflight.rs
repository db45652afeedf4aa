//! What is known of a run before it begins: whether it can run, and what it will take.

use std::time::Duration;

use engine::{Needs, mysql, postgres};
use plan::{
    BuildSource, Diagnostic, Engine, Insert, InsertStepKind, Kv, KvStepKind, Limits, Place, Plan,
    Sysbench, SysbenchStepKind, Tables, Variant, Workload,
};

use record::CellRef;

use crate::plan_file::{PlanFile, refusal};

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
pub fn estimate(plan: &Plan) -> Estimate {
    sum(plan.cells().iter().map(|cell| cell_estimate(plan, cell)))
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
pub fn cell_estimate(plan: &Plan, cell: &plan::Cell) -> Estimate {
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
    Estimate {
        time: match &variant.workload {
            Workload::Insert(insert) => cell_time(insert, cell.clients),
            Workload::Kv(kv) => kv_time(kv),
            Workload::Sysbench(sysbench) => sysbench_time(sysbench),
        },
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
    let rows = |kind: &InsertStepKind| match *kind {
        InsertStepKind::Load { rows, .. } | InsertStepKind::Index { rows, .. } => rows * tables,
        // Deleted rows leave their space for later ones sooner or later: half of it, for an estimate.
        InsertStepKind::Write { rows, .. } if insert.delete_per_insert => rows * tables / 2,
        InsertStepKind::Write { rows, .. } => rows * tables,
        InsertStepKind::Query { rate, time, .. } => {
            let rows = (rate * time.as_secs_f64() * f64::from(clients)) as u64;
            if insert.delete_per_insert {
                rows / 2
            } else {
                rows
            }
        }
        InsertStepKind::Settle => 0,
    };
    insert.steps.iter().map(|step| rows(&step.kind)).sum()
}

fn cell_time(insert: &Insert, clients: u32) -> Duration {
    let tables = tables(insert, clients);
    let loading = |rows: u64, per_second: u64| {
        Duration::from_secs_f64((rows * tables) as f64 / per_second as f64)
    };
    let time = |kind: &InsertStepKind| match *kind {
        InsertStepKind::Load { rows, .. } => loading(rows, LOAD_ROWS_PER_S),
        InsertStepKind::Index { .. } => loading(insert.initial_rows, LOAD_ROWS_PER_S * 5),
        InsertStepKind::Write { rows, .. } => loading(rows, WRITE_ROWS_PER_S),
        InsertStepKind::Query { time, .. } => time,
        InsertStepKind::Settle => insert.terms.settle_at_least.max(Duration::from_secs(1)),
    };
    insert
        .steps
        .iter()
        .map(|step| time(&step.kind))
        .sum::<Duration>()
        + CELL_OVERHEAD
}

/// What the keys and values take, and as much again while they are compacted.
fn kv_bytes(kv: &Kv) -> u64 {
    kv.keys
        .saturating_mul(u64::from(kv.key_size) + u64::from(kv.value_size))
        .saturating_mul(2)
}

fn kv_time(kv: &Kv) -> Duration {
    let writing = |entries: u64| Duration::from_secs_f64(entries as f64 / PUTS_PER_S as f64);
    let time = |kind: &KvStepKind| match *kind {
        KvStepKind::FillSeq => writing(kv.keys),
        KvStepKind::OverwriteSome { writes } => writing(writes),
        KvStepKind::Read { time, .. }
        | KvStepKind::ReadWhileWriting { time, .. }
        | KvStepKind::Overwrite { time } => time,
        KvStepKind::Drain | KvStepKind::Flush => {
            kv.terms.settle_at_least.max(Duration::from_secs(1))
        }
    };
    kv.steps
        .iter()
        .map(|step| time(&step.kind))
        .sum::<Duration>()
        + CELL_OVERHEAD
}

fn sysbench_rows(sysbench: &Sysbench) -> u64 {
    sysbench.rows * u64::from(sysbench.tables)
}

fn sysbench_time(sysbench: &Sysbench) -> Duration {
    let rows = sysbench_rows(sysbench) as f64;
    let loading = |per_second: u64| Duration::from_secs_f64(rows / per_second as f64);
    let time = |kind: &SysbenchStepKind| match *kind {
        SysbenchStepKind::Load => loading(LOAD_ROWS_PER_S),
        SysbenchStepKind::Index => loading(LOAD_ROWS_PER_S * 15),
        SysbenchStepKind::Settle => sysbench.terms.settle_at_least.max(Duration::from_secs(1)),
        SysbenchStepKind::Run { time, warmup, .. } => time + warmup,
    };
    sysbench
        .steps
        .iter()
        .map(|step| time(&step.kind))
        .sum::<Duration>()
        + CELL_OVERHEAD
}

/// Refuses what the plan's text alone can't tell: a config for a server that assay does not start, a feature that an
/// engine doesn't have, a file that isn't there, a URL that is none.
pub fn refuse_what_cannot_run(file: &PlanFile) -> anyhow::Result<()> {
    let plan = &file.plan;
    let has_partitions = plan.variants.iter().any(
        |variant| matches!(&variant.workload, Workload::Insert(insert) if insert.partitions > 0),
    );
    let has_no_load = plan.variants.iter().any(
        |variant| matches!(&variant.workload, Workload::Sysbench(sysbench) if !sysbench.loads()),
    );
    let mut refused: Vec<Diagnostic> = Vec::new();
    for target in &plan.targets {
        let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
        let configured = !config.files.is_empty() || !config.set.is_empty();
        let limited = config.limits != Limits::default();
        let of_config = |is_wanted: &dyn Fn(&str) -> bool| {
            let value = file.value_in(config, is_wanted);
            value.map_or(Place::Nowhere, |value| value.place)
        };
        let is_limit = |key: &str| key == "memory" || key == "cpus";
        let is_option = |key: &str| key == "file" || key.starts_with("set.");
        let is_workload = |key: &str, end: &str| key.starts_with("workload.") && key.ends_with(end);
        let what = match (build.engine, &build.source) {
            (Engine::Sqlite | Engine::Null, _) | (_, BuildSource::Url(_)) if limited => Some((
                of_config(&is_limit),
                "only a server that assay starts can be limited in memory and CPUs",
                "use a config without `memory` and `cpus`",
            )),
            (_, BuildSource::Url(_)) if configured => Some((
                of_config(&is_option),
                "a server that assay does not start can't be given a config",
                "use a config without `file` and `set`, and configure the server itself",
            )),
            (Engine::Sqlite, _) if !config.files.is_empty() => Some((
                of_config(&|key| key == "file"),
                "SQLite has no configuration file",
                "give its pragmas with `set`",
            )),
            (Engine::Sqlite, _) if has_partitions => Some((
                file.place_of(|key| is_workload(key, ".partitions")),
                "SQLite has no partitions",
                "leave out `partitions`, or this target",
            )),
            (_, BuildSource::Installed(_) | BuildSource::Bundled) if has_no_load => Some((
                file.place_of(|key| is_workload(key, ".steps")),
                "no step loads the tables",
                "begin the steps with `load`; only a server of a `url` can have the tables of `sysbench prepare`",
            )),
            (Engine::RocksDb, _) if has_partitions => Some((
                file.place_of(|key| is_workload(key, ".partitions")),
                "RocksDB has no partitions",
                "leave out `partitions`, or this target",
            )),
            (Engine::RocksDb, _) if config.files.len() > 1 => Some((
                of_config(&|key| key == "file"),
                "RocksDB takes one file of options",
                "put them into one, or give options with `set`",
            )),
            (Engine::Null, _) if configured => Some((
                of_config(&is_option),
                "the null engine has no options",
                "use a config without `file` and `set`",
            )),
            _ => None,
        };
        if let Some((place, what, help)) = what {
            let message = format!("target `{}`: {what}", target.name);
            refused.push(Diagnostic::error("target::impossible", place, message).help(help));
            continue;
        }
        refused.extend(file.unreadable_files(config));
    }
    for build in &plan.builds {
        let BuildSource::Url(url) = &build.source else {
            continue;
        };
        let understood = match build.engine {
            Engine::Mysql => mysql::parse_url(url.expose()).map(drop),
            _ => postgres::parse_url(url.expose()).map(drop),
        };
        if let Err(error) = understood {
            let message = format!("build `{}`: {error}", build.name);
            let place = file.place_of_build(build);
            refused.push(refusal("plan::bad-url", place, message, error.help()));
        }
    }
    // One mistake of a config is that of all its targets.
    refused.sort_by_key(|diagnostic| diagnostic.place);
    refused.dedup_by(|one, other| one.place == other.place && one.place != Place::Nowhere);
    Ok(file.refuse(&refused)?)
}

/// Returns what of a plan's matrix has no cells, and why, in words; of what `is_wanted` would have had some.
pub fn not_applicable(plan: &Plan, is_wanted: impl Fn(&CellRef) -> bool) -> Vec<String> {
    let mut said = Vec::new();
    for pair in plan.not_applicable() {
        let variant = &plan.variants[pair.variant];
        let (target, name) = (&plan.targets[pair.target].name, variant.name.as_deref());
        let cell = |clients| CellRef::new(target, variant.workload.name(), name, clients, 1);
        if !plan
            .clients
            .iter()
            .any(|&clients| is_wanted(&cell(clients)))
        {
            continue;
        }
        let variant = name.map(|name| format!(" with variant `{name}`"));
        said.push(format!(
            "`{target}`{} is not applicable, and left out: {}",
            variant.unwrap_or_default(),
            pair.why
        ));
    }
    said
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
