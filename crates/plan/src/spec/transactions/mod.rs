//! Transactions on tables of a script in a plan.

mod form;
mod home;
mod number;
mod pause;
mod script;

use std::time::Duration;

pub use self::form::Form;
pub(crate) use self::form::Unfit;
pub use self::home::{HomeRule, Homes};
pub use self::number::{Number, NumberDraw, NumberOperator, Shape};
pub use self::pause::Pause;
pub use self::script::{
    Action, ColumnValue, DataCheck, Expected, Isolation, List, Mix, Script, ScriptColumn,
    ScriptStatement, ScriptStatements, ScriptTable, ScriptType, SqlPiece, Taken, TextValue,
    Transaction,
};
use super::{Settle, StepPolicy, StepRun, TestRate};

/// The parameters of transactions on tables of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Transactions {
    /// The steps in their order.
    pub steps: Vec<TransactionsStep>,
    /// The tables, transactions, tests and checks.
    pub script: Script,
    /// The scale, on which the script depends.
    pub scale: u32,
    /// Connections that load.
    pub load_connections: u32,
    /// Rows per statement of the load.
    pub load_batch: u32,
    /// The statements that it runs where the script has several.
    pub statements: ScriptStatements,
    /// The form in which clients send transactions.
    pub form: Form,
    /// The options of all steps: checks, failures and settling.
    pub policy: StepPolicy,
}

impl Transactions {
    /// Returns the first step whose clients have to agree on the numbers of rows.
    pub fn step_with_shared_numbers(&self) -> Option<&str> {
        let step = self.steps.iter().find(|step| match step.kind {
            TransactionsStepKind::Run { test, .. } => self.script.shares_numbers(test),
            _ => false,
        });
        step.map(|step| step.name.as_str())
    }
}

/// One step of the transactions.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionsStep {
    /// The name, unique within the plan: `tpcb.2`.
    pub name: String,
    /// The work.
    pub kind: TransactionsStepKind,
}

impl TransactionsStep {
    pub(super) fn run(&self) -> StepRun<'_> {
        match &self.kind {
            TransactionsStepKind::Load | TransactionsStepKind::Index => {
                StepRun::measured(&self.name, None)
            }
            TransactionsStepKind::Settle => StepRun::settling(&self.name, Settle::Pending),
            TransactionsStepKind::Run { length, warmup, reported, .. } => StepRun {
                warmup: *warmup,
                reported: *reported,
                ..StepRun::measured(&self.name, length.time())
            },
        }
    }
}

/// The work of a step of the transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionsStepKind {
    /// `load`: inserts the rows of all tables.
    Load,
    /// `index`: creates the indexes of all tables.
    Index,
    /// `settle`
    Settle,
    /// Runs a test.
    Run {
        /// The index of the test in the script.
        test: usize,
        /// The end of the measurement.
        length: TestLength,
        /// The time that it runs before it is measured.
        warmup: Duration,
        /// The rule that gives each client its homes.
        home: HomeRule,
        /// The isolation level of its transactions.
        isolation: Isolation,
        /// The rate of transactions; `None` for as fast as possible.
        rate: Option<TestRate>,
        /// The waits around each transaction of the script, by its index; empty if clients don't
        /// wait. Then there is no rate.
        pauses: Vec<Pause>,
        /// Results show it; otherwise it is only recorded.
        reported: bool,
    },
}

/// The length of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestLength {
    /// The test ends after this time.
    Time(Duration),
    /// The test ends when all clients together have run this many transactions.
    Transactions(u64),
}

impl TestLength {
    /// Returns the time after which the test ends; `None` if it ends with its work.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(time),
            Self::Transactions(_) => None,
        }
    }

    /// Returns the number of transactions that a client runs; `None` for as many as the time allows.
    /// If the transactions cannot be divided evenly, the first clients run one more each.
    pub fn transactions_of(self, client: u32, clients: u32) -> Option<u64> {
        let Self::Transactions(transactions) = self else {
            return None;
        };
        let clients = u64::from(clients.max(1));
        let has_more = u64::from(client) < transactions % clients;
        Some(transactions / clients + u64::from(has_more))
    }
}
