//! The life of a server that assay started: cluster, configuration, start, stop.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;

use super::config::{self, Parts};
use super::installation::{Installation, locate};
use super::{Address, Host, PostgresSession, SslMode, socket_path};
use crate::guard::{Ending, Guarded};
use crate::local::program::{self, Programs, Readiness};
use crate::local::socket::socket_directory;
use crate::local::user::{self, SystemUser};
use crate::{DataDir, Error, Session, SetupError, Storage};

/// The name of the directory that assay makes for the cluster.
const DIRECTORY: &str = "postgres";

/// The role and the database that assay makes; the database's name is the Insert Benchmark's.
const ROLE: &str = "assay";
const DATABASE: &str = "ib";

/// The socket's directory is private to the server, so any number will do.
const PORT: u16 = 5432;

/// Variables that change what the server's programs do.
const ENVIRONMENT: [&str; 12] = [
    "PGDATA",
    "PGPORT",
    "PGHOST",
    "PGUSER",
    "PGPASSWORD",
    "PGDATABASE",
    "PGOPTIONS",
    "PGSERVICE",
    "PGTZ",
    "PGDATESTYLE",
    "PGCLIENTENCODING",
    "PG_COLOR",
];

/// What a server is started with.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The build: see [`locate`].
    pub build: &'a str,
    /// Where the directory `postgres` is made, marked as assay's, for the cluster. One that is there already and
    /// carries the mark is wiped, unless a server lives in it.
    pub data_dir: &'a Path,
    /// The texts of configuration files, verbatim, in their order.
    pub config_files: &'a [String],
    /// Options, after those of the files.
    pub set: &'a [(String, String)],
    /// The system user that runs the server when assay is root; `None`: `postgres`, else the owner of `data_dir`, else
    /// `nobody`. Not used when assay is not root.
    pub user: Option<&'a str>,
    /// The program that runs [`crate::guard::main`] when its first argument is [`crate::guard::SUBCOMMAND`].
    pub guard_exe: &'a Path,
    /// Where the server's log goes, after what is there already.
    pub log: &'a Path,
    /// Connections that the run needs. Where that is more than a fresh installation allows, `max_connections` is raised;
    /// the config's own value wins over it.
    pub connections: u32,
    /// How long the server may take to start, and again to stop.
    pub timeout: Duration,
    /// Ends the start early when it is set, with what was begun taken down again.
    pub stop: &'a AtomicBool,
}

/// A server that assay started. Dropping it ends the server at once, without care for its data.
pub(super) struct Server {
    guarded: Guarded,
    installation: Installation,
    data_dir: DataDir,
    /// Removed with what is in it when the server has ended.
    _socket_dir: tempfile::TempDir,
    address: Address,
    user: Option<SystemUser>,
    config_text: String,
    notes: Vec<String>,
    log: PathBuf,
    timeout: Duration,
}

