//! Measures the Insert Benchmark with one client: the client's CPU time for a row and a query, from
//! the record of a run.
//!
//! The bounds are for a reference machine, on which a lookup by `pgbench -S -M prepared` costs 4.15
//! us of client CPU, and one by `sysbench oltp_point_select` 4.4 us. Other machines, or busy ones,
//! are much slower. So the peer runs in each round, and each figure is scaled to the reference
//! machine by the cost of a lookup in the same round.

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, in_turn, judge_all};
use super::run::Run;
use super::server::Server;

/// The peer's connections on the reference machine.
const CONNECTIONS: u64 = 2;
/// Lookups of each connection.
const OP_COUNT: u64 = 50_000;

/// The client CPU of pgbench's lookup on the reference machine: 1.9 us user and 2.25 us system.
const PGBENCH_US: f64 = 4.15;
/// The client CPU of sysbench's lookup on the reference machine: 2.1 us user and 2.3 us system.
const SYSBENCH_US: f64 = 4.4;

/// Runs it on PostgreSQL, with pgbench as the peer.
pub fn on_postgres(setup: &Setup) -> Result<bool> {
    let server = Server::postgres(setup)?;
    let set = r#"fsync = false, synchronous_commit = false, shared_buffers = "256MB", autovacuum = false, max_wal_size = "4GB""#;
    run(setup, &server, ("postgres", set), PGBENCH_US, Bound::AtMost(6.0))
}

/// Runs it on MariaDB, with sysbench as the peer: on InnoDB, and on MyRocks if the build has it.
pub fn on_mysql(setup: &Setup) -> Result<bool> {
    let server = Server::mysql(setup)?;
    println!("innodb:");
    let set = r#"default_storage_engine = "innodb", sync_binlog = 0, innodb_buffer_pool_size = "256M", innodb_flush_log_at_trx_commit = 0, innodb_doublewrite = "OFF", innodb_log_file_size = "1G""#;
    let mut passed = run(setup, &server, ("mysql", set), SYSBENCH_US, Bound::None)?;
    if server.has_myrocks() {
        println!("rocksdb:");
        let set = r#"default_storage_engine = "rocksdb", sync_binlog = 0, rocksdb_block_cache_size = "256M", rocksdb_flush_log_at_trx_commit = 0"#;
        passed &= run(setup, &server, ("mysql", set), SYSBENCH_US, Bound::None)?;
    } else {
        println!("rocksdb: not applicable, the build has no MyRocks");
    }
    Ok(passed)
}

/// Runs the peer and the plan in turn, and checks the scaled figures.
fn run(
    setup: &Setup,
    server: &Server,
    (engine, set): (&str, &str),
    reference_us: f64,
    query: Bound,
) -> Result<bool> {
    // A cost can be compared with an older one only in terms of something that the same machine did.
    println!(
        "scaled: times {reference_us} us, divided by the cost of the peer's lookup in the same round"
    );
    let (_, cpu_us) = CPU;
    let look_up = || Ok(cpu_us(&server.lookups(CONNECTIONS, OP_COUNT)?));
    let plan = plan_for(server, engine, set);
    let rounds = in_turn(setup.round_count, look_up, || costs(setup, &plan))?;

    let mut figures = Vec::new();
    for (lookup, costs) in rounds {
        let scale = reference_us / lookup;
        figures.push([
            lookup,
            costs.row_us,
            costs.row_us * scale,
            costs.replaced_row_us,
            costs.replaced_row_us * scale,
            costs.query_us,
            costs.query_us * scale,
        ]);
    }
    let bounds = [
        ("peer_cpu_us_per_op", Bound::None),
        ("l.i0_cpu_us_per_row", Bound::None),
        ("l.i0_scaled_us_per_row", Bound::AtMost(0.5)),
        ("l.i1_cpu_us_per_row_inserted_and_deleted", Bound::None),
        ("l.i1_scaled_us_per_row_inserted_and_deleted", Bound::AtMost(1.0)),
        ("qr_cpu_us_per_query", Bound::None),
        ("qr_scaled_us_per_query", query),
    ];
    Ok(judge_all(bounds, &figures))
}

/// Returns a small Insert Benchmark on a server, with these options of its engine.
fn plan_for(server: &Server, engine: &str, set: &str) -> String {
    format!(
        r#"
name = "client-cost"
clients = [1]
[workload.insert]
initial-rows = "300k"
write-rows = "100k"
read-write-time = "5s"
steps = ["l.i0", "l.x", "l.i1", "qr100"]
[build.server]
{engine} = {:?}
[config.{engine}.base]
set = {{ {set} }}
[[target]]
builds = ["server"]
configs = ["base"]
"#,
        server.build
    )
}

/// The client's CPU in one run.
struct Costs {
    /// Of a row loaded.
    row_us: f64,
    /// Of a row inserted and one deleted.
    replaced_row_us: f64,
    /// Of a range query.
    query_us: f64,
}

/// Runs a plan, and returns the client's CPU.
fn costs(setup: &Setup, plan: &str) -> Result<Costs> {
    let run = Run::of(setup, plan)?;
    let inserted_us = run.metric("l.i1", "client_cpu_us_per_row_inserted")?;
    let deleted_us = run.metric("l.i1", "client_cpu_us_per_row_deleted")?;
    Ok(Costs {
        row_us: run.metric("l.i0", "client_cpu_us_per_row_inserted")?,
        replaced_row_us: inserted_us + deleted_us,
        query_us: run.metric("qr100", "client_cpu_us_per_query")?,
    })
}
