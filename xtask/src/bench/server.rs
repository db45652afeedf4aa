//! A server of PostgreSQL or of MariaDB with a table of the peer's, and the peers: pgbench and sysbench.
//!
//! The server is started by the engine itself, by way of an example, so that every build that assay can run can be
//! measured. It ends when this program does, since it then has nothing on its stdin. What is measured is a client: the
//! server shall do little, and never wait for the disk.

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

/// pgbench's scale: each has 100,000 accounts.
const SCALE: u64 = 10;
/// Rows of sysbench's table.
const SYSBENCH_ROWS: u64 = 200_000;

/// A server in a folder of its own; stopped when dropped.
pub struct Server {
    process: Child,
    /// The build, as a plan names one.
    pub build: String,
    /// Where it is: a unix socket.
    pub url: String,
    /// The program that looks up.
    pub peer: &'static str,
    /// Rows of the table that it looks them up in.
    pub row_count: u64,
    /// Removed last.
    _home: tempfile::TempDir,
}

impl Server {
    /// Starts the newest PostgreSQL that Debian has put beside a pgbench, with pgbench's tables.
    pub fn postgres(setup: &Setup) -> Result<Server> {
        // Debian's `pgbench` of the path is a script.
        let newest = "ls -d /usr/lib/postgresql/*/bin/pgbench | sort --version-sort | tail -n 1";
        let pgbench = output(Command::new("sh").args(["-c", newest]))?;
        let Some(build) = pgbench.trim().strip_suffix("/bin/pgbench") else {
            bail!("no PostgreSQL with pgbench - install what Debian calls: postgresql");
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
        let server = Server::start(
            setup,
            ("mysql", &build, MYSQL_SETTINGS),
            ("sysbench", SYSBENCH_ROWS),
        )?;
        output(&mut server.point_selects("prepare")?)?;
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
            bail!("no server of the build `{build}` - {}", process.wait()?);
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
        plugins
            .iter()
            .any(|place| build.join(place).join("ha_rocksdb.so").is_file())
    }

    /// Looks up rows with so many connections, each on a thread of its own: `pgbench -S -M prepared` or
    /// `sysbench oltp_point_select`.
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
        // Without the time that connecting took.
        Ok(finished.sample_within(op_count, op_count / finished.number("tps =")?))
    }

    fn pgbench(&self, arguments: &str) -> Command {
        let mut command = typed(Path::new(&self.build).join("bin/pgbench"), arguments);
        command.arg(&self.url);
        command
    }

    fn point_selects(&self, arguments: &str) -> Result<Command> {
        self.sysbench("oltp_point_select", SYSBENCH_ROWS, arguments)
    }

    /// One of sysbench's tests on a table of so many rows, its keys drawn as assay draws them. It connects to the server,
    /// and prepares the statements that it can.
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

/// Returns what sysbench did, in events, by its own account, without the time that connecting took.
pub fn sysbench_sample(finished: &Finished) -> Result<Sample> {
    let op_count = finished.number("total number of events:")?;
    ensure!(op_count > 0.0, "sysbench did nothing");
    Ok(finished.sample_within(op_count, finished.number("total time:")?))
}
