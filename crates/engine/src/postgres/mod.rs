//! PostgreSQL 12 and later.
//!
//! [`Postgres::start`] makes a cluster from a build and runs a server on it, under guard and on a private socket;
//! [`Postgres::attach`] uses one that runs already. [`PostgresSession`] is the client: blocking, over the protocol
//! itself.

mod address;
mod config;
mod connection;
mod dialect;
mod failure;
mod inspect;
mod installation;
mod notation;
mod observer;
mod obstacles;
mod server;
mod session;
mod settle;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use crate::net::address::{Address, Host, SslMode};
pub use address::parse_url;
pub use dialect::PostgresDialect;
pub use installation::{Installation, OLDEST_MAJOR, Version, locate};
pub use notation::PostgresNotation;
pub use session::PostgresSession;

use crate::{
    Dialect, Engine, Error, Index, IndexRows, Needs, Observer, Obstacle, ServerEngine, Session,
    Setting, SettleLimits, Settled, SetupError, SqlEngine, StartOptions, Storage, Table,
};

use crate::local::server::Server;

/// The path of the socket in `directory`.
fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// A PostgreSQL server that is up: started by assay, or attached to.
pub struct Postgres {
    address: Address,
    version: String,
    /// As `server_version_num` has it: 150014 for 15.14.
    version_num: u32,
    process_id: Option<u32>,
    is_on_other_host: bool,
    storage: Storage,
    /// The server that assay started, and its build; `None` for one that it attached to.
    server: Option<Server>,
    installation: Option<Installation>,
}

impl Postgres {
    /// Makes a cluster with the build's `initdb` and starts its server on a private socket.
    ///
    /// # Errors
    /// Each says what is wrong with the build, the directory or the config, and the way out. Nothing is left running.
    pub fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let (server, installation, address) = server::start(options)?;
        let name = format!("PostgreSQL {} at `{address}`", installation.version);
        let mut postgres = Self::reached(address, &name)?;
        postgres.process_id = Some(server.process_id());
        postgres.storage = server::storage(server.place.data());
        postgres.server = Some(server);
        postgres.installation = Some(installation);
        Ok(postgres)
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
    /// database. What the URL leaves out comes from `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`,
    /// `PGSSLMODE`, `PGSSLROOTCERT` and the password file, as with the server's own clients.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a URL that can't be understood, [`SetupError::Server`] when the server can't be
    /// reached or refuses, [`SetupError::Version`] when it is too old.
    pub fn attach(url: &str) -> Result<Self, SetupError> {
        let address = parse_url(url)?;
        let name = address.to_string();
        let mut postgres = Self::reached(address, &name)?;
        if postgres.version_num < OLDEST_MAJOR * 10_000 {
            return Err(SetupError::Version {
                build: name,
                found: postgres.version,
                supported: installation::SUPPORTED.into(),
            });
        }
        postgres.look_at_host();
        Ok(postgres)
    }

    /// Connects once, and asks for the version.
    fn reached(address: Address, name: &str) -> Result<Self, SetupError> {
        let failed = |source: Error| SetupError::Server {
            server: name.to_string(),
            help: address::help(&address, &source),
            source,
        };
        let mut session = PostgresSession::connect(&address).map_err(failed)?;
        let (version, version_num) = session.server_version().map_err(failed)?;
        drop(session);
        Ok(Self {
            address,
            version,
            version_num,
            process_id: None,
            is_on_other_host: false,
            storage: Storage::default(),
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

    /// Finds out, for a server that assay did not start, which processes and files on this host are its.
    fn look_at_host(&mut self) {
        let Ok(mut session) = PostgresSession::connect(&self.address) else {
            return;
        };
        if !session.stream().is_on_this_host() {
            self.is_on_other_host = true;
            return;
        }
        // A user without the right to see it gets NULL, or an error.
        let directory = session
            .query_column("select setting from pg_settings where name = 'data_directory'")
            .ok()
            .and_then(|values| values.into_iter().next())
            .map(PathBuf::from);
        // A forwarded port may lead to another machine, where the same path means something else: the directory is
        // believed only when a server of this host lives in it.
        let by_directory = directory.as_deref().and_then(server::live_server);
        self.process_id = by_directory.or_else(|| session.stream().listener_pid());
        if let (Some(directory), Some(_)) = (directory, by_directory) {
            self.storage = server::storage(directory);
        }
    }
}

impl Engine for Postgres {
    fn version(&self) -> &str {
        &self.version
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
        self.storage.clone()
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        // `current_setting` gives a value with its unit, `pg_settings` without.
        let sql = "select name, current_setting(name, true), source from pg_settings order by name collate \"C\"";
        let rows = self.connect()?.query(sql)?;
        let setting = |row: Vec<Option<String>>| {
            let mut values = row.into_iter();
            let name = values.next()??;
            let value = values.next()?.unwrap_or_default();
            Some(Setting {
                source: values.next()?,
                ..Setting::new(name, value)
            })
        };
        Ok(rows.into_iter().filter_map(setting).collect())
    }

    fn stop(self) -> Result<(), SetupError> {
        self.server.map_or(Ok(()), Server::stop)
    }
}

impl SqlEngine for Postgres {
    type Session = PostgresSession;

    fn dialect(&self) -> &dyn Dialect {
        &PostgresDialect
    }

    fn connect(&self) -> Result<PostgresSession, Error> {
        PostgresSession::connect(&self.address)
    }

    fn connect_to_inspect(&self) -> Result<PostgresSession, Error> {
        let mut session = self.connect()?;
        session.query("set statement_timeout = 0")?;
        Ok(session)
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
        session: &mut PostgresSession,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        inspect::count_by_index(session, table, index).map(Some)
    }
}

impl ServerEngine for Postgres {
    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        obstacles::find(&mut self.connect()?, needs)
    }
}
