//! A running SQL server, which assay started or connected to, as far as it is the same for all
//! kinds of servers.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use words::Setting;

use super::config::{self, ConfigText};
use super::creation::{check_format, missing_format, set_up};
use super::sql_kind::{Build, Client, SqlKind};
use super::unreadable::Sight;
use crate::contract::{
    Capabilities, Dialect, Engine, Index, IndexRows, Needs, Observer, Obstacle, ServerEngine,
    Session, SettleLimits, Settled, SqlEngine, Storage, Table,
};
use crate::error::{Error, SetupError};
use crate::local::log::LogParser;
use crate::local::program::Readiness;
use crate::local::server::{Origin, Server, ServerPlace, Trial};
use crate::local::start_options::{StartOptions, StoppedDatabase};
use crate::net::address::Address;
use crate::safety::guard::Deadline;
use crate::support::runtime::check_preloaded;

/// The database that assay creates. Its name comes from the Insert Benchmark.
pub(crate) const DATABASE: &str = "ib";

/// The note about tables without transactions.
const NO_TRANSACTIONS: &str = "the format of the tables has no transactions: each statement commits by itself, \
     so that `commit` does nothing, and a statement that fails may leave some of its rows";

/// A running SQL server, which assay started or connected to.
pub struct SqlServer<K: SqlKind> {
    pub(crate) kind: K,
    pub(crate) address: Address,
    process_id: Option<u32>,
    is_on_other_host: bool,
    /// The paths of its files; `None` if assay cannot access them.
    places: Option<K::Places>,
    /// The server that assay started; `None` for one that it connected to.
    server: Option<Server>,
    /// The replicas that reads go to.
    readers: OnceLock<Vec<Address>>,
    /// The number of connections to them so far.
    reader_count: AtomicUsize,
}

impl<K: SqlKind> SqlServer<K> {
    /// Creates a database with a build's programs, and starts its server.
    ///
    /// # Errors
    /// An error about the build, the directory or the config. Nothing keeps running.
    pub fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let create = |build: &K::Build, place: &ServerPlace, config: &mut ConfigText| {
            K::create_data(options, build, place, config)
        };

