//! Starts and stops servers: system tables, option files, arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fs_err as fs;
use words::Secret;

use super::address::{self, SCHEME};
use super::installation::{self, Installation, MysqlVersion};
use super::notation::MysqlNotation;
use super::{
    Address, MysqlDialect, MysqlSession, StorageEngine, auth, config, failure, inspect, log,
    observer, obstacles, settle,
};
use crate::contract::notation::Notation as _;
use crate::contract::{Session, Storage};
use crate::error::{Error, SetupError};
use crate::local::log::LogParser;
use crate::local::server::{self as local, ServerKind, ServerPlace, Trial};
use crate::local::start_options::StartOptions;
use crate::safety::guard::Ending;
use crate::servers::config::ConfigText;
use crate::servers::creation::{about_init_arguments, check_init_arguments};
use crate::servers::sql_kind::{CountByIndex, FindObstacles, OpenObserver, Settle, SqlKind};
use crate::servers::stock::{Recipe, create_or_copy};
use crate::servers::unreadable::Unreadable;

/// The account that comes with the system tables, here without a password.
const USER: &str = "root";

/// Arguments of the program that creates the data that are assay's own, or that put files
/// elsewhere.
const INIT_RESERVED: [&str; 16] = [
    "basedir",
    "bootstrap",
    "daemonize",
    "datadir",
    "defaults-extra-file",
    "defaults-file",
    "help",
    "init-file",
    "initialize",
    "initialize-insecure",
    "log-error",
    "pid-file",
    "socket",
    "tmpdir",
    "user",
    "version",
];

/// The account of clients that connect by TCP.
const CLIENT: &str = "assay";

/// The server's directory for temporary files.
const TEMPORARY: &str = "tmp";

/// A statement after which the server's logs leave out the session's statements: they may contain
/// passwords.
pub(super) const LOG_NOTHING: &str =
    "set session sql_log_off = 1, session long_query_time = 31536000";

/// The accounts that don't use the private socket. The server resolves no names, so a client that
/// connects by TCP never has the host `localhost`.
const ACCOUNTS_OF_TCP: &str = "select concat(user, '@', host) from mysql.user \
     where host <> 'localhost' and user <> 'assay'";

const KIND: ServerKind = ServerKind {
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
    config_error: config::config_error,
    parse_url: address::parse_url,
};

/// The files with the statements that create the system tables, by their names in each version, in
/// order. They exclude the texts of the `help` command.
const SYSTEM_TABLES: [&[&str]; 5] = [
    &["mariadb_system_tables.sql", "mysql_system_tables.sql"],
    &["mariadb_performance_tables.sql", "mysql_performance_tables.sql"],
    &["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"],
    &["maria_add_gis_sp_bootstrap.sql"],
    &["mariadb_sys_schema.sql", "mysql_sys_schema.sql"],
];

/// The indexes of the files that every version has.
const SYSTEM_TABLES_REQUIRED: [usize; 2] = [0, 2];

/// The facts that a server of MySQL or MariaDB reports about itself.
pub struct MysqlKind {
    pub(super) version: MysqlVersion,
    pub(super) dialect: MysqlDialect,
    /// The storage engine of the tables has transactions.
    has_transactions: bool,
}

impl SqlKind for MysqlKind {
    type Session = MysqlSession;
    type Build = Installation;
    type Dialect = MysqlDialect;
    type Places = Places;

    const KIND: &'static ServerKind = &KIND;
    const CONFIG_FILE: &'static str = "server.cnf";
    const COMMIT_ALONE: &'static str = "set session sql_log_bin = 0";
    const DATABASE_EXISTS: &'static str = "1007";
    const SETTINGS: &'static str = "show global variables where variable_name <> 'report_password'";
    const LOG_PARSER: LogParser = log::events;
    const SMALL_CACHE: (&'static str, &'static str) = ("innodb_buffer_pool_size", "32M");
    const FORMAT_OPTION: &'static str = "default_storage_engine";
    const CHOSEN_FORMAT: &'static str = "select @@default_storage_engine";
    const FORMATS: &'static str = "select engine from information_schema.engines where support in ('YES', 'DEFAULT') order by 1";
    const FORMAT_HELP: &'static str = "load the plugin of the storage engine with `set.plugin_load_add`, such as `\"ha_spider\"`, or use a build that has it";
    const USUAL_FORMAT: Option<&'static str> = None;

    const OPEN_OBSERVER: OpenObserver<Self> = observer::open;
    const SETTLE: Settle<Self> = settle::settle;
    const COUNT_BY_INDEX: CountByIndex<Self> = inspect::count_by_index;
    const FIND_OBSTACLES: FindObstacles<Self> = obstacles::find;

