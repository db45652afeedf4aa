//! Compares transactions between `assay run` and other programs, which use the same server and tables of
//! the same size: `tpcb` with pgbench on PostgreSQL by its Unix socket, and `orders` with go-tpc on
//! MariaDB by TCP, which is all that go-tpc can use. CPU time is that of the whole client process
//! while it measures.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Setup;
use super::measure::{Bound, CPU, Sample, THROUGHPUT, finish, pair};
use super::run::{Run, number, sample};
use super::server::{PASSWORD, SCALE, Server};
use crate::workspace::{Workspace, output, typed};

/// The module of go-tpc, which Go builds.
const GO_TPC: &str = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.7";

/// The warehouses of `orders` and go-tpc.
const WAREHOUSES: u32 = 2;

/// Runs both pairs with one connection and with two. Without go-tpc, only the first.
pub fn run(setup: &Setup) -> Result<bool> {
    let postgres = Server::postgres(setup)?;
    let mut passed = true;
    for connections in [1, 2] {
        println!("tpcb, connections: {connections}");
        passed &= tpcb(setup, &postgres, connections)?;
    }

    match go_tpc(&setup.workspace) {
        Ok(program) => {
            let mariadb = Server::mysql_by_tcp(setup)?;
            for connections in [1, 2] {
                println!("orders, connections: {connections}");
                passed &= orders(setup, &mariadb, &program, connections)?;
            }
        }
        Err(error) => println!("orders: not measured, without go-tpc: {error:#}"),
    }
    Ok(passed)
}

/// Compares `tpcb` with pgbench, each time on new tables.
fn tpcb(setup: &Setup, server: &Server, connections: u32) -> Result<bool> {
    let (scale, seconds) = (SCALE, setup.seconds);
    let pgbench = |limit: &str| {
        let clients = format!("-n -M prepared -c {connections} -j {connections} {limit}");
        finish(server.pgbench(&clients))
    };
    let remake = || output(&mut server.pgbench(&format!("-i -q -s {scale}")));

    remake()?;
    let start = pgbench("-t 1")?.used;
    let ours = || {
        output(&mut server.pgbench("-i -I d"))?;
        let keys = format!("use = \"tpcb\"\nscale = {scale}\nwarmup = \"0s\"");
        let plan = plan(server, connections, &keys, seconds);
        let step = Run::of(setup, &plan)?.step("tpcb")?;
        sample(&step, number(&step, "/ops/tpcb/ok")?)
    };
    let peer = || {
        remake()?;
        let finished = pgbench(&format!("-T {seconds}"))?;
        let op_count = finished.number("number of transactions actually processed:")?;
        // Without the time for connecting.
        let elapsed = op_count / finished.number("tps =")?;
        Ok(finished.sample_within(op_count, elapsed).without(start))
    };

    let bounds = [(CPU, Bound::AtMost(1.0)), (THROUGHPUT, Bound::AtLeast(0.98))];
    pair(setup.round_count, ("assay", &ours), ("pgbench", &peer), &bounds)
}

/// Compares new orders of `orders` with those of go-tpc, each time on new tables.
fn orders(setup: &Setup, server: &Server, program: &PathBuf, connections: u32) -> Result<bool> {
    let seconds = setup.seconds;
    let [user, host, port, database] = parts_of(&server.url)?;
    let go_tpc = |action: &str| -> Command {
        let mut command = Command::new(program);
        command.args(["tpcc", "--driver", "mysql", "--user", user, "--password", PASSWORD]);
        command.args(["--host", host, "--port", port, "--db", database]);
        command.args(["--warehouses", &WAREHOUSES.to_string()]);
        command.args(action.split(' '));
        command
    };
    let clean = || output(&mut go_tpc("cleanup"));

    let ours = || {
        clean()?;
        let keys =
            format!("use = \"orders\"\nscale = {WAREHOUSES}\nhome = \"all\"\nwarmup = \"0s\"");
        let step = Run::of(setup, &plan(server, connections, &keys, seconds))?.step("orders")?;
        sample(&step, number(&step, "/ops/new_order/ok")?)
    };
    let peer = || -> Result<Sample> {
        clean()?;
        output(&mut go_tpc(&format!("prepare --threads {WAREHOUSES}")))?;
        let limits = format!("run --threads {connections} --time {seconds}s");
        let finished = finish(go_tpc(&limits))?;
        let elapsed = finished.number("[Summary] NEW_ORDER - Takes(s):")?;
        let op_count = finished.number("tpmC:")? * elapsed / 60.0;
        clean()?;
        Ok(finished.sample_within(op_count, elapsed))
    };

    let bounds = [(CPU, Bound::AtMost(0.6)), (THROUGHPUT, Bound::AtLeast(1.0))];
    pair(setup.round_count, ("assay", &ours), ("go-tpc", &peer), &bounds)
}

/// Returns the user, host, port and database of the URL of a server on a port.
fn parts_of(url: &str) -> Result<[&str; 4]> {
    let parts = || {
        let (_, account) = url.split_once("://")?;
        let (account, place) = account.split_once('@')?;
        let (user, _) = account.split_once(':')?;
        let (host, place) = place.split_once(':')?;
        let (port, database) = place.split_once('/')?;
        Some([user, host, port, database])
    };
    parts().with_context(|| format!("no server on a port: `{url}`"))
}

/// Returns a plan that loads the tables of a script into the server and runs its test.
pub fn plan(server: &Server, connections: u32, keys: &str, seconds: usize) -> String {
    format!(
        r#"
name = "transactions"
clients = [{connections}]
[workload.transactions]
{keys}
time = "{seconds}s"
checks = "off"
[build.server]
url = {:?}
"#,
        server.url
    )
}

/// Returns the program go-tpc: that in PATH, or one that Go builds in the workspace's target.
fn go_tpc(workspace: &Workspace) -> Result<PathBuf> {
    let found = output(Command::new("sh").args(["-c", "command -v go-tpc || true"]))?;
    if !found.trim().is_empty() {
        return Ok(PathBuf::from(found.trim()));
    }

    let folder = workspace.target_directory()?.join("go");
    let program = folder.join("go-tpc");
    if !program.is_file() {
        println!("builds {GO_TPC}");
        output(typed("go", "install").arg(GO_TPC).env("GOBIN", &folder))?;
    }
    Ok(program)
}
