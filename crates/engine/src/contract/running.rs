//! A running target, and its operations outside of measured time.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use words::{Counter, Limit, Setting};

use super::{Dialect, Index, Session, Table};
use crate::error::{Error, SetupError};
use crate::local::log::{LogParser, tail};
use crate::local::server::{Origin, Server};
use crate::safety::data_dir::DataDir;
use crate::safety::freeze::Freezer;

/// The capabilities of an engine. Results of anything else are *not applicable* in the record and
/// in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Tables can have range partitions on the key.
    pub partitions: bool,
    /// A long transaction delays the removal of old row versions, so that a test with one is
    /// useful.
    pub long_transactions: bool,
    /// The engine runs in assay's process, where its CPU time includes the client's.
    pub embedded: bool,
    /// The maximum number of connections that can write at once.
    pub writers_max: u32,
    /// Data that was written can be read. False only for the null engine, whose data is not
    /// checked.
    pub stores_data: bool,
}

impl Capabilities {
    /// Returns those of a server.
    pub fn of_server() -> Self {
        Self {
            partitions: true,
            long_transactions: true,
            embedded: false,
            writers_max: u32::MAX,
            stores_data: true,
        }
    }

    /// Returns those of a library with keys and values, in which so many sessions can write at once.
    pub fn of_keys(writers_max: u32) -> Self {
        Self {
            partitions: false,
            long_transactions: false,
            embedded: true,
            writers_max,
            stores_data: true,
        }
    }
}

/// The paths of a target's files; empty if assay cannot access them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Directories and files with tables and indexes.
    pub data: Vec<PathBuf>,
    /// Directories and files with redo, undo or write-ahead logs. They may be inside those of
    /// `data`; the size of the data then excludes them.
    pub logs: Vec<PathBuf>,
}

/// Reads an engine's counters on its own connection, during the load.
pub trait Observer: Send {
    /// Reads all counters, for use before and after a step.
    ///
    /// # Errors
    /// An error of the engine.
    fn counters(&mut self) -> Result<Vec<Counter>, Error>;

    /// Reads the counters that are cheap enough to be read every second. There may be none.
    ///
    /// # Errors
    /// An error of the engine.
    fn sample(&mut self) -> Result<Vec<Counter>, Error>;

    /// Reads gauges of each index that show its bloat, for which the engine reads all pages: not
    /// during the load. Empty from an engine that cannot.
    ///
    /// # Errors
    /// An error of the engine.
    fn bloat(&mut self) -> Result<Vec<Counter>, Error> {
        Ok(Vec::new())
    }

    /// Reads the engine's own text about its state, without the texts of statements and the values
    /// of rows. `None` from an engine that has no such text.
    ///
    /// # Errors
    /// An error of the engine.
    fn status(&mut self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Returns the ID of the server's thread that answers it; `None` without such a thread, or if
    /// the server does not tell it.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Returns the states of the load's sessions that are not idle, with the number of sessions in
    /// each. `None` from an engine that does not say.
    ///
    /// # Errors
    /// An error of the engine.
    fn session_states(&mut self) -> Result<Option<Vec<(String, u64)>>, Error> {
        Ok(None)
    }
}

/// Limits on the time that settling may take.
#[derive(Clone, Copy, Debug)]
pub struct SettleLimits {
    /// The minimum, which is for background work that the engine does not report.
    pub at_least: Duration,
    /// The maximum. Work that is pending then is recorded.
    pub at_most: Duration,
}

/// An action of settling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The action, such as `VACUUM (ANALYZE) pi1` or `CHECKPOINT`.
    pub what: String,
    /// The duration of the action.
    pub took: Duration,
}

/// The actions and results of settling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// The actions, in order.
    pub actions: Vec<Action>,
    /// Work that was pending before, as gauges such as dirty bytes or dead rows.
    pub pending_before: Vec<Counter>,
    /// Work that was pending afterward, as the same gauges.
    pub pending_after: Vec<Counter>,
    /// Descriptions of work that was pending or not begun when settling timed out or was stopped.
    /// Empty means that the engine is idle.
    pub unfinished: Vec<String>,
}

impl Settled {
    pub(crate) fn add_action(&mut self, what: impl Into<String>, took: Duration) {
        let what = what.into();
        self.actions.push(Action { what, took });
    }

    /// Adds the actions and unfinished work of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.unfinished.extend(other.unfinished);
    }
}

