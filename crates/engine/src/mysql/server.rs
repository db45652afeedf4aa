//! The life of a server that assay started: system tables, option file, start, stop.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;

use super::config::{self, Parts};
use super::installation::{Installation, locate};
use super::{Address, Host, MysqlSession, SslMode};
use crate::guard::{Ending, Guarded};
use crate::launch::{self, Launch};
use crate::local::program::{self, Programs, Readiness};
use crate::local::socket::socket_directory;
use crate::local::user::{self, SystemUser};
use crate::{DataDir, Error, Session, SetupError, Storage};

/// The name of the directory that assay makes for the server.
const DIRECTORY: &str = "mysql";

/// The account that every way of making system tables makes, here without a password, and the database that assay
/// makes; its name is the Insert Benchmark's.
const USER: &str = "root";
const DATABASE: &str = "ib";

const SOCKET: &str = "mysqld.sock";

/// Variables that change what the server's programs do.
const ENVIRONMENT: [&str; 8] = [
    "MYSQL_HOME",
    "MYSQL_GROUP_SUFFIX",
    "MARIADB_HOME",
    "MYSQL_TCP_PORT",
    "MYSQL_UNIX_PORT",
    "MYSQLD_PARENT_PID",
    "LD_LIBRARY_PATH",
    "TMPDIR",
];

/// The statements that make the system tables, as each version calls their files, in the order in which they are run.
/// The texts of the `help` command are not among them: nothing here asks for them.
const SYSTEM_TABLES: [&[&str]; 5] = [
    &["mariadb_system_tables.sql", "mysql_system_tables.sql"],
    &[
        "mariadb_performance_tables.sql",
        "mysql_performance_tables.sql",
    ],
    &[
        "mariadb_system_tables_data.sql",
        "mysql_system_tables_data.sql",
    ],
    &["maria_add_gis_sp_bootstrap.sql"],
    &["mariadb_sys_schema.sql", "mysql_sys_schema.sql"],
];

/// Files that every version has among these.
const SYSTEM_TABLES_REQUIRED: [usize; 2] = [0, 2];

/// What a server is started with.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The build: see [`locate`].
    pub build: &'a str,
    /// How the build's programs are run, where not directly: see [`locate`].
    pub launch: Option<&'a Launch>,
    /// Where the directory `mysql` is made, marked as assay's, for the server's files. One that is there already and
    /// carries the mark is wiped, unless a server lives in it.
    pub data_dir: &'a Path,
    /// The texts of option files, verbatim, in their order. Lines before the first group are the server's.
    pub config_files: &'a [String],
    /// Options, after those of the files. `default_storage_engine` (also `storage_engine`) says where tables are made;
    /// with `rocksdb` the plugin is loaded.
    pub set: &'a [(String, String)],
    /// The system user that runs the server when assay is root; `None`: `mysql`, else the owner of `data_dir`, else
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
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|source| SetupError::Io {
                action: format!("resolve `{}`", path.display()),
                source,
            })
        };
        let installation = locate(options.build, options.launch)?;
        let (log, guard_exe) = (absolute(options.log)?, absolute(options.guard_exe)?);
        let user = user::server_user("MySQL", options.user, "mysql", options.data_dir)?;
        let data_dir = DataDir::create(options.data_dir, DIRECTORY)?;
        refuse_live_server(data_dir.path())?;
        data_dir.wipe()?;
        let socket_dir = socket_directory(SOCKET)?;
        let socket = socket_dir.path().join(SOCKET);
        let config = config::compose(&Parts {
            installation: &installation,
            connections: options.connections,
            files: options.config_files,
            set: options.set,
            directory: data_dir.path(),
            socket: &socket,
        })?;
        let mut owned = vec![
            data_dir.path().to_path_buf(),
            socket_dir.path().to_path_buf(),
        ];
        for name in ["data", "tmp"] {
            let directory = data_dir.path().join(name);
            fs::create_dir(&directory).map_err(|source| SetupError::Io {
                action: format!("make directory `{}`", directory.display()),
                source,
            })?;
            owned.push(directory);
        }
        if let Some(user) = &user {
            let bin_dir = installation.program.parent().unwrap_or(Path::new("/"));
            user.check_access(bin_dir, options.build, data_dir.path())?;
            owned.iter().try_for_each(|path| user.own(path))?;
        }
        let programs = Programs {
            guard_exe: &guard_exe,
            log: &log,
            ids: user.as_ref().map(|user| (user.uid, user.gid)),
            env_remove: &ENVIRONMENT,
            timeout: options.timeout,
            stop: options.stop,
        };
        let build = Build {
            name: options.build,
            installation: &installation,
            programs: &programs,
            directory: data_dir.path(),
        };
        build.make_system_tables(&config.initial, user.as_ref())?;
        let config_file = data_dir.path().join("server.cnf");
        write(&config_file, &config.text)?;
        let address = Address {
            host: Host::Unix(socket),
            port: 3306,
            user: USER.into(),
            password: None,
            database: String::new(),
            ssl_mode: SslMode::Disabled,
            ssl_ca: None,
            connect_timeout: options.timeout,
        };
        let guarded = build.serve(&config_file, socket_dir.path(), &address)?;
        let notes = config
            .notes
            .into_iter()
            .chain(installation.version.note())
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
        format!("{} at `{}`", self.installation.version, self.address)
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

    /// Stops it: a shutdown in good order; then, with errors, by force.
    pub(super) fn stop(self) -> Result<(), SetupError> {
        program::stop(self.guarded, Ending::Terminate, self.timeout, &self.log)
    }
}

