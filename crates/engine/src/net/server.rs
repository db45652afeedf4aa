//! A SQL server that is up: started by assay, or attached to. What is the same for all kinds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::Address;
use super::stream::Stream;
use crate::local::config::{self, ConfigText};
use crate::local::program::Readiness;
use crate::local::server::{Kind, Place, Server, StartOptions, Trial};
use crate::{Engine, Error, Needs, Obstacle, Session, Setting, SetupError, Storage};

/// The database that assay makes: its name is the Insert Benchmark's.
const DATABASE: &str = "ib";

/// A connection to a server.
pub trait Client: Session + Sized {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Of class [`crate::ErrorClass::ConnectionLost`] when the server can't be reached, [`crate::ErrorClass::Refused`] when it does
    /// not let us in.
    fn connect(address: &Address) -> Result<Self, Error>;

    /// Returns the bytes between client and server.
    fn stream(&self) -> &Stream;
}

/// A build that is there and works.
pub trait Build {
    /// Returns the server's program.
    fn program(&self) -> PathBuf;

    /// Returns its version with the server's name, for people.
    fn version(&self) -> String;

    /// Returns what should be known about results of this version.
    fn note(&self) -> Option<String>;

    /// Returns the directory of its programs.
    fn bin_dir(&self) -> PathBuf {
        self.program()
            .parent()
            .unwrap_or(Path::new("/"))
            .to_path_buf()
    }
}

/// What tells one kind of server from another, when it is started and when it is attached to. A value of it is what one
/// server says of itself.
pub trait SqlKind: Sized + Send + Sync + 'static {
    /// Its connections.
    type Session: Client;
    /// Its builds.
    type Build: Build;
    /// Where a server has its files.
    type Places: Send + Sync;

    /// Its files and processes.
    const KIND: &'static Kind;
    /// The name of its configuration file.
    const CONFIG_FILE: &'static str;
    /// The code of the error of a database that is there already.
    const DATABASE_EXISTS: &'static str;
    /// A statement for the effective settings: name, value, and source where the server tells it.
    const SETTINGS: &'static str;

    /// Finds a build.
    fn locate(build: &str) -> Result<Self::Build, SetupError>;

    /// Puts the configuration of a server together that has its files in `place`.
    fn compose(
        options: &StartOptions<'_>,
        build: &Self::Build,
        place: &Place,
    ) -> Result<ConfigText, SetupError>;

    /// Makes what a server needs before its first start.
    fn make_data(
        options: &StartOptions<'_>,
        build: &Self::Build,
        place: &Place,
        config: &ConfigText,
    ) -> Result<(), SetupError>;

    /// Returns the arguments of the server's program.
    fn arguments(place: &Place, config_file: &Path) -> Vec<OsString>;

    /// Has a build read a configuration without a start; returns what it says against it.
    fn try_config(
        options: &StartOptions<'_>,
        build: &Self::Build,
        trial: &Trial,
        config: &ConfigText,
    ) -> Result<Option<String>, SetupError>;

    /// Returns where a server that assay starts is reached, before it has a database.
    fn address(place: &Place, connect_timeout: Duration) -> Address;

    /// Asks a server for what has to be known of it.
    fn ask(session: &mut Self::Session) -> Result<Self, Error>;

    /// Returns the version, as the server says it.
    fn version(&self) -> &str;

    /// Returns the error for a server whose version is too old; `None` for one that will do.
    fn refusal(&self, server: &str) -> Option<SetupError>;

    /// Returns the process of a server that lives on this host, in the directory that it says is its own.
    fn live_process(session: &mut Self::Session) -> Option<u32>;

    /// Asks a server of this host where its files are; `None` where this user may not know.
    fn places(session: &mut Self::Session) -> Option<Self::Places>;

    /// Returns the files that are there now.
    fn storage(places: &Self::Places) -> Storage;
}

/// A SQL server that is up: started by assay, or attached to.
pub struct SqlServer<K: SqlKind> {
    pub(crate) kind: K,
    pub(crate) address: Address,
    process_id: Option<u32>,
    is_on_other_host: bool,
    /// Where its files are; `None` where they can't be reached from here.
    places: Option<K::Places>,
    /// The server that assay started; `None` for one that it attached to.
    server: Option<Server>,
}