impl Server {
    pub(super) fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let installation = locate(options.build)?;
        let log = std::path::absolute(options.log).map_err(|source| SetupError::Io {
            action: format!("resolve `{}`", options.log.display()),
            source,
        })?;
        let guard_exe =
            std::path::absolute(options.guard_exe).map_err(|source| SetupError::Io {
                action: format!("resolve `{}`", options.guard_exe.display()),
                source,
            })?;
        let user = user::server_user("PostgreSQL", options.user, "postgres", options.data_dir)?;
        let data_dir = DataDir::create(options.data_dir, DIRECTORY)?;
        let cluster = data_dir.path().join("cluster");
        refuse_live_server(&cluster)?;
        data_dir.wipe()?;
        let socket_dir = socket_directory(&socket_path(Path::new(""), PORT).display().to_string())?;
        if let Some(user) = &user {
            user.check_access(&installation.bin_dir, options.build, data_dir.path())?;
            for directory in [data_dir.path(), socket_dir.path()] {
                user.own(directory)?;
            }
        }
        let config = config::compose(&Parts {
            cluster: &cluster,
            major: installation.version.major,
            files: options.config_files,
            set: options.set,
            connections: options.connections,
            socket_directory: socket_dir.path(),
            port: PORT,
        })?;
        let programs = Programs {
            guard_exe: &guard_exe,
            log: &log,
            ids: user.as_ref().map(|user| (user.uid, user.gid)),
            env_remove: &ENVIRONMENT,
            timeout: options.timeout,
            stop: options.stop,
        };
        programs.run(&installation.program("initdb"), initdb_args(&cluster), None)?;
        let config_file = data_dir.path().join("server.conf");
        write_config(&config_file, &config.text)?;
        let address = Address {
            host: Host::Unix(socket_dir.path().to_path_buf()),
            port: PORT,
            user: ROLE.into(),
            password: None,
            database: "postgres".into(),
            ssl_mode: SslMode::Disable,
            ssl_root: None,
            connect_timeout: options.timeout,
            application_name: "assay".into(),
        };
        let guarded = serve(
            &programs,
            &installation,
            &cluster,
            &config_file,
            socket_dir.path(),
            &address,
        )?;
        let notes = config
            .notes
            .into_iter()
            .chain(installation.note())
            .collect();
        Ok(Self {
            guarded,
            installation,
            data_dir,
            _socket_dir: socket_dir,
            address: Address {
                database: DATABASE.into(),
                ..address
            },
            user,
            config_text: config.text,
            notes,
            log,
            timeout: options.timeout,
        })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        format!(
            "PostgreSQL {} at `{}`",
            self.installation.version.text, self.address
        )
    }

    pub(super) fn process_id(&self) -> u32 {
        self.guarded.pid()
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    pub(super) fn installation(&self) -> &Installation {
        &self.installation
    }

    pub(super) fn data_dir(&self) -> &DataDir {
        &self.data_dir
    }

    pub(super) fn config_text(&self) -> &str {
        &self.config_text
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    pub(super) fn storage(&self) -> Storage {
        let cluster = self.data_dir.path().join("cluster");
        Storage {
            logs: vec![cluster.join("pg_wal")],
            data: vec![cluster],
        }
    }

    /// Stops it: a fast shutdown, which writes a checkpoint; then, with errors, by force.
    pub(super) fn stop(self) -> Result<(), SetupError> {
        program::stop(self.guarded, Ending::Interrupt, self.timeout, &self.log)
    }
}

fn initdb_args(cluster: &Path) -> Vec<OsString> {
    [
        "--auth-local=trust".into(),
        "--auth-host=reject".into(),
        "--data-checksums".into(),
        "--encoding=UTF8".into(),
        "--locale=C".into(),
        "--no-sync".into(),
        format!("--username={ROLE}"),
    ]
    .into_iter()
    .map(OsString::from)
    .chain(["--pgdata".into(), cluster.into()])
    .collect()
}

/// Starts the server and waits until it answers a query.
fn serve(
    programs: &Programs<'_>,
    installation: &Installation,
    cluster: &Path,
    config_file: &Path,
    socket_dir: &Path,
    address: &Address,
) -> Result<Guarded, SetupError> {
    let mut config_option = OsString::from("config_file=");
    config_option.push(config_file);
    let args = vec!["-D".into(), cluster.into(), "-c".into(), config_option];
    let version = &installation.version.text;
    programs.serve(
        &installation.program("postgres"),
        args,
        socket_dir,
        Readiness {
            server: &|| format!("PostgreSQL {version} at `{address}`"),
            socket: &socket_path(socket_dir, PORT),
            ask: || first_query(address),
            complaint: |log: &[String]| {
                Some(SetupError::Config {
                    what: format!(
                        "PostgreSQL {version} refuses it: {}",
                        config::complaint(log)?
                    ),
                    help: format!("line numbers are those of `{}`", config_file.display()),
                })
            },
            address: &address.to_string(),
        },
    )
}

/// Asks the new server something, and makes the database.
fn first_query(address: &Address) -> Result<(), Error> {
    let mut session = PostgresSession::connect(address)?;
    match session.query(&format!("create database {DATABASE}")) {
        // The connection was lost after an earlier attempt was carried out.
        Err(error) if error.code.as_deref() == Some("42P04") => Ok(()),
        result => result.map(|_| ()),
    }
}

/// A cluster that a server uses is not wiped, whoever started that.
fn refuse_live_server(cluster: &Path) -> Result<(), SetupError> {
    match live_server(cluster) {
        Some(pid) => Err(SetupError::Directory {
            path: cluster.to_path_buf(),
            what: format!("a PostgreSQL server runs in it, process {pid}"),
            help: format!("stop it (`kill -INT {pid}`), or choose another data directory"),
        }),
        None => Ok(()),
    }
}

/// The process that `postmaster.pid` in `cluster` names, if it lives and is a server of that cluster.
pub(super) fn live_server(cluster: &Path) -> Option<u32> {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    let pid: u32 = text.lines().next()?.trim().parse().ok()?;
    // A build that brings its own C library runs as that library's loader.
    let is_program = |name: &std::ffi::OsStr| {
        name == "postgres" || name == "postmaster" || name.to_string_lossy().starts_with("ld-linux")
    };
    let name = match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(exe) => exe.file_name()?.to_os_string(),
        // Another user's: its short name is for all to read.
        Err(_) => fs::read_to_string(format!("/proc/{pid}/comm"))
            .ok()?
            .trim()
            .into(),
    };
    // A server's working directory is its cluster; where that can't be read its name decides.
    let here = fs::canonicalize(cluster).ok()?;
    let is_here = fs::read_link(format!("/proc/{pid}/cwd")).map_or(true, |cwd| cwd == here);
    (is_program(&name) && is_here).then_some(pid)
}

fn write_config(path: &Path, text: &str) -> Result<(), SetupError> {
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(path)?;
        file.write_all(text.as_bytes())?;
        // The server's user reads it.
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
    };
    write().map_err(|source| SetupError::Io {
        action: format!("write `{}`", path.display()),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_pid_file_is_no_live_server() {
        let cluster = tempfile::tempdir().unwrap();
        assert_eq!(live_server(cluster.path()), None);
        // This process lives but is no server.
        fs::write(
            cluster.path().join("postmaster.pid"),
            format!("{}\n/x\n", std::process::id()),
        )
        .unwrap();
        assert_eq!(live_server(cluster.path()), None);
        fs::write(cluster.path().join("postmaster.pid"), "nonsense").unwrap();
        assert_eq!(live_server(cluster.path()), None);
    }
}
