//! Compares sysbench's own tests and its load between `assay run` and sysbench: the same server,
//! database, tables and statements. CPU time is that of the whole client process while it measures.

use std::process::Command;

use anyhow::{Result, ensure};

use super::Setup;
use super::measure::{Bound, CPU, Finished, Sample, THROUGHPUT, finish, pair};
use super::run::{Run, number, sample};
use super::server::{Server, sysbench_sample};
use crate::workspace::output;

/// Rows of the table of the tests.
const ROW_COUNT: u64 = 50_000;
/// Rows of the load.
const LOAD_COUNT: u64 = 1_000_000;

/// The tests, with the same names on both sides, and the statements of an event, including `begin`
/// and `commit`.
const TESTS: [(&str, u64); 5] = [
    ("oltp_point_select", 1),
    ("oltp_read_only", 16),
    ("oltp_update_non_index", 1),
    ("oltp_insert", 1),
    ("oltp_read_write", 20),
];

/// Runs all tests with one and two threads, and then the load.
pub fn run(setup: &Setup, server: &Server) -> Result<bool> {
    let mut passed = true;
    for test in TESTS {
        for threads in [1, 2] {
            println!("{}, threads: {threads}", test.0);
            passed &= run_test(setup, server, test, threads)?;
        }
    }
    println!("load and index, {LOAD_COUNT} rows");
    Ok(passed & run_load(setup, server)?)
}

/// Compares a test, each time on a new table.
fn run_test(
    setup: &Setup,
    server: &Server,
    (name, statements): (&str, u64),
    threads: u32,
) -> Result<bool> {
    let peer_events = |limits: &str| -> Result<Finished> {
        let arguments = format!("--threads={threads} {limits} run");
        finish(server.sysbench(name, ROW_COUNT, &arguments)?)
    };
    make_table(server)?;
    let start = peer_events("--events=1 --time=0")?.used;
    let ours = || {
        make_table(server)?;
        let plan = plan(setup, server, ROW_COUNT, threads, &format!("{name:?}"));
        let step = Run::of(setup, &plan)?.step(name)?;
        sample(&step, number(&step, "/ops/event/ok")? * statements)
    };
    let peer = || {
        make_table(server)?;
        let finished = peer_events(&format!("--events=0 --time={}", setup.seconds))?;
        Ok(statement_sample(statements, &finished)?.without(start))
    };
    let bounds = [(CPU, Bound::AtMost(0.8)), (THROUGHPUT, Bound::AtLeast(1.0))];
    let (ours, peer) = (("assay", &ours as _), ("sysbench", &peer as _));
    pair(setup.round_count, ours, peer, &bounds)
}

/// Compares the load of a table and its index; an operation is a row.
fn run_load(setup: &Setup, server: &Server) -> Result<bool> {
    drop_table(server)?;
    let start = finish(prepare(server, 1)?)?.used;
    let ours = || {
        drop_table(server)?;
        let run = Run::of(setup, &plan(setup, server, LOAD_COUNT, 1, r#""load", "index""#))?;
        let load = run.step("load")?;
        let load = sample(&load, number(&load, "/ops/insert/rows")?)?;
        let index = sample(&run.step("index")?, 0)?;
        Ok(Sample {
            op_count: load.op_count,
            user_ns: load.user_ns + index.user_ns,
            system_ns: load.system_ns + index.system_ns,
            elapsed_ns: load.elapsed_ns + index.elapsed_ns,
        })
    };
    let peer = || {
        drop_table(server)?;
        let finished = finish(prepare(server, LOAD_COUNT)?)?;
        Ok(finished.sample(LOAD_COUNT).without(start))
    };
    let bounds = [(CPU, Bound::AtMost(0.333)), (THROUGHPUT, Bound::AtLeast(1.0))];
    let (ours, peer) = (("assay", &ours as _), ("sysbench", &peer as _));
    pair(setup.round_count, ours, peer, &bounds)
}

fn plan(setup: &Setup, server: &Server, rows: u64, clients: u32, steps: &str) -> String {
    let (url, seconds) = (&server.url, setup.seconds);
    format!(
        r#"
name = "sysbench-tests"
clients = [{clients}]
[workload.sysbench]
rows = {rows}
load-connections = 1
warmup = "0s"
read-time = "{seconds}s"
write-time = "{seconds}s"
checks = "off"
steps = [{steps}]
[build.server]
url = {url:?}
"#
    )
}

/// Returns the command of sysbench's load of a table.
fn prepare(server: &Server, rows: u64) -> Result<Command> {
    server.sysbench("oltp_read_write", rows, "prepare")
}

/// Replaces sysbench's table by a new one.
fn make_table(server: &Server) -> Result<()> {
    drop_table(server)?;
    output(&mut prepare(server, ROW_COUNT)?)?;
    Ok(())
}

fn drop_table(server: &Server) -> Result<String> {
    output(&mut server.sysbench("oltp_read_write", ROW_COUNT, "cleanup")?)
}

/// Returns the statements that sysbench reports.
fn statement_sample(statements: u64, finished: &Finished) -> Result<Sample> {
    let events = sysbench_sample(finished)?;
    let op_count = events.op_count * statements;
    // An event that sysbench repeated adds queries.
    let counted = finished.number("queries:")?;
    ensure!(
        counted >= op_count as f64,
        "sysbench ran {counted} queries in {} events, fewer than {statements} each",
        events.op_count
    );
    Ok(Sample { op_count, ..events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbenchs_queries_are_those_of_completed_events() {
        let finished = |queries: u32| Finished {
            stdout: format!(
                "SQL statistics:\n    queries performed:\n    queries:      {queries}   (500.00 per sec.)\n\n\
                 General statistics:\n    total time:       4.0000s\n    total number of events:     100\n"
            ),
            memory_bytes: 0,
            used: Sample { op_count: 0, user_ns: 5, system_ns: 6, elapsed_ns: 7 },
        };
        let read = statement_sample(16, &finished(1_616)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (1_600, 4_000_000_000));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        let error = statement_sample(16, &finished(100)).unwrap_err();
        assert!(error.to_string().contains("fewer than 16"), "{error}");
    }
}
