//! The Insert Benchmark on RocksDB and what is made from it: the work of MyRocks without its SQL.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::rocksdb::RocksDb;
use engine::{Engine, Error, Observer, SettleLimits, Settled};
use plan::Checks;
use record::{Check, Step, Warning};
use workload::Task;
use workload::insert::{self, Insert};

use super::{Done, Rest, Subject, recorded};
use crate::run::display::Goal;

/// The Insert Benchmark on an engine of keys and values.
pub struct KeyedInsert<'a> {
    database: &'a RocksDb,
    /// It is open for the load alone, and flushed when it is closed: checks may as well read what is flushed.
    is_loading: bool,
    workload: &'a mut Insert,
    plan: &'a plan::Insert,
    clients: u32,
}

impl<'a> KeyedInsert<'a> {
    /// The benchmark, on a database that holds what the workload says.
    pub fn new(
        database: &'a RocksDb,
        is_loading: bool,
        workload: &'a mut Insert,
        plan: &'a plan::Insert,
        clients: u32,
    ) -> Self {
        Self {
            database,
            is_loading,
            workload,
            plan,
            clients,
        }
    }
}

impl Subject for KeyedInsert<'_> {
    type Step = insert::Step;

    fn engine(&self) -> &dyn Engine {
        self.database
    }

    fn observer(&self) -> Result<Box<dyn Observer>, Error> {
        Ok(self.database.observer())
    }

    fn rows(&self) -> u64 {
        self.workload.rows()
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(super::insert::data_bytes(self.workload))
    }

    fn describe(&self, step: &insert::Step, record: &mut Step) {
        super::insert::describe(self.workload, step, self.clients, record);
        let not_applicable = self.workload.keyed_not_applicable();
        if !not_applicable.is_empty() {
            let names = not_applicable.join("`, `");
            record.warnings.push(Warning {
                code: "workload::not-applicable".into(),
                text: format!("`{names}`: not applicable to an engine of keys and values"),
            });
        }
    }

    fn goal(&self, step: &insert::Step) -> Goal {
        super::insert::goal(self.workload, step)
    }

    fn tasks(&mut self, step: &insert::Step) -> anyhow::Result<Vec<Task>> {
        self.workload
            .keyed_connections(step, || Ok(self.database.connect()))
            .context("the step's sessions can't be opened")
    }

    fn apply(&mut self, step: &insert::Step, done: Done<'_>) -> anyhow::Result<Vec<Check>> {
        super::insert::apply(self.workload, self.plan, step, done)
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        if self.is_loading && self.plan.terms.checks != Checks::Off {
            self.database.flush()?;
        }
        let mut session = self.database.connect();
        let mut checks = Vec::new();
        for table in 0..self.workload.tables().len() {
            match self.plan.terms.checks {
                Checks::Off => {}
                Checks::Keys => {
                    let (key_min, key_max) = self.workload.keyed_keys(table, &mut session)?;
                    checks.extend(self.workload.check_keys(table, key_min, key_max));
                }
                Checks::Full => checks.extend(self.workload.check_keyed(table, &mut session)?),
            }
        }
        Ok(checks.into_iter().map(recorded).collect())
    }

    /// As MyRocks is brought to rest: with nothing in the first level.
    fn settle(&self, _: Rest, limits: SettleLimits, stop: &AtomicBool) -> Result<Settled, Error> {
        self.database.settle_and_empty_l0(limits, stop)
    }
}