        Self::launch_with_database(options, create)
    }

    /// Starts a server as [`Self::launch`] does, with a database that is made as the config says,
    /// unless it gets a copy of one.
    pub(crate) fn launch_with_database(
        options: &StartOptions<'_>,
        create: impl FnOnce(&K::Build, &ServerPlace, &mut ConfigText) -> Result<(), SetupError>,
    ) -> Result<Self, SetupError> {
        let launched = Self::launch(options, create, create_database::<K>)?;
        let failed = |source| SetupError::Server {
            server: launched.address().to_string(),
            help: None,
            source,
        };
        let mut session = connect_alone::<K>(launched.address()).map_err(failed)?;

        if options.database.is_none() {
            set_up::<K>(options, &mut session)?;
            refuse_strangers::<K>(&mut session, failed)?;
        }

        check_format::<K>(&mut session)?;

        Ok(launched)
    }

    /// Creates a server's data in an empty place, or copies that of another server, and starts the
    /// server. `probe` fails until it is ready.
    pub(crate) fn launch(
        options: &StartOptions<'_>,
        create: impl FnOnce(&K::Build, &ServerPlace, &mut ConfigText) -> Result<(), SetupError>,
        probe: impl Fn(&Address) -> Result<(), Error>,
    ) -> Result<Self, SetupError> {
        let build = K::locate(options.build)?;
        let place = ServerPlace::create(K::KIND, options, &build.bin_dir())?;
        let mut config = K::compose(options, &build, &place)?;

        // The data: a copy of another server's, or new. Creating it may change the config.
        let origin = match options.database {
            Some(database) => Some(adopt::<K>(options, database, &build, &place, &config)?),
            None => {
                create(&build, &place, &mut config)?;
                None
            }
        };
        let config_file = place.write(K::CONFIG_FILE, &config.text)?;

        // The process. At first, it is reached only by its private socket.
        let socket = K::address(&place, options);
        let name_at_socket = format!("{} at `{socket}`", build.version());
        let guarded = place.serve(
            &build.program(),
            K::arguments(&place, &config_file),
            Readiness {
                server: &name_at_socket,
                probe: &|| probe(&socket),
                config_error: &|log| config_error::<K>(log, &build, &config.text, &config_file),
            },
            options.stop,
        )?;
        check_preloaded(options.env, guarded.pid())?;
        let notes = build.note().into_iter().collect();
        let mut server = place.into_server(guarded, config.text, notes, origin);

        // The address to which all clients connect.
        let mut address = Address { database: DATABASE.into(), ..socket };
        if options.network.is_some() || options.replicas.is_some() {
            address = open_to_network::<K>(options, address, &name_at_socket)?;
        }

        // What the server reports about itself.
        let name = format!("{} at `{address}`", build.version());
        let (mut launched, mut session) = Self::connect(address, &name)?;
        launched.kind.set_table_options(&options.creation.table_options);
        if !launched.kind.has_transactions() {
            server.notes.push(NO_TRANSACTIONS.to_owned());
        }

        launched.places = K::places(&mut session);
        launched.process_id = Some(server.process_id());
        launched.server = Some(server);
        Ok(launched)
    }

    /// Makes the build read its configuration as the server's user, without starting a server.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an option or a value that this version does not support;
    /// [`SetupError::Build`] and [`SetupError::Directory`] when that user cannot access the
    /// build or the data directory.
    pub fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        let build = K::locate(options.build)?;
        let trial = Trial::create(K::KIND, options, &build.bin_dir())?;
        let config = K::compose(options, &build, &trial.place)?;

        let help = "write an option and a value that this version supports, or remove the option";
        match K::try_config(options, &build, &trial, &config)? {
            Some(message) => Err(config::refused(&build.version(), &message, help, None)),
            None => Ok(()),
        }
    }

    /// Refuses a config with the name of an option that the build does not list in full.
    ///
    /// # Errors
    /// [`SetupError::Config`] for such a name; errors of the build.
    pub fn refuse_beginnings_of_names(options: &StartOptions<'_>) -> Result<(), SetupError> {
        let build = K::locate(options.build)?;
        let trial = Trial::create(K::KIND, options, &build.bin_dir())?;
        let Some(option) = K::option_not_in_full(options, &build, &trial)? else {
            return Ok(());
        };

        Err(SetupError::Config {
            what: format!("{} has no option `{option}` of this full name", build.version()),
            help: "write the whole name, as the server's `--verbose --help` lists it".into(),
            option: Some(option),
            config_file: None,
        })
    }

    /// Connects to the server at `url`, which assay did not start. Assay only creates its tables
    /// there, in the URL's database and the server's default storage engine. Missing parts of
    /// the URL come from the sources that the server's own clients read.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an invalid URL, [`SetupError::Server`] when the server cannot be
    /// reached or refuses, [`SetupError::Version`] when it is too old.
    pub fn attach(url: &str) -> Result<Self, SetupError> {
        let address = (K::KIND.parse_url)(url)?;
        let name = address.to_string();
        let (mut attached, mut session) = Self::connect(address, &name)?;
        if let Some(refusal) = attached.kind.refusal(&name) {
            return Err(refusal);
        }

        if !session.stream().is_on_this_host() {
            attached.is_on_other_host = true;
            return Ok(attached);
        }

        // A forwarded port may lead to another machine. So the reported directory counts only if a
        // server on this host uses it.
        let by_directory = K::live_process(&mut session);
        attached.process_id = by_directory.or_else(|| session.stream().listener_pid());
        attached.places = by_directory.and_then(|_| K::places(&mut session));
        Ok(attached)
    }

    /// Returns how much of the server's processes is seen.
    pub(super) fn sight(&self) -> Sight {
        if self.is_on_other_host {
            Sight::OtherHost
        } else if self.server.is_some() || self.places.is_some() {
            Sight::Processes
        } else {
            Sight::Nothing
        }
    }

    /// Connects, and queries the server for the facts about itself.
    fn connect(address: Address, name: &str) -> Result<(Self, K::Session), SetupError> {
        let failed = |source: Error| SetupError::Server {
            server: name.to_string(),
            help: address.help(&source),
            source,
        };

        let mut session = K::Session::connect(&address).map_err(failed)?;
        let kind = K::query_facts(&mut session).map_err(failed)?;

        let server = Self {
            kind,
            address,
            process_id: None,
            is_on_other_host: false,
            places: None,
            server: None,
            readers: OnceLock::new(),
            reader_count: AtomicUsize::new(0),
        };
        Ok((server, session))
    }

    /// Returns the address of the next connection that only reads.
    fn address_to_read(&self) -> &Address {
        match self.readers.get().map(Vec::as_slice) {
            None | Some([]) => &self.address,
            Some(readers) => {
                let number = self.reader_count.fetch_add(1, Ordering::Relaxed);
                &readers[number % readers.len()]
            }
        }
    }

    /// Returns the address to which all clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Gives a new server a copy of the data of a stopped one, upgraded if that is of another build.
