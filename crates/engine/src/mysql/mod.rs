//! MySQL 5.6 and later and MariaDB 10.6 and later, with InnoDB or MyRocks.
//!
//! [`Mysql::start`] makes system tables with a build's server and runs it on them, under guard and on a private socket;
//! [`Mysql::attach`] uses one that runs already. [`MysqlSession`] is the client: blocking, over the protocol itself.

mod address;
mod auth;
mod config;
mod connection;
mod dialect;
mod failure;
mod inspect;
mod installation;
mod notation;
mod observer;
mod obstacles;
mod option_file;
mod packet;
mod server;
mod session;
mod settle;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

pub use crate::net::address::{Address, Host, SslMode};
pub use address::parse_url;
pub use dialect::{MysqlDialect, StorageEngine};
pub use installation::{Flavor, Installation, Version, locate};
pub use notation::MysqlNotation;
pub use session::MysqlSession;

use crate::{
    Dialect, Engine, Error, Index, IndexRows, Needs, Observer, Obstacle, ServerEngine, Session,
    Setting, SettleLimits, Settled, SetupError, SqlEngine, StartOptions, Storage, Table,
};

use crate::local::server::Server;
use server::Places;

/// A MySQL or MariaDB server that is up: started by assay, or attached to.
pub struct Mysql {
    address: Address,
    version: Version,
    dialect: MysqlDialect,
    process_id: Option<u32>,
    is_on_other_host: bool,
    /// Whether its files can be reached from here.
    is_local: bool,
    /// Where they are, if so.
    places: Option<Places>,
    /// The server that assay started, and its build; `None` for one that it attached to.
    server: Option<Server>,
    installation: Option<Installation>,
}

impl Mysql {
    /// Makes system tables with the build's server and starts it on a private socket.
    ///
    /// # Errors
    /// Each says what is wrong with the build, the directory or the config, and the way out. Nothing is left running.
    pub fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let (server, installation, address) = server::start(options)?;
        let name = format!("{} at `{address}`", installation.version);
        let mut mysql = Self::reached(address, &name)?;
        mysql.process_id = Some(server.process_id());
        mysql.is_local = true;
        mysql.server = Some(server);
        mysql.installation = Some(installation);
        mysql.find_places();
        Ok(mysql)
    }

    /// Has the build read its configuration, as the user who would run its server; nothing is started.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an option or a value that this version does not have; [`SetupError::Build`] and
    /// [`SetupError::Directory`] where that user can't get to the build or to the data directory.
    pub fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        server::try_config(options)
    }

    /// Uses the server at `url`, which assay did not start: it makes nothing there but its tables, in the URL's
    /// database. What the URL leaves out comes from `MYSQL_HOST`, `MYSQL_TCP_PORT`, `MYSQL_UNIX_PORT`, `MYSQL_PWD` and
    /// the `[client]` group of the option files, as with the server's own clients; the database is then `ib`. Tables
    /// are made in the server's default storage engine.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a URL that can't be understood, [`SetupError::Server`] when the server can't be
    /// reached or refuses, [`SetupError::Version`] when it is too old.
    pub fn attach(url: &str) -> Result<Self, SetupError> {
        let address = parse_url(url)?;
        let name = address.to_string();
        let mut mysql = Self::reached(address, &name)?;
        if let Some(refusal) = mysql.version.refusal(&name) {
            return Err(refusal);
        }
        mysql.look_at_host();
        mysql.find_places();
        Ok(mysql)
    }

    /// Connects once, and asks for what has to be known.
    fn reached(address: Address, name: &str) -> Result<Self, SetupError> {
        let failed = |source: Error| SetupError::Server {
            server: name.to_string(),
            help: address::help(&address, &source),
            source,
        };
        let mut session = MysqlSession::connect(&address).map_err(failed)?;
        // What greets may be a proxy, with a version of its own.
        let said = session.variable("version").map_err(failed)?;
        let said = said.unwrap_or_else(|| session.server_version().to_string());
        let version = Version::parse(&said).ok_or_else(|| {
            failed(failure::protocol(format!(
                "the server's version `{said}` is not one"
            )))
        })?;
        let engine = session.variable("default_storage_engine").map_err(failed)?;
        Ok(Self {
            dialect: MysqlDialect {
                storage_engine: StorageEngine::named(engine.as_deref().unwrap_or("InnoDB")),
            },
            address,
            version,
            process_id: None,
            is_on_other_host: false,
            is_local: false,
            places: None,
            server: None,
            installation: None,
        })
    }

    /// The build that was started; `None` for a server that assay did not start.
    pub fn installation(&self) -> Option<&Installation> {
        self.installation.as_ref()
    }

    /// Where it is reached, without a password.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where tables are made.
    pub fn storage_engine(&self) -> &StorageEngine {
        &self.dialect.storage_engine
    }

    /// Finds out, for a server that assay did not start, whether it is on this host, and which process it is.
    fn look_at_host(&mut self) {
        let Ok(mut session) = MysqlSession::connect(&self.address) else {
            return;
        };
        if !session.stream().is_on_this_host() {
            self.is_on_other_host = true;
            return;
        }
        let mut path = |name: &str| session.variable(name).ok().flatten().map(PathBuf::from);
        let (data, pid_file) = (path("datadir"), path("pid_file"));
        // A forwarded port may lead to another machine, where the same path means something else: the directory is
        // believed only when a server of this host lives in it.
        let by_directory = data
            .zip(pid_file)
            .and_then(|(data, pid_file)| server::live_server(&data.join(pid_file), &data));
        self.is_local = by_directory.is_some();
        self.process_id = by_directory.or_else(|| session.stream().listener_pid());
    }

    /// Notes where its files are: a server that has them elsewhere than on this host has none to be seen.
    fn find_places(&mut self) {
        if self.is_local
            && let Ok(mut session) = MysqlSession::connect(&self.address)
        {
            self.places = Places::find(&mut session).ok().flatten();
        }
    }
}

impl Engine for Mysql {
    fn version(&self) -> &str {
        &self.version.text
    }

    fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    fn is_on_other_host(&self) -> bool {
        self.is_on_other_host
    }

    fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    fn storage(&self) -> Storage {
        self.places
            .as_ref()
            .map_or_else(Storage::default, Places::storage)
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let rows = self.connect()?.query("show global variables")?;
        let setting = |row: Vec<Option<String>>| {
            let mut values = row.into_iter();
            let name = values.next()??;
            Some(Setting::new(name, values.next()?.unwrap_or_default()))
        };
        let mut settings: Vec<Setting> = rows.into_iter().filter_map(setting).collect();
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    fn stop(self) -> Result<(), SetupError> {
        self.server.map_or(Ok(()), Server::stop)
    }
}

impl SqlEngine for Mysql {
    type Session = MysqlSession;

    fn dialect(&self) -> &dyn Dialect {
        &self.dialect
    }

    fn connect(&self) -> Result<MysqlSession, Error> {
        MysqlSession::connect(&self.address)
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        observer::open(self, tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        settle::settle(self, tables, limits, stop)
    }

    fn count_by_index(
        &self,
        session: &mut MysqlSession,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        inspect::count_by_index(session, &self.dialect, table, index).map(Some)
    }
}

impl ServerEngine for Mysql {
    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        obstacles::find(&mut self.connect()?, &self.address.database, needs)
    }
}
