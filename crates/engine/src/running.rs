//! A target that is up, and what can be asked of it outside of measured time.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use words::{Counter, Limit, Setting};

use crate::local::log::tail;
use crate::{DataDir, Dialect, Error, Index, Server, Session, SetupError, Table};

/// What an engine can do. What it can't is *not applicable* in the record and in every table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Tables can be partitioned by ranges of the key.
    pub partitions: bool,
    /// A long transaction holds back the removal of old row versions, so that holding one is a test.
    pub long_transactions: bool,
    /// The engine works in assay's own process: its CPU can't be told from the client's.
    pub embedded: bool,
    /// Several connections can write at once. Where they can't, more than one for a load would wait for each other.
    pub concurrent_writers: bool,
    /// What was written is there to be read: the null engine alone says no, and its data is not checked.
    pub stores_data: bool,
}

/// Where a target keeps its files; empty where assay can't reach them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Directories and files that hold tables and indexes.
    pub data: Vec<PathBuf>,
    /// Directories and files that hold redo, undo or write-ahead logs. They may lie within those of `data`: their
    /// size is then not part of the data's.
    pub logs: Vec<PathBuf>,
}

/// Reads an engine's counters on a connection of its own, so that it can run beside the load.
pub trait Observer: Send {
    /// All counters: before and after a step.
    ///
    /// # Errors
    /// The engine's own.
    fn counters(&mut self) -> Result<Vec<Counter>, Error>;

    /// Those that cost so little that they can be read each second; may be none.
    ///
    /// # Errors
    /// The engine's own.
    fn sample(&mut self) -> Result<Vec<Counter>, Error>;
}

/// How long settling may take.
#[derive(Clone, Copy, Debug)]
pub struct SettleLimits {
    /// It lasts at least so long: background work that the engine doesn't report gets that much time.
    pub at_least: Duration,
    /// Waiting for pending work ends here, and what is pending then is recorded.
    pub at_most: Duration,
}

/// One thing that settling did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What: `VACUUM (ANALYZE) pi1`, `CHECKPOINT`.
    pub what: String,
    /// How long it took.
    pub took: Duration,
}

/// The evidence of settling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// What was pending before, as gauges: dirty bytes, dead rows.
    pub pending_before: Vec<Counter>,
    /// The same afterwards.
    pub pending_after: Vec<Counter>,
    /// What was still pending, or was not reached, when the time was over or it was stopped, in plain words; empty: the
    /// engine is at rest.
    pub unfinished: Vec<String>,
}

impl Settled {
    /// Notes what was done.
    pub(crate) fn did(&mut self, what: impl Into<String>, took: Duration) {
        let what = what.into();
        self.actions.push(Action { what, took });
    }

    /// Adds what was done besides.
    pub(crate) fn and(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.unfinished.extend(other.unfinished);
    }
}

/// What a table holds, as the engine counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// Rows in the table.
    pub rows: u64,
    /// The smallest key; `None` in an empty table.
    pub key_min: Option<i64>,
    /// The largest key; `None` in an empty table.
    pub key_max: Option<i64>,
    /// Rows by way of each index that the table should have, by the index's name in it; none where they were not to be
    /// counted.
    pub index_rows: Vec<(String, IndexRows)>,
}

/// Rows by way of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexRows {
    /// So many.
    Counted(u64),
    /// There is no index on those columns.
    NoIndex,
    /// They can't be counted by way of it alone, for this reason.
    NotCounted(String),
}

