//! PostgreSQL of the system with pgbench's tables, and pgbench on it.
//!
//! The server dies with this program: the kernel tells it to stop when the thread that began it ends.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::pair::{Contender, Finished, Sample};
use crate::workspace::{answers, output};

/// Where Debian's packages put servers: one folder per major version.
const DEBIAN_SERVERS: &str = "/usr/lib/postgresql";
/// The user that runs the server when this program is root, for which PostgreSQL refuses to.
const SERVER_USER: &str = "postgres";

/// What is measured is a client: the server shall do little, and never wait for the disk.
const SETTINGS: &str = "
listen_addresses = ''
shared_buffers = 256MB
fsync = off
synchronous_commit = off
autovacuum = off
max_wal_size = 4GB
checkpoint_timeout = 1h
";

/// pgbench's scale: each has 100,000 accounts.
const SCALE: u32 = 10;
/// Rows of `pgbench_accounts`.
pub const ACCOUNT_COUNT: u32 = SCALE * 100_000;

/// A server in a folder of its own; stopped when dropped.
pub struct Server {
    process: Child,
    /// The folder with its programs.
    bin: PathBuf,
    home: tempfile::TempDir,
}

impl Server {
    /// Makes a cluster, starts a server on it, reachable by unix socket alone, and makes pgbench's tables.
    pub fn start() -> Result<Server> {
        let bin = newest_with_pgbench(Path::new(DEBIAN_SERVERS)).with_context(|| {
            format!(
                "no PostgreSQL with pgbench in {DEBIAN_SERVERS} - install what Debian calls: postgresql"
            )
        })?;
        let home = tempfile::tempdir()?;
        let data = home.path().join("cluster");
        fs::create_dir(&data)?;
        let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
        if is_root {
            // The socket is made in the home, by the server's user.
            for folder in [home.path(), data.as_path()] {
                output(Command::new("chown").arg(SERVER_USER).arg(folder))?;
            }
            fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
        }
        let as_server = |program: &str| {
            let mut command = Command::new("setpriv");
            if is_root {
                command.args(["--reuid", SERVER_USER, "--regid", SERVER_USER]);
                command.arg("--clear-groups");
            }
            command.args(["--pdeathsig", "INT", "--"]);
            command.arg(bin.join(program)).current_dir(home.path());
            command
        };
        output(
            as_server("initdb")
                .args(["--auth=trust", "--username=bench", "--no-sync", "-D"])
                .arg(&data),
        )?;
        // Written over what initdb wrote: the file stays its user's.
        fs::write(data.join("postgresql.conf"), SETTINGS)?;
        let log = fs::File::create(home.path().join("log"))?;
        let process = as_server("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.into_parts().0)
            .spawn()
            .context("cannot run `setpriv`")?;
        let mut server = Server { process, bin, home };
        server.wait_until_ready()?;
        output(
            server
                .client("pgbench")
                .args(["-i", "-q", "-s", &SCALE.to_string(), "postgres"]),
        )?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        for _ in 0..600 {
            if answers(&mut self.client("pg_isready")) {
                return Ok(());
            }
            if self.process.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        bail!("the server did not start\n{}", log.trim_end())
    }

    /// One of the server's clients, which connects to it.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command
            .arg("-h")
            .arg(self.home.path())
            .args(["-U", "bench"]);
        command
    }

    /// `sysbench` that connects to the server, and prepares the statements that it can.
    pub fn sysbench(&self) -> Command {
        let mut command = Command::new("sysbench");
        command.args(["--db-driver=pgsql", "--pgsql-user=bench"]);
        command.args(["--pgsql-db=postgres", "--db-ps-mode=auto"]);
        command.arg(format!("--pgsql-host={}", self.home.path().display()));
        command
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!(
            "postgresql://bench@/postgres?host={}",
            self.home.path().display()
        )
    }

    /// The folder that holds its `bin`.
    pub fn build(&self) -> &Path {
        self.bin.parent().unwrap_or(&self.bin)
    }

    /// `pgbench -S -M prepared` with so many connections, each on a thread of its own.
    pub fn lookups(&self, connections: u32, op_count: u64) -> Command {
        let connections = connections.to_string();
        let mut command = self.client("pgbench");
        command.args(["-S", "-n", "-M", "prepared", "-c", &connections]);
        command.args(["-j", &connections, "-t", &op_count.to_string(), "postgres"]);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data is not kept: it need not write anything before it ends.
        let id = self.process.id().to_string();
        answers(Command::new("kill").args(["-QUIT", &id]));
        let _ = self.process.wait();
    }
}

/// pgbench as a peer.
pub fn contender(server: &Server, connections: u32, op_count: u64) -> Contender<'_> {
    Contender {
        name: "pgbench".to_owned(),
        command: Box::new(move || Ok(server.lookups(connections, op_count))),
        read: Box::new(sample),
    }
}

/// What pgbench did, by its own account, without the time that connecting took.
pub fn sample(finished: &Finished) -> Result<Sample> {
    let after = |label: &str| {
        let rest = finished
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(label))?;
        rest.split([' ', '/']).next()?.parse::<f64>().ok()
    };
    let (Some(op_count), Some(per_s)) = (
        after("number of transactions actually processed: "),
        after("tps = "),
    ) else {
        bail!("pgbench printed no result");
    };
    Ok(Sample {
        elapsed_ns: (op_count / per_s * 1e9) as u64,
        ..finished.sample(op_count as u64)
    })
}

/// The programs of the newest server that has pgbench beside it.
fn newest_with_pgbench(servers: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(servers).ok()?.flatten();
    let major =
        |bin: &PathBuf| -> Option<u32> { bin.parent()?.file_name()?.to_str()?.parse().ok() };
    versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("postgres").is_file() && bin.join("pgbench").is_file())
        .max_by_key(major)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_server_with_pgbench_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for (version, programs) in [
            ("9", &["postgres", "pgbench"][..]),
            ("15", &["postgres", "pgbench"]),
            ("17", &["postgres"]),
        ] {
            let bin = folder.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        }
        assert_eq!(
            newest_with_pgbench(folder.path()),
            Some(folder.path().join("15/bin"))
        );
        assert_eq!(newest_with_pgbench(&folder.path().join("none")), None);
    }

    #[test]
    fn what_pgbench_printed_is_read() {
        let finished = |stdout: &str| Finished {
            stdout: stdout.to_owned(),
            user_ns: 5,
            system_ns: 6,
            elapsed_ns: 7,
        };
        let text = "query mode: prepared\nnumber of transactions actually processed: 2000/2000\n\
                    latency average = 0.1 ms\ntps = 500.000000 (without initial connection time)\n";
        let read = sample(&finished(text)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (2000, 4_000_000_000));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        assert!(sample(&finished("tps = 5\n")).is_err());
    }
}
