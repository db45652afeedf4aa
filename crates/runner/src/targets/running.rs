//! A running target, as its cell sees it.

use std::ops::Range;
use std::path::PathBuf;

use engine::{DataDir, Engine, SetupError};
use record::Status;

use super::site::CellSite;
use super::workloads::{StepEngine, WorkloadRunner};

/// A target that runs: a server with its replicas, a library with its database, or an engine that
/// is part of assay. [`life`](crate::cells::life) calls these methods in their order here.
pub trait RunningTarget {
    /// Returns what the target leaves on disk.
    fn leftovers(&self) -> Leftovers;

    /// Returns the engine.
    fn engine(&self) -> &dyn Engine;

    /// Gets ready for tables. The settings of the engine are recorded by now.
    ///
    /// # Errors
    /// The reason why the cell cannot be measured. Nothing of this is left then.
    fn prepare(&mut self, _cell: &mut CellSite<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Creates the tables, or finds those that exist.
    ///
    /// # Errors
    /// The reason why the cell cannot be measured. Some tables may exist then.
    fn make_tables(&mut self, _cell: &mut CellSite<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the steps to run.
    ///
    /// # Errors
    /// The engine does not run the workload.
    fn steps(&mut self, cell: &CellSite<'_>) -> anyhow::Result<TargetSteps<'_>>;

    /// Drops the tables in a server that assay did not start, after steps that ended so.
    ///
    /// # Errors
    /// Tables are left.
    fn drop_tables(
        &mut self,
        _cell: &mut CellSite<'_>,
        _ended: Option<Status>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// Stops the replicas, after steps that ended so.
    ///
    /// # Errors
    /// A replica does not stop cleanly.
    fn stop_replicas(
        &mut self,
        _cell: &mut CellSite<'_>,
        _ended: Option<Status>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// Stops the target, after steps that ended so. One whose data nobody needs is given little time.
    fn stop(self: Box<Self>, ended: Option<Status>) -> Stopped;
}

/// Steps of a cell on a target.
pub struct TargetSteps<'a> {
    /// The engine.
    pub engine: Box<dyn StepEngine + 'a>,
    /// The workload on it.
    pub runner: Box<dyn WorkloadRunner + 'a>,
    /// The numbers of the steps, from 0.
    pub part: Range<usize>,
}

/// A target that was stopped.
pub struct Stopped {
    /// The outcome: an error if the target did not stop cleanly.
    pub result: Result<(), SetupError>,
    /// The way to open the target again for further steps.
    pub next: Option<Box<dyn NextOpening>>,
}

/// A stopped target that is opened again, since its load had options of its own.
pub trait NextOpening {
    /// Opens the database again.
    ///
    /// # Errors
    /// The database cannot be opened.
    fn open(self: Box<Self>, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>>;
}

/// The directories of a target, which are removed unless databases are kept.
#[derive(Clone, Default)]
pub struct Leftovers {
    /// The database.
    pub data_dir: Option<DataDir>,
    /// The directory in it with the files that a copy of the database needs.
    pub data: Option<PathBuf>,
    /// The homes of replicas.
    pub replica_homes: Vec<PathBuf>,
}

impl Leftovers {
    /// Returns a database without replicas.
    pub fn database(data_dir: DataDir, data: PathBuf) -> Self {
        Self { data_dir: Some(data_dir), data: Some(data), replica_homes: Vec::new() }
    }
}
