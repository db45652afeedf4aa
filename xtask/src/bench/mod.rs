//! `cargo xtask bench`: what the harness itself costs, measured against what others cost.
//!
//! Most benchmarks are a [`measure::pair`]: ours and a peer, run in turn, so that both see the same machine, and bounds on
//! the ratio of their figures.

mod causes;
mod insert;
mod kv;
mod lookup;
mod measure;
mod noise;
mod null_loop;
mod report;
mod run;
mod server;
mod sysbench_tests;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::prepare;
use crate::workspace::{Menu, Workspace, succeeds};
use server::Server;

/// All benchmarks.
const BENCHMARKS: Menu = Menu {
    noun: "benchmark",
    text: "\
noise              one program against itself: what a ratio means on this machine
null-loop          the null engine: what an operation and a generated row cost assay itself
postgres-lookup    a primary-key lookup on PostgreSQL against pgbench -S -M prepared, 1 and 2 connections
mysql-lookup       a primary-key lookup on MariaDB against sysbench oltp_point_select, 1 and 2 connections
insert-benchmark   the Insert Benchmark on PostgreSQL, 1 client: what rows and range queries cost the client
mysql-insert       the same on MariaDB with InnoDB and with MyRocks
postgres-sysbench  sysbench's tests and its load on PostgreSQL by `assay run` and by sysbench, 1 and 2 threads
mysql-sysbench     the same on MariaDB
kv                 the key-value sequence on RocksDB against db_bench, 1 and 2 clients, and outside of the library
report             the HTML report of 28 targets x 10 steps x 8 clients x 3600 s: made, and opened in Chromium
verdicts           simulated machines on which nothing changed: how often a comparison claims that something did
causes             effects whose cause is known, on real engines: whether a comparison names it; 40 minutes
causes-busy        the same beside programs that use 80 % of the processors",
};

/// Runs a benchmark, which prints what it measures; false when a bound is not kept.
fn benchmark(setup: &Setup, name: &str) -> Result<bool> {
    match name {
        "noise" => noise::run(setup),
        "null-loop" => null_loop::run(setup),
        "postgres-lookup" => lookup::run(setup, &Server::postgres(setup)?),
        "mysql-lookup" => lookup::run(setup, &Server::mysql(setup)?),
        "insert-benchmark" => insert::on_postgres(setup),
        "mysql-insert" => insert::on_mysql(setup),
        "postgres-sysbench" => sysbench_tests::run(setup, &Server::postgres(setup)?),
        "mysql-sysbench" => sysbench_tests::run(setup, &Server::mysql(setup)?),
        "kv" => kv::run(setup),
        "report" => report::run(setup),
        "verdicts" => {
            let example = "run --quiet --release --package analysis --example verdicts";
            succeeds(&mut setup.workspace.cargo(example))
        }
        "causes" => causes::quiet(setup),
        "causes-busy" => causes::busy(setup),
        other => bail!("`{other}` is no benchmark"),
    }
}

/// What a benchmark is given.
struct Setup {
    workspace: Workspace,
    /// How often each side of a pair runs, after one run each that is not counted.
    round_count: usize,
    /// How long a run of sysbench's tests lasts.
    seconds: usize,
}

impl Setup {
    /// Builds programs of a package with optimization; returns the folder that they are in.
    fn build(&self, package: &str, programs: &str) -> Result<PathBuf> {
        let arguments = format!("build --release --package {package} {programs}");
        let built = succeeds(&mut self.workspace.cargo(&arguments))?;
        ensure!(built, "`{package}` could not be built, see above");
        Ok(self.workspace.target_directory()?.join("release"))
    }

    /// Builds assay and its examples; returns the folder that they are in.
    fn build_assay(&self) -> Result<PathBuf> {
        self.build("assay", "--bin assay --examples")
    }
}

/// Makes sure of what Debian has in that package.
fn need(package: &str) -> Result<()> {
    let is_there = prepare::has(&[package])?;
    ensure!(is_there, "install what Debian calls: {package}");
    Ok(())
}

/// Runs the benchmarks of these names, or all; false when a bound is not kept.
pub fn run(workspace: Workspace, arguments: &[String]) -> Result<bool> {
    let mut setup = Setup {
        workspace,
        // Enough for a median that one odd run does not move.
        round_count: 5,
        seconds: 5,
    };
    let mut chosen = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => return Ok(BENCHMARKS.print()),
            "--rounds" => setup.round_count = number(argument, rest.next())?,
            "--seconds" => setup.seconds = number(argument, rest.next())?,
            name => chosen.push(BENCHMARKS.entry(name)?),
        }
    }
    if chosen.is_empty() {
        chosen.extend(BENCHMARKS.entries());
    }
    let mut kept = true;
    for (name, about) in chosen {
        println!("\n{name}: {about}");
        kept &= benchmark(&setup, name).with_context(|| format!("benchmark `{name}` failed"))?;
    }
    Ok(kept)
}

/// Returns the number after an argument.
fn number(argument: &str, given: Option<&String>) -> Result<usize> {
    let given =
        given.with_context(|| format!("`{argument}` - no number given - expected 1 or more"))?;
    match given.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => bail!("`{argument}` - got `{given}` - expected 1 or more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_refused_with_what_is_allowed() {
        for (line, part) in [
            (
                "speed",
                "expected one of `noise`, `null-loop`, `postgres-lookup`",
            ),
            ("--rounds", "no number given"),
            ("--rounds 0", "got `0`"),
            ("--seconds 0", "`--seconds` - got `0`"),
            ("--rounds few", "got `few`"),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = run(Workspace::here(), &arguments).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn every_benchmark_is_documented() {
        let text = include_str!("../../../docs/benchmarks.md");
        for (name, _) in BENCHMARKS.entries() {
            assert!(text.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
