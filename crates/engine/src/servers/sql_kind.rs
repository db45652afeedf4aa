//! The properties in which kinds of SQL servers differ.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use words::{Secret, Setting};

use super::config::ConfigText;
use super::sql_server::SqlServer;
use super::unreadable::Unreadable;
use crate::contract::{
    Dialect, Index, IndexRows, Needs, Observer, Obstacle, Session, SettleLimits, Settled, Storage,
    Table,
};
use crate::error::{Error, SetupError};
use crate::local::log::LogParser;
use crate::local::server::{ServerKind, ServerPlace, Trial};
use crate::local::start_options::StartOptions;
use crate::net::address::Address;
use crate::net::stream::Stream;

/// A connection to a server.
pub trait Client: Session + Sized {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Class [`crate::ErrorClass::ConnectionLost`] when the server cannot be reached,
    /// [`crate::ErrorClass::Refused`] when it refuses the login.
    fn connect(address: &Address) -> Result<Self, Error>;

    /// Returns the stream between client and server.
    fn stream(&self) -> &Stream;
}

/// An installed build.
pub trait Build {
    /// Returns the server's program.
    fn program(&self) -> PathBuf;

    /// Returns the server's name and version, for readers.
    fn version(&self) -> String;

    /// Returns a note about results of this version.
    fn note(&self) -> Option<String>;

    /// Returns the directory of the build's programs.
    fn bin_dir(&self) -> PathBuf {
        self.program().parent().unwrap_or(Path::new("/")).to_path_buf()
    }
}

/// Opens an observer, as [`SqlEngine::observer`](crate::SqlEngine::observer) says.
pub type OpenObserver<K> = fn(&SqlServer<K>, &[Table]) -> Result<Box<dyn Observer>, Error>;
/// Settles a server, as [`SqlEngine::settle`](crate::SqlEngine::settle) says.
pub type Settle<K> =
    fn(&SqlServer<K>, &[Table], SettleLimits, &AtomicBool) -> Result<Settled, Error>;
/// Counts rows, as [`SqlEngine::count_by_index`](crate::SqlEngine::count_by_index) says.
pub type CountByIndex<K> = fn(
    &mut <K as SqlKind>::Session,
    &<K as SqlKind>::Dialect,
    &Table,
    &Index,
) -> Result<IndexRows, Error>;
/// Finds obstacles, as [`ServerEngine::obstacles`](crate::ServerEngine::obstacles) says, in the
/// database with this name.
pub type FindObstacles<K> =
    fn(&mut <K as SqlKind>::Session, &str, Needs) -> Result<Vec<Obstacle>, Error>;

