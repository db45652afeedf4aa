//! The Insert Benchmark on PostgreSQL with one client: what a row and a query cost the client, from the record of a run.
//!
//! The limits are of a machine on which a lookup by `pgbench -S -M prepared` costs 4.15 us of client CPU. Another machine,
//! or this one beside its neighbours, is slower by factors. So pgbench runs in each round, and a figure is judged as it
//! would be there: times 4.15 us, over what pgbench's lookup cost in the same round.

use anyhow::Result;

use super::Setup;
use super::limit::{Limit, Pick};
use super::pair::finish;
use super::pgbench::{Server, sample};
use super::steps::Steps;

/// User 1.9 us and system 2.25 us.
const REFERENCE_US_PER_LOOKUP: f64 = 4.15;
/// pgbench's connections there.
const CONNECTIONS: u32 = 2;
/// Lookups of each.
const OP_COUNT: u64 = 50_000;

fn plan(build: &str) -> String {
    format!(
        r#"
name = "client-cost"
clients = [1]
[workload.insert]
initial-rows = "300k"
write-rows = "100k"
read-write-time = "5s"
steps = ["l.i0", "l.x", "l.i1", "qr100"]
[build.pg]
postgres = {build:?}
[config.postgres.base]
set = {{ fsync = false, synchronous_commit = false, shared_buffers = "256MB", autovacuum = false, max_wal_size = "4GB" }}
[[target]]
builds = ["pg"]
configs = ["base"]
"#
    )
}

/// Runs pgbench and the plan in turn and judges the scaled figures.
pub fn run(setup: &Setup) -> Result<bool> {
    let assay = &setup.programs()?.assay;
    let server = Server::start()?;
    let plan = plan(&server.build().display().to_string());
    let mut lookups = Vec::new();
    let mut raw: [Vec<f64>; 3] = Default::default();
    let mut scaled = raw.clone();
    for index in 0..setup.round_count {
        // Which of the two begins alternates, as in a pair.
        let before = if index % 2 == 0 {
            Some(lookup_us(&server)?)
        } else {
            None
        };
        let figures = figures(assay, &plan)?;
        let lookup = match before {
            Some(lookup) => lookup,
            None => lookup_us(&server)?,
        };
        lookups.push(lookup);
        for (index, figure) in figures.into_iter().enumerate() {
            raw[index].push(figure);
            scaled[index].push(figure * REFERENCE_US_PER_LOOKUP / lookup);
        }
    }
    let shown = |name, values: &[f64]| {
        let limit = Limit {
            name,
            at_most: None,
            pick: Pick::Median,
        };
        println!("{}", limit.judge(values).0);
    };
    shown("pgbench_cpu_us_per_op", &lookups);
    let limits = [
        ("l.i0_cpu_us_per_row", "l.i0_scaled_us_per_row", 0.5),
        (
            "l.i1_cpu_us_per_row_inserted_and_deleted",
            "l.i1_scaled_us_per_row_inserted_and_deleted",
            1.0,
        ),
        ("qr_cpu_us_per_query", "qr_scaled_us_per_query", 6.0),
    ];
    let mut kept = true;
    for (index, (raw_name, scaled_name, at_most)) in limits.into_iter().enumerate() {
        shown(raw_name, &raw[index]);
        let limit = Limit {
            name: scaled_name,
            at_most: Some(at_most),
            pick: Pick::Median,
        };
        let (line, holds) = limit.judge(&scaled[index]);
        println!("{line}");
        kept &= holds;
    }
    println!(
        "scaled: times {REFERENCE_US_PER_LOOKUP} us over what pgbench's lookup cost in the same round"
    );
    Ok(kept)
}

/// Client CPU of one of pgbench's lookups, us.
fn lookup_us(server: &Server) -> Result<f64> {
    let lookups = sample(&finish(server.lookups(CONNECTIONS, OP_COUNT))?)?;
    Ok((lookups.user_ns + lookups.system_ns) as f64 / 1e3 / lookups.op_count as f64)
}

/// Client CPU of one run, us: per row loaded, per row inserted and deleted, per range query.
fn figures(assay: &std::path::Path, plan: &str) -> Result<[f64; 3]> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    // The server may run as another user.
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let steps = Steps::of_run(assay, plan, folder.path())?;
    Ok([
        steps.metric("l.i0", "client_cpu_us_per_row_inserted")?,
        steps.metric("l.i1", "client_cpu_us_per_row_inserted")?
            + steps.metric("l.i1", "client_cpu_us_per_row_deleted")?,
        steps.metric("qr100", "client_cpu_us_per_query")?,
    ])
}
