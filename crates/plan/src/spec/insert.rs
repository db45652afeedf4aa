//! The Insert Benchmark in a plan.

use std::time::Duration;

use words::{IndexStatements, named_enum};

use super::{Settle, StepPolicy, StepRun};

/// The parameters of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The steps in their order.
    pub steps: Vec<InsertStep>,
    /// Rows per table loaded by `l.i0`.
    pub initial_rows: u64,
    /// Every insert comes with a delete of as many rows, the oldest ones.
    pub delete_per_insert: bool,
    /// The number of statements in which `l.x` creates the indexes of a table.
    pub index_statements: IndexStatements,
    /// `l.i0` uses the engine's bulk load, if it has one.
    pub bulk_load: bool,
    /// One table for each client, or one for all.
    pub tables: Tables,
    /// Range partitions per table; 0 for an unpartitioned table.
    pub partitions: u32,
    /// The time for which each client's extra connection holds its transaction; `None` for no
    /// extra connection.
    pub long_transaction: Option<Duration>,
    /// The definition of the secondary indexes.
    pub indexes: IndexSet,
    /// The number of secondary indexes: the first ones of [`INDEX_NAMES`].
    pub secondary_indexes: u32,
    /// The shortest and longest value of the column `data`, in characters.
    pub data_length: (u32, u32),
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

named_enum! {
    /// One table for each client, or one for all.
    pub enum Tables {
        /// `pi1` ... `piN`
        PerClient = "per-client",
        /// `pi1` alone
        Shared = "shared",
    }
}

named_enum! {
    /// The definition of the secondary indexes.
    pub enum IndexSet {
        /// Since December 2023.
        Current = "current",
        /// Before December 2023.
        Before2023Dec = "before-2023-12",
    }
}

/// The secondary indexes of the Insert Benchmark. Each has its own range query.
pub const INDEX_NAMES: [&str; 3] = ["marketsegment", "registersegment", "pdc"];

/// One step of the Insert Benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStep {
    /// The position in the list of steps, from 0.
    pub number: u32,
    /// The name, unique within the plan: `qr100`, `qr100.2`.
    pub name: String,
    /// The work.
    pub kind: InsertStepKind,
    /// Rows per commit.
    pub rows_per_commit: u32,
}

impl InsertStep {
    pub(super) fn run(&self) -> StepRun<'_> {
        match self.kind {
            // MyRocks and RocksDB settle in the same way.
            InsertStepKind::Settle => StepRun::settling(&self.name, Settle::EmptyLevel0),
            InsertStepKind::Query { time, .. }
            | InsertStepKind::Write { until: WriteEnd::Time(time), .. } => {
                StepRun::measured(&self.name, Some(time))
            }
            _ => StepRun::measured(&self.name, None),
        }
    }
}

/// The work of a step of the Insert Benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InsertStepKind {
    /// `l.i0`: inserts without deletes.
    Load {
        /// Rows per table.
        rows: u64,
    },
    /// `l.x`: creates the secondary indexes.
    Index {
        /// Rows per table inserted first.
        rows: u64,
    },
    /// `l.i1`, `l.i2`: inserts, with deletes if the plan has them.
    Write {
        /// The end.
        until: WriteEnd,
        /// Rows per second and client; `None` for as fast as possible.
        rate: Option<f64>,
    },
    /// `qrN`, `qpN`: queries as fast as possible, while each client inserts (and deletes) N rows
    /// per second.
    Query {
        /// The kind of queries.
        query: Query,
        /// Rows per second and client.
        rate: f64,
        /// The duration.
        time: Duration,
    },
    /// `settle`
    Settle,
}

/// The end of a step that writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteEnd {
    /// After this many rows per table.
    Rows(u64),
    /// After this time.
    Time(Duration),
}

impl InsertStepKind {
    /// Returns whether the step loads the tables.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Load { .. })
    }
}

impl Insert {
    /// Returns the number of rows that each table gets in all steps together, except in steps that
    /// write for a time.
    pub fn rows_per_table(&self, clients: u32) -> u64 {
        let writers = match self.tables {
            Tables::Shared => f64::from(clients),
            Tables::PerClient => 1.0,
        };

        let rows = |step: &InsertStep| match step.kind {
            InsertStepKind::Load { rows }
            | InsertStepKind::Index { rows }
            | InsertStepKind::Write { until: WriteEnd::Rows(rows), .. } => rows,
            InsertStepKind::Query { rate, time, .. } => {
                (rate * time.as_secs_f64() * writers) as u64
            }
            InsertStepKind::Write { .. } | InsertStepKind::Settle => 0,
        };

        self.steps.iter().map(rows).sum()
    }
}

/// The queries of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Scans of secondary indexes.
    Range,
    /// Lookups by primary key.
    Point,
}
