//! Starts and stops servers: clusters, configuration files, arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use postgres_protocol::password::scram_sha_256;
use words::{Secret, Setting};

use super::address::{self, SCHEME};
use super::installation::{self, Installation};
use super::{
    Address, PostgresDialect, PostgresSession, build_facts, config, failure, inspect, log,
    observer, obstacles, settle,
};
use crate::contract::{Session, Storage};
use crate::error::{Error, SetupError};
use crate::local::log::LogParser;
use crate::local::server::{self as local, ServerKind, ServerPlace, Trial, replace_file};
use crate::local::start_options::StartOptions;
use crate::safety::data_dir::read_start;
use crate::safety::guard::Ending;
use crate::servers::config::ConfigText;
use crate::servers::creation::{about_init_arguments, check_init_arguments};
use crate::servers::sql_kind::{Build, CountByIndex, FindObstacles, OpenObserver, Settle, SqlKind};
use crate::servers::sql_server::connect_alone;
use crate::servers::stock::{Recipe, create_or_copy};
use crate::servers::unreadable::Unreadable;

/// More than `pg_hba.conf` of a new cluster has.
const RULES_BYTES_MAX: u64 = 1 << 20;

/// Arguments of `initdb` that are assay's own, or that put files elsewhere or create no cluster.
const INIT_RESERVED: [&str; 12] = [
    "auth",
    "auth-host",
    "auth-local",
    "help",
    "pgdata",
    "pwfile",
    "pwprompt",
    "show",
    "sync-only",
    "username",
    "version",
    "waldir",
];
/// The argument that turns checksums off.
const NO_CHECKSUMS: &str = "--no-data-checksums";

/// The role that assay creates.
const ROLE: &str = "assay";

/// A query after which the server's log leaves out the session's statements, with the options that
/// the version has.
const LOG_NOTHING: &str = "\
    select set_config(name, value, false) from pg_settings join (values
        ('log_min_error_statement', 'panic'),
        ('log_min_duration_sample', '-1'),
        ('log_min_duration_statement', '-1'),
        ('log_statement', 'none'),
        ('log_transaction_sample_rate', '0')
    ) as silent (name, value) using (name)";

/// The time that a dropped table may stay locked: by a commit that waits for a lost replica, or by
/// the creation of an index.
pub(super) const DROP_TIMEOUT: &str = "set lock_timeout = '10s'";

const KIND: ServerKind = ServerKind {
    name: "PostgreSQL",
    user: "postgres",
    data: "cluster",
    socket: ".s.PGSQL.{port}",
    environment: &[
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
    ],
    // A fast shutdown, which writes a checkpoint.
    ending: Ending::Interrupt,
    // Makes the server end its processes at once. Otherwise, they would finish their work.
    orphaned: Ending::Quit,
    live: live_server,
    config_error: config::config_error,
    parse_url: address::parse_url,
};

/// The facts that a PostgreSQL server reports about itself.
pub struct PostgresKind {
    version: String,
    /// The major version, such as 15 in 15.14.
    pub(super) major: u32,
    /// The format of new tables.
    pub(super) format: String,
    pub(super) dialect: PostgresDialect,
}

impl SqlKind for PostgresKind {
    type Session = PostgresSession;
    type Build = Installation;
    type Dialect = PostgresDialect;
    /// The data directory.
    type Places = PathBuf;

    const KIND: &'static ServerKind = &KIND;
    const CONFIG_FILE: &'static str = "server.conf";
    const COMMIT_ALONE: &'static str = "set synchronous_commit = local";
    const DATABASE_EXISTS: &'static str = "42P04";
    // `current_setting` returns a value with its unit, unlike `pg_settings`.
    const SETTINGS: &'static str = "select name, current_setting(name, true), source from pg_settings where name <> 'primary_conninfo'";
    const LOG_PARSER: LogParser = log::events;
    const SMALL_CACHE: (&'static str, &'static str) = ("shared_buffers", "16MB");
    const FORMAT_OPTION: &'static str = "default_table_access_method";
    const CHOSEN_FORMAT: &'static str = "select current_setting('default_table_access_method')";
    const FORMATS: &'static str = "select amname from pg_am where amtype = 't' order by 1";
    const FORMAT_HELP: &'static str =
        "create the access method with `extensions` or `setup-sql`, or choose another format";
    // Scripts of extensions create tables before they create the access method.
    const USUAL_FORMAT: Option<&'static str> = Some("set default_table_access_method = heap");

