//! Compares a primary-key lookup by Assay's session and load with pgbench on PostgreSQL, and with
//! sysbench on MySQL or MariaDB: the same server, table and number of operations. CPU time is that
//! of all threads of the client's process.

use std::process::Command;

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, THROUGHPUT, USER, finish, pair};
use super::server::Server;

/// Operations of each connection, so many that starting and connecting cost little in comparison.
const OP_COUNT: u64 = 100_000;

/// Runs the pair with one connection and with two.
pub fn run(setup: &Setup, server: &Server) -> Result<bool> {
    let program = setup.build_assay()?.join("examples/lookup");
    let mut passed = true;
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
        passed &= pair(setup.round_count, ("assay", &ours), (server.peer, &peer), &bounds)?;
    }
    Ok(passed)
}
