//! The life of a server that assay started: cluster, configuration, start, stop.

use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fs_err as fs;

use super::config::{self, Parts};
use super::installation::{Installation, locate};
use super::stream::socket_path;
use super::system_user::{self, SystemUser};
use super::{Address, Host, PostgresSession, SslMode};
use crate::guard::{Deadline, Ending, Guarded, Spawn};
use crate::{DataDir, Error, ErrorClass, Session, SetupError, Storage};

/// The name of the directory that assay makes for the cluster.
const DIRECTORY: &str = "postgres";

/// The role and the database that assay makes; the database's name is the Insert Benchmark's.
const ROLE: &str = "assay";
const DATABASE: &str = "ib";

/// The socket's directory is private to the server, so any number will do.
const PORT: u16 = 5432;

/// The longest path of a socket: the kernel's 108 bytes with the zero at the end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

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

/// Lines of the log that an error carries.
const TAIL_LINES: usize = 20;

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
        let user = server_user(options)?;
        let data_dir = DataDir::create(options.data_dir, DIRECTORY)?;
        let cluster = data_dir.path().join("cluster");
        refuse_live_server(&cluster)?;
        data_dir.wipe()?;
        let socket_dir = socket_directory()?;
        if let Some(user) = &user {
            check_access(user, &installation, options.build, data_dir.path())?;
            for directory in [data_dir.path(), socket_dir.path()] {
                change_owner(directory, user)?;
            }
        }
        let config = config::compose(&Parts {
            initdb_file: &cluster.join("postgresql.conf"),
            files: options.config_files,
            set: options.set,
            connections: options.connections,
            socket_directory: socket_dir.path(),
            port: PORT,
        })?;
        let run = Run {
            guard_exe: &guard_exe,
            log: &log,
            ids: user.as_ref().map(|user| (user.uid, user.gid)),
            timeout: options.timeout,
            stop: options.stop,
        };
        run.initdb(&installation, &cluster)?;
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
        let guarded = run.server(
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
    pub(super) fn stop(mut self) -> Result<(), SetupError> {
        let command = self.guarded.command().to_string();
        let not_clean = |status: String, log: &Path| SetupError::Command {
            command: command.clone(),
            status,
            tail: tail(log, TAIL_LINES),
            log: Some(log.to_path_buf()),
        };
        if let Some(status) = self.guarded.exit_status() {
            let status = format!("it had ended before it was stopped: {status}");
            return Err(not_clean(status, &self.log));
        }
        let endings = [
            (Ending::Interrupt, self.timeout),
            (Ending::Quit, Duration::from_secs(10)),
        ];
        let (ending, status) = self.guarded.stop(&endings)?;
        match ending {
            Ending::Interrupt if status == "exit status: 0" => Ok(()),
            Ending::Interrupt => Err(not_clean(
                format!("it did not stop cleanly: {status}"),
                &self.log,
            )),
            _ => Err(not_clean(
                format!(
                    "it did not stop within {} s and was ended by {}",
                    self.timeout.as_secs(),
                    ending.signal_name()
                ),
                &self.log,
            )),
        }
    }
}

/// How the build's programs are run.
struct Run<'a> {
    guard_exe: &'a Path,
    log: &'a Path,
    ids: Option<(u32, u32)>,
    timeout: Duration,
    stop: &'a AtomicBool,
}