/// A target that is up. Dropping it takes down what assay started.
pub trait Engine: Send + Sync {
    /// Returns what it can do: by default what servers can.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            partitions: true,
            long_transactions: true,
            embedded: false,
            concurrent_writers: true,
            stores_data: true,
        }
    }

    /// The version, as the engine itself reports it.
    fn version(&self) -> &str;

    /// The server that assay started; `None` for one that it attached to, and for an engine that is none.
    fn server(&self) -> Option<&Server> {
        None
    }

    /// The root of the server's process tree; `None` where there is none, or not on this host.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// Returns whether the server is on another host: then nothing that assay reads of this host is about it.
    fn is_on_other_host(&self) -> bool {
        false
    }

    /// What came of the limits that were asked for; none for a target without any.
    fn limits(&self) -> &[Limit] {
        self.server().map_or(&[], |it| it.limits.as_slice())
    }

    /// Says so when the kernel killed the server, or a process of it, because it needed more memory than its limit
    /// allows: why a connection was lost, perhaps.
    fn killed_for_memory(&self) -> Option<String> {
        self.server()?.killed_for_memory()
    }

    /// Where its files are.
    fn storage(&self) -> Storage {
        Storage::default()
    }

    /// The effective settings, all of them, sorted by name.
    ///
    /// # Errors
    /// The engine's own.
    fn settings(&self) -> Result<Vec<Setting>, Error>;

    /// The last lines of the server's log, oldest first; empty where there is none.
    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.log_path()
            .map_or_else(Vec::new, |log| tail(&log, lines))
    }

    /// Where the server writes its log, if it does.
    fn log_path(&self) -> Option<PathBuf> {
        Some(self.server()?.place.log.clone())
    }

    /// Takes it down in good order.
    ///
    /// # Errors
    /// When it does not stop, or not cleanly.
    fn stop(self) -> Result<(), SetupError>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// An engine that speaks SQL.
pub trait SqlEngine: Engine {
    /// Its connections.
    type Session: Session;

    /// How it writes SQL.
    fn dialect(&self) -> &dyn Dialect;

    /// Opens a connection for the load, ready for [`Session::prepare`].
    ///
    /// # Errors
    /// The engine's own.
    fn connect(&self) -> Result<Self::Session, Error>;

    /// Opens a connection that reads counters of `tables` and of the whole engine.
    ///
    /// # Errors
    /// The engine's own.
    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error>;

    /// Brings the engine to rest, so that one step's debt is not the next one's. Returns early, with what it has
    /// done, once `stop` is set.
    ///
    /// # Errors
    /// The engine's own.
    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error>;

    /// Counts the rows of `table` by way of one of its indexes; `None` where the engine can't be told which to read.
    ///
    /// # Errors
    /// The engine's own.
    fn count_by_index(
        &self,
        session: &mut Self::Session,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        let rows = last_number(session, &self.dialect().count_rows(table, Some(index)))?;
        Ok(rows.map(|rows| IndexRows::Counted(rows as u64)))
    }

    /// Opens a session whose queries may take as long as they need.
    ///
    /// # Errors
    /// The engine's own.
    fn connect_to_inspect(&self) -> Result<Self::Session, Error> {
        self.connect()
    }

    /// Counts what `table` holds; `indexes` says whether its indexes exist and are to be counted too.
    ///
    /// # Errors
    /// The engine's own.
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
        Ok(TableFacts {
            rows: rows as u64,
            key_min,
            key_max,
            index_rows,
        })
    }
}

/// Runs the statements in turn; what the last returns.
fn last_number(session: &mut impl Session, statements: &[String]) -> Result<Option<i64>, Error> {
    let mut number = None;
    for sql in statements {
        number = session.query_i64(sql)?;
    }
    Ok(number)
}

/// What a run needs of a server that assay did not start.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Connections at a time.
    pub connections: u32,
    /// Whether it makes tables and fills them.
    pub makes_tables: bool,
}

/// What would end a run in the midst of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What is wrong with the server, or with the user there.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

/// An engine that is a server: one that assay started, or one that it attached to and knows less of.
pub trait ServerEngine: SqlEngine {
    /// The user that the server runs as, where that is not assay's own.
    fn server_user(&self) -> Option<&str> {
        let user = self.server()?.place.user.as_ref()?;
        Some(&user.name)
    }

    /// The text of the server's configuration file; `None` for a server that assay did not start.
    fn config_text(&self) -> Option<&str> {
        self.server().map(|it| it.config_text.as_str())
    }

    /// The directory that holds the server's files; `None` for a server that assay did not start.
    fn data_dir(&self) -> Option<&DataDir> {
        self.server().map(|it| &it.place.data_dir)
    }

    /// Returns what keeps a run from it, as far as the server says so.
    ///
    /// # Errors
    /// The server's own.
    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error>;

    /// What a reader of the results should know of: options of the config that assay overrides, a version that is
    /// newer than those it was tried with.
    fn notes(&self) -> &[String] {
        self.server().map_or(&[], |it| it.notes.as_slice())
    }
}
