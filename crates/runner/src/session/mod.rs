//! The parts that all cells of an invocation share.

mod system_calls;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::SystemClock;
use plan::{Plan, Reuse};

use crate::databases::{Databases, RunDatabases};
use crate::ground::events::Events;
use crate::ground::failure::UsageError;
use crate::ground::lock::{self, Lock};
use crate::ground::program::own_path;
use crate::ground::request::RunRequest;
use crate::ground::stop;
use crate::prepare::data_place::help_of_place;
use crate::prepare::plan_file::PlanFile;
use crate::remote::LoadRanks;

pub(crate) use system_calls::{NO_SYSTEM_CALLS, SystemCalls};

/// The environment of an invocation: its plan, its clock, and its locked data directory.
pub struct RunSession<'a> {
    /// Is told what happens.
    pub events: &'a dyn Events,
    pub file: PlanFile,
    /// The number of this invocation of the run, from 1.
    pub invocation: u32,
    /// The directory in which databases are made.
    pub data_root: PathBuf,
    /// The databases that cells share; `None`: each loads its own.
    pub databases: Option<Databases>,
    /// Removes the databases of this run at its end.
    own_databases: Option<RunDatabases>,
    /// This program, which also acts as the guard of servers.
    pub executable: PathBuf,
    pub clock: SystemClock,
    /// Set when the operator interrupts the run.
    pub stop: Arc<AtomicBool>,
    /// The processes that make the load; `None`: this one does.
    pub ranks: Option<LoadRanks>,
    /// Counts system calls, if the plan says so.
    pub(crate) system_calls: Option<SystemCalls>,
    /// Keeps other runs out of the data directory. A cell's own process needs no lock.
    pub(crate) lock: Option<Lock>,
}

impl<'a> RunSession<'a> {
    /// Creates and locks the data directory of an invocation.
    pub fn start(
        request: &RunRequest,
        events: &'a dyn Events,
        file: PlanFile,
        data_root: &Path,
        results: &Path,
        ranks: Option<LoadRanks>,
    ) -> anyhow::Result<Self> {
        let (clock, stop) = match &ranks {
            Some(ranks) => (ranks.clock(), ranks.stop()),
            None => (SystemClock::begin(), stop::watch()?),
        };

        let data_root = create_data_root(data_root, help_of_place(request, data_root))?;
        let lock = lock::data_root(&data_root, &stop, events)?;

        events.places_known(&data_root, results);
        events.say(&format!("data in {}, results in {}", data_root.display(), results.display()));

        let mut databases = Databases::of_run(&file.plan, request.reuse.as_deref(), &data_root)?;
        if databases.is_some() && ranks.is_some() {
            let text = "with load ranks, each cell loads its own database, whatever `reuse` says";
            events.warn(Some("database::load-ranks"), text);
            databases = None;
        }

        // Only a run that has locked the directory for data may use or remove them.
        let is_own = matches!(file.plan.reuse, Reuse::Run | Reuse::Repeat);
        let own_databases = databases.clone().filter(|_| is_own).map(RunDatabases::begin);

        // Before any server starts, because it raises the limit on open files that servers inherit.
        let system_calls = SystemCalls::of(&file.plan);
        Ok(Self {
            events,
            system_calls,
            file,
            invocation: 0,
            data_root,
            databases,
            own_databases,
            executable: own_path()?,
            clock,
            stop,
            ranks,
            lock: Some(lock),
        })
    }

    /// Returns the session of a cell's own process, which another process has started.
    pub fn of_cell(
        events: &'a dyn Events,
        file: PlanFile,
        invocation: u32,
        data_root: &Path,
        databases: Option<Databases>,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            events,
            system_calls: SystemCalls::of(&file.plan),
            file,
            invocation,
            data_root: data_root.to_owned(),
            databases,
            own_databases: None,
            executable: own_path()?,
            clock: SystemClock::begin(),
            stop,
            ranks: None,
            lock: None,
        })
    }

    /// Removes the databases that only the cells of this run share.
    pub fn remove_databases(&self) {
        if let Some(own) = &self.own_databases {
            own.remove();
        }
    }

    /// Returns the session of one cell of several that take turns, which tells `events`.
    pub fn of_seated_cell(shared: &SharedSession<'_>, events: &'a dyn Events) -> Self {
        Self {
            events,
            system_calls: shared.system_calls.cloned(),
            file: shared.file.clone(),
            invocation: shared.invocation,
            data_root: shared.data_root.to_owned(),
            databases: shared.databases.cloned(),
            own_databases: None,
            executable: shared.executable.to_owned(),
            clock: shared.clock.clone(),
            stop: Arc::clone(shared.stop),
            ranks: None,
            lock: None,
        }
    }

    /// Returns what threads of this process can share.
    pub fn shared(&self) -> SharedSession<'_> {
        SharedSession {
            system_calls: self.system_calls.as_ref(),
            file: &self.file,
            invocation: self.invocation,
            data_root: &self.data_root,
            databases: self.databases.as_ref(),
            executable: &self.executable,
            clock: &self.clock,
            stop: &self.stop,
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.file.plan
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The parts of a session without load ranks, which belong to one thread.
#[derive(Clone, Copy)]
pub struct SharedSession<'a> {
    system_calls: Option<&'a SystemCalls>,
    file: &'a PlanFile,
    invocation: u32,
    data_root: &'a Path,
    databases: Option<&'a Databases>,
    executable: &'a Path,
    clock: &'a SystemClock,
    stop: &'a Arc<AtomicBool>,
}

/// Creates the data directory if needed, and returns its full path.
fn create_data_root(path: &Path, help: &str) -> anyhow::Result<PathBuf> {
    engine::create_enterable(path).map_err(|error| {
        let message = format!("cannot create the data directory: {error}");
        UsageError::new(message, Some(help.into()))
    })?;

    Ok(fs_err::canonicalize(path)?)
}