    fn unreadable(session: &mut MysqlSession) -> Result<Unreadable, Error> {
        let hidden = obstacles::unreadable(session)?;
        let directory = session.variable("datadir")?;
        Ok(Unreadable { hidden, directory })
    }

    fn locate(build: &str) -> Result<Installation, SetupError> {
        installation::locate(build)
    }

    fn compose(
        options: &StartOptions<'_>,
        build: &Installation,
        place: &ServerPlace,
    ) -> Result<ConfigText, SetupError> {
        config::compose(options, build, place.data_dir.path(), &place.socket())
    }

    /// Creates the system tables with the server itself. MySQL since 5.7 contains the statements,
    /// and other servers read them. The scripts of those servers do the same, but don't run
    /// everywhere.
    fn create_data(
        options: &StartOptions<'_>,
        build: &Installation,
        place: &ServerPlace,
        config: &ConfigText,
    ) -> Result<(), SetupError> {
        create_directories(place)?;
        let option_file = place.write("initial.cnf", &config.initial)?;

        let Installation { program, version, .. } = build;
        check_init_arguments(options, &INIT_RESERVED)?;
        let own = &options.creation.init_arguments;

        let run = |mut args: Vec<OsString>, input: Option<&Path>| {
            args.extend(own.iter().map(OsString::from));
            let ran = place.run(program, args, input, options.stop);
            ran.map_err(|error| about_init_arguments(options, error))
        };

        let here = place.data_dir.path().display().to_string();
        let recipe = Recipe {
            program,
            args: &own.iter().map(OsString::from).collect::<Vec<_>>(),
            config: config.initial.replace(&here, ""),
        };
        create_or_copy(options, place, &recipe, || {
            if version.is_mysql_from(5, 7, 0) {
                return run(with_options(&option_file, &["--initialize-insecure"]), None);
            }

            let statements = system_table_statements(options.build, build)?;
            let statements = place.write("initial.sql", &statements)?;

            // Older versions don't create this directory.
            place.create_directory(&place.data().join("mysql"))?;

            let mut args = vec![
                "--bootstrap",
                "--log-warnings=0",
                "--max-allowed-packet=8M",
                "--net-buffer-length=16K",
            ];
            if version.is_mariadb() {
                args.push("--enforce-storage-engine=");
            }
            run(with_options(&option_file, &args), Some(&statements))
        })
    }

    fn adopt_data(place: &ServerPlace) -> Result<(), SetupError> {
        place.create_directory(&place.data_dir.path().join(TEMPORARY))
    }

    fn dismiss(session: &mut MysqlSession) {
        // If the account isn't there, there is nothing to remove.
        let _ = session.query(&format!("drop user '{CLIENT}'@'%'"));
    }

    fn arguments(_place: &ServerPlace, config_file: &Path) -> Vec<OsString> {
        with_options(config_file, &[])
    }

    /// Makes the server read its options, for which it needs no system tables.
    fn try_config(
        options: &StartOptions<'_>,
        build: &Installation,
        trial: &Trial,
        config: &ConfigText,
    ) -> Result<Option<String>, SetupError> {
        let place = &trial.place;
        create_directories(place)?;
        let option_file = place.write(Self::CONFIG_FILE, &config.text)?;

        // Other versions read all options for their help text.
        let validates = build.version.is_mysql_from(8, 0, 16);
        let how: &[&str] =
            if validates { &["--validate-config"] } else { &["--verbose", "--help"] };
        let args = with_options(&option_file, how);
        let complaint = trial.run(&build.program, args, options.stop, config::refusal)?;
        if complaint.is_some() {
            return Ok(complaint);
        }

        // These versions don't report unknown options here.
        let is_silent = build.version.is_mysql_from(8, 0, 0) && !validates;
        let unknown = config::unknown(options.set, &trial.output()).filter(|_| is_silent);
        Ok(unknown.map(|name| format!("unknown variable '{name}'")))
    }

    fn option_not_in_full(
        options: &StartOptions<'_>,
        build: &Installation,
        trial: &Trial,
    ) -> Result<Option<String>, SetupError> {
        // The storage engine may be a plugin, which has options of its own.
        let mut engine_only = options.set.to_vec();
        engine_only.retain(|(name, _)| MysqlNotation.key(name) == config::STORAGE_ENGINE);
        let bare =
            StartOptions { set: &engine_only, config_files: &[], replicas: None, ..*options };

        create_directories(&trial.place)?;
        let text = Self::compose(&bare, build, &trial.place)?.text;
        let option_file = trial.place.write(Self::CONFIG_FILE, &text)?;
        let args = with_options(&option_file, &["--verbose", "--help"]);
        trial.run(&build.program, args, options.stop, |_| None)?;

        let found = config::not_in_full(options.set, &trial.output());
        Ok(found.map(str::to_owned))
    }

