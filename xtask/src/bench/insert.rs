//! The Insert Benchmark with one client: what a row and a query cost the client, from the record of a run.
//!
//! The bounds are of a machine on which a lookup by `pgbench -S -M prepared` costs 4.15 us of client CPU, and one by
//! `sysbench oltp_point_select` 4.4 us. Another machine, or this one beside its neighbors, is slower by factors. So the
//! peer runs in each round, and a figure is judged as it would be there: times what a lookup costs there, over what it
//! cost in the same round.

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, in_turn, judge_all};
use super::run::Run;
use super::server::Server;

/// The peer's connections on the machine of the bounds.
const CONNECTIONS: u64 = 2;
/// Lookups of each.
const OP_COUNT: u64 = 50_000;

/// User 1.9 us and system 2.25 us.
const PGBENCH_US: f64 = 4.15;
/// User 2.1 us and system 2.3 us.
const SYSBENCH_US: f64 = 4.4;

/// On PostgreSQL, beside pgbench.
pub fn on_postgres(setup: &Setup) -> Result<bool> {
    let server = Server::postgres(setup)?;
    let set = r#"fsync = false, synchronous_commit = false, shared_buffers = "256MB", autovacuum = false, max_wal_size = "4GB""#;
    run(
        setup,
        &server,
        ("postgres", set),
        PGBENCH_US,
        Bound::AtMost(6.0),
    )
}

/// On MariaDB, beside sysbench: InnoDB, and MyRocks where the build has it.
pub fn on_mysql(setup: &Setup) -> Result<bool> {
    let server = Server::mysql(setup)?;
    println!("innodb:");
    let set = r#"default_storage_engine = "innodb", sync_binlog = 0, innodb_buffer_pool_size = "256M", innodb_flush_log_at_trx_commit = 0, innodb_doublewrite = "OFF", innodb_log_file_size = "1G""#;
    let mut kept = run(setup, &server, ("mysql", set), SYSBENCH_US, Bound::None)?;
    if server.has_myrocks() {
        println!("rocksdb:");
        let set = r#"default_storage_engine = "rocksdb", sync_binlog = 0, rocksdb_block_cache_size = "256M", rocksdb_flush_log_at_trx_commit = 0"#;
        kept &= run(setup, &server, ("mysql", set), SYSBENCH_US, Bound::None)?;
    } else {
        println!("rocksdb: n/a - the build has none");
    }
    Ok(kept)
}

/// Runs the peer and the plan in turn and judges the scaled figures.
fn run(
    setup: &Setup,
    server: &Server,
    (engine, set): (&str, &str),
    reference_us: f64,
    query: Bound,
) -> Result<bool> {
    let plan = format!(
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
    );
    let bounds = [
        ("peer_cpu_us_per_op", Bound::None),
        ("l.i0_cpu_us_per_row", Bound::None),
        ("l.i0_scaled_us_per_row", Bound::AtMost(0.5)),
        ("l.i1_cpu_us_per_row_inserted_and_deleted", Bound::None),
        (
            "l.i1_scaled_us_per_row_inserted_and_deleted",
            Bound::AtMost(1.0),
        ),
        ("qr_cpu_us_per_query", Bound::None),
        ("qr_scaled_us_per_query", query),
    ];
    println!("scaled: times {reference_us} us over what the peer's lookup cost in the same round");
    let (_, cpu_us) = CPU;
    let look_up = || Ok(cpu_us(&server.lookups(CONNECTIONS, OP_COUNT)?));
    let rounds = in_turn(setup.round_count, look_up, || costs(setup, &plan))?;
    let figures = rounds.into_iter().map(|(lookup, [row, replaced, query])| {
        let scaled = |cost| cost * reference_us / lookup;
        [
            lookup,
            row,
            scaled(row),
            replaced,
            scaled(replaced),
            query,
            scaled(query),
        ]
    });
    Ok(judge_all(bounds, &figures.collect::<Vec<_>>()))
}

/// Client CPU of one run, us: per row loaded, per row inserted and deleted, per range query.
fn costs(setup: &Setup, plan: &str) -> Result<[f64; 3]> {
    let run = Run::of(setup, plan)?;
    Ok([
        run.metric("l.i0", "client_cpu_us_per_row_inserted")?,
        run.metric("l.i1", "client_cpu_us_per_row_inserted")?
            + run.metric("l.i1", "client_cpu_us_per_row_deleted")?,
        run.metric("qr100", "client_cpu_us_per_query")?,
    ])
}
