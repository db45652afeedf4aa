//! The options with which assay starts a server.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use words::Creation;

use crate::net::network::{Network, Port};
use crate::safety::limits::Limits;

/// The port of a server that only its private socket leads to: it is in the names of sockets of
/// PostgreSQL.
const PORT: u16 = 5432;

/// The time that a server may take to start, and to stop, if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(120);

/// No limits.
static NO_LIMITS: Limits = Limits { memory_bytes: None, cpus: None, cpu_quota_milli: None };

/// A database made as its build makes one.
static PLAIN_CREATION: Creation = Creation {
    init_arguments: Vec::new(),
    extensions: Vec::new(),
    setup_sql: Vec::new(),
    table_options: String::new(),
};

/// A flag that nobody sets.
static GO_ON: AtomicBool = AtomicBool::new(false);

/// The options of a server's start.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The build, in a form that the engine's `locate` accepts.
    pub build: &'a str,
    /// The parent of the directory `mysql` or `postgres` for the server's files, which is created
    /// and marked as assay's. An existing marked directory is wiped, unless a server uses it.
    pub data_dir: &'a Path,
    /// The texts of files in the server's format, in order. In MySQL's option files, lines before
    /// the first group are for the server.
    pub config_files: &'a [String],
    /// Options that override the files'. MySQL's `default_storage_engine` (or `storage_engine`)
    /// selects the engine of tables; `rocksdb` also loads its plugin.
    pub set: &'a [(String, String)],
    /// The system user that runs the server when assay is root. `None` means the user of the
    /// server's packages, else the owner of `data_dir`, else `nobody`.
    pub user: Option<&'a str>,
    /// The program that runs [`crate::guard::main`] when its first argument is
    /// [`crate::guard::SUBCOMMAND`].
    pub guard_exe: &'a Path,
    /// The file to which the server's log is appended.
    pub log: &'a Path,
    /// The number of connections that the run needs. If the default is too low, assay raises
    /// `max_connections`, unless the config sets it.
    pub connections: u32,
    /// Limits of the server, and of the programs that create its files.
    pub limits: &'a Limits,
    /// The way in which its database is made.
    pub creation: &'a Creation,
    /// Environment variables of the server, and of the programs that create its files.
    pub env: &'a [(String, String)],
    /// The time that the server may take to start, and to stop.
    pub timeout: Duration,
    /// The TCP address and the password for its clients; `None`: they use its private socket.
    pub network: Option<&'a Network>,
    /// The needs of its replicas; `None`: it has none.
    pub replicas: Option<ForReplicas<'a>>,
    /// The database of which the new server gets a copy; `None`: it gets an empty one.
    pub database: Option<StoppedDatabase<'a>>,
    /// The tool that runs the server's program, if one does.
    pub wrapper: Option<&'a dyn Wrapper>,
    /// Cancels the start when it is set, and stops what was started.
    pub stop: &'a AtomicBool,
}

impl StartOptions<'_> {
    pub(crate) fn port(&self) -> u16 {
        self.network.map_or(PORT, |network| network.port.number())
    }
}

impl Default for StartOptions<'_> {
    /// Returns the options of a server with its build's own config, for one connection by its private
    /// socket. They lack what has no default: `build`, `data_dir`, `guard_exe` and `log`.
    fn default() -> Self {
        Self {
            build: "",
            data_dir: Path::new(""),
            config_files: &[],
            set: &[],
            user: None,
            guard_exe: Path::new(""),
            log: Path::new(""),
            connections: 1,
            limits: &NO_LIMITS,
            creation: &PLAIN_CREATION,
            env: &[],
            timeout: TIMEOUT,
            network: None,
            replicas: None,
            database: None,
            wrapper: None,
            stop: &GO_ON,
        }
    }
}

/// A tool that runs a server's program, for example to count its instructions. The server is then
/// configured to do as little as possible by the clock, and may take longer to start.
pub trait Wrapper: fmt::Debug {
    /// Returns the name of a directory for the tool's files, which is created in that of the
    /// server.
    fn folder(&self) -> &str;

    /// Returns the words before the path of the server's program, with the tool's program first.
    /// The tool writes its files to `folder`.
    fn command(&self, folder: &Path) -> Vec<OsString>;
}

/// The database of a stopped server.
#[derive(Clone, Copy, Debug)]
pub struct StoppedDatabase<'a> {
    /// The directory with its files, which belong to this process's user.
    pub data: &'a Path,
    /// The build of the server, if it is another one, in the form of [`StartOptions::build`].
    pub build: Option<&'a str>,
}

/// The needs of replicas from their primary.
#[derive(Clone, Copy, Debug)]
pub struct ForReplicas<'a> {
    /// The port of this host for replicas that cannot use the private socket.
    pub port: &'a Port,
    /// Replicas get the changes of rows instead of the log (PostgreSQL).
    pub logical: bool,
}