/// The contents of a table, as the engine counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The number of rows.
    pub rows: u64,
    /// The smallest key; `None` in an empty table.
    pub key_min: Option<i64>,
    /// The largest key; `None` in an empty table.
    pub key_max: Option<i64>,
    /// The name of each index that the table should have, and the number of rows in it; empty if
    /// they were not counted.
    pub index_rows: Vec<(String, IndexRows)>,
}

/// The number of rows in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexRows {
    /// The number.
    Counted(u64),
    /// The table has no index on those columns.
    NoIndex,
    /// The engine cannot count rows with this index alone, for the given reason.
    NotCounted(String),
}

/// A running target. Dropping it stops what assay started.
pub trait Engine: Send + Sync {
    /// Returns the engine's capabilities. The default is for servers.
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_server()
    }

    /// Returns the version that the engine reports.
    fn version(&self) -> &str;

    /// Returns the server that assay started; `None` for an embedded engine, and a server that
    /// assay only connects to.
    fn server(&self) -> Option<&Server> {
        None
    }

    /// Returns the root of the server's process tree; `None` without a server on this host.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// Returns true when the server is on another host. Then this host's metrics don't describe it.
    fn is_on_other_host(&self) -> bool {
        false
    }

    /// Returns a freezer of the server that assay started; `None` for an embedded engine, and a
    /// server that assay only connects to.
    ///
    /// # Errors
    /// The errors of [`Freezer::of`].
    fn freezer(&self) -> std::io::Result<Option<Freezer>> {
        self.server().map(Server::freezer).transpose()
    }

    /// Returns the limits that were requested and their effect; empty if none were requested.
    fn limits(&self) -> &[Limit] {
        self.server().map_or(&[], |server| server.limits.as_slice())
    }

    /// Returns the database of another server with which the server started.
    fn origin(&self) -> Option<Origin> {
        self.server()?.origin
    }

    /// Returns a message if the kernel killed a process of the server because its memory limit was
    /// reached. That may be why a connection was lost.
    fn killed_for_memory(&self) -> Option<String> {
        self.server()?.killed_for_memory()
    }

    /// Returns the paths of the target's files.
    fn storage(&self) -> Storage {
        Storage::default()
    }

    /// Returns all effective settings, sorted by name.
    ///
    /// # Errors
    /// An error of the engine.
    fn settings(&self) -> Result<Vec<Setting>, Error>;

    /// Returns the last lines of the server's log, oldest first; empty without a log.
    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.log_path().map_or_else(Vec::new, |log| tail(&log, lines))
    }

    /// Returns the path of the server's log, if it writes one.
    fn log_path(&self) -> Option<PathBuf> {
        Some(self.server()?.place.log.clone())
    }

    /// Returns the parser of the engine's log; `None` if its log has no events.
    fn log_parser(&self) -> Option<LogParser> {
        None
    }

    /// Stops the target cleanly.
    ///
    /// # Errors
    /// Fails if it does not stop, or does not stop cleanly.
    fn stop(self) -> Result<(), SetupError>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// Stops a target whose data nobody needs, such as one whose step has failed. A server may wait
    /// for itself for minutes then: it gets a few seconds to stop cleanly.
    ///
    /// # Errors
    /// Fails if it does not stop, or does not stop cleanly.
    fn abandon(self) -> Result<(), SetupError>
    where
        Self: Sized,
    {
        self.stop()
    }
}

/// An engine that speaks SQL.
pub trait SqlEngine: Engine {
    /// The engine's connections.
    type Session: Session;

    /// Returns the engine's SQL dialect.
    fn dialect(&self) -> &dyn Dialect;

    /// Opens a connection for the load, ready for [`Session::prepare`].
    ///
    /// # Errors
    /// An error of the engine.
    fn connect(&self) -> Result<Self::Session, Error>;

    /// Opens a connection of the load that only reads: to the primary, or to the replicas in turn
    /// (see [`ServerEngine::read_from`]).
    ///
    /// # Errors
    /// An error of the engine.
    fn connect_to_read(&self) -> Result<Self::Session, Error> {
        self.connect()
    }

    /// Opens a connection that drops tables. Its commits don't wait for replicas, which may be
    /// lost, where the engine can do so.
    ///
    /// # Errors
    /// An error of the engine.
    fn connect_to_clean_up(&self) -> Result<Self::Session, Error> {
        self.connect()
    }

    /// Opens a connection that reads the counters of `tables` and of the whole engine.
    ///
    /// # Errors
    /// An error of the engine.
    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error>;

    /// Finishes the engine's background work, so that it does not burden the next step. Returns
    /// early, with what it has done, once `stop` is set.
    ///
    /// # Errors
    /// An error of the engine.
    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error>;

