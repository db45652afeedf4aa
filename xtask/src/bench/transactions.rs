//! Compares transactions between `assay run` and other programs, which use the same server and tables of
//! the same size: `tpcb` with pgbench on PostgreSQL by its Unix socket, and `orders` with go-tpc on
//! MariaDB by TCP, which is all that go-tpc can use. CPU time is that of the whole client process
//! while it measures.

use std::path::{Path, PathBuf};
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
    let mut passed = true;

    let cases = chosen(setup, "tpcb");
    if !cases.is_empty() {
        let postgres = Server::postgres(setup)?;
        for Case { title, connections } in cases {
            println!("{title}");
            passed &= tpcb(setup, &postgres, connections)?;
        }
    }

    let cases = chosen(setup, "orders");
    if cases.is_empty() {
        return Ok(passed);
    }
    match find_go_tpc(&setup.workspace) {
        Ok(program) => {
            let mariadb = Server::mysql_by_tcp(setup)?;
            let go_tpc = GoTpc::at(&program, &mariadb.url)?;
            for Case { title, connections } in cases {
                println!("{title}");
                passed &= orders(setup, &mariadb, &go_tpc, connections)?;
            }
        }
        Err(error) => println!("orders: not measured, without go-tpc: {error:#}"),
    }
    Ok(passed)
}

/// A pair with a number of connections.
struct Case {
    title: String,
    connections: u32,
}

/// Returns the cases of a script whose titles have the text that the setup asks for.
fn chosen(setup: &Setup, script: &str) -> Vec<Case> {
    let case = |connections| {
        let title = format!("{script}, connections: {connections}");
        Case { title, connections }
    };
    let cases = [1, 2].map(case).into_iter();
    cases.filter(|case| case.title.contains(&setup.only)).collect()
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

/// Compares new orders of `orders`, each time on new tables, with those of go-tpc, whose tables are
/// loaded once.
fn orders(setup: &Setup, server: &Server, go_tpc: &GoTpc<'_>, connections: u32) -> Result<bool> {
    let seconds = setup.seconds;
    let keys = format!("use = \"orders\"\nscale = {WAREHOUSES}\nhome = \"all\"\nwarmup = \"0s\"");
    let plan = plan(server, connections, &keys, seconds);

    let ours = || {
        let step = Run::of(setup, &plan)?.step("orders")?;
        sample(&step, number(&step, "/ops/new_order/ok")?)
    };
    let peer = || go_tpc.new_orders(connections, seconds);

    // Without the checks, as MariaDB does not finish that of condition 10.
    output(&mut go_tpc.command(&format!("prepare --no-check --threads {WAREHOUSES}")))?;
    let bounds = [(CPU, Bound::AtMost(0.6)), (THROUGHPUT, Bound::AtLeast(1.0))];
    let passed = pair(setup.round_count, ("assay", &ours), ("go-tpc", &peer), &bounds)?;
    output(&mut go_tpc.command("cleanup"))?;
    Ok(passed)
}

/// The program go-tpc, and the server that it loads. Its tables have a database of their own, because
/// they have the names of Assay's.
struct GoTpc<'a> {
    program: &'a Path,
    user: &'a str,
    host: &'a str,
    port: &'a str,
}

impl<'a> GoTpc<'a> {
    /// Returns go-tpc for the server at a URL with a port.
    fn at(program: &'a Path, url: &'a str) -> Result<Self> {
        let parsed = || {
            let (_, rest) = url.split_once("://")?;
            let (account, place) = rest.split_once('@')?;
            let (user, _) = account.split_once(':')?;
            let (host, rest) = place.split_once(':')?;
            let (port, _) = rest.split_once('/')?;
            Some(Self { program, user, host, port })
        };
        parsed().with_context(|| format!("no server on a port: `{url}`"))
    }

    /// Returns the command for an action, which is given with its options.
    fn command(&self, action: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(["tpcc", "--driver", "mysql", "--user", self.user, "--password", PASSWORD]);
        command.args(["--host", self.host, "--port", self.port, "--db", "go_tpc"]);
        command.args(["--warehouses", &WAREHOUSES.to_string()]);
        command.args(action.split(' '));
        command
    }

    /// Runs the transactions for some seconds, and counts new orders.
    fn new_orders(&self, connections: u32, seconds: usize) -> Result<Sample> {
        let action = format!("run --threads {connections} --time {seconds}s");
        let finished = finish(self.command(&action))?;
        let elapsed = finished.number("[Summary] NEW_ORDER - Takes(s):")?;
        let op_count = finished.number("tpmC:")? * elapsed / 60.0;
        Ok(finished.sample_within(op_count, elapsed))
    }
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

/// Finds the program go-tpc: that in PATH, or one that Go builds in the workspace's target.
fn find_go_tpc(workspace: &Workspace) -> Result<PathBuf> {
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
