//! A loaded adapter and its database.

#![expect(
    unsafe_code,
    reason = "this calls functions of a library, which the compiler cannot check"
)]

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;

use words::{Counter, CounterKind, Durability, Role};

use super::abi::{self, CounterValue, ErrorText, OptionText, RawDatabase, RawSession, Table};
use crate::contract::Lacking;
use crate::error::{Error, ErrorClass};
use crate::libraries::dynamic;

/// The most counters or settings that are read.
const REPORTED_MAX: usize = 1024;

/// The functions of an adapter, which is never unloaded: its threads may remain.
#[derive(Debug)]
pub(in crate::libraries::custom) struct Api {
    /// `LMDB 0.9.31`.
    pub(in crate::libraries::custom) version_text: String,
    /// The operations that its sessions lack.
    pub(in crate::libraries::custom) lacks: Lacking,
    pub(in crate::libraries::custom) writers_max: u32,
    pub(super) write: abi::Write,
    pub(super) get: abi::Get,
    pub(super) seek: abi::Seek,
    pub(super) next: abi::Next,
    pub(super) release: unsafe extern "C" fn(RawSession),
    pub(super) get_several: Option<abi::GetSeveral>,
    pub(super) enter_thread: Option<unsafe extern "C" fn(RawSession)>,
    /// All functions; those of the session are not null.
    table: Table,
}

// SAFETY: the functions may be called by any thread, and the texts never change: the header demands
// both.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl Api {
    /// Loads an adapter.
    ///
    /// # Errors
    /// The message of the dynamic loader, or what is wrong with the adapter's table.
    pub(in crate::libraries::custom) fn load(path: &Path) -> Result<&'static Self, String> {
        let library = dynamic::open(path)?;

        type Entry = unsafe extern "C" fn() -> *const Table;

        // SAFETY: the header gives the type of the only function with this name.
        let entry = unsafe { library.get::<Entry>(abi::ENTRY.as_bytes()) };
        let Ok(entry) = entry else {
            return Err(format!(
                "the library does not export `{}`, so it is not an adapter",
                abi::ENTRY
            ));
        };

        // SAFETY: the function takes nothing, and returns a table that never changes.
        let start = unsafe { entry() };
        if start.is_null() {
            return Err(format!("`{}` returns no table", abi::ENTRY));
        }

        // SAFETY: the table begins with its size.
        let size = unsafe { start.cast::<usize>().read() };
        if size < size_of::<Table>() {
            let needed = size_of::<Table>();
            return Err(format!(
                "its table has {size} bytes instead of {needed}: compile it again"
            ));
        }

        // SAFETY: the table is at least as long as ours, and of the types in the header.
        let table = unsafe { start.read() };

        let api = Self::of(table)?;
        std::mem::forget(library);
        Ok(Box::leak(Box::new(api)))
    }

    /// Checks a table, and takes its functions.
    fn of(table: Table) -> Result<Self, String> {
        let write = required("write", table.write)?;
        let get = required("get", table.get)?;
        let seek = required("seek", table.seek)?;
        let next = required("next", table.next)?;
        let release = required("release", table.release)?;

        // These are called rarely, from the table.
        required("open", table.open)?;
        required("close", table.close)?;
        required("open_session", table.open_session)?;
        required("close_session", table.close_session)?;

        check_claims(&table)?;

        // SAFETY: the header demands texts with a terminating zero, that never change.
        let (name, version) = unsafe { (text(table.name), text(table.version)) };
        let (Some(name), Some(version)) = (name, version) else {
            return Err("its table has no name or no version".into());
        };

        Ok(Self {
            version_text: format!("{name} {version}"),
            lacks: lacks_of(&table),
            writers_max: if table.writers_max == 0 { u32::MAX } else { table.writers_max },
            write,
            get,
            seek,
            next,
            release,
            get_several: table.get_several,
            enter_thread: table.enter_thread,
            table,
        })
    }

    /// Returns the weakest durability of the adapter that is at least the wanted one; `None` if
    /// all are weaker.
    pub(in crate::libraries::custom) fn durability_at_least(
        &self,
        wanted: Durability,
    ) -> Option<u32> {
        let all = [abi::SURVIVES_NOTHING, abi::SURVIVES_PROCESS, abi::SURVIVES_MACHINE];
        let first = match wanted {
            Durability::None => 0,
            Durability::Process => 1,
            Durability::Machine => 2,
        };
        all[first..].iter().copied().find(|durability| self.table.durabilities & durability != 0)
    }

    /// Returns the names of the durabilities that the adapter claims.
    pub(in crate::libraries::custom) fn durabilities(&self) -> Vec<Durability> {
        let claims = |bit: u32| self.table.durabilities & bit != 0;
        let all = [
            (Durability::None, abi::SURVIVES_NOTHING),
            (Durability::Process, abi::SURVIVES_PROCESS),
            (Durability::Machine, abi::SURVIVES_MACHINE),
        ];
        all.iter().filter(|(_, bit)| claims(*bit)).map(|(durability, _)| *durability).collect()
    }
}

