//! Engines of others: shared libraries with the C interface of `adapters/assay_engine.h`.
//!
//! An adapter offers keys and values to the load, as RocksDB does. What it does not offer is *not
//! applicable*. `docs/engine.md` says how to write one.

mod ffi;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use words::{Counter, Durability, Setting};

pub use ffi::CustomSession;

use crate::contract::{
    Capabilities, Engine, KeyValueEngine, KeyValueLibrary, Lacking, LibraryConfig, Observer,
    SettleLimits, Settled, Storage, durability_setting,
};
use crate::error::{Error, ErrorClass, SetupError};
use crate::libraries::loaded::Loaded;
use crate::safety::guard::Deadline;
use crate::safety::trial;
use crate::support::waiting::rest;
use ffi::{Api, Database, OpenError};

/// The text of the header, which authors of adapters include.
pub const HEADER: &str = include_str!("../../../../../adapters/assay_engine.h");

/// The folder of the database in a data directory, separate from assay's marker.
const DATABASE: &str = "db";
/// The time that a library may wait before it is asked again, so that a stop is noticed.
const WAIT_MS: u32 = 100;
/// The description of a build of such an engine.
const WANTED: &str =
    "a shared library that includes `assay_engine.h` (`assay conform --header` prints it)";

/// An adapter that stays loaded until the process ends.
#[derive(Debug)]
pub struct CustomLibrary {
    path: PathBuf,
    api: &'static Api,
}

/// The adapter that this process has loaded.
static LOADED: Loaded<CustomLibrary> = Loaded::new();

impl CustomLibrary {
    /// Returns the durabilities that writes may ask for, from little to much.
    pub fn durabilities(&self) -> Vec<Durability> {
        self.api.durabilities()
    }

    fn start(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
        creates: bool,
    ) -> Result<CustomEngine, SetupError> {
        if self.api.durability_at_least(config.durability).is_none() {
            let (version, wanted) = (&self.api.version_text, config.durability.name());
            let offered: Vec<&str> =
                self.api.durabilities().iter().map(|durability| durability.name()).collect();
            return Err(SetupError::config(
                format!("{version} offers no write with the durability `{wanted}`"),
                format!("set `durability` to one of `{}`", offered.join("`, `")),
            ));
        }

        let place = directory.join(DATABASE);
        if creates {
            fs_err::create_dir(&place)?;
        }

        let opened = Database::open(self.api, &place, creates, &config.set);
        let database = opened.map_err(|error| match error {
            OpenError::Option(what) => SetupError::config(
                format!("{}: {what}", self.api.version_text),
                "the adapter's own documentation lists its options",
            ),
            OpenError::Failed(source) => SetupError::Server {
                server: format!("{} at `{}`", self.api.version_text, place.display()),
                help: None,
                source,
            },
        })?;

        Ok(CustomEngine {
            library: Arc::clone(self),
            database: Arc::new(database),
            directory: place,
            set: config.set.clone(),
            durability: config.durability,
        })
    }
}

impl KeyValueLibrary for CustomLibrary {
    type Database = CustomEngine;