/// The properties in which kinds of SQL servers differ. A value has the facts that a running server
/// reports about itself.
pub trait SqlKind: Sized + Send + Sync + 'static {
    /// The server's connections.
    type Session: Client;
    /// The server's builds.
    type Build: Build;
    /// Its SQL.
    type Dialect: Dialect;
    /// The paths of a server's files.
    type Places: Send + Sync;

    /// The server's files and processes.
    const KIND: &'static ServerKind;
    /// The name of the configuration file.
    const CONFIG_FILE: &'static str;
    /// A statement after which commits of a session don't wait for replicas, which start later.
    const COMMIT_ALONE: &'static str;
    /// The code of the error for a database that already exists.
    const DATABASE_EXISTS: &'static str;
    /// A query for the effective settings: name, value, and the source if the server has it. It
    /// leaves out those that may contain a password.
    const SETTINGS: &'static str;

    /// The parser of its log.
    const LOG_PARSER: LogParser;

    /// The option of the server's cache, with a size that suffices for one table.
    const SMALL_CACHE: (&'static str, &'static str);

    /// The option that selects the format of new tables.
    const FORMAT_OPTION: &'static str;
    /// Queries for the format of new tables, and for all formats.
    const CHOSEN_FORMAT: &'static str;
    const FORMATS: &'static str;
    /// The remedy if the format is missing.
    const FORMAT_HELP: &'static str;
    /// A statement after which a session creates tables in a format that exists from the beginning;
    /// `None` if the server starts only with a format that exists.
    const USUAL_FORMAT: Option<&'static str>;

    /// Opens a connection that reads the counters of tables and of the whole server.
    const OPEN_OBSERVER: OpenObserver<Self>;
    /// Finishes the server's background work.
    const SETTLE: Settle<Self>;
    /// Counts the rows of a table with one of its indexes.
    const COUNT_BY_INDEX: CountByIndex<Self>;
    /// Finds the problems that would make a run fail.
    const FIND_OBSTACLES: FindObstacles<Self>;

    /// Finds a build.
    fn locate(build: &str) -> Result<Self::Build, SetupError>;

    /// Composes the configuration of a server with files in `place`.
    fn compose(
        options: &StartOptions<'_>,
        build: &Self::Build,
        place: &ServerPlace,
    ) -> Result<ConfigText, SetupError>;

    /// Creates the data that a server needs before its first start.
    fn create_data(
        options: &StartOptions<'_>,
        build: &Self::Build,
        place: &ServerPlace,
        config: &ConfigText,
    ) -> Result<(), SetupError>;

    /// Creates the directories that a server with a copy of another's data needs beside it.
    fn adopt_data(_place: &ServerPlace) -> Result<(), SetupError> {
        Ok(())
    }

    /// Upgrades the data that a server of the build `before` left, if this build cannot open it.
    /// Returns whether that was so.
    fn upgrade(
        _options: &StartOptions<'_>,
        _before: &Self::Build,
        _build: &Self::Build,
        _place: &ServerPlace,
        _config: &ConfigText,
    ) -> Result<bool, SetupError> {
        Ok(false)
    }

    /// Removes the account by which clients of the copied database's server connected by TCP.
    fn dismiss(_session: &mut Self::Session) {}

    /// Returns the arguments of the server's program.
    fn arguments(place: &ServerPlace, config_file: &Path) -> Vec<OsString>;

    /// Makes a build read a configuration without starting a server. Returns its message if it
    /// refuses the configuration.
    fn try_config(
        options: &StartOptions<'_>,
        build: &Self::Build,
        trial: &Trial,
        config: &ConfigText,
    ) -> Result<Option<String>, SetupError>;

    /// Returns an option of the config whose name is not in the build's own list of options, although
    /// the server may take it for the beginning of one; `None` if there is none, or if the server
    /// takes only whole names. Does not show the build any of the options.
    fn option_not_in_full(
        _options: &StartOptions<'_>,
        _build: &Self::Build,
        _trial: &Trial,
    ) -> Result<Option<String>, SetupError> {
        Ok(None)
    }

    /// Returns the address of the private socket of a server that assay starts, without a database.
    fn address(place: &ServerPlace, options: &StartOptions<'_>) -> Address;

    /// Returns the accounts that could log in by TCP before assay has created its own.
    fn strangers(_session: &mut Self::Session) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Lets clients connect by TCP with this password; returns their user.
    fn admit(session: &mut Self::Session, password: &Secret) -> Result<&'static str, Error>;

    /// Queries a server for the facts about itself.
    fn query_facts(session: &mut Self::Session) -> Result<Self, Error>;

    /// Returns the version that the server reports.
    fn version(&self) -> &str;

    /// Reads how the build was compiled, as far as [`Self::SETTINGS`] does not say.
    fn build_facts(_session: &mut Self::Session) -> Result<Vec<Setting>, Error> {
        Ok(Vec::new())
    }

    /// Returns whether tables of the format have transactions.
    fn has_transactions(&self) -> bool {
        true
    }

    /// Adds SQL to the end of the statements that create tables.
    fn set_table_options(&mut self, options: &str);

    /// Returns the server's SQL dialect.
    fn dialect(&self) -> &Self::Dialect;

    /// Opens a session without a time limit for queries.
    fn connect_to_inspect(address: &Address) -> Result<Self::Session, Error> {
        Self::Session::connect(address)
    }

    /// Opens a session that drops tables, as [`SqlEngine::connect_to_clean_up`] says.
    ///
    /// [`SqlEngine::connect_to_clean_up`]: crate::SqlEngine::connect_to_clean_up
    fn connect_to_clean_up(address: &Address) -> Result<Self::Session, Error> {
        Self::Session::connect(address)
    }

    /// Finds what the session's user may not read of the server.
    fn unreadable(session: &mut Self::Session) -> Result<Unreadable, Error>;

    /// Returns whether a message in the log is about a format of tables that does not exist.
    fn is_about_format(_message: &str) -> bool {
        false
    }

    /// Returns the error for a server whose version is too old; `None` for any other.
    fn refusal(&self, server: &str) -> Option<SetupError>;

    /// Returns the server's process if it runs on this host and uses the directory that it reports.
    fn live_process(session: &mut Self::Session) -> Option<u32>;

    /// Queries a server on this host for the paths of its files; `None` if this user lacks the
    /// privilege.
    fn places(session: &mut Self::Session) -> Option<Self::Places>;

    /// Returns the files that exist now.
    fn storage(places: &Self::Places) -> Storage;
}