/// Returns a function that a table must have.
fn required<F>(name: &str, function: Option<F>) -> Result<F, String> {
    function.ok_or_else(|| format!("its table lacks the function `{name}`"))
}

/// Checks that a table claims only durabilities and features that exist.
fn check_claims(table: &Table) -> Result<(), String> {
    let durabilities = abi::SURVIVES_NOTHING | abi::SURVIVES_PROCESS | abi::SURVIVES_MACHINE;
    if table.durabilities == 0 || table.durabilities & !durabilities != 0 {
        return Err(format!(
            "its durabilities are {}, not a sum of 1, 2 and 4, which name what a write survives",
            table.durabilities
        ));
    }

    let features = abi::ATOMIC_BATCHES | abi::REVERSE_SCANS;
    if table.features & !features != 0 {
        return Err(format!("its features are {}, not a sum of 1 and 2", table.features));
    }
    Ok(())
}

/// Returns the operations that an adapter lacks.
fn lacks_of(table: &Table) -> Lacking {
    Lacking {
        batches: table.features & abi::ATOMIC_BATCHES == 0,
        reverse_scans: table.features & abi::REVERSE_SCANS == 0,
        reads_of_several: table.get_several.is_none(),
        concurrent_writers: table.writers_max == 1,
        synced_writes: table.durabilities & abi::SURVIVES_MACHINE == 0,

        // The interface of adapters has none of these.
        merges: true,
        range_deletions: true,
        ingestion: true,
        transactions: true,
        isolation: true,
    }
}

/// An open database, which is closed on drop.
#[derive(Debug)]
pub(in crate::libraries::custom) struct Database {
    pub(super) api: &'static Api,
    raw: RawDatabase,
}

// SAFETY: the header demands that any number of threads may use a database, and that it is closed
// by any of them when it has no session left: sessions hold it by a shared pointer.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // An error cannot be returned here; `close` returns it.
        let _ = self.close_once();
    }
}

/// Why a database was not opened.
pub(in crate::libraries::custom) enum OpenError {
    /// An option is unknown, or its value is refused.
    Option(String),
    Failed(Error),
}

impl Database {
    /// Opens or creates a database.
    pub(in crate::libraries::custom) fn open(
        api: &'static Api,
        directory: &Path,
        creates: bool,
        options: &[(String, String)],
    ) -> Result<Self, OpenError> {
        let terminated = |text: &str| {
            let error = |_| OpenError::Option(format!("`{}` contains a zero", text.escape_debug()));
            CString::new(text).map_err(error)
        };
        let path = terminated(&directory.to_string_lossy())?;
        let mut texts = Vec::new();

        for (name, value) in options {
            texts.push((terminated(name)?, terminated(value)?));
        }

        let lent: Vec<OptionText> = texts
            .iter()
            .map(|(name, value)| OptionText { name: name.as_ptr(), value: value.as_ptr() })
            .collect();

        let Some(open) = api.table.open else { return Err(missing("open").into()) };
        let mut raw = null_mut();
        let mut error = ErrorText::new();

        let (start, count) = (lent.as_ptr(), lent.len());

        // SAFETY: all that is passed is lent for the call; there are `count` options.
        let result = unsafe {
            open(path.as_ptr(), creates.into(), start, count, &raw mut raw, &raw mut error)
        };

        match result {
            abi::OK if raw.is_null() => {
                Err(Error::new(ErrorClass::Protocol, "`open` returned no database").into())
            }
            abi::OK => Ok(Self { api, raw }),
            abi::BAD_OPTION => Err(OpenError::Option(error.text())),
            other => Err(failure("open", other, &error).into()),
        }
    }

    /// Closes the database.
    pub(in crate::libraries::custom) fn close(mut self) -> Result<(), Error> {
        self.close_once()
    }

    fn close_once(&mut self) -> Result<(), Error> {
        let (Some(close), false) = (self.api.table.close, self.raw.is_null()) else {
            return Ok(());
        };
        let mut error = ErrorText::new();
        let raw = std::mem::replace(&mut self.raw, null_mut());
        // SAFETY: the library gave the database, which is given back once and has no session.
        let result = unsafe { close(raw, &raw mut error) };
        checked("close", result, &error)
    }

    /// Opens a session of the library.
    pub(super) fn open_session(&self) -> Result<RawSession, Error> {
        let Some(open) = self.api.table.open_session else {
            return Err(missing("open_session"));
        };

        let mut session = null_mut();
        let mut error = ErrorText::new();

        // SAFETY: the database is open, and what is returned is ours.
        let result = unsafe { open(self.raw, &raw mut session, &raw mut error) };
        checked("open_session", result, &error)?;

        if session.is_null() {
            return Err(Error::new(ErrorClass::Protocol, "`open_session` returned no session"));
        }

        Ok(session)
    }

