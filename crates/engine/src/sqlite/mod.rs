//! SQLite, bundled and embedded. The database is a file, and the config is pragmas.
//!
//! A client's inserter, deleter and reader are connections to one file, so measurements include
//! waits for the write lock. SQLite's busy handler sleeps up to 100 ms at a time, which would
//! dominate the result. The handler here polls every half millisecond at most, and counts its
//! waits.

mod dialect;
mod notation;
mod observer;
mod session;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ffi};

pub use dialect::SqliteDialect;
pub use notation::SqliteNotation;
pub use session::SqliteSession;

use crate::guard::Deadline;
use crate::notation::Notation;
use crate::{
    Capabilities, Dialect, Engine, Error, ErrorClass, Observer, Setting, SettleLimits, Settled,
    SetupError, SqlEngine, Storage, Table, trial, waiting,
};
use observer::SqliteObserver;

/// Returns the version of the bundled library.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// Pragmas that take effect only in an empty database, so they come first.
const BEFORE_CONTENT: [&str; 3] = ["page_size", "auto_vacuum", "encoding"];

/// Pragmas whose values are reported as effective settings.
const REPORTED: [&str; 22] = [
    "analysis_limit",
    "auto_vacuum",
    "automatic_index",
    "cache_size",
    "cache_spill",
    "cell_size_check",
    "checkpoint_fullfsync",
    "encoding",
    "foreign_keys",
    "fullfsync",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "max_page_count",
    "mmap_size",
    "page_size",
    "secure_delete",
    "synchronous",
    "temp_store",
    "threads",
    "wal_autocheckpoint",
    "hard_heap_limit",
];

/// A database file and the pragmas of its connections.
#[derive(Debug)]
pub struct Sqlite {
    file: PathBuf,
    pragmas: Vec<(String, String)>,
}

impl Sqlite {
    /// Creates an empty database in `directory`, which is assay's and empty. Every connection gets
    /// the pragmas `set`.
    ///
    /// # Errors
    /// A pragma that SQLite does not know, a value that it refuses, or a directory that it can't
    /// write.
    pub fn start(directory: &Path, set: &[(String, String)]) -> Result<Self, SetupError> {
        let sqlite = Self::open_with(directory, set)?;
        // The first write fixes the page size.
        let write = "create table assay(v); drop table assay";
        sqlite
            .connection()?
            .execute_batch(write)
            .map_err(|error| sqlite.failed(session::error(&error)))?;
        Ok(sqlite)
    }

    /// Opens the database in `directory`, which [`start`](Self::start) created.
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    pub fn open_with(directory: &Path, set: &[(String, String)]) -> Result<Self, SetupError> {
        let mut pragmas = set.to_vec();
        pragmas.sort_by_key(|(name, _)| !BEFORE_CONTENT.contains(&name.as_str()));
        let sqlite = Self { file: directory.join("assay.sqlite"), pragmas };
        let connection = sqlite.connection()?;

        let known = pragma_names(&connection);
        for (name, value) in &sqlite.pragmas {
            if !known.contains(name) {
                return Err(SetupError::option(
                    name,
                    format!("`{name}` is not a pragma of SQLite {}", version()),
                    "`sqlite3 :memory: 'pragma pragma_list'` lists the pragmas",
                ));
            }
            if let Some(effective) = pragma(&connection, name)
                && !takes_effect(name, value, &effective)
            {
                return Err(SetupError::option(
                    name,
                    format!("`{name} = {value}` did not take effect: SQLite reports `{effective}`"),
                    "write a value that the pragma accepts, as in SQLite's documentation",
                ));
            }
        }

        drop(connection);
        Ok(sqlite)
    }

    /// Opens a connection, outside of the load.
    fn connection(&self) -> Result<Connection, SetupError> {
        self.open().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: Error) -> SetupError {
        SetupError::Server {
            server: format!("sqlite at `{}`", self.file.display()),
            source,
            help: None,
        }
    }

    /// Tests the pragmas on an empty database in the directory for temporary files, and removes it.
    ///
    /// # Errors
    /// The errors of [`Sqlite::start`].
    pub fn try_config(set: &[(String, String)]) -> Result<(), SetupError> {
        let place = trial::Directory::create()?;
        Self::start(place.path(), set).map(drop)
    }

    fn open(&self) -> Result<Connection, Error> {
        let mut connection =
            Connection::open(&self.file).map_err(|error| session::error(&error))?;
        connection
            .busy_handler(Some(session::wait_for_lock))
            .map_err(|error| session::error(&error))?;
        for (name, value) in &self.pragmas {
            connection.pragma_update(None, name, value).map_err(|error| Error {
                message: format!("pragma {name} = {value}: {error}"),
                ..session::error(&error)
            })?;
        }
        Ok(connection)
    }

    fn wal(&self) -> PathBuf {
        let mut wal = self.file.clone().into_os_string();
        wal.push("-wal");
        wal.into()
    }
}

