//! `cargo xtask bench`: measures the cost of Assay itself, and compares it with other tools.
//!
//! Most benchmarks are a [`measure::pair`]: Assay and a peer run in turn, so that both see the same
//! machine, and the ratios of their figures have bounds.

mod adapter;
mod causes;
mod disk;
mod exact;
mod heartbeat;
mod history;
mod import;
mod insert;
mod kv;
mod lookup;
mod measure;
mod neighbor;
mod noise;
mod null_loop;
mod planted;
mod planted_libraries;
mod profile;
mod ranks;
mod report;
mod reuse;
mod run;
mod script_lookup;
mod seeds;
mod server;
mod sysbench_tests;
mod transactions;
mod turns;

use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::prepare;
use crate::workspace::{Menu, Workspace, succeeds};
use server::Server;

const BENCHMARKS: Menu = Menu {
    noun: "benchmark",
    text: "\
noise              one program against itself: the noise of ratios on this machine
null-loop          the null engine: what an operation and a generated row cost Assay itself
postgres-lookup    a primary-key lookup on PostgreSQL against pgbench -S -M prepared, 1 and 2 connections
mysql-lookup       a primary-key lookup on MariaDB against sysbench oltp_point_select, 1 and 2 connections
script-lookup      a transaction of one statement against the bare loop of a lookup, on PostgreSQL, 1 and 2 connections
insert-benchmark   the Insert Benchmark on PostgreSQL, 1 client: what rows and range queries cost the client
mysql-insert       the same on MariaDB with InnoDB and with MyRocks
postgres-sysbench  sysbench's tests and its load on PostgreSQL by `assay run` and by sysbench, 1 and 2 threads
mysql-sysbench     the same on MariaDB
transactions       `tpcb` on PostgreSQL against pgbench, and `orders` against go-tpc, 1 and 2 connections
load-ranks         2 load ranks on this host against one process with as many clients, on PostgreSQL
profile            measured repeats of a plan that also profiles against those of one that does not, on PostgreSQL
reuse              repeats that share one load against repeats that load, on SQLite and PostgreSQL: time and results
turns              two equal targets: the error of their ratio by the length of turns and by placement; hours
rank-intake        what 64 load ranks with 64 connections each cost rank 0
heartbeat          what watching a replica costs a primary of PostgreSQL that is idle otherwise
disk               the floor of the disk that has the builds against fio in turn: random reads, and fdatasync
kv                 the key-value sequence on RocksDB against db_bench, 1 and 2 clients, and outside of the library
adapter            RocksDB by its binding against the same library by an adapter: what the C interface costs
import             published campaigns of other tools in `--campaigns DIR`: their tables cell by cell, time and memory
report             the HTML report of 28 targets x 10 steps x 8 clients x 3600 s: writing it, and opening it in Chromium
lag-verdicts       simulated lags of known shapes: how often they are found to grow
swings             simulated throughputs: how often a period is claimed of noise, or found, and its cause named
verdicts           simulated machines without any change: how often a comparison claims one
typical-turns      simulated turns that stalls and neighbors disturb: false claims of typical rates, and changes found
until-decided      simulated runs that add repeats until each comparison is decided: false verdicts, and repeats
whole-answers      simulated tables of equal targets with all of their costs: how often an answer claims anything
designs            simulated designed experiments: effects found and false ones, beside one factor at a time
history            simulated histories: false changes, which are shown and when, beside Apache Otava; and 1,000 runs
causes             effects with known causes on real engines: whether a comparison names them; 40 minutes
causes-busy        the same while other threads use 80% of the processors
planted            known changes of 1% to 10%, and none, measured until decided: how often they are shown; hours
planted-busy       the same, from 2% on, while other threads use 60% of the processors
seeds              small plans of published experiments: whether the first screen says what was published; half an hour
exact              exact cells beside two busy loops: of equal targets, and with 1% more instructions; an hour",
};

/// Runs a benchmark, which prints its figures. Returns false if one is not within its bound.
fn benchmark(setup: &Setup, name: &str) -> Result<bool> {
    match name {
        // What Assay costs, mostly beside other tools.
        "noise" => noise::run(setup),
        "null-loop" => null_loop::run(setup),
        "postgres-lookup" => lookup::run(setup, &Server::postgres(setup)?),
        "mysql-lookup" => lookup::run(setup, &Server::mysql(setup)?),
        "script-lookup" => script_lookup::run(setup, &Server::postgres(setup)?),
        "insert-benchmark" => insert::on_postgres(setup),
        "mysql-insert" => insert::on_mysql(setup),
        "postgres-sysbench" => sysbench_tests::run(setup, &Server::postgres(setup)?),
        "mysql-sysbench" => sysbench_tests::run(setup, &Server::mysql(setup)?),
        "transactions" => transactions::run(setup),
        "kv" => kv::run(setup),
        "adapter" => adapter::run(setup),

        // What a way of measuring costs, or gains.
        "load-ranks" => ranks::against_one_process(setup),
        "rank-intake" => ranks::intake(setup),
        "profile" => profile::run(setup),
        "reuse" => reuse::run(setup),
        "turns" => turns::run(setup),
        "heartbeat" => heartbeat::run(setup),
        "disk" => disk::run(setup),

        // What is done with records.
        "import" => import::run(setup),
        "report" => report::run(setup),

        // How often an answer is right, on simulated machines.
        "verdicts" | "typical-turns" | "whole-answers" | "lag-verdicts" | "until-decided"
        | "designs" | "swings" => simulate(setup, name),
        "history" => history::run(setup),

        // How often an answer is right, on real engines.
        "causes" => causes::quiet(setup),
        "causes-busy" => causes::busy(setup),
        "planted" => planted::run(setup, &planted::AT_REST),
        "planted-busy" => neighbor::beside(0.6, || planted::run(setup, &planted::BESIDE_OTHERS)),
        "seeds" => seeds::run(setup),
        "exact" => neighbor::beside(1.0, || exact::run(setup)),

        other => bail!("unknown benchmark `{other}`"),
    }
}

