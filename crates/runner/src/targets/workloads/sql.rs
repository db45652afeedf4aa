//! The workloads of SQL engines.

use anyhow::Context;
use engine::{Dialect, Session as _, SqlEngine, Table};
use load::{Clock as _, SystemClock};
use plan::Workload;
use workload::insert::Insert;
use workload::insert::sql::Sql;
use workload::sysbench::{Options, Sysbench};
use workload::transactions::{Procedure, Transactions};

use super::WorkloadRunner;
use super::insert::InsertRunner;
use super::sysbench::SysbenchRunner;
use super::transactions::TransactionsRunner;

/// One cell's benchmark on a SQL engine: its tables and what is known about them.
pub enum SqlWorkload {
    Insert(Box<Insert>),
    Sysbench(Box<Sysbench>),
    Transactions(Box<Transactions>),
}

impl SqlWorkload {
    /// Returns a benchmark whose tables don't exist yet.
    pub fn new(plan: &Workload, options: Options) -> anyhow::Result<Self> {
        match plan {
            Workload::Insert(plan) => {
                let mut insert = Insert::new(plan, options.clients, options.seed);
                insert.set_share(options.share);
                Ok(Self::Insert(Box::new(insert)))
            }
            Workload::Sysbench(plan) => Ok(Self::Sysbench(Box::new(Sysbench::new(plan, options)))),
            Workload::Transactions(plan) => {
                Ok(Self::Transactions(Box::new(Transactions::new(plan, options))))
            }
            Workload::Kv(_) => anyhow::bail!("the workload `kv` does not run on SQL engines"),
        }
    }

    /// Returns the workload's tables.
    pub fn tables(&self) -> &[Table] {
        match self {
            Self::Insert(insert) => insert.tables(),
            Self::Sysbench(sysbench) => sysbench.tables(),
            Self::Transactions(transactions) => transactions.tables(),
        }
    }

    /// Returns the procedures that its steps call.
    pub fn procedures(&self, dialect: &dyn Dialect) -> Vec<Procedure> {
        match self {
            Self::Transactions(transactions) => transactions.procedures(dialect),
            Self::Insert(_) | Self::Sysbench(_) => Vec::new(),
        }
    }

    /// Returns whether one of its steps fills the tables; else they exist.
    pub fn loads(&self) -> bool {
        match self {
            Self::Insert(_) | Self::Transactions(_) => true,
            Self::Sysbench(sysbench) => sysbench.plan().loads(),
        }
    }

    /// Takes over existing tables; returns how they differ from the plan.
    pub fn adopt_tables<E: SqlEngine>(&mut self, engine: &E) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Insert(_) | Self::Transactions(_) => Ok(Vec::new()),
            Self::Sysbench(sysbench) => {
                sysbench.adopt_tables(engine).context("the existing tables do not fit the plan")
            }
        }
    }

    /// Returns the runner of its steps.
    pub fn runner<'a, E: SqlEngine>(&'a mut self, engine: &'a E) -> Box<dyn WorkloadRunner + 'a> {
        match self {
            Self::Insert(workload) => {
                Box::new(InsertRunner { database: Box::new(Sql(engine)), workload })
            }
            Self::Sysbench(workload) => Box::new(SysbenchRunner { engine, workload }),
            Self::Transactions(workload) => Box::new(TransactionsRunner { engine, workload }),
        }
    }
}

/// A SQL engine to which a load rank is connected.
pub trait LoadEngine {
    /// Returns the maximum number of connections that can write at once.
    fn writers_max(&self) -> u32;

    /// Takes over existing tables.
    fn adopt_tables(&self, workload: &mut SqlWorkload) -> anyhow::Result<()>;

    /// Returns the runner of a workload's steps.
    fn runner<'a>(&'a self, workload: &'a mut SqlWorkload) -> Box<dyn WorkloadRunner + 'a>;

    /// Returns the shortest of several round trips of a query that does nothing.
    fn round_trip_ns(&self, clock: &SystemClock) -> anyhow::Result<u64>;
}

/// Queries that measure the round trip to the server, of which the shortest counts.
const ROUND_TRIPS: usize = 20;

impl<E: SqlEngine> LoadEngine for E {
    fn writers_max(&self) -> u32 {
        self.capabilities().writers_max
    }

    fn adopt_tables(&self, workload: &mut SqlWorkload) -> anyhow::Result<()> {
        workload.adopt_tables(self).map(drop)
    }

    fn runner<'a>(&'a self, workload: &'a mut SqlWorkload) -> Box<dyn WorkloadRunner + 'a> {
        workload.runner(self)
    }

    fn round_trip_ns(&self, clock: &SystemClock) -> anyhow::Result<u64> {
        let mut session = self.connect()?;

        let mut shortest = u64::MAX;
        for _ in 0..ROUND_TRIPS {
            let sent_at = clock.now();
            session.query("select 1")?;
            shortest = shortest.min(clock.now() - sent_at);
        }

        Ok(shortest)
    }
}
