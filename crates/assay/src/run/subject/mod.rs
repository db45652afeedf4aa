//! A cell's workload on its engine, as its steps ask it: what the workloads have in common.

pub mod insert;
pub mod kv;
pub mod sysbench;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::rocksdb::RocksDb;
use engine::{Engine, Error, Observer, SettleLimits, Settled, SqlEngine, Table};
use plan::Settle;
use record::{Ops, Step};
use workload::{Accounts, Check, Task};

/// What all connections of a step did, by the kind of operation.
pub type Totals = BTreeMap<&'static str, Ops>;

/// An engine that is up, between and beside the operations of a step.
pub trait StepEngine {
    /// The engine itself.
    fn engine(&self) -> &dyn Engine;

    /// Opens what reads the counters of `tables` and of the whole engine.
    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error>;

    /// Brings the engine to rest.
    fn settle(
        &self,
        tables: &[Table],
        settle: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error>;

    /// Called before the data is checked.
    fn before_check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An engine that speaks SQL.
pub struct Sql<'a, E>(pub &'a E);

impl<E: SqlEngine> StepEngine for Sql<'_, E> {
    fn engine(&self) -> &dyn Engine {
        self.0
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        self.0.observer(tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        _: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        self.0.settle(tables, limits, stop)
    }
}

/// A database of RocksDB.
pub struct OpenRocks<'a> {
    pub database: &'a RocksDb,
    /// It is open for the load alone, and flushed when it is closed: checks may as well read what is flushed.
    pub is_loading: bool,
}

impl StepEngine for OpenRocks<'_> {
    fn engine(&self) -> &dyn Engine {
        self.database
    }

    fn observer(&self, _: &[Table]) -> Result<Box<dyn Observer>, Error> {
        Ok(self.database.observer())
    }

    fn settle(
        &self,
        _: &[Table],
        settle: Settle,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        match settle {
            Settle::Pending => self.database.settle(limits, stop),
            Settle::EmptyLevel0 => self.database.settle_and_empty_l0(limits, stop),
        }
    }

    fn before_check(&self) -> Result<(), Error> {
        match self.is_loading {
            true => self.database.flush(),
            false => Ok(()),
        }
    }
}

/// A workload on an engine. Steps are numbered as in the plan, from 0.
pub trait WorkloadRunner {
    /// Its tables, where it has any.
    fn tables(&self) -> &[Table];

    /// Rows or keys that should be there now.
    fn rows(&self) -> u64;

    /// Bytes of user data that should be there now, on average over what is random.
    fn data_bytes(&self) -> u64;

    /// Says in the record what a step is.
    fn describe(&self, step: usize, record: &mut Step);

    /// Returns how many rows a step writes that is given no time.
    fn goal(&self, step: usize) -> u64;

    /// Opens the connections of a step, or of its warm-up.
    fn tasks(&mut self, step: usize, is_warm_up: bool) -> anyhow::Result<Vec<Task>>;

    /// Takes in what a step or its warm-up did, and says what is to be thought of what it read.
    fn apply(&mut self, step: usize, accounts: &Accounts, totals: &Totals) -> Vec<Check>;

    /// Compares what the engine holds with what the workload knows it did, as far as the plan says, which is not
    /// [`plan::Checks::Off`].
    fn check(&self) -> anyhow::Result<Vec<Check>>;
}

/// Returns whether no operation of that kind failed.
fn none_failed(totals: &Totals, kind: &str) -> bool {
    totals.get(kind).is_none_or(|totals| totals.failed == 0)
}

/// Finds the server threads of tasks, where each is a thread or a child of the server's process on this host. In a
/// container, or behind a proxy, the server names a number that means something else here.
pub fn find_server_threads(engine: &dyn Engine, tasks: &mut [Task]) {
    let Some(server) = engine.process_id() else {
        return;
    };
    for task in tasks {
        let tid = task.program.server_thread();
        task.server_thread = tid.filter(|tid| is_thread_of(server, *tid));
    }
}

fn is_thread_of(server: u32, tid: u32) -> bool {
    Path::new(&format!("/proc/{server}/task/{tid}")).exists()
        || probe::state_and_parent(tid).is_some_and(|(_, parent)| parent == server)
}