fn adopt<K: SqlKind>(
    options: &StartOptions<'_>,
    database: StoppedDatabase<'_>,
    build: &K::Build,
    place: &ServerPlace,
    config: &ConfigText,
) -> Result<Origin, SetupError> {
    K::adopt_data(place)?;
    let copied = place.copy_data(database.data, options.stop)?;

    let upgrade = match database.build {
        Some(before) => upgrade::<K>(options, &K::locate(before)?, build, place, config)?,
        None => None,
    };
    Ok(Origin { copied, upgrade })
}

/// Upgrades the copied data of a server of another build. Returns the time that it took; `None` if
/// the build can open the data as it is.
fn upgrade<K: SqlKind>(
    options: &StartOptions<'_>,
    before: &K::Build,
    build: &K::Build,
    place: &ServerPlace,
    config: &ConfigText,
) -> Result<Option<Duration>, SetupError> {
    let began = Deadline::after(Duration::MAX);
    let was_needed = K::upgrade(options, before, build, place, config)?;
    Ok(was_needed.then(|| began.elapsed()))
}

/// Returns the error if the log of a server that did not start has a message about its config, which
/// is in `config_file`.
fn config_error<K: SqlKind>(
    log: &[String],
    build: &K::Build,
    config_text: &str,
    config_file: &Path,
) -> Option<SetupError> {
    let message = (K::KIND.config_error)(log)?;
    if K::is_about_format(&message) {
        return Some(missing_format::<K>(message));
    }

    let help = config::remedy(&message, config_text);
    Some(config::refused(&build.version(), &message, &help, Some(config_file.to_owned())))
}

/// Opens a session whose commits don't wait for replicas.
pub(crate) fn connect_alone<K: SqlKind>(address: &Address) -> Result<K::Session, Error> {
    let mut session = K::Session::connect(address)?;
    session.query(K::COMMIT_ALONE)?;
    Ok(session)
}

