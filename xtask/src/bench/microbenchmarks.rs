//! sysbench's own tests and its load, by `assay run` and by sysbench: one server, one database, tables that sysbench made,
//! the same statements. CPU time is that of the whole client process while it measures.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::pair::{Bound, Contender, Figure, Finished, Pair, Sample, Spent, finish};
use super::steps::step_of;
use super::{Setup, pgbench, sysbench};
use crate::prepare;
use crate::workspace::output;

/// Rows of the table that the tests run on.
const ROW_COUNT: u32 = 50_000;
/// Rows that the load makes.
const LOAD_COUNT: u32 = 1_000_000;
/// How long a run of a test lasts unless told.
const SECONDS: u64 = 5;

/// The tests, which both sides call the same, and the statements of an event, `begin` and `commit` included.
const TESTS: [(&str, f64); 5] = [
    ("oltp_point_select", 1.0),
    ("oltp_read_only", 16.0),
    ("oltp_update_non_index", 1.0),
    ("oltp_insert", 1.0),
    ("oltp_read_write", 20.0),
];

/// Against sysbench on PostgreSQL.
pub fn on_postgres(setup: &Setup) -> Result<bool> {
    if !prepare::program("sysbench", "sysbench")? {
        bail!("no `sysbench` - install what Debian calls: sysbench");
    }
    let server = pgbench::Server::start()?;
    run(setup, &server.url(), &|| server.sysbench())
}

/// Against sysbench on MariaDB.
pub fn on_mysql(setup: &Setup) -> Result<bool> {
    let server = sysbench::Server::start(&setup.programs()?.mysql_server)?;
    run(setup, server.url(), &|| server.sysbench())
}

/// Runs all tests with one thread and with two, and then the load.
fn run(setup: &Setup, url: &str, peer: &dyn Fn() -> Command) -> Result<bool> {
    let sides = Sides {
        assay: &setup.programs()?.assay,
        url,
        peer,
        home: tempfile::tempdir()?,
        seconds: setup.seconds.unwrap_or(SECONDS),
    };
    let mut kept = true;
    for test in TESTS {
        for threads in [1, 2] {
            println!("{}, threads: {threads}", test.0);
            kept &= sides.test(test, threads)?.run(setup.round_count)?;
        }
    }
    println!("load and index, {LOAD_COUNT} rows");
    Ok(kept & sides.load()?.run(setup.round_count)?)
}

/// Both sides, on one database.
struct Sides<'a> {
    assay: &'a Path,
    url: &'a str,
    /// sysbench with what it needs to connect.
    peer: &'a dyn Fn() -> Command,
    /// Our plans and results.
    home: TempDir,
    seconds: u64,
}