/// A build at work on its directory.
struct Build<'a> {
    name: &'a str,
    installation: &'a Installation,
    programs: &'a Programs<'a>,
    directory: &'a Path,
}

impl Build<'_> {
    /// The program and its arguments for the server with an option file, which has to be the first.
    fn command(&self, option_file: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        let mut first = OsString::from("--defaults-file=");
        first.push(option_file);
        let args = std::iter::once(first).chain(args.iter().map(OsString::from));
        let it = self.installation;
        launch::command(it.launch.as_ref(), &it.program, args)
    }

    /// Makes the system tables, by the server itself: MySQL from 5.7 on has the statements in it, others read them. The
    /// scripts that the latter come with do the same, but not everywhere that their programs run.
    fn make_system_tables(
        &self,
        options: &str,
        user: Option<&SystemUser>,
    ) -> Result<(), SetupError> {
        let option_file = self.directory.join("initial.cnf");
        write(&option_file, options)?;
        let version = &self.installation.version;
        if version.is_mysql_from(5, 7, 0) {
            let (program, args) = self.command(&option_file, &["--initialize-insecure"]);
            return self.programs.run(&program, args, None);
        }
        let statements = self.directory.join("initial.sql");
        write(&statements, &self.system_table_statements()?)?;
        // What older versions don't make themselves.
        let own_database = self.directory.join("data/mysql");
        fs::create_dir(&own_database).map_err(|source| SetupError::Io {
            action: format!("make directory `{}`", own_database.display()),
            source,
        })?;
        user.map_or(Ok(()), |user| user.own(&own_database))?;
        let mut args = vec![
            "--bootstrap",
            "--log-warnings=0",
            "--max-allowed-packet=8M",
            "--net-buffer-length=16K",
        ];
        if version.is_mariadb() {
            args.push("--enforce-storage-engine=");
        }
        let (program, args) = self.command(&option_file, &args);
        self.programs.run(&program, args, Some(&statements))
    }

    fn system_table_statements(&self) -> Result<String, SetupError> {
        let missing = |what: String| SetupError::Build {
            build: self.name.to_string(),
            what,
            help: "use a whole build of the server, its `share` directory included".into(),
        };
        let share = self.installation.share_dir.as_deref();
        let share =
            share.ok_or_else(|| missing("has no `share` directory with messages".into()))?;
        let mut text = String::from("create database if not exists mysql;\nuse mysql;\n");
        if self.installation.version.is_mariadb() {
            // The account of assay's server, which only its own socket leads to, needs no other user of the system.
            text.push_str("set @auth_root_socket=NULL;\n");
        }
        for (number, names) in SYSTEM_TABLES.iter().enumerate() {
            let Some(path) = names
                .iter()
                .map(|name| share.join(name))
                .find(|it| it.is_file())
            else {
                if SYSTEM_TABLES_REQUIRED.contains(&number) {
                    return Err(missing(format!(
                        "no `{}` in `{}`",
                        names.join("` or `"),
                        share.display()
                    )));
                }
                continue;
            };
            let part = fs::read(&path).map_err(|source| SetupError::Io {
                action: format!("read `{}`", path.display()),
                source,
            })?;
            text.push_str(&String::from_utf8_lossy(&part));
            text.push('\n');
        }
        Ok(text)
    }

    /// Starts the server and waits until it answers.
    fn serve(
        &self,
        option_file: &Path,
        socket_dir: &Path,
        address: &Address,
    ) -> Result<Guarded, SetupError> {
        let (program, args) = self.command(option_file, &[]);
        let version = &self.installation.version;
        self.programs.serve(
            &program,
            args,
            socket_dir,
            Readiness {
                server: &|| format!("{version} at `{address}`"),
                socket: &socket_dir.join(SOCKET),
                ask: || first_query(address),
                complaint: |log: &[String]| {
                    Some(SetupError::Config {
                        what: format!("{version} refuses it: {}", config::complaint(log)?),
                        help: format!("the server's options are in `{}`", option_file.display()),
                    })
                },
                address: &address.to_string(),
            },
        )
    }
}