    /// Counts the rows of `table` with one of its indexes; `None` if the engine has no way to
    /// select the index.
    ///
    /// # Errors
    /// An error of the engine.
    fn count_by_index(
        &self,
        session: &mut Self::Session,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        let rows = last_number(session, &self.dialect().count_rows(table, Some(index)))?;
        Ok(rows.map(|rows| IndexRows::Counted(rows as u64)))
    }

    /// Opens a session without a time limit for queries.
    ///
    /// # Errors
    /// An error of the engine.
    fn connect_to_inspect(&self) -> Result<Self::Session, Error> {
        self.connect()
    }

    /// Returns a number that depends on all columns of each row of `table` whose key is a multiple
    /// of `every`; `None` without such rows, or if the engine has no replicas.
    ///
    /// # Errors
    /// An error of the engine.
    fn digest(&self, table: &Table, every: u64) -> Result<Option<String>, Error> {
        let statements = self.dialect().digest(table, every);
        let Some((query, settings)) = statements.split_last() else {
            return Ok(None);
        };

        let mut session = self.connect_to_inspect()?;
        for sql in settings {
            session.query(sql)?;
        }

        Ok(session.query_column(query)?.into_iter().next())
    }

    /// Counts the contents of `table`, and with `indexes`, the rows in each index.
    ///
    /// # Errors
    /// An error of the engine.
    fn inspect(&self, table: &Table, indexes: bool) -> Result<TableFacts, Error> {
        let mut session = self.connect_to_inspect()?;
        let dialect = self.dialect();

        let key_min = session.query_i64(&dialect.min_key(table))?;
        let key_max = session.query_i64(&dialect.max_key(table))?;
        let rows = last_number(&mut session, &dialect.count_rows(table, None))?.unwrap_or(0);

        let mut index_rows = Vec::new();

        for index in table.indexes.iter().filter(|_| indexes) {
            if let Some(rows) = self.count_by_index(&mut session, table, index)? {
                index_rows.push((index.name.to_string(), rows));
            }
        }
        Ok(TableFacts { rows: rows as u64, key_min, key_max, index_rows })
    }
}

/// Runs statements in turn, and returns the number that the last one returns.
fn last_number(session: &mut impl Session, statements: &[String]) -> Result<Option<i64>, Error> {
    let mut number = None;
    for sql in statements {
        number = session.query_i64(sql)?;
    }
    Ok(number)
}

/// The needs of a run from a server that assay did not start.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The number of simultaneous connections.
    pub connections: u32,
    /// The run creates and fills tables.
    pub makes_tables: bool,
}

/// A problem with a server that would make a run fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The problem with the server or the user.
    pub what: String,
    /// The remedy.
    pub help: String,
}

/// An engine that is a server. Assay knows less about a server that it did not start.
pub trait ServerEngine: SqlEngine {
    /// Returns the system user that runs the server, if it is not assay's own.
    fn server_user(&self) -> Option<&str> {
        let user = self.server()?.place.user.as_ref()?;
        Some(&user.name)
    }

    /// Returns the text of the server's configuration file; `None` for a server that assay did not
    /// start.
    fn config_text(&self) -> Option<&str> {
        self.server().map(|server| server.config_text.as_str())
    }

    /// Returns the directory of the server's files; `None` for a server that assay did not start.
    fn data_dir(&self) -> Option<&DataDir> {
        self.server().map(|server| &server.place.data_dir)
    }

    /// Returns the directory of the server's data, which a copy of the database needs; `None` for a
    /// server that assay did not start.
    fn database(&self) -> Option<PathBuf> {
        self.server().map(|server| server.place.data())
    }

    /// Returns the problems that would make a run fail, as far as the server reports them.
    ///
    /// # Errors
    /// An error of the server.
    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error>;

    /// Returns what the user may not read of a server that assay did not start, with the statement
    /// that allows it. Empty if metrics lack nothing.
    ///
    /// # Errors
    /// An error of the server.
    fn unreadable(&self) -> Result<Vec<Obstacle>, Error>;

    /// Makes [`SqlEngine::connect_to_read`] connect to these replicas in turn.
    fn read_from(&self, replicas: &[&Self]);

    /// Returns the URL by which another process reaches the server.
    fn url(&self) -> String;

    /// Returns notes for readers of the results, such as that a version is newer than those tested.
    fn notes(&self) -> &[String] {
        self.server().map_or(&[], |server| server.notes.as_slice())
    }
}
