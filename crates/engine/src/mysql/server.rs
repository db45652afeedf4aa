//! The life of a server that assay started: system tables, option file, start, stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::address::SCHEME;
use super::config::{self, ConfigText, Parts};
use super::installation::{Installation, locate};
use super::{Address, MysqlSession};
use crate::guard::{Ending, Guarded};
use crate::local::program::{Programs, Readiness};
use crate::local::server::{self as local, Kind, Place, Server, StartOptions, Trial};
use crate::{Error, Session, SetupError, Storage};

/// The account that every way of making system tables makes, here without a password, and the database that assay
/// makes; its name is the Insert Benchmark's.
const USER: &str = "root";
const DATABASE: &str = "ib";

const KIND: Kind = Kind {
    name: "MySQL",
    user: "mysql",
    data: "data",
    socket: "mysqld.sock",
    environment: &[
        "MYSQL_HOME",
        "MYSQL_GROUP_SUFFIX",
        "MARIADB_HOME",
        "MYSQL_TCP_PORT",
        "MYSQL_UNIX_PORT",
        "MYSQLD_PARENT_PID",
        "LD_LIBRARY_PATH",
        "TMPDIR",
    ],
    ending: Ending::Terminate,
    orphaned: Ending::Kill,
    live: |data| live_server(&data.with_file_name("server.pid"), data),
};

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

/// Makes system tables with a build's server and starts it on them.
pub(super) fn start(
    options: &StartOptions<'_>,
) -> Result<(Server, Installation, Address), SetupError> {
    let installation = locate(options.build)?;
    let bin_dir = installation.program.parent().unwrap_or(Path::new("/"));
    let place = Place::make(&KIND, options, bin_dir)?;
    let config = composed(options, &installation, &place)?;
    let build = Build {
        name: options.build,
        installation: &installation,
        programs: &place.programs(options.stop),
        place: &place,
    };
    build.make_system_tables(&config.initial)?;
    let config_file = place.write("server.cnf", &config.text)?;
    let address = Address::of_socket(&SCHEME, place.socket(), USER, options.timeout);
    let guarded = build.serve(&config_file, &address)?;
    let notes = config
        .notes
        .into_iter()
        .chain(installation.version.note())
        .collect();
    let address = Address {
        database: DATABASE.into(),
        ..address
    };
    let server = place.taken(guarded, config.text, notes);
    Ok((server, installation, address))
}

/// Has the build read its options, without system tables.
pub(super) fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
    let installation = locate(options.build)?;
    let version = &installation.version;
    let bin_dir = installation.program.parent().unwrap_or(Path::new("/"));
    let trial = Trial::make(&KIND, options, bin_dir)?;
    let place = &trial.place;
    for name in [KIND.data, "tmp"] {
        place.make_directory(&place.data_dir.path().join(name))?;
    }
    let config = composed(options, &installation, place)?;
    let option_file = place.write("server.cnf", &config.text)?;
    // Others read them all to say what they come to.
    let validates = version.is_mysql_from(8, 0, 16);
    let how: &[&str] = if validates {
        &["--validate-config"]
    } else {
        &["--verbose", "--help"]
    };
    let programs = place.programs(options.stop);
    let ran = programs.run(&installation.program, server_args(&option_file, how), None);
    let output = trial.output();
    let is_error = |line: &&String| line.contains("[ERROR]");
    let errors: Vec<String> = output.iter().filter(is_error).cloned().collect();
    let unknown = || {
        // The only versions that are silent about them here.
        let is_silent = version.is_mysql_from(8, 0, 0) && !validates;
        let unknown = config::unknown(options.set, &output).filter(|_| is_silent && ran.is_ok());
        unknown.map(|name| format!("unknown variable '{name}'"))
    };
    match config::complaint(&errors).or_else(unknown) {
        Some(complaint) => Err(SetupError::Config {
            what: format!("{version} refuses it: {complaint}"),
            help: "give a name and a value that this version has, or leave the option out".into(),
        }),
        None => ran,
    }
}

fn composed(
    options: &StartOptions<'_>,
    installation: &Installation,
    place: &Place,
) -> Result<ConfigText, SetupError> {
    config::compose(&Parts {
        installation,
        connections: options.connections,
        files: options.config_files,
        set: options.set,
        directory: place.data_dir.path(),
        socket: &place.socket(),
    })
}

/// The program's arguments with an option file, which has to be the first.
fn server_args(option_file: &Path, more: &[&str]) -> Vec<OsString> {
    let mut first = OsString::from("--defaults-file=");
    first.push(option_file);
    let more = more.iter().map(OsString::from);
    std::iter::once(first).chain(more).collect()
}

/// A build at work on its directory.
struct Build<'a> {
    name: &'a str,
    installation: &'a Installation,
    programs: &'a Programs<'a>,
    place: &'a Place,
}

impl Build<'_> {
    /// Makes the system tables, by the server itself: MySQL from 5.7 on has the statements in it, others read them. The
    /// scripts that the latter come with do the same, but not everywhere that their programs run.
    fn make_system_tables(&self, options: &str) -> Result<(), SetupError> {
        let directory = self.place.data_dir.path();
        for name in [KIND.data, "tmp"] {
            self.place.make_directory(&directory.join(name))?;
        }
        let option_file = self.place.write("initial.cnf", options)?;
        let Installation {
            program, version, ..
        } = self.installation;
        if version.is_mysql_from(5, 7, 0) {
            let args = server_args(&option_file, &["--initialize-insecure"]);
            return self.programs.run(program, args, None);
        }
        let statements = self.system_table_statements()?;
        let statements = self.place.write("initial.sql", &statements)?;
        // What older versions don't make themselves.
        self.place
            .make_directory(&self.place.data().join("mysql"))?;
        let mut args = vec![
            "--bootstrap",
            "--log-warnings=0",
            "--max-allowed-packet=8M",
            "--net-buffer-length=16K",
        ];
        if version.is_mariadb() {
            args.push("--enforce-storage-engine=");
        }
        let args = server_args(&option_file, &args);
        self.programs.run(program, args, Some(&statements))
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
            text.push_str(&String::from_utf8_lossy(&fs::read(&path)?));
            text.push('\n');
        }
        Ok(text)
    }

    /// Starts the server and waits until it answers.
    fn serve(&self, option_file: &Path, address: &Address) -> Result<Guarded, SetupError> {
        let version = &self.installation.version;
        self.programs.serve(
            &self.installation.program,
            server_args(option_file, &[]),
            self.place.socket_dir.path(),
            Readiness {
                server: &|| format!("{version} at `{address}`"),
                socket: &self.place.socket(),
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

/// The process that `pid_file` names, if it lives and is a server of the directory `data`.
pub(super) fn live_server(pid_file: &Path, data: &Path) -> Option<u32> {
    let text = fs::read_to_string(pid_file).ok()?;
    let pid = text.trim().parse().ok()?;
    local::lives_in(pid, data, &["mysqld", "mariadbd"]).then_some(pid)
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
