//! Runs a server of PostgreSQL or MariaDB with a table of the peer, and the peers: pgbench and
//! sysbench.
//!
//! An example of Assay starts the server, so that benchmarks can use every build that Assay can
//! run. The server ends with this program, when its stdin closes. Benchmarks measure clients, so
//! the server's settings keep it from waiting for the disk.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::measure::{Finished, Sample, finish};
use super::run::mariadb;
use super::{Setup, need};
use crate::workspace::{output, typed};

const POSTGRES_SETTINGS: &[&str] = &[
    "shared_buffers=256MB",
    "fsync=off",
    "synchronous_commit=off",
    "autovacuum=off",
    "max_wal_size=4GB",
    "checkpoint_timeout=1h",
];
const MYSQL_SETTINGS: &[&str] = &[
    "innodb_buffer_pool_size=512M",
    "innodb_log_file_size=1G",
    "innodb_flush_log_at_trx_commit=0",
    "innodb_doublewrite=OFF",
    "sync_binlog=0",
];

/// The password of servers on a port.
pub const PASSWORD: &str = "bench";

/// The scale of pgbench; each unit has 100,000 accounts.
pub const SCALE: u64 = 10;
const SYSBENCH_ROWS: u64 = 200_000;

/// A server in its own folder; it is stopped when dropped.
pub struct Server {
    process: Child,
    /// The build, as a plan names one.
    pub build: String,
    /// The URL of its Unix socket.
    pub url: String,
    /// The peer: `pgbench` or `sysbench`.
    pub peer: &'static str,
    /// Rows of the peer's table.
    pub row_count: u64,
    /// The server's folder, which is removed last.
    _home: tempfile::TempDir,
}

impl Server {
    /// Starts the newest of Debian's PostgreSQL servers that has a pgbench, with pgbench's tables.
    pub fn postgres(setup: &Setup) -> Result<Server> {
        // The `pgbench` in Debian's PATH is a script.
        let newest = "ls -d /usr/lib/postgresql/*/bin/pgbench | sort --version-sort | tail -n 1";
        let pgbench = output(Command::new("sh").args(["-c", newest]))?;
        let Some(build) = pgbench.trim().strip_suffix("/bin/pgbench") else {
            bail!(
                "no PostgreSQL with pgbench; install Debian's package `postgresql` or its equivalent"
            );
        };
        let server = Server::start(
            setup,
            ("postgres", build, POSTGRES_SETTINGS),
            ("pgbench", SCALE * 100_000),
        )?;
        output(&mut server.pgbench(&format!("-i -q -s {SCALE}")))?;
        Ok(server)
    }

    /// Starts MariaDB, with sysbench's table.
    pub fn mysql(setup: &Setup) -> Result<Server> {
        let build = mariadb(setup)?;
        let server =
            Server::start(setup, ("mysql", &build, MYSQL_SETTINGS), ("sysbench", SYSBENCH_ROWS))?;
        output(&mut server.point_selects("prepare")?)?;
        Ok(server)
    }

    /// Starts MariaDB without tables, on a port of 127.0.0.1.
    pub fn mysql_by_tcp(setup: &Setup) -> Result<Server> {
        let build = mariadb(setup)?;
        let listen = format!("listen={PASSWORD}");
        let settings = [MYSQL_SETTINGS, &[&listen]].concat();
        let mut server = Server::start(setup, ("mysql", &build, &settings), ("go-tpc", 0))?;
        server.url = server.url.replacen('@', &format!(":{PASSWORD}@"), 1);
        Ok(server)
    }

    fn start(
        setup: &Setup,
        (engine, build, settings): (&str, &str, &[&str]),
        (peer, row_count): (&'static str, u64),
    ) -> Result<Server> {
        println!("server: {build}");
        let home = tempfile::tempdir()?;
        // The server may run as another user.
        fs_err::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
        let mut process = Command::new(setup.build_assay()?.join("examples/server"))
            .args([engine, build])
            .arg(home.path())
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run the example `server`")?;
        let stdout = process.stdout.take().context("the server has no stdout")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        if url.is_empty() {
            bail!("the server of the build `{build}` did not start: {}", process.wait()?);
        }
        Ok(Server {
            process,
            build: build.to_owned(),
            url: url.trim().to_owned(),
            peer,
            row_count,
            _home: home,
        })
    }

    /// Returns whether the build has MyRocks.
    pub fn has_myrocks(&self) -> bool {
        let plugins = ["lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin"];
        let build = Path::new(&self.build);
        plugins.iter().any(|place| build.join(place).join("ha_rocksdb.so").is_file())
    }

    /// Looks up rows with `connections` connections, each on its own thread: `pgbench -S -M
    /// prepared` or `sysbench oltp_point_select`.
    pub fn lookups(&self, connections: u64, op_count: u64) -> Result<Sample> {
        if self.peer == "sysbench" {
            let events = op_count * connections;
            let arguments = format!("--threads={connections} --events={events} --time=0 run");
            return sysbench_sample(&finish(self.point_selects(&arguments)?)?);
        }
        let arguments =
            format!("-S -n -M prepared -c {connections} -j {connections} -t {op_count}");
        let finished = finish(self.pgbench(&arguments))?;
        let op_count = finished.number("number of transactions actually processed:")?;
        // Without the time for connecting.
        Ok(finished.sample_within(op_count, op_count / finished.number("tps =")?))
    }

    /// Returns a command of pgbench on the server.
    pub fn pgbench(&self, arguments: &str) -> Command {
        let mut command = typed(Path::new(&self.build).join("bin/pgbench"), arguments);
        command.arg(&self.url);
        command
    }

    fn point_selects(&self, arguments: &str) -> Result<Command> {
        self.sysbench("oltp_point_select", SYSBENCH_ROWS, arguments)
    }

    /// Returns the command of one of sysbench's tests on a table of `rows` rows, with keys of the
    /// same distribution as in Assay. It prepares the statements that it can.
    pub fn sysbench(&self, test: &str, rows: u64, arguments: &str) -> Result<Command> {
        need("sysbench")?;
        let (address, place) = self.url.split_once('=').context("a URL without a socket")?;
        let server = if address.starts_with("mysql:") {
            format!("--mysql-user=root --mysql-db=ib --mysql-socket={place}")
        } else {
            let (host, _) = place.split_once('&').unwrap_or((place, ""));
            format!("--db-driver=pgsql --pgsql-user=assay --pgsql-db=ib --pgsql-host={host}")
        };
        let table = format!("{test} --tables=1 --table-size={rows} --rand-type=uniform");
        let arguments = format!("--db-ps-mode=auto {server} {table} {arguments}");
        Ok(typed("sysbench", &arguments))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Returns the events that sysbench reports, without the time for connecting.
pub fn sysbench_sample(finished: &Finished) -> Result<Sample> {
    let op_count = finished.number("total number of events:")?;
    ensure!(op_count > 0.0, "sysbench did nothing");
    Ok(finished.sample_within(op_count, finished.number("total time:")?))
}
