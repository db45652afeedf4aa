//! A primary-key lookup: assay's session under assay's load against pgbench on PostgreSQL and against sysbench on MySQL
//! or MariaDB, on one server and one table, with as many operations. CPU time is that of the client's process alone, all
//! of its threads included.

use std::process::Command;

use anyhow::{Context, Result};

use super::pair::{Bound, Contender, Figure, Finished, Pair, Sample};
use super::{Setup, pgbench, sysbench};

/// Of each connection: beside so many, what starting and connecting cost is little.
const OP_COUNT: u64 = 100_000;

/// Against pgbench.
pub fn on_postgres(setup: &Setup) -> Result<bool> {
    let server = pgbench::Server::start()?;
    run(
        setup,
        &server.url(),
        pgbench::ACCOUNT_COUNT,
        |connections| pgbench::contender(&server, connections, OP_COUNT),
    )
}

/// Against sysbench.
pub fn on_mysql(setup: &Setup) -> Result<bool> {
    let server = sysbench::Server::start(&setup.programs()?.mysql_server)?;
    run(setup, server.url(), sysbench::ROW_COUNT, |connections| {
        sysbench::contender(&server, connections, OP_COUNT)
    })
}

/// Runs the pair with one connection and with two.
fn run<'a>(
    setup: &Setup,
    url: &str,
    row_count: u32,
    peer: impl Fn(u32) -> Contender<'a>,
) -> Result<bool> {
    let lookup = &setup.programs()?.lookup;
    let mut kept = true;
    for connections in [1, 2] {
        println!("connections: {connections}");
        let ours = Contender {
            name: "assay".to_owned(),
            command: Box::new(move || {
                let mut command = Command::new(lookup);
                command.arg(url);
                command.args(
                    [u64::from(connections), OP_COUNT, u64::from(row_count)].map(|n| n.to_string()),
                );
                Ok(command)
            }),
            read: Box::new(sample),
        };
        kept &= Pair {
            ours,
            peer: peer(connections),
            bounds: vec![
                Bound::RatioAtMost(Figure::User, 0.5),
                Bound::RatioAtMost(Figure::Cpu, 0.8),
                Bound::RatioAtLeast(Figure::Throughput, 1.0),
            ],
        }
        .run(setup.round_count)?;
    }
    Ok(kept)
}

/// What the example did, by its own account, without the time that connecting took.
fn sample(finished: &Finished) -> Result<Sample> {
    let number = |unit: &str| {
        finished
            .stdout
            .lines()
            .find_map(|line| line.strip_suffix(unit)?.parse::<u64>().ok())
            .with_context(|| format!("the example printed no number of{unit}"))
    };
    Ok(Sample {
        elapsed_ns: number(" ns")?,
        ..finished.sample(number(" operations")?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_example_printed_is_read() {
        let finished = |stdout: &str| Finished {
            stdout: stdout.to_owned(),
            user_ns: 5,
            system_ns: 6,
            elapsed_ns: 7,
        };
        let read = sample(&finished("300 operations\n40 ns\n")).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (300, 40));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        assert!(sample(&finished("300 operations\n")).is_err());
    }
}
