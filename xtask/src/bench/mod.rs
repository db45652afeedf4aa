//! `cargo xtask bench`: what the harness itself costs, measured against what others cost.
//!
//! A benchmark is a line of [`BENCHMARKS`] and a function. Most are a [`pair::Pair`]: ours and a peer, run in turn in one
//! run, so that both see the same machine, and bounds on the ratio of their figures.

mod causes;
mod insert;
mod kv;
mod limit;
mod lookup;
mod microbenchmarks;
mod noise;
mod null_loop;
mod pair;
mod pgbench;
mod report;
mod steps;
mod sysbench;
mod verdicts;

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, succeeds};

/// How often each side of a pair runs unless told: enough for a median that one odd run does not move.
const ROUND_COUNT: usize = 5;

/// What a benchmark is given.
pub struct Setup {
    /// How often each side of a pair runs, after one run each that is not counted.
    pub round_count: usize,
    /// How long a run lasts that is ended by time, where a benchmark asks.
    pub seconds: Option<u64>,
    /// What is built of assay with optimisation; none for a benchmark that does not ask for it.
    pub programs: Option<Programs>,
}

/// Programs of assay's crate, built with optimisation.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Assay itself.
    pub assay: PathBuf,
    /// Looks up rows of the peers' tables under the load.
    pub lookup: PathBuf,
    /// Starts a server of MySQL or MariaDB.
    pub mysql_server: PathBuf,
}

impl Setup {
    /// The programs, for a benchmark that asks for them.
    pub fn programs(&self) -> Result<&Programs> {
        self.programs
            .as_ref()
            .context("this benchmark was begun without assay")
    }
}

/// One benchmark.
pub struct Benchmark {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// It runs assay, which is built for it with optimisation.
    pub needs_assay: bool,
    /// Measures and prints; false when a bound is not kept.
    pub run: fn(&Setup) -> Result<bool>,
}

/// All benchmarks.
const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "noise",
        about: "one program against itself: what a ratio means on this machine",
        needs_assay: false,
        run: noise::run,
    },
    Benchmark {
        name: "null-loop",
        about: "the null engine: what an operation and a generated row cost assay itself",
        needs_assay: true,
        run: null_loop::run,
    },
    Benchmark {
        name: "postgres-lookup",
        about: "a primary-key lookup on PostgreSQL against pgbench -S -M prepared, 1 and 2 connections",
        needs_assay: true,
        run: lookup::on_postgres,
    },
    Benchmark {
        name: "mysql-lookup",
        about: "a primary-key lookup on MariaDB against sysbench oltp_point_select, 1 and 2 connections",
        needs_assay: true,
        run: lookup::on_mysql,
    },
    Benchmark {
        name: "insert-benchmark",
        about: "the Insert Benchmark on PostgreSQL, 1 client: what rows and range queries cost the client",
        needs_assay: true,
        run: insert::on_postgres,
    },
    Benchmark {
        name: "mysql-insert",
        about: "the same on MariaDB with InnoDB and with MyRocks",
        needs_assay: true,
        run: insert::on_mysql,
    },
    Benchmark {
        name: "postgres-sysbench",
        about: "sysbench's tests and its load on PostgreSQL by `assay run` and by sysbench, 1 and 2 threads",
        needs_assay: true,
        run: microbenchmarks::on_postgres,
    },
    Benchmark {
        name: "mysql-sysbench",
        about: "the same on MariaDB",
        needs_assay: true,
        run: microbenchmarks::on_mysql,
    },
    Benchmark {
        name: "kv",
        about: "the key-value sequence on RocksDB against db_bench, 1 and 2 clients, and outside of the library",
        needs_assay: false,
        run: kv::run,
    },
    Benchmark {
        name: "report",
        about: "the HTML report of 28 targets x 10 steps x 8 clients x 3600 s: made, and opened in Chromium",
        needs_assay: true,
        run: report::run,
    },
    Benchmark {
        name: "verdicts",
        about: "simulated machines on which nothing changed: how often a comparison claims that something did",
        needs_assay: false,
        run: verdicts::run,
    },
    Benchmark {
        name: "causes",
        about: "effects whose cause is known, on real engines: whether a comparison names it; 40 minutes",
        needs_assay: true,
        run: causes::quiet,
    },
    Benchmark {
        name: "causes-busy",
        about: "the same beside programs that use 80 % of the processors",
        needs_assay: true,
        run: causes::busy,
    },
];