    const OPEN_OBSERVER: OpenObserver<Self> = observer::open;
    const SETTLE: Settle<Self> = settle::settle;
    const COUNT_BY_INDEX: CountByIndex<Self> = inspect::count_by_index;
    // A session is in one database.
    const FIND_OBSTACLES: FindObstacles<Self> =
        |session, _database, needs| obstacles::find(session, needs);

    fn unreadable(session: &mut PostgresSession) -> Result<Unreadable, Error> {
        obstacles::unreadable(session)
    }

    fn locate(build: &str) -> Result<Installation, SetupError> {
        installation::locate(build)
    }

    fn compose(
        options: &StartOptions<'_>,
        build: &Installation,
        place: &ServerPlace,
    ) -> Result<ConfigText, SetupError> {
        config::compose(options, build.version.major, &place.data(), &place.socket())
    }

    fn create_data(
        options: &StartOptions<'_>,
        build: &Installation,
        place: &ServerPlace,
        _config: &ConfigText,
    ) -> Result<(), SetupError> {
        check_init_arguments(options, &INIT_RESERVED)?;

        let program = build.bin_dir.join("initdb");
        let own_args = init_arguments(options, build);
        let recipe = Recipe { program: &program, args: &own_args, config: String::new() };
        create_or_copy(options, place, &recipe, || {
            let mut args = own_args.clone();
            args.extend(["--pgdata".into(), place.data().into()]);
            let ran = place.run(&program, args, None, options.stop);
            ran.map_err(|error| about_init_arguments(options, error))
        })?;

        if let Some(network) = options.network {
            let path = place.data().join("pg_hba.conf");
            let bytes = read_start(&path, RULES_BYTES_MAX)?;
            let rules = String::from_utf8_lossy(&bytes);
            let clients = if network.certificate.is_some() { "hostssl" } else { "host" };
            // The first rule that matches decides.
            replace_file(&path, &format!("{clients} all all all scram-sha-256\n{rules}"), 0o644)?;
        }
        Ok(())
    }

    /// Runs `pg_upgrade` if the major versions differ. It links the files of the copied cluster
    /// into a new one, as an upgrade in place does.
    fn upgrade(
        options: &StartOptions<'_>,
        before: &Installation,
        build: &Installation,
        place: &ServerPlace,
        config: &ConfigText,
    ) -> Result<bool, SetupError> {
        if before.version.major == build.version.major {
            return Ok(false);
        }

        let program = build.bin_dir.join("pg_upgrade");
        if !program.exists() {
            return Err(SetupError::Build {
                build: options.build.to_owned(),
                what: format!(
                    "it has no `pg_upgrade`, which the data of PostgreSQL {} needs",
                    before.version.text
                ),
                help: "use a build with all programs, such as `debian:trixie/postgresql-17`".into(),
            });
        }

        let old = place.data_dir.path().join("cluster-before");
        fs_err::rename(place.data(), &old)?;
        Self::create_data(options, build, place, config)?;

        // It writes its files into the current directory.
        let mut args: Vec<OsString> = vec![
            "-c".into(),
            "cd \"$0\" && exec \"$@\"".into(),
            place.data_dir.path().into(),
            program.into(),
        ];

        args.extend(["--link", "--username", ROLE].map(OsString::from));
        for (option, path) in [
            ("--old-bindir", before.bin_dir.as_path()),
            ("--new-bindir", build.bin_dir.as_path()),
            ("--old-datadir", old.as_path()),
            ("--new-datadir", place.data().as_path()),
            ("--socketdir", place.socket_dir.path()),
        ] {
            args.extend([option.into(), path.into()]);
        }

        place.run(Path::new("/bin/sh"), args, None, options.stop)?;

        fs_err::remove_dir_all(old)?;
        Ok(true)
    }