impl Run<'_> {
    fn spawn(
        &self,
        program: &Path,
        args: Vec<OsString>,
        remove: Option<&Path>,
    ) -> Result<Guarded, SetupError> {
        // The log's directory is the caller's: a missing one is an error here rather than in the guard.
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log)
            .map_err(|source| SetupError::Io {
                action: format!("write log `{}`", self.log.display()),
                source,
            })?;
        Guarded::spawn(&Spawn {
            guard_exe: self.guard_exe,
            program,
            args,
            env: vec![("LC_ALL".into(), "C".into())],
            env_remove: ENVIRONMENT.iter().map(OsString::from).collect(),
            directory: None,
            user: self.ids,
            log: self.log,
            remove_directory: remove,
        })
    }

    /// Waits until the program ends, in small pieces, so that a stop is seen.
    fn is_over(&self, guarded: &mut Guarded, began: &Deadline) -> Result<bool, SetupError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped(guarded.command()));
        }
        Ok(guarded.wait(Duration::from_millis(20)).is_some() || began.has_passed())
    }

    fn initdb(&self, installation: &Installation, cluster: &Path) -> Result<(), SetupError> {
        let args: Vec<OsString> = [
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
        .collect();
        let log_start = size(self.log);
        let mut guarded = self.spawn(&installation.program("initdb"), args, None)?;
        let began = Deadline::after(self.timeout);
        while !self.is_over(&mut guarded, &began)? {}
        let status = match guarded.exit_status() {
            Some("exit status: 0") => return Ok(()),
            Some(status) => status.to_string(),
            None => format!("it did not end within {} s", self.timeout.as_secs()),
        };
        Err(SetupError::Command {
            command: guarded.command().to_string(),
            status,
            tail: tail_since(self.log, log_start, TAIL_LINES),
            log: Some(self.log.to_path_buf()),
        })
    }

    /// Starts the server and waits until it answers a query.
    fn server(
        &self,
        installation: &Installation,
        cluster: &Path,
        config_file: &Path,
        socket_dir: &Path,
        address: &Address,
    ) -> Result<Guarded, SetupError> {
        let mut config_option = OsString::from("config_file=");
        config_option.push(config_file);
        let args = vec!["-D".into(), cluster.into(), "-c".into(), config_option];
        let log_start = size(self.log);
        let mut guarded = self.spawn(&installation.program("postgres"), args, Some(socket_dir))?;
        let began = Deadline::after(self.timeout);
        let mut last = Error::new(ErrorClass::ConnectionLost, "it has not begun to listen");
        loop {
            if socket_path(socket_dir, PORT).exists() {
                match first_query(address) {
                    Ok(()) => return Ok(guarded),
                    // Still starting, or recovering.
                    Err(error) if error.class == ErrorClass::ConnectionLost => last = error,
                    Err(source) => {
                        return Err(SetupError::Server {
                            server: address.to_string(),
                            source,
                            help: None,
                        });
                    }
                }
            }
            if !self.is_over(&mut guarded, &began)? {
                continue;
            }
            let log = tail_since(self.log, log_start, TAIL_LINES);
            let Some(status) = guarded.exit_status().map(str::to_string) else {
                return Err(SetupError::NotReady {
                    server: format!("PostgreSQL {} at `{address}`", installation.version.text),
                    seconds: self.timeout.as_secs(),
                    last: last.to_string(),
                    tail: log,
                });
            };
            return Err(match config::complaint(&log) {
                Some(what) => SetupError::Config {
                    what: format!(
                        "PostgreSQL {} refuses it: {what}",
                        installation.version.text
                    ),
                    help: format!("line numbers are those of `{}`", config_file.display()),
                },
                None => SetupError::Command {
                    command: guarded.command().to_string(),
                    status,
                    tail: log,
                    log: Some(self.log.to_path_buf()),
                },
            });
        }
    }
}

fn stopped(command: &str) -> SetupError {
    SetupError::Command {
        command: command.to_string(),
        status: "it was stopped on request".into(),
        tail: Vec::new(),
        log: None,
    }
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

/// Who runs the server: nobody else, unless assay is root.
fn server_user(options: &StartOptions<'_>) -> Result<Option<SystemUser>, SetupError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let no_user = |what: String| SetupError::Config {
        what,
        help:
            "PostgreSQL refuses to run as root: name another user of this system as `server-user`"
                .into(),
    };
    match options.user {
        None => system_user::chosen(options.data_dir)
            .map(Some)
            .ok_or_else(|| {
                no_user(
                    "assay is root, and `/etc/passwd` has neither `postgres` nor `nobody`".into(),
                )
            }),
        Some(name) => match system_user::named(name) {
            Some(user) if user.uid == 0 => Err(no_user(format!("server user `{name}` is root"))),
            Some(user) => Ok(Some(user)),
            None => Err(no_user(format!(
                "server user `{name}` is not in `/etc/passwd`"
            ))),
        },
    }
}

