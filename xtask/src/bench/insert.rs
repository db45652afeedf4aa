//! The Insert Benchmark with one client: what a row and a query cost the client, from the record of a run.
//!
//! The limits are of a machine on which a lookup by `pgbench -S -M prepared` costs 4.15 us of client CPU, and one by
//! `sysbench oltp_point_select` 4.4 us. Another machine, or this one beside its neighbours, is slower by factors. So the
//! peer runs in each round, and a figure is judged as it would be there: times what a lookup costs there, over what it
//! cost in the same round.

use std::path::Path;

use anyhow::Result;

use super::limit::{Limit, Pick};
use super::pair::{Sample, finish};
use super::steps::Steps;
use super::{Setup, pgbench, sysbench};

/// The peer's connections on the machine of the limits.
const CONNECTIONS: u32 = 2;
/// Lookups of each.
const OP_COUNT: u64 = 50_000;

/// A figure's name, as it was measured and scaled, and the most that it may be.
type Bound = (&'static str, &'static str, Option<f64>);

/// What a system is run with, and what is known of the peer on it.
struct Case<'a> {
    /// The lines of the plan about builds and configs.
    targets: &'a str,
    /// The peer's name, for its figure.
    peer: &'static str,
    /// Client CPU of its lookup on the machine of the limits, us.
    reference_us: f64,
    /// Looks up, and says what it cost.
    lookups: &'a dyn Fn() -> Result<Sample>,
    /// The limits, in the order of [`figures`].
    bounds: [Bound; 3],
}

const LOADED: Bound = ("l.i0_cpu_us_per_row", "l.i0_scaled_us_per_row", Some(0.5));
const REPLACED: Bound = (
    "l.i1_cpu_us_per_row_inserted_and_deleted",
    "l.i1_scaled_us_per_row_inserted_and_deleted",
    Some(1.0),
);

const fn queried(at_most: Option<f64>) -> Bound {
    ("qr_cpu_us_per_query", "qr_scaled_us_per_query", at_most)
}

/// On PostgreSQL, beside pgbench.
pub fn on_postgres(setup: &Setup) -> Result<bool> {
    let server = pgbench::Server::start()?;
    let targets = format!(
        r#"
[build.pg]
postgres = {:?}
[config.postgres.base]
set = {{ fsync = false, synchronous_commit = false, shared_buffers = "256MB", autovacuum = false, max_wal_size = "4GB" }}
[[target]]
builds = ["pg"]
configs = ["base"]
"#,
        server.build().display().to_string()
    );
    run(
        setup,
        &Case {
            targets: &targets,
            peer: "pgbench_cpu_us_per_op",
            // User 1.9 us and system 2.25 us.
            reference_us: 4.15,
            lookups: &|| pgbench::sample(&finish(server.lookups(CONNECTIONS, OP_COUNT))?),
            bounds: [LOADED, REPLACED, queried(Some(6.0))],
        },
    )
}

/// On MySQL or MariaDB, beside sysbench: InnoDB, and MyRocks where the build has it.
pub fn on_mysql(setup: &Setup) -> Result<bool> {
    let server = sysbench::Server::start(&setup.programs()?.mysql_server)?;
    let configs = [
        (
            "innodb",
            r#"innodb_buffer_pool_size = "256M", innodb_flush_log_at_trx_commit = 0, innodb_doublewrite = "OFF", innodb_log_file_size = "1G""#,
        ),
        (
            "rocksdb",
            r#"rocksdb_block_cache_size = "256M", rocksdb_flush_log_at_trx_commit = 0"#,
        ),
    ];
    let mut kept = true;
    for (storage_engine, options) in configs {
        if storage_engine == "rocksdb" && !server.has_myrocks() {
            println!("rocksdb: n/a - the build has none");
            continue;
        }
        println!("{storage_engine}:");
        let targets = format!(
            r#"
[build.my]
mysql = {:?}
[config.mysql.base]
set = {{ default_storage_engine = {storage_engine:?}, sync_binlog = 0, {options} }}
[[target]]
builds = ["my"]
configs = ["base"]
"#,
            server.build()
        );
        kept &= run(
            setup,
            &Case {
                targets: &targets,
                peer: "sysbench_cpu_us_per_op",
                // User 2.1 us and system 2.3 us.
                reference_us: 4.4,
                lookups: &|| sysbench::sample(&finish(server.lookups(CONNECTIONS, OP_COUNT))?),
                bounds: [LOADED, REPLACED, queried(None)],
            },
        )?;
    }
    Ok(kept)
}

/// Runs the peer and the plan in turn and judges the scaled figures.
fn run(setup: &Setup, case: &Case<'_>) -> Result<bool> {
    let assay = &setup.programs()?.assay;
    let mut lookups = Vec::new();
    let mut raw: [Vec<f64>; 3] = Default::default();
    let mut scaled = raw.clone();
    let lookup_us = || -> Result<f64> {
        let sample = (case.lookups)()?;
        Ok((sample.user_ns + sample.system_ns) as f64 / 1e3 / sample.op_count as f64)
    };
    for index in 0..setup.round_count {
        // Which of the two begins alternates, as in a pair.
        let before = if index % 2 == 0 {
            Some(lookup_us()?)
        } else {
            None
        };
        let figures = figures(assay, case.targets)?;
        let lookup = match before {
            Some(lookup) => lookup,
            None => lookup_us()?,
        };
        lookups.push(lookup);
        for (index, figure) in figures.into_iter().enumerate() {
            raw[index].push(figure);
            scaled[index].push(figure * case.reference_us / lookup);
        }
    }
    let judged = |name, at_most, values: &[f64]| {
        let limit = Limit {
            name,
            at_most,
            pick: Pick::Median,
        };
        let (line, holds) = limit.judge(values);
        println!("{line}");
        holds
    };
    judged(case.peer, None, &lookups);
    let mut kept = true;
    for (index, (raw_name, scaled_name, at_most)) in case.bounds.into_iter().enumerate() {
        judged(raw_name, None, &raw[index]);
        kept &= judged(scaled_name, at_most, &scaled[index]);
    }
    println!(
        "scaled: times {} us over what the peer's lookup cost in the same round",
        case.reference_us
    );
    Ok(kept)
}

/// Client CPU of one run, us: per row loaded, per row inserted and deleted, per range query.
fn figures(assay: &Path, targets: &str) -> Result<[f64; 3]> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    // The server may run as another user.
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let plan = format!(
        r#"
name = "client-cost"
clients = [1]
[workload.insert]
initial-rows = "300k"
write-rows = "100k"
read-write-time = "5s"
steps = ["l.i0", "l.x", "l.i1", "qr100"]
{targets}"#
    );
    let steps = Steps::of_run(assay, &plan, folder.path())?;
    Ok([
        steps.metric("l.i0", "client_cpu_us_per_row_inserted")?,
        steps.metric("l.i1", "client_cpu_us_per_row_inserted")?
            + steps.metric("l.i1", "client_cpu_us_per_row_deleted")?,
        steps.metric("qr100", "client_cpu_us_per_query")?,
    ])
}