impl<K: SqlKind> SqlServer<K> {
    /// Makes a database with a build's programs and starts its server on a private socket.
    ///
    /// # Errors
    /// Each says what is wrong with the build, the directory or the config, and the way out. Nothing is left running.
    pub fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let build = K::locate(options.build)?;
        let place = Place::make(K::KIND, options, &build.bin_dir())?;
        let config = K::compose(options, &build, &place)?;
        K::make_data(options, &build, &place, &config)?;
        let config_file = place.write(K::CONFIG_FILE, &config.text)?;
        let address = K::address(&place, options.timeout);
        let name = format!("{} at `{address}`", build.version());
        let complaint = |log: &[String]| {
            let help = format!("the server's options are in `{}`", config_file.display());
            Some(config::refused(
                &build.version(),
                &(K::KIND.complaint)(log)?,
                help,
            ))
        };
        let guarded = place.serve(
            &build.program(),
            K::arguments(&place, &config_file),
            Readiness {
                server: &name,
                ask: &|| make_database::<K>(&address),
                complaint: &complaint,
            },
            options.stop,
        )?;
        let notes = config.notes.into_iter().chain(build.note()).collect();
        let server = place.taken(guarded, config.text, notes);
        let database = DATABASE.into();
        let (mut started, mut session) = Self::reached(
            Address {
                database,
                ..address
            },
            &name,
        )?;
        started.process_id = Some(server.process_id());
        started.places = K::places(&mut session);
        started.server = Some(server);
        Ok(started)
    }

    /// Has the build read its configuration, as the user who would run its server; nothing is started.
    ///
    /// # Errors
    /// [`SetupError::Config`] for an option or a value that this version does not have; [`SetupError::Build`] and
    /// [`SetupError::Directory`] where that user can't get to the build or to the data directory.
    pub fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        let build = K::locate(options.build)?;
        let trial = Trial::make(K::KIND, options, &build.bin_dir())?;
        let config = K::compose(options, &build, &trial.place)?;
        let help = "give a name and a value that this version has, or leave the option out";
        match K::try_config(options, &build, &trial, &config)? {
            Some(complaint) => Err(config::refused(&build.version(), &complaint, help.into())),
            None => Ok(()),
        }
    }

    /// Uses the server at `url`, which assay did not start: it makes nothing there but its tables, in the URL's
    /// database. What the URL leaves out comes from where the server's own clients have it. Tables are made in the
    /// server's default storage engine, where it has several.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a URL that can't be understood, [`SetupError::Server`] when the server can't be
    /// reached or refuses, [`SetupError::Version`] when it is too old.
    pub fn attach(url: &str) -> Result<Self, SetupError> {
        let address = (K::KIND.parse_url)(url)?;
        let name = address.to_string();
        let (mut attached, mut session) = Self::reached(address, &name)?;
        if let Some(refusal) = attached.kind.refusal(&name) {
            return Err(refusal);
        }
        if !session.stream().is_on_this_host() {
            attached.is_on_other_host = true;
            return Ok(attached);
        }
        // A forwarded port may lead to another machine, where the same path means something else: the directory is
        // believed only when a server of this host lives in it.
        let by_directory = K::live_process(&mut session);
        attached.process_id = by_directory.or_else(|| session.stream().listener_pid());
        attached.places = by_directory.and_then(|_| K::places(&mut session));
        Ok(attached)
    }

    /// Connects, and asks for what has to be known.
    fn reached(address: Address, name: &str) -> Result<(Self, K::Session), SetupError> {
        let failed = |source: Error| SetupError::Server {
            server: name.to_string(),
            help: address.help(&source),
            source,
        };
        let mut session = K::Session::connect(&address).map_err(failed)?;
        let kind = K::ask(&mut session).map_err(failed)?;
        let reached = Self {
            kind,
            address,
            process_id: None,
            is_on_other_host: false,
            places: None,
            server: None,
        };
        Ok((reached, session))
    }

    /// Returns where it is reached, without a password.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Asks a new server something, and makes the database.
fn make_database<K: SqlKind>(address: &Address) -> Result<(), Error> {
    let mut session = K::Session::connect(address)?;
    match session.query(&format!("create database {DATABASE}")) {
        // The connection was lost after an earlier attempt was carried out.
        Err(error) if error.code.as_deref() == Some(K::DATABASE_EXISTS) => Ok(()),
        result => result.map(|_| ()),
    }
}

impl<K: SqlKind> Engine for SqlServer<K> {
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
        let rows = K::Session::connect(&self.address)?.query(K::SETTINGS)?;
        let setting = |row: Vec<Option<String>>| {
            let mut values = row.into_iter();
            let name = values.next()??;
            let value = values.next()?.unwrap_or_default();
            Some(Setting {
                source: values.next().flatten(),
                ..Setting::new(name, value)
            })
        };
        let mut settings: Vec<Setting> = rows.into_iter().filter_map(setting).collect();
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    fn stop(self) -> Result<(), SetupError> {
        self.server.map_or(Ok(()), Server::stop)
    }
}

/// Says when a server, or a user of it, has less `room` than a run needs connections.
pub(crate) fn too_few_connections(
    needs: Needs,
    whose: &str,
    room: Option<i64>,
    help: &str,
) -> Option<Obstacle> {
    let needed = needs.connections;
    let room = room.filter(|&room| room < i64::from(needed))?.max(0);
    Some(Obstacle {
        what: format!("the run needs {needed} connections, and {whose} {room} more"),
        help: format!("{help}, or use fewer clients"),
    })
}