/// Whether the server's user can get to its programs and its files.
fn check_access(
    user: &SystemUser,
    installation: &Installation,
    build: &str,
    data_dir: &Path,
) -> Result<(), SetupError> {
    let name = &user.name;
    if let Some(barred) = user.barred_at(&installation.bin_dir) {
        return Err(SetupError::Build {
            build: build.to_string(),
            what: format!(
                "user `{name}`, who runs the server, can't enter `{}`",
                barred.display()
            ),
            help: format!(
                "`chmod a+x {}`, or move the build elsewhere",
                barred.display()
            ),
        });
    }
    // The data directory itself is given to the user.
    if let Some(barred) = data_dir.parent().and_then(|parent| user.barred_at(parent)) {
        return Err(SetupError::Directory {
            path: data_dir.to_path_buf(),
            what: format!(
                "user `{name}`, who runs the server, can't enter `{}`",
                barred.display()
            ),
            help: format!(
                "`chmod a+x {}`, or choose another data directory",
                barred.display()
            ),
        });
    }
    Ok(())
}

fn change_owner(path: &Path, user: &SystemUser) -> Result<(), SetupError> {
    std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)).map_err(|source| {
        SetupError::Io {
            action: format!("give `{}` to user `{}`", path.display(), user.name),
            source,
        }
    })
}

/// A private directory for the socket, with a path short enough for one.
fn socket_directory() -> Result<tempfile::TempDir, SetupError> {
    let mut last = None;
    for parent in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        let directory = match tempfile::Builder::new()
            .prefix("assay-")
            .tempdir_in(&parent)
        {
            Ok(directory) => directory,
            Err(source) => {
                last = Some(SetupError::Io {
                    action: format!("make a directory for the socket in `{}`", parent.display()),
                    source,
                });
                continue;
            }
        };
        let length = socket_path(directory.path(), PORT).as_os_str().len();
        if length <= SOCKET_PATH_BYTES_MAX {
            return Ok(directory);
        }
        last = Some(SetupError::Directory {
            path: parent,
            what: format!(
                "a socket in it has a path of {length} bytes; at most {SOCKET_PATH_BYTES_MAX} are allowed"
            ),
            help: "set TMPDIR to a directory with a shorter path".into(),
        });
    }
    Err(last.unwrap_or_else(|| SetupError::Directory {
        path: "/tmp".into(),
        what: "no directory for the socket".into(),
        help: "set TMPDIR".into(),
    }))
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
    let is_program = |name: &std::ffi::OsStr| name == "postgres" || name == "postmaster";
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

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The last lines of the log, oldest first; empty when it can't be read.
pub(super) fn tail(log: &Path, lines: usize) -> Vec<String> {
    tail_since(log, 0, lines)
}

fn tail_since(log: &Path, start: u64, lines: usize) -> Vec<String> {
    const BYTES_MAX: u64 = 64 * 1024;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(length.saturating_sub(BYTES_MAX))))?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    all[all.len().saturating_sub(lines)..]
        .iter()
        .map(|line| line.to_string())
        .collect()
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

    #[test]
    fn the_tail_is_the_last_lines_in_their_order() {
        let log = tempfile::NamedTempFile::new().unwrap();
        fs::write(log.path(), "one\n\ntwo\nthree\n").unwrap();
        assert_eq!(tail(log.path(), 2), ["two", "three"]);
        assert_eq!(tail_since(log.path(), 5, 9), ["two", "three"]);
        assert!(tail(Path::new("/nowhere"), 3).is_empty());
    }
}
