//! A server of MySQL or MariaDB with sysbench's table, and sysbench on it.
//!
//! The server is started by the engine itself, by way of an example, so that every build that assay can run can be
//! measured. It ends when this program does, since it then has nothing on its stdin.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::pair::{Contender, Finished, Sample};
use crate::workspace::{Workspace, output};
use crate::{builds, prepare};

/// What is measured is a client: the server shall do little, and never wait for the disk.
const OPTIONS: [&str; 5] = [
    "innodb_buffer_pool_size=512M",
    "innodb_log_file_size=1G",
    "innodb_flush_log_at_trx_commit=0",
    "innodb_doublewrite=OFF",
    "sync_binlog=0",
];

/// Rows of `sbtest1`.
pub const ROW_COUNT: u32 = 200_000;

/// A server in a folder of its own; stopped when dropped.
pub struct Server {
    process: Child,
    build: String,
    url: String,
    socket: String,
    /// Removed last.
    _home: tempfile::TempDir,
}

impl Server {
    /// Starts a server, reachable by unix socket alone, and makes sysbench's table.
    pub fn start(program: &Path) -> Result<Server> {
        if !prepare::program("sysbench", "sysbench")? {
            bail!("no `sysbench` - install what Debian calls: sysbench");
        }
        let build = builds::mariadb(&Workspace::here())?;
        println!("server: {build}");
        let home = tempfile::tempdir()?;
        // The server may run as another user.
        fs_err::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
        let mut process = Command::new(program)
            .arg(&build)
            .arg(home.path())
            .args(OPTIONS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", program.display()))?;
        let stdout = process.stdout.take().context("the server has no stdout")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        let url = url.trim().to_owned();
        let Some((_, socket)) = url.split_once("?socket=") else {
            bail!("no server of the build `{build}` - {}", process.wait()?);
        };
        let server = Server {
            process,
            build,
            socket: socket.to_owned(),
            url,
            _home: home,
        };
        output(server.point_selects().arg("prepare"))?;
        Ok(server)
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The build that it is, as a plan names one.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Whether the build has MyRocks.
    pub fn has_myrocks(&self) -> bool {
        let plugins = ["lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin"];
        plugins.iter().any(|place| {
            Path::new(&self.build)
                .join(place)
                .join("ha_rocksdb.so")
                .is_file()
        })
    }

    /// Lookups with so many connections, each on a thread of its own.
    pub fn lookups(&self, connections: u32, op_count: u64) -> Command {
        let events = op_count * u64::from(connections);
        let mut command = self.point_selects();
        command.arg(format!("--threads={connections}"));
        command.arg(format!("--events={events}"));
        command.args(["--time=0", "run"]);
        command
    }

    /// `sysbench oltp_point_select` on the server: its statements prepared, its keys drawn as assay draws them.
    fn point_selects(&self) -> Command {
        let mut command = self.sysbench();
        command.arg("oltp_point_select");
        command.arg(format!("--table-size={ROW_COUNT}"));
        command.args(["--tables=1", "--rand-type=uniform"]);
        command
    }

    /// `sysbench` that connects to the server, and prepares the statements that it can.
    pub fn sysbench(&self) -> Command {
        let mut command = Command::new("sysbench");
        command.args(["--mysql-user=root", "--mysql-db=ib", "--db-ps-mode=auto"]);
        command.arg(format!("--mysql-socket={}", self.socket));
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// sysbench as a peer, with so many connections, each on a thread of its own.
pub fn contender(server: &Server, connections: u32, op_count: u64) -> Contender<'_> {
    Contender {
        name: "sysbench".to_owned(),
        command: Box::new(move || Ok(server.lookups(connections, op_count))),
        read: Box::new(sample),
    }
}

/// What sysbench did, by its own account, without the time that connecting took.
pub fn sample(finished: &Finished) -> Result<Sample> {
    let after = |label: &str| {
        finished
            .stdout
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))
            .map(|rest| rest.trim().trim_end_matches('s'))
    };
    let (Some(op_count), Some(seconds)) = (
        after("total number of events:").and_then(|it| it.parse().ok()),
        after("total time:").and_then(|it| it.parse::<f64>().ok()),
    ) else {
        bail!("sysbench printed no result");
    };
    Ok(Sample {
        elapsed_ns: (seconds * 1e9) as u64,
        ..finished.sample(op_count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysbench_printed_is_read() {
        let finished = |stdout: &str| Finished {
            stdout: stdout.to_owned(),
            user_ns: 5,
            system_ns: 6,
            elapsed_ns: 7,
        };
        let text = "SQL statistics:\n    transactions:    2000   (500.00 per sec.)\n\n\
                    General statistics:\n    total time:                          4.0000s\n    \
                    total number of events:              2000\n\nLatency (ms):\n";
        let read = sample(&finished(text)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (2000, 4_000_000_000));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        assert!(sample(&finished("total time: 4s\n")).is_err());
    }
}