/// Runs the simulation of a name, an example of `analysis`. Returns false if a figure is not within
/// its bound.
fn simulate(setup: &Setup, name: &str) -> Result<bool> {
    let example = name.replace('-', "_");
    let run = format!("run --quiet --release --package analysis --example {example}");
    succeeds(&mut setup.workspace.cargo(&run))
}

struct Setup {
    workspace: Workspace,
    /// The number of runs of each side of a pair, after one uncounted run.
    round_count: usize,
    /// The number of runs of a benchmark that needs more of them than others: `--rounds`, if
    /// given.
    many_round_count: usize,
    /// The duration of a run of sysbench's tests, in seconds.
    seconds: usize,
    /// A part of the titles of the cases to measure; empty: all.
    only: String,
    /// The folder of published campaigns; `None`: there is none.
    campaigns: Option<PathBuf>,
    /// The folder that keeps the records of runs; `None`: they are removed.
    keep: Option<PathBuf>,
    /// The folder of Assay and its examples, after they have been built.
    built: OnceCell<PathBuf>,
}

impl Setup {
    /// Returns the setup of benchmarks without options.
    fn usual(workspace: Workspace) -> Self {
        Self {
            workspace,
            // Enough for a median that one outlier does not move.
            round_count: 5,
            many_round_count: 20,
            seconds: 5,
            only: String::new(),
            campaigns: None,
            keep: None,
            built: OnceCell::new(),
        }
    }

    /// Builds programs of a package with optimization, and returns their folder.
    fn build(&self, package: &str, programs: &str) -> Result<PathBuf> {
        let arguments = format!("build --release --package {package} {programs}");
        let built = succeeds(&mut self.workspace.cargo(&arguments))?;
        ensure!(built, "`{package}` does not compile, see above");
        Ok(self.workspace.target_directory()?.join("release"))
    }

    /// Builds Assay and its examples once, and returns their folder: edited sources don't change
    /// what is measured. Where MPI is installed, Assay can use it: so a benchmark of load ranks
    /// doesn't compile it again.
    fn build_assay(&self) -> Result<PathBuf> {
        if let Some(folder) = self.built.get() {
            return Ok(folder.clone());
        }
        let feature = if prepare::is_installed(prepare::MPI) { " --features mpi" } else { "" };
        let folder = self.build("assay", &format!("--bin assay --examples{feature}"))?;
        Ok(self.built.get_or_init(|| folder).clone())
    }
}

/// Installs Debian packages if their programs are missing.
fn need(package: &str) -> Result<()> {
    let is_installed = prepare::ensure_installed(&[package])?;
    ensure!(is_installed, "install Debian's package `{package}` or its equivalent");
    Ok(())
}

/// Runs the benchmarks with these names, or all. Returns false if a figure is not within its bound.
pub fn run(workspace: Workspace, arguments: &[String]) -> Result<bool> {
    if arguments.iter().any(|argument| argument == "--list") {
        return Ok(BENCHMARKS.print());
    }
    let Request { setup, chosen } = Request::read(workspace, arguments)?;

    let mut passed = true;
    for (name, description) in chosen {
        println!("\n{name}: {description}");
        passed &= benchmark(&setup, name).with_context(|| format!("benchmark `{name}` failed"))?;
    }
    Ok(passed)
}

/// The request of the command line.
struct Request {
    setup: Setup,
    /// The names of benchmarks, with their descriptions.
    chosen: Vec<(&'static str, &'static str)>,
}

impl Request {
    /// Reads the arguments. Without names, all benchmarks are chosen.
    fn read(workspace: Workspace, arguments: &[String]) -> Result<Self> {
        let mut setup = Setup::usual(workspace);
        let mut chosen = Vec::new();

        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    setup.round_count = number(argument, arguments.next())?;
                    setup.many_round_count = setup.round_count;
                }
                "--seconds" => setup.seconds = number(argument, arguments.next())?,
                "--only" => {
                    let text = arguments.next().context("`--only` needs a part of a title")?;
                    setup.only.clone_from(text);
                }
                "--campaigns" => {
                    let folder = arguments.next().context("`--campaigns` needs a directory")?;
                    setup.campaigns = Some(PathBuf::from(folder));
                }
                "--keep" => {
                    let folder = arguments.next().context("`--keep` needs a directory")?;
                    setup.keep = Some(PathBuf::from(folder));
                }
                name => chosen.push(BENCHMARKS.entry(name)?),
            }
        }

        if chosen.is_empty() {
            chosen.extend(BENCHMARKS.entries());
        }
        Ok(Self { setup, chosen })
    }
}

/// Reads the number after an argument.
fn number(argument: &str, value: Option<&String>) -> Result<usize> {
    let value =
        value.with_context(|| format!("`{argument}` needs a number; expected 1 or more"))?;
    match value.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => bail!("invalid number `{value}` after `{argument}`; expected 1 or more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_bad_argument_says_what_is_allowed() {
        for (line, part) in [
            ("speed", "expected one of `noise`, `null-loop`, `postgres-lookup`"),
            ("--rounds", "needs a number"),
            ("--rounds 0", "`0` after `--rounds`"),
            ("--seconds 0", "`0` after `--seconds`"),
            ("--rounds few", "invalid number `few`"),
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