    /// Closes a session of the library.
    ///
    /// # Safety
    /// The session must be of this database, and not be used or closed again.
    pub(super) unsafe fn close_session(&self, session: RawSession) {
        if let Some(close) = self.api.table.close_session {
            // SAFETY: promised by the caller.
            unsafe { close(session) }
        }
    }

    /// Makes all writes durable; `None` if the library cannot.
    pub(in crate::libraries::custom) fn sync(&self) -> Option<Result<(), Error>> {
        Some(self.call("sync", self.api.table.sync?))
    }

    /// Writes what is only in memory to files; `None` if the library cannot.
    pub(in crate::libraries::custom) fn flush(&self) -> Option<Result<(), Error>> {
        Some(self.call("flush", self.api.table.flush?))
    }

    fn call(
        &self,
        name: &str,
        function: unsafe extern "C" fn(RawDatabase, *mut ErrorText) -> std::ffi::c_int,
    ) -> Result<(), Error> {
        let mut error = ErrorText::new();
        // SAFETY: the database is open.
        let result = unsafe { function(self.raw, &raw mut error) };
        checked(name, result, &error)
    }

    /// Waits up to a time until nothing runs in the background. Returns whether that is so; `None`
    /// if the library cannot tell.
    pub(in crate::libraries::custom) fn wait_until_idle(
        &self,
        milliseconds: u32,
    ) -> Option<Result<bool, Error>> {
        let wait = self.api.table.wait_until_idle?;

        let mut error = ErrorText::new();
        // SAFETY: the database is open.
        let result = unsafe { wait(self.raw, milliseconds, &raw mut error) };

        Some(match result {
            abi::OK => Ok(true),
            abi::BUSY => Ok(false),
            other => Err(failure("wait_until_idle", other, &error)),
        })
    }

    /// Reads the counters.
    pub(in crate::libraries::custom) fn counters(&self) -> Vec<Counter> {
        let Some(read) = self.api.table.counters else {
            return Vec::new();
        };

        let mut values = vec![CounterValue::MISSING; REPORTED_MAX];
        // SAFETY: there are as many places as is said.
        let count = unsafe { read(self.raw, values.as_mut_ptr(), values.len()) };
        values.truncate(count);

        let counter = |value: CounterValue| {
            // SAFETY: the texts stay valid until the next call with this database, which another
            // thread may make only for other counters' values: the header demands it.
            let (name, role) = unsafe { (text(value.name)?, text(value.role)) };
            let kind =
                if value.is_cumulative == 0 { CounterKind::Gauge } else { CounterKind::Cumulative };
            let role = role.as_deref().map(role_named);
            Some(Counter::new(name, value.value, kind).with_role(role))
        };
        values.into_iter().filter_map(counter).collect()
    }

    /// Reads the settings in effect.
    pub(in crate::libraries::custom) fn settings(&self) -> Vec<(String, String)> {
        let Some(read) = self.api.table.settings else {
            return Vec::new();
        };

        let mut values = vec![OptionText::MISSING; REPORTED_MAX];
        // SAFETY: there are as many places as is said.
        let count = unsafe { read(self.raw, values.as_mut_ptr(), values.len()) };
        values.truncate(count);

        // SAFETY: the texts stay valid until the next call with this database.
        let setting = |value: OptionText| unsafe { Some((text(value.name)?, text(value.value)?)) };
        values.into_iter().filter_map(setting).collect()
    }
}

/// Returns the role with a name in records.
fn role_named(name: &str) -> Role {
    serde_json::from_value(name.into()).unwrap_or(Role::Unknown)
}

/// Copies a text.
///
/// # Safety
/// `start` must be null or a text with a terminating zero.
unsafe fn text(start: *const c_char) -> Option<String> {
    if start.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(start) };
    Some(text.to_string_lossy().into_owned())
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorClass::Protocol, format!("the adapter's table lacks the function `{name}`"))
}

pub(super) fn checked(name: &str, result: std::ffi::c_int, error: &ErrorText) -> Result<(), Error> {
    match result {
        abi::OK => Ok(()),
        other => Err(failure(name, other, error)),
    }
}

/// Returns the error of a function that did not return [`abi::OK`].
#[cold]
pub(super) fn failure(name: &str, result: std::ffi::c_int, error: &ErrorText) -> Error {
    let text = error.text();
    let text = if text.is_empty() { "no reason is given".to_owned() } else { text };

    let (class, what) = match result {
        abi::BUSY => (ErrorClass::Busy, text),
        abi::FULL => (ErrorClass::DiskFull, text),
        abi::FAILED | abi::BAD_OPTION => (ErrorClass::Other, text),
        abi::NOT_FOUND => (ErrorClass::Protocol, "returned ASSAY_NOT_FOUND".to_owned()),
        other => (ErrorClass::Protocol, format!("returned {other}, which is not a result: {text}")),
    };

    Error::new(class, format!("`{name}`: {what}"))
}
