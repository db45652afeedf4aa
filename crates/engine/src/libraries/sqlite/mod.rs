//! SQLite: the bundled library, or a shared one of any version. The database is a file, and the
//! config is pragmas.
//!
//! * `ffi/` calls the C API, of which it has a table of functions ([`Library`] says which
//!   library's).
//! * `session.rs` is a connection of the load, and `observer.rs` reads sizes and waits.
//!
//! A client's inserter, deleter and reader are connections to one file, so measurements include
//! waits for the write lock. SQLite's busy handler sleeps up to 100 ms at a time, which would
//! dominate the result. The handler here polls every half millisecond at most, and counts its
//! waits.

mod dialect;
mod failure;
mod ffi;
mod library;
mod notation;
mod observer;
mod session;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use dialect::SqliteDialect;
pub use library::Library;
pub use notation::SqliteNotation;
pub use session::SqliteSession;

use words::Setting;

use crate::contract::notation::Notation;
use crate::contract::{
    Capabilities, Dialect, Engine, Observer, SettleLimits, Settled, SqlEngine, Storage, Table,
};
use crate::error::{Error, SetupError};
use crate::safety::guard::Deadline;
use crate::safety::trial;
use crate::support::waiting;
use ffi::Connection;
use observer::SqliteObserver;

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

/// The prefix of the names under which the options of the library's compilation are reported.
const COMPILE_OPTION: &str = "compile_option.";

/// A pragma that returns nothing, which versions without a list of pragmas seem not to know.
const SILENT_PRAGMA: &str = "case_sensitive_like";

/// A database file and the pragmas of its connections.
#[derive(Debug)]
pub struct Sqlite {
    library: Library,
    file: PathBuf,
    pragmas: Vec<(String, String)>,
}

impl Sqlite {
    /// Creates an empty database in `directory`, which is assay's and empty. Every connection gets
    /// the pragmas `set`.
    ///
    /// # Errors
    /// A pragma that SQLite does not know, a value that it refuses, or a directory that it cannot
    /// write.
    pub fn start(
        library: Library,
        directory: &Path,
        set: &[(String, String)],
    ) -> Result<Self, SetupError> {
        let sqlite = Self::open_with(library, directory, set)?;
        let mut connection = sqlite.connection()?;
        // The first write fixes the page size.
        for sql in ["create table assay(v)", "drop table assay"] {
            connection.execute_text(sql).map_err(|failure| sqlite.failed(failure.into()))?;
        }
        Ok(sqlite)
    }

    /// Opens the database in `directory`, which [`start`](Self::start) created.
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    pub fn open_with(
        library: Library,
        directory: &Path,
        set: &[(String, String)],
    ) -> Result<Self, SetupError> {
        let mut pragmas = set.to_vec();
        pragmas.sort_by_key(|(name, _)| !BEFORE_CONTENT.contains(&name.as_str()));

        if let Some((name, _)) = pragmas.iter().find(|(name, _)| !is_pragma_name(name)) {
            return Err(unknown_pragma(library, name));
        }

        let sqlite = Self { library, file: directory.join("assay.sqlite"), pragmas };
        let mut connection = sqlite.connection()?;

        let known = pragma_names(&mut connection);
        for (name, value) in &sqlite.pragmas {
            if !is_known(&mut connection, &known, name) {
                return Err(unknown_pragma(library, name));
            }
            if let Some(effective) = pragma(&mut connection, name)
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
    pub fn try_config(library: Library, set: &[(String, String)]) -> Result<(), SetupError> {
        let place = trial::Directory::create()?;
        Self::start(library, place.path(), set).map(drop)
    }

    /// Opens a connection with the pragmas of the config.
    fn open(&self) -> Result<Connection, Error> {
        let mut connection = Connection::open(self.library.api, &self.file)?;
        for (name, value) in &self.pragmas {
            let quoted = value.replace('\'', "''");
            connection.execute_text(&format!("pragma {name} = '{quoted}'")).map_err(|failure| {
                let error = Error::from(failure);
                Error { message: format!("pragma {name} = {value}: {}", error.message), ..error }
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

fn unknown_pragma(library: Library, name: &str) -> SetupError {
    SetupError::option(
        name,
        format!("`{name}` is not a pragma of SQLite {}", library.version()),
        "`sqlite3 :memory: 'pragma pragma_list'` lists the pragmas",
    )
}

/// Returns true if a text can be the name of a pragma. Names reach SQLite unquoted.
fn is_pragma_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// Returns the pragmas that the library lists; none if its version has no list.
fn pragma_names(connection: &mut Connection) -> Vec<String> {
    let rows = connection.query("pragma pragma_list").unwrap_or_default();
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

/// Returns true if the library has a pragma. Without a list, that is one that returns something.
fn is_known(connection: &mut Connection, listed: &[String], name: &str) -> bool {
    if listed.is_empty() {
        let columns = connection.column_count(&format!("pragma {name}"));
        return name == SILENT_PRAGMA || columns.is_ok_and(|count| count > 0);
    }
    listed.iter().any(|known| known == name)
}

/// Returns the value of a pragma as text; `None` if it has none.
fn pragma(connection: &mut Connection, name: &str) -> Option<String> {
    let rows = connection.query(&format!("pragma {name}")).ok()?;
    let first_row = rows.into_iter().next()?;
    Some(first_row.into_iter().next()?.unwrap_or_default())
}

/// Returns the options that the library was compiled with, one setting for each.
fn compile_options(library: Library) -> impl Iterator<Item = Setting> {
    library.api.compile_options().into_iter().map(|option| {
        // An option without a value is on.
        let (name, value) = option.split_once('=').unwrap_or((&option, "on"));
        Setting {
            source: Some("build".into()),
            ..Setting::new(format!("{COMPILE_OPTION}{name}"), value)
        }
    })
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
        self.library.version()
    }

    fn storage(&self) -> Storage {
        let mut shm = self.file.clone().into_os_string();
        shm.push("-shm");
        Storage { data: vec![self.file.clone()], logs: vec![self.wal(), shm.into()] }
    }

    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let mut connection = self.open()?;
        let mut settings: Vec<Setting> = compile_options(self.library).collect();

        for name in REPORTED {
            let Some(value) = pragma(&mut connection, name) else {
                continue;
            };

            let is_set = self.pragmas.iter().any(|(pragma, _)| pragma == name);
            settings.push(Setting {
                source: Some(if is_set { "config" } else { "default" }.into()),
                ..Setting::new(name, value)
            });
        }

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
        let mut connection = self.open()?;
        let observer = SqliteObserver::new(self.open()?, self.wal());
        let mut settled =
            Settled { pending_before: vec![observer.wal_file_bytes()], ..Settled::default() };

        for table in tables {
            let (analyze, from) = (format!("analyze {}", table.name), began.elapsed());
            first_integer(&mut connection, &analyze)?;
            settled.add_action(analyze, began.elapsed().saturating_sub(from));
        }

        // Waits here for connections that use the log, because the handler would wait longer than
        // settling may take.
        connection.stop_waiting_for_locks();
        let (checkpoint, from) = ("pragma wal_checkpoint(truncate)", began.elapsed());
        // The first row says whether something blocked the checkpoint.
        while first_integer(&mut connection, checkpoint)? != 0 {
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
fn first_integer(connection: &mut Connection, sql: &str) -> Result<i64, Error> {
    Ok(connection.execute_text(sql)?.value.unwrap_or(0))
}

#[cfg(test)]
mod tests;