/// Creates the database on a new server, which also shows that the server answers.
pub(crate) fn create_database<K: SqlKind>(address: &Address) -> Result<(), Error> {
    let mut session = connect_alone::<K>(address)?;
    match session.query(&format!("create database {DATABASE}")) {
        // An earlier attempt succeeded but its connection was lost.
        Err(error) if error.code.as_deref() == Some(K::DATABASE_EXISTS) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Lets clients and replicas of a new server connect by TCP. Returns the address for clients.
fn open_to_network<K: SqlKind>(
    options: &StartOptions<'_>,
    address: Address,
    name: &str,
) -> Result<Address, SetupError> {
    let failed = |source: Error| SetupError::Server { server: name.to_owned(), help: None, source };
    let mut session = connect_alone::<K>(&address).map_err(failed)?;
    if options.database.is_some() {
        K::dismiss(&mut session);
    }

    refuse_strangers::<K>(&mut session, failed)?;
    let Some(network) = options.network else {
        return Ok(address);
    };

    let user = K::admit(&mut session, &network.password).map_err(failed)?;
    Ok(network.address(user, address))
}

/// Refuses a new server whose config created accounts that could log in by TCP.
fn refuse_strangers<K: SqlKind>(
    session: &mut K::Session,
    failed: impl Fn(Error) -> SetupError,
) -> Result<(), SetupError> {
    match K::strangers(session).map_err(failed)?.as_slice() {
        [] => Ok(()),
        [account, ..] => Err(SetupError::config(
            format!(
                "the config creates the account `{account}`, which could log in to the server by TCP"
            ),
            "give the account the host `localhost` in `setup-sql` or the file of `init_file`, or remove it",
        )),
    }
}

impl<K: SqlKind> Engine for SqlServer<K> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            long_transactions: self.kind.has_transactions(),
            ..Capabilities::of_server()
        }
    }

    fn version(&self) -> &str {
        self.kind.version()
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
        self.places.as_ref().map(K::storage).unwrap_or_default()
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let mut session = K::Session::connect(&self.address)?;
        let rows = session.query(K::SETTINGS)?;
        let setting = |row: Vec<Option<String>>| {
            let mut values = row.into_iter();
            let name = values.next()??;
            let value = values.next()?.unwrap_or_default();
            Some(Setting { source: values.next().flatten(), ..Setting::new(name, value) })
        };

        let mut settings: Vec<Setting> = rows.into_iter().filter_map(setting).collect();
        settings.extend(session.stream().settings());
        settings.extend(K::build_facts(&mut session)?);
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    fn log_parser(&self) -> Option<LogParser> {
        Some(K::LOG_PARSER)
    }

    fn stop(self) -> Result<(), SetupError> {
        self.server.map_or(Ok(()), Server::stop)
    }

    fn abandon(self) -> Result<(), SetupError> {
        self.server.map_or(Ok(()), Server::abandon)
    }
}

impl<K: SqlKind> SqlEngine for SqlServer<K> {
    type Session = K::Session;

    fn dialect(&self) -> &dyn Dialect {
        self.kind.dialect()
    }

    fn connect(&self) -> Result<K::Session, Error> {
        K::Session::connect(&self.address)
    }

    fn connect_to_read(&self) -> Result<K::Session, Error> {
        K::Session::connect(self.address_to_read())
    }

    fn connect_to_inspect(&self) -> Result<K::Session, Error> {
        K::connect_to_inspect(&self.address)
    }

    fn connect_to_clean_up(&self) -> Result<K::Session, Error> {
        K::connect_to_clean_up(&self.address)
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        K::OPEN_OBSERVER(self, tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        K::SETTLE(self, tables, limits, stop)
    }

    fn count_by_index(
        &self,
        session: &mut K::Session,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        K::COUNT_BY_INDEX(session, self.kind.dialect(), table, index).map(Some)
    }
}

impl<K: SqlKind> ServerEngine for SqlServer<K> {
    /// Makes connections that only read go to these replicas in turn. Only the first call has an
    /// effect.
    fn read_from(&self, replicas: &[&Self]) {
        let addresses = replicas.iter().map(|replica| replica.address.clone());
        let _ = self.readers.set(addresses.collect());
    }

    fn url(&self) -> String {
        self.address.url()
    }

    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        let mut session = K::Session::connect(&self.address)?;
        K::FIND_OBSTACLES(&mut session, &self.address.database, needs)
    }

    fn unreadable(&self) -> Result<Vec<Obstacle>, Error> {
        let mut session = K::Session::connect(&self.address)?;
        Ok(K::unreadable(&mut session)?.with_processes(self.sight()))
    }
}

/// Returns the obstacle if a run needs more connections than are `free`. `whose` begins the clause
/// about the limit.
pub(crate) fn too_few_connections(
    needs: Needs,
    whose: &str,
    free: Option<i64>,
    help: &str,
) -> Option<Obstacle> {
    let needed = needs.connections;
    let free = free?;
    if free >= i64::from(needed) {
        return None;
    }
    Some(Obstacle {
        what: format!("the run needs {needed} connections, but {whose} {} more", free.max(0)),
        help: format!("{help}, or use fewer clients"),
    })
}