    fn strangers(session: &mut MysqlSession) -> Result<Vec<String>, Error> {
        session.query_column(ACCOUNTS_OF_TCP)
    }

    fn admit(session: &mut MysqlSession, password: &Secret) -> Result<&'static str, Error> {
        session.query(LOG_NOTHING)?;
        create_account(session, CLIENT, password)?;
        session.query(&format!("grant all privileges on *.* to '{CLIENT}'@'%'"))?;
        Ok(CLIENT)
    }

    fn address(place: &ServerPlace, options: &StartOptions<'_>) -> Address {
        Address::of_socket(&SCHEME, place.socket(), USER, options.timeout)
    }

    fn query_facts(session: &mut MysqlSession) -> Result<Self, Error> {
        // The greeting may come from a proxy with its own version.
        let text = session.variable("version")?.unwrap_or_default();
        let version = MysqlVersion::parse(&text).ok_or_else(|| {
            failure::protocol(format!("cannot parse the server's version `{text}`"))
        })?;
        let engine = session.variable("default_storage_engine")?;
        let storage_engine = StorageEngine::by_name(engine.as_deref().unwrap_or("InnoDB"));
        let has_transactions = session.query_i64(
            "select count(*) from information_schema.engines \
             where engine = @@default_storage_engine and transactions = 'YES'",
        )?;

        Ok(Self {
            version,
            dialect: MysqlDialect { storage_engine, table_options: String::new() },
            has_transactions: has_transactions == Some(1),
        })
    }

    fn version(&self) -> &str {
        &self.version.text
    }

    fn has_transactions(&self) -> bool {
        self.has_transactions
    }

    fn set_table_options(&mut self, options: &str) {
        options.clone_into(&mut self.dialect.table_options);
    }

    fn dialect(&self) -> &MysqlDialect {
        &self.dialect
    }

    fn is_about_format(message: &str) -> bool {
        message.contains("storage engine")
    }

    fn refusal(&self, server: &str) -> Option<SetupError> {
        self.version.refusal(server)
    }

    fn live_process(session: &mut MysqlSession) -> Option<u32> {
        let data = PathBuf::from(session.variable("datadir").ok()??);
        let pid_file = session.variable("pid_file").ok()??;
        live_server(&data.join(pid_file), &data)
    }

    fn places(session: &mut MysqlSession) -> Option<Places> {
        Places::find(session).ok().flatten()
    }

    fn storage(places: &Places) -> Storage {
        places.storage()
    }
}

/// Creates an account that logs in from any host with a password. Where the version allows, sends
/// only the password's hash.
pub(super) fn create_account(
    session: &mut MysqlSession,
    user: &str,
    password: &Secret,
) -> Result<(), Error> {
    let version = MysqlVersion::parse(session.server_version());
    let is_mysql_from = |major, minor| {
        version.as_ref().is_some_and(|version| version.is_mysql_from(major, minor, 0))
    };

    let credentials = if is_mysql_from(8, 0) {
        // The plugin of a hash is optional since 8.4. The server masks the password in its logs.
        format!("by '{}'", password.expose())
    } else if is_mysql_from(5, 7) {
        format!("with mysql_native_password as '{}'", auth::stored_hash(password))
    } else {
        format!("by password '{}'", auth::stored_hash(password))
    };

    session.query(&format!("create user '{user}'@'%' identified {credentials}")).map(drop)
}

fn create_directories(place: &ServerPlace) -> Result<(), SetupError> {
    place.create_directory(&place.data())?;
    place.create_directory(&place.data_dir.path().join(TEMPORARY))
}

/// Returns the program's arguments, with the option file as the first one.
fn with_options(option_file: &Path, more: &[&str]) -> Vec<OsString> {
    let mut first = OsString::from("--defaults-file=");
    first.push(option_file);
    std::iter::once(first).chain(more.iter().map(OsString::from)).collect()
}