    fn admit(session: &mut PostgresSession, password: &Secret) -> Result<&'static str, Error> {
        session.query(LOG_NOTHING)?;
        // The server stores only this, from which nobody can log in.
        let verifier = scram_sha_256(password.expose().as_bytes());
        session.query(&format!("alter role {ROLE} password '{verifier}'"))?;
        Ok(ROLE)
    }

    fn arguments(place: &ServerPlace, config_file: &Path) -> Vec<OsString> {
        let mut config_option = OsString::from("config_file=");
        config_option.push(config_file);
        vec!["-D".into(), place.data().into(), "-c".into(), config_option]
    }

    /// Makes the server read its configuration, which it does before it opens the cluster. There is
    /// none.
    fn try_config(
        options: &StartOptions<'_>,
        build: &Installation,
        trial: &Trial,
        config: &ConfigText,
    ) -> Result<Option<String>, SetupError> {
        let place = &trial.place;
        place.create_directory(&place.data())?;
        place.write(&format!("{}/postgresql.conf", KIND.data), "")?;
        let config_file = place.write(Self::CONFIG_FILE, &config.text)?;

        let mut args = vec!["-C".into(), "data_directory".into()];
        args.extend(Self::arguments(place, &config_file));
        let complaint = trial.run(&build.program(), args, options.stop, config::config_error)?;
        Ok(complaint.map(|text| config::with_plan_lines(&text, &config_file, &config.text)))
    }

    fn address(place: &ServerPlace, options: &StartOptions<'_>) -> Address {
        let directory = place.socket_dir.path().to_path_buf();
        Address {
            port: options.port(),
            database: "postgres".into(),
            ..Address::of_socket(&SCHEME, directory, ROLE, options.timeout)
        }
    }

    fn query_facts(session: &mut PostgresSession) -> Result<Self, Error> {
        let version = session.setting("server_version")?;
        // Such as 150014 for 15.14.
        let text = session.setting("server_version_num")?;
        let number: u32 = text.parse().map_err(|_| {
            failure::protocol(format!("cannot parse the server's version number `{text}`"))
        })?;

        let format = session.setting(Self::FORMAT_OPTION)?;
        let dialect = PostgresDialect::default();

        Ok(Self { version, major: number / 10_000, format, dialect })
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn build_facts(session: &mut PostgresSession) -> Result<Vec<Setting>, Error> {
        build_facts::read(session)
    }

    fn set_table_options(&mut self, options: &str) {
        options.clone_into(&mut self.dialect.table_options);
    }

    fn dialect(&self) -> &PostgresDialect {
        &self.dialect
    }

    fn connect_to_inspect(address: &Address) -> Result<PostgresSession, Error> {
        let mut session = PostgresSession::connect(address)?;
        session.query("set statement_timeout = 0")?;
        Ok(session)
    }

    fn connect_to_clean_up(address: &Address) -> Result<PostgresSession, Error> {
        let mut session = connect_alone::<Self>(address)?;
        session.query(DROP_TIMEOUT)?;
        Ok(session)
    }

    fn refusal(&self, server: &str) -> Option<SetupError> {
        installation::refusal(server, self.major, &self.version)
    }

    fn live_process(session: &mut PostgresSession) -> Option<u32> {
        live_server(&Self::places(session)?)
    }

    fn places(session: &mut PostgresSession) -> Option<PathBuf> {
        // A user without the privilege gets NULL or an error.
        let sql = "select setting from pg_settings where name = 'data_directory'";
        let directory = session.query_column(sql).ok()?.into_iter().next()?;
        Some(directory.into())
    }

    fn storage(cluster: &PathBuf) -> Storage {
        Storage { data: vec![cluster.clone()], logs: vec![cluster.join("pg_wal")] }
    }
}

/// Returns the arguments of `initdb`. Of two arguments of the same name, it uses the last.
fn init_arguments(options: &StartOptions<'_>, build: &Installation) -> Vec<OsString> {
    let own = &options.creation.init_arguments;
    let without_checksums = own.iter().any(|argument| argument == NO_CHECKSUMS);

    let mut args = vec!["--encoding=UTF8", "--locale=C", "--no-sync"];

    if !without_checksums {
        args.push("--data-checksums");
    }

    // Before version 18, this is the default, and the argument is unknown.
    let is_known = |argument: &&str| *argument != NO_CHECKSUMS || build.version.major >= 18;
    args.extend(own.iter().map(String::as_str).filter(is_known));
    args.extend(["--auth-local=trust", "--auth-host=reject", "--username", ROLE]);
    args.into_iter().map(OsString::from).collect()
}

/// Returns the process in `postmaster.pid` of `cluster`, if it is a live server of that cluster.
fn live_server(cluster: &Path) -> Option<u32> {
    local::live_server(&cluster.join("postmaster.pid"), cluster, &["postgres", "postmaster"])
}
