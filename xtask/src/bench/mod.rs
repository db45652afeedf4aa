//! `cargo xtask bench`: what the harness itself costs, measured against what others cost.
//!
//! A benchmark is a row of [`BENCHMARKS`]. Most are a [`measure::pair`]: ours and a peer, run in turn, so that both see the
//! same machine, and bounds on the ratio of their figures.

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
use crate::workspace::{Workspace, succeeds};
use server::Server;

/// One benchmark.
struct Benchmark {
    /// Its name on the command line.
    name: &'static str,
    /// What it measures.
    about: &'static str,
    /// Measures and prints; false when a bound is not kept.
    run: fn(&Setup) -> Result<bool>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "noise",
        about: "one program against itself: what a ratio means on this machine",
        run: noise::run,
    },
    Benchmark {
        name: "null-loop",
        about: "the null engine: what an operation and a generated row cost assay itself",
        run: null_loop::run,
    },
    Benchmark {
        name: "postgres-lookup",
        about: "a primary-key lookup on PostgreSQL against pgbench -S -M prepared, 1 and 2 connections",
        run: |setup| lookup::run(setup, &Server::postgres(setup)?),
    },
    Benchmark {
        name: "mysql-lookup",
        about: "a primary-key lookup on MariaDB against sysbench oltp_point_select, 1 and 2 connections",
        run: |setup| lookup::run(setup, &Server::mysql(setup)?),
    },
    Benchmark {
        name: "insert-benchmark",
        about: "the Insert Benchmark on PostgreSQL, 1 client: what rows and range queries cost the client",
        run: insert::on_postgres,
    },
    Benchmark {
        name: "mysql-insert",
        about: "the same on MariaDB with InnoDB and with MyRocks",
        run: insert::on_mysql,
    },
    Benchmark {
        name: "postgres-sysbench",
        about: "sysbench's tests and its load on PostgreSQL by `assay run` and by sysbench, 1 and 2 threads",
        run: |setup| sysbench_tests::run(setup, &Server::postgres(setup)?),
    },
    Benchmark {
        name: "mysql-sysbench",
        about: "the same on MariaDB",
        run: |setup| sysbench_tests::run(setup, &Server::mysql(setup)?),
    },
    Benchmark {
        name: "kv",
        about: "the key-value sequence on RocksDB against db_bench, 1 and 2 clients, and outside of the library",
        run: kv::run,
    },
    Benchmark {
        name: "report",
        about: "the HTML report of 28 targets x 10 steps x 8 clients x 3600 s: made, and opened in Chromium",
        run: report::run,
    },
    Benchmark {
        name: "verdicts",
        about: "simulated machines on which nothing changed: how often a comparison claims that something did",
        run: |setup| {
            let mut command = setup.workspace.cargo();
            command.args(["run", "--quiet", "--release", "--package", "analysis"]);
            succeeds(command.args(["--example", "verdicts"]))
        },
    },
    Benchmark {
        name: "causes",
        about: "effects whose cause is known, on real engines: whether a comparison names it; 40 minutes",
        run: causes::quiet,
    },
    Benchmark {
        name: "causes-busy",
        about: "the same beside programs that use 80 % of the processors",
        run: causes::busy,
    },
];

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
    fn build(&self, package: &str, programs: &[&str]) -> Result<PathBuf> {
        let mut command = self.workspace.cargo();
        command.args(["build", "--release", "--package", package]);
        let built = succeeds(command.args(programs))?;
        ensure!(built, "`{package}` could not be built, see above");
        Ok(self.workspace.target_directory()?.join("release"))
    }

    /// Builds assay and its examples; returns the folder that they are in.
    fn build_assay(&self) -> Result<PathBuf> {
        self.build("assay", &["--bin", "assay", "--examples"])
    }
}

/// Makes sure of a program that Debian has in that package.
fn need(program: &str, package: &str) -> Result<()> {
    let is_there = prepare::program(program, package)?;
    ensure!(
        is_there,
        "no `{program}` - install what Debian calls: {package}"
    );
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
            "--list" => {
                for benchmark in BENCHMARKS {
                    println!("{:<18} {}", benchmark.name, benchmark.about);
                }
                return Ok(true);
            }
            "--rounds" => setup.round_count = number(argument, rest.next())?,
            "--seconds" => setup.seconds = number(argument, rest.next())?,
            name => chosen.push(named(name)?),
        }
    }
    if chosen.is_empty() {
        chosen.extend(BENCHMARKS);
    }
    let mut kept = true;
    for benchmark in chosen {
        println!("\n{}: {}", benchmark.name, benchmark.about);
        kept &= (benchmark.run)(&setup)
            .with_context(|| format!("benchmark `{}` failed", benchmark.name))?;
    }
    Ok(kept)
}

fn named(name: &str) -> Result<&'static Benchmark> {
    match BENCHMARKS.iter().find(|known| known.name == name) {
        Some(benchmark) => Ok(benchmark),
        None => {
            let known: Vec<&str> = BENCHMARKS.iter().map(|known| known.name).collect();
            bail!(
                "unknown benchmark `{name}` - expected one of `{}`",
                known.join("`, `")
            )
        }
    }
}

/// The number after an argument.
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
        for Benchmark { name, .. } in BENCHMARKS {
            assert!(text.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