/// Asks the new server something, and makes the database.
fn first_query(address: &Address) -> Result<(), Error> {
    let mut session = MysqlSession::connect(address)?;
    session
        .query(&format!("create database if not exists {DATABASE}"))
        .map(|_| ())
}

/// Where a server has its files, by its own variables. Which they are changes while it runs: logs come and go.
#[derive(Clone, Debug)]
pub(super) struct Places {
    data: PathBuf,
    redo: PathBuf,
    undo: PathBuf,
    /// The start of the names of the binary log's files.
    binlog: Option<PathBuf>,
    /// The directories in which MyRocks may have its write-ahead log.
    rocksdb: Vec<PathBuf>,
}

impl Places {
    /// Asks the server; `None` when it does not say.
    pub(super) fn find(session: &mut MysqlSession) -> Result<Option<Self>, Error> {
        let Some(data) = session.variable("datadir")?.map(PathBuf::from) else {
            return Ok(None);
        };
        let mut given = |name: &str| -> Result<Option<PathBuf>, Error> {
            let path = session.variable(name)?.filter(|path| !path.is_empty());
            Ok(path.map(|path| data.join(path)))
        };
        // `./` and the like: whole paths are compared later.
        let whole = |path: Option<PathBuf>| {
            path.and_then(|path| fs::canonicalize(path).ok())
                .unwrap_or_else(|| data.clone())
        };
        let mut rocksdb = vec![data.join("#rocksdb"), data.join(".rocksdb")];
        for name in ["rocksdb_datadir", "rocksdb_wal_dir"] {
            rocksdb.extend(given(name)?.map(|path| whole(Some(path))));
        }
        Ok(Some(Self {
            redo: whole(given("innodb_log_group_home_dir")?),
            undo: whole(given("innodb_undo_directory")?),
            binlog: given("log_bin_basename")?,
            rocksdb,
            data,
        }))
    }

    /// The directories, and the logs that are there now.
    pub(super) fn storage(&self) -> Storage {
        let mut storage = Storage {
            data: vec![self.data.clone()],
            logs: Vec::new(),
        };
        let mut add = |directory: &Path, is_log: &dyn Fn(&str) -> bool| {
            let Ok(entries) = fs::read_dir(directory) else {
                return;
            };
            let logs = entries
                .flatten()
                .filter(|entry| is_log(&entry.file_name().to_string_lossy()));
            storage.logs.extend(logs.map(|entry| entry.path()));
            let is_known = |known: &PathBuf| directory.starts_with(known);
            if !storage.data.iter().any(is_known) {
                storage.data.push(directory.to_path_buf());
            }
        };
        add(&self.redo, &|name| {
            name == "#innodb_redo" || name.starts_with("ib_logfile")
        });
        add(&self.undo, &|name| name.starts_with("undo"));
        for directory in &self.rocksdb {
            add(directory, &|name| name.ends_with(".log"));
        }
        if let Some(binlog) = &self.binlog
            && let (Some(directory), Some(prefix)) = (binlog.parent(), binlog.file_name())
        {
            let prefix = format!("{}.", prefix.to_string_lossy());
            add(directory, &|name| name.starts_with(&prefix));
        }
        storage.logs.sort();
        storage.logs.dedup();
        storage
    }
}

/// A directory that a server uses is not wiped, whoever started that.
fn refuse_live_server(directory: &Path) -> Result<(), SetupError> {
    match live_server(&directory.join("server.pid"), &directory.join("data")) {
        Some(pid) => Err(SetupError::Directory {
            path: directory.to_path_buf(),
            what: format!("a MySQL server runs in it, process {pid}"),
            help: format!("stop it (`kill {pid}`), or choose another data directory"),
        }),
        None => Ok(()),
    }
}

/// The process that `pid_file` names, if it lives and is a server of the directory `data`.
pub(super) fn live_server(pid_file: &Path, data: &Path) -> Option<u32> {
    let text = fs::read_to_string(pid_file).ok()?;
    let pid: u32 = text.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    // Run by a loader of its own it has that one's name.
    let is_program = ["mysqld", "mariadbd", "ld-"]
        .iter()
        .any(|known| name.starts_with(known));
    // A server's working directory is that of its data; where that can't be read its name decides.
    let here = fs::canonicalize(data).ok()?;
    let is_here = fs::read_link(format!("/proc/{pid}/cwd")).map_or(true, |cwd| cwd == here);
    (is_program && is_here).then_some(pid)
}

fn write(path: &Path, text: &str) -> Result<(), SetupError> {
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(path)?;
        file.write_all(text.as_bytes())?;
        // The server's user reads it; a file that everybody may write it would ignore.
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
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("server.pid");
        assert_eq!(live_server(&pid_file, data.path()), None);
        // This process lives but is no server.
        fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
        assert_eq!(live_server(&pid_file, data.path()), None);
        fs::write(&pid_file, "nonsense").unwrap();
        assert_eq!(live_server(&pid_file, data.path()), None);
    }
}