/// Runs the benchmarks of these names, or all; false when a bound is not kept.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    let Request {
        names,
        round_count,
        seconds,
        list,
    } = parse(arguments)?;
    if list {
        for benchmark in BENCHMARKS {
            println!("{:<18} {}", benchmark.name, benchmark.about);
        }
        return Ok(true);
    }
    let chosen: Vec<&Benchmark> = BENCHMARKS
        .iter()
        .filter(|one| names.is_empty() || names.iter().any(|name| name == one.name))
        .collect();
    let programs = match chosen.iter().any(|one| one.needs_assay) {
        true => Some(build(workspace)?),
        false => None,
    };
    let mut kept = true;
    for benchmark in chosen {
        println!("\n{}: {}", benchmark.name, benchmark.about);
        let programs = programs.clone().filter(|_| benchmark.needs_assay);
        kept &= (benchmark.run)(&Setup {
            round_count,
            seconds,
            programs,
        })
        .with_context(|| format!("benchmark `{}` failed", benchmark.name))?;
    }
    Ok(kept)
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    names: Vec<String>,
    round_count: usize,
    seconds: Option<u64>,
    list: bool,
}

fn parse(arguments: &[String]) -> Result<Request> {
    let mut request = Request {
        names: Vec::new(),
        round_count: ROUND_COUNT,
        seconds: None,
        list: false,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => request.list = true,
            "--rounds" => request.round_count = count(argument, rest.next())?,
            "--seconds" => request.seconds = Some(count(argument, rest.next())?),
            name if BENCHMARKS.iter().any(|one| one.name == name) => {
                request.names.push(name.to_owned())
            }
            other => {
                let known: Vec<String> = BENCHMARKS
                    .iter()
                    .map(|one| format!("`{}`", one.name))
                    .collect();
                bail!(
                    "unknown benchmark `{other}` - expected one of {}",
                    known.join(", ")
                );
            }
        }
    }
    Ok(request)
}

/// The number after an argument.
fn count<T: FromStr + PartialOrd + From<u8>>(argument: &str, given: Option<&String>) -> Result<T> {
    let given =
        given.with_context(|| format!("`{argument}` - no number given - expected 1 or more"))?;
    match given.parse() {
        Ok(count) if count >= T::from(1) => Ok(count),
        _ => bail!("`{argument}` - got `{given}` - expected 1 or more"),
    }
}

/// Builds assay and its example with optimisation, once; where they are.
fn build(workspace: &Workspace) -> Result<Programs> {
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--package", "assay"]);
    command.args(["--bin", "assay", "--example", "lookup"]);
    command.args(["--example", "mysql_server"]);
    if !succeeds(&mut command)? {
        bail!("assay could not be built, see above");
    }
    let folder = workspace.target_directory()?.join("release");
    Ok(Programs {
        assay: folder.join("assay"),
        lookup: folder.join("examples/lookup"),
        mysql_server: folder.join("examples/mysql_server"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request> {
        parse(
            &line
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn names_and_rounds_are_read() {
        let read = request("noise --rounds 3 --seconds 2").unwrap();
        assert_eq!(
            read,
            Request {
                names: vec!["noise".to_owned()],
                round_count: 3,
                seconds: Some(2),
                list: false
            }
        );
        assert!(request("--list").unwrap().list);
    }

    #[test]
    fn bad_arguments_are_refused_with_what_is_allowed() {
        for (line, part) in [
            (
                "speed",
                "expected one of `noise`, `null-loop`, `postgres-lookup`, `mysql-lookup`, `insert-benchmark`, `mysql-insert`, `postgres-sysbench`, `mysql-sysbench`, `kv`, `report`, `verdicts`",
            ),
            ("--rounds", "no number given"),
            ("--rounds 0", "got `0`"),
            ("--seconds 0", "`--seconds` - got `0`"),
            ("--rounds few", "got `few`"),
        ] {
            let error = request(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