fn system_table_statements(name: &str, build: &Installation) -> Result<String, SetupError> {
    let missing = |what: String| SetupError::Build {
        build: name.to_string(),
        what,
        help: "use a complete build of the server, with its `share` directory".into(),
    };
    let Some(share) = build.share_dir.as_deref() else {
        return Err(missing("the build has no `share` directory with messages".into()));
    };

    let mut text = String::from("create database if not exists mysql;\nuse mysql;\n");
    if build.version.is_mariadb() {
        // The account must not require another system user. Only assay's private socket leads to
        // it, because the server resolves no names.
        text.push_str("set @auth_root_socket=NULL;\n");
    }

    for (number, names) in SYSTEM_TABLES.iter().enumerate() {
        let mut paths = names.iter().map(|name| share.join(name));
        match paths.find(|path| path.is_file()) {
            Some(path) => {
                text.push_str(&String::from_utf8_lossy(&fs::read(&path)?));
                text.push('\n');
            }
            None if SYSTEM_TABLES_REQUIRED.contains(&number) => {
                let (names, share) = (names.join("` or `"), share.display());
                return Err(missing(format!("`{share}` does not contain `{names}`")));
            }
            None => {}
        }
    }

    // Some have no password: those of the superuser on other hosts, and those without a name.
    let is_json = build.version.is_mariadb() && build.version.number >= (10, 4, 0);
    let accounts = if is_json { "global_priv" } else { "user" };
    text += &format!("delete from mysql.{accounts} where host <> 'localhost' or user = '';\n");
    Ok(text)
}

/// The paths of a server's files, from its variables. The set of logs changes while the server
/// runs.
pub struct Places {
    data: PathBuf,
    logs: Vec<LogPlace>,
}

/// A directory with logs, whose names have this beginning and this end.
struct LogPlace {
    directory: PathBuf,
    prefix: String,
    suffix: &'static str,
}

impl LogPlace {
    fn new(directory: impl Into<PathBuf>, prefix: impl Into<String>) -> Self {
        Self { directory: directory.into(), prefix: prefix.into(), suffix: "" }
    }

    fn contains(&self, log: &Path) -> bool {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&self.prefix) && name.ends_with(self.suffix)
    }
}

impl Places {
    /// Queries the server for its paths; `None` if it does not report them.
    fn find(session: &mut MysqlSession) -> Result<Option<Self>, Error> {
        let Some(data) = session.variable("datadir")?.map(PathBuf::from) else {
            return Ok(None);
        };
        let mut path_variable = |name: &str| -> Result<Option<PathBuf>, Error> {
            let path = session.variable(name)?.filter(|path| !path.is_empty());
            Ok(path.map(|path| data.join(path)))
        };

        // Resolves `./`, because paths are compared later.
        let canonical = |path: Option<PathBuf>| {
            path.and_then(|path| fs::canonicalize(path).ok()).unwrap_or_else(|| data.clone())
        };

        let redo = canonical(path_variable("innodb_log_group_home_dir")?);
        let undo = canonical(path_variable("innodb_undo_directory")?);

        let mut rocksdb = vec![data.join("#rocksdb"), data.join(".rocksdb")];
        for name in ["rocksdb_datadir", "rocksdb_wal_dir"] {
            rocksdb.extend(path_variable(name)?.map(|path| canonical(Some(path))));
        }

        let mut logs = vec![
            LogPlace::new(redo.clone(), "#innodb_redo"),
            LogPlace::new(redo, "ib_logfile"),
            LogPlace::new(undo, "undo"),
        ];
        for directory in rocksdb {
            logs.push(LogPlace { suffix: ".log", ..LogPlace::new(directory, "") });
        }
        if let Some(binlog) = path_variable("log_bin_basename")?
            && let (Some(directory), Some(name)) = (binlog.parent(), binlog.file_name())
        {
            logs.push(LogPlace::new(directory, format!("{}.", name.to_string_lossy())));
        }
        Ok(Some(Self { data, logs }))
    }

    /// Returns the directories, and the logs that exist now.
    fn storage(&self) -> Storage {
        let mut storage = Storage { data: vec![self.data.clone()], logs: Vec::new() };
        for place in &self.logs {
            let Ok(entries) = fs::read_dir(&place.directory) else {
                continue;
            };
            let paths = entries.flatten().map(|entry| entry.path());
            storage.logs.extend(paths.filter(|path| place.contains(path)));

            if !storage.data.iter().any(|known| place.directory.starts_with(known)) {
                storage.data.push(place.directory.clone());
            }
        }
        storage.logs.sort();
        storage.logs.dedup();
        storage
    }
}

/// Returns the process in `pid_file`, if it is a live server that uses the directory `data`.
fn live_server(pid_file: &Path, data: &Path) -> Option<u32> {
    local::live_server(pid_file, data, &["mysqld", "mariadbd"])
}