    fn load(path: &Path) -> Result<Arc<Self>, SetupError> {
        LOADED.get_or_load(path, WANTED, |path| match Api::load(&path) {
            Ok(api) => Ok(Self { path, api }),
            Err(what) => Err(SetupError::Build {
                build: path.display().to_string(),
                what,
                help: format!("use {WANTED}"),
            }),
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn version_text(&self) -> &str {
        &self.api.version_text
    }

    fn create_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<CustomEngine, SetupError> {
        self.start(directory, config, true)
    }

    fn open_database(
        self: &Arc<Self>,
        directory: &Path,
        config: &LibraryConfig,
    ) -> Result<CustomEngine, SetupError> {
        self.start(directory, config, false)
    }

    fn try_config(self: &Arc<Self>, config: &LibraryConfig) -> Result<Vec<String>, SetupError> {
        let place = trial::Directory::create()?;
        self.create_database(place.path(), config)?.stop()?;
        Ok(Vec::new())
    }

    fn log_path(_: &Path) -> Option<PathBuf> {
        None
    }
}

/// An open database of an adapter.
#[derive(Debug)]
pub struct CustomEngine {
    library: Arc<CustomLibrary>,
    database: Arc<Database>,
    directory: PathBuf,
    set: Vec<(String, String)>,
    durability: Durability,
}

impl CustomEngine {
    /// Makes all writes survive a crash of the machine; `None` if the adapter cannot.
    pub fn sync(&self) -> Option<Result<(), Error>> {
        self.database.sync()
    }

    /// Waits until nothing runs in the background, and adds what it did to `settled`.
    fn wait_until_idle(
        &self,
        settled: &mut Settled,
        limit: &Deadline,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let took = Deadline::after(Duration::MAX);

        let end = loop {
            match self.database.wait_until_idle(WAIT_MS).transpose()? {
                None => break "wait for background work: not applicable",
                Some(true) => break "wait for background work",
                Some(false) if stop.load(Relaxed) => break "wait for background work: stopped",
                Some(false) if limit.has_passed() => {
                    break "wait for background work: not finished in time";
                }
                Some(false) => {}
            }
        };

        settled.add_action(end, took.elapsed());
        if end.ends_with("stopped") || end.ends_with("in time") {
            settled.unfinished.push("background work is not finished".into());
        }

        Ok(())
    }
}

impl KeyValueEngine for CustomEngine {
    type Session = CustomSession;

    fn connect(&self) -> Result<CustomSession, Error> {
        CustomSession::open(&self.database, self.durability)
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(CustomObserver(Arc::clone(&self.database)))
    }

    fn flush(&self) -> Result<(), Error> {
        self.database.flush().unwrap_or(Ok(()))
    }

    fn settle(
        &self,
        empties_first_level: bool,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        let limit = Deadline::after(limits.at_most);
        let mut settled = Settled::default();

        let took = Deadline::after(Duration::MAX);
        match self.database.flush() {
            Some(flushed) => {
                flushed?;
                settled.add_action("flush", took.elapsed());
            }
            None => settled.add_action("flush: not applicable", Duration::ZERO),
        }

        self.wait_until_idle(&mut settled, &limit, stop)?;
        if empties_first_level {
            settled.add_action("compact L0: not applicable", Duration::ZERO);
        }

        settled.actions.extend(rest(&limit, limits.at_least, stop));
        Ok(settled)
    }

    fn lacks(&self) -> Lacking {
        self.library.api.lacks
    }
}

impl Engine for CustomEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_keys(self.library.api.writers_max)
    }

    fn version(&self) -> &str {
        self.library.version_text()
    }

    /// Returns this process. It runs no other database, so its memory and background work belong to
    /// the database and the load.
    fn process_id(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn storage(&self) -> Storage {
        Storage { data: vec![self.directory.clone()], logs: Vec::new() }
    }

    /// Returns the settings that the adapter reports, and those of the config that it does not.
    fn settings(&self) -> Result<Vec<Setting>, Error> {
        let of_config = |name: &str| self.set.iter().any(|(set, _)| set == name);
        let mut settings = vec![durability_setting(self.durability)];

        for (name, value) in self.database.settings() {
            let source = if of_config(&name) { "config" } else { "default" };
            settings.push(Setting { source: Some(source.into()), ..Setting::new(name, value) });
        }

        for (name, value) in &self.set {
            if settings.iter().all(|setting| setting.name != *name) {
                let source = Some("config".into());
                settings.push(Setting { source, ..Setting::new(name, value) });
            }
        }

        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    /// Closes the database. Fails if sessions or observers still use it.
    fn stop(self) -> Result<(), SetupError> {
        let version = self.library.version_text().to_owned();
        let server = format!("{version} at `{}`", self.directory.display());

        let closed = match Arc::try_unwrap(self.database) {
            Ok(database) => database.close(),
            Err(shared) => {
                let users = Arc::strong_count(&shared) - 1;
                let what = format!("cannot be closed: {users} sessions or observers use it");
                Err(Error::new(ErrorClass::Other, what))
            }
        };

        closed.map_err(|source| SetupError::Server { server, source, help: None })
    }
}

/// Reads the adapter's counters.
struct CustomObserver(Arc<Database>);

impl Observer for CustomObserver {
    fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        Ok(self.0.counters())
    }

    fn sample(&mut self) -> Result<Vec<Counter>, Error> {
        Ok(self.0.counters())
    }
}
