//! Compares a transaction of one statement, in the language of `workload.transactions`, with the
//! bare loop of the example `lookup`: the same server, session and clock, and a lookup by primary
//! key in tables of the same size. The ratio is what the language costs its client.

use std::process::Command;

use anyhow::Result;

use super::Setup;
use super::measure::{Bound, CPU, THROUGHPUT, finish, pair};
use super::run::{Run, number, sample};
use super::server::Server;
use super::transactions;

/// Operations of each connection of the bare loop.
const OP_COUNT: u64 = 100_000;

/// The transaction, on a table with as many rows as that of the bare loop.
const SCRIPT: &str = "\
table account (id int = row, balance int = 0, filler char(84) = '') key (id) rows scale;
transaction lookup autocommit {
    let id = uniform(1, scale);
    expect 1: select balance from account where id = {id};
}
test lookups = lookup;";

/// Runs the pair with one connection and with two.
pub fn run(setup: &Setup, server: &Server) -> Result<bool> {
    let bare_loop = setup.build_assay()?.join("examples/lookup");
    let mut passed = true;
    for connections in [1, 2] {
        println!("connections: {connections}");
        let ours = || {
            let step = Run::of(setup, &plan(setup, server, connections))?.step("lookups")?;
            sample(&step, number(&step, "/ops/lookup/ok")?)
        };
        let bare = || {
            let numbers = format!("{connections} {OP_COUNT} {}", server.row_count);
            let mut command = Command::new(&bare_loop);
            command.arg(&server.url).args(numbers.split(' '));
            finish(command)?.own_sample()
        };
        let bounds = [(CPU, Bound::AtMost(1.15)), (THROUGHPUT, Bound::None)];
        passed &= pair(setup.round_count, ("script", &ours), ("bare loop", &bare), &bounds)?;
    }
    Ok(passed)
}

/// Returns a plan with the transaction.
fn plan(setup: &Setup, server: &Server, connections: u32) -> String {
    let keys = format!(
        "scale = {}\nwarmup = \"1s\"\nsteps = [\"load\", \"lookups\"]\nscript = \"\"\"\n{SCRIPT}\n\"\"\"",
        server.row_count
    );
    transactions::plan(server, connections, &keys, setup.seconds)
}
