//! The workloads of SQL engines.

use anyhow::Context;
use engine::{SqlEngine, Table};
use plan::Workload;
use workload::insert::Insert;
use workload::insert::sql::Sql;
use workload::sysbench::{Options, Sysbench};

use super::WorkloadRunner;
use super::insert::InsertRunner;
use super::sysbench::SysbenchRunner;

/// One cell's benchmark on a SQL engine: its tables and what is known about them.
pub enum SqlWorkload {
    Insert(Box<Insert>),
    Sysbench(Box<Sysbench>),
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
            Workload::Kv(_) => anyhow::bail!("the workload `kv` does not run on SQL engines"),
        }
    }

    /// Returns its tables.
    pub fn tables(&self) -> &[Table] {
        match self {
            Self::Insert(insert) => insert.tables(),
            Self::Sysbench(sysbench) => sysbench.tables(),
        }
    }

    /// Returns whether one of its steps fills the tables; else they exist.
    pub fn loads(&self) -> bool {
        match self {
            Self::Insert(_) => true,
            Self::Sysbench(sysbench) => sysbench.plan().loads(),
        }
    }

    /// Takes over existing tables; returns how they differ from the plan.
    pub fn adopt_tables<E: SqlEngine>(&mut self, engine: &E) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Insert(_) => Ok(Vec::new()),
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
        }
    }
}