impl Sides<'_> {
    /// A test, each time on a table that was just made.
    fn test(&self, (name, statements): (&'static str, f64), threads: u32) -> Result<Pair<'_>> {
        self.make_table()?;
        let start = Spent::of(&finish(self.peer_test(
            name,
            threads,
            &["--events=1", "--time=0"],
        ))?);
        Ok(Pair {
            ours: Contender {
                name: "assay".to_owned(),
                command: Box::new(move || {
                    self.make_table()?;
                    self.ours(ROW_COUNT, threads, &format!("{name:?}"))
                }),
                read: Box::new(move |finished| {
                    let step = step_of(finished.last_line()?, name)?;
                    step.sample(step.number("/ops/event/ok")? * statements)
                }),
            },
            peer: Contender {
                name: "sysbench".to_owned(),
                command: Box::new(move || {
                    self.make_table()?;
                    let time = format!("--time={}", self.seconds);
                    Ok(self.peer_test(name, threads, &["--events=0", &time]))
                }),
                read: Box::new(move |finished| {
                    Ok(start.without(sample_of_peer(statements, finished)?))
                }),
            },
            bounds: vec![
                Bound::RatioAtMost(Figure::Cpu, 0.8),
                Bound::RatioAtLeast(Figure::Throughput, 1.0),
            ],
        })
    }

    /// The load of a table and of its index; an operation is a row.
    fn load(&self) -> Result<Pair<'_>> {
        self.drop_table()?;
        let start = Spent::of(&finish(self.peer_load(1))?);
        Ok(Pair {
            ours: Contender {
                name: "assay".to_owned(),
                command: Box::new(|| {
                    self.drop_table()?;
                    self.ours(LOAD_COUNT, 1, "\"load\", \"index\"")
                }),
                read: Box::new(|finished| {
                    let directory = finished.last_line()?;
                    let load = step_of(directory, "load")?;
                    let loaded = load.sample(load.number("/ops/insert/rows")?)?;
                    let index = step_of(directory, "index")?.sample(0.0)?;
                    Ok(Sample {
                        op_count: loaded.op_count,
                        user_ns: loaded.user_ns + index.user_ns,
                        system_ns: loaded.system_ns + index.system_ns,
                        elapsed_ns: loaded.elapsed_ns + index.elapsed_ns,
                    })
                }),
            },
            peer: Contender {
                name: "sysbench".to_owned(),
                command: Box::new(|| {
                    self.drop_table()?;
                    Ok(self.peer_load(LOAD_COUNT))
                }),
                read: Box::new(move |finished| {
                    Ok(start.without(finished.sample(LOAD_COUNT.into())))
                }),
            },
            bounds: vec![
                Bound::RatioAtMost(Figure::Cpu, 0.333),
                Bound::RatioAtLeast(Figure::Throughput, 1.0),
            ],
        })
    }

    /// A run of assay, which drops at its end the table that it made.
    fn ours(&self, rows: u32, clients: u32, steps: &str) -> Result<Command> {
        let Sides { url, seconds, .. } = self;
        let plan = format!(
            r#"
name = "microbenchmarks"
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
        );
        let file = self.home.path().join("plan.toml");
        fs_err::write(&file, plan)?;
        let mut command = Command::new(self.assay);
        command.args(["run", "--quiet", "--results"]);
        command.arg(self.home.path().join("results"));
        command.arg(file);
        Ok(command)
    }

    fn peer_test(&self, name: &str, threads: u32, arguments: &[&str]) -> Command {
        let mut command = (self.peer)();
        command.args([name, "--tables=1", "--rand-type=uniform"]);
        command.arg(format!("--table-size={ROW_COUNT}"));
        command.arg(format!("--threads={threads}"));
        command.args(arguments).arg("run");
        command
    }

    fn peer_load(&self, rows: u32) -> Command {
        let mut command = (self.peer)();
        command.args(["oltp_read_write", "--tables=1"]);
        command.arg(format!("--table-size={rows}")).arg("prepare");
        command
    }

    /// sysbench's table, anew: nothing of earlier runs is in it.
    fn make_table(&self) -> Result<()> {
        self.drop_table()?;
        output(&mut self.peer_load(ROW_COUNT))?;
        Ok(())
    }

    fn drop_table(&self) -> Result<()> {
        let mut command = (self.peer)();
        output(command.args(["oltp_read_write", "--tables=1", "cleanup"]))?;
        Ok(())
    }
}

/// What sysbench did, in statements as it counts them itself.
fn sample_of_peer(statements: f64, finished: &Finished) -> Result<Sample> {
    let events = sysbench::sample(finished)?;
    let counted = finished
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("queries:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .context("sysbench printed no number of queries")?;
    // An event that it had to begin again has queries of its own.
    let least = (events.op_count as f64 * statements) as u64;
    if counted < least {
        bail!(
            "sysbench ran {counted} queries in {} events, fewer than {statements} each",
            events.op_count
        );
    }
    Ok(Sample {
        op_count: least,
        ..events
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbenchs_queries_are_those_of_the_events_that_it_completed() {
        let finished = |queries: u32| Finished {
            stdout: format!(
                "SQL statistics:\n    queries:      {queries}   (500.00 per sec.)\n\nGeneral statistics:\n    \
                 total time:       4.0000s\n    total number of events:     100\n"
            ),
            user_ns: 5,
            system_ns: 6,
            elapsed_ns: 7,
        };
        let read = sample_of_peer(16.0, &finished(1_616)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (1_600, 4_000_000_000));
        let error = sample_of_peer(16.0, &finished(100)).unwrap_err();
        assert!(error.to_string().contains("fewer than 16"), "{error}");
        assert!(
            sample_of_peer(
                1.0,
                &Finished {
                    stdout: String::new(),
                    ..finished(1)
                }
            )
            .is_err()
        );
    }
}