fn pragma_names(connection: &Connection) -> Vec<String> {
    let names = || -> rusqlite::Result<Vec<String>> {
        connection
            .prepare("select name from pragma_pragma_list")?
            .query_map([], |row| row.get(0))?
            .collect()
    };
    names().unwrap_or_default()
}

/// Returns the value of a pragma as text; `None` if it has none.
fn pragma(connection: &Connection, name: &str) -> Option<String> {
    connection
        .pragma_query_value(None, name, |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(value) => value.to_string(),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            })
        })
        .ok()
}

/// Returns true when SQLite reports `effective` for the value `value`. Many pragmas accept words
/// and report numbers.
fn takes_effect(name: &str, value: &str, effective: &str) -> bool {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    // For a cache size in KiB, SQLite reports pages, and it may round sizes.
    let is_rounded = !matches!(name, "page_size" | "synchronous");
    SqliteNotation.satisfies(name, value, effective)
        || (is_rounded && is_number(value) && is_number(effective))
}

impl Engine for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            partitions: false,
            long_transactions: true,
            embedded: true,
            writers_max: 1,
            stores_data: true,
        }
    }

    fn version(&self) -> &str {
        version()
    }

    fn storage(&self) -> Storage {
        let mut shm = self.file.clone().into_os_string();
        shm.push("-shm");
        Storage { data: vec![self.file.clone()], logs: vec![self.wal(), shm.into()] }
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let connection = self.open()?;
        let mut settings: Vec<Setting> = REPORTED
            .iter()
            .filter_map(|&name| {
                let value = pragma(&connection, name)?;
                let set = self.pragmas.iter().any(|(pragma, _)| pragma == name);
                Some(Setting {
                    source: Some(if set { "config" } else { "default" }.into()),
                    ..Setting::new(name, value)
                })
            })
            .collect();

        let options: Vec<String> = connection
            .prepare("select compile_options from pragma_compile_options")
            .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
            .map_err(|error| session::error(&error))?;
        settings.push(Setting {
            source: Some("build".into()),
            ..Setting::new("compile_options", options.join(" "))
        });
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }
}

impl SqlEngine for Sqlite {
    type Session = SqliteSession;

    fn dialect(&self) -> &dyn Dialect {
        &SqliteDialect
    }

    fn connect(&self) -> Result<SqliteSession, Error> {
        Ok(SqliteSession::new(self.open()?))
    }

    fn observer(&self, _tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        Ok(Box::new(SqliteObserver::new(self.open()?, self.wal())))
    }

    /// Writes the whole write-ahead log to the database and truncates the log. Updates the
    /// planner's statistics.
    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        // Not the time of day, which may change meanwhile.
        let began = Deadline::after(limits.at_most);
        let connection = self.open()?;
        let observer = SqliteObserver::new(self.open()?, self.wal());
        let mut settled =
            Settled { pending_before: vec![observer.wal_file_bytes()], ..Settled::default() };

        for table in tables {
            let (analyze, from) = (format!("analyze {}", table.name), began.elapsed());
            first_integer(&connection, &analyze)?;
            settled.add_action(analyze, began.elapsed().saturating_sub(from));
        }

        // Waits here for connections that use the log, because the handler would wait longer than
        // settling may take.
        connection.busy_timeout(Duration::ZERO).map_err(|error| session::error(&error))?;
        let (checkpoint, from) = ("pragma wal_checkpoint(truncate)", began.elapsed());
        // The first row says whether something blocked the checkpoint.
        while first_integer(&connection, checkpoint)? != 0 {
            if began.has_passed() || stop.load(Ordering::Relaxed) {
                settled.unfinished.push(
                    "the write-ahead log is not written back: another connection uses it".into(),
                );
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        settled.add_action(checkpoint, began.elapsed().saturating_sub(from));

        let _ = waiting::rest(&began, limits.at_least, stop);
        settled.pending_after = vec![observer.wal_file_bytes()];
        Ok(settled)
    }
}

/// Runs a statement, and returns the integer in its first row; 0 if it has none.
fn first_integer(connection: &Connection, sql: &str) -> Result<i64, Error> {
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).or_else(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(0),
        error => Err(session::error(&error)),
    })
}

/// Returns the class of an SQLite error.
fn class_of(error: &ffi::Error) -> ErrorClass {
    use rusqlite::ErrorCode;
    const DUPLICATES: [i32; 3] = [
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
        ffi::SQLITE_CONSTRAINT_ROWID,
        ffi::SQLITE_CONSTRAINT_UNIQUE,
    ];
    match error.code {
        // The last one means that many readers blocked the write-ahead log for ten seconds.
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::SchemaChanged
        | ErrorCode::FileLockingProtocolFailed => ErrorClass::Busy,
        _ if DUPLICATES.contains(&error.extended_code) => ErrorClass::DuplicateKey,
        ErrorCode::DiskFull => ErrorClass::DiskFull,
        ErrorCode::OperationInterrupted => ErrorClass::Interrupted,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure => {
            ErrorClass::ConnectionLost
        }
        ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen => {
            ErrorClass::Refused
        }
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests;
