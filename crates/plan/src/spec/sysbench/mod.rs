//! The sysbench microbenchmarks in a plan.

mod expression;
mod test;

use std::time::Duration;

pub use self::expression::{Expression, Operator, Slot};
pub use self::test::{
    Block, Distribution, Draw, Effect, ExpectedRows, Group, Piece, TableChoice, Test, TestStatement,
};
use super::{Settle, StepPolicy, StepRun, TestRate};

/// The parameters of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Sysbench {
    /// The steps in their order.
    pub steps: Vec<SysbenchStep>,
    /// The number of tables: `sbtest1` ... `sbtestN`.
    pub tables: u32,
    /// Rows per table after `load`.
    pub rows: u64,
    /// Connections that load.
    pub load_connections: u32,
    /// Rows per statement of the load.
    pub load_batch: u32,
    /// There is an index on `k`.
    pub secondary_index: bool,
    /// `id` is the primary key; otherwise it has a secondary index.
    pub primary_key: bool,
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

impl Sysbench {
    /// Returns whether the plan loads the rows. If not, the tables exist already, from `sysbench
    /// prepare` or an earlier run.
    pub fn loads(&self) -> bool {
        let loads = |step: &SysbenchStep| step.kind == SysbenchStepKind::Load;
        self.steps.iter().any(loads)
    }

    /// Returns whether the plan creates the indexes.
    pub fn makes_indexes(&self) -> bool {
        let makes = |step: &SysbenchStep| step.kind == SysbenchStepKind::Index;
        self.steps.iter().any(makes)
    }
}

/// One step of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchStep {
    /// The name, unique within the plan: `read-only.range10.pre`.
    pub name: String,
    /// The work.
    pub kind: SysbenchStepKind,
}

impl SysbenchStep {
    pub(super) fn run(&self) -> StepRun<'_> {
        match &self.kind {
            SysbenchStepKind::Load | SysbenchStepKind::Index => StepRun::measured(&self.name, None),
            SysbenchStepKind::Settle => StepRun::settling(&self.name, Settle::Pending),
            SysbenchStepKind::Run { time, warmup, reported, .. } => StepRun {
                warmup: *warmup,
                reported: *reported,
                ..StepRun::measured(&self.name, Some(*time))
            },
        }
    }
}

/// The work of a step of the sysbench microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub enum SysbenchStepKind {
    /// `load`: creates all tables with their rows.
    Load,
    /// `index`: creates the index on `k` of each table.
    Index,
    /// `settle`
    Settle,
    /// Runs a test.
    Run {
        /// The test, with its arguments applied.
        test: Test,
        /// The time for which it is measured.
        time: Duration,
        /// The time that it runs before it is measured.
        warmup: Duration,
        /// The distribution of random ids and values of `k`.
        distribution: Distribution,
        /// The rate of events; `None` for as fast as possible.
        rate: Option<TestRate>,
        /// Results show it; otherwise it is only recorded.
        reported: bool,
    },
}
