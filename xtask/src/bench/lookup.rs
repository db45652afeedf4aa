//! A primary-key lookup: assay's session under assay's load against pgbench on PostgreSQL and against sysbench on MySQL
//! or MariaDB, on one server and one table, with as many operations. CPU time is that of the client's process alone, all
//! of its threads included.

use std::process::Command;

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, THROUGHPUT, USER, finish, pair};
use super::server::Server;

/// Of each connection: beside so many, what starting and connecting cost is little.
const OP_COUNT: u64 = 100_000;

/// Runs the pair with one connection and with two.
pub fn run(setup: &Setup, server: &Server) -> Result<bool> {
    let program = setup.build_assay()?.join("examples/lookup");
    let mut kept = true;
    for connections in [1, 2] {
        println!("connections: {connections}");
        let ours = || {
            let numbers = format!("{connections} {OP_COUNT} {}", server.row_count);
            let mut command = Command::new(&program);
            command.arg(&server.url).args(numbers.split(' '));
            finish(command)?.own_sample()
        };
        let peer = || server.lookups(connections, OP_COUNT);
        let bounds = [
            (USER, Bound::AtMost(0.5)),
            (CPU, Bound::AtMost(0.8)),
            (THROUGHPUT, Bound::AtLeast(1.0)),
        ];
        kept &= pair(
            setup.round_count,
            ("assay", &ours),
            (server.peer, &peer),
            &bounds,
        )?;
    }
    Ok(kept)
}
